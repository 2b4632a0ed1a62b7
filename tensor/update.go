package tensor

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// InPlaceUpdate is a kernel over many tensors that overwrites some of them: an optimizer's step, or the unscaling of
// gradients. It is the way by which packages optim and amp change tensors.
type InPlaceUpdate struct {
	Name    string
	BodyKey string      // identifies Body
	Tensors [][]*Tensor // one row a parameter; each row has the same arrays, such as value, gradient, momentum, of equal sizes
	Access  []ir.Access // what Body does with each array
	Shared  []*Tensor   // tensors of one element that Body sees for every element, such as a scale
	Flag    *Tensor     // an int32 tensor of one element that becomes 1 where Body raises its flag; nil if there is none
	Scalars []float64   // Body sees them as float64 where one of the arrays is, else as float32

	// Body gets an element of each array, the shared values and the scalars. It returns the new values of the
	// writable arrays in order, of the kind it got, and with Flag a Bool that raises the flag (nil otherwise).
	Body func(b *ir.Builder, vals, shared, scalars []ir.Value) (out []ir.Value, flag ir.Value)
}

var opUpdate = register(&OpInfo{Name: "update", Doc: "an update of tensors in place", Kind: KindMove, Differentiable: []bool{false},
	NamesOnly: "its formula is a function of Go's, each caller's own: packages optim and amp hold theirs against references"})

// UpdateInPlace runs the update, in program order with all other work, and submits it. Parameters keep their identity. Rows
// may differ in dtypes and devices; Shared, Flag and rows must be on one device each call of the kernel. Written
// tensors must be contiguous; gradient graphs that need their old values give an error afterwards. An error that is found
// only when the operands are computed leaves the tensors of its row as they were.
func UpdateInPlace(u InPlaceUpdate) error {
	c := &call{op: opUpdate, site: here(1)}
	for _, row := range u.Tensors {
		c.in = append(c.in, row...)
	}
	c.in = append(c.in, u.Shared...)
	if u.Flag != nil {
		c.in = append(c.in, u.Flag)
	}
	for _, t := range c.in {
		if err := t.Err(); err != nil {
			return err
		}
	}
	if len(u.Tensors) == 0 {
		return nil
	}
	if err := u.check(); err != nil {
		c.in = nil // too many to list
		return c.stop("", fmt.Errorf("%s: %w", u.Name, err)).err
	}
	// Rows of equal dtypes on one device share a kernel.
	groups := map[string][][]*Tensor{}
	var order []string
	for _, row := range u.Tensors {
		key := row[0].eng.name
		for _, t := range row {
			key += " " + t.dtype.String()
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], row)
	}
	var failure error
	var touched []*engine
	for _, key := range order {
		rows := groups[key]
		e := rows[0][0].eng
		touched = append(touched, e)
		if err := u.add(c, e, rows, &failure); err != nil {
			return err
		}
	}
	for _, e := range touched {
		if err := e.flush(); err != nil {
			return err
		}
	}
	return failure
}

// check finds rows that the kernel cannot serve.
func (u *InPlaceUpdate) check() error {
	for i, row := range u.Tensors {
		if len(row) != len(u.Access) {
			return fmt.Errorf("row %d has %d tensors for %d arrays", i, len(row), len(u.Access))
		}
		for j, t := range row {
			switch {
			case t.eng != row[0].eng:
				return errorOf(ErrDevice, "expected all tensors to be on the same device, but found at least two devices, %s and %s (arrays 0 and %d of row %d)", row[0].eng.name, t.eng.name, j, i)
			case Numel(t.shape) != Numel(row[0].shape):
				return errorOf(ErrShape, "arrays 0 and %d of row %d have shapes %v and %v", j, i, row[0].shape, t.shape)
			}
			if u.Access[j]&ir.Write == 0 {
				continue
			}
			if _, ok := t.denseBinding(); !ok {
				return errorOf(ErrShape, "array %d of row %d is written, but is not contiguous", j, i)
			}
		}
	}
	one := append([]*Tensor(nil), u.Shared...)
	if u.Flag != nil {
		if u.Flag.dtype != Int32 {
			return errorOf(ErrDType, "the flag must be int32, not %s", u.Flag.dtype)
		}
		one = append(one, u.Flag)
	}
	for i, t := range one {
		if Numel(t.shape) != 1 {
			return errorOf(ErrShape, "shared tensor %d must have one element, not shape %v", i, t.shape)
		}
		for _, row := range u.Tensors {
			if row[0].eng != t.eng {
				return errorOf(ErrDevice, "shared tensor %d is on %s, but a parameter is on %s", i, t.eng.name, row[0].eng.name)
			}
		}
	}
	return nil
}

// scalarParts is how many float32 have a float64's 53 bits, for all but the smallest values: kernels have no parameters of 64 bits.
const scalarParts = 3

// addScalars gives a kernel the scalars in the precision of its arrays.
func (u *InPlaceUpdate) addScalars(k *lib.MultiTensor) {
	parts := 1
	for _, a := range k.PerTensor {
		if a.Kind == ir.F64 {
			parts = scalarParts
		}
	}
	for _, v := range u.Scalars {
		for range parts {
			part := float32(v)
			k.Scalars, k.ScalarBits = append(k.Scalars, ir.F32), append(k.ScalarBits, math.Float32bits(part))
			if v -= float64(part); math.IsInf(float64(part), 0) {
				v = 0
			}
		}
	}
	if parts == 1 {
		return
	}
	k.Body = func(b *ir.Builder, vals, shared, scalars []ir.Value) ([]ir.Value, ir.Value) {
		whole := make([]ir.Value, len(u.Scalars))
		for i := range whole {
			whole[i] = b.Convert(scalars[i*parts], ir.F64)
			for _, part := range scalars[i*parts+1 : (i+1)*parts] {
				whole[i] = b.Add(whole[i], b.Convert(part, ir.F64))
			}
		}
		return u.Body(b, vals, shared, whole)
	}
}

// add records one kernel.
func (u *InPlaceUpdate) add(c *call, e *engine, rows [][]*Tensor, failure *error) error {
	k := &lib.MultiTensor{Name: u.Name, Ops: []string{u.Name}, BodyKey: u.BodyKey, Flag: u.Flag != nil, Body: u.Body}
	c.eng = e
	var bufs []binding
	for i, row := range rows {
		k.Sizes = append(k.Sizes, Numel(row[0].shape))
		for j, t := range row {
			if i == 0 {
				k.PerTensor = append(k.PerTensor, lib.TensorBuffer{Kind: t.dtype.Kind(), Access: u.Access[j]})
			}
			b := c.dense(t)
			b.write = u.Access[j]&ir.Write != 0
			bufs = append(bufs, b)
		}
	}
	for _, t := range u.Shared {
		k.Shared = append(k.Shared, t.dtype.Kind())
		bufs = append(bufs, c.dense(t))
	}
	if u.Flag != nil {
		bufs = append(bufs, binding{st: u.Flag.ref.st, write: true})
	}
	u.addScalars(k)
	err := e.add(&node{op: u.Name, site: c.site, steps: []step{{k, bufs}}, failed: failure})
	for _, st := range c.temps {
		st.release()
	}
	c.temps = nil
	for _, row := range rows {
		for j, t := range row {
			if u.Access[j]&ir.Write != 0 {
				t.ref.st.version.Add(1)
			}
		}
	}
	if u.Flag != nil {
		u.Flag.ref.st.version.Add(1)
	}
	return err
}
