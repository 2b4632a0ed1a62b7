package lib

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
)

// maxMatMulElements bounds the elements that a matrix product may address in one operand: an index is 32 bits, and a
// tile at the edge reaches some way past the last row and column before it is clamped.
const maxMatMulElements = (1<<32 - 1<<16) & math.MaxInt

// MatMulArgs are the launch parameters of a [MatMul] kernel, in order. Kernels are shared between sizes, so a native
// program that stands in for one (Kernel.Template) takes the sizes from here and the rest from the template.
type MatMulArgs struct {
	M, N, K, Batch             int
	OffsetA, OffsetB           int
	BatchStrideA, BatchStrideB int
}

// Precise reports whether the product is so small that its float32 sums are compensated: launching the kernel takes
// longer than the additions, and small products are where people compare with exact results. A product with K=1 has nothing to add.
func (a MatMulArgs) Precise() bool {
	return a.K > 1 && satMul(satMul(satMul(a.M, a.N), a.K), a.Batch) <= preciseProducts
}

// preciseProducts is how many multiplications make a product that is still small.
const preciseProducts = 1 << 19

// matMulParams is the number of launch parameters: MatMulArgs, and the number of tiles along M and along N.
const matMulParams = 10

// ParseMatMulArgs reads the launch parameters of a MatMul kernel.
func ParseMatMulArgs(params []uint32) (MatMulArgs, error) {
	if len(params) < matMulParams {
		return MatMulArgs{}, fmt.Errorf("matmul: %d launch parameters, want %d", len(params), matMulParams)
	}
	p := func(i int) int { return int(params[i]) }
	return MatMulArgs{M: p(0), N: p(1), K: p(2), Batch: p(3), OffsetA: p(4), OffsetB: p(5), BatchStrideA: p(6), BatchStrideB: p(7)}, nil
}

// AccKind returns the kind that products accumulate in: F64 if an operand is F64, I64 or I32 if both are integers, else F32.
func (s *MatMul) AccKind() ir.Kind {
	a, b := Operand{Kind: s.A}.ValueKind(), Operand{Kind: s.B}.ValueKind()
	switch {
	case a == ir.F64 || b == ir.F64:
		return ir.F64
	case a.IsFloat() || b.IsFloat():
		return ir.F32
	case a == ir.I64 || b == ir.I64:
		return ir.I64
	case a == ir.U32 && b == ir.U32:
		return ir.U32
	}
	return ir.I32
}

// Key identifies the kernel: operand kinds, transpositions, alignment, epilogue, and the tile that the sizes call for
// on each class of device. Sizes, offsets and strides are launch parameters.
func (s *MatMul) Key() string {
	if err := s.check(); err != nil {
		return "matmul|invalid|" + err.Error()
	}
	bias := "none"
	if s.Bias != ir.Void {
		bias = s.Bias.String()
	}
	key := fmt.Sprintf("matmul|%s %s>%s|bias %s|t%d%d|align %d,%d,%d|tile", s.A, s.B, s.Out, bias, b2i(s.TransA), b2i(s.TransB),
		s.alignA(), s.alignB(), pow2Factor(s.N))
	for c := range matMulTiles {
		key += fmt.Sprintf(" %d", s.pick(deviceClass(c)))
	}
	return fmt.Sprintf("%s|precise %t|depth %d|epilogue %q%s|ops %q", key, s.precise(), s.depthClass(), s.EpilogueKey, s.tailKey(), s.Ops)
}

// Build makes the kernel. Parameters: M, N, K, batch, offsets and batch strides of A and B, tiles along M, tiles along N.
func (s *MatMul) Build(t Target) (*ir.Kernel, error) { return s.build(t, false) }

// build makes the kernel, or that of a product cut along K.
func (s *MatMul) build(t Target, split bool) (*ir.Kernel, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	buffers := 3
	if s.Bias != ir.Void {
		buffers++
	}
	if s.Tail != nil {
		buffers += len(s.Tail.In) + len(s.Tail.Out) - 2
	}
	if err := t.checkBuffers("matmul", buffers); err != nil {
		return nil, err
	}
	tile, err := s.tile(t)
	if err != nil {
		return nil, err
	}
	e := newMatMulEmitter(s, tile)
	e.split = split
	k, err := e.build()
	if err != nil {
		return nil, fmt.Errorf("matmul of %s and %s: %w", s.A, s.B, err)
	}
	return k, nil
}

