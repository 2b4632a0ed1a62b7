package clc

import (
	"fmt"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Align is the alignment in bytes that emitted text expects of every region of a buffer: that of the widest vector,
// and of OpenCL's own allocations.
const Align = 128

// Options changes what [Emit] prints.
type Options struct {
	// SplitFma prints Fma as a product and a sum, for devices that emulate fma (no CL_FP_FMA in their
	// configuration). Both roundings are allowed by the IR.
	SplitFma bool
	// Lanewise are the math functions to call lane by lane, for devices whose vector forms are wrong.
	Lanewise ir.MathSet
	// Annotate adds the printed IR of each instruction as a comment.
	Annotate bool
	// Entry names the kernel function; [EntryPoint] if empty. Texts whose functions have different names may be compiled as
	// one program.
	Entry string
}

// EntryPoint returns the name of the kernel function in the text of k, unless Options.Entry names it. The prefix keeps it apart from OpenCL's
// built-in functions, whose names are those of operators.
func EntryPoint(k *ir.Kernel) string { return "k_" + clean(k.Name) }

// Emit returns the kernel as OpenCL C. The kernel must have been lowered to the capabilities of an OpenCL device. An
// error names the kernel and the instruction that has no form in OpenCL C.
func Emit(k *ir.Kernel, opt Options) (string, error) {
	if err := ir.Verify(k); err != nil {
		return "", err
	}
	if opt.Entry == "" {
		opt.Entry = EntryPoint(k)
	}
	e := &emitter{k: k, opt: opt, indent: 1}
	if err := e.scan(); err != nil {
		return "", fmt.Errorf("clc: kernel %s: %w", k.Name, err)
	}
	e.near = findNeighbours(k)
	e.header()
	e.block(k.Body)
	e.sb.WriteString("}\n")
	if e.err != nil {
		return "", fmt.Errorf("clc: kernel %s: %w", k.Name, e.err)
	}
	return e.sb.String(), nil
}

type emitter struct {
	k      *ir.Kernel
	opt    Options
	sb     strings.Builder
	indent int
	fp16   bool // half values occur, not just half memory
	fp64   bool
	near   *neighbours
	err    error
}

func (e *emitter) fail(in *ir.Instr, format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("%s: %s", in, fmt.Sprintf(format, args...))
	}
}

// comment makes s fit in a comment of one line, which a newline or a backslash at its end would leave.
func comment(s string) string { return strings.NewReplacer("\n", " ", "\r", " ", "\\", "/").Replace(s) }

// scan finds which extensions the kernel needs and rejects what lowering should have removed.
func (e *emitter) scan() error {
	var err error
	e.k.Walk(func(in *ir.Instr) {
		switch in.Type.Kind {
		case ir.F16:
			e.fp16 = true
		case ir.F64:
			e.fp64 = true
		case ir.BF16:
			if err == nil {
				err = fmt.Errorf("%s: bf16 value; lower the kernel first", in)
			}
		}
		if in.Op == ir.OpShuffleXor && err == nil {
			err = fmt.Errorf("%s: exchange within a subgroup; OpenCL has it in extensions only, which are not used", in)
		}
		for _, a := range in.Args {
			e.fp16 = e.fp16 || a.Type.Kind == ir.F16
		}
	})
	for _, m := range e.k.Mems {
		if m.Kind == ir.BF16 && err == nil {
			err = fmt.Errorf("memory %s holds bf16; lower the kernel first", m.Name)
		}
		e.fp64 = e.fp64 || m.Kind == ir.F64
	}
	return err
}

func (e *emitter) header() {
	w := &e.sb
	if len(e.k.Ops) > 0 {
		fmt.Fprintf(w, "// %s\n", comment(strings.Join(e.k.Ops, ", ")))
	}
	if e.fp64 {
		w.WriteString("#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n")
	}
	if e.fp16 {
		w.WriteString("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n")
	}
	w.WriteString("#pragma OPENCL FP_CONTRACT OFF\n\n")
	fmt.Fprintf(w, "__kernel __attribute__((reqd_work_group_size(%d, %d, %d)))\n", e.k.Local[0], e.k.Local[1], e.k.Local[2])
	fmt.Fprintf(w, "void %s(", e.opt.Entry)
	sep := "\n    "
	for _, m := range e.k.Globals() {
		fmt.Fprintf(w, "%s%s%s* %s_base, ulong %s_offset", sep, constOf(m), "__global "+scalarNames[m.Kind], memName(m), memName(m))
		sep = ",\n    "
	}
	for i, p := range e.k.Params {
		fmt.Fprintf(w, "%s%s %s", sep, scalarNames[p.Kind], e.paramName(i))
		sep = ",\n    "
	}
	w.WriteString(")\n{\n")
	for _, m := range e.k.Globals() {
		ptr := fmt.Sprintf("%s__global %s*", constOf(m), scalarNames[m.Kind])
		e.line("%s %s = (%s)((%s__global char*)%s_base + %s_offset);", ptr, memName(m), ptr, constOf(m), memName(m), memName(m))
	}
	for _, m := range e.k.Mems {
		if m.Space == ir.Global {
			continue
		}
		space := ""
		if m.Space == ir.Shared {
			space = "__local "
		}
		e.line("%s%s %s[%d]%s;", space, e.arrayElem(m), memName(m), m.Len, e.arrayAlign(m))
	}
}

