package tensor

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// program is a random program: the same seed makes the same calls on any device, fused or not.
type randomProgram struct {
	rng    *rand.Rand
	dev    backend.Device
	s      *Scope
	dtype  DType
	dtypes []DType
	leaves []*Tensor
	pool   []*Tensor
	log    []string // the calls, for people
	out    [][]byte // what was read
	what   []string // what each of out is
	lost   bool     // a value that was needed is gone
}

func runProgram(dev backend.Device, fuse bool, dtype DType, seed uint64, steps int) (*randomProgram, error) {
	if err := SetFusion(dev, fuse); err != nil {
		return nil, err
	}
	p := &randomProgram{rng: rand.New(rand.NewPCG(seed, 11)), dev: dev, s: NewScope(dev), dtype: dtype}
	p.dtypes = []DType{Float32, Float16, BFloat16, Int32, Int64, Uint8, Bool}
	if dev.Info().Caps.F64 {
		p.dtypes = append(p.dtypes, Float64)
	}
	for _, shape := range [][]int{{4, 6}, {6}, {4, 1}, {6, 5}, {}} {
		data := make([]float64, Numel(shape))
		for i := range data {
			data[i] = float64(p.rng.IntN(65)-32) / 16
		}
		t := FromFloat64s(data, shape...).Cast(dtype).To(dev)
		if dtype.IsFloat() && len(p.leaves) < 4 {
			t.SetRequiresGrad(true)
		}
		p.leaves = append(p.leaves, t)
		p.pool = append(p.pool, p.s.To(t))
	}
	for range steps {
		p.step()
	}
	p.finish()
	err := p.s.Close()
	for _, t := range p.leaves {
		p.read("a leaf's gradient", t.Grad())
		p.read("a leaf", t)
	}
	if err != nil {
		p.out, p.what = append(p.out, []byte(err.Error())), append(p.what, "the scope's error")
	}
	return p, nil
}

func (p *randomProgram) read(what string, t *Tensor) {
	if t == nil || t.err != nil || t.freedErr() != nil {
		return
	}
	b, err := t.bytes()
	if err != nil {
		b = []byte(err.Error())
	} else {
		b = b[:Numel(t.shape)*t.dtype.Size()]
	}
	p.out, p.what = append(p.out, b), append(p.what, what+" "+t.String())
}

func (p *randomProgram) pick() *Tensor { return p.pool[p.rng.IntN(len(p.pool))] }

// push adds a result to the pool; failures, such as shapes that do not go together, are no results.
func (p *randomProgram) push(name string, t *Tensor) {
	if t.err == nil && Numel(t.shape) < 200 {
		p.log = append(p.log, fmt.Sprintf("%d: %s -> %v", len(p.pool), name, t))
		p.pool = append(p.pool, t)
	}
}

func (p *randomProgram) step() {
	x, y, z := p.pick(), p.pick(), p.pick()
	near := p.pool[len(p.pool)-1-p.rng.IntN(min(4, len(p.pool)))]
	r := p.rng
	k := r.IntN(10)
	v := float64(r.IntN(9)-4) / 4
	switch n := r.IntN(40); n {
	case 0, 1, 2, 3, 4, 5:
		f := []func(*Tensor) *Tensor{(*Tensor).Tanh, (*Tensor).Sigmoid, (*Tensor).ReLU, (*Tensor).Neg, (*Tensor).GELU, (*Tensor).Square, (*Tensor).Erf,
			func(t *Tensor) *Tensor { return t.Clamp(-2, 2).Exp() }, (*Tensor).Cos, func(t *Tensor) *Tensor { return t.Abs().Sqrt() }}[k]
		p.push("unary", f(near))
	case 6, 7, 8, 9, 10:
		f := []func(a, b *Tensor) *Tensor{(*Tensor).Add, (*Tensor).Sub, (*Tensor).Mul, (*Tensor).Maximum, (*Tensor).Add}[k%5]
		p.push("binary", f(near, y))
	case 11, 12, 13:
		f := []func(*Tensor, float64) *Tensor{(*Tensor).AddScalar, (*Tensor).MulScalar, (*Tensor).DivScalar, (*Tensor).MaximumScalar}[k%4]
		p.push("scalar", f(near, v))
	case 14:
		p.push("where", Where(x.Lt(y), near, z))
	case 15:
		p.push("compare", near.Gt(y))
	case 16, 17:
		p.push("cast", near.Cast(p.dtypes[r.IntN(len(p.dtypes))]))
	case 18:
		p.push("back", x.Cast(p.dtype))
	case 19:
		p.push("transpose", near.Transpose(0, -1))
	case 20:
		p.push("slice", near.Slice(-1, k%3, 4, 1+k%2))
	case 21:
		p.push("flip", near.Flip(-1))
	case 22:
		p.push("expand", near.Expand(4, 6))
	case 23:
		p.push("reshape", x.Reshape(-1))
	case 24:
		p.push("reshape", x.Reshape(4, -1))
	case 25:
		p.push("sum", near.Sum(k%2))
	case 26:
		p.push("mean", x.MeanKeep(-1))
	case 27:
		if k < 5 {
			p.push("softmax", near.Softmax(-1))
		} else {
			p.push("sum of a chain", NoGrad(p.s, func() *Tensor { return near.Mul(y).Tanh().AddScalar(v).Sum(-1) }))
		}
	case 28:
		p.push("max", x.Amax(-1))
	case 29, 30:
		p.push("matmul", near.MatMul(y))
	case 31:
		p.push("fill", p.s.Full(p.dtypes[r.IntN(len(p.dtypes))], v, [][]int{{}, {4, 6}, {6}}[k%3]...))
	case 32:
		p.push("no grad", NoGrad(p.s, func() *Tensor { return near.Mul(near).AddScalar(v) }))
	case 33: // other memory, overwritten later
		c := NoGrad(p.s, func() *Tensor { return near.Clone() })
		p.push("clone", c)
	case 34:
		if x.fn == nil && !x.requiresGrad && x.isDense() {
			p.log = append(p.log, fmt.Sprintf("copy %v from %v", x, y))
			if err := x.CopyFrom(y.Detach()); err != nil && strings.Contains(err.Error(), "and not kept") {
				p.lost = true // y is; what comes after differs, as it should
			}
		}
	case 35:
		p.push("cat", Cat(0, near, y))
	case 36:
		if len(p.pool) > 6 {
			i := r.IntN(len(p.pool))
			p.log = append(p.log, fmt.Sprintf("free %d", i))
			p.pool[i].Free()
			p.pool = append(p.pool[:i], p.pool[i+1:]...)
		}
	case 37:
		p.read("in between", x)
	case 38:
		if k < 3 {
			_ = Flush(p.dev)
		}
		p.push("detach", near.Detach())
	case 39:
		p.push("keep", near.Exp2().Keep())
	}
}

