package backend

import (
	"errors"
	"fmt"
	"sync"
)

// Sizes of the allocator's classes, those of PyTorch's caching allocator.
const (
	smallSize     = 1 << 20  // requests up to it come from the small pool
	smallSegment  = 2 << 20  // segments of the small pool
	largeSegment  = 20 << 20 // segments for requests below minLarge
	minLarge      = 10 << 20 // larger requests get segments of their own size
	largeRounding = 2 << 20  // rounded up to a multiple of this
	minAlign      = 256      // the largest offset alignment that Vulkan permits a device to ask for
	maxRequest    = 1 << 50  // no device has more; sums of sizes cannot overflow
)

// AllocatorConfig says how an allocator works.
type AllocatorConfig struct {
	// Limit bounds the bytes held from the device; 0 is no bound. See [Allocator.SetLimit].
	Limit int64

	// Flush submits the work that the owner holds back (a [Queue]'s pending launches), because launches must not be
	// submitted with buffers that were freed. It is called, without the allocator's lock, before segments are given back
	// to the device. May be nil.
	Flush func() error

	// Reclaim frees blocks that nobody needs any more, such as those of tensors that only the garbage collector knows
	// to be dead. It is called, without the allocator's lock, when memory has run out. May be nil.
	Reclaim func()
}

// Allocator hands out parts of large device allocations and keeps freed ones for the next request, because an API's own
// allocation is slow and their number limited (4,096 is a legal Vulkan limit). It is PyTorch's caching allocator
// without its streams: requests up to 1 MiB come from segments of 2 MiB, those below 10 MiB from segments of 20 MiB, and
// larger ones get a segment of their own; free neighbours are merged; the smallest free block that is large enough is
// taken, so that the same requests in the same order get the same addresses.
//
// A freed block can be handed out again at once, although work that uses it may still run: a device's queue is in order, and
// so are host transfers with it ([Buffer]), so what the next owner does comes after. Launches that are still held back on
// the host, in a [Queue], count as later than a host transfer; the owner flushes the queue before a transfer.
//
// All methods may be called from several goroutines.
type Allocator struct {
	dev   Device
	info  Info
	align int64
	cfg   AllocatorConfig

	mu       sync.Mutex
	limit    int64
	closed   bool
	pools    [2]pool // small, large
	segments map[*segment]struct{}
	nextSeg  int
	spare    *chunk // chunks that were merged into others, linked by next
	stats    Stats
}

// Block is a piece of device memory on loan from an [Allocator].
type Block struct {
	a    *Allocator
	size int64
	c    *chunk // nil after Free; guarded by a.mu
}

// NewAllocator returns an allocator of dev's memory.
func NewAllocator(dev Device, cfg AllocatorConfig) *Allocator {
	info := dev.Info()
	return &Allocator{dev: dev, info: info, cfg: cfg, limit: max(cfg.Limit, 0),
		align: max(minAlign, info.Limits.BufferOffsetAlign), segments: map[*segment]struct{}{}}
}

// Size returns the bytes asked for.
func (b *Block) Size() int64 { return b.size }

// Region returns the block's place, as a kernel binding of Size bytes rounded up to a multiple of 4 (4 for an empty
// block). It is the zero Region after Free.
func (b *Block) Region() Region {
	b.a.mu.Lock()
	defer b.a.mu.Unlock()
	if b.c == nil || b.c.seg.buf == nil {
		return Region{}
	}
	return Region{Buffer: b.c.seg.buf, Offset: b.c.off, Size: roundUp(max(b.size, 1), 4)}
}

// Free gives the block back. A second call does nothing.
func (b *Block) Free() {
	b.a.mu.Lock()
	defer b.a.mu.Unlock()
	if b.c == nil {
		return
	}
	if b.c.seg.buf != nil { // else the allocator was closed
		b.a.freeChunk(b.c, b.size)
	}
	b.c = nil
}

