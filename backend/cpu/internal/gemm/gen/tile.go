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

// tile is the outer-product kernel: rows by vecs vectors of the result stay in registers; each step of k multiplies a
// value of A, broadcast, by vectors of B.
func (s isa) tile(rows, vecs int) {
	name := fmt.Sprintf("tile%sx%dx%d", s.name, rows, vecs)
	function(name, "func(a *float32, aRow, aCol uintptr, b *float32, bStep, k uintptr, c *float32, cRow uintptr, mask *int32, add uintptr, bias *float32)",
		fmt.Sprintf("%s computes %d rows of %d columns.", name, rows, vecs*s.lanes))
	acc := func(r, v int) reg.VecPhysical { return s.reg[len(s.reg)-1-r*vecs-v] }
	size := s.vecBytes()

	c, cRow := param("c"), param("cRow")
	if vecs <= 2 {
		p := GP64()
		MOVQ(c, p)
		for r := range rows {
			for v := 0; v < vecs*size; v += 64 {
				PREFETCHT0(Mem{Base: p, Disp: v})
			}
			if r+1 < rows {
				ADDQ(cRow, p)
			}
		}
	}
	a, aCol := param("a"), param("aCol")
	multiples := rowMultiples(param("aRow"), rows)
	b, bStep, k := param("b"), param("bStep"), param("k")
	for r := range rows {
		for v := range vecs {
			VXORPS(acc(r, v).AsY(), acc(r, v).AsY(), acc(r, v).AsY())
		}
	}

	// Registers from the low end: vectors of B, then values of A.
	inB := min(vecs, 2)
	spare := len(s.reg) - rows*vecs - inB
	step := func() {
		if rows == 1 { // B straight from memory
			VBROADCASTSS(rowAddress(a, multiples, 0), s.reg[0])
			for v := range vecs {
				VFMADD231PS(Mem{Base: b, Disp: v * size}, s.reg[0], acc(0, v))
			}
		} else {
			values := make([]reg.VecPhysical, rows)
			for v0 := 0; v0 < vecs; v0 += inB {
				for v := range inB {
					VMOVUPS(Mem{Base: b, Disp: (v0 + v) * size}, s.reg[v])
				}
				for r := range rows {
					if v0 == 0 {
						values[r] = s.reg[inB+r%min(spare, 8)]
						VBROADCASTSS(rowAddress(a, multiples, r), values[r])
					}
					for v := range inB {
						VFMADD231PS(s.reg[v], values[r], acc(r, v0+v))
					}
				}
			}
		}
		ADDQ(aCol, a)
		ADDQ(bStep, b)
	}
	const unroll = 4
	SUBQ(Imm(unroll), k)
	JCS(LabelRef("rest"))
	Label("loop")
	for range unroll {
		step()
	}
	SUBQ(Imm(unroll), k)
	JCC(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(unroll), k)
	JEQ(LabelRef("sum"))
	Label("single")
	step()
	DECQ(k)
	JNE(LabelRef("single"))

	Label("sum")
	c, cRow = param("c"), param("cRow")
	add, bias := param("add"), param("bias")
	if vecs > 2 {
		s.store(rows, vecs, acc, c, cRow, add, bias, nil)
		return
	}
	mask := param("mask")
	TESTQ(mask, mask)
	JNE(LabelRef("edge"))
	s.store(rows, vecs, acc, c, cRow, add, bias, nil)
	Label("edge")
	s.store(rows, vecs, acc, c, cRow, add, bias, s.masks(mask, vecs))
}

// masks loads the masks of the columns.
func (s isa) masks(mask reg.GPVirtual, vecs int) []reg.Register {
	var out []reg.Register
	for v := range vecs {
		m := Mem{Base: mask, Disp: v * s.vecBytes()}
		if s.lanes == 16 {
			k := K()
			VMOVDQU32(m, s.reg[0])
			VPMOVD2M(s.reg[0], k)
			out = append(out, k)
		} else {
			VMOVDQU(m, s.reg[v])
			out = append(out, s.reg[v])
		}
	}
	return out
}

// store adds the old result and the bias, if asked, and stores the tile. masks is nil if all columns are there.
func (s isa) store(rows, vecs int, acc func(r, v int) reg.VecPhysical, c, cRow, add, bias reg.GPVirtual, masks []reg.Register) {
	size := s.vecBytes()
	suffix := "full"
	if masks != nil {
		suffix = "edge"
	}
	p := GP64()
	tmp := s.reg[2]
	TESTQ(add, add)
	JEQ(LabelRef("fresh_" + suffix))
	MOVQ(c, p)
	for r := range rows {
		for v := range vecs {
			m := Mem{Base: p, Disp: v * size}
			switch {
			case masks == nil:
				VADDPS(m, acc(r, v), acc(r, v))
			case s.lanes == 16:
				VADDPS(m, acc(r, v), masks[v], acc(r, v))
			default:
				VMASKMOVPS(m, masks[v], tmp)
				VADDPS(tmp, acc(r, v), acc(r, v))
			}
		}
		if r+1 < rows {
			ADDQ(cRow, p)
		}
	}
	Label("fresh_" + suffix)
	TESTQ(bias, bias)
	JEQ(LabelRef("store_" + suffix))
	for v := range vecs {
		m := Mem{Base: bias, Disp: v * size}
		switch {
		case masks == nil:
			VMOVUPS(m, tmp)
		case s.lanes == 16:
			VMOVUPS_Z(m, masks[v], tmp)
		default:
			VMASKMOVPS(m, masks[v], tmp)
		}
		for r := range rows {
			VADDPS(tmp, acc(r, v), acc(r, v))
		}
	}
	Label("store_" + suffix)
	for r := range rows {
		for v := range vecs {
			m := Mem{Base: c, Disp: v * size}
			switch {
			case masks == nil:
				VMOVUPS(acc(r, v), m)
			case s.lanes == 16:
				VMOVUPS(acc(r, v), masks[v], m)
			default:
				VMASKMOVPS(acc(r, v), masks[v], m)
			}
		}
		if r+1 < rows {
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
