package interp

import (
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// CheckOptions says what Check cannot know from the kernel.
type CheckOptions struct {
	// Uninit are bindings whose contents nobody wrote before the launch; reading an element of them before the kernel
	// wrote it is a fault. Bindings declared Write-only are always so.
	Uninit []int
	// Elems is the number of elements of each binding where the buffer is longer because of padding to 4 bytes; nil or
	// 0 for as many as fit in the buffer.
	Elems []int
	// MaxFindings bounds the findings kept; 0 is 50.
	MaxFindings int
}

// checker is the state of one run of Check.
type checker struct {
	k           *ir.Kernel
	n           int // invocations of a workgroup
	groups      [3]int
	params      []uint32
	vals        [][]uint64 // by instruction: lanes of invocation 0, of invocation 1, …
	mems        map[*ir.Mem]*checkedMem
	group       [3]int
	groupNo     int32
	epoch       int32 // number of the interval between barriers, unique in the launch
	err         CheckError
	seen        map[findingKey]int
	maxFindings int
}

// Check runs the kernel over groups workgroups on buffers (one for each global buffer, written in place) and params (one
// for each scalar parameter) and returns a [*CheckError] with what the kernel did wrong, or nil. Values read out of
// bounds are 0, stores out of bounds are dropped, a quotient by zero is 0, and the run goes on, so that later faults are
// found too. Arguments that do not fit the kernel give another error.
//
// A race is an access by two invocations to the same element, not ordered by a barrier, of which one is a store. An
// atomic operation conflicts with stores only.
func Check(k *ir.Kernel, groups [3]int, buffers [][]byte, params []uint32, opt CheckOptions) error {
	if err := checkArgs(k, groups, buffers, params); err != nil {
		return err
	}
	c := &checker{k: k, n: k.Invocations(), groups: groups, params: params, vals: make([][]uint64, k.NumInstr), mems: map[*ir.Mem]*checkedMem{},
		err: CheckError{Kernel: k.Name}, seen: map[findingKey]int{}, maxFindings: opt.MaxFindings}
	if c.maxFindings <= 0 {
		c.maxFindings = 50
	}
	for _, m := range k.Mems {
		if m.Space == ir.Global {
			elems := len(buffers[m.Index]) / m.Kind.Size()
			if m.Index < len(opt.Elems) && opt.Elems[m.Index] > 0 {
				elems = min(elems, opt.Elems[m.Index])
			}
			c.mems[m] = newGlobalMem(m, buffers[m.Index], elems)
		} else {
			c.mems[m] = newArrayMem(m, c.n)
		}
	}
	for _, i := range opt.Uninit {
		for m, cm := range c.mems {
			if m.Space == ir.Global && m.Index == i {
				cm.written = make([]bool, cm.elems)
			}
		}
	}
	k.Walk(func(in *ir.Instr) {
		if in.Type.Kind != ir.Void {
			c.vals[in.ID] = make([]uint64, c.n*in.Type.Lanes)
		}
	})
	all := make([]bool, c.n)
	for i := range all {
		all[i] = true
	}
	for z := range groups[2] {
		for y := range groups[1] {
			for x := range groups[0] {
				c.group = [3]int{x, y, z}
				for _, m := range c.mems {
					m.startGroup()
				}
				c.block(k.Body, all)
				c.groupNo++
				c.epoch++
			}
		}
	}
	if len(c.err.Findings) > 0 {
		return &c.err
	}
	return nil
}

// checkArgs reports launch arguments that do not fit the kernel.
func checkArgs(k *ir.Kernel, groups [3]int, buffers [][]byte, params []uint32) error {
	if k == nil {
		return fmt.Errorf("interp: kernel is nil")
	}
	if n := len(k.Globals()); n != len(buffers) {
		return fmt.Errorf("interp: kernel %s has %d global buffers, got %d", k.Name, n, len(buffers))
	}
	if len(k.Params) != len(params) {
		return fmt.Errorf("interp: kernel %s has %d parameters, got %d", k.Name, len(k.Params), len(params))
	}
	for _, g := range groups {
		if g < 0 {
			return fmt.Errorf("interp: kernel %s: negative number of workgroups %v", k.Name, groups)
		}
	}
	return nil
}

// block runs the instructions for the invocations in mask, one of which at least is active.
func (c *checker) block(b *ir.Block, mask []bool) {
	for _, in := range b.Instrs {
		c.instr(in, mask)
	}
}

func (c *checker) instr(in *ir.Instr, mask []bool) {
	switch in.Op {
	case ir.OpConst, ir.OpParam, ir.OpGlobalID, ir.OpLocalID, ir.OpGroupID, ir.OpNumGroups:
		c.leaf(in, mask)
	case ir.OpSelect, ir.OpConvert, ir.OpBitCast, ir.OpSplat, ir.OpExtract, ir.OpVec:
		c.misc(in, mask)
	case ir.OpVar, ir.OpGet:
		copyActive(c.vals[in.ID], c.vals[in.Args[0].ID], in.Type.Lanes, mask)
	case ir.OpSet:
		copyActive(c.vals[in.Args[0].ID], c.vals[in.Args[1].ID], in.Args[0].Type.Lanes, mask)
	case ir.OpLoad:
		c.load(in, mask)
	case ir.OpStore:
		c.store(in, mask)
	case ir.OpIf:
		c.branch(in, mask)
	case ir.OpFor:
		c.loop(in, mask)
	case ir.OpLoopVar: // set by loop
	case ir.OpBarrier:
		c.together(in, mask)
		c.epoch++
	case ir.OpShuffleXor:
		c.together(in, mask)
		c.exchange(in, mask)
	default:
		if in.Op.IsAtomic() {
			c.atomic(in, mask)
		} else {
			c.compute(in, mask)
		}
	}
}

func copyActive(dst, src []uint64, lanes int, mask []bool) {
	for i, on := range mask {
		if on {
			copy(dst[i*lanes:(i+1)*lanes], src[i*lanes:(i+1)*lanes])
		}
	}
}

func (c *checker) leaf(in *ir.Instr, mask []bool) {
	out, lanes := c.vals[in.ID], in.Type.Lanes
	for i := range c.n {
		if !mask[i] {
			continue
		}
		v := in.Imm
		switch in.Op {
		case ir.OpParam:
			v = uint64(c.params[in.Imm])
		case ir.OpGlobalID:
			v = uint64(uint32(c.group[in.Imm]*c.k.Local[in.Imm] + c.localID(i)[in.Imm]))
		case ir.OpLocalID:
			v = uint64(c.localID(i)[in.Imm])
		case ir.OpGroupID:
			v = uint64(uint32(c.group[in.Imm]))
		case ir.OpNumGroups:
			v = uint64(uint32(c.groups[in.Imm]))
		}
		for l := range lanes {
			out[i*lanes+l] = v
		}
	}
}

// compute runs arithmetic, bit operations, comparisons and math functions.
func (c *checker) compute(in *ir.Instr, mask []bool) {
	var a [3][]uint64
	for j, v := range in.Args {
		a[j] = c.vals[v.ID]
	}
	kind, lanes, out := in.Args[0].Type.Kind, in.Type.Lanes, c.vals[in.ID]
	for i, on := range mask {
		if !on {
			continue
		}
		for e := i * lanes; e < (i+1)*lanes; e++ {
			var x [3]uint64
			for j := range in.Args {
				x[j] = a[j][e]
			}
			c.checkOperands(in, kind, i, x[1])
			out[e] = evalOp(in.Op, kind, x[0], x[1], x[2])
		}
	}
}

func (c *checker) checkOperands(in *ir.Instr, kind ir.Kind, inv int, y uint64) {
	switch in.Op {
	case ir.OpDiv, ir.OpRem:
		if kind.IsInt() && y == 0 {
			c.report(DivisionByZero, in, inv, in.Args[1], 0, "")
		}
	case ir.OpShl, ir.OpShr:
		if y >= uint64(8*kind.Size()) {
			c.report(ShiftTooLarge, in, inv, in.Args[1], int64(y), fmt.Sprintf("amount %d, width %d", y, 8*kind.Size()))
		}
	}
}

func (c *checker) misc(in *ir.Instr, mask []bool) {
	out, lanes, a := c.vals[in.ID], in.Type.Lanes, c.vals[in.Args[0].ID]
	for i, on := range mask {
		if !on {
			continue
		}
		for l := range lanes {
			e := i*lanes + l
			switch in.Op {
			case ir.OpSelect:
				if a[e] != 0 {
					out[e] = c.vals[in.Args[1].ID][e]
				} else {
					out[e] = c.vals[in.Args[2].ID][e]
				}
			case ir.OpConvert:
				out[e] = convertBits(in.Args[0].Type.Kind, in.Type.Kind, a[e])
			case ir.OpBitCast:
				out[e] = a[e]
			case ir.OpSplat:
				out[e] = a[i]
			case ir.OpExtract:
				out[e] = a[i*in.Args[0].Type.Lanes+int(in.Imm)]
			case ir.OpVec:
				out[e] = c.vals[in.Args[l].ID][i]
			}
		}
	}
}

func (c *checker) branch(in *ir.Instr, mask []bool) {
	cond := c.vals[in.Args[0].ID]
	var sides [2][]bool
	for s := range sides {
		sides[s] = make([]bool, c.n)
	}
	var reached [2]bool
	for i, on := range mask {
		if on {
			s := 1 - int(cond[i])
			sides[s][i], reached[s] = true, true
		}
	}
	for s := range in.Blocks {
		if reached[s] {
			c.block(in.Blocks[s], sides[s])
		}
	}
}

// loop runs the body for the invocations whose counter is below their bound. The bounds are those at the start.
func (c *checker) loop(in *ir.Instr, mask []bool) {
	kind := in.Args[0].Type.Kind
	lo, hi, step := c.vals[in.Args[0].ID], append([]uint64(nil), c.vals[in.Args[1].ID]...), append([]uint64(nil), c.vals[in.Args[2].ID]...)
	counter := append([]uint64(nil), lo...)
	active := append([]bool(nil), mask...)
	body := in.Blocks[0]
	for {
		running := false
		for i := range active {
			active[i] = active[i] && evalCompare(ir.OpLt, kind, counter[i], hi[i])
			running = running || active[i]
		}
		if !running {
			return
		}
		if len(body.Instrs) > 0 && body.Instrs[0].Op == ir.OpLoopVar {
			copyActive(c.vals[body.Instrs[0].ID], counter, 1, active)
		}
		c.block(body, active)
		for i, on := range active {
			if !on {
				continue
			}
			next := evalOp(ir.OpAdd, kind, counter[i], step[i], 0)
			if !evalCompare(ir.OpGt, kind, next, counter[i]) {
				c.report(EndlessLoop, in, i, in.Args[2], int64(step[i]), "the counter does not grow: the step is not positive, or it overflows")
				active[i] = false
			}
			counter[i] = next
		}
	}
}

// together reports a barrier, or an exchange within subgroups, that not all invocations reach.
func (c *checker) together(in *ir.Instr, mask []bool) {
	missing, here := -1, 0
	for i, on := range mask {
		if on {
			here++
		} else if missing < 0 {
			missing = i
		}
	}
	if missing >= 0 {
		c.report(DivergentBarrier, in, missing, nil, 0, fmt.Sprintf("%d of %d invocations reach it; the one named does not", here, c.n))
	}
}

func (c *checker) exchange(in *ir.Instr, mask []bool) {
	out, x := c.vals[in.ID], c.vals[in.Args[0].ID]
	for i, on := range mask {
		if on {
			out[i] = x[i^int(in.Imm)]
		}
	}
}
