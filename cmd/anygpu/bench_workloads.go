package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// workload is one thing that bench times.
type workload struct {
	name string
	doc  string
	// work is what one run computes and moves at least, for reports of rates.
	flops, bytes float64
	prepare      prepareFunc
}

// prepareFunc makes a workload's operands on dev and returns what one run does.
type prepareFunc func(dev backend.Device, o benchOptions) (run func() error, err error)

// benchOptions change the size of a workload.
type benchOptions struct {
	batch int  // of a training step; 0 is the workload's own
	width int  // of the mlp's hidden layers; 0 is 512 and 256
	amp   bool // autocast and a gradient scaler
}

const mega = 1 << 20

var workloads = slices.Concat(
	matmulWorkloads(tensor.Float32, "f32", 256, 512, 1024, 2048, 4096, 8192),
	matmulWorkloads(tensor.Float16, "f16", 1024, 4096, 8192),
	matmulWorkloads(tensor.BFloat16, "bf16", 1024, 4096, 8192),
	[]workload{
		{"gelu_chain_16m", "gelu_tanh(x*a+b), 16,777,216 float32 each", 0, 4 * 4 * 16 * mega, geluChain},
		{"softmax_8192x1024", "softmax over the last dimension, float32", 0, 2 * 4 * 8 * mega, rowsWorkload(func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Softmax(-1) })},
		{"layer_norm_8192x1024", "layer_norm over the last dimension with weight and bias, float32", 0, 2 * 4 * 8 * mega,
			rowsWorkload(func(x, w, b *tensor.Tensor) *tensor.Tensor { return tensor.LayerNorm(x, 1, w, b, 1e-5) })},
		{"sum_rows_8192x1024", "sum over the last dimension, float32", 0, 4 * 8 * mega, rowsWorkload(func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Sum(-1) })},
		{"sum_cols_8192x1024", "sum over the first dimension, float32", 0, 4 * 8 * mega, rowsWorkload(func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Sum(0) })},
		{"conv2d_forward", "64 images of 32x28x28, 64 filters 3x3, padding 1", convFLOPs, 0, convWorkload(false)},
		{"conv2d_forward_backward", "the same with the gradients of input, weight and bias", 3 * convFLOPs, 0, convWorkload(true)},
		{"mlp_sgd_step", "784-512-256-10, batch 128: forward, backward, SGD", 0, 0, imageStep(mlpOf, newSGD)},
		{"mlp_adam_step", "the same with Adam", 0, 0, imageStep(mlpOf, newAdam)},
		{"cnn_sgd_step", "32 and 64 filters 3x3, 128 hidden, batch 128: forward, backward, SGD", 0, 0, imageStep(cnnOf, newSGD)},
		{"cnn_adam_step", "the same with Adam", 0, 0, imageStep(cnnOf, newAdam)},
		{"gpt_adamw_step", "decoder of 4 layers, width 128, 4 heads, 64 tokens, batch 16: forward, backward, AdamW", 0, 0, textStep},
		{"mlp_adam_step_amp", "mlp_adam_step in mixed precision", 0, 0, mixed(imageStep(mlpOf, newAdam))},
		{"cnn_adam_step_amp", "cnn_adam_step in mixed precision", 0, 0, mixed(imageStep(cnnOf, newAdam))},
		{"gpt_adamw_step_amp", "gpt_adamw_step in mixed precision", 0, 0, mixed(textStep)},
		{"small_add_1000", "1,000 additions of 4 floats, each needing the one before", 0, 0, smallAdd},
		{"copy_64m", "copy of 67,108,864 bytes on the device", 0, 2 * 64 * mega, deviceCopy},
		{"transfer_to_device_64m", "67,108,864 bytes from the host to the device", 0, 64 * mega, transfer(true)},
		{"transfer_to_host_64m", "67,108,864 bytes from the device to the host", 0, 64 * mega, transfer(false)},
		{"launch", "one tiny kernel and a wait for it", 0, 0, launches(1)},
		{"launch_1000", "a thousand tiny kernels in a batch and a wait for them", 0, 0, launches(1000)},
	})

func findWorkload(name string) (workload, error) {
	i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
	if i < 0 {
		return workload{}, usagef("unknown workload %q; 'anygpu bench --list' prints them", name)
	}
	return workloads[i], nil
}

