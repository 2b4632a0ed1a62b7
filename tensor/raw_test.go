package tensor

import (
	"bytes"
	"errors"
	"testing"
)

func TestBytesRoundTrip(t *testing.T) {
	for d := Bool; d < numDTypes; d++ {
		data := make([]byte, 6*d.Size())
		for i := range data {
			data[i] = byte(i * 37)
			if d == Bool {
				data[i] = byte(i % 2)
			}
		}
		x := FromBytes(d, data, 2, 3)
		got, err := x.Bytes()
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: % x %v, want % x", d, got, err, data)
		}
		if x = x.T(); d != Bool {
			if got, err = x.Bytes(); err != nil || bytes.Equal(got, data) || len(got) != len(data) {
				t.Errorf("%s, transposed: % x %v", d, got, err)
			}
		}
	}
	if got, _ := FromBytes(Float32, []byte{0, 0, 0x80, 0x3f}, 1).Float32s(); got[0] != 1 {
		t.Errorf("bytes of 1 gave %v", got)
	}
	if got, _ := FromBytes(Bool, []byte{7}, 1).Bytes(); got[0] != 1 {
		t.Errorf("a true bool is byte %d", got[0])
	}
	if err := FromBytes(Float32, make([]byte, 5), 1).Err(); !errors.Is(err, ErrShape) {
		t.Errorf("error %v", err)
	}
	if _, err := FromFloat32s([]float32{1}, 1).SetRequiresGrad(true).Bytes(); !errors.Is(err, ErrGrad) {
		t.Errorf("error %v", err)
	}
}
