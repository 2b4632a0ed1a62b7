package conformance

import (
	"errors"
	"slices"

	"github.com/anygpu/anygpu/tensor"
)

// SupportRow says which dtypes of its first operands a device takes for an operator.
type SupportRow struct {
	Op      string            `json:"op"`
	Kind    string            `json:"kind"`
	DTypes  map[string]string `json:"dtypes"` // by dtype: "yes", "no" (the operator does not take it anywhere) or the missing feature
	Samples bool              `json:"samples"`
}

// support finds which operators and dtypes the device takes, without computing anything.
func support(e *env) ([]SupportRow, error) {
	var out []SupportRow
	for _, op := range tensor.Ops() {
		if op.Call == nil || e.opts.Case != nil && !e.opts.Case.MatchString(op.Name) {
			continue
		}
		row := SupportRow{Op: op.Name, Kind: op.Kind.String(), DTypes: map[string]string{}, Samples: true}
		for _, d := range allDTypes {
			in, attrs, ok := exampleOperands(op, d)
			if !ok {
				row.Samples = false
				break
			}
			switch {
			case refused(op, in, attrs):
				row.DTypes[d.String()] = "no"
			case d == tensor.Float64 && !e.info.Caps.F64:
				row.DTypes[d.String()] = "needs double precision"
			default:
				row.DTypes[d.String()] = e.takes(op, in, attrs)
			}
		}
		out = append(out, row)
	}
	return out, nil
}

// exampleOperands returns operands of an operator in a dtype: generated, or those of its first valid sample.
func exampleOperands(op *tensor.OpInfo, d tensor.DType) ([]tensor.Array, tensor.Attrs, bool) {
	if op.Elementwise() != nil {
		x := &run{env: &env{opts: &Options{}}, name: op.Name}
		g := generate(op, d, x.rng(), []int{2, 3})
		return g.in, g.attrs, true
	}
	i := slices.IndexFunc(op.Samples, func(s tensor.Sample) bool { return s.Err == "" })
	if i < 0 {
		return nil, nil, false
	}
	in, _ := sampleOperands(op.Samples[i], d, contiguous)
	return in, op.Samples[i].Attrs, true
}

// takes runs the operator's checks on the device; nothing is computed because nothing is read.
func (e *env) takes(op *tensor.OpInfo, in []tensor.Array, attrs tensor.Attrs) string {
	err := guarded(func() error {
		s := tensor.NewScope(e.dev)
		defer s.Close()
		ts := make([]*tensor.Tensor, len(in))
		for i, a := range in {
			ts[i] = place(s, a, contiguous)
		}
		for _, t := range op.Call(ts, attrs) {
			if t != nil && t.Err() != nil {
				return t.Err()
			}
		}
		return nil
	})
	var te *tensor.Error
	switch {
	case err == nil:
		return "yes"
	case errors.As(err, &te):
		return te.Err.Error()
	}
	return err.Error()
}
