package tensor

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
)

// This file has further losses.

// refReduce applies a reduction to terms.
func refReduce(a Attrs, terms Array) Array {
	sum := 0.0
	for _, v := range terms.Data {
		sum += v
	}
	switch a.String("reduction", "mean") {
	case "none":
		return terms
	case "mean":
		sum /= float64(len(terms.Data))
	case "batchmean":
		sum /= float64(terms.Shape[0])
	}
	return Array{Data: []float64{sum}}
}

// termSamples are samples of a loss of two tensors of one shape.
func termSamples(extra Attrs, x, target Array) []Sample {
	attrs := func(reduction string) Attrs {
		a := Attrs{"reduction": reduction}
		for k, v := range extra {
			a[k] = v
		}
		return a
	}
	return []Sample{valid("mean", attrs("mean"), x, target), valid("sum", attrs("sum"), x, target), valid("none", attrs("none"), x, target),
		invalid("the target's shape", nil, sampleArray(3, 4), sampleArray(4))}
}

// defineTermLoss defines a loss of the terms of two tensors of one shape.
func defineTermLoss(name, doc string, class Class, attr string, def float64, term func(x, y, p float64) float64, call func(x, y *Tensor, p float64, r Reduction) *Tensor, x, target Array) *OpInfo {
	var extra Attrs
	if attr != "" {
		extra = Attrs{attr: def * 0.7}
	}
	return defineOp(OpInfo{Name: name, Doc: doc, Kind: KindComposite, Class: class, Inputs: []string{"x", "target"},
		Call: func(in []*Tensor, a Attrs) []*Tensor {
			return one(call(in[0], in[1], a.Float(attr, def), reductionOf(a)))
		},
		Ref: refOne(func(in []Array, a Attrs) Array {
			return refReduce(a, makeArray(in[0].Shape, func(idx []int) float64 { return term(in[0].at(idx...), in[1].at(idx...), a.Float(attr, def)) }))
		}),
		Samples: termSamples(extra, x, target)})
}

var (
	_ = defineTermLoss("smooth_l1_loss", "d^2/(2 beta) where |d| < beta, else |d| - beta/2, for d = x - target", F32, "beta", 1, func(x, y, beta float64) float64 {
		if d := math.Abs(x - y); d < beta {
			return d * d / (2 * beta)
		} else {
			return d - beta/2
		}
	}, func(x, y *Tensor, p float64, r Reduction) *Tensor { return SmoothL1Loss(x, y, p, r) }, sampleArray(3, 4), positiveArray(3, 4))
	_ = defineTermLoss("huber_loss", "d^2/2 where |d| < delta, else delta*(|d| - delta/2), for d = x - target", F32, "delta", 1, func(x, y, delta float64) float64 {
		if d := math.Abs(x - y); d < delta {
			return d * d / 2
		} else {
			return delta * (d - delta/2)
		}
	}, func(x, y *Tensor, p float64, r Reduction) *Tensor { return HuberLoss(x, y, p, r) }, sampleArray(3, 4), positiveArray(3, 4))
)

var _ = DefineElementwiseParams(Elementwise{Name: "huber", Doc: "d^2/2 where |d| < delta, else delta*(|d| - delta/2)", Inputs: []string{"d"}, Params: []string{"delta"}, Default: []float64{1}, DType: PromoteFloat,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		size, delta, half := b.Abs(in[0]), in[1], b.ConstLike(in[0], 0.5)
		return b.Select(b.Lt(size, delta), b.Mul(half, b.Mul(size, size)), b.Mul(delta, b.Sub(size, b.Mul(half, delta))))
	},
	Ref: func(in ...float64) float64 {
		if d := math.Abs(in[0]); d < in[1] {
			return d * d / 2
		} else {
			return in[1] * (d - in[1]/2)
		}
	},
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		return []*Tensor{dy.Mul(c.In[0].Clamp(-c.Params[0], c.Params[0]))}
	}})

