package ir

import (
	"fmt"
	"strings"
)

// String prints the kernel as text, one instruction a line. The text is deterministic and complete: Hash is made from it.
func (k *Kernel) String() string {
	if k == nil {
		return "<nil kernel>"
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "kernel %s local %dx%dx%d", k.Name, k.Local[0], k.Local[1], k.Local[2])
	if k.Subgroup > 0 {
		fmt.Fprintf(&sb, " subgroup %d", k.Subgroup)
	}
	if len(k.Ops) > 0 {
		fmt.Fprintf(&sb, " ops %s", strings.Join(k.Ops, ","))
	}
	sb.WriteString("\n")
	for i, p := range k.Params {
		fmt.Fprintf(&sb, "  param %d %s %s\n", i, p.Kind, p.Name)
	}
	for _, m := range k.Mems {
		if m.Space == Global {
			fmt.Fprintf(&sb, "  global %d %s %s %s\n", m.Index, m.Access, m.Kind, m.Name)
		} else {
			fmt.Fprintf(&sb, "  %s %d %s[%d] %s\n", m.Space, m.Index, m.Kind, m.Len, m.Name)
		}
	}
	printBlock(&sb, k.Body, "  ")
	return sb.String()
}

func printBlock(sb *strings.Builder, b *Block, indent string) {
	for _, in := range b.Instrs {
		sb.WriteString(indent)
		printInstr(sb, in)
		sb.WriteString("\n")
		for i, inner := range in.Blocks {
			if in.Op == OpIf && i == 1 {
				if len(inner.Instrs) == 0 {
					continue
				}
				sb.WriteString(indent + "else\n")
			}
			printBlock(sb, inner, indent+"  ")
		}
	}
}

func printInstr(sb *strings.Builder, in *Instr) {
	if in.Type.Kind != Void {
		fmt.Fprintf(sb, "%%%d:%s = ", in.ID, in.Type)
	}
	sb.WriteString(in.Op.String())
	switch in.Op {
	case OpConst:
		sb.WriteString(" " + constText(in.Type.Kind, in.Imm))
	case OpParam, OpGlobalID, OpLocalID, OpGroupID, OpNumGroups:
		fmt.Fprintf(sb, " %d", in.Imm)
	}
	if in.Mem != nil {
		sb.WriteString(" " + in.Mem.Name)
	}
	for i, a := range in.Args {
		if i > 0 || in.Mem != nil {
			sb.WriteString(",")
		}
		if a == nil {
			sb.WriteString(" <nil>")
			continue
		}
		fmt.Fprintf(sb, " %%%d", a.ID)
	}
	switch in.Op {
	case OpExtract:
		fmt.Fprintf(sb, ", lane %d", in.Imm)
	case OpShuffleXor:
		fmt.Fprintf(sb, ", mask %d", in.Imm)
	}
	if in.Name != "" {
		fmt.Fprintf(sb, "  ; %s", in.Name)
	}
}

// String prints the instruction as in printed IR.
func (in *Instr) String() string {
	if in == nil {
		return "<nil>"
	}
	var sb strings.Builder
	printInstr(&sb, in)
	return sb.String()
}
