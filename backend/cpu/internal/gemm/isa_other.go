//go:build !amd64 && !arm64

package gemm

// sets are the instruction sets of this processor, best first.
var sets = []*isa{plain}

var peakLoops map[*isa]func(uintptr)

// maxKernel is the kernel of max pooling, nil if there is none.
var maxKernel maxFunc
