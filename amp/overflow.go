package amp

import (
	"fmt"

	"github.com/anygpu/anygpu/tensor"
)

// maxBad bounds the gradients that LastOverflow names.
const maxBad = 8

// BadGradient is a gradient with infinities or NaN.
type BadGradient struct {
	Index int    // in the optimizer's Parameters
	Name  string // of the parameter, if NameParameter gave one or the optimizer knows it
	Shape []int
	DType tensor.DType
	Infs  int // infinite elements
	NaNs  int
}

// String returns a line such as "parameter 3 (fc.weight), float32 [10 128]: 2 infinite, 0 NaN".
func (b BadGradient) String() string {
	name := ""
	if b.Name != "" {
		name = " (" + b.Name + ")"
	}
	return fmt.Sprintf("parameter %d%s, %s %v: %d infinite, %d NaN", b.Index, name, b.DType, b.Shape, b.Infs, b.NaNs)
}

// ParameterNamer is what an optimizer satisfies that knows its parameters' names; the index is that in Parameters.
type ParameterNamer interface {
	ParameterName(i int) string
}

// NameParameter gives a parameter the name that LastOverflow shows:
//
//	for _, p := range model.NamedParameters() {
//		scaler.NameParameter(p.Tensor, p.Name)
//	}
func (g *GradScaler) NameParameter(p *tensor.Tensor, name string) {
	if g.names == nil {
		g.names = map[*tensor.Tensor]string{}
	}
	g.names[p] = name
}

// overflow is a skipped step, to be looked into if somebody asks.
type overflow struct {
	opt      Optimizer
	params   []*tensor.Tensor
	grads    []*tensor.Tensor // nil where a parameter had none
	versions [][2]uint64
}

func rememberOverflow(opt Optimizer) *overflow {
	o := &overflow{opt: opt, params: opt.Parameters()}
	for _, p := range o.params {
		g := p.Grad()
		o.grads = append(o.grads, g)
		o.versions = append(o.versions, g.Version())
	}
	return o
}

// LastOverflow names the parameters whose gradients had infinities or NaN in the latest skipped step, the first eight in
// the order of Parameters; nil if no step was skipped. It computes that when it is called, so call it before the gradients are zeroed.
// For the operator where they first appeared see [Trace].
func (g *GradScaler) LastOverflow() ([]BadGradient, error) {
	if g.last == nil {
		return nil, nil
	}
	var out []BadGradient
	namer, _ := g.last.opt.(ParameterNamer)
	for i, grad := range g.last.grads {
		if grad == nil {
			continue
		}
		if grad.Err() != nil || grad.Version() != g.last.versions[i] {
			return out, fmt.Errorf("amp: parameter %d: %w", i, ErrGradientsGone)
		}
		infs, nans, err := countBad(grad)
		if err != nil {
			return out, fmt.Errorf("amp: gradient of parameter %d: %w", i, err)
		}
		if infs+nans == 0 {
			continue
		}
		b := BadGradient{Index: i, Name: g.names[g.last.params[i]], Shape: grad.Shape(), DType: grad.DType(), Infs: infs, NaNs: nans}
		if b.Name == "" && namer != nil {
			b.Name = namer.ParameterName(i)
		}
		if out = append(out, b); len(out) == maxBad {
			break
		}
	}
	return out, nil
}

// countBad counts the infinities and NaN of a tensor; most tensors have none and cost one reduction.
func countBad(t *tensor.Tensor) (infs, nans int, err error) {
	s := tensor.NewScope(t.Device())
	defer s.Close()
	x := s.To(t).Detach()
	count := func(y *tensor.Tensor) int {
		v, e := y.Cast(tensor.Int32).Sum().Item()
		if err == nil {
			err = e
		}
		return int(v)
	}
	if bad := count(x.IsFinite().LogicalNot().Any()); bad == 0 {
		return 0, 0, err
	}
	infs, nans = count(x.IsInf()), count(x.IsNaN())
	return infs, nans, err
}
