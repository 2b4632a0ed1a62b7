package gemm

import "unsafe"

// dotShape says whether dot products are the way: nothing then has to be packed, but the partial sums of each result are
// added at the end, and nothing is kept in the caches along K.
func (t *task) dotShape() bool {
	if t.isa.dotRows == 0 || t.K < 32 || !t.a.contiguous(t.K) {
		return false
	}
	small := min(t.M, t.N)
	if t.Precise { // a tile has one row
		return small <= 4 && t.b.contiguous(t.K)
	}
	if !t.b.contiguous(t.K) { // if it is narrow, a transposition is cheap and tiles would be mostly edges
		return t.b.across == 1 && t.N > 1 && t.N < t.isa.width()/2 && t.M >= 16 && t.K <= 4096
	}
	return small <= 4 || small <= 24 && t.K <= 4096
}

// dots computes the result as dot products, tile by tile.
func (t *task) dots() {
	sa, sb := getScratch(), getScratch()
	defer sa.put()
	defer sb.put()
	a, b := t.floats(t.a, t.M, sa), t.floats(t.b, t.N, sb)
	// Each piece takes all rows of the shorter side and some of the longer, in tiles that pass over the shorter.
	const tile = 4
	if t.N >= t.M {
		piece := t.pieceOf(t.N, t.M)
		parallel(t.workers, (t.N+piece-1)/piece, piece*t.M*t.K, func(i int) {
			var out [8]float64 // 16 sums in float32 or 4 in float64; on the heap, so not in dotTile
			j0, j1 := i*piece, min(t.N, (i+1)*piece)
			for j := j0; j < j1; j += tile {
				for r := 0; r < t.M; r += t.isa.dotRows {
					t.dotTile(&out, a, b, r, min(t.isa.dotRows, t.M-r), j, min(tile, j1-j))
				}
			}
			t.done(0, t.M, j0, j1)
		})
		return
	}
	piece := t.pieceOf(t.M, t.N)
	parallel(t.workers, (t.M+piece-1)/piece, piece*t.N*t.K, func(i int) {
		var out [8]float64
		r0, r1 := i*piece, min(t.M, (i+1)*piece)
		for r := r0; r < r1; r += t.isa.dotRows {
			for j := 0; j < t.N; j += tile {
				t.dotTile(&out, a, b, r, min(t.isa.dotRows, r1-r), j, min(tile, t.N-j))
			}
		}
		t.done(r0, r1, 0, t.N)
	})
}

// pieceOf cuts the longer side: a multiple of 8 rows, about eight pieces for each worker, none with little work.
func (t *task) pieceOf(long, short int) int {
	if t.workers.Size() == 1 {
		return long
	}
	piece := max((long+8*t.workers.Size()-1)/(8*t.workers.Size()), little/4/(short*t.K), 1)
	return (piece + 7) &^ 7
}

func (t *task) dotTile(out *[8]float64, a, b view, row, rows, col, cols int) {
	kernel := t.isa.dots[rows-1][cols-1]
	if t.Precise {
		kernel(a.float(row, 0), uintptr(4*a.across), b.float(col, 0), uintptr(4*b.across), uintptr(t.K), maskOf(t.K%(t.isa.lanes/2)), (*float32)(unsafe.Pointer(out)))
		to := t.c[row*t.N+col:][:cols]
		for j := range to {
			v := out[j]
			if t.Bias != nil {
				v += float64(t.Bias[col+j])
			}
			to[j] = float32(v)
		}
		return
	}
	sums := (*[16]float32)(unsafe.Pointer(out))
	kernel(a.float(row, 0), uintptr(4*a.across), b.float(col, 0), uintptr(4*b.across), uintptr(t.K), maskOf(t.K%t.isa.lanes), &sums[0])
	for i := range rows {
		to := t.c[(row+i)*t.N+col:][:cols]
		for j := range to {
			v := sums[4*i+j]
			if t.Bias != nil {
				v += t.Bias[col+j]
			}
			to[j] = v
		}
	}
}
