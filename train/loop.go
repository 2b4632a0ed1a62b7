package train

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/checkpoint"
	"github.com/anygpu/anygpu/train/optim"
)

// Model is what a Loop needs of a model; everything that embeds nn.Base satisfies it.
type Model interface {
	checkpoint.Model
	Parameters() []*tensor.Tensor
	Train()
	Eval()
}

// Data gives the batches of an epoch, in an order that depends on the epoch's number only; data.Loader satisfies it.
type Data[B any] interface {
	Steps() int
	EpochFrom(epoch, batch int) iter.Seq2[B, error]
}

// Loop trains a model. Model, Optimizer, Device, Data, Forward, Loss and Epochs are needed.
type Loop[B any] struct {
	Model     Model
	Optimizer optim.Optimizer
	Device    backend.Device
	Data      Data[B]
	Epochs    int
	// Forward computes a batch's output, and returns its target on the device.
	Forward func(s *tensor.Scope, batch B) (output, target *tensor.Tensor)
	// Loss is a mean over the batch, a tensor of one element.
	Loss func(output, target *tensor.Tensor) *tensor.Tensor

	Precision  Precision        // mixed precision; nil: none
	Accumulate int              // batches an optimizer step; 1 if 0
	ClipNorm   float64          // largest gradient norm; 0: no clipping
	EMA        *optim.EMA       // averages, used in evaluations
	Schedule   *optim.Scheduler // moves at each optimizer step
	PerEpoch   bool             // the schedule moves at each epoch instead
	Plateau    *optim.ReduceOnPlateau

	Validation Data[B] // evaluated after each epoch
	Metrics    []Metric
	// Monitor is the metric that Plateau, Patience and the Keeper's Best look at: "val_loss", "loss" or one of Metrics'. "val_loss" if
	// empty, "loss" without Validation.
	Monitor    string
	MonitorMax bool // a larger value is better
	Patience   int  // epochs without improvement after which the run stops; 0: never

	Keeper     *checkpoint.Keeper
	SaveEvery  int  // optimizer steps between checkpoints; 0: after each epoch
	Resume     bool // go on from the keeper's latest checkpoint, if there is one
	Generators map[string]*tensor.Generator

	ReportEvery    int // steps between reports and readings of the loss; 20 if 0
	AllowNonFinite bool
	Observers      []Observer
}

// History is what a run did.
type History struct {
	Epochs       []EpochInfo
	Steps        int // optimizer steps
	Skipped      int // of them, left out because a gradient overflowed
	StoppedEarly bool
	Resumed      string // the checkpoint that the run went on from
}

// ErrInterrupted is the error of a run whose context was cancelled; the text says where the checkpoint is.
var ErrInterrupted = errors.New("train: interrupted")

// run is the state of a Loop's run.
type run[B any] struct {
	*Loop[B]
	pos     checkpoint.Position
	state   loopState
	pending []*tensor.Tensor // losses that were not read yet
	since   struct{ sum, n float64 }
	resumed string
}

// loopState is the loop's part of a checkpoint.
type loopState struct {
	LossSum float64     `json:"loss_sum"` // of this epoch
	LossN   int         `json:"loss_n"`
	Best    *float64    `json:"best"`
	Bad     int         `json:"bad_epochs"`
	Skipped int         `json:"skipped"`
	Stopped bool        `json:"stopped"`
	Epochs  []EpochInfo `json:"epochs"`
}

// StateDict and LoadStateDict make the state part of a checkpoint.
func (r *run[B]) StateDict() loopState { return r.state }

func (r *run[B]) LoadStateDict(s loopState) error {
	if s.LossN < 0 || s.Bad < 0 || s.Skipped < 0 {
		return fmt.Errorf("train: negative counts in the loop's state")
	}
	r.state = s
	return nil
}

// Run trains until the last epoch has ended, Patience is used up or ctx is done. The returned history is never nil.
func (l *Loop[B]) Run(ctx context.Context) (*History, error) {
	r := &run[B]{Loop: l}
	err := r.check()
	if err == nil {
		err = r.run(ctx)
	}
	for _, t := range r.pending {
		t.Free()
	}
	for _, o := range l.Observers {
		if oerr := o.OnEnd(err); err == nil {
			err = oerr
		}
	}
	return &History{Epochs: r.state.Epochs, Steps: r.pos.Step, Skipped: r.state.Skipped, StoppedEarly: r.state.Stopped, Resumed: r.resumed}, err
}

