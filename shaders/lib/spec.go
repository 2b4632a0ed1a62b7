package lib

import "github.com/anygpu/anygpu/shaders/ir"

// Target is what a generator needs to know of a device to choose a kernel's shape.
type Target struct {
	API    string // "cpu", "vulkan", "opencl" or another driver's name
	GPU    bool   // whether it is a GPU; CPU devices want wide vectors, register tiles and no workgroup memory
	Vendor string
	Caps   ir.Caps
}

// Generator is a kernel family with its shape filled in.
type Generator interface {
	// Key identifies the kernel for one target.
	Key() string
	// Build makes the kernel.
	Build(t Target) (*ir.Kernel, error)
	// Launch returns the grid and the scalar parameters for this shape. User scalars follow the geometry parameters.
	Launch(t Target) (groups [3]int, params []uint32, err error)
	// Cost estimates the work: bytes moved plus floating-point operations, whichever is more.
	Cost() float64
}

// Operand is a strided operand in memory.
type Operand struct {
	Kind    ir.Kind // memory kind: U8, I32, U32, I64, F16, BF16, F32 or F64
	Bool    bool    // Kind is U8 and holds truth values: the body sees Bool
	Strides []int   // in elements, one per dimension of Shape; 0 repeats. nil: contiguous in Shape
	Offset  int     // in elements from the start of the binding
}

// ValueKind returns the kind that bodies see for the operand: F32 for F16 and BF16, I32 for U8, Bool if so declared.
func (o Operand) ValueKind() ir.Kind {
	switch {
	case o.Bool:
		return ir.Bool
	case o.Kind == ir.F16 || o.Kind == ir.BF16:
		return ir.F32
	case o.Kind == ir.U8:
		return ir.I32
	}
	return o.Kind
}

// Elementwise computes outputs from inputs element by element over Shape; operands may be strided, broadcast (stride 0)
// and of any kind. Copy, cast, fill, cat (by strided outputs) and iota are cases of it. Buffers are bound inputs first, then outputs.
type Elementwise struct {
	Name    string
	Ops     []string
	BodyKey string // identifies Body
	Shape   []int
	In      []Operand
	Out     []Operand // written only; distinct elements of an output must have distinct addresses
	Scalars []ir.Kind // I32, U32 or F32: launch parameters after the geometry
	// Index makes the flat (row-major) index of the element in Shape available to Body as a last input of kind U32.
	Index bool
	// Body returns one value for each output, of kind Out[i].ValueKind() (an integer body may also return Bool for U8).
	// Values may be vectors; a body made of builder calls works for every width.
	Body func(b *ir.Builder, in, scalars []ir.Value) []ir.Value
	// ScalarBits are the values of Scalars, as 32-bit words; they follow the geometry in Launch's parameters.
	ScalarBits []uint32
}

// ReduceOp is a reduction.
type ReduceOp int

// The reductions. Max and Min propagate NaN; ArgMax and ArgMin give the first index (I64) and treat NaN as the extreme, as PyTorch does.
const (
	ReduceSum ReduceOp = iota
	ReduceProd
	ReduceMax
	ReduceMin
	ReduceArgMax
	ReduceArgMin
	ReduceAny // of Bool
	ReduceAll // of Bool
)

// Reduce reduces the middle dimension of contiguous inputs of shape [Outer, N, Inner] to [Outer, Inner]. Floats
// accumulate in F32 (F64 for F64), by a fixed tree; I32, U8 and Bool sums accumulate in I64 where Out is I64.
// Buffers are bound inputs, then the output. Max, Min and Arg over no elements are an error of Launch; the other
// reductions of nothing give their neutral element. A reduction to few outputs is best run as two kernels ([Reduce.Split]).
type Reduce struct {
	Name            string
	Ops             []string
	BodyKey         string // identifies Prologue and Epilogue; may be empty if both are nil
	Op              ReduceOp
	Outer, N, Inner int
	In              []Operand // Strides and Offset are ignored: contiguous
	Out             Operand
	Scalars         []ir.Kind
	ScalarBits      []uint32
	// Prologue computes the element to reduce; nil is the first input itself.
	Prologue func(b *ir.Builder, in, scalars []ir.Value) ir.Value
	// Epilogue computes the output from the reduced value; nil is the value itself. n is N as F32.
	Epilogue func(b *ir.Builder, acc, n ir.Value, scalars []ir.Value) ir.Value

	split int // rows are cut into this many parts, each with an output of its own; 0 is 1 (see Split)
	pairs pairing
	count int // what Epilogue gets as n, where N is not that; 0 is N (see Split)

	anyNaN bool // see reducer; only as a stage of Rows, where BodyKey says so
}

