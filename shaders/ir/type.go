package ir

import "fmt"

// Kind is the kind of a scalar.
type Kind uint8

// The scalar kinds. Bool is a value kind only; U8, U16 and BF16 are storage kinds (see the package comment).
const (
	Void Kind = iota // the type of instructions without a result
	Bool
	U8
	U16
	I32
	U32
	I64
	F16
	BF16
	F32
	F64
	numKinds
)

var kindNames = [numKinds]string{"void", "bool", "u8", "u16", "i32", "u32", "i64", "f16", "bf16", "f32", "f64"}
var kindSizes = [numKinds]int{0, 0, 1, 2, 4, 4, 8, 2, 2, 4, 8}

// String returns the kind's name, such as "f32".
func (k Kind) String() string {
	if k >= numKinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Size returns the number of bytes of one element in memory; 0 for Void and Bool, which have no memory form.
func (k Kind) Size() int {
	if k >= numKinds {
		return 0
	}
	return kindSizes[k]
}

// IsFloat reports whether k is a floating-point kind.
func (k Kind) IsFloat() bool { return k == F16 || k == BF16 || k == F32 || k == F64 }

// IsInt reports whether k is an integer kind (Bool is not).
func (k Kind) IsInt() bool { return k == U8 || k == U16 || k == I32 || k == U32 || k == I64 }

// IsSigned reports whether k is a signed integer or a float.
func (k Kind) IsSigned() bool { return k == I32 || k == I64 || k.IsFloat() }

// IsArith reports whether values of k take arithmetic.
func (k Kind) IsArith() bool {
	return k == I32 || k == U32 || k == I64 || k == F16 || k == F32 || k == F64
}

// MaxLanes is the largest vector width of a type.
const MaxLanes = 16

// Type is the type of a value: a scalar kind and a number of lanes (1, 2, 4, 8 or 16).
type Type struct {
	Kind  Kind
	Lanes int
}

// Scalar returns the one-lane type of k.
func Scalar(k Kind) Type { return Type{k, 1} }

// Vec returns the type of lanes values of kind k.
func Vec(k Kind, lanes int) Type { return Type{k, lanes} }

// With returns the type with the same lanes and another kind.
func (t Type) With(k Kind) Type { return Type{k, t.Lanes} }

// IsVector reports whether t has more than one lane.
func (t Type) IsVector() bool { return t.Lanes > 1 }

// Bytes returns the size of a value of t in memory.
func (t Type) Bytes() int { return t.Kind.Size() * t.Lanes }

// String returns a form such as "f32" or "f32x4".
func (t Type) String() string {
	if t.Lanes > 1 {
		return fmt.Sprintf("%sx%d", t.Kind, t.Lanes)
	}
	return t.Kind.String()
}

// ValidLanes reports whether n is a possible number of lanes.
func ValidLanes(n int) bool { return n == 1 || n == 2 || n == 4 || n == 8 || n == 16 }
