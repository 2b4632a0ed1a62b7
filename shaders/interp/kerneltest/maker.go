package kerneltest

import (
	"fmt"
	"math/rand/v2"

	"github.com/anygpu/anygpu/shaders/ir"
)

// maker builds one case.
type maker struct {
	cfg     Config
	r       *rand.Rand
	b       *ir.Builder
	c       *Case
	n       int // elements computed: invocations that are not guarded away
	gid     ir.Value
	lid     ir.Value
	local   int
	pool    map[ir.Type][]ir.Value // values in scope
	inputs  []*ir.Mem
	counts  map[*ir.Mem]int // elements of inputs
	arrays  int
	nesting int
}

func newMaker(seed uint64, cfg Config) *maker {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	local := []int{1, 2, 4, 8, 16, 32, 64}[r.IntN(7)]
	g := &maker{cfg: cfg, r: r, c: &Case{}, local: local, pool: map[ir.Type][]ir.Value{}, counts: map[*ir.Mem]int{}}
	g.b = ir.NewBuilder(fmt.Sprintf("random_%d", seed), local, 1, 1)
	return g
}

func (g *maker) make() (*Case, error) {
	groups := 1 + g.r.IntN(6)
	g.n = max(1, groups*g.local-g.r.IntN(g.local))
	g.c.Groups = [3]int{groups, 1, 1}
	width := g.cfg.Lanes[g.r.IntN(len(g.cfg.Lanes))]
	for i, k := range g.cfg.Kinds {
		if k != ir.Bool {
			g.input(fmt.Sprintf("in%d", i), k, width)
		}
	}
	type output struct {
		m *ir.Mem
		t ir.Type
	}
	var outs []output
	for i, k := range g.cfg.Kinds {
		mem := k
		if k == ir.Bool {
			mem = ir.U8
		}
		t := ir.Vec(k, []int{1, width}[g.r.IntN(2)])
		m := g.b.Buffer(fmt.Sprintf("out%d", i), mem, ir.Write)
		outs = append(outs, output{m, t})
		g.c.Written = append(g.c.Written, m.Index)
		g.c.buffers = append(g.c.buffers, make([]byte, padded(g.n*t.Lanes*mem.Size())))
	}
	n := g.param("n", ir.U32, uint32(g.n))
	for _, k := range []ir.Kind{ir.U32, ir.I32, ir.F32} {
		if g.has(k) {
			g.add(g.param("p_"+k.String(), k, uint32(randomBits(g.r, k, g.cfg.Exact))))
		}
	}
	g.gid, g.lid = g.b.GlobalID(0), g.b.LocalID(0)
	if g.has(ir.U32) {
		g.add(g.gid)
		g.add(g.lid)
		g.add(g.b.GroupID(0))
	}
	if g.cfg.Shared {
		g.shuffle()
	}
	if n := g.cfg.Subgroup; n > 1 && g.local%n == 0 {
		g.exchange(n)
	}
	g.b.If(g.b.Lt(g.gid, n), func() {
		g.load(width)
		for range g.cfg.Steps {
			g.step(width)
		}
		for _, o := range outs {
			g.b.Store(o.m, g.b.Mul(g.gid, g.b.U32(uint32(o.t.Lanes))), g.output(o.t))
		}
	}, nil)
	k, err := g.b.Build()
	g.c.Kernel = k
	return g.c, err
}

func padded(bytes int) int { return (bytes + 3) &^ 3 }

func (g *maker) has(k ir.Kind) bool {
	for _, o := range g.cfg.Kinds {
		if o == k {
			return true
		}
	}
	return false
}

func (g *maker) param(name string, k ir.Kind, bits uint32) ir.Value {
	g.c.Params = append(g.c.Params, bits)
	return g.b.Param(name, k)
}

// input declares an input buffer with width elements for each invocation.
func (g *maker) input(name string, k ir.Kind, width int) {
	m := g.b.Buffer(name, k, ir.Read)
	count := g.n * width
	data := make([]byte, padded(count*k.Size()))
	for e := range count {
		putBits(data, e, k.Size(), randomBits(g.r, k, g.cfg.Exact))
	}
	g.inputs = append(g.inputs, m)
	g.counts[m] = count
	g.c.buffers = append(g.c.buffers, data)
}

// add puts a value in the pool and returns it.
func (g *maker) add(v ir.Value) ir.Value {
	g.pool[v.Type] = append(g.pool[v.Type], v)
	return v
}

// pick returns a value of type t from the pool, often a recent one, or a constant.
func (g *maker) pick(t ir.Type) ir.Value {
	p := g.pool[t]
	if len(p) == 0 || g.r.IntN(8) == 0 {
		return g.b.ConstBits(t, g.constBits(t.Kind))
	}
	if g.r.IntN(2) == 0 {
		return p[len(p)-1-g.r.IntN(min(3, len(p)))]
	}
	return p[g.r.IntN(len(p))]
}

func (g *maker) constBits(k ir.Kind) uint64 { return randomBits(g.r, k, g.cfg.Exact) }

// index returns a U32 below count.
func (g *maker) index(count int) ir.Value {
	if count < 2 {
		return g.b.U32(0)
	}
	return g.b.Rem(g.b.Add(g.pick(ir.Scalar(ir.U32)), g.gid), g.b.U32(uint32(count)))
}

// load reads each input once: contiguous, as a vector or a scalar, gathered, or the same for all.
func (g *maker) load(width int) {
	for _, m := range g.inputs {
		switch g.r.IntN(5) {
		case 0:
			g.add(g.b.Load(m, g.index(g.counts[m]), 1))
		case 1:
			g.add(g.b.Load(m, g.b.U32(uint32(g.r.IntN(g.counts[m]))), 1))
		case 2:
			g.add(g.b.Load(m, g.b.Mul(g.index(g.n), g.b.U32(uint32(width))), width))
		case 3:
			g.add(g.b.Load(m, g.gid, 1))
		default:
			g.add(g.b.Load(m, g.b.Mul(g.gid, g.b.U32(uint32(width))), width))
		}
	}
}

// output returns a value of type t: from the pool, or converted from another kind, floats scaled by a constant.
func (g *maker) output(t ir.Type) ir.Value {
	mem := t.Kind
	if mem == ir.Bool {
		return g.b.Convert(g.pick(t), ir.U8)
	}
	if p := g.pool[t]; len(p) > 0 && g.r.IntN(4) > 0 {
		v := g.pick(t)
		if t.Kind == ir.F32 && g.r.IntN(2) == 0 {
			v = g.b.Mul(v, g.b.ConstLike(v, 0.1))
		}
		return v
	}
	from := ir.Vec(g.cfg.Kinds[g.r.IntN(len(g.cfg.Kinds))], t.Lanes)
	v := g.pick(from)
	if from.Kind == ir.F32 && (t.Kind == ir.F16 || t.Kind == ir.BF16) {
		v = g.b.Mul(v, g.b.ConstLike(v, 0.1)) // exercise rounding
	}
	return g.b.Convert(v, t.Kind)
}
