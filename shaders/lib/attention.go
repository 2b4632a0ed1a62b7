package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Attention computes softmax(scale q k^T) v for each head of each batch without storing the scores (Dao et al.,
// "FlashAttention", 2022), or with Backward the gradients of q, k and v. Queries are [Queries, D], keys [Keys, D], values
// [Keys, E] and results [Queries, E]; products and sums are in F32. There is at least one of everything.
//
// Buffers: q, k, v, out and lse, which gets the logarithm of each query's sum of exponentials as F32, contiguous as [Batch, Heads,
// Queries]. With Backward: q, k, v, out, lse, the gradient of out, and one buffer for the gradients of q, k and v.
type Attention struct {
	Batch, Heads, Queries, Keys int
	D, E                        int
	Kind                        ir.Kind // F32, F16 or BF16, of all but lse
	Causal                      bool    // query i sees keys 0 to i
	Scale                       float32
	Backward                    bool
	Q, K, V, Out                AttentionLayout
	DOut, DQ, DK, DV            AttentionLayout // with Backward
	Ops                         []string
}

// AttentionLayout is where an operand's features are, in elements: those of a row are contiguous.
type AttentionLayout struct{ Offset, Batch, Head, Row int }

// maxAttentionVectors bounds the vectors that an invocation keeps of a row.
const maxAttentionVectors = 32

// Fits reports whether the kernel can serve the sizes on a target; other ones need the product, the softmax and the product one by one.
func (a *Attention) Fits(t Target) bool {
	w := a.width(t)
	if a.Batch < 1 || a.Heads < 1 || a.Queries < 1 || a.Keys < 1 || a.D < 1 || a.E < 1 || max(a.D, a.E) > maxAttentionVectors*w {
		return false
	}
	if most := t.Caps.MaxLoopTrips; most > 0 && max(a.Queries, a.Keys) >= most {
		return false
	}
	for _, o := range a.layouts() {
		if o.l.Offset < 0 || o.l.Batch < 0 || o.l.Head < 0 || o.l.Row < 0 {
			return false
		}
		if satAdd(satAdd(satMul(a.Batch, o.l.Batch), satMul(a.Heads, o.l.Head)), satAdd(satMul(o.rows, o.l.Row), o.l.Offset+o.columns)) > maxMatMulElements {
			return false
		}
	}
	return true
}

type attentionOperand struct {
	name          string
	l             *AttentionLayout
	rows, columns int
}

func (a *Attention) layouts() []attentionOperand {
	out := []attentionOperand{{"q", &a.Q, a.Queries, a.D}, {"k", &a.K, a.Keys, a.D}, {"v", &a.V, a.Keys, a.E}, {"out", &a.Out, a.Queries, a.E}}
	if a.Backward {
		out = append(out, attentionOperand{"dout", &a.DOut, a.Queries, a.E}, attentionOperand{"dq", &a.DQ, a.Queries, a.D},
			attentionOperand{"dk", &a.DK, a.Keys, a.D}, attentionOperand{"dv", &a.DV, a.Keys, a.E})
	}
	return out
}

// width is the number of lanes of an access.
func (a *Attention) width(t Target) int {
	w := min(t.config().rowWide, pow2Factor(a.D), pow2Factor(a.E))
	for _, o := range a.layouts() {
		w = min(w, pow2Factor(o.l.Offset), pow2Factor(o.l.Batch), pow2Factor(o.l.Head), pow2Factor(o.l.Row))
	}
	return max(w, 1)
}

// Key identifies the kernel. Sizes of a forward kernel but D and E are launch parameters.
func (a *Attention) Key() string {
	align := make([]int, 0, 8)
	for _, o := range a.layouts() {
		align = append(align, min(pow2Factor(o.l.Offset), pow2Factor(o.l.Batch), pow2Factor(o.l.Head), pow2Factor(o.l.Row)))
	}
	key := fmt.Sprintf("attention|%s|%d,%d|%t|%t|%v|%q", a.Kind, a.D, a.E, a.Causal, a.Backward, align, a.Ops)
	if a.Backward {
		key += fmt.Sprintf("|%v%v%v%v%v%v%v%v", a.Q, a.K, a.V, a.Out, a.DOut, a.DQ, a.DK, a.DV)
	}
	return key
}

// Build makes the kernel.
func (a *Attention) Build(t Target) (*ir.Kernel, error) {
	if err := a.check(t); err != nil {
		return nil, err
	}
	return newAttentionEmitter(a, t).build()
}

// Launch returns the grid, an invocation for each query and with Backward one more for each key, and the parameters.
func (a *Attention) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := a.check(t); err != nil {
		return groups, nil, err
	}
	for _, g := range a.geometry() {
		params = append(params, g.value)
	}
	heads := uint64(a.Batch) * uint64(a.Heads)
	local := uint64(t.config().attention())
	n := ceilDiv64(heads*uint64(a.Queries), local)
	if a.Backward {
		n += ceilDiv64(heads*uint64(a.Keys), local)
	}
	groups, err = t.fold("attention", n)
	return groups, params, err
}

