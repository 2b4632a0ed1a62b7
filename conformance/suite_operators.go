package conformance

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// operatorCases makes the cases of the operator table and of the recorded results.
func operatorCases(e *env) ([]testCase, error) {
	var out []testCase
	if e.opts.Golden == nil {
		together := map[tensor.DType]*jointRun{}
		for _, op := range tensor.Ops() {
			if op.Call == nil {
				continue
			}
			if op.Elementwise() != nil {
				out = append(out, elementwiseCases(e, op, together)...)
			}
			out = append(out, sampleCases(e, op)...)
		}
	}
	return append(out, goldenCases(e)...), nil
}

// layoutEvery: a quick run takes the first sample of one operator in that many in a second layout.
const layoutEvery = 3

// quickSamples is how many valid samples of an operator a quick run takes, for values and for gradients.
const (
	quickSamples         = 3
	quickGradientSamples = 2
)

// sampleCases are the row's samples: valid ones in each dtype and layout that the operator takes, and invalid ones.
func sampleCases(e *env, op *tensor.OpInfo) []testCase {
	var out []testCase
	tried := 0
	for i, s := range op.Samples {
		name := s.Name
		if name == "" {
			name = fmt.Sprintf("sample %d", i)
		}
		name = fmt.Sprintf("%d-%s", i, strings.ReplaceAll(name, " ", "_"))
		if s.Err != "" {
			out = append(out, testCase{name: fmt.Sprintf("%s/errors/%s", op.Name, name), op: op.Name, run: func(x *run) error { return x.errorSample(op, s) }})
			continue
		}
		if op.Ref == nil {
			continue
		}
		if e.opts.Quick && tried >= quickSamples {
			continue
		}
		// A quick run takes other dtypes for the operator's first sample only, and another layout for some operators.
		dtypes, layouts := sampleDTypes(e, op, s), []layout{contiguous, transposed, sliced}
		if e.opts.Quick {
			layouts = layouts[:1]
			switch {
			case tried > 0:
				dtypes = dtypes[:1]
			case e.opts.samples(op.Name, layoutEvery):
				layouts = []layout{contiguous, transposed}
			}
		}
		tried++
		for _, d := range dtypes {
			for _, l := range layouts {
				// view takes memory as it is.
				if l != contiguous && (d != tensor.Float32 || op.Name == "view") {
					continue
				}
				out = append(out, testCase{name: fmt.Sprintf("%s/%s/%s-%s", op.Name, d, name, l), op: op.Name, dtype: d.String(), run: func(x *run) error {
					in, layouts := sampleOperands(s, d, l)
					return x.forward(op, in, s.Attrs, layouts)
				}})
			}
		}
	}
	return out
}

// sampleDTypes returns the dtypes that a sample's float32 operands are tried in; a sample without any is run as it is.
func sampleDTypes(e *env, op *tensor.OpInfo, s tensor.Sample) []tensor.DType {
	floats := false
	for _, a := range s.In {
		floats = floats || a.DType == tensor.InvalidDType
	}
	if !floats {
		if len(s.In) > 0 {
			return []tensor.DType{dtypeOf(s.In[0])}
		}
		return []tensor.DType{tensor.Float32}
	}
	try := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64}
	if e.opts.Quick {
		try = try[:2]
	}
	// What moves, compares or sums elements takes integers too.
	if (exactOps[op.Name] || summedOps[op.Name] || op.Kind == tensor.KindView) && !dividers[op.Name] && finite(s.In) {
		try = append(try, tensor.Int32)
		if !e.opts.Quick {
			try = append(try, tensor.Int64, tensor.Uint8)
		}
	}
	return slices.DeleteFunc(try, func(d tensor.DType) bool {
		in, _ := sampleOperands(s, d, contiguous)
		return d != tensor.Float32 && refused(op, in, s.Attrs)
	})
}

