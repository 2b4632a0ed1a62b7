package train

import (
	"encoding/csv"
	"io"
	"math"
	"sort"
	"strconv"
)

// StepInfo describes some optimizer steps that ended.
type StepInfo struct {
	Epoch   int
	Step    int     // optimizer steps so far, over all epochs
	Steps   int     // of the whole run
	Loss    float64 // the mean over the steps since the last report
	LR      float64 // the first group's, of the last step
	Skipped int     // steps left out so far because a gradient overflowed
}

// EpochInfo describes an epoch that ended.
type EpochInfo struct {
	Epoch   int                `json:"epoch"`
	Step    int                `json:"step"`
	Loss    float64            `json:"loss"` // mean of training
	LR      float64            `json:"lr"`
	Metrics map[string]float64 `json:"metrics,omitempty"` // "val_loss" and the loop's metrics, if it evaluates
}

// Observer watches a Loop. Calls come from the loop's goroutine. An error ends the run.
type Observer interface {
	OnSteps(StepInfo) error
	OnEpoch(EpochInfo) error
	// OnEnd comes once, with the run's error or nil.
	OnEnd(err error) error
}

// csvLog writes a row an epoch.
type csvLog struct {
	w     *csv.Writer
	names []string
	begun bool
}

// NewCSVLog returns an observer that writes a header and a row for each epoch: epoch, step, loss, lr, and the metrics by name.
// A resumed run writes only the epochs after it.
func NewCSVLog(w io.Writer) Observer { return &csvLog{w: csv.NewWriter(w)} }

func (l *csvLog) OnSteps(StepInfo) error { return nil }

func (l *csvLog) OnEpoch(e EpochInfo) error {
	if !l.begun {
		l.begun = true
		for name := range e.Metrics {
			l.names = append(l.names, name)
		}
		sort.Strings(l.names)
		if err := l.w.Write(append([]string{"epoch", "step", "loss", "lr"}, l.names...)); err != nil {
			return err
		}
	}
	row := []string{strconv.Itoa(e.Epoch), strconv.Itoa(e.Step), number(e.Loss), number(e.LR)}
	for _, name := range l.names {
		v, ok := e.Metrics[name]
		if !ok {
			v = math.NaN()
		}
		row = append(row, number(v))
	}
	if err := l.w.Write(row); err != nil {
		return err
	}
	l.w.Flush() // a run that is killed leaves what it had
	return l.w.Error()
}

func (l *csvLog) OnEnd(error) error { return nil }

func number(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
