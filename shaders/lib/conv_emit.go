package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// convEmitter builds the kernel of a Conv: one invocation for each element of the result.
type convEmitter struct {
	c              *Conv
	b              *ir.Builder
	value          ir.Kind // F32 or F64
	x, y           *ir.Mem
	n, groups      ir.Value
	channels, outs ir.Value // C and O
	image, grid    []ir.Value
	kernel, stride []ir.Value
	pad, dilation  []ir.Value
	acc            ir.Value
}

// Build makes the kernel.
func (c *Conv) Build(t Target) (*ir.Kernel, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	buffers := 3
	if c.Bias != ir.Void {
		buffers++
	}
	if err := t.checkBuffers(c.Op.String(), buffers); err != nil {
		return nil, err
	}
	b := ir.NewBuilder(c.Op.String(), t.config().local, 1, 1)
	b.SetOps(c.Ops...)
	template := *c
	b.SetTemplate(&template)
	m := &convEmitter{c: c, b: b, value: Operand{Kind: c.A}.ValueKind()}
	m.x, m.y = b.Buffer("a", c.A, ir.Read), b.Buffer("b", c.B, ir.Read)
	var bias, sums *ir.Mem
	if c.Bias != ir.Void && !c.biasGradient() {
		bias = b.Buffer("bias", c.Bias, ir.Read)
	}
	out := b.Buffer("out", c.Out, ir.Write)
	if c.biasGradient() {
		sums = b.Buffer("sums", c.Out, ir.Write)
	}
	count := b.Param("count", ir.U32)
	m.n, m.groups, m.channels, m.outs = b.Param("n", ir.U32), b.Param("groups", ir.U32), b.Param("c", ir.U32), b.Param("o", ir.U32)
	for i := range c.Image {
		for _, p := range []struct {
			list *[]ir.Value
			name string
		}{{&m.image, "image"}, {&m.grid, "grid"}, {&m.kernel, "kernel"}, {&m.stride, "stride"}, {&m.pad, "padding"}, {&m.dilation, "dilation"}} {
			*p.list = append(*p.list, b.Param(fmt.Sprintf("%s%d", p.name, i), ir.U32))
		}
	}
	id := b.Named(b.LinearID(), "id")
	b.If(b.Lt(id, count), func() {
		m.acc = b.Var(b.Const(ir.Scalar(m.value), 0))
		put := func(to *ir.Mem, at ir.Value) {
			store(b, to, Operand{Kind: c.Out}, at, b.Get(m.acc), 1, accessVector, nil)
		}
		withBias := func(channel ir.Value) {
			if bias != nil {
				b.Set(m.acc, b.Add(b.Get(m.acc), load(b, bias, Operand{Kind: c.Bias}, channel, 1, accessVector, nil)))
			}
		}
		switch c.Op {
		case ConvForward:
			withBias(m.forward(id))
			put(out, id)
		case ConvInput:
			withBias(m.input(id))
			put(out, id)
		case ConvWeight:
			if sums == nil {
				m.weight(id)
				put(out, id)
				break
			}
			size := m.product(m.outs, b.Div(m.channels, m.groups), m.kernel)
			b.If(b.Lt(id, size), func() {
				m.weight(id)
				put(out, id)
			}, func() {
				o := b.Sub(id, size)
				b.Range(m.n, func(n ir.Value) {
					m.walk(m.grid, nil, func(g []ir.Value) {
						b.Set(m.acc, b.Add(b.Get(m.acc), m.load(m.y, c.B, m.flat(b.Add(b.Mul(n, m.outs), o), g, m.grid))))
					})
				})
				put(sums, o)
			})
		}
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Op, err)
	}
	return k, nil
}

func (m *convEmitter) load(mem *ir.Mem, kind ir.Kind, at ir.Value) ir.Value {
	return load(m.b, mem, Operand{Kind: kind}, at, 1, accessVector, nil)
}

func (m *convEmitter) product(x, y ir.Value, sizes []ir.Value) ir.Value {
	n := m.b.Mul(x, y)
	for _, s := range sizes {
		n = m.b.Mul(n, s)
	}
	return n
}

// split takes the coordinates of sizes off a flat index and returns what is left of it.
func (m *convEmitter) split(index ir.Value, sizes []ir.Value) (coords []ir.Value, rest ir.Value) {
	coords = make([]ir.Value, len(sizes))
	for i := len(sizes) - 1; i >= 0; i-- {
		coords[i] = m.b.Rem(index, sizes[i])
		index = m.b.Div(index, sizes[i])
	}
	return coords, index
}

