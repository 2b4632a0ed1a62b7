package lib

import "github.com/anygpu/anygpu/shaders/ir"

// matMulOperand is A or B in a kernel: a matrix with an extent (M for A, N for B) and the depth K. It is stored along K
// (A as it is, B transposed) or along the extent.
type matMulOperand struct {
	b      *ir.Builder
	mem    *ir.Mem
	acc    ir.Kind
	alongK bool     // stored along K
	align  int      // divides the address of every stored row
	pitch  ir.Value // length of a stored row
	extent ir.Value
	base   ir.Value // first element of the matrix
}

// lanesAlong returns how many neighbours one load takes in the stored direction: want, a power of two, or as many as
// rows are aligned to, because a misaligned vector access is not allowed.
func (o *matMulOperand) lanesAlong(want int) int { return min(want, o.align) }

func (o *matMulOperand) load(index ir.Value, lanes int) ir.Value {
	v := o.b.Load(o.mem, index, lanes)
	return o.b.Convert(fromMemory(o.b, v, Operand{Kind: o.mem.Kind}), o.acc)
}

// clamp keeps position at of a group of lanes within the extent, so that loads at the edge read elements that are there
// and need no guard; what is computed from them is not stored.
func (o *matMulOperand) clamp(at ir.Value, lanes int) ir.Value {
	return o.b.Min(at, o.b.Sub(o.extent, o.b.U32(uint32(lanes))))
}

// matMulRows are positions along the extent whose addresses are worked out before the loop over K.
type matMulRows struct {
	o     *matMulOperand
	n     int
	group int        // neighbours along the extent in one load; 1 if stored along K
	at    []ir.Value // address of each group at K = 0
}

// rows prepares n positions; pos returns the position of the first of a group of width, which are neighbours.
func (o *matMulOperand) rows(n, width int, pos func(i int) ir.Value) *matMulRows {
	r := &matMulRows{o: o, n: n, group: 1}
	if !o.alongK {
		r.group = o.lanesAlong(width)
	}
	for i := 0; i < n; i += r.group {
		p := pos(i - i%width)
		if i%width != 0 {
			p = o.b.Add(p, o.b.U32(uint32(i%width)))
		}
		p = o.clamp(p, r.group)
		if o.alongK {
			p = o.b.Mul(p, o.pitch)
		}
		r.at = append(r.at, o.b.Add(o.base, p))
	}
	return r
}

// matMulFrag holds the loaded elements of some rows for neighbours along K.
type matMulFrag struct {
	b     *ir.Builder
	group int                 // neighbours along the extent in a value
	depth int                 // neighbours along K in a value
	vals  [][]ir.Value        // by group of the extent, then by group of K
	lanes map[[2]int]ir.Value // extracted so far
}

// load reads the rows for k to k+depth-1.
func (r *matMulRows) load(k ir.Value, depth int) *matMulFrag {
	o, b := r.o, r.o.b
	f := &matMulFrag{b: b, group: r.group, depth: 1, vals: make([][]ir.Value, len(r.at)), lanes: map[[2]int]ir.Value{}}
	if o.alongK {
		f.depth = o.lanesAlong(depth)
		for i, at := range r.at {
			first := b.Add(at, k)
			for d := 0; d < depth; d += f.depth {
				f.vals[i] = append(f.vals[i], o.load(advance(b, first, d, nil), f.depth))
			}
		}
		return f
	}
	row := b.Mul(k, o.pitch)
	for d := range depth {
		if d > 0 {
			row = b.Add(row, o.pitch)
		}
		for i, at := range r.at {
			f.vals[i] = append(f.vals[i], o.load(b.Add(at, row), r.group))
		}
	}
	return f
}

// loadClamped is load with k kept below end, for the last tile.
func (r *matMulRows) loadClamped(k ir.Value, depth int, end ir.Value) *matMulFrag {
	b := r.o.b
	f := &matMulFrag{b: b, group: r.group, depth: 1, vals: make([][]ir.Value, len(r.at)), lanes: map[[2]int]ir.Value{}}
	last := b.Sub(end, b.U32(1))
	for d := range depth {
		kd := b.Min(advance(b, k, d, nil), last)
		if !r.o.alongK {
			kd = b.Mul(kd, r.o.pitch)
		}
		for i, at := range r.at {
			f.vals[i] = append(f.vals[i], r.o.load(b.Add(at, kd), r.group))
		}
	}
	return f
}

// at returns the element of row i at depth d.
func (f *matMulFrag) at(i, d int) ir.Value {
	if v, ok := f.lanes[[2]int{i, d}]; ok {
		return v
	}
	v := f.b.Extract(f.vals[i/f.group][d/f.depth], i%f.group+d%f.depth) // one of the two is 0
	f.lanes[[2]int{i, d}] = v
	return v
}

// along returns the elements of rows i to i+width-1 at depth d as a vector.
func (f *matMulFrag) along(i, d, width int) ir.Value {
	if f.group == width && f.depth == 1 {
		return f.vals[i/width][d]
	}
	parts := make([]ir.Value, width)
	for l := range parts {
		parts[l] = f.at(i+l, d)
	}
	return f.b.Vec(parts...)
}

// deep returns the elements of row i as the vector along K that was loaded.
func (f *matMulFrag) deep(i int) ir.Value { return f.vals[i][0] }
