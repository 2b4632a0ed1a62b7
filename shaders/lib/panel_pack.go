package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// panelPack copies a matrix of extent X and depth K (A with its rows as the extent, B with its columns) to panels: the
// element at position x and depth k of matrix z of the batch goes to ((z*panels + x/width)*depth + k)*width + x%width, where depth
// is K rounded up to packDepth. With join, so many matrices of the batch follow one another along the
// depth, as one matrix of join*K steps. A product then reads both operands from front to back. Positions past the extent hold copies of others: what is
// computed from them is not stored. Buffers: the matrices, the panels.
type panelPack struct {
	kind, to ir.Kind // of the matrices and of the panels
	x, k     int
	width    int  // positions in a panel
	lanes    int  // of a vector, at most width
	alongK   bool // stored along K; else along the extent
	align    int  // divides the address of every stored row
	batch    int
	join     int // divides batch; 0 is 1. More only with panels of whole vectors
	stride   int // between matrices
	pitch    int // of stored rows; 0 is their length
	offset   int
	ops      []string
}

// packDepth is how many steps along K one invocation copies of a panel.
const packDepth = 16

func (p *panelPack) panels() int { return ceilDiv(p.x, p.width) }

// elements returns the size of the panels of all matrices.
func (p *panelPack) elements() int {
	return satMul(satMul(p.batch/p.joined()*p.panels(), p.width), panelDepth(p.joined()*p.k))
}

func (p *panelPack) joined() int { return max(p.join, 1) }

// panelDepth is the distance of panels in steps: every block of packDepth steps is aligned to a vector.
func panelDepth(k int) int { return ceilDiv(k, packDepth) * packDepth }

func (p *panelPack) aligned() bool { return p.align >= p.lanes }

func (p *panelPack) Key() string {
	return fmt.Sprintf("panel_pack|%s>%s|%d,%d|along k %v|aligned %v|ops %q", p.kind, p.to, p.width, p.lanes, p.alongK, p.aligned(), p.ops)
}

func (p *panelPack) Cost() float64 {
	return float64(p.batch) * float64(p.x) * float64(p.k) * float64(p.kind.Size()+p.to.Size())
}

func (p *panelPack) Launch(t Target) (groups [3]int, params []uint32, err error) {
	pitch := p.pitch
	switch {
	case pitch > 0:
	case p.alongK:
		pitch = p.k
	default:
		pitch = p.x
	}
	blocks := ceilDiv(p.k, packDepth)
	n := uint64(p.batch) * uint64(p.panels()) * uint64(blocks)
	for _, v := range []int{int(n), p.x, p.k, pitch, p.panels(), blocks, p.stride, p.offset, p.joined(), panelDepth(p.joined() * p.k)} {
		params = append(params, uint32(v))
	}
	local := uint64(t.config().row)
	groups, err = t.fold("panel_pack", (n+local-1)/local)
	return groups, params, err
}

// packEmitter builds the kernel: one invocation for each panel and packDepth steps of its depth.
type packEmitter struct {
	*panelPack
	b       *ir.Builder
	in, out *ir.Mem
	extent  ir.Value
	pitch   ir.Value
	base    ir.Value // of the matrix
	begin   ir.Value // where the panel's step 0 goes
	first   ir.Value // position of the panel
}

func (p *panelPack) Build(t Target) (*ir.Kernel, error) {
	b := ir.NewBuilder("panel_pack", t.config().row, 1, 1)
	b.SetOps(p.ops...)
	e := &packEmitter{panelPack: p, b: b, in: b.Buffer("in", p.kind, ir.Read), out: b.Buffer("out", p.to, ir.Write)}
	n := b.Param("n", ir.U32)
	e.extent = b.Param("extent", ir.U32)
	k := b.Param("depth", ir.U32)
	e.pitch = b.Param("pitch", ir.U32)
	panels, blocks, stride, offset := b.Param("panels", ir.U32), b.Param("blocks", ir.U32), b.Param("stride", ir.U32), b.Param("offset", ir.U32)
	join, depth := b.Param("join", ir.U32), b.Param("panel_depth", ir.U32)
	id := b.LinearID()
	b.If(b.Lt(id, n), func() {
		row, block := b.Div(id, blocks), b.Rem(id, blocks)
		z, panel := b.Div(row, panels), b.Rem(row, panels)
		e.base = b.Add(offset, b.Mul(z, stride))
		e.first = b.Mul(panel, b.U32(uint32(p.width)))
		whole := b.Div(z, join)
		steps := b.Add(b.Mul(b.Add(b.Mul(whole, panels), panel), depth), b.Mul(b.Sub(z, b.Mul(whole, join)), k))
		e.begin = b.Mul(steps, b.U32(uint32(p.width)))
		from := b.Mul(block, b.U32(packDepth))
		until := b.Min(b.Add(from, b.U32(packDepth)), k)
		inside := b.Le(b.Add(e.first, b.U32(uint32(p.width))), e.extent)
		if p.alongK {
			inside = b.And(inside, b.Le(b.Add(from, b.U32(packDepth)), k))
		}
		b.If(inside, func() {
			if p.alongK {
				e.turn(from)
			} else {
				b.For(from, until, b.U32(1), e.copyStep)
			}
		}, func() { e.edge(from, until) })
	}, nil)
	return b.Build()
}

