package lib

import (
	"fmt"
	"math"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// maxReduceElements leaves room for a loop counter to step past the last element. Where int has 32 bits it is about half.
const maxReduceElements = (1<<32 - 1<<20) & math.MaxInt

// Key identifies the kernel: body, kinds, and classes of N and Inner. The sizes themselves are launch parameters.
func (r *Reduce) Key() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "reduce|%s|%s", r.Op, r.BodyKey)
	if r.Prologue != nil {
		sb.WriteString("|p")
	}
	if r.Epilogue != nil {
		sb.WriteString("|e")
	}
	if r.pairs != (pairing{}) {
		fmt.Fprintf(&sb, "|pairs %v %s", r.pairs.write, r.pairs.read)
	}
	fmt.Fprintf(&sb, "|%s|", kindsKey(r.Scalars))
	for _, o := range r.In {
		sb.WriteString(operandKey(o) + " ")
	}
	p := r.plan()
	fmt.Fprintf(&sb, "%s|n%d", operandKey(r.Out), p.lengthClass)
	if r.Inner == 1 {
		fmt.Fprintf(&sb, "|rows,%d,%d", p.align, rowFactor(r.N))
	} else {
		fmt.Fprintf(&sb, "|columns,%d,%d", p.align, p.innerClass)
	}
	if p.pieces > 1 {
		sb.WriteString("|pieces")
	}
	return sb.String()
}

// Build makes the kernel.
func (r *Reduce) Build(t Target) (*ir.Kernel, error) {
	if err := r.check(t); err != nil {
		return nil, err
	}
	k, err := (&reduceEmitter{Reduce: r, reducePlan: r.plan(), t: t}).build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.what(), err)
	}
	return k, nil
}

// Launch returns the grid and the parameters: geometry, then ScalarBits. Max, Min, ArgMax and ArgMin over an empty
// dimension are an error, unless there are no outputs either.
func (r *Reduce) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := r.check(t); err != nil {
		return groups, nil, err
	}
	p := r.plan()
	if err := p.checkTrips(r, t); err != nil {
		return groups, nil, err
	}
	for _, v := range p.values(r) {
		params = append(params, v.value)
	}
	params = append(params, r.ScalarBits...)
	if p.rows*r.Inner == 0 {
		return [3]int{0, 1, 1}, params, nil
	}
	if r.N == 0 && r.Op.needsElements() {
		return groups, nil, fmt.Errorf("%s: the %s of 0 elements has no value (input of shape [%d %d %d]); give it a dimension of at least 1",
			r.what(), r.Op, r.Outer, r.N, r.Inner)
	}
	groups, err = t.fold(r.what(), p.shape(r, t).groups(r, p))
	return groups, params, err
}

// Cost returns the bytes that the kernel reads and writes, or the elements it combines if that is more.
func (r *Reduce) Cost() float64 {
	elements := float64(r.Outer) * float64(r.N) * float64(r.Inner)
	bytes := 0
	for _, o := range r.In {
		bytes += o.Kind.Size()
	}
	return max(elements, elements*float64(bytes)+float64(r.Outer)*float64(r.Inner)*float64(r.Out.Kind.Size()))
}

func (r *Reduce) what() string {
	return fmt.Sprintf("%s kernel %s", r.Op, kernelName(r.Name, "reduce"))
}

func (r *Reduce) check(t Target) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", r.what(), fmt.Errorf(format, args...))
	}
	if r.Op < ReduceSum || r.Op > ReduceAll {
		return fail("there is no reduction %d", int(r.Op))
	}
	if r.Outer < 0 || r.N < 0 || r.Inner < 0 {
		return fail("shape [%d %d %d] has a negative dimension", r.Outer, r.N, r.Inner)
	}
	if n := float64(r.Outer) * float64(r.N) * float64(r.Inner); n > maxReduceElements {
		return fail("shape [%d %d %d] has %.0f elements; kernels index with 32 bits, so at most %d: split the tensor", r.Outer, r.N, r.Inner, n, maxReduceElements)
	}
	if len(r.In) == 0 || len(r.In) > 1 && r.Prologue == nil {
		return fail("%d inputs and no prologue to make one value of them", len(r.In))
	}
	for i, o := range append(append([]Operand{}, r.In...), r.Out) {
		if err := checkOperand(o); err != nil {
			return fail("operand %d: %w", i, err)
		}
	}
	if err := checkScalars(r.Scalars, r.ScalarBits); err != nil {
		return fail("%w", err)
	}
	return t.checkBuffers(r.what(), len(r.In)+1)
}

