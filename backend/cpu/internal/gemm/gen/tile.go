package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowAddress returns the address of row i, below 8, in memory that starts at base, for rows at a distance in a
// register. multiples are registers with 1, 3, 5 and 7 times the distance; only those needed have to be set.
func rowAddress(base reg.GPVirtual, multiples [4]reg.GPVirtual, i int) Mem {
	m := Mem{Base: base}
	if i == 0 {
		return m
	}
	scale := i & -i
	m.Index, m.Scale = multiples[i/scale/2], uint8(scale)
	return m
}

// rowMultiples computes what rowAddress needs for n rows.
func rowMultiples(distance reg.GPVirtual, n int) [4]reg.GPVirtual {
	m := [4]reg.GPVirtual{distance}
	for i, factor := range []int{3, 5, 7} {
		if n <= factor {
			break
		}
		m[i+1] = GP64()
		switch factor {
		case 3:
			LEAQ(Mem{Base: distance, Index: distance, Scale: 2}, m[1])
		case 5:
			LEAQ(Mem{Base: distance, Index: distance, Scale: 4}, m[2])
		case 7:
			LEAQ(Mem{Base: m[1], Index: distance, Scale: 4}, m[3])
		}
	}
	return m
}

func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// tile is an outer-product kernel: rows by vecs vectors of the result stay in registers; each step of k multiplies a
// value of A, broadcast, by vectors of B.
type tile struct {
	isa
	rows, vecs int
	double     bool // sums, and what is stored, are float64; operands are float32
	table      bool // the rows of A are at any places, and consist of runs
}

func (t tile) name() string {
	name := "tile"
	switch {
	case t.double && t.table:
		name = "preciseRuns"
	case t.double:
		name = "precise"
	case t.table:
		name = "runs"
	}
	vecs := t.vecs
	if t.double {
		vecs /= 2 // counted as vectors of float32
	}
	return fmt.Sprintf("%s%sx%dx%d", name, t.isa.name, t.rows, vecs)
}

// columns is the number of values in a vector of the result.
func (t tile) columns() int {
	if t.double {
		return t.lanes / 2
	}
	return t.lanes
}

func (t tile) acc(r, v int) reg.VecPhysical { return t.reg[len(t.reg)-1-r*t.vecs-v] }

// narrow returns the register that holds as many float32 as a vector of the result has values.
func (t tile) narrow(r reg.VecPhysical) reg.Register {
	switch {
	case !t.double:
		return r
	case t.lanes == 16:
		return r.AsY()
	}
	return r.AsX()
}

// load loads a vector of float32 as values of the result's type.
func (t tile) load(m Mem, to reg.VecPhysical) {
	if t.double {
		VCVTPS2PD(m, to)
	} else {
		VMOVUPS(m, to)
	}
}

// broadcast loads a float32 into every lane.
func (t tile) broadcast(m Mem, to reg.VecPhysical) {
	switch {
	case !t.double:
		VBROADCASTSS(m, to)
	case t.lanes == 16:
		VCVTPS2PD_BCST(m, to)
	default:
		VBROADCASTSS(m, to.AsX())
		VCVTPS2PD(to.AsX(), to)
	}
}

func (t tile) fma(x, y Op, acc reg.VecPhysical) {
	if t.double {
		VFMADD231PD(x, y, acc)
	} else {
		VFMADD231PS(x, y, acc)
	}
}

func (t tile) add(x Op, y, to reg.VecPhysical) {
	if t.double {
		VADDPD(x, y, to)
	} else {
		VADDPS(x, y, to)
	}
}

func (t tile) clear() {
	for r := range t.rows {
		for v := range t.vecs {
			VXORPS(t.acc(r, v).AsY(), t.acc(r, v).AsY(), t.acc(r, v).AsY())
		}
	}
}

// step multiplies the values of A at the addresses that at gives by vectors of B.
func (t tile) step(at func(r int) Mem, b reg.GPVirtual) {
	size := 4 * t.columns()
	if t.rows == 1 && !t.double { // B straight from memory
		t.broadcast(at(0), t.reg[0])
		for v := range t.vecs {
			t.fma(Mem{Base: b, Disp: v * size}, t.reg[0], t.acc(0, v))
		}
		return
	}
	// Registers from the low end: vectors of B, then values of A.
	inB := min(t.vecs, 2)
	if t.double {
		inB = t.vecs
	}
	spare := len(t.reg) - t.rows*t.vecs - inB
	values := make([]reg.VecPhysical, t.rows)
	for v0 := 0; v0 < t.vecs; v0 += inB {
		for v := range inB {
			t.load(Mem{Base: b, Disp: (v0 + v) * size}, t.reg[v])
		}
		for r := range t.rows {
			if v0 == 0 {
				values[r] = t.reg[inB+r%min(spare, 8)]
				t.broadcast(at(r), values[r])
			}
			for v := range inB {
				t.fma(t.reg[v], values[r], t.acc(r, v0+v))
			}
		}
	}
}

