package conformance

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// TrainingCase is a recorded training run: initial parameters, batches, and PyTorch's losses in float64 at each step.
type TrainingCase struct {
	Name    string
	expect  trainingExpect
	init    map[string]*tensor.Tensor
	batches map[string]*tensor.Tensor
}

// trainingExpect is expect.json.
type trainingExpect struct {
	Model     string
	Optimizer struct {
		Name        string
		LR          float64
		Momentum    float64
		Nesterov    bool
		Dampening   float64
		WeightDecay float64 `json:"weight_decay"`
		Betas       []float64
		Eps         float64
	}
	ClipGradNorm *float64 `json:"clip_grad_norm"`
	LRSchedule   *string  `json:"lr_schedule"`
	Steps        int
	Loss         []float64          `json:"loss_float64"`
	GradNorm     []float64          `json:"grad_norm_float64"`
	ParamNorm    map[string]float64 `json:"final_param_norm_float64"`
}

// TrainingResult is a run of a TrainingCase on a device.
type TrainingResult struct {
	Loss      []float64
	GradNorm  []float64
	ParamNorm map[string]float64
}

// LoadTraining reads a training case from its directory (init.npz, batches.npz, expect.json).
func LoadTraining(fsys fs.FS, name string) (*TrainingCase, error) {
	c := &TrainingCase{Name: name}
	b, err := fs.ReadFile(fsys, "expect.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &c.expect); err != nil {
		return nil, fmt.Errorf("%s: expect.json: %w", c.Name, err)
	}
	if n := c.expect.Steps; n < 1 || len(c.expect.Loss) != n || len(c.expect.GradNorm) != n {
		return nil, fmt.Errorf("%s: expect.json: %d steps with %d losses and %d gradient norms", c.Name, n, len(c.expect.Loss), len(c.expect.GradNorm))
	}
	if c.init, err = readNPZ(fsys, "init.npz"); err != nil {
		return nil, err
	}
	c.batches, err = readNPZ(fsys, "batches.npz")
	return c, err
}

// Expected returns PyTorch's figures.
func (c *TrainingCase) Expected() TrainingResult {
	return TrainingResult{Loss: c.expect.Loss, GradNorm: c.expect.GradNorm, ParamNorm: c.expect.ParamNorm}
}

// Run repeats the training on a device in Float32 or Float64. A model, optimizer or schedule that is not built gives a
// *NotSupportedError.
func (c *TrainingCase) Run(dev backend.Device, dtype tensor.DType) (*TrainingResult, error) {
	return c.RunSteps(dev, dtype, c.expect.Steps)
}