// store writes a vector of a panel.
func (e *packEmitter) store(at, v ir.Value) {
	e.b.Store(e.out, at, e.b.Convert(v, e.to))
}

// load reads lanes neighbours in the stored direction.
func (e *packEmitter) load(at ir.Value, lanes int) ir.Value {
	how := accessVector
	if !e.aligned() {
		how = accessGather
	}
	return load(e.b, e.in, Operand{Kind: e.kind}, at, lanes, how, nil)
}

// copyStep copies a whole step that is stored along the extent.
func (e *packEmitter) copyStep(k ir.Value) {
	b := e.b
	from := b.Add(b.Add(e.base, b.Mul(k, e.pitch)), e.first)
	to := b.Add(e.begin, b.Mul(k, b.U32(uint32(e.width))))
	for i := 0; i < e.width; i += e.lanes {
		e.store(advance(b, to, i, nil), e.load(advance(b, from, i, nil), e.lanes))
	}
}

// turn copies packDepth steps that are stored along K, as many rows at a time as a vector has lanes.
func (e *packEmitter) turn(k ir.Value) {
	b := e.b
	for i := 0; i < e.width; i += e.lanes {
		rows := make([]ir.Value, e.lanes)
		for r := range rows {
			rows[r] = e.load(b.Add(b.Add(e.base, b.Mul(advance(b, e.first, i+r, nil), e.pitch)), k), packDepth)
		}
		turned := transpose(b, rows)
		to := b.Add(e.begin, b.Mul(k, b.U32(uint32(e.width))))
		if e.lanes == e.width {
			for j, v := range turned {
				e.store(advance(b, to, j*packDepth, nil), v)
			}
			continue
		}
		for d, v := range turned { // lanes is packDepth
			e.store(advance(b, to, d*e.width+i, nil), v)
		}
	}
}

// transpose takes n vectors, a power of two, and returns their elements in the order lane 0 of each, lane 1 of each and so
// on. Each round interleaves the first half of the vectors with the second, which are shuffles of two vectors.
func transpose(b *ir.Builder, rows []ir.Value) []ir.Value {
	half, lanes := len(rows)/2, rows[0].Type.Lanes
	for n := 1; n < len(rows); n *= 2 {
		next := make([]ir.Value, 0, len(rows))
		for i := range half {
			x, y := rows[i], rows[i+half]
			for _, from := range []int{0, lanes / 2} {
				parts := make([]ir.Value, 0, lanes)
				for l := from; l < from+lanes/2; l++ {
					parts = append(parts, b.Extract(x, l), b.Extract(y, l))
				}
				next = append(next, b.Vec(parts...))
			}
		}
		rows = next
	}
	return rows
}

// edge copies the steps from k to end element by element, with positions kept within the extent.
func (e *packEmitter) edge(k, end ir.Value) {
	b := e.b
	last := b.Sub(e.extent, b.U32(1))
	b.For(k, end, b.U32(1), func(k ir.Value) {
		to := b.Add(e.begin, b.Mul(k, b.U32(uint32(e.width))))
		b.Range(b.U32(uint32(e.width)), func(i ir.Value) {
			x := b.Min(b.Add(e.first, i), last)
			at := b.Add(x, b.Mul(k, e.pitch))
			if e.alongK {
				at = b.Add(k, b.Mul(x, e.pitch))
			}
			e.store(b.Add(to, i), load(b, e.in, Operand{Kind: e.kind}, b.Add(e.base, at), 1, accessVector, nil))
		})
	})
}
