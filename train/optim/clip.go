package optim

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// ClipOptions changes what ClipGradNorm does. The zero value is PyTorch's default.
type ClipOptions struct {
	NormType         float64 // 2 if 0; math.Inf(1) is the largest absolute value
	ErrorIfNonFinite bool    // an infinite or NaN norm is an error, and the gradients stay; it makes the call wait for the norm
}

// ClipGradNorm scales the gradients of all parameters, in place, by min(1, maxNorm/(norm+1e-6)), where norm is that of all
// gradients taken as one vector. It returns the norm before clipping, a tensor of no dimensions, float64 if a gradient is and float32 otherwise, which is 0 where no
// parameter has a gradient. The number of kernels does not depend on the number and sizes of the
// parameters, as far as a kernel can bind the allocations that they are in. Nothing waits for the device but Item on the result, and gradients on several devices. With a
// GradScaler call its Unscale first. (torch.nn.utils.clip_grad_norm_)
func ClipGradNorm(params []*tensor.Tensor, maxNorm float64, o ClipOptions) (*tensor.Tensor, error) {
	p := o.NormType
	if p == 0 {
		p = 2
	}
	if !(maxNorm >= 0) {
		return nil, fmt.Errorf("optim: clip: maximum norm %v; it must not be negative", maxNorm)
	}
	grads, err := gradients(params)
	if err != nil {
		return nil, err
	}
	if len(grads) == 0 {
		return tensor.Scalar(0), nil
	}
	devices, byDevice := groupByDevice(grads)
	total, err := totalNorm(p, devices, byDevice)
	if err != nil {
		return nil, err
	}
	if o.ErrorIfNonFinite {
		v, err := total.Item()
		if err != nil {
			return nil, fmt.Errorf("optim: clip: %w", err)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			total.Free()
			return nil, fmt.Errorf("optim: the total norm of order %v for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, leave ErrorIfNonFinite false", p)
		}
	}
	coef := coefficient(total, maxNorm)
	defer coef.Free()
	for _, dev := range devices {
		c := coef.To(dev)
		err := tensor.UpdateInPlace(tensor.InPlaceUpdate{
			Name:    "clip_grad_norm",
			BodyKey: "clip_grad_norm",
			Tensors: rows(byDevice[dev]),
			Access:  []ir.Access{ir.ReadWrite},
			Shared:  []*tensor.Tensor{c},
			Body: func(b *ir.Builder, vals, shared, _ []ir.Value) ([]ir.Value, ir.Value) {
				coef := b.Convert(shared[0], vals[0].Type.Kind)
				return []ir.Value{b.Mul(vals[0], b.Splat(coef, vals[0].Type.Lanes))}, nil
			},
		})
		if c != coef {
			c.Free()
		}
		if err != nil {
			return nil, fmt.Errorf("optim: clip: %w", err)
		}
	}
	return total, nil
}

// totalNorm returns the norm of the gradients of all devices, on the first.
func totalNorm(p float64, devices []backend.Device, grads map[backend.Device][]*tensor.Tensor) (*tensor.Tensor, error) {
	total := tensor.TotalNorm(p, grads[devices[0]]...)
	if len(devices) > 1 {
		// The norm of the devices' norms is the norm of the whole.
		parts := []*tensor.Tensor{total}
		for _, d := range devices[1:] {
			n := tensor.TotalNorm(p, grads[d]...)
			parts = append(parts, n.To(devices[0]))
			n.Free()
		}
		total = tensor.TotalNorm(p, parts...)
		freeAll(parts)
	}
	if err := total.Err(); err != nil {
		return nil, fmt.Errorf("optim: clip: %w", err)
	}
	return total, nil
}

// coefficient is min(1, maxNorm/(total+1e-6)); NaN if total is.
func coefficient(total *tensor.Tensor, maxNorm float64) *tensor.Tensor {
	steps := []func(*tensor.Tensor) *tensor.Tensor{
		func(t *tensor.Tensor) *tensor.Tensor { return t.AddScalar(1e-6) },
		func(t *tensor.Tensor) *tensor.Tensor { return t.Reciprocal() },
		func(t *tensor.Tensor) *tensor.Tensor { return t.MulScalar(maxNorm) },
		func(t *tensor.Tensor) *tensor.Tensor { return t.MinimumScalar(1) },
	}
	c := total
	for _, f := range steps {
		next := f(c)
		if c != total {
			c.Free()
		}
		c = next
	}
	return c
}

// ClipGradValue limits every element of the gradients to [-limit, limit], in place, in one kernel. NaN
// stays. (torch.nn.utils.clip_grad_value_)
func ClipGradValue(params []*tensor.Tensor, limit float64) error {
	if !(limit >= 0) {
		return fmt.Errorf("optim: clip: limit %v; it must not be negative", limit)
	}
	grads, err := gradients(params)
	if err != nil {
		return err
	}
	devices, byDevice := groupByDevice(grads)
	for _, dev := range devices {
		err := tensor.UpdateInPlace(tensor.InPlaceUpdate{
			Name:    "clip_grad_value",
			BodyKey: "clip_grad_value",
			Tensors: rows(byDevice[dev]),
			Access:  []ir.Access{ir.ReadWrite},
			Scalars: []float64{limit},
			Body: func(b *ir.Builder, vals, _, scalars []ir.Value) ([]ir.Value, ir.Value) {
				hi := b.Splat(scalars[0], vals[0].Type.Lanes)
				return []ir.Value{b.MaxNaN(b.MinNaN(vals[0], hi), b.Neg(hi))}, nil
			},
		})
		if err != nil {
			return fmt.Errorf("optim: clip: %w", err)
		}
	}
	return nil
}

func gradients(params []*tensor.Tensor) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	for i, p := range params {
		g := p.Grad()
		if g == nil {
			continue
		}
		if err := g.Err(); err != nil {
			return nil, fmt.Errorf("optim: gradient of parameter %d: %w", i, err)
		}
		out = append(out, g)
	}
	return out, nil
}

// groupByDevice sorts tensors by device, in order of first appearance.
func groupByDevice(ts []*tensor.Tensor) ([]backend.Device, map[backend.Device][]*tensor.Tensor) {
	var order []backend.Device
	groups := map[backend.Device][]*tensor.Tensor{}
	for _, t := range ts {
		d := t.Device()
		if groups[d] == nil {
			order = append(order, d)
		}
		groups[d] = append(groups[d], t)
	}
	return order, groups
}

func rows(ts []*tensor.Tensor) [][]*tensor.Tensor {
	out := make([][]*tensor.Tensor, len(ts))
	for i, t := range ts {
		out[i] = []*tensor.Tensor{t}
	}
	return out
}

func freeAll(ts []*tensor.Tensor) {
	for _, t := range ts {
		t.Free()
	}
}
