package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// Reduction says how a loss combines its terms.
type Reduction int

// The reductions of a loss.
const (
	ReductionMean Reduction = iota
	ReductionSum
	ReductionNone
)

// String returns PyTorch's name of the reduction.
func (r Reduction) String() string {
	switch r {
	case ReductionMean:
		return "mean"
	case ReductionSum:
		return "sum"
	case ReductionNone:
		return "none"
	}
	return fmt.Sprintf("reduction(%d)", int(r))
}

func reductionOf(a Attrs) Reduction {
	switch a.String("reduction", "mean") {
	case "sum":
		return ReductionSum
	case "none":
		return ReductionNone
	}
	return ReductionMean
}

// apply combines the terms of a loss.
func (r Reduction) apply(t *Tensor) *Tensor {
	switch r {
	case ReductionSum:
		return t.Sum()
	case ReductionNone:
		return t
	}
	return t.Mean()
}

// CrossEntropyOptions are the options of [CrossEntropy]; the zero value has PyTorch's defaults.
type CrossEntropyOptions struct {
	Weight         *Tensor // one weight a class, or nil
	Reduction      Reduction
	LabelSmoothing float64
	IgnoreIndex    *int64 // the target that does not count; nil means PyTorch's default of -100
}

var _ = register(&OpInfo{Name: "cross_entropy", Kind: KindComposite, Inputs: []string{"x", "target", "weight"}, Differentiable: []bool{true, true, false},
	Doc: "negative log likelihood of log_softmax over dimension 1, of classes or class probabilities",
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		o := CrossEntropyOptions{Reduction: reductionOf(a), LabelSmoothing: a.Float("label_smoothing", 0)}
		if a.Has("ignore_index") {
			v := int64(a.Int("ignore_index", -100))
			o.IgnoreIndex = &v
		}
		if len(in) > 2 {
			o.Weight = in[2]
		}
		return []*Tensor{CrossEntropy(in[0], in[1], o)}
	}})

// CrossEntropy returns the cross entropy of logits [C], [N, C] or [N, C, d…] with target: classes (integers, of the logits'
// shape without C) or class probabilities (floats, of the logits' shape). The mean is over the weights of the classes
// that count, as in PyTorch. A class outside 0 to C-1 that is not the ignored one is an error, which comes with the value
// or when the scope closes.
func CrossEntropy(logits, target *Tensor, opts CrossEntropyOptions) *Tensor {
	in := []*Tensor{logits, target}
	if opts.Weight != nil {
		in = append(in, opts.Weight)
	}
	c := begin(LookupOp("cross_entropy"), in...)
	if c.err != nil {
		return c.failed()
	}
	switch s := opts.LabelSmoothing; {
	case !(s >= 0 && s <= 1):
		return c.fail("", fmt.Errorf("label_smoothing must be between 0.0 and 1.0, got %v", s))
	case len(logits.shape) == 0:
		return c.shapeFail("the logits need a class dimension")
	case !logits.dtype.IsFloat():
		return c.fail("", errorOf(ErrDType, "the logits must be floats, not %s", logits.dtype))
	}
	dim := min(1, len(logits.shape)-1)
	logits, target = c.in[0], c.in[1]
	classes := logits.shape[dim]
	rows := slices.Delete(slices.Clone(logits.shape), dim, dim+1)
	if w := opts.Weight; w != nil && (!slices.Equal(w.shape, []int{classes}) || !w.dtype.IsFloat()) {
		return c.shapeFail("weight tensor should be defined either for all %d classes or no classes but got shape %v", classes, w.shape)
	}
	if target.dtype.IsFloat() {
		if !sameShape(target, logits) {
			return c.shapeFail("class probabilities must have the logits' shape %v, got %v", logits.shape, target.shape)
		}
		return crossEntropyProb(logits, target, opts, dim)
	}
	if target.dtype == Bool || !slices.Equal(target.shape, rows) {
		return c.shapeFail("expected target of integers with shape %v for logits of shape %v, got %s %v", rows, logits.shape, target.dtype, target.shape)
	}
	logp := logits.LogSoftmax(dim)
	if logp.err != nil {
		return logp
	}
	q := c.classTargets(logp, dim, opts, opts.LabelSmoothing)
	if q.err != nil {
		return q
	}
	var loss *Tensor
	switch opts.Reduction {
	case ReductionSum:
		loss = reduce("nll", []*Tensor{logp, q}, nil, false)
	case ReductionNone:
		loss = reduce("nll", []*Tensor{logp, q}, []int{dim}, false)
	default:
		norm := q
		if opts.LabelSmoothing != 0 {
			norm = c.classTargets(logp, dim, opts, 0)
		}
		weights := norm.Sum(dim) // before the sum over rows, so that one kernel has both
		loss = meanOf(logp, q, dim, func(sum *Tensor) *Tensor { return sum.Div(weights.Sum()) })
	}
	if loss.err == nil {
		c.checkClasses(loss, classes, opts.ignore())
	}
	return loss
}

