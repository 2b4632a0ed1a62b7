package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anygpu/anygpu/tensor"
)

// OperatorReference returns the reference of the operator table as Markdown: docs/operators.md, which
// 'go run ./conformance/internal/gendocs' writes.
func OperatorReference() string {
	var sb strings.Builder
	sb.WriteString(`# Operators

Generated from the operator table by ` + "`go run ./conformance/internal/gendocs`" + `; do not edit.

Every row runs on every device. Names, arguments and defaults are PyTorch's. *Autocast* is what mixed precision does to the operands
(` + "`amp`" + `). *Bound* is what ` + "`anygpu conformance`" + ` holds float32 results to, against a float64 reference; float16 and bfloat16 may be off by one
unit in their own last place besides. Rows that are parts of other operators' gradients, and rows that only name methods in errors and
profiles, are listed last.
`)
	ops := tensor.Ops()
	slices.SortFunc(ops, func(a, b *tensor.OpInfo) int { return strings.Compare(a.Name, b.Name) })
	part := func(o *tensor.OpInfo) bool {
		return strings.HasSuffix(o.Name, "_grad") || strings.HasSuffix(o.Name, "_share") || strings.HasSuffix(o.Name, "_backward")
	}
	for _, kind := range []tensor.OpKind{tensor.KindElementwise, tensor.KindReduction, tensor.KindTemplate, tensor.KindView, tensor.KindComposite, tensor.KindRandom, tensor.KindMove} {
		writeOperators(&sb, kindTitles[kind], ops, func(o *tensor.OpInfo) bool { return o.Kind == kind && !part(o) && o.NamesOnly == "" })
	}
	writeOperators(&sb, "Parts of gradients", ops, part)
	writeNames(&sb, ops)
	return sb.String()
}

var kindTitles = map[tensor.OpKind]string{
	tensor.KindElementwise: "Elementwise: operands are broadcast and promoted to one dtype",
	tensor.KindReduction:   "Reductions",
	tensor.KindTemplate:    "Products and convolutions: kernel templates",
	tensor.KindView:        "Views: they share memory with their operand",
	tensor.KindComposite:   "Compositions of other operators",
	tensor.KindRandom:      "Random: the same stream on every device",
	tensor.KindMove:        "Copies between devices, dtypes and layouts",
}

func writeOperators(sb *strings.Builder, title string, ops []*tensor.OpInfo, want func(o *tensor.OpInfo) bool) {
	ops = slices.DeleteFunc(slices.Clone(ops), func(o *tensor.OpInfo) bool { return !want(o) })
	if len(ops) == 0 {
		return
	}
	fmt.Fprintf(sb, "\n## %s\n\n| operator | operands | parameters | what it computes | gradient | autocast | bound |\n| --- | --- | --- | --- | --- | --- | --- |\n", title)
	for _, o := range ops {
		fmt.Fprintf(sb, "| `%s` | %s | %s | %s | %s | %s | %s |\n", o.Name, codeList(o.Inputs), paramText(o), cellText(o.Doc), gradientText(o), o.Class, boundText(o))
	}
}

// writeNames lists the rows that only name a method.
func writeNames(sb *strings.Builder, ops []*tensor.OpInfo) {
	ops = slices.DeleteFunc(slices.Clone(ops), func(o *tensor.OpInfo) bool { return o.NamesOnly == "" })
	if len(ops) == 0 {
		return
	}
	sb.WriteString("\n## Names in errors and profiles\n\n| name | what it does | why it is no operator to check |\n| --- | --- | --- |\n")
	for _, o := range ops {
		fmt.Fprintf(sb, "| `%s` | %s | %s |\n", o.Name, cellText(o.Doc), cellText(o.NamesOnly))
	}
}

// cellText makes a text fit for a cell of a table.
func cellText(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "*", `\*`, "<", "&lt;").Replace(strings.TrimSpace(s))
}

func codeList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "`" + n + "`"
	}
	return strings.Join(out, " ")
}

// paramText lists scalar parameters with their defaults, or the attributes that the samples use.
func paramText(o *tensor.OpInfo) string {
	var out []string
	if e := o.Elementwise(); e != nil {
		for i, p := range e.Params {
			s := p
			if i < len(e.Default) {
				s = fmt.Sprintf("%s=%g", p, e.Default[i])
			}
			out = append(out, s)
		}
		return codeList(out)
	}
	for _, s := range o.Samples {
		for k := range s.Attrs {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	slices.Sort(out)
	return codeList(out)
}

func gradientText(o *tensor.OpInfo) string {
	switch {
	case o.Inputs != nil && len(o.Inputs) == 0: // not nil: a list of operands
		return "no"
	case o.Differentiable == nil:
		return "yes"
	case !slices.Contains(o.Differentiable, true):
		return "no"
	case !slices.Contains(o.Differentiable, false):
		return "yes"
	}
	var out []string
	for i, d := range o.Differentiable {
		if d {
			out = append(out, operandName(o, i))
		}
	}
	return codeList(out)
}

func boundText(o *tensor.OpInfo) string {
	if o.Kind == tensor.KindMove {
		return "exact"
	}
	if b := boundOf(o, "opencl"); o.Kind == tensor.KindRandom && b.kind == exactBound {
		return "exact"
	}
	cl, vk := boundOf(o, "opencl"), boundOf(o, "vulkan")
	s := cl.describe(tensor.Float32)
	if cl.ulp != vk.ulp {
		s += fmt.Sprintf(" (Vulkan %g)", vk.ulp)
	}
	return cellText(s)
}

// Lacks says what a row of the operator table lacks to be complete: documentation, a call, a reference, samples, and error samples
// or the reason why there are no errors. Operands of elementwise rows are generated, and so are operands that they must
// reject. A row that only names a method has the reason instead, and nothing that could be run.
func Lacks(o *tensor.OpInfo) []string {
	var out []string
	lacks := func(what string, missing bool) {
		if missing {
			out = append(out, what)
		}
	}
	lacks("doc", strings.TrimSpace(o.Doc) == "")
	if o.NamesOnly != "" {
		lacks("either a reason to be only a name or a call, a reference and samples", o.Call != nil || o.Ref != nil || len(o.Samples) > 0)
		return out
	}
	lacks("call", o.Call == nil)
	lacks("reference", o.Ref == nil)
	if o.Elementwise() != nil {
		return out
	}
	fails := slices.ContainsFunc(o.Samples, func(s tensor.Sample) bool { return s.Err != "" })
	lacks("samples", !slices.ContainsFunc(o.Samples, func(s tensor.Sample) bool { return s.Err == "" }))
	lacks("error samples or the reason why there are none", !fails && o.NoErrors == "")
	lacks("either error samples or a reason why there are none", fails && o.NoErrors != "")
	return out
}
