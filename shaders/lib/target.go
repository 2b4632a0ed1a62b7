package lib

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// deviceClass groups targets whose kernels have one shape.
type deviceClass int

const (
	blockCPU  deviceClass = iota // the CPU device's block executor: it makes vectors of invocations itself
	vulkanCPU                    // a software rasteriser: short vectors, a row per invocation
	openclCPU                    // a CPU OpenCL device: the widest vectors, a row per invocation
	gpu                          // lanes in lockstep, workgroup memory
)

// config is a kernel's shape on a class of devices. reference: "performance-kernel shapes per driver" in the design notes.
type config struct {
	width   int // lanes of one memory access and of a value
	local   int // workgroup size of elementwise kernels
	vectors int // accesses of one invocation of a contiguous elementwise kernel
	row     int // workgroup size of kernels where one invocation reduces a row
	rowWide int // lanes of an access in a row that one invocation reduces
	columns int // workgroup size where one invocation reduces a column
	sums    int // partial results of a reduction in a row that one invocation reduces
	tree    bool
	// Splitting of reductions: parallel is how many rows (CPU) or workgroups (GPU) keep the device busy, piece the
	// smallest number of elements worth a row of its own.
	parallel, piece int
}

// The starting shapes. On CPU devices trees in workgroup memory were 3 to 11 times slower than a row per invocation. The block
// executor is best with a workgroup as large as its blocks, in which neighbours access neighbours.
var configs = [...]config{
	blockCPU:  {width: 1, local: 1024, vectors: 1, row: 64, rowWide: 16, columns: 1024, sums: 4, parallel: 128, piece: 2048},
	vulkanCPU: {width: 4, local: 64, vectors: 1, row: 8, rowWide: 4, columns: 8, sums: 1, parallel: 128, piece: 1024},
	openclCPU: {width: 16, local: 64, vectors: 1, row: 4, rowWide: 16, columns: 4, sums: 1, parallel: 64, piece: 2048},
	gpu:       {width: 4, local: 256, vectors: 2, row: 256, rowWide: 4, columns: 256, sums: 1, tree: true, parallel: 512, piece: 4096},
}

// longRow is the inner dimension from which on a workgroup of the block executor stays in one row.
const longRow = 128

func (t Target) class() deviceClass {
	switch {
	case t.GPU:
		return gpu
	case t.API == "cpu":
		return blockCPU
	case t.API == "vulkan":
		return vulkanCPU
	}
	return openclCPU
}

// config returns the target's shape within its limits. Limits that are zero are taken as unknown.
func (t Target) config() config {
	c := configs[t.class()]
	if t.Caps.MaxLanes > 0 {
		c.width = min(c.width, t.Caps.MaxLanes)
		c.rowWide = min(c.rowWide, t.Caps.MaxLanes)
	}
	for _, limit := range []int{t.Caps.MaxInvocations, t.Caps.MaxLocal[0]} {
		if limit > 0 {
			c.local = min(c.local, floorPow2(limit))
			c.row = min(c.row, floorPow2(limit))
			c.columns = min(c.columns, floorPow2(limit))
		}
	}
	return c
}

// missesNaN reports whether a softmax takes a maximum that may miss NaN: on software rasterisers, which are held up by the arithmetic.
func (t Target) missesNaN() bool { return t.class() == vulkanCPU }

// sharesRows reports whether the lanes of a workgroup share a row of about length elements: on GPUs, and on software
// rasterisers if a row is so long that one invocation would take long, or more iterations than they allow (MaxLoopTrips).
func (t Target) sharesRows(length int) bool {
	return t.config().tree || t.class() == vulkanCPU && length > 4096
}

// rowWidth returns how many lanes an invocation uses in a row of about length elements whose vectors are aligned up to
// align lanes: at most width, few in short rows. Compilers make vector loads of gathered neighbours, the block executor does not.
func (t Target) rowWidth(width, length, align int) int {
	for width > 1 && 4*width > length {
		width /= 2
	}
	if t.class() == blockCPU {
		if width = min(width, align); width < 4 {
			return 1
		}
	}
	return width
}

// rowSums returns how many partial results a reduction of rows of n elements has, which are read in vectors of width lanes. One addition waits for
// another: the CPU device's machine code has one vector after the other, as compilers have without leave to change the order.
func (t Target) rowSums(n, width int) int {
	if sums := t.config().sums; width > 1 && n%(width*sums) == 0 {
		return sums
	}
	return 1
}

// rowFactor is what kernels of rows of n elements depend on of n: the largest power of two, at most 64, that divides it (see pow2Factor and rowSums).
func rowFactor(n int) int {
	if f := pow2Factor(n); f < ir.MaxLanes {
		return f
	}
	return ir.MaxLanes * min(pow2Factor(n/ir.MaxLanes), 4)
}

// fold makes a grid of at least n workgroups within the target's limits.
func (t Target) fold(what string, n uint64) ([3]int, error) {
	if n >= 1<<32 {
		return [3]int{}, fmt.Errorf("%s: %d workgroups are more than 2^32-1; split the tensor", what, n)
	}
	g, err := ir.FoldGroups(int(n), t.Caps.MaxGroups)
	if err != nil {
		return g, fmt.Errorf("%s: %w; split the tensor", what, err)
	}
	return g, nil
}

// checkBuffers reports a kernel that needs more buffers than a device can bind.
func (t Target) checkBuffers(what string, n int) error {
	if t.Caps.MaxBuffers > 0 && n > t.Caps.MaxBuffers {
		return fmt.Errorf("%s: %d buffers are more than the %d that the device can bind to one kernel; fuse less", what, n, t.Caps.MaxBuffers)
	}
	return nil
}

// floorPow2 returns the largest power of two that is at most n (1 for n < 1).
func floorPow2(n int) int {
	p := 1
	for p <= n/2 {
		p *= 2
	}
	return p
}

// ceilPow2 returns the smallest power of two that is at least n.
func ceilPow2(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// pow2Factor returns the largest power of two, at most 16, that divides n (16 for 0).
func pow2Factor(n int) int {
	for p := ir.MaxLanes; p > 1; p /= 2 {
		if n%p == 0 {
			return p
		}
	}
	return 1
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