// arrayElem returns the element type of a workgroup or private array. Without cl_khr_fp16 there are no half
// variables, so that the array is declared as ushort and read through a pointer.
func (e *emitter) arrayElem(m *ir.Mem) string {
	if m.Kind == ir.F16 && !e.fp16 {
		return "ushort"
	}
	return scalarNames[m.Kind]
}

// arrayAlign returns the attribute that makes vector accesses of an array aligned, if there are any.
func (e *emitter) arrayAlign(m *ir.Mem) string {
	lanes := 1
	e.k.Walk(func(in *ir.Instr) {
		if in.Mem != m {
			return
		}
		lanes = max(lanes, in.Type.Lanes)
		if in.Op == ir.OpStore {
			lanes = max(lanes, in.Args[1].Type.Lanes)
		}
	})
	if lanes == 1 {
		return ""
	}
	return fmt.Sprintf(" __attribute__((aligned(%d)))", lanes*m.Kind.Size())
}

func constOf(m *ir.Mem) string {
	if m.Access == ir.Read {
		return "const "
	}
	return ""
}

func memName(m *ir.Mem) string {
	return fmt.Sprintf("%s%d_%s", [...]string{"g", "s", "p"}[m.Space], m.Index, clean(m.Name))
}

func (e *emitter) paramName(i int) string { return fmt.Sprintf("a%d_%s", i, clean(e.k.Params[i].Name)) }

// ref returns an expression for a value where it is used: its identifier, or the literal of an integer constant.
func ref(v ir.Value) string {
	if !isLiteral(v) {
		return name(v)
	}
	s := scalarConst(v.Type.Kind, v.Imm)
	if s[0] == '-' || s[0] == '(' {
		return "(" + s + ")"
	}
	return s
}

// isLiteral reports whether v is printed at its uses. Floating-point constants keep a statement of their own, with their
// decimal value beside the hexadecimal one.
func isLiteral(v ir.Value) bool {
	return v.Op == ir.OpConst && v.Type.Lanes == 1 && !v.Type.Kind.IsFloat() && v.Name == ""
}

// name returns the C identifier of a value.
func name(v ir.Value) string {
	if v.Name == "" {
		return fmt.Sprintf("v%d", v.ID)
	}
	return fmt.Sprintf("v%d_%s", v.ID, clean(v.Name))
}

func (e *emitter) line(format string, args ...any) {
	for range e.indent {
		e.sb.WriteString("    ")
	}
	fmt.Fprintf(&e.sb, format, args...)
	e.sb.WriteByte('\n')
}

func (e *emitter) block(b *ir.Block) {
	for _, in := range b.Instrs {
		if e.opt.Annotate {
			e.line("// %s", comment(in.String()))
		}
		e.instr(in)
	}
}

func (e *emitter) inner(b *ir.Block) {
	e.indent++
	e.block(b)
	e.indent--
}

func (e *emitter) instr(in *ir.Instr) {
	if e.near.gone[in] {
		return
	}
	switch in.Op {
	case ir.OpIf:
		e.line("if (%s) {", ref(in.Args[0]))
		e.inner(in.Blocks[0])
		if len(in.Blocks) > 1 && len(in.Blocks[1].Instrs) > 0 {
			e.line("} else {")
			e.inner(in.Blocks[1])
		}
		e.line("}")
	case ir.OpFor:
		e.loop(in)
	case ir.OpLoopVar: // declared by its loop
	case ir.OpBarrier:
		e.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")
	case ir.OpSet:
		e.line("%s = %s;", name(in.Args[0]), ref(in.Args[1]))
	case ir.OpStore:
		if first, ok := e.near.stores[in]; ok {
			e.storeNeighbours(in, first)
			return
		}
		e.store(in)
	case ir.OpConst:
		if isLiteral(in) {
			return
		}
		e.line("const %s %s = %s;%s", typeName(in.Type), name(in), constant(in.Type, in.Imm), constComment(in.Type.Kind, in.Imm))
	default:
		if x := e.expr(in); x != "" {
			e.line("%s %s = %s;", typeName(in.Type), name(in), x)
		}
	}
}

// loop prints a counted loop.
func (e *emitter) loop(in *ir.Instr) {
	body := in.Blocks[0]
	counter := fmt.Sprintf("i%d", in.ID)
	if len(body.Instrs) > 0 && body.Instrs[0].Op == ir.OpLoopVar {
		counter = name(body.Instrs[0])
	}
	lo, hi, step := ref(in.Args[0]), ref(in.Args[1]), ref(in.Args[2])
	e.line("for (%s %s = %s; %s < %s; %s += %s) {", typeName(in.Args[0].Type), counter, lo, counter, hi, counter, step)
	e.inner(body)
	e.line("}")
}
