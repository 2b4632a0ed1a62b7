#include "textflag.h"

// func call(code, frame uintptr)
// The code keeps SP and BP, and changes any other register.
TEXT ·call(SB), NOSPLIT, $8-16
	MOVQ code+0(FP), AX
	MOVQ frame+8(FP), R15
	CALL AX
	VZEROUPPER
	RET
