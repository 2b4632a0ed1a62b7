package lib

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// String returns the distribution's name.
func (d RandomKind) String() string {
	names := [...]string{"uniform", "normal", "bernoulli", "bits"}
	if d < 0 || int(d) >= len(names) {
		return "unknown"
	}
	return names[d]
}

// Key identifies the kernel; size, seed, offset and probability are launch parameters.
func (r *Random) Key() string {
	return fmt.Sprintf("random|%s|%s|%v", r.Dist, r.Out, r.N%(4*ir.MaxLanes) == 0)
}

// Build makes the kernel.
func (r *Random) Build(t Target) (*ir.Kernel, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	m := randomEmitter{Random: r, b: ir.NewBuilder("random_"+r.Dist.String(), t.config().local, 1, 1), lanes: r.lanes(t), width: t.config().width}
	k, err := m.build()
	if err != nil {
		return nil, fmt.Errorf("random %s: %w", r.Dist, err)
	}
	return k, nil
}

// randomEmitter builds the kernel: an invocation makes lanes blocks of four elements.
type randomEmitter struct {
	*Random
	b            *ir.Builder
	lanes, width int
	out          *ir.Mem
	n            ir.Value
	key, offset  [2]ir.Value
	prob         ir.Value
}

func (m *randomEmitter) build() (*ir.Kernel, error) {
	b := m.b
	b.SetOps("random_" + m.Dist.String())
	m.out = b.Buffer("out", m.Out, ir.Write)
	m.n = b.Param("n", ir.U32)
	m.key = [2]ir.Value{b.Param("seed_lo", ir.U32), b.Param("seed_hi", ir.U32)}
	m.offset = [2]ir.Value{b.Param("offset_lo", ir.U32), b.Param("offset_hi", ir.U32)}
	if m.Dist == RandomBernoulli {
		m.prob = b.Param("p", ir.F32)
	}
	chunk := b.LinearID()
	first := b.Mul(chunk, b.U32(uint32(m.lanes)))
	full := b.Div(m.n, b.U32(uint32(4*m.lanes)))
	blocks := b.Div(b.Add(m.n, b.U32(3)), b.U32(4))
	whole := func() { m.whole(first, m.blocks(first, m.lanes)) }
	switch {
	case m.N%(4*ir.MaxLanes) == 0:
		b.If(b.Lt(chunk, full), whole, nil)
	case m.lanes == 1:
		b.If(b.Lt(chunk, blocks), func() {
			values := m.blocks(first, 1)
			b.If(b.Lt(chunk, full), func() { m.whole(first, values) }, func() { m.some(first, values) })
		}, nil)
	default:
		b.If(b.Lt(chunk, full), whole, func() {
			b.If(b.Eq(chunk, full), func() {
				b.For(first, blocks, b.U32(1), func(block ir.Value) { m.some(block, m.blocks(block, 1)) })
			}, nil)
		})
	}
	return b.Build()
}

// blocks makes the elements of lanes blocks from number first on: word i of each in the i-th vector.
func (m *randomEmitter) blocks(first ir.Value, lanes int) [4]ir.Value {
	b := m.b
	lo := iota32(b, b.Add(m.offset[0], first), lanes)
	carry := b.Select(b.Lt(lo, b.Splat(m.offset[0], lanes)), b.U32(1), b.U32(0))
	hi := b.Add(b.Splat(m.offset[1], lanes), carry)
	zero := b.ConstLike(lo, 0)
	return m.values(b, philox(b, m.key, [4]ir.Value{lo, hi, zero, zero}), m.prob)
}

// whole stores complete blocks, the first of which has number first.
func (m *randomEmitter) whole(first ir.Value, values [4]ir.Value) {
	b := m.b
	at := b.Mul(first, b.U32(4))
	for i, v := range interleave(b, values, min(4*m.lanes, m.width)) {
		store(b, m.out, Operand{Kind: m.Out}, b.Add(at, b.U32(uint32(i*v.Type.Lanes))), v, v.Type.Lanes, accessVector, nil)
	}
}