// meanOf divides the sum of -q*logp by div, in logp's dtype. The sum of short floats is kept in float32: it may be out of their range
// where the mean is not. Classes are added up first, which the kernel of logp can do.
func meanOf(logp, q *Tensor, dim int, div func(sum *Tensor) *Tensor) *Tensor {
	terms, _ := wide(logp)
	return div(reduce("nll", []*Tensor{terms, q}, []int{dim}, false).Sum()).Cast(logp.dtype)
}

func (o *CrossEntropyOptions) ignore() int64 {
	if o.IgnoreIndex != nil {
		return *o.IgnoreIndex
	}
	return -100
}

// classTargets returns what multiplies -log p: weight*((1-smoothing)*[class = target] + smoothing/C), and 0 where the
// target is ignored. Without smoothing its sum is the sum of the weights of the targets that count.
func (c *call) classTargets(logp *Tensor, dim int, opts CrossEntropyOptions, smoothing float64) *Tensor {
	dtype := Float32
	if logp.dtype == Float64 {
		dtype = Float64
	}
	q := c.output(slices.Clone(logp.shape), dtype)
	if q.err != nil {
		return q
	}
	target, kind := c.in[1], dtype.computeKind()
	classes, ignore := max(1, logp.shape[dim]), uint64(opts.ignore())
	inner := max(1, Numel(logp.shape[dim+1:]))
	g := &lib.Elementwise{Name: "class_targets", Ops: []string{"cross_entropy"}, Shape: logp.shape, Index: true, Out: []lib.Operand{dtype.operand()},
		BodyKey:    fmt.Sprintf("class_targets|%v|%s", opts.Weight != nil, kind),
		Scalars:    []ir.Kind{ir.U32, ir.U32, ir.U32, ir.U32},
		ScalarBits: []uint32{uint32(classes), uint32(inner), uint32(ignore), uint32(ignore >> 32)}}
	for _, v := range []float64{1 - smoothing, smoothing / float64(classes)} {
		kinds, bits := scalarParam(kind, v)
		g.Scalars, g.ScalarBits = append(g.Scalars, kinds...), append(g.ScalarBits, bits...)
	}
	label := target.dtype.operand()
	label.Strides, label.Offset = slices.Insert(slices.Clone(target.strides), dim, 0), target.offset
	g.In = []lib.Operand{label}
	bufs := []binding{{st: target.ref.st}}
	weighted := opts.Weight != nil
	if weighted {
		w := c.in[2]
		o := w.dtype.operand()
		o.Strides, o.Offset = make([]int, len(logp.shape)), w.offset
		o.Strides[dim] = w.strides[0]
		g.In = append(g.In, o)
		bufs = append(bufs, binding{st: w.ref.st})
	}
	g.Body = func(b *ir.Builder, in, s []ir.Value) []ir.Value {
		index := in[len(in)-1]
		class := b.Convert(b.Rem(b.Div(index, s[1]), s[0]), ir.I64)
		label := b.Convert(in[0], ir.I64)
		skip, rest := scalarValue(b, ir.I64, s[2:])
		most, rest := scalarValue(b, kind, rest)
		every, _ := scalarValue(b, kind, rest)
		v := b.Select(b.Eq(class, label), b.Add(most, every), every)
		if weighted {
			v = b.Mul(v, b.Convert(in[1], kind))
		}
		return []ir.Value{b.Select(b.Eq(label, skip), b.ConstLike(v, 0), v)}
	}
	c.run(g, bufs, q)
	return q
}

