package gemm

import "unsafe"

// windows says how windows take their elements from a source that has zeros around it. Window g takes element g + shift, for
// the shift of each tap, of one phase of the source: element i of phase p is element i*step + p - lead of the source. Cut into
// phases, elements of neighbouring windows are neighbours whatever the stride.
type windows struct {
	source, step, lead [3]int
	phases             [3][]int // the phases that taps use
	taps               []tap
	grid               [3]int
}

type tap struct{ phase, shift [3]int } // phase is an index of windows.phases

// windows returns the windows of Forward on an image.
func (c *Conv) windows() *windows {
	w := &windows{source: c.Image, step: c.Stride, lead: c.Pad, grid: c.Grid}
	var index [3]map[int]int
	for d := range 3 {
		index[d] = map[int]int{}
		for k := range c.Kernel[d] {
			p := k * c.Dilation[d] % c.Stride[d]
			if _, ok := index[d][p]; !ok {
				index[d][p] = len(w.phases[d])
				w.phases[d] = append(w.phases[d], p)
			}
		}
	}
	c.eachTap(func(_ int, k [3]int) {
		var t tap
		for d := range 3 {
			at := k[d] * c.Dilation[d]
			t.phase[d], t.shift[d] = index[d][at%c.Stride[d]], at/c.Stride[d]
		}
		w.taps = append(w.taps, t)
	})
	return w
}

func (c *Conv) eachTap(f func(i int, k [3]int)) {
	i := 0
	for k0 := range c.Kernel[0] {
		for k1 := range c.Kernel[1] {
			for k2 := range c.Kernel[2] {
				f(i, [3]int{k0, k1, k2})
				i++
			}
		}
	}
}

// spread returns the windows of Input on a grid, for the elements of the image whose place in the padded image is phase
// modulo the stride: they are first, first+stride, … in each dimension. used are the taps of the kernel that reach them.
func (c *Conv) spread(phase [3]int) (w *windows, used []int, first [3]int) {
	w = &windows{source: c.Grid, step: [3]int{1, 1, 1}, phases: [3][]int{{0}, {0}, {0}}}
	var base [3]int
	for d := range 3 {
		s := c.Stride[d]
		first[d] = ((phase[d]-c.Pad[d])%s + s) % s
		base[d] = (first[d] + c.Pad[d] - phase[d]) / s
		w.grid[d] = max(0, (c.Image[d]-first[d]+s-1)/s)
	}
	c.eachTap(func(i int, k [3]int) {
		var t tap
		for d := range 3 {
			at := k[d] * c.Dilation[d]
			if at%c.Stride[d] != phase[d] {
				return
			}
			t.shift[d] = base[d] - (at-phase[d])/c.Stride[d] // of the grid, perhaps before it
		}
		w.taps, used = append(w.taps, t), append(used, i)
	})
	// The source begins at the least shift: before or within the grid.
	for d := range 3 {
		least := 0
		for i, t := range w.taps {
			if i == 0 || t.shift[d] < least {
				least = t.shift[d]
			}
		}
		w.lead[d] = -least
		for i := range w.taps {
			w.taps[i].shift[d] -= least
		}
	}
	return w, used, first
}

// outer is the dimension in which windows are cut into regions.
func (w *windows) outer() int {
	for d := range 2 {
		if w.grid[d] > 1 {
			return d
		}
	}
	return 2
}

// region is a part of the source with its zeros, cut into phases, for some of the windows.
type region struct {
	from, to       int       // the windows, in the dimension outer
	dims           [3]int    // of a phase
	plane, channel int       // sizes of a phase and of a channel
	taps           []uintptr // places in a channel, in bytes
	// The windows lie in memory in rows, that many to a plane, as many planes.
	planes, rows, length int
	planeStep, rowStep   int
}

// region returns the layout for windows from to to-1 of the dimension outer.
func (w *windows) region(from, to int) *region {
	r := &region{from: from, to: to}
	grid := w.grid
	grid[w.outer()] = to - from
	for d := range 3 {
		reach := 0
		for _, t := range w.taps {
			reach = max(reach, t.shift[d])
		}
		r.dims[d] = grid[d] + reach
	}
	r.plane = volume(r.dims)
	r.channel = r.plane * len(w.phases[0]) * len(w.phases[1]) * len(w.phases[2])
	for _, t := range w.taps {
		phase := (t.phase[0]*len(w.phases[1])+t.phase[1])*len(w.phases[2]) + t.phase[2]
		at := phase*r.plane + (t.shift[0]*r.dims[1]+t.shift[1])*r.dims[2] + t.shift[2]
		r.taps = append(r.taps, uintptr(4*at))
	}
	r.planes, r.rows, r.length = grid[0], grid[1], grid[2]
	r.planeStep, r.rowStep = r.dims[1]*r.dims[2], r.dims[2]
	if r.dims[2] == grid[2] { // rows side by side are one
		r.rows, r.length = 1, grid[1]*grid[2]
		if r.dims[1] == grid[1] {
			r.planes, r.length = 1, volume(grid)
		}
	}
	return r
}

// windows is the number of windows.
func (r *region) windows() int { return r.planes * r.rows * r.length }

// place returns where row i of the windows is in a channel.
func (r *region) place(i int) int { return i/r.rows*r.planeStep + i%r.rows*r.rowStep }

