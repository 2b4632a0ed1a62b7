package tensor

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// gpuLike returns a device that calls itself vulkan:0, so that the rules between devices can be tested anywhere.
func gpuLike(t *testing.T) backend.Device {
	t.Helper()
	dev := newChecked("vulkan")
	t.Cleanup(func() {
		e, err := engineFor(dev)
		if err != nil {
			t.Fatal(err)
		}
		e.close()
	})
	return dev
}

func wantErr(t *testing.T, err error, kind error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, expected one with %q", parts)
		return
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("error %q does not match %q", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not contain %q", err, p)
		}
	}
}

func TestDeviceErrorsAsDocumented(t *testing.T) {
	gpu := gpuLike(t)
	w := FromFloat32s([]float32{1, 2, 3, 4}, 2, 2).To(gpu)
	x := FromFloat32s([]float32{1, 2}, 2, 1)
	y := w.MatMul(x)
	_, err := y.Item()
	wantErr(t, err, ErrDevice, "matmul at errors_test.go:",
		": expected all tensors to be on the same device, but found at least two devices, vulkan:0 and cpu\n(a float32 [2 2] on vulkan:0, b float32 [2 1] on cpu); move one with To")
	_, err = w.Dense()
	wantErr(t, err, ErrDevice)
	if want := "can't export a vulkan:0 tensor to gonum: call CPU() first to copy it to host memory"; err.Error() != want {
		t.Errorf("Dense gave %q, expected %q", err, want)
	}
	if v, err := w.Sum().Item(); err != nil || v != 10 {
		t.Errorf("Item of a sum on the device: %v, %v", v, err)
	}
	m, err := w.CPU().Dense()
	if err != nil || m.At(1, 0) != 3 {
		t.Errorf("Dense of a copy on the CPU: %v, %v", m, err)
	}
	for what, err := range map[string]error{
		"Float32s": second(w.Float32s()), "Float64s": second(w.Float64s()), "Int64s": second(w.Int64s()), "Bools": second(w.Bools()),
		"Uint8s": second(w.Uint8s()), "WriteNPY": w.WriteNPY(nil),
	} {
		wantErr(t, err, ErrDevice, "vulkan:0", "call CPU() first")
		_ = what
	}
	p := FromFloat32s([]float32{1}, 1).SetRequiresGrad(true)
	_, err = p.Float32s()
	wantErr(t, err, ErrGrad, "can't call Float32s() on Tensor that requires grad. Use Detach().Float32s() instead")
	_, err = p.AddScalar(1).Dense()
	wantErr(t, err, ErrGrad, "requires grad")
	_, err = w.Item()
	wantErr(t, err, ErrShape, "a Tensor with 4 elements cannot be converted to Scalar")
}

func second[T any](_ T, err error) error { return err }

func TestSameDeviceRule(t *testing.T) {
	gpu := gpuLike(t)
	vec := FromFloat32s([]float32{1, 2}, 2)
	onGPU := vec.To(gpu)
	scalar := Scalar(10)
	for _, tc := range []struct {
		name string
		got  *Tensor
		ok   bool
	}{
		{"device vector and 0-dimensional CPU tensor", onGPU.Add(scalar), true},
		{"0-dimensional CPU tensor and device vector", scalar.Sub(onGPU), true},
		{"device vector and CPU tensor of shape [1]", onGPU.Add(FromFloat32s([]float32{1}, 1)), false},
		{"0-dimensional device tensor and CPU vector", scalar.To(gpu).Add(vec), false},
		{"device vector and CPU vector", onGPU.Add(vec), false},
		{"matmul with a 0-dimensional CPU tensor", onGPU.MatMul(scalar), false},
		{"cat over devices", Cat(0, onGPU, vec), false},
		{"where with a CPU condition", Where(FromBools([]bool{true, false}, 2), onGPU, onGPU), false},
		{"where with a 0-dimensional CPU condition", Where(FromBools([]bool{true}), onGPU, onGPU), true},
	} {
		err := tc.got.Err()
		if tc.ok && err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if !tc.ok {
			if err == nil {
				t.Errorf("%s: no error", tc.name)
				continue
			}
			wantErr(t, err, ErrDevice, "same device", "vulkan:0", "cpu")
		}
	}
	v, err := scalar.Sub(onGPU).CPU().Float32s()
	if err != nil || v[0] != 9 || v[1] != 8 {
		t.Errorf("10 - [1 2] = %v, %v", v, err)
	}
	// The gradient of a CPU scalar comes back to the CPU.
	s := Scalar(3).SetRequiresGrad(true)
	if err := onGPU.Mul(s).Sum().Backward(); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Grad().Item(); err != nil || g != 3 || !s.Grad().eng.isCPU {
		t.Errorf("gradient of the scalar: %v, %v on %s", g, err, s.Grad().eng.name)
	}
}

