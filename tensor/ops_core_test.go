package tensor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// TestCoreRowsAgainstReference runs the samples of reductions, products, views and losses.
func TestCoreRowsAgainstReference(t *testing.T) {
	devices := map[string]backend.Device{"cpu": CPU(), "checked": gpuLike(t)}
	for name := range coreRefs() {
		op := LookupOp(name)
		for _, s := range op.Samples {
			for where, dev := range devices {
				what := fmt.Sprintf("%s/%s on %s", name, s.Name, where)
				in := make([]*Tensor, len(s.In))
				for i, a := range s.In {
					in[i] = a.Tensor().To(dev)
				}
				outs := op.Call(in, s.Attrs)
				if s.Err != "" {
					_, err := outs[0].CPU().Float64s()
					wantErr(t, err, nil, op.Name, s.Err)
					continue
				}
				want, err := op.Ref(s.In, s.Attrs)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				got, err := outs[0].CPU().Float64s()
				if err != nil {
					t.Errorf("%s: %v", what, err)
					continue
				}
				if !slices.Equal(outs[0].Shape(), append([]int{}, want[0].Shape...)) {
					t.Errorf("%s: shape %v, the reference has %v", what, outs[0].Shape(), want[0].Shape)
				}
				checkClose(t, what, got, want[0].Data, 2e-5, 1e-5)
			}
		}
	}
}

// Gradients of the samples, against differences of the reference.
func TestCoreRowsGradients(t *testing.T) {
	const h = 1e-5
	for name := range coreRefs() {
		op := LookupOp(name)
		for _, s := range op.Samples {
			if s.Err != "" || op.Differentiable != nil && !slices.Contains(op.Differentiable, true) || slices.Contains([]string{"equal", "unlikely class that does not count"}, s.Name) {
				continue
			}
			in := make([]*Tensor, len(s.In))
			var wrt []*Tensor
			var operands []int
			for i, a := range s.In {
				in[i] = a.Tensor()
				if in[i].DType() != Float32 || a.DType != InvalidDType || len(a.Data) == 0 || !op.flows(i) || name == "cross_entropy" && i > 0 {
					continue
				}
				in[i] = FromFloat64s(a.Data, a.Shape...).SetRequiresGrad(true)
				wrt, operands = append(wrt, in[i]), append(operands, i)
			}
			for i, a := range s.In { // all floats in double precision
				if a.DType == InvalidDType && !in[i].RequiresGrad() {
					in[i] = FromFloat64s(a.Data, a.Shape...)
				}
			}
			if len(wrt) == 0 {
				continue
			}
			out := op.Call(in, s.Attrs)[0]
			up := sampleArray(out.Shape()...)
			gs, err := Grad([]*Tensor{out}, wrt, FromFloat64s(up.Data, up.Shape...))
			if err != nil {
				t.Errorf("%s/%s: %v", name, s.Name, err)
				continue
			}
			for k, i := range operands {
				want := make([]float64, len(s.In[i].Data))
				for e := range want {
					for _, sign := range []float64{1, -1} {
						moved := slices.Clone(s.In)
						moved[i].Data = slices.Clone(moved[i].Data)
						moved[i].Data[e] += sign * h
						o, err := op.Ref(moved, s.Attrs)
						if err != nil {
							t.Fatal(err)
						}
						for j, v := range o[0].Data {
							want[e] += sign * v * up.Data[j] / (2 * h)
						}
					}
				}
				checkClose(t, fmt.Sprintf("%s/%s: gradient for operand %d", name, s.Name, i), values(t, gs[k]), want, 1e-5, 1e-6)
			}
		}
	}
}

// Losses have the logits' dtype, and the mean of short floats is right also where their sum is out of range.
func TestCrossEntropyOfShortFloats(t *testing.T) {
	const rows = 4096
	for _, d := range []DType{Float16, BFloat16, Float32, Float64} {
		logits := Cat(1, Full(CPU(), d, 40, rows, 1), Full(CPU(), d, 0, rows, 1))
		labels := Full(CPU(), Int64, 1, rows)
		for what, loss := range map[string]*Tensor{
			"mean":          CrossEntropy(logits, labels, CrossEntropyOptions{}),
			"probabilities": CrossEntropy(logits, Cat(1, Full(CPU(), d, 0, rows, 1), Full(CPU(), d, 1, rows, 1)), CrossEntropyOptions{}),
			"none":          CrossEntropy(logits, labels, CrossEntropyOptions{Reduction: ReductionNone}).Mean(),
			"sum":           CrossEntropy(logits.Slice(0, 0, 2, 1), labels.Slice(0, 0, 2, 1), CrossEntropyOptions{Reduction: ReductionSum}).DivScalar(2),
		} {
			if loss.DType() != d {
				t.Errorf("%s of %s is %s", what, d, loss.DType())
			}
			checkClose(t, what, values(t, loss), []float64{40}, 1e-6, 0)
		}
	}
}
