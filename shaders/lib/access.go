package lib

import (
	"fmt"
	"math"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// access is how the elements of a vector lie in memory.
type access uint8

const (
	accessVector access = iota // consecutive, at a multiple of the vector's lanes
	accessGather               // at a distance of stride each
	accessSplat                // one element for all lanes
)

// load reads lanes elements of o from index on and returns them as bodies see them (o.ValueKind). stride is the
// distance for accessGather; nil is 1.
func load(b *ir.Builder, m *ir.Mem, o Operand, index ir.Value, lanes int, how access, stride ir.Value) ir.Value {
	var v ir.Value
	switch {
	case lanes == 1:
		v = b.Load(m, index, 1)
	case how == accessSplat:
		return b.Splat(load(b, m, o, index, 1, accessVector, nil), lanes)
	case how == accessGather:
		parts := make([]ir.Value, lanes)
		for i := range parts {
			parts[i] = b.Load(m, advance(b, index, i, stride), 1)
		}
		v = b.Vec(parts...)
	default:
		v = b.Load(m, index, lanes)
	}
	return fromMemory(b, v, o)
}

// store writes a value as bodies make it to the elements of o from index on.
func store(b *ir.Builder, m *ir.Mem, o Operand, index, v ir.Value, lanes int, how access, stride ir.Value) {
	v = toMemory(b, v, o)
	if v == nil {
		return
	}
	v = b.Splat(v, lanes)
	if lanes == 1 || how == accessVector {
		b.Store(m, index, v)
		return
	}
	for i := range lanes {
		b.Store(m, advance(b, index, i, stride), b.Extract(v, i))
	}
}

func advance(b *ir.Builder, index ir.Value, i int, stride ir.Value) ir.Value {
	switch {
	case i == 0:
		return index
	case stride == nil:
		return b.Add(index, b.U32(uint32(i)))
	}
	return b.Add(index, b.Mul(stride, b.U32(uint32(i))))
}

// fromMemory converts a loaded value to what bodies see.
func fromMemory(b *ir.Builder, v ir.Value, o Operand) ir.Value {
	if o.Bool {
		v = b.Convert(v, ir.I32)
		return b.Ne(v, b.ConstLike(v, 0))
	}
	return b.Convert(v, o.ValueKind())
}

// toMemory converts a body's value to what memory holds. Only the value kind of the operand will do, and Bool for any U8.
func toMemory(b *ir.Builder, v ir.Value, o Operand) ir.Value {
	if v == nil {
		b.Fail(fmt.Errorf("the body returned no value for an output of kind %s", o.Kind))
		return nil
	}
	if v.Type.Kind == ir.Bool && o.Kind == ir.U8 {
		u8 := v.Type.With(ir.U8)
		return b.Select(v, b.ConstBits(u8, 1), b.ConstBits(u8, 0))
	}
	if v.Type.Kind != o.ValueKind() {
		b.Fail(fmt.Errorf("the body returned a value of kind %s for an output of kind %s, which takes %s; convert it in the body",
			v.Type.Kind, o.Kind, o.ValueKind()))
		return nil
	}
	return b.Convert(v, o.Kind)
}

// checkOperand reports an operand whose kind has no memory form that kernels can use.
func checkOperand(o Operand) error {
	switch o.Kind {
	case ir.U8, ir.I32, ir.U32, ir.I64, ir.F16, ir.BF16, ir.F32, ir.F64:
		if o.Bool && o.Kind != ir.U8 {
			return fmt.Errorf("truth values are kept as u8, not %s", o.Kind)
		}
		return nil
	}
	return fmt.Errorf("%s is no kind of an operand; use u8, i32, u32, i64, f16, bf16, f32 or f64", o.Kind)
}

// operandKey is the part of a key that says what an operand holds.
func operandKey(o Operand) string {
	if o.Bool {
		return "bool"
	}
	return o.Kind.String()
}

// checkScalars reports scalars that cannot be launch parameters.
func checkScalars(kinds []ir.Kind, bits []uint32) error {
	for i, k := range kinds {
		if k != ir.I32 && k != ir.U32 && k != ir.F32 {
			return fmt.Errorf("scalar %d has kind %s; launch parameters are i32, u32 or f32", i, k)
		}
	}
	if len(kinds) != len(bits) {
		return fmt.Errorf("%d scalars are declared but %d values given", len(kinds), len(bits))
	}
	return nil
}

// scalarParams declares the user's scalars.
func scalarParams(b *ir.Builder, kinds []ir.Kind) []ir.Value {
	out := make([]ir.Value, len(kinds))
	for i, k := range kinds {
		out[i] = b.Param(fmt.Sprintf("s%d", i), k)
	}
	return out
}

func kindsKey(kinds []ir.Kind) string {
	parts := make([]string, len(kinds))
	for i, k := range kinds {
		parts[i] = k.String()
	}
	return strings.Join(parts, ",")
}

// kernelName makes an identifier of a name for people.
func kernelName(name, fallback string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return fallback
	}
	if clean[0] >= '0' && clean[0] <= '9' {
		return "k" + clean
	}
	return clean
}

// lowest and highest return constants that no value of the type is below or above.
func lowest(b *ir.Builder, t ir.Type) ir.Value {
	switch t.Kind {
	case ir.I32:
		return b.ConstBits(t, 1<<31)
	case ir.I64:
		return b.ConstBits(t, 1<<63)
	case ir.U32:
		return b.ConstBits(t, 0)
	}
	return b.Const(t, math.Inf(-1))
}

func highest(b *ir.Builder, t ir.Type) ir.Value {
	switch t.Kind {
	case ir.I32:
		return b.ConstBits(t, math.MaxInt32)
	case ir.I64:
		return b.ConstBits(t, math.MaxInt64)
	case ir.U32:
		return b.ConstBits(t, math.MaxUint32)
	}
	return b.Const(t, math.Inf(1))
}

// iota32 returns the vector first, first+1, … of lanes lanes.
func iota32(b *ir.Builder, first ir.Value, lanes int) ir.Value {
	if lanes == 1 {
		return first
	}
	parts := make([]ir.Value, lanes)
	for i := range parts {
		parts[i] = b.U32(uint32(i))
	}
	return b.Add(b.Splat(first, lanes), b.Vec(parts...))
}