func TestErrorsStick(t *testing.T) {
	s := NewScope(CPU())
	a, b := s.To(FromFloat32s(make([]float32, 6), 2, 3)), s.To(FromFloat32s(make([]float32, 4), 4))
	bad := a.Add(b)
	first := bad.Err()
	wantErr(t, first, ErrShape, "add at errors_test.go:", "[2 3] and [4]", "sizes 3 and 4 in dimension 1", "(a float32 [2 3] on cpu, b float32 [4] on cpu)")
	chain := bad.ReLU().MatMul(a).Sum()
	if chain.Err() != first {
		t.Errorf("the chain's error is %v, expected the first one", chain.Err())
	}
	if Cat(0, a, bad).Err() != first || CrossEntropy(bad, b, CrossEntropyOptions{}).Err() != first {
		t.Error("Cat or CrossEntropy lose the first error")
	}
	outs := map[string]error{"Item": second(chain.Item()), "Float32s": second(chain.Float32s()), "Dense": second(chain.Dense()), "Backward": chain.Backward(),
		"MoveTo": chain.MoveTo(CPU()), "CopyFrom": a.CopyFrom(chain), "To": chain.To(CPU()).Err(), "WriteNPY": chain.WriteNPY(nil),
		"Update": UpdateInPlace(InPlaceUpdate{Tensors: [][]*Tensor{{chain}}})}
	for way, err := range outs {
		if err != first {
			t.Errorf("%s returns %v, expected the first error", way, err)
		}
	}
	if chain.Shape() != nil || chain.Numel() != 0 || chain.DType() != InvalidDType || !strings.Contains(chain.String(), "failed") {
		t.Errorf("a failed tensor has shape %v, %d elements, dtype %s: %s", chain.Shape(), chain.Numel(), chain.DType(), chain)
	}
	if err := s.Close(); err != first {
		t.Errorf("Close returns %v, expected the first error", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close returns %v", err)
	}
}

func TestPanicAtOrigin(t *testing.T) {
	panicAtOrigin = true
	defer func() {
		panicAtOrigin = false
		if p := recover(); p == nil {
			t.Error("no panic at the origin")
		}
	}()
	a := FromFloat32s([]float32{1, 2}, 2)
	a.Add(FromFloat32s([]float32{1, 2, 3}, 3))
}

func TestMust(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Must of a failed tensor does not panic")
		}
	}()
	Must(FromFloat32s([]float32{1}, 2))
}

