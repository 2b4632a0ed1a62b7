package ir_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

// kernelMaker builds random kernels: each invocation loads vectors of every kind, computes on them in straight-line code,
// branches and loops, and stores values of every kind.
type kernelMaker struct {
	*ir.Builder
	r      *rand.Rand
	pool   []ir.Value // values in scope
	vars   []ir.Value
	nested int
}

var fuzzKinds = append([]ir.Kind{ir.Bool}, memoryKinds...)

func (m *kernelMaker) pick() ir.Value { return m.pool[m.r.IntN(len(m.pool))] }

// pickKind returns a value whose kind satisfies ok, converting one if there is none.
func (m *kernelMaker) pickKind(ok func(ir.Kind) bool) ir.Value {
	for range 20 {
		if v := m.pick(); ok(v.Type.Kind) {
			return v
		}
	}
	for {
		if k := fuzzKinds[m.r.IntN(len(fuzzKinds))]; ok(k) {
			return m.Convert(m.pick(), k)
		}
	}
}

// like returns a random value of type t.
func (m *kernelMaker) like(t ir.Type) ir.Value {
	v := m.Convert(m.pick(), t.Kind)
	if v.Type.Lanes != t.Lanes {
		v = m.Splat(m.Extract(v, m.r.IntN(v.Type.Lanes)), t.Lanes)
	}
	return v
}

func isInt(k ir.Kind) bool { return k == ir.I32 || k == ir.U32 || k == ir.I64 }

// step appends one random operation and puts its value into the pool.
func (m *kernelMaker) step() {
	var v ir.Value
	switch m.r.IntN(14) {
	case 0, 1, 2: // arithmetic
		x := m.pickKind(ir.Kind.IsArith)
		y := m.like(x.Type)
		ops := []ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpMin, ir.OpMax, ir.OpDiv}
		op := ops[m.r.IntN(len(ops))]
		if x.Type.Kind.IsFloat() && (op == ir.OpMin || op == ir.OpMax) { // unspecified for NaN
			v = m.MinNaN(x, y)
			break
		}
		if op == ir.OpDiv && !x.Type.Kind.IsFloat() {
			y = m.Select(m.Eq(y, m.ConstLike(y, 0)), m.ConstLike(y, 7), y)
			if x.Type.Kind != ir.U32 { // not the least number divided by -1
				x = m.Shr(x, m.ConstLike(x, 1))
			}
			if m.r.IntN(2) == 0 {
				op = ir.OpRem
			}
		}
		v = m.Emit(op, x.Type, 0, nil, x, y)
	case 3: // signs
		x := m.pickKind(func(k ir.Kind) bool { return k.IsArith() && k.IsSigned() })
		v = m.Neg(m.Abs(x))
	case 4: // bits
		x := m.pickKind(func(k ir.Kind) bool { return isInt(k) || k == ir.Bool })
		v = m.Emit([]ir.Op{ir.OpAnd, ir.OpOr, ir.OpXor}[m.r.IntN(3)], x.Type, 0, nil, x, m.Not(m.like(x.Type)))
	case 5: // shifts
		x := m.pickKind(isInt)
		width := float64(8*x.Type.Kind.Size() - 1)
		n := m.And(m.like(x.Type), m.ConstLike(x, width))
		v = m.Emit([]ir.Op{ir.OpShl, ir.OpShr}[m.r.IntN(2)], x.Type, 0, nil, x, n)
	case 6: // comparisons
		x := m.pickKind(ir.Kind.IsArith)
		op := ir.OpEq + ir.Op(m.r.IntN(6))
		v = m.Emit(op, x.Type.With(ir.Bool), 0, nil, x, m.like(x.Type))
	case 7: // choice
		x := m.pick()
		v = m.Select(m.like(x.Type.With(ir.Bool)), x, m.like(x.Type))
	case 8, 9:
		v = m.Convert(m.pick(), fuzzKinds[m.r.IntN(len(fuzzKinds))])
	case 10: // integers as floats
		x := m.pickKind(func(k ir.Kind) bool { return k == ir.U32 || k == ir.U16 })
		to := []ir.Kind{ir.F32, ir.I32}
		if x.Type.Kind == ir.U16 {
			to = []ir.Kind{ir.F16, ir.BF16}
		}
		v = m.BitCast(x, to[m.r.IntN(2)])
	case 11: // lanes
		x := m.pick()
		n := []int{1, 2, 4, 8, 16}[m.r.IntN(5)]
		parts := make([]ir.Value, n)
		for i := range parts {
			parts[i] = m.Extract(x, m.r.IntN(x.Type.Lanes))
		}
		v = m.Vec(parts...)
	case 12: // functions that are exact, or rounded once, everywhere
		x := m.pickKind(func(k ir.Kind) bool { return k == ir.F32 || k == ir.F16 })
		ops := []ir.Op{ir.OpFloor, ir.OpCeil, ir.OpTrunc, ir.OpRound, ir.OpSqrt}
		v = m.Math(ops[m.r.IntN(len(ops))], x)
	case 13:
		m.control()
		return
	}
	m.pool = append(m.pool, v)
}

