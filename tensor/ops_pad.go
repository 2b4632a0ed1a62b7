package tensor

import (
	"fmt"
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// PadMode says what a padded tensor has outside.
type PadMode int

// The modes of padding.
const (
	PadConstant  PadMode = iota // a value
	PadReflect                  // the tensor mirrored at its edge element
	PadReplicate                // the edge element
	PadCircular                 // the other end
)

// ParsePadMode returns the mode of that name.
func ParsePadMode(name string) (PadMode, error) {
	i := slices.Index([]string{"constant", "reflect", "replicate", "circular"}, name)
	if i < 0 {
		return 0, fmt.Errorf("unrecognised padding mode %q; there are constant, reflect, replicate and circular", name)
	}
	return PadMode(i), nil
}

var _ = defineOp(OpInfo{Name: "pad", Doc: "x with elements added before and after, in pairs from the last dimension on; negative ones cut", Kind: KindMove, Inputs: []string{"x"},
	Call: func(in []*Tensor, a Attrs) []*Tensor {
		mode, err := ParsePadMode(a.String("mode", "constant"))
		if err != nil {
			c := begin(LookupOp("pad"), in...)
			return one(c.fail("", err))
		}
		return one(in[0].Pad(a.Ints("pad"), mode, a.Float("value", 0)))
	},
	Ref: refOne(refPad),
	Samples: []Sample{
		valid("constant", Attrs{"pad": []int{1, 2, 0, 1}, "value": 0.5}, sampleArray(2, 3, 4)),
		valid("cut", Attrs{"pad": []int{-1, 2, 0, -1}}, sampleArray(3, 4)),
		valid("reflect", Attrs{"pad": []int{2, 3}, "mode": "reflect"}, sampleArray(2, 4)),
		valid("replicate", Attrs{"pad": []int{1, 2, 2, 0}, "mode": "replicate"}, sampleArray(1, 2, 3, 4)),
		valid("circular", Attrs{"pad": []int{2, 1}, "mode": "circular"}, sampleArray(2, 3)),
		invalid("should be less than the corresponding input dimension", Attrs{"pad": []int{4, 0}, "mode": "reflect"}, sampleArray(2, 4)),
		invalid("divisible by 2", Attrs{"pad": []int{4}}, sampleArray(2, 4)),
		invalid("unrecognised padding mode", Attrs{"pad": []int{1, 1}, "mode": "mirror"}, sampleArray(2, 4)),
	}})

func refPad(in []Array, a Attrs) Array {
	x, pad := in[0], a.Ints("pad")
	for i := 0; i < len(pad); i += 2 {
		d := len(x.Shape) - 1 - i/2
		x = x.lines(d, func(line []float64) []float64 {
			n := len(line)
			var out []float64
			for j := -pad[i]; j < n+pad[i+1]; j++ {
				k := j
				switch a.String("mode", "constant") {
				case "reflect":
					if k < 0 {
						k = -k
					}
					if k >= n {
						k = 2*(n-1) - k
					}
				case "replicate":
					k = min(max(k, 0), n-1)
				case "circular":
					k = (k + n) % n
				}
				if k < 0 || k >= n {
					out = append(out, a.Float("value", 0))
				} else {
					out = append(out, line[k])
				}
			}
			return out
		})
	}
	return x
}

// Pad returns t with pad[0] elements before and pad[1] after it in the last dimension, pad[2] and pad[3] in the one before, and
// so on. value counts for PadConstant, where negative numbers cut.
func (t *Tensor) Pad(pad []int, mode PadMode, value float64) *Tensor {
	c := begin(LookupOp("pad"), t)
	if c.err != nil {
		return c.failed()
	}
	if err := checkPairs(pad, len(t.shape)); err != nil {
		return c.shapeFail("%v", err)
	}
	if mode == PadConstant {
		return c.padConstant(pad, value)
	}
	out := t
	for i := 0; i < len(pad); i += 2 {
		d := len(t.shape) - 1 - i/2
		n, before, after := t.shape[d], pad[i], pad[i+1]
		switch {
		case before < 0 || after < 0:
			return c.shapeFail("padding %v must not be negative in this mode", pad)
		case mode == PadReflect && (before >= n || after >= n) && before+after > 0:
			return c.shapeFail("padding size should be less than the corresponding input dimension, but got: padding (%d, %d) at dimension %d of input %v", before, after, d, t.shape)
		case mode == PadCircular && (before > n || after > n):
			return c.shapeFail("padding value causes wrapping around more than once: padding (%d, %d) at dimension %d of input %v", before, after, d, t.shape)
		case mode == PadReplicate && n == 0 && before+after > 0:
			return c.shapeFail("expected a non-empty dimension %d to replicate, got input %v", d, t.shape)
		}
		var parts []*Tensor
		add := func(k int, f func() *Tensor) {
			if k > 0 {
				parts = append(parts, f())
			}
		}
		x := out
		edge := func(at, k int) *Tensor { return x.Slice(d, at, at+1, 1).Expand(withSize(x.shape, d, k)...) }
		add(before, func() *Tensor {
			switch mode {
			case PadReflect:
				return x.Slice(d, 1, before+1, 1).Flip(d)
			case PadCircular:
				return x.Slice(d, n-before, n, 1)
			}
			return edge(0, before)
		})
		parts = append(parts, x)
		add(after, func() *Tensor {
			switch mode {
			case PadReflect:
				return x.Slice(d, n-1-after, n-1, 1).Flip(d)
			case PadCircular:
				return x.Slice(d, 0, after, 1)
			}
			return edge(n-1, after)
		})
		if len(parts) > 1 {
			out = Cat(d, parts...)
		}
		if out.err != nil {
			return out
		}
	}
	return out
}

// padConstant fills the result and copies the operand into it.
func (c *call) padConstant(pad []int, value float64) *Tensor {
	t := c.in[0]
	shape := slices.Clone(t.shape)
	part := t
	inside := make([]int, len(shape)) // where part begins in the result
	for i := 0; i < len(pad); i += 2 {
		d := len(shape) - 1 - i/2
		before, after := pad[i], pad[i+1]
		if shape[d] += before + after; shape[d] < 0 {
			return c.shapeFail("padding %v leaves less than nothing of dimension %d of input %v", pad, d, t.shape)
		}
		from := max(-before, 0)
		if from > 0 || after < 0 {
			part = part.Slice(d, min(from, t.shape[d]), max(t.shape[d]+min(after, 0), 0), 1)
		}
		inside[d] = max(before, 0)
	}
	if part.err != nil {
		return part
	}
	c.in = one(part)
	out := c.output(shape, t.dtype)
	if out.err != nil {
		return out
	}
	o := t.dtype.operand()
	o.Strides = slices.Clone(out.strides)
	for d, at := range inside {
		o.Offset += at * o.Strides[d]
	}
	dst := binding{st: out.ref.st, write: true}
	steps := []step{{fillKernel(out.dtype, shape, value), []binding{dst}}}
	if Numel(part.shape) > 0 {
		steps = append(steps, step{lib.Generator(copyKernel(part, part.shape, o)), []binding{{st: part.ref.st}, dst}})
	}
	c.runSteps(steps, out)
	c.differentiable(one(out), nil, func(_ *Call, dy *Tensor) []*Tensor {
		for d, at := range inside {
			if n := part.shape[d]; n != shape[d] {
				dy = dy.Slice(d, at, at+n, 1)
			}
		}
		return one(dy)
	})
	return out
}
