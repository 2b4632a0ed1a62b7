package spirv

import "github.com/anygpu/anygpu/shaders/ir"

// Texel is a uniform texel buffer of a module: a view of a storage buffer that the kernel only reads. Its format has Lanes
// unsigned integers (R, RG or RGBA) of the size of the buffer's kind.
type Texel struct {
	Buffer int     // binding of the storage buffer
	Kind   ir.Kind // of its elements: U8, U16, or a kind of 4 bytes
	Lanes  int     // 1, 2 or 4
}

// Texels returns the uniform texel buffers of the module that Emit makes of a kernel. Texel i has the binding after those of
// the kernel's buffers, plus i.
func Texels(k *ir.Kernel, opt Options) []Texel {
	if opt.Texels <= 0 {
		return nil
	}
	widths := map[*ir.Mem]*[maxLanes + 1]bool{}
	k.Walk(func(in *ir.Instr) {
		if in.Op != ir.OpLoad || in.Mem.Space != ir.Global || in.Mem.Access != ir.Read || in.Type.Lanes > maxLanes {
			return
		}
		w := widths[in.Mem]
		if w == nil {
			w = &[maxLanes + 1]bool{}
			widths[in.Mem] = w
		}
		w[in.Type.Lanes] = true
	})
	var out []Texel
	for _, m := range k.Globals() {
		w := widths[m]
		if w == nil || !texelKind(m.Kind) {
			continue
		}
		for _, lanes := range []int{1, 2, 4} {
			if w[lanes] && len(out) < opt.Texels {
				out = append(out, Texel{m.Index, m.Kind, lanes})
			}
		}
	}
	return out
}

// texelKind reports whether a texel's integers are the words that values of the kind are kept in, bit by bit.
func texelKind(k ir.Kind) bool {
	switch k {
	case ir.U8, ir.U16, ir.I32, ir.U32, ir.F32:
		return true
	}
	return false
}

// declareTexels declares the variables of the module's texel buffers.
func (e *emitter) declareTexels() {
	e.texels = map[Texel]uint32{}
	for i, t := range Texels(e.k, e.opt) {
		e.caps[capSampledBuffer] = true
		v := e.id()
		e.globals = appendInstr(e.globals, opVariable, e.pointer(classUniformConstant, e.texelImage()), v, uint32(classUniformConstant))
		e.texels[t] = v
		e.decorate(v, decoDescriptorSet, 0)
		e.decorate(v, decoBinding, uint32(len(e.k.Globals())+i))
	}
}

// texelImage returns the type of a texel buffer of unsigned integers: not a depth image, no array, one sample, sampled, format unknown.
func (e *emitter) texelImage() uint32 {
	id, _ := e.typ(opTypeImage, e.valueType(ir.Scalar(ir.U32)), dimBuffer, 0, 0, 0, 1, 0)
	return id
}

// texelOf returns the variable of the texel buffer that a load reads through; 0 if there is none.
func (e *emitter) texelOf(in *ir.Instr) uint32 {
	if in.Op != ir.OpLoad || in.Mem.Space != ir.Global {
		return 0
	}
	return e.texels[Texel{in.Mem.Index, in.Mem.Kind, in.Type.Lanes}]
}

// fetch emits a load through the texel buffer v.
func (e *emitter) fetch(in *ir.Instr, v uint32) uint32 {
	lanes := in.Type.Lanes
	word := e.valueType(ir.Scalar(ir.U32))
	texel := e.result(opImageFetch, e.vector(word, 4), e.result(opLoad, e.texelImage(), v), e.shifted(in.Args[0], lanes))
	switch lanes {
	case 1:
		texel = e.result(opCompositeExtract, word, texel, 0)
	case 2:
		texel = e.result(opCompositeConstruct, e.vector(word, 2), e.result(opCompositeExtract, word, texel, 0), e.result(opCompositeExtract, word, texel, 1))
	}
	if in.Type.Kind.IsFloat() || in.Type.Kind.IsSigned() {
		texel = e.result(opBitcast, e.valueType(in.Type), texel)
	}
	return texel
}
