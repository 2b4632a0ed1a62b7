package conformance

import (
	"fmt"
	"math"
	"strings"

	"github.com/anygpu/anygpu/tensor"
)

// boundKind is how results are held against references.
type boundKind int

const (
	exactBound     boundKind = iota // the reference, rounded once
	ulpBound                        // a number of units in the last place of the reference
	composedBound                   // units in the last place of the largest of reference and operands: formulas in which terms cancel
	summedBound                     // c * sqrt(K) * eps * sum|a||b|: sums and products, which grow with length and magnitude
	toleranceBound                  // atol + rtol*|reference|
)

// bound is what an operator's results are held to in float32. Those of float16 and bfloat16 are computed in float32 and may be
// off by one unit in their own last place besides; OpenCL's own table for half is wider.
type bound struct {
	kind   boundKind
	ulp    float64
	vulkan float64 // ulp in Vulkan, where it is another one
	why    string  // where the figure comes from, or why it is wider than the API's
}

// The figures of the two APIs. OpenCL: "Relative Error as ULPs" of the OpenCL C specification, single precision, full
// profile. Vulkan: "Precision and Operation of SPIR-V Instructions". What the library computes itself in Vulkan
// (ir.VulkanMath lists what it does not) is held to OpenCL's figure.
var apiBounds = map[string]bound{
	"div": {kind: ulpBound, ulp: 2.5}, "div_scalar": {kind: ulpBound, ulp: 2.5}, "reciprocal": {kind: ulpBound, ulp: 2.5},
	"sqrt":  {kind: ulpBound, ulp: 3, vulkan: 4.5, why: "Vulkan derives sqrt from 1/inversesqrt: 2 and 2.5"},
	"rsqrt": {kind: ulpBound, ulp: 2, vulkan: 2},
	"exp":   {kind: ulpBound, ulp: 3}, "exp2": {kind: ulpBound, ulp: 3}, "expm1": {kind: ulpBound, ulp: 3},
	"log": {kind: ulpBound, ulp: 3}, "log2": {kind: ulpBound, ulp: 3}, "log10": {kind: ulpBound, ulp: 3}, "log1p": {kind: ulpBound, ulp: 2},
	"pow": {kind: ulpBound, ulp: 16}, "pow_scalar": {kind: ulpBound, ulp: 16},
	"sin": {kind: ulpBound, ulp: 4}, "cos": {kind: ulpBound, ulp: 4}, "tan": {kind: ulpBound, ulp: 5},
	"sinh": {kind: ulpBound, ulp: 4}, "cosh": {kind: ulpBound, ulp: 4}, "tanh": {kind: ulpBound, ulp: 5},
	"asin": {kind: ulpBound, ulp: 4}, "acos": {kind: ulpBound, ulp: 4}, "atan": {kind: ulpBound, ulp: 5}, "atan2": {kind: ulpBound, ulp: 6},
	"erf": {kind: ulpBound, ulp: 16},
}

// rowBounds are the figures that no API has: each says why.
var rowBounds = map[string]bound{
	"sigmoid":     {kind: ulpBound, ulp: 6, why: "exp 3, sum 0.5, quotient 2.5"},
	"silu":        {kind: ulpBound, ulp: 7, why: "sigmoid 6, product 0.5, and its argument's 0.5"},
	"elu":         {kind: ulpBound, ulp: 4, why: "expm1 3, product 0.5 and 0.5 of the parameter"},
	"selu":        {kind: ulpBound, ulp: 5, why: "expm1 3, two products and the constants"},
	"softplus":    {kind: ulpBound, ulp: 8, why: "exp 3, log1p 2, sum 0.5 and the error of exp in log1p's argument"},
	"logsigmoid":  {kind: ulpBound, ulp: 8, why: "exp 3, log1p 2, sum 0.5 and the error of exp in log1p's argument"},
	"mish":        {kind: ulpBound, ulp: 16, why: "softplus 8, tanh 5, product 0.5"},
	"gelu":        {kind: composedBound, ulp: 16, why: "1 + erf cancels in the tail, as in PyTorch: erf 16"},
	"gelu_tanh":   {kind: composedBound, ulp: 8, why: "1 + tanh cancels in the tail: tanh 5, two products, sum"},
	"hardswish":   {kind: ulpBound, ulp: 4, why: "quotient 2.5, product 0.5, sum 0.5"},
	"hardsigmoid": {kind: ulpBound, ulp: 4, why: "quotient 2.5, sum 0.5"},
	"uniform":     {kind: toleranceBound, ulp: 1, why: "of a range: product and sum; from 0 to 1 exact"},
	"normal":      {kind: toleranceBound, ulp: 16, why: "logarithm 1.5, sine and cosine, root, products"},
	"dropout":     {kind: composedBound, ulp: 2, why: "the scale 1/(1-p) rounded, product 0.5"},
}