// SmoothL1Loss returns d^2/(2 beta) where |d| < beta and |d| - beta/2 elsewhere, for d = x - target, reduced; beta 0 is the L1 loss.
func SmoothL1Loss(x, target *Tensor, beta float64, r Reduction) *Tensor {
	if !(beta >= 0) {
		return begin(LookupOp("smooth_l1_loss"), x, target).fail("", fmt.Errorf("beta must not be negative, got %v", beta))
	}
	return pairLoss("smooth_l1_loss", x, target, r, func(d *Tensor) *Tensor {
		if beta == 0 {
			return d.Abs()
		}
		return applyParams("huber", []float64{beta}, d).DivScalar(beta)
	})
}

// HuberLoss returns d^2/2 where |d| < delta and delta*(|d| - delta/2) elsewhere, for d = x - target, reduced (Huber, 1964).
func HuberLoss(x, target *Tensor, delta float64, r Reduction) *Tensor {
	if !(delta > 0) {
		return begin(LookupOp("huber_loss"), x, target).fail("", fmt.Errorf("delta must be positive, got %v", delta))
	}
	return pairLoss("huber_loss", x, target, r, func(d *Tensor) *Tensor { return applyParams("huber", []float64{delta}, d) })
}

// --- binary cross entropy ---

var _ = DefineElementwise(Elementwise{Name: "bce_terms", Doc: "-(t*log(x) + (1-t)*log(1-x)), with the logarithms at least -100", Inputs: []string{"x", "target"}, Domain: [2]float64{0.1, 0.9}, DType: PromoteFloat,
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		x, t, one, low := in[0], in[1], b.ConstLike(in[0], 1), b.ConstLike(in[0], -100)
		return b.Neg(b.Add(b.Mul(t, b.MaxNaN(b.Log(x), low)), b.Mul(b.Sub(one, t), b.MaxNaN(b.Log1p(b.Neg(x)), low))))
	},
	Ref: func(in ...float64) float64 {
		return -(in[1]*math.Max(math.Log(in[0]), -100) + (1-in[1])*math.Max(math.Log1p(-in[0]), -100))
	},
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		x, t := c.In[0], c.In[1]
		return c.pick(func() *Tensor {
			// The denominator is at least 1e-12, as in PyTorch.
			return dy.Mul(x.Sub(t)).Div(x.Mul(x.Neg().AddScalar(1)).MaximumScalar(1e-12))
		}, func() *Tensor {
			return dy.Mul(x.Neg().Log1p().MaximumScalar(-100).Sub(x.Log().MaximumScalar(-100)))
		})
	}})

var errBCE = errors.New("binary_cross_entropy and BCELoss are unsafe to autocast. Many models use a sigmoid layer right before the binary cross entropy layer. " +
	"In this case, combine the two layers using bce_with_logits (BCEWithLogits), which is safe to autocast")

