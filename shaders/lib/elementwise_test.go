package lib_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

type vals = []ir.Value

// places lists the element of an operand for each element of shape in row-major order.
func places(shape []int, o lib.Operand) []int {
	strides := o.Strides
	n := 1
	for _, d := range shape {
		n *= d
	}
	if strides == nil {
		strides = make([]int, len(shape))
		s := 1
		for d := len(shape) - 1; d >= 0; d-- {
			strides[d] = s
			s *= shape[d]
		}
	}
	out := make([]int, n)
	for i := range out {
		rest, at := i, o.Offset
		for d := len(shape) - 1; d >= 0; d-- {
			at += rest % shape[d] * strides[d]
			rest /= shape[d]
		}
		out[i] = at
	}
	return out
}

// reach is the number of elements that a buffer needs for an operand.
func reach(shape []int, o lib.Operand) int {
	n := 0
	for _, p := range places(shape, o) {
		n = max(n, p+1)
	}
	return n
}

// elementwise makes a case of a spec and a reference for one element. Outputs keep 0 where nothing is stored.
func elementwise(name string, e lib.Elementwise, ref func(in []float64, index int) []float64, rel float64) kcase {
	e.Name = strings.NewReplacer("/", "_", " ", "_").Replace(name)
	if e.BodyKey == "" {
		e.BodyKey = name
	}
	var bufs []array
	for i, o := range e.In {
		data := noise(o.Kind, reach(e.Shape, o), uint64(100+i))
		if o.Bool {
			for j := range data {
				data[j] = float64(int(data[j]) % 2)
			}
		}
		bufs = append(bufs, array{kind: o.Kind, data: data})
	}
	outs := make([]array, len(e.Out))
	for i, o := range e.Out {
		n := reach(e.Shape, o)
		outs[i] = array{kind: o.Kind, data: make([]float64, n), want: make([]float64, n), rel: rel, abs: rel}
	}
	var at [][]int
	for _, o := range append(append([]lib.Operand{}, e.In...), e.Out...) {
		at = append(at, places(e.Shape, o))
	}
	for i := range places(e.Shape, lib.Operand{}) {
		in := make([]float64, len(e.In))
		for j := range e.In {
			in[j] = bufs[j].data[at[j][i]]
		}
		for j, v := range ref(in, i) {
			outs[j].want[at[len(e.In)+j][i]] = round(e.Out[j].Kind, v)
		}
	}
	// Elements between those of a strided output are not written: give them something to keep.
	bufs = append(bufs, outs...)
	return kcase{name: "elementwise " + name, bufs: bufs, steps: one(&e, len(bufs))}
}

func add(b *ir.Builder, in, _ vals) vals { return vals{b.Add(in[0], in[1])} }

func addRef(in []float64, _ int) []float64 { return []float64{in[0] + in[1]} }

func of(k ir.Kind) lib.Operand { return lib.Operand{Kind: k} }

func strided(k ir.Kind, offset int, strides ...int) lib.Operand {
	return lib.Operand{Kind: k, Strides: strides, Offset: offset}
}

var boolean = lib.Operand{Kind: ir.U8, Bool: true}

