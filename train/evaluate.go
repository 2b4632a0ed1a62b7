package train

import (
	"errors"
	"fmt"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/checkpoint"
)

// evaluate measures the validation data in evaluation mode, without gradients, with the averages where there are some.
func (r *run[B]) evaluate(into map[string]float64) error {
	if r.EMA != nil {
		return r.EMA.With(func() error { return r.measure(into) })
	}
	return r.measure(into)
}

func (r *run[B]) measure(into map[string]float64) error {
	r.Model.Eval()
	defer r.Model.Train()
	for _, m := range r.Metrics {
		m.Reset()
	}
	sum, n := 0.0, 0
	for batch, err := range r.Validation.EpochFrom(0, 0) {
		if err != nil {
			return fmt.Errorf("train: validation: %w", err)
		}
		loss, size, err := r.measureBatch(batch)
		if err != nil {
			return fmt.Errorf("train: validation: %w", err)
		}
		sum += loss * float64(size)
		n += size
	}
	if n == 0 {
		return fmt.Errorf("train: the validation data are empty")
	}
	into["val_loss"] = sum / float64(n)
	for _, m := range r.Metrics {
		into[m.Name()] = m.Value()
	}
	return nil
}

// measureBatch returns a batch's mean loss and the number of its samples, the target's first dimension.
func (r *run[B]) measureBatch(batch B) (loss float64, n int, err error) {
	s := tensor.NewScope(r.Device)
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	var output, target *tensor.Tensor
	mean := tensor.NoGrad(s, func() (l *tensor.Tensor) {
		forward := func() {
			output, target = r.Forward(s, batch)
			l = r.Loss(output, target)
		}
		if r.Precision != nil {
			r.Precision.Autocast(s, forward)
		} else {
			forward()
		}
		return l
	})
	if loss, err = mean.Item(); err != nil {
		return 0, 0, err
	}
	n = max(target.Size(0), 1)
	for _, m := range r.Metrics {
		if err := m.Add(output, target, loss, n); err != nil {
			return 0, 0, err
		}
	}
	return loss, n, nil
}

// checkpointRun is the run as package checkpoint sees it.
func (r *run[B]) checkpointRun() *checkpoint.Run {
	c := &checkpoint.Run{Model: r.Model, Optimizer: r.Optimizer, EMA: r.EMA, Generators: r.Generators, Position: r.pos,
		Parts: map[string]checkpoint.Stateful{"loop": checkpoint.Of[loopState](r)}}
	if r.Schedule != nil {
		c.Parts["schedule"] = checkpoint.Of(r.Schedule)
	}
	if r.Plateau != nil {
		c.Parts["plateau"] = checkpoint.Of(r.Plateau)
	}
	if r.Precision != nil {
		c.Parts["scaler"] = r.precisionState()
	}
	return c
}

// save writes a checkpoint, with the last epoch's metrics if it has just ended.
func (r *run[B]) save() (string, error) {
	if err := r.read(); err != nil { // the mean loss of the epoch goes on from here
		return "", err
	}
	c := r.checkpointRun()
	if n := len(r.state.Epochs); n > 0 && r.pos.Batch == 0 {
		last := r.state.Epochs[n-1]
		c.Metrics = map[string]float64{"loss": last.Loss}
		for name, v := range last.Metrics {
			c.Metrics[name] = v
		}
	}
	base, err := r.Keeper.Save(c)
	if err != nil {
		return "", fmt.Errorf("train: %w", err)
	}
	return base, nil
}

// load goes on from the latest checkpoint, if there is one.
func (r *run[B]) load() error {
	base, err := r.Keeper.Latest()
	if errors.Is(err, checkpoint.ErrNone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("train: resume: %w", err)
	}
	c := r.checkpointRun()
	if err := checkpoint.Load(base, c); err != nil {
		return fmt.Errorf("train: resume: %w", err)
	}
	if c.Position.Batch > r.Data.Steps() {
		return fmt.Errorf("train: resume: %s is at batch %d of an epoch that has %d: the data or the batch size changed", base, c.Position.Batch, r.Data.Steps())
	}
	r.pos, r.resumed = c.Position, base
	return nil
}
