package lib_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// matMulCase makes a case of a spec from operands of noise: op(A) op(B) in float64, then bias, epilogue and rounding.
func matMulCase(name string, s lib.MatMul, epilogue func(x float64) float64) kcase {
	batch := max(s.Batch, 1)
	if s.Batch == 0 {
		batch = 0
	}
	length := func(rows, columns, stride, offset int) int {
		if batch == 0 {
			return 0
		}
		return offset + (batch-1)*stride + rows*columns
	}
	a := noise(s.A, length(s.M, s.K, s.BatchStrideA, s.OffsetA), 11)
	b := noise(s.B, length(s.K, s.N, s.BatchStrideB, s.OffsetB), 12)
	bufs := []array{{kind: s.A, data: a}, {kind: s.B, data: b}}
	var bias []float64
	if s.Bias != ir.Void {
		bias = noise(s.Bias, s.N, 13)
		bufs = append(bufs, array{kind: s.Bias, data: bias})
	}
	want := make([]float64, batch*s.M*s.N)
	scale := 0.0 // the largest sum of magnitudes bounds the rounding errors
	for i := range want {
		z, m, n := i/(s.M*s.N), i/s.N%s.M, i%s.N
		sum, mags := 0.0, 0.0
		for k := range s.K {
			ia, ib := m*s.K+k, k*s.N+n
			if s.TransA {
				ia = k*s.M + m
			}
			if s.TransB {
				ib = n*s.K + k
			}
			p := a[s.OffsetA+z*s.BatchStrideA+ia] * b[s.OffsetB+z*s.BatchStrideB+ib]
			sum += p
			mags += math.Abs(p)
		}
		if bias != nil {
			sum += bias[n]
			mags += math.Abs(bias[n])
		}
		if epilogue != nil {
			sum = epilogue(sum)
		}
		scale = max(scale, mags)
		want[i] = sum
	}
	out := array{kind: s.Out, data: make([]float64, len(want)), want: want}
	switch eps := math.Exp2(-24); s.AccKind() {
	case ir.F32:
		out.abs = float64(s.K+2) * eps * scale
	case ir.F64:
		out.abs = float64(s.K+2) * math.Exp2(-53) * scale
	}
	switch s.Out {
	case ir.F16:
		out.rel = math.Exp2(-11)
	case ir.BF16:
		out.rel = math.Exp2(-8)
	}
	steps := func(lib.Target) []step {
		spec := s
		idx := make([]int, len(bufs)+1)
		for i := range idx {
			idx[i] = i
		}
		return []step{{&spec, idx}}
	}
	return kcase{name: name, bufs: append(bufs, out), steps: steps}
}

func f32MatMul(m, n, k int, ta, tb bool) lib.MatMul {
	return lib.MatMul{M: m, N: n, K: k, Batch: 1, TransA: ta, TransB: tb, A: ir.F32, B: ir.F32, Out: ir.F32}
}

func relu(b *ir.Builder, x ir.Value) ir.Value { return b.Max(x, b.ConstLike(x, 0)) }

// matMulCases are a few products that together use every tile of a class, all transpositions and the main kinds; they run
// on every device. TestMatMulChecked has many more.
func matMulCases() []kcase {
	var all []kcase
	add := func(name string, s lib.MatMul, epilogue func(float64) float64) {
		all = append(all, matMulCase("matmul "+name, s, epilogue))
	}
	for tile := 1; tile <= 8; tile++ {
		s := f32MatMul(40, 48, 64, tile&1 != 0, tile%4 > 1)
		s.Tile = tile
		add(fmt.Sprintf("tile %d", tile), s, nil)
	}
	s := f32MatMul(23, 19, 37, false, true)
	add("odd", s, nil)
	s = f32MatMul(9, 12, 21, true, false)
	s.Batch, s.BatchStrideA, s.BatchStrideB, s.OffsetA, s.OffsetB = 3, 9*21, 0, 2, 7
	add("batch, B repeated", s, nil)
	for i, k := range []ir.Kind{ir.F16, ir.BF16, ir.I64, ir.F64} {
		s := lib.MatMul{M: 24, N: 20, K: 16, Batch: 1, TransA: i == 1, TransB: i&1 == 0, A: k, B: k, Out: k, Bias: k}
		add(k.String(), s, nil)
	}
	s = lib.MatMul{M: 24, N: 36, K: 48, Batch: 1, TransB: true, A: ir.F16, B: ir.F16, Out: ir.F16, Bias: ir.F32,
		Ops: []string{"linear", "relu"}, EpilogueKey: "relu", Epilogue: relu}
	add("fused linear", s, func(x float64) float64 { return max(x, 0) })
	s = f32MatMul(3, 5, 0, false, false)
	s.Bias = ir.F32
	add("K=0 gives the bias", s, nil)
	return all
}

