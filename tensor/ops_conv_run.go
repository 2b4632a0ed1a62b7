package tensor

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// A convolution is a product of three things of which two are given: images [n, c, image…], weights [o, c/groups, kernel…]
// and grids of windows [n, o, grid…]. forward makes the grid, backward the image and weight the weights; the
// gradients of each are the other two. All three are matrix products over columns: the windows of an image as a matrix
// [c*kernel, grid], which unfold and fold kernels make and add up (im2col). A device with a program of its own for all
// of this (lib.Conv.Native) gets one kernel instead.

// convGeometry is a convolution's sizes.
type convGeometry struct {
	n, c, o, groups           int
	image, grid, kernel       []int
	stride, padding, dilation []int
}

// Bounds of the memory for columns, in bytes; tests make them small. Batches that need more than convScratch go in pieces,
// and images that alone need more than convImage (or than the device binds to a kernel) channel by channel.
var (
	convScratch = 64 << 20
	convImage   = 256 << 20
)

func (g *convGeometry) rank() int { return len(g.image) }

// rows is the height of a group's column matrix, and the width of its weight matrix.
func (g *convGeometry) rows() int { return g.c / g.groups * Numel(g.kernel) }

func (g *convGeometry) imageShape() []int { return append([]int{g.n, g.c}, g.image...) }
func (g *convGeometry) gridShape() []int  { return append([]int{g.n, g.o}, g.grid...) }
func (g *convGeometry) weightShape() []int {
	return append([]int{g.o, g.c / g.groups}, g.kernel...)
}

// plain reports whether the image is its own column matrix.
func (g *convGeometry) plain() bool {
	for i, k := range g.kernel {
		if k != 1 || g.stride[i] != 1 || g.padding[i] != 0 || g.image[i] != g.grid[i] {
			return false
		}
	}
	return true
}

// channels returns how many channels of one image fit the bound on memory, all of them or whole groups.
func (g *convGeometry) channels(c *call) int {
	limit := int64(convImage)
	if most := c.eng.target.Caps.MaxBufferBytes; most > 0 {
		limit = min(limit, most)
	}
	unit := g.c / g.groups // whole groups, or with one group single channels
	if g.groups == 1 {
		unit = 1
	}
	bytes := int64(Numel(g.kernel)) * int64(Numel(g.grid)) * int64(accumulator(c.in[0].dtype).Size()) * int64(unit)
	if g.plain() || bytes*int64(g.c/unit) <= limit {
		return g.c
	}
	return unit * int(max(1, limit/bytes))
}

// part is the convolution of channels first to last-1 alone.
func (g *convGeometry) part(first, last int) *convGeometry {
	p := *g
	p.c = last - first
	if g.groups > 1 {
		p.groups = g.groups * p.c / g.c
		p.o = g.o / g.groups * p.groups
	}
	return &p
}

// inParts is forward for images of any size: the sum over the channels, or with groups their results side by side.
func (g *convGeometry) inParts(c *call, x, w *Tensor) *Tensor {
	step := g.channels(c)
	if step >= g.c || g.native(lib.ConvForward, c, x.dtype) {
		return g.forward(c, x, w)
	}
	var parts []*Tensor
	var sum *Tensor
	for first := 0; first < g.c; first += step {
		last := min(first+step, g.c)
		p := g.part(first, last)
		xs := x.Slice(1, first, last, 1)
		if g.groups > 1 {
			o := g.o / g.groups * (first * g.groups / g.c)
			parts = append(parts, g.again(g.name("conv"), xs, w.Slice(0, o, o+p.o, 1), p.forward))
			continue
		}
		y := g.again(g.name("conv"), xs, w.Slice(1, first, last, 1), p.forward)
		if sum == nil {
			sum = y
		} else {
			sum = sum.Add(y)
		}
	}
	if g.groups > 1 {
		return Cat(1, parts...)
	}
	return sum
}

// backwardInParts is backward for images of any size: channels side by side.
func (g *convGeometry) backwardInParts(c *call, z, w *Tensor) *Tensor {
	step := g.channels(c)
	if step >= g.c || g.native(lib.ConvInput, c, z.dtype) {
		return g.backward(c, z, w)
	}
	var parts []*Tensor
	for first := 0; first < g.c; first += step {
		last := min(first+step, g.c)
		p := g.part(first, last)
		zs, ws := z, w.Slice(1, first, last, 1)
		if g.groups > 1 {
			o := g.o / g.groups * (first * g.groups / g.c)
			zs, ws = z.Slice(1, o, o+p.o, 1), w.Slice(0, o, o+p.o, 1)
		}
		parts = append(parts, g.again(g.name("conv_transpose"), zs, ws, p.backward))
	}
	return Cat(1, parts...)
}

