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
	// pair makes a tensor on the device under test and one elsewhere: on the CPU, or where that is under test, on the CPU in the
	// guise of another device. away is the one that is not on the CPU.
	pair := func(f func(x *run, s *tensor.Scope, p places) error) func(x *run) error {
		return func(x *run) error {
			return x.scopedQuiet(func(s *tensor.Scope) error {
				host := tensor.FromFloat32s([]float32{1, 2, 3, 4}, 2, 2)
				p := places{here: s.To(host), there: host, other: tensor.CPU().Info().String()}
				p.away = p.here
				if x.info.API == "cpu" {
					d := &understudy{Device: x.dev, info: x.info}
					d.info.API, d.info.Name = "second", "the CPU as a second device"
					defer d.leave()
					second := tensor.NewScope(d)
					defer second.Close()
					p.there, p.other = second.To(host), d.info.String()
					p.away = p.there
				}
				return f(x, s, p)
			})
		}
	}
	return []testCase{
		{name: "same_device/elementwise", op: "add", run: pair(func(x *run, _ *tensor.Scope, p places) error {
			return x.wantDevices(p.here.Add(p.there).Err(), "add", p.other)
		})},
		{name: "same_device/matmul", op: "matmul", run: pair(func(x *run, _ *tensor.Scope, p places) error {
			return x.wantDevices(p.there.MatMul(p.here).Err(), "matmul", p.other)
		})},
		{name: "same_device/cat", op: "cat", run: pair(func(x *run, _ *tensor.Scope, p places) error {
			return x.wantDevices(tensor.Cat(0, p.here, p.there).Err(), "cat", p.other)
		})},
		{name: "same_device/scalar_joins", op: "mul", run: pair(func(_ *run, _ *tensor.Scope, p places) error {
			v, err := p.away.Mul(tensor.Scalar(3)).Sum().Item()
			if err == nil && v != 30 {
				err = fmt.Errorf("the sum is %v, want 30", v)
			}
			return err
		})},
		{name: "export/float32s", run: pair(func(_ *run, _ *tensor.Scope, p places) error {
			_, err := p.away.Float32s()
			return wantError(err, p.away.Device().Info().String(), "CPU()")
		})},
		{name: "export/gonum", run: pair(func(_ *run, _ *tensor.Scope, p places) error {
			_, err := p.away.Dense()
			return wantError(err, p.away.Device().Info().String(), "CPU()")
		})},
		{name: "export/npy", run: pair(func(_ *run, _ *tensor.Scope, p places) error {
			var buf bytes.Buffer
			return wantError(p.away.WriteNPY(&buf), p.away.Device().Info().String(), "CPU()")
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
		{name: "gradient/crosses_devices", run: pair(func(_ *run, s *tensor.Scope, p places) error {
			leaf := p.there.Clone().SetRequiresGrad(true)
			if err := s.To(leaf).Square().Sum().Backward(); err != nil {
				return err
			}
			grad := leaf.Grad()
			if got := grad.Device().Info().String(); got != p.other {
				return fmt.Errorf("the gradient of a leaf on %s is on %s", p.other, got)
			}
			g, err := grad.CPU().Float32s()
			if err == nil && (len(g) != 4 || g[3] != 8) {
				err = fmt.Errorf("the gradient on %s is %v", p.other, g)
			}
			return err
		})},
	}, nil
}

// places are two tensors of the same values on two devices.
type places struct {
	here, there *tensor.Tensor // on the device under test, and on another one
	away        *tensor.Tensor // the one that is not on the CPU
	other       string         // the device of there
}

// wantDevices asserts the error of operands on the device under test and another one.
func (x *run) wantDevices(err error, op, other string) error {
	if !errors.Is(err, tensor.ErrDevice) {
		return fmt.Errorf("operands on two devices give %w", orNil(err))
	}
	if s := err.Error(); !strings.Contains(s, op) || !strings.Contains(s, x.info.String()) || !strings.Contains(s, other) || !strings.Contains(s, "To") {
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