// checkedMatMulCases are cases for the checking executor, for a target with the given number of tiles.
func checkedMatMulCases(tiles int) []kcase {
	var all []kcase
	add := func(name string, s lib.MatMul, epilogue func(float64) float64) {
		all = append(all, matMulCase("matmul "+name, s, epilogue))
	}
	// Every tile of every class, all transpositions, sizes that are aligned, partly aligned and not.
	for i, size := range [][3]int{{16, 32, 48}, {5, 7, 19}, {12, 10, 36}, {1, 1, 1}, {9, 33, 2}} {
		for trans := range 4 {
			for tile := 1; tile <= tiles; tile++ {
				if (i+trans+tile)%2 != 0 {
					continue // each pair of transpositions and tile still meets two sizes or more
				}
				s := f32MatMul(size[0], size[1], size[2], trans&1 != 0, trans&2 != 0)
				s.Tile = tile
				add(fmt.Sprintf("%v trans %d tile %d", size, trans, tile), s, nil)
			}
		}
	}
	for _, size := range [][3]int{{0, 4, 4}, {4, 0, 4}, {3, 5, 0}, {0, 0, 0}} {
		s := f32MatMul(size[0], size[1], size[2], false, true)
		add(fmt.Sprintf("empty %v", size), s, nil)
	}
	s := f32MatMul(3, 5, 4, false, false)
	s.Batch = 0
	add("empty batch", s, nil)

	// Batches, strides and offsets.
	for trans := range 4 {
		s = f32MatMul(6, 9, 5, trans&1 != 0, trans&2 != 0)
		s.Batch, s.BatchStrideA, s.BatchStrideB, s.OffsetA, s.OffsetB = 3, 30, 0, 2, 7
		add(fmt.Sprintf("batch, B repeated, trans %d", trans), s, nil)
		s = f32MatMul(8, 4, 16, trans&1 != 0, trans&2 != 0)
		s.Batch, s.BatchStrideA, s.BatchStrideB, s.OffsetA, s.OffsetB = 2, 130, 64, 0, 16
		add(fmt.Sprintf("batch, A misaligned, trans %d", trans), s, nil)
	}

	// Kinds.
	for _, k := range [][3]ir.Kind{{ir.F16, ir.F16, ir.F16}, {ir.BF16, ir.BF16, ir.BF16}, {ir.F16, ir.F32, ir.F32}, {ir.BF16, ir.F16, ir.F32},
		{ir.F64, ir.F64, ir.F64}, {ir.F32, ir.F64, ir.F64}, {ir.I32, ir.I32, ir.I32}, {ir.I64, ir.I64, ir.I64}, {ir.U8, ir.U8, ir.I32},
		{ir.I32, ir.I64, ir.I64}, {ir.U32, ir.U32, ir.U32}, {ir.F32, ir.F32, ir.F16}, {ir.F32, ir.F32, ir.BF16}, {ir.I32, ir.F32, ir.F32}} {
		for i, size := range [][3]int{{16, 32, 16}, {6, 11, 13}} {
			for trans := i; trans < 4; trans += 2 {
				s := lib.MatMul{M: size[0], N: size[1], K: size[2], Batch: 1, TransA: trans&1 != 0, TransB: trans&2 != 0, A: k[0], B: k[1], Out: k[2]}
				add(fmt.Sprintf("%v %v trans %d", k, size, trans), s, nil)
			}
		}
	}

	// Bias and epilogue, also where there are many results an invocation.
	for _, size := range [][3]int{{16, 64, 8}, {7, 13, 5}} {
		for _, bias := range []ir.Kind{ir.Void, ir.F32, ir.F16} {
			s := f32MatMul(size[0], size[1], size[2], false, true)
			s.Bias, s.EpilogueKey, s.Epilogue, s.Ops = bias, "relu", relu, []string{"linear", "relu"}
			add(fmt.Sprintf("relu %v bias %s", size, bias), s, func(x float64) float64 { return max(x, 0) })
		}
	}
	return all
}