// flat is the inverse of split.
func (m *convEmitter) flat(rest ir.Value, coords, sizes []ir.Value) ir.Value {
	for i, c := range coords {
		rest = m.b.Add(m.b.Mul(rest, sizes[i]), c)
	}
	return rest
}

// walk visits all coordinates of sizes.
func (m *convEmitter) walk(sizes []ir.Value, at []ir.Value, visit func(at []ir.Value)) {
	if len(at) == len(sizes) {
		visit(at)
		return
	}
	m.b.Range(sizes[len(at)], func(i ir.Value) { m.walk(sizes, append(at[:len(at):len(at)], i), visit) })
}

// inImage returns the place of a window's element, and whether it lies in the image.
func (m *convEmitter) inImage(g, k []ir.Value) (at []ir.Value, inside ir.Value) {
	b := m.b
	inside = b.Bool(true)
	for i := range g {
		// A place before the image wraps around to a large number.
		h := b.Sub(b.Add(b.Mul(g[i], m.stride[i]), b.Mul(k[i], m.dilation[i])), m.pad[i])
		at, inside = append(at, h), b.And(inside, b.Lt(h, m.image[i]))
	}
	return at, inside
}

// add adds the product of elements of the factors.
func (m *convEmitter) add(x, y ir.Value) {
	b := m.b
	b.Set(m.acc, b.Add(b.Get(m.acc), b.Mul(m.load(m.x, m.c.A, x), m.load(m.y, m.c.B, y))))
}

// forward sums for an element of a grid and returns its channel.
func (m *convEmitter) forward(id ir.Value) (channel ir.Value) {
	b := m.b
	g, rest := m.split(id, m.grid)
	o, n := b.Rem(rest, m.outs), b.Div(rest, m.outs)
	inGroup := b.Div(m.channels, m.groups)
	first := b.Add(b.Mul(n, m.channels), b.Mul(b.Div(o, b.Div(m.outs, m.groups)), inGroup))
	b.Range(inGroup, func(i ir.Value) {
		m.walk(m.kernel, nil, func(k []ir.Value) {
			at, inside := m.inImage(g, k)
			b.If(inside, func() {
				m.add(m.flat(b.Add(first, i), at, m.image), m.flat(b.Add(b.Mul(o, inGroup), i), k, m.kernel))
			}, nil)
		})
	})
	return o
}

// input sums for an element of an image and returns its channel.
func (m *convEmitter) input(id ir.Value) (channel ir.Value) {
	b := m.b
	h, rest := m.split(id, m.image)
	c, n := b.Rem(rest, m.channels), b.Div(rest, m.channels)
	inGroup, outGroup := b.Div(m.channels, m.groups), b.Div(m.outs, m.groups)
	first := b.Mul(b.Div(c, inGroup), outGroup)
	b.Range(outGroup, func(i ir.Value) {
		o := b.Add(first, i)
		m.walk(m.kernel, nil, func(k []ir.Value) {
			g, holds := make([]ir.Value, len(k)), b.Bool(true)
			for d := range k {
				at := b.Add(h[d], m.pad[d])
				reach := b.Mul(k[d], m.dilation[d])
				from := b.Sub(at, reach) // wraps around before the first window
				g[d] = b.Div(from, m.stride[d])
				holds = b.And(holds, b.And(b.Ge(at, reach), b.And(b.Eq(b.Rem(from, m.stride[d]), b.U32(0)), b.Lt(g[d], m.grid[d]))))
			}
			b.If(holds, func() {
				m.add(m.flat(b.Add(b.Mul(n, m.outs), o), g, m.grid), m.flat(b.Add(b.Mul(o, inGroup), b.Rem(c, inGroup)), k, m.kernel))
			}, nil)
		})
	})
	return c
}

// weight sums for an element of a weight.
func (m *convEmitter) weight(id ir.Value) {
	b := m.b
	k, rest := m.split(id, m.kernel)
	inGroup := b.Div(m.channels, m.groups)
	i, o := b.Rem(rest, inGroup), b.Div(rest, inGroup)
	c := b.Add(b.Mul(b.Div(o, b.Div(m.outs, m.groups)), inGroup), i)
	b.Range(m.n, func(n ir.Value) {
		m.walk(m.grid, nil, func(g []ir.Value) {
			at, inside := m.inImage(g, k)
			b.If(inside, func() {
				m.add(m.flat(b.Add(b.Mul(n, m.channels), c), at, m.image), m.flat(b.Add(b.Mul(n, m.outs), o), g, m.grid))
			}, nil)
		})
	})
}
