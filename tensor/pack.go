package tensor

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/lib"
)

// Kernels over more tensors than a kernel can bind go by windows: the allocator cuts tensors from few large allocations, so that a kernel
// that binds those as a whole reaches all tensors, with a table of their places. How many kernels that takes depends on how many
// allocations there are, and so on the bytes, not on the number of tensors.

// pieces is a part of a list of tensors that one packed kernel takes.
type pieces struct {
	first, end int                // tensors
	windows    [][]backend.Region // of each array
	table      []uint32
	chunks     int
}

// windowKey is what is bound: an allocation, from an offset on.
type windowKey struct {
	buffer backend.Buffer
	offset int64
}

// packing makes the pieces of a list of tensors, each with the regions of its arrays.
type packing struct {
	sizes   []int              // elements of the tensors
	regions [][]backend.Region // of each tensor's arrays
	bytes   []int64            // of an element of each array
	chunk   int                // elements of a workgroup
	most    int                // windows that a kernel can bind
	limit   int64              // bytes of a window; 0 if unlimited
}

// windowOf returns the window that has a region, and the region's first element in it. Places that a vector cannot be read from have a
// window of their own.
func (p *packing) windowOf(r backend.Region, array int) (windowKey, uint32) {
	first := r.Offset / p.bytes[array]
	if first%16 != 0 || r.Offset%p.bytes[array] != 0 || p.limit > 0 && r.Offset+r.Size > p.limit {
		return windowKey{r.Buffer, r.Offset}, 0
	}
	return windowKey{r.Buffer, 0}, uint32(first)
}

func (p *packing) window(k windowKey) backend.Region {
	size := k.buffer.Size() - k.offset
	if p.limit > 0 {
		size = min(size, p.limit)
	}
	return backend.Region{Buffer: k.buffer, Offset: k.offset, Size: size &^ 3}
}

// split divides the tensors so that the windows of each part can be bound.
func (p *packing) split() []pieces {
	var out []pieces
	var keys [][]windowKey // of the last piece, by array
	used := 0
	for i, n := range p.sizes {
		if n == 0 {
			continue
		}
		fresh := 0
		if len(out) > 0 {
			for j, r := range p.regions[i] {
				if k, _ := p.windowOf(r, j); !slices.Contains(keys[j], k) {
					fresh++
				}
			}
		}
		if len(out) == 0 || used+fresh > p.most {
			out = append(out, pieces{first: i, windows: make([][]backend.Region, len(p.bytes))})
			keys, used = make([][]windowKey, len(p.bytes)), 0
		}
		piece := &out[len(out)-1]
		piece.end = i + 1
		place := make([]uint32, 0, 2*len(p.bytes))
		for j, r := range p.regions[i] {
			k, first := p.windowOf(r, j)
			w := slices.Index(keys[j], k)
			if w < 0 {
				w = len(keys[j])
				keys[j] = append(keys[j], k)
				piece.windows[j] = append(piece.windows[j], p.window(k))
				used++
			}
			place = append(place, uint32(w), first)
		}
		for at := 0; at < n; at += p.chunk {
			piece.table = append(piece.table, uint32(min(p.chunk, n-at)))
			for j := range p.bytes {
				piece.table = append(piece.table, place[2*j], place[2*j+1]+uint32(at))
			}
			piece.chunks++
		}
	}
	return out
}

// bindable is how many buffers a packed kernel may bind besides others.
func (e *engine) bindable(others int) int {
	most := e.target.Caps.MaxBuffers
	if most <= 0 || most > 64 {
		most = 64 // each window is code
	}
	return most - others
}

// launchMulti queues a kernel over many tensors: as it is if the device can bind them, else by windows. It reports false for other kernels.
func (e *engine) launchMulti(gen lib.Generator, regions []backend.Region) (bool, error) {
	switch m := gen.(type) {
	case *lib.MultiTensor:
		if len(m.Sizes) > lib.MultiTensorMax(e.target, len(m.PerTensor), len(m.Shared), m.Flag) {
			return true, e.launchPacked(m, regions)
		}
	case *lib.MultiNorm:
		if len(m.Sizes) > lib.MultiTensorMax(e.target, 1, 1, false) {
			return true, e.launchPackedNorm(m, regions)
		}
	}
	return false, nil
}

