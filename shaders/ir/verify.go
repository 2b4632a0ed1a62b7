package ir

import "fmt"

// Verify checks a kernel: declarations, one rule for each instruction (operand count, types, lanes, memory access),
// scopes (a value is used only after its definition, in the same or an inner block), structured control flow, and
// that no barrier and no exchange stands under divergent control flow. It runs before every emitter. Errors are *[VerifyError] and
// match [ErrInvalid].
func Verify(k *Kernel) error {
	if k == nil {
		return errNilKernel
	}
	v := &verifier{k: k, seen: make([]bool, max(k.NumInstr, 0)), scope: make([]*Instr, max(k.NumInstr, 0)), mems: map[*Mem]bool{}}
	if rule := v.declarations(); rule != "" {
		return &VerifyError{Kernel: k.Name, Rule: rule}
	}
	if bad, rule := v.block(k.Body, nil); rule != "" {
		return &VerifyError{Kernel: k.Name, Instr: bad.String(), Rule: rule}
	}
	if bad := divergentBarrier(k); bad != nil {
		return &VerifyError{Kernel: k.Name, Instr: bad.String(), Rule: bad.Op.String() + " under divergent control flow: not every invocation of the workgroup reaches it"}
	}
	return nil
}

type verifier struct {
	k     *Kernel
	seen  []bool   // IDs in use
	scope []*Instr // by ID: the values visible at the current place
	mems  map[*Mem]bool
}

// declarations checks everything outside the body and returns the broken rule.
func (v *verifier) declarations() string {
	k := v.k
	if k.Name == "" {
		return "a kernel needs a name"
	}
	for _, n := range k.Local {
		if n < 1 {
			return fmt.Sprintf("workgroup size %dx%dx%d: each dimension must be at least 1", k.Local[0], k.Local[1], k.Local[2])
		}
	}
	if s := k.Subgroup; s != 0 && (s < 2 || s&(s-1) != 0 || k.Local[0]%s != 0 || k.Local[1]*k.Local[2] != 1) {
		return fmt.Sprintf("subgroups of %d in a workgroup of %dx%dx%d: they need a power of two and a one-dimensional workgroup that is a multiple of it",
			s, k.Local[0], k.Local[1], k.Local[2])
	}
	if len(k.Params) > MaxParams {
		return fmt.Sprintf("%d parameters: at most %d are allowed", len(k.Params), MaxParams)
	}
	for i, p := range k.Params {
		if p.Kind != I32 && p.Kind != U32 && p.Kind != F32 {
			return fmt.Sprintf("parameter %d (%s) has kind %s: i32, u32 and f32 are allowed", i, p.Name, p.Kind)
		}
	}
	names := map[string]bool{}
	var count [Private + 1]int
	for i, m := range k.Mems {
		if m == nil {
			return fmt.Sprintf("memory %d is nil", i)
		}
		if rule := memRule(m); rule != "" {
			return fmt.Sprintf("memory %q: %s", m.Name, rule)
		}
		if names[m.Name] {
			return fmt.Sprintf("memory %q is declared twice", m.Name)
		}
		names[m.Name] = true
		if m.Index != count[m.Space] {
			return fmt.Sprintf("memory %q has index %d: it is number %d of %s memory", m.Name, m.Index, count[m.Space], m.Space)
		}
		count[m.Space]++
		v.mems[m] = true
	}
	if k.Body == nil {
		return "a kernel needs a body"
	}
	return ""
}

func memRule(m *Mem) string {
	switch {
	case m.Name == "":
		return "memory needs a name"
	case m.Space > Private:
		return fmt.Sprintf("space %d does not exist", m.Space)
	case m.Space == Global && m.Kind.Size() == 0:
		return fmt.Sprintf("%s has no memory form", m.Kind)
	case m.Space == Global && (m.Access == 0 || m.Access > ReadWrite):
		return "a global buffer needs read access, write access or both"
	case m.Space != Global && !m.Kind.IsArith():
		return fmt.Sprintf("%s arrays need an arithmetic kind, not %s", m.Space, m.Kind)
	case m.Space != Global && m.Len < 1:
		return fmt.Sprintf("%d elements: an array needs at least 1", m.Len)
	}
	return ""
}

