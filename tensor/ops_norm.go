package tensor

import (
	"fmt"
	"math"
	"slices"
)

// This file has normalisation. Means and variances are computed in float32 at least, from centred values.

// standardized returns (x - mean)/sqrt(var + eps) and 1/sqrt(var + eps), with mean and biased variance over dims, for x of float32 or
// float64. With centre false the mean counts as 0. Mean and variance come without gradient.
func standardized(x *Tensor, dims []int, eps float64, centre bool) (y, scale, mean, variance *Tensor) {
	c := begin(LookupOp("standardize"), x)
	if c.err != nil {
		bad := c.failed()
		return bad, bad, bad, bad
	}
	n := 1.0
	for _, d := range dims {
		n *= float64(x.shape[d])
	}
	v := x.Detach()
	if centre {
		mean = v.MeanKeep(dims...)
		v = through(v, v.Sub(mean))
	}
	variance = reduce("sum_mul", []*Tensor{v, v}, dims, true).DivScalar(n)
	scale = variance.AddScalar(eps).Rsqrt()
	y = v.Mul(scale)
	v.Discard()
	for _, t := range []*Tensor{y, scale} {
		if t.err != nil {
			return t, t, t, t
		}
	}
	c.in = one(x)
	c.record([]*Tensor{y, scale}, func(dys []*Tensor, _ []bool) []*Tensor {
		var g *Tensor
		if dy := dys[0]; dy != nil {
			g = dy.Sub(y.Mul(reduce("sum_mul", []*Tensor{dy, y}, dims, true).DivScalar(n)))
			if centre {
				g = g.Sub(dy.MeanKeep(dims...))
			}
			g = g.Mul(scale)
		}
		if ds := dys[1]; ds != nil {
			s := y.Mul(ds.Mul(scale.Square())).DivScalar(-n)
			if g == nil {
				g = s
			} else {
				g = g.Add(s)
			}
		}
		return one(g)
	})
	return y, scale, mean, variance
}

var _ = defineOp(OpInfo{Name: "standardize", Doc: "x less its mean over dims, divided by its standard deviation", Kind: KindComposite, Class: F32, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		c := begin(LookupOp("standardize"), in...)
		if c.err != nil {
			return one(c.failed())
		}
		dims, err := normDims(a.Ints("dims"), len(in[0].shape))
		if err != nil {
			return one(c.shapeFail("%v", err))
		}
		y, _, _, _ := standardized(c.in[0], dims, a.Float("eps", 1e-5), true)
		return one(y)
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		dims, _ := normDims(a.Ints("dims"), len(in[0].Shape))
		return refStandard(in[0], dims, a.Float("eps", 1e-5), true)
	}),
	Samples: []Sample{valid("rows", Attrs{"dims": []int{1}}, sampleArray(3, 4)), invalid("out of range", Attrs{"dims": []int{3}}, sampleArray(3, 4))}})

// refStandard is (x - mean)/sqrt(var + eps) over dims.
func refStandard(x Array, dims []int, eps float64, centre bool) Array {
	mean := x.overDims(dims, true, func(vs []float64) float64 {
		s := 0.0
		for _, v := range vs {
			s += v / float64(len(vs))
		}
		if !centre {
			return 0
		}
		return s
	})
	kept := func(idx []int) []int {
		own := slices.Clone(idx)
		for _, d := range dims {
			own[d] = 0
		}
		return own
	}
	centred := makeArray(x.Shape, func(idx []int) float64 { return x.at(idx...) - mean.at(kept(idx)...) })
	variance := centred.overDims(dims, true, func(vs []float64) float64 {
		s := 0.0
		for _, v := range vs {
			s += v * v / float64(len(vs))
		}
		return s
	})
	return makeArray(x.Shape, func(idx []int) float64 { return centred.at(idx...) / math.Sqrt(variance.at(kept(idx)...)+eps) })
}

// affine returns y*weight + bias, each of which may be nil.
func affine(y, weight, bias *Tensor) *Tensor {
	switch {
	case weight != nil && bias != nil:
		return applyParams("addcmul", []float64{1}, bias, y, weight)
	case weight != nil:
		return y.Mul(weight)
	case bias != nil:
		return y.Add(bias)
	}
	return y
}

// operands lists the first n tensors, which must be there, and of the others those that are.
func operands(n int, ts ...*Tensor) (in []*Tensor) {
	for i, t := range ts {
		if t != nil || i < n {
			in = append(in, t)
		}
	}
	return in
}

// operandAt returns operand i, or nil.
func operandAt(in []*Tensor, i int) *Tensor {
	if i < len(in) {
		return in[i]
	}
	return nil
}