// Softmax computes softmax, or its logarithm, over the middle dimension of a contiguous [Outer, N, Inner] input, in F32
// (F64 for F64). A row of -inf gives NaN. Buffers: input, output.
type Softmax struct {
	Log             bool
	Outer, N, Inner int
	In, Out         ir.Kind
}

// MatMul computes out[b] = epilogue(op(A[b]) op(B[b])), where op transposes if asked. A is stored row-major as [M,K] ([K,M] if
// TransA), B as [K,N] ([N,K] if TransB), Out as [M,N]; products accumulate in F32 (F64 for F64, integers in their own
// kind). Batched operands are Batch matrices at distances of BatchStride elements (0 repeats one matrix).
// Buffers: A, B, bias if any, out.
type MatMul struct {
	M, N, K, Batch             int
	TransA, TransB             bool
	A, B, Out                  ir.Kind
	BatchStrideA, BatchStrideB int
	OffsetA, OffsetB           int     // in elements
	Bias                       ir.Kind // Void: none; else a vector of N added to each row
	Ops                        []string
	EpilogueKey                string // identifies Epilogue
	// Epilogue maps the F32 result (bias added) to the value stored; nil stores it as it is.
	Epilogue func(b *ir.Builder, x ir.Value) ir.Value
	// Tail, if not nil, computes what is stored from the product, with the bias added, and from other operands: its input 0 is the product
	// and no buffer, its other inputs are contiguous in the output's shape. Buffers: A, B, bias if any, inputs 1 and more, outputs. Its
	// scalars follow the other parameters. Out is then the kind of the product as an operator's result; Epilogue is nil.
	Tail *Elementwise
	// Tile chooses an entry of the target's table of tiles ([Target.MatMulTiles]), counted from 1, for tuning and tests; 0
	// chooses by the sizes.
	Tile int
}

// RandomKind is a distribution.
type RandomKind int

// The distributions.
const (
	RandomUniform   RandomKind = iota // [0, 1), 24 random bits; F32, F16, BF16 (rounded from F32) or F64
	RandomNormal                      // mean 0, variance 1, by Box and Muller
	RandomBernoulli                   // U8: 1 with probability P
	RandomBits                        // U32
)

// Random fills N elements from Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). Element i
// comes from counter (Offset + i/4) and key Seed, word i%4, so that the stream is the same on every device. Buffer: out.
type Random struct {
	Dist   RandomKind
	N      int
	Out    ir.Kind
	Seed   uint64
	Offset uint64
	P      float32 // RandomBernoulli
}

// TensorBuffer is one of the arrays that belong to each tensor of a [MultiTensor] kernel.
type TensorBuffer struct {
	Kind   ir.Kind
	Access ir.Access
}

// MultiTensor updates many tensors in one kernel, in place: optimizers and gradient unscaling. Each tensor has the arrays
// of PerTensor, of Sizes[i] contiguous elements. Buffers: tensor 0's arrays in order, tensor 1's, …, then Shared, then
// the flag. More tensors than the device can bind ([MultiTensorMax]) need a [Packed] kernel.
type MultiTensor struct {
	Name       string
	Ops        []string
	BodyKey    string
	Sizes      []int
	PerTensor  []TensorBuffer
	Shared     []ir.Kind // one-element read-only buffers that every tensor's body sees, such as a scale on the device
	Flag       bool      // a U32 buffer of one element; it becomes 1 if Body raises it for any element (atomic or)
	Scalars    []ir.Kind
	ScalarBits []uint32
	// Body gets the values of PerTensor (ValueKind), the shared values and the scalars; it returns the new values of the
	// writable arrays in order, and with Flag a Bool that raises the flag (nil otherwise).
	Body func(b *ir.Builder, vals, shared, scalars []ir.Value) (out []ir.Value, flag ir.Value)
}

// MultiTensorMax returns how many tensors one MultiTensor kernel can take on a target: what the device can bind, and at most 32,
// because each tensor is code.
func MultiTensorMax(t Target, perTensor, shared int, flag bool) int {
	n := t.Caps.MaxBuffers - shared
	if flag {
		n--
	}
	if perTensor < 1 {
		return 1
	}
	return max(1, min(32, n/perTensor))
}