// Launch returns the grid, one workgroup for each tile of each matrix of the batch, and the parameters.
func (s *MatMul) Launch(t Target) (groups [3]int, params []uint32, err error) {
	if err := s.check(); err != nil {
		return groups, nil, err
	}
	tile, err := s.tile(t)
	if err != nil {
		return groups, nil, err
	}
	tilesM, tilesN := ceilDiv(s.M, tile.groupM()), ceilDiv(s.N, tile.groupN())
	for _, v := range []int{s.M, s.N, s.K, s.Batch, s.OffsetA, s.OffsetB, s.strideA(), s.strideB(), tilesM, tilesN} {
		params = append(params, uint32(v))
	}
	if s.Tail != nil {
		params = append(params, s.Tail.ScalarBits...)
	}
	groups, err = t.fold("matmul", uint64(tilesM)*uint64(tilesN)*uint64(s.Batch))
	return groups, params, err
}

// Cost returns the floating-point operations: 2*M*N*K*Batch.
func (s *MatMul) Cost() float64 {
	return 2 * float64(s.M) * float64(s.N) * float64(s.K) * float64(s.Batch)
}

// strideA and strideB are the batch strides; a single matrix has none, so that it shares its kernel.
func (s *MatMul) strideA() int {
	if s.Batch < 2 {
		return 0
	}
	return s.BatchStrideA
}

func (s *MatMul) strideB() int {
	if s.Batch < 2 {
		return 0
	}
	return s.BatchStrideB
}

// alignA and alignB return the power of two, at most 16, that divides the address of every row of the stored matrix.
func (s *MatMul) alignA() int {
	row := s.K
	if s.TransA {
		row = s.M
	}
	return min(pow2Factor(row), pow2Factor(s.OffsetA), pow2Factor(s.strideA()))
}

func (s *MatMul) alignB() int {
	row := s.N
	if s.TransB {
		row = s.K
	}
	return min(pow2Factor(row), pow2Factor(s.OffsetB), pow2Factor(s.strideB()))
}

// check reports sizes and kinds that no kernel can serve.
func (s *MatMul) check() error {
	if s.M < 0 || s.N < 0 || s.K < 0 || s.Batch < 0 {
		return fmt.Errorf("matmul: sizes M=%d, N=%d, K=%d, batch=%d must not be negative", s.M, s.N, s.K, s.Batch)
	}
	if s.OffsetA < 0 || s.OffsetB < 0 || s.BatchStrideA < 0 || s.BatchStrideB < 0 {
		return fmt.Errorf("matmul: offsets %d, %d and batch strides %d, %d must not be negative; make the operand contiguous",
			s.OffsetA, s.OffsetB, s.BatchStrideA, s.BatchStrideB)
	}
	for _, o := range []struct {
		name string
		kind ir.Kind
	}{{"A", s.A}, {"B", s.B}, {"the output", s.Out}, {"the bias", s.Bias}} {
		if o.name == "the bias" && o.kind == ir.Void {
			continue
		}
		if err := checkOperand(Operand{Kind: o.kind}); err != nil {
			return fmt.Errorf("matmul: %s: %w", o.name, err)
		}
	}
	last := max(s.Batch-1, 0)
	for _, o := range []struct {
		name           string
		rows, columns  int
		offset, stride int
	}{
		{"A", s.M, s.K, s.OffsetA, s.BatchStrideA},
		{"B", s.K, s.N, s.OffsetB, s.BatchStrideB},
		{"the output", s.M, s.N, 0, satMul(s.M, s.N)},
	} {
		n := satAdd(satAdd(satMul(o.rows, o.columns), satMul(last, o.stride)), o.offset)
		if n > maxMatMulElements {
			return fmt.Errorf("matmul: %s of %d x %d elements, batch %d (stride %d, offset %d) reaches over %d elements; split the product along M, N or the batch",
				o.name, o.rows, o.columns, s.Batch, o.stride, o.offset, int64(maxMatMulElements))
		}
	}
	return nil
}

// satMul and satAdd work on numbers that are not negative and stop at the largest int.
func satMul(a, b int) int {
	if a != 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}

func satAdd(a, b int) int {
	if b > math.MaxInt-a {
		return math.MaxInt
	}
	return a + b
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
