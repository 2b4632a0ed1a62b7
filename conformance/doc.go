// Package conformance holds a device and its driver against the operator table: what is right, what is wrong by how much
// and on which operands, and what the device cannot do.
//
// # Overview
//
// [Check] runs suites of cases on a device and returns a [Report]; [Test] does it inside a test, and is all that a new
// backend's own test needs. The reports can be written as text, JSON, JUnit XML and one HTML file ([Reports]).
//
// The cases follow from the operator table ([tensor.Ops]): a new row is tested by existing. Its reference is the row's own
// function in float64 plain Go, and there are recorded results of PyTorch ([LoadGolden], [LoadTraining]; the format is
// described in testdata/FORMAT.md). No case holds a device against the same kernel run elsewhere only, except where
// a case says so: instructions of the kernel language are defined by the checking executor of package interp.
//
// # Adding a case
//
// An operator's samples belong to its row. What is no property of one operator is a case of one of the suites, in the file
// of the suite's name (suite_*.go): a name and a function that returns an error. Return a *[Mismatch] where values
// differ, a *[NotSupportedError] where the device lacks something that it may lack.
//
// # Invariants
//
//   - A case has one of four statuses: pass, fail, skip (the caller asked for it) and not-supported, which names the
//     feature that is missing. Nothing is left out silently.
//   - A case depends on Options.Seed and its own name only, so that it can be rerun alone.
//   - Bounds are those of the device's API where a driver computes a function, and OpenCL's where the library does
//     (bounds.go). A wider bound has its reason beside it.
//   - A panic fails its case, not the program; a lost device fails its case and ends the run.
//
// # Example
//
//	func TestConformance(t *testing.T) {
//		dev, err := backend.Open("metal")
//		…
//		conformance.Test(t, dev)
//	}
package conformance
