package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/anygpu/anygpu/tensor"
)

// PerfReport has the speed of a device's operators beside what the device can do.
type PerfReport struct {
	CopyBytesPerSecond float64   `json:"copy_bytes_per_second"` // bytes read and written by a copy on the device
	ProductFLOPS       float64   `json:"product_flops"`         // of a float32 matrix product
	ProductSize        int       `json:"product_size"`          // its rows, columns and inner size
	Rows               []PerfRow `json:"rows"`
}

// PerfRow is the speed of an operator on one of its samples.
type PerfRow struct {
	Op             string  `json:"op"`
	Case           string  `json:"case"`
	Seconds        float64 `json:"seconds"` // of one application, the median
	BytesPerSecond float64 `json:"bytes_per_second"`
	FLOPS          float64 `json:"flops"`         // 0 where the operator's work is not known
	OfCopy         float64 `json:"of_copy"`       // BytesPerSecond over the device's copy bandwidth
	OfProduct      float64 `json:"of_product"`    // FLOPS over the device's product rate
	Launches       float64 `json:"launches_each"` // kernels an application takes
}

// perfSizes are the elements of elementwise operands.
func perfSizes(quick bool) []int {
	if quick {
		return []int{1 << 18}
	}
	return []int{1 << 12, 1 << 18, 1 << 22}
}

// perf measures the device and its operators.
func perf(e *env) (*PerfReport, error) {
	r := &PerfReport{ProductSize: 512}
	if e.opts.Quick {
		r.ProductSize = 256
	}
	n := perfSizes(e.opts.Quick)
	largest := n[len(n)-1]
	best, err := e.time(func(s *tensor.Scope) func() *tensor.Tensor {
		x := s.Full(tensor.Float32, 1, largest)
		return func() *tensor.Tensor { return x.Clone() }
	})
	if err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	r.CopyBytesPerSecond = 8 * float64(largest) / best.best
	best, err = e.time(func(s *tensor.Scope) func() *tensor.Tensor {
		a := s.Full(tensor.Float32, 0.5, r.ProductSize, r.ProductSize)
		return func() *tensor.Tensor { return a.MatMul(a) }
	})
	if err != nil {
		return nil, fmt.Errorf("matmul: %w", err)
	}
	size := float64(r.ProductSize)
	r.ProductFLOPS = 2 * size * size * size / best.best

	type job struct {
		op    *tensor.OpInfo
		name  string
		in    []tensor.Array
		attrs tensor.Attrs
	}
	var jobs []job
	for _, op := range tensor.Ops() {
		if op.Call == nil || op.Kind == tensor.KindRandom || e.opts.Case != nil && !e.opts.Case.MatchString(op.Name) {
			continue
		}
		if op.Elementwise() != nil {
			for _, size := range n {
				x := &run{env: e, name: op.Name}
				g := generate(op, tensor.Float32, x.rng(), []int{size})
				jobs = append(jobs, job{op, fmt.Sprintf("%d elements", size), g.in, g.attrs})
			}
			continue
		}
		for i, s := range op.Samples {
			if s.Err == "" {
				in, _ := sampleOperands(s, tensor.Float32, contiguous)
				jobs = append(jobs, job{op, fmt.Sprintf("%d-%s", i, caseName(s.Name)), in, s.Attrs})
			}
		}
	}
	for i, j := range jobs {
		if err := e.opts.Context.Err(); err != nil {
			return r, err
		}
		bytes := 0.0
		for _, a := range j.in {
			bytes += float64(len(a.Data) * dtypeOf(a).Size())
		}
		var out *tensor.Tensor
		took, err := e.time(func(s *tensor.Scope) func() *tensor.Tensor {
			ts := make([]*tensor.Tensor, len(j.in))
			for k, a := range j.in {
				ts[k] = place(s, a, contiguous)
			}
			return func() *tensor.Tensor {
				out = j.op.Call(ts, j.attrs)[0]
				return out
			}
		})
		e.opts.Progress(i+1, len(jobs), j.op.Name)
		if err != nil {
			continue // the check says what is wrong with it
		}
		bytes += float64(out.Numel() * out.DType().Size())
		sec := took.median
		row := PerfRow{Op: j.op.Name, Case: j.name, Seconds: sec, BytesPerSecond: bytes / sec, Launches: took.launches}
		row.OfCopy = row.BytesPerSecond / r.CopyBytesPerSecond
		if f := flopsOf(j.op, j.in, out); f > 0 {
			row.FLOPS = f / sec
			row.OfProduct = row.FLOPS / r.ProductFLOPS
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// flopsOf counts the floating-point operations of products; of others it returns 0.
func flopsOf(op *tensor.OpInfo, in []tensor.Array, out *tensor.Tensor) float64 {
	results := float64(out.Numel())
	switch {
	case op.Name == "matmul" || op.Name == "linear" || op.Name == "bmm":
		if n := len(in[0].Shape); n > 0 {
			return 2 * results * float64(in[0].Shape[n-1])
		}
	case op.Kind == tensor.KindTemplate && len(in) > 1 && len(in[1].Shape) > 2 && in[1].Shape[0] > 0:
		// A convolution: each result sums over the inputs and the window of one output channel's weights.
		return 2 * results * float64(len(in[1].Data)/in[1].Shape[0])
	}
	return 0
}

// perfRounds is how often an operator is timed, and perfRepeats how often it runs between two synchronizations.
const (
	perfRounds  = 5
	perfRepeats = 4
)

// timing is how long one application takes, in seconds, and how many kernels.
type timing struct{ median, best, launches float64 }

// time times what prepare returns. The results are kept until the work is done.
func (e *env) time(prepare func(s *tensor.Scope) func() *tensor.Tensor) (t timing, err error) {
	err = guarded(func() error {
		s := tensor.NewScope(e.dev)
		defer s.Close()
		f := prepare(s)
		once := func(n int) (time.Duration, error) {
			step := s.NewScope()
			start := time.Now()
			for range n {
				t := f()
				if err := t.Err(); err != nil {
					return 0, err
				}
			}
			if err := tensor.Synchronize(e.dev); err != nil {
				return 0, err
			}
			d := time.Since(start)
			return d, step.Close()
		}
		if _, err := once(1); err != nil { // compiles
			return err
		}
		before := tensor.Launches(e.dev).Launches
		times := make([]time.Duration, perfRounds)
		for i := range times {
			d, err := once(perfRepeats)
			if err != nil {
				return err
			}
			times[i] = d
		}
		t.launches = float64(tensor.Launches(e.dev).Launches-before) / (perfRounds * perfRepeats)
		slices.Sort(times)
		t.best, t.median = times[0].Seconds()/perfRepeats, times[perfRounds/2].Seconds()/perfRepeats
		return nil
	})
	return t, err
}