// RunSteps is Run for the first steps only; ParamNorm is that after them.
func (c *TrainingCase) RunSteps(dev backend.Device, dtype tensor.DType, steps int) (*TrainingResult, error) {
	model, err := parseTrained(c.expect.Model)
	if err != nil {
		return nil, err
	}
	defer model.Free()
	if err := c.load(model); err != nil {
		return nil, err
	}
	if err := model.ToDType(dtype); err != nil {
		return nil, err
	}
	if err := model.To(dev); err != nil {
		return nil, err
	}
	opt, err := c.optimizer(model.Parameters())
	if err != nil {
		return nil, err
	}
	sched, err := c.scheduler(opt)
	if err != nil {
		return nil, err
	}
	r := &TrainingResult{ParamNorm: map[string]float64{}}
	for step := range min(steps, c.expect.Steps) {
		loss, norm, err := c.step(dev, dtype, model, opt, step)
		if err != nil {
			return nil, fmt.Errorf("%s: step %d: %w", c.Name, step, err)
		}
		r.Loss = append(r.Loss, loss)
		r.GradNorm = append(r.GradNorm, norm)
		if sched != nil {
			sched.Step()
		}
	}
	for _, p := range append(model.NamedParameters(), model.NamedBuffers()...) {
		if !p.Tensor.DType().IsFloat() {
			continue // the number of batches
		}
		if r.ParamNorm[p.Name], err = norm(p.Tensor.Detach()); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (c *TrainingCase) load(model trainedModel) error {
	params := append(model.NamedParameters(), model.NamedBuffers()...)
	if len(params) != len(c.init) {
		return fmt.Errorf("%s: the model has %d parameters and buffers, init.npz %d", c.Name, len(params), len(c.init))
	}
	for _, p := range params {
		v := c.init[p.Name]
		if v == nil {
			return fmt.Errorf("%s: init.npz has no %s", c.Name, p.Name)
		}
		if err := p.Tensor.CopyFrom(v); err != nil {
			return fmt.Errorf("%s: %s: %w", c.Name, p.Name, err)
		}
	}
	return nil
}

func (c *TrainingCase) optimizer(params []*tensor.Tensor) (optim.Optimizer, error) {
	o := c.expect.Optimizer
	// In a recorded optimizer an absent or zero value is zero, in a config it is the default: a negative one is zero there.
	exact := func(v float64) float64 {
		if v == 0 {
			return -1
		}
		return v
	}
	adam := optim.AdamConfig{LR: o.LR, Eps: exact(o.Eps), WeightDecay: exact(o.WeightDecay)}
	if len(o.Betas) == 2 {
		adam.Beta1, adam.Beta2 = exact(o.Betas[0]), exact(o.Betas[1])
	}
	switch o.Name {
	case "SGD":
		return optim.NewSGD(params, optim.SGDConfig{LR: o.LR, Momentum: o.Momentum, Nesterov: o.Nesterov, Dampening: o.Dampening, WeightDecay: o.WeightDecay}), nil
	case "Adam":
		return optim.NewAdam(params, adam), nil
	case "AdamW":
		return optim.NewAdamW(params, adam), nil
	}
	return nil, &NotSupportedError{"optimizer " + o.Name}
}

func (c *TrainingCase) step(dev backend.Device, dtype tensor.DType, model trainedModel, opt optim.Optimizer, step int) (loss, gradNorm float64, err error) {
	x, y := c.batches[fmt.Sprintf("x_%d", step)], c.batches[fmt.Sprintf("y_%d", step)]
	if x == nil || y == nil {
		return 0, 0, fmt.Errorf("batches.npz has no x_%d or y_%d", step, step)
	}
	s := tensor.NewScope(dev)
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	if x.DType() == tensor.Uint8 {
		const mean, std = 0.2860, 0.3530                                             // FORMAT.md
		x = x.Cast(dtype).DivScalar(255).SubScalar(mean).DivScalar(std).Unsqueeze(1) // [n, 1, 28, 28]
	}
	out, target := model.Forward(s.To(x)), s.To(y)
	if out.Dim() == 3 { // a position a row
		out, target = out.Flatten(0, 1), target.Flatten(0, 1)
	}
	l := nn.CrossEntropy(out, target)
	opt.ZeroGrad()
	if err := l.Backward(); err != nil {
		return 0, 0, err
	}
	if gradNorm, err = c.gradNorm(opt); err != nil {
		return 0, 0, err
	}
	if err := opt.Step(); err != nil {
		return 0, 0, err
	}
	loss, err = l.Item()
	return loss, gradNorm, err
}

// gradNorm returns the norm of all gradients before clipping, and clips them where the run does.
func (c *TrainingCase) gradNorm(opt optim.Optimizer) (float64, error) {
	if c.expect.ClipGradNorm != nil {
		total, err := optim.ClipGradNorm(opt.Parameters(), *c.expect.ClipGradNorm, optim.ClipOptions{})
		if err != nil {
			return 0, err
		}
		return total.Item()
	}
	total := 0.0
	for _, p := range opt.Parameters() {
		n, err := norm(p.Grad())
		if err != nil {
			return 0, err
		}
		total += n * n
	}
	return math.Sqrt(total), nil
}

// norm returns the Euclidean norm, summed on the CPU in float64.
func norm(t *tensor.Tensor) (float64, error) {
	v, err := t.CPU().Float64s()
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum), nil
}
