package lib_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// reduceRef is the reduction of a list in float64.
func reduceRef(op lib.ReduceOp, x []float64) float64 {
	acc, at := 0.0, -1
	switch op {
	case lib.ReduceProd, lib.ReduceAll:
		acc = 1
	}
	for i, v := range x {
		first := i == 0
		switch op {
		case lib.ReduceSum:
			acc += v
		case lib.ReduceProd:
			acc *= v
		case lib.ReduceMax:
			if first || math.IsNaN(v) || v > acc {
				acc = v
			}
		case lib.ReduceMin:
			if first || math.IsNaN(v) || v < acc {
				acc = v
			}
		case lib.ReduceArgMax, lib.ReduceArgMin:
			better := v > acc
			if op == lib.ReduceArgMin {
				better = v < acc
			}
			if first || !math.IsNaN(acc) && (math.IsNaN(v) || better) {
				acc, at = v, i
			}
		case lib.ReduceAny:
			if v != 0 {
				acc = 1
			}
		case lib.ReduceAll:
			if v == 0 {
				acc = 0
			}
		}
		if math.IsNaN(acc) && (op == lib.ReduceMax || op == lib.ReduceMin) {
			return acc
		}
	}
	if op == lib.ReduceArgMax || op == lib.ReduceArgMin {
		return float64(at)
	}
	return acc
}

// reduction makes a case of r, whose inputs are data; value is the prologue and finish the epilogue of the reference. Where the target
// has a split, both kernels run.
func reduction(name string, r lib.Reduce, data [][]float64, value func([]float64) float64, finish func(float64) float64, rel float64) kcase {
	r.Name = strings.NewReplacer("/", "_", " ", "_", "[", "", "]", "").Replace(name)
	if r.BodyKey == "" && (r.Prologue != nil || r.Epilogue != nil) {
		r.BodyKey = name
	}
	var bufs []array
	for i, o := range r.In {
		bufs = append(bufs, array{kind: o.Kind, data: data[i]})
	}
	want := make([]float64, r.Outer*r.Inner)
	scale := 0.0
	for o := range r.Outer {
		for c := range r.Inner {
			row := make([]float64, r.N)
			for n := range row {
				in := make([]float64, len(data))
				for i := range data {
					in[i] = data[i][(o*r.N+n)*r.Inner+c]
				}
				row[n] = in[0]
				if value != nil {
					row[n] = value(in)
				}
			}
			v := reduceRef(r.Op, row)
			if finish != nil {
				v = finish(v)
			}
			want[o*r.Inner+c] = round(r.Out.Kind, v)
			scale = max(scale, math.Abs(v))
		}
	}
	out := len(bufs)
	bufs = append(bufs, array{kind: r.Out.Kind, data: make([]float64, len(want)), want: want, rel: rel, abs: rel / 10})
	steps := one(&r, len(bufs))
	// Room for the temporary of any target.
	between := array{kind: ir.F32, data: make([]float64, 1)}
	for _, d := range targets() {
		if first, _, ok := r.Split(d.t); ok {
			between.kind = first.Out.Kind
			n := first.Pieces() * len(want)
			if r.Op == lib.ReduceArgMax || r.Op == lib.ReduceArgMin {
				between.kind, n = ir.U32, 2*n // pairs of words
			}
			between.data = make([]float64, max(len(between.data), n))
		}
	}
	bufs = append(bufs, between)
	temp := len(bufs) - 1
	return kcase{name: "reduce " + name, bufs: bufs, steps: func(t lib.Target) []step {
		first, second, ok := r.Split(t)
		if !ok {
			return steps(t)
		}
		var in []int
		for i := range r.In {
			in = append(in, i)
		}
		return []step{{first, append(in, temp)}, {second, []int{temp, out}}}
	}}
}

