package nn

import (
	"strconv"

	"github.com/anygpu/anygpu/tensor"
)

// ModuleList keeps modules that a Forward of one's own goes through. Their parameters are named "0.weight" and so on, below the
// name that the list is registered by, as in PyTorch.
type ModuleList[M Component] struct {
	Base
	modules []M
}

// NewModuleList returns a list of modules.
func NewModuleList[M Component](modules ...M) *ModuleList[M] {
	l := &ModuleList[M]{}
	for _, m := range modules {
		l.Append(m)
	}
	return l
}

// Append adds a module at the end.
func (l *ModuleList[M]) Append(m M) {
	l.Register(strconv.Itoa(len(l.modules)), m)
	l.modules = append(l.modules, m)
}

// Len returns the number of modules.
func (l *ModuleList[M]) Len() int { return len(l.modules) }

// At returns module i.
func (l *ModuleList[M]) At(i int) M { return l.modules[i] }

// All returns the modules in order.
func (l *ModuleList[M]) All() []M { return append([]M(nil), l.modules...) }

// Residual adds a module's output to its input: x + f(x) (He et al., "Deep Residual Learning", 2015). The parameters keep the
// module's names, so that it can be put around a module of a saved model.
type Residual struct {
	Base
	f Module
}

// NewResidual returns x + f(x). f must keep the shape.
func NewResidual(f Module) *Residual {
	r := &Residual{f: f}
	r.Register("", f)
	return r
}

// Forward adds.
func (r *Residual) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer r.Enter(x)()
	return x.Add(r.f.Forward(x))
}
