package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"codeberg.org/sbinet/npyio/npy"
	"github.com/anygpu/anygpu/backend"
	"gonum.org/v1/gonum/mat"
)

func TestDenseRoundTrip(t *testing.T) {
	m := mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6})
	x := FromDense(m.Slice(0, 2, 1, 3).(*mat.Dense)) // with a stride
	back, err := x.T().Dense()
	if err != nil {
		t.Fatal(err)
	}
	if want := mat.NewDense(2, 2, []float64{2, 5, 3, 6}); !mat.Equal(back, want) {
		t.Errorf("got %v, expected %v", back.RawMatrix().Data, want.RawMatrix().Data)
	}
	if v, err := FromFloat32s([]float32{1, 2}, 2).Dense(); err != nil || v.At(1, 0) != 2 {
		t.Errorf("a vector gives %v, %v", v, err)
	}
	wantErr(t, FromDense(nil).Err(), nil, "nil or empty")
	wantErr(t, second(Zeros(CPU(), Float32, 0, 3).Dense()), ErrShape, "without elements")
	wantErr(t, second(Zeros(CPU(), Float32, 1, 1, 1).Dense()), ErrShape, "3 dimensions")
}

func TestNPYRoundTrip(t *testing.T) {
	x := FromFloat64s([]float64{0, 1, 2, 3, 4, 100}, 2, 3)
	for d := Bool; d < numDTypes; d++ {
		for _, y := range []*Tensor{x.Cast(d), x.Cast(d).T(), x.Cast(d).Select(0, 1).Select(0, 1), x.Cast(d).Slice(0, 0, 0, 1)} {
			var buf bytes.Buffer
			err := y.WriteNPY(&buf)
			if d == BFloat16 {
				wantErr(t, err, ErrDType, "bfloat16")
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			raw := slices.Clone(buf.Bytes())
			z, err := ReadNPY(&buf)
			if err != nil {
				t.Fatalf("%s: %v", y, err)
			}
			if z.DType() != d || !slices.Equal(z.Shape(), y.Shape()) {
				t.Errorf("read %s, wrote %s", z, y)
			}
			checkClose(t, y.String(), values(t, z), values(t, y), 0, 0)
			if d == Float32 && len(y.shape) == 2 && y.Numel() > 0 { // an independent reader
				var got []float32
				if err := npy.Read(bytes.NewReader(raw), &got); err != nil {
					t.Fatal(err)
				}
				if want, _ := y.Float32s(); !slices.Equal(got, want) {
					t.Errorf("npyio reads %v, expected %v", got, want)
				}
			}
		}
	}
}

// npyFile makes a file with a header as given.
func npyFile(header string, data []byte) []byte {
	h := header + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(h)), byte(len(h)>>8))
	return append(append(out, h...), data...)
}

func TestNPYFortranOrder(t *testing.T) {
	var data []byte
	for _, v := range []float32{1, 4, 2, 5, 3, 6} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	x, err := ReadNPY(bytes.NewReader(npyFile("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", data)))
	if err != nil {
		t.Fatal(err)
	}
	checkClose(t, "Fortran order", values(t, x), []float64{1, 2, 3, 4, 5, 6}, 0, 0)
}

