package ir

// Buffers of 8- and 16-bit elements on devices without such storage are U32 buffers of packed elements, the first in the
// low bits. A scalar is read by shifting its word. It is written by an atomic and that clears its bits and an atomic or
// that sets them, so that invocations that write neighbours in one word do not disturb each other. Vectors of a word
// or more are whole words, because their index is a multiple of their lanes; they are read and written directly.

// packed reports whether m is such a buffer.
func packed(m *Mem, caps Caps) bool {
	if m.Space != Global {
		return false
	}
	switch m.Kind {
	case U8:
		return !caps.U8Storage
	case U16, F16, BF16:
		return !caps.F16Storage
	}
	return false
}

// packedAccess returns the access that the words of m need: atomics read and write.
func packedAccess(k *Kernel, m *Mem) Access {
	partial := contains(k, func(in *Instr) bool {
		return in.Op == OpStore && in.Mem.Name == m.Name && in.Args[1].Type.Lanes*m.Kind.Size() < 4
	})
	if partial {
		return ReadWrite
	}
	return m.Access
}

// loadPacked returns the carrier of the elements that in loads.
func (r *rewriter) loadPacked(in *Instr) Value {
	kind, m, index := in.Mem.Kind, r.mems[in.Mem], r.val(in.Args[0])
	lanes, perWord := in.Type.Lanes, 4/kind.Size()
	bits := uint32(8 * kind.Size())
	wordIndex := r.Shr(index, r.U32(log2(perWord)))
	var x Value
	if lanes < perWord {
		word := r.Load(m, wordIndex, 1)
		x = r.Shr(r.Splat(word, lanes), r.laneShifts(lanes, perWord, bits, r.bitOffset(index, perWord, bits)))
	} else {
		words := r.loadWords(m, wordIndex, lanes/perWord)
		each := make([]Value, lanes)
		for i := range each {
			each[i] = words[i/perWord]
		}
		x = r.Shr(r.Vec(each...), r.laneShifts(lanes, perWord, bits, nil))
	}
	x = r.And(x, r.u(x, 1<<bits-1))
	if kind != F16 {
		return x
	}
	f := r.decodeF16(x)
	if in.Type.Kind == F16 {
		return r.Convert(f, carrier(F16, r.caps))
	}
	return f // a converting load
}

// storePacked stores the elements of in.
func (r *rewriter) storePacked(in *Instr) {
	kind, m, index := in.Mem.Kind, r.mems[in.Mem], r.val(in.Args[0])
	x := r.val(in.Args[1])
	if kind == F16 {
		if in.Args[1].Type.Kind == F16 {
			x = r.unrounded(in.Args[1])
		}
		x = r.encodeF16(r.Convert(x, F32))
	}
	lanes, perWord := x.Type.Lanes, 4/kind.Size()
	bits := uint32(8 * kind.Size())
	wordIndex := r.Shr(index, r.U32(log2(perWord)))
	parts := r.lanesOf(r.shiftLanes(x, perWord, bits))
	var words []Value
	for i := 0; i < lanes; i += perWord {
		word := parts[i]
		for _, p := range parts[i+1 : min(i+perWord, lanes)] {
			word = r.Or(word, p)
		}
		words = append(words, word)
	}
	if lanes >= perWord {
		r.storeWords(m, wordIndex, words)
		return
	}
	shift := r.bitOffset(index, perWord, bits)
	mask := r.Shl(r.U32(uint32(1)<<(bits*uint32(lanes))-1), shift)
	r.Atomic(OpAtomicAnd, m, wordIndex, r.Not(mask))
	r.Atomic(OpAtomicOr, m, wordIndex, r.Shl(words[0], shift))
}

// shiftLanes moves each lane of x to its place in its word.
func (r *rewriter) shiftLanes(x Value, perWord int, bits uint32) Value {
	if x.Type.Lanes == 1 {
		return x
	}
	return r.Shl(x, r.laneShifts(x.Type.Lanes, perWord, bits, nil))
}

// bitOffset returns the bit at which element index starts in its word.
func (r *rewriter) bitOffset(index Value, perWord int, bits uint32) Value {
	return r.Mul(r.And(index, r.U32(uint32(perWord-1))), r.U32(bits))
}

// laneShifts returns the bit at which each lane starts in its word, plus base if it is not nil.
func (r *rewriter) laneShifts(lanes, perWord int, bits uint32, base Value) Value {
	each := make([]Value, lanes)
	for i := range each {
		shift := uint32(i%perWord) * bits
		switch {
		case base == nil:
			each[i] = r.U32(shift)
		case shift == 0:
			each[i] = base
		default:
			each[i] = r.Add(base, r.U32(shift))
		}
	}
	return r.Vec(each...)
}

func log2(n int) uint32 {
	l := uint32(0)
	for n > 1 {
		n >>= 1
		l++
	}
	return l
}
