package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
)

// gradientCases holds the gradient of every differentiable row against central differences in float64 on the CPU, and the
// device's in float32 against that.
func gradientCases(e *env) ([]testCase, error) {
	var out []testCase
	if e.opts.Golden != nil {
		return nil, nil
	}
	for _, op := range tensor.Ops() {
		if op.Call == nil || op.Kind == tensor.KindRandom || len(op.Differentiable) > 0 && !slices.Contains(op.Differentiable, true) {
			continue
		}
		again := e.info.API == "cpu" // second derivatives: once for all devices
		if op.Elementwise() != nil {
			if again {
				again = false
				out = append(out, secondCase(op, "generated", func(rng *rand.Rand) ([]tensor.Array, tensor.Attrs) {
					g := generate(op, tensor.Float64, rng, []int{2, 3}, []int{3}, []int{2, 1})
					return g.in, g.attrs
				}))
			}
			out = append(out, testCase{name: op.Name + "/float32/generated", op: op.Name, dtype: "float32", run: func(x *run) error {
				g := generate(op, tensor.Float32, x.rng(), []int{2, 3}, []int{3}, []int{2, 1})
				return x.gradients(op, g.in, g.attrs)
			}})
		}
		tried := 0
		for i, s := range op.Samples {
			if s.Err != "" || e.opts.Quick && tried >= quickGradientSamples {
				continue
			}
			in, _ := sampleOperands(s, tensor.Float32, contiguous)
			if !anyFlows(op, in) {
				continue
			}
			tried++
			if withTies[op.Name] {
				for k := range in[0].Data {
					in[0].Data[k] += float64(float32(k%61) / 1024)
				}
				in[0] = rounded(in[0], tensor.Float32)
			}
			name := fmt.Sprintf("%d-%s", i, caseName(s.Name))
			if again && noDifferences[op.Name+"/float32/"+name] == "" {
				again = false
				out = append(out, secondCase(op, name, func(*rand.Rand) ([]tensor.Array, tensor.Attrs) { return in, s.Attrs }))
			}
			out = append(out, testCase{name: op.Name + "/float32/" + name, op: op.Name, dtype: "float32",
				run: func(x *run) error { return x.gradients(op, in, s.Attrs) }})
		}
	}
	return out, nil
}

// caseName makes a name of a sample fit for a case.
func caseName(s string) string {
	if s == "" {
		return "sample"
	}
	b := []byte(s)
	for i, c := range b {
		if c == ' ' || c == '/' {
			b[i] = '_'
		}
	}
	return string(b)
}

// flows reports whether gradients flow to operand i.
func flows(op *tensor.OpInfo, in []tensor.Array, i int) bool {
	return dtypeOf(in[i]).IsFloat() && (op.Differentiable == nil || i < len(op.Differentiable) && op.Differentiable[i])
}

func anyFlows(op *tensor.OpInfo, in []tensor.Array) bool {
	for i := range in {
		if flows(op, in, i) && len(in[i].Data) > 0 {
			return true
		}
	}
	return false
}

// noDifferences are samples where a gradient is not the limit of differences, by definition: they are held against the CPU only.
var noDifferences = map[string]string{
	"embedding/float32/1-padding":    "the row of padding_idx gets no gradient, as in PyTorch",
	"cast/float32/0-to_half":         "float16 does not resolve differences of 1e-6",
	"cast/float32/1-to_float":        "float32 does not resolve differences of 1e-6",
	"normalize/float32/2-a_row_of_0": "the slope at 0 is 1/eps = 1e12, which differences of 1e-6 do not resolve",
}

// withTies are the operators whose results move in steps where operands are equal; their operands are moved apart.
var withTies = set("sort", "topk")

// backward runs an operator on a device, in a dtype, and returns its differentiable results and the gradients of the
// operands for upstream gradients drawn from rng.
func backward(dev backend.Device, d tensor.DType, op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs, rng *rand.Rand) (outs, ups, grads [][]float64, err error) {
	s := tensor.NewScope(dev)
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	ts, wrt := leaves(s, d, op, in)
	from, upstream, outs, err := differentiable(s, op.Call(ts, attrs), rng)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, u := range upstream {
		v, err := u.CPU().Float64s()
		if err != nil {
			return nil, nil, nil, err
		}
		ups = append(ups, v)
	}
	if len(from) == 0 {
		// Constant results: the gradients are zero, which the differences must confirm.
		for i, a := range in {
			if flows(op, in, i) {
				grads = append(grads, make([]float64, len(a.Data)))
			}
		}
		return nil, nil, grads, nil
	}
	gs, err := tensor.Grad(from, wrt, upstream...)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, g := range gs {
		v, err := g.Detach().CPU().Float64s()
		if err != nil {
			return nil, nil, nil, err
		}
		grads = append(grads, v)
	}
	return outs, ups, grads, nil
}

