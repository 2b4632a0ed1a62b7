package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/anygpu/anygpu/tensor"
)

// allDTypes are the dtypes that operators are tried with.
var allDTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Bool}

// A layout is how an operand lies in memory.
type layout string

const (
	contiguous layout = "contiguous"
	transposed layout = "transposed" // the last two dimensions are swapped in memory
	sliced     layout = "sliced"     // every second element of a larger tensor, from an offset on
	expanded   layout = "expanded"   // the first dimension repeats one row: stride 0
)

// rounded returns an array with its values rounded to a dtype, and its dtype set.
func rounded(a tensor.Array, d tensor.DType) tensor.Array {
	out := tensor.Array{Shape: a.Shape, DType: d, Data: make([]float64, len(a.Data))}
	for i, v := range a.Data {
		if d.IsFloat() {
			out.Data[i] = formats[d].round(v)
		} else {
			out.Data[i] = wrapped(d, v)
		}
	}
	return out
}

// dtypeOf is the dtype of a sample's array.
func dtypeOf(a tensor.Array) tensor.DType {
	if a.DType == tensor.InvalidDType {
		return tensor.Float32
	}
	return a.DType
}

// place makes a tensor of an array's values on the scope's device, laid out as asked.
func place(s *tensor.Scope, a tensor.Array, l layout) *tensor.Tensor {
	d := dtypeOf(a)
	up := func(data []float64, shape []int) *tensor.Tensor {
		return s.To(tensor.FromFloat64s(data, shape...).Cast(d))
	}
	n := len(a.Shape)
	switch {
	case l == transposed && n >= 2:
		shape := slices.Clone(a.Shape)
		rows, cols := shape[n-2], shape[n-1]
		shape[n-2], shape[n-1] = cols, rows
		data := make([]float64, len(a.Data))
		for i, v := range a.Data {
			m, r, c := i/max(1, rows*cols), i/max(1, cols)%max(1, rows), i%max(1, cols)
			data[m*rows*cols+c*rows+r] = v
		}
		return up(data, shape).Transpose(-1, -2)
	case l == sliced && n >= 1:
		last := a.Shape[n-1]
		shape := slices.Clone(a.Shape)
		shape[n-1] = 2*last + 3
		data := make([]float64, tensor.Numel(shape))
		for i := range data {
			data[i] = 99 // what nobody may read; fits every dtype
		}
		for i, v := range a.Data {
			data[i/last*shape[n-1]+1+2*(i%last)] = v
		}
		return up(data, shape).Slice(-1, 1, 2*last, 2)
	case l == expanded && n >= 2 && a.Shape[0] > 0:
		shape := slices.Clone(a.Shape)
		shape[0] = 1
		return up(a.Data[:tensor.Numel(shape)], shape).Expand(a.Shape...)
	}
	return up(a.Data, a.Shape)
}

// repeatFirst makes an array that the expanded layout can hold: every row is the first.
func repeatFirst(a tensor.Array) tensor.Array {
	if len(a.Shape) < 2 || a.Shape[0] == 0 {
		return a
	}
	n := len(a.Data) / a.Shape[0]
	out := a
	out.Data = slices.Clone(a.Data)
	for i := range out.Data {
		out.Data[i] = a.Data[i%n]
	}
	return out
}

// describe returns an operand's name, dtype, shape and strides.
func describe(name string, a tensor.Array, l layout) string {
	return fmt.Sprintf("%s %s %v strides %v", name, dtypeOf(a), a.Shape, stridesOf(a.Shape, l))
}

// stridesOf returns the strides of a shape in a layout, as place makes them.
func stridesOf(shape []int, l layout) []int {
	n := len(shape)
	full := slices.Clone(shape)
	switch {
	case l == transposed && n >= 2:
		full[n-2], full[n-1] = full[n-1], full[n-2]
	case l == sliced && n >= 1:
		full[n-1] = 2*full[n-1] + 3
	}
	st := make([]int, n)
	size := 1
	for i := n - 1; i >= 0; i-- {
		st[i] = size
		size *= full[i]
	}
	switch {
	case l == transposed && n >= 2:
		st[n-2], st[n-1] = st[n-1], st[n-2]
	case l == sliced && n >= 1:
		st[n-1] = 2
	case l == expanded && n >= 2:
		st[0] = 0
	}
	return st
}

