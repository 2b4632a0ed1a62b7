package tensor

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// applied is what the rules say of one elementwise operator and operands of certain dtypes and layouts: the result's shape and dtype, and
// the kernel. Programs apply the same operators to the same layouts step after step, so that it is kept and shared.
type applied struct {
	op       *OpInfo
	operands []layout
	params   []float64 // of the kernel
	float    bool      // the operands alone make it compute in floating point, whatever the parameters are

	shape, strides []int
	dtype          DType
	kind           ir.Kind
	gen            *lib.Elementwise
}

// layout is how a tensor's elements lie in its storage.
type layout struct {
	dtype          DType
	shape, strides []int
	offset         int
}

// maxApplied bounds what is kept; programs with ever new shapes start anew.
const maxApplied = 8192

// appliedTable finds an applied by a hash of operator and layouts.
type appliedTable struct {
	recent [512]atomic.Pointer[applied] // by the hash, found without a lock

	mu   sync.Mutex
	rows map[uint64][]*applied
	n    int
}

// find returns what is known of the operator and the operands, or nil.
func (t *appliedTable) find(op *OpInfo, in []*Tensor, params []float64) (a *applied, gen *lib.Elementwise) {
	h := layoutHash(op, in)
	recent := &t.recent[h%uint64(len(t.recent))]
	if a := recent.Load(); a.fits(op, in) {
		if gen := a.with(params); gen != nil {
			return a, gen
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.rows[h] {
		if a.fits(op, in) {
			if gen := a.with(params); gen != nil {
				recent.Store(a)
				return a, gen
			}
		}
	}
	return nil, nil
}

func (t *appliedTable) add(a *applied, in []*Tensor) {
	h := layoutHash(a.op, in)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n++; t.rows == nil || t.n > maxApplied {
		t.rows, t.n = map[uint64][]*applied{}, 1
	}
	t.rows[h] = append(t.rows[h], a)
}

func layoutHash(op *OpInfo, in []*Tensor) uint64 {
	h := uint64(op.number)
	mix := func(v int) {
		h = (h ^ uint64(v)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	for _, x := range in {
		mix(int(x.dtype) | len(x.shape)<<8 | x.offset<<16)
		for i, d := range x.shape {
			mix(d)
			mix(x.strides[i])
		}
	}
	return h
}

// fits reports whether a is about the operator and operands of these layouts.
func (a *applied) fits(op *OpInfo, in []*Tensor) bool {
	if a == nil || a.op != op || len(a.operands) != len(in) {
		return false
	}
	for i, x := range in {
		l := &a.operands[i]
		if l.dtype != x.dtype || l.offset != x.offset || !slices.Equal(l.shape, x.shape) || !slices.Equal(l.strides, x.strides) {
			return false
		}
	}
	return true
}

// with returns the kernel with other values of the parameters; nil if they change the dtype it computes in.
func (a *applied) with(params []float64) *lib.Elementwise {
	same := true
	for i, p := range params {
		same = same && math.Float64bits(p) == math.Float64bits(a.params[i])
	}
	if same {
		return a.gen
	}
	if !a.float {
		return nil
	}
	gen := *a.gen
	gen.ScalarBits = make([]uint32, 0, len(a.gen.ScalarBits))
	for _, p := range params {
		_, bits := scalarParam(a.kind, p)
		gen.ScalarBits = append(gen.ScalarBits, bits...)
	}
	return &gen
}
