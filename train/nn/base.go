package nn

import (
	"errors"
	"fmt"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
)

// Component is anything with parameters, buffers and children: every struct that embeds [Base].
type Component interface {
	component() *Base
}

// Module is a component with one input and one output.
type Module interface {
	Component
	Forward(x *tensor.Tensor) *tensor.Tensor
}

// Named is a tensor with its path in the model, such as "1.weight".
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// Base keeps a module's parameters, buffers and children. Embed it, and register what the module owns:
//
//	type Block struct {
//		nn.Base
//		fc *nn.Linear
//	}
//
//	func NewBlock() *Block {
//		b := &Block{fc: nn.NewLinear(8, 8)}
//		b.Register("fc", b.fc)
//		return b
//	}
//
//	func (b *Block) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Add(b.fc.Forward(x).ReLU()) }
//
// The zero value is ready to use, in training mode.
type Base struct {
	params   []Named
	buffers  []Named
	children []namedChild
	eval     bool

	parent *Base  // that registered it first
	name   string // in the parent
}

type namedChild struct {
	name string
	c    Component
}

func (b *Base) component() *Base { return b }

// RegisterParameter adds a trainable tensor under a name and returns it; it requires grad from now on.
func (b *Base) RegisterParameter(name string, t *tensor.Tensor) *tensor.Tensor {
	t.SetRequiresGrad(true)
	b.params = append(b.params, Named{name, t})
	return t
}

// RegisterBuffer adds a tensor that belongs to the module's state but is not trained, such as a running mean.
func (b *Base) RegisterBuffer(name string, t *tensor.Tensor) *tensor.Tensor {
	b.buffers = append(b.buffers, Named{name, t})
	return t
}

// Register adds a child under a name.
func (b *Base) Register(name string, c Component) {
	b.children = append(b.children, namedChild{name, c})
	if child := c.component(); child.parent == nil && child != b {
		child.parent, child.name = b, name
	}
}

// Path returns the module's name from the outermost module on, such as "blocks.0.fc": the prefix of its parameters' names. A module that is
// registered twice has its first name.
func (b *Base) Path() string {
	path := ""
	for depth := 0; b != nil && depth < 1000; b, depth = b.parent, depth+1 {
		switch {
		case b.name == "":
		case path == "":
			path = b.name
		default:
			path = b.name + "." + path
		}
	}
	return path
}

// Enter notes that the module's Forward runs, for observers such as amp.Trace, until the function that it returns is called. The layers of
// this package do it; a module of one's own whose Forward calls operators itself may:
//
//	defer b.Enter(x)()
func (b *Base) Enter(x *tensor.Tensor) (leave func()) { return x.Scope().EnterModule(b.Path) }

// walk visits b and its descendants in order of registration, each once, with the prefix of its names.
func (b *Base) walk(prefix string, seen map[*Base]bool, visit func(prefix string, b *Base)) {
	if seen[b] {
		return
	}
	seen[b] = true
	visit(prefix, b)
	for _, c := range b.children {
		below := prefix
		if c.name != "" { // a child without a name keeps its own names, as that of a Residual
			below += c.name + "."
		}
		c.c.component().walk(below, seen, visit)
	}
}

func (b *Base) each(visit func(prefix string, b *Base)) { b.walk("", map[*Base]bool{}, visit) }

func (b *Base) named(pick func(*Base) []Named) []Named {
	var out []Named
	seen := map[*tensor.Tensor]bool{}
	b.each(func(prefix string, m *Base) {
		for _, n := range pick(m) {
			if !seen[n.Tensor] { // a tensor shared by two modules is listed once, under its first name
				seen[n.Tensor] = true
				out = append(out, Named{prefix + n.Name, n.Tensor})
			}
		}
	})
	return out
}

// NamedParameters returns the parameters of the module and its descendants with their paths, in order of registration.
func (b *Base) NamedParameters() []Named { return b.named(func(m *Base) []Named { return m.params }) }

// NamedBuffers returns the buffers of the module and its descendants with their paths.
func (b *Base) NamedBuffers() []Named { return b.named(func(m *Base) []Named { return m.buffers }) }

// Parameters returns the parameters of the module and its descendants, for an optimizer.
func (b *Base) Parameters() []*tensor.Tensor {
	named := b.NamedParameters()
	out := make([]*tensor.Tensor, len(named))
	for i, n := range named {
		out[i] = n.Tensor
	}
	return out
}

// To moves every parameter, its gradient and every buffer to dev, in place: the tensors keep their identity, so
// optimizers built before go on working. A failure is returned, and is also the error of every later result.
func (b *Base) To(dev backend.Device) error {
	var errs []error
	for _, n := range append(b.NamedParameters(), b.NamedBuffers()...) {
		if err := n.Tensor.MoveTo(dev); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

// ToDType casts every floating-point parameter, its gradient and every floating-point buffer to d, in place as To moves them. Integer
// buffers, such as a number of batches, stay as they are. For mixed precision leave the model in float32 and use package amp.
func (b *Base) ToDType(d tensor.DType) error {
	if !d.IsFloat() {
		return fmt.Errorf("nn: ToDType only accepts floating point dtypes, but got desired dtype=%s", d)
	}
	var errs []error
	for _, n := range append(b.NamedParameters(), b.NamedBuffers()...) {
		if n.Tensor.Err() == nil && !n.Tensor.DType().IsFloat() {
			continue
		}
		if err := n.Tensor.CastTo(d); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

// SetRequiresGrad freezes (false) or thaws (true) all parameters of the module and its descendants: frozen ones get no gradients, and
// optimizers leave them as they are. Freezing drops gradients that are there. Batch normalisations go on averaging in training mode;
// put them in evaluation mode, too, where they should not.
func (b *Base) SetRequiresGrad(on bool) {
	for _, p := range b.Parameters() {
		p.SetRequiresGrad(on)
		if !on {
			p.ZeroGrad()
		}
	}
}

// Apply calls f with every descendant of m and then with m itself, each once, children before parents, as torch's Module.apply: to
// give layers other initial values, or to freeze some.
func Apply(m Component, f func(Component)) { visit(m, map[*Base]bool{}, f) }

func visit(m Component, seen map[*Base]bool, f func(Component)) {
	b := m.component()
	if seen[b] {
		return
	}
	seen[b] = true
	for _, c := range b.children {
		visit(c.c, seen, f)
	}
	f(m)
}

// Train puts the module and its descendants in training mode: dropout drops. It is the mode of a new module.
func (b *Base) Train() { b.setEval(false) }

// Eval puts the module and its descendants in evaluation mode.
func (b *Base) Eval() { b.setEval(true) }

func (b *Base) setEval(eval bool) { b.each(func(_ string, m *Base) { m.eval = eval }) }

// Training reports whether the module is in training mode.
func (b *Base) Training() bool { return !b.eval }

// ZeroGrad drops the gradients of all parameters.
func (b *Base) ZeroGrad() {
	for _, p := range b.Parameters() {
		p.ZeroGrad()
	}
}

// Free gives back the memory of all parameters, their gradients and all buffers; the model cannot be used afterwards.
func (b *Base) Free() {
	for _, n := range append(b.NamedParameters(), b.NamedBuffers()...) {
		n.Tensor.ZeroGrad()
		n.Tensor.Free()
	}
}

// NumParameters returns the number of trainable scalars.
func (b *Base) NumParameters() int {
	n := 0
	for _, p := range b.Parameters() {
		n += p.Numel()
	}
	return n
}
