package tensor

var _ = defineOp(OpInfo{Name: "addmm", Doc: "beta*c + alpha*(a b); with beta 0 c does not count, not even where it is NaN", Kind: KindComposite, Class: Lower, Inputs: []string{"c", "a", "b"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		return one(AddMM(in[0], in[1], in[2], a.Float("beta", 1), a.Float("alpha", 1)))
	},
	Ref: refOne(func(in []Array, a Attrs) Array {
		c, x, y := in[0], in[1], in[2]
		lead := 2 - len(c.Shape)
		return makeArray([]int{x.Shape[0], y.Shape[1]}, func(idx []int) float64 {
			own := make([]int, len(c.Shape))
			for d := range own {
				own[d] = min(idx[d+lead], c.Shape[d]-1)
			}
			sum := 0.0
			for k := range x.Shape[1] {
				sum += x.at(idx[0], k) * y.at(k, idx[1])
			}
			sum *= a.Float("alpha", 1)
			if beta := a.Float("beta", 1); beta != 0 {
				sum += beta * c.at(own...)
			}
			return sum
		})
	}),
	Samples: []Sample{
		valid("scaled", Attrs{"beta": 0.5, "alpha": 2.0}, sampleArray(4, 5), sampleArray(4, 6), positiveArray(6, 5)),
		valid("a row for all", nil, sampleArray(5), sampleArray(4, 6), positiveArray(6, 5)),
		valid("without c", Attrs{"beta": 0.0}, Array{Shape: []int{1}, Data: []float64{nan}}, sampleArray(2, 3), sampleArray(3, 2)),
		invalid("must be matrices", nil, sampleArray(4, 5), sampleArray(6), sampleArray(6, 5)),
		invalid("cannot be multiplied", nil, sampleArray(4, 5), sampleArray(4, 3), sampleArray(6, 5)),
		invalid("does not broadcast", nil, sampleArray(3, 5), sampleArray(4, 6), sampleArray(6, 5)),
	}})

// AddMM returns beta*c + alpha*(a b) for matrices a and b, with c broadcast to the product. With beta 0 c does not count.
func AddMM(c, a, b *Tensor, beta, alpha float64) *Tensor {
	k := begin(LookupOp("addmm"), c, a, b)
	if k.err != nil {
		return k.failed()
	}
	if len(a.shape) != 2 || len(b.shape) != 2 {
		return k.shapeFail("mat1 and mat2 must be matrices, got shapes %v and %v", a.shape, b.shape)
	}
	if a.shape[1] != b.shape[0] {
		return k.shapeFail("mat1 and mat2 shapes cannot be multiplied (%v and %v)", a.shape, b.shape)
	}
	shape := []int{a.shape[0], b.shape[1]}
	if s, err := BroadcastShapes(c.shape, shape); err != nil || len(s) != 2 || s[0] != shape[0] || s[1] != shape[1] {
		return k.shapeFail("c of shape %v does not broadcast to the product's %v", c.shape, shape)
	}
	out := k.in[1].MatMul(k.in[2])
	if alpha != 1 {
		out = out.MulScalar(alpha)
	}
	c = k.in[0]
	if beta == 0 {
		if c.needsGrad() { // its gradient is zeros, as PyTorch's
			return Where(FromBools([]bool{false}), c, out)
		}
		return out
	}
	if beta != 1 {
		c = c.MulScalar(beta)
	}
	return c.Add(out)
}
