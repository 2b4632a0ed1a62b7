package ir

import "slices"

// rewriter rebuilds a kernel instruction by instruction. A pass supplies visit, which handles the instructions it cares
// about and leaves the others to be copied; a value of the old kernel may become several of the new one (the chunks of a
// wide vector, the halves of a 64-bit integer).
type rewriter struct {
	*Builder
	old   *Kernel
	caps  Caps
	vals  [][]Value     // by ID of the old value
	mems  map[*Mem]*Mem // old to new
	visit func(r *rewriter, in *Instr) bool
}

// rewrite runs one pass. mem, if not nil, changes the declaration of a memory (a copy of the old one).
func rewrite(k *Kernel, caps Caps, mem func(m *Mem), visit func(r *rewriter, in *Instr) bool) (*Kernel, error) {
	b := NewBuilder(k.Name, k.Local[0], k.Local[1], k.Local[2])
	b.k.Ops, b.k.Template, b.k.Params, b.k.Subgroup = slices.Clone(k.Ops), k.Template, slices.Clone(k.Params), k.Subgroup
	r := &rewriter{Builder: b, old: k, caps: caps, vals: make([][]Value, k.NumInstr), mems: map[*Mem]*Mem{}, visit: visit}
	for _, m := range k.Mems {
		n := *m
		if mem != nil {
			mem(&n)
		}
		r.mems[m] = &n
		b.k.Mems = append(b.k.Mems, &n)
	}
	for _, in := range k.Body.Instrs {
		r.instr(in)
	}
	if b.err != nil {
		return nil, b.err
	}
	return b.k, nil
}

func (r *rewriter) instr(in *Instr) {
	if r.err == nil && !r.visit(r, in) {
		r.copy(in)
	}
}

// copy appends in with its operands replaced; they must each have become one value.
func (r *rewriter) copy(in *Instr) Value {
	args := make([]Value, len(in.Args))
	for i, a := range in.Args {
		args[i] = r.val(a)
	}
	n := r.Emit(in.Op, in.Type, in.Imm, r.mems[in.Mem], args...)
	r.blocks(in, n)
	r.set(in, n)
	return n
}

// blocks rewrites the blocks of in into n.
func (r *rewriter) blocks(in, n *Instr) {
	for _, inner := range in.Blocks {
		n.Blocks = append(n.Blocks, r.block(func() {
			for _, i := range inner.Instrs {
				r.instr(i)
			}
		}))
	}
}

// set records what the old value in has become.
func (r *rewriter) set(in *Instr, vs ...Value) {
	for _, v := range vs {
		if v != nil && in.Name != "" && v.Name == "" && v.Op != OpConst {
			v.Name = in.Name
		}
	}
	r.vals[in.ID] = vs
}

// val returns the one value that the old value v has become.
func (r *rewriter) val(v Value) Value { return r.vals[v.ID][0] }

// args returns the new values of in's operands.
func (r *rewriter) args(in *Instr) []Value {
	out := make([]Value, len(in.Args))
	for i, a := range in.Args {
		out[i] = r.val(a)
	}
	return out
}

// unsupported stops the rewriting with an error that matches ErrUnsupported.
func (r *rewriter) unsupported(in *Instr, what string) {
	r.Fail(&UnsupportedError{Kernel: r.old.Name, Instr: in.String(), What: what})
}

// u returns an unsigned constant with the lanes of x.
func (r *rewriter) u(x Value, bits uint32) Value { return r.ConstBits(x.Type.With(U32), uint64(bits)) }

// f returns an F32 constant with the lanes of x.
func (r *rewriter) f(x Value, v float64) Value { return r.Const(x.Type.With(F32), v) }

// lanesOf returns x's lanes as scalars.
func (r *rewriter) lanesOf(x Value) []Value {
	out := make([]Value, x.Type.Lanes)
	for i := range out {
		out[i] = r.Extract(x, i)
	}
	return out
}

// loadWords reads n consecutive U32 words of m from word index on, at most MaxLanes at a time, as scalars.
func (r *rewriter) loadWords(m *Mem, index Value, n int) []Value {
	w := min(n, r.caps.MaxLanes)
	out := make([]Value, 0, n)
	for i := 0; i < n; i += w {
		out = append(out, r.lanesOf(r.Load(m, r.offset(index, i), w))...)
	}
	return out
}

// storeWords writes scalars to consecutive U32 words of m from word index on.
func (r *rewriter) storeWords(m *Mem, index Value, words []Value) {
	w := min(len(words), r.caps.MaxLanes)
	for i := 0; i < len(words); i += w {
		r.Store(m, r.offset(index, i), r.Vec(words[i:i+w]...))
	}
}

func (r *rewriter) offset(index Value, i int) Value {
	if i == 0 {
		return index
	}
	return r.Add(index, r.U32(uint32(i)))
}

// contains reports whether any instruction of k, its memory included, satisfies f.
func contains(k *Kernel, f func(*Instr) bool) bool {
	found := false
	k.Walk(func(in *Instr) { found = found || f(in) })
	return found
}

// uses reports whether k has values or memory of kind kind.
func uses(k *Kernel, kind Kind) bool {
	for _, m := range k.Mems {
		if m.Kind == kind {
			return true
		}
	}
	return contains(k, func(in *Instr) bool { return in.Type.Kind == kind })
}
