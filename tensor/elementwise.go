package tensor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// DTypeRule says in which dtype an elementwise operator computes and what it returns.
type DTypeRule int

// The dtype rules. All start from the operands' promoted dtype ([ResultType]), which parameters with a fraction raise to
// float32.
const (
	Promote      DTypeRule = iota // the promoted dtype
	PromoteFloat                  // the promoted dtype; integers and bool become float32
	ToBool                        // computed in the promoted dtype, returned as bool
)

// Elementwise defines an operator whose result at one place depends on its operands at that place. Operands are
// broadcast and promoted to one dtype. Exactly one of Body and its kernel exists for all dtypes and devices.
type Elementwise struct {
	Name string
	Doc  string

	// Body computes an element from the operands' elements and then the parameters, all of one kind: F32 (also for float16
	// and bfloat16), F64, I32 (also for uint8 and bool) or I64. Values may be vectors: make constants with
	// [ir.Builder.ConstLike]. The result may also be of kind Bool.
	Body func(b *ir.Builder, in ...ir.Value) ir.Value

	// Grad returns the gradient for each operand in terms of operators, from the gradient dy of the result; nil entries
	// are zero. Gradients may have the broadcast shape. GradCall is the same with the result and the parameters at hand.
	// Without either the operator is not differentiable.
	Grad     func(dy *Tensor, in ...*Tensor) []*Tensor
	GradCall func(c *Call, dy *Tensor) []*Tensor

	// Ref is an independent reference in float64; it gets the operands and then the parameters.
	Ref func(in ...float64) float64

	Inputs  []string  // operand names; nil: a, b, c…
	Arity   int       // number of operands; 0: that of Inputs, else found by trying Body
	Params  []string  // names of scalar parameters, which are launch parameters of the kernel
	Default []float64 // values of parameters that attributes leave out; 0 where it has none
	Bools   []int     // operands that are conditions: Body sees them as Bool, and they take no part in promotion
	DType   DTypeRule
	Class   Class
	Samples []Sample

	// Domain bounds the random operands that tests use; zero values mean [-3, 3].
	Domain [2]float64
}

// Call is one application of an operator, as its gradient sees it.
type Call struct {
	In     []*Tensor
	Out    *Tensor
	Params []float64
	needs  []bool
}

// Needs reports whether the gradient of operand i is asked for.
func (c *Call) Needs(i int) bool { return i < len(c.needs) && c.needs[i] }

// OpFunc applies an operator to its operands.
type OpFunc func(in ...*Tensor) *Tensor

// DefineElementwise adds a row to the operator table and returns the operator. A definition that cannot work (no name, no
// body, a name that exists) is a programming error and panics.
func DefineElementwise(e Elementwise) OpFunc {
	op := defineElementwise(e)
	return func(in ...*Tensor) *Tensor { return applyElementwise(op, nil, in) }
}

// DefineElementwiseParams is [DefineElementwise] for an operator with scalar parameters.
func DefineElementwiseParams(e Elementwise) func(params []float64, in ...*Tensor) *Tensor {
	op := defineElementwise(e)
	return func(params []float64, in ...*Tensor) *Tensor { return applyElementwise(op, params, in) }
}

func defineElementwise(e Elementwise) *OpInfo {
	if e.Body == nil {
		panic(fmt.Sprintf("tensor: elementwise operator %q has no body", e.Name))
	}
	if e.Arity == 0 {
		e.Arity = len(e.Inputs)
	}
	if e.Arity == 0 {
		e.Arity = findArity(&e)
	}
	for i := len(e.Inputs); i < e.Arity; i++ {
		e.Inputs = append(e.Inputs, string(rune('a'+i)))
	}
	op := &OpInfo{Name: e.Name, Doc: e.Doc, Kind: KindElementwise, Class: e.Class, Inputs: e.Inputs, Params: e.Params,
		Samples: e.Samples, elementwise: &e}
	for range e.Arity {
		op.Differentiable = append(op.Differentiable, e.Grad != nil || e.GradCall != nil)
	}
	for _, i := range e.Bools {
		op.Differentiable[i] = false
	}
	op.Call = func(in []*Tensor, attrs Attrs) []*Tensor {
		params := make([]float64, len(e.Params))
		for i, p := range e.Params {
			params[i] = attrs.Float(p, e.fallback(i))
		}
		return []*Tensor{applyElementwise(op, params, in)}
	}
	if e.Ref != nil {
		op.Ref = e.reference
	}
	return register(op)
}

// findArity returns the smallest number of operands with which the body does not reach past them.
func findArity(e *Elementwise) int {
	for n := 1; n <= 8; n++ {
		if tryBody(e, n) {
			return n
		}
	}
	panic(fmt.Sprintf("tensor: the body of elementwise operator %q fails with up to 8 operands", e.Name))
}

