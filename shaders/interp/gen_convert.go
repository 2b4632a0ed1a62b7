package interp

import (
	"math"
	"unsafe"

	"github.com/anygpu/anygpu/shaders/ir"
)

// convertOp converts a block of kind from at offset a to a block of kind to at offset d, which may be the same block if the
// kinds have one size.
func convertOp(from, to ir.Kind, a, d, lanes int) op {
	if f := fastConvert(from, to); f != nil {
		return func(s *state) { f(s.at(d), s.at(a), s.n*lanes) }
	}
	size, outSize := elemSize(from), elemSize(to)
	return func(s *state) {
		for i := range s.n * lanes {
			setElement(s.at(d), outSize, i, convertBits(from, to, element(s.at(a), size, i)))
		}
	}
}

// converter converts n elements.
type converter func(d, a unsafe.Pointer, n int)

type kindPair struct{ from, to ir.Kind }

// fastConverters are the conversions that kernels do often.
var fastConverters = map[kindPair]converter{
	{ir.F16, ir.F32}:  over(vectorConvert(halves.FromF16, f16ToF32s)),
	{ir.F32, ir.F16}:  over(vectorConvert(halves.ToF16, f32ToF16s)),
	{ir.BF16, ir.F32}: over(vectorConvert(halves.FromBF16, bf16ToF32s)),
	{ir.F32, ir.BF16}: over(vectorConvert(halves.ToBF16, f32ToBF16s)),
	{ir.U8, ir.U32}:   over(vectorConvert(numberLoops.U8ToU32, numbers[uint8, uint32])),
	{ir.U8, ir.I32}:   over(vectorConvert(numberLoops.U8ToU32, numbers[uint8, uint32])), // the same bits
	{ir.U8, ir.F32}:   over(vectorConvert(numberLoops.U8ToF32, numbers[uint8, float32])),
	{ir.Bool, ir.U32}: over(vectorConvert(numberLoops.U8ToU32, numbers[uint8, uint32])),
	{ir.Bool, ir.I32}: over(vectorConvert(numberLoops.U8ToU32, numbers[uint8, uint32])),
	{ir.Bool, ir.F32}: over(vectorConvert(numberLoops.U8ToF32, numbers[uint8, float32])),
	{ir.Bool, ir.U8}:  over(numbers[uint8, uint8]), {ir.Bool, ir.I64}: over(numbers[uint8, int64]), {ir.Bool, ir.F64}: over(numbers[uint8, float64]),
	{ir.U8, ir.Bool}: over(truths[uint8]), {ir.I32, ir.Bool}: over(truths[int32]), {ir.U32, ir.Bool}: over(truths[uint32]),
	{ir.I64, ir.Bool}: over(truths[int64]), {ir.F32, ir.Bool}: over(truths[float32]), {ir.F64, ir.Bool}: over(truths[float64]),
	{ir.I32, ir.U8}: over(numbers[int32, uint8]), {ir.U32, ir.U8}: over(numbers[uint32, uint8]), {ir.I64, ir.U8}: over(numbers[int64, uint8]),
	{ir.I32, ir.U32}: over(numbers[int32, uint32]), {ir.U32, ir.I32}: over(numbers[uint32, int32]),
	{ir.I32, ir.I64}: over(numbers[int32, int64]), {ir.U32, ir.I64}: over(numbers[uint32, int64]), {ir.U8, ir.I64}: over(numbers[uint8, int64]),
	{ir.I64, ir.I32}: over(numbers[int64, int32]), {ir.I64, ir.U32}: over(numbers[int64, uint32]),
	{ir.I32, ir.F32}: over(vectorConvert(numberLoops.I32ToF32, numbers[int32, float32])), {ir.U32, ir.F32}: over(numbers[uint32, float32]), {ir.I64, ir.F32}: over(numbers[int64, float32]),
	{ir.I32, ir.F64}: over(numbers[int32, float64]), {ir.U32, ir.F64}: over(numbers[uint32, float64]), {ir.I64, ir.F64}: over(numbers[int64, float64]),
	{ir.F32, ir.F64}: over(numbers[float32, float64]), {ir.F64, ir.F32}: over(numbers[float64, float32]),
	{ir.F32, ir.I32}: over(vectorConvert(numberLoops.F32ToI32, f32ToI32s)), {ir.F32, ir.U32}: over(f32ToU32s), {ir.F32, ir.I64}: over(f32ToI64s), {ir.F32, ir.U8}: over(f32ToU8s),
}