func (r *run[B]) check() error {
	switch {
	case r.Model == nil || r.Optimizer == nil || r.Device == nil || r.Data == nil || r.Forward == nil || r.Loss == nil:
		return fmt.Errorf("train: a Loop needs Model, Optimizer, Device, Data, Forward and Loss")
	case r.Epochs < 1:
		return fmt.Errorf("train: %d epochs; there must be at least 1", r.Epochs)
	case r.Data.Steps() < 1:
		return fmt.Errorf("train: the data have no batches")
	case r.ClipNorm < 0 || r.Accumulate < 0 || r.Patience < 0 || r.SaveEvery < 0:
		return fmt.Errorf("train: ClipNorm, Accumulate, Patience and SaveEvery must not be negative")
	case r.Resume && r.Keeper == nil:
		return fmt.Errorf("train: Resume needs a Keeper")
	}
	return nil
}

func (r *run[B]) run(ctx context.Context) error {
	if r.Resume {
		if err := r.load(); err != nil {
			return err
		}
	}
	for r.pos.Epoch < r.Epochs && !r.state.Stopped {
		if err := r.epoch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// steps is the number of optimizer steps of an epoch; the last may have fewer batches.
func (r *run[B]) steps() int {
	return (r.Data.Steps() + r.accumulate() - 1) / r.accumulate()
}

func (r *run[B]) accumulate() int { return max(r.Accumulate, 1) }

func (r *run[B]) reportEvery() int {
	if r.ReportEvery > 0 {
		return r.ReportEvery
	}
	return 20
}

func (r *run[B]) epoch(ctx context.Context) error {
	r.Model.Train()
	total, at := r.Data.Steps(), r.pos.Batch
	for batch, err := range r.Data.EpochFrom(r.pos.Epoch, at) {
		if err != nil {
			return fmt.Errorf("train: epoch %d: %w", r.pos.Epoch, err)
		}
		first := at%r.accumulate() == 0
		if first {
			if ctx.Err() != nil {
				return r.interrupted(ctx)
			}
			r.Optimizer.ZeroGrad()
		}
		// The last optimizer step of an epoch may have fewer batches.
		group := min(r.accumulate(), total-at/r.accumulate()*r.accumulate())
		at++
		last := at%r.accumulate() == 0 || at == total
		if err := r.batch(batch, group, last); err != nil {
			return fmt.Errorf("train: epoch %d, batch %d: %w", r.pos.Epoch, at-1, err)
		}
		if !last {
			continue
		}
		r.pos.Batch = at
		r.pos.Step++
		if r.Schedule != nil && !r.PerEpoch {
			r.Schedule.Step()
		}
		if r.pos.Step%r.reportEvery() == 0 {
			if err := r.report(); err != nil {
				return err
			}
		}
		if r.Keeper != nil && r.SaveEvery > 0 && r.pos.Step%r.SaveEvery == 0 && at < total {
			if _, err := r.save(); err != nil {
				return err
			}
		}
	}
	if at < total {
		return fmt.Errorf("train: epoch %d ended after %d of %d batches", r.pos.Epoch, at, total)
	}
	return r.endEpoch()
}

// batch adds a batch's gradients, and steps after the last of a group.
func (r *run[B]) batch(batch B, group int, last bool) (err error) {
	s := tensor.NewScope(r.Device)
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	var loss *tensor.Tensor
	forward := func() { loss = r.Loss(r.Forward(s, batch)) }
	if r.Precision != nil {
		r.Precision.Autocast(s, forward)
	} else {
		forward()
	}
	if err := loss.Err(); err != nil {
		return err
	}
	r.pending = append(r.pending, loss.Detach().Keep())
	if group > 1 {
		loss = loss.DivScalar(float64(group))
	}
	if r.Precision != nil {
		loss = r.Precision.Scale(loss)
	}
	if err := loss.Backward(); err != nil {
		return err
	}
	if !last {
		return nil
	}
	return r.step()
}

// step clips and updates.
func (r *run[B]) step() error {
	if r.ClipNorm > 0 {
		if r.Precision != nil {
			if err := r.Precision.Unscale(); err != nil {
				return err
			}
		}
		norm, err := optim.ClipGradNorm(r.Model.Parameters(), r.ClipNorm, optim.ClipOptions{})
		if err != nil {
			return err
		}
		norm.Free()
	}
	skipped := false
	if r.Precision == nil {
		if err := r.Optimizer.Step(); err != nil {
			return err
		}
	} else {
		var err error
		if skipped, err = r.Precision.Step(); err != nil {
			return err
		}
		if err := r.Precision.Update(); err != nil {
			return err
		}
	}
	if skipped {
		r.state.Skipped++
		return nil
	}
	if r.EMA != nil {
		return r.EMA.Update()
	}
	return nil
}

// read takes the values of losses that were computed since the last call: the loop's only wait.
func (r *run[B]) read() error {
	for len(r.pending) > 0 {
		t := r.pending[0]
		v, err := t.Item()
		t.Free()
		r.pending = r.pending[1:]
		if err != nil {
			return fmt.Errorf("train: loss: %w", err)
		}
		if !r.AllowNonFinite && (math.IsNaN(v) || math.IsInf(v, 0)) {
			return fmt.Errorf("train: the loss is %v, in the %d batches before step %d; lower the learning rate, clip gradients, or set AllowNonFinite", v, len(r.pending)+1, r.pos.Step)
		}
		r.state.LossSum += v
		r.state.LossN++
		r.since.sum += v
		r.since.n++
	}
	return nil
}

func (r *run[B]) report() error {
	if err := r.read(); err != nil {
		return err
	}
	info := StepInfo{Epoch: r.pos.Epoch, Step: r.pos.Step, Steps: r.steps() * r.Epochs, Loss: r.since.sum / r.since.n, LR: r.Optimizer.LR(), Skipped: r.state.Skipped}
	r.since.sum, r.since.n = 0, 0
	for _, o := range r.Observers {
		if err := o.OnSteps(info); err != nil {
			return fmt.Errorf("train: observer: %w", err)
		}
	}
	return nil
}

func (r *run[B]) endEpoch() error {
	if r.since.n > 0 || len(r.pending) > 0 {
		if err := r.report(); err != nil {
			return err
		}
	}
	info := EpochInfo{Epoch: r.pos.Epoch, Step: r.pos.Step, Loss: r.state.LossSum / float64(r.state.LossN), LR: r.Optimizer.LR(), Metrics: map[string]float64{}}
	if r.Validation != nil {
		if err := r.evaluate(info.Metrics); err != nil {
			return err
		}
	}
	if err := r.judge(info); err != nil {
		return err
	}
	if r.Schedule != nil && r.PerEpoch {
		r.Schedule.Step()
	}
	r.state.Epochs = append(r.state.Epochs, finite(info))
	r.state.LossSum, r.state.LossN = 0, 0
	r.pos.Epoch, r.pos.Batch = r.pos.Epoch+1, 0
	if r.Keeper != nil {
		if _, err := r.save(); err != nil {
			return err
		}
	}
	for _, o := range r.Observers {
		if err := o.OnEpoch(info); err != nil {
			return fmt.Errorf("train: observer: %w", err)
		}
	}
	return nil
}

// finite leaves out what JSON cannot hold.
func finite(e EpochInfo) EpochInfo {
	m := map[string]float64{}
	for name, v := range e.Metrics {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m[name] = v
		}
	}
	e.Metrics = m
	if math.IsNaN(e.Loss) || math.IsInf(e.Loss, 0) {
		e.Loss = math.MaxFloat64
	}
	return e
}

// judge looks at the monitored metric.
func (r *run[B]) judge(info EpochInfo) error {
	name := r.Monitor
	if name == "" {
		name = "val_loss"
		if r.Validation == nil {
			name = "loss"
		}
	}
	v, ok := info.Metrics[name]
	if name == "loss" {
		v, ok = info.Loss, true
	}
	if !ok {
		if r.Monitor == "" && r.Patience == 0 && r.Plateau == nil {
			return nil
		}
		return fmt.Errorf("train: the monitored metric %q is not measured", name)
	}
	if r.Plateau != nil {
		r.Plateau.Step(v)
	}
	better := r.state.Best == nil || v < *r.state.Best
	if r.MonitorMax {
		better = r.state.Best == nil || v > *r.state.Best
	}
	if better && !math.IsNaN(v) && !math.IsInf(v, 0) {
		r.state.Best, r.state.Bad = &v, 0
		return nil
	}
	r.state.Bad++
	r.state.Stopped = r.Patience > 0 && r.state.Bad >= r.Patience
	return nil
}

// interrupted saves the run and says how to go on.
func (r *run[B]) interrupted(ctx context.Context) error {
	where := fmt.Sprintf("at epoch %d, batch %d (%d steps)", r.pos.Epoch, r.pos.Batch, r.pos.Step)
	if r.Keeper == nil {
		return fmt.Errorf("%w %s: %w; nothing was saved, because the loop has no Keeper", ErrInterrupted, where, context.Cause(ctx))
	}
	base, err := r.save()
	if err != nil {
		return fmt.Errorf("%w %s: %w; saving failed: %w", ErrInterrupted, where, context.Cause(ctx), err)
	}
	return fmt.Errorf("%w %s: %w; saved to %s.json: run again with Resume to go on", ErrInterrupted, where, context.Cause(ctx), base)
}
