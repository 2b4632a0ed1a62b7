package conformance

import (
	"fmt"
	"strings"
	"sync"

	"github.com/anygpu/anygpu/tensor"
)

// shapeSet is a choice of operand shapes and layouts.
type shapeSet struct {
	name    string
	shapes  [][]int
	layouts []layout
	every   int // a quick run takes one operator in that many, 0 none
}

var shapeSets = []shapeSet{
	{"contiguous", [][]int{{2, 3, 37}}, []layout{contiguous}, 1},
	{"strided", [][]int{{3, 4, 5}, {4, 5}, {3, 1, 5}}, []layout{transposed, sliced, contiguous}, 4},
	{"scalar", [][]int{{}}, []layout{contiguous}, 1},
	{"empty", [][]int{{2, 0, 3}}, []layout{contiguous}, 1},
	{"broadcast", [][]int{{2, 1, 5}, {3, 1}, {1}}, []layout{contiguous}, 0},
	{"transposed", [][]int{{5, 3, 4}}, []layout{transposed}, 0},
	{"sliced", [][]int{{3, 2, 9}}, []layout{sliced}, 0},
	{"expanded", [][]int{{4, 3, 5}}, []layout{expanded}, 0},
	{"long", [][]int{{70001}}, []layout{contiguous}, 0},
}

// elementwiseCases are the cases of one row. A quick run has few kernels to compile: float32 by itself in some layouts, the
// other dtypes together with other operators, which the engine fuses.
func elementwiseCases(e *env, op *tensor.OpInfo, together map[tensor.DType]*jointRun) []testCase {
	var out []testCase
	row := op.Elementwise()
	gradient := strings.HasSuffix(op.Name, "_grad")
	for _, d := range allDTypes {
		if !accepts(op, d) || gradient && !d.IsFloat() {
			continue
		}
		for _, s := range shapeSets {
			joint := e.opts.Quick && d != tensor.Float32
			if joint && s.name != "contiguous" || e.opts.Quick && !e.opts.samples(op.Name, s.every) {
				continue
			}
			c := testCase{name: fmt.Sprintf("%s/%s/%s", op.Name, d, s.name), op: op.Name, dtype: d.String()}
			if joint {
				if together[d] == nil {
					together[d] = &jointRun{dtype: d, shapes: s.shapes}
				}
				c.run, c.joint = together[d].add(op), "together/"+d.String()
			} else {
				c.run = func(x *run) error {
					g := generate(op, d, x.rng(), s.shapes...)
					layouts := make([]layout, len(g.in))
					for i := range g.in {
						layouts[i] = s.layouts[i%len(s.layouts)]
						if layouts[i] == expanded {
							g.in[i] = repeatFirst(g.in[i])
						}
					}
					return x.forward(op, g.in, g.attrs, layouts)
				}
			}
			out = append(out, c)
		}
	}
	// Rows of gradients get results of their operators, which are in their range.
	if !gradient {
		out = append(out, testCase{name: op.Name + "/float32/special", op: op.Name, dtype: "float32", run: func(x *run) error {
			g := special(op)
			return x.forward(op, g.in, g.attrs, make([]layout, len(g.in)))
		}})
	}
	return append(out, testCase{name: op.Name + "/errors/generated", op: op.Name, run: func(x *run) error { return x.generatedErrors(op, row) }})
}

// jointRun is cases of several elementwise operators in one dtype that are computed together. Each has the operands that it
// would have by itself.
type jointRun struct {
	dtype  tensor.DType
	shapes [][]int
	ops    []*tensor.OpInfo

	mu   sync.Mutex
	done map[*env]map[string]jointResult // by operator; a device and its understudy have results of their own
}

type jointResult struct {
	g    generated
	outs []values
	err  error
}

// add makes the function of an operator's case.
func (j *jointRun) add(op *tensor.OpInfo) func(x *run) error {
	j.ops = append(j.ops, op)
	return func(x *run) error {
		r := j.results(x)[op.Name]
		if r.err != nil {
			return x.lacks(r.g.in, r.err)
		}
		want, err := op.Ref(r.g.in, r.g.attrs)
		if err != nil {
			return fmt.Errorf("the reference: %w", err)
		}
		if len(r.outs) < len(want) {
			return fmt.Errorf("%d results, the reference has %d", len(r.outs), len(want))
		}
		for i, w := range want {
			if err := x.compareValues(op, r.g.in, r.g.attrs, i, r.outs[i], w); err != nil {
				return explained(err, op, r.g.in, r.g.attrs, make([]layout, len(r.g.in)), w.Shape)
			}
		}
		return nil
	}
}

// results computes all operators at the first use on a device.
func (j *jointRun) results(x *run) map[string]jointResult {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.done[x.env]; r != nil {
		return r
	}
	if j.done == nil {
		j.done = map[*env]map[string]jointResult{}
	}
	out := map[string]jointResult{}
	j.done[x.env] = out
	s := tensor.NewScope(x.dev)
	defer s.Close()
	results := make([][]*tensor.Tensor, len(j.ops))
	var zero *tensor.Tensor
	for i, op := range j.ops {
		named := run{env: x.env, name: fmt.Sprintf("operators/%s/%s/contiguous", op.Name, j.dtype)}
		g := generate(op, j.dtype, named.rng(), j.shapes...)
		out[op.Name] = jointResult{g: g}
		ts := make([]*tensor.Tensor, len(g.in))
		linked := -1
		for k, a := range g.in {
			ts[k] = place(s, a, contiguous)
			if linked < 0 && a.DType == j.dtype {
				linked = k
			}
		}
		if linked >= 0 {
			ts[linked], zero = chained(ts[linked], zero)
		}
		results[i] = op.Call(ts, g.attrs)
	}
	if zero != nil {
		zero.Free()
	}
	for i, op := range j.ops {
		r := out[op.Name]
		for _, t := range results[i] {
			v, err := valuesOf(t)
			if err != nil {
				r.err = err
				break
			}
			r.outs = append(r.outs, v)
		}
		out[op.Name] = r
	}
	return out
}

// chained makes an operand depend on another operator's, by adding a zero that is computed from that, so that both operators
// become part of one kernel. It returns the operand, unchanged in value, and the next zero.
func chained(t, zero *tensor.Tensor) (operand, next *tensor.Tensor) {
	plus, minus := (*tensor.Tensor).Add, (*tensor.Tensor).Sub
	if t.DType() == tensor.Bool {
		plus, minus = (*tensor.Tensor).LogicalOr, (*tensor.Tensor).LogicalXor
	}
	if zero != nil {
		t = plus(t, zero)
		zero.Free()
	}
	return t, minus(t, t)
}
