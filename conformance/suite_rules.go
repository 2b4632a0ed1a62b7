package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/anygpu/anygpu/tensor"
)

// ruleCases hold the rules of where tensors may be.
func ruleCases(e *env) ([]testCase, error) {
	if e.opts.Golden != nil {
		return nil, nil
	}
	isCPU := e.info.API == "cpu"
	// other makes the case's second tensor on a device that is not the one under test.
	needsOther := func(f func(x *run, s *tensor.Scope, on, off *tensor.Tensor) error) func(x *run) error {
		return func(x *run) error {
			if isCPU {
				return notSupported("a device besides the CPU, which is the device under test")
			}
			return x.scopedQuiet(func(s *tensor.Scope) error {
				host := tensor.FromFloat32s([]float32{1, 2, 3, 4}, 2, 2)
				return f(x, s, s.To(host), host)
			})
		}
	}
	return []testCase{
		{name: "same_device/elementwise", op: "add", run: needsOther(func(x *run, _ *tensor.Scope, on, off *tensor.Tensor) error {
			return x.wantDevices(on.Add(off).Err(), "add")
		})},
		{name: "same_device/matmul", op: "matmul", run: needsOther(func(x *run, _ *tensor.Scope, on, off *tensor.Tensor) error {
			return x.wantDevices(off.MatMul(on).Err(), "matmul")
		})},
		{name: "same_device/cat", op: "cat", run: needsOther(func(x *run, _ *tensor.Scope, on, off *tensor.Tensor) error {
			return x.wantDevices(tensor.Cat(0, on, off).Err(), "cat")
		})},
		{name: "same_device/scalar_joins", op: "mul", run: needsOther(func(x *run, _ *tensor.Scope, on, _ *tensor.Tensor) error {
			v, err := on.Mul(tensor.Scalar(3)).Sum().Item()
			if err == nil && v != 30 {
				err = fmt.Errorf("the sum is %v, want 30", v)
			}
			return err
		})},
		{name: "export/float32s", run: needsOther(func(x *run, _ *tensor.Scope, on, _ *tensor.Tensor) error {
			_, err := on.Float32s()
			return wantError(err, x.info.String(), "CPU()")
		})},
		{name: "export/gonum", run: needsOther(func(x *run, _ *tensor.Scope, on, _ *tensor.Tensor) error {
			_, err := on.Dense()
			return wantError(err, x.info.String(), "CPU()")
		})},
		{name: "export/npy", run: needsOther(func(x *run, _ *tensor.Scope, on, _ *tensor.Tensor) error {
			var buf bytes.Buffer
			return wantError(on.WriteNPY(&buf), x.info.String(), "CPU()")
		})},
		{name: "export/requires_grad", run: func(x *run) error {
			return x.scopedQuiet(func(s *tensor.Scope) error {
				t := s.To(tensor.FromFloat32s([]float32{1, 2}, 2)).SetRequiresGrad(true)
				_, err := t.CPU().Dense()
				return wantError(err, "Detach")
			})
		}},
		{name: "export/round_trip", run: func(x *run) error {
			return x.scoped(func(s *tensor.Scope) error {
				var buf bytes.Buffer
				if err := s.To(tensor.FromFloat32s([]float32{1, 2.5, -3, 4e9, 5, 6}, 2, 3)).CPU().WriteNPY(&buf); err != nil {
					return err
				}
				back, err := tensor.ReadNPY(&buf)
				if err != nil {
					return err
				}
				v, err := back.Float32s()
				if err == nil && (len(v) != 6 || v[1] != 2.5 || v[3] != 4e9 || len(back.Shape()) != 2) {
					err = fmt.Errorf("read back %v of shape %v", v, back.Shape())
				}
				return err
			})
		}},
		{name: "item/anywhere", run: func(x *run) error {
			return x.scoped(func(s *tensor.Scope) error {
				v, err := s.To(tensor.FromFloat32s([]float32{7}, 1)).Item()
				if err == nil && v != 7 {
					err = fmt.Errorf("Item is %v, want 7", v)
				}
				return err
			})
		}},
		{name: "errors/first_wins", op: "matmul", run: func(x *run) error {
			return x.scopedQuiet(func(s *tensor.Scope) error {
				a := s.To(tensor.FromFloat32s(make([]float32, 6), 2, 3))
				bad := a.MatMul(a)
				_, err := bad.ReLU().Add(a).Sum().Item()
				if err := wantError(err, "matmul", "[2 3]", x.info.String()); err != nil {
					return err
				}
				return wantError(s.Err(), "matmul")
			})
		}},
		{name: "errors/freed", run: func(x *run) error {
			return x.scopedQuiet(func(s *tensor.Scope) error {
				a := s.To(tensor.FromFloat32s([]float32{1}, 1))
				b := a.AddScalar(1)
				b.Free()
				if err := b.AddScalar(1).Err(); !errors.Is(err, tensor.ErrFreed) {
					return fmt.Errorf("using a freed tensor gives %w", orNil(err))
				}
				return nil
			})
		}},
		{name: "gradient/crosses_devices", run: needsOther(func(x *run, s *tensor.Scope, _, off *tensor.Tensor) error {
			leaf := off.Clone().SetRequiresGrad(true)
			if err := s.To(leaf).Square().Sum().Backward(); err != nil {
				return err
			}
			g, err := leaf.Grad().Float32s()
			if err == nil && (len(g) != 4 || g[3] != 8) {
				err = fmt.Errorf("the gradient on the CPU is %v", g)
			}
			return err
		})},
	}, nil
}

// wantDevices asserts the error of operands on two devices.
func (x *run) wantDevices(err error, op string) error {
	if !errors.Is(err, tensor.ErrDevice) {
		return fmt.Errorf("operands on two devices give %w", orNil(err))
	}
	if s := err.Error(); !strings.Contains(s, op) || !strings.Contains(s, x.info.String()) || !strings.Contains(s, "cpu") || !strings.Contains(s, "To") {
		return fmt.Errorf("the error should name %s, both devices and the remedy, but is: %w", op, err)
	}
	return nil
}

// orNil is err, or an error that says that there was none.
func orNil(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}
