package tensor

// reads says which values the gradient of an operator needs. A tensor whose value no gradient needs can be discarded after its last
// use in the forward pass.
type reads int

const (
	readsAll      reads = iota // operands and results: what is assumed of operators that are not listed
	readsOperands              // operands alone
	readsResults               // results alone
	readsNothing               // shapes and attributes alone
)

// gradientReads lists operators by the values that their gradients need. A test discards all others and compares the gradients.
var gradientReads = map[string]reads{
	"add": readsNothing, "sub": readsNothing, "neg": readsNothing, "add_scalar": readsNothing, "mul_scalar": readsNothing, "div_scalar": readsNothing,
	"cast": readsNothing, "contiguous": readsNothing, "clone": readsNothing, "to": readsNothing,
	"reshape": readsNothing, "flatten": readsNothing, "permute": readsNothing, "transpose": readsNothing, "squeeze": readsNothing,
	"unsqueeze": readsNothing, "slice": readsNothing, "select": readsNothing, "expand": readsNothing, "embed": readsNothing, "cat": readsNothing,
	"max_pool1d": readsNothing, "max_pool2d": readsNothing, "avg_pool1d": readsNothing, "avg_pool2d": readsNothing,

	"mul": readsOperands, "square": readsOperands, "log": readsOperands, "matmul": readsOperands, "linear": readsOperands, "addcmul": readsOperands,
	"conv1d": readsOperands, "conv2d": readsOperands, "conv3d": readsOperands, "conv_transpose1d": readsOperands, "conv_transpose2d": readsOperands,
	"conv_transpose3d": readsOperands, "conv_weight_grad": readsOperands,
	"gelu": readsOperands, "gelu_tanh": readsOperands, "silu": readsOperands, "masked_fill": readsOperands,

	"relu": readsResults, "tanh": readsResults, "sigmoid": readsResults, "exp": readsResults, "sqrt": readsResults, "sum": readsResults, "mean": readsResults, "softmax": readsResults,
	"log_softmax": readsResults, "standardize": readsResults,
}

// save notes the tensors that the gradient of a recorded operator needs.
func (fn *gradFn) save(outs []*Tensor) {
	r := gradientReads[fn.op.Name]
	if r == readsAll || r == readsOperands {
		for _, t := range fn.in {
			if t.scope != nil { // parameters are shared by goroutines, and never discarded
				fn.saved = append(fn.saved, t.ref)
			}
		}
	}
	if r == readsAll || r == readsResults {
		for _, t := range outs {
			if t.scope != nil {
				fn.saved = append(fn.saved, t.ref)
			}
		}
	}
	for _, r := range fn.saved {
		r.saves++
	}
}

// spent reports whether an earlier backward pass freed what the gradient needs.
func (fn *gradFn) spent() bool {
	for _, r := range fn.saved {
		if r.given && r.done.Load() {
			return true
		}
	}
	return false
}

// unsave frees the discarded values that only this gradient needed, after it was computed.
func (fn *gradFn) unsave() {
	for _, r := range fn.saved {
		if r.saves--; r.saves <= 0 && r.given {
			r.release()
		}
	}
}

// Discard gives up a value that will not be read any more, before its scope closes: its memory is used again as soon as the
// operators that were called with it have run. A value that gradients need stays until Backward has used it, which is the
// difference to Free. Layers discard what they compute on the way. Tensors without a scope, such as parameters, and those
// that collect gradients themselves are not discarded. Reading a discarded value is an error; a tensor on which Keep was called
// stays.
func (t *Tensor) Discard() {
	if t == nil || t.err != nil || t.scope == nil || t.requiresGrad || t.ref.done.Load() {
		return
	}
	t.ref.given = true
	if t.ref.saves <= 0 {
		t.ref.release()
	}
}

// through discards x once y was computed of it, and returns y; some operators return their operand.
func through(x, y *Tensor) *Tensor {
	if x != y {
		x.Discard()
	}
	return y
}
