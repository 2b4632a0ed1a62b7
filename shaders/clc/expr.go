package clc

import (
	"fmt"
	"strings"

	"github.com/anygpu/anygpu/shaders/ir"
)

var infix = map[ir.Op]string{
	ir.OpAdd: "+", ir.OpSub: "-", ir.OpMul: "*", ir.OpDiv: "/", ir.OpRem: "%", ir.OpAnd: "&", ir.OpOr: "|", ir.OpXor: "^",
	ir.OpShl: "<<", ir.OpShr: ">>", ir.OpEq: "==", ir.OpNe: "!=", ir.OpLt: "<", ir.OpLe: "<=", ir.OpGt: ">", ir.OpGe: ">=",
}

var ids = map[ir.Op]string{
	ir.OpGlobalID: "get_global_id", ir.OpLocalID: "get_local_id", ir.OpGroupID: "get_group_id", ir.OpNumGroups: "get_num_groups",
}

// mathNames are the built-in functions, where they are not named as the operation.
var mathNames = map[ir.Op]string{ir.OpRound: "rint"}

// expr returns the expression of an instruction with a result.
func (e *emitter) expr(in *ir.Instr) string {
	var a [3]string
	for i := 0; i < len(in.Args) && i < len(a); i++ {
		a[i] = ref(in.Args[i])
	}
	t := in.Type
	switch in.Op {
	case ir.OpParam:
		return e.paramName(int(in.Imm))
	case ir.OpGlobalID, ir.OpLocalID, ir.OpGroupID, ir.OpNumGroups:
		return fmt.Sprintf("(uint)%s(%d)", ids[in.Op], in.Imm)
	case ir.OpAdd, ir.OpSub, ir.OpMul:
		if t.Kind == ir.I32 || t.Kind == ir.I64 {
			u := unsignedOf(t)
			return fmt.Sprintf("as_%s(as_%s(%s) %s as_%s(%s))", typeName(t), u, a[0], infix[in.Op], u, a[1])
		}
		return fmt.Sprintf("%s %s %s", a[0], infix[in.Op], a[1])
	case ir.OpDiv, ir.OpRem, ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpShl, ir.OpShr:
		return fmt.Sprintf("%s %s %s", a[0], infix[in.Op], a[1])
	case ir.OpMin, ir.OpMax:
		return fmt.Sprintf("%s%s(%s, %s)", floatPrefix(t.Kind), in.Op, a[0], a[1])
	case ir.OpNeg:
		if t.Kind == ir.I32 || t.Kind == ir.I64 {
			return fmt.Sprintf("as_%s(-as_%s(%s))", typeName(t), unsignedOf(t), a[0])
		}
		return "-" + a[0]
	case ir.OpAbs:
		if t.Kind.IsFloat() {
			return fmt.Sprintf("fabs(%s)", a[0])
		}
		return fmt.Sprintf("as_%s(abs(%s))", typeName(t), a[0])
	case ir.OpFma:
		if e.opt.SplitFma {
			return fmt.Sprintf("%s * %s + %s", a[0], a[1], a[2])
		}
		return fmt.Sprintf("fma(%s, %s, %s)", a[0], a[1], a[2])
	case ir.OpMulHi:
		return fmt.Sprintf("mul_hi(%s, %s)", a[0], a[1])
	case ir.OpNot:
		if t == ir.Scalar(ir.Bool) {
			return "!" + a[0]
		}
		return "~" + a[0]
	case ir.OpEq, ir.OpNe, ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe:
		return boolOf(fmt.Sprintf("%s %s %s", a[0], infix[in.Op], a[1]), in.Args[0].Type)
	case ir.OpSelect:
		return selectOf(a[0], a[1], a[2], t)
	case ir.OpConvert:
		return convert(a[0], in.Args[0].Type, t)
	case ir.OpBitCast:
		return fmt.Sprintf("as_%s(%s)", typeName(t), a[0])
	case ir.OpSplat:
		if t.Kind == ir.Bool {
			return fmt.Sprintf("(%s)(-%s)", typeName(t), a[0])
		}
		return fmt.Sprintf("(%s)(%s)", typeName(t), a[0])
	case ir.OpExtract:
		lane := fmt.Sprintf("%s.s%x", a[0], in.Imm)
		if t.Kind == ir.Bool {
			return "-" + lane
		}
		return lane
	case ir.OpVec:
		if first, ok := e.near.loads[in]; ok {
			return e.loadNeighbours(in, first)
		}
		return vector(in)
	case ir.OpVar:
		return a[0]
	case ir.OpGet:
		return a[0]
	case ir.OpLoad:
		return e.load(in)
	}
	switch {
	case in.Op.IsMath():
		return e.math(in, a)
	case in.Op.IsAtomic():
		return e.atomic(in)
	}
	e.fail(in, "has no form in OpenCL C")
	return ""
}