// leaves places operands, the floating-point ones in dtype d, and returns besides those that gradients flow to.
func leaves(s *tensor.Scope, d tensor.DType, op *tensor.OpInfo, in []tensor.Array) (ts, wrt []*tensor.Tensor) {
	for i, a := range in {
		if dtypeOf(a).IsFloat() {
			a.DType = d
		}
		t := place(s, a, contiguous)
		if flows(op, in, i) {
			t.SetRequiresGrad(true)
			wrt = append(wrt, t)
		}
		ts = append(ts, t)
	}
	return ts, wrt
}

// differentiable returns the results that have a gradient, upstream gradients drawn from rng (zero where a result is no number),
// and the results' values.
func differentiable(s *tensor.Scope, results []*tensor.Tensor, rng *rand.Rand) (from, upstream []*tensor.Tensor, values [][]float64, err error) {
	for _, o := range results {
		if o == nil {
			continue
		}
		if err := o.Err(); err != nil {
			return nil, nil, nil, err
		}
		if !o.RequiresGrad() {
			continue
		}
		v, err := o.Detach().CPU().Float64s()
		if err != nil {
			return nil, nil, nil, err
		}
		u := make([]float64, len(v))
		for i := range u {
			u[i] = formats[tensor.Float16].round(0.25 + rng.Float64())
			if math.IsNaN(v[i]) || math.IsInf(v[i], 0) {
				u[i] = 0
			}
		}
		values = append(values, v)
		from, upstream = append(from, o), append(upstream, place(s, tensor.Array{Shape: o.Shape(), Data: u, DType: o.DType()}, contiguous))
	}
	return from, upstream, values, nil
}

// cpuGradients remembers the gradients on the CPU and their check: they are the same for every device of a run.
var cpuGradients sync.Map

type cpuGradient struct {
	once  sync.Once
	grads [][]float64
	err   error
}

func (x *run) gradients(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs) error {
	key := fmt.Sprintf("%d %s", x.opts.Seed, x.name)
	v, _ := cpuGradients.LoadOrStore(key, &cpuGradient{})
	c := v.(*cpuGradient)
	c.once.Do(func() { c.grads, c.err = x.checkedGradients(op, in, attrs) })
	if c.err != nil {
		return c.err
	}
	_, _, got, err := backward(x.dev, tensor.Float32, op, in, attrs, x.rng())
	if err != nil {
		return err
	}
	at := 0
	for i := range in {
		if !flows(op, in, i) {
			continue
		}
		if err := x.compareGradient(op, in, attrs, i, got[at], c.grads[at]); err != nil {
			return err
		}
		at++
	}
	return nil
}

// gradientTolerance is relative to the value, and a tenth of it to the largest of the gradient: a gradient is a formula of
// several operators, each rounded.
const gradientTolerance = 1e-4

// widerGradients are cases that float32 cannot hold to gradientTolerance.
var widerGradients = map[string]struct {
	tolerance float64
	why       string
}{
	"logsumexp/float32/5-large": {2e-3, "e^(x - result) of a result near 10,000, which float32 has to half of 2^-10, in PyTorch too"},
}

