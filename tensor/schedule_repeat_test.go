package tensor

import "testing"

// TestRepeatedConstants: applications of one operator to constants of one layout share their kernel's description, and are still
// different values where they are repeated in other kernels.
func TestRepeatedConstants(t *testing.T) {
	s := NewScope(CPU())
	defer s.Close()
	sum, want := s.Zeros(Float32, 10), 0.0
	for i := range 20 {
		c := s.Full(Float32, float64(i), 10)
		u := c.MulScalar(2)
		sum, want = sum.Add(u), want+2*float64(i)
		c.Free()
		u.Free()
	}
	v, err := sum.CPU().Float64s()
	if err != nil || v[0] != want {
		t.Errorf("the sum is %v, want %v: %v", v[0], want, err)
	}
	// Each value is computed from the one before it twice: it is still repeated once.
	x := s.Full(Float32, 1, 10)
	for range 40 {
		x = x.Mul(x)
	}
	if v, err := s.Zeros(Float32, 10).Add(x).CPU().Float64s(); err != nil || v[0] != 1 {
		t.Errorf("1 squared again and again is %v: %v", v, err)
	}
}
