package jit

// The frame is the memory that a call of machine code works on. Offsets in bytes:
const (
	frameGroup      = 0  // the first workgroup in dimension 0
	frameGroupEnd   = 8  // and the end
	frameGroupY     = 16 // the workgroups' position in the other dimensions
	frameGroupZ     = 24
	frameFirst      = 32 // the first block of invocations of each workgroup
	frameEnd        = 40 // and the end
	frameNumGroups  = 48 // three words of 8 bytes
	frameFault      = 72 // 0, or the instruction and the kind of a fault (see faultCode)
	frameFaultIndex = 80
	frameScratch    = 128 // two vectors
	frameParams     = 256 // 4 bytes each
	frameBuffers    = 384 // pointer and number of elements of each, 16 bytes
)

// faultKind is what the code found wrong.
type faultKind uint32

const (
	faultBounds faultKind = iota
	faultAligned
	faultDivision
	faultEndless
	numFaults
)

// faultCode is what the code leaves in the frame: never 0.
func faultCode(id int, k faultKind) int32 { return int32(id)*int32(numFaults) + int32(k) + 1 }

func bufferPointer(binding int) memory  { return at(frameReg, int32(frameBuffers+16*binding)) }
func bufferElements(binding int) memory { return at(frameReg, int32(frameBuffers+16*binding+8)) }

// slotsAt returns where the slots of spilled registers start.
func slotsAt(buffers int) int { return (frameBuffers + 16*buffers + 63) &^ 63 }
