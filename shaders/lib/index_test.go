package lib_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

func zeros(n int) []float64 { return make([]float64, n) }

// indices returns reproducible indices, with one below and one above the range.
func indices(n, bins int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(lib.Philox(5, uint64(i))[0] % uint32(max(bins, 1)))
	}
	if n > 3 {
		out[1], out[3] = -1, float64(bins)
	}
	return out
}

func gatherCase(outer, n, j, inner int, each bool, kind, index ir.Kind) kcase {
	in := noise(kind, outer*n*inner, 3)
	count := j
	if each {
		count = outer * j * inner
	}
	idx := indices(count, n)
	want := zeros(outer * j * inner)
	for o := range outer {
		for k := range j {
			for i := range inner {
				at := (o*j+k)*inner + i
				pick := idx[k]
				if each {
					pick = idx[at]
				}
				if pick >= 0 && int(pick) < n {
					want[at] = in[(o*n+int(pick))*inner+i]
				}
			}
		}
	}
	g := &lib.Gather{Outer: outer, N: n, J: j, Inner: inner, Each: each, Kind: kind, Index: index}
	return kcase{name: fmt.Sprintf("gather %s by %s [%d %d %d] %d each %v", kind, index, outer, n, inner, j, each),
		bufs:  []array{{kind: kind, data: in}, {kind: index, data: idx}, {kind: kind, data: zeros(len(want)), want: want}},
		steps: one(g, 3)}
}

// sortSteps sorts rows of buffer in with the help of the four buffers from first on, and returns where keys and order end.
func sortSteps(runs *lib.SortRuns, in, first int) (steps []step, keys, order int) {
	steps = []step{{runs, []int{in, first, first + 1}}}
	at, next := first, first+2
	for width := lib.SortRun; width < runs.N; width *= 2 {
		steps = append(steps, step{&lib.MergeRuns{Rows: runs.Rows, N: runs.N, Width: width, KeyKind: runs.KeyKind()}, []int{at, at + 1, next, next + 1}})
		at, next = next, at
	}
	return steps, at, at + 1
}

func sortCase(rows, n int, kind ir.Kind, descending bool) kcase {
	data := noise(kind, rows*n, 9)
	for i := range data {
		if kind.IsFloat() {
			data[i] = round(kind, math.Round(data[i]*20)) // with ties
			switch i % 17 {
			case 3:
				data[i] = math.NaN()
			case 5:
				data[i] = math.Inf(1)
			case 6:
				data[i] = math.Inf(-1)
			case 7:
				data[i] = math.Copysign(0, -1)
			}
		}
	}
	want := make([]float64, rows*n)
	for r := range rows {
		line := data[r*n : (r+1)*n]
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		rank := func(i int) float64 {
			if math.IsNaN(line[i]) {
				return math.MaxFloat64
			}
			return min(line[i], math.MaxFloat64/2) // below NaN
		}
		slices.SortStableFunc(order, func(i, j int) int {
			if descending {
				i, j = j, i
			}
			switch a, b := rank(i), rank(j); {
			case a < b:
				return -1
			case a > b:
				return 1
			}
			return 0
		})
		for i, o := range order {
			want[r*n+i] = float64(o)
		}
	}
	runs := &lib.SortRuns{Rows: rows, N: n, In: kind, Descending: descending}
	steps, _, order := sortSteps(runs, 0, 1)
	bufs := []array{{kind: kind, data: data}}
	for range 2 {
		bufs = append(bufs, array{kind: runs.KeyKind(), data: zeros(rows * n)}, array{kind: ir.I32, data: zeros(rows * n)})
	}
	bufs[order].want = want
	return kcase{name: fmt.Sprintf("sort %s [%d %d] descending %v", kind, rows, n, descending), bufs: bufs, steps: func(lib.Target) []step { return steps }}
}