// Alloc returns a block of at least size bytes, uninitialised. Its region's offset is a multiple of 256 and of the device's
// BufferOffsetAlign. The error is a [*LimitError] if the device cannot allocate so much at once, an
// [*OutOfMemoryError] with the allocator's summary if memory has run out even though cached segments were given back and
// AllocatorConfig.Reclaim was called, or the device's error.
func (a *Allocator) Alloc(size int64) (*Block, error) {
	b := new(Block)
	if err := a.AllocTo(b, size); err != nil {
		return nil, err
	}
	return b, nil
}

// AllocTo is [Allocator.Alloc] for a Block that is part of a caller's own structure. The Block must be zero or freed.
func (a *Allocator) AllocTo(b *Block, size int64) error {
	if size < 0 {
		return fmt.Errorf("%s: cannot allocate %d bytes: the size must not be negative", a.info, size)
	}
	if m := a.maxAlloc(); size > m {
		return &LimitError{Device: a.info.String(), Limit: "the maximum size of one allocation in bytes", Requested: size, Allowed: m}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.chunkOf(size)
	if err == nil {
		*b = Block{a: a, size: size, c: c}
	}
	return err
}

// chunkOf returns a chunk for size bytes, after giving back and reclaiming memory if need be. a.mu is held.
func (a *Allocator) chunkOf(size int64) (*chunk, error) {
	c, err := a.try(size)
	if err == nil || !exhausted(err) {
		return c, err
	}
	a.stats.Retries++
	if ferr := a.releaseCached(); ferr != nil {
		return nil, ferr
	}
	c, err = a.try(size)
	if err != nil && exhausted(err) && a.cfg.Reclaim != nil {
		a.mu.Unlock()
		a.cfg.Reclaim()
		a.mu.Lock()
		if c, err = a.try(size); err != nil && exhausted(err) {
			if ferr := a.releaseCached(); ferr != nil {
				return nil, ferr
			}
			c, err = a.try(size)
		}
	}
	if err == nil || !exhausted(err) {
		return c, err
	}
	a.stats.OOMs++
	return nil, a.outOfMemory(size, err)
}

// exhausted reports whether an error of the device may go away when memory is given back: it is out of memory, or has as
// many allocations as it can.
func exhausted(err error) bool { return errors.Is(err, ErrOutOfMemory) || errors.Is(err, ErrLimit) }

func (a *Allocator) outOfMemory(size int64, err error) error {
	o := &OutOfMemoryError{Device: a.info.String(), Requested: size, Allocated: a.stats.AllocatedBytes.Current,
		Reserved: a.stats.ReservedBytes.Current, Total: a.info.Memory, Summary: a.summary(), Err: err}
	// The device's own error has the same figures, less precisely: keep its cause only.
	var dev *OutOfMemoryError
	if errors.As(err, &dev) {
		o.Err = dev.Err
	}
	return o
}

// SetLimit bounds the bytes that the allocator holds from the device; 0 or less is no bound. A limit below what is held now
// stops growth, and cached segments are given back when the next request needs it.
func (a *Allocator) SetLimit(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = max(bytes, 0)
}

// EmptyCache gives the segments that no block uses back to the device.
func (a *Allocator) EmptyCache() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.releaseCached()
}

// Close gives all segments back, used or not: the owner is done with the device. Blocks that are still alive have no
// memory afterwards, and Alloc returns [ErrClosed]. A second call does nothing.
func (a *Allocator) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	err := a.flush()
	for s := range a.segments {
		a.dropSegment(s)
	}
	a.pools = [2]pool{}
	return err
}

// flush calls the owner's Flush without the lock.
func (a *Allocator) flush() error {
	if a.cfg.Flush == nil {
		return nil
	}
	a.mu.Unlock()
	defer a.mu.Lock()
	return a.cfg.Flush()
}

func roundUp(n, m int64) int64 { return (n + m - 1) / m * m }
