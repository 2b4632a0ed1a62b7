package tensor

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
)

// windowOps are the rows of convolution, pooling and resampling.
var windowOps = []string{"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_weight_grad",
	"max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d",
	"avg_pool_spread", "avg_pool_windows", "max_pool_place", "max_pool_pick", "unfold", "fold", "interpolate", "interpolate_adjoint"}

// onDevice returns a sample's operands on a device. Samples are in float32; other floats are asked for by d.
func (s Sample) onDevice(dev backend.Device, d DType) []*Tensor {
	var in []*Tensor
	for _, a := range s.In {
		t := FromFloat64s(a.Data, a.Shape...)
		if a.DType == InvalidDType {
			t = t.Cast(d)
		} else {
			t = t.Cast(a.DType)
		}
		in = append(in, t.To(dev))
	}
	return in
}

// eachWindowSample calls f for the valid samples of the rows.
func eachWindowSample(t *testing.T, f func(t *testing.T, op *OpInfo, s Sample)) {
	for _, name := range windowOps {
		op := LookupOp(name)
		if op == nil {
			t.Errorf("there is no row %s", name)
			continue
		}
		for _, s := range op.Samples {
			if s.Err == "" {
				t.Run(name+"/"+s.Name, func(t *testing.T) { f(t, op, s) })
			}
		}
	}
}

func checkSample(t *testing.T, dev backend.Device, op *OpInfo, s Sample, d DType, rtol, atol float64) {
	t.Helper()
	in := s.onDevice(dev, d)
	rounded := slices.Clone(s.In)
	for i, x := range in {
		vs, err := x.CPU().Float64s()
		if err != nil {
			t.Fatal(err)
		}
		rounded[i].Data = vs
	}
	want, err := op.Ref(rounded, s.Attrs)
	if err != nil {
		t.Fatal(err)
	}
	got := op.Call(in, s.Attrs)
	if len(got) != len(want) {
		t.Fatalf("%d results, the reference has %d", len(got), len(want))
	}
	for i, w := range want {
		g, err := got[i].CPU().Float64s()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[i].Shape(), w.Shape) {
			t.Errorf("result %d has shape %v, the reference %v", i, got[i].Shape(), w.Shape)
		}
		checkClose(t, fmt.Sprintf("%s, result %d", d, i), g, w.Data, rtol, atol)
	}
}

// TestWindowOpsAgainstReference holds the rows against their references on the checking executor.
func TestWindowOpsAgainstReference(t *testing.T) {
	dev := newChecked("test")
	eachWindowSample(t, func(t *testing.T, op *OpInfo, s Sample) {
		checkSample(t, dev, op, s, Float32, 1e-5, 1e-5)
		checkSample(t, dev, op, s, Float64, 1e-12, 1e-12)
		checkSample(t, dev, op, s, Float16, 1e-2, 1e-2)
	})
}

// TestWindowOpsOnDevices does the same on every device of the machine.
func TestWindowOpsOnDevices(t *testing.T) {
	for _, info := range backend.List() {
		name := info.String()
		if only := os.Getenv("ANYGPU_TEST_DEVICE"); only != "" && only != name || info.Problem != "" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dev, err := backend.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			// Compilers take up to half a second for a kernel, so that not every row has every sample on every device.
			full := os.Getenv("ANYGPU_TEST_ALL") != "" || info.API == "cpu"
			eachWindowSample(t, func(t *testing.T, op *OpInfo, s Sample) {
				first := s.Name == op.Samples[0].Name || s.Name == op.Samples[1].Name
				if full || first {
					checkSample(t, dev, op, s, Float32, 1e-5, 1e-5)
				}
				if full || first && strings.HasSuffix(op.Name, "2d") && info.API != "opencl" || op.Name == "conv2d" && first {
					checkSample(t, dev, op, s, Float16, 1e-2, 1e-2)
				}
			})
		})
	}
}

func TestWindowOpsErrors(t *testing.T) {
	for _, name := range windowOps {
		for _, s := range LookupOp(name).Samples {
			if s.Err == "" {
				continue
			}
			out := LookupOp(name).Call(s.onDevice(CPU(), Float32), s.Attrs)
			err := out[0].Err()
			if err == nil {
				_, err = out[0].Float64s()
			}
			if err == nil || !strings.Contains(err.Error(), s.Err) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s/%s: got error %v, want one with %q", name, s.Name, err, s.Err)
			}
		}
	}
}

