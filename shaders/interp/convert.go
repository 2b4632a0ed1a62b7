package interp

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// convertBits converts a scalar from one kind to another as ir.OpConvert does.
func convertBits(from, to ir.Kind, v uint64) uint64 {
	if from == to {
		return v
	}
	switch from {
	case ir.F16:
		return fromF32(ir.F16ToF32(uint16(v)), to)
	case ir.BF16:
		return fromF32(ir.BF16ToF32(uint16(v)), to)
	case ir.F32:
		return fromF32(f32of(v), to)
	case ir.F64:
		return fromF64(f64of(v), to)
	case ir.I32:
		return fromI64(int64(i32of(v)), to)
	}
	return fromI64(int64(v), to) // Bool, U8, U16 and U32 are zero-extended; I64
}

func fromF32(f float32, to ir.Kind) uint64 {
	switch to {
	case ir.F16:
		return uint64(ir.F32ToF16(f))
	case ir.BF16:
		return uint64(ir.F32ToBF16(f))
	case ir.F32:
		return bitsF32(f)
	}
	return fromF64(float64(f), to)
}

func fromF64(f float64, to ir.Kind) uint64 {
	switch to {
	case ir.Bool:
		return bitsBool(f != 0)
	case ir.U8:
		return uint64(saturate(f, 0, math.MaxUint8))
	case ir.U16:
		return uint64(saturate(f, 0, math.MaxUint16))
	case ir.I32:
		return bitsI32(int32(saturate(f, math.MinInt32, math.MaxInt32)))
	case ir.U32:
		return uint64(saturate(f, 0, math.MaxUint32))
	case ir.I64:
		return uint64(saturateI64(f))
	case ir.F64:
		return bitsF64(f)
	}
	return fromF32(float32(f), to)
}

// saturate truncates f to an integer within [lo, hi]; NaN gives 0. The bounds are exact in float64.
func saturate(f, lo, hi float64) int64 {
	switch {
	case f != f:
		return 0
	case f <= lo:
		return int64(lo)
	case f >= hi:
		return int64(hi)
	}
	return int64(f)
}

func saturateI64(f float64) int64 {
	switch {
	case f != f:
		return 0
	case f < -0x1p63:
		return math.MinInt64
	case f >= 0x1p63:
		return math.MaxInt64
	}
	return int64(f)
}

func fromI64(i int64, to ir.Kind) uint64 {
	switch to {
	case ir.Bool:
		return bitsBool(i != 0)
	case ir.U8:
		return uint64(uint8(i))
	case ir.U16:
		return uint64(uint16(i))
	case ir.I32, ir.U32:
		return uint64(uint32(i))
	case ir.I64:
		return uint64(i)
	case ir.F64:
		return bitsF64(float64(i))
	}
	return fromF32(float32(i), to)
}
