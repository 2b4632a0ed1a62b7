package amp

import (
	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// unscaleGradients multiplies gradients by inv in place, and returns a flag for each device and dtype among them: an int32
// tensor of one element that is 1 if a gradient was infinite or NaN before. It does not wait for the devices.
func unscaleGradients(grads []*tensor.Tensor, inv float64) ([]*tensor.Tensor, error) {
	type key struct {
		dev   backend.Device
		dtype tensor.DType
	}
	var order []key
	groups := map[key][][]*tensor.Tensor{}
	for _, g := range grads {
		k := key{g.Device(), g.DType()}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], []*tensor.Tensor{g})
	}
	var flags []*tensor.Tensor
	for _, k := range order {
		flag := tensor.Zeros(k.dev, tensor.Int32, 1)
		flags = append(flags, flag)
		err := tensor.UpdateInPlace(tensor.InPlaceUpdate{
			Name:    "unscale",
			BodyKey: "unscale",
			Tensors: groups[k],
			Access:  []ir.Access{ir.ReadWrite},
			Flag:    flag,
			Scalars: []float64{inv},
			Body: func(b *ir.Builder, vals, _, scalars []ir.Value) ([]ir.Value, ir.Value) {
				return []ir.Value{b.Mul(vals[0], b.Splat(scalars[0], vals[0].Type.Lanes))}, b.Not(b.IsFinite(vals[0]))
			},
		})
		if err != nil {
			return nil, err
		}
	}
	return flags, nil
}
