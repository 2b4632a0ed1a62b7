package tensor

import (
	"errors"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

// TestWithoutDouble calls every operator with float64 operands that require gradients on a device without double precision: what does not
// work is an error that says so, and no operator records a gradient of a result that it has not got.
func TestWithoutDouble(t *testing.T) {
	dev := newChecked("nodouble")
	dev.caps.F64 = false
	refusals := 0
	for _, op := range Ops() {
		if op.Call == nil {
			continue
		}
		for _, s := range op.Samples {
			scope := NewScope(dev)
			var ts []*Tensor
			for _, a := range s.In {
				x := a.Tensor()
				if a.DType == InvalidDType {
					x = FromFloat64s(a.Data, a.Shape...)
				}
				x = scope.To(x)
				if x.DType().IsFloat() {
					x = x.SetRequiresGrad(true)
				}
				ts = append(ts, x)
			}
			for _, out := range op.Call(ts, s.Attrs) {
				err := out.Err()
				if err == nil && out.DType().IsFloat() && out.Numel() > 0 {
					err = out.Sum().Backward()
				}
				if err == nil {
					_, err = out.CPU().Float64s()
				}
				if errors.Is(err, ErrDType) || errors.Is(err, ir.ErrUnsupported) {
					refusals++
				}
			}
			_ = scope.Close() // an error seen above
		}
	}
	if refusals < 100 {
		t.Errorf("%d refusals for want of double precision; the device has none", refusals)
	}
}
