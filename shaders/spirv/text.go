package spirv

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Text prints a module made by [Emit] as assembly in the syntax of spirv-as. Ids have the names of OpName, and types and
// constants names that say what they are. What cannot be decoded is a comment that starts with "; malformed".
func Text(words []uint32) string {
	if len(words) < 5 || words[0] != magic {
		return "; malformed: no SPIR-V header\n"
	}
	p := &printer{names: map[uint32]string{}, taken: map[string]bool{}, types: map[uint32]scalarType{}}
	var instrs []instruction
	for rest := words[5:]; len(rest) > 0; {
		n := int(rest[0] >> 16)
		if n == 0 || n > len(rest) {
			p.printf("; malformed: instruction of %d words, %d left\n", n, len(rest))
			break
		}
		in := instruction{opcode(rest[0]), rest[1:n]}
		instrs = append(instrs, in)
		p.learn(in)
		rest = rest[n:]
	}
	p.printf("; SPIR-V %d.%d, bound %d\n", words[1]>>16&0xff, words[1]>>8&0xff, words[3])
	for _, in := range instrs {
		p.instr(in)
	}
	return p.sb.String()
}

type instruction struct {
	op       opcode
	operands []uint32
}

type scalarType struct {
	name  string
	width uint32
	float bool
	sign  bool
}

type printer struct {
	sb    strings.Builder
	names map[uint32]string
	taken map[string]bool
	types map[uint32]scalarType
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.sb, format, args...) }

// learn gives ids names from names, types and constants.
func (p *printer) learn(in instruction) {
	o := in.operands
	arg := func(i int) uint32 {
		if i < len(o) {
			return o[i]
		}
		return 0
	}
	switch in.op {
	case opName:
		s, _ := unpackString(o[min(1, len(o)):])
		p.call(arg(0), s)
	case opTypeVoid:
		p.call(arg(0), "void")
	case opTypeBool:
		p.scalar(arg(0), scalarType{name: "bool"})
	case opTypeInt:
		p.scalar(arg(0), scalarType{name: fmt.Sprintf("%c%d", "ui"[arg(2)&1], arg(1)), width: arg(1), sign: arg(2) != 0})
	case opTypeFloat:
		p.scalar(arg(0), scalarType{name: fmt.Sprintf("f%d", arg(1)), width: arg(1), float: true})
	case opTypeVector:
		p.call(arg(0), fmt.Sprintf("%sx%d", p.names[arg(1)], arg(2)))
	case opTypeImage:
		p.call(arg(0), "texels_"+p.names[arg(1)])
	case opTypeRuntimeArray:
		p.call(arg(0), "array_"+p.names[arg(1)])
	case opTypeStruct:
		if _, named := p.names[arg(0)]; !named && len(o) == 2 {
			p.call(arg(0), "block_"+p.names[arg(1)])
		}
	case opTypePointer:
		p.call(arg(0), fmt.Sprintf("ptr_%s_%s", enumNames['o'][arg(1)], p.names[arg(2)]))
	case opConstant:
		if t, ok := p.types[arg(0)]; ok {
			p.call(arg(1), t.name+"_"+literal(t, o[min(2, len(o)):]))
		}
	case opConstantTrue:
		p.call(arg(1), "true")
	case opConstantFalse:
		p.call(arg(1), "false")
	}
}

func (p *printer) scalar(id uint32, t scalarType) {
	p.types[id] = t
	p.call(id, t.name)
}

// call names an id, made fit for spirv-as and unique.
func (p *printer) call(id uint32, name string) {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		case r == '-':
			return 'n'
		case r == '.':
			return 'p'
		}
		return '_'
	}, name)
	if _, err := strconv.Atoi(name); err == nil || name == "" || p.taken[name] {
		name = fmt.Sprintf("%s_%d", name, id)
	}
	for p.taken[name] {
		name += "_"
	}
	p.taken[name] = true
	p.names[id] = name
}

func (p *printer) ref(id uint32) string {
	if n, ok := p.names[id]; ok {
		return "%" + n
	}
	return fmt.Sprintf("%%%d", id)
}

func unpackString(words []uint32) (s string, used int) {
	var b []byte
	for i, w := range words {
		for shift := 0; shift < 32; shift += 8 {
			c := byte(w >> shift)
			if c == 0 {
				return string(b), i + 1
			}
			b = append(b, c)
		}
	}
	return string(b), len(words) + 1
}

