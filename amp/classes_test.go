package amp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// torchClasses are PyTorch's lists (aten/src/ATen/autocast_mode.h, the lists of CUDA; of the CPU's, those where CUDA promotes
// without autocast) by this library's names. Names that the library does not have yet are there too, so that a new operator
// gets its class; what is in no list runs as it is.
var torchClasses = map[tensor.Class]string{
	tensor.Lower: `conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d prelu addmm addmv addr matmul mm mv bmm
		baddbmm addbmm einsum linear chain_matmul linalg_multi_dot linalg_vecdot scaled_dot_product_attention lstm_cell gru_cell rnn_cell`,
	tensor.F32: `acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow pow_scalar softplus layer_norm group_norm
		cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
		margin_ranking_loss multilabel_margin_loss multi_margin_loss soft_margin_loss triplet_margin_loss binary_cross_entropy_with_logits
		dist pdist cdist renorm logsumexp interpolate prod softmax log_softmax cumprod cumsum sum norm`,
	tensor.Widest: "addcdiv addcmul atan2 bilinear cross dot vdot grid_sample index_put tensordot scatter_add cat stack index_copy",
	tensor.Banned: "binary_cross_entropy",
}

// ownClasses are the operators that PyTorch makes of others, which are in its lists, and parts of the ones above and of
// their gradients.
var ownClasses = map[string]tensor.Class{
	"rms_norm": tensor.F32, "normalize": tensor.F32, "nll": tensor.F32, "standardize": tensor.F32, "sum_mul": tensor.F32, "softplus_neg": tensor.F32, "rope": tensor.F32,
	"bce": tensor.Banned, "bce_with_logits": tensor.F32, "conv_weight_grad": tensor.Lower,
}

func TestClasses(t *testing.T) {
	want := map[string]tensor.Class{}
	for class, names := range torchClasses {
		for _, n := range strings.Fields(names) {
			want[n] = class
		}
	}
	for n, class := range ownClasses {
		want[n] = class
	}
	for _, op := range tensor.Ops() {
		if strings.HasPrefix(op.Name, "test_") {
			continue
		}
		if op.Class != want[op.Name] {
			t.Errorf("%s: class %v, want %v", op.Name, op.Class, want[op.Name])
		}
	}
}

// TestClassesHold runs the samples of every operator on float16 operands, with and without autocast to bfloat16: the dtype
// of the result follows the operator's class, also of operators that are made of others.
func TestClassesHold(t *testing.T) {
	for _, op := range tensor.Ops() {
		if op.Call == nil || strings.HasPrefix(op.Name, "test_") || op.Name == "cast" || op.Kind == tensor.KindRandom {
			continue
		}
		for _, sample := range op.Samples {
			if sample.Err != "" || len(sample.In) == 0 {
				continue
			}
			s := tensor.NewScope(tensor.CPU())
			half := halfOperands(s, sample)
			if !slices.ContainsFunc(half, func(x *tensor.Tensor) bool { return x.DType() == tensor.Float16 }) {
				continue
			}
			outside := op.Call(half, sample.Attrs)
			var inside []*tensor.Tensor
			amp.Autocast(s, func() { inside = op.Call(half, sample.Attrs) }, amp.DType(tensor.BFloat16))
			for i, got := range inside {
				if err := got.Err(); err != nil {
					if op.Class != tensor.Banned && outside[i].Err() == nil {
						t.Errorf("%s (%s): %v", op.Name, sample.Name, err)
					}
					continue
				}
				if outside[i].Err() != nil || !outside[i].DType().IsFloat() {
					continue
				}
				want := outside[i].DType()
				switch op.Class {
				case tensor.Lower:
					want = tensor.BFloat16
				case tensor.F32:
					want = tensor.Float32
				}
				if got.DType() != want && op.Name != "cross_entropy" { // of float32 parts, as PyTorch's
					t.Errorf("%s (%s), class %v: result %d is %s under autocast, want %s", op.Name, sample.Name, op.Class, i, got.DType(), want)
				}
			}
			s.Close()
		}
	}
}

// halfOperands makes a sample's operands, its float32 ones in float16.
func halfOperands(s *tensor.Scope, sample tensor.Sample) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, a := range sample.In {
		d := a.DType
		if d == tensor.InvalidDType || d == tensor.Float32 {
			d = tensor.Float16
		}
		out = append(out, s.To(tensor.FromFloat64s(a.Data, a.Shape...).Cast(d)))
	}
	return out
}

var declared = map[tensor.Class]tensor.OpFunc{}

func init() {
	for _, c := range []tensor.Class{tensor.AsIs, tensor.Lower, tensor.F32, tensor.Widest, tensor.Banned} {
		declared[c] = tensor.DefineElementwise(tensor.Elementwise{Name: fmt.Sprintf("test_amp_class_%d", c), Arity: 2, Class: c,
			Body: func(b *ir.Builder, in ...ir.Value) ir.Value { return b.Add(in[0], in[1]) }})
	}
}

// TestCustomOperatorsDeclareTheirClass: the class of a custom operator's definition holds as a built-in one's.
func TestCustomOperatorsDeclareTheirClass(t *testing.T) {
	s := tensor.NewScope(tensor.CPU())
	x := matrix(s, 2)
	half, brain, double := x.Cast(tensor.Float16), x.Cast(tensor.BFloat16), x.Cast(tensor.Float64)
	amp.Autocast(s, func() {
		for _, c := range []struct {
			class tensor.Class
			a, b  *tensor.Tensor
			want  tensor.DType
		}{
			{tensor.AsIs, half, half, tensor.Float16},
			{tensor.Lower, x, half, tensor.BFloat16},
			{tensor.F32, half, brain, tensor.Float32},
			{tensor.Widest, half, half, tensor.Float16},
			{tensor.Widest, half, brain, tensor.Float32},
			{tensor.Widest, half, x, tensor.Float32},
			{tensor.Lower, double, double, tensor.Float64},
		} {
			y := declared[c.class](c.a, c.b)
			if err := y.Err(); err != nil {
				t.Fatal(err)
			}
			if y.DType() != c.want {
				t.Errorf("class %v of %s and %s gives %s, want %s", c.class, c.a.DType(), c.b.DType(), y.DType(), c.want)
			}
		}
		err := declared[tensor.Banned](x, x).Err()
		for _, part := range []string{"unsafe to autocast", "BCEWithLogits", "classes_test.go"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("a banned operator gives %v, which should contain %q", err, part)
			}
		}
		amp.Autocast(s, func() {
			if err := declared[tensor.Banned](x, x).Err(); err != nil {
				t.Errorf("a banned operator where autocast is off: %v", err)
			}
		}, amp.Enabled(false))
	}, amp.DType(tensor.BFloat16))
}
