package interp

import (
	"fmt"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// FaultKind is what a kernel did wrong.
type FaultKind string

// The faults that Check finds.
const (
	OutOfBounds      FaultKind = "out-of-bounds access"
	Misaligned       FaultKind = "misaligned vector access"
	Race             FaultKind = "race"
	Uninitialised    FaultKind = "read of memory that nobody wrote"
	DivergentBarrier FaultKind = "divergent barrier"
	DivisionByZero   FaultKind = "integer division by zero"
	ShiftTooLarge    FaultKind = "shift by the width or more"
	EndlessLoop      FaultKind = "loop that cannot end"
)

// Finding is a fault of a kernel: the first occurrence of it at an instruction.
type Finding struct {
	Fault      FaultKind
	Kernel     string
	Instr      string // the instruction as printed IR
	Value      string // the name of the value (the index, for a memory access), or its number in printed IR
	Mem        string // the memory, or empty
	Index      int64  // the element of Mem, the divisor or the shift amount
	Group      [3]int // the workgroup
	Invocation [3]int // the position within the workgroup
	Detail     string // what it was in conflict with, or which sizes there are
	Count      int    // how many invocations did the same at this instruction
}

// String returns one line for people.
func (f Finding) String() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "kernel %s: %s", f.Kernel, f.Fault)
	if f.Mem != "" {
		fmt.Fprintf(&sb, ": %s[%d]", f.Mem, f.Index)
	}
	if f.Detail != "" {
		fmt.Fprintf(&sb, " (%s)", f.Detail)
	}
	fmt.Fprintf(&sb, " by invocation %v of group %v in \"%s\", value %s", f.Invocation, f.Group, f.Instr, f.Value)
	if f.Count > 1 {
		fmt.Fprintf(&sb, "; %d times in all", f.Count)
	}
	return sb.String()
}

// CheckError is the error of [Check] for a kernel that has faults.
type CheckError struct {
	Kernel   string
	Findings []Finding
	Dropped  int // findings over CheckOptions.MaxFindings
}

// Error lists the findings, one a line.
func (e *CheckError) Error() string {
	var sb strings.Builder
	for i, f := range e.Findings {
		if i > 0 {
			sb.WriteString("\n")
		}
		sb.WriteString(f.String())
	}
	if e.Dropped > 0 {
		fmt.Fprintf(&sb, "\nand %d more", e.Dropped)
	}
	return sb.String()
}

// Has reports whether there is a finding of the given kind.
func (e *CheckError) Has(kind FaultKind) bool {
	for _, f := range e.Findings {
		if f.Fault == kind {
			return true
		}
	}
	return false
}

func valueName(v ir.Value) string {
	if v == nil {
		return "none"
	}
	if v.Name != "" {
		return v.Name
	}
	return fmt.Sprintf("%%%d", v.ID)
}

type findingKey struct {
	fault FaultKind
	instr int
}

// report adds a finding, or counts it if the instruction has one of the same kind already.
func (c *checker) report(fault FaultKind, in *ir.Instr, inv int, value ir.Value, index int64, detail string) {
	key := findingKey{fault, in.ID}
	if i, ok := c.seen[key]; ok {
		if i >= 0 {
			c.err.Findings[i].Count++
		}
		return
	}
	if len(c.err.Findings) >= c.maxFindings {
		c.seen[key] = -1
		c.err.Dropped++
		return
	}
	c.seen[key] = len(c.err.Findings)
	f := Finding{Fault: fault, Kernel: c.k.Name, Instr: in.String(), Value: valueName(value), Index: index, Group: c.group,
		Invocation: c.localID(inv), Detail: detail, Count: 1}
	if in.Mem != nil {
		f.Mem = in.Mem.Name
	}
	c.err.Findings = append(c.err.Findings, f)
}

func (c *checker) localID(inv int) [3]int {
	l := c.k.Local
	return [3]int{inv % l[0], inv / l[0] % l[1], inv / (l[0] * l[1])}
}
