//go:build cgo

package opencl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/shaders/clc"
	"github.com/anygpu/anygpu/shaders/ir"
)

// TestKernelRandom runs random expressions of exact operations; results must have the same bits.
func TestKernelRandom(t *testing.T) {
	n := 10
	if testing.Short() {
		n = 4
	}
	eachDevice(t, func(t *testing.T, d *device) {
		known(t, d)
		for seed := range n {
			k, buffers := randomKernel(t, uint64(seed))
			want, got := runBoth(t, d, k, [3]int{2, 1, 1}, buffers, []uint32{uint32(seed), math.Float32bits(1.25)})
			for i, m := range k.Globals() {
				for at := 0; at < len(buffers[i]); at += m.Kind.Size() {
					if w, g := getElem(want[i][at:], m.Kind), getElem(got[i][at:], m.Kind); distance(m.Kind, w, g) != 0 {
						low, _ := ir.Lower(k, d.info.Caps)
						text, _ := clc.Emit(low, clc.Options{})
						t.Fatalf("seed %d: %s at byte %d: got %#x, want %#x\n%s\n%s", seed, m.Name, at, g, w, k, text)
					}
				}
			}
		}
	})
}

// randomKernel makes a kernel of random exact operations on vectors of one width.
func randomKernel(t *testing.T, seed uint64) (*ir.Kernel, [][]byte) {
	r := rand.New(rand.NewPCG(seed, 99))
	lanes := widths[r.IntN(len(widths))]
	kinds := []ir.Kind{ir.F32, ir.I32, ir.U32, ir.I64, ir.U8, ir.F16, ir.BF16}
	s := sampler{r}
	var buffers [][]byte
	k := kernel(t, fmt.Sprintf("random_%d", seed), invocations, func(b *ir.Builder) {
		g := exprGen{b: b, r: r, lanes: lanes, pool: map[ir.Kind][]ir.Value{}}
		at := b.Mul(b.GlobalID(0), b.U32(uint32(lanes)))
		p, q := b.Param("p", ir.U32), b.Param("q", ir.F32)
		g.add(b.Splat(p, lanes))
		g.add(b.Splat(q, lanes))
		total := 2 * invocations * lanes
		for _, kind := range kinds {
			v := b.Load(b.Buffer("in_"+kind.String(), kind, ir.Read), at, lanes)
			switch kind {
			case ir.U8:
				v = b.Convert(v, ir.I32)
			case ir.BF16:
				v = b.Convert(v, ir.F32)
			}
			g.add(v)
			buffers = append(buffers, s.buffer(kind, total))
		}
		for range 30 {
			g.step(2)
		}
		for _, kind := range kinds {
			src := kind
			switch kind {
			case ir.U8:
				src = ir.I32
			case ir.BF16:
				src = ir.F32
			}
			b.Store(b.Buffer("out_"+kind.String(), kind, ir.Write), at, b.Convert(g.pick(src), kind))
			buffers = append(buffers, make([]byte, (total*kind.Size()+3)/4*4))
		}
	})
	return k, buffers
}

// exprGen grows a pool of values by random operations.
type exprGen struct {
	b     *ir.Builder
	r     *rand.Rand
	lanes int
	pool  map[ir.Kind][]ir.Value
}

func (g *exprGen) add(v ir.Value) { g.pool[v.Type.Kind] = append(g.pool[v.Type.Kind], v) }

func (g *exprGen) pick(k ir.Kind) ir.Value {
	if len(g.pool[k]) == 0 {
		g.add(g.b.Const(ir.Vec(k, g.lanes), float64(g.r.IntN(9)-4)))
	}
	return g.pool[k][g.r.IntN(len(g.pool[k]))]
}

func (g *exprGen) cond() ir.Value {
	if len(g.pool[ir.Bool]) == 0 {
		x := g.pick(ir.I32)
		g.add(g.b.Lt(x, g.pick(ir.I32)))
	}
	return g.pick(ir.Bool)
}

var exactKinds = []ir.Kind{ir.F32, ir.I32, ir.U32, ir.I64, ir.F16}

// step adds one operation, or control flow around some.
func (g *exprGen) step(depth int) {
	b := g.b
	k := exactKinds[g.r.IntN(len(exactKinds))]
	x, y := g.pick(k), g.pick(k)
	switch g.r.IntN(12) {
	case 0:
		g.add(b.Add(x, y))
	case 1:
		g.add(b.Sub(x, y))
	case 2:
		g.add(b.Mul(x, y))
	case 3:
		cmp := []func(x, y ir.Value) ir.Value{b.Eq, b.Ne, b.Lt, b.Le, b.Gt, b.Ge}
		g.add(cmp[g.r.IntN(len(cmp))](x, y))
	case 4:
		g.add(b.Select(g.cond(), x, y))
	case 5:
		g.add(b.Convert(x, exactKinds[g.r.IntN(len(exactKinds))]))
	case 6:
		if k != ir.U32 {
			x = b.Neg(x)
		}
		g.add(x)
	case 7:
		if k.IsFloat() {
			g.add(b.MaxNaN(x, y))
		} else {
			bits := []func(x, y ir.Value) ir.Value{b.And, b.Or, b.Xor, b.Min, b.Max}
			g.add(bits[g.r.IntN(len(bits))](x, y))
		}
	case 8:
		if !k.IsFloat() {
			y = b.And(y, b.ConstLike(y, 31))
			g.add([]func(x, y ir.Value) ir.Value{b.Shl, b.Shr}[g.r.IntN(2)](x, y))
		}
	case 9:
		logic := []func(x, y ir.Value) ir.Value{b.And, b.Or, b.Xor, b.Eq, b.Ne}
		g.add(logic[g.r.IntN(len(logic))](g.cond(), b.Not(g.cond())))
	case 10:
		lane := g.r.IntN(g.lanes)
		g.add(b.Splat(b.Extract(x, lane), g.lanes))
	default:
		if depth == 0 {
			return
		}
		g.control(depth, x)
	}
}

// control adds an if or a loop that changes a variable.
func (g *exprGen) control(depth int, x ir.Value) {
	b := g.b
	v := b.Var(x)
	scope := func(n int) func() {
		return func() {
			outer := map[ir.Kind][]ir.Value{}
			for k, vs := range g.pool {
				outer[k] = vs[:len(vs):len(vs)]
			}
			for range n {
				g.step(depth - 1)
			}
			b.Set(v, g.pick(x.Type.Kind))
			g.pool = outer // values made inside are not visible outside
		}
	}
	if g.r.IntN(2) == 0 {
		b.If(b.Extract(g.cond(), 0), scope(3), scope(2))
	} else {
		b.For(b.U32(0), b.U32(3), b.U32(2), func(i ir.Value) {
			outer := g.pool[ir.U32]
			g.pool[ir.U32] = append(outer[:len(outer):len(outer)], b.Splat(i, g.lanes))
			scope(3)()
			g.pool[ir.U32] = outer
		})
	}
	g.add(b.Get(v))
}
