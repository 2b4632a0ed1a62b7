package tensor

import (
	"math"
	"slices"
	"testing"
)

func int64s(t *testing.T, x *Tensor) []int64 {
	t.Helper()
	vs, err := x.CPU().Int64s()
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func TestRandintAndRandperm(t *testing.T) {
	a := int64s(t, Randint(CPU(), NewGenerator(3), -5, 12, 1000))
	if b := int64s(t, Randint(gpuLike(t), NewGenerator(3), -5, 12, 1000)); !slices.Equal(a, b) {
		t.Error("the stream differs between devices")
	}
	count := map[int64]int{}
	for _, v := range a {
		count[v]++
	}
	for v := int64(-5); v < 12; v++ {
		if n := count[v]; n < 30 || n > 95 { // 59 expected
			t.Errorf("%d drawn %d times of 1000", v, n)
		}
		delete(count, v)
	}
	if len(count) > 0 {
		t.Errorf("out of range: %v", count)
	}
	wide := int64s(t, Randint(CPU(), NewGenerator(1), 1<<40, 1<<40+1, 3))
	if !slices.Equal(wide, []int64{1 << 40, 1 << 40, 1 << 40}) {
		t.Errorf("a range of one: %v", wide)
	}
	p := int64s(t, Randperm(CPU(), NewGenerator(7), 200))
	if q := int64s(t, Randperm(gpuLike(t), NewGenerator(7), 200)); !slices.Equal(p, q) {
		t.Error("the permutation differs between devices")
	}
	sorted := slices.Clone(p)
	slices.Sort(sorted)
	same := 0
	for i, v := range sorted {
		if v != int64(i) {
			t.Fatal("not a permutation")
		}
		if p[i] == v {
			same++
		}
	}
	if same > 10 {
		t.Errorf("%d of 200 are where they were", same)
	}
	wantErr(t, Randint(CPU(), NewGenerator(1), 5, 5, 2).Err(), nil, "randint at", "less than")
	wantErr(t, Randperm(CPU(), NewGenerator(1), -1).Err(), nil, "randperm at", "non-negative")
}

func TestMultinomial(t *testing.T) {
	w := FromFloat32s([]float32{1, 0, 3, 4, 0, 0, 0, 2}, 2, 4)
	rows := w.Slice(0, 0, 1, 1).Expand(2000, 4)
	for _, replacement := range []bool{true, false} {
		first := int64s(t, rows.Multinomial(NewGenerator(11), 2, replacement).Select(1, 0))
		count := make([]float64, 4)
		for _, v := range first {
			count[v]++
		}
		for i, want := range []float64{250, 0, 750, 1000} {
			if math.Abs(count[i]-want) > 4*math.Sqrt(want) {
				t.Errorf("replacement %v: class %d drawn %v times, expected about %v", replacement, i, count[i], want)
			}
		}
	}
	both := int64s(t, rows.Multinomial(NewGenerator(11), 3, false))
	for i := 0; i < len(both); i += 3 {
		drawn := slices.Clone(both[i : i+3])
		slices.Sort(drawn)
		if !slices.Equal(drawn, []int64{0, 2, 3}) {
			t.Fatalf("row %d without replacement: %v", i/3, both[i:i+3])
		}
	}
	if got := int64s(t, w.Multinomial(NewGenerator(2), 5, true).Select(0, 1)); !slices.Equal(got, []int64{3, 3, 3, 3, 3}) {
		t.Errorf("the only class: %v", got)
	}
}