func TestMatMulChecked(t *testing.T) {
	for _, d := range targets() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range checkedMatMulCases(d.t.MatMulTiles()) {
				if supports(d.t, c) {
					runCase(t, d, c)
				}
			}
		})
	}
}

// TestMatMulSizes runs products of the sizes that models have, with the tiles chosen for them.
func TestMatMulSizes(t *testing.T) {
	sizes := [][3]int{{130, 10, 70}, {128, 140, 33}, {1, 300, 40}, {300, 1, 40}}
	for _, d := range targets() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for i, size := range sizes {
				s := f32MatMul(size[0], size[1], size[2], i&1 != 0, i&2 != 0)
				runCase(t, d, matMulCase(fmt.Sprint(size), s, nil))
			}
		})
	}
}

func TestMatMulErrors(t *testing.T) {
	target := targets()[0].t
	base := f32MatMul(2, 3, 4, false, false)
	for _, tt := range []struct {
		change func(s *lib.MatMul)
		want   string
	}{
		{func(s *lib.MatMul) { s.M = -1 }, "M=-1"},
		{func(s *lib.MatMul) { s.Batch = -2 }, "batch=-2"},
		{func(s *lib.MatMul) { s.OffsetA = -1 }, "offsets -1"},
		{func(s *lib.MatMul) { s.M, s.N = 1<<16, 1<<16 }, "the output of 65536 x 65536"},
		{func(s *lib.MatMul) { s.M, s.K = 1<<40, 1<<40 }, "A of"},
		{func(s *lib.MatMul) { s.Batch, s.BatchStrideB = 1<<20, 1<<20 }, "B of 4 x 3 elements, batch 1048576"},
		{func(s *lib.MatMul) { s.A = ir.Bool }, "A: bool"},
		{func(s *lib.MatMul) { s.Bias = ir.U16 }, "the bias: u16"},
		{func(s *lib.MatMul) { s.Out = ir.Void }, "the output: void"},
	} {
		s := base
		tt.change(&s)
		_, err := s.Build(target)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Build: got %v, want an error with %q", err, tt.want)
		}
		if _, _, err := s.Launch(target); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Launch: got %v, want an error with %q", err, tt.want)
		}
	}
	small := target
	small.Caps.MaxBuffers = 2
	if _, err := base.Build(small); err == nil || !strings.Contains(err.Error(), "3 buffers") {
		t.Errorf("Build with 2 buffers: %v", err)
	}
	bad := base
	bad.Epilogue, bad.EpilogueKey = func(*ir.Builder, ir.Value) ir.Value { return nil }, "bad"
	if _, err := bad.Build(target); err == nil {
		t.Error("Build with an epilogue without a value: no error")
	}
}

// TestMatMulDeep checks that a device that bounds the iterations of loops is given larger steps for a large K, or an error.
func TestMatMulDeep(t *testing.T) {
	for _, tt := range []struct {
		k, limit int
		ok       bool
	}{{100_000, 65535, true}, {130_999, 65535, true}, {262_145, 65535, true}, {1_000_000, 65535, true}, {1 << 24, 65535, false}, {1 << 24, 0, true}, {1000, 200, false}} {
		s := f32MatMul(4, 4, tt.k, false, false)
		target := lib.Target{API: "vulkan", Caps: targets()[1].t.Caps}
		target.Caps.MaxLoopTrips = tt.limit
		_, _, err := s.Launch(target)
		if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("K=%d", tt.k)) {
			t.Errorf("K=%d with at most %d iterations: %v", tt.k, tt.limit, err)
		}
		if _, buildErr := s.Build(target); (buildErr == nil) != tt.ok {
			t.Errorf("K=%d with at most %d iterations: Build and Launch disagree: %v", tt.k, tt.limit, buildErr)
		}
	}
}

