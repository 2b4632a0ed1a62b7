package lib_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// momentum is SGD with momentum on f16 weights and f32 state, with unscaling of the gradient and a check for infinities.
func momentum(sizes []int) *lib.MultiTensor {
	return &lib.MultiTensor{Name: "sgd", BodyKey: "sgd", Sizes: sizes, Flag: true, Shared: []ir.Kind{ir.F32},
		PerTensor: []lib.TensorBuffer{{Kind: ir.F32, Access: ir.ReadWrite}, {Kind: ir.F16, Access: ir.Read}, {Kind: ir.F32, Access: ir.ReadWrite}, {Kind: ir.F16, Access: ir.Write}},
		Scalars:   []ir.Kind{ir.F32}, ScalarBits: []uint32{math.Float32bits(0.5)},
		Body: func(b *ir.Builder, v, shared, s []ir.Value) ([]ir.Value, ir.Value) {
			g := b.Div(v[1], b.Splat(shared[0], v[1].Type.Lanes))
			m := b.Add(b.Mul(v[2], s[0]), g)
			p := b.Sub(v[0], m)
			return []ir.Value{p, m, p}, b.Not(b.IsFinite(v[1]))
		}}
}

func multiCases() []kcase {
	var out []kcase
	for _, sizes := range [][]int{{1}, {16}, {1000}, {0, 37, 64, 3, 0}, {5000, 10, 784, 12, 9}, {0}} {
		for _, bad := range []bool{false, true} {
			m := momentum(sizes)
			var bufs []array
			flag := 0.0
			for i, n := range sizes {
				p, g, v := noise(ir.F32, n, uint64(i)), noise(ir.F16, n, uint64(i+50)), noise(ir.F32, n, uint64(i+90))
				if bad && i == len(sizes)-1 && n > 0 {
					g[n-1] = math.Inf(1)
					flag = 1
				}
				newP, newV, half := make([]float64, n), make([]float64, n), make([]float64, n)
				for j := range n {
					newV[j] = v[j]*0.5 + g[j]/4
					newP[j] = p[j] - newV[j]
					half[j] = round(ir.F16, newP[j])
				}
				bufs = append(bufs, array{kind: ir.F32, data: p, want: newP, rel: 1e-6, abs: 1e-6}, array{kind: ir.F16, data: g},
					array{kind: ir.F32, data: v, want: newV, rel: 1e-6, abs: 1e-6}, array{kind: ir.F16, data: make([]float64, n), want: half, rel: 1e-3, abs: 1e-3})
			}
			bufs = append(bufs, array{kind: ir.F32, data: []float64{4}}, array{kind: ir.U32, data: []float64{0}, want: []float64{flag}})
			c := kcase{name: fmt.Sprintf("multitensor %v %v", sizes, bad), bufs: bufs, steps: one(m, len(bufs))}
			out = append(out, c)
		}
	}
	out = append(out, packedCases()...)
	return append(out, multiNormCases()...)
}

// packedCases have tensors of several sizes in windows, at places that a table gives.
func packedCases() []kcase {
	var out []kcase
	for _, bad := range []bool{false, true} {
		// Two windows of 64 elements each for values and momentum, one of 96 for the others. Tensors: window, place, size.
		tensors := [][3]int{{0, 0, 16}, {1, 32, 7}, {0, 48, 1}, {1, 0, 19}}
		const window, single = 64, 96
		kinds, windows := []ir.Kind{ir.F32, ir.F16, ir.F32, ir.F16}, []int{2, 1, 2, 1}
		m := momentum(nil)
		p := &lib.Packed{MultiTensor: m, Windows: windows, Chunks: len(tensors)}
		var data, want [4][]float64
		for j, k := range kinds {
			n := window * 2
			if windows[j] == 1 {
				n = single
			}
			data[j] = noise(k, n, uint64(j+70))
			if j == 3 {
				data[j] = make([]float64, n)
			}
			want[j] = append([]float64(nil), data[j]...)
		}
		var table []float64
		flag := 0.0
		for i, t := range tensors {
			at := []int{t[0]*window + t[1], 16 * i, t[0]*window + t[1], 16*i + 16} // tensor 3 of 19 elements is the last
			table = append(table, float64(t[2]), float64(t[0]), float64(t[1]), 0, float64(16*i), float64(t[0]), float64(t[1]), 0, float64(16*i+16))
			if bad && i == 3 {
				data[1][16*i+t[2]-1], want[1][16*i+t[2]-1] = math.Inf(1), math.Inf(1)
				flag = 1
			}
			for e := range t[2] {
				g := data[1][at[1]+e]
				v := data[2][at[2]+e]*0.5 + g/4
				q := data[0][at[0]+e] - v
				want[0][at[0]+e], want[2][at[2]+e], want[3][at[3]+e] = q, v, round(ir.F16, q)
			}
		}
		var bufs []array
		for j, k := range kinds {
			n := len(data[j]) / windows[j]
			for w := range windows[j] {
				a := array{kind: k, data: data[j][w*n : (w+1)*n], want: want[j][w*n : (w+1)*n], rel: 1e-3, abs: 1e-3}
				if m.PerTensor[j].Access == ir.Read {
					a.want = nil
				}
				bufs = append(bufs, a)
			}
		}
		bufs = append(bufs, array{kind: ir.U32, data: table}, array{kind: ir.F32, data: []float64{4}}, array{kind: ir.U32, data: []float64{0}, want: []float64{flag}})
		out = append(out, kcase{name: fmt.Sprintf("packed %v", bad), bufs: bufs, steps: one(p, len(bufs))})
	}
	for _, order := range []lib.NormOrder{lib.NormSquares, lib.NormMax, lib.NormPower} {
		a, b := noise(ir.F32, 64, 1), noise(ir.F32, 64, 2)
		table := []float64{16, 0, 0, 7, 1, 32, 1, 0, 48}
		want := 0.0
		for _, v := range append(append(append([]float64(nil), a[:16]...), b[32:39]...), a[48]) {
			switch v = math.Abs(v); order {
			case lib.NormSquares:
				want += v * v
			case lib.NormMax:
				want = max(want, v)
			default:
				want += math.Pow(v, 3)
			}
		}
		const room = 1 << 12
		bufs := []array{{kind: ir.F32, data: a}, {kind: ir.F32, data: b}, {kind: ir.U32, data: table}, {kind: ir.F32, data: make([]float64, room)},
			{kind: ir.F32, data: []float64{0}, want: []float64{want}, rel: 1e-5}}
		out = append(out, kcase{name: fmt.Sprintf("packednorm %s", order), bufs: bufs, steps: func(t lib.Target) []step {
			p := &lib.PackedNorm{MultiNorm: &lib.MultiNorm{Kind: ir.F32, Order: order, Power: 3, Length: room}, Windows: 2, Chunks: 3}
			op := lib.ReduceSum
			if order == lib.NormMax {
				op = lib.ReduceMax
			}
			total := &lib.Reduce{Op: op, Outer: 1, N: p.Partials(t), Inner: 1, In: []lib.Operand{{Kind: ir.F32}}, Out: lib.Operand{Kind: ir.F32}}
			return []step{{p, []int{0, 1, 2, 3}}, {total, []int{3, 4}}}
		}})
	}
	return out
}

