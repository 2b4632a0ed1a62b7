package tensor

import (
	"errors"
	"io"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"gonum.org/v1/gonum/mat"
)

var errTodo = errors.New("not built yet")

func stub() *Tensor { return failed(errTodo, nil) }

func (t *Tensor) Neg() *Tensor                    { return stub() }
func (t *Tensor) Abs() *Tensor                    { return stub() }
func (t *Tensor) Exp() *Tensor                    { return stub() }
func (t *Tensor) Expm1() *Tensor                  { return stub() }
func (t *Tensor) Log() *Tensor                    { return stub() }
func (t *Tensor) Log1p() *Tensor                  { return stub() }
func (t *Tensor) Log2() *Tensor                   { return stub() }
func (t *Tensor) Sqrt() *Tensor                   { return stub() }
func (t *Tensor) Rsqrt() *Tensor                  { return stub() }
func (t *Tensor) Reciprocal() *Tensor             { return stub() }
func (t *Tensor) Square() *Tensor                 { return stub() }
func (t *Tensor) Sin() *Tensor                    { return stub() }
func (t *Tensor) Cos() *Tensor                    { return stub() }
func (t *Tensor) Tan() *Tensor                    { return stub() }
func (t *Tensor) Sinh() *Tensor                   { return stub() }
func (t *Tensor) Cosh() *Tensor                   { return stub() }
func (t *Tensor) Tanh() *Tensor                   { return stub() }
func (t *Tensor) Asin() *Tensor                   { return stub() }
func (t *Tensor) Acos() *Tensor                   { return stub() }
func (t *Tensor) Atan() *Tensor                   { return stub() }
func (t *Tensor) Sigmoid() *Tensor                { return stub() }
func (t *Tensor) LogSigmoid() *Tensor             { return stub() }
func (t *Tensor) Erf() *Tensor                    { return stub() }
func (t *Tensor) ReLU() *Tensor                   { return stub() }
func (t *Tensor) ReLU6() *Tensor                  { return stub() }
func (t *Tensor) GELU() *Tensor                   { return stub() }
func (t *Tensor) GELUTanh() *Tensor               { return stub() }
func (t *Tensor) SiLU() *Tensor                   { return stub() }
func (t *Tensor) Softplus() *Tensor               { return stub() }
func (t *Tensor) Mish() *Tensor                   { return stub() }
func (t *Tensor) Hardswish() *Tensor              { return stub() }
func (t *Tensor) Hardsigmoid() *Tensor            { return stub() }
func (t *Tensor) Floor() *Tensor                  { return stub() }
func (t *Tensor) Ceil() *Tensor                   { return stub() }
func (t *Tensor) Round() *Tensor                  { return stub() }
func (t *Tensor) Trunc() *Tensor                  { return stub() }
func (t *Tensor) Sign() *Tensor                   { return stub() }
func (t *Tensor) IsFinite() *Tensor               { return stub() }
func (t *Tensor) IsNaN() *Tensor                  { return stub() }
func (t *Tensor) IsInf() *Tensor                  { return stub() }
func (t *Tensor) LogicalNot() *Tensor             { return stub() }
func (t *Tensor) Contiguous() *Tensor             { return stub() }
func (t *Tensor) T() *Tensor                      { return stub() }
func (t *Tensor) Add(u *Tensor) *Tensor           { return stub() }
func (t *Tensor) Sub(u *Tensor) *Tensor           { return stub() }
func (t *Tensor) Mul(u *Tensor) *Tensor           { return stub() }
func (t *Tensor) Div(u *Tensor) *Tensor           { return stub() }
func (t *Tensor) Pow(u *Tensor) *Tensor           { return stub() }
func (t *Tensor) Atan2(u *Tensor) *Tensor         { return stub() }
func (t *Tensor) Maximum(u *Tensor) *Tensor       { return stub() }
func (t *Tensor) Minimum(u *Tensor) *Tensor       { return stub() }
func (t *Tensor) Eq(u *Tensor) *Tensor            { return stub() }
func (t *Tensor) Ne(u *Tensor) *Tensor            { return stub() }
func (t *Tensor) Lt(u *Tensor) *Tensor            { return stub() }
func (t *Tensor) Le(u *Tensor) *Tensor            { return stub() }
func (t *Tensor) Gt(u *Tensor) *Tensor            { return stub() }
func (t *Tensor) Ge(u *Tensor) *Tensor            { return stub() }
func (t *Tensor) LogicalAnd(u *Tensor) *Tensor    { return stub() }
func (t *Tensor) LogicalOr(u *Tensor) *Tensor     { return stub() }
func (t *Tensor) MatMul(u *Tensor) *Tensor        { return stub() }
func (t *Tensor) AddScalar(v float64) *Tensor     { return stub() }
func (t *Tensor) SubScalar(v float64) *Tensor     { return stub() }
func (t *Tensor) MulScalar(v float64) *Tensor     { return stub() }
func (t *Tensor) DivScalar(v float64) *Tensor     { return stub() }
func (t *Tensor) PowScalar(v float64) *Tensor     { return stub() }
func (t *Tensor) EqScalar(v float64) *Tensor      { return stub() }
func (t *Tensor) NeScalar(v float64) *Tensor      { return stub() }
func (t *Tensor) LtScalar(v float64) *Tensor      { return stub() }
func (t *Tensor) LeScalar(v float64) *Tensor      { return stub() }
func (t *Tensor) GtScalar(v float64) *Tensor      { return stub() }
func (t *Tensor) GeScalar(v float64) *Tensor      { return stub() }
func (t *Tensor) MaximumScalar(v float64) *Tensor { return stub() }
func (t *Tensor) MinimumScalar(v float64) *Tensor { return stub() }
func (t *Tensor) LeakyReLU(v float64) *Tensor     { return stub() }
func (t *Tensor) ELU(v float64) *Tensor           { return stub() }

