package lib

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Key identifies the kernel: the kinds and classes of N and Inner. The sizes themselves are launch parameters.
func (s *Softmax) Key() string {
	p := s.plan()
	key := fmt.Sprintf("softmax|%v|%s,%s|n%d,%d", s.Log, s.In, s.Out, p.lengthClass, rowFactor(s.N))
	if s.Inner == 1 {
		return fmt.Sprintf("%s|rows,%d", key, p.align)
	}
	return fmt.Sprintf("%s|columns,%d,%d", key, p.align, p.innerClass)
}

// Build makes the kernel.
func (s *Softmax) Build(t Target) (*ir.Kernel, error) {
	if err := s.check(t); err != nil {
		return nil, err
	}
	k, err := (&softmaxEmitter{Softmax: s, p: s.plan(), t: t}).build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(), err)
	}
	return k, nil
}

// Launch returns the grid and the parameters.
func (s *Softmax) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := s.check(t); err != nil {
		return groups, nil, err
	}
	params = []uint32{uint32(s.Outer), uint32(s.N)}
	if s.Inner != 1 {
		params = append(params, uint32(s.Inner))
	}
	if s.Outer*s.N*s.Inner == 0 {
		return [3]int{0, 1, 1}, params, nil
	}
	p := s.plan()
	h := p.shape(s, t)
	if n, most := h.trips(s, p), t.Caps.MaxLoopTrips; most > 0 && n > most {
		return groups, nil, fmt.Errorf("%s: %d elements need %d iterations of loops and the device runs at most %d; use another device for it",
			s.name(), s.N, n, most)
	}
	perGroup := uint64(h.local / h.lanes)
	n := uint64(s.Outer) * uint64(ceilDiv(s.Inner, h.width))
	if s.Inner == 1 {
		n = uint64(s.Outer)
	}
	groups, err = t.fold(s.name(), (n+perGroup-1)/perGroup)
	return groups, params, err
}

// Cost returns an estimate of the floating-point operations: an exponential is about 20.
func (s *Softmax) Cost() float64 {
	return 24 * float64(s.Outer) * float64(s.N) * float64(s.Inner)
}

func (s *Softmax) name() string {
	if s.Log {
		return "log_softmax"
	}
	return "softmax"
}

func (s *Softmax) check(t Target) error {
	for _, k := range []ir.Kind{s.In, s.Out} {
		if !k.IsFloat() {
			return fmt.Errorf("%s: input and output must be floats, got %s and %s", s.name(), s.In, s.Out)
		}
	}
	if (s.In == ir.F64) != (s.Out == ir.F64) {
		return fmt.Errorf("%s: input %s and output %s: f64 is computed in f64 and must be both", s.name(), s.In, s.Out)
	}
	if s.Outer < 0 || s.N < 0 || s.Inner < 0 {
		return fmt.Errorf("%s: shape [%d %d %d] has a negative dimension", s.name(), s.Outer, s.N, s.Inner)
	}
	if n := float64(s.Outer) * float64(s.N) * float64(s.Inner); n > maxReduceElements {
		return fmt.Errorf("%s: shape [%d %d %d] has %.0f elements; kernels index with 32 bits, so at most %d: split the tensor",
			s.name(), s.Outer, s.N, s.Inner, n, maxReduceElements)
	}
	return t.checkBuffers(s.name(), 2)
}

// softmaxPlan has the classes that the kernel depends on (see reducePlan).
type softmaxPlan struct{ align, lengthClass, innerClass int }

func (s *Softmax) plan() softmaxPlan {
	p := softmaxPlan{align: pow2Factor(s.Inner), lengthClass: min(ceilPow2(s.N), 8192), innerClass: min(floorPow2(s.Inner), 1024)}
	if s.Inner == 1 {
		p.align = ir.MaxLanes
		if s.Outer > 1 {
			p.align = pow2Factor(s.N)
		}
	}
	return p
}

// softmaxShape is a reduceShape with the number of accesses that a lane keeps in registers (0: it reads the row again).
type softmaxShape struct {
	reduceShape
	keep int
}

