package lib_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// The known answers of Random123 1.14 (kat_vectors, philox4x32 10).
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		key     [2]uint32
		counter [4]uint32
		want    [4]uint32
	}{
		{[2]uint32{}, [4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[2]uint32{0xffffffff, 0xffffffff}, [4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := lib.PhiloxBlock(c.key, c.counter); got != c.want {
			t.Errorf("key %08x counter %08x: %08x, want %08x", c.key, c.counter, got, c.want)
		}
	}
}

func randomRef(r lib.Random) []float64 {
	out := make([]float64, r.N)
	for i := range out {
		w := lib.Philox(r.Seed, r.Offset+uint64(i/4))
		u := float64(w[i%4]>>8) / (1 << 24)
		switch r.Dist {
		case lib.RandomBits:
			out[i] = float64(w[i%4])
		case lib.RandomUniform:
			out[i] = round(r.Out, u)
		case lib.RandomBernoulli:
			if float32(u) < r.P {
				out[i] = 1
			}
		case lib.RandomNormal:
			a, v := w[i%4&2], w[i%4&2+1]
			radius := math.Sqrt(-2 * math.Log((float64(a)+0.5)/(1<<32)))
			angle := 2 * math.Pi * float64(int32(v)>>8) / (1 << 24)
			if out[i] = radius * math.Cos(angle); i%2 == 1 {
				out[i] = radius * math.Sin(angle)
			}
			out[i] = round(r.Out, out[i])
		}
	}
	return out
}

func randomCases() []kcase {
	var out []kcase
	for _, n := range []int{0, 1, 3, 4, 130, 1024, 4099} {
		for _, r := range []lib.Random{
			{Dist: lib.RandomUniform, Out: ir.F32, Seed: 42}, {Dist: lib.RandomUniform, Out: ir.F16, Seed: 1 << 40, Offset: 1<<32 - 5},
			{Dist: lib.RandomUniform, Out: ir.F64, Seed: 7}, {Dist: lib.RandomBits, Out: ir.U32, Seed: 42, Offset: 1<<32 - 9},
			{Dist: lib.RandomBernoulli, Out: ir.U8, Seed: 3, P: 0.25}, {Dist: lib.RandomBernoulli, Out: ir.U8, Seed: 3, P: 1},
			{Dist: lib.RandomNormal, Out: ir.F32, Seed: 11}, {Dist: lib.RandomNormal, Out: ir.BF16, Seed: 11},
		} {
			r.N = n
			a := array{kind: r.Out, data: make([]float64, n), want: randomRef(r)}
			if r.Dist == lib.RandomNormal {
				// Near u = 1 the radius is the root of a small logarithm: its absolute error counts.
				a.rel, a.abs = 2e-6, 2e-4
				if r.Out == ir.BF16 {
					a.rel, a.abs = 1.0/128, 1e-3
				}
			}
			out = append(out, kcase{name: fmt.Sprintf("random %s/%s/%d", r.Dist, r.Out, n), bufs: []array{a}, steps: one(&r, 1)})
		}
	}
	return out
}

func TestRandomMoments(t *testing.T) {
	x := randomRef(lib.Random{Dist: lib.RandomNormal, N: 100000, Out: ir.F32, Seed: 5})
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / 1e5
		square += v * v / 1e5
	}
	if math.Abs(mean) > 0.01 || math.Abs(square-1) > 0.02 {
		t.Errorf("mean %v, mean square %v of 100000 normal variates", mean, square)
	}
}

func TestRandomErrors(t *testing.T) {
	for _, c := range []struct {
		r    lib.Random
		want string
	}{
		{lib.Random{Dist: lib.RandomUniform, Out: ir.I32}, "output kind i32"},
		{lib.Random{Dist: lib.RandomBernoulli, Out: ir.U8, P: 1.5}, "probability 1.5"},
		{lib.Random{Dist: lib.RandomBernoulli, Out: ir.U8, P: float32(math.NaN())}, "probability NaN"},
		{lib.Random{Dist: lib.RandomBits, Out: ir.U32, N: -1}, "-1 elements"},
		{lib.Random{Dist: 17, Out: ir.U32}, "output kind"},
	} {
		if _, _, err := c.r.Launch(targets()[0].t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got error %v, want one with %q", c.r, err, c.want)
		}
	}
}