const unroll = 4

// loop repeats a step k times, at least once; labels get a suffix.
func loop(k reg.GPVirtual, step func(), suffix string) {
	SUBQ(Imm(unroll), k)
	JCS(LabelRef("rest" + suffix))
	Label("loop" + suffix)
	for range unroll {
		step()
	}
	SUBQ(Imm(unroll), k)
	JCC(LabelRef("loop" + suffix))
	Label("rest" + suffix)
	ADDQ(Imm(unroll), k)
	JEQ(LabelRef("end" + suffix))
	Label("single" + suffix)
	step()
	DECQ(k)
	JNE(LabelRef("single" + suffix))
	Label("end" + suffix)
}

// emit writes the kernel.
func (t tile) emit() {
	if t.table {
		t.emitRuns()
		return
	}
	function(t.name(), "func(a *float32, aRow, aCol uintptr, b *float32, bStep, k uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias, rowBias *float32)",
		fmt.Sprintf("%s computes %d rows of %d columns.", t.name(), t.rows, t.vecs*t.columns()))
	c, cRow := param("c"), param("cRow")
	if t.vecs <= 2 {
		p := GP64()
		MOVQ(c, p)
		for r := range t.rows {
			for v := 0; v < t.vecs*t.vecBytes(); v += 64 {
				PREFETCHT0(Mem{Base: p, Disp: v})
			}
			if r+1 < t.rows {
				ADDQ(cRow, p)
			}
		}
	}
	a, aCol := param("a"), param("aCol")
	multiples := rowMultiples(param("aRow"), t.rows)
	b, bStep, k := param("b"), param("bStep"), param("k")
	t.clear()
	loop(k, func() {
		t.step(func(r int) Mem { return rowAddress(a, multiples, r) }, b)
		ADDQ(aCol, a)
		ADDQ(bStep, b)
	}, "")
	t.finish()
}

// emitRuns writes the kernel whose rows of A are runs of k values, with skip bytes between them: those that windows of an
// image take from it.
func (t tile) emitRuns() {
	function(t.name(), "func(rows *[8]*float32, k, runs, skip uintptr, b *float32, bStep uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias, rowBias *float32)",
		fmt.Sprintf("%s computes %d rows of %d columns; each row of A is runs of k values.", t.name(), t.rows, t.vecs*t.columns()))
	table := param("rows")
	row := make([]reg.GPVirtual, t.rows)
	for i := range row {
		row[i] = GP64()
		MOVQ(Mem{Base: table, Disp: 8 * i}, row[i])
	}
	b, bStep, runs, at := param("b"), param("bStep"), param("runs"), GP64()
	XORQ(at, at)
	t.clear()
	Label("run")
	loop(param("k"), func() {
		t.step(func(r int) Mem { return Mem{Base: row[r], Index: at, Scale: 1} }, b)
		ADDQ(Imm(4), at)
		ADDQ(bStep, b)
	}, "")
	ADDQ(param("skip"), at)
	DECQ(runs)
	JNE(LabelRef("run"))
	t.finish()
}

// finish stores the tile.
func (t tile) finish() {
	c, cRow, add, bias, rowBias := param("c"), param("cRow"), param("add"), param("bias"), param("rowBias")
	if t.vecs > 2 && !t.double {
		t.store(c, cRow, add, bias, rowBias, nil, nil)
		return
	}
	mask := param("mask")
	TESTQ(mask, mask)
	JNE(LabelRef("edge"))
	t.store(c, cRow, add, bias, rowBias, nil, nil)
	Label("edge")
	masks, narrow := t.masks(mask)
	t.store(c, cRow, add, bias, rowBias, masks, narrow)
}