// block checks the instructions of b, which belongs to owner (nil for the body), and returns the first bad one with the
// rule it breaks. Values of b go out of scope at its end.
func (v *verifier) block(b *Block, owner *Instr) (*Instr, string) {
	if owner != nil && owner.Op == OpFor && (len(b.Instrs) == 0 || b.Instrs[0] == nil || b.Instrs[0].Op != OpLoopVar) {
		return owner, "a loop's body must begin with its loop_var"
	}
	for i, in := range b.Instrs {
		if in == nil {
			return nil, "instruction is nil"
		}
		if in.Op == OpLoopVar && (i > 0 || owner == nil || owner.Op != OpFor) {
			return in, "loop_var may only be the first instruction of a loop's body"
		}
		if in.Op == OpLoopVar && (len(in.Args) > 0 || in.Type != owner.Args[0].Type) {
			return in, fmt.Sprintf("loop_var has no operands and the type of the loop's bounds, %s", owner.Args[0].Type)
		}
		if rule := v.instr(in); rule != "" {
			return in, rule
		}
		v.scope[in.ID] = in
		for _, inner := range in.Blocks {
			if bad, rule := v.block(inner, in); rule != "" {
				return bad, rule
			}
		}
	}
	for _, in := range b.Instrs {
		v.scope[in.ID] = nil
	}
	return nil, ""
}

// instr checks what all instructions share, then the operation's own rule.
func (v *verifier) instr(in *Instr) string {
	if in.Op >= numOps || rules[in.Op] == nil {
		return fmt.Sprintf("%s is no operation", in.Op)
	}
	info := opInfos[in.Op]
	if in.ID < 0 || in.ID >= len(v.seen) {
		return fmt.Sprintf("id %d is not below the kernel's count of %d", in.ID, len(v.seen))
	}
	if v.seen[in.ID] {
		return fmt.Sprintf("id %d is used twice", in.ID)
	}
	v.seen[in.ID] = true
	if info.args >= 0 && len(in.Args) != info.args {
		return fmt.Sprintf("%s takes %d operands, not %d", in.Op, info.args, len(in.Args))
	}
	for i, a := range in.Args {
		switch {
		case a == nil:
			return fmt.Sprintf("operand %d is nil", i)
		case !v.visible(a):
			return fmt.Sprintf("operand %d (%%%d) is not defined here: values are visible after their definition, in the same and in inner blocks", i, a.ID)
		case a.Type.Kind == Void:
			return fmt.Sprintf("operand %d (%s) has no value", i, a.Op)
		case a.Op == OpVar && !(i == 0 && (in.Op == OpGet || in.Op == OpSet)):
			return fmt.Sprintf("operand %d is a variable: only get and set may use it", i)
		}
	}
	if in.Type.Kind >= numKinds || in.Type.Kind != Void && !ValidLanes(in.Type.Lanes) {
		return fmt.Sprintf("type %s does not exist", in.Type)
	}
	if info.class != classAtomic && in.Op != OpLoad && in.Op != OpStore && in.Mem != nil {
		return fmt.Sprintf("%s has no memory operand", in.Op)
	}
	if n := blocksOf(in.Op); len(in.Blocks) != n {
		return fmt.Sprintf("%s has %d blocks, not %d", in.Op, n, len(in.Blocks))
	}
	for _, b := range in.Blocks {
		if b == nil {
			return "a block is nil"
		}
	}
	return rules[in.Op](v, in)
}

// visible reports whether a is defined at the current place.
func (v *verifier) visible(a *Instr) bool {
	return a.ID >= 0 && a.ID < len(v.scope) && v.scope[a.ID] == a
}

func blocksOf(op Op) int {
	switch op {
	case OpIf:
		return 2
	case OpFor:
		return 1
	}
	return 0
}