// again starts the operator of a gradient or of a part.
func (g *convGeometry) again(name string, a, b *Tensor, run func(c *call, a, b *Tensor) *Tensor) *Tensor {
	c := begin(LookupOp(name), a, b)
	if c.err != nil {
		return c.failed()
	}
	return run(c, c.in[0], c.in[1])
}

// product makes the call of a product: without bias, and with the gradients of both factors.
func (c *call) product(a, b *Tensor) *call {
	return &call{op: c.op, in: []*Tensor{a, b}, scope: c.scope, eng: c.eng, site: c.site}
}

// convRun records the kernels of one of the products.
type convRun struct {
	*convGeometry
	c       *call
	steps   []step
	scratch []*storage
}

// temp makes memory that only this call uses.
func (r *convRun) temp(d DType, n int) *storage {
	st := r.c.eng.newStorage(d, n)
	r.scratch = append(r.scratch, st)
	return st
}

func (r *convRun) add(gen lib.Generator, bufs ...binding) { r.steps = append(r.steps, step{gen, bufs}) }

// done records the node. Scratch is made by the node and claimed by nobody, so that it goes when the kernels are queued.
func (r *convRun) done(out *Tensor) {
	n := &node{op: r.c.op.Name, site: r.c.site, steps: r.steps, outs: append([]*storage{out.ref.st}, r.scratch...)}
	if err := r.c.eng.add(n); err != nil {
		r.c.eng.mu.Lock()
		if st := out.ref.st; st.err == nil && st.mem == nil && st.node == nil {
			st.err = err
		}
		r.c.eng.mu.Unlock()
	}
	for _, st := range append(r.scratch, r.c.temps...) {
		st.release()
	}
	r.c.temps = nil
}

// pieces returns how many images to do at once, if each takes so many bytes of scratch. Scratch is in proportion to the tensors, so that
// a model that needs less memory for its activations needs less altogether.
func (r *convRun) pieces(bytes ...int) int {
	tensors := int64(r.n) * int64(r.convGeometry.c*Numel(r.image)+r.o*Numel(r.grid)) * int64(r.c.in[0].dtype.Size())
	limit := min(int64(convScratch), max(2*tensors, 1<<20))
	if most := r.c.eng.target.Caps.MaxBufferBytes; most > 0 {
		limit = min(limit, most)
	}
	total := 0
	for _, b := range bytes {
		total += b
	}
	return max(1, min(r.n, int(limit/int64(max(total, 1)))))
}

func written(st *storage) binding { return binding{st: st, write: true} }

// window returns the unfold or fold kernel for count images.
func (r *convRun) window(op lib.WindowOp, count int, in, out ir.Kind, offsetIn, offsetOut int) *lib.Window {
	return &lib.Window{Op: op, Ops: []string{r.c.op.Name}, Outer: count * r.convGeometry.c, Image: r.image, Grid: r.grid, Kernel: r.kernel, Stride: r.stride,
		Pad: r.padding, Dilation: r.dilation, In: in, Out: out, OffsetIn: offsetIn, OffsetOut: offsetOut}
}

// accumulator is the dtype that sums over windows are kept in.
func accumulator(d DType) DType {
	if d == Float16 || d == BFloat16 {
		return Float32
	}
	return d
}

// weights returns the weights as a batch of matrices for count images, with the distance between them: one matrix for
// all, or with groups those of each image one after the other.
func (r *convRun) weights(w binding, d DType, count int) (binding, int) {
	if r.groups == 1 {
		return w, 0
	}
	n := r.o * r.rows()
	st := r.temp(d, count*n)
	o := d.operand()
	o.Strides = []int{0, 1}
	r.add(&lib.Elementwise{Name: "repeat_weights", Ops: []string{r.c.op.Name}, BodyKey: "copy", Shape: []int{count, n}, In: []lib.Operand{o}, Out: []lib.Operand{d.operand()},
		Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value { return in }}, w, written(st))
	return binding{st: st}, r.o / r.groups * r.rows()
}

