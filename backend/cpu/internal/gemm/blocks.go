package gemm

// The sizes of blocks, in elements.
const (
	blockRows  = 2048    // rows or columns packed at a time, if the operands are large
	blockDepth = 1024    // and steps along K; a multiple of depth
	blockAll   = 4 << 20 // operands of fewer values are packed as a whole
	tileRows   = 128     // rows of A that stay in the second-level cache
	tileCols   = 512
)

// blocks computes the result by outer products.
func (t *task) blocks() {
	w := t.isa.width()
	// Packing pays if the packed values are used in several tiles; other kinds are converted by it.
	packA := t.a.kind != F32 || t.N > 3*w
	packB := t.b.kind != F32 || t.b.across != 1 && t.N > 1 || t.M > 6*t.isa.rows
	mb, nb, kb := t.M, t.N, max(t.K, 1)
	if (t.M+t.N)*t.K > blockAll {
		mb, nb, kb = blockRows/t.isa.rows*t.isa.rows, blockRows, blockDepth
	}
	s := getScratch()
	defer s.put()
	for n0 := 0; n0 < t.N; n0 += nb {
		for m0 := 0; m0 < t.M; m0 += mb {
			for k0 := 0; k0 == 0 || k0 < t.K; k0 += kb {
				b := block{task: t, m0: m0, m: min(mb, t.M-m0), n0: n0, n: min(nb, t.N-n0), k0: k0, k: min(kb, t.K-k0), packA: packA, packB: packB}
				b.mPanels, b.nPanels = ceil(b.m, t.isa.rows), ceil(b.n, w)
				b.run(s)
			}
		}
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// block is a part of the result and of K for which operands are packed at once.
type block struct {
	*task
	m0, m, n0, n, k0, k int
	packA, packB        bool
	mPanels, nPanels    int
	a, b                []float32 // packed operands: for each block of depth steps, panel after panel
	edge                []float32 // the last panel of B, if B is not packed but that panel is not full
}

// run packs and multiplies.
func (b *block) run(s *scratch) {
	w := b.isa.width()
	sizeA, sizeB, sizeEdge := 0, 0, 0
	if b.packA {
		sizeA = b.mPanels * group * b.k
	}
	if b.packB {
		sizeB = b.nPanels * w * b.k
	} else if b.n%b.isa.lanes != 0 {
		sizeEdge = w * b.k
	}
	mem := s.take(sizeB + sizeEdge + sizeA)
	b.b, b.edge, b.a = mem[:sizeB], mem[sizeB:sizeB+sizeEdge], mem[sizeB+sizeEdge:]
	b.pack()

	// Tiles of whole panels, small enough for every worker to get some.
	tm, tn := min(b.mPanels, tileRows/b.isa.rows), min(b.nPanels, tileCols/w)
	for b.workers.Size() > 1 && ceil(b.mPanels, tm)*ceil(b.nPanels, tn) < 3*b.workers.Size() && tm*b.isa.rows*tn*w*b.k > little/2 && tm*tn > 1 {
		if tm*b.isa.rows >= tn*w && tm > 1 || tn == 1 {
			tm = (tm + 1) / 2
		} else {
			tn = (tn + 1) / 2
		}
	}
	down, across := ceil(b.mPanels, tm), ceil(b.nPanels, tn)
	parallel(b.workers, down*across, tm*b.isa.rows*tn*w*max(b.k, 1), func(i int) {
		p0, q0 := i%down*tm, i/down*tn
		p1, q1 := min(p0+tm, b.mPanels), min(q0+tn, b.nPanels)
		b.tiles(p0, p1, q0, q1)
		if b.k0+b.k == b.task.K {
			b.done(b.m0+p0*b.isa.rows, b.m0+min(p1*b.isa.rows, b.m), b.n0+q0*w, b.n0+min(q1*w, b.n))
		}
	})
}

// pack packs what is to be packed, in pieces of a few panels.
func (b *block) pack() {
	w := b.isa.width()
	deep := max(1, ceil(b.k, depth))
	const perPiece = 64 // rows
	aPanels, bPanels := perPiece/group, perPiece/w
	aPieces, bPieces := 0, 0
	if b.packA {
		aPieces = ceil(b.mPanels, aPanels)
	}
	if b.packB {
		bPieces = ceil(b.nPanels, bPanels)
	} else if len(b.edge) > 0 {
		q := b.nPanels - 1
		for k := 0; k < b.k; k += depth {
			b.isa.pack(new(rowTable), b.edge[k*w:], w, b.task.b, b.n0+q*w, b.n-q*w, b.k0+k, min(depth, b.k-k))
		}
	}
	parallel(b.workers, (aPieces+bPieces)*deep, perPiece*min(depth, b.k)*8, func(i int) {
		var from rowTable
		k := i % deep * depth
		n := min(depth, b.k-k)
		piece := i / deep
		if piece < bPieces {
			for q := piece * bPanels; q < min(b.nPanels, (piece+1)*bPanels); q++ {
				b.isa.pack(&from, b.b[(k*b.nPanels+q*n)*w:], w, b.task.b, b.n0+q*w, min(w, b.n-q*w), b.k0+k, n)
			}
			return
		}
		piece -= bPieces
		rows := b.isa.rows
		for p := piece * aPanels; p < min(b.mPanels, (piece+1)*aPanels); p++ {
			b.isa.pack(&from, b.a[(k*b.mPanels+p*n)*group:], group, b.task.a, b.m0+p*rows, min(rows, b.m-p*rows), b.k0+k, n)
		}
	})
}

// panelA returns the first value of a panel of A and its strides in bytes.
func (b *block) panelA(p, k, n int) (a *float32, row, col uintptr) {
	if b.k == 0 {
		return nil, 0, 0
	}
	if b.packA {
		return &b.a[(k*b.mPanels+p*n)*group], 4, 4 * group
	}
	v := &b.task.a
	return v.float(b.m0+p*b.isa.rows, b.k0+k), uintptr(4 * v.across), uintptr(4 * v.along)
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

// tiles computes the tiles of panels p0 to p1-1 of A and q0 to q1-1 of B.
func (b *block) tiles(p0, p1, q0, q1 int) {
	s, w, n := b.isa, b.isa.width(), b.task.N
	cRow := uintptr(4 * n)
	for k := 0; k == 0 || k < b.k; k += depth {
		kn := min(depth, b.k-k)
		var add uintptr
		if b.k0+k > 0 {
			add = 1
		}
		last := b.k0+k+kn == b.task.K
		for q := q0; q < q1; q++ {
			pb, step := b.panelB(q, k, kn)
			col := b.n0 + q*w
			cols := min(w, b.n-q*w)
			var bias *float32
			if last && b.Bias != nil {
				bias = &b.Bias[col]
			}
			if q+wideVecs/s.vecs <= q1 && b.useWide(q, p1-p0) {
				pa, aRow, aCol := b.panelA(p0, k, kn)
				s.wide[b.m-1](pa, aRow, aCol, pb, step, uintptr(kn), &b.c[b.m0*n+col], cRow, nil, add, bias)
				q += wideVecs/s.vecs - 1
				continue
			}
			vecs, m := ceil(cols, s.lanes), (*int32)(nil)
			if cols%s.lanes != 0 {
				m = maskOf(cols)
			}
			for p := p0; p < p1; p++ {
				rows := min(s.rows, b.m-p*s.rows)
				pa, aRow, aCol := b.panelA(p, k, kn)
				s.tiles[vecs-1][rows-1](pa, aRow, aCol, pb, step, uintptr(kn), &b.c[(b.m0+p*s.rows)*n+col], cRow, m, add, bias)
			}
		}
	}
}

// useWide says whether the panels of B from q on are to be read as one row of vectors: they are in memory side by side,
// and there are so few rows that the vectors of one panel would keep too few additions under way.
func (b *block) useWide(q, panels int) bool {
	if b.packB || panels != 1 || b.m > len(b.isa.wide) || b.isa.wide[b.m-1] == nil {
		return false
	}
	return (q+wideVecs/b.isa.vecs)*b.isa.width() <= b.n
}
