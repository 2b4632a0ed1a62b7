package ir

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxParams is the number of 4-byte scalar parameters a kernel may have: Vulkan promises 128 bytes of push constants.
const MaxParams = 32

// Value is the result of an instruction.
type Value = *Instr

// Instr is one instruction. Instructions are made by a [Builder]; passes and emitters read them.
type Instr struct {
	Op     Op
	Type   Type // of the result; Kind Void if there is none
	ID     int  // unique in the kernel, in order of creation
	Args   []Value
	Imm    uint64   // OpConst, OpParam, the id operations, OpExtract, OpShuffleXor
	Mem    *Mem     // OpLoad, OpStore, atomics
	Blocks []*Block // OpIf: then, else; OpFor: body
	Name   string   // optional, for people: printed IR, diagnostics, emitted text
}

// Block is a sequence of instructions.
type Block struct {
	Instrs []*Instr
}

// Space says where memory lives.
type Space uint8

// The memory spaces.
const (
	Global  Space = iota // a buffer of the device, bound at launch
	Shared               // workgroup memory
	Private              // an array of each invocation
)

// String returns the space's name.
func (s Space) String() string { return [...]string{"global", "shared", "private"}[s] }

// Access says how a kernel uses a global buffer.
type Access uint8

// The kinds of access, a bit set.
const (
	Read      Access = 1
	Write     Access = 2
	ReadWrite Access = Read | Write
)

// String returns the access's name.
func (a Access) String() string { return [...]string{"none", "read", "write", "readwrite"}[a&3] }

// Mem is an array of scalars.
type Mem struct {
	Name   string
	Space  Space
	Kind   Kind
	Access Access // Global only
	Len    int    // number of elements; Shared and Private only
	Index  int    // position among the kernel's memories of the same space; for Global the binding number
}

// Param is a scalar parameter, 4 bytes: kind I32, U32 or F32.
type Param struct {
	Name string
	Kind Kind
}

// Kernel is a finished kernel.
type Kernel struct {
	Name     string
	Ops      []string // names of the operators it computes, for profiles and diagnostics
	Local    [3]int   // workgroup size
	Subgroup int      // invocations that run together and exchange values (see Builder.SetSubgroup); 0 if none do
	Mems     []*Mem   // in order of declaration
	Params   []Param
	Body     *Block
	NumInstr int // IDs of instructions are below it

	// Template is what the kernel computes as a whole, where its maker wants a device to be able to run a native
	// program in its place (see backend.Overrider); nil for most kernels. It is no part of the kernel's identity.
	Template any
}

// Globals returns the global buffers in order of their binding.
func (k *Kernel) Globals() []*Mem { return k.space(Global) }

// Shareds returns the workgroup arrays.
func (k *Kernel) Shareds() []*Mem { return k.space(Shared) }

// Privates returns the private arrays.
func (k *Kernel) Privates() []*Mem { return k.space(Private) }

func (k *Kernel) space(s Space) []*Mem {
	var out []*Mem
	for _, m := range k.Mems {
		if m.Space == s {
			out = append(out, m)
		}
	}
	return out
}

// Invocations returns the number of invocations in a workgroup.
func (k *Kernel) Invocations() int { return k.Local[0] * k.Local[1] * k.Local[2] }

// SharedBytes returns the bytes of workgroup memory that the kernel declares.
func (k *Kernel) SharedBytes() int {
	n := 0
	for _, m := range k.Mems {
		if m.Space == Shared {
			n += m.Len * m.Kind.Size()
		}
	}
	return n
}

// Hash returns a hex digest of everything that determines what the kernel does, including its name. Two kernels
// with the same hash are interchangeable.
func (k *Kernel) Hash() string {
	h := sha256.Sum256([]byte(k.String()))
	return hex.EncodeToString(h[:16])
}

// Walk calls f for each instruction in program order, entering blocks after the instruction that owns them.
func (k *Kernel) Walk(f func(*Instr)) { k.Body.walk(f) }

func (b *Block) walk(f func(*Instr)) {
	for _, in := range b.Instrs {
		f(in)
		for _, inner := range in.Blocks {
			inner.walk(f)
		}
	}
}