func reduceCases() []kcase {
	var out []kcase
	shapes := [][3]int{{1, 1, 1}, {3, 10, 1}, {7, 64, 1}, {5, 100, 1}, {2, 1000, 1}, {300, 5, 1}, {1, 5000, 1}, {2, 3001, 1},
		{1, 10, 10}, {2, 100, 16}, {3, 33, 5}, {1, 700, 3}, {1, 40, 130}, {2, 0, 3}, {0, 4, 2}, {3, 0, 1}}
	for _, s := range shapes {
		n := s[0] * s[1] * s[2]
		for _, op := range []lib.ReduceOp{lib.ReduceSum, lib.ReduceMax, lib.ReduceArgMax} {
			if s[1] == 0 && op != lib.ReduceSum && s[0] != 0 {
				continue
			}
			o := of(ir.F32)
			if op == lib.ReduceArgMax {
				o.Kind = ir.I64
			}
			r := lib.Reduce{Op: op, Outer: s[0], N: s[1], Inner: s[2], In: []lib.Operand{of(ir.F32)}, Out: o}
			out = append(out, reduction(fmt.Sprintf("%s%v", op, s), r, [][]float64{noise(ir.F32, n, uint64(n))}, nil, nil, 2e-5))
		}
	}
	// Rows of which some have several partial sums and others one.
	for _, n := range []int{80, 96, 112, 128} {
		for _, kind := range []ir.Kind{ir.F32, ir.F64} {
			r := lib.Reduce{Op: lib.ReduceSum, Outer: 5, N: n, Inner: 1, In: []lib.Operand{of(kind)}, Out: of(kind)}
			out = append(out, reduction(fmt.Sprintf("rows of %d %s", n, kind), r, [][]float64{noise(kind, 5*n, uint64(n))}, nil, nil, 2e-5))
		}
	}
	// Arg reductions that are split, with the extreme repeated and NaN.
	for _, s := range [][3]int{{1, 20000, 1}, {2, 9000, 1}, {1, 6000, 3}} {
		for i, op := range []lib.ReduceOp{lib.ReduceArgMax, lib.ReduceArgMin} {
			data := noise(ir.F32, s[0]*s[1]*s[2], 8)
			for j := range data {
				if j%2111 == 2000 {
					data[j] = 3
				}
				if i == 1 && j%3001 == 2500 {
					data[j] = math.NaN()
				}
			}
			r := lib.Reduce{Op: op, Outer: s[0], N: s[1], Inner: s[2], In: []lib.Operand{of(ir.F32)}, Out: of(ir.I64)}
			out = append(out, reduction(fmt.Sprintf("%s repeated%v", op, s), r, [][]float64{data}, nil, nil, 0))
		}
	}
	return append(append(out, reduceKinds()...), reduceSpecials()...)
}

func reduceKinds() []kcase {
	var out []kcase
	for _, s := range [][3]int{{4, 90, 1}, {2, 50, 6}} {
		n := s[0] * s[1] * s[2]
		for _, c := range []struct {
			op   lib.ReduceOp
			in   lib.Operand
			out  lib.Operand
			rel  float64
			data []float64
		}{
			{lib.ReduceSum, of(ir.F16), of(ir.F16), 2e-3, nil},
			{lib.ReduceSum, of(ir.BF16), of(ir.F32), 2e-5, nil},
			{lib.ReduceSum, of(ir.F64), of(ir.F64), 1e-13, nil},
			{lib.ReduceSum, of(ir.I32), of(ir.I64), 0, nil},
			{lib.ReduceSum, of(ir.U8), of(ir.I64), 0, nil},
			{lib.ReduceSum, of(ir.U8), of(ir.I32), 0, nil},
			{lib.ReduceSum, of(ir.I64), of(ir.I64), 0, nil},
			{lib.ReduceSum, boolean, of(ir.I64), 0, every(n, 3)},
			{lib.ReduceProd, of(ir.F32), of(ir.F32), 1e-4, nil},
			{lib.ReduceMax, of(ir.BF16), of(ir.BF16), 0, nil},
			{lib.ReduceMin, of(ir.F32), of(ir.F32), 0, nil},
			{lib.ReduceMax, of(ir.I32), of(ir.I32), 0, nil},
			{lib.ReduceMin, of(ir.I64), of(ir.I64), 0, nil},
			{lib.ReduceMax, of(ir.U8), of(ir.U8), 0, nil},
			{lib.ReduceMax, boolean, boolean, 0, every(n, 40)},
			{lib.ReduceMin, of(ir.U32), of(ir.U32), 0, nil},
			{lib.ReduceArgMax, of(ir.I32), of(ir.I64), 0, nil},
			{lib.ReduceArgMin, of(ir.F16), of(ir.I64), 0, nil},
			{lib.ReduceArgMax, boolean, of(ir.I64), 0, every(n, 40)},
			{lib.ReduceArgMax, of(ir.F64), of(ir.I64), 0, nil},
			{lib.ReduceAny, boolean, boolean, 0, every(n, 70)},
			{lib.ReduceAll, boolean, boolean, 0, ones(n)},
			{lib.ReduceAny, of(ir.F32), boolean, 0, make([]float64, n)},
		} {
			data := c.data
			if data == nil {
				data = noise(c.in.Kind, n, 5)
			}
			if c.op == lib.ReduceProd {
				for i := range data {
					data[i] = round(ir.F32, 1+data[i]/8)
				}
			}
			r := lib.Reduce{Op: c.op, Outer: s[0], N: s[1], Inner: s[2], In: []lib.Operand{c.in}, Out: c.out}
			out = append(out, reduction(fmt.Sprintf("%s/%s/%s%v", c.op, c.in.Kind, c.out.Kind, s), r, [][]float64{data}, nil, nil, c.rel))
		}
	}
	return out
}

