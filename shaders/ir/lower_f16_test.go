package ir_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// halfFormat describes a 16-bit float, for a reference that shares nothing with the code under test: values are found in
// a table of all of them by arithmetic in float64.
type halfFormat struct {
	kind     ir.Kind
	fraction int // bits of the fraction
	bias     int
	values   []float64 // by bits, for positive numbers below infinity
}

func newHalf(kind ir.Kind, fraction, bias int) *halfFormat {
	h := &halfFormat{kind: kind, fraction: fraction, bias: bias}
	for bits := range h.infinity() {
		e, f := bits>>fraction, bits&(1<<fraction-1)
		v := math.Ldexp(float64(f), 1-bias-fraction)
		if e > 0 {
			v = math.Ldexp(float64(f|1<<fraction), e-bias-fraction)
		}
		h.values = append(h.values, v)
	}
	return h
}

func (h *halfFormat) infinity() int { return 1<<15 - 1<<h.fraction }

// decode returns the value of bits.
func (h *halfFormat) decode(bits uint16) float64 {
	mag := int(bits & 0x7fff)
	v := math.NaN()
	switch {
	case mag < h.infinity():
		v = h.values[mag]
	case mag == h.infinity():
		v = math.Inf(1)
	}
	return math.Copysign(v, 1-2*float64(bits>>15))
}

// encode returns the bits of the nearest value, ties to even; ok is false for NaN.
func (h *halfFormat) encode(v float64) (bits uint16, ok bool) {
	if v != v {
		return 0, false
	}
	sign := uint16(0)
	if math.Signbit(v) {
		sign = 0x8000
	}
	v = math.Abs(v)
	lo, hi := 0, h.infinity() // values[lo] <= v < values[hi]
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; h.values[mid] <= v {
			lo = mid
		} else {
			hi = mid
		}
	}
	above := math.Ldexp(1, 1<<(14-h.fraction)) // the power of two after the largest value
	if hi < h.infinity() {
		above = h.values[hi]
	}
	switch below, rest := v-h.values[lo], above-v; {
	case below < rest, below == rest && lo&1 == 0:
		return sign | uint16(lo), true
	}
	return sign | uint16(hi), true
}

// halfDevices are the three ways to compute F16: packed in words, converting storage, native.
func halfDevices() map[string]ir.Caps {
	all := devices()
	return map[string]ir.Caps{"packed": all["swiftshader"], "storage": all["f16 storage"], "native": all["f16 both"]}
}

func runHalf(t *testing.T, k *ir.Kernel, in []byte, outBytes, groups int) []byte {
	t.Helper()
	p, err := interp.Compile(k)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, outBytes)
	if err := p.Run([3]int{groups, 1, 1}, [][]byte{in, out}, nil, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

var halves = []*halfFormat{newHalf(ir.F16, 10, 15), newHalf(ir.BF16, 7, 127)}

// TestHalfDecodeAll converts all 65,536 values to F32.
func TestHalfDecodeAll(t *testing.T) {
	in := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(in[2*i:], uint16(i))
	}
	for _, h := range halves {
		for name, caps := range halfDevices() {
			for _, lanes := range []int{1, 4} {
				k := mapKernel(t, lanes, ir.F32, []ir.Kind{h.kind}, func(b *ir.Builder, xs []ir.Value) ir.Value { return b.Convert(xs[0], ir.F32) })
				out := runHalf(t, mustLower(t, k, caps), in, 4<<16, (1<<16)/8/lanes)
				for i := range 1 << 16 {
					got, want := math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])), h.decode(uint16(i))
					if math.Float64bits(float64(got)) != math.Float64bits(want) && (got == got || want == want) {
						t.Fatalf("%s on %s, %d lanes: %#04x is %v: want %v", h.kind, name, lanes, i, got, want)
					}
				}
			}
		}
	}
}

// TestHalfEncode rounds, in every binade of F32 and for all 16-bit values: the value itself, the midpoint to the next one,
// and the F32 neighbours of both; and random bits. It checks the stored bits, and the value of a rounding that stays in
// a register.
func TestHalfEncode(t *testing.T) {
	for _, h := range halves {
		r := rand.New(rand.NewPCG(9, uint64(h.kind)))
		var xs []float32
		for bits, v := range h.values {
			next := v + (v - h.values[max(bits-1, 0)])
			if bits+1 < len(h.values) {
				next = h.values[bits+1]
			}
			for _, w := range []float64{v, (v + next) / 2} {
				b := math.Float32bits(float32(w))
				xs = append(xs, math.Float32frombits(b), -math.Float32frombits(b+1), math.Float32frombits(b-1))
			}
		}
		for range 1 << 16 {
			xs = append(xs, math.Float32frombits(r.Uint32()))
		}
		for e := range uint32(256) {
			xs = append(xs, math.Float32frombits(e<<23), math.Float32frombits(e<<23|1), math.Float32frombits(e<<23|0x7fffff))
		}
		for len(xs)%32 != 0 {
			xs = append(xs, 0)
		}
		in := floatBytes(xs)
		wants, numbers := make([]uint16, len(xs)), make([]bool, len(xs))
		for i, x := range xs {
			wants[i], numbers[i] = h.encode(float64(x))
		}
		check := func(how string, i int, got uint16) {
			t.Helper()
			want, ok := wants[i], numbers[i]
			if ok && got != want || !ok && h.decode(got) == h.decode(got) {
				t.Fatalf("%s %s: %v (%#x) is %#04x: want %#04x", h.kind, how, xs[i], math.Float32bits(xs[i]), got, want)
			}
		}
		for name, caps := range halfDevices() {
			for _, lanes := range []int{1, 4} {
				k := mapKernel(t, lanes, h.kind, []ir.Kind{ir.F32}, func(b *ir.Builder, xs []ir.Value) ir.Value { return b.Convert(xs[0], h.kind) })
				out := runHalf(t, mustLower(t, k, caps), in, 2*len(xs), len(xs)/8/lanes)
				for i := range xs {
					check("stored on "+name, i, binary.LittleEndian.Uint16(out[2*i:]))
				}
			}
			k := mapKernel(t, 4, ir.F32, []ir.Kind{ir.F32}, func(b *ir.Builder, xs []ir.Value) ir.Value {
				return b.Convert(b.Convert(xs[0], h.kind), ir.F32)
			})
			out := runHalf(t, mustLower(t, k, caps), in, 4*len(xs), len(xs)/32)
			for i := range xs {
				f := math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:]))
				if want := h.decode(wants[i]); numbers[i] && float64(f) != want || !numbers[i] && f == f {
					t.Fatalf("%s rounded on %s: %v became %v: want %v", h.kind, name, xs[i], f, want)
				}
			}
		}
	}
}
