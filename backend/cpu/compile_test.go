package cpu

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

// TestExecutorsAgree: functions of float64 give the same bits as machine code and on the block executor, which takes over
// where machine code cannot run.
func TestExecutorsAgree(t *testing.T) {
	d := New()
	defer d.Close()
	if !d.code {
		t.Skip("there is no machine code")
	}
	const n = 1024
	in := make([]byte, 8*n)
	for i := range n {
		binary.NativeEndian.PutUint64(in[8*i:], math.Float64bits(float64(i-500)*0.0713))
	}
	for _, f := range []func(b *ir.Builder, x ir.Value) ir.Value{(*ir.Builder).Tanh, (*ir.Builder).Erf, (*ir.Builder).Sin, (*ir.Builder).Log1p, (*ir.Builder).Rsqrt} {
		b := ir.NewBuilder("f64", 64, 1, 1)
		x, out := b.Buffer("x", ir.F64, ir.Read), b.Buffer("out", ir.F64, ir.Write)
		b.Store(out, b.LinearID(), f(b, b.Load(x, b.LinearID(), 1)))
		k, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var results [2][]byte
		for i, compile := range []func() (runner, error){func() (runner, error) { return d.compile(k) }, func() (runner, error) { return d.interpreter(k, d.pool) }} {
			run, err := compile()
			if err != nil {
				t.Fatal(err)
			}
			results[i] = make([]byte, 8*n)
			if err := run([3]int{n / 64, 1, 1}, [][]byte{in, results[i]}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if why := d.Interpreted()["f64"]; why != nil {
			t.Fatalf("the kernel is interpreted: %v", why)
		}
		for i := range n {
			a, b := results[0][8*i:8*i+8], results[1][8*i:8*i+8]
			if v := math.Float64frombits(binary.NativeEndian.Uint64(a)); !bytes.Equal(a, b) && v == v {
				t.Errorf("machine code gives %v, the block executor %v", v, math.Float64frombits(binary.NativeEndian.Uint64(b)))
				break
			}
		}
	}
}