func every(n, k int) []float64 {
	x := make([]float64, n)
	for i := k - 1; i < n; i += k {
		x[i] = 1
	}
	return x
}

func ones(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

func reduceSpecials() []kcase {
	mean := lib.Reduce{Op: lib.ReduceSum, Outer: 1, N: 20000, Inner: 1, In: []lib.Operand{of(ir.F32), of(ir.F32)}, Out: of(ir.F32), BodyKey: "meansq",
		Scalars: []ir.Kind{ir.F32}, ScalarBits: []uint32{math.Float32bits(3)},
		Prologue: func(b *ir.Builder, in, s vals) ir.Value {
			d := b.Sub(in[0], in[1])
			return b.Mul(b.Mul(d, d), s[0])
		},
		Epilogue: func(b *ir.Builder, acc, n ir.Value, s vals) ir.Value { return b.Mul(b.Div(acc, n), s[0]) }}
	columns := mean
	columns.Outer, columns.N, columns.Inner = 1, 5000, 3
	meanRef := func(n float64) (func([]float64) float64, func(float64) float64) {
		return func(in []float64) float64 { return 3 * (in[0] - in[1]) * (in[0] - in[1]) }, func(v float64) float64 { return 3 * v / n }
	}
	value, finish := meanRef(20000)
	_, finishColumns := meanRef(5000)
	out := []kcase{
		reduction("mean of squares", mean, [][]float64{noise(ir.F32, 20000, 1), noise(ir.F32, 20000, 2)}, value, finish, 2e-5),
		reduction("mean of squares of columns", columns, [][]float64{noise(ir.F32, 15000, 1), noise(ir.F32, 15000, 2)}, value, finishColumns, 2e-5),
	}
	// NaN, infinities, ties and signed zeros, at several places of a row.
	nan, inf := math.NaN(), math.Inf(1)
	for i, vals := range [][]float64{{nan}, {1, nan, 2, nan}, {inf, -inf}, {-inf}, {3, 3, 3}, {-3, 3, -3, 3}, {0, math.Copysign(0, -1)}, {inf, nan}, {-inf, -inf, nan}} {
		for _, op := range []lib.ReduceOp{lib.ReduceMax, lib.ReduceMin, lib.ReduceArgMax, lib.ReduceArgMin, lib.ReduceSum, lib.ReduceAny} {
			for _, n := range []int{len(vals), 150} {
				data := make([]float64, 3*n)
				for j := range data {
					data[j] = vals[0] * 0
					if !math.IsNaN(data[j]) {
						data[j] = -1
					} else if !math.IsNaN(vals[0]) {
						data[j] = vals[0]
					} else {
						data[j] = 5
					}
				}
				for row := range 3 {
					for j, v := range vals {
						data[row*n+(j*n/len(vals)+row*7)%n] = v
					}
				}
				o := of(ir.F32)
				switch op {
				case lib.ReduceArgMax, lib.ReduceArgMin:
					o = of(ir.I64)
				case lib.ReduceAny:
					o = boolean
				}
				r := lib.Reduce{Op: op, Outer: 3, N: n, Inner: 1, In: []lib.Operand{of(ir.F32)}, Out: o}
				out = append(out, reduction(fmt.Sprintf("special %d/%s/%d", i, op, n), r, [][]float64{data}, nil, nil, 1e-6))
			}
		}
	}
	return out
}

func TestReduceAccuracy(t *testing.T) {
	// The sum of 5,000 values of one sign, in one row, without a split.
	x := noise(ir.F32, 5000, 9)
	for i := range x {
		x[i] = math.Abs(x[i])
	}
	want := reduceRef(lib.ReduceSum, x)
	for _, d := range targets() {
		r := &lib.Reduce{Op: lib.ReduceSum, Outer: 1, N: 5000, Inner: 1, In: []lib.Operand{of(ir.F32)}, Out: of(ir.F32)}
		data := [][]byte{encode(ir.F32, x), make([]byte, 4)}
		if err := d.run([]step{{r, []int{0, 1}}}, data, []int{5000, 1}, map[int]bool{}); err != nil {
			t.Fatal(err)
		}
		if got := decode(ir.F32, data[1])[0]; math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s: sum %v, want %v: relative error %.2g", d.name, got, want, math.Abs(got-want)/want)
		}
	}
}

