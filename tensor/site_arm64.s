#include "textflag.h"

// func frames(pcs *[24]uintptr) int
//
// See the version for amd64: the layout of frames is the same.
TEXT ·frames(SB), NOSPLIT|NOFRAME, $0-16
	MOVD pcs+0(FP), R0
	MOVD 8(g), R5 // g.stack.hi
	SUB  $16, R5
	MOVD R29, R1
	MOVD $0, R2
	CBZ  R1, done
loop:
	CMP  R5, R1
	BHI  done
	MOVD 8(R1), R3
	MOVD R3, (R0)(R2<<3)
	ADD  $1, R2
	CMP  $24, R2
	BGE  done
	MOVD (R1), R4
	CMP  R1, R4
	BLS  done
	MOVD R4, R1
	B    loop
done:
	MOVD R2, ret+8(FP)
	RET
