package tensor

// recipe computes a value that was fused away: only a scope's list of tensors claimed it when its consumers ran, so that it was
// never written to memory. If somebody asks for it after all (a gradient that is recorded after the flush, or a reader), it is
// computed from the same operands by the same operator, which gives the same bits. Once an operand was overwritten
// the value is lost, and asking for it is an error.
//
// A recipe holds its operands' memory, or their recipes.
type recipe struct {
	node    *node  // with its claims on operands
	written uint32 // the sum of the operands' updates in place at that time
}

// keptElements is the size up to which values are not fused away: writing a few numbers costs less than a second kernel.
var keptElements = 1024

// needed reports whether a value must be written to memory, given the claims of the operators that get it otherwise. e.mu is held.
func (st *storage) needed(claims int, canRepeat bool) bool {
	// In this order: a claim that moves from a scope to a tensor meanwhile is counted as the tensor's.
	scoped := int(st.scoped.Load())
	refs := int(st.refs.Load())
	if !canRepeat || st.n <= keptElements && scoped > 0 {
		return refs > claims
	}
	claims += int(st.latent)
	if claims > 0 { // something uses it
		claims += scoped
	}
	return refs > claims
}

// newRecipe makes a recipe of a node that was launched without writing its result; e.mu is held.
func newRecipe(n *node) *recipe {
	n.recipe, n.kept = recipe{node: n}, true
	r := &n.recipe
	n.each(func(b binding) {
		b.st.latent++
		r.written += b.st.written
	})
	return r
}

// forget ends the recipe; the claims stay with its node. e.mu is held.
func (r *recipe) forget() {
	r.node.each(func(b binding) { b.st.latent-- })
}

// revive makes a value that was fused away pending again; e.mu is held. The caller has a claim on it.
func (e *engine) revive(st *storage) {
	r := st.recipe
	if r == nil {
		return
	}
	st.recipe = nil
	r.forget()
	n := r.node
	var now uint32
	n.each(func(b binding) { now += b.st.writes })
	if now != r.written {
		e.failNode(n, errorOf(ErrFreed, "the result of %s was fused into the operators that use it and not kept, and an operand of it was overwritten since; "+
			"read it before the update, or call Keep when it is computed", n.op))
		n.releaseInputs()
		return
	}
	n.each(func(b binding) { e.revive(b.st) })
	st.node = n
	n.alive = 1
	e.pending = append(e.pending, n)
}

// want makes sure that a storage has its value in memory after the next flush.
func (e *engine) want(st *storage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revive(st)
}