// reducePlan is what the kernel and its launch have to agree on besides the target.
type reducePlan struct {
	pieces, length int // each row is cut into pieces of length elements; the last one may be shorter
	rows           int // Outer*pieces
	align          int // power of two that divides the place of each row's start (Inner 1), or Inner
	lengthClass    int // length rounded up to a power of two, at most 8192
	innerClass     int // Inner rounded down to a power of two, at most 1024
}

func (r *Reduce) plan() reducePlan {
	p := reducePlan{pieces: max(r.split, 1), length: r.N}
	if p.pieces > 1 {
		p.length = pieceLength(r.N, p.pieces)
	}
	p.rows = r.Outer * p.pieces
	p.align = pow2Factor(r.Inner)
	if r.Inner == 1 {
		p.align = ir.MaxLanes
		if r.Outer > 1 {
			p.align = pow2Factor(r.N)
		}
	}
	p.lengthClass = min(ceilPow2(p.length), 8192)
	p.innerClass = min(floorPow2(r.Inner), 1024)
	return p
}

// pieceLength is a multiple of 64, so that vectors stay aligned.
func pieceLength(n, pieces int) int { return ceilDiv(ceilDiv(n, pieces), 64) * 64 }

// values lists the geometry parameters.
func (p reducePlan) values(r *Reduce) []geom {
	v := []geom{{"rows", uint32(p.rows)}, {"n", uint32(p.length)}}
	if p.pieces > 1 {
		v = append(v, geom{"whole", uint32(r.N)}, geom{"pieces", uint32(p.pieces)})
	}
	if r.Inner != 1 {
		v = append(v, geom{"inner", uint32(r.Inner)})
	}
	if r.Epilogue != nil {
		count := r.N
		if r.count > 0 {
			count = r.count
		}
		v = append(v, geom{"count", math.Float32bits(float32(count))})
	}
	return v
}

// reduceShape is how a reduction divides the work.
type reduceShape struct {
	local int
	width int
	// lanes share a row (or a column), each taking every lanes-th access; a workgroup has local/lanes rows at a time.
	lanes int
	// blocked: a workgroup of columns stays in one row of them.
	blocked bool
}

func (p reducePlan) shape(r *Reduce, t Target) reduceShape {
	c := t.config()
	s := reduceShape{local: c.row, width: c.width, lanes: 1}
	if r.Inner == 1 {
		s.width = c.rowWide
	}
	for _, o := range append(r.In[:len(r.In):len(r.In)], r.Out) {
		if o.Kind.Size() == 8 {
			s.width = min(s.width, 8)
		}
	}
	switch {
	case r.Inner == 1 && t.sharesRows(p.lengthClass):
		s.lanes = max(1, min(p.lengthClass/16, s.local))
		if s.width = min(s.width, p.align, pow2Factor(r.N)); s.width < c.width {
			s.width = 1
		}
	case r.Inner == 1:
		s.width = t.rowWidth(s.width, p.lengthClass, min(p.align, pow2Factor(r.N)))
	case c.tree:
		s.width = 1
		if p.lengthClass > 32 {
			s.lanes = max(1, s.local/min(32, p.innerClass))
		}
	case t.class() == blockCPU:
		s.local = c.columns
		if s.blocked = p.innerClass >= longRow; !s.blocked {
			s.width = p.align
		}
	default:
		s.local = c.columns
		s.width = min(s.width, p.innerClass)
	}
	if r.pairs.read != ir.Void {
		s.width = 1
	}
	return s
}

// groups returns the number of workgroups.
func (s reduceShape) groups(r *Reduce, p reducePlan) uint64 {
	perGroup := uint64(s.local / s.lanes)
	if r.Inner == 1 {
		return (uint64(p.rows) + perGroup - 1) / perGroup
	}
	chunks := uint64(ceilDiv(r.Inner, s.width))
	if s.lanes == 1 && !s.blocked {
		return (uint64(p.rows)*chunks + perGroup - 1) / perGroup
	}
	return uint64(p.rows) * ((chunks + perGroup - 1) / perGroup)
}

// trips bounds the iterations of all loops that one invocation runs.
func (s reduceShape) trips(r *Reduce, p reducePlan) int {
	n := ceilDiv(p.length, s.width*s.lanes)
	n += ceilDiv(n, sumBlock)
	if r.Inner > 1 && p.align < s.width {
		return n * s.width // the last columns go one by one
	}
	return n + s.width
}

// checkTrips reports a reduction that is too long for a device that bounds the iterations of loops (it would leave the
// loop without a word and give a wrong result).
func (p reducePlan) checkTrips(r *Reduce, t Target) error {
	if n, most := p.shape(r, t).trips(r, p), t.Caps.MaxLoopTrips; most > 0 && n > most {
		return fmt.Errorf("%s: %d elements need %d iterations of a loop and the device runs at most %d; reduce in two steps", r.what(), r.N, n, most)
	}
	return nil
}