func fastConvert(from, to ir.Kind) converter { return fastConverters[kindPair{from, to}] }

// over adapts a conversion of slices.
func over[A, D any](f func(d []D, a []A)) converter {
	return func(d, a unsafe.Pointer, n int) { f(unsafe.Slice((*D)(d), n), unsafe.Slice((*A)(a), n)) }
}

// numbers converts where Go's conversion is the IR's: not from floats to integers.
func numbers[A, D uint8 | number](d []D, a []A) {
	a = a[:len(d)]
	for i := range d {
		d[i] = D(a[i])
	}
}

func truths[A uint8 | number](d []uint8, a []A) { neVS(d, a, 0) }

func f32ToI32s(d []int32, a []float32) {
	for i, x := range a {
		if x > -0x1p31 && x < 0x1p31 {
			d[i] = int32(x)
		} else {
			d[i] = int32(saturate(float64(x), math.MinInt32, math.MaxInt32))
		}
	}
}

func f32ToU32s(d []uint32, a []float32) {
	for i, x := range a {
		d[i] = uint32(saturate(float64(x), 0, math.MaxUint32))
	}
}

func f32ToI64s(d []int64, a []float32) {
	for i, x := range a {
		d[i] = saturateI64(float64(x))
	}
}

func f32ToU8s(d []uint8, a []float32) {
	for i, x := range a {
		d[i] = uint8(saturate(float64(x), 0, math.MaxUint8))
	}
}

func bf16ToF32s(d []float32, a []uint16) {
	for i, h := range a {
		d[i] = math.Float32frombits(uint32(h) << 16)
	}
}

func f32ToBF16s(d []uint16, a []float32) {
	for i, x := range a {
		d[i] = ir.F32ToBF16(x)
	}
}

// f16ToF32s places the exponent and the mantissa. Subnormal values are integers times 2^-24: that avoids subnormal
// operands, which are slow on many processors.
func f16ToF32s(d []float32, a []uint16) {
	d = d[:len(a)]
	for i, h := range a {
		b := uint32(h&0x7fff) << 13
		switch {
		case b >= 0x0f800000: // infinity, NaN
			if b&0x007fffff != 0 {
				b |= 0x00400000 // a quiet NaN
			}
			b |= 0x7f800000
		case b >= 0x00800000:
			b += 112 << 23
		default:
			b = math.Float32bits(float32(int32(h&0x3ff)) * 0x1p-24)
		}
		d[i] = math.Float32frombits(b | uint32(h&0x8000)<<16)
	}
}

// f32ToF16s rounds to nearest even: normal results by integer arithmetic on the bits, subnormal ones by adding a constant
// that leaves their bits at the end of the mantissa (F. Giesen, "float->half variants", 2012).
func f32ToF16s(d []uint16, a []float32) {
	for i, x := range a {
		b := math.Float32bits(x)
		sign := uint16(b >> 16 & 0x8000)
		b &= 0x7fffffff
		switch {
		case b >= 0x47800000: // 65536 and more, infinity, NaN
			if b > 0x7f800000 {
				d[i] = ir.F32ToF16(x)
			} else {
				d[i] = sign | 0x7c00
			}
		case b < 0x38800000: // below 2^-14
			f := math.Float32frombits(b) + 0.5
			d[i] = sign | uint16(math.Float32bits(f)-0x3f000000)
		default:
			b += 0xc8000fff + (b >> 13 & 1) // the exponent's bias, and half a unit rounded to even
			d[i] = sign | uint16(b>>13)
		}
	}
}

// ConvertSlice converts the elements in src, of kind from, to kind to in dst, as ir.OpConvert does; both are aligned to
// their elements, and dst has room for as many as src has.
func ConvertSlice(dst []byte, to ir.Kind, src []byte, from ir.Kind) {
	n := min(len(src)/elemSize(from), len(dst)/elemSize(to))
	if n == 0 {
		return
	}
	if from == to {
		copy(dst[:n*elemSize(to)], src)
		return
	}
	d, a := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	if f := fastConvert(from, to); f != nil {
		f(d, a, n)
		return
	}
	for i := range n {
		v := convertBits(from, to, element(a, elemSize(from), i))
		setElement(d, elemSize(to), i, v)
	}
}
