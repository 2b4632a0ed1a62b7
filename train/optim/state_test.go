package optim_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/optim"
)

func param(v ...float32) *tensor.Tensor {
	return tensor.FromFloat32s(v, len(v)).SetRequiresGrad(true)
}

func grad(p *tensor.Tensor, v ...float32) { p.SetGrad(tensor.FromFloat32s(v, len(v)).To(p.Device())) }

func values(t *testing.T, x *tensor.Tensor) []float32 {
	t.Helper()
	v, err := x.Detach().CPU().Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestGroups trains two groups whose rate and decay differ.
func TestGroups(t *testing.T) {
	a, b := param(1, 2), param(3)
	opt := optim.NewSGDGroups(
		optim.ParamGroup[optim.SGDConfig]{Params: []*tensor.Tensor{a}, Config: optim.SGDConfig{LR: 0.5, WeightDecay: 0.5}},
		optim.ParamGroup[optim.SGDConfig]{Params: []*tensor.Tensor{b}, Config: optim.SGDConfig{LR: 0.25}})
	if opt.Groups() != 2 || opt.LR() != 0.5 || opt.GroupLR(1) != 0.25 || len(opt.Parameters()) != 2 {
		t.Errorf("%d groups, rates %v and %v, %d parameters", opt.Groups(), opt.LR(), opt.GroupLR(1), len(opt.Parameters()))
	}
	grad(a, 1, 1)
	grad(b, 4)
	if err := opt.Step(); err != nil {
		t.Fatal(err)
	}
	// 1 - 0.5*(1+0.5), 2 - 0.5*(1+1), 3 - 0.25*4
	if got := values(t, a); !slices.Equal(got, []float32{0.25, 1}) {
		t.Errorf("group 0: %v", got)
	}
	if got := values(t, b); !slices.Equal(got, []float32{2}) {
		t.Errorf("group 1: %v", got)
	}
	opt.SetGroupLR(1, 0)
	if err := opt.Step(); err != nil {
		t.Fatal(err)
	}
	if got := values(t, b); !slices.Equal(got, []float32{2}) {
		t.Errorf("a rate of 0 moved the parameter to %v", got)
	}
	opt.SetGroupLR(2, 1)
	if err := opt.Step(); err == nil || !strings.Contains(err.Error(), "group 2 of 2") {
		t.Errorf("error %v", err)
	}
}

// TestStateDictResumes compares steps straight on with steps that go on from a state in another optimizer, bit for bit.
func TestStateDictResumes(t *testing.T) {
	for _, c := range cases {
		step := func(opt optim.Optimizer, ps []*tensor.Tensor, n int) {
			for i := range n {
				grad(ps[0], 1, float32(i), -2)
				if i%2 == 0 {
					grad(ps[1], 0.5)
				}
				if err := opt.Step(); err != nil {
					t.Fatal(err)
				}
				opt.ZeroGrad()
			}
		}
		straight := []*tensor.Tensor{param(1, 2, 3), param(4)}
		want := c.make(straight)
		step(want, straight, 4)
		step(want, straight, 3)

		first := []*tensor.Tensor{param(1, 2, 3), param(4)}
		opt := c.make(first)
		step(opt, first, 4)
		st, err := opt.StateDict()
		if err != nil {
			t.Fatal(err)
		}
		second := []*tensor.Tensor{param(values(t, first[0])...), param(values(t, first[1])...)}
		other := c.make(second)
		other.SetLR(99) // replaced by the state's
		if err := other.LoadStateDict(st); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		step(opt, first, 1) // the copy does not change with its source
		st.Free()
		step(other, second, 3)
		for i := range straight {
			if a, b := values(t, straight[i]), values(t, second[i]); !slices.Equal(a, b) {
				t.Errorf("%s: parameter %d is %v after resuming, %v straight on", c.name, i, b, a)
			}
		}
	}
}

// config spoils a value of the first group's configuration.
func config(name string, v float64) func(*optim.StateDict) {
	return func(s *optim.StateDict) {
		fields := map[string]float64{}
		if err := json.Unmarshal(s.Groups[0], &fields); err != nil {
			panic(err)
		}
		fields[name] = v
		s.Groups[0], _ = json.Marshal(fields)
	}
}

func TestLoadStateDictErrors(t *testing.T) {
	p := param(1, 2)
	opt := optim.NewAdam([]*tensor.Tensor{p}, optim.AdamConfig{})
	grad(p, 1, 1)
	if err := opt.Step(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want  string
		spoil func(*optim.StateDict)
	}{
		{"betas 1.5 and 0.999; they must be less than 1", config("Beta1", 1.5)},
		{"beta2 -0.5; it must be finite and not negative", config("Beta2", -0.5)},
		{"learning rate -1; it must be finite", config("LR", -1)},
		{"eps -1; it must be", config("Eps", -1)},
		{`the state is of "sgd", not of "adam"`, func(s *optim.StateDict) { s.Optimizer = "sgd" }},
		{"exp_avg of parameter 0: it is missing", func(s *optim.StateDict) { delete(s.Arrays, "0.exp_avg") }},
		{"it has shape [3], the parameter [2]", func(s *optim.StateDict) { s.Arrays["0.exp_avg"] = tensor.FromFloat32s([]float32{1, 2, 3}, 3) }},
		{"the state has 3 arrays, of which the optimizer needs 2", func(s *optim.StateDict) { s.Arrays["7.exp_avg"] = tensor.Scalar(1) }},
		{"parameter 0 has -1 steps", func(s *optim.StateDict) { s.Steps[0] = -1 }},
		{"1 groups and 2 parameters, the optimizer 1 and 1", func(s *optim.StateDict) { s.Steps = append(s.Steps, 0) }},
		{"group 0: optim: learning rate -1", func(s *optim.StateDict) { s.Groups[0] = []byte(`{"LR": -1}`) }},
		{"configuration of group 0", func(s *optim.StateDict) { s.Groups[0] = []byte(`{`) }},
	} {
		st, err := opt.StateDict()
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(st)
		if err := opt.LoadStateDict(st); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	grad(p, 1, 1)
	if err := opt.Step(); err != nil {
		t.Errorf("after failed loads: %v", err)
	}
}

func eachDevice(t *testing.T, f func(t *testing.T, dev backend.Device)) {
	for _, info := range backend.List() {
		if info.Problem != "" || strings.Contains(strings.ToLower(info.Driver), "rusticl") {
			continue
		}
		t.Run(info.String(), func(t *testing.T) {
			dev, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			f(t, dev)
		})
	}
}

func TestClipGradNorm(t *testing.T) {
	inf := math.Inf(1)
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, c := range []struct{ p, most float64 }{{0, 1}, {2, 1e6}, {2, 0}, {3, 0.5}, {inf, 2}} {
			if dev.Info().API != "cpu" && c.p != 0 && c.p != 2 {
				continue // package lib runs every order on every device; compiling them takes long
			}
			var params []*tensor.Tensor
			var all []float64
			for i := range 40 { // more than a kernel takes
				n := i*7%40 + 1
				v := make([]float32, n)
				for j := range v {
					v[j] = float32(math.Sin(float64(i*31 + j)))
					all = append(all, float64(v[j]))
				}
				p := tensor.Zeros(dev, tensor.Float32, n).SetRequiresGrad(true)
				p.SetGrad(tensor.FromFloat32s(v, n).To(dev))
				params = append(params, p)
			}
			params = append(params, tensor.Zeros(dev, tensor.Float32, 3).SetRequiresGrad(true)) // without a gradient
			p := c.p
			if p == 0 {
				p = 2
			}
			want := 0.0
			for _, v := range all {
				if p == inf {
					want = max(want, math.Abs(v))
				} else {
					want += math.Pow(math.Abs(v), p)
				}
			}
			if p != inf {
				want = math.Pow(want, 1/p)
			}
			norm, err := optim.ClipGradNorm(params, c.most, optim.ClipOptions{NormType: c.p})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := norm.Item(); err != nil || math.Abs(got-want) > 1e-5*want {
				t.Errorf("norm of order %v is %v %v, want %v", p, got, err, want)
			}
			coef := min(1, c.most/(want+1e-6))
			at := 0
			for _, p := range params[:40] {
				for _, v := range values(t, p.Grad()) {
					if w := coef * all[at]; math.Abs(float64(v)-w) > 1e-6+1e-5*math.Abs(w) {
						t.Fatalf("norm %v to %v: gradient %d is %v, want %v", c.p, c.most, at, v, w)
					}
					at++
				}
			}
		}
	})
}

