// Package examples is a folder of programs, each about one thing. They run from the repository's root, as 'go run ./docs/examples/device',
// on the device that -device names, or the best of the machine:
//
//	device          choose a device once and use it everywhere
//	training        move the model and every batch to it
//	plot            bring results back and plot them
//	mixedprecision  autocast and a gradient scaler
//	gradients       draw why float16 needs a gradient scaler
//	pytorch         take weights over from PyTorch, and give them back
//	tabular         regression on the columns of a CSV file
//	images          classify the images of folders
//	text            learn a text and write some
//
// The package's test runs all of them.
package examples