// asIs says whether the source is its own region.
func (w *windows) asIs(r *region, kind Kind) bool {
	return kind == F32 && w.step == [3]int{1, 1, 1} && w.lead == [3]int{} && r.dims == w.source
}

// fill writes a region of channels of the source, the first of which begins at src.
func (w *windows) fill(s *isa, r *region, dst []float32, kind Kind, src *byte, channels int) {
	size, outer := kind.Size(), w.outer()
	volume := volume(w.source)
	var lo, hi, at [3]int
	for c := range channels {
		p := 0
		for _, p0 := range w.phases[0] {
			for _, p1 := range w.phases[1] {
				for _, p2 := range w.phases[2] {
					full := true
					for d, p := range [3]int{p0, p1, p2} {
						// Element i of the region is element i*step + at of the source.
						at[d] = p - w.lead[d]
						if d == outer {
							at[d] += r.from * w.step[d]
						}
						lo[d] = min(max(0, ceil(-at[d], w.step[d])), r.dims[d])
						hi[d] = max(lo[d], min(r.dims[d], ceil(w.source[d]-at[d], w.step[d])))
						full = full && lo[d] == 0 && hi[d] == r.dims[d]
					}
					to := dst[c*r.channel+p*r.plane:][:r.plane]
					p++
					if !full {
						clear(to)
					}
					rows, width := hi[1]-lo[1], hi[2]-lo[2]
					if rows == 0 || width == 0 {
						continue
					}
					for i := lo[0]; i < hi[0]; i++ {
						row := (i*w.step[0]+at[0])*w.source[1] + lo[1]*w.step[1] + at[1]
						from := unsafe.Add(unsafe.Pointer(src), (c*volume+row*w.source[2]+lo[2]*w.step[2]+at[2])*size)
						into := to[(i*r.dims[1]+lo[1])*r.dims[2]+lo[2]:]
						rowStep := w.step[1] * w.source[2] * size
						if w.step[2] == 1 {
							s.copyRows[kind](&into[0], uintptr(4*r.dims[2]), (*byte)(from), uintptr(rowStep), uintptr(rows), uintptr(width))
							continue
						}
						for j := range rows {
							pick(into[j*r.dims[2]:][:width], kind, (*byte)(unsafe.Add(from, j*rowStep)), w.step[2])
						}
					}
				}
			}
		}
	}
}

// pick reads elements at a distance.
func pick(dst []float32, kind Kind, src *byte, step int) {
	if kind == F32 {
		at := unsafe.Pointer(src)
		for i := range dst {
			dst[i] = *(*float32)(unsafe.Add(at, 4*i*step))
		}
		return
	}
	for i := range dst {
		dst[i] = element(kind, src, i*step)
	}
}

// packPanel writes what up to width windows from x on take from channels of a region to a packed panel.
func (r *region) packPanel(s *isa, runs *runTable, panel []float32, base *float32, x, n, channels int) {
	const lanes = 16
	step, channel := uintptr(4*s.width()), uintptr(4*r.channel)
	ntaps, many := uintptr(len(r.taps)), uintptr(channels)
	if s.packVectors == nil {
		r.copyRuns(s, panel, base, x, 0, n, channels)
		return
	}
	if s.packPairs != nil && n > lanes {
		// A vector with one run has no lanes in the second, whose address is as good.
		left := r.vector(runs[:4], base, x, 0, lanes)
		right := r.vector(runs[4:], base, x, lanes, n)
		if left > 0 && right > 0 {
			if left == 1 {
				runs[2], runs[3] = runs[0], 0
			}
			if right == 1 {
				runs[6], runs[7] = runs[4], 0
			}
			s.packPairs(&panel[0], step, (*[8]uintptr)(runs), &r.taps[0], ntaps, channel, many)
			return
		}
	}
	for lane := 0; lane < n; lane += lanes {
		end := min(lane+lanes, n)
		if count := r.vector(runs[:], base, x, lane, end); count > 0 {
			s.packVectors(&panel[lane], step, (*[8]uintptr)(runs), uintptr(count), &r.taps[0], ntaps, channel, many)
		} else {
			r.copyRuns(s, panel, base, x, lane, end, channels)
		}
	}
}

// copyRuns is packPanel for some lanes, run by run.
func (r *region) copyRuns(s *isa, panel []float32, base *float32, x, lane, end, channels int) {
	for lane < end {
		row, column := (x+lane)/r.length, (x+lane)%r.length
		run := min(end-lane, r.length-column)
		src := at(base, uintptr(4*(r.place(row)+column)))
		to := 0
		for c := range channels {
			for _, t := range r.taps {
				copy(panel[to+lane:to+lane+run], unsafe.Slice(at(src, uintptr(4*c*r.channel)+t), run))
				to += s.width()
			}
		}
		lane += run
	}
}

// vector finds the runs of the vector of windows from x + lane to x + end - 1, each an address and a mask. If they are more
// than fit the count is 0.
func (r *region) vector(runs []uintptr, base *float32, x, lane, end int) (count int) {
	row, column := (x+lane)/r.length, (x+lane)%r.length
	for first := lane; first < end; count++ {
		if 2*count == len(runs) {
			return 0
		}
		next := min(end, first+r.length-column)
		place := r.place(row) + column - (first - lane)
		runs[2*count], runs[2*count+1] = uintptr(unsafe.Pointer(base))+uintptr(4*place), 1<<(next-lane)-1<<(first-lane)
		first, row, column = next, row+1, 0
	}
	return count
}
