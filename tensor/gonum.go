package tensor

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// FromDense returns a float64 tensor on the CPU with a copy of the matrix.
func FromDense(m *mat.Dense) *Tensor {
	if m == nil || m.IsEmpty() {
		return failed(trap(fmt.Errorf("from_dense: the matrix is nil or empty")), nil)
	}
	r, c := m.Dims()
	data := make([]float64, 0, r*c)
	for i := range r {
		data = append(data, m.RawRowView(i)...)
	}
	return FromFloat64s(data, r, c)
}

// Dense returns a matrix, or a vector as a column, as a gonum matrix with a copy of the values. The tensor must be on the CPU,
// not require grad, and have at least one element.
func (t *Tensor) Dense() (*mat.Dense, error) {
	if err := t.exportable("Dense", "gonum"); err != nil {
		return nil, err
	}
	var r, c int
	switch len(t.shape) {
	case 1:
		r, c = t.shape[0], 1
	case 2:
		r, c = t.shape[0], t.shape[1]
	default:
		return nil, trap(errorOf(ErrShape, "can't make a matrix of a tensor with %d dimensions (shape %v): reshape it", len(t.shape), t.shape))
	}
	if r*c == 0 {
		return nil, trap(errorOf(ErrShape, "gonum has no matrix without elements (shape %v)", t.shape))
	}
	vs, err := t.floats()
	if err != nil {
		return nil, err
	}
	return mat.NewDense(r, c, vs), nil
}