var _ = defineOp(OpInfo{Name: "bce", Doc: "binary cross entropy of probabilities: -(t*log(x) + (1-t)*log(1-x)), times weight, reduced", Kind: KindComposite, Class: Banned, Inputs: []string{"x", "target", "weight"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(BCELoss(in[0], in[1], operandAt(in, 2), reductionOf(a)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		return refReduce(a, makeArray(in[0].Shape, func(idx []int) float64 {
			x, t := in[0].at(idx...), in[1].at(idx...)
			v := -(t*math.Max(math.Log(x), -100) + (1-t)*math.Max(math.Log(1-x), -100))
			if len(in) > 2 {
				v *= in[2].at(idx...)
			}
			return v
		}))
	}),
	Samples: append(termSamples(nil, probabilities(3, 4), probabilities(3, 4)), valid("certain", nil, Array{Shape: []int{3}, Data: []float64{0, 1, 1}}, Array{Shape: []int{3}, Data: []float64{0, 1, 0}}))})

// probabilities returns values within (0, 1).
func probabilities(shape ...int) Array {
	a := sampleArray(shape...)
	for i, v := range a.Data {
		a.Data[i] = (v + 4.2) / 8.6
	}
	return a
}

// sameTarget checks the shapes of a loss and its optional weight, which must broadcast.
func (c *call) sameTarget(weight *Tensor) error {
	x, target := c.in[0], c.in[1]
	if !sameShape(x, target) {
		return errorOf(ErrShape, "the target's shape %v is different from the input's %v; they must be the same size", target.shape, x.shape)
	}
	if !x.dtype.IsFloat() {
		return errorOf(ErrDType, "the input must be of a floating-point dtype, got %s", x.dtype)
	}
	if weight != nil {
		if s, err := BroadcastShapes(weight.shape, x.shape); err != nil || !slices.Equal(s, x.shape) {
			return errorOf(ErrShape, "weight of shape %v does not broadcast to the input's %v", weight.shape, x.shape)
		}
	}
	return nil
}

// BCELoss returns the binary cross entropy of probabilities x, reduced: -(t*log(x) + (1-t)*log(1-x)) times weight, which may be nil. A
// logarithm counts as at least -100. It is an error under autocast; see [BCEWithLogits].
func BCELoss(x, target, weight *Tensor, r Reduction) *Tensor {
	c := begin(LookupOp("bce"), operands(2, x, target, weight)...)
	if c.err != nil {
		return c.failed()
	}
	if err := c.sameTarget(weight); err != nil {
		return c.fail("", err)
	}
	w, back := wide(c.in[0])
	loss := apply("bce_terms", w, widened(c.in[1]))
	if weight != nil {
		loss = loss.Mul(c.in[2])
	}
	return back(r.apply(loss))
}

var _ = DefineElementwise(Elementwise{Name: "softplus_neg", Doc: "log(1 + e^-x), without overflow", Inputs: []string{"x"}, DType: PromoteFloat, Class: F32,
	Body: body1(func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Add(b.MaxNaN(b.Neg(x), b.ConstLike(x, 0)), b.Log1p(b.Exp(b.Neg(b.Abs(x)))))
	}),
	Ref:  ref1(func(x float64) float64 { return math.Max(-x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }),
	Grad: func(dy *Tensor, in ...*Tensor) []*Tensor { return []*Tensor{dy.Mul(in[0].Neg().Sigmoid()).Neg()} }})

var _ = defineOp(OpInfo{Name: "bce_with_logits", Doc: "binary cross entropy of sigmoid(x), without overflow; pos_weight weighs the positive class; times weight, reduced", Kind: KindComposite, Class: F32,
	Inputs: []string{"x", "target", "pos_weight", "weight"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(BCEWithLogits(in[0], in[1], BCEOptions{PosWeight: operandAt(in, 2), Weight: operandAt(in, 3), Reduction: reductionOf(a)}))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		return refReduce(a, makeArray(in[0].Shape, func(idx []int) float64 {
			x, t, p, w := in[0].at(idx...), in[1].at(idx...), 1.0, 1.0
			if len(in) > 2 {
				p = in[2].at(idx[len(idx)-len(in[2].Shape):]...)
			}
			if len(in) > 3 {
				w = in[3].at(idx[len(idx)-len(in[3].Shape):]...)
			}
			soft := func(v float64) float64 { return math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))) }
			return w * (t*p*soft(-x) + (1-t)*soft(x))
		}))
	}),
	Samples: append(termSamples(nil, sampleArray(3, 4), probabilities(3, 4)),
		valid("pos_weight", nil, sampleArray(3, 4), probabilities(3, 4), positiveArray(4)),
		valid("both weights", nil, sampleArray(3, 4), probabilities(3, 4), positiveArray(4), positiveArray(3, 4)))})

// BCEOptions are the options of [BCEWithLogits]; the zero value has PyTorch's defaults.
type BCEOptions struct {
	PosWeight *Tensor // the weight of the positive class, broadcast; nil: 1
	Weight    *Tensor // the weight of each element, broadcast; nil: 1
	Reduction Reduction
}