func TestBadArguments(t *testing.T) {
	x := FromFloat32s(make([]float32, 6), 2, 3)
	i := FromInt64s([]int64{1, 2}, 2)
	three := FromFloat32s(make([]float32, 3), 3)
	for _, tc := range []struct {
		name  string
		got   *Tensor
		parts []string
	}{
		{"nil operand", x.Add(nil), []string{"operand b is nil"}},
		{"nil receiver", (*Tensor)(nil).Exp(), []string{"operand x is nil"}},
		{"wrong size", FromFloat32s([]float32{1, 2, 3}, 2, 2), []string{"shape '[2 2]' is invalid for input of size 3"}},
		{"negative size", FromFloat32s(nil, -1), []string{"negative"}},
		{"huge", Zeros(CPU(), Float32, 1<<40, 1<<40), []string{"at most"}},
		{"nil device", Zeros(nil, Float32, 1), []string{"no device"}},
		{"bad dtype", Zeros(CPU(), InvalidDType, 1), []string{"dtype"}},
		{"reshape", x.Reshape(4, 2), []string{"shape '[4 2]' is invalid for input of size 6"}},
		{"two holes", x.Reshape(-1, -1), []string{"only one dimension can be inferred"}},
		{"permute", x.Permute(0), []string{"2 is not equal to 1"}},
		{"permute twice", x.Permute(0, 0), []string{"twice"}},
		{"transpose", x.Transpose(0, 2), []string{"expected to be in range of [-2, 1], but got 2"}},
		{"expand", x.Expand(4, 3), []string{"(4) must match the existing size (2) at non-singleton dimension 0"}},
		{"select", x.Select(0, 2), []string{"index 2 out of range"}},
		{"slice step", x.Slice(0, 0, 1, 0), []string{"positive"}},
		{"narrow", x.Narrow(1, 2, 2), []string{"exceeds dimension size (3)"}},
		{"sum dim", x.Sum(5), []string{"out of range"}},
		{"sum twice", x.Sum(0, -2), []string{"appears multiple times"}},
		{"mean of integers", i.Mean(), []string{"floating point"}},
		{"empty amax", Zeros(CPU(), Float32, 0, 3).Amax(0), []string{"0 elements"}},
		{"empty argmax", Zeros(CPU(), Float32, 0, 3).Argmax(0, false), []string{"non-zero size"}},
		{"softmax of integers", i.Softmax(0), []string{"int64"}},
		{"matmul inner", x.MatMul(x), []string{"mat1 and mat2 shapes cannot be multiplied", "3 and 2"}},
		{"matmul 0-d", x.MatMul(Scalar(1)), []string{"at least 1D"}},
		{"matmul dtypes", x.MatMul(three.Cast(Float16)), []string{"same dtype", "float32 != float16"}},
		{"matmul bool", FromBools([]bool{true}, 1, 1).MatMul(FromBools([]bool{true}, 1, 1)), []string{"not implemented for bool"}},
		{"linear", Linear(x, x.T(), nil), []string{"cannot be multiplied"}},
		{"linear bias", Linear(x, x, x), []string{"the bias must have shape [2]"}},
		{"cat", Cat(0, x, three), []string{"same number of dimensions"}},
		{"cat sizes", Cat(0, x, x.T()), []string{"Expected size 3 but got size 2 for tensor number 1"}},
		{"cat nothing", Cat(0), []string{"non-empty"}},
		{"stack", Stack(0, x, x.T()), []string{"equal size"}},
		{"where", Where(x, x, x), []string{"must be bool"}},
		{"T", three.T(), []string{"matrices"}},
		{"dropout", x.Dropout(1.5, true, NewGenerator(1)), []string{"between 0 and 1"}},
		{"dropout NaN", x.Dropout(math.NaN(), true, NewGenerator(1)), []string{"between 0 and 1"}},
		{"dropout without generator", x.Dropout(0.5, true, nil), []string{"generator"}},
		{"uniform integers", Uniform(CPU(), NewGenerator(1), Int64, 0, 1, 2), []string{"floating-point"}},
		{"cross entropy shape", CrossEntropy(x, FromInt64s([]int64{1}, 1), CrossEntropyOptions{}), []string{"expected target of integers with shape [2]"}},
		{"cross entropy smoothing", CrossEntropy(x, i, CrossEntropyOptions{LabelSmoothing: 2}), []string{"label_smoothing"}},
		{"cross entropy weight", CrossEntropy(x, i, CrossEntropyOptions{Weight: x}), []string{"all 3 classes"}},
		{"mse", MSELoss(x, three, ReductionMean), []string{"different"}},
		{"cast", x.Cast(DType(99)), []string{"dtype"}},
		{"integers require grad", i.SetRequiresGrad(true), []string{"only Tensors of floating point dtype can require gradients"}},
		{"nil scope", (*Scope)(nil).To(x), []string{"scope is closed or has no device"}},
	} {
		err := tc.got.Err()
		if err == nil {
			t.Errorf("%s: no error", tc.name)
			continue
		}
		wantErr(t, err, nil, tc.parts...)
		if strings.Contains(err.Error(), " at ") && !strings.Contains(err.Error(), "errors_test.go:") {
			t.Errorf("%s: error %q does not name the caller", tc.name, err)
		}
	}
	wantErr(t, x.Backward(), ErrGrad, "does not require grad")
	wantErr(t, x.Clone().SetRequiresGrad(true).MulScalar(2).Backward(), ErrGrad, "grad can be implicitly created only for scalar outputs")
	_, err := Grad([]*Tensor{three.Clone().SetRequiresGrad(true).Sum()}, []*Tensor{x})
	wantErr(t, err, ErrGrad, "does not appear in the graph")
}

func TestLabelOutOfRange(t *testing.T) {
	logits := FromFloat32s(make([]float32, 6), 2, 3).SetRequiresGrad(true)
	ce := func(labels ...int64) *Tensor {
		return CrossEntropy(logits, FromInt64s(labels, len(labels)), CrossEntropyOptions{})
	}
	for _, tc := range []struct {
		labels []int64
		bad    string
	}{{[]int64{0, 2}, ""}, {[]int64{0, -100}, ""}, {[]int64{0, 3}, "target 3"}, {[]int64{-1, 0}, "target -1"}, {[]int64{1 << 40, 0}, "target 1099511627776"}} {
		loss := ce(tc.labels...)
		if err := loss.Err(); err != nil {
			t.Fatalf("labels %v: error before the value is needed: %v", tc.labels, err)
		}
		_, err := loss.MulScalar(2).Item()
		if tc.bad == "" {
			if err != nil {
				t.Errorf("labels %v: %v", tc.labels, err)
			}
			continue
		}
		wantErr(t, err, nil, "cross_entropy at errors_test.go:", tc.bad+" is out of bounds", "3 classes")
	}
	s := NewScope(CPU())
	loss := CrossEntropy(s.To(logits), s.To(FromInt64s([]int64{7, 0}, 2)), CrossEntropyOptions{})
	if err := loss.Backward(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, s.Close(), nil, "target 7 is out of bounds")
	logits.ZeroGrad()
}
