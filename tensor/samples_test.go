package tensor

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// runSample applies a row to a sample on a device.
func runSample(op *OpInfo, s Sample, dev backend.Device) ([]*Tensor, *Scope) {
	scope := NewScope(dev)
	in := make([]*Tensor, len(s.In))
	for i, a := range s.In {
		in[i] = scope.To(a.Tensor())
	}
	return op.Call(in, withDevice(s, dev)), scope
}

// withDevice returns a sample's attributes; operators without operands get their device by one.
func withDevice(s Sample, dev backend.Device) Attrs {
	if len(s.In) > 0 || s.Attrs.Has("device") {
		return s.Attrs
	}
	attrs := maps.Clone(s.Attrs)
	if attrs == nil {
		attrs = Attrs{}
	}
	attrs["device"] = dev
	return attrs
}

// Every sample of the table agrees with its reference, or fails with its error.
func TestSamples(t *testing.T) {
	check := func(t *testing.T, dev backend.Device, skip string) {
		for _, op := range Ops() {
			if skip != "" && strings.HasPrefix(op.Name, skip) {
				continue
			}
			for _, s := range op.Samples {
				name := op.Name + "/" + s.Name
				outs, scope := runSample(op, s, dev)
				var err error
				got := make([][]float64, len(outs))
				for i, o := range outs {
					var vs []float64
					if vs, err = o.Detach().CPU().Float64s(); err != nil {
						break
					}
					got[i] = vs
				}
				if s.Err != "" {
					if err == nil || !strings.Contains(err.Error(), s.Err) || !strings.Contains(err.Error(), op.Name+" at ") {
						t.Errorf("%s: got error %v", name, err)
					}
					_ = scope.Close()
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if op.Ref != nil {
					want, err := op.Ref(s.In, s.Attrs)
					if err != nil {
						t.Errorf("%s: reference: %v", name, err)
						continue
					}
					if len(want) != len(outs) {
						t.Errorf("%s: %d results, the reference has %d", name, len(outs), len(want))
						continue
					}
					for i, w := range want {
						if !slices.Equal(outs[i].Shape(), w.Shape) && Numel(w.Shape)+len(w.Shape) > 0 {
							t.Errorf("%s: result %d has shape %v, expected %v", name, i, outs[i].Shape(), w.Shape)
							continue
						}
						checkClose(t, name, got[i], w.Data, 2e-5, 2e-6)
					}
				}
				if err := scope.Close(); err != nil {
					t.Errorf("%s: the scope: %v", name, err)
				}
			}
		}
	}
	t.Run("cpu", func(t *testing.T) { check(t, CPU(), "") })
	// The kernels of convolutions take long on the checking executor; package lib has them there.
	t.Run("checked", func(t *testing.T) { check(t, gpuLike(t), "conv") })
}
