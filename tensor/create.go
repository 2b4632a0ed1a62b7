package tensor

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

var (
	opFrom = register(&OpInfo{Name: "from_slice", Doc: "a tensor on the CPU from a Go slice", Kind: KindMove, Inputs: []string{}})
	opFull = register(&OpInfo{Name: "full", Doc: "a tensor of one value", Kind: KindMove, Inputs: []string{}})
)

// beginOn starts an operator without operands on a device.
func beginOn(op *OpInfo, dev backend.Device) *call {
	c := &call{op: op, site: here(1)}
	e, err := engineFor(dev)
	if err != nil {
		return c.stop("", err)
	}
	c.eng = e
	return c
}

// fromSlice copies data to a CPU tensor.
func fromSlice[T any](dtype DType, data []T, shape []int) *Tensor {
	c := &call{op: opFrom, site: here(1)}
	e, err := cpuEngine()
	if err != nil {
		return c.fail("", err)
	}
	c.eng = e
	n, err := checkShape(shape)
	if err != nil {
		return c.fail("", &kindError{ErrShape, err.Error()})
	}
	if n != len(data) {
		return c.shapeFail("shape '%v' is invalid for input of size %d", shape, len(data))
	}
	raw := make([]byte, (n*dtype.Size()+3)&^3)
	if n > 0 {
		copy(raw, unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), n*dtype.Size()))
	}
	st, err := e.upload(dtype, n, raw)
	if err != nil {
		return c.fail("", err)
	}
	return newTensor(st, append([]int{}, shape...), contiguousStrides(shape), 0, dtype, nil)
}

// FromFloat32s returns a float32 tensor on the CPU with a copy of data in row-major order. Without a shape it is 0-dimensional.
func FromFloat32s(data []float32, shape ...int) *Tensor { return fromSlice(Float32, data, shape) }

// FromFloat64s returns a float64 tensor on the CPU.
func FromFloat64s(data []float64, shape ...int) *Tensor { return fromSlice(Float64, data, shape) }

// FromInt64s returns an int64 tensor on the CPU.
func FromInt64s(data []int64, shape ...int) *Tensor { return fromSlice(Int64, data, shape) }

// FromInt32s returns an int32 tensor on the CPU.
func FromInt32s(data []int32, shape ...int) *Tensor { return fromSlice(Int32, data, shape) }

// FromUint8s returns a uint8 tensor on the CPU.
func FromUint8s(data []uint8, shape ...int) *Tensor { return fromSlice(Uint8, data, shape) }

// FromBools returns a bool tensor on the CPU.
func FromBools(data []bool, shape ...int) *Tensor { return fromSlice(Bool, data, shape) }

// Scalar returns a 0-dimensional float32 tensor on the CPU. It may join tensors of any device in elementwise operators,
// and raises the dtype of integers only.
func Scalar(v float64) *Tensor { return fromSlice(Float32, []float32{float32(v)}, nil) }

// fill returns a tensor of one value on an engine, in a scope.
func fill(e *engine, s *Scope, dtype DType, v float64, shape []int) *Tensor {
	c := &call{op: opFull, site: here(1), eng: e, scope: s}
	return c.fill(dtype, v, shape)
}

func (c *call) fill(dtype DType, v float64, shape []int) *Tensor {
	if !dtype.Valid() {
		return c.fail("", errorOf(ErrDType, "no such dtype: %s", dtype))
	}
	out := c.output(append([]int{}, shape...), dtype)
	if out.err != nil {
		return out
	}
	c.run(fillKernel(dtype, shape, v), nil, out)
	return out
}

// fillKernel writes one value to a contiguous output.
func fillKernel(dtype DType, shape []int, v float64) lib.Generator {
	kind := dtype.computeKind()
	o := dtype.operand()
	g := &lib.Elementwise{Name: "fill", Ops: []string{"fill"}, BodyKey: "fill|" + kind.String(), Shape: shape, Out: []lib.Operand{o}}
	if kind == ir.I32 && v != v {
		v = 0
	}
	g.Scalars, g.ScalarBits = scalarParam(kind, v)
	g.Body = func(b *ir.Builder, _, scalars []ir.Value) []ir.Value {
		x, _ := scalarValue(b, kind, scalars)
		return []ir.Value{b.Convert(x, o.ValueKind())}
	}
	return g
}

// Full returns a tensor of value v on dev, in no scope.
func Full(dev backend.Device, d DType, v float64, shape ...int) *Tensor {
	c := beginOn(opFull, dev)
	if c.err != nil {
		return c.failed()
	}
	return c.fill(d, v, shape)
}

// Zeros returns a tensor of zeros on dev, in no scope.
func Zeros(dev backend.Device, d DType, shape ...int) *Tensor {
	c := beginOn(opFull, dev)
	if c.err != nil {
		return c.failed()
	}
	return c.fill(d, 0, shape)
}

// Ones returns a tensor of ones on dev, in no scope.
func Ones(dev backend.Device, d DType, shape ...int) *Tensor {
	c := beginOn(opFull, dev)
	if c.err != nil {
		return c.failed()
	}
	return c.fill(d, 1, shape)
}

// Zeros returns zeros on the scope's device, in the scope.
func (s *Scope) Zeros(d DType, shape ...int) *Tensor { return s.Full(d, 0, shape...) }

// Full returns a tensor of value v on the scope's device, in the scope.
func (s *Scope) Full(d DType, v float64, shape ...int) *Tensor {
	c := &call{op: opFull, site: here(1), scope: s}
	if s == nil || s.eng == nil || s.closed {
		return c.fail("", errorOf(ErrDevice, "the scope is closed or has no device"))
	}
	c.eng = s.eng
	return c.fill(d, v, shape)
}

// Arange returns 0, 1, … n-1 as int64 on dev.
func Arange(dev backend.Device, n int) *Tensor {
	c := beginOn(opFull, dev)
	if c.err != nil {
		return c.failed()
	}
	if n < 0 || int64(n) > math.MaxInt32 {
		return c.fail("", fmt.Errorf("arange of %d elements: needs 0 to %d", n, math.MaxInt32))
	}
	out := c.output([]int{n}, Int64)
	if out.err != nil {
		return out
	}
	c.run(&lib.Elementwise{Name: "arange", Ops: []string{"arange"}, BodyKey: "arange", Shape: []int{n}, Out: []lib.Operand{Int64.operand()}, Index: true,
		Body: func(b *ir.Builder, in, _ []ir.Value) []ir.Value { return []ir.Value{b.Convert(in[0], ir.I64)} }}, nil, out)
	return out
}