// BCEWithLogits returns the binary cross entropy of sigmoid(x), computed without overflow, reduced.
func BCEWithLogits(x, target *Tensor, o BCEOptions) *Tensor {
	c := begin(LookupOp("bce_with_logits"), operands(2, x, target, o.PosWeight, o.Weight)...)
	if c.err != nil {
		return c.failed()
	}
	for _, w := range []*Tensor{o.PosWeight, o.Weight} {
		if err := c.sameTarget(w); err != nil {
			return c.fail("", err)
		}
	}
	v, back := wide(c.in[0])
	t := widened(c.in[1])
	// (1-t)*x + (1 + (p-1)*t)*log(1 + e^-x)
	soft := apply("softplus_neg", v)
	k := 2
	if o.PosWeight != nil {
		soft = soft.Mul(widened(c.in[k]).AddScalar(-1).Mul(t).AddScalar(1))
		k++
	}
	loss := v.Sub(v.Mul(t)).Add(soft)
	if o.Weight != nil {
		loss = loss.Mul(widened(c.in[k]))
	}
	return back(o.Reduction.apply(loss))
}

// --- divergence and likelihood ---

var _ = DefineElementwise(Elementwise{Name: "xlogy", Doc: "a*log(b), and 0 where a is 0", Inputs: []string{"a", "b"}, DType: PromoteFloat, Domain: [2]float64{0.1, 3},
	Body: func(b *ir.Builder, in ...ir.Value) ir.Value {
		zero := b.ConstLike(in[0], 0)
		none := b.And(b.Eq(in[0], zero), b.Not(b.IsNaN(in[1])))
		return b.Select(none, zero, b.Mul(in[0], b.Log(in[1])))
	},
	Ref: func(in ...float64) float64 {
		if in[0] == 0 && !math.IsNaN(in[1]) {
			return 0
		}
		return in[0] * math.Log(in[1])
	},
	GradCall: func(c *Call, dy *Tensor) []*Tensor {
		a, b := c.In[0], c.In[1]
		return c.pick(func() *Tensor { return masked(a.EqScalar(0).LogicalAnd(b.LeScalar(0)).LogicalNot(), dy.Mul(b.Log())) },
			func() *Tensor { return masked(a.NeScalar(0), dy.Mul(a).Div(b)) })
	}})

var _ = defineOp(OpInfo{Name: "kl_div", Doc: "target*(log(target) - x) for log-probabilities x, reduced; batchmean divides the sum by the batch", Kind: KindComposite, Class: F32, Inputs: []string{"x", "target"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		if a.String("reduction", "mean") == "batchmean" {
			t := KLDiv(in[0], in[1], a.Bool("log_target"), ReductionSum)
			return one(t.DivScalar(float64(max(1, in[0].Size(0)))))
		}
		return one(KLDiv(in[0], in[1], a.Bool("log_target"), reductionOf(a)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		return refReduce(a, makeArray(in[0].Shape, func(idx []int) float64 {
			x, t := in[0].at(idx...), in[1].at(idx...)
			switch {
			case a.Bool("log_target"):
				return math.Exp(t) * (t - x)
			case t == 0:
				return 0
			}
			return t * (math.Log(t) - x)
		}))
	}),
	Samples: append(termSamples(nil, sampleArray(3, 4), probabilities(3, 4)),
		valid("batchmean", Attrs{"reduction": "batchmean"}, sampleArray(3, 4), probabilities(3, 4)),
		valid("log_target", Attrs{"log_target": true}, sampleArray(3, 4), sampleArray(3, 4)),
		valid("nothing there", nil, sampleArray(2), Array{Shape: []int{2}, Data: []float64{0, 1}}))})

// KLDiv returns the terms of the Kullback-Leibler divergence of target from the log-probabilities x, target*(log(target) - x), reduced. With
// logTarget target has log-probabilities too. For the divergence itself use ReductionSum and divide by the batch.
func KLDiv(x, target *Tensor, logTarget bool, r Reduction) *Tensor {
	c := begin(LookupOp("kl_div"), x, target)
	if c.err != nil {
		return c.failed()
	}
	if err := c.sameTarget(nil); err != nil {
		return c.fail("", err)
	}
	v, back := wide(c.in[0])
	t := widened(c.in[1])
	if logTarget {
		return back(r.apply(t.Exp().Mul(t.Sub(v))))
	}
	return back(r.apply(apply("xlogy", t, t).Sub(t.Mul(v))))
}

var _ = defineOp(OpInfo{Name: "nll_loss", Doc: "negative log likelihood of classes, from log-probabilities over dimension 1", Kind: KindComposite, Class: F32, Inputs: []string{"x", "target", "weight"},
	Differentiable: []bool{true, false, false},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		o := CrossEntropyOptions{Reduction: reductionOf(a), Weight: operandAt(in, 2)}
		if a.Has("ignore_index") {
			v := int64(a.Int("ignore_index", -100))
			o.IgnoreIndex = &v
		}
		return one(NLLLoss(in[0], in[1], o))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		x, target := in[0], in[1]
		d := min(1, len(x.Shape)-1)
		total, weights := 0.0, 0.0
		terms := makeArray(target.Shape, func(idx []int) float64 {
			class := int(target.at(idx...))
			if class == a.Int("ignore_index", -100) {
				return 0
			}
			w := 1.0
			if len(in) > 2 {
				w = in[2].Data[class]
			}
			v := -w * x.at(slices.Insert(slices.Clone(idx), d, class)...)
			total, weights = total+v, weights+w
			return v
		})
		switch a.String("reduction", "mean") {
		case "none":
			return terms
		case "sum":
			return Array{Data: []float64{total}}
		}
		return Array{Data: []float64{total / weights}}
	}),
	Samples: []Sample{
		valid("mean", nil, sampleArray(3, 4), ints64([]int{3}, 0, 3, 1)),
		valid("weight, ignored", Attrs{"ignore_index": 1, "reduction": "mean"}, sampleArray(3, 4), ints64([]int{3}, 0, 3, 1), positiveArray(4)),
		valid("none", Attrs{"reduction": "none"}, sampleArray(2, 3, 2), ints64([]int{2, 2}, 0, 2, 1, 1)),
		valid("sum", Attrs{"reduction": "sum"}, sampleArray(3), ints64(nil, 2)),
		invalid("target 4 is out of bounds", nil, sampleArray(3, 4), ints64([]int{3}, 0, 4, 1)),
		invalid("expected target of integers", nil, sampleArray(3, 4), ints64([]int{2}, 0, 1)),
	}})

