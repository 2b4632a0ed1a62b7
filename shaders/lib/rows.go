package lib

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Rows computes over rows: reductions of a row, and elementwise stages before, between and after them, in one kernel. Softmax,
// normalisations, losses and their gradients are of this kind. A row is the last RowDims dimensions of Shape; what a stage of them computes
// has a value for each element, or one for each row.
//
// A row is read again for each stage that waits for a reduction, and elements are computed again rather than stored: a row stays in a
// cache. Reductions add in the order of [Reduce]. Buffers: inputs, outputs.
type Rows struct {
	Name       string
	Ops        []string
	BodyKey    string // identifies Steps and Results
	Shape      []int
	RowDims    int
	In         []Operand // strided in Shape; nil strides: contiguous
	Steps      []RowStep
	Results    []RowResult
	Scalars    []ir.Kind // of all steps, in order
	ScalarBits []uint32
}

// RowStep is a stage: an elementwise computation, or a reduction of rows.
type RowStep struct {
	Elementwise *Elementwise // its Body, Scalars, Out and Index count
	Reduce      *Reduce      // its Inner is 1; Op, In, Prologue, Epilogue, Scalars and Out count
	Row         bool         // an elementwise stage of what there is one of in a row
	Wires       []int        // its operands: i >= 0 is input i, ^v is value v, counted over the steps' results in order
}

// RowResult is an output: a value, contiguous.
type RowResult struct {
	Value int
	Out   Operand
}

// RowsFit reports whether a reduction can be a stage: it adds a whole row in one kernel. Its width is part of the order of its sums, so that
// the stages of a kernel have one width.
func (r *Reduce) RowsFit(t Target) (width int, ok bool) {
	if r.Inner != 1 || r.N < 2 || r.Outer < 1 || r.split > 1 || r.pairs != (pairing{}) || r.check(t) != nil {
		return 0, false
	}
	if _, _, split := r.Split(t); split {
		return 0, false
	}
	s := r.plan().shape(r, t)
	return s.width, true
}

// rowsPlan is what kernel and launch agree on.
type rowsPlan struct {
	shape    reduceShape
	sums     int // partial results of each reduction (see loopAll)
	n        int // elements of a row
	dims     []int
	places   []rowPlace // inputs, outputs, then the index
	geometry []geom
	params   int
}

// rowPlace is where an operand's rows are.
type rowPlace struct {
	lead   []int // strides along dims
	inner  int   // 0, 1 or another stride
	offset int
	row    bool // there is one element a row
}

func (r *Rows) what() string { return "rows kernel " + kernelName(r.Name, "rows") }

// levels returns which values there is one of in a row.
func (r *Rows) levels() (row []bool) {
	for _, s := range r.Steps {
		if s.Reduce != nil {
			row = append(row, true)
			continue
		}
		for range s.Elementwise.Out {
			row = append(row, s.Row)
		}
	}
	return row
}

// layOut works out what does not depend on the target.
func (r *Rows) layOut() (*rowsPlan, error) {
	fail := func(format string, args ...any) (*rowsPlan, error) {
		return nil, fmt.Errorf("%s: %w", r.what(), fmt.Errorf(format, args...))
	}
	cut := len(r.Shape) - r.RowDims
	if r.RowDims < 1 || cut < 0 || len(r.Results) == 0 {
		return fail("%d dimensions of shape %v are a row, of %d results", r.RowDims, r.Shape, len(r.Results))
	}
	if err := checkScalars(r.Scalars, r.ScalarBits); err != nil {
		return fail("%w", err)
	}
	p := &rowsPlan{n: 1}
	for _, d := range r.Shape[cut:] {
		p.n *= d
	}
	var strides [][]int
	var offsets []int
	add := func(o Operand) error {
		s := o.Strides
		if s == nil {
			s = rowMajor(r.Shape)
		}
		if len(s) != len(r.Shape) {
			return fmt.Errorf("an operand has %d strides for shape %v", len(s), r.Shape)
		}
		strides, offsets = append(strides, s), append(offsets, o.Offset)
		return checkOperand(o)
	}
	for _, o := range r.In {
		if err := add(o); err != nil {
			return fail("%w", err)
		}
	}
	levels := r.levels()
	perRow := append(rowMajor(r.Shape[:cut]), make([]int, r.RowDims)...)
	for _, res := range r.Results {
		if res.Value < 0 || res.Value >= len(levels) {
			return fail("there is no value %d", res.Value)
		}
		o := Operand{Kind: res.Out.Kind, Bool: res.Out.Bool}
		if levels[res.Value] {
			o.Strides = perRow
		}
		if err := add(o); err != nil {
			return fail("%w", err)
		}
	}
	strides, offsets = append(strides, rowMajor(r.Shape)), append(offsets, 0)
	lead, tail := make([][]int, len(strides)), make([][]int, len(strides))
	for i, s := range strides {
		lead[i], tail[i] = s[:cut], s[cut:]
	}
	last := len(strides) - 1
	outer, err := newLayout(r.Shape[:cut], lead, last)
	if err != nil {
		return fail("%w", err)
	}
	inner, err := newLayout(r.Shape[cut:], tail, last)
	if err != nil {
		return fail("%w", err)
	}
	if len(inner.dims) != 1 || outer.size == 0 || inner.size < 2 {
		return fail("rows of shape %v are not regular in memory", r.Shape)
	}
	p.dims = outer.dims
	for i := range strides {
		at := rowPlace{lead: outer.strides[i], inner: inner.strides[i][0], offset: offsets[i]}
		if outer.size == 1 {
			at.lead = []int{0}
		}
		at.row = i >= len(r.In) && i < last && levels[r.Results[i-len(r.In)].Value]
		p.places = append(p.places, at)
	}
	p.listGeometry(r)
	return p, nil
}

