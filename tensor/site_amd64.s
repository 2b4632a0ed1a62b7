#include "textflag.h"

// func frames(pcs *[24]uintptr) int
//
// A frame pointer points to the caller's frame pointer, above which is the return address. The walk ends at the goroutine's first
// frame, whose pointer is 0, and at whatever is not further up on the goroutine's stack.
TEXT ·frames(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ pcs+0(FP), DI
	MOVQ (TLS), R8
	MOVQ 8(R8), R8 // g.stack.hi
	SUBQ $16, R8
	MOVQ BP, AX
	XORQ CX, CX
	CMPQ AX, SP
	JLS  done
loop:
	CMPQ AX, R8
	JHI  done
	MOVQ 8(AX), DX
	MOVQ DX, (DI)(CX*8)
	INCQ CX
	CMPQ CX, $24
	JGE  done
	MOVQ (AX), BX
	CMPQ BX, AX
	JLS  done
	MOVQ BX, AX
	JMP  loop
done:
	MOVQ CX, ret+8(FP)
	RET
