package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
)

// elementwiseOps returns the rows that have a body.
func elementwiseOps() []*OpInfo {
	var out []*OpInfo
	for _, o := range Ops() {
		if o.elementwise != nil {
			out = append(out, o)
		}
	}
	return out
}

// rowCase is a row with operands in its domain.
type rowCase struct {
	op     *OpInfo
	params []float64
	in     []Array
}

func newRowCase(op *OpInfo, seed uint64, shapes [][]int) rowCase {
	e := op.elementwise
	rng := rand.New(rand.NewPCG(seed, 7))
	lo, hi := e.Domain[0], e.Domain[1]
	if lo == hi {
		lo, hi = -3, 3
	}
	c := rowCase{op: op}
	for i := range e.Arity {
		a := Array{Shape: shapes[i%len(shapes)]}
		for range Numel(a.Shape) {
			v := lo + (hi-lo)*rng.Float64()
			if slices.Contains(e.Bools, i) {
				v = float64(rng.IntN(2))
			}
			a.Data = append(a.Data, v)
		}
		c.in = append(c.in, a)
	}
	for i := range e.Params {
		v := e.fallback(i)
		if v == 0 || math.IsInf(v, 0) {
			v = 0.5 + float64(i) // clamp: 0.5 to 1.5
		}
		c.params = append(c.params, v)
	}
	return c
}

// tensors returns the operands on a device in a dtype, and what they are after rounding to it.
func (c rowCase) tensors(t *testing.T, dev backend.Device, d DType) ([]*Tensor, []Array) {
	t.Helper()
	var ts []*Tensor
	rounded := make([]Array, len(c.in))
	for i, a := range c.in {
		x := FromFloat64s(a.Data, a.Shape...)
		if slices.Contains(c.op.elementwise.Bools, i) {
			x = x.Cast(Bool)
		} else {
			x = x.Cast(d)
		}
		vs, err := x.Float64s()
		if err != nil {
			t.Fatal(err)
		}
		rounded[i] = Array{Shape: a.Shape, Data: vs}
		ts = append(ts, x.To(dev))
	}
	return ts, rounded
}

func (c rowCase) attrs() Attrs {
	a := Attrs{}
	for i, p := range c.op.Params {
		a[p] = c.params[i]
	}
	return a
}

func checkClose(t *testing.T, what string, got, want []float64, rtol, atol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, expected %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d <= atol+rtol*math.Abs(want[i])) && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) && got[i] != want[i] {
			t.Errorf("%s: element %d is %v, expected %v", what, i, got[i], want[i])
			return
		}
	}
}

var dtypeTolerance = map[DType][2]float64{Float32: {2e-5, 2e-6}, Float64: {1e-12, 1e-12}, Float16: {1e-3, 1e-5}, BFloat16: {8e-3, 1e-5}}

func TestElementwiseRowsAgainstReference(t *testing.T) {
	shapes := [][]int{{2, 3, 5}, {3, 1}, {5}}
	check := func(t *testing.T, dev backend.Device, d DType) {
		for _, op := range elementwiseOps() {
			if op.Ref == nil {
				t.Errorf("%s has no reference", op.Name)
				continue
			}
			c := newRowCase(op, 11, shapes)
			ts, rounded := c.tensors(t, dev, d)
			out := applyElementwise(op, c.params, ts)
			want, err := op.Ref(rounded, c.attrs())
			if err != nil {
				t.Fatal(err)
			}
			if wantType := map[bool]DType{false: d, true: Bool}[op.elementwise.DType == ToBool]; out.DType() != wantType && out.err == nil {
				t.Errorf("%s of %s gives %s", op.Name, d, out.DType())
			}
			got, err := out.CPU().Float64s()
			if err != nil {
				t.Errorf("%s: %v", op.Name, err)
				continue
			}
			tol := dtypeTolerance[d]
			checkClose(t, fmt.Sprintf("%s of %s", op.Name, d), got, want[0].Data, tol[0], tol[1])
		}
	}
	for d := range dtypeTolerance {
		t.Run("cpu/"+d.String(), func(t *testing.T) { check(t, CPU(), d) })
	}
	t.Run("checked", func(t *testing.T) { check(t, gpuLike(t), Float32) })
}

