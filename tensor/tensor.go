package tensor

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/anygpu/anygpu/backend"
)

// Tensor is an array of one dtype on one device, or the error of the operator that should have made it. It is
// immutable, except that optimizers update parameters in place and [Tensor.MoveTo] moves one.
type Tensor struct {
	shape   []int
	strides []int // in elements
	offset  int   // in elements
	dtype   DType
	eng     *engine
	ref     *ref // nil if the tensor failed
	scope   *Scope
	err     error

	requiresGrad bool    // a leaf that collects gradients
	fnOut        int32   // which of fn's outputs it is
	fn           *gradFn // what made it, if a gradient flows through it
	grad         *Tensor // guarded by gradMu
}

// ref is a tensor's claim on a storage. It is apart from the tensor so that scopes and cleanups can give it up without
// keeping the tensor alive.
type ref struct {
	st     *storage
	done   atomic.Bool
	scoped bool  // a scope owns it
	given  bool  // up by Discard: it goes when no gradient needs it
	saves  int32 // gradients that need the value
}

// release gives the claim up; a second call does nothing.
func (r *ref) release() {
	if r != nil && !r.done.Swap(true) {
		r.leave()
		r.st.release()
	}
}

// leave takes the claim from those of scopes.
func (r *ref) leave() {
	if r.scoped {
		r.st.scoped.Add(-1)
	}
}

// newTensor makes a tensor of a storage, taking over one claim on it, and puts it into the scope (nil: none).
func newTensor(st *storage, shape, strides []int, offset int, dtype DType, s *Scope) *Tensor {
	t := &Tensor{shape: shape, strides: strides, offset: offset, dtype: dtype, eng: st.eng, ref: st.claim()}
	t.enter(s)
	return t
}

// enter puts a new tensor into a scope, or arranges that the collector frees it.
func (t *Tensor) enter(s *Scope) {
	t.scope = s
	if s == nil {
		runtime.AddCleanup(t, (*ref).bury, t.ref)
		return
	}
	s.own(t.ref)
}

// view returns a tensor of the same storage with another geometry.
func (t *Tensor) view(shape, strides []int, offset int, s *Scope) *Tensor {
	t.ref.st.retain()
	return newTensor(t.ref.st, shape, strides, offset, t.dtype, s)
}

// alias returns another tensor with the same value, without gradient, in scope s.
func (t *Tensor) alias(s *Scope) *Tensor { return t.view(t.shape, t.strides, t.offset, s) }

// failed returns a tensor that carries err.
func failed(err error, s *Scope) *Tensor {
	s.note(err)
	return &Tensor{err: err, scope: s}
}

// Shape returns the sizes of the dimensions; nil for a failed tensor. The caller may change the slice.
func (t *Tensor) Shape() []int {
	if t == nil || t.err != nil {
		return nil
	}
	return append([]int{}, t.shape...)
}

// Dim returns the number of dimensions.
func (t *Tensor) Dim() int {
	if t == nil {
		return 0
	}
	return len(t.shape)
}

// Size returns the size of dimension i, which may count from the end (-1 is the last); 0 if there is no such dimension.
func (t *Tensor) Size(i int) int {
	if t == nil {
		return 0
	}
	if i < 0 {
		i += len(t.shape)
	}
	if i < 0 || i >= len(t.shape) {
		return 0
	}
	return t.shape[i]
}

// Numel returns the number of elements; 0 for a failed tensor.
func (t *Tensor) Numel() int {
	if t == nil || t.err != nil {
		return 0
	}
	return Numel(t.shape)
}

// DType returns the type of the elements; InvalidDType for a failed tensor.
func (t *Tensor) DType() DType {
	if t == nil || t.err != nil {
		return InvalidDType
	}
	return t.dtype
}

// Device returns the device the tensor is on; nil for a failed tensor.
func (t *Tensor) Device() backend.Device {
	if t == nil || t.eng == nil {
		return nil
	}
	return t.eng.dev
}

// Scope returns the scope the tensor belongs to, or nil.
func (t *Tensor) Scope() *Scope {
	if t == nil {
		return nil
	}
	return t.scope
}

// Err returns the error of the operator that failed, here or further up the chain, or that the tensor was freed. It does
// not wait for work that is still pending; its errors come with the value.
func (t *Tensor) Err() error {
	if t == nil {
		return errNil
	}
	if t.err != nil {
		return t.err
	}
	if err := t.freedErr(); err != nil {
		return err
	}
	return t.ref.st.failure()
}

var errNil = fmt.Errorf("tensor is nil")

// freedErr says how the tensor was freed, if it was.
func (t *Tensor) freedErr() error {
	switch {
	case t.err != nil:
		return nil
	case t.eng.closed.Load():
		return errorOf(ErrFreed, "this tensor (%s) is gone: its device was closed", describe(t))
	case !t.ref.done.Load():
		return nil
	case t.ref.given:
		return errorOf(ErrFreed, "this tensor (%s) is gone: it was discarded after its last use, as values between a model's layers are; Keep, where it is computed, prevents that", describe(t))
	case t.scope != nil && t.scope.closed:
		return errorOf(ErrFreed, "this tensor (%s) was freed when its scope was closed; Keep moves a tensor out of its scope", describe(t))
	}
	return errorOf(ErrFreed, "this tensor (%s) was freed", describe(t))
}

// String returns a summary without making the device work: "tensor(float32 [2 3] on cpu)".
func (t *Tensor) String() string {
	switch {
	case t == nil:
		return "tensor(nil)"
	case t.err != nil:
		return fmt.Sprintf("tensor(failed: %v)", t.err)
	}
	s := "tensor(" + describe(t)
	switch {
	case t.ref.done.Load():
		s += ", freed"
	case t.requiresGrad:
		s += ", requires grad"
	case t.fn != nil:
		s += ", grad of " + t.fn.op.Name
	}
	return s + ")"
}

// Detach returns the same value without its history: no gradient flows through it. It shares memory with t.
func (t *Tensor) Detach() *Tensor {
	c := begin(opDetach, t)
	if c.err != nil {
		return c.failed()
	}
	return t.alias(c.scope)
}

// Keep moves the tensor out of its scope, so that it outlives it, and returns it. Free then frees it, or the collector.
func (t *Tensor) Keep() *Tensor {
	if t == nil || t.err != nil || t.scope == nil || t.ref.done.Load() {
		return t
	}
	t.ref.st.retain()
	t.eng.want(t.ref.st)
	old := t.ref
	t.ref = &ref{st: old.st}
	t.enter(nil)
	old.release()
	return t
}

// Free gives the tensor's memory back (shared memory, when its last tensor is freed). Later use of the tensor is an error,
// also by a gradient that needs it. A second call does nothing.
func (t *Tensor) Free() {
	if t != nil && t.ref != nil {
		t.ref.release()
	}
}

// Stored reports whether the value is in the device's memory: it is false before the value is computed, and for one that was fused away
// into the operators that use it. It is for diagnosis.
func (t *Tensor) Stored() bool {
	if t == nil || t.err != nil {
		return false
	}
	t.eng.mu.Lock()
	defer t.eng.mu.Unlock()
	return t.ref.st.mem != nil
}

// isDense reports whether the elements are contiguous in memory in row-major order.
func (t *Tensor) isDense() bool { return isContiguous(t.shape, t.strides) }

// sameShape reports whether two tensors have equal shapes.
func sameShape(a, b *Tensor) bool { return slices.Equal(a.shape, b.shape) }