func (p softmaxPlan) shape(s *Softmax, t Target) softmaxShape {
	c := t.config()
	h := softmaxShape{reduceShape: reduceShape{local: c.row, width: c.width, lanes: 1}}
	if s.Inner == 1 {
		h.width = c.rowWide
	}
	if s.In.Size() == 8 {
		h.width = min(h.width, 8)
	}
	switch {
	case s.Inner == 1 && t.sharesRows(p.lengthClass):
		per := 16 // elements a lane has of a row
		if h.width = min(h.width, p.align, pow2Factor(s.N)); h.width < c.width {
			h.width, per = 1, 8
		}
		h.lanes = max(1, min(p.lengthClass/per, h.local))
		if n := ceilDiv(p.lengthClass, h.lanes*h.width); n <= per/h.width {
			h.keep = n
		}
	case s.Inner == 1:
		h.width = t.rowWidth(h.width, p.lengthClass, min(p.align, pow2Factor(s.N)))
	case c.tree:
		h.width = 1
	default:
		h.local = c.columns
		h.width = min(h.width, p.innerClass)
		if t.class() == blockCPU {
			h.width = p.align
		}
	}
	return h
}

// trips bounds the iterations of all loops that one invocation runs.
func (h softmaxShape) trips(s *Softmax, p softmaxPlan) int {
	if h.keep > 0 {
		return 0
	}
	n := ceilDiv(s.N, h.width*h.lanes)
	n = 3*n + ceilDiv(n, sumBlock)
	if s.Inner > 1 && p.align < h.width {
		return n * h.width
	}
	return n + 3*h.width
}

// softmaxEmitter builds the kernel: the maximum, the sum of exp(x-max), and the output.
type softmaxEmitter struct {
	*Softmax
	p       softmaxPlan
	t       Target
	h       softmaxShape
	b       *ir.Builder
	kind    ir.Kind
	in, out *ir.Mem
	rows, n ir.Value
	inner   ir.Value // nil if Inner is 1
	max     reducer
	sum     reducer
	// staged: the exponentials are kept in the output until their sum is known, which saves computing them twice.
	staged bool
}

func (m *softmaxEmitter) build() (*ir.Kernel, error) {
	m.h = m.p.shape(m.Softmax, m.t)
	m.b = ir.NewBuilder(m.name(), m.h.local, 1, 1)
	b := m.b
	b.SetOps(m.name())
	m.kind = Operand{Kind: m.In}.ValueKind()
	m.staged = !m.Log && m.Softmax.Out == m.kind && m.h.lanes == 1 && m.h.keep == 0
	m.in = b.Buffer("in", m.In, ir.Read)
	m.out = b.Buffer("out", m.Softmax.Out, ir.Write)
	if m.staged {
		m.out.Access = ir.ReadWrite
	}
	m.rows, m.n = b.Param("rows", ir.U32), b.Param("n", ir.U32)
	if m.Inner != 1 {
		m.inner = b.Param("inner", ir.U32)
	}
	// A NaN that the maximum misses is in the sum.
	m.max, m.sum = reducer{b: b, op: ReduceMax, kind: m.kind, anyNaN: m.t.missesNaN()}, reducer{b: b, op: ReduceSum, kind: m.kind}
	switch {
	case m.Inner != 1:
		m.columns()
	case m.h.lanes > 1 || m.h.keep > 0:
		m.rowPerLanes()
	default:
		m.rowPerInvocation()
	}
	return b.Build()
}

func (m *softmaxEmitter) load(at ir.Value, lanes int, how access) ir.Value {
	return load(m.b, m.in, Operand{Kind: m.In}, at, lanes, how, nil)
}

func (m *softmaxEmitter) store(at, v ir.Value, lanes int, how access) {
	store(m.b, m.out, Operand{Kind: m.Softmax.Out}, at, v, lanes, how, nil)
}

// scale returns what the last pass needs of a row: 1/sum, or log(sum). A row whose maximum is not finite has no softmax: NaN.
func (m *softmaxEmitter) scale(largest, sum ir.Value) ir.Value {
	b := m.b
	v := b.Div(b.ConstLike(sum, 1), sum)
	if m.Log {
		v = b.Log(sum)
	}
	return b.Select(b.IsFinite(largest), v, b.ConstLike(v, math.NaN()))
}

