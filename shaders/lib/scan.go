package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Scan computes running sums, or products, along the middle dimension of a contiguous [Outer, N, Inner] input, in pieces of
// [ScanPiece]: each piece starts anew, and its total goes to Totals [Outer, pieces, Inner]. Where there are several
// pieces, [ScanCarry] adds the scanned totals. Floats accumulate in F32 (F64 for F64). Buffers: in, out, totals; In and Out
// are memory kinds, totals have Out's.
type Scan struct {
	Ops             []string
	Product         bool
	Outer, N, Inner int
	In, Out         Operand // Strides and Offset are ignored
}

// ScanPiece is the number of elements that one invocation of [Scan] goes through.
const ScanPiece = 256

// Pieces returns how many pieces a row has.
func (s *Scan) Pieces() int { return ceilDiv(s.N, ScanPiece) }

func scanOp(b *ir.Builder, product bool, x, y ir.Value) ir.Value {
	if product {
		return b.Mul(x, y)
	}
	return b.Add(x, y)
}

func scanStart(product bool) float64 {
	if product {
		return 1
	}
	return 0
}

// Key identifies the kernel.
func (s *Scan) Key() string {
	return fmt.Sprintf("scan|%v|%s|%s|ops %q", s.Product, operandKey(s.In), operandKey(s.Out), s.Ops)
}

// Build makes the kernel.
func (s *Scan) Build(t Target) (*ir.Kernel, error) {
	b := ir.NewBuilder("scan", t.config().local, 1, 1)
	b.SetOps(s.Ops...)
	in, out, totals := b.Buffer("in", s.In.Kind, ir.Read), b.Buffer("out", s.Out.Kind, ir.Write), b.Buffer("totals", s.Out.Kind, ir.Write)
	total, n, pieces, inner := b.Param("total", ir.U32), b.Param("n", ir.U32), b.Param("pieces", ir.U32), b.Param("inner", ir.U32)
	kind := s.Out.ValueKind()
	id := b.LinearID()
	b.If(b.Lt(id, total), func() {
		col, row := b.Rem(id, inner), b.Div(id, inner)
		piece, outer := b.Rem(row, pieces), b.Div(row, pieces)
		first := b.Mul(piece, b.U32(ScanPiece))
		last := b.Min(n, b.Add(first, b.U32(ScanPiece)))
		acc := b.Var(b.Const(ir.Scalar(kind), scanStart(s.Product)))
		b.For(first, last, b.U32(1), func(i ir.Value) {
			at := b.Add(b.Mul(b.Add(b.Mul(outer, n), i), inner), col)
			x := b.Convert(load(b, in, s.In, at, 1, accessVector, nil), kind)
			b.Set(acc, scanOp(b, s.Product, b.Get(acc), x))
			store(b, out, s.Out, at, b.Get(acc), 1, accessVector, nil)
		})
		store(b, totals, s.Out, id, b.Get(acc), 1, accessVector, nil)
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	return k, nil
}

// Launch returns the grid and the parameters.
func (s *Scan) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := t.checkElements("scan", s.Out.Kind, satMul(satMul(s.Outer, s.N), s.Inner)); err != nil {
		return groups, nil, err
	}
	total := s.Outer * s.Pieces() * s.Inner
	groups, err = t.linear("scan", total)
	return groups, []uint32{uint32(total), uint32(s.N), uint32(s.Pieces()), uint32(s.Inner)}, err
}

// Cost returns the bytes moved.
func (s *Scan) Cost() float64 { return 8 * float64(s.Outer) * float64(s.N) * float64(s.Inner) }

// ScanCarry finishes a [Scan] of several pieces: elements of a piece are combined with the scanned total of the piece before.
// Buffers: scanned [Outer, N, Inner], scanned totals [Outer, pieces, Inner], out.
type ScanCarry struct {
	Ops             []string
	Product         bool
	Outer, N, Inner int
	In, Out         Operand // In is the kind of the first two buffers
}

// Key identifies the kernel.
func (s *ScanCarry) Key() string {
	return fmt.Sprintf("scan_carry|%v|%s|%s|ops %q", s.Product, operandKey(s.In), operandKey(s.Out), s.Ops)
}

// Build makes the kernel.
func (s *ScanCarry) Build(t Target) (*ir.Kernel, error) {
	b := ir.NewBuilder("scan_carry", t.config().local, 1, 1)
	b.SetOps(s.Ops...)
	in, totals, out := b.Buffer("in", s.In.Kind, ir.Read), b.Buffer("totals", s.In.Kind, ir.Read), b.Buffer("out", s.Out.Kind, ir.Write)
	total, n, pieces, inner := b.Param("total", ir.U32), b.Param("n", ir.U32), b.Param("pieces", ir.U32), b.Param("inner", ir.U32)
	id := b.LinearID()
	b.If(b.Lt(id, total), func() {
		col, row := b.Rem(id, inner), b.Div(id, inner)
		piece, outer := b.Div(b.Rem(row, n), b.U32(ScanPiece)), b.Div(row, n)
		v := b.Var(load(b, in, s.In, id, 1, accessVector, nil))
		b.If(b.Gt(piece, b.U32(0)), func() {
			at := b.Add(b.Mul(b.Add(b.Mul(outer, pieces), b.Sub(piece, b.U32(1))), inner), col)
			b.Set(v, scanOp(b, s.Product, load(b, totals, s.In, at, 1, accessVector, nil), b.Get(v)))
		}, nil)
		store(b, out, s.Out, id, b.Convert(b.Get(v), s.Out.ValueKind()), 1, accessVector, nil)
	}, nil)
	k, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	return k, nil
}

// Launch returns the grid and the parameters.
func (s *ScanCarry) Launch(t Target) (groups [3]int, params []uint32, err error) {
	total := satMul(satMul(s.Outer, s.N), s.Inner)
	if err := t.checkElements("scan", s.In.Kind, total); err != nil {
		return groups, nil, err
	}
	groups, err = t.linear("scan", total)
	return groups, []uint32{uint32(total), uint32(s.N), uint32(ceilDiv(s.N, ScanPiece)), uint32(s.Inner)}, err
}

// Cost returns the bytes moved.
func (s *ScanCarry) Cost() float64 { return 8 * float64(s.Outer) * float64(s.N) * float64(s.Inner) }