func tryBody(e *Elementwise, n int) (ok bool) {
	defer func() { ok = recover() == nil && ok }()
	b := ir.NewBuilder("arity", 1, 1, 1)
	in := make([]ir.Value, n+len(e.Params))
	for i := range in {
		in[i] = b.F32(1)
	}
	return e.Body(b, in...) != nil
}

func (e *Elementwise) fallback(param int) float64 {
	if param < len(e.Default) {
		return e.Default[param]
	}
	return 0
}

// reference evaluates Ref over broadcast arrays.
func (e *Elementwise) reference(in []Array, attrs Attrs) ([]Array, error) {
	shapes := make([][]int, len(in))
	for i, a := range in {
		shapes[i] = a.Shape
	}
	shape, err := BroadcastShapes(shapes...)
	if err != nil {
		return nil, err
	}
	out := Array{Shape: shape, Data: make([]float64, Numel(shape))}
	args := make([]float64, len(in), len(in)+len(e.Params))
	for i, p := range e.Params {
		args = append(args, attrs.Float(p, e.fallback(i)))
	}
	for i := range out.Data {
		for j, a := range in {
			k, rest := 0, i
			strides := broadcastStrides(a.Shape, contiguousStrides(a.Shape), shape)
			for d := len(shape) - 1; d >= 0; d-- {
				k += rest % shape[d] * strides[d]
				rest /= shape[d]
			}
			args[j] = a.Data[k]
		}
		out.Data[i] = e.Ref(args...)
	}
	return []Array{out}, nil
}

// applyElementwise checks the operands, records the kernel and its gradient, and returns the result.
func applyElementwise(op *OpInfo, params []float64, in []*Tensor) *Tensor {
	e := op.elementwise
	c := begin(op, in...)
	if c.err != nil {
		return c.failed()
	}
	if len(c.in) != e.Arity {
		return c.fail("", fmt.Errorf("takes %d operands, got %d", e.Arity, len(c.in)))
	}
	if len(params) != len(e.Params) {
		return c.fail("", fmt.Errorf("takes %d parameters %v, got %d", len(e.Params), e.Params, len(params)))
	}
	if a, gen := c.eng.applied.find(op, c.in, params); a != nil {
		return e.record(c, a, gen, params)
	}
	a, failure := e.rules(c, params)
	if failure != nil {
		return failure
	}
	c.eng.applied.add(a, c.in)
	return e.record(c, a, a.gen, params)
}

// record makes the result, and records the kernel and its gradient.
func (e *Elementwise) record(c *call, a *applied, gen *lib.Elementwise, params []float64) *Tensor {
	out := newTensor(c.newStorage(a.dtype, Numel(a.shape)), a.shape, a.strides, 0, a.dtype, c.scope)
	r := c.nodeFor(out)
	r.base = a.gen
	bufs := r.bufs[:0]
	for _, t := range c.in {
		bufs = append(bufs, binding{st: t.ref.st})
	}
	r.step[0] = step{gen, append(bufs, binding{st: out.ref.st, write: true})}
	r.steps = r.step[:]
	c.add(&r.node, out)
	if (e.Grad != nil || e.GradCall != nil) && c.needsGrad() {
		c.differentiable([]*Tensor{out}, params, e.backward)
	}
	return out
}

// rules works out the result and the kernel for the operands of a call, or returns the failed result.
func (e *Elementwise) rules(c *call, params []float64) (*applied, *Tensor) {
	a := &applied{op: c.op, params: slices.Clone(params)}
	shapes := make([][]int, len(c.in))
	var promoted []*Tensor
	for i, t := range c.in {
		a.operands = append(a.operands, layout{t.dtype, t.shape, t.strides, t.offset})
		shapes[i] = t.shape
		if !slices.Contains(e.Bools, i) {
			promoted = append(promoted, t)
		} else if t.dtype != Bool && t.dtype != Uint8 {
			return nil, c.fail("compare to get one, or cast to bool", errorOf(ErrDType, "operand %s must be bool, not %s", c.operandName(i), t.dtype))
		}
	}
	shape, err := BroadcastShapes(shapes...)
	if err != nil {
		return nil, c.fail("", &kindError{ErrShape, err.Error()})
	}
	if _, err := checkShape(shape); err != nil {
		return nil, c.fail("", err)
	}
	a.float = ResultType(promoted...).IsFloat()
	dtype := resultWithParams(promoted, params, e.DType)
	kind := dtype.computeKind()
	if e.DType == ToBool {
		dtype = Bool
	}
	if (kind == ir.F64 || dtype == Float64) && !c.eng.target.Caps.F64 {
		return nil, c.fail("use float32", errorOf(ErrDType, "%s has no double precision", c.eng.name))
	}
	a.shape, a.strides, a.dtype, a.kind = shape, contiguousStrides(shape), dtype, kind
	a.gen = e.kernel(c.in, shape, kind, dtype, params)
	return a, nil
}

