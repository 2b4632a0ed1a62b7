package amp

import (
	"fmt"
	"strings"
	"sync"

	"github.com/anygpu/anygpu/tensor"
)

// Option changes an Autocast call.
type Option func(*autocastConfig)

type autocastConfig struct {
	dtype    tensor.DType
	disabled bool
	noCache  bool
}

// DType sets the lower precision: tensor.Float16 or tensor.BFloat16. The default is Float16 on GPUs (any Vulkan or OpenCL
// device) and BFloat16 on the CPU, as in PyTorch.
func DType(d tensor.DType) Option { return func(c *autocastConfig) { c.dtype = d } }

// Enabled switches autocast off for the call if on is false: operators then run in the dtypes of their operands.
func Enabled(on bool) Option { return func(c *autocastConfig) { c.disabled = !on } }

// CacheWeights switches the cache of cast weights off if on is false.
func CacheWeights(on bool) Option { return func(c *autocastConfig) { c.noCache = !on } }

// Autocast runs f; meanwhile operators whose results belong to s (or to a scope inside it) get their operands cast by
// their class: matrix products and convolutions to the lower precision, numerically delicate operators to float32,
// some to the widest of their operands; all others run as they are. Only float16, bfloat16 and float32 tensors are
// cast, never float64 or integers. Calls nest; the state before is restored when f returns or panics.
//
// Call Backward outside. Gradients run in the dtypes of the forward operators, and arrive in the parameters' dtype.
func Autocast(s *tensor.Scope, f func(), opts ...Option) {
	cfg := autocastConfig{}
	for _, o := range opts {
		o(&cfg)
	}
	if s == nil {
		f() // every operator of a nil scope fails by itself
		return
	}
	caster := tensor.Caster(tensor.NoCast)
	if !cfg.disabled {
		if cfg.dtype == tensor.InvalidDType {
			cfg.dtype = DefaultDType(s)
		}
		sess := enter(s)
		defer leave(s, sess)
		p := &policy{scope: s, dtype: cfg.dtype, session: sess, noCache: cfg.noCache}
		caster = p.cast
	}
	old := s.SetCaster(caster)
	defer s.SetCaster(old)
	f()
}

// DefaultDType returns the lower precision that Autocast takes on the scope's device if none is asked for.
func DefaultDType(s *tensor.Scope) tensor.DType {
	if dev := s.Device(); dev != nil && dev.Info().API == "cpu" {
		return tensor.BFloat16
	}
	return tensor.Float16
}

// session holds the casts of a scope while Autocast calls on it are nested. The casts themselves belong to the scope; those that
// gradients do not need are discarded at the end.
type session struct {
	depth   int
	weights map[castKey]*tensor.Tensor
	casts   []*tensor.Tensor
}

type castKey struct {
	weight  *tensor.Tensor
	version [2]uint64 // an update in place makes the cast stale
	dtype   tensor.DType
	grad    bool // the cast carries a gradient: one that was made under NoGrad would cut the graph of later uses
}

var (
	sessionsMu sync.Mutex
	sessions   = map[*tensor.Scope]*session{}
)

func enter(s *tensor.Scope) *session {
	sessionsMu.Lock()
	defer sessionsMu.Unlock()
	sess := sessions[s]
	if sess == nil {
		sess = &session{weights: map[castKey]*tensor.Tensor{}}
		sessions[s] = sess
	}
	sess.depth++
	return sess
}

func leave(s *tensor.Scope, sess *session) {
	sessionsMu.Lock()
	defer sessionsMu.Unlock()
	if sess.depth--; sess.depth == 0 {
		delete(sessions, s)
		for _, c := range sess.casts {
			c.Discard()
		}
	}
}

// policy casts the operands of one Autocast call.
type policy struct {
	scope   *tensor.Scope
	dtype   tensor.DType
	session *session
	noCache bool
}

func (p *policy) cast(op *tensor.OpInfo, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if p.dtype != tensor.Float16 && p.dtype != tensor.BFloat16 {
		return nil, fmt.Errorf("autocast: the lower precision must be float16 or bfloat16, not %s", p.dtype)
	}
	switch op.Class {
	case tensor.Lower:
		return p.all(in, p.dtype), nil
	case tensor.F32:
		return p.all(in, tensor.Float32), nil
	case tensor.Widest:
		widest := tensor.InvalidDType
		for _, t := range in {
			switch {
			case !castable(t) || t.DType() == widest:
			case widest == tensor.InvalidDType:
				widest = t.DType()
			default: // float32 with a lower one, or float16 with bfloat16
				widest = tensor.Float32
			}
		}
		return p.all(in, widest), nil
	case tensor.Banned:
		return nil, fmt.Errorf("%s is unsafe to autocast: a %s probability loses what its logarithm needs. Many models use a sigmoid layer right "+
			"before the binary cross entropy layer. In this case, combine the two using tensor.BCEWithLogits (bce_with_logits), which is "+
			"safe to autocast. Otherwise run it inside Autocast with Enabled(false), on operands cast to float32", op.Name, p.dtype)
	}
	return in, nil
}

// castable reports whether autocast may change the tensor's dtype.
func castable(t *tensor.Tensor) bool {
	if t == nil {
		return false
	}
	switch t.DType() {
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
		return true
	}
	return false
}

func (p *policy) all(in []*tensor.Tensor, d tensor.DType) []*tensor.Tensor {
	if d == tensor.InvalidDType {
		return in
	}
	out := make([]*tensor.Tensor, len(in))
	for i, t := range in {
		out[i] = p.one(t, d)
	}
	return out
}

// one casts a tensor. The cast of a trainable leaf is cached until the outermost Autocast call on the scope returns.
func (p *policy) one(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	if !castable(t) || t.DType() == d {
		return t
	}
	cacheable := !p.noCache && t.DType() == tensor.Float32 && d != tensor.Float32 && t.IsLeaf() && t.RequiresGrad()
	key := castKey{t, t.Version(), d, true}
	if cacheable {
		// A cast with a gradient serves everywhere, one without only under NoGrad.
		c := p.session.weights[key]
		if key.grad = p.scope.GradEnabled(); c == nil && !key.grad {
			c = p.session.weights[key]
		}
		if c != nil && c.Err() == nil {
			return c
		}
	}
	if t.Scope() == nil && sameDevice(t, p.scope) {
		t = p.scope.To(t) // the cast of a parameter lives as long as the step
	}
	c := t.Cast(d)
	p.session.casts = append(p.session.casts, c)
	if cacheable {
		p.session.weights[key] = c
	}
	return c
}

func sameDevice(t *tensor.Tensor, s *tensor.Scope) bool { return t.Device() == s.Device() }

// Policy describes what autocast does to each class of operators, a line each, for people.
func Policy() string {
	names := map[tensor.Class][]string{}
	for _, op := range tensor.Ops() {
		names[op.Class] = append(names[op.Class], op.Name)
	}
	var sb strings.Builder
	for _, c := range []struct {
		class tensor.Class
		text  string
	}{
		{tensor.Lower, "lower precision"}, {tensor.F32, "float32"}, {tensor.Widest, "widest input"},
		{tensor.Banned, "refused"}, {tensor.AsIs, "as is"},
	} {
		fmt.Fprintf(&sb, "%s: %s\n", c.text, strings.Join(names[c.class], " "))
	}
	return sb.String()
}
