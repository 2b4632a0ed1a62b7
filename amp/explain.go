package amp

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
)

// Explanation says what autocast did in a forward pass.
type Explanation struct {
	Rows []ExplainedOp
}

// ExplainedOp is an operator that ran. Operators that are made of others (layer_norm, cross_entropy) come before those.
type ExplainedOp struct {
	Op       string
	Operands []tensor.DType // after autocast
	Result   tensor.DType   // tensor.InvalidDType for an operator without kernels of its own
	Class    tensor.Class
	Why      string // the rule, or why it did not hold
	Casts    []Cast
	File     string // the caller
	Line     int
	Module   string // the layer that called it
}

// Cast is a cast of an operand that autocast inserted.
type Cast struct {
	Operand  string
	From, To tensor.DType
	Cached   bool // made before, and used again
	Fused    bool // never written to memory: the operator that makes the operand, or that uses the cast, does it in passing
}

// String returns "w float32→float16", with "(cached)" or "(fused)" if it was.
func (c Cast) String() string {
	s := fmt.Sprintf("%s %s→%s", c.Operand, c.From, c.To)
	if c.Cached {
		s += " (cached)"
	}
	if c.Fused {
		s += " (fused)"
	}
	return s
}

// Explain runs a forward pass under Autocast, with gradients but without a backward pass, and returns what each operator ran in and
// why, which casts were inserted, and which of them are fused away: those are no pass over memory. Small values are always written.
//
//	report, err := amp.Explain(model.Forward, x)
//	fmt.Println(report)
func Explain(forward func(x *tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, opts ...Option) (*Explanation, error) {
	if err := x.Err(); err != nil {
		return nil, err
	}
	s := tensor.NewScope(x.Device())
	ex := &explainer{seen: map[*tensor.Tensor]bool{}}
	input := s.To(x.Detach())
	s.SetObserver(ex.observe)
	var out *tensor.Tensor
	Autocast(s, func() { out = forward(input) }, opts...)
	s.SetObserver(nil)
	err := out.Err()
	if err == nil {
		err = ex.findFused(x.Device())
	}
	if e := s.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	return &Explanation{ex.rows}, nil
}

type explainer struct {
	rows []ExplainedOp
	seen map[*tensor.Tensor]bool // casts
	made []madeCast
}

// madeCast is a cast by its place in the rows, with another handle of its value, which stays when autocast discards its own.
type madeCast struct {
	row, cast int
	value     *tensor.Tensor
}

// findFused runs what is pending and notes the casts that were not written to memory.
func (ex *explainer) findFused(dev backend.Device) error {
	if err := tensor.Flush(dev); err != nil {
		return err
	}
	for _, m := range ex.made {
		c := &ex.rows[m.row].Casts[m.cast]
		c.Fused = !c.Cached && !m.value.Stored()
	}
	return nil
}

func (ex *explainer) observe(e tensor.Event) {
	switch {
	case e.Autocast: // shown with the operator that it is for
		return
	case e.Out != nil:
		for i := range slices.Backward(ex.rows) {
			if r := &ex.rows[i]; r.Op == e.Op.Name && r.Result == tensor.InvalidDType {
				r.Result = e.Out[0].DType()
				return
			}
		}
		return
	}
	r := ExplainedOp{Op: e.Op.Name, Class: e.Op.Class, File: e.File, Line: e.Line, Module: e.Module}
	for i, t := range e.Operands {
		r.Operands = append(r.Operands, t.DType())
		if from := e.In[i].DType(); from != t.DType() {
			name := string(rune('a' + i%26))
			if i < len(e.Op.Inputs) {
				name = e.Op.Inputs[i]
			}
			r.Casts = append(r.Casts, Cast{Operand: name, From: from, To: t.DType(), Cached: ex.seen[t]})
			ex.made = append(ex.made, madeCast{len(ex.rows), len(r.Casts) - 1, t.Detach()})
			ex.seen[t] = true
		}
	}
	r.Why = why(e)
	ex.rows = append(ex.rows, r)
}

// why says which rule an operator followed.
func why(e tensor.Event) string {
	has := func(ds ...tensor.DType) bool {
		return slices.ContainsFunc(e.Operands, func(t *tensor.Tensor) bool { return slices.Contains(ds, t.DType()) })
	}
	floats := has(tensor.Float32, tensor.Float16, tensor.BFloat16)
	switch c := e.Op.Class; {
	case c == tensor.AsIs:
		return "as is"
	case !floats:
		return "not a dtype that autocast touches"
	case c == tensor.Lower && has(tensor.Float32), c == tensor.F32 && has(tensor.Float16, tensor.BFloat16), c == tensor.Banned:
		return "autocast is off here"
	case c == tensor.Lower:
		return "product: lower precision"
	case c == tensor.F32:
		return "needs range or sums: float32"
	}
	return "widest operand"
}

// String returns the table as text.
func (x *Explanation) String() string {
	var sb strings.Builder
	w := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "operator\toperands\tresult\twhy\tcasts inserted\tcalled at")
	for _, r := range x.Rows {
		result := ""
		if r.Result != tensor.InvalidDType {
			result = r.Result.String()
		}
		var casts []string
		for _, c := range r.Casts {
			casts = append(casts, c.String())
		}
		var operands []string
		for _, d := range r.Operands {
			operands = append(operands, d.String())
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s:%d\n", r.Op, strings.Join(operands, ", "), result, r.Why, strings.Join(casts, ", "), r.File, r.Line)
	}
	w.Flush()
	return sb.String()
}
