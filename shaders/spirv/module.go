package spirv

import (
	"maps"
	"slices"

	"github.com/anygpu/anygpu/shaders/ir"
)

// module collects the sections of a SPIR-V module and hands out ids. Types and constants are declared once.
type module struct {
	caps       map[capability]bool
	extensions []string
	names      []uint32
	decos      []uint32
	globals    []uint32 // types, constants and module variables, in order of first use
	locals     []uint32 // variables of the function
	code       []uint32 // body of the function, after its variables

	entry  uint32 // label of the function's first block
	nextID uint32
	known  map[string]uint32   // declarations by opcode and operands
	values map[ir.Type]uint32  // known types of values
	consts map[constKey]uint32 // known scalar constants
	ext    uint32              // id of GLSL.std.450, 0 if unused
	inputs []uint32            // interface of the entry point
	floats Widths              // widths of the float types declared
}

type constKey struct {
	typ  ir.Type
	bits uint64
}

func newModule() *module {
	return &module{caps: map[capability]bool{capShader: true}, entry: 1, nextID: 2, known: map[string]uint32{},
		values: map[ir.Type]uint32{}, consts: map[constKey]uint32{}}
}

func (m *module) id() uint32 {
	id := m.nextID
	m.nextID++
	return id
}

// appendInstr appends an instruction to a section.
func appendInstr(s []uint32, op opcode, operands ...uint32) []uint32 {
	s = append(s, uint32(len(operands)+1)<<16|uint32(op))
	return append(s, operands...)
}

// stringWords returns s as SPIR-V packs it: UTF-8, little-endian, ended by at least one zero byte.
func stringWords(s string) []uint32 {
	w := make([]uint32, len(s)/4+1)
	for i := range len(s) {
		w[i/4] |= uint32(s[i]) << (8 * (i % 4))
	}
	return w
}