// some stores the elements of one block that are below n.
func (m *randomEmitter) some(block ir.Value, values [4]ir.Value) {
	b := m.b
	at := b.Mul(block, b.U32(4))
	for i, v := range values {
		index := b.Add(at, b.U32(uint32(i)))
		b.If(b.Lt(index, m.n), func() { store(b, m.out, Operand{Kind: m.Out}, index, v, 1, accessVector, nil) }, nil)
	}
}

// lanes returns how many blocks of four elements an invocation makes at once. CPU compilers need vectors for that; the
// others make vectors of invocations.
func (r *Random) lanes(t Target) int {
	if t.class() != openclCPU {
		return 1
	}
	return t.config().width
}

// interleave returns the elements in their order, x[0][0], x[1][0], x[2][0], x[3][0], x[0][1], …, in vectors of width lanes.
func interleave(b *ir.Builder, x [4]ir.Value, width int) []ir.Value {
	var parts []ir.Value
	for lane := range x[0].Type.Lanes {
		for i := range x {
			parts = append(parts, b.Extract(x[i], lane))
		}
	}
	var out []ir.Value
	for len(parts) > 0 {
		out = append(out, b.Vec(parts[:width]...))
		parts = parts[width:]
	}
	return out
}

// values makes four elements of a block's words.
func (r *Random) values(b *ir.Builder, w [4]ir.Value, prob ir.Value) [4]ir.Value {
	switch r.Dist {
	case RandomBits:
		return w
	case RandomNormal:
		x0, x1 := boxMuller(b, w[0], w[1])
		x2, x3 := boxMuller(b, w[2], w[3])
		w = [4]ir.Value{x0, x1, x2, x3}
	default:
		for i := range w {
			w[i] = uniform(b, w[i])
			if r.Dist == RandomBernoulli {
				w[i] = b.Lt(w[i], prob)
			}
		}
	}
	if r.Out == ir.F64 {
		for i := range w {
			w[i] = b.Convert(w[i], ir.F64)
		}
	}
	return w
}

// uniform returns the high 24 bits of w as a fraction in [0, 1), exactly.
func uniform(b *ir.Builder, w ir.Value) ir.Value {
	i := b.BitCast(b.Shr(w, b.ConstLike(w, 8)), ir.I32)
	return b.Mul(b.Convert(i, ir.F32), b.F32(0x1p-24))
}

// Launch returns the grid and the parameters.
func (r *Random) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := r.check(); err != nil {
		return groups, nil, err
	}
	params = []uint32{uint32(r.N), uint32(r.Seed), uint32(r.Seed >> 32), uint32(r.Offset), uint32(r.Offset >> 32)}
	if r.Dist == RandomBernoulli {
		params = append(params, math.Float32bits(r.P))
	}
	groups, err = t.fold("random "+r.Dist.String(), uint64(ceilDiv(ceilDiv(r.N, 4*r.lanes(t)), t.config().local)))
	return groups, params, err
}

// Cost returns an estimate of the operations: ten rounds of Philox for four elements, and the distribution.
func (r *Random) Cost() float64 {
	per := 25.0
	if r.Dist == RandomNormal {
		per = 50
	}
	return per * float64(r.N)
}

func (r *Random) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("random %s: %w", r.Dist, fmt.Errorf(format, args...))
	}
	want := map[RandomKind][]ir.Kind{
		RandomUniform: {ir.F32, ir.F16, ir.BF16, ir.F64}, RandomNormal: {ir.F32, ir.F16, ir.BF16, ir.F64},
		RandomBernoulli: {ir.U8}, RandomBits: {ir.U32},
	}[r.Dist]
	for _, k := range want {
		if k != r.Out {
			continue
		}
		switch {
		case r.N < 0 || r.N > maxReduceElements:
			return fail("%d elements; at most %d in one tensor", r.N, maxReduceElements)
		case r.Dist == RandomBernoulli && !(r.P >= 0 && r.P <= 1):
			return fail("probability %v is not between 0 and 1", r.P)
		}
		return nil
	}
	return fail("output kind %s; it makes %v", r.Out, want)
}