// masks loads the masks of the columns, for vectors of the result and for vectors of as many float32.
func (t tile) masks(mask reg.GPVirtual) (masks, narrow []reg.Register) {
	for v := range t.vecs {
		m := Mem{Base: mask, Disp: 4 * v * t.columns()}
		switch {
		case t.lanes == 16:
			k := K()
			VMOVDQU32(m, t.narrow(t.reg[0]))
			VPMOVD2M(t.narrow(t.reg[0]), k)
			masks, narrow = append(masks, k), append(narrow, k)
		case t.double: // 2*vecs registers, of those that held B and A
			VPMOVSXDQ(m, t.reg[v])
			VMOVDQU(m, t.reg[3+v].AsX())
			masks, narrow = append(masks, t.reg[v]), append(narrow, t.reg[3+v].AsX())
		default:
			VMOVDQU(m, t.reg[v])
			masks, narrow = append(masks, t.reg[v]), append(narrow, t.reg[v])
		}
	}
	return masks, narrow
}

// store adds the old result and the biases, if asked, and stores the tile. masks is nil if all columns are there.
func (t tile) store(c, cRow, add, bias, rowBias reg.GPVirtual, masks, narrow []reg.Register) {
	size := t.vecBytes()
	suffix := "full"
	if masks != nil {
		suffix = "edge"
	}
	p := GP64()
	tmp := t.reg[2]
	TESTQ(add, add)
	JEQ(LabelRef("fresh_" + suffix))
	MOVQ(c, p)
	for r := range t.rows {
		for v := range t.vecs {
			m := Mem{Base: p, Disp: v * size}
			switch {
			case masks == nil:
				t.add(m, t.acc(r, v), t.acc(r, v))
			case t.lanes == 16 && t.double:
				VADDPD(m, t.acc(r, v), masks[v], t.acc(r, v))
			case t.lanes == 16:
				VADDPS(m, t.acc(r, v), masks[v], t.acc(r, v))
			case t.double:
				VMASKMOVPD(m, masks[v], tmp)
				VADDPD(tmp, t.acc(r, v), t.acc(r, v))
			default:
				VMASKMOVPS(m, masks[v], tmp)
				VADDPS(tmp, t.acc(r, v), t.acc(r, v))
			}
		}
		if r+1 < t.rows {
			ADDQ(cRow, p)
		}
	}
	Label("fresh_" + suffix)
	TESTQ(bias, bias)
	JEQ(LabelRef("rows_" + suffix))
	for v := range t.vecs {
		m := Mem{Base: bias, Disp: 4 * v * t.columns()}
		switch {
		case masks == nil:
			t.load(m, tmp)
		case t.lanes == 16 && t.double:
			VCVTPS2PD_Z(m, masks[v], tmp)
		case t.lanes == 16:
			VMOVUPS_Z(m, masks[v], tmp)
		case t.double:
			VMASKMOVPS(m, narrow[v], tmp.AsX())
			VCVTPS2PD(tmp.AsX(), tmp)
		default:
			VMASKMOVPS(m, masks[v], tmp)
		}
		for r := range t.rows {
			t.add(tmp, t.acc(r, v), t.acc(r, v))
		}
	}
	Label("rows_" + suffix)
	TESTQ(rowBias, rowBias)
	JEQ(LabelRef("store_" + suffix))
	for r := range t.rows {
		t.broadcast(Mem{Base: rowBias, Disp: 4 * r}, tmp)
		for v := range t.vecs {
			t.add(tmp, t.acc(r, v), t.acc(r, v))
		}
	}
	Label("store_" + suffix)
	for r := range t.rows {
		for v := range t.vecs {
			m := Mem{Base: c, Disp: v * size}
			switch {
			case masks == nil:
				VMOVUPS(t.acc(r, v), m)
			case t.lanes == 16 && t.double:
				VMOVUPD(t.acc(r, v), masks[v], m)
			case t.lanes == 16:
				VMOVUPS(t.acc(r, v), masks[v], m)
			case t.double:
				VMASKMOVPD(t.acc(r, v), masks[v], m)
			default:
				VMASKMOVPS(t.acc(r, v), masks[v], m)
			}
		}
		if r+1 < t.rows {
			ADDQ(cRow, c)
		}
	}
	VZEROUPPER()
	RET()
}

// peak is a loop of nothing but multiplications and additions, as many at once as the unit can have under way.
func (s isa) peak() {
	name := "peak" + s.name
	function(name, "func(n uintptr)", fmt.Sprintf("%s does n rounds of 12 vector multiply-adds.", name))
	n := param("n")
	for i := range 14 {
		VXORPS(s.reg[i].AsY(), s.reg[i].AsY(), s.reg[i].AsY())
	}
	Label("loop")
	for i := range 12 {
		VFMADD231PS(s.reg[12], s.reg[13], s.reg[i])
	}
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
