package lib

import (
	"fmt"
	"math"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Key identifies the kernel: the body, the kinds, which operands share an address, and classes of strides and sizes.
// Sizes, strides and offsets are launch parameters as far as there is room for them.
func (e *Elementwise) Key() string {
	p, err := e.plan()
	if err != nil {
		return "elementwise|invalid|" + err.Error()
	}
	return p.key()
}

// Build makes the kernel. An error names the kernel and what is wrong with its operands or its body.
func (e *Elementwise) Build(t Target) (*ir.Kernel, error) {
	p, err := e.plan()
	if err != nil {
		return nil, err
	}
	if err := t.checkBuffers(e.what(), len(e.In)+len(e.Out)); err != nil {
		return nil, err
	}
	k, err := newEmitter(p, t).build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.what(), err)
	}
	return k, nil
}

// Launch returns the grid and the parameters: geometry, then ScalarBits.
func (e *Elementwise) Launch(t Target) (groups [3]int, params []uint32, err error) {
	p, err := e.plan()
	if err != nil {
		return groups, nil, err
	}
	if err := p.check(t); err != nil {
		return groups, nil, err
	}
	for _, g := range p.geometry[:p.params] {
		params = append(params, g.value)
	}
	params = append(params, e.ScalarBits...)
	s := p.shape(t)
	if p.size == 0 {
		return [3]int{0, 1, 1}, params, nil
	}
	groups, err = t.fold(e.what(), s.groups(p))
	if err == nil && uint64(groups[0])*uint64(groups[1])*uint64(s.local*s.vectors*s.width*max(s.mixed, 1)) > 1<<32 {
		err = fmt.Errorf("%s: shape %v has %d elements, too many for 32-bit indices; split the tensor", e.what(), e.Shape, p.size)
	}
	return groups, params, err
}

// Cost returns the bytes that the kernel reads and writes; a broadcast operand counts once.
func (e *Elementwise) Cost() float64 {
	p, err := e.plan()
	if err != nil {
		return 0
	}
	total := 0.0
	for _, o := range p.operands {
		n := float64(o.kind.Size())
		for d, size := range p.dims {
			if p.groups[o.group].strides[d] != 0 {
				n *= float64(size)
			}
		}
		total += n
	}
	if p.size == 0 {
		return 0
	}
	return max(total, float64(p.size))
}

func (e *Elementwise) what() string { return "elementwise kernel " + kernelName(e.Name, "elementwise") }

// plan is an Elementwise with its layout worked out.
type plan struct {
	e *Elementwise
	layout
	operands []planOperand // inputs, then outputs, then the index if there is one
	groups   []address
	tiled    bool   // consecutive invocations go along the last but one dimension (see alongStrided)
	geometry []geom // launch parameters, the first params of them; the others are constants
	params   int
}

type planOperand struct {
	kind  ir.Kind // Void for the index
	group int
}

// address is a way to walk through memory that one operand or several share.
type address struct {
	strides []int
	offset  int
	align   int // power of two (up to 16) that divides the address of each row's start
}

func (a address) inner() int { return a.strides[len(a.strides)-1] }

// geom is a number that the kernel needs to find its elements.
type geom struct {
	name  string
	value uint32
}

func (e *Elementwise) plan() (*plan, error) {
	p := &plan{e: e}
	if err := p.layOut(); err != nil {
		return nil, fmt.Errorf("%s: %w", e.what(), err)
	}
	p.listGeometry()
	return p, nil
}

func (p *plan) layOut() error {
	e := p.e
	if len(e.Out) == 0 || e.Body == nil {
		return fmt.Errorf("an output and a body are needed")
	}
	if err := checkScalars(e.Scalars, e.ScalarBits); err != nil {
		return err
	}
	all := append(append([]Operand{}, e.In...), e.Out...)
	if e.Index {
		all = append(all, Operand{})
	}
	strides := make([][]int, len(all))
	for i, o := range all {
		if strides[i] = o.Strides; o.Strides == nil {
			strides[i] = rowMajor(e.Shape)
		}
		if i < len(e.In)+len(e.Out) {
			if err := checkOperand(o); err != nil {
				return fmt.Errorf("operand %d: %w", i, err)
			}
		}
	}
	var err error
	if p.layout, err = newLayout(e.Shape, strides, len(e.In)); err != nil {
		return err
	}
	p.tiled = p.alongStrided(len(e.In))
	for i, o := range all {
		p.operands = append(p.operands, planOperand{o.Kind, p.group(p.strides[i], o.Offset)})
		if i >= len(e.In) && i < len(e.In)+len(e.Out) {
			for d, s := range p.strides[i] {
				if s == 0 && p.dims[d] > 1 {
					return fmt.Errorf("output %d has stride 0 in a dimension of size %d: its elements would share an address", i-len(e.In), p.dims[d])
				}
			}
		}
	}
	return nil
}