// project makes one number of the floating-point results, with a weight for each element, through a function with a second derivative.
func project(outs []*Tensor) *Tensor {
	var sum *Tensor
	for i, o := range outs {
		if !o.DType().IsFloat() {
			continue
		}
		w := windowArray(31+i, o.Shape()...)
		part := o.Mul(FromFloat64s(w.Data, w.Shape...)).Add(o.Mul(o).MulScalar(0.3)).Sum()
		if sum == nil {
			sum = part
		} else {
			sum = sum.Add(part)
		}
	}
	return sum
}

// TestWindowOpsGradients compares first and second derivatives with central differences, in float64 on the CPU.
func TestWindowOpsGradients(t *testing.T) {
	eachWindowSample(t, func(t *testing.T, op *OpInfo, s Sample) {
		in := s.onDevice(CPU(), Float64)
		var wrt []int
		for i, a := range s.In {
			if op.flows(i) && a.DType == InvalidDType && len(a.Data) > 0 {
				wrt = append(wrt, i)
			}
		}
		if len(wrt) == 0 {
			return
		}
		value := func(in []*Tensor) *Tensor { return project(op.Call(in, s.Attrs)) }
		// slope is a scalar function of the operands made of the first derivatives.
		slope := func(in []*Tensor) *Tensor {
			var xs []*Tensor
			for _, i := range wrt {
				xs = append(xs, in[i])
			}
			gs, err := Grad([]*Tensor{value(in)}, xs)
			if err != nil {
				t.Fatal(err)
			}
			var sum *Tensor
			for i, g := range gs {
				w := windowArray(57+i, g.Shape()...)
				part := g.Mul(FromFloat64s(w.Data, w.Shape...)).Sum()
				if sum == nil {
					sum = part
				} else {
					sum = sum.Add(part)
				}
			}
			return sum
		}
		differences(t, "first derivative", s, in, wrt, value)
		differences(t, "second derivative", s, in, wrt, slope)
	})
}

// differences holds the gradient of f against central differences at some elements of each operand.
func differences(t *testing.T, what string, s Sample, in []*Tensor, wrt []int, f func(in []*Tensor) *Tensor) {
	t.Helper()
	leaves := slices.Clone(in)
	var xs []*Tensor
	for _, i := range wrt {
		leaves[i] = in[i].Detach().Clone().SetRequiresGrad(true)
		xs = append(xs, leaves[i])
	}
	gs, err := Grad([]*Tensor{f(leaves)}, xs)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	const h = 1e-4
	for j, i := range wrt {
		got, err := gs[j].Detach().Float64s()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		data := s.In[i].Data
		for k := 0; k < len(data); k += max(1, len(data)/7) {
			at := func(d float64) float64 {
				moved := slices.Clone(data)
				moved[k] += d
				args := slices.Clone(leaves)
				args[i] = FromFloat64s(moved, s.In[i].Shape...).SetRequiresGrad(true)
				v, err := f(args).Detach().Float64s()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				return v[0]
			}
			want := (at(h) - at(-h)) / (2 * h)
			if math.Abs(got[k]-want) > 1e-6+1e-6*math.Abs(want) {
				t.Errorf("%s for operand %d, element %d: %v, by differences %v", what, i, k, got[k], want)
				return
			}
		}
	}
}

// TestMaxPoolSpecialValues checks what PyTorch does with equal elements, NaN and infinities: the first of equals gets the
// gradient, NaN is largest, and a window of -inf has its first element's place.
func TestMaxPoolSpecialValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	data := []float64{1, 1, 2, nan, -inf, -inf, 2, 2, 0, 5, -inf, -inf, nan, 3, 3, 3}
	for _, dev := range []backend.Device{CPU(), newChecked("test")} {
		x := FromFloat64s(data, 1, 1, 16).Cast(Float32).To(dev).SetRequiresGrad(true)
		y, places := MaxPool1dIndices(x, MaxPoolOptions{Kernel: []int{2}})
		got, err := y.Detach().CPU().Float64s()
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "values", got, []float64{1, nan, -inf, 2, 5, -inf, nan, 3}, 0, 0)
		at, err := places.CPU().Int64s()
		if err != nil || !slices.Equal(at, []int64{0, 3, 4, 6, 9, 10, 12, 14}) {
			t.Errorf("places %v, %v", at, err)
		}
		if err := y.Sum().Backward(); err != nil {
			t.Fatal(err)
		}
		g, err := x.Grad().CPU().Float64s()
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "gradient", g, []float64{1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 0}, 0, 0)
	}
}

