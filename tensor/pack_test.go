package tensor

import (
	"fmt"
	"math"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

// packedRows makes parameters and gradients of many sizes, one of them a view that begins in the middle of its memory, where a device allows it.
func packedRows(t *testing.T, dev backend.Device, n int) (rows [][]*Tensor, want [][]float32, norm float64) {
	t.Helper()
	sizes := []int{3, 0, 64, 1, 700, 17, 5000, 128}
	for i := range n {
		size := sizes[i%len(sizes)]
		p, g := make([]float32, size), make([]float32, size)
		for j := range p {
			p[j], g[j] = float32(i+j%50), float32(j%9)-4
		}
		dense := FromFloat32s(p, size).To(dev)
		if info := dev.Info(); i == 4 && info.Limits.BufferOffsetAlign <= 16 { // at element 4, which is no place for a vector
			long := FromFloat32s(append(make([]float32, 4), p...), size+4).To(dev)
			dense = long.Slice(0, 4, size+4, 1)
		}
		w := make([]float32, size)
		for j := range w {
			w[j] = p[j] - g[j]/2
			norm += float64(g[j]) * float64(g[j])
		}
		want = append(want, w)
		rows = append(rows, []*Tensor{dense, FromFloat32s(g, size).To(dev)})
	}
	return rows, want, math.Sqrt(norm)
}

// TestPackedKernels updates many tensors with kernels that can bind few buffers, under the checking executor too.
func TestPackedKernels(t *testing.T) {
	few := func(d *checked) *checked {
		d.caps.MaxBuffers = 8
		return d
	}
	cpu, err := cpuEngine()
	if err != nil {
		t.Fatal(err)
	}
	for name, dev := range map[string]backend.Device{"cpu": cpu.dev, "checked": few(newChecked("packed")), "checked cpu": few(newCheckedCPU("packedcpu"))} {
		t.Run(name, func(t *testing.T) {
			rows, want, norm := packedRows(t, dev, 60)
			flag := Zeros(dev, Int32, 1)
			update := func(factor float64) {
				t.Helper()
				err := UpdateInPlace(InPlaceUpdate{Name: "half", BodyKey: "half", Tensors: rows, Access: []ir.Access{ir.ReadWrite, ir.Read}, Flag: flag, Scalars: []float64{factor},
					Body: func(b *ir.Builder, v, _, s []ir.Value) ([]ir.Value, ir.Value) {
						return []ir.Value{b.Sub(v[0], b.Mul(v[1], b.Splat(s[0], v[1].Type.Lanes)))}, b.Not(b.IsFinite(v[1]))
					}})
				if err != nil {
					t.Fatal(err)
				}
			}
			var grads []*Tensor
			for _, r := range rows {
				grads = append(grads, r[1])
			}
			if err := Synchronize(dev); err != nil { // what other tests left on a shared device
				t.Fatal(err)
			}
			before := Launches(dev).Launches
			if v, err := TotalNorm(2, grads...).Item(); err != nil || math.Abs(v-norm) > 1e-5*norm {
				t.Errorf("norm %v, %v, want %v", v, err, norm)
			}
			update(0.5)
			if n := Launches(dev).Launches - before; n > 9 {
				t.Errorf("%d kernels", n)
			}
			for i, r := range rows {
				got, err := r[0].CPU().Float32s()
				if err != nil {
					t.Fatal(err)
				}
				for j := range got {
					if got[j] != want[i][j] {
						t.Fatalf("tensor %d: element %d is %v, want %v", i, j, got[j], want[i][j])
					}
				}
			}
			if v, err := flag.Item(); err != nil || v != 0 {
				t.Errorf("the flag is %v, %v", v, err)
			}
			// A gradient that overflowed, in other memory: the table must follow.
			rows[38][1] = Full(dev, Float32, math.Inf(1), rows[38][1].Numel())
			update(0)
			if v, err := flag.Item(); err != nil || v != 1 {
				t.Errorf("with an infinite gradient the flag is %v, %v", v, err)
			}
		})
	}
}

// TestPackingSplits: tensors in more allocations than a kernel can bind go by several, and none is left out or taken twice.
func TestPackingSplits(t *testing.T) {
	d := newChecked("split")
	p := packing{bytes: []int64{4, 4}, chunk: 100, most: 5}
	var bufs []backend.Buffer
	for range 7 {
		b, err := d.Alloc(1 << 12)
		if err != nil {
			t.Fatal(err)
		}
		bufs = append(bufs, b)
	}
	for i := range 30 {
		p.sizes = append(p.sizes, 1+i*11%250)
		region := backend.Region{Buffer: bufs[i%7], Offset: int64(64 * (i % 3)), Size: 1000}
		p.regions = append(p.regions, []backend.Region{region, {Buffer: bufs[i%2], Offset: 20, Size: 1000}})
	}
	seen := map[string]int{}
	for _, piece := range p.split() {
		windows := len(piece.windows[0]) + len(piece.windows[1])
		if windows > p.most || len(piece.table) != piece.chunks*5 {
			t.Errorf("%d windows, a table of %d words for %d chunks", windows, len(piece.table), piece.chunks)
		}
		for c := range piece.chunks {
			row := piece.table[c*5 : c*5+5]
			w := piece.windows[0][row[1]]
			if row[0] == 0 || row[0] > 100 || row[2]%16 != row[4]%16 {
				t.Errorf("row %v", row)
			}
			seen[fmt.Sprintf("%p", w.Buffer)] += int(row[0])
		}
	}
	for i, b := range bufs {
		want := 0
		for k := i; k < 30; k += 7 {
			want += p.sizes[k]
		}
		if got := seen[fmt.Sprintf("%p", b)]; got != want {
			t.Errorf("allocation %d: %d elements, want %d", i, got, want)
		}
	}
}
