package interp

import (
	"math"
	"unsafe"

	vloop "github.com/anygpu/anygpu/shaders/interp/internal/vec"
	"github.com/anygpu/anygpu/shaders/ir"
)

func asInt32(x []uint32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// compute compiles an operation whose result is a block.
func (g *generator) compute(in *ir.Instr) {
	switch in.Op {
	case ir.OpSelect:
		g.choose(in)
	case ir.OpConvert:
		a := g.blockOf(in.Args[0])
		g.emit(convertOp(in.Args[0].Type.Kind, in.Type.Kind, a, g.placeOver(in), in.Type.Lanes))
	case ir.OpBitCast:
		g.off[in.ID] = g.blockOf(in.Args[0])
	case ir.OpSplat, ir.OpExtract, ir.OpVec:
		g.vector(in)
	case ir.OpShuffleXor:
		g.exchange(in)
	default:
		switch in.Args[0].Type.Kind {
		case ir.F32:
			floatOps[float32](g, in)
		case ir.F64:
			floatOps[float64](g, in)
		case ir.I32:
			intOps[int32, uint32](g, in)
		case ir.U32:
			if in.Op == ir.OpMulHi {
				binaryOp(g, in, vectorArith(in.Op, binLoops[uint32]{mulHiVV, mulHiVS, swapped(mulHiVS)}))
				return
			}
			intOps[uint32, uint32](g, in)
		case ir.I64:
			intOps[int64, uint64](g, in)
		case ir.Bool:
			boolOps(g, in)
		default:
			g.slow(in)
		}
	}
}

// exchange compiles a shuffle within subgroups, which lie wholly in a block.
func (g *generator) exchange(in *ir.Instr) {
	a, d, mask := g.blockOf(in.Args[0]), g.place(in), int(in.Imm)
	g.emit(func(s *state) {
		out, x := vec[uint32](s, d, s.n), vec[uint32](s, a, s.n)
		for i := range out {
			if from := i ^ mask; from < len(x) {
				out[i] = x[from]
			}
		}
	})
}

func boolOps(g *generator, in *ir.Instr) {
	switch in.Op {
	case ir.OpNot:
		not := bitLoops[uint8](ir.OpXor).vs
		unaryOp(g, in, func(d, a []uint8) { not(d, a, 1) })
	case ir.OpNe:
		binaryOp(g, in, bitLoops[uint8](ir.OpXor))
	case ir.OpEq:
		binaryOp(g, in, binLoops[uint8]{eqVV[uint8], eqVS[uint8], swapped(eqVS[uint8])})
	default:
		binaryOp(g, in, bitLoops[uint8](in.Op))
	}
}

// binaryOp emits a binary operation for whichever operands are uniform; at least one is not.
func binaryOp[T any](g *generator, in *ir.Instr, f binLoops[T]) {
	x, y := g.arg(in.Args[0]), g.arg(in.Args[1])
	emitBinary(g, f, x, y, g.placeOver(in), in.Type.Lanes)
}

func emitBinary[T any](g *generator, f binLoops[T], x, y operand, d, lanes int) {
	switch {
	case x.uniform:
		sv := f.sv
		g.emit(func(s *state) { n := s.n * lanes; sv(vec[T](s, d, n), scalarAs[T](s, x), vec[T](s, y.off, n)) })
	case y.uniform:
		vs := f.vs
		g.emit(func(s *state) { n := s.n * lanes; vs(vec[T](s, d, n), vec[T](s, x.off, n), scalarAs[T](s, y)) })
	default:
		vv := f.vv
		g.emit(func(s *state) {
			n := s.n * lanes
			vv(vec[T](s, d, n), vec[T](s, x.off, n), vec[T](s, y.off, n))
		})
	}
}

// scalarAs returns a uniform operand as a T, which has the size of the operand's kind.
func scalarAs[T any](s *state, o operand) T {
	bits := s.uni[o.id]
	var v T
	switch unsafe.Sizeof(v) {
	case 1:
		*(*uint8)(unsafe.Pointer(&v)) = uint8(bits)
	case 2:
		*(*uint16)(unsafe.Pointer(&v)) = uint16(bits)
	case 4:
		*(*uint32)(unsafe.Pointer(&v)) = uint32(bits)
	default:
		*(*uint64)(unsafe.Pointer(&v)) = bits
	}
	return v
}

func unaryOp[T any](g *generator, in *ir.Instr, f func(d, a []T)) {
	a, lanes := g.blockOf(in.Args[0]), in.Type.Lanes
	d := g.placeOver(in)
	g.emit(func(s *state) { n := s.n * lanes; f(vec[T](s, d, n), vec[T](s, a, n)) })
}

func comparison[T number](g *generator, in *ir.Instr) {
	x, y, o := in.Args[0], in.Args[1], in.Op
	if g.a.class[x.ID] == uniform {
		x, y, o = y, x, mirrored(o)
	}
	a, b, lanes := g.arg(x), g.arg(y), in.Type.Lanes
	d := g.place(in)
	f := compareLoops[T](o)
	vv, vs := f.vv, f.vs
	if b.uniform {
		g.emit(func(s *state) { n := s.n * lanes; vs(vec[uint8](s, d, n), vec[T](s, a.off, n), scalarAs[T](s, b)) })
		return
	}
	g.emit(func(s *state) {
		n := s.n * lanes
		vv(vec[uint8](s, d, n), vec[T](s, a.off, n), vec[T](s, b.off, n))
	})
}

func floatOps[T floating](g *generator, in *ir.Instr) {
	switch {
	case in.Op.IsCompare():
		comparison[T](g, in)
		return
	case in.Op.IsMath():
		g.math(in)
		return
	}
	switch in.Op {
	case ir.OpDiv:
		binaryOp(g, in, vectorArith(ir.OpDiv, binLoops[T]{divVV[T], divVS[T], divSV[T]}))
	case ir.OpNeg:
		unaryOp(g, in, vectorUnary(in.Op, func(d, a []T) {
			a = a[:len(d)]
			for i := range d {
				d[i] = -a[i]
			}
		}))
	case ir.OpAbs:
		unaryOp(g, in, vectorUnary(in.Op, func(d, a []T) {
			a = a[:len(d)]
			for i := range d {
				d[i] = T(math.Abs(float64(a[i])))
			}
		}))
	case ir.OpFma:
		fma[T](g, in)
	default:
		binaryOp(g, in, arithLoops[T](in.Op))
	}
}

// fma is a product and a sum, each rounded, in one loop if no operand is uniform.
func fma[T floating](g *generator, in *ir.Instr) {
	x, y, z, lanes := g.arg(in.Args[0]), g.arg(in.Args[1]), g.arg(in.Args[2]), in.Type.Lanes
	if !x.uniform && !y.uniform && !z.uniform {
		d, loop := g.placeOver(in), fmaLoop[T]()
		g.emit(func(s *state) {
			n := s.n * lanes
			loop(vec[T](s, d, n), vec[T](s, x.off, n), vec[T](s, y.off, n), vec[T](s, z.off, n))
		})
		return
	}
	d := g.place(in)
	mul, add := arithLoops[T](ir.OpMul), arithLoops[T](ir.OpAdd)
	if x.uniform && y.uniform {
		g.emit(func(s *state) {
			n := s.n * lanes
			add.vs(vec[T](s, d, n), vec[T](s, z.off, n), T(scalarAs[T](s, x)*scalarAs[T](s, y)))
		})
		return
	}
	emitBinary(g, mul, x, y, d, lanes)
	emitBinary(g, add, operand{off: d}, z, d, lanes)
}

func intOps[T integer, W word](g *generator, in *ir.Instr) {
	if in.Op.IsCompare() {
		comparison[T](g, in)
		return
	}
	switch in.Op {
	case ir.OpAnd, ir.OpOr, ir.OpXor:
		binaryOp(g, in, bitLoops[W](in.Op))
	case ir.OpDiv, ir.OpRem:
		divide[T](g, in)
	case ir.OpShl, ir.OpShr:
		if g.a.class[in.Args[1].ID] != uniform {
			g.slow(in)
			return
		}
		vs := shlVS[T]
		if in.Op == ir.OpShr {
			vs = shrVS[T]
		}
		binaryOp(g, in, binLoops[T]{vs: vectorShift(in.Op, vs)})
	case ir.OpNot:
		not := bitLoops[W](ir.OpXor).vs
		unaryOp(g, in, func(d, a []W) { not(d, a, ^W(0)) })
	case ir.OpNeg:
		from := arithLoops[T](ir.OpSub).sv
		unaryOp(g, in, func(d, a []T) { from(d, 0, a) })
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpMin, ir.OpMax:
		binaryOp(g, in, arithLoops[T](in.Op))
	default:
		g.slow(in)
	}
}

// divide compiles an integer quotient or remainder. Invocations that are not active may have any divisor.
func divide[T integer](g *generator, in *ir.Instr) {
	x, y, lanes, rem := g.blockOf(in.Args[0]), g.arg(in.Args[1]), in.Type.Lanes, in.Op == ir.OpRem
	d, isU32 := g.placeOver(in), in.Type.Kind == ir.U32
	if y.uniform {
		g.emit(func(s *state) {
			n := s.n * lanes
			b := scalarAs[T](s, y)
			if b == 0 {
				s.fault(DivisionByZero, in, 0, 0, 0)
				return
			}
			out, a := vec[T](s, d, n), vec[T](s, x, n)
			if isU32 {
				divideU32(vec[uint32](s, d, n), vec[uint32](s, x, n), uint32(b), rem)
				return
			}
			if rem {
				for i := range out {
					out[i] = a[i] % b
				}
				return
			}
			for i := range out {
				out[i] = a[i] / b
			}
		})
		return
	}
	g.emit(func(s *state) {
		n := s.n * lanes
		out, a, b := vec[T](s, d, n), vec[T](s, x, n), vec[T](s, y.off, n)
		for i := range out {
			div := b[i]
			switch {
			case div == 0:
				if s.mask == nil || s.mask[i/lanes] != 0 {
					s.fault(DivisionByZero, in, 0, 0, 0)
				}
				out[i] = 0
			case rem:
				out[i] = a[i] % div
			default:
				out[i] = a[i] / div
			}
		}
	})
}

// slow compiles an operation by way of the scalar definition, for what is rare.
func (g *generator) slow(in *ir.Instr) {
	var offs [3]int
	for i, arg := range in.Args {
		offs[i] = g.blockOf(arg)
	}
	d, kind, lanes, count, o := g.place(in), in.Args[0].Type.Kind, in.Type.Lanes, len(in.Args), in.Op
	size, outSize := elemSize(kind), elemSize(in.Type.Kind)
	g.emit(func(s *state) {
		var x [3]uint64
		for i := range s.n * lanes {
			for j := range count {
				x[j] = element(s.at(offs[j]), size, i)
			}
			setElement(s.at(d), outSize, i, evalOp(o, kind, x[0], x[1], x[2]))
		}
	})
}

func element(block unsafe.Pointer, size, i int) uint64 {
	p := unsafe.Add(block, i*size)
	switch size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

func setElement(block unsafe.Pointer, size, i int, v uint64) {
	p := unsafe.Add(block, i*size)
	switch size {
	case 1:
		*(*uint8)(p) = uint8(v)
	case 2:
		*(*uint16)(p) = uint16(v)
	case 4:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

// math compiles a math function of F32 or F64.
func (g *generator) math(in *ir.Instr) {
	f1, f2 := unaryMath64[in.Op], binaryMath64[in.Op]
	switch {
	case f2 != nil:
		g.slow(in)
	case in.Type.Kind == ir.F64:
		unaryOp(g, in, func(d, a []float64) {
			for i, x := range a {
				d[i] = f1(x)
			}
		})
	case vloop.Math(in.Op) != nil:
		unaryOp(g, in, vloop.Math(in.Op))
	default:
		unaryOp(g, in, vectorUnary(in.Op, func(d, a []float32) {
			for i, x := range a {
				d[i] = float32(f1(float64(x)))
			}
		}))
	}
}

func (g *generator) choose(in *ir.Instr) {
	switch elemSize(in.Type.Kind) {
	case 1:
		chooseOp[uint8](g, in)
	case 2:
		chooseOp[uint16](g, in)
	case 4:
		chooseOp[uint32](g, in)
	default:
		chooseOp[uint64](g, in)
	}
}

func chooseOp[T word](g *generator, in *ir.Instr) {
	lanes := in.Type.Lanes
	if cond := in.Args[0]; g.a.class[cond.ID] == uniform {
		a, b, c := g.blockOf(in.Args[1]), g.blockOf(in.Args[2]), cond.ID
		d := g.place(in)
		g.emit(func(s *state) {
			from := b
			if s.uni[c] != 0 {
				from = a
			}
			copy(vec[T](s, d, s.n*lanes), vec[T](s, from, s.n*lanes))
		})
		return
	}
	c, x, y := g.blockOf(in.Args[0]), g.arg(in.Args[1]), g.arg(in.Args[2])
	d, f := g.placeOver(in), selectLoops[T]()
	g.emit(func(s *state) {
		n := s.n * lanes
		out, cond := vec[T](s, d, n), vec[uint8](s, c, n)
		switch {
		case x.uniform && y.uniform:
			selectSS(out, cond, scalarAs[T](s, x), scalarAs[T](s, y))
		case x.uniform:
			f.sv(out, cond, scalarAs[T](s, x), vec[T](s, y.off, n))
		case y.uniform:
			f.vs(out, cond, vec[T](s, x.off, n), scalarAs[T](s, y))
		default:
			f.vv(out, cond, vec[T](s, x.off, n), vec[T](s, y.off, n))
		}
	})
}

func (g *generator) vector(in *ir.Instr) {
	switch elemSize(in.Type.Kind) {
	case 1:
		vectorOp[uint8](g, in)
	case 2:
		vectorOp[uint16](g, in)
	case 4:
		vectorOp[uint32](g, in)
	default:
		vectorOp[uint64](g, in)
	}
}

func vectorOp[T word](g *generator, in *ir.Instr) {
	lanes := in.Type.Lanes
	switch in.Op {
	case ir.OpSplat:
		a := g.blockOf(in.Args[0])
		d := g.place(in)
		g.emit(func(s *state) {
			out, from := vec[T](s, d, s.n*lanes), vec[T](s, a, s.n)
			if lanes == 16 && unsafe.Sizeof(from[0]) == 4 && vloop.Splat(vec[uint32](s, d, s.n*lanes), vec[uint32](s, a, s.n)) {
				return
			}
			for i, x := range from {
				fill(out[i*lanes:(i+1)*lanes], x)
			}
		})
	case ir.OpExtract:
		a, from, lane := g.blockOf(in.Args[0]), in.Args[0].Type.Lanes, int(in.Imm)
		d := g.place(in)
		g.emit(func(s *state) {
			x := vec[T](s, a, s.n*from)[lane:]
			out := vec[T](s, d, s.n)
			for i := range out {
				out[i] = x[i*from]
			}
		})
	default: // OpVec
		args := make([]operand, lanes)
		for i, v := range in.Args {
			args[i] = g.arg(v)
		}
		d := g.place(in)
		g.emit(func(s *state) {
			out := vec[T](s, d, s.n*lanes)
			for l, o := range args {
				if o.uniform {
					x := scalarAs[T](s, o)
					for i := l; i < len(out); i += lanes {
						out[i] = x
					}
					continue
				}
				for i, x := range vec[T](s, o.off, s.n) {
					out[i*lanes+l] = x
				}
			}
		})
	}
}
