package tensor

// Bytes returns a copy of the elements in row-major order as little-endian bytes, as files have them: 1 byte for bool and
// uint8, 2 for float16 and bfloat16, and so on. The tensor must be on the CPU and not require grad.
func (t *Tensor) Bytes() ([]byte, error) {
	if err := t.exportable("Bytes", "bytes"); err != nil {
		return nil, err
	}
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	size := t.dtype.Size()
	return littleEndian(data[:Numel(t.shape)*size], size), nil
}

// FromBytes returns a CPU tensor with a copy of little-endian elements in row-major order, as [Tensor.Bytes] gives them. A bool
// is true where its byte is not 0.
func FromBytes(d DType, data []byte, shape ...int) *Tensor {
	c := &call{op: opFrom, site: here(1)}
	e, err := cpuEngine()
	if err != nil {
		return c.fail("", err)
	}
	c.eng = e
	if !d.Valid() {
		return c.fail("", errorOf(ErrDType, "no such dtype: %s", d))
	}
	n, err := checkShape(shape)
	if err != nil {
		return c.fail("", &kindError{ErrShape, err.Error()})
	}
	if n*d.Size() != len(data) {
		return c.fail("", errorOf(ErrShape, "shape %v of %s needs %d bytes, got %d", shape, d, n*d.Size(), len(data)))
	}
	raw := make([]byte, (len(data)+3)&^3)
	copy(raw, data)
	littleEndian(raw[:len(data)], d.Size())
	if d == Bool {
		for i, v := range raw {
			raw[i] = min(v, 1)
		}
	}
	st, err := e.upload(d, n, raw)
	if err != nil {
		return c.fail("", err)
	}
	return newTensor(st, append([]int{}, shape...), contiguousStrides(shape), 0, d, nil)
}
