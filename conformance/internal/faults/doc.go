// Package faults has tests only: they plant faults in drivers, kernels and gradients, and hold that the suite of package
// conformance that should find each does. It is a package of its own because a faulty row in the operator table would be in
// the way of other tests.
package faults