// widened is wide for an operand that may be nil.
func widened(t *Tensor) *Tensor {
	if t == nil {
		return nil
	}
	w, _ := wide(t)
	return w
}

// lastDims lists the last n of rank dimensions.
func lastDims(rank, n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = rank - n + i
	}
	return dims
}

func refAffine(y Array, in []Array, at func(idx []int) []int) Array {
	return makeArray(y.Shape, func(idx []int) float64 {
		v := y.at(idx...)
		if len(in) > 1 {
			v *= in[1].at(at(idx)...)
		}
		if len(in) > 2 {
			v += in[2].at(at(idx)...)
		}
		return v
	})
}

var _ = defineOp(OpInfo{Name: "layer_norm", Doc: "x less its mean, divided by its standard deviation, over the last normalized_dims dimensions; times weight plus bias", Kind: KindComposite, Class: F32,
	Inputs: []string{"x", "weight", "bias"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(LayerNorm(in[0], a.Int("normalized_dims", 1), operandAt(in, 1), operandAt(in, 2), a.Float("eps", 1e-5)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		k := a.Int("normalized_dims", 1)
		y := refStandard(in[0], lastDims(len(in[0].Shape), k), a.Float("eps", 1e-5), true)
		return refAffine(y, in, func(idx []int) []int { return idx[len(idx)-k:] })
	}),
	Samples: []Sample{
		valid("one dimension", nil, sampleArray(3, 4, 8), positiveArray(8), sampleArray(8)),
		valid("two", Attrs{"normalized_dims": 2}, sampleArray(3, 4, 8), positiveArray(4, 8), sampleArray(4, 8)),
		valid("without weight", Attrs{"eps": 0.1}, sampleArray(3, 8)),
		invalid("expected weight to be of same shape as normalized_shape", nil, sampleArray(3, 8), positiveArray(4)),
		invalid("normalizes the last 3 dimensions", Attrs{"normalized_dims": 3}, sampleArray(3, 8)),
	}})

// LayerNorm returns x less its mean, divided by its standard deviation (Ba et al., "Layer Normalization", 2016), over the last dims
// dimensions, times weight plus bias, which have the shape of these dimensions and may be nil.
func LayerNorm(x *Tensor, dims int, weight, bias *Tensor, eps float64) *Tensor {
	c := begin(LookupOp("layer_norm"), operands(1, x, weight, bias)...)
	if c.err != nil {
		return c.failed()
	}
	return c.rowNorm(x, dims, weight, bias, eps, true)
}

// rowNorm is layer_norm, or with centre false rms_norm.
func (c *call) rowNorm(x *Tensor, dims int, weight, bias *Tensor, eps float64, centre bool) *Tensor {
	switch {
	case dims < 1 || dims > len(x.shape):
		return c.shapeFail("normalizes the last %d dimensions, but the input has shape %v", dims, x.shape)
	case !x.dtype.IsFloat():
		return c.fail("cast it", errorOf(ErrDType, "not implemented for %s", x.dtype))
	}
	k := 1
	for i, t := range []*Tensor{weight, bias} {
		if t == nil {
			continue
		}
		if !slices.Equal(t.shape, x.shape[len(x.shape)-dims:]) {
			return c.shapeFail("expected %s to be of same shape as normalized_shape, but got %v for %v", []string{"weight", "bias"}[i], t.shape, x.shape[len(x.shape)-dims:])
		}
		if i == 0 {
			weight = c.in[k]
		} else {
			bias = c.in[k]
		}
		k++
	}
	w, back := wide(c.in[0])
	y, _, _, _ := standardized(w, lastDims(len(x.shape), dims), eps, centre)
	if w != c.in[0] {
		w.Discard()
	}
	scaled := affine(y, weight, bias) // in the dtype of y
	return through(scaled, back(scaled))
}

var _ = defineOp(OpInfo{Name: "rms_norm", Doc: "x divided by the root of its mean square over the last normalized_dims dimensions; times weight", Kind: KindComposite, Class: F32, Inputs: []string{"x", "weight"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(RMSNorm(in[0], a.Int("normalized_dims", 1), operandAt(in, 1), a.Float("eps", 1e-6)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		k := a.Int("normalized_dims", 1)
		y := refStandard(in[0], lastDims(len(in[0].Shape), k), a.Float("eps", 1e-6), false)
		return refAffine(y, in, func(idx []int) []int { return idx[len(idx)-k:] })
	}),
	Samples: []Sample{
		valid("one dimension", nil, sampleArray(3, 4, 8), positiveArray(8)),
		valid("two, without weight", Attrs{"normalized_dims": 2, "eps": 0.01}, sampleArray(2, 4, 8)),
		invalid("expected weight to be of same shape", nil, sampleArray(3, 8), positiveArray(4)),
	}})

// RMSNorm returns x divided by the root of its mean square plus eps (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019),
// over the last dims dimensions, times weight, which may be nil.
func RMSNorm(x *Tensor, dims int, weight *Tensor, eps float64) *Tensor {
	c := begin(LookupOp("rms_norm"), operands(1, x, weight)...)
	if c.err != nil {
		return c.failed()
	}
	return c.rowNorm(x, dims, weight, nil, eps, false)
}

// channelwise reshapes a vector of the channels so that it broadcasts over [n, channels, …].
func channelwise(t *Tensor, rank int) *Tensor {
	if t == nil {
		return nil
	}
	shape := make([]int, rank-1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = t.shape[0]
	return t.Reshape(shape...)
}

// checkChannels reports vectors that do not have one element a channel, and returns the operands after autocast in vs.
func (c *call) checkChannels(channels int, names []string, vs []**Tensor) error {
	k := 1
	for i, v := range vs {
		if *v == nil {
			continue
		}
		if !slices.Equal((*v).shape, []int{channels}) {
			return errorOf(ErrShape, "expected %s to be a vector of size equal to the number of channels in input (%d), but got shape %v", names[i], channels, (*v).shape)
		}
		*v = c.in[k]
		k++
	}
	return nil
}

var _ = defineOp(OpInfo{Name: "group_norm", Doc: "x [n, channels, …] normalised over groups of channels; times weight plus bias of each channel", Kind: KindComposite, Class: F32, Inputs: []string{"x", "weight", "bias"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(GroupNorm(in[0], a.Int("num_groups", 1), operandAt(in, 1), operandAt(in, 2), a.Float("eps", 1e-5)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		g := a.Int("num_groups", 1)
		n := in[0].Shape[0]
		y := refStandard(Array{Shape: []int{n, g, len(in[0].Data) / (n * g)}, Data: in[0].Data}, []int{2}, a.Float("eps", 1e-5), true)
		return refAffine(Array{Shape: in[0].Shape, Data: y.Data}, in, func(idx []int) []int { return idx[1:2] })
	}),
	Samples: []Sample{
		valid("two groups", Attrs{"num_groups": 2}, sampleArray(3, 6, 2, 2), positiveArray(6), sampleArray(6)),
		valid("one group", nil, sampleArray(2, 4)),
		invalid("divisible by num_groups", Attrs{"num_groups": 4}, sampleArray(3, 6)),
		invalid("expected weight to be a vector", Attrs{"num_groups": 2}, sampleArray(3, 6), positiveArray(3)),
	}})

// GroupNorm returns x [n, channels, …] normalised over each of groups of channels (Wu and He, "Group Normalization", 2018), times weight
// plus bias of each channel, which may be nil.
func GroupNorm(x *Tensor, groups int, weight, bias *Tensor, eps float64) *Tensor {
	c := begin(LookupOp("group_norm"), operands(1, x, weight, bias)...)
	if c.err != nil {
		return c.failed()
	}
	switch {
	case len(x.shape) < 2:
		return c.shapeFail("expected at least 2 dimensions, got shape %v", x.shape)
	case groups < 1 || x.shape[1]%groups != 0:
		return c.shapeFail("expected number of channels in input to be divisible by num_groups, but got input of shape %v and num_groups=%d", x.shape, groups)
	case !x.dtype.IsFloat():
		return c.fail("cast it", errorOf(ErrDType, "not implemented for %s", x.dtype))
	}
	if err := c.checkChannels(x.shape[1], []string{"weight", "bias"}, []**Tensor{&weight, &bias}); err != nil {
		return c.fail("", err)
	}
	w, back := wide(c.in[0])
	rest := Numel(x.shape[1:]) / groups
	y, _, _, _ := standardized(w.Reshape(x.shape[0], groups, rest), []int{2}, eps, true)
	rank := len(x.shape)
	return back(affine(y.Reshape(x.shape...), widened(channelwise(weight, rank)), widened(channelwise(bias, rank))))
}

// RunningStats are the averages that batch normalisation keeps while training, each of shape [channels].
type RunningStats struct {
	Mean, Var *Tensor
	Momentum  float64 // the weight of a new batch; PyTorch's default is 0.1
}

var _ = defineOp(OpInfo{Name: "batch_norm", Doc: "x [n, channels, …] normalised for each channel, in training by the batch's mean and variance, else by running ones; times weight plus bias", Kind: KindComposite,
	Inputs: []string{"x", "weight", "bias", "running_mean", "running_var"}, Differentiable: []bool{true, true, true, false, false},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		var stats *RunningStats
		if len(in) > 4 {
			stats = &RunningStats{Mean: in[3], Var: in[4], Momentum: a.Float("momentum", 0.1)}
		}
		return one(BatchNorm(in[0], operandAt(in, 1), operandAt(in, 2), stats, a.Bool("training"), a.Float("eps", 1e-5)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		x, eps := in[0], a.Float("eps", 1e-5)
		y := Array{Shape: x.Shape}
		if a.Bool("training") {
			dims := slices.Delete(lastDims(len(x.Shape), len(x.Shape)), 1, 2)
			y = refStandard(x, dims, eps, true)
		} else {
			y = makeArray(x.Shape, func(idx []int) float64 {
				return (x.at(idx...) - in[3].Data[idx[1]]) / math.Sqrt(in[4].Data[idx[1]]+eps)
			})
		}
		return refAffine(y, in[:min(3, len(in))], func(idx []int) []int { return idx[1:2] })
	}),
	Samples: []Sample{
		valid("training", Attrs{"training": true}, sampleArray(4, 3, 2, 2), positiveArray(3), sampleArray(3)),
		valid("evaluation", nil, sampleArray(4, 3), positiveArray(3), sampleArray(3), sampleArray(3), positiveArray(3)),
		invalid("more than 1 value per channel", Attrs{"training": true}, sampleArray(1, 3)),
		invalid("needs running statistics", nil, sampleArray(4, 3)),
		invalid("expected weight to be a vector", Attrs{"training": true}, sampleArray(4, 3), positiveArray(2)),
	}})

// BatchNorm returns x [n, channels, …] normalised for each channel (Ioffe and Szegedy, 2015), times weight plus bias, which may be nil. In
// training it normalises by the batch's mean and biased variance, and moves the running statistics, if there are any, in place towards
// them (the variance unbiased); else it normalises by the running ones.
func BatchNorm(x, weight, bias *Tensor, stats *RunningStats, training bool, eps float64) *Tensor {
	in := operands(1, x, weight, bias)
	if stats != nil {
		in = append(in, stats.Mean, stats.Var)
	}
	c := begin(LookupOp("batch_norm"), in...)
	if c.err != nil {
		return c.failed()
	}
	rank := len(x.shape)
	switch {
	case rank < 2:
		return c.shapeFail("expected at least 2 dimensions, got shape %v", x.shape)
	case !x.dtype.IsFloat():
		return c.fail("cast it", errorOf(ErrDType, "not implemented for %s", x.dtype))
	case !training && stats == nil:
		return c.fail("", fmt.Errorf("needs running statistics when not training"))
	case training && Numel(x.shape) == x.shape[1]:
		return c.shapeFail("expected more than 1 value per channel when training, got input size %v", x.shape)
	}
	names, vs := []string{"weight", "bias"}, []**Tensor{&weight, &bias}
	var mean, variance *Tensor
	if stats != nil {
		mean, variance = stats.Mean, stats.Var
		names, vs = append(names, "running_mean", "running_var"), append(vs, &mean, &variance)
	}
	if err := c.checkChannels(x.shape[1], names, vs); err != nil {
		return c.fail("", err)
	}
	w, back := wide(c.in[0])
	weight, bias = widened(channelwise(weight, rank)), widened(channelwise(bias, rank))
	if !training {
		scale := widened(channelwise(variance, rank)).AddScalar(eps).Rsqrt()
		return back(affine(w.Sub(widened(channelwise(mean, rank))).Mul(scale), weight, bias))
	}
	dims := slices.Delete(lastDims(rank, rank), 1, 2)
	y, _, batchMean, batchVar := standardized(w, dims, eps, true)
	if stats != nil && y.err == nil {
		n := float64(Numel(x.shape)) / float64(max(1, x.shape[1]))
		if err := stats.move(batchMean, batchVar.MulScalar(n/(n-1))); err != nil {
			return failed(err, c.scope)
		}
	}
	return back(affine(y, weight, bias))
}

// move moves the statistics towards a batch's, in place.
func (s *RunningStats) move(mean, variance *Tensor) error {
	for _, p := range [][2]*Tensor{{s.Mean, mean}, {s.Var, variance}} {
		old := p[0].Detach()
		now := old.Lerp(p[1].Reshape(old.shape...).Cast(old.dtype), s.Momentum)
		err := p[0].CopyFrom(now)
		if s := old.Scope(); s == nil { // nobody else frees it
			old.Free()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