// NLLLoss returns the negative log likelihood of target classes, from log-probabilities of shape [C], [N, C] or [N, C, d…]; see
// [CrossEntropy], whose LabelSmoothing does not count here. The mean is over the weights of the classes that count.
func NLLLoss(logp, target *Tensor, o CrossEntropyOptions) *Tensor {
	c := begin(LookupOp("nll_loss"), operands(2, logp, target, o.Weight)...)
	if c.err != nil {
		return c.failed()
	}
	if len(logp.shape) == 0 || !logp.dtype.IsFloat() {
		return c.fail("", errorOf(ErrDType, "the log-probabilities must be floats with a class dimension, got %s", describe(logp)))
	}
	dim := min(1, len(logp.shape)-1)
	classes := logp.shape[dim]
	rows := slices.Delete(slices.Clone(logp.shape), dim, dim+1)
	if w := o.Weight; w != nil && (!slices.Equal(w.shape, []int{classes}) || !w.dtype.IsFloat()) {
		return c.shapeFail("weight tensor should be defined either for all %d classes or no classes but got shape %v", classes, w.shape)
	}
	if indexDType(target) != nil || !slices.Equal(target.shape, rows) {
		return c.shapeFail("expected target of integers with shape %v for log-probabilities of shape %v, got %s %v", rows, logp.shape, target.dtype, target.shape)
	}
	x := c.in[0]
	q := c.classTargets(x, dim, o, 0)
	if q.err != nil {
		return q
	}
	var loss *Tensor
	switch o.Reduction {
	case ReductionNone:
		loss = reduce("nll", []*Tensor{x, q}, []int{dim}, false)
	case ReductionSum:
		loss = reduce("nll", []*Tensor{x, q}, nil, false)
	default:
		loss = reduce("nll", []*Tensor{x, q}, nil, false).Div(q.Sum()).Cast(x.dtype)
	}
	if loss.err == nil {
		c.checkClasses(loss, classes, o.ignore())
	}
	return loss
}