// operandName returns the name of an operator's operand i.
func operandName(op *tensor.OpInfo, i int) string {
	if op != nil && i < len(op.Inputs) {
		return op.Inputs[i]
	}
	return fmt.Sprintf("operand %d", i)
}

// attrsText prints attributes in order of name.
func attrsText(a tensor.Attrs) string {
	var out []string
	for k, v := range a {
		out = append(out, fmt.Sprintf("%s=%v", k, v))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// generated are operands made for an elementwise row.
type generated struct {
	in    []tensor.Array
	attrs tensor.Attrs
}

// domain returns the bounds of an elementwise row's random operands.
func domain(e *tensor.Elementwise) (lo, hi float64) {
	if e.Domain[0] == e.Domain[1] {
		return -3, 3
	}
	return e.Domain[0], e.Domain[1]
}

// dividers are the operators whose second operand may not be an integer 0.
var dividers = set("div", "remainder", "fmod", "floor_divide")

// generate makes operands within the row's domain.
func generate(op *tensor.OpInfo, d tensor.DType, rng *rand.Rand, shapes ...[]int) generated {
	e := op.Elementwise()
	lo, hi := domain(e)
	g := generated{attrs: tensor.Attrs{}}
	for i := range e.Arity {
		a := tensor.Array{Shape: shapes[i%len(shapes)], DType: d}
		cond := slices.Contains(e.Bools, i)
		if cond {
			a.DType = tensor.Bool
		}
		for range tensor.Numel(a.Shape) {
			v := lo + (hi-lo)*rng.Float64()
			switch {
			case cond || d == tensor.Bool:
				v = float64(rng.IntN(2))
			case !d.IsFloat():
				v = math.Round(v)
				if lo > 0 {
					v = max(v, 1)
				}
				if d == tensor.Uint8 {
					v = math.Abs(v)
				}
			}
			if i > 0 && v == 0 && !d.IsFloat() && dividers[op.Name] {
				v = 1
			}
			a.Data = append(a.Data, v)
		}
		g.in = append(g.in, rounded(a, a.DType))
	}
	for i, p := range e.Params {
		v := 0.0
		if i < len(e.Default) {
			v = e.Default[i]
		}
		switch {
		case v == 0 || math.IsInf(v, 0):
			v = 0.5 + float64(i)
			if !d.IsFloat() {
				v = float64(1 + i)
			}
		case d.IsFloat() && d != tensor.Float64:
			v = float64(float32(v)) // what a kernel's parameter can hold
		}
		g.attrs[p] = v
	}
	return g
}

// specialValues are where functions have edges: zeros of both signs, infinities, NaN, large and small numbers.
var specialValues = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2.5, 3.5, 100, -100, 0x1p-30, 1e30, -1e30, math.Inf(1), math.Inf(-1), math.NaN()}

// special makes operands of all pairs of special values.
func special(op *tensor.OpInfo) generated {
	e := op.Elementwise()
	g := generate(op, tensor.Float32, rand.New(rand.NewPCG(1, 1)), []int{1})
	n := len(specialValues)
	for i := range g.in {
		if g.in[i].DType == tensor.Bool {
			g.in[i].Shape = []int{1}
			continue
		}
		total := n
		if e.Arity > 1 {
			total = n * n
		}
		a := tensor.Array{Shape: []int{total}, DType: tensor.Float32}
		for k := range total {
			v := specialValues[k%n]
			if i > 0 {
				v = specialValues[(k/n+(i-1)*k)%n]
			}
			a.Data = append(a.Data, float64(float32(v)))
		}
		g.in[i] = a
	}
	return g
}
