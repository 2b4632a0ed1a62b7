package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// panelProduct multiplies operands of which one or both were packed to panels. One side of the output lies across the
// lanes of vectors (its panels have vectors*width positions), the elements of the other side are broadcast (rows
// positions). Which operand is which is the plan's choice. Buffers: A or its panels, B or its panels, the table if any, bias if
// any, out.
type panelProduct struct {
	s MatMul
	p panelPlan
	// table: the broadcast operand's element at position x and depth k is at table[x] + table[extent+k], see offsetTable.
	table   bool
	rowBias bool // the bias has an element for each row of the output
	first   int  // number of matrices in the output before the first
}

func (g *panelProduct) Key() string {
	s, p := &g.s, g.p
	bias := "none"
	if s.Bias != ir.Void {
		bias = s.Bias.String()
	}
	a, b := s.A.String(), s.B.String()
	if p.packed(true) {
		a = "panels " + s.panelKind(p, true).String()
	}
	if p.packed(false) {
		b = "panels " + s.panelKind(p, false).String()
	}
	return fmt.Sprintf("panel_product|%s %s>%s %s|bias %s|%+v|t%d%d|n %d|precise %v|table %v|row bias %v|epilogue %q|ops %q", a, b, s.AccKind(), s.Out, bias, p, b2i(s.TransA), b2i(s.TransB),
		min(pow2Factor(s.N), g.storeLanes()), s.precise(), g.table, g.rowBias, s.EpilogueKey, s.Ops)
}

func (g *panelProduct) Cost() float64 { return g.s.Cost() }

// sides returns the sizes of the sides across the lanes and of the broadcast.
func (g *panelProduct) sides() (across, broadcast int) {
	if g.p.swap {
		return g.s.M, g.s.N
	}
	return g.s.N, g.s.M
}

// storeLanes is how many neighbours of a row of the output one store writes.
func (g *panelProduct) storeLanes() int {
	if g.p.swap {
		return min(g.p.rows, g.p.width)
	}
	return g.p.width
}

func (g *panelProduct) Launch(t Target) (groups [3]int, params []uint32, err error) {
	s, p := &g.s, g.p
	across, broadcast := g.sides()
	panels, tiles := ceilDiv(across, p.across()), ceilDiv(broadcast, p.rows)
	blocks := ceilDiv(tiles, p.lanes)
	strideA, strideB := s.strideA(), s.strideB()
	pitchA, pitchB := s.K, s.N
	if s.TransA {
		pitchA = s.M
	}
	if s.TransB {
		pitchB = s.K
	}
	offsetA, offsetB := s.OffsetA, s.OffsetB
	panel := func(packed, isA bool, stride, offset, pitch *int) {
		if !packed {
			return
		}
		width, n := p.rows, tiles
		if isA == p.swap {
			width, n = p.across(), panels
		}
		*offset, *pitch = 0, panelDepth(s.K)*width
		if *stride > 0 {
			*stride = n * *pitch
		}
	}
	panel(p.packed(true), true, &strideA, &offsetA, &pitchA)
	panel(p.packed(false), false, &strideB, &offsetB, &pitchB)
	for _, v := range []int{s.M, s.N, s.K, s.Batch, offsetA, offsetB, strideA, strideB, pitchA, pitchB, panels, blocks, g.first} {
		params = append(params, uint32(v))
	}
	groups, err = t.fold("matmul", uint64(panels)*uint64(blocks)*uint64(s.Batch))
	return groups, params, err
}

// panelSide is an operand of the product in the kernel.
type panelSide struct {
	b      *ir.Builder
	mem    *ir.Mem
	acc    ir.Kind
	packed bool
	alongK bool // of an operand that is not packed
	align  int
	width  int      // positions in a panel
	base   ir.Value // of the matrix
	pitch  ir.Value // of the stored rows, or of panels
	extent ir.Value
	at     []ir.Value // address at K = 0: of the panel, of each row if stored along K, of each vector if along the extent
	step   ir.Value   // between steps along K
	table  *ir.Mem    // of the addresses, or nil
}

func (o *panelSide) load(at ir.Value, lanes int) ir.Value {
	v := o.b.Load(o.mem, at, lanes)
	return o.b.Convert(fromMemory(o.b, v, Operand{Kind: o.mem.Kind}), o.acc)
}

// begin works out the addresses of panel i, in groups of lanes.
func (o *panelSide) begin(i ir.Value, lanes int) {
	b := o.b
	switch {
	case o.packed:
		o.at = []ir.Value{b.Add(o.base, b.Mul(i, o.pitch))}
		o.step = b.U32(uint32(o.width))
		return
	case o.table != nil:
		lanes = 1
	case o.alongK:
		o.step, lanes = b.U32(1), 1
	default:
		o.step = o.pitch
	}
	first := b.Mul(i, b.U32(uint32(o.width)))
	last := b.Sub(o.extent, b.U32(uint32(lanes)))
	for j := 0; j < o.width; j += lanes {
		x := b.Min(advance(b, first, j, nil), last) // what lies past the extent is computed but not stored
		switch {
		case o.table != nil:
			x = b.Load(o.table, x, 1)
		case o.alongK:
			x = b.Mul(x, o.pitch)
		}
		o.at = append(o.at, b.Add(o.base, x))
	}
}