// control appends a branch, a loop, or an access to a variable.
func (m *kernelMaker) control() {
	if len(m.vars) == 0 || m.r.IntN(4) == 0 {
		m.vars = append(m.vars, m.Var(m.pick()))
	}
	set := func() {
		v := m.vars[m.r.IntN(len(m.vars))]
		m.Set(v, m.like(v.Type))
	}
	set()
	if m.nested < 2 {
		inner := func() {
			pool, vars := len(m.pool), len(m.vars)
			for range 3 {
				m.step()
			}
			set()
			m.pool, m.vars = m.pool[:pool], m.vars[:vars]
		}
		m.nested++
		if m.r.IntN(2) == 0 {
			c := m.Extract(m.like(ir.Scalar(ir.Bool)), 0)
			m.If(c, inner, inner)
		} else {
			m.Range(m.U32(3), func(i ir.Value) {
				m.pool = append(m.pool, i)
				inner()
				m.pool = m.pool[:len(m.pool)-1]
			})
		}
		m.nested--
	}
	m.pool = append(m.pool, m.Get(m.vars[m.r.IntN(len(m.vars))]))
}

// randomKernel returns a kernel of one workgroup of 4 invocations and its buffers.
func randomKernel(seed uint64) (*ir.Kernel, [][]byte, error) {
	m := &kernelMaker{Builder: ir.NewBuilder("random", 4, 1, 1), r: rand.New(rand.NewPCG(seed, 11))}
	const lanes, n = 16, 4 * 16
	var bufs [][]byte
	i := m.Mul(m.LocalID(0), m.U32(lanes))
	for _, kind := range memoryKinds {
		mem := m.Buffer("in_"+kind.String(), kind, ir.Read)
		bufs = append(bufs, randomBytes(m.r, kind, n))
		w := []int{1, 2, 4, 8, 16}[m.r.IntN(5)]
		m.pool = append(m.pool, m.Load(mem, i, w))
	}
	for range 25 {
		m.step()
	}
	for _, kind := range memoryKinds {
		mem := m.Buffer("out_"+kind.String(), kind, ir.Write)
		bufs = append(bufs, randomBytes(m.r, kind, n))
		w := []int{1, 2, 4, 8, 16}[m.r.IntN(5)]
		m.Store(mem, i, m.like(ir.Vec(kind, w)))
	}
	k, err := m.Build()
	return k, bufs, err
}

// FuzzLower compares random kernels with their lowerings to several devices.
func FuzzLower(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		k, bufs, err := randomKernel(seed)
		if err != nil {
			t.Fatal(fmt.Errorf("seed %d: %w", seed, err))
		}
		agree(t, k, 1, bufs)
	})
}