// resultWithParams is the dtype that operands and scalar parameters compute in.
func resultWithParams(ts []*Tensor, params []float64, rule DTypeRule) DType {
	d := ResultType(ts...)
	for _, p := range params {
		switch {
		case d.IsFloat():
		case math.IsInf(p, 0): // no bound, for integers too
		case p != math.Trunc(p):
			d = Float32
		case d == Bool:
			d = Int64
		}
	}
	if d == InvalidDType || rule == PromoteFloat && !d.IsFloat() {
		d = Float32
	}
	return d
}

// operandOf describes a tensor broadcast to a shape, for a kernel.
func operandOf(t *Tensor, shape []int) lib.Operand {
	o := t.dtype.operand()
	o.Strides = broadcastStrides(t.shape, t.strides, shape)
	o.Offset = t.offset
	return o
}

// kernel makes the kernel's spec. One tensor in two places is bound once for each.
func (e *Elementwise) kernel(in []*Tensor, shape []int, kind ir.Kind, out DType, params []float64) *lib.Elementwise {
	g := &lib.Elementwise{Name: e.Name, Ops: []string{e.Name}, BodyKey: e.Name + "|" + kind.String(), Shape: shape,
		Out: []lib.Operand{out.operand()}}
	for _, t := range in {
		g.In = append(g.In, operandOf(t, shape))
	}
	for _, p := range params {
		kinds, bits := scalarParam(kind, p)
		g.Scalars, g.ScalarBits = append(g.Scalars, kinds...), append(g.ScalarBits, bits...)
	}
	outKind := g.Out[0].ValueKind()
	g.Body = func(b *ir.Builder, in, scalars []ir.Value) []ir.Value {
		args := make([]ir.Value, 0, len(in)+len(params))
		for i, v := range in {
			if slices.Contains(e.Bools, i) {
				args = append(args, b.Convert(v, ir.Bool))
			} else {
				args = append(args, b.Convert(v, kind))
			}
		}
		for range params {
			var v ir.Value
			v, scalars = scalarValue(b, kind, scalars)
			args = append(args, v)
		}
		return []ir.Value{b.Convert(e.Body(b, args...), outKind)}
	}
	return g
}

// scalarParam splits a parameter into launch parameters: one word, or two for 64-bit kinds.
func scalarParam(kind ir.Kind, v float64) ([]ir.Kind, []uint32) {
	switch kind {
	case ir.F32:
		return []ir.Kind{ir.F32}, []uint32{uint32(ir.ConstBits(ir.F32, v))}
	case ir.I32:
		return []ir.Kind{ir.I32}, []uint32{uint32(ir.ConstBits(ir.I32, min(max(v, math.MinInt32), math.MaxInt32)))}
	case ir.I64:
		if v >= math.MaxInt64 {
			return []ir.Kind{ir.U32, ir.U32}, []uint32{math.MaxUint32, math.MaxInt32}
		}
		v = max(v, math.MinInt64)
	}
	bits := ir.ConstBits(kind, v)
	return []ir.Kind{ir.U32, ir.U32}, []uint32{uint32(bits), uint32(bits >> 32)}
}

// scalarValue is the inverse of scalarParam in a kernel; it returns the scalars that are left.
func scalarValue(b *ir.Builder, kind ir.Kind, scalars []ir.Value) (ir.Value, []ir.Value) {
	if len(scalars) == 0 || (kind == ir.I64 || kind == ir.F64) && len(scalars) < 2 {
		b.Fail(errors.New("a scalar parameter is missing"))
		return b.ConstBits(ir.Scalar(kind), 0), nil
	}
	if kind != ir.I64 && kind != ir.F64 {
		return scalars[0], scalars[1:]
	}
	lo, hi := b.Convert(scalars[0], ir.I64), b.Convert(scalars[1], ir.I64)
	v := b.Or(lo, b.Shl(hi, b.ConstLike(hi, 32)))
	return b.BitCast(v, kind), scalars[2:]
}

// backward calls the row's gradient and fits the results to the operands.
func (e *Elementwise) backward(c *Call, dy *Tensor) []*Tensor {
	var gs []*Tensor
	if e.GradCall != nil {
		gs = e.GradCall(c, dy)
	} else {
		gs = e.Grad(dy, c.In...)
	}
	for i, g := range gs {
		if g != nil && i < len(c.In) {
			gs[i] = sumTo(g, c.In[i].shape)
		}
	}
	return gs
}

// docOf returns the first line of an operator's documentation, for tables.
func docOf(o *OpInfo) string {
	line, _, _ := strings.Cut(o.Doc, "\n")
	return line
}