func (x *run) compareGradient(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs, i int, got, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("the gradient of %s has %d elements on the device, %d on the CPU", operandName(op, i), len(got), len(want))
	}
	largest := 0.0
	for _, w := range want {
		largest = math.Max(largest, math.Abs(w))
	}
	tolerance := gradientTolerance
	if w, ok := widerGradients[strings.TrimPrefix(x.name, "gradients/")]; ok {
		tolerance = w.tolerance
	}
	x.bound = fmt.Sprintf("relative %g", tolerance)
	m := &Mismatch{What: "gradient of " + operandName(op, i), Op: op.Name, DType: "float32", Elements: len(want), Bound: x.bound, Attrs: attrsText(attrs)}
	worst := -1.0
	for k, w := range want {
		if got[k] == w || math.IsNaN(got[k]) && math.IsNaN(w) {
			continue
		}
		over := math.Abs(got[k]-w) / (tolerance*math.Abs(w) + tolerance/10*largest)
		if over <= 1 {
			continue
		}
		m.Off++
		if over > worst || math.IsNaN(over) {
			worst, m.Index, m.Got, m.Want = over, k, number(got[k]), number(w)
			m.ULP = math.Abs(got[k]-w) / formats[tensor.Float32].ulp(w)
		}
	}
	if m.Off == 0 {
		return nil
	}
	if math.IsNaN(m.ULP) || math.IsInf(m.ULP, 0) {
		m.ULP = 0
	}
	for k, a := range in {
		m.Operands = append(m.Operands, describe(operandName(op, k), a, contiguous))
	}
	if m.Index < len(in[i].Data) {
		m.Input = []string{fmt.Sprintf("%s=%s", operandName(op, i), number(in[i].Data[m.Index]))}
	}
	return m
}

// checkedGradients returns the gradients on the CPU in float64, after holding them against central differences along
// random directions, two for each operand.
func (x *run) checkedGradients(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs) ([][]float64, error) {
	cpu := tensor.CPU()
	if noDifferences[strings.TrimPrefix(x.name, "gradients/")] != "" {
		_, _, grads, err := backward(cpu, tensor.Float64, op, in, attrs, x.rng())
		return grads, err
	}
	base, ups, grads, err := backward(cpu, tensor.Float64, op, in, attrs, x.rng())
	if err != nil {
		return nil, fmt.Errorf("on the CPU: %w", err)
	}
	loss := func(in []tensor.Array) (float64, error) {
		outs, _, _, err := backward(cpu, tensor.Float64, op, in, attrs, x.rng())
		sum := 0.0
		for i, o := range outs {
			for k, v := range o {
				if i < len(ups) && k < len(ups[i]) && ups[i][k] != 0 {
					sum += v * ups[i][k]
				}
			}
		}
		return sum, err
	}
	f0 := 0.0
	for i, o := range base {
		for k, v := range o {
			if ups[i][k] != 0 {
				f0 += v * ups[i][k]
			}
		}
	}
	rng := x.rng()
	at := 0
	for i, a := range in {
		if !flows(op, in, i) {
			continue
		}
		g := grads[at]
		at++
		for range 2 {
			dir := make([]float64, len(a.Data))
			along, size := 0.0, 0.0
			for k := range dir {
				dir[k] = rng.NormFloat64()
				along += g[k] * dir[k]
				size += math.Abs(g[k] * dir[k])
			}
			moved := func(h float64) (float64, error) {
				now := slices.Clone(in)
				now[i].Data = slices.Clone(a.Data)
				for k := range dir {
					now[i].Data[k] += h * dir[k]
				}
				return loss(now)
			}
			const h = 1e-6
			up, err := moved(h)
			if err != nil {
				return nil, err
			}
			down, err := moved(-h)
			if err != nil {
				return nil, err
			}
			if err := differenceError(operandName(op, i), along, f0, up, down, h, size); err != nil {
				return nil, err
			}
		}
	}
	return grads, nil
}

// differenceError compares a directional derivative with differences. At a kink, where the differences to both sides
// disagree, a subgradient lies between them.
func differenceError(name string, along, f0, up, down, h, size float64) error {
	central := (up - down) / (2 * h)
	if math.IsNaN(central) || math.IsInf(central, 0) {
		return nil // the point is at the edge of where the function is defined
	}
	tol := 1e-5*math.Max(size, math.Abs(central)) + 1e-9*math.Max(1, math.Abs(f0))/h*1e-4 + 1e-7
	if math.Abs(central-along) <= tol {
		return nil
	}
	right, left := (up-f0)/h, (f0-down)/h
	lo, hi := math.Min(left, right), math.Max(left, right)
	if hi-lo > 1e-3*math.Max(size, 1e-3) && along >= lo-tol && along <= hi+tol {
		return nil
	}
	return fmt.Errorf("the gradient of %s along a random direction is %.9g, central differences in float64 give %.9g (tolerance %.2g)", name, along, central, tol)
}
