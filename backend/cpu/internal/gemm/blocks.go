package gemm

// The sizes of blocks, in elements.
const (
	blockCols  = 4096    // columns of B packed at a time, if there are many
	blockDepth = 1024    // and steps along K; a multiple of depth
	blockAll   = 4 << 20 // a B of fewer values is packed as a whole
	tileRows   = 256     // rows of A packed for a tile: they stay in the second-level cache
	tileCols   = 1024
)

// blocks computes the result by outer products.
func (t *task) blocks() {
	w := t.isa.width()
	// Packing pays if the packed values are used in several tiles; other kinds are converted by it.
	packA := t.a.kind != F32 || t.N > 3*w
	packB := t.b.kind != F32 || t.b.across != 1 && t.N > 1 || t.M > 6*t.isa.rows
	nb, kb := t.N, max(t.K, 1)
	if packB && t.N*t.K > blockAll {
		nb, kb = blockCols, blockDepth
	}
	s := getScratch()
	defer s.put()
	for n0 := 0; n0 < t.N; n0 += nb {
		for k0 := 0; k0 == 0 || k0 < t.K; k0 += kb {
			b := &t.block
			*b = block{task: t, n0: n0, n: min(nb, t.N-n0), k0: k0, k: min(kb, t.K-k0), packA: packA, packB: packB}
			b.mPanels, b.nPanels = ceil(t.M, t.isa.rows), ceil(b.n, w)
			b.run(s)
		}
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// block is a part of the columns and of K for which B is packed at once.
type block struct {
	*task
	n0, n, k0, k     int
	packA, packB     bool
	mPanels, nPanels int
	tm, tn, down     int       // panels of a tile, and tiles from top to bottom
	b                []float32 // B packed: for each depth steps, panel after panel
	edge             []float32 // the last panel of B, if B is not packed but that panel is not full
}

// run packs B and multiplies.
func (b *block) run(s *scratch) {
	w := b.isa.width()
	switch {
	case b.packB:
		b.b = s.take(b.nPanels * w * b.k)
		b.pack()
	case b.n%b.isa.lanes != 0:
		b.edge = s.take(w * b.k)
		q := b.nPanels - 1
		b.isa.pack(&s.from, b.edge, w, b.task.b, b.n0+q*w, b.n-q*w, b.k0, b.k)
	}

	// Tiles of whole panels, small enough for every worker to get some. Fewer rows cost less than fewer columns, for
	// which A is packed again.
	tm, tn := min(b.mPanels, tileRows/b.isa.rows), min(b.nPanels, tileCols/w)
	for b.workers.Size() > 1 && ceil(b.mPanels, tm)*ceil(b.nPanels, tn) < 3*b.workers.Size() && tm*b.isa.rows*tn*w*b.k > little/2 && tm*tn > 1 {
		if 4*tm*b.isa.rows >= tn*w && tm > 1 || tn == 1 {
			tm = (tm + 1) / 2
		} else {
			tn = (tn + 1) / 2
		}
	}
	b.tm, b.tn, b.down = tm, tn, ceil(b.mPanels, tm)
	b.each((*block).numbered, b.down*ceil(b.nPanels, tn), tm*b.isa.rows*tn*w*max(b.k, 1))
}

// each is parallel for a method. One worker needs no closure.
func (b *block) each(f func(b *block, i int), n, work int) {
	if workersFor(b.workers, n, work) == 1 {
		for i := range n {
			f(b, i)
		}
		return
	}
	parallel(b.workers, n, work, func(i int) { f(b, i) })
}

// numbered computes tile i.
func (b *block) numbered(i int) {
	w := b.isa.width()
	p0, q0 := i%b.down*b.tm, i/b.down*b.tn
	p1, q1 := min(p0+b.tm, b.mPanels), min(q0+b.tn, b.nPanels)
	b.tile(p0, p1, q0, q1)
	if b.k0+b.k == b.task.K {
		b.done(p0*b.isa.rows, min(p1*b.isa.rows, b.M), b.n0+q0*w, b.n0+min(q1*w, b.n))
	}
}

// pack packs B, in pieces of a few panels.
func (b *block) pack() {
	b.each((*block).packPiece, ceil(b.nPanels, 64/b.isa.width())*max(1, ceil(b.k, depth)), 64*min(depth, b.k)*8)
}

func (b *block) packPiece(i int) {
	w := b.isa.width()
	deep, panels := max(1, ceil(b.k, depth)), 64/w
	s := getSmall()
	defer s.putSmall()
	k := i % deep * depth
	n := min(depth, b.k-k)
	for q := i / deep * panels; q < min(b.nPanels, (i/deep+1)*panels); q++ {
		b.isa.pack(&s.from, b.b[(k*b.nPanels+q*n)*w:], w, b.task.b, b.n0+q*w, min(w, b.n-q*w), b.k0+k, n)
	}
}

// panelB returns the first vectors of a panel of B and the distance in bytes along K.
func (b *block) panelB(q, k, n int) (*float32, uintptr) {
	w := b.isa.width()
	switch {
	case b.k == 0:
		return nil, 0
	case b.packB:
		return &b.b[(k*b.nPanels+q*n)*w], uintptr(4 * w)
	case q == b.nPanels-1 && len(b.edge) > 0:
		return &b.edge[k*w], uintptr(4 * w)
	}
	v := &b.task.b
	return v.float(b.n0+q*w, b.k0+k), uintptr(4 * v.along)
}

// rowsA is A for a tile, depth steps at a time: packed, or in its own memory.
type rowsA struct {
	first          *float32
	row, col, step uintptr // bytes from row to row, along K, and from panel to panel
}

// panel returns the first value of a panel.
func (a *rowsA) panel(p int) *float32 { return at(a.first, uintptr(p)*a.step) }

// rowsOfA returns the rows of panels p0 to p1-1, n steps from k on.
func (b *block) rowsOfA(s *scratch, p0, p1, k, n int) rowsA {
	v, rows := b.task.a, b.isa.rows
	switch {
	case b.k == 0:
		return rowsA{}
	case !b.packA:
		return rowsA{v.float(p0*rows, b.k0+k), uintptr(4 * v.across), uintptr(4 * v.along), uintptr(4 * v.across * rows)}
	}
	mem := s.take((p1 - p0) * group * n)
	for p := p0; p < p1; p++ {
		b.isa.pack(&s.from, mem[(p-p0)*group*n:], group, v, p*rows, min(rows, b.M-p*rows), b.k0+k, n)
	}
	return rowsA{&mem[0], 4, 4 * group, uintptr(4 * group * n)}
}

// tile computes the part of C in panels p0 to p1-1 of A and q0 to q1-1 of B.
func (b *block) tile(p0, p1, q0, q1 int) {
	s, w, n := b.isa, b.isa.width(), b.task.N
	cRow := s.size * uintptr(n)
	var mem *scratch
	if b.packA {
		mem = getSmall()
		defer mem.putSmall()
	}
	for k := 0; k == 0 || k < b.k; k += depth {
		kn := min(depth, b.k-k)
		var add uintptr
		if b.k0+k > 0 {
			add = 1
		}
		last := b.k0+k+kn == b.task.K
		a := b.rowsOfA(mem, p0, p1, k, kn)
		for q := q0; q < q1; q++ {
			pb, step := b.panelB(q, k, kn)
			col := b.n0 + q*w
			cols := min(w, b.n-q*w)
			var bias *float32
			if last && b.Bias != nil {
				bias = &b.Bias[col]
			}
			if b.useWide(q, q1) {
				s.wide[b.M-1](a.first, a.row, a.col, pb, step, uintptr(kn), b.out(col), cRow, nil, add, bias, nil)
				q += wideVecs/s.vecs - 1
				continue
			}
			kernels, m := &s.tiles[ceil(cols, s.lanes)-1], (*int32)(nil)
			if cols%s.lanes != 0 {
				m = maskOf(cols)
			}
			for p := p0; p < p1; p++ {
				rows := min(s.rows, b.M-p*s.rows)
				kernels[rows-1](a.panel(p-p0), a.row, a.col, pb, step, uintptr(kn), b.out(p*s.rows*n+col), cRow, m, add, bias, nil)
			}
		}
	}
}

// useWide says whether the panels of B from q on are to be read as one row of vectors: they are in memory side by side,
// and there are so few rows that the vectors of one panel would keep too few additions under way.
func (b *block) useWide(q, end int) bool {
	if b.packB || b.M > len(b.isa.wide) || b.isa.wide[b.M-1] == nil {
		return false
	}
	q += wideVecs / b.isa.vecs
	return q <= end && q*b.isa.width() <= b.n
}
