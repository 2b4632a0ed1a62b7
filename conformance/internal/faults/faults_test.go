package faults

import (
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/cpu"
	"github.com/anygpu/anygpu/conformance"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// failures runs cases of a suite on a device, those of a quick run, and returns the results that failed, by name.
func failures(t *testing.T, dev backend.Device, suite, cases string) map[string]conformance.Result {
	t.Helper()
	return failuresOf(t, dev, true, suite, cases)
}

func failuresOf(t *testing.T, dev backend.Device, quick bool, suite, cases string) map[string]conformance.Result {
	t.Helper()
	r, err := conformance.Check(dev, conformance.Options{Quick: quick, Suite: regexp.MustCompile("^" + suite + "$"), Case: regexp.MustCompile(cases), Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Results) == 0 {
		t.Fatalf("no case of suite %s matches %s", suite, cases)
	}
	failed := map[string]conformance.Result{}
	for _, res := range r.Results {
		if res.Status == conformance.Fail {
			failed[res.Name] = res
		}
	}
	return failed
}

// found asserts that a fault makes a case that matches want fail, with a message that has the parts, and that without it nothing fails.
func found(t *testing.T, sound, broken backend.Device, suite, cases, want string, parts ...string) {
	t.Helper()
	foundIn(t, true, sound, broken, suite, cases, want, parts...)
}

// foundIn is found for a quick run or a whole one.
func foundIn(t *testing.T, quick bool, sound, broken backend.Device, suite, cases, want string, parts ...string) {
	t.Helper()
	if sound != nil {
		for _, res := range failuresOf(t, sound, quick, suite, cases) {
			t.Errorf("without the fault: %s: %s", res.Name, res.Message)
		}
	}
	failed := failuresOf(t, broken, quick, suite, cases)
	var res conformance.Result
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if ok, _ := regexp.MatchString(want, name); ok && res.Name == "" {
			res = failed[name]
		}
	}
	if res.Name == "" {
		t.Fatalf("%s did not fail; %d others did", want, len(failed))
	}
	for _, p := range append(parts, res.Name) {
		if !strings.Contains(res.Message+res.Rerun, p) {
			t.Errorf("the failure does not say %q: %s\n%s", p, res.Message, res.Rerun)
		}
	}
	t.Logf("%d cases failed; %s: %s", len(failed), res.Name, strings.SplitN(res.Message, "\n", 2)[0])
}

// A driver that flips one bit in a million of what it returns.
func TestFlippedBits(t *testing.T) {
	broken := newFaulty()
	broken.read = flips()
	found(t, newFaulty(), broken, "memory", "copy/", "memory/copy/large", "bytes differ")
}

// A driver whose allocator hands out memory that launches in its queue still use.
func TestEarlyReuse(t *testing.T) {
	found(t, newLazy(false), newLazy(true), "memory", "", "memory/reuse/freed_while_in_use", "freed after the submission")
}

// A lowering whose conversion to float16 truncates.
func TestTruncatingCast(t *testing.T) {
	broken := newFaulty()
	broken.edit = truncateHalves
	found(t, newFaulty(), broken, "precision", "float16", "precision/cast/float32_to_float16", "cast", "input")
	found(t, nil, broken, "kernels", "convert", "kernels/convert/f32x4", "convert f32x4 to f16")
}

// defineCube makes a row x^3 with a gradient.
func defineCube(name string, grad func(dy, x *tensor.Tensor) *tensor.Tensor) {
	tensor.DefineElementwise(tensor.Elementwise{Name: name, Doc: "x^3", Inputs: []string{"x"},
		Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Mul(b.Mul(in[0], in[0]), in[0]) },
		Ref:  func(in ...float64) float64 { return in[0] * in[0] * in[0] },
		Grad: func(dy *tensor.Tensor, in ...*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{grad(dy, in[0])}
		}})
}