// key identifies a declaration.
func key(op opcode, operands []uint32) string {
	b := make([]byte, 0, 2+4*len(operands))
	b = append(b, byte(op), byte(op>>8))
	for _, w := range operands {
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return string(b)
}

// typ returns the type with these operands, declaring it at its first use; fresh tells whether it was.
func (m *module) typ(op opcode, operands ...uint32) (id uint32, fresh bool) {
	k := key(op, operands)
	if id, ok := m.known[k]; ok {
		return id, false
	}
	id = m.id()
	m.known[k] = id
	m.globals = appendInstr(m.globals, op, append([]uint32{id}, operands...)...)
	return id, true
}

// constant returns the constant of a type with these operands.
func (m *module) constant(op opcode, typ uint32, operands ...uint32) uint32 {
	k := key(op, append([]uint32{typ}, operands...))
	if id, ok := m.known[k]; ok {
		return id
	}
	id := m.id()
	m.known[k] = id
	m.globals = appendInstr(m.globals, op, append([]uint32{typ, id}, operands...)...)
	return id
}

func (m *module) voidType() uint32 { id, _ := m.typ(opTypeVoid); return id }

func (m *module) intType(width, signed uint32) uint32 {
	if width == 64 {
		m.caps[capInt64] = true
	}
	id, _ := m.typ(opTypeInt, width, signed)
	return id
}

func (m *module) floatType(width uint32) uint32 {
	switch width {
	case 16:
		m.floats |= Width16
	case 32:
		m.floats |= Width32
	case 64:
		m.floats |= Width64
		m.caps[capFloat64] = true
	}
	id, _ := m.typ(opTypeFloat, width)
	return id
}

func (m *module) vector(elem uint32, lanes int) uint32 {
	if lanes == 1 {
		return elem
	}
	id, _ := m.typ(opTypeVector, elem, uint32(lanes))
	return id
}

func (m *module) pointer(c storageClass, elem uint32) uint32 {
	id, _ := m.typ(opTypePointer, uint32(c), elem)
	return id
}

// valueType returns the type of values of t. Values of U8 and U16 are 32-bit words (see the package comment).
func (m *module) valueType(t ir.Type) uint32 {
	if id, ok := m.values[t]; ok {
		return id
	}
	id := m.declareValueType(t)
	m.values[t] = id
	return id
}

func (m *module) declareValueType(t ir.Type) uint32 {
	var elem uint32
	switch t.Kind {
	case ir.Bool:
		elem, _ = m.typ(opTypeBool)
	case ir.U8, ir.U16, ir.U32:
		elem = m.intType(32, 0)
	case ir.I32:
		elem = m.intType(32, 1)
	case ir.I64:
		elem = m.intType(64, 1)
	case ir.F16:
		m.caps[capFloat16] = true
		elem = m.floatType(16)
	case ir.F32:
		elem = m.floatType(32)
	case ir.F64:
		elem = m.floatType(64)
	default:
		return m.voidType()
	}
	return m.vector(elem, t.Lanes)
}

// storageType returns the type of elements of kind k in a storage buffer.
func (m *module) storageType(k ir.Kind, lanes int) uint32 {
	switch k {
	case ir.U8:
		m.caps[capStorageBuffer8BitAccess] = true
		m.extension("SPV_KHR_8bit_storage")
		return m.vector(m.intType(8, 0), lanes)
	case ir.U16:
		m.caps[capStorageBuffer16BitAccess] = true
		return m.vector(m.intType(16, 0), lanes)
	case ir.F16:
		m.caps[capStorageBuffer16BitAccess] = true
		return m.vector(m.floatType(16), lanes)
	}
	return m.valueType(ir.Vec(k, lanes))
}

func (m *module) extension(name string) {
	if !slices.Contains(m.extensions, name) {
		m.extensions = append(m.extensions, name)
	}
}

// constBits returns a constant of type t from its bits as ir keeps them.
func (m *module) constBits(t ir.Type, bits uint64) uint32 {
	k := constKey{t, bits}
	if id, ok := m.consts[k]; ok {
		return id
	}
	id := m.declareConst(t, bits)
	m.consts[k] = id
	return id
}

func (m *module) declareConst(t ir.Type, bits uint64) uint32 {
	if t.Lanes > 1 {
		elem := m.constBits(ir.Scalar(t.Kind), bits)
		parts := make([]uint32, t.Lanes)
		for i := range parts {
			parts[i] = elem
		}
		return m.constant(opConstantComposite, m.valueType(t), parts...)
	}
	typ := m.valueType(t)
	switch {
	case t.Kind == ir.Bool && bits != 0:
		return m.constant(opConstantTrue, typ)
	case t.Kind == ir.Bool:
		return m.constant(opConstantFalse, typ)
	case t.Kind.Size() == 8:
		return m.constant(opConstant, typ, uint32(bits), uint32(bits>>32))
	}
	return m.constant(opConstant, typ, uint32(bits))
}

func (m *module) u32(v uint32) uint32 { return m.constBits(ir.Scalar(ir.U32), uint64(v)) }

func (m *module) name(id uint32, name string) {
	if name != "" {
		m.names = appendInstr(m.names, opName, append([]uint32{id}, stringWords(name)...)...)
	}
}

func (m *module) decorate(id uint32, d decoration, extra ...uint32) {
	m.decos = appendInstr(m.decos, opDecorate, append([]uint32{id, uint32(d)}, extra...)...)
}

func (m *module) decorateMember(id, member uint32, d decoration, extra ...uint32) {
	m.decos = appendInstr(m.decos, opMemberDecorate, append([]uint32{id, member, uint32(d)}, extra...)...)
}

// glslSet returns the id of the extended instruction set.
func (m *module) glslSet() uint32 {
	if m.ext == 0 {
		m.ext = m.id()
	}
	return m.ext
}

// finish puts the sections together into the module of one compute kernel.
func (m *module) finish(kernelName string, local [3]int, opt Options) []uint32 {
	void := m.voidType()
	fnType, _ := m.typ(opTypeFunction, void)
	fn := m.id()
	modes := m.floatModes(fn, opt)

	out := []uint32{magic, version, 0, m.nextID, 0}
	for _, c := range slices.Sorted(maps.Keys(m.caps)) {
		out = appendInstr(out, opCapability, uint32(c))
	}
	for _, e := range m.extensions {
		out = appendInstr(out, opExtension, stringWords(e)...)
	}
	if m.ext != 0 {
		out = appendInstr(out, opExtInstImport, append([]uint32{m.ext}, stringWords("GLSL.std.450")...)...)
	}
	out = appendInstr(out, opMemoryModel, 0, 1)
	entry := append([]uint32{5, fn}, stringWords("main")...)
	out = appendInstr(out, opEntryPoint, append(entry, m.inputs...)...)
	out = appendInstr(out, opExecutionMode, fn, uint32(modeLocalSize), uint32(local[0]), uint32(local[1]), uint32(local[2]))
	out = append(out, modes...)
	out = appendInstr(out, opName, append([]uint32{fn}, stringWords(kernelName)...)...)
	out = append(out, m.names...)
	out = append(out, m.decos...)
	out = append(out, m.globals...)
	out = appendInstr(out, opFunction, void, fn, 0, fnType)
	out = appendInstr(out, opLabel, m.entry)
	out = append(out, m.locals...)
	out = append(out, m.code...)
	out = appendInstr(out, opReturn)
	return appendInstr(out, opFunctionEnd)
}

// floatModes returns the execution modes for the float widths of the kernel and declares what they need.
func (m *module) floatModes(fn uint32, opt Options) []uint32 {
	var out []uint32
	for _, c := range []struct {
		widths Widths
		mode   execMode
		cap    capability
	}{
		{opt.SignedZeroInfNanPreserve, modeSignedZeroInfNanPreserve, capSignedZeroInfNanPreserve},
		{opt.RoundingModeRTE, modeRoundingModeRTE, capRoundingModeRTE},
		{opt.DenormPreserve, modeDenormPreserve, capDenormPreserve},
	} {
		for i, w := range []Widths{Width16, Width32, Width64} {
			if c.widths&m.floats&w == 0 {
				continue
			}
			m.caps[c.cap] = true
			m.extension("SPV_KHR_float_controls")
			out = appendInstr(out, opExecutionMode, fn, uint32(c.mode), 16<<i)
		}
	}
	return out
}