func (t *Tensor) Clamp(lo, hi float64) *Tensor { return stub() }

// Where returns a where cond holds and b elsewhere, broadcast.
func Where(cond, a, b *Tensor) *Tensor { return stub() }

// Linear returns x w^T + b; w is [out, in], b is [out] or nil.
func Linear(x, w, b *Tensor) *Tensor { return stub() }

// Sum, Mean, Amax, Amin reduce over dims (none: all).
func (t *Tensor) Sum(dims ...int) *Tensor  { return stub() }
func (t *Tensor) Mean(dims ...int) *Tensor { return stub() }
func (t *Tensor) Amax(dims ...int) *Tensor { return stub() }
func (t *Tensor) Amin(dims ...int) *Tensor { return stub() }

// SumKeep etc. keep reduced dimensions with size 1.
func (t *Tensor) SumKeep(dims ...int) *Tensor  { return stub() }
func (t *Tensor) MeanKeep(dims ...int) *Tensor { return stub() }
func (t *Tensor) AmaxKeep(dims ...int) *Tensor { return stub() }
func (t *Tensor) AminKeep(dims ...int) *Tensor { return stub() }

// Argmax returns the index of the largest element along dim (int64).
func (t *Tensor) Argmax(dim int, keepdim bool) *Tensor { return stub() }
func (t *Tensor) Argmin(dim int, keepdim bool) *Tensor { return stub() }
func (t *Tensor) Softmax(dim int) *Tensor              { return stub() }
func (t *Tensor) LogSoftmax(dim int) *Tensor           { return stub() }

// Reduction says how a loss combines its terms.
type Reduction int

// The reductions of a loss.
const (
	ReductionMean Reduction = iota
	ReductionSum
	ReductionNone
)

// CrossEntropyOptions are the options of CrossEntropy; the zero value is PyTorch's default.
type CrossEntropyOptions struct {
	Weight         *Tensor // one weight a class, or nil
	Reduction      Reduction
	LabelSmoothing float64
	// IgnoreIndex is the target that does not count; nil means PyTorch's default of -100.
	IgnoreIndex *int64
}

// CrossEntropy of logits [N, C] or [N, C, d...] and int64 classes or class probabilities.
func CrossEntropy(logits, target *Tensor, opts CrossEntropyOptions) *Tensor { return stub() }

// MSELoss is the mean squared error.
func MSELoss(x, target *Tensor, r Reduction) *Tensor { return stub() }

func (t *Tensor) Reshape(shape ...int) *Tensor            { return stub() }
func (t *Tensor) Flatten(start, end int) *Tensor          { return stub() }
func (t *Tensor) Permute(dims ...int) *Tensor             { return stub() }
func (t *Tensor) Transpose(a, b int) *Tensor              { return stub() }
func (t *Tensor) Expand(shape ...int) *Tensor             { return stub() }
func (t *Tensor) Slice(dim, start, end, step int) *Tensor { return stub() }
func (t *Tensor) Select(dim, index int) *Tensor           { return stub() }
func (t *Tensor) Squeeze(dims ...int) *Tensor             { return stub() }
func (t *Tensor) Unsqueeze(dim int) *Tensor               { return stub() }
func Cat(dim int, ts ...*Tensor) *Tensor                  { return stub() }
func Stack(dim int, ts ...*Tensor) *Tensor                { return stub() }
func (t *Tensor) Cast(d DType) *Tensor                    { return stub() }

// Dropout zeroes elements with probability p and scales the rest by 1/(1-p) while training.
func (t *Tensor) Dropout(p float64, training bool, g *Generator) *Tensor { return stub() }

// Generator is a Philox random state; its stream is the same on every device.
type Generator struct{ seed, offset uint64 }

func NewGenerator(seed uint64) *Generator         { return &Generator{seed: seed} }
func (g *Generator) State() (seed, offset uint64) { return g.seed, g.offset }
func (g *Generator) SetState(seed, offset uint64) { g.seed, g.offset = seed, offset }