// result computes the output from x, or with staged from exp(x-max).
func (m *softmaxEmitter) result(x, largest, scale ir.Value) ir.Value {
	b := m.b
	switch {
	case m.Log:
		return b.Sub(b.Sub(x, largest), scale)
	case m.staged:
		return b.Mul(x, scale)
	}
	return b.Mul(b.Exp(b.Sub(x, largest)), scale)
}

// exp computes exp(x-max) of the elements at at, and leaves it in the output if staged.
func (m *softmaxEmitter) exp(at, largest ir.Value, lanes int, how access) ir.Value {
	e := m.b.Exp(m.b.Sub(m.load(at, lanes, how), largest))
	if m.staged {
		m.store(at, e, lanes, how)
	}
	return e
}

// write does the last pass for the elements at at.
func (m *softmaxEmitter) write(at, largest, scale ir.Value, lanes int, how access) {
	var x ir.Value
	if m.staged {
		x = load(m.b, m.out, Operand{Kind: m.Softmax.Out}, at, lanes, how, nil)
	} else {
		x = m.load(at, lanes, how)
	}
	m.store(at, m.result(x, largest, scale), lanes, how)
}

// rowPerInvocation: an invocation has a row, in vectors and a tail.
func (m *softmaxEmitter) rowPerInvocation() {
	b, width := m.b, m.h.width
	how := accessVector
	if m.p.align < width {
		how = accessGather
	}
	row := b.LinearID()
	b.If(b.Lt(row, m.rows), func() {
		start, full := b.Mul(row, m.n), m.n
		tail := width > 1 && pow2Factor(m.N) < width
		if tail {
			full = b.Mul(b.Div(m.n, b.U32(uint32(width))), b.U32(uint32(width)))
		}
		over := func(r reducer, f func(at ir.Value, lanes int, how access) ir.Value) ir.Value {
			p := r.lanes(r.loopSums(width, b.U32(0), full, uint32(width), m.t.rowSums(m.N, width), func(i ir.Value) partial {
				return partial{value: f(b.Add(start, i), width, how)}
			}))
			if tail {
				v := r.variable(p)
				b.For(full, m.n, b.U32(1), func(i ir.Value) { r.fold(v, partial{value: f(b.Add(start, i), 1, accessVector)}) })
				p = r.get(v)
			}
			return p.value
		}
		largest := b.Named(over(m.max, m.load), "max")
		sum := over(m.sum, func(at ir.Value, lanes int, how access) ir.Value { return m.exp(at, largest, lanes, how) })
		scale := m.scale(largest, sum)
		b.For(b.U32(0), full, b.U32(uint32(width)), func(i ir.Value) { m.write(b.Add(start, i), largest, scale, width, how) })
		if tail {
			b.For(full, m.n, b.U32(1), func(i ir.Value) { m.write(b.Add(start, i), largest, scale, 1, accessVector) })
		}
	}, nil)
}

// columns: an invocation has a vector of neighbouring columns.
func (m *softmaxEmitter) columns() {
	b, width := m.b, m.h.width
	w := b.U32(uint32(width))
	chunks := b.Div(b.Add(m.inner, b.U32(uint32(width-1))), w)
	id := b.LinearID()
	row := b.Div(id, chunks)
	b.If(b.Lt(row, m.rows), func() {
		first := b.Mul(b.Rem(id, chunks), w)
		start := b.Mul(b.Mul(row, m.n), m.inner)
		some := func(col ir.Value, lanes int, how access) {
			base := b.Add(start, col)
			place := func(j ir.Value) ir.Value { return b.Add(base, b.Mul(j, m.inner)) }
			largest := m.max.loop(lanes, b.U32(0), m.n, 1, func(j ir.Value) partial {
				return partial{value: m.load(place(j), lanes, how)}
			}).value
			sum := m.sum.loop(lanes, b.U32(0), m.n, 1, func(j ir.Value) partial {
				return partial{value: m.exp(place(j), largest, lanes, how)}
			}).value
			scale := m.scale(largest, sum)
			b.Range(m.n, func(j ir.Value) { m.write(place(j), largest, scale, lanes, how) })
		}
		if m.p.align >= width {
			some(first, width, accessVector)
			return
		}
		b.If(b.Le(b.Add(first, w), m.inner), func() { some(first, width, accessGather) }, func() {
			b.For(first, m.inner, b.U32(1), func(col ir.Value) { some(col, 1, accessVector) })
		})
	}, nil)
}