// forward makes the grid of images x and weights w.
func (g *convGeometry) forward(c *call, x, w *Tensor) *Tensor {
	if g.native(lib.ConvForward, c, x.dtype) {
		return g.nativeImages(lib.ConvForward, c, x, w, nil)
	}
	c = c.product(x, w)
	out := c.output(g.gridShape(), x.dtype)
	if out.err != nil {
		return out
	}
	r := &convRun{convGeometry: g, c: c}
	bx, bw := c.dense(x), c.dense(w)
	kind, size := x.dtype.Kind(), x.dtype.Size()
	length, m, k := Numel(g.grid), g.o/g.groups, g.rows()
	imageSize, colSize := g.c*Numel(g.image), g.groups*k*length
	count := g.n
	cols := bx
	if !g.plain() {
		count = r.pieces(colSize * size)
		cols = written(r.temp(x.dtype, count*colSize))
	}
	// A product has no offset for its output: pieces begin where a binding may, or go by a copy.
	outSize := g.o * length
	direct := count >= g.n || (count*outSize*size)%int(c.eng.align) == 0 && (count*outSize*size)%4 == 0
	if !direct && g.n > 0 {
		for unit := count; unit > 0 && !direct; unit-- {
			if b := unit * outSize * size; b%int(c.eng.align) == 0 && b%4 == 0 {
				count, direct = unit, true
			}
		}
	}
	var part *storage
	if !direct {
		part = r.temp(x.dtype, count*outSize)
	}
	wb, stride := r.weights(bw, x.dtype, count)
	for first := 0; first < g.n; first += count {
		now := min(count, g.n-first)
		if !g.plain() {
			r.add(r.window(lib.WindowUnfold, now, kind, kind, first*imageSize, 0), bx, cols)
		}
		to := binding{st: out.ref.st, write: true, offset: int64(first) * int64(outSize) * int64(size)}
		if part != nil {
			to = written(part)
		}
		r.add(&lib.MatMul{M: m, N: length, K: k, Batch: now * g.groups, A: kind, B: kind, Out: kind, BatchStrideA: stride, BatchStrideB: k * length, Ops: []string{c.op.Name}},
			wb, binding{st: cols.st, offset: cols.offset}, to)
		if part != nil {
			o := x.dtype.operand()
			o.Strides, o.Offset = []int{1}, first*outSize
			r.add(&lib.Elementwise{Name: "place", Ops: []string{c.op.Name}, BodyKey: "copy", Shape: []int{now * outSize}, In: []lib.Operand{x.dtype.operand()}, Out: []lib.Operand{o},
				Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value { return in }}, binding{st: part}, written(out.ref.st))
		}
	}
	r.done(out)
	c.differentiable([]*Tensor{out}, nil, func(cc *Call, dy *Tensor) []*Tensor {
		return cc.pick(func() *Tensor { return g.again(g.name("conv_transpose"), dy, w, g.backward) },
			func() *Tensor { return g.again(convWeightGrad, x, dy, g.weight) })
	})
	return out
}

func (g *convGeometry) name(prefix string) string { return fmt.Sprintf("%s%dd", prefix, g.rank()) }

// backward makes the images of grids z and weights w.
func (g *convGeometry) backward(c *call, z, w *Tensor) *Tensor {
	if g.native(lib.ConvInput, c, z.dtype) {
		return g.nativeImages(lib.ConvInput, c, z, w, nil)
	}
	c = c.product(z, w)
	out := c.output(g.imageShape(), z.dtype)
	if out.err != nil {
		return out
	}
	r := &convRun{convGeometry: g, c: c}
	bz, bw := c.dense(z), c.dense(w)
	kind, acc := z.dtype.Kind(), accumulator(z.dtype)
	length, m, k := Numel(g.grid), g.o/g.groups, g.rows()
	imageSize, colSize, gridSize := g.c*Numel(g.image), g.groups*k*length, g.o*length
	count, sums := g.n, acc.Kind()
	var cols *storage
	if g.plain() {
		sums = kind
	} else {
		count = r.pieces(colSize * acc.Size())
		cols = r.temp(acc, count*colSize)
	}
	wb, stride := r.weights(bw, z.dtype, count)
	for first := 0; first < g.n; first += count {
		now := min(count, g.n-first)
		to := written(out.ref.st)
		if cols != nil {
			to = written(cols)
		}
		r.add(&lib.MatMul{M: k, N: length, K: m, Batch: now * g.groups, TransA: true, A: kind, B: kind, Out: sums, BatchStrideA: stride, BatchStrideB: m * length, OffsetB: first * gridSize,
			Ops: []string{c.op.Name}}, wb, bz, to)
		if cols != nil {
			r.add(r.window(lib.WindowFold, now, sums, kind, 0, first*imageSize), binding{st: cols}, written(out.ref.st))
		}
	}
	r.done(out)
	c.differentiable([]*Tensor{out}, nil, func(cc *Call, dx *Tensor) []*Tensor {
		return cc.pick(func() *Tensor { return g.again(g.name("conv"), dx, w, g.forward) },
			func() *Tensor { return g.again(convWeightGrad, dx, z, g.weight) })
	})
	return out
}