func Zeros(dev backend.Device, d DType, shape ...int) *Tensor           { return stub() }
func Ones(dev backend.Device, d DType, shape ...int) *Tensor            { return stub() }
func Full(dev backend.Device, d DType, v float64, shape ...int) *Tensor { return stub() }

// Uniform returns numbers in [lo, hi).
func Uniform(dev backend.Device, g *Generator, d DType, lo, hi float64, shape ...int) *Tensor {
	return stub()
}
func Normal(dev backend.Device, g *Generator, d DType, mean, std float64, shape ...int) *Tensor {
	return stub()
}
func Bernoulli(dev backend.Device, g *Generator, p float64, shape ...int) *Tensor { return stub() }

func FromFloat32s(data []float32, shape ...int) *Tensor { return stub() }
func FromFloat64s(data []float64, shape ...int) *Tensor { return stub() }
func FromInt64s(data []int64, shape ...int) *Tensor     { return stub() }
func FromInt32s(data []int32, shape ...int) *Tensor     { return stub() }
func FromUint8s(data []uint8, shape ...int) *Tensor     { return stub() }
func FromBools(data []bool, shape ...int) *Tensor       { return stub() }

// Scalar is a 0-dimensional float32 on the CPU.
func Scalar(v float64) *Tensor       { return stub() }
func FromDense(m *mat.Dense) *Tensor { return stub() }

func (t *Tensor) Item() (float64, error)       { return 0, errTodo }
func (t *Tensor) Float32s() ([]float32, error) { return nil, errTodo }
func (t *Tensor) Float64s() ([]float64, error) { return nil, errTodo }
func (t *Tensor) Int64s() ([]int64, error)     { return nil, errTodo }
func (t *Tensor) Uint8s() ([]uint8, error)     { return nil, errTodo }
func (t *Tensor) Bools() ([]bool, error)       { return nil, errTodo }
func (t *Tensor) Dense() (*mat.Dense, error)   { return nil, errTodo }
func (t *Tensor) readInt64s() ([]int64, error) { return nil, errTodo }

// WriteNPY writes the tensor in NumPy's format.
func (t *Tensor) WriteNPY(w io.Writer) error { return errTodo }
func ReadNPY(r io.Reader) (*Tensor, error)   { return nil, errTodo }

func (t *Tensor) RequiresGrad() bool { return t != nil && (t.requiresGrad || t.fn != nil) }

// SetRequiresGrad makes a leaf collect gradients and returns it.
func (t *Tensor) SetRequiresGrad(on bool) *Tensor { t.requiresGrad = on; return t }
func (t *Tensor) IsLeaf() bool                    { return t.fn == nil }
func (t *Tensor) Grad() *Tensor                   { return t.grad }
func (t *Tensor) SetGrad(g *Tensor)               { t.grad = g }

// ZeroGrad frees the gradient; the next Backward starts anew.
func (t *Tensor) ZeroGrad() { t.grad = nil }

// Backward fills Grad of the leaves that require it.
func (t *Tensor) Backward() error                     { return errTodo }
func (t *Tensor) BackwardWith(upstream *Tensor) error { return errTodo }

// Grad returns the gradients of outputs (each one element, or with upstream gradients) for inputs, differentiable again.
func Grad(outputs, inputs []*Tensor, upstream ...*Tensor) ([]*Tensor, error) { return nil, errTodo }

type gradFn struct{ op *OpInfo }

// Call is one application of an operator, as its gradient sees it.
type Call struct {
	In     []*Tensor
	Out    *Tensor
	Params []float64
}

// Elementwise defines an operator that computes each element from the elements at the same place.
type Elementwise struct {
	Name  string
	Doc   string
	Body  func(b *ir.Builder, in ...ir.Value) ir.Value
	Grad  func(dy *Tensor, in ...*Tensor) []*Tensor
	Ref   func(in ...float64) float64
	Class Class
}

// OpFunc applies an operator.
type OpFunc func(in ...*Tensor) *Tensor

// DefineElementwise adds a row to the operator table and returns the operator.
func DefineElementwise(e Elementwise) OpFunc { return func(in ...*Tensor) *Tensor { return stub() } }

// InPlaceUpdate is a kernel over many tensors that overwrites some of them: an optimizer's step, or unscaling of gradients.
type InPlaceUpdate struct {
	Name    string
	BodyKey string      // identifies Body
	Tensors [][]*Tensor // one row a parameter; each row has the same arrays, such as value, gradient, momentum
	Access  []ir.Access // what Body does with each array
	Shared  []*Tensor   // tensors of one element that every element's Body sees
	Flag    *Tensor     // an int32 tensor of one element that becomes 1 if Body raises it; nil if none
	Scalars []float32
	Body    func(b *ir.Builder, vals, shared, scalars []ir.Value) (out []ir.Value, flag ir.Value)
}

// UpdateInPlace runs the update in program order with all other work, and submits it.
func UpdateInPlace(u InPlaceUpdate) error { return errTodo }