func TestNPYHostile(t *testing.T) {
	long := append([]byte("\x93NUMPY\x02\x00"), 0xff, 0xff, 0xff, 0xff)
	for _, tc := range []struct {
		name string
		file []byte
		part string
	}{
		{"empty", nil, "too short"},
		{"magic", []byte("\x94NUMPY\x01\x00\x10\x00"), "magic number"},
		{"long header", long, "claims 4294967295 bytes"},
		{"cut header", []byte("\x93NUMPY\x01\x00\x10\x00{}"), "ends before"},
		{"no newline", append([]byte("\x93NUMPY\x01\x00\x02\x00"), "{}"...), "newline"},
		{"garbage", npyFile("]]]]", nil), "malformed"},
		{"objects", npyFile("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", make([]byte, 8)), "not supported"},
		{"big endian", npyFile("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", make([]byte, 4)), "not supported"},
		{"huge", npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", nil), ""},
		{"large claim", npyFile("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000,), }", make([]byte, 16)), "needs 32000000000 bytes, but the file has 16"},
		{"negative", npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", nil), ""},
	} {
		_, err := ReadNPY(bytes.NewReader(tc.file))
		if err == nil || !strings.Contains(err.Error(), tc.part) {
			t.Errorf("%s: error %v, expected one with %q", tc.name, err, tc.part)
		}
	}
}

func FuzzReadNPY(f *testing.F) {
	f.Add(npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", make([]byte, 8)))
	f.Add(npyFile("{'descr': '|b1', 'fortran_order': True, 'shape': (), }", []byte{1}))
	f.Fuzz(func(t *testing.T, file []byte) {
		if x, err := ReadNPY(bytes.NewReader(file)); err == nil {
			if err := x.WriteNPY(io.Discard); err != nil {
				t.Error(err)
			}
			x.Free()
		}
	})
}

func TestGeneratorStreamIsTheSameEverywhere(t *testing.T) {
	gpu := gpuLike(t)
	for _, name := range []string{"uniform", "normal", "bernoulli"} {
		draw := func(dev backend.Device, g *Generator, n int) []float64 {
			switch name {
			case "uniform":
				return values(t, Uniform(dev, g, Float32, -1, 1, n))
			case "normal":
				return values(t, Normal(dev, g, Float32, 0, 1, n))
			}
			return values(t, Bernoulli(dev, g, 0.3, n))
		}
		g, h := NewGenerator(42), NewGenerator(42)
		a, b := draw(CPU(), g, 21), draw(gpu, h, 21)
		checkClose(t, name, a, b, 1e-6, 1e-6)
		if _, off := g.State(); off != 6 {
			t.Errorf("%s: 21 numbers took %d groups of four, expected 6", name, off)
		}
		next := draw(CPU(), g, 21)
		if slices.Equal(a, next) {
			t.Errorf("%s: the stream does not move on", name)
		}
		g.SetState(42, 6)
		if !slices.Equal(draw(CPU(), g, 21), next) {
			t.Errorf("%s: the stream does not go on from a restored state", name)
		}
		// A long draw has the right moments.
		long := draw(CPU(), g, 100000)
		mean, m2 := 0.0, 0.0
		for _, v := range long {
			mean += v / 1e5
			m2 += v * v / 1e5
		}
		want := map[string][2]float64{"uniform": {0, 1.0 / 3}, "normal": {0, 1}, "bernoulli": {0.3, 0.3}}[name]
		if math.Abs(mean-want[0]) > 0.012 || math.Abs(m2-want[1]) > 0.02 {
			t.Errorf("%s: mean %v and second moment %v, expected %v", name, mean, m2, want)
		}
	}
}

func TestDropout(t *testing.T) {
	x := Ones(CPU(), Float32, 4000).SetRequiresGrad(true)
	y := x.Dropout(0.25, true, NewGenerator(3))
	vs := values(t, y)
	kept := 0
	for _, v := range vs {
		if v != 0 {
			kept++
			if math.Abs(v-4.0/3) > 1e-6 {
				t.Fatalf("a kept element is %v", v)
			}
		}
	}
	if kept < 2880 || kept > 3120 {
		t.Errorf("%d of 4000 elements were kept at p = 0.25", kept)
	}
	if err := y.Sum().Backward(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(values(t, x.Grad()), vs) {
		t.Error("the gradient's mask is not the forward pass's")
	}
	if x.Dropout(0.5, false, nil) != x || x.Dropout(0, true, nil) != x {
		t.Error("dropout without effect makes a copy")
	}
	if v := values(t, x.Dropout(1, true, NewGenerator(1)).Sum()); v[0] != 0 {
		t.Errorf("dropout with p = 1 leaves %v", v)
	}
}

func TestCasts(t *testing.T) {
	x := FromFloat64s([]float64{-1.7, 0, 2.5, 300, math.NaN(), math.Inf(1), 1 + 1.0/4096}, 7)
	inf := math.Inf(1)
	for d, want := range map[DType][]float64{
		Bool: {1, 0, 1, 1, 1, 1, 1}, Int32: {-1, 0, 2, 300, 0, math.MaxInt32, 1}, Int64: {-1, 0, 2, 300, 0, math.MaxInt64, 1},
		Float16: {-1.7001953125, 0, 2.5, 300, math.NaN(), inf, 1}, BFloat16: {-1.703125, 0, 2.5, 300, math.NaN(), inf, 1},
		Float32: {float64(float32(-1.7)), 0, 2.5, 300, math.NaN(), inf, 1 + 1.0/4096},
	} {
		checkClose(t, "float64 to "+d.String(), values(t, x.Cast(d)), want, 0, 0)
	}
	checkClose(t, "int64 to uint8", values(t, FromInt64s([]int64{255, 256, 257, -1}, 4).Cast(Uint8)), []float64{255, 0, 1, 255}, 0, 0)
	if y := x.Cast(Float64); y != x {
		t.Error("a cast to the same dtype makes a copy")
	}
	if d, err := ParseDType("bfloat16"); err != nil || d != BFloat16 {
		t.Errorf("ParseDType: %v, %v", d, err)
	}
	wantErr(t, second(ParseDType("float8")), nil, "unknown dtype")
}

// What fails only on the device comes with the value, and with the place of the call.
func TestFailuresOfTheDevice(t *testing.T) {
	dev := gpuLike(t).(*checked)
	x := Ones(dev, Float32, 4)
	if _, err := x.Sum().Item(); err != nil {
		t.Fatal(err)
	}
	dev.room = 0
	y := Ones(dev, Float32, 4<<20).Exp()
	if err := y.Err(); err != nil {
		t.Fatalf("error before the work ran: %v", err)
	}
	_, err := y.Sum().Item()
	wantErr(t, err, backend.ErrOutOfMemory, "full at interop_test.go:", "tried to allocate 16777216 bytes")
	if y.Err() == nil || y.Err().Error() != err.Error() {
		t.Errorf("the tensor's error is %v afterwards", y.Err())
	}
	s := NewScope(dev)
	s.Full(Float32, 1, 4<<20).Exp()
	wantErr(t, s.Close(), backend.ErrOutOfMemory)

	dev.lost = true
	for what, err := range map[string]error{"Item": second(x.Sum().Item()), "To": FromFloat32s([]float32{1}, 1).To(dev).Err(), "CPU": x.CPU().Err(), "Flush": func() error { x.Exp(); return Flush(dev) }()} {
		if !errors.Is(err, backend.ErrDeviceLost) {
			t.Errorf("%s on a lost device: %v", what, err)
		}
	}
	if v, err := FromFloat32s([]float32{1, 2}, 2).Sum().Item(); err != nil || v != 3 {
		t.Errorf("the CPU after another device was lost: %v, %v", v, err)
	}
}

func ExampleTensor_Backward() {
	w := FromFloat32s([]float32{1, 2, 3}, 3).SetRequiresGrad(true)
	loss := w.Square().Sum()
	if err := loss.Backward(); err != nil {
		fmt.Println(err)
	}
	g, err := w.Grad().Float32s()
	fmt.Println(g, err)
	// Output: [2 4 6] <nil>
}