func scatterCase(outer, n, j, inner int, each, base, set bool, kind ir.Kind) kcase {
	src := noise(kind, outer*j*inner, 4)
	rows := 1
	if each {
		rows = outer * inner
	}
	idx := indices(rows*j, n) // in rows
	want := zeros(outer * n * inner)
	start := noise(kind, len(want), 8)
	if base {
		copy(want, start)
	}
	for o := range outer {
		for k := range j {
			for i := range inner {
				to := idx[k]
				if each {
					to = idx[(o*inner+i)*j+k]
				}
				if to < 0 || int(to) >= n {
					continue
				}
				at := (o*n+int(to))*inner + i
				if v := src[(o*j+k)*inner+i]; set {
					want[at] = v
				} else {
					want[at] += v
				}
			}
		}
	}
	for i := range want {
		if kind == ir.U8 {
			want[i] = float64(uint8(int(want[i]))) // sums wrap
		}
		want[i] = round(kind, want[i])
	}
	rel := 1e-5
	if kind == ir.F16 || kind == ir.BF16 {
		rel = 1.0 / 256
	}
	runs := &lib.SortRuns{Rows: rows, N: j, In: ir.I64, Bins: max(n, 1)}
	bufs := []array{{kind: ir.I64, data: idx}}
	for range 4 {
		bufs = append(bufs, array{kind: ir.I32, data: zeros(rows * j)})
	}
	steps, keys, order := sortSteps(runs, 0, 1)
	bufs = append(bufs, array{kind: ir.I32, data: zeros(rows * (n + 1))}) // 5: starts
	bufs = append(bufs, array{kind: kind, data: src}, array{kind: kind, data: zeros(len(want)), want: want, rel: rel, abs: 1e-5})
	steps = append(steps, step{&lib.IndexStarts{Rows: rows, J: j, Bins: n}, []int{keys, 5}})
	args := []int{6, order, 5, 7}
	if base {
		bufs = append(bufs, array{kind: kind, data: start})
		args = append([]int{8}, args...)
	}
	steps = append(steps, step{&lib.ScatterSum{Outer: outer, N: n, J: j, Inner: inner, Each: each, HasBase: base, Set: set, Kind: kind}, args})
	return kcase{name: fmt.Sprintf("scatter %s [%d %d %d] to %d each %v base %v set %v", kind, outer, j, inner, n, each, base, set),
		bufs: bufs, steps: func(lib.Target) []step { return steps }}
}

// indexSumCase is scatterCase by lib.IndexSum: the sums have the same order, so that nothing but rounding to kind is left to tolerate.
func indexSumCase(outer, n, j, inner int, kind, index ir.Kind) kcase {
	c := scatterCase(outer, n, j, inner, false, false, false, kind)
	idx := array{kind: index, data: c.bufs[0].data}
	return kcase{name: fmt.Sprintf("index sum %s by %s [%d %d %d] to %d", kind, index, outer, j, inner, n), bufs: []array{c.bufs[6], idx, c.bufs[7]},
		steps: func(lib.Target) []step {
			return []step{{&lib.IndexSum{Outer: outer, N: n, J: j, Inner: inner, Kind: kind, Index: index}, []int{0, 1, 2}}}
		}}
}

func scanCase(outer, n, inner int, product bool, in, out ir.Kind) kcase {
	data := noise(in, outer*n*inner, 6)
	for i := range data {
		if product {
			data[i] = round(in, 1+data[i]/64)
		}
	}
	pieces := (n + lib.ScanPiece - 1) / lib.ScanPiece
	want, totals := zeros(len(data)), zeros(outer*pieces*inner)
	for o := range outer {
		for i := range inner {
			acc := 0.0
			if product {
				acc = 1
			}
			for k := range n {
				at := (o*n+k)*inner + i
				if product {
					acc *= data[at]
				} else {
					acc += data[at]
				}
				want[at] = round(out, acc)
			}
		}
	}
	s := &lib.Scan{Product: product, Outer: outer, N: n, Inner: inner, In: of(in), Out: of(out)}
	top := &lib.Scan{Product: product, Outer: outer, N: pieces, Inner: inner, In: of(out), Out: of(out)}
	carry := &lib.ScanCarry{Product: product, Outer: outer, N: n, Inner: inner, In: of(out), Out: of(out)}
	bufs := []array{{kind: in, data: data}, {kind: out, data: zeros(len(data))}, {kind: out, data: totals}, {kind: out, data: zeros(len(totals))},
		{kind: out, data: zeros(outer * inner)}, {kind: out, data: zeros(len(data)), want: want, rel: 1e-5, abs: 1e-4}}
	steps := []step{{s, []int{0, 1, 2}}, {top, []int{2, 3, 4}}, {carry, []int{1, 3, 5}}}
	return kcase{name: fmt.Sprintf("scan %s to %s [%d %d %d] product %v", in, out, outer, n, inner, product), bufs: bufs, steps: func(lib.Target) []step { return steps }}
}