// A gradient whose own gradient is wrong: it is computed from a value without history.
func TestCutHistory(t *testing.T) {
	defineCube("cube_history", func(dy, x *tensor.Tensor) *tensor.Tensor { return dy.Mul(x.Square()).MulScalar(3) })
	defineCube("cube_cut_history", func(dy, x *tensor.Tensor) *tensor.Tensor { return dy.Mul(x.Detach().Square()).MulScalar(3) })
	for _, f := range failures(t, tensor.CPU(), "gradients", "/(cube_history/|cube_cut_history/float32)") {
		t.Errorf("%s: %s", f.Name, f.Message)
	}
	found(t, nil, tensor.CPU(), "gradients", "cube_cut_history", "gradients/cube_cut_history/float64/second-generated", "the gradient for x", "central differences")
}

// A gradient with a wrong sign.
func TestWrongSign(t *testing.T) {
	row := func(name string, sign float64) {
		defineCube(name, func(dy, x *tensor.Tensor) *tensor.Tensor { return dy.Mul(x.Square()).MulScalar(3 * sign) })
	}
	row("cube_sound", 1)
	row("cube_wrong_sign", -1)
	if f := failures(t, newFaulty(), "gradients", "cube_sound"); len(f) > 0 {
		t.Errorf("a sound gradient fails: %v", f)
	}
	found(t, nil, newFaulty(), "gradients", "cube_wrong_sign", "gradients/cube_wrong_sign/float32/generated", "central differences")
	// Its values are right.
	if f := failures(t, newFaulty(), "operators", "cube_wrong_sign/float32/contiguous"); len(f) > 0 {
		t.Errorf("the operator itself fails: %v", f)
	}
}

// A reduction that lost its barriers.
func TestDroppedBarrier(t *testing.T) {
	broken := newChecked()
	broken.edit = dropBarriers
	foundIn(t, false, newChecked(), broken, "operators", "^operators/golden/(sum|mean)[^/]*/float32$", "sum|mean", "kernel sum", "race")
	found(t, newChecked(), broken, "kernels", "shared/", "kernels/shared/reversal", "race")
}

// A wrong digit in the constant of a function that the library computes itself.
func TestWrongConstant(t *testing.T) {
	math2 := func() *faulty {
		d := newFaulty()
		d.caps.NativeMath, d.lower = ir.VulkanMath(), true
		return d
	}
	broken := math2()
	edits := 0
	broken.edit = func(k *ir.Kernel) {
		k.Walk(func(in *ir.Instr) {
			if in.Op != ir.OpConst || in.Type.Kind != ir.F32 {
				return
			}
			if v := ir.ConstFloat(ir.F32, in.Imm); math.Abs(v-1.0/6) < 1e-3 { // x^3/6 in the series of e^x
				in.Imm = ir.ConstBits(ir.F32, v*(1+1e-4))
				edits++
			}
		})
	}
	found(t, math2(), broken, "operators", "^operators/(exp|sqrt)/float32/(contiguous|strided)$", "operators/exp/float32/contiguous", "exp of float32", "ULP", "x=")
	found(t, nil, broken, "kernels", "exponentials/f32", "kernels/exponentials/f32x4", "of f32x4", "ULP", "p=")
	if edits == 0 {
		t.Error("no kernel had the constant")
	}
}

// A device that is lost ends the run, with the case and the number of cases that did not run.
func TestLostDevice(t *testing.T) {
	broken := newFaulty()
	left := 3
	broken.submit = func() error {
		if left--; left < 0 {
			return &backend.LostError{Device: "faulty:0", During: "submission", Err: errors.New("reset")}
		}
		return nil
	}
	r, err := conformance.Check(broken, conformance.Options{Quick: true, Suite: regexp.MustCompile("kernels"), Context: t.Context()})
	if !errors.Is(err, backend.ErrDeviceLost) || !strings.Contains(err.Error(), "cases did not run") {
		t.Errorf("the run's error is %v", err)
	}
	if c := r.Counts(); c[conformance.Pass] != 3 || c[conformance.Fail] != 1 {
		t.Errorf("before the loss: %v", c)
	}
}