func (r *Rows) plan(t Target) (*rowsPlan, error) {
	p, err := r.layOut()
	if err != nil {
		return nil, err
	}
	if err := t.checkBuffers(r.what(), len(r.In)+len(r.Results)); err != nil {
		return nil, err
	}
	width := 0
	for _, s := range r.Steps {
		if s.Reduce == nil {
			continue
		}
		if s.Reduce.N != p.n {
			return nil, fmt.Errorf("%s: a reduction of rows of %d elements, where they have %d", r.what(), s.Reduce.N, p.n)
		}
		w, ok := s.Reduce.RowsFit(t)
		if !ok || width != 0 && w != width {
			return nil, fmt.Errorf("%s: reductions of different widths", r.what())
		}
		width = w
		p.shape = s.Reduce.plan().shape(s.Reduce, t)
		p.sums = t.rowSums(p.n, width)
	}
	if width == 0 {
		return nil, fmt.Errorf("%s: there is no reduction", r.what())
	}
	return p, nil
}

func (p *rowsPlan) listGeometry(r *Rows) {
	add := func(name string, v int) { p.geometry = append(p.geometry, geom{name, uint32(v)}) }
	rows := 1
	for _, d := range p.dims {
		rows *= d
	}
	add("n", p.n)
	add("rows", rows)
	for d := 1; d < len(p.dims); d++ {
		add(fmt.Sprintf("d%d", d), p.dims[d])
	}
	for i, g := range p.places {
		if g.offset != 0 {
			add(fmt.Sprintf("g%d_offset", i), g.offset)
		}
		for d, s := range g.lead {
			if s != 0 && !(len(p.dims) == 1 && (s == 1 || s == p.n)) {
				add(fmt.Sprintf("g%d_stride%d", i, d), s)
			}
		}
		if g.inner > 1 || g.inner < 0 {
			add(fmt.Sprintf("g%d_inner", i), g.inner)
		}
	}
	p.params = max(0, min(len(p.geometry), ir.MaxParams-len(r.Scalars)))
}

// aligned reports whether vectors of the operand's rows start at multiples of their width.
func (p *rowsPlan) aligned(g rowPlace) bool {
	w := p.shape.width
	if pow2Factor(g.offset) < w {
		return false
	}
	for _, s := range g.lead {
		if pow2Factor(s) < w {
			return false
		}
	}
	return true
}

// Key identifies the kernel.
func (r *Rows) Key() string {
	p, err := r.layOut()
	if err != nil {
		return "rows|invalid|" + err.Error()
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "rows|%s|%s|", r.BodyKey, kindsKey(r.Scalars))
	for _, o := range r.In {
		sb.WriteString(operandKey(o) + " ")
	}
	for _, o := range r.Results {
		sb.WriteString(">" + operandKey(o.Out) + " ")
	}
	fmt.Fprintf(&sb, "|n%d,%d|%v|", min(ceilPow2(p.n), 8192), rowFactor(p.n), len(p.dims))
	for _, g := range p.places {
		fmt.Fprintf(&sb, "%t", g.row)
		for _, s := range g.lead {
			switch {
			case s == 0:
				sb.WriteByte('0')
			case len(p.dims) == 1 && s == 1:
				sb.WriteByte('1')
			case len(p.dims) == 1 && s == p.n:
				sb.WriteByte('n')
			default:
				sb.WriteByte('s')
			}
		}
		switch g.inner {
		case 0, 1:
			fmt.Fprintf(&sb, "/%d", g.inner)
		default:
			sb.WriteString("/s")
		}
		if g.offset != 0 {
			sb.WriteByte('+')
		}
		align := pow2Factor(g.offset)
		for _, s := range g.lead {
			align = min(align, pow2Factor(s))
		}
		fmt.Fprintf(&sb, "a%d ", align)
	}
	for _, g := range p.geometry[p.params:] {
		fmt.Fprintf(&sb, "|%s=%d", g.name, g.value)
	}
	return sb.String()
}

