package clc

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Elements of memory that are next to one another but not at a multiple of the vector's size are single loads and stores in the
// IR, with 32-bit addresses that may wrap around, which keeps compilers from making one access of them. Every lane is
// within the buffer, so that none does wrap: OpenCL C has vload and vstore for them. It has vload_half and vstore_half too, but
// PoCL 3.1's compiler takes their address to be a multiple of the vector's size, and the program ends with a segmentation fault.
type neighbours struct {
	loads  map[*ir.Instr]ir.Value // vectors of loads, by address of the first
	stores map[*ir.Instr]ir.Value // the last of the stores of a vector's lanes, by address of the first
	gone   map[*ir.Instr]bool     // what is not printed
}

// splitAddress splits an address into a value and a constant.
func splitAddress(v ir.Value) (base ir.Value, offset uint32) {
	for v.Op == ir.OpAdd && v.Type == ir.Scalar(ir.U32) {
		x, y := v.Args[0], v.Args[1]
		if x.Op == ir.OpConst {
			x, y = y, x
		}
		if y.Op != ir.OpConst {
			break
		}
		v, offset = x, offset+uint32(y.Imm)
	}
	if v.Op == ir.OpConst {
		return nil, offset + uint32(v.Imm)
	}
	return v, offset
}

// follows reports whether address v is n elements after first.
func follows(first, v ir.Value, n int) bool {
	b0, o0 := splitAddress(first)
	b1, o1 := splitAddress(v)
	return b0 == b1 && o1 == o0+uint32(n)
}

// findNeighbours looks for accesses that vload and vstore can do.
func findNeighbours(k *ir.Kernel) *neighbours {
	n := &neighbours{map[*ir.Instr]ir.Value{}, map[*ir.Instr]ir.Value{}, map[*ir.Instr]bool{}}
	k.Walk(func(in *ir.Instr) {
		if in.Op == ir.OpVec && vectorLanes(in.Type.Lanes) {
			n.findLoads(in)
		}
	})
	n.findStores(k.Body)
	if len(n.loads)+len(n.stores) > 0 {
		n.bury(k)
	}
	return n
}

func vectorLanes(n int) bool { return n == 2 || n == 4 || n == 8 || n == 16 }

// findLoads takes a vector of loads of memory that the kernel does not write: when they happen is then of no importance.
func (n *neighbours) findLoads(vec *ir.Instr) {
	first := vec.Args[0]
	for i, a := range vec.Args {
		if a.Op != ir.OpLoad || a.Type.Lanes != 1 || a.Mem != first.Mem || a.Mem.Space != ir.Global || a.Type.Kind != a.Mem.Kind || a.Mem.Access != ir.Read || !follows(first.Args[0], a.Args[0], i) {
			return
		}
	}
	n.loads[vec] = first.Args[0]
}

// findStores takes stores of all lanes of a vector, in order and without other effects between them.
func (n *neighbours) findStores(b *ir.Block) {
	for i, in := range b.Instrs {
		for _, inner := range in.Blocks {
			n.findStores(inner)
		}
		v := storedLane(in, 0)
		if v == nil || !vectorLanes(v.Type.Lanes) {
			continue
		}
		run := []*ir.Instr{in}
		for _, next := range b.Instrs[i+1:] {
			if next.Op != ir.OpStore && pure(next) {
				continue
			}
			if storedLane(next, len(run)) != v || next.Mem != in.Mem || !follows(in.Args[0], next.Args[0], len(run)) {
				break
			}
			if run = append(run, next); len(run) == v.Type.Lanes {
				break
			}
		}
		if len(run) < v.Type.Lanes {
			continue
		}
		for _, s := range run[:len(run)-1] {
			n.gone[s] = true
		}
		n.stores[run[len(run)-1]] = in.Args[0]
	}
}

// storedLane returns the vector whose given lane a store to a buffer writes, or nil.
func storedLane(in *ir.Instr, lane int) ir.Value {
	if in.Op != ir.OpStore || in.Mem.Space != ir.Global {
		return nil
	}
	if x := in.Args[1]; x.Op == ir.OpExtract && int(x.Imm) == lane && x.Type.Kind == in.Mem.Kind && x.Type.Kind != ir.Bool {
		return x.Args[0]
	}
	return nil
}

// pure reports whether an instruction only computes a value, from others and not from memory.
func pure(in *ir.Instr) bool {
	switch in.Op {
	case ir.OpLoad, ir.OpGet, ir.OpVar, ir.OpSet, ir.OpStore, ir.OpIf, ir.OpFor, ir.OpBarrier, ir.OpLoopVar:
		return false
	}
	return !in.Op.IsAtomic()
}

// bury finds the values that nothing needs any more.
func (n *neighbours) bury(k *ir.Kernel) {
	live := map[*ir.Instr]bool{}
	var mark func(v ir.Value)
	mark = func(v ir.Value) {
		if live[v] {
			return
		}
		live[v] = true
		if first, ok := n.loads[v]; ok {
			mark(first)
			return
		}
		for _, a := range v.Args {
			mark(a)
		}
	}
	removable := func(in *ir.Instr) bool { return pure(in) || in.Op == ir.OpLoad }
	k.Walk(func(in *ir.Instr) {
		first, ok := n.stores[in]
		switch {
		case n.gone[in] || removable(in):
		case ok:
			live[in] = true
			mark(first)
			mark(in.Args[1].Args[0])
		default:
			mark(in)
		}
	})
	k.Walk(func(in *ir.Instr) {
		if !live[in] && removable(in) {
			n.gone[in] = true
		}
	})
}

// loadNeighbours returns the expression of a vector of loads.
func (e *emitter) loadNeighbours(vec *ir.Instr, first ir.Value) string {
	return fmt.Sprintf("vload%d(0, %s + %s)", vec.Type.Lanes, memName(vec.Args[0].Mem), ref(first))
}

// storeNeighbours prints the stores of a vector's lanes, of which in is the last.
func (e *emitter) storeNeighbours(in *ir.Instr, first ir.Value) {
	v := in.Args[1].Args[0]
	e.line("vstore%d(%s, 0, %s + %s);", v.Type.Lanes, ref(v), memName(in.Mem), ref(first))
}