func indexCases() []kcase {
	var out []kcase
	for _, k := range []ir.Kind{ir.F32, ir.F16, ir.BF16, ir.F64, ir.I32, ir.I64, ir.U8} {
		out = append(out, gatherCase(2, 5, 7, 8, false, k, ir.I64), gatherCase(2, 5, 4, 3, true, k, ir.I32),
			indexSumCase(2, 5, 9, 4, k, ir.I64), indexSumCase(1, 4, 43, 3, k, ir.I32), indexSumCase(3, 7, 2, 8, k, ir.I64),
			scatterCase(2, 5, 9, 4, false, false, false, k), scatterCase(2, 3, 5, 3, true, true, false, k), scatterCase(1, 4, 40, 3, false, true, true, k))
		if k != ir.U8 {
			out = append(out, sortCase(2, 70, k, false), sortCase(3, 9, k, true))
		}
	}
	return append(out, indexSumCase(1, 0, 3, 2, ir.F32, ir.I64), indexSumCase(2, 3, 0, 2, ir.F32, ir.I32), gatherCase(1, 0, 3, 4, false, ir.F32, ir.I64), gatherCase(3, 4, 0, 4, false, ir.F32, ir.I64),
		scatterCase(1, 0, 3, 2, false, false, false, ir.F32), scatterCase(1, 3, 0, 2, false, true, false, ir.F32), sortCase(0, 4, ir.F32, false), sortCase(2, 300, ir.F32, true),
		scanCase(2, 5, 3, false, ir.F32, ir.F32), scanCase(1, 600, 2, false, ir.U8, ir.I64), scanCase(2, 300, 1, true, ir.F16, ir.F32), scanCase(1, 513, 1, false, ir.F64, ir.F64))
}

// TestIndexKernels runs the cases of indexing, sorting and scanning on the checking executor.
func TestIndexKernels(t *testing.T) {
	cases := indexCases()
	for _, d := range targets() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases {
				if supports(d.t, c) {
					runCase(t, d, c)
				}
			}
		})
	}
}

func TestIndexSumIsForFewIndices(t *testing.T) {
	for _, c := range []struct {
		s    lib.IndexSum
		want bool
	}{{lib.IndexSum{Outer: 1, N: 65, J: 1024, Inner: 128}, true}, {lib.IndexSum{Outer: 1, N: 2, J: 1 << 16, Inner: 1}, false},
		{lib.IndexSum{Outer: 1, N: 30000, J: 1024, Inner: 768}, false}, {lib.IndexSum{Outer: 1 << 40, N: 1 << 20, J: 1, Inner: 1 << 20}, false}} {
		if got := c.s.Worth(); got != c.want {
			t.Errorf("[%d %d %d] by %d indices: %v", c.s.Outer, c.s.N, c.s.Inner, c.s.J, got)
		}
	}
}

func TestScatterNamesTheLimit(t *testing.T) {
	s := &lib.ScatterSum{Outer: 1, N: 2, J: 1 << 20, Inner: 1, Kind: ir.F32}
	if _, _, err := s.Launch(targets()[1].t); err == nil {
		t.Error("no error for more iterations than the device runs")
	}
	if _, _, err := (&lib.IndexSum{Outer: 1, N: 2, J: 1 << 20, Inner: 1, Kind: ir.F32, Index: ir.I64}).Launch(targets()[1].t); err == nil {
		t.Error("index sum: no error for more iterations than the device runs")
	}
	if _, _, err := (&lib.Gather{Outer: 1, N: 1 << 26, J: 1, Inner: 1, Kind: ir.F32, Index: ir.I64}).Launch(targets()[1].t); err == nil {
		t.Error("no error for a buffer past the binding limit")
	}
}
