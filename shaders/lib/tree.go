package lib

import "github.com/anygpu/anygpu/shaders/ir"

// tree reduces the partials of a workgroup's lanes in groups of size lanes (a power of two) that are stride lanes apart. Neighbours
// (stride 1) exchange values within subgroups where the device can; all others meet in workgroup memory, where half of the
// lanes of a group take the other half's partials until one is left. Every lane of the workgroup must call its methods, in uniform control flow.
type tree struct {
	r            reducer
	size, stride int
	subgroup     int // 0: everything goes through memory
	values       *ir.Mem
	index        *ir.Mem
}

// newTree declares the memory of a tree in a workgroup of local lanes; suffix tells the trees of a kernel apart.
func newTree(t Target, r reducer, local, size, stride int, suffix string) tree {
	tr := tree{r: r, size: size, stride: stride}
	elements := local
	if size == 1 {
		elements = 0
	}
	if n := t.Caps.Subgroup(local); n > 0 && t.class() == gpu && stride == 1 && size > 1 && r.kind.Size() == 4 {
		tr.subgroup = n
		r.b.SetSubgroup(n)
		elements = 0
		for m := size; m > n; m /= n {
			elements += local / size * (m / n)
		}
	}
	if elements > 0 {
		tr.values = r.b.SharedArray("partials"+suffix, r.kind, elements)
		if r.op.isArg() {
			tr.index = r.b.SharedArray("partial_index"+suffix, ir.U32, elements)
		}
	}
	return tr
}

// first reduces a group's partials; the first lane of each group gets the result, others something in between. lid is the lane's number in the
// workgroup, rank its position in its group.
func (t tree) first(p partial, lid, rank ir.Value) partial {
	p, done := t.withoutMemory(p, lid)
	if done {
		return p
	}
	t.meet(p, lid, rank)
	return t.at(lid)
}

// all is first with the result in every lane.
func (t tree) all(p partial, lid, rank ir.Value) partial {
	p, done := t.withoutMemory(p, lid)
	if done {
		return p
	}
	t.meet(p, lid, rank)
	return t.at(t.r.b.Sub(lid, t.r.b.Mul(rank, t.r.b.U32(uint32(t.stride)))))
}

// withoutMemory reduces where that takes no tree in memory; done says so, and every lane has the result.
func (t tree) withoutMemory(p partial, lid ir.Value) (result partial, done bool) {
	switch {
	case t.size == 1:
		return p, true
	case t.subgroup > 0:
		return t.exchange(p, lid), true
	}
	return p, false
}

// again makes the tree ready for another reduction: nobody overwrites what another lane has yet to read.
func (t tree) again() {
	if t.values != nil {
		t.r.b.Barrier()
	}
}

func (t tree) put(at ir.Value, p partial) {
	t.r.b.Store(t.values, at, p.value)
	if t.index != nil {
		t.r.b.Store(t.index, at, p.index)
	}
}

func (t tree) at(at ir.Value) partial {
	p := partial{value: t.r.b.Load(t.values, at, 1)}
	if t.index != nil {
		p.index = t.r.b.Load(t.index, at, 1)
	}
	return p
}

// meet does the tree in memory.
func (t tree) meet(p partial, lid, rank ir.Value) {
	b := t.r.b
	t.put(lid, p)
	b.Barrier()
	for half := t.size / 2; half > 0; half /= 2 {
		b.If(b.Lt(rank, b.U32(uint32(half))), func() {
			t.put(lid, t.r.combine(t.at(lid), t.at(b.Add(lid, b.U32(uint32(half*t.stride))))))
		}, nil)
		b.Barrier()
	}
}

// exchange reduces within subgroups. Of groups of several subgroups the results go through memory, one for each, from where each
// subgroup takes the results of all and goes on with them; after it every lane has its group's result.
func (t tree) exchange(p partial, lid ir.Value) partial {
	b, n, base := t.r.b, t.size, 0
	for n > t.subgroup {
		p = t.butterfly(p, t.subgroup)
		left := n / t.subgroup
		group := b.Add(b.Mul(b.Div(lid, b.U32(uint32(t.size))), b.U32(uint32(left))), b.U32(uint32(base)))
		lane := b.Rem(lid, b.U32(uint32(t.size)))
		// Of the lanes with the same result, the first writes it.
		writes := b.Eq(b.Rem(lane, b.U32(uint32(t.subgroup))), b.U32(0))
		if n < t.size {
			writes = b.And(writes, b.Lt(lane, b.U32(uint32(n))))
		}
		b.If(writes, func() { t.put(b.Add(group, b.Div(lane, b.U32(uint32(t.subgroup)))), p) }, nil)
		b.Barrier()
		p = t.at(b.Add(group, b.Rem(lane, b.U32(uint32(left)))))
		base += b.Local()[0] / t.size * left
		n = left
	}
	return t.butterfly(p, n)
}

// butterfly reduces groups of n lanes of a subgroup; each gets the result.
func (t tree) butterfly(p partial, n int) partial {
	b := t.r.b
	for mask := 1; mask < n; mask *= 2 {
		other := partial{value: b.ShuffleXor(p.value, mask)}
		if p.index != nil {
			other.index = b.ShuffleXor(p.index, mask)
		}
		p = t.r.combine(p, other)
	}
	return p
}
