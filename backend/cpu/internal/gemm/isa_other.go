//go:build !amd64

package gemm

// sets are the instruction sets of this processor, best first.
var sets = []*isa{plain}

var peakLoops map[*isa]func(uintptr)

// maxTap is the kernel of max pooling, nil if there is none.
var maxTap tapFunc