func floatPrefix(k ir.Kind) string {
	if k.IsFloat() {
		return "f"
	}
	return ""
}

// boolOf makes a Bool of a comparison of operands of type t, whose vector masks are as wide as t.
func boolOf(x string, t ir.Type) string {
	if t.Lanes == 1 || t.Kind == ir.Bool || t.Kind.Size() == 4 {
		return x
	}
	return fmt.Sprintf("convert_int%d(%s)", t.Lanes, x)
}

func selectOf(cond, x, y string, t ir.Type) string {
	if t.Lanes == 1 {
		return fmt.Sprintf("%s ? %s : %s", cond, x, y)
	}
	if mask := signedOf(t); mask != signedOf(t.With(ir.Bool)) {
		cond = fmt.Sprintf("convert_%s(%s)", mask, cond)
	}
	return fmt.Sprintf("select(%s, %s, %s)", y, x, cond) // select takes the second where the mask is set
}

// convert converts a value. Lowering has already clamped conversions of floats to integers; default roundings are
// to nearest even for floats and toward zero for integers.
func convert(x string, from, to ir.Type) string {
	switch {
	case to.Kind == ir.Bool:
		return boolOf(fmt.Sprintf("%s != %s", x, scalarConst(from.Kind, 0)), from)
	case from.Kind == ir.Bool && to.Lanes > 1:
		if to.Kind == ir.I32 {
			return "-" + x
		}
		return fmt.Sprintf("convert_%s(-%s)", typeName(to), x)
	case to.Lanes > 1:
		return fmt.Sprintf("convert_%s(%s)", typeName(to), x)
	}
	return fmt.Sprintf("(%s)%s", typeName(to), x)
}

func vector(in *ir.Instr) string {
	parts := make([]string, len(in.Args))
	for i, a := range in.Args {
		parts[i] = ref(a)
		if in.Type.Kind == ir.Bool {
			parts[i] = "-" + parts[i]
		}
	}
	return fmt.Sprintf("(%s)(%s)", typeName(in.Type), strings.Join(parts, ", "))
}

// math prints a math function. Functions of F16 are computed in F32, as the IR defines them; the half versions have
// looser bounds.
func (e *emitter) math(in *ir.Instr, a [3]string) string {
	f := in.Op.String()
	if s, ok := mathNames[in.Op]; ok {
		f = s
	}
	n := len(in.Args)
	if in.Type.Kind == ir.F16 {
		for i := range n {
			a[i] = convert(a[i], in.Type, in.Type.With(ir.F32))
		}
	}
	x := fmt.Sprintf("%s(%s)", f, strings.Join(a[:n], ", "))
	if in.Type.Lanes > 1 && e.opt.Lanewise.Has(in.Op) {
		x = lanewise(f, a[:n], in.Type)
	}
	if in.Type.Kind == ir.F16 {
		return convert(x, in.Type.With(ir.F32), in.Type)
	}
	return x
}

// lanewise calls a function for each lane of its operands.
func lanewise(f string, args []string, t ir.Type) string {
	parts := make([]string, t.Lanes)
	for i := range parts {
		lane := make([]string, len(args))
		for j, a := range args {
			lane[j] = fmt.Sprintf("%s.s%x", a, i)
		}
		parts[i] = fmt.Sprintf("%s(%s)", f, strings.Join(lane, ", "))
	}
	if t.Kind == ir.F16 {
		t.Kind = ir.F32
	}
	return fmt.Sprintf("(%s)(%s)", typeName(t), strings.Join(parts, ", "))
}