// inScope runs f in a scope of its own and waits for the device.
func inScope(dev backend.Device, f func(s *tensor.Scope) error) func() error {
	return func() error {
		s := tensor.NewScope(dev)
		err := f(s)
		if err == nil {
			err = tensor.Synchronize(dev) // while the results are held: a result that nobody holds is not computed
		}
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		return err
	}
}

func matmulWorkloads(d tensor.DType, suffix string, sizes ...int) []workload {
	var ws []workload
	for _, n := range sizes {
		f := float64(n)
		ws = append(ws, workload{fmt.Sprintf("matmul_%s_%d", suffix, n), fmt.Sprintf("%v product of two %dx%d matrices", d, n, n), 2 * f * f * f, 0,
			func(dev backend.Device, _ benchOptions) (func() error, error) {
				gen := tensor.NewGenerator(0)
				a, b := tensor.Uniform(dev, gen, d, 0, 1, n, n), tensor.Uniform(dev, gen, d, 0, 1, n, n)
				return inScope(dev, func(s *tensor.Scope) error { return s.To(a).MatMul(b).Err() }), nil
			}})
	}
	return ws
}

func geluChain(dev backend.Device, _ benchOptions) (func() error, error) {
	gen := tensor.NewGenerator(0)
	random := func() *tensor.Tensor { return tensor.Normal(dev, gen, tensor.Float32, 0, 1, 16*mega) }
	x, a, b := random(), random(), random()
	return inScope(dev, func(s *tensor.Scope) error { return s.To(x).Mul(a).Add(b).GELUTanh().Err() }), nil
}

func rowsWorkload(f func(x, w, b *tensor.Tensor) *tensor.Tensor) prepareFunc {
	return func(dev backend.Device, _ benchOptions) (func() error, error) {
		gen := tensor.NewGenerator(0)
		x := tensor.Normal(dev, gen, tensor.Float32, 0, 1, 8192, 1024)
		w, b := tensor.Normal(dev, gen, tensor.Float32, 0, 1, 1024), tensor.Normal(dev, gen, tensor.Float32, 0, 1, 1024)
		return inScope(dev, func(s *tensor.Scope) error { return f(s.To(x), w, b).Err() }), nil
	}
}

const convFLOPs = 2.0 * 64 * 64 * 28 * 28 * 32 * 9

func convWorkload(backward bool) prepareFunc {
	return func(dev backend.Device, _ benchOptions) (func() error, error) {
		gen := tensor.NewGenerator(0)
		random := func(shape ...int) *tensor.Tensor { return tensor.Normal(dev, gen, tensor.Float32, 0, 1, shape...) }
		x, w, b, g := random(64, 32, 28, 28), random(64, 32, 3, 3), random(64), random(64, 64, 28, 28)
		o := tensor.ConvOptions{Padding: []int{1}}
		if !backward {
			return inScope(dev, func(s *tensor.Scope) error { return tensor.Conv2d(s.To(x), w, b, o).Err() }), nil
		}
		inputs := []*tensor.Tensor{x.SetRequiresGrad(true), w.SetRequiresGrad(true), b.SetRequiresGrad(true)}
		return inScope(dev, func(s *tensor.Scope) error {
			_, err := tensor.Grad([]*tensor.Tensor{tensor.Conv2d(s.To(x), w, b, o)}, inputs, s.To(g))
			return err
		}), nil
	}
}

func smallAdd(dev backend.Device, _ benchOptions) (func() error, error) {
	gen := tensor.NewGenerator(0)
	a, b := tensor.Normal(dev, gen, tensor.Float32, 0, 1, 4), tensor.Normal(dev, gen, tensor.Float32, 0, 1, 4)
	return inScope(dev, func(s *tensor.Scope) error {
		x := s.To(a)
		for range 1000 {
			x = x.Add(b)
		}
		return x.Err()
	}), nil
}

func deviceCopy(dev backend.Device, _ benchOptions) (func() error, error) {
	x := tensor.Ones(dev, tensor.Float32, 16*mega)
	return inScope(dev, func(s *tensor.Scope) error { return s.To(x).Clone().Err() }), nil
}

// transfer copies between host and device memory. On the CPU device both are the same, and nothing is copied.
func transfer(toDevice bool) prepareFunc {
	return func(dev backend.Device, _ benchOptions) (func() error, error) {
		host := tensor.FromFloat32s(make([]float32, 16*mega), 16*mega)
		if toDevice {
			return inScope(dev, func(s *tensor.Scope) error { return s.To(host).Err() }), nil
		}
		x := tensor.Ones(dev, tensor.Float32, 16*mega)
		return func() error {
			y := x.CPU()
			if y != x {
				defer y.Free()
			}
			return errors.Join(y.Err(), tensor.Synchronize(dev))
		}, nil
	}
}

