package jit

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// TestMath64 holds the replacements of F64's functions, as machine code, against those on the block executor: as many lanes
// as a kernel has, and one with vectors.
func TestMath64(t *testing.T) {
	needCode(t)
	const n = 1 << 14
	in := aligned([][]byte{make([]byte, 8*n), make([]byte, 8*n)})
	r := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		x := r.NormFloat64() * 4
		switch i % 4 {
		case 0:
			x = math.Float64frombits(r.Uint64())
		case 1:
			x = 1 + r.NormFloat64()*1e-6
		}
		binary.NativeEndian.PutUint64(in[0][8*i:], math.Float64bits(x))
		binary.NativeEndian.PutUint64(in[1][8*i:], math.Float64bits(math.Float64frombits(r.Uint64()&^(1<<62)|1<<61)))
	}
	for i, x := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, 710, -746, math.MaxFloat64} {
		binary.NativeEndian.PutUint64(in[0][8*i:], math.Float64bits(x))
	}
	for op := ir.OpSqrt; op.IsMath(); op++ {
		for _, lanes := range []int{1, 8} {
			b := ir.NewBuilder("math64_"+op.String(), 64, 1, 1)
			x, y, out := b.Buffer("x", ir.F64, ir.Read), b.Buffer("y", ir.F64, ir.Read), b.Buffer("out", ir.F64, ir.Write)
			at := b.Mul(b.LinearID(), b.U32(uint32(lanes)))
			args := []ir.Value{b.Load(x, at, lanes)}
			if op == ir.OpPow || op == ir.OpAtan2 {
				args = append(args, b.Load(y, at, lanes))
			}
			b.Store(out, at, b.Math(op, args...))
			k, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			p, err := Compile(k)
			if err != nil {
				t.Errorf("%s, %d lanes: %v", op, lanes, err)
				continue
			}
			bufs := aligned([][]byte{in[0], in[1], make([]byte, 8*n)})
			groups := [3]int{n / 64 / lanes, 1, 1}
			if err := p.Run(groups, bufs, nil, interp.DefaultPool()); err != nil {
				t.Fatal(err)
			}
			low, err := ir.Lower(k, caps(k))
			if err != nil {
				t.Fatal(err)
			}
			q, err := interp.Compile(low)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]byte, 8*n)
			if err := q.Run(groups, [][]byte{in[0], in[1], want}, nil, nil); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				g, w := binary.NativeEndian.Uint64(bufs[2][8*i:]), binary.NativeEndian.Uint64(want[8*i:])
				if gf, wf := math.Float64frombits(g), math.Float64frombits(w); g != w && (gf == gf || wf == wf) {
					t.Errorf("%s of %v, %d lanes: machine code gives %v, the block executor %v", op, math.Float64frombits(binary.NativeEndian.Uint64(in[0][8*i:])), lanes, gf, wf)
					break
				}
			}
		}
	}
}