// scalars loads the panel's elements at depth k one by one.
func (o *panelSide) scalars(k ir.Value) []ir.Value {
	b := o.b
	var at ir.Value
	if o.table != nil {
		at = b.Load(o.table, b.Add(o.extent, k), 1)
	} else {
		at = b.Mul(k, o.step)
	}
	out := make([]ir.Value, o.width)
	for i := range out {
		if o.packed {
			out[i] = o.load(advance(b, b.Add(o.at[0], at), i, nil), 1)
		} else {
			out[i] = o.load(b.Add(o.at[i], at), 1)
		}
	}
	return out
}

// vectors loads the panel's elements at depth k.
func (o *panelSide) vectors(k ir.Value, lanes int) []ir.Value {
	b := o.b
	at := b.Mul(k, o.step)
	out := make([]ir.Value, o.width/lanes)
	for i := range out {
		if o.packed {
			out[i] = o.load(advance(b, b.Add(o.at[0], at), i*lanes, nil), lanes)
		} else {
			out[i] = o.load(b.Add(o.at[i], at), lanes)
		}
	}
	return out
}

func (g *panelProduct) Build(t Target) (*ir.Kernel, error) {
	s, p := &g.s, g.p
	buffers := 3
	if s.Bias != ir.Void {
		buffers++
	}
	if g.table {
		buffers++
	}
	if err := t.checkBuffers("matmul", buffers); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("matmul_panels_%dx%d", p.rows, p.across())
	b := ir.NewBuilder(name, p.lanes, 1, 1)
	ops := s.Ops
	if len(ops) == 0 {
		ops = []string{"matmul"}
	}
	b.SetOps(ops...)
	acc := s.AccKind()
	e := &matMulEmitter{s: s, b: b, acc: acc, t: matMulTile{precise: s.precise()}}
	kindA, kindB := s.A, s.B
	if p.packed(true) {
		kindA = s.panelKind(p, true)
	}
	if p.packed(false) {
		kindB = s.panelKind(p, false)
	}
	memA, memB := b.Buffer("a", kindA, ir.Read), b.Buffer("b", kindB, ir.Read)
	var table *ir.Mem
	if g.table {
		table = b.Buffer("table", ir.U32, ir.Read)
	}
	if s.Bias != ir.Void {
		e.bias = b.Buffer("bias", s.Bias, ir.Read)
	}
	e.out = b.Buffer("out", s.Out, ir.Write)
	param := func(name string) ir.Value { return b.Param(name, ir.U32) }
	e.m, e.n, e.k = param("M"), param("N"), param("K")
	batches := param("batch")
	offsetA, offsetB, strideA, strideB := param("offset_a"), param("offset_b"), param("stride_a"), param("stride_b")
	pitchA, pitchB, panels, blocks, first := param("pitch_a"), param("pitch_b"), param("panels"), param("blocks"), param("first")

	group := b.Named(b.LinearGroup(), "group")
	b.If(b.Lt(group, b.Mul(b.Mul(panels, blocks), batches)), func() {
		// Panels first: a block of broadcast tiles stays in the cache while the panels pass by.
		panel, rest := b.Rem(group, panels), b.Div(group, panels)
		block := b.Rem(rest, blocks)
		e.batch = b.Div(rest, blocks)
		a := &panelSide{b: b, mem: memA, acc: acc, packed: p.packed(true), alongK: !s.TransA, extent: e.m, pitch: pitchA, base: b.Add(offsetA, b.Mul(e.batch, strideA))}
		bb := &panelSide{b: b, mem: memB, acc: acc, packed: p.packed(false), alongK: s.TransB, extent: e.n, pitch: pitchB, base: b.Add(offsetB, b.Mul(e.batch, strideB))}
		across, broadcast := bb, a
		if p.swap {
			across, broadcast = a, bb
		}
		across.width, broadcast.width = p.across(), p.rows
		broadcast.table = table
		tile := b.Add(b.Mul(block, b.U32(uint32(p.lanes))), b.LocalID(0))
		b.If(b.Lt(b.Mul(tile, b.U32(uint32(p.rows))), broadcast.extent), func() {
			across.begin(panel, p.width)
			broadcast.begin(tile, 1)
			e.newSums(p.rows*p.vectors, ir.Vec(acc, p.width))
			// One step in the body: of more, compilers load all elements first and run out of registers.
			b.Range(e.k, func(k ir.Value) {
				x, y := broadcast.scalars(k), across.vectors(k, p.width)
				e.update(func(sums *partialSums) {
					for i, xi := range x {
						xi = b.Splat(xi, p.width)
						for j, yj := range y {
							sums.add(i*p.vectors+j, xi, yj)
						}
					}
				})
			})
			column := b.Mul(panel, b.U32(uint32(p.across())))
			if g.rowBias {
				g.addRowBias(e, column)
			}
			e.slot = b.Add(e.batch, first)
			g.store(e, b.Mul(tile, b.U32(uint32(p.rows))), column)
		}, nil)
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("matmul of %s and %s: %w", s.A, s.B, err)
	}
	return k, nil
}

// addRowBias adds the bias of the rows that lie across the lanes, from the given one on.
func (g *panelProduct) addRowBias(e *matMulEmitter, first ir.Value) {
	b, last := e.b, e.b.Sub(e.m, e.b.U32(1))
	for j := range g.p.vectors {
		parts := make([]ir.Value, g.p.width)
		for l := range parts {
			parts[l] = load(b, e.bias, Operand{Kind: e.s.Bias}, b.Min(advance(b, first, j*g.p.width+l, nil), last), 1, accessVector, nil)
		}
		bias := b.Convert(b.Vec(parts...), e.acc)
		for i := range g.p.rows {
			v := e.sums[i*g.p.vectors+j]
			b.Set(v, b.Add(b.Get(v), bias))
		}
	}
	e.bias = nil // storeGroup adds those of columns
}

// storeTurned writes a tile whose lanes are rows of the output: it is turned in registers.
func (g *panelProduct) storeTurned(e *matMulEmitter, base, row, column ir.Value) {
	b, p, n := e.b, g.p, g.p.rows
	for j := range p.vectors {
		rows := make([]ir.Value, n)
		for i := range rows {
			rows[i] = b.Get(e.sums[i*p.vectors+j])
		}
		turned := transpose(b, rows)
		for l := range p.width {
			r := advance(b, row, j*p.width+l, nil)
			b.If(b.Lt(r, e.m), func() {
				parts := make([]ir.Value, n)
				for i := range parts {
					at := l*n + i
					parts[i] = b.Extract(turned[at/p.width], at%p.width)
				}
				e.storeGroup(b.Vec(parts...), b.Add(base, b.Mul(r, e.n)), column)
			}, nil)
		}
	}
}

// store writes the tile whose broadcast side begins at position row and whose other side begins at column.
func (g *panelProduct) store(e *matMulEmitter, row, column ir.Value) {
	b, p := e.b, g.p
	base := b.Mul(e.slot, b.Mul(e.m, e.n))
	lanes := g.storeLanes()
	if !p.swap && pow2Factor(e.s.N) >= lanes && (e.s.Epilogue == nil || len(e.sums) <= maxUnrolledEpilogues) {
		for i := range p.rows {
			r := advance(b, row, i, nil)
			b.If(b.Lt(r, e.m), func() {
				at := b.Add(base, b.Mul(r, e.n))
				for j := range p.vectors {
					e.storeGroup(b.Get(e.sums[i*p.vectors+j]), at, advance(b, column, j*lanes, nil))
				}
			}, nil)
		}
		return
	}
	if p.swap && e.s.Epilogue == nil {
		g.storeTurned(e, base, column, row)
		return
	}
	// By way of private memory, in loops: rows of the output are turned there, and the code for edges is there once.
	tile := b.PrivateArray("tile", e.acc, p.rows*p.across())
	for i, v := range e.sums {
		b.Store(tile, b.U32(uint32(i*p.width)), b.Get(v))
	}
	pitch := uint32(p.across())
	if p.swap {
		b.Range(b.U32(pitch), func(i ir.Value) {
			r := b.Add(column, i)
			b.If(b.Lt(r, e.m), func() {
				at := b.Add(base, b.Mul(r, e.n))
				for j := 0; j < p.rows; j += lanes {
					parts := make([]ir.Value, lanes)
					for l := range parts {
						parts[l] = b.Load(tile, b.Add(i, b.U32(uint32(j+l)*pitch)), 1)
					}
					e.storeGroup(b.Vec(parts...), at, advance(b, row, j, nil))
				}
			}, nil)
		})
		return
	}
	b.Range(b.U32(uint32(p.rows)), func(i ir.Value) {
		r := b.Add(row, i)
		b.If(b.Lt(r, e.m), func() {
			at := b.Add(base, b.Mul(r, e.n))
			b.For(b.U32(0), b.U32(pitch), b.U32(uint32(lanes)), func(j ir.Value) {
				v := b.Load(tile, b.Add(b.Mul(i, b.U32(pitch)), j), lanes)
				e.storeGroup(v, at, b.Add(column, j))
			})
		}, nil)
	})
}