// checkClasses asserts that the targets are classes.
func (c *call) checkClasses(loss *Tensor, classes int, ignore int64) {
	target := c.in[1]
	n := Numel(target.shape)
	if n == 0 {
		return
	}
	const none = math.MinInt64
	st := c.eng.newStorage(Int64, 1)
	val := newTensor(st, nil, nil, 0, Int64, nil)
	k := &lib.Reduce{Name: "class_range", Ops: []string{"cross_entropy"}, BodyKey: "class_range", Op: lib.ReduceMax, Outer: 1, N: n, Inner: 1,
		In: []lib.Operand{target.dtype.operand()}, Out: Int64.operand(),
		Scalars: []ir.Kind{ir.I32, ir.U32, ir.U32}, ScalarBits: []uint32{uint32(classes), uint32(uint64(ignore)), uint32(uint64(ignore) >> 32)},
		Prologue: func(b *ir.Builder, in, s []ir.Value) ir.Value {
			label := b.Convert(in[0], ir.I64)
			skip, _ := scalarValue(b, ir.I64, s[1:])
			bad := b.Or(b.Lt(label, b.ConstLike(label, 0)), b.Ge(label, b.Convert(s[0], ir.I64)))
			bad = b.And(bad, b.Ne(label, skip))
			return b.Select(bad, label, b.ConstBits(label.Type, 1<<63))
		}}
	c.run(k, []binding{c.dense(target)}, val)
	where := c.site
	c.assert(loss, val, func(v int64) error {
		if v == none {
			return nil
		}
		e := &Error{Op: c.op.Name, Operands: describeOperands(c.op.Inputs, c.in),
			Err: fmt.Errorf("target %d is out of bounds: the logits have %d classes, so targets are 0 to %d, or %d to be ignored", v, classes, classes-1, ignore)}
		e.File, e.Line = where.resolve()
		return trap(e)
	})
}

// crossEntropyProb is the cross entropy for class probabilities; the mean is over the rows.
func crossEntropyProb(logits, target *Tensor, opts CrossEntropyOptions, dim int) *Tensor {
	logp := logits.LogSoftmax(dim)
	if logp.err != nil {
		return logp
	}
	q := target.Cast(logp.dtype)
	classes := logits.shape[dim]
	if s := opts.LabelSmoothing; s != 0 {
		q = q.MulScalar(1 - s).AddScalar(s / float64(max(1, classes)))
	}
	if opts.Weight != nil {
		shape := make([]int, len(logits.shape))
		for i := range shape {
			shape[i] = 1
		}
		shape[dim] = classes
		q = q.Mul(opts.Weight.Reshape(shape...)).Cast(logp.dtype)
	}
	switch opts.Reduction {
	case ReductionNone:
		return reduce("nll", []*Tensor{logp, q}, []int{dim}, false)
	case ReductionSum:
		return reduce("nll", []*Tensor{logp, q}, nil, false)
	}
	return meanOf(logp, q, dim, func(sum *Tensor) *Tensor {
		return sum.DivScalar(float64(Numel(logits.shape)) / float64(max(1, classes)))
	})
}

var _ = register(&OpInfo{Name: "mse_loss", Doc: "(x - target)^2, reduced", Kind: KindComposite, Class: F32, Inputs: []string{"x", "target"},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return []*Tensor{MSELoss(in[0], in[1], reductionOf(a))} }})

// MSELoss returns the squared differences of x and target, reduced; the shapes are equal.
func MSELoss(x, target *Tensor, r Reduction) *Tensor {
	return pairLoss("mse_loss", x, target, r, func(d *Tensor) *Tensor { return d.Square() })
}

var _ = register(&OpInfo{Name: "l1_loss", Doc: "|x - target|, reduced", Kind: KindComposite, Class: F32, Inputs: []string{"x", "target"},
	Call: func(in []*Tensor, a Attrs) []*Tensor { return []*Tensor{L1Loss(in[0], in[1], reductionOf(a))} }})

// L1Loss returns the absolute differences of x and target, reduced; the shapes are equal.
func L1Loss(x, target *Tensor, r Reduction) *Tensor {
	return pairLoss("l1_loss", x, target, r, func(d *Tensor) *Tensor { return d.Abs() })
}

// pairLoss is a loss of the differences of two tensors of one shape.
func pairLoss(op string, x, target *Tensor, r Reduction, f func(d *Tensor) *Tensor) *Tensor {
	c := begin(LookupOp(op), x, target)
	if c.err != nil {
		return c.failed()
	}
	x, target = c.in[0], c.in[1]
	if !sameShape(x, target) {
		return c.shapeFail("the target's shape %v is different from the input's %v; they would be broadcast, which is seldom meant", target.shape, x.shape)
	}
	return r.apply(f(x.Sub(target)))
}