func elementwiseCases() []kcase {
	var out []kcase
	// Every kind, contiguous.
	for _, k := range []ir.Kind{ir.F32, ir.F16, ir.BF16, ir.F64, ir.I32, ir.U32, ir.I64, ir.U8} {
		for _, n := range []int{0, 1, 3, 37, 64, 1000} {
			rel := 0.0
			if k == ir.F16 || k == ir.BF16 {
				rel = 1.0 / 256
			} else if k == ir.F32 {
				rel = 1e-6
			}
			ref := addRef
			if k == ir.U8 {
				ref = func(in []float64, _ int) []float64 { return []float64{float64(uint8(in[0] + in[1]))} }
			}
			out = append(out, elementwise(fmt.Sprintf("add/%s/%d", k, n),
				lib.Elementwise{BodyKey: "add", Shape: []int{n}, In: []lib.Operand{of(k), of(k)}, Out: []lib.Operand{of(k)}, Body: add}, ref, rel))
		}
	}
	// A long body, of which several chunks are done at once: full groups of chunks, single ones and a tail.
	for _, n := range []int{1, 16, 63, 64, 65, 1000, 4113} {
		out = append(out, elementwise(fmt.Sprintf("long/%d", n), lib.Elementwise{BodyKey: "long", Ops: []string{"mul", "add", "mul", "add", "mul", "add"}, Shape: []int{n},
			In: []lib.Operand{of(ir.F32), strided(ir.F32, 0, 0)}, Out: []lib.Operand{of(ir.F32)}, Body: func(b *ir.Builder, in, _ vals) vals {
				x := in[0]
				for range 3 {
					x = b.Add(b.Mul(x, x), in[1])
				}
				return vals{x}
			}},
			func(in []float64, _ int) []float64 {
				x := in[0]
				for range 3 {
					x = x*x + in[1]
				}
				return []float64{x}
			}, 1e-5))
	}
	// Layouts.
	for _, c := range []struct {
		name  string
		shape []int
		x, y  lib.Operand
		out   lib.Operand
	}{
		{"zero-dim", []int{}, of(ir.F32), of(ir.F32), of(ir.F32)},
		{"empty in the middle", []int{3, 0, 5}, of(ir.F32), of(ir.F32), of(ir.F32)},
		{"scalar operand", []int{4, 25}, of(ir.F32), strided(ir.F32, 0, 0, 0), of(ir.F32)},
		{"scalar operand with an offset", []int{100}, of(ir.F32), strided(ir.F32, 5, 0), of(ir.F32)},
		{"bias 10", []int{33, 10}, of(ir.F32), strided(ir.F32, 0, 0, 1), of(ir.F32)},
		{"bias 64", []int{7, 64}, of(ir.F32), strided(ir.F32, 0, 0, 1), of(ir.F32)},
		{"bias 1000", []int{5, 1000}, of(ir.F32), strided(ir.F32, 0, 0, 1), of(ir.F32)},
		{"bias 1001", []int{3, 1001}, of(ir.F32), strided(ir.F32, 0, 0, 1), of(ir.F32)},
		{"half bias", []int{5, 37}, of(ir.F16), strided(ir.F32, 0, 0, 1), of(ir.F16)},
		{"column broadcast", []int{9, 48}, of(ir.F32), strided(ir.F32, 0, 1, 0), of(ir.F32)},
		{"broadcast both", []int{13, 17}, strided(ir.F32, 0, 1, 0), strided(ir.F32, 0, 0, 1), of(ir.F32)},
		{"transposed", []int{19, 23}, of(ir.F32), strided(ir.F32, 0, 1, 19), of(ir.F32)},
		{"permuted", []int{3, 4, 5, 6}, strided(ir.F32, 0, 1, 90, 3, 15), strided(ir.F32, 7, 120, 1, 24, 4), of(ir.F32)},
		{"permuted alike", []int{6, 5, 4}, strided(ir.F32, 0, 1, 6, 30), strided(ir.F32, 0, 1, 6, 30), strided(ir.F32, 0, 1, 6, 30)},
		{"slice", []int{8, 16}, strided(ir.F32, 4, 32, 1), of(ir.F32), of(ir.F32)},
		{"slice at an odd place", []int{8, 13}, strided(ir.F32, 3, 29, 1), of(ir.F32), of(ir.F32)},
		{"every second", []int{40}, strided(ir.F32, 1, 2), of(ir.F32), of(ir.F32)},
		{"backwards", []int{45}, strided(ir.F32, 44, -1), of(ir.F32), of(ir.F32)},
		{"backwards rows", []int{6, 20}, strided(ir.F32, 100, -20, 1), of(ir.F32), of(ir.F32)},
		{"offset", []int{50}, strided(ir.F32, 7, 1), strided(ir.F32, 16, 1), of(ir.F32)},
		{"cat", []int{4, 12}, of(ir.F32), of(ir.F32), strided(ir.F32, 12, 36, 1)},
		{"cat at an odd place", []int{4, 11}, of(ir.F32), of(ir.F32), strided(ir.F32, 5, 31, 1)},
		{"cat of halves at an odd place", []int{4, 11}, of(ir.F32), of(ir.F32), strided(ir.F16, 5, 31, 1)},
		{"strided output", []int{31}, of(ir.F32), of(ir.F32), strided(ir.F32, 0, 3)},
	} {
		rel := 1e-6
		if c.out.Kind == ir.F16 {
			rel = 1e-3
		}
		out = append(out, elementwise(c.name, lib.Elementwise{BodyKey: "addf", Shape: c.shape, In: []lib.Operand{c.x, c.y}, Out: []lib.Operand{c.out},
			Body: func(b *ir.Builder, in, _ vals) vals {
				return vals{b.Add(b.Convert(in[0], ir.F32), b.Convert(in[1], ir.F32))}
			}}, addRef, rel))
	}
	return append(out, elementwiseSpecials()...)
}