// group returns the number of the address with these strides and offset.
func (p *plan) group(strides []int, offset int) int {
	for i, g := range p.groups {
		same := g.offset == offset
		for d := range strides {
			same = same && g.strides[d] == strides[d]
		}
		if same {
			return i
		}
	}
	a := address{strides: strides, offset: offset, align: pow2Factor(offset)}
	for _, s := range strides[:len(strides)-1] {
		a.align = min(a.align, pow2Factor(s))
	}
	p.groups = append(p.groups, a)
	return len(p.groups) - 1
}

// listGeometry lists what the kernel must know, the most general numbers first, so that these are parameters.
func (p *plan) listGeometry() {
	add := func(name string, v int) { p.geometry = append(p.geometry, geom{name, uint32(v)}) }
	add("n", p.inner())
	if rank := len(p.dims); rank > 1 {
		add("rows", p.rows())
		for d := 1; d < rank-1; d++ {
			add(fmt.Sprintf("d%d", d), p.dims[d])
		}
	}
	for i, g := range p.groups {
		if g.offset != 0 {
			add(fmt.Sprintf("g%d_offset", i), g.offset)
		}
	}
	for i, g := range p.groups {
		for d, s := range g.strides {
			inner := d == len(g.strides)-1
			if s != 0 && !(inner && s == 1) {
				add(fmt.Sprintf("g%d_stride%d", i, d), s)
			}
		}
	}
	p.params = max(0, min(len(p.geometry), ir.MaxParams-len(p.e.Scalars)))
}

func (p *plan) key() string {
	e := p.e
	var sb strings.Builder
	fmt.Fprintf(&sb, "elementwise|%s|%s|", e.BodyKey, kindsKey(e.Scalars))
	for i, o := range p.operands {
		switch {
		case i < len(e.In):
			fmt.Fprintf(&sb, "i%s@%d ", operandKey(e.In[i]), o.group)
		case i < len(e.In)+len(e.Out):
			fmt.Fprintf(&sb, "o%s@%d ", operandKey(e.Out[i-len(e.In)]), o.group)
		default:
			fmt.Fprintf(&sb, "index@%d ", o.group)
		}
	}
	for _, g := range p.groups {
		sb.WriteByte('|')
		for d, s := range g.strides {
			switch {
			case s == 0:
				sb.WriteByte('0')
			case s == 1 && d == len(g.strides)-1:
				fmt.Fprintf(&sb, "u%d", g.align)
			default:
				sb.WriteByte('s')
			}
		}
		if g.offset != 0 {
			sb.WriteByte('+')
		}
	}
	switch {
	case len(p.dims) > 1:
		fmt.Fprintf(&sb, "|n%d,%d", pow2Factor(p.inner()), p.sizeClass())
	case p.inner()%ir.MaxLanes == 0:
		sb.WriteString("|even") // multiples of 16 have no tail, which saves half of the code
	default:
		sb.WriteString("|any")
	}
	if p.tiled {
		sb.WriteString("|tiled")
	}
	if p.long() {
		sb.WriteString("|long")
	}
	for _, g := range p.geometry[p.params:] {
		fmt.Fprintf(&sb, "|%s=%d", g.name, g.value)
	}
	return sb.String()
}

// sizeClass is what the shape of a kernel over several dimensions depends on besides divisibility: the length of the inner one.
func (p *plan) sizeClass() int { return min(floorPow2(p.inner()), 4096) }

// check reports operands that 32-bit indices or the device's view of a buffer cannot reach.
func (p *plan) check(t Target) error {
	if p.size >= 1<<32 {
		return fmt.Errorf("%s: shape %v has %d elements; kernels index with 32 bits, so at most 4294967295: split the tensor", p.e.what(), p.e.Shape, p.size)
	}
	if err := t.checkBuffers(p.e.what(), len(p.e.In)+len(p.e.Out)); err != nil {
		return err
	}
	for i, o := range p.operands {
		if o.kind == ir.Void {
			continue
		}
		lo, hi := p.extent(i, p.groups[o.group].offset)
		const last = (1<<32 - 1) & math.MaxInt // the largest index, also where int has 32 bits
		if lo < 0 || hi > last {
			return fmt.Errorf("%s: operand %d reaches from element %d to %d; indices are 0 to 2^32-1", p.e.what(), i, lo, hi)
		}
		if bytes := int64(hi+1) * int64(o.kind.Size()); t.Caps.MaxBufferBytes > 0 && bytes > t.Caps.MaxBufferBytes {
			return fmt.Errorf("%s: operand %d needs %d bytes in one binding; the device binds at most %d: split the tensor", p.e.what(), i, bytes, t.Caps.MaxBufferBytes)
		}
	}
	return nil
}
