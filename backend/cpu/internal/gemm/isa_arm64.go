package gemm

// neon has tiles of two vectors of four, which count as one of eight; every arm64 processor has it.
var neon = &isa{
	name: "NEON", lanes: 8, vecs: 1, rows: 8, size: 4,
	tiles: [2][8]tileFunc{{tileNEONx1, tileNEONx2, tileNEONx3, tileNEONx4, tileNEONx5, tileNEONx6, tileNEONx7, tileNEONx8}},
	runs:  [2][8]runsFunc{{runsNEONx1, runsNEONx2, runsNEONx3, runsNEONx4, runsNEONx5, runsNEONx6, runsNEONx7, runsNEONx8}},

	copyRows:  plain.copyRows,
	transpose: plain.transpose,
	precise:   plain.precise,
}

// sets are the instruction sets of this processor, best first.
var sets = []*isa{neon, plain}

var peakLoops map[*isa]func(uintptr)

// maxKernel is the kernel of max pooling, nil if there is none.
var maxKernel maxFunc
