package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/checkpoint"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// blobs are three classes around three points.
func blobs(t testing.TB, n int, seed uint64) *data.Memory {
	t.Helper()
	x, y := make([]float32, 2*n), make([]int64, n)
	for i := range n {
		c := i % 3
		y[i] = int64(c)
		noise := math.Sin(float64(seed)+float64(i)*12.9898) * 0.4
		x[2*i] = float32(math.Cos(float64(c)*2.1) + noise)
		x[2*i+1] = float32(math.Sin(float64(c)*2.1) - noise*math.Cos(float64(i)))
	}
	m, err := data.FromSlices(x, []int{2}, y, 3)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// parts are the objects of a run, made anew as in another process.
type parts struct {
	model *nn.Sequential
	loop  *train.Loop[data.Batch]
}

func newParts(t testing.TB, dev backend.Device, dir string) parts {
	t.Helper()
	gen := tensor.NewGenerator(3)
	g := nn.WithGenerator(gen)
	model := nn.NewSequential(nn.NewLinear(2, 16, g), nn.NewReLU(), nn.NewDropout(0.2, g), nn.NewLinear(16, 3, g))
	if err := model.To(dev); err != nil {
		t.Fatal(err)
	}
	opt := optim.NewAdamW(model.Parameters(), optim.AdamConfig{LR: 0.02})
	ema, err := optim.NewEMA(model.Parameters(), 0.8)
	if err != nil {
		t.Fatal(err)
	}
	l := &train.Loop[data.Batch]{
		Model: model, Optimizer: opt, Device: dev, Epochs: 4,
		Data: data.NewLoader(blobs(t, 50, 1), data.LoaderConfig{BatchSize: 8, Shuffle: true, Seed: 5}),
		Forward: func(s *tensor.Scope, b data.Batch) (output, target *tensor.Tensor) {
			return model.Forward(s.To(b.X)), s.To(b.Y)
		},
		Loss:       nn.CrossEntropy,
		Accumulate: 2, ClipNorm: 1, EMA: ema,
		Schedule:   optim.NewScheduler(opt, optim.Warmup(3, 0.1, optim.Cosine(20, 0))),
		Validation: data.NewLoader(blobs(t, 30, 2), data.LoaderConfig{BatchSize: 7}),
		Metrics:    []train.Metric{train.Accuracy(), train.TopK(2), train.F1(3), train.Perplexity()},
		Generators: map[string]*tensor.Generator{"model": gen},
	}
	if dir != "" {
		l.Keeper = &checkpoint.Keeper{Dir: dir, Last: -1}
	}
	return parts{model, l}
}

func bits(t testing.TB, m *nn.Sequential) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := checkpoint.WriteSafetensors(&b, m.StateDict(), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stopAt cancels the run after a step.
type stopAt struct {
	step   int
	cancel context.CancelFunc
}

func (s stopAt) OnSteps(i train.StepInfo) error {
	if i.Step == s.step {
		s.cancel()
	}
	return nil
}
func (s stopAt) OnEpoch(train.EpochInfo) error { return nil }
func (s stopAt) OnEnd(error) error             { return nil }

// TestInterruptAndResume cancels runs at several steps, and resumes each with new objects: the weights and the history are those of a
// run that was left alone, bit for bit.
func TestInterruptAndResume(t *testing.T) {
	for _, name := range []string{"cpu", "vulkan"} {
		dev, err := backend.Open(name)
		if err != nil {
			t.Logf("%s: %v", name, err)
			if name == "cpu" {
				t.Fatal(err)
			}
			continue
		}
		defer dev.Close()
		straight := newParts(t, dev, "")
		straight.loop.ReportEvery = 1
		want, err := straight.loop.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if want.Steps != 16 || len(want.Epochs) != 4 { // 7 batches an epoch, in groups of 2
			t.Errorf("%d steps in %d epochs", want.Steps, len(want.Epochs))
		}
		if a := want.Epochs[3].Metrics; a["accuracy"] < 0.6 || a["top2"] < a["accuracy"] || a["f1"] < 0.5 || math.Abs(a["perplexity"]-math.Exp(a["val_loss"])) > 1e-9 {
			t.Errorf("metrics %v", a)
		}
		for _, step := range []int{1, 4, 6} {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(context.Background())
			first := newParts(t, dev, dir)
			first.loop.ReportEvery = 1
			first.loop.Observers = []train.Observer{stopAt{step, cancel}}
			_, err := first.loop.Run(ctx)
			if !errors.Is(err, train.ErrInterrupted) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "run again with Resume to go on") {
				t.Fatalf("step %d: error %v", step, err)
			}
			second := newParts(t, dev, dir)
			second.loop.Resume, second.loop.ReportEvery = true, 3
			got, err := second.loop.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got.Resumed == "" || got.Steps != want.Steps {
				t.Errorf("resumed from %q, %d steps", got.Resumed, got.Steps)
			}
			if !bytes.Equal(bits(t, straight.model), bits(t, second.model)) {
				t.Errorf("%s, stopped at step %d: other weights than without stopping", name, step)
			}
			if a, b := fmt.Sprint(got.Epochs), fmt.Sprint(want.Epochs); a != b {
				t.Errorf("%s, stopped at step %d: history\n%s, want\n%s", name, step, a, b)
			}
		}
	}
}

func TestEarlyStopping(t *testing.T) {
	p := newParts(t, tensor.CPU(), "")
	p.loop.Epochs, p.loop.Patience = 50, 2
	p.loop.Schedule, p.loop.EMA = nil, nil
	p.loop.Optimizer.SetLR(0) // nothing improves
	h, err := p.loop.Run(context.Background())
	if err != nil || !h.StoppedEarly || len(h.Epochs) != 3 {
		t.Errorf("%d epochs, stopped early %t, %v; want 3", len(h.Epochs), h.StoppedEarly, err)
	}
	p = newParts(t, tensor.CPU(), "")
	p.loop.Monitor, p.loop.Patience = "nothing", 1
	if _, err := p.loop.Run(context.Background()); err == nil || !strings.Contains(err.Error(), `"nothing" is not measured`) {
		t.Errorf("error %v", err)
	}
}

// TestAccumulation compares a step over four batches of 2 with one over a batch of 8.
func TestAccumulation(t *testing.T) {
	weights := func(batch, accumulate int) []float32 {
		model := nn.NewSequential(nn.NewLinear(2, 3, nn.WithGenerator(tensor.NewGenerator(1))))
		l := &train.Loop[data.Batch]{
			Model: model, Optimizer: optim.NewSGD(model.Parameters(), optim.SGDConfig{LR: 0.5}), Device: tensor.CPU(), Epochs: 2, Accumulate: accumulate,
			Data: data.NewLoader(blobs(t, 8, 1), data.LoaderConfig{BatchSize: batch}),
			Forward: func(s *tensor.Scope, b data.Batch) (_, _ *tensor.Tensor) {
				return model.Forward(s.To(b.X)), s.To(b.Y)
			},
			Loss: nn.CrossEntropy,
		}
		if h, err := l.Run(context.Background()); err != nil || h.Steps != 2 {
			t.Fatalf("%d steps, %v", h.Steps, err)
		}
		v, err := model.Parameters()[0].Detach().Float32s()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a, b := weights(8, 1), weights(2, 4)
	for i := range a {
		if math.Abs(float64(a[i]-b[i])) > 1e-6 {
			t.Errorf("weight %d: %v accumulated, %v at once", i, b[i], a[i])
		}
	}
}

// TestMixedPrecision runs with package amp's parts and resumes its scaler.
func TestMixedPrecision(t *testing.T) {
	dir := t.TempDir()
	make2 := func() (parts, *amp.GradScaler) {
		p := newParts(t, tensor.CPU(), dir)
		scaler := amp.NewGradScaler(amp.GradScalerConfig{GrowthInterval: 4, InitScale: 8})
		p.loop.Precision = amp.ForLoop(scaler, p.loop.Optimizer)
		return p, scaler
	}
	p, scaler := make2()
	p.loop.Epochs = 2
	h, err := p.loop.Run(context.Background())
	if err != nil || h.Steps != 8 || scaler.GetScale() != 32 {
		t.Fatalf("%d steps, scale %v, %v; want 8 and 32", h.Steps, scaler.GetScale(), err)
	}
	p, scaler = make2()
	p.loop.Resume = true
	if h, err = p.loop.Run(context.Background()); err != nil || h.Steps != 16 || scaler.GetScale() != 128 {
		t.Errorf("%d steps, scale %v, %v; want 16 and 128", h.Steps, scaler.GetScale(), err)
	}
}

func TestNonFiniteLoss(t *testing.T) {
	p := newParts(t, tensor.CPU(), "")
	p.loop.Loss = func(output, target *tensor.Tensor) *tensor.Tensor {
		return nn.CrossEntropy(output, target).MulScalar(math.Inf(1))
	}
	if _, err := p.loop.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "the loss is +Inf") {
		t.Errorf("error %v", err)
	}
}

func TestCSVLog(t *testing.T) {
	var b bytes.Buffer
	log := train.NewCSVLog(&b)
	for i, m := range []map[string]float64{{"val_loss": 0.5, "accuracy": 1}, {"val_loss": 0.25}} {
		if err := log.OnEpoch(train.EpochInfo{Epoch: i, Step: 10 * i, Loss: 1.5, LR: 0.1, Metrics: m}); err != nil {
			t.Fatal(err)
		}
	}
	want := "epoch,step,loss,lr,accuracy,val_loss\n0,0,1.5,0.1,1,0.5\n1,10,1.5,0.1,NaN,0.25\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestMetrics(t *testing.T) {
	// Predictions 0, 1, 1, 2 for targets 0, 1, 2, 2.
	out := tensor.FromFloat32s([]float32{3, 1, 0, 0, 2, 1, 1, 5, 4, 0, 1, 7}, 4, 3)
	target := tensor.FromInt64s([]int64{0, 1, 2, 2}, 4)
	for _, c := range []struct {
		m    train.Metric
		want float64
	}{
		{train.Accuracy(), 0.75}, {train.TopK(1), 0.75}, {train.TopK(2), 1}, {train.Perplexity(), math.Exp(0.5)},
		{train.F1(3), (1 + 2.0/3 + 2.0/3) / 3}, // by hand: precisions 1, 1/2, 1, recalls 1, 1, 1/2
		{train.Mean("m", func(o, _ *tensor.Tensor) *tensor.Tensor { return o.Amax() }), 7},
	} {
		for range 2 { // a second batch of the same does not change a mean
			if err := c.m.Add(out, target, 0.5, 4); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.m.Value(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", c.m.Name(), got, c.want)
		}
		c.m.Reset()
		if got := c.m.Value(); !math.IsNaN(got) {
			t.Errorf("%s of nothing is %v, want NaN", c.m.Name(), got)
		}
	}
	if err := train.TopK(1).Add(out, tensor.FromInt64s([]int64{0, 1, 2, 3}, 4), 0, 4); err == nil || !strings.Contains(err.Error(), "target 3 of sample 3 is outside") {
		t.Errorf("error %v", err)
	}
	if err := train.Accuracy().Add(out, out, 0, 4); err == nil {
		t.Error("targets of the wrong shape were accepted")
	}
}

// TestImportGraph walks what the packages import, tests aside: train and amp stay apart.
func TestImportGraph(t *testing.T) {
	const module = "github.com/anygpu/anygpu/"
	for _, c := range []struct{ from, to string }{{"./...", module + "amp"}, {"../amp", module + "train"}} {
		out, err := exec.Command("go", "list", "-deps", c.from).Output()
		if err != nil {
			t.Fatal(err)
		}
		packages := strings.Fields(string(out))
		if len(packages) < 20 {
			t.Fatalf("go list named %d packages only", len(packages))
		}
		for _, p := range packages {
			if p == c.to || strings.HasPrefix(p, c.to+"/") {
				t.Errorf("%s depends on %s", filepath.Base(c.from), p)
			}
		}
	}
}

func Example() {
	gen := nn.WithGenerator(tensor.NewGenerator(1))
	x := []float32{0, 0, 0, 1, 1, 0, 1, 1}
	xor, _ := data.FromSlices(x, []int{2}, []int64{0, 1, 1, 0}, 2)
	model := nn.NewSequential(nn.NewLinear(2, 16, gen), nn.NewTanh(), nn.NewLinear(16, 2, gen))
	loader := data.NewLoader(xor, data.LoaderConfig{BatchSize: 4})
	loop := &train.Loop[data.Batch]{
		Model: model, Optimizer: optim.NewAdam(model.Parameters(), optim.AdamConfig{LR: 0.05}), Device: tensor.CPU(),
		Data: loader, Validation: loader, Epochs: 60, Metrics: []train.Metric{train.Accuracy()},
		Forward: func(s *tensor.Scope, b data.Batch) (output, target *tensor.Tensor) {
			return model.Forward(s.To(b.X)), s.To(b.Y)
		},
		Loss: nn.CrossEntropy,
	}
	history, err := loop.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	last := history.Epochs[len(history.Epochs)-1]
	fmt.Printf("%d steps, accuracy %.2f\n", history.Steps, last.Metrics["accuracy"])
	// Output: 60 steps, accuracy 1.00
}