// finite reports whether all values of the operands are numbers, which integers can hold.
func finite(in []tensor.Array) bool {
	for _, a := range in {
		for _, v := range a.Data {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
}

// sampleOperands returns a sample's operands with its float32 ones in another dtype.
func sampleOperands(s tensor.Sample, d tensor.DType, l layout) ([]tensor.Array, []layout) {
	in := make([]tensor.Array, len(s.In))
	layouts := make([]layout, len(s.In))
	for i, a := range s.In {
		want := a.DType
		if want == tensor.InvalidDType {
			want = d
		}
		in[i], layouts[i] = rounded(a, want), l
	}
	return in, layouts
}

// refused reports whether the operator rejects the operands' dtypes on the CPU, which has every feature: then no device takes them.
func refused(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs) bool {
	err := guarded(func() error {
		s := tensor.NewScope(tensor.CPU())
		defer s.Close()
		ts := make([]*tensor.Tensor, len(in))
		for i, a := range in {
			ts[i] = place(s, a, contiguous)
		}
		for _, t := range op.Call(ts, attrs) {
			if t == nil {
				continue
			}
			if err := t.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Is(err, tensor.ErrDType)
}

// accepts reports whether an elementwise operator takes a dtype on the CPU.
func accepts(op *tensor.OpInfo, d tensor.DType) bool {
	in := make([]tensor.Array, op.Elementwise().Arity)
	for i := range in {
		in[i] = tensor.Array{Shape: []int{1}, Data: []float64{1}, DType: d}
		if slices.Contains(op.Elementwise().Bools, i) {
			in[i].DType = tensor.Bool
		}
	}
	attrs := tensor.Attrs{}
	for i, p := range op.Params {
		attrs[p] = float64(1 + i)
	}
	return !refused(op, in, attrs)
}

// lacks turns an error of a device that lacks what operands need into a NotSupportedError.
func (x *run) lacks(in []tensor.Array, err error) error {
	double := slices.ContainsFunc(in, func(a tensor.Array) bool { return a.DType == tensor.Float64 })
	var missing *ir.UnsupportedError
	switch {
	case err == nil || !double:
	case errors.Is(err, tensor.ErrDType) && !x.info.Caps.F64:
		return notSupported("double precision")
	case errors.As(err, &missing):
		return notSupported("%s", missing.What) // such as "exp of f64": Vulkan has functions of float32 only
	}
	return err
}

// forward runs an operator on the device and holds shape, dtype and values of its results against the reference.
func (x *run) forward(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs, layouts []layout) error {
	if op.Ref == nil {
		return fmt.Errorf("%s has no reference", op.Name)
	}
	want, err := op.Ref(in, attrs)
	if err != nil {
		return fmt.Errorf("the reference: %w", err)
	}
	err = x.scoped(func(s *tensor.Scope) error {
		ts := make([]*tensor.Tensor, len(in))
		for i, a := range in {
			ts[i] = place(s, a, layouts[i])
		}
		outs := op.Call(ts, x.attrs(in, attrs))
		if len(in) == 0 { // in no scope
			defer func() {
				for _, t := range outs {
					t.Free()
				}
			}()
		}
		if len(outs) < len(want) {
			return fmt.Errorf("%d results, the reference has %d", len(outs), len(want))
		}
		for i, w := range want {
			if err := x.compareOutput(op, in, attrs, i, outs[i], w); err != nil {
				return err
			}
		}
		return nil
	})
	return x.lacks(in, explained(err, op, in, attrs, layouts, want[0].Shape))
}

// explained adds operator, attributes and operands to a mismatch.
func explained(err error, op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs, layouts []layout, shape []int) error {
	var m *Mismatch
	if !errors.As(err, &m) {
		return err
	}
	m.Op, m.Attrs = op.Name, attrsText(attrs)
	if len(in) > 0 {
		m.DType = in[0].DType.String()
	}
	for i, a := range in {
		m.Operands = append(m.Operands, describe(operandName(op, i), a, layouts[i]))
		if v, ok := operandAt(a, shape, m.Index, op); ok {
			m.Input = append(m.Input, fmt.Sprintf("%s=%s", operandName(op, i), number(v)))
		}
	}
	return err
}

// attrs returns a case's attributes; operators without operands get the device under test by one.
func (x *run) attrs(in []tensor.Array, attrs tensor.Attrs) tensor.Attrs {
	if len(in) > 0 || attrs.Has("device") {
		return attrs
	}
	out := tensor.Attrs{"device": x.dev}
	maps.Copy(out, attrs)
	return out
}

// operandAt returns the operand's element that belongs to a result's element, for elementwise operators
// and others whose result has the operand's shape.
func operandAt(a tensor.Array, shape []int, index int, op *tensor.OpInfo) (float64, bool) {
	if op.Elementwise() == nil && !slices.Equal(a.Shape, shape) {
		return 0, false
	}
	at, size := 0, 1
	for d := 1; d <= len(shape); d++ {
		n := shape[len(shape)-d]
		k := index % max(1, n)
		index /= max(1, n)
		if d > len(a.Shape) {
			continue
		}
		if own := a.Shape[len(a.Shape)-d]; own > 1 {
			at += k * size
			size *= own
		}
	}
	if at >= len(a.Data) {
		return 0, false
	}
	return a.Data[at], true
}

// values are a result's, read from the device.
type values struct {
	dtype tensor.DType
	shape []int
	data  []float64
}

func valuesOf(t *tensor.Tensor) (v values, err error) {
	if err := t.Err(); err != nil {
		return v, err
	}
	v = values{dtype: t.DType(), shape: t.Shape()}
	v.data, err = t.Detach().CPU().Float64s()
	return v, err
}

func (x *run) compareOutput(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs, i int, t *tensor.Tensor, want tensor.Array) error {
	got, err := valuesOf(t)
	if err != nil {
		return err
	}
	return x.compareValues(op, in, attrs, i, got, want)
}

func (x *run) compareValues(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs, i int, got values, want tensor.Array) (err error) {
	if !slices.Equal(got.shape, want.Shape) {
		return fmt.Errorf("result %d has shape %v, the reference %v", i, got.shape, want.Shape)
	}
	d := got.dtype
	if e := op.Elementwise(); e != nil {
		if w := expectedDType(e, in, attrs); d != w {
			return fmt.Errorf("the result is %s, expected %s", d, w)
		}
	} else if want.DType != tensor.InvalidDType && !want.DType.IsFloat() && d != want.DType {
		return fmt.Errorf("result %d is %s, the reference %s", i, d, want.DType)
	}
	ref := want.Data
	if !d.IsFloat() {
		ref = make([]float64, len(want.Data))
		for k, v := range want.Data {
			ref[k] = wrapped(d, v)
		}
	}
	b := boundOf(op, x.info.API)
	c := comparison{what: fmt.Sprintf("result %d", i), dtype: d, bound: b, coarse: coarsest(d, in)}
	if c.scale, err = scalesOf(op, b, in, attrs, i, want); err != nil {
		return err
	}
	m, err := c.check(got.data, ref)
	x.add(m)
	return err
}

// coarsest returns the floating-point dtype of the least precision among a result and the operands: what the parts of a composition
// are rounded to.
func coarsest(d tensor.DType, in []tensor.Array) tensor.DType {
	for _, a := range in {
		if a.DType.IsFloat() && (!d.IsFloat() || formats[a.DType].eps > formats[d].eps) {
			d = a.DType
		}
	}
	return d
}

// expectedDType is the dtype rule of elementwise rows, stated anew: PyTorch's.
func expectedDType(e *tensor.Elementwise, in []tensor.Array, attrs tensor.Attrs) tensor.DType {
	if e.DType == tensor.ToBool {
		return tensor.Bool
	}
	d := tensor.InvalidDType
	for i, a := range in {
		if !slices.Contains(e.Bools, i) {
			d = a.DType // the generated operands have one dtype
		}
	}
	if d.IsFloat() {
		return d
	}
	for _, p := range e.Params {
		v := attrs.Float(p, 0)
		switch {
		case math.IsInf(v, 0):
		case v != math.Trunc(v):
			return tensor.Float32
		case d == tensor.Bool:
			d = tensor.Int64
		}
	}
	if e.DType == tensor.PromoteFloat {
		return tensor.Float32
	}
	return d
}

// scalesOf returns what the errors of result i are judged by.
func scalesOf(op *tensor.OpInfo, b bound, in []tensor.Array, attrs tensor.Attrs, i int, want tensor.Array) (func(int) scale, error) {
	largest := func(data []float64) float64 {
		m := 0.0
		for _, v := range data {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				m = math.Max(m, math.Abs(v))
			}
		}
		return m
	}
	switch b.kind {
	case composedBound:
		return func(k int) scale {
			var s scale
			for _, a := range in {
				if v, ok := operandAt(a, want.Shape, k, op); ok && !math.IsInf(v, 0) && !math.IsNaN(v) {
					s.operand = math.Max(s.operand, math.Abs(v))
				}
			}
			return s
		}, nil
	case toleranceBound:
		s := scale{largest: largest(want.Data)}
		for _, a := range in {
			s.operand = math.Max(s.operand, largest(a.Data))
		}
		return func(int) scale { return s }, nil
	case summedBound:
		abs := make([]tensor.Array, len(in))
		elements := 0
		for k, a := range in {
			abs[k] = a
			if !a.DType.IsFloat() {
				continue
			}
			elements = max(elements, len(a.Data))
			abs[k].Data = make([]float64, len(a.Data))
			for j, v := range a.Data {
				abs[k].Data[j] = math.Abs(v)
			}
		}
		sums, err := op.Ref(abs, attrs)
		if err != nil || len(sums) <= i {
			return nil, fmt.Errorf("the reference of absolute values: %w", err)
		}
		// The number of terms of a sum is not known here; it is at most the number of elements of the largest operand.
		terms := float64(elements)
		return func(k int) scale { return scale{sum: sums[i].Data[k], terms: terms} }, nil
	}
	return nil, nil
}

// errorSample runs operands that the operator must reject, at the call or when the value is needed.
func (x *run) errorSample(op *tensor.OpInfo, smp tensor.Sample) error {
	in, layouts := sampleOperands(smp, tensor.Float32, contiguous)
	err := x.scoped(func(s *tensor.Scope) error {
		ts := make([]*tensor.Tensor, len(in))
		for i, a := range in {
			ts[i] = place(s, a, layouts[i])
		}
		for _, t := range op.Call(ts, x.attrs(in, smp.Attrs)) {
			if t == nil {
				continue
			}
			if err := t.Err(); err != nil {
				return err
			}
			if _, err := t.Detach().CPU().Float64s(); err != nil {
				return err
			}
		}
		return nil
	})
	var te *tensor.Error
	if err != nil && (!errors.As(err, &te) || te.Op == "") {
		return fmt.Errorf("the error names no operator: %w", err)
	}
	return wantError(err, smp.Err)
}

// wantError asserts that err is there, is no panic, and names all parts.
func wantError(err error, parts ...string) error {
	if err == nil {
		return fmt.Errorf("no error; one that says %q was expected", parts)
	}
	for _, p := range parts {
		if strings.HasPrefix(err.Error(), "panic:") || !strings.Contains(err.Error(), p) {
			return fmt.Errorf("the error should say %q, but is: %w", p, err)
		}
	}
	return nil
}

// generatedErrors holds what every elementwise row must reject: shapes that do not broadcast, a wrong number of operands, a nil operand.
func (x *run) generatedErrors(op *tensor.OpInfo, row *tensor.Elementwise) error {
	return x.scopedQuiet(func(s *tensor.Scope) error {
		g := generate(op, tensor.Float32, x.rng(), []int{2, 3}, []int{4})
		ts := make([]*tensor.Tensor, len(g.in))
		for i, a := range g.in {
			ts[i] = place(s, a, contiguous)
		}
		if row.Arity > 1 {
			if err := wantError(op.Call(ts, g.attrs)[0].Err(), op.Name, "3", "4"); err != nil {
				return err
			}
		}
		if err := wantError(op.Call(append(ts, ts[0]), g.attrs)[0].Err(), op.Name, "operands"); err != nil {
			return err
		}
		ts[0] = nil
		return wantError(op.Call(ts, g.attrs)[0].Err(), op.Name, "nil")
	})
}

// scopedQuiet is scoped for cases that provoke errors: the scope's own is not one.
func (x *run) scopedQuiet(f func(s *tensor.Scope) error) error {
	s := tensor.NewScope(x.dev)
	defer s.Close()
	return f(s)
}