func elementwiseSpecials() []kcase {
	less := lib.Elementwise{Shape: []int{9, 21}, In: []lib.Operand{of(ir.F32), strided(ir.F32, 0, 0, 1)}, Out: []lib.Operand{boolean},
		Body: func(b *ir.Builder, in, _ vals) vals { return vals{b.Lt(in[0], in[1])} }}
	where := lib.Elementwise{Shape: []int{77}, In: []lib.Operand{boolean, of(ir.F32), of(ir.F16)}, Out: []lib.Operand{of(ir.F32), of(ir.BF16)},
		Body: func(b *ir.Builder, in, _ vals) vals {
			return vals{b.Select(in[0], in[1], in[2]), b.Neg(in[1])}
		}}
	fill := lib.Elementwise{Shape: []int{43}, Out: []lib.Operand{of(ir.U8), of(ir.I64), of(ir.F16)},
		Body: func(b *ir.Builder, _, _ vals) vals {
			return vals{b.I32(258), b.ConstBits(ir.Scalar(ir.I64), 1<<40), b.F32(0.1)}
		}}
	scalars := lib.Elementwise{Shape: []int{3, 50}, In: []lib.Operand{of(ir.F32)}, Out: []lib.Operand{of(ir.F32)},
		Scalars: []ir.Kind{ir.F32, ir.I32, ir.U32}, ScalarBits: []uint32{math.Float32bits(0.5), uint32(0xfffffffd), 7},
		Body: func(b *ir.Builder, in, s vals) vals {
			sum := b.Add(b.Convert(s[1], ir.F32), b.Convert(s[2], ir.F32))
			return vals{b.Add(b.Mul(in[0], s[0]), sum)}
		}}
	arange := lib.Elementwise{Shape: []int{6, 11}, Index: true, Out: []lib.Operand{of(ir.I64), {Kind: ir.I32, Strides: []int{1, 6}}},
		Body: func(b *ir.Builder, in, _ vals) vals {
			return vals{b.Convert(in[0], ir.I64), b.Convert(in[0], ir.I32)}
		}}
	mask := lib.Elementwise{Shape: []int{5, 300}, In: []lib.Operand{strided(ir.I32, 0, 1, 0)}, Index: true, Out: []lib.Operand{boolean},
		Body: func(b *ir.Builder, in, _ vals) vals {
			col := b.Convert(b.Rem(in[1], b.ConstLike(in[1], 300)), ir.I32)
			return vals{b.Gt(in[0], col)}
		}}
	// More geometry than there is room for parameters.
	var many []lib.Operand
	shape := []int{2, 3, 2, 3, 2, 2}
	for i := range 6 {
		many = append(many, strided(ir.F32, i, 1+i, 5, 17+i, 40, 101, 211))
	}
	wide := lib.Elementwise{Shape: shape, In: many, Out: []lib.Operand{of(ir.F32)}, Scalars: []ir.Kind{ir.F32}, ScalarBits: []uint32{math.Float32bits(2)},
		Body: func(b *ir.Builder, in, s vals) vals {
			sum := in[0]
			for _, x := range in[1:] {
				sum = b.Add(sum, x)
			}
			return vals{b.Mul(sum, s[0])}
		}}
	cast := lib.Elementwise{Shape: []int{130}, In: []lib.Operand{of(ir.I64)}, Out: []lib.Operand{of(ir.F32), of(ir.I32)},
		Body: func(b *ir.Builder, in, _ vals) vals { return vals{b.Convert(in[0], ir.F32), b.Convert(in[0], ir.I32)} }}
	return []kcase{
		elementwise("less", less, func(in []float64, _ int) []float64 {
			if in[0] < in[1] {
				return []float64{1}
			}
			return []float64{0}
		}, 0),
		elementwise("where", where, func(in []float64, _ int) []float64 {
			if in[0] != 0 {
				return []float64{in[1], -in[1]}
			}
			return []float64{in[2], -in[1]}
		}, 1e-6),
		elementwise("fill", fill, func([]float64, int) []float64 { return []float64{2, 1 << 40, 0.1} }, 0),
		elementwise("scalars", scalars, func(in []float64, _ int) []float64 { return []float64{in[0]*0.5 + 4} }, 1e-6),
		elementwise("arange", arange, func(_ []float64, i int) []float64 { return []float64{float64(i), float64(i)} }, 0),
		elementwise("mask", mask, func(in []float64, i int) []float64 {
			if in[0] > float64(i%300) {
				return []float64{1}
			}
			return []float64{0}
		}, 0),
		elementwise("wide", wide, func(in []float64, _ int) []float64 {
			sum := 0.0
			for _, x := range in {
				sum += x
			}
			return []float64{2 * sum}
		}, 1e-5),
		elementwise("cast", cast, func(in []float64, _ int) []float64 { return []float64{in[0], in[0]} }, 0),
	}
}