// TestMatMulKey checks that a key stands for one kernel: specs with equal keys build equal kernels on every target, and
// sizes alone make few keys.
func TestMatMulKey(t *testing.T) {
	sizes := []int{1, 10, 16, 64, 100, 512, 2048}
	type seen struct{ hash, from string }
	for _, d := range targets() {
		kernels := map[string]seen{}
		n := 0
		for _, m := range sizes {
			for _, nn := range sizes {
				for _, k := range []int{3, 784} {
					s := f32MatMul(m, nn, k, false, true)
					n++
					kernel, err := s.Build(d.t)
					if err != nil {
						t.Fatal(err)
					}
					from := fmt.Sprintf("%dx%dx%d", m, nn, k)
					if old, ok := kernels[s.Key()]; ok && old.hash != kernel.Hash() {
						t.Errorf("%s: %s and %s have one key and two kernels: %s", d.name, old.from, from, s.Key())
					}
					kernels[s.Key()] = seen{kernel.Hash(), from}
				}
			}
		}
		if len(kernels) > n*2/3 {
			t.Errorf("%s: %d keys for %d sizes", d.name, len(kernels), n)
		}
	}
	a, b := f32MatMul(8, 8, 8, false, false), f32MatMul(8, 8, 8, false, false)
	b.EpilogueKey, b.Epilogue = "relu", relu
	if a.Key() == b.Key() {
		t.Error("an epilogue does not change the key")
	}
}

// TestMatMulSkinny checks that a narrow product is not given a tile that mostly computes padding.
func TestMatMulSkinny(t *testing.T) {
	for _, d := range targets() {
		for _, size := range [][2]int{{128, 10}, {10, 128}, {1, 512}, {512, 1}, {64, 64}} {
			s := f32MatMul(size[0], size[1], 784, false, true)
			k, err := s.Build(d.t)
			if err != nil {
				t.Fatal(err)
			}
			groups, params, err := s.Launch(d.t)
			if err != nil {
				t.Fatal(err)
			}
			args, err := lib.ParseMatMulArgs(params)
			if err != nil || args.M != size[0] || args.N != size[1] || args.K != 784 || args.Batch != 1 {
				t.Errorf("%s %v: ParseMatMulArgs gives %+v, %v", d.name, size, args, err)
			}
			var rows, columns int
			if _, err := fmt.Sscanf(strings.TrimPrefix(k.Name, "matmul_"), "%dx%dx", &rows, &columns); err != nil {
				t.Fatal(err)
			}
			computed, useful := groups[0]*groups[1]*rows*columns, size[0]*size[1]
			if computed > 40*useful {
				t.Errorf("%s %v: %s computes %d elements for %d", d.name, size, k.Name, computed, useful)
			}
		}
	}
}

// TestMatMulGolden keeps the text of a kernel of each kind of tile.
func TestMatMulGolden(t *testing.T) {
	byName := map[string]lib.Target{}
	for _, d := range targets() {
		byName[d.name] = d.t
	}
	for _, tt := range []struct {
		file, target string
		tile         int
		change       func(s *lib.MatMul)
	}{
		{"matmul_cpu", "cpu", 1, func(*lib.MatMul) {}},
		{"matmul_registers", "lavapipe", 3, func(s *lib.MatMul) { s.Bias, s.Out = ir.F32, ir.F16 }},
		{"matmul_dot", "pocl", 5, func(s *lib.MatMul) { s.TransB = true }},
		{"matmul_shared", "vulkan-gpu", 3, func(s *lib.MatMul) { s.TransB, s.EpilogueKey, s.Epilogue = true, "relu", relu }},
	} {
		s := f32MatMul(64, 64, 64, false, false)
		s.Tile = tt.tile
		tt.change(&s)
		k, err := s.Build(byName[tt.target])
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", tt.file+".ir")
		if *update {
			if err := os.WriteFile(file, []byte(k.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if k.String() != string(want) {
			t.Errorf("the kernel differs from %s; run go test -update and review the difference\n%s", file, k)
		}
	}
}
