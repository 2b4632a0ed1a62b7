package gemm

// tileFunc computes a tile of C: a is its first value of A, with rows aRow and columns aCol bytes apart; b its first
// vectors of B, bStep bytes apart along K; c its corner, with rows cRow bytes apart. mask has a negative number for each
// column that is there and zeros for the rest; nil means all are. If add is not 0, C's values are added; bias, if not
// nil, is added last, and then rowBias, one value for each row. Kernels that sum in float64 have float64 values in C
// (whatever the type of the pointer) and float32 values elsewhere.
type tileFunc func(a *float32, aRow, aCol uintptr, b *float32, bStep, k uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias, rowBias *float32)

// runsFunc computes a tile of C like tileFunc, from rows of A that are anywhere: each is runs of k values, with skip bytes
// between them.
type runsFunc func(rows *[group]*float32, k, runs, skip uintptr, b *float32, bStep uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias, rowBias *float32)

// packVectorsFunc gathers, for each tap of each channel, a vector of values that neighbouring windows take from an image, and
// writes it dstStep bytes after the one before. Taps and the size of a channel are in bytes; n runs, at least one, fill the
// lanes.
type packVectorsFunc func(dst *float32, dstStep uintptr, runs *[8]uintptr, n uintptr, taps *uintptr, ntaps, channel, channels uintptr)

// packPairsFunc is packVectorsFunc for two vectors at once, from two runs each.
type packPairsFunc func(dst *float32, dstStep uintptr, runs *[8]uintptr, taps *uintptr, ntaps, channel, channels uintptr)

// runTable has up to four runs of lanes of a vector: the address that lane 0 would have, perhaps outside the image and so no
// pointer, and the mask of the lanes that are read.
type runTable [8]uintptr

// dotFunc computes dot products of rows of A and of B, aRow and bRow bytes apart, each contiguous; mask covers the
// elements that do not fill a vector. Result i,j goes to out[4*i+j]; the rest of a row of out is overwritten. Kernels that sum in float64 write float64
// values, and their vectors are of half as many.
type dotFunc func(a *float32, aRow uintptr, b *float32, bRow, k uintptr, mask *int32, out *float32)

// rowsFunc copies rows of width elements as float32; the steps are in bytes.
type rowsFunc func(dst *float32, dstStep uintptr, src *byte, srcStep, rows, width uintptr)

// transposeFunc writes n elements of eight rows as n groups of eight float32, dstStep bytes apart.
type transposeFunc func(dst *float32, dstStep uintptr, rows *[8]*byte, n uintptr)

// isa is an instruction set with its kernels.
type isa struct {
	name      string
	lanes     int            // values in a vector
	vecs      int            // vectors in a row of the largest tile, at most 2
	rows      int            // of the largest tile, at most group
	tiles     [2][8]tileFunc // by vectors and rows, less 1
	wide      [2]tileFunc    // by rows, less 1, of wideVecs vectors, all of them there; nil if there is none
	dotRows   int            // rows of the largest tile of dot products; it has four columns
	dots      [4][4]dotFunc  // by rows and columns, less 1
	copyRows  [3]rowsFunc    // by kind
	transpose [3]transposeFunc
	runs      [2][8]runsFunc // as tiles
	// packVectors is for vectors of 16; nil if there is none, and runs are copied one by one.
	packVectors packVectorsFunc
	packPairs   packPairsFunc
	// For groups of one channel; nil if there are none.
	depthwise       depthwiseFunc
	depthwiseWeight depthwiseWeightFunc
	size            uintptr // bytes of a value of C
	precise         *isa    // its kernels that sum in float64: tiles, runs, and dot products of one row
}

const (
	wideVecs = 8   // the width of the tiles for one or two rows
	group    = 8   // rows in a packed panel of A; the width of a packed panel of B is a multiple
	depth    = 256 // steps along K whose products are added in registers
)

// width is the number of columns of the largest tile, and of a packed panel of B.
func (s *isa) width() int { return s.lanes * s.vecs }

// maskTable holds masks: from 32-n on, n ones and then zeros.
var maskTable = func() (t [64]int32) {
	for i := range 32 {
		t[i] = -1
	}
	return t
}()

// maskOf returns a mask for n of up to 32 lanes.
func maskOf(n int) *int32 { return &maskTable[32-n] }