// TestElementwiseLayouts runs random layouts: permuted, broadcast, flipped, sliced and offset operands of random kinds.
func TestElementwiseLayouts(t *testing.T) {
	kinds := []ir.Kind{ir.F32, ir.F32, ir.F16, ir.I32, ir.U8}
	for seed := range uint64(120) {
		draws := 0
		draw := func(n int) int {
			draws++
			return int(lib.Philox(seed, uint64(draws))[0] % uint32(n))
		}
		shape := make([]int, 1+draw(4))
		for d := range shape {
			shape[d] = []int{1, 2, 3, 4, 5, 8, 16, 33}[draw(8)]
		}
		if draw(4) == 0 {
			shape[len(shape)-1] = 64 * (1 + draw(5))
		}
		for n := product(shape); n > 4000; n = product(shape) {
			shape = shape[1:]
		}
		operand := func(kind ir.Kind, output bool) lib.Operand {
			o := lib.Operand{Kind: kind, Strides: make([]int, len(shape)), Offset: []int{0, 0, 1, 4, 16}[draw(5)]}
			order := make([]int, len(shape))
			for i := range order {
				order[i] = i
				j := draw(i + 1)
				order[i], order[j] = order[j], order[i]
			}
			if draw(2) == 0 {
				for i := range order {
					order[i] = len(order) - 1 - i
				}
			}
			stride := 1
			for _, d := range order {
				if !output && draw(5) == 0 {
					continue // repeated
				}
				o.Strides[d] = stride
				stride *= shape[d] + draw(8)/7
				if draw(8) == 0 {
					o.Offset += o.Strides[d] * (shape[d] - 1)
					o.Strides[d] = -o.Strides[d]
				}
			}
			return o
		}
		e := lib.Elementwise{BodyKey: "layouts", Shape: shape, Index: draw(3) == 0,
			In:  []lib.Operand{operand(kinds[draw(len(kinds))], false), operand(kinds[draw(len(kinds))], false)},
			Out: []lib.Operand{operand(ir.F32, true), operand(ir.I32, true)},
			Body: func(b *ir.Builder, in, _ vals) vals {
				sum := b.ConstLike(b.Convert(in[0], ir.F32), 0)
				for _, x := range in {
					sum = b.Add(sum, b.Convert(x, ir.F32))
				}
				return vals{sum, b.Convert(sum, ir.I32)}
			}}
		c := elementwise(fmt.Sprintf("layouts %d: shape %v in %v out %v", seed, shape, e.In, e.Out), e, func(in []float64, i int) []float64 {
			sum := in[0] + in[1]
			if e.Index {
				sum += float64(i)
			}
			return []float64{sum, math.Trunc(sum)}
		}, 1e-5)
		// The terms reach 5,000, so that a small sum is off by some roundings of those; close to an integer it may
		// truncate to either side.
		c.bufs[2].abs, c.bufs[3].abs = 1e-3, 1
		for _, d := range targets() {
			runCase(t, d, c)
		}
	}
}

func TestElementwiseErrors(t *testing.T) {
	target := targets()[1].t
	ok := func() lib.Elementwise {
		return lib.Elementwise{Name: "add", Shape: []int{4, 5}, In: []lib.Operand{of(ir.F32), of(ir.F32)}, Out: []lib.Operand{of(ir.F32)}, Body: add}
	}
	for _, c := range []struct {
		name string
		edit func(*lib.Elementwise)
		want string
	}{
		{"strides", func(e *lib.Elementwise) { e.In[1].Strides = []int{1} }, "1 strides for the 2 dimensions"},
		{"kind", func(e *lib.Elementwise) { e.In[1].Kind = ir.Bool }, "bool is no kind of an operand"},
		{"overlap", func(e *lib.Elementwise) { e.Out[0].Strides = []int{0, 1} }, "share an address"},
		{"no output", func(e *lib.Elementwise) { e.Out = nil }, "an output and a body"},
		{"negative", func(e *lib.Elementwise) { e.Shape = []int{4, -5} }, "negative dimension"},
		{"below 0", func(e *lib.Elementwise) { e.In[0].Strides = []int{-5, 1} }, "from element -15"},
		{"scalars", func(e *lib.Elementwise) { e.Scalars = []ir.Kind{ir.F32} }, "1 scalars are declared but 0"},
		{"too large", func(e *lib.Elementwise) { e.Shape = []int{1 << 16, 1 << 16} }, "4294967296 elements"},
		{"binding", func(e *lib.Elementwise) { e.Shape = []int{1 << 26} }, "the device binds at most 134217728"},
		{"body kind", func(e *lib.Elementwise) { e.Out[0].Kind = ir.I32 }, "returned a value of kind f32 for an output of kind i32"},
		{"body count", func(e *lib.Elementwise) { e.Out = append(e.Out, of(ir.F32)) }, "returned 1 values for 2 outputs"},
		{"buffers", func(e *lib.Elementwise) {
			for range 40 {
				e.In = append(e.In, of(ir.F32))
			}
		}, "43 buffers are more than the 32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := ok()
			c.edit(&e)
			_, _, err := e.Launch(target)
			if err == nil {
				_, err = e.Build(target)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "add") {
				t.Errorf("got error %v, want one with %q that names the kernel", err, c.want)
			}
			if e.Key() == "" {
				t.Error("no key")
			}
		})
	}
}
