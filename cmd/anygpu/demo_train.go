package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/checkpoint"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/optim"
)

// warmupSteps are left out of the speed: kernels are compiled at their first use.
const warmupSteps = 3

// demoRun trains a model on a device with a precision: a row of the table.
type demoRun struct {
	cfg    demoConfig
	task   *demoTask
	bars   *progress
	first  bool // the row that writes a sample
	dev    backend.Device
	model  demoModel
	opt    *optim.Adam
	scaler *amp.GradScaler
	useAMP bool
	at     checkpoint.Position
	row    demoRow
}

// train trains on one device with one precision.
func (r *demoRun) train(ctx context.Context, name, precision string) (demoRow, error) {
	var err error
	if r.dev, err = backend.Open(name); err != nil {
		return r.row, err
	}
	defer r.dev.Close()
	tensor.ResetPeakMemory(r.dev)
	if r.model, err = r.task.model(); err != nil {
		return r.row, err
	}
	defer r.model.Free()
	if err := r.model.To(r.dev); err != nil {
		return r.row, err
	}
	r.opt = optim.NewAdam(r.model.Parameters(), optim.AdamConfig{LR: r.cfg.lr})
	defer r.opt.Free()
	r.useAMP = precision == precisionAMP
	r.scaler = amp.NewGradScaler(amp.GradScalerConfig{Disabled: !r.useAMP})
	r.row = demoRow{Device: name, Driver: driverText(r.dev.Info()), Precision: precision}
	if r.useAMP {
		s := tensor.NewScope(r.dev)
		r.row.Lower = lowerText(amp.DefaultDType(s), r.dev.Info().Caps)
		if err := s.Close(); err != nil {
			return r.row, err
		}
	}
	if err := r.resume(); err != nil {
		return r.row, err
	}
	if err := r.steps(ctx, name+" "+precision); err != nil {
		return r.row, err
	}
	r.row.Scale, r.row.SkippedSteps = r.scaler.GetScale(), r.scaler.Skipped()
	r.row.PeakBytes = tensor.MemoryStats(r.dev).AllocatedBytes.Peak
	if err := r.save(); err != nil {
		return r.row, err
	}
	return r.row, r.judge(ctx)
}

// steps runs the steps from the position on.
func (r *demoRun) steps(ctx context.Context, name string) error {
	total := r.cfg.epochs * r.task.train.Steps()
	left := total - r.at.Step
	bar := r.bars.add(name, left)
	var (
		started time.Time
		items   int
		last    []float64
	)
	for ; r.at.Epoch < r.cfg.epochs; r.at.Epoch, r.at.Batch = r.at.Epoch+1, 0 {
		for batch, err := range r.task.train.EpochFrom(r.at.Epoch, r.at.Batch) {
			if err == nil && ctx.Err() != nil {
				err = r.interrupted(ctx.Err())
			}
			if err != nil {
				bar.abort()
				return err
			}
			// Reading a loss waits for the device, so it is done only where the value is used.
			done := r.row.Steps
			drawn := r.cfg.plotFile != "" && (done%max(1, left/curvePoints) == 0 || done == left-1)
			wanted := done < max(comparedSteps, warmupSteps) || done >= left-comparedSteps || drawn
			loss, err := r.step(batch, wanted)
			if err != nil {
				bar.abort()
				return fmt.Errorf("step %d: %w", r.at.Step, err)
			}
			if drawn {
				r.row.curve = append(r.row.curve, lossAt{r.at.Step, loss})
			}
			r.row.Steps++
			r.at.Step++
			r.at.Batch++
			items += batch.Y.Numel()
			if wanted {
				if len(r.row.losses) < comparedSteps {
					r.row.losses = append(r.row.losses, loss)
				}
				last = append(last, loss)
				bar.loss(loss)
			}
			if r.row.Steps == min(warmupSteps, left-1) {
				started, items = time.Now(), 0
			}
			bar.increment()
		}
	}
	if !started.IsZero() {
		speed := float64(items) / time.Since(started).Seconds()
		if r.task.unit == "tokens" {
			r.row.TokensPerSecond = &speed
		} else {
			r.row.ImagesPerSecond = &speed
		}
	}
	last = last[max(0, len(last)-comparedSteps):]
	for _, l := range last {
		r.row.Loss += l / float64(len(last))
	}
	return nil
}

// judge measures the trained model, and lets it write.
func (r *demoRun) judge(ctx context.Context) error {
	score, err := r.task.evaluate(r.model, r.dev)
	if err != nil {
		return err
	}
	if r.task.write == nil {
		r.row.TestAccuracy = &score
		return nil
	}
	r.row.TestLoss = &score
	if r.first && r.cfg.sample > 0 {
		r.row.Sample, err = r.task.write.text(ctx, r.model, r.dev, r.cfg.sample)
	}
	return err
}

// step runs one step and returns the loss if it is wanted.
func (r *demoRun) step(batch data.Batch, wanted bool) (value float64, err error) {
	s := tensor.NewScope(r.dev)
	defer func() {
		if cerr := s.Close(); cerr != nil {
			err = cerr
		}
	}()
	x, y := s.To(batch.X), s.To(batch.Y)
	var loss *tensor.Tensor
	amp.Autocast(s, func() { loss = r.task.loss(r.model.Forward(x), y) }, amp.Enabled(r.useAMP))
	r.opt.ZeroGrad()
	if err := r.scaler.Scale(loss).Backward(); err != nil {
		return 0, err
	}
	if r.task.clip > 0 {
		if err := r.scaler.Unscale(r.opt); err != nil {
			return 0, err
		}
		norm, err := optim.ClipGradNorm(r.opt.Parameters(), r.task.clip, optim.ClipOptions{})
		if err != nil {
			return 0, err
		}
		norm.Free()
	}
	if _, err := r.scaler.Step(r.opt); err != nil {
		return 0, err
	}
	if err := r.scaler.Update(); err != nil {
		return 0, err
	}
	if wanted {
		return loss.Item()
	}
	return 0, nil
}

func driverText(i backend.Info) string {
	return strings.Join(nonEmpty(i.Driver, i.DriverVersion), " ")
}
