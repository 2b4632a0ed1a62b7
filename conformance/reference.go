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
unit in their own last place besides. Rows that are parts of other operators' gradients are listed last.
`)
	ops := tensor.Ops()
	slices.SortFunc(ops, func(a, b *tensor.OpInfo) int { return strings.Compare(a.Name, b.Name) })
	part := func(o *tensor.OpInfo) bool {
		return strings.HasSuffix(o.Name, "_grad") || strings.HasSuffix(o.Name, "_share") || strings.HasSuffix(o.Name, "_backward")
	}
	for _, kind := range []tensor.OpKind{tensor.KindElementwise, tensor.KindReduction, tensor.KindTemplate, tensor.KindView, tensor.KindComposite, tensor.KindRandom, tensor.KindMove} {
		writeOperators(&sb, kindTitles[kind], ops, func(o *tensor.OpInfo) bool { return o.Kind == kind && !part(o) })
	}
	writeOperators(&sb, "Parts of gradients", ops, part)
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
	if o.Kind == tensor.KindRandom || o.Kind == tensor.KindMove {
		return "exact"
	}
	cl, vk := boundOf(o, "opencl"), boundOf(o, "vulkan")
	s := cl.describe(tensor.Float32)
	if cl.ulp != vk.ulp {
		s += fmt.Sprintf(" (Vulkan %g)", vk.ulp)
	}
	return cellText(s)
}

// Lacks says what a row of the operator table lacks to be complete: documentation, a reference, samples, error samples. Operands of
// elementwise rows are generated, and so are operands that they must reject. Random rows are held against the streams of
// the CPU and their moments by the random suite, and rows that only name what a method does have no call to test.
func Lacks(o *tensor.OpInfo) []string {
	var out []string
	if strings.TrimSpace(o.Doc) == "" {
		out = append(out, "doc")
	}
	if o.Kind == tensor.KindRandom || o.Call == nil {
		return out
	}
	if o.Ref == nil {
		out = append(out, "reference")
	}
	if o.Elementwise() != nil {
		return out
	}
	if !slices.ContainsFunc(o.Samples, func(s tensor.Sample) bool { return s.Err == "" }) {
		out = append(out, "samples")
	}
	if !slices.ContainsFunc(o.Samples, func(s tensor.Sample) bool { return s.Err != "" }) {
		out = append(out, "error samples")
	}
	return out
}