// finish computes gradients of all that has some, and reads everything.
func (p *randomProgram) finish() {
	var loss *Tensor
	for _, t := range p.pool {
		if t.err == nil && t.freedErr() == nil && t.needsGrad() {
			v := t.Cast(Float32).Tanh().Sum()
			if loss != nil {
				v = v.Add(loss)
			}
			loss = v
		}
	}
	if loss != nil {
		if err := loss.Backward(); err != nil {
			p.out, p.what = append(p.out, []byte(err.Error())), append(p.what, "backward")
		}
	}
	for i, t := range p.pool {
		p.read(fmt.Sprintf("result %d", i), t)
	}
}

// comparePrograms runs random programs fused and not, and compares every byte that they read.
func comparePrograms(t *testing.T, dev backend.Device, seeds, steps int, dtypes ...DType) {
	if len(dtypes) == 0 {
		dtypes = []DType{Float32, Float16, BFloat16, Float64, Int32, Int64, Uint8, Bool}
	}
	defer func(n int) { keptElements = n }(keptElements)
	fused, lost, total := Launches(dev).Fused, 0, 0
	defer func() { _ = SetFusion(dev, true) }()
	for seed := range uint64(seeds) {
		keptElements = int(seed%2) * 1024 // with and without values that are fused away
		for _, d := range dtypes {
			if d == Float64 && !dev.Info().Caps.F64 {
				continue
			}
			want, err := runProgram(dev, false, d, seed, steps)
			if err != nil {
				t.Fatal(err)
			}
			got, err := runProgram(dev, true, d, seed, steps)
			if err != nil {
				t.Fatal(err)
			}
			if got.lost {
				lost += len(want.out)
				total += len(want.out)
				continue
			}
			if len(got.out) != len(want.out) {
				t.Fatalf("seed %d %s: %d things read fused, %d unfused", seed, d, len(got.out), len(want.out))
			}
			for i := range got.out {
				if bytes.Contains(got.out[i], []byte("and not kept")) {
					lost++
					continue
				}
				total++
				if !bytes.Equal(got.out[i], want.out[i]) {
					for _, l := range got.log {
						t.Log(l)
					}
					t.Fatalf("seed %d %s: %s is\n%x fused, but\n%x unfused", seed, d, got.what[i], got.out[i], want.out[i])
				}
			}
		}
	}
	n := Launches(dev).Fused - fused
	if n < uint64(len(dtypes)*seeds) {
		t.Errorf("only %d operators were fused", n)
	}
	t.Logf("%d programs of %d steps, %d values compared; %d operators ran in another's kernel, %d values were lost to updates", len(dtypes)*seeds, steps, total, n, lost)
	if lost > total/10 {
		t.Errorf("%d of %d values were lost", lost, total)
	}
}

func TestFusedEqualsUnfused(t *testing.T) {
	t.Run("cpu", func(t *testing.T) { comparePrograms(t, CPU(), 20, 40) })
	t.Run("checked", func(t *testing.T) { comparePrograms(t, newChecked("vulkan"), 2, 40) })
	t.Run("vulkan", func(t *testing.T) {
		dev, err := backend.Open("vulkan")
		if err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		defer dev.Close()
		comparePrograms(t, dev, 1, 30, Float32, Float16, BFloat16, Int64)
	})
}

// TestFusedEverywhere is the same on every device, and takes minutes where compilers are slow.
func TestFusedEverywhere(t *testing.T) {
	if os.Getenv("ANYGPU_LONG") == "" {
		t.Skip("set ANYGPU_LONG=1 to run it")
	}
	for _, info := range backend.List() {
		if info.API == "null" {
			continue
		}
		t.Run(info.String(), func(t *testing.T) {
			dev, err := backend.Open(info.String())
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			comparePrograms(t, dev, 2, 30)
		})
	}
}