// gradients returns the gradients of sum(row(in)*u) for the operands that have one.
func (c rowCase) gradients(t *testing.T, in []Array, u []float64) ([]*Tensor, []*Tensor) {
	t.Helper()
	c.in = in
	ts, _ := c.tensors(t, CPU(), Float64)
	var wrt []*Tensor
	for i, x := range ts {
		if c.op.flows(i) {
			x.SetRequiresGrad(true)
			wrt = append(wrt, x)
		}
	}
	out := applyElementwise(c.op, c.params, ts)
	gs, err := Grad([]*Tensor{out}, wrt, FromFloat64s(u, out.shape...))
	if err != nil {
		t.Fatalf("%s: %v", c.op.Name, err)
	}
	return gs, wrt
}

func TestElementwiseRowsGradients(t *testing.T) {
	const h = 1e-5
	shape := []int{2, 4}
	for _, op := range elementwiseOps() {
		if op.elementwise.Grad == nil && op.elementwise.GradCall == nil {
			continue
		}
		t.Run(op.Name, func(t *testing.T) {
			c := newRowCase(op, 5, [][]int{shape})
			n := Numel(shape)
			u := make([]float64, n)
			for i := range u {
				u[i] = 0.5 + 0.25*float64(i)
			}
			gs, _ := c.gradients(t, c.in, u)
			moved := func(operand, element int, by float64) []Array {
				in := slices.Clone(c.in)
				in[operand].Data = slices.Clone(in[operand].Data)
				in[operand].Data[element] += by
				return in
			}
			at := 0
			for i := range c.in {
				if !op.flows(i) {
					continue
				}
				want := make([]float64, n)
				for k := range n {
					for _, sgn := range []float64{1, -1} {
						out, err := op.Ref(moved(i, k, sgn*h), c.attrs())
						if err != nil {
							t.Fatal(err)
						}
						want[k] += sgn * out[0].Data[k] * u[k] / (2 * h)
					}
				}
				got, err := gs[at].Detach().Float64s()
				if err != nil {
					t.Fatal(err)
				}
				checkClose(t, fmt.Sprintf("gradient for operand %d", i), got, want, 1e-6, 1e-7)
				at++
			}
			// The second derivative, against differences of the first.
			for j := range gs {
				gs2, wrt := c.gradients(t, c.in, u)
				if !gs2[j].RequiresGrad() {
					continue // constant or piecewise constant
				}
				var on []*Tensor
				var operands []int
				for k, x := range wrt {
					if _, err := Grad([]*Tensor{gs2[j].Sum()}, []*Tensor{x}); err == nil {
						on, operands = append(on, x), append(operands, k)
					}
				}
				if len(on) == 0 {
					continue
				}
				second, err := Grad([]*Tensor{gs2[j].Sum()}, on)
				if err != nil {
					t.Fatal(err)
				}
				flowing := []int{}
				for i := range c.in {
					if op.flows(i) {
						flowing = append(flowing, i)
					}
				}
				for m, k := range operands {
					want := make([]float64, n)
					for e := range n {
						for _, sgn := range []float64{1, -1} {
							g, _ := c.gradients(t, moved(flowing[k], e, sgn*h), u)
							vs, err := g[j].Detach().Float64s()
							if err != nil {
								t.Fatal(err)
							}
							want[e] += sgn * vs[e] / (2 * h)
						}
					}
					got, err := second[m].Detach().Float64s()
					if err != nil {
						t.Fatal(err)
					}
					checkClose(t, fmt.Sprintf("second derivative of operand %d's gradient for operand %d", j, k), got, want, 1e-5, 1e-6)
				}
			}
		})
	}
}

func TestTableIsComplete(t *testing.T) {
	for _, o := range Ops() {
		if o.Doc == "" {
			t.Errorf("%s has no documentation", o.Name)
		}
		if LookupOp(o.Name) != o {
			t.Errorf("%s is not found by its name", o.Name)
		}
	}
	// Autocast's classes are PyTorch's (pytorch-semantics, b7).
	for class, names := range map[Class]string{
		Lower:  "matmul linear",
		F32:    "exp expm1 log log10 log2 log1p reciprocal rsqrt sinh cosh tan asin acos pow pow_scalar softplus prod sum softmax log_softmax mse_loss l1_loss",
		Widest: "addcmul atan2 cat",
		AsIs:   "add mul relu gelu tanh sigmoid mean dropout reshape amax cross_entropy",
	} {
		for _, n := range strings.Fields(names) {
			if o := LookupOp(n); o == nil || o.Class != class {
				t.Errorf("%s is not in class %q", n, class)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("defining an operator twice does not panic")
		}
	}()
	DefineElementwise(Elementwise{Name: "add", Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return in[0] }})
}