// exactOps give the exact result rounded once, in both APIs; what they do to integers is exact for every operator.
var exactOps = set("neg", "abs", "sign", "floor", "ceil", "trunc", "round", "relu", "relu6", "clamp", "add", "sub", "mul", "square", "maximum", "minimum",
	"add_scalar", "sub_scalar", "mul_scalar", "where", "masked_fill", "leaky_relu", "remainder", "fmod",
	"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or", "logical_xor",
	"amax", "amin", "argmax", "argmin", "any", "all", "sort", "argsort", "topk", "reshape", "permute", "transpose", "expand", "slice", "select", "cat", "stack",
	"flatten", "squeeze", "unsqueeze", "repeat", "repeat_interleave", "split", "chunk", "pad", "flip", "roll", "tril", "triu", "gather", "index_select",
	"masked_select", "one_hot", "arange", "eye", "full", "meshgrid", "embedding", "unfold", "contiguous", "max_pool1d", "max_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d",
	"clone", "detach", "broadcast_to", "view", "scatter", "cast", "to", "copy_", "from_slice", "bernoulli", "randint", "randperm", "multinomial")

// summedOps are sums over a number of terms: linear in each operand, so that the reference of the operands' absolute values
// is the sum of the terms' magnitudes.
var summedOps = set("sum", "mean", "sum_mul", "matmul", "linear", "bmm", "dot", "outer", "einsum", "addmm", "cumsum", "conv1d", "conv2d", "conv3d",
	"conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_weight", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "fold", "scatter_add", "index_add", "index_put",
	"interpolate")

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// boundOf returns what a row's float32 results are held to on a device of an API.
func boundOf(op *tensor.OpInfo, api string) bound {
	b, ok := apiBounds[op.Name]
	if !ok {
		b, ok = rowBounds[op.Name]
	}
	switch {
	case ok:
		if api == "vulkan" && b.vulkan > 0 {
			b.ulp = b.vulkan
		}
	case exactOps[op.Name] || strings.HasPrefix(op.Name, "bitwise_") || op.Kind == tensor.KindView:
		b = bound{kind: exactBound}
	case summedOps[op.Name] || op.Kind == tensor.KindTemplate:
		b = bound{kind: summedBound, ulp: 4, why: "c*sqrt(K)*eps*sum|a||b|, c = 4"}
	case op.Elementwise() != nil:
		b = bound{kind: composedBound, ulp: 8, why: "a formula of several operations"}
	default:
		b = bound{kind: toleranceBound, ulp: 64, why: "a composition of operators: 64 eps of the largest value"}
	}
	return b
}

// String describes the bound for an output dtype.
func (b bound) describe(d tensor.DType) string {
	if !d.IsFloat() {
		return "exact"
	}
	own := ""
	if d != tensor.Float32 && d != tensor.Float64 && b.kind != exactBound {
		own = " in float32, and 1 ULP of " + d.String()
	}
	switch b.kind {
	case exactBound:
		return "correctly rounded"
	case ulpBound:
		return fmt.Sprintf("%g ULP%s", b.ulp, own)
	case composedBound:
		return fmt.Sprintf("%g ULP of the largest operand or result%s", b.ulp, own)
	case summedBound:
		return fmt.Sprintf("%g*sqrt(K)*eps*sum|a||b|%s", b.ulp, own)
	}
	return fmt.Sprintf("%g eps of the largest value%s", b.ulp, own)
}

// scale is what the size of an error is judged by besides the reference itself.
type scale struct {
	operand float64 // largest magnitude of the operands at this element
	sum     float64 // sum of the magnitudes of the terms
	terms   float64 // number of terms
	largest float64 // largest magnitude of the results
}

// allowed returns the largest error of a result of dtype d whose reference is want.
func (b bound) allowed(d tensor.DType, want float64, s scale) float64 {
	own := formats[d]
	inner := formats[tensor.Float32]
	if d == tensor.Float64 {
		inner = own
	}
	var e float64
	switch b.kind {
	case ulpBound:
		e = b.ulp * inner.ulp(want)
	case composedBound:
		e = b.ulp * inner.ulp(math.Max(math.Abs(want), s.operand))
	case summedBound:
		e = b.ulp*math.Sqrt(math.Max(1, s.terms))*inner.eps*s.sum + inner.ulp(want)
	case toleranceBound:
		e = b.ulp * inner.eps * math.Max(s.largest, s.operand)
	}
	if b.kind == exactBound {
		return 0
	}
	if d == tensor.Float64 {
		e += 2 * own.ulp(want) // the reference's own rounding
	}
	if d != tensor.Float32 && d != tensor.Float64 {
		e += own.ulp(want)
		if b.kind == summedBound {
			// The product is kept in float32, but a bias may be added after it was rounded to the short dtype.
			e += own.eps * s.sum / 2
		}
		if b.kind == toleranceBound {
			// The parts of a composition are rounded to the short dtype each.
			e += 4 * own.eps * math.Max(s.largest, s.operand)
		}
	}
	return e
}
