package tensor

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Class says what autocast does with an operator's operands (PyTorch's lists, pytorch-semantics b7).
type Class int

// The autocast classes.
const (
	AsIs   Class = iota // operands stay as they are
	Lower               // float operands become the lower precision: products
	F32                 // float operands become float32: where range or sums matter
	Widest              // float operands become the widest of them
	Banned              // an error under autocast
)

// String returns the class's name.
func (c Class) String() string {
	return [...]string{"as is", "lower precision", "float32", "widest", "banned"}[c]
}

// OpKind is the kind of an operator.
type OpKind int

// The kinds of operators.
const (
	KindElementwise OpKind = iota
	KindReduction
	KindTemplate  // matrix product
	KindView      // shares memory with its operand
	KindComposite // made of other operators
	KindRandom
	KindMove // copies between devices, dtypes and layouts
)

// String returns the kind's name.
func (k OpKind) String() string {
	return [...]string{"elementwise", "reduction", "template", "view", "composite", "random", "move"}[k]
}

// Attrs are an operator's attributes by PyTorch's names: numbers as float64 or int, lists as []int or []any, flags as bool,
// modes as string, and for operators that make tensors "device" as a backend.Device (absent: the CPU). It is the form of tests
// and documentation; programs call the Go functions.
type Attrs map[string]any

// Array is a tensor in plain Go, for references and samples: row-major float64.
type Array struct {
	Shape []int
	Data  []float64
	DType DType // InvalidDType means Float32
}

// Sample is a test case of an operator: operands and attributes, and for an invalid one a part of the error it gives.
type Sample struct {
	Name  string
	In    []Array
	Attrs Attrs
	Err   string
}

// OpInfo is a row of the operator table.
type OpInfo struct {
	Name   string
	Doc    string
	Kind   OpKind
	Class  Class
	Inputs []string // operand names
	Params []string // names of scalar attributes, in order
	// Differentiable says which operands gradients flow to; nil: all floating-point ones.
	Differentiable []bool
	// Call runs the operator on operands and attributes.
	Call func(in []*Tensor, attrs Attrs) []*Tensor
	// Ref is an independent reference in float64; nil where the golden cases are the only one.
	Ref func(in []Array, attrs Attrs) ([]Array, error)
	// Samples are test cases, valid and invalid.
	Samples []Sample
	// NoErrors says why no sample of the row can fail; a row with invalid samples has none.
	NoErrors string
	// NamesOnly says why the row only names a method, in errors and profiles; such a row has neither Call nor Ref.
	NamesOnly string

	elementwise *Elementwise
	number      int // in order of definition
}

// Elementwise returns the definition of an elementwise operator, or nil.
func (o *OpInfo) Elementwise() *Elementwise { return o.elementwise }

// table holds the rows: replaced as a whole, so that operators find theirs without a lock.
var table struct {
	sync.Mutex
	rows atomic.Pointer[tableRows]
}

type tableRows struct {
	ops    []*OpInfo
	byName map[string]*OpInfo
}

func tableNow() *tableRows {
	if r := table.rows.Load(); r != nil {
		return r
	}
	return &tableRows{}
}

// register adds a row. Defining a name twice is a programming error and panics, as in database/sql.
func register(o *OpInfo) *OpInfo {
	table.Lock()
	defer table.Unlock()
	old := tableNow()
	if o.Name == "" || old.byName[o.Name] != nil {
		panic(fmt.Sprintf("tensor: operator %q is defined twice or has no name", o.Name))
	}
	now := &tableRows{ops: append(slices.Clip(old.ops), o), byName: maps.Clone(old.byName)}
	if now.byName == nil {
		now.byName = map[string]*OpInfo{}
	}
	now.byName[o.Name] = o
	o.number = len(now.ops)
	table.rows.Store(now)
	return o
}

// Ops returns the rows of the operator table in order of definition.
func Ops() []*OpInfo { return slices.Clone(tableNow().ops) }

// LookupOp returns the row of that name, or nil.
func LookupOp(name string) *OpInfo { return tableNow().byName[name] }

// apply runs a built-in elementwise operator.
func apply(name string, in ...*Tensor) *Tensor { return applyElementwise(LookupOp(name), nil, in) }

// applyParams runs a built-in elementwise operator with scalar parameters.
func applyParams(name string, params []float64, in ...*Tensor) *Tensor {
	return applyElementwise(LookupOp(name), params, in)
}