// weight makes the weights of images x and grids z: a product for each image, and their sum.
func (g *convGeometry) weight(c *call, x, z *Tensor) *Tensor {
	c = c.product(x, z)
	if g.n == 0 {
		return c.fill(x.dtype, 0, g.weightShape())
	}
	if g.native(lib.ConvWeight, c, x.dtype) {
		return g.nativeWeightOnly(c, x, z)
	}
	out := c.output(g.weightShape(), x.dtype)
	if out.err != nil {
		return out
	}
	r := &convRun{convGeometry: g, c: c}
	bx, bz := c.dense(x), c.dense(z)
	kind, acc := x.dtype.Kind(), accumulator(x.dtype)
	length, m, k := Numel(g.grid), g.o/g.groups, g.rows()
	imageSize, colSize, gridSize, size := g.c*Numel(g.image), g.groups*k*length, g.o*length, g.o*k
	bytes := []int{size * acc.Size()}
	if !g.plain() {
		bytes = append(bytes, colSize*x.dtype.Size())
	}
	count := r.pieces(bytes...)
	cols := bx
	if !g.plain() {
		cols = written(r.temp(x.dtype, count*colSize))
	}
	products := r.temp(acc, count*size)
	sum := func(now int, to binding, d DType) {
		r.add(&lib.Reduce{Name: c.op.Name, Ops: []string{c.op.Name}, Op: lib.ReduceSum, Outer: 1, N: now, Inner: size, In: []lib.Operand{acc.operand()}, Out: d.operand()},
			binding{st: products}, to)
	}
	var total, piece, next *storage // sums of pieces so far, of one piece, and both together
	if count < g.n {
		total, piece, next = r.temp(acc, size), r.temp(acc, size), r.temp(acc, size)
	}
	for first := 0; first < g.n; first += count {
		now := min(count, g.n-first)
		from := binding{st: cols.st, offset: cols.offset}
		offset := first * imageSize
		if !g.plain() {
			r.add(r.window(lib.WindowUnfold, now, kind, kind, offset, 0), bx, cols)
			offset = 0
		}
		r.add(&lib.MatMul{M: m, N: k, K: length, Batch: now * g.groups, TransB: true, A: kind, B: kind, Out: acc.Kind(), BatchStrideA: m * length, BatchStrideB: k * length,
			OffsetA: first * gridSize, OffsetB: offset, Ops: []string{c.op.Name}}, bz, from, written(products))
		last := first+now == g.n
		switch {
		case total == nil:
			sum(now, written(out.ref.st), x.dtype)
		case first == 0:
			sum(now, written(total), acc)
		default:
			sum(now, written(piece), acc)
			to, d := written(next), acc
			if last {
				to, d = written(out.ref.st), x.dtype
			}
			o := acc.operand()
			r.add(&lib.Elementwise{Name: "add", Ops: []string{c.op.Name}, BodyKey: "add", Shape: []int{size}, In: []lib.Operand{o, o}, Out: []lib.Operand{d.operand()},
				Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value { return []ir.Value{b.Add(in[0], in[1])} }}, binding{st: total}, binding{st: piece}, to)
			total, next = next, total
		}
	}
	r.done(out)
	c.differentiable([]*Tensor{out}, nil, func(cc *Call, dw *Tensor) []*Tensor { return g.weightGradients(cc, x, z, dw) })
	return out
}