// TestClipLaunches holds the number of kernels of a clip to what the number of parameters needs, whatever their sizes.
func TestClipLaunches(t *testing.T) {
	dev := tensor.CPU()
	launches := func(count, size int) int {
		var params []*tensor.Tensor
		for range count {
			p := tensor.Zeros(dev, tensor.Float32, size).SetRequiresGrad(true)
			p.SetGrad(tensor.Ones(dev, tensor.Float32, size))
			params = append(params, p)
		}
		if err := tensor.Synchronize(dev); err != nil {
			t.Fatal(err)
		}
		before := tensor.Launches(dev)
		norm, err := optim.ClipGradNorm(params, 1, optim.ClipOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := norm.Item(); err != nil {
			t.Fatal(err)
		}
		return int(tensor.Launches(dev).Launches - before.Launches)
	}
	small, large, more := launches(20, 3), launches(20, 3000), launches(60, 3)
	if small != large || small > 10 || more > small+4 {
		t.Errorf("%d kernels for 20 small parameters, %d for 20 large ones and %d for 60, want two equal and a few more", small, large, more)
	}
}

func TestClipNonFinite(t *testing.T) {
	p := param(1, 2)
	grad(p, float32(math.Inf(1)), 1)
	_, err := optim.ClipGradNorm([]*tensor.Tensor{p}, 1, optim.ClipOptions{ErrorIfNonFinite: true})
	if want := "The total norm of order 2 for gradients from `parameters` is non-finite, so it cannot be clipped"; err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
		t.Errorf("error %v, want %q", err, want)
	}
	if g := values(t, p.Grad()); g[1] != 1 {
		t.Errorf("the gradients were changed: %v", g)
	}
	norm, err := optim.ClipGradNorm([]*tensor.Tensor{p}, 1, optim.ClipOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := norm.Item(); err != nil || !math.IsInf(v, 1) {
		t.Errorf("norm %v %v", v, err)
	}
	norm, err = optim.ClipGradNorm([]*tensor.Tensor{param(1)}, 1, optim.ClipOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := norm.Item(); err != nil || v != 0 {
		t.Errorf("norm of no gradients %v %v, want 0", v, err)
	}
	if _, err := optim.ClipGradNorm([]*tensor.Tensor{p}, -1, optim.ClipOptions{}); err == nil {
		t.Error("a negative maximum norm was accepted")
	}
}

// TestClipAcrossDevices takes the norm of gradients on two devices.
func TestClipAcrossDevices(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		a, b := param(0), param(0)
		if err := b.MoveTo(dev); err != nil {
			t.Fatal(err)
		}
		grad(a, 3)
		grad(b, 4)
		norm, err := optim.ClipGradNorm([]*tensor.Tensor{a, b}, 1, optim.ClipOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := norm.Item(); err != nil || math.Abs(v-5) > 1e-6 {
			t.Errorf("norm %v %v, want 5", v, err)
		}
		if x, y := values(t, a.Grad())[0], values(t, b.Grad())[0]; math.Abs(float64(x)-0.6) > 1e-6 || math.Abs(float64(y)-0.8) > 1e-6 {
			t.Errorf("clipped to %v and %v, want 0.6 and 0.8", x, y)
		}
	})
}

func TestClipGradValue(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		p := tensor.Zeros(dev, tensor.Float32, 5).SetRequiresGrad(true)
		grad(p, -3, -0.5, float32(math.NaN()), 0.25, float32(math.Inf(1)))
		if err := optim.ClipGradValue([]*tensor.Tensor{p}, 0.5); err != nil {
			t.Fatal(err)
		}
		got := values(t, p.Grad())
		if got[0] != -0.5 || got[1] != -0.5 || got[2] == got[2] || got[3] != 0.25 || got[4] != 0.5 {
			t.Errorf("clipped to %v", got)
		}
	})
}

