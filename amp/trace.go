package amp

import (
	"fmt"
	"slices"

	"github.com/anygpu/anygpu/tensor"
)

// maxAnomalies bounds what Trace reports.
const maxAnomalies = 16

// Anomaly is an operator that made infinities or NaN of finite operands.
type Anomaly struct {
	Op       string
	Backward bool   // in the gradient of the operator that was called at File and Line
	Autocast bool   // a cast that autocast inserted
	File     string // the caller: the first file outside the library, without its folder
	Line     int
	Module   string // the layer that called the operator, such as "blocks.0.fc"; empty outside of layers
	Shape    []int
	DType    tensor.DType
	Infs     int // infinite elements of the result
	NaNs     int
}

// String returns a line such as "cast of autocast in blocks.0.fc at train.go:31: float16 [8 10] has 3 infinite elements and 0 NaN".
func (a Anomaly) String() string {
	op := a.Op
	if a.Autocast {
		op += " of autocast"
	}
	if a.Backward {
		op += " in the gradient of the operator"
	}
	if a.Module != "" {
		op += " in " + a.Module
	}
	return fmt.Sprintf("%s at %s:%d: %s %v has %d infinite elements and %d NaN", op, a.File, a.Line, a.DType, a.Shape, a.Infs, a.NaNs)
}

// Trace runs f and reports the operators, of those whose results belong to s or a scope inside it, that made infinities or NaN of
// finite operands: where they first appear, forward and backward, at most 16. Infinities that are meant (MaskedFill) do not
// count. Each result is checked when its operator is called, which waits for the device each time: it is for looking into a
// step that was skipped, not for training. Traces do not nest: the inner one reports.
func Trace(s *tensor.Scope, f func()) []Anomaly {
	var found []Anomaly
	var operands []*tensor.Tensor
	old := s.SetObserver(func(e tensor.Event) {
		if e.Out == nil {
			operands = e.Operands
			return
		}
		if len(found) == maxAnomalies || e.Op.Name == "masked_fill" {
			return
		}
		for _, out := range e.Out {
			if !out.DType().IsFloat() {
				continue
			}
			infs, nans, err := countBad(out)
			if err != nil || infs+nans == 0 || slices.ContainsFunc(e.Operands, notFinite) || slices.ContainsFunc(operands, notFinite) {
				continue // an operator that fails has an error of its own
			}
			found = append(found, Anomaly{Op: e.Op.Name, Backward: e.Backward, Autocast: e.Autocast, File: e.File, Line: e.Line, Module: e.Module,
				Shape: out.Shape(), DType: out.DType(), Infs: infs, NaNs: nans})
			return
		}
	})
	defer s.SetObserver(old)
	f()
	return found
}

// notFinite reports whether a tensor is known to have infinities or NaN.
func notFinite(t *tensor.Tensor) bool {
	if t.Err() != nil || !t.DType().IsFloat() {
		return false
	}
	infs, nans, err := countBad(t)
	return err == nil && infs+nans > 0
}
