package tensor

import (
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// whole returns the kernel that computes one of the products, with a bias of the given dtype unless that is InvalidDType.
func (g *convGeometry) whole(op lib.ConvOp, c *call, d, bias DType) *lib.Conv {
	return &lib.Conv{Op: op, Ops: []string{c.op.Name}, N: g.n, Groups: g.groups, C: g.c, O: g.o, Image: g.image, Grid: g.grid, Kernel: g.kernel, Stride: g.stride,
		Pad: g.padding, Dilation: g.dilation, A: d.Kind(), B: d.Kind(), Out: d.Kind(), Bias: bias.Kind()}
}

// native reports whether the device computes a product as a whole, by a fast program.
func (g *convGeometry) native(op lib.ConvOp, c *call, d DType) bool {
	return g.whole(op, c, d, InvalidDType).Native(c.eng.target)
}

// nativeImages is the product of a and b that makes grids or images, with a bias for each channel if it is not nil.
func (g *convGeometry) nativeImages(op lib.ConvOp, c *call, a, b, bias *Tensor) *Tensor {
	c = c.product(a, b)
	shape, bd := g.gridShape(), InvalidDType
	if op == lib.ConvInput {
		shape = g.imageShape()
	}
	out := c.output(shape, a.dtype)
	if out.err != nil {
		return out
	}
	bufs := []binding{c.dense(a), c.dense(b)}
	if bias != nil {
		c.in = append(c.in, bias)
		bufs, bd = append(bufs, c.dense(bias)), bias.dtype
	}
	c.run(g.whole(op, c, a.dtype, bd), bufs, out)
	c.differentiable([]*Tensor{out}, nil, func(cc *Call, dy *Tensor) []*Tensor {
		gs := make([]*Tensor, len(cc.In))
		x, z := a, dy // image and grid, of which one is the gradient
		if op == lib.ConvInput {
			x, z = dy, a
		}
		if cc.Needs(0) {
			if op == lib.ConvForward {
				gs[0] = g.again(g.name("conv_transpose"), dy, b, g.backward)
			} else {
				gs[0] = g.again(g.name("conv"), dy, b, g.forward)
			}
		}
		switch both := bias != nil && cc.Needs(2); {
		case both && op == lib.ConvForward && cc.Needs(1) && g.native(lib.ConvWeight, c, x.dtype):
			w, sums := g.nativeWeight(x, z)
			gs[1], gs[2] = w, sums
		default:
			if cc.Needs(1) {
				gs[1] = g.again(convWeightGrad, x, z, g.weight)
			}
			if both {
				gs[2] = g.channelSums(dy)
			}
		}
		return gs
	})
	return out
}

// channelSums sums a gradient over everything but its channels.
func (g *convGeometry) channelSums(dy *Tensor) *Tensor {
	dims := []int{0}
	for i := range g.rank() {
		dims = append(dims, i+2)
	}
	return dy.Sum(dims...)
}

// nativeWeight makes the weights of images x and grids z, and the sums of z over everything but its channels.
func (g *convGeometry) nativeWeight(x, z *Tensor) (weight, sums *Tensor) {
	c := begin(LookupOp(convWeightGrad), x, z)
	if c.err != nil {
		return c.failed(), c.failed()
	}
	x, z = c.in[0], c.in[1]
	if g.n == 0 {
		return c.fill(x.dtype, 0, g.weightShape()), c.fill(x.dtype, 0, []int{g.o})
	}
	weight = c.output(g.weightShape(), x.dtype)
	if weight.err != nil {
		return weight, weight
	}
	sums = c.output([]int{g.o}, x.dtype)
	if sums.err != nil {
		return sums, sums
	}
	c.run(g.whole(lib.ConvWeight, c, x.dtype, x.dtype), []binding{c.dense(x), c.dense(z)}, weight, sums)
	c.record([]*Tensor{weight, sums}, func(dys []*Tensor, needs []bool) []*Tensor {
		gs := make([]*Tensor, 2)
		if dw := dys[0]; dw != nil {
			if needs[0] {
				gs[0] = g.again(g.name("conv_transpose"), z, dw, g.backward)
			}
			if needs[1] {
				gs[1] = g.again(g.name("conv"), x, dw, g.forward)
			}
		}
		if db := dys[1]; db != nil && needs[1] {
			shape := slices.Repeat([]int{1}, g.rank()+2)
			shape[1] = g.o
			each := db.Reshape(shape...).Expand(g.gridShape()...)
			if gs[1] != nil {
				each = gs[1].Add(each)
			}
			gs[1] = each
		}
		return gs
	})
	return weight, sums
}

// nativeWeightOnly is nativeWeight without the sums.
func (g *convGeometry) nativeWeightOnly(c *call, x, z *Tensor) *Tensor {
	c = c.product(x, z)
	out := c.output(g.weightShape(), x.dtype)
	if out.err != nil {
		return out
	}
	c.run(g.whole(lib.ConvWeight, c, x.dtype, InvalidDType), []binding{c.dense(x), c.dense(z)}, out)
	c.differentiable([]*Tensor{out}, nil, func(cc *Call, dw *Tensor) []*Tensor { return g.weightGradients(cc, x, z, dw) })
	return out
}

// weightGradients returns the gradients of the weights of images x and grids z.
func (g *convGeometry) weightGradients(cc *Call, x, z, dw *Tensor) []*Tensor {
	return cc.pick(func() *Tensor { return g.again(g.name("conv_transpose"), z, dw, g.backward) },
		func() *Tensor { return g.again(g.name("conv"), x, dw, g.forward) })
}
