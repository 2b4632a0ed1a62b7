package checkpoint

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// trainer is a small run with everything that has a state: dropout, Adam, a schedule, a scaler, averages.
type trainer struct {
	Run
	dev    backend.Device
	model  *nn.Sequential
	opt    *optim.Adam
	sched  *optim.Scheduler
	scaler *amp.GradScaler
	ema    *optim.EMA
}

func newTrainer(t testing.TB, dev backend.Device) *trainer {
	t.Helper()
	gen := tensor.NewGenerator(7)
	g := nn.WithGenerator(gen)
	m := nn.NewSequential(nn.NewLinear(6, 16, g), nn.NewReLU(), nn.NewDropout(0.4, g), nn.NewLinear(16, 3, g))
	if err := m.To(dev); err != nil {
		t.Fatal(err)
	}
	tr := &trainer{dev: dev, model: m, opt: optim.NewAdam(m.Parameters(), optim.AdamConfig{LR: 0.01}), scaler: amp.NewGradScaler(amp.GradScalerConfig{GrowthInterval: 3, InitScale: 64})}
	tr.sched = optim.NewScheduler(tr.opt, optim.Warmup(3, 0.1, optim.Cosine(20, 0)))
	var err error
	if tr.ema, err = optim.NewEMA(m.Parameters(), 0.9); err != nil {
		t.Fatal(err)
	}
	tr.Run = Run{Model: m, Optimizer: tr.opt, EMA: tr.ema, Generators: map[string]*tensor.Generator{"model": gen},
		Parts: map[string]Stateful{"schedule": Of(tr.sched), "scaler": Of(tr.scaler)}}
	return tr
}

func (tr *trainer) step(t testing.TB) {
	t.Helper()
	n := tr.Position.Step
	x, y := make([]float32, 24), make([]int64, 4)
	for i := range x {
		x[i] = float32(math.Sin(float64(n*29 + i)))
	}
	for i := range y {
		y[i] = int64((n + i) % 3)
	}
	s := tensor.NewScope(tr.dev)
	loss := nn.CrossEntropy(tr.model.Forward(s.To(tensor.FromFloat32s(x, 4, 6))), s.To(tensor.FromInt64s(y, 4)))
	tr.opt.ZeroGrad()
	err := tr.scaler.Scale(loss).Backward()
	if err == nil {
		_, err = tr.scaler.Step(tr.opt)
	}
	if err == nil {
		err = tr.scaler.Update()
	}
	if err == nil {
		err = tr.ema.Update()
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		t.Fatal(err)
	}
	tr.sched.Step()
	tr.Position.Step++
}