// literal prints a constant's words as spirv-as reads them: floats in decimal, infinities and NaN in hexadecimal.
func literal(t scalarType, words []uint32) string {
	var v uint64
	for i, w := range words {
		v |= uint64(w) << (32 * (i & 1))
	}
	switch {
	case t.float && t.width == 16:
		return floatText(float64(ir.F16ToF32(uint16(v))), v>>15&1 != 0, v&0x3ff<<42, 32, 16)
	case t.float && t.width == 32:
		return floatText(float64(math.Float32frombits(uint32(v))), v>>31 != 0, v&0x7fffff<<29, 32, 128)
	case t.float:
		return floatText(math.Float64frombits(v), v>>63 != 0, v&(1<<52-1), 64, 1024)
	case t.sign && t.width == 64:
		return strconv.FormatInt(int64(v), 10)
	case t.sign:
		return strconv.FormatInt(int64(int32(uint32(v))), 10)
	}
	return strconv.FormatUint(v, 10)
}

// floatText prints f; mantissa is its fraction, scaled to 52 bits, and exp the exponent that stands for infinity and NaN.
func floatText(f float64, negative bool, mantissa uint64, bits, exp int) string {
	if !math.IsNaN(f) && !math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	sign, frac := "", ""
	if negative {
		sign = "-"
	}
	if mantissa != 0 {
		frac = "." + strings.TrimRight(fmt.Sprintf("%013x", mantissa), "0")
	}
	return fmt.Sprintf("%s0x1%sp+%d", sign, frac, exp)
}

func (p *printer) instr(in instruction) {
	def, ok := opDefs[in.op]
	if !ok {
		p.printf("; malformed: opcode %d is not one of ours\n", in.op)
		return
	}
	parts, result, problem := p.operands(def, in.operands)
	if result != "" {
		p.printf("%s = ", result)
	} else if in.op != opFunctionEnd && in.op != opLabel {
		p.printf("  ")
	}
	p.printf("%s\n", strings.Join(append([]string{def.name}, parts...), " "))
	if problem != "" {
		p.printf("; malformed: %s: %s\n", def.name, problem)
	}
}

// operands prints the words of an instruction by its signature.
func (p *printer) operands(def opDef, words []uint32) (parts []string, result, problem string) {
	sig := def.sig
	var resultType scalarType
	for len(words) > 0 {
		if sig == "" {
			return parts, result, fmt.Sprintf("%d words too many", len(words))
		}
		kind, w := sig[0], words[0]
		if len(sig) < 2 || sig[1] != '*' {
			sig = sig[1:]
		}
		words = words[1:]
		switch kind {
		case 'T':
			resultType = p.types[w]
			parts = append(parts, p.ref(w))
		case 'R':
			result = p.ref(w)
		case 'i':
			parts = append(parts, p.ref(w))
		case 'n':
			parts = append(parts, strconv.FormatUint(uint64(w), 10))
		case 'v':
			parts = append(parts, literal(resultType, append([]uint32{w}, words...)))
			words = nil
		case 's':
			s, used := unpackString(append([]uint32{w}, words...))
			if used > len(words)+1 || !utf8.ValidString(s) {
				return parts, result, "string without an end, or no UTF-8"
			}
			words = words[used-1:]
			parts = append(parts, strconv.Quote(s))
		default:
			name, ok := enumNames[kind][w]
			if !ok {
				return parts, result, fmt.Sprintf("operand %d has no name", w)
			}
			parts = append(parts, name)
			if kind == 'd' {
				sig = decorationSig(decoration(w))
			}
		}
	}
	if rest := strings.TrimSuffix(sig, "*"); rest != "" && !strings.HasSuffix(sig, "*") || len(rest) > 1 {
		return parts, result, "words are missing"
	}
	return parts, result, ""
}

// decorationSig returns the signature of a decoration's own operands.
func decorationSig(d decoration) string {
	switch d {
	case decoBuiltIn:
		return "B"
	case decoFPRoundingMode:
		return "r"
	case decoArrayStride, decoBinding, decoDescriptorSet, decoOffset:
		return "n"
	}
	return ""
}