func (e *engine) launchPacked(m *lib.MultiTensor, regions []backend.Region) error {
	arrays := len(m.PerTensor)
	p := packing{sizes: m.Sizes, chunk: (&lib.Packed{MultiTensor: m}).Chunk(e.target), limit: e.target.Caps.MaxBufferBytes}
	for i := range m.Sizes {
		p.regions = append(p.regions, regions[i*arrays:(i+1)*arrays])
	}
	for _, a := range m.PerTensor {
		p.bytes = append(p.bytes, int64(a.Kind.Size()))
	}
	rest := regions[len(m.Sizes)*arrays:] // shared values and flag
	p.most = max(arrays, e.bindable(1+len(rest)))
	for n, piece := range p.split() {
		gen := &lib.Packed{MultiTensor: m, Chunks: piece.chunks}
		var bufs []backend.Region
		for _, w := range piece.windows {
			gen.Windows = append(gen.Windows, len(w))
			bufs = append(bufs, w...)
		}
		table, err := e.table(m.Name+" "+strconv.Itoa(n), piece.table)
		if err != nil {
			return err
		}
		if err := e.launchOne(gen, append(append(bufs, table), rest...)); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) launchPackedNorm(m *lib.MultiNorm, regions []backend.Region) error {
	p := packing{sizes: m.Sizes, chunk: (&lib.PackedNorm{MultiNorm: m}).Chunk(e.target), bytes: []int64{int64(m.Kind.Size())}, most: max(1, e.bindable(2)),
		limit: e.target.Caps.MaxBufferBytes}
	for i := range m.Sizes {
		p.regions = append(p.regions, regions[i:i+1])
	}
	at := m.First
	for n, piece := range p.split() {
		part := *m
		part.First = at
		gen := &lib.PackedNorm{MultiNorm: &part, Windows: len(piece.windows[0]), Chunks: piece.chunks}
		at += gen.Partials(e.target)
		table, err := e.table(m.Name+" "+strconv.Itoa(n), piece.table)
		if err != nil {
			return err
		}
		if err := e.launchOne(gen, append(append(slices.Clone(piece.windows[0]), table), regions[len(m.Sizes)])); err != nil {
			return err
		}
	}
	return nil
}

// table returns memory with words, which the last call with the same key made if they are the same: a model's tensors seldom move.
// e.mu is held.
func (e *engine) table(key string, words []uint32) (backend.Region, error) {
	old := e.tables[key]
	if old.memory != nil && slices.Equal(old.words, words) {
		return old.memory.region, nil
	}
	m, err := e.allocate(int64(4 * len(words)))
	if err != nil {
		return backend.Region{}, err
	}
	data := make([]byte, 0, 4*len(words))
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	// The memory may have had another owner whose work waits in the queue.
	if _, err = e.queue.Flush(); err == nil {
		err = m.region.Buffer.Write(m.region.Offset, data)
	}
	if err != nil {
		m.free()
		return backend.Region{}, err
	}
	e.tableBytes += m.region.Size
	if old.memory != nil {
		e.tableBytes -= old.memory.region.Size
		old.memory.free() // the queue keeps the order
	}
	if e.tables == nil {
		e.tables = map[string]placeTable{}
	}
	e.tables[key] = placeTable{m, words}
	return m.region, nil
}

// placeTable is a table on the device.
type placeTable struct {
	memory *memory
	words  []uint32
}

// forgetTables frees the tables; e.mu is held.
func (e *engine) forgetTables() {
	tables := e.tables
	e.tables, e.tableBytes = nil, 0
	for _, t := range tables {
		t.memory.free()
	}
}
