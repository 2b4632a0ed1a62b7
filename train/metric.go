package train

import (
	"fmt"
	"math"

	"github.com/anygpu/anygpu/tensor"
)

// Metric measures predictions over the batches of an evaluation. A metric is for one loop.
type Metric interface {
	Name() string
	Reset()
	// Add takes a batch's output, target and mean loss over n samples.
	Add(output, target *tensor.Tensor, loss float64, n int) error
	// Value returns the measure over all batches since Reset; NaN if there were none.
	Value() float64
}

// ratio is a metric that is the quotient of two sums.
type ratio struct {
	name     string
	sum, n   float64
	add      func(r *ratio, output, target *tensor.Tensor, loss float64, n int) error
	finished func(mean float64) float64
}

func (r *ratio) Name() string { return r.name }
func (r *ratio) Reset()       { r.sum, r.n = 0, 0 }
func (r *ratio) Add(output, target *tensor.Tensor, loss float64, n int) error {
	if err := r.add(r, output, target, loss, n); err != nil {
		return fmt.Errorf("metric %s: %w", r.name, err)
	}
	return nil
}

func (r *ratio) Value() float64 {
	v := r.sum / r.n
	if r.finished != nil {
		v = r.finished(v)
	}
	return v
}

// Accuracy is the share of rows of output [n, classes] whose largest element is at the target class [n].
func Accuracy() Metric {
	return &ratio{name: "accuracy", add: func(r *ratio, output, target *tensor.Tensor, _ float64, _ int) error {
		if err := classes(output, target); err != nil {
			return err
		}
		hits, err := output.Detach().Argmax(1, false).Eq(target).Cast(tensor.Float32).Sum().Item()
		r.sum += hits
		r.n += float64(target.Numel())
		return err
	}}
}

// TopK is the share of rows of output [n, classes] with the target class [n] among the k largest elements. Of equal elements the
// one with the lower index counts as larger.
func TopK(k int) Metric {
	return &ratio{name: fmt.Sprintf("top%d", k), add: func(r *ratio, output, target *tensor.Tensor, _ float64, _ int) error {
		rows, want, width, err := host(output, target)
		if err != nil {
			return err
		}
		for i, y := range want {
			row := rows[i*width : (i+1)*width]
			before := 0
			for j, v := range row {
				if v > row[y] || v == row[y] && j < int(y) {
					before++
				}
			}
			if before < k {
				r.sum++
			}
			r.n++
		}
		return nil
	}}
}

// Perplexity is exp of the mean loss, for losses in nats.
func Perplexity() Metric {
	return &ratio{name: "perplexity", finished: math.Exp, add: func(r *ratio, _, _ *tensor.Tensor, loss float64, n int) error {
		r.sum += loss * float64(n)
		r.n += float64(n)
		return nil
	}}
}

// Mean is the mean over samples of what f returns for a batch: a tensor of one element, the batch's mean.
func Mean(name string, f func(output, target *tensor.Tensor) *tensor.Tensor) Metric {
	return &ratio{name: name, add: func(r *ratio, output, target *tensor.Tensor, _ float64, n int) error {
		v, err := f(output, target).Item()
		r.sum += v * float64(n)
		r.n += float64(n)
		return err
	}}
}

// f1 counts a confusion matrix's margins.
type f1 struct {
	classes                   int
	hit, predicted, occurring []float64
}

// F1 is the mean over classes of the harmonic mean of precision and recall (macro F1), of output [n, classes] and target [n]. A class
// that neither occurs nor is predicted counts as 0, as in scikit-learn.
func F1(classes int) Metric {
	m := &f1{classes: classes}
	m.Reset()
	return m
}

func (m *f1) Name() string { return "f1" }

func (m *f1) Reset() {
	m.hit, m.predicted, m.occurring = make([]float64, m.classes), make([]float64, m.classes), make([]float64, m.classes)
}

func (m *f1) Add(output, target *tensor.Tensor, _ float64, _ int) error {
	rows, want, width, err := host(output, target)
	if err != nil {
		return fmt.Errorf("metric f1: %w", err)
	}
	if width != m.classes {
		return fmt.Errorf("metric f1: the output has %d classes, the metric %d", width, m.classes)
	}
	for i, y := range want {
		best := 0
		for j, v := range rows[i*width : (i+1)*width] {
			if v > rows[i*width+best] {
				best = j
			}
		}
		m.predicted[best]++
		m.occurring[y]++
		if best == int(y) {
			m.hit[y]++
		}
	}
	return nil
}

func (m *f1) Value() float64 {
	sum, seen := 0.0, 0.0
	for c := range m.hit {
		if d := m.predicted[c] + m.occurring[c]; d > 0 {
			sum += 2 * m.hit[c] / d
			seen += d
		}
	}
	if seen == 0 {
		return math.NaN()
	}
	return sum / float64(m.classes)
}

func classes(output, target *tensor.Tensor) error {
	if err := output.Err(); err != nil {
		return err
	}
	if err := target.Err(); err != nil {
		return err
	}
	if output.Dim() != 2 || target.Dim() != 1 || output.Size(0) != target.Size(0) {
		return fmt.Errorf("it needs output [n, classes] and target [n], got %v and %v", output.Shape(), target.Shape())
	}
	return nil
}

// host copies logits and classes from their device.
func host(output, target *tensor.Tensor) (rows []float32, want []int64, width int, err error) {
	if err := classes(output, target); err != nil {
		return nil, nil, 0, err
	}
	if rows, err = output.Detach().CPU().Cast(tensor.Float32).Float32s(); err != nil {
		return nil, nil, 0, err
	}
	if want, err = target.CPU().Int64s(); err != nil {
		return nil, nil, 0, err
	}
	width = output.Size(1)
	for i, y := range want {
		if y < 0 || int(y) >= width {
			return nil, nil, 0, fmt.Errorf("target %d of sample %d is outside the %d classes", y, i, width)
		}
	}
	return rows, want, width, nil
}
