package ir

import (
	"fmt"
	"math"

	"github.com/x448/float16"
)

// ConstBits returns the bits of value v as kind k, as OpConst keeps them in Imm: floats are rounded to nearest
// even, integers are truncated, Bool is 0 or 1.
func ConstBits(k Kind, v float64) uint64 {
	switch k {
	case Bool:
		if v != 0 {
			return 1
		}
		return 0
	case U8:
		return uint64(uint8(int64(v)))
	case U16:
		return uint64(uint16(int64(v)))
	case I32:
		return uint64(uint32(int32(int64(v))))
	case U32:
		return uint64(uint32(int64(v)))
	case I64:
		return uint64(int64(v))
	case F16:
		return uint64(F32ToF16(float32(v)))
	case BF16:
		return uint64(F32ToBF16(float32(v)))
	case F32:
		return uint64(math.Float32bits(float32(v)))
	case F64:
		return math.Float64bits(v)
	}
	return 0
}

// ConstFloat returns the value of the bits of a constant of kind k; for I64 beyond 2^53 it is rounded.
func ConstFloat(k Kind, bits uint64) float64 {
	switch k {
	case Bool, U8, U16, U32:
		return float64(bits)
	case I32:
		return float64(int32(uint32(bits)))
	case I64:
		return float64(int64(bits))
	case F16:
		return float64(F16ToF32(uint16(bits)))
	case BF16:
		return float64(BF16ToF32(uint16(bits)))
	case F32:
		return float64(math.Float32frombits(uint32(bits)))
	case F64:
		return math.Float64frombits(bits)
	}
	return 0
}

// F32ToF16 rounds to the nearest IEEE half precision value, ties to even; NaN stays NaN.
func F32ToF16(f float32) uint16 { return float16.Fromfloat32(f).Bits() }

// F16ToF32 converts exactly.
func F16ToF32(h uint16) float32 { return float16.Frombits(h).Float32() }

// F32ToBF16 rounds to the nearest bfloat16, ties to even; NaN stays NaN.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + (b >> 16 & 1)) >> 16)
}

// BF16ToF32 converts exactly.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func constText(k Kind, bits uint64) string {
	switch k {
	case F16, BF16, F32, F64:
		v := ConstFloat(k, bits)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprintf("%v(%#x)", v, bits)
		}
		return fmt.Sprintf("%v", v)
	case I32:
		return fmt.Sprint(int32(uint32(bits)))
	case I64:
		return fmt.Sprint(int64(bits))
	case Bool:
		return fmt.Sprint(bits != 0)
	}
	return fmt.Sprint(bits)
}
