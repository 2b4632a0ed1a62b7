package tensor

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// DType is the type of a tensor's elements.
type DType uint8

// The dtypes, in order of promotion within a category.
const (
	InvalidDType DType = iota
	Bool               // one byte, 0 or 1
	Uint8
	Int32
	Int64
	Float16
	BFloat16
	Float32
	Float64
	numDTypes
)

var dtypeNames = [numDTypes]string{"invalid", "bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"}
var dtypeKinds = [numDTypes]ir.Kind{ir.Void, ir.U8, ir.U8, ir.I32, ir.I64, ir.F16, ir.BF16, ir.F32, ir.F64}

// String returns PyTorch's name of the dtype, such as "float32".
func (d DType) String() string {
	if d >= numDTypes {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypeNames[d]
}

// ParseDType returns the dtype of that name.
func ParseDType(name string) (DType, error) {
	for d := Bool; d < numDTypes; d++ {
		if dtypeNames[d] == name {
			return d, nil
		}
	}
	return InvalidDType, fmt.Errorf("unknown dtype %q; there are bool, uint8, int32, int64, float16, bfloat16, float32 and float64", name)
}

// Valid reports whether d is one of the dtypes.
func (d DType) Valid() bool { return d > InvalidDType && d < numDTypes }

// Size returns the bytes of one element.
func (d DType) Size() int { return d.Kind().Size() }

// Kind returns the memory kind of the dtype's elements in kernels.
func (d DType) Kind() ir.Kind {
	if d >= numDTypes {
		return ir.Void
	}
	return dtypeKinds[d]
}

// IsFloat reports whether d is a floating-point dtype.
func (d DType) IsFloat() bool { return d >= Float16 && d < numDTypes }

// IsInt reports whether d is an integer dtype; Bool is not.
func (d DType) IsInt() bool { return d >= Uint8 && d <= Int64 }

// category orders dtypes for promotion: bool, integers, floats.
func (d DType) category() int {
	switch {
	case d == Bool:
		return 0
	case d.IsInt():
		return 1
	}
	return 2
}

// operand returns the kernel operand of a tensor of this dtype, without strides.
func (d DType) operand() lib.Operand { return lib.Operand{Kind: d.Kind(), Bool: d == Bool} }

// computeKind is the kind that kernels compute values of the dtype in.
func (d DType) computeKind() ir.Kind {
	switch d {
	case Bool, Uint8, Int32:
		return ir.I32
	case Int64:
		return ir.I64
	case Float64:
		return ir.F64
	}
	return ir.F32
}

// PromoteTypes returns the dtype that an operation of a and b has, both with dimensions, as torch.promote_types.
func PromoteTypes(a, b DType) DType {
	if a == b {
		return a
	}
	if a > b {
		a, b = b, a
	}
	if a == Float16 && b == BFloat16 {
		return Float32
	}
	return b
}

// ResultType returns the dtype that an operation of ts computes in, as torch.result_type: 0-dimensional tensors raise
// it only if they are of a higher category (bool < integer < float) than the tensors with dimensions.
func ResultType(ts ...*Tensor) DType {
	var dim, zero DType
	for _, t := range ts {
		if t == nil || !t.dtype.Valid() {
			continue
		}
		into := &dim
		if len(t.shape) == 0 {
			into = &zero
		}
		if *into == InvalidDType {
			*into = t.dtype
		} else {
			*into = PromoteTypes(*into, t.dtype)
		}
	}
	switch {
	case dim == InvalidDType:
		return zero
	case zero == InvalidDType || zero.category() <= dim.category():
		return dim
	}
	return zero
}
