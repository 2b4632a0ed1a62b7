package lib

import (
	"math/bits"

	"github.com/anygpu/anygpu/shaders/ir"
)

// The constants of Philox4x32 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
const (
	philoxM0     = 0xD2511F53
	philoxM1     = 0xCD9E8D57
	philoxW0     = 0x9E3779B9
	philoxW1     = 0xBB67AE85
	philoxRounds = 10
)

// Philox returns the block of Philox4x32-10 that [Random] makes of a seed (the key) and a 64-bit counter (the low
// words of the counter; the high ones are 0). Element i of a Random is word i%4 of the block of counter Offset + i/4.
func Philox(seed, counter uint64) [4]uint32 {
	return PhiloxBlock([2]uint32{uint32(seed), uint32(seed >> 32)}, [4]uint32{uint32(counter), uint32(counter >> 32)})
}

// PhiloxBlock is Philox4x32-10 on its whole counter, as published.
func PhiloxBlock(key [2]uint32, c [4]uint32) [4]uint32 {
	for range philoxRounds {
		hi0, lo0 := bits.Mul32(philoxM0, c[0])
		hi1, lo1 := bits.Mul32(philoxM1, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ key[0], lo1, hi0 ^ c[3] ^ key[1], lo0}
		key[0] += philoxW0
		key[1] += philoxW1
	}
	return c
}

// philox builds PhiloxBlock.
func philox(b *ir.Builder, key [2]ir.Value, c [4]ir.Value) [4]ir.Value {
	m0, m1 := b.U32(philoxM0), b.U32(philoxM1)
	for round := range philoxRounds {
		if round > 0 {
			key[0], key[1] = b.Add(key[0], b.U32(philoxW0)), b.Add(key[1], b.U32(philoxW1))
		}
		hi0, lo0 := b.MulHi(m0, c[0]), b.Mul(m0, c[0])
		hi1, lo1 := b.MulHi(m1, c[2]), b.Mul(m1, c[2])
		c = [4]ir.Value{b.Xor(b.Xor(hi1, c[1]), key[0]), lo1, b.Xor(b.Xor(hi0, c[3]), key[1]), lo0}
	}
	return c
}