// bits are the weights and averages.
func (tr *trainer) bits(t testing.TB) []byte {
	t.Helper()
	var out []byte
	for _, p := range append(tr.model.Parameters(), tr.ema.Averages()...) {
		b, err := hostBytes(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

// devices are the CPU and one of each other API.
func devices(t *testing.T) []backend.Device {
	var out []backend.Device
	seen := map[string]bool{}
	for _, info := range backend.List() {
		if info.Problem != "" || seen[info.API] || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		seen[info.API] = true
		dev, err := backend.Open(info.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		out = append(out, dev)
	}
	return out
}

// TestResume compares ten steps with five, a checkpoint, another process's worth of new objects, and five more: bit for bit.
func TestResume(t *testing.T) {
	for _, dev := range devices(t) {
		t.Run(dev.Info().String(), func(t *testing.T) {
			straight := newTrainer(t, dev)
			first := newTrainer(t, dev)
			for range 5 {
				straight.step(t)
				first.step(t)
			}
			first.Position.Epoch, first.Position.Batch = 1, 2
			first.Metrics = map[string]float64{"loss": 0.5, "bad": math.NaN()}
			base := filepath.Join(t.TempDir(), "c")
			if err := Save(base, &first.Run); err != nil {
				t.Fatal(err)
			}
			second := newTrainer(t, dev)
			second.step(t) // whatever it did before is replaced
			if err := Load(base+".json", &second.Run); err != nil {
				t.Fatal(err)
			}
			if want := (Position{1, 2, 5}); second.Position != want || second.Metrics["loss"] != 0.5 || len(second.Metrics) != 1 {
				t.Errorf("position %+v, metrics %v", second.Position, second.Metrics)
			}
			for range 5 {
				straight.step(t)
				second.step(t)
			}
			if !bytes.Equal(straight.bits(t), second.bits(t)) {
				t.Error("resuming gave other weights than not having stopped")
			}
			if straight.scaler.GetScale() != second.scaler.GetScale() || straight.sched.LR() != second.sched.LR() {
				t.Error("resuming gave another scale or learning rate")
			}
			other := newTrainer(t, dev)
			for range 10 {
				other.step(t)
			}
			other.step(t)
			if bytes.Equal(straight.bits(t), other.bits(t)) {
				t.Error("a run of another length has the same weights: the comparison sees nothing")
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	tr := newTrainer(t, tensor.CPU())
	tr.step(t)
	base := filepath.Join(dir, "c")
	if err := Save(base, &tr.Run); err != nil {
		t.Fatal(err)
	}
	if err := Save(base, &tr.Run); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("saving over a checkpoint: %v", err)
	}
	rewrite := func(ext string, f func(string) string) func() {
		old, err := os.ReadFile(base + ext)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(base+ext, []byte(f(string(old))), 0o644); err != nil {
			t.Fatal(err)
		}
		return func() { os.WriteFile(base+ext, old, 0o644) }
	}
	for _, c := range []struct {
		want  string
		spoil func(r *Run) (restore func())
	}{
		{`the checkpoint has a part "scaler", the run has none`, func(r *Run) func() { delete(r.Parts, "scaler"); return func() {} }},
		{`the run has a part "more", the checkpoint has none`, func(r *Run) func() { r.Parts["more"] = Of(tr.sched); return func() {} }},
		{"the checkpoint has an optimizer, the run has none", func(r *Run) func() { r.Optimizer = nil; return func() {} }},
		{"the checkpoint has averages", func(r *Run) func() { r.EMA = nil; return func() {} }},
		{`the run has a generator "x"`, func(r *Run) func() { r.Generators["x"] = tensor.NewGenerator(0); return func() {} }},
		{"missing key(s): 1.bias, 1.weight", func(r *Run) func() {
			r.Model = nn.NewSequential(nn.NewLinear(6, 16), nn.NewLinear(16, 3))
			return func() {}
		}},
		{"size mismatch for 0.bias", func(r *Run) func() {
			r.Model = nn.NewSequential(nn.NewLinear(6, 5), nn.NewReLU(), nn.NewReLU(), nn.NewLinear(16, 3))
			return func() {}
		}},
		{`the state is of "adam", not of "sgd"`, func(r *Run) func() {
			r.Optimizer = optim.NewSGD(r.Model.(*nn.Sequential).Parameters(), optim.SGDConfig{LR: 1})
			return func() {}
		}},
		{"of 1 groups at step 1 does not fit an optimizer of 0 groups", func(r *Run) func() {
			r.Parts["schedule"] = Of(&optim.Scheduler{}) // the scaler's state comes before it and is put back
			return func() {}
		}},
		{"the checkpoint has averages of 4 parameters, the run of 1", func(r *Run) func() {
			r.EMA, _ = optim.NewEMA(r.Model.(*nn.Sequential).Parameters()[:1], 0.9)
			return func() {}
		}},
		{"betas 2 and 0.999", func(*Run) func() {
			return rewrite(".json", func(s string) string { return strings.Replace(s, `"Beta1": 0.9`, `"Beta1": 2`, 1) })
		}},
		{"the file is damaged", func(*Run) func() {
			return rewrite(".safetensors", func(s string) string { return s[:len(s)-1] + "\xff" })
		}},
		{"ends after", func(*Run) func() { return rewrite(".state.safetensors", func(s string) string { return s[:len(s)-1] }) }},
		{"version 7", func(*Run) func() {
			return rewrite(".json", func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 7`, 1) })
		}},
		{"leads out of the folder", func(*Run) func() {
			return rewrite(".json", func(s string) string { return strings.Replace(s, `"c.safetensors"`, `"../c.safetensors"`, 1) })
		}},
		{"unexpected end of JSON", func(*Run) func() { return rewrite(".json", func(s string) string { return s[:20] }) }},
	} {
		fresh := newTrainer(t, tensor.CPU())
		fresh.scaler.LoadStateDict(amp.State{Scale: 3, GrowthFactor: 2, BackoffFactor: 0.5, GrowthInterval: 7})
		before, sched := fresh.bits(t), fresh.sched.StateDict()
		restore := c.spoil(&fresh.Run)
		if err := Load(base, &fresh.Run); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		if !bytes.Equal(fresh.bits(t), before) {
			t.Errorf("%s: a failed load changed the weights", c.want)
		}
		if now := fresh.sched.StateDict(); fresh.scaler.GetScale() != 3 || now.Step != sched.Step || fresh.Position != (Position{}) {
			t.Errorf("%s: a failed load changed the scale to %v, the schedule's step to %d, the position to %v", c.want, fresh.scaler.GetScale(), now.Step, fresh.Position)
		}
		restore()
	}
}

func TestKeeper(t *testing.T) {
	k := &Keeper{Dir: filepath.Join(t.TempDir(), "runs"), Last: 2, Best: "accuracy", Max: true}
	if _, err := k.Latest(); !errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
	m := nn.NewSequential(nn.NewLinear(1, 1))
	var last string
	for i, accuracy := range []float64{0.1, 0.9, 0.5, 0.9, 0.7, 0.6} {
		r := &Run{Model: m, Position: Position{Step: i * 10}, Metrics: map[string]float64{"accuracy": accuracy}}
		var err error
		if last, err = k.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	names := func() []string {
		all, err := filepath.Glob(filepath.Join(k.Dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i] = filepath.Base(all[i])
		}
		return all
	}
	if want := []string{"step-00000010.json", "step-00000040.json", "step-00000050.json"}; !slices.Equal(names(), want) {
		t.Errorf("%v stay, want %v", names(), want)
	}
	if files, _ := os.ReadDir(k.Dir); len(files) != 9 {
		t.Errorf("%d files, want 9", len(files))
	}
	if best, err := k.BestPath(); err != nil || filepath.Base(best) != "step-00000010" {
		t.Errorf("best %s %v", best, err)
	}
	// A step that is saved again gets a name of its own, and what an interrupted Save left goes.
	for _, f := range []string{".step-00000060.json.1.tmp", "step-00000060.safetensors"} {
		if err := os.WriteFile(filepath.Join(k.Dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	again, err := k.Save(&Run{Model: m, Position: Position{Step: 50}})
	if err != nil || again != last+"-1" {
		t.Errorf("%s %v, want %s-1", again, err, last)
	}
	if latest, err := k.Latest(); err != nil || latest != again {
		t.Errorf("latest %s %v, want %s", latest, err, again)
	}
	if files, _ := os.ReadDir(k.Dir); len(files) != 9 {
		t.Errorf("%d files, want 9", len(files))
	}
}

const killEnv = "ANYGPU_TEST_KILL_DIR"

// TestKill kills a process that saves all the time, 20 times, and loads the latest checkpoint each time; at the end the weights are
// those of a run that was not killed.
func TestKill(t *testing.T) {
	if dir := os.Getenv(killEnv); dir != "" {
		tr := newTrainer(t, tensor.CPU())
		k := &Keeper{Dir: dir, Last: 2}
		if base, err := k.Latest(); err == nil {
			if err := Load(base, &tr.Run); err != nil {
				t.Fatal(err)
			}
		}
		for {
			tr.step(t)
			if _, err := k.Save(&tr.Run); err != nil {
				t.Fatal(err)
			}
		}
	}
	k := &Keeper{Dir: t.TempDir()}
	steps, latest := 0, ""
	for i := range 20 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), killEnv+"="+k.Dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// However slow the machine, it has saved something before it is killed, at another moment each time.
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if base, err := k.Latest(); err == nil && base != latest {
				latest = base
				break
			}
			if time.Now().After(deadline) {
				cmd.Process.Kill()
				t.Fatalf("kill %d: no checkpoint in a minute", i)
			}
		}
		time.Sleep(time.Duration(i*700) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		base, err := k.Latest()
		if err != nil {
			t.Fatal(err)
		}
		latest = base
		tr := newTrainer(t, tensor.CPU())
		if err := Load(base, &tr.Run); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		if tr.Position.Step < steps {
			t.Errorf("kill %d: the latest checkpoint went back from step %d to %d", i, steps, tr.Position.Step)
		}
		steps = tr.Position.Step
		if i == 19 {
			straight := newTrainer(t, tensor.CPU())
			for range steps {
				straight.step(t)
			}
			if !bytes.Equal(straight.bits(t), tr.bits(t)) {
				t.Error("the killed run's weights are not the uninterrupted run's")
			}
		}
	}
	if steps < 20 {
		t.Errorf("the killed processes made %d steps only", steps)
	}
}
