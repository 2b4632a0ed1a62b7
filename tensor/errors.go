package tensor

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Errors to be tested with errors.Is.
var (
	ErrFreed  = errors.New("tensor was freed")
	ErrDevice = errors.New("tensors on different devices")
	ErrShape  = errors.New("shapes do not fit")
	ErrDType  = errors.New("dtype not accepted")
	ErrGrad   = errors.New("gradient not available")
)

// Error is the error of an operator. It is kept by the operator's result and by everything computed from it.
type Error struct {
	Op       string // the operator, such as "matmul"
	File     string // the caller: the first file outside the library, without its folder
	Line     int
	Operands string // names, dtypes, shapes and devices: "a float32 [2 2] on vulkan:0, b float32 [2 1] on cpu"
	Hint     string // what to do, or empty
	Err      error  // what is wrong
}

// Error returns a text of one or two lines.
func (e *Error) Error() string {
	var sb strings.Builder
	sb.WriteString(e.Op)
	if e.File != "" {
		fmt.Fprintf(&sb, " at %s:%d", e.File, e.Line)
	}
	fmt.Fprintf(&sb, ": %v", e.Err)
	if e.Operands != "" {
		fmt.Fprintf(&sb, "\n(%s)", e.Operands)
	}
	if e.Hint != "" {
		sb.WriteString("; " + e.Hint)
	}
	return sb.String()
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// kindError is a message that matches one of the sentinels above.
type kindError struct {
	kind error
	msg  string
}

func (e *kindError) Error() string        { return e.msg }
func (e *kindError) Is(target error) bool { return target == e.kind }

func errorOf(kind error, format string, args ...any) error {
	return &kindError{kind, fmt.Sprintf(format, args...)}
}

// Must returns t, or panics with its error. It is for examples and scripts.
func Must(t *Tensor) *Tensor {
	if err := t.Err(); err != nil {
		panic(err)
	}
	return t
}

var panicAtOrigin = os.Getenv("ANYGPU_PANIC") == "1"

// trap panics where an error arises, if the environment asks for it.
func trap(err error) error {
	if panicAtOrigin {
		panic(err)
	}
	return err
}

// describe returns "float32 [2 3] on cpu".
func describe(t *Tensor) string {
	if t == nil {
		return "nil"
	}
	if t.err != nil {
		return "failed tensor"
	}
	return fmt.Sprintf("%s %v on %s", t.dtype, t.shape, t.eng.name)
}

// describeOperands returns the operands with their names; a, b, c… where the operator gives none.
func describeOperands(names []string, ts []*Tensor) string {
	var parts []string
	for i, t := range ts {
		name := string(rune('a' + i%26))
		if i < len(names) {
			name = names[i]
		}
		parts = append(parts, name+" "+describe(t))
	}
	return strings.Join(parts, ", ")
}
