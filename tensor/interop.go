package tensor

import (
	"encoding/binary"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Item returns the value of a tensor of one element; bool is 0 or 1, and int64 beyond 2^53 is rounded. It works on any
// device, submits pending work and waits for the value, and so returns every error that led to it.
func (t *Tensor) Item() (float64, error) {
	if err := t.Err(); err != nil {
		return 0, err
	}
	if n := Numel(t.shape); n != 1 {
		return 0, trap(errorOf(ErrShape, "a Tensor with %d elements cannot be converted to Scalar", n))
	}
	vs, err := t.floats()
	if err != nil {
		return 0, err
	}
	return vs[0], nil
}

// exportable says what keeps a tensor from leaving to Go.
func (t *Tensor) exportable(what, to string) error {
	if err := t.Err(); err != nil {
		return err
	}
	if !t.eng.isCPU {
		return trap(errorOf(ErrDevice, "can't export a %s tensor to %s: call CPU() first to copy it to host memory", t.eng.name, to))
	}
	if t.needsGrad() {
		return trap(errorOf(ErrGrad, "can't call %s() on Tensor that requires grad. Use Detach().%s() instead", what, what))
	}
	return nil
}

func (t *Tensor) wrongDType(what, use string) error {
	return trap(errorOf(ErrDType, "can't call %s() on a %s tensor: use %s, or Cast", what, t.dtype, use))
}

// Float32s returns the elements of a float32, float16 or bfloat16 tensor in row-major order. The tensor must be on the
// CPU and not require grad.
func (t *Tensor) Float32s() ([]float32, error) {
	if err := t.exportable("Float32s", "a Go slice"); err != nil {
		return nil, err
	}
	if t.dtype != Float32 && t.dtype != Float16 && t.dtype != BFloat16 {
		return nil, t.wrongDType("Float32s", "Float64s or Int64s")
	}
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	out := make([]float32, Numel(t.shape))
	for i := range out {
		switch t.dtype {
		case Float32:
			out[i] = math.Float32frombits(binary.NativeEndian.Uint32(data[4*i:]))
		case Float16:
			out[i] = ir.F16ToF32(binary.NativeEndian.Uint16(data[2*i:]))
		default:
			out[i] = ir.BF16ToF32(binary.NativeEndian.Uint16(data[2*i:]))
		}
	}
	return out, nil
}

// Float64s returns the elements of a tensor of any dtype in row-major order. The tensor must be on the CPU and not require
// grad.
func (t *Tensor) Float64s() ([]float64, error) {
	if err := t.exportable("Float64s", "a Go slice"); err != nil {
		return nil, err
	}
	return t.floats()
}

// floats reads the elements from any device.
func (t *Tensor) floats() ([]float64, error) {
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	out := make([]float64, Numel(t.shape))
	kind, size := t.dtype.Kind(), t.dtype.Size()
	for i := range out {
		out[i] = ir.ConstFloat(kind, elementBits(data, i, size))
	}
	return out, nil
}

// elementBits returns element i's bits.
func elementBits(data []byte, i, size int) uint64 {
	switch size {
	case 1:
		return uint64(data[i])
	case 2:
		return uint64(binary.NativeEndian.Uint16(data[2*i:]))
	case 4:
		return uint64(binary.NativeEndian.Uint32(data[4*i:]))
	}
	return binary.NativeEndian.Uint64(data[8*i:])
}

// Int64s returns the elements of an integer or bool tensor in row-major order. The tensor must be on the CPU.
func (t *Tensor) Int64s() ([]int64, error) {
	if err := t.exportable("Int64s", "a Go slice"); err != nil {
		return nil, err
	}
	if t.dtype.IsFloat() {
		return nil, t.wrongDType("Int64s", "Float64s")
	}
	return t.readInt64s()
}

func (t *Tensor) readInt64s() ([]int64, error) {
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	out := make([]int64, Numel(t.shape))
	for i := range out {
		bits := elementBits(data, i, t.dtype.Size())
		if t.dtype == Int32 {
			out[i] = int64(int32(uint32(bits)))
		} else {
			out[i] = int64(bits)
		}
	}
	return out, nil
}

// Uint8s returns the elements of a uint8 or bool tensor in row-major order. The tensor must be on the CPU.
func (t *Tensor) Uint8s() ([]uint8, error) {
	if err := t.exportable("Uint8s", "a Go slice"); err != nil {
		return nil, err
	}
	if t.dtype != Uint8 && t.dtype != Bool {
		return nil, t.wrongDType("Uint8s", "Float64s or Int64s")
	}
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	return data[:Numel(t.shape)], nil
}

// Bools returns the elements of a bool tensor in row-major order. The tensor must be on the CPU.
func (t *Tensor) Bools() ([]bool, error) {
	if err := t.exportable("Bools", "a Go slice"); err != nil {
		return nil, err
	}
	if t.dtype != Bool {
		return nil, t.wrongDType("Bools", "Float64s or Int64s")
	}
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	out := make([]bool, Numel(t.shape))
	for i := range out {
		out[i] = data[i] != 0
	}
	return out, nil
}
