package gemm

import "golang.org/x/sys/cpu"

var avx512 = &isa{
	name: "AVX-512", lanes: 16, vecs: 2, rows: 8, dotRows: 4,
	tiles: [2][8]tileFunc{
		{tileAVX512x1x1, tileAVX512x2x1, tileAVX512x3x1, tileAVX512x4x1, tileAVX512x5x1, tileAVX512x6x1, tileAVX512x7x1, tileAVX512x8x1},
		{tileAVX512x1x2, tileAVX512x2x2, tileAVX512x3x2, tileAVX512x4x2, tileAVX512x5x2, tileAVX512x6x2, tileAVX512x7x2, tileAVX512x8x2},
	},
	wide: [2]tileFunc{tileAVX512x1x8, tileAVX512x2x8},
	dots: [4][4]dotFunc{
		{dotAVX512x1x1, dotAVX512x1x2, dotAVX512x1x3, dotAVX512x1x4},
		{dotAVX512x2x1, dotAVX512x2x2, dotAVX512x2x3, dotAVX512x2x4},
		{dotAVX512x3x1, dotAVX512x3x2, dotAVX512x3x3, dotAVX512x3x4},
		{dotAVX512x4x1, dotAVX512x4x2, dotAVX512x4x3, dotAVX512x4x4},
	},
	copyRows:  [3]rowsFunc{packRowsF32, packRowsF16, packRowsBF16},
	transpose: [3]transposeFunc{transposeF32, transposeF16, transposeBF16},
	runs: [2][8]runsFunc{
		{runsAVX512x1x1, runsAVX512x2x1, runsAVX512x3x1, runsAVX512x4x1, runsAVX512x5x1, runsAVX512x6x1, runsAVX512x7x1, runsAVX512x8x1},
		{runsAVX512x1x2, runsAVX512x2x2, runsAVX512x3x2, runsAVX512x4x2, runsAVX512x5x2, runsAVX512x6x2, runsAVX512x7x2, runsAVX512x8x2},
	},
	packVectors:     packVectorsAVX512,
	packPairs:       packPairsAVX512,
	size:            4,
	depthwise:       depthwiseAVX512,
	depthwiseWeight: depthwiseWeightAVX512,
	precise: &isa{name: "AVX-512", lanes: 16, vecs: 2, rows: 4, size: 8,
		dotRows: 1, dots: [4][4]dotFunc{{preciseDotAVX512x1, preciseDotAVX512x2, preciseDotAVX512x3, preciseDotAVX512x4}},
		tiles: [2][8]tileFunc{
			{preciseAVX512x1x1, preciseAVX512x2x1, preciseAVX512x3x1, preciseAVX512x4x1},
			{preciseAVX512x1x2, preciseAVX512x2x2, preciseAVX512x3x2, preciseAVX512x4x2},
		},
		runs: [2][8]runsFunc{
			{preciseRunsAVX512x1x1, preciseRunsAVX512x2x1, preciseRunsAVX512x3x1, preciseRunsAVX512x4x1},
			{preciseRunsAVX512x1x2, preciseRunsAVX512x2x2, preciseRunsAVX512x3x2, preciseRunsAVX512x4x2},
		},
		copyRows:    [3]rowsFunc{packRowsF32, packRowsF16, packRowsBF16},
		transpose:   [3]transposeFunc{transposeF32, transposeF16, transposeBF16},
		packVectors: packVectorsAVX512,
		packPairs:   packPairsAVX512,
	},
}

var avx2 = &isa{
	name: "AVX2", lanes: 8, vecs: 2, rows: 6, dotRows: 2,
	tiles: [2][8]tileFunc{
		{tileAVX2x1x1, tileAVX2x2x1, tileAVX2x3x1, tileAVX2x4x1, tileAVX2x5x1, tileAVX2x6x1},
		{tileAVX2x1x2, tileAVX2x2x2, tileAVX2x3x2, tileAVX2x4x2, tileAVX2x5x2, tileAVX2x6x2},
	},
	wide: [2]tileFunc{tileAVX2x1x8},
	dots: [4][4]dotFunc{
		{dotAVX2x1x1, dotAVX2x1x2, dotAVX2x1x3, dotAVX2x1x4},
		{dotAVX2x2x1, dotAVX2x2x2, dotAVX2x2x3, dotAVX2x2x4},
	},
	copyRows:  [3]rowsFunc{packRowsF32, packRowsF16, packRowsBF16},
	transpose: [3]transposeFunc{transposeF32, transposeF16, transposeBF16},
	runs: [2][8]runsFunc{
		{runsAVX2x1x1, runsAVX2x2x1, runsAVX2x3x1, runsAVX2x4x1, runsAVX2x5x1, runsAVX2x6x1},
		{runsAVX2x1x2, runsAVX2x2x2, runsAVX2x3x2, runsAVX2x4x2, runsAVX2x5x2, runsAVX2x6x2},
	},
	size: 4,
	precise: &isa{name: "AVX2", lanes: 8, vecs: 1, rows: 4, size: 8,
		dotRows: 1, dots: [4][4]dotFunc{{preciseDotAVX2x1, preciseDotAVX2x2, preciseDotAVX2x3, preciseDotAVX2x4}},
		tiles: [2][8]tileFunc{
			{preciseAVX2x1x1, preciseAVX2x2x1, preciseAVX2x3x1, preciseAVX2x4x1},
		},
		runs: [2][8]runsFunc{
			{preciseRunsAVX2x1x1, preciseRunsAVX2x2x1, preciseRunsAVX2x3x1, preciseRunsAVX2x4x1},
		},
		copyRows:  [3]rowsFunc{packRowsF32, packRowsF16, packRowsBF16},
		transpose: [3]transposeFunc{transposeF32, transposeF16, transposeBF16},
	},
}

// The packing routines of both need AVX2 and F16C.
var (
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C
	hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ
)

// sets are the instruction sets of this processor, best first.
var sets = func() []*isa {
	var out []*isa
	if hasAVX512 {
		out = append(out, avx512)
	}
	if hasAVX2 {
		out = append(out, avx2)
	}
	return append(out, plain)
}()

// maxKernel is the kernel of max pooling, nil if there is none; it takes strides of 1 and 2.
var maxKernel = func() maxFunc {
	if hasAVX512 {
		return windowMaxAVX512
	}
	return nil
}()

// peakLoops are loops of 12 vector multiply-adds a round.
var peakLoops = map[*isa]func(uintptr){avx512: peakAVX512, avx2: peakAVX2}