// The example of the documentation: an operator of a user's own.
func TestUserDefinedOperator(t *testing.T) {
	swiglu := DefineElementwise(Elementwise{
		Name: "swiglu_test",
		Doc:  "x * sigmoid(x) * gate",
		Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Mul(b.Mul(in[0], b.Sigmoid(in[0])), in[1]) },
		Grad: func(dy *Tensor, in ...*Tensor) []*Tensor {
			s := in[0].Sigmoid()
			d := s.Mul(in[0].Mul(s.Neg().AddScalar(1)).AddScalar(1))
			return []*Tensor{dy.Mul(d).Mul(in[1]), dy.Mul(in[0]).Mul(s)}
		},
		Ref: func(in ...float64) float64 { return in[0] / (1 + math.Exp(-in[0])) * in[1] },
	})
	op := LookupOp("swiglu_test")
	if op.elementwise.Arity != 2 || !slices.Equal(op.Inputs, []string{"a", "b"}) {
		t.Errorf("the body's operands were not found: %d, %v", op.elementwise.Arity, op.Inputs)
	}
	x := FromFloat32s([]float32{-1, 2}, 2).SetRequiresGrad(true)
	y := swiglu(x, FromFloat32s([]float32{3}, 1))
	got, err := y.Detach().Float64s()
	if err != nil {
		t.Fatal(err)
	}
	checkClose(t, "swiglu", got, []float64{op.elementwise.Ref(-1, 3), op.elementwise.Ref(2, 3)}, 1e-6, 0)
	if err := y.Sum().Backward(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, swiglu(x).Err(), nil, "swiglu_test at optable_test.go", "takes 2 operands, got 1")
	wantErr(t, swiglu(x, FromFloat32s(make([]float32, 3), 3)).Err(), ErrShape)
}

func TestPromotion(t *testing.T) {
	dims := func(d DType) *Tensor { return Ones(CPU(), d, 2) }
	zero := func(d DType) *Tensor { return Ones(CPU(), d) }
	for _, tc := range []struct {
		a, b *Tensor
		want DType // of a + b, PyTorch's
	}{
		{dims(Float32), dims(Float16), Float32}, {dims(Float16), dims(BFloat16), Float32}, {dims(BFloat16), dims(Float64), Float64},
		{dims(Int64), dims(Float16), Float16}, {dims(Uint8), dims(Int32), Int32}, {dims(Bool), dims(Uint8), Uint8}, {dims(Int32), dims(Int64), Int64},
		{dims(Float16), zero(Float32), Float16}, {dims(Float32), zero(Float64), Float32}, {dims(Int32), zero(Int64), Int32},
		{dims(Int64), zero(Float32), Float32}, {dims(Bool), zero(Int64), Int64}, {dims(Bool), zero(Float16), Float16},
		{zero(Int32), zero(Int64), Int64}, {zero(Float16), zero(Int64), Float16}, {dims(Bool), dims(Bool), Bool},
	} {
		for _, pair := range [][2]*Tensor{{tc.a, tc.b}, {tc.b, tc.a}} {
			if got := pair[0].Add(pair[1]).DType(); got != tc.want {
				t.Errorf("%s + %s is %s, expected %s", pair[0], pair[1], got, tc.want)
			}
		}
	}
	for _, tc := range []struct {
		name string
		got  *Tensor
		want DType
	}{
		{"int64 / int64", dims(Int64).Div(dims(Int64)), Float32}, {"exp of int32", dims(Int32).Exp(), Float32}, {"float16 / 3", dims(Float16).DivScalar(3), Float16},
		{"int32 + 2", dims(Int32).AddScalar(2), Int32}, {"int32 + 0.5", dims(Int32).AddScalar(0.5), Float32}, {"bool + 1", dims(Bool).AddScalar(1), Int64},
		{"float16 + 0.5", dims(Float16).AddScalar(0.5), Float16}, {"int64 == 1", dims(Int64).EqScalar(1), Bool}, {"sum of uint8", dims(Uint8).Sum(), Int64},
		{"sum of bool", dims(Bool).Sum(), Int64}, {"sum of float16", dims(Float16).Sum(), Float16}, {"amax of int32", dims(Int32).Amax(), Int32},
		{"argmax", dims(Float32).Argmax(0, false), Int64}, {"clamp of int32 from below", dims(Int32).MaximumScalar(3), Int32}, {"int32 ** 2", dims(Int32).PowScalar(3), Int32},
		{"where", Where(dims(Bool), dims(Float16), zero(Float32)), Float16}, {"cat", Cat(0, dims(Int32), dims(Float16)), Float16},
	} {
		if got := tc.got.DType(); got != tc.want {
			t.Errorf("%s is %s (%v), expected %s", tc.name, got, tc.got.Err(), tc.want)
		}
	}
}