// multiNormCases have two kernels that fill parts of one array of partial results, and its reduction.
func multiNormCases() []kcase {
	var out []kcase
	for _, order := range []lib.NormOrder{lib.NormSquares, lib.NormAbs, lib.NormMax, lib.NormPower} {
		for _, sizes := range [][]int{{1, 1}, {37, 64, 3, 0}, {70000, 10, 784, 12}} {
			kind := map[bool]ir.Kind{false: ir.F32, true: ir.F16}[order == lib.NormAbs]
			var bufs []array
			want := 0.0
			for i, n := range sizes {
				x := noise(kind, n, uint64(i))
				bufs = append(bufs, array{kind: kind, data: x})
				for _, v := range x {
					v = math.Abs(v)
					switch order {
					case lib.NormSquares:
						want += v * v
					case lib.NormAbs:
						want += v
					case lib.NormMax:
						want = max(want, v)
					default:
						want += math.Pow(v, 3)
					}
				}
			}
			const room = 1 << 16
			bufs = append(bufs, array{kind: ir.F32, data: make([]float64, room)}, array{kind: ir.F32, data: []float64{0}, want: []float64{want}, rel: 1e-5})
			partials, result := len(sizes), len(sizes)+1
			out = append(out, kcase{name: fmt.Sprintf("multinorm %s %v", order, sizes), bufs: bufs, steps: func(t lib.Target) []step {
				norm := lib.MultiNorm{Kind: kind, Order: order, Power: 3, Length: room}
				a, b := norm, norm
				a.Sizes, b.Sizes = sizes[:2], sizes[2:]
				b.First = a.Partials(t)
				op := lib.ReduceSum
				if order == lib.NormMax {
					op = lib.ReduceMax
				}
				steps := []step{{&a, []int{0, 1, partials}}}
				if len(b.Sizes) > 0 {
					steps = append(steps, step{&b, []int{2, 3, partials}})
				}
				total := &lib.Reduce{Op: op, Outer: 1, N: b.First + b.Partials(t), Inner: 1, In: []lib.Operand{{Kind: ir.F32}}, Out: lib.Operand{Kind: ir.F32}}
				return append(steps, step{total, []int{partials, result}})
			}})
		}
	}
	return out
}

func TestMultiTensorLimits(t *testing.T) {
	target := targets()[1].t
	if n := lib.MultiTensorMax(target, 4, 1, true); n != 7 {
		t.Errorf("MultiTensorMax is %d, want 7", n)
	}
	if _, err := momentum([]int{1, 2, 3, 4, 5, 6, 7}).Build(target); err != nil {
		t.Error(err)
	}
	_, err := momentum([]int{1, 2, 3, 4, 5, 6, 7, 8}).Build(target)
	if want := "at most 7 tensors at a time"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
	m := momentum([]int{5})
	m.Body = func(b *ir.Builder, v, _, _ []ir.Value) ([]ir.Value, ir.Value) { return v[:1], b.Bool(true) }
	if _, err := m.Build(target); err == nil || !strings.Contains(err.Error(), "returned 1 values") {
		t.Errorf("too few results: %v", err)
	}
}