func TestEMA(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		p := param(1, 2)
		if err := p.MoveTo(dev); err != nil {
			t.Fatal(err)
		}
		ema, err := optim.NewEMA([]*tensor.Tensor{p}, 0.75)
		if err != nil {
			t.Fatal(err)
		}
		opt := optim.NewSGD([]*tensor.Tensor{p}, optim.SGDConfig{LR: 1})
		want, now := []float64{1, 2}, []float64{1, 2}
		for range 3 {
			grad(p, 1, -1)
			if err := opt.Step(); err != nil {
				t.Fatal(err)
			}
			if err := ema.Update(); err != nil {
				t.Fatal(err)
			}
			now[0]--
			now[1]++
			for i := range want {
				want[i] = 0.75*want[i] + 0.25*now[i]
			}
		}
		err = ema.With(func() error {
			for i, v := range values(t, p) {
				if math.Abs(float64(v)-want[i]) > 1e-6 {
					t.Errorf("average %d is %v, want %v", i, v, want[i])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := values(t, p); !slices.Equal(got, []float32{-2, 5}) {
			t.Errorf("the parameters were not restored: %v", got)
		}
	})
	if _, err := optim.NewEMA([]*tensor.Tensor{param(1)}, 1); err == nil {
		t.Error("a decay of 1 was accepted")
	}
}