// alignedDevice asks for another alignment of bindings.
type alignedDevice struct {
	*checked
	align int64
}

func (d alignedDevice) Info() backend.Info {
	i := d.checked.Info()
	i.Limits.BufferOffsetAlign = d.align
	return i
}

// TestConvolutionInPieces makes every way of bounding memory happen: batches in pieces, whose results are aligned or not, sums of
// weights over pieces, and channels one by one.
func TestConvolutionInPieces(t *testing.T) {
	scratch, image := convScratch, convImage
	defer func() { convScratch, convImage = scratch, image }()
	rows := []string{"conv1d", "conv_transpose2d", "conv_weight_grad"}
	for _, bounds := range [][2]int{{1, 1 << 30}, {3000, 1 << 30}, {1, 1}, {1, 2500}} {
		convScratch, convImage = bounds[0], bounds[1]
		for _, align := range []int64{4, 256} {
			dev := alignedDevice{newChecked("test"), align}
			for _, name := range rows {
				op := LookupOp(name)
				for _, s := range op.Samples {
					if s.Err != "" {
						continue
					}
					t.Run(fmt.Sprintf("%v/%d/%s/%s", bounds, align, name, s.Name), func(t *testing.T) {
						if align == 4 {
							checkSample(t, dev, op, s, Float32, 1e-5, 1e-5)
						} else {
							checkSample(t, dev, op, s, Float16, 1e-2, 1e-2)
						}
					})
				}
			}
		}
	}
	convScratch, convImage = 1, 2500
	names := windowOps
	windowOps = rows
	defer func() { windowOps = names }()
	TestWindowOpsGradients(t)
}

// TestConvolutionUnderAutocast checks the class of the rows and that the bias does not raise the result.
func TestConvolutionUnderAutocast(t *testing.T) {
	s := NewScope(CPU())
	defer s.Close()
	s.SetCaster(func(op *OpInfo, in []*Tensor) ([]*Tensor, error) {
		if op.Class != Lower {
			return in, nil
		}
		out := make([]*Tensor, len(in))
		for i, x := range in {
			out[i] = x.Cast(BFloat16)
		}
		return out, nil
	})
	x, w, b := s.To(Ones(CPU(), Float32, 2, 3, 5, 5)), Ones(CPU(), Float32, 4, 3, 3, 3).SetRequiresGrad(true), Ones(CPU(), Float32, 4).SetRequiresGrad(true)
	y := Conv2d(x, w, b, ConvOptions{})
	if y.DType() != BFloat16 {
		t.Errorf("the result is %s (%v), not bfloat16", y.DType(), y.Err())
	}
	y = MaxPool2d(y, MaxPoolOptions{Kernel: []int{2}})
	if y.DType() != BFloat16 {
		t.Errorf("the pooled result is %s (%v), not bfloat16", y.DType(), y.Err())
	}
	if err := y.Cast(Float32).Sum().Backward(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Tensor{w, b} {
		if g := p.Grad(); g == nil || g.DType() != Float32 {
			t.Errorf("gradient %v, expected float32", g)
		}
	}
}

// TestConvolutionMemoryIsFlat trains a small network: columns, places and gradients go with their scope.
func TestConvolutionMemoryIsFlat(t *testing.T) {
	dev := newChecked("test")
	gen := NewGenerator(1)
	x := Uniform(dev, gen, Float32, -1, 1, 4, 2, 8, 8)
	w := Uniform(dev, gen, Float32, -1, 1, 3, 2, 3, 3).SetRequiresGrad(true)
	b := Zeros(dev, Float32, 3).SetRequiresGrad(true)
	var base int64
	for step := range 6 {
		s := NewScope(dev)
		y := MaxPool2d(Conv2d(s.To(x), w, b, ConvOptions{Padding: []int{1}}), MaxPoolOptions{Kernel: []int{2}})
		if err := y.Square().Mean().Backward(); err != nil {
			t.Fatal(err)
		}
		w.ZeroGrad()
		b.ZeroGrad()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		now := allocated(t, dev)
		if step == 0 {
			base = now
		} else if now != base {
			t.Errorf("step %d: %d bytes are in use, %d after the first step", step, now, base)
		}
	}
}
