// Command gen writes the assembly kernels of package gemm. It is a module of its own, so that the library does not
// depend on avo. Run it by go generate in the directory of package gemm.
package main

import (
	"log"
	"os"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a vector instruction set.
type isa struct {
	name    string
	lanes   int // float32 values in a vector
	rows    int // of the largest tile of the outer-product kernels; it is two vectors wide
	precise int // columns of the largest tile that sums in float64, in vectors of float32; it has four rows
	wide    int // rows up to which there are tiles of eight vectors
	dot     int // rows of the largest tile of dot products; it has four columns
	reg     []reg.VecPhysical
}

var avx512 = isa{name: "AVX512", lanes: 16, rows: 8, precise: 2, wide: 2, dot: 4, reg: []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}}

var avx2 = isa{name: "AVX2", lanes: 8, rows: 6, precise: 1, wide: 1, dot: 2, reg: []reg.VecPhysical{
	reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
}}

// vecBytes is the size of a vector.
func (s isa) vecBytes() int { return 4 * s.lanes }

// function starts an assembly function.
func function(name, signature, comment string) {
	TEXT(name, attr.NOSPLIT, signature)
	Pragma("noescape")
	Doc(comment)
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "arm64" {
		if err := writeARM64(os.Args[2], os.Args[3]); err != nil {
			log.Fatal(err)
		}
		return
	}
	ConstraintExpr("amd64")
	if os.Args[len(os.Args)-1] == "dots" {
		for _, s := range []isa{avx512, avx2} {
			s.allDots()
		}
		Generate()
		return
	}
	for _, s := range []isa{avx512, avx2} {
		for _, vecs := range []int{1, 2} {
			for rows := 1; rows <= s.rows; rows++ {
				tile{isa: s, rows: rows, vecs: vecs}.emit()
				tile{isa: s, rows: rows, vecs: vecs, table: true}.emit()
			}
		}
		for vecs := 1; vecs <= s.precise; vecs++ {
			for rows := 1; rows <= 4; rows++ {
				tile{isa: s, rows: rows, vecs: 2 * vecs, double: true}.emit()
				tile{isa: s, rows: rows, vecs: 2 * vecs, double: true, table: true}.emit()
			}
		}
		for rows := 1; rows <= s.wide; rows++ {
			tile{isa: s, rows: rows, vecs: 8}.emit()
		}
		s.peak()
	}
	for _, k := range kinds {
		k.packRows()
		k.transpose()
	}
	packVectors()
	packPairs()
	windowMax()
	depthwise()
	depthwiseWeight()
	Generate()
}
