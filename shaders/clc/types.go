package clc

import (
	"fmt"
	"math"
	"strconv"

	"github.com/anygpu/anygpu/shaders/ir"
)

// scalarNames are the C names of the kinds; Bool is kept as int (see the package comment).
var scalarNames = map[ir.Kind]string{
	ir.Bool: "int", ir.U8: "uchar", ir.U16: "ushort", ir.I32: "int", ir.U32: "uint", ir.I64: "long",
	ir.F16: "half", ir.F32: "float", ir.F64: "double",
}

// typeName returns the C name of a value's type, such as "float4".
func typeName(t ir.Type) string {
	if t.Lanes > 1 {
		return scalarNames[t.Kind] + strconv.Itoa(t.Lanes)
	}
	return scalarNames[t.Kind]
}

// signedOf returns the signed integer type whose lanes are as wide as those of t: the type of a comparison's mask
// and of a select's condition.
func signedOf(t ir.Type) string {
	names := map[int]string{1: "char", 2: "short", 4: "int", 8: "long"}
	size := t.Kind.Size()
	if t.Kind == ir.Bool {
		size = 4
	}
	s := names[size]
	if t.Lanes > 1 {
		s += strconv.Itoa(t.Lanes)
	}
	return s
}

// unsignedOf returns the unsigned type in which arithmetic on the signed type t wraps.
func unsignedOf(t ir.Type) string { return "u" + typeName(t) }

// constant returns an expression for a constant of type t.
func constant(t ir.Type, bits uint64) string {
	if t.Lanes == 1 {
		return scalarConst(t.Kind, bits)
	}
	if t.Kind == ir.Bool {
		return fmt.Sprintf("(%s)(%d)", typeName(t), -int(bits&1))
	}
	return fmt.Sprintf("(%s)(%s)", typeName(t), scalarConst(t.Kind, bits))
}

func scalarConst(k ir.Kind, bits uint64) string {
	switch k {
	case ir.Bool:
		return strconv.FormatUint(bits&1, 10)
	case ir.U8:
		return fmt.Sprintf("(uchar)%d", uint8(bits))
	case ir.U16:
		return fmt.Sprintf("(ushort)%d", uint16(bits))
	case ir.U32:
		return fmt.Sprintf("%du", uint32(bits))
	case ir.I32:
		if v := int32(uint32(bits)); v != math.MinInt32 {
			return strconv.Itoa(int(v))
		}
		return "as_int(0x80000000u)" // C has no literal of this value: -2147483648 is the negation of a long
	case ir.I64:
		if v := int64(bits); v != math.MinInt64 {
			return strconv.FormatInt(v, 10) + "L"
		}
		return "as_long(0x8000000000000000ul)"
	case ir.F16:
		return fmt.Sprintf("as_half((ushort)0x%04x)", uint16(bits))
	case ir.F32:
		f := math.Float32frombits(uint32(bits))
		if f != f || math.IsInf(float64(f), 0) {
			return fmt.Sprintf("as_float(0x%08xu)", uint32(bits))
		}
		return strconv.FormatFloat(float64(f), 'x', -1, 32) + "f"
	case ir.F64:
		f := math.Float64frombits(bits)
		if f != f || math.IsInf(f, 0) {
			return fmt.Sprintf("as_double(0x%016xul)", bits)
		}
		return strconv.FormatFloat(f, 'x', -1, 64)
	}
	return "0"
}

// constComment returns the decimal value of a floating-point constant for people, or "".
func constComment(k ir.Kind, bits uint64) string {
	if !k.IsFloat() {
		return ""
	}
	size := 32
	if k == ir.F64 {
		size = 64
	}
	return " // " + strconv.FormatFloat(ir.ConstFloat(k, bits), 'g', -1, size)
}

// clean returns s with every character that is not allowed in a C identifier replaced.
func clean(s string) string {
	out := []byte(s)
	for i, c := range out {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
			out[i] = '_'
		}
	}
	return string(out)
}
