package conformance

import (
	"fmt"
	"math"
	"strings"
)

// Status is the outcome of a case.
type Status string

// The statuses of a case.
const (
	Pass         Status = "pass"
	Fail         Status = "fail"
	Skip         Status = "skip"          // the caller asked for it
	NotSupported Status = "not-supported" // the device lacks what the message names
)

// Result is the outcome of a case.
type Result struct {
	Name     string    `json:"name"` // suite/…: unique in a report
	Suite    string    `json:"suite"`
	Op       string    `json:"op,omitempty"`
	DType    string    `json:"dtype,omitempty"`
	Status   Status    `json:"status"`
	Seconds  float64   `json:"seconds"`
	WorstULP *float64  `json:"worst_ulp,omitempty"`      // where results were measured in units in the last place
	OfBound  *float64  `json:"worst_of_bound,omitempty"` // the largest error as a part of what is allowed there
	Bound    string    `json:"bound,omitempty"`          // what the results were held to
	Message  string    `json:"message,omitempty"`        // of a failure, or the missing feature
	Mismatch *Mismatch `json:"mismatch,omitempty"`
	Rerun    string    `json:"rerun,omitempty"` // the command that runs this case alone, of failures
}

// NotSupportedError says that a case needs something that the device lacks or that is not built.
type NotSupportedError struct{ What string }

func (e *NotSupportedError) Error() string { return "not supported: " + e.What }

func notSupported(format string, args ...any) error {
	return &NotSupportedError{fmt.Sprintf(format, args...)}
}

// Mismatch is a difference between a device's results and the expected ones: the worst element.
type Mismatch struct {
	What     string   `json:"what"` // the result or gradient
	Op       string   `json:"op,omitempty"`
	DType    string   `json:"dtype,omitempty"`
	Operands []string `json:"operands,omitempty"` // "x float32 [2 3] strides [1 2]"
	Attrs    string   `json:"attrs,omitempty"`
	Off      int      `json:"off"`      // elements out of bounds
	Elements int      `json:"elements"` // of the result
	Index    int      `json:"index"`    // the worst element, row-major
	Input    []string `json:"input,omitempty"`
	Got      string   `json:"got"`
	ULP      float64  `json:"ulp"` // distance of the worst element in units in the last place of the expected value; 0 where it has no meaning
	Want     string   `json:"want"`
	Bound    string   `json:"bound"`
}

// Error returns what differs, in a few lines.
func (m *Mismatch) Error() string {
	var sb strings.Builder
	if m.Op != "" {
		fmt.Fprintf(&sb, "%s of %s: ", m.Op, m.DType)
	}
	fmt.Fprintf(&sb, "%s: %d of %d elements are off, the worst at %d: got %s, want %s", m.What, m.Off, m.Elements, m.Index, m.Got, m.Want)
	if m.ULP > 0 {
		fmt.Fprintf(&sb, " (%.4g ULP)", m.ULP)
	}
	fmt.Fprintf(&sb, "; the bound is %s", m.Bound)
	if len(m.Input) > 0 {
		fmt.Fprintf(&sb, "\n  input %s", strings.Join(m.Input, ", "))
	}
	if len(m.Operands) > 0 {
		fmt.Fprintf(&sb, "\n  operands %s", strings.Join(m.Operands, "; "))
	}
	if m.Attrs != "" {
		fmt.Fprintf(&sb, "\n  attributes %s", m.Attrs)
	}
	return sb.String()
}

// number prints a value so that its bits can be told: JSON has no NaN and no infinities.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.9g", v)
}

// measured is what a case says of a success: how close it was.
type measured struct {
	ulp     float64
	ofBound float64
	has     bool
	bound   string
}

func (m *measured) add(o measured) {
	if o.has && (!m.has || o.ulp > m.ulp || math.IsNaN(o.ulp)) {
		m.ulp, m.has = o.ulp, true
	}
	m.ofBound = max(m.ofBound, o.ofBound)
	if o.bound != "" {
		m.bound = o.bound
	}
}