// launches runs n kernels that no other can take in: each result is kept.
func launches(n int) prepareFunc {
	return func(dev backend.Device, _ benchOptions) (func() error, error) {
		gen := tensor.NewGenerator(0)
		x := tensor.Normal(dev, gen, tensor.Float32, 0, 1, 4, 4)
		return inScope(dev, func(s *tensor.Scope) error {
			y := s.To(x)
			for range n {
				y = y.Cumsum(0)
			}
			return y.Err()
		}), nil
	}
}

// mixed is a training step in mixed precision.
func mixed(prepare prepareFunc) prepareFunc {
	return func(dev backend.Device, o benchOptions) (func() error, error) {
		o.amp = true
		return prepare(dev, o)
	}
}

func newSGD(p []*tensor.Tensor) optim.Optimizer { return optim.NewSGD(p, optim.SGDConfig{LR: 0.01}) }
func newAdam(p []*tensor.Tensor) optim.Optimizer {
	return optim.NewAdam(p, optim.AdamConfig{LR: 1e-3})
}
func newAdamW(p []*tensor.Tensor) optim.Optimizer {
	return optim.NewAdamW(p, optim.AdamConfig{LR: 1e-3})
}

func mlpOf(o benchOptions) demoModel {
	if o.width == 0 {
		return newMLP(0)
	}
	gen := nn.WithGenerator(tensor.NewGenerator(0))
	return nn.NewSequential(nn.NewFlatten(), nn.NewLinear(784, o.width, gen), nn.NewReLU(),
		nn.NewLinear(o.width, o.width, gen), nn.NewReLU(), nn.NewLinear(o.width, 10, gen))
}

func cnnOf(benchOptions) demoModel { return newCNN(0) }

func imageStep(model func(benchOptions) demoModel, optimizer func([]*tensor.Tensor) optim.Optimizer) prepareFunc {
	return func(dev backend.Device, o benchOptions) (func() error, error) {
		gen := tensor.NewGenerator(0)
		n := o.batch
		if n == 0 {
			n = 128
		}
		x, y := tensor.Normal(dev, gen, tensor.Float32, 0, 1, n, 1, 28, 28), tensor.Randint(dev, gen, 0, 10, n)
		return trainingStep(dev, model(o), optimizer, x, y, nn.CrossEntropy, o.amp)
	}
}

func textStep(dev backend.Device, o benchOptions) (func() error, error) {
	const vocabulary, positions = 65, 64
	gen := tensor.NewGenerator(0)
	n := o.batch
	if n == 0 {
		n = 16
	}
	x, y := tensor.Randint(dev, gen, 0, vocabulary, n, positions), tensor.Randint(dev, gen, 0, vocabulary, n, positions)
	model, err := nn.NewDecoder(nn.DecoderConfig{Vocab: vocabulary, Block: positions, Width: 128, Heads: 4, Layers: 4}, nn.WithGenerator(gen))
	if err != nil {
		return nil, err
	}
	return trainingStep(dev, model, newAdamW, x, y, textLoss, o.amp)
}

// trainingStep returns a whole step: gradients set to nothing, forward, loss, backward, update.
func trainingStep(dev backend.Device, model demoModel, optimizer func([]*tensor.Tensor) optim.Optimizer, x, y *tensor.Tensor,
	loss func(output, target *tensor.Tensor) *tensor.Tensor, mixed bool) (func() error, error) {
	if err := model.To(dev); err != nil {
		return nil, err
	}
	opt := optimizer(model.Parameters())
	scaler := amp.NewGradScaler(amp.GradScalerConfig{Disabled: !mixed})
	return inScope(dev, func(s *tensor.Scope) error {
		opt.ZeroGrad()
		var l *tensor.Tensor
		forward := func() { l = loss(model.Forward(s.To(x)), s.To(y)) }
		if mixed {
			amp.Autocast(s, forward)
		} else {
			forward()
		}
		if err := scaler.Scale(l).Backward(); err != nil {
			return err
		}
		if _, err := scaler.Step(opt); err != nil {
			return err
		}
		return scaler.Update()
	}), nil
}
