package nn

import (
	"fmt"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
)

// Metric returns the sum of a measure over a batch, as a tensor of one element on the batch's device.
type Metric func(output, target *tensor.Tensor) *tensor.Tensor

// Accuracy counts the rows of output [n, classes] whose largest element is at the target class [n].
func Accuracy(output, target *tensor.Tensor) *tensor.Tensor {
	return output.Argmax(1, false).Eq(target).Cast(tensor.Float32).Sum()
}

// evaluateBatch bounds the memory of an evaluation; larger batches gain nothing on any device measured.
const evaluateBatch = 500

// Evaluate returns the mean of a metric over a dataset, in evaluation mode and without gradients, on the device where
// the model's parameters are. The model's mode is restored.
func Evaluate(m Module, ds data.Dataset[data.Example], metric Metric) (float64, error) {
	base := m.component()
	restore := base.modes()
	base.Eval()
	defer restore()
	dev, err := deviceOf(base)
	if err != nil {
		return 0, err
	}
	total, n := 0.0, 0
	loader := data.NewLoader(ds, data.LoaderConfig{BatchSize: min(evaluateBatch, max(ds.Len(), 1))})
	for batch, err := range loader.Epoch(0) {
		if err != nil {
			return 0, fmt.Errorf("evaluate: %w", err)
		}
		s := tensor.NewScope(dev)
		sum := tensor.NoGrad(s, func() *tensor.Tensor {
			return metric(m.Forward(s.To(batch.X)), s.To(batch.Y))
		})
		v, err := sum.Item()
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return 0, fmt.Errorf("evaluate: %w", err)
		}
		total += v
		n += batch.Len()
	}
	return total / float64(n), nil
}

// modes returns a function that restores the modes of b and its descendants.
func (b *Base) modes() func() {
	was := map[*Base]bool{}
	b.each(func(_ string, m *Base) { was[m] = m.eval })
	return func() {
		for m, eval := range was {
			m.eval = eval
		}
	}
}

// deviceOf returns the device of a model's parameters, the CPU's if it has none.
func deviceOf(b *Base) (backend.Device, error) {
	params := b.NamedParameters()
	if len(params) == 0 {
		return tensor.CPU(), nil
	}
	dev := params[0].Tensor.Device()
	for _, p := range params[1:] {
		if d := p.Tensor.Device(); d != dev {
			return nil, fmt.Errorf("nn: parameter %s is on %s but %s is on %s; move the model with To", params[0].Name, dev.Info(), p.Name, d.Info())
		}
	}
	return dev, nil
}
