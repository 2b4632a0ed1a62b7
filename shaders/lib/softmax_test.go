package lib_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

func softmaxRow(x []float64, log bool) []float64 {
	largest := math.Inf(-1)
	for _, v := range x {
		largest = math.Max(largest, v)
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - largest)
	}
	out := make([]float64, len(x))
	for i, v := range x {
		if out[i] = math.Exp(v-largest) / sum; log {
			out[i] = v - largest - math.Log(sum)
		}
	}
	return out
}

func softmax(s lib.Softmax, x []float64, rel float64) kcase {
	want := make([]float64, len(x))
	for o := range s.Outer {
		for c := range s.Inner {
			row := make([]float64, s.N)
			for n := range row {
				row[n] = x[(o*s.N+n)*s.Inner+c]
			}
			for n, v := range softmaxRow(row, s.Log) {
				want[(o*s.N+n)*s.Inner+c] = round(s.Out, v)
			}
		}
	}
	abs := rel / 100
	if s.Log {
		abs = rel
	}
	return kcase{name: fmt.Sprintf("softmax %v %s-%s [%d %d %d]", s.Log, s.In, s.Out, s.Outer, s.N, s.Inner), steps: one(&s, 2), math64: s.In == ir.F64,
		bufs: []array{{kind: s.In, data: x}, {kind: s.Out, data: make([]float64, len(x)), want: want, rel: rel, abs: abs}}}
}

func softmaxCases() []kcase {
	var out []kcase
	for _, s := range [][3]int{{1, 1, 1}, {128, 10, 1}, {5, 64, 1}, {3, 100, 1}, {2, 1000, 1}, {2, 1001, 1}, {1, 5000, 1}, {1, 5001, 1}, {4, 10, 16}, {3, 7, 5}, {0, 3, 1}, {3, 0, 1}} {
		for _, log := range []bool{false, true} {
			n := s[0] * s[1] * s[2]
			for _, k := range []struct {
				in, out ir.Kind
				rel     float64
			}{{ir.F32, ir.F32, 4e-6}, {ir.F16, ir.F16, 2e-3}, {ir.BF16, ir.F32, 4e-6}, {ir.F64, ir.F64, 1e-12}} {
				if n > 3000 && k.in != ir.F32 {
					continue
				}
				x := noise(k.in, n, 3)
				for i := range x {
					x[i] = round(k.in, 20*x[i])
				}
				out = append(out, softmax(lib.Softmax{Log: log, Outer: s[0], N: s[1], Inner: s[2], In: k.in, Out: k.out}, x, k.rel))
			}
		}
	}
	// Rows without a finite maximum are NaN; -inf elsewhere is 0; large values do not overflow.
	for _, inner := range []int{1, 3} {
		x := noise(ir.F32, 6*40*inner, 4)
		for i := range x {
			switch row := i / (40 * inner); row {
			case 0:
				x[i] = math.Inf(-1)
			case 1:
				x[i] = math.Inf(-1 + 2*(i%2))
			case 2:
				if i%7 == 0 {
					x[i] = math.Inf(-1)
				}
			case 3:
				x[i] = round(ir.F32, 1e38*x[i])
			case 4:
				if i%13 == 0 {
					x[i] = math.NaN()
				}
			}
		}
		for _, log := range []bool{false, true} {
			c := softmax(lib.Softmax{Log: log, Outer: 6, N: 40, Inner: inner, In: ir.F32, Out: ir.F32}, x, 4e-6)
			for i := range c.bufs[1].want[:40*inner*2] {
				c.bufs[1].want[i] = math.NaN()
			}
			for i := 160 * inner; i < 200*inner; i++ {
				column := i % inner
				for j := 160*inner + column; j < 200*inner; j += inner {
					if math.IsNaN(x[j]) {
						c.bufs[1].want[i] = math.NaN()
					}
				}
			}
			c.name += " specials"
			out = append(out, c)
		}
	}
	return out
}

func TestSoftmaxErrors(t *testing.T) {
	target := targets()[1].t
	for _, c := range []struct {
		s    lib.Softmax
		want string
	}{
		{lib.Softmax{Outer: 1, N: 1, Inner: 1, In: ir.I32, Out: ir.F32}, "must be floats, got i32"},
		{lib.Softmax{Outer: 1, N: 1, Inner: 1, In: ir.F64, Out: ir.F32}, "f64"},
		{lib.Softmax{Outer: 1, N: -1, Inner: 1, In: ir.F32, Out: ir.F32}, "negative dimension"},
		{lib.Softmax{Outer: 1 << 20, N: 1 << 20, Inner: 1, In: ir.F32, Out: ir.F32}, "split the tensor"},
	} {
		if _, _, err := c.s.Launch(target); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got error %v, want one with %q", c.s, err, c.want)
		}
	}
}