func ceilDiv64(a, b uint64) uint64 { return (a + b - 1) / b }

// attention is the workgroup's size.
func (c config) attention() int { return min(c.row, 64) }

// Cost returns the floating-point operations.
func (a *Attention) Cost() float64 {
	pairs := float64(a.Batch) * float64(a.Heads) * float64(a.Queries) * float64(a.Keys)
	products := float64(a.D + a.E)
	if a.Backward {
		products *= 4
	}
	if a.Causal {
		pairs /= 2
	}
	return 2 * pairs * products
}

func (a *Attention) check(t Target) error {
	switch a.Kind {
	case ir.F32, ir.F16, ir.BF16:
	default:
		return fmt.Errorf("attention: %s is no kind of its operands; use f32, f16 or bf16", a.Kind)
	}
	if !a.Fits(t) {
		return fmt.Errorf("attention: sizes %d x %d heads x %d queries x %d keys, features %d and %d, are beyond the kernel; compute the scores, their softmax and the product one by one",
			a.Batch, a.Heads, a.Queries, a.Keys, a.D, a.E)
	}
	buffers := 5
	if a.Backward {
		buffers = 7
	}
	return t.checkBuffers("attention", buffers)
}

// geometry lists the launch parameters after the scale.
func (a *Attention) geometry() []geom {
	g := []geom{{"scale", uint32(ir.ConstBits(ir.F32, float64(a.Scale)))}, {"batch", uint32(a.Batch)}, {"heads", uint32(a.Heads)}, {"queries", uint32(a.Queries)}, {"keys", uint32(a.Keys)}}
	if a.Backward {
		return g
	}
	for _, o := range a.layouts() {
		g = append(g, geom{o.name + "_offset", uint32(o.l.Offset)}, geom{o.name + "_batch", uint32(o.l.Batch)},
			geom{o.name + "_head", uint32(o.l.Head)}, geom{o.name + "_row", uint32(o.l.Row)})
	}
	return g
}

// ParseAttention returns the launch that the parameters of a kernel built from a describe, for native programs that stand in
// for it.
func ParseAttention(a *Attention, params []uint32) (*Attention, error) {
	now := *a
	want := len(a.geometry())
	if len(params) != want {
		return nil, fmt.Errorf("attention: %d launch parameters, want %d", len(params), want)
	}
	p := func(i int) int { return int(params[i]) }
	now.Scale = float32frombits(params[0])
	now.Batch, now.Heads, now.Queries, now.Keys = p(1), p(2), p(3), p(4)
	if !a.Backward {
		for i, o := range now.layouts() {
			at := 5 + 4*i
			*o.l = AttentionLayout{p(at), p(at + 1), p(at + 2), p(at + 3)}
		}
	}
	return &now, nil
}