func TestReduceErrors(t *testing.T) {
	target := targets()[1].t
	for _, c := range []struct {
		name string
		r    lib.Reduce
		want string
	}{
		{"empty max", lib.Reduce{Op: lib.ReduceMax, Outer: 2, Inner: 1}, "the max of 0 elements has no value"},
		{"empty argmin", lib.Reduce{Op: lib.ReduceArgMin, Outer: 2, Inner: 3}, "the argmin of 0 elements"},
		{"op", lib.Reduce{Op: 99}, "no reduction 99"},
		{"large", lib.Reduce{Outer: 1 << 16, N: 1 << 16, Inner: 1}, "4294967296 elements"},
		{"negative", lib.Reduce{Outer: -1}, "negative dimension"},
		{"inputs", lib.Reduce{Outer: 1, N: 1, Inner: 1, In: []lib.Operand{of(ir.F32), of(ir.F32)}}, "no prologue"},
	} {
		if c.r.In == nil {
			c.r.In = []lib.Operand{of(ir.F32)}
		}
		c.r.Out = of(ir.F32)
		if _, _, err := c.r.Launch(target); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
		}
	}
	r := lib.Reduce{Op: lib.ReduceMax, Outer: 0, Inner: 1, In: []lib.Operand{of(ir.F32)}, Out: of(ir.F32)}
	if _, _, err := r.Launch(target); err != nil {
		t.Errorf("max of no rows: %v", err)
	}
}

func TestSplit(t *testing.T) {
	for _, d := range targets() {
		r := lib.Reduce{Op: lib.ReduceSum, Outer: 1, N: 16 << 20, Inner: 1, In: []lib.Operand{of(ir.F16)}, Out: of(ir.F16)}
		first, second, ok := r.Split(d.t)
		if !ok {
			t.Errorf("%s: the sum of 16M elements is not split", d.name)
			continue
		}
		if first.Out.Kind != ir.F32 || second.N != first.Pieces() || first.Pieces() < 32 {
			t.Errorf("%s: %d pieces of kind %s, then a row of %d", d.name, first.Pieces(), first.Out.Kind, second.N)
		}
		r.Outer = 1 << 16
		r.N = 64
		if _, _, ok := r.Split(d.t); ok {
			t.Errorf("%s: 65536 rows of 64 are split", d.name)
		}
		r.Op, r.Out = lib.ReduceArgMax, of(ir.I64)
		r.Outer, r.N = 1, 1<<20
		if first, _, ok := r.Split(d.t); !ok || first.Out.Kind != ir.I64 {
			t.Errorf("%s: argmax is not split into pairs", d.name)
		}
		r.In[0].Kind = ir.F64
		if _, _, ok := r.Split(d.t); ok {
			t.Errorf("%s: argmax of f64 is split", d.name)
		}
	}
}

// TestLoopBound checks that a device that bounds the iterations of loops gets kernels below its bound, or an error.
func TestLoopBound(t *testing.T) {
	target := targets()[1].t
	for _, c := range []struct {
		op              lib.ReduceOp
		outer, n, inner int
	}{{lib.ReduceSum, 1, 1 << 24, 1}, {lib.ReduceSum, 1000, 1 << 21, 1}, {lib.ReduceMax, 3, 1<<22 + 1, 1}, {lib.ReduceSum, 1, 1 << 20, 7}, {lib.ReduceArgMax, 1, 1 << 24, 1}} {
		r := lib.Reduce{Op: c.op, Outer: c.outer, N: c.n, Inner: c.inner, In: []lib.Operand{of(ir.F32)}, Out: of(ir.F32)}
		all := []*lib.Reduce{&r}
		if first, second, ok := r.Split(target); ok {
			all = []*lib.Reduce{first, second}
		}
		for _, r := range all {
			if _, _, err := r.Launch(target); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
	}
	r := lib.Reduce{Op: lib.ReduceArgMax, Outer: 1, N: 1 << 24, Inner: 1, In: []lib.Operand{of(ir.I64)}, Out: of(ir.I64)}
	if _, _, err := r.Launch(target); err == nil || !strings.Contains(err.Error(), "at most 65535") {
		t.Errorf("argmax of 2^24 elements: error %v", err)
	}
	s := lib.Softmax{Outer: 1, N: 1 << 20, Inner: 1, In: ir.F32, Out: ir.F32}
	if _, _, err := s.Launch(target); err == nil || !strings.Contains(err.Error(), "at most 65535") {
		t.Errorf("softmax of 2^20 elements: error %v", err)
	}
	s.N = 150_000
	if _, _, err := s.Launch(target); err != nil {
		t.Errorf("softmax of 150,000 elements: %v", err)
	}
}
