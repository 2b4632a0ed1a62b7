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
	Seconds        float64 `json:"seconds"`          // of one application, the median
	BytesPerSecond float64 `json:"bytes_per_second"` // operands and results, each once; 0 where these are too small to tell
	FLOPS          float64 `json:"flops"`            // 0 where the operator's work is not known
	OfCopy         float64 `json:"of_copy"`          // BytesPerSecond over the device's copy bandwidth
	OfProduct      float64 `json:"of_product"`       // FLOPS over the device's product rate
	Launches       float64 `json:"launches_each"`    // kernels an application takes
}

// perfSizes are the elements of elementwise operands.
func perfSizes(quick bool) []int {
	if quick {
		return []int{1 << 18}
	}
	return []int{1 << 12, 1 << 18, 1 << 22}
}

// perfLeastBytes is how much an application must read and write for a rate.
const perfLeastBytes = 64 << 10

// perfLarge are operands of a size that training has, for operators whose samples are small.
var perfLarge = map[string]struct {
	name   string
	shapes [][]int
	attrs  tensor.Attrs
}{
	"matmul":      {"[512 512] [512 512]", [][]int{{512, 512}, {512, 512}}, nil},
	"linear":      {"[256 784] to 512", [][]int{{256, 784}, {512, 784}, {512}}, nil},
	"conv2d":      {"[16 32 32 32], 64 of 3x3", [][]int{{16, 32, 32, 32}, {64, 32, 3, 3}, {64}}, tensor.Attrs{"padding": 1}},
	"max_pool2d":  {"[16 32 32 32], 2x2", [][]int{{16, 32, 32, 32}}, tensor.Attrs{"kernel_size": 2}},
	"softmax":     {"[2048 512]", [][]int{{2048, 512}}, tensor.Attrs{"dim": 1}},
	"log_softmax": {"[2048 512]", [][]int{{2048, 512}}, tensor.Attrs{"dim": 1}},
	"layer_norm":  {"[2048 512]", [][]int{{2048, 512}, {512}, {512}}, nil},
	"sum":         {"[2048 512], rows", [][]int{{2048, 512}}, tensor.Attrs{"dims": []int{1}}},
	"mean":        {"[2048 512], columns", [][]int{{2048, 512}}, tensor.Attrs{"dims": []int{0}}},
	"amax":        {"[2048 512], rows", [][]int{{2048, 512}}, tensor.Attrs{"dims": []int{1}}},
	"cumsum":      {"[2048 512], rows", [][]int{{2048, 512}}, tensor.Attrs{"dim": 1}},
	"cat":         {"2 of [1024 512]", [][]int{{1024, 512}, {1024, 512}}, tensor.Attrs{"dim": 0}},
}

// perfArray makes numbers between -1 and 1.
func perfArray(shape ...int) tensor.Array {
	a := tensor.Array{Shape: shape, Data: make([]float64, tensor.Numel(shape)), DType: tensor.Float32}
	for i := range a.Data {
		a.Data[i] = float64(i*37%128-64) / 64
	}
	return a
}

// perf measures the device and its operators.
func perf(e *env) (*PerfReport, error) {
	r := &PerfReport{ProductSize: 512}
	if e.opts.Quick {
		r.ProductSize = 256
	}
	n := perfSizes(e.opts.Quick)
	largest := n[len(n)-1]
	if err := r.measureDevice(e, largest); err != nil {
		return nil, err
	}
	type job struct {
		op    *tensor.OpInfo
		name  string
		in    []tensor.Array
		attrs tensor.Attrs
	}
	var jobs []job
	for _, op := range tensor.Ops() {
		if l, ok := perfLarge[op.Name]; ok && (e.opts.Case == nil || e.opts.Case.MatchString(op.Name)) {
			in := make([]tensor.Array, len(l.shapes))
			for k, shape := range l.shapes {
				in[k] = perfArray(shape...)
			}
			jobs = append(jobs, job{op, l.name, in, l.attrs})
		}
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
		if bytes < perfLeastBytes {
			// Its time is that of the launch: a rate would say nothing.
			row.BytesPerSecond = 0
			r.Rows = append(r.Rows, row)
			continue
		}
		if f := flopsOf(j.op, j.in, out); f > 0 {
			row.FLOPS = f / sec
		}
		r.Rows = append(r.Rows, row)
	}
	// Again, for a device that was cold or busy before.
	if err := r.measureDevice(e, largest); err != nil {
		return nil, err
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.OfCopy, row.OfProduct = row.BytesPerSecond/r.CopyBytesPerSecond, row.FLOPS/r.ProductFLOPS
	}
	return r, nil
}

// measureDevice measures copies of n elements and a product, and keeps the best rates.
func (r *PerfReport) measureDevice(e *env, n int) error {
	for range 3 {
		t, err := e.time(func(s *tensor.Scope) func() *tensor.Tensor {
			x := place(s, perfArray(n), contiguous) // not a constant, which would be written and not read
			return func() *tensor.Tensor { return x.Clone() }
		})
		if err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		r.CopyBytesPerSecond = max(r.CopyBytesPerSecond, 8*float64(n)/t.best)
		t, err = e.time(func(s *tensor.Scope) func() *tensor.Tensor {
			a := place(s, perfArray(r.ProductSize, r.ProductSize), contiguous)
			return func() *tensor.Tensor { return a.MatMul(a) }
		})
		if err != nil {
			return fmt.Errorf("matmul: %w", err)
		}
		size := float64(r.ProductSize)
		r.ProductFLOPS = max(r.ProductFLOPS, 2*size*size*size/t.best)
	}
	return nil
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
