package vmath

import "math"

// val is a value of the program being built.
type val int

// builder makes programs. Equal instructions become one value.
type builder struct {
	code []Instr
	seen map[Instr]val
}

func define(name string, body func(b *builder, x val) val) *Func {
	b := &builder{seen: map[Instr]val{}}
	body(b, b.emit(Instr{Op: Arg}))
	return &Func{Name: name, Code: b.code}
}

func (b *builder) emit(in Instr) val {
	if v, ok := b.seen[in]; ok {
		return v
	}
	v := val(len(b.code))
	b.code, b.seen[in] = append(b.code, in), v
	return v
}

func (b *builder) op(o Op, args ...val) val {
	in := Instr{Op: o}
	for i, p := range []*int{&in.A, &in.B, &in.C}[:len(args)] {
		*p = int(args[i])
	}
	return b.emit(in)
}

// c is a float32 constant: v rounded.
func (b *builder) c(v float64) val { return b.bits(math.Float32bits(float32(v))) }

func (b *builder) bits(w uint32) val { return b.emit(Instr{Op: Const, Bits: w}) }

func (b *builder) add(x, y val) val     { return b.op(Add, x, y) }
func (b *builder) sub(x, y val) val     { return b.op(Sub, x, y) }
func (b *builder) mul(x, y val) val     { return b.op(Mul, x, y) }
func (b *builder) div(x, y val) val     { return b.op(Div, x, y) }
func (b *builder) fma(x, y, z val) val  { return b.op(Fma, x, y, z) }
func (b *builder) fnma(x, y, z val) val { return b.op(Fnma, x, y, z) }
func (b *builder) and(x, y val) val     { return b.op(And, x, y) }
func (b *builder) lt(x, y val) val      { return b.op(Lt, x, y) }
func (b *builder) eq(x, y val) val      { return b.op(Eq, x, y) }
func (b *builder) shl(x val, n uint32) val {
	return b.emit(Instr{Op: Shl, A: int(x), Bits: n})
}
func (b *builder) sel(mask, x, y val) val { return b.op(Select, mask, x, y) }
func (b *builder) abs(x val) val          { return b.and(x, b.bits(0x7fffffff)) }

// signed gives y >= 0 the sign of x.
func (b *builder) signed(y, x val) val { return b.op(Or, y, b.and(x, b.bits(0x80000000))) }

// clamp limits x to [lo, hi] and keeps NaN.
func (b *builder) clamp(lo, hi float64, x val) val {
	return b.op(Max, b.c(lo), b.op(Min, b.c(hi), x))
}

// poly evaluates a polynomial by Horner's rule, coefficients from the highest degree down.
func (b *builder) poly(x val, coeffs ...float64) val {
	y := b.c(coeffs[0])
	for _, c := range coeffs[1:] {
		y = b.fma(y, x, b.c(c))
	}
	return y
}
