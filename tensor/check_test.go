package tensor

import "testing"

// TestChecksDoNotPileUp updates a tensor in many scopes from values that have checks: those that passed are forgotten.
func TestChecksDoNotPileUp(t *testing.T) {
	w := Zeros(CPU(), Float32, 3, 2)
	for range 50 {
		s := NewScope(CPU())
		row := Embedding(s.To(w), s.To(FromInt64s([]int64{2}, 1)))
		if err := w.CopyFrom(row.AddScalar(1)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.eng.mu.Lock()
	n := len(w.ref.st.checks)
	w.eng.mu.Unlock()
	if n > 2 {
		t.Errorf("%d checks after 50 updates", n)
	}
	if v, err := w.Float32s(); err != nil || v[5] != 50 {
		t.Errorf("%v %v, want 50", v, err)
	}
}