// Build makes the kernel.
func (r *Rows) Build(t Target) (*ir.Kernel, error) {
	p, err := r.plan(t)
	if err != nil {
		return nil, err
	}
	k, err := newRowsEmitter(r, p, t).build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.what(), err)
	}
	return k, nil
}

// Launch returns the grid and the parameters: geometry, then ScalarBits.
func (r *Rows) Launch(t Target) (groups [3]int, params []uint32, err error) {
	p, err := r.plan(t)
	if err != nil {
		return groups, nil, err
	}
	stages := 1
	for _, s := range r.Steps {
		if s.Reduce != nil {
			stages++
		}
	}
	trips := ceilDiv(p.n, p.shape.width*p.shape.lanes)
	trips += ceilDiv(trips, sumBlock) + p.shape.width
	if most := t.Caps.MaxLoopTrips; most > 0 && trips*stages > most {
		return groups, nil, fmt.Errorf("%s: rows of %d elements need more iterations of loops than the %d that the device runs", r.what(), p.n, most)
	}
	if n := float64(p.geometry[1].value) * float64(p.n); n > maxReduceElements {
		return groups, nil, fmt.Errorf("%s: shape %v has %.0f elements, more than kernels index", r.what(), r.Shape, n)
	}
	for _, g := range p.geometry[:p.params] {
		params = append(params, g.value)
	}
	perGroup := uint64(p.shape.local / p.shape.lanes)
	groups, err = t.fold(r.what(), (uint64(p.geometry[1].value)+perGroup-1)/perGroup)
	return groups, append(params, r.ScalarBits...), err
}

// Cost returns the bytes that the kernel moves, or its elements times its stages if that is more.
func (r *Rows) Cost() float64 {
	elements := 1.0
	for _, d := range r.Shape {
		elements *= float64(d)
	}
	bytes := 0.0
	levels := r.levels()
	for _, o := range r.In {
		if o.Strides == nil || !slices.Contains(o.Strides, 0) {
			bytes += elements * float64(o.Kind.Size())
		}
	}
	for _, o := range r.Results {
		if !levels[o.Value] {
			bytes += elements * float64(o.Out.Kind.Size())
		}
	}
	return max(bytes, elements*float64(len(r.Steps)))
}

// Rows returns a softmax over the last dimension as stages of a rows kernel: the operand is input 0, the result the last value.
func (s *Softmax) Rows() (steps []RowStep, ok bool) {
	kind := Operand{Kind: s.In}.ValueKind()
	if s.Inner != 1 || s.N < 2 || kind != ir.F32 && kind != ir.F64 {
		return nil, false
	}
	of := func(op ReduceOp, in ir.Kind) *Reduce {
		return &Reduce{Name: op.String(), Ops: []string{s.name()}, Op: op, Outer: s.Outer, N: s.N, Inner: 1, In: []Operand{{Kind: in}}, Out: Operand{Kind: kind}}
	}
	stage := func(key string, out ir.Kind, in int, body func(b *ir.Builder, x []ir.Value) ir.Value) *Elementwise {
		return &Elementwise{Name: key, Ops: []string{s.name()}, BodyKey: fmt.Sprintf("%s %s|%s", s.name(), key, kind), In: slices.Repeat([]Operand{{Kind: kind}}, in), Out: []Operand{{Kind: out}},
			Body: func(b *ir.Builder, x, _ []ir.Value) []ir.Value { return []ir.Value{body(b, x)} }}
	}
	largest := of(ReduceMax, s.In)
	largest.BodyKey, largest.anyNaN = "any nan", true // a NaN that it misses is in the sum
	steps = []RowStep{
		{Reduce: largest, Wires: []int{0}},
		{Elementwise: stage("exp", kind, 2, func(b *ir.Builder, x []ir.Value) ir.Value { return b.Exp(b.Sub(x[0], x[1])) }), Wires: []int{0, ^0}},
		{Reduce: of(ReduceSum, kind), Wires: []int{^1}},
		{Elementwise: stage("scale", kind, 2, func(b *ir.Builder, x []ir.Value) ir.Value {
			v := b.Div(b.ConstLike(x[1], 1), x[1])
			if s.Log {
				v = b.Log(x[1])
			}
			// A row whose maximum is not finite has no softmax.
			return b.Select(b.IsFinite(x[0]), v, b.ConstLike(v, math.NaN()))
		}), Row: true, Wires: []int{^0, ^2}},
	}
	if s.Log {
		return append(steps, RowStep{Elementwise: stage("log", s.Out, 3, func(b *ir.Builder, x []ir.Value) ir.Value { return b.Sub(b.Sub(x[0], x[1]), x[2]) }), Wires: []int{0, ^0, ^3}}), true
	}
	return append(steps, RowStep{Elementwise: stage("product", s.Out, 2, func(b *ir.Builder, x []ir.Value) ir.Value { return b.Mul(x[0], x[1]) }), Wires: []int{^1, ^3}}), true
}
