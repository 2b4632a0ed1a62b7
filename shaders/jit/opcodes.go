package jit

// Vector instructions. Where an instruction has a form for each of 32 and 64 bits that differ in W and the prefix alone, the
// functions of this file derive the second from the first.

const (
	p66 = 1
	pF3 = 2
	pF2 = 3

	m0F   = 1
	m0F38 = 2
	m0F3A = 3
)

var (
	vADDPS   = opcode{0x58, 0, m0F, 0}
	vMULPS   = opcode{0x59, 0, m0F, 0}
	vSUBPS   = opcode{0x5c, 0, m0F, 0}
	vMINPS   = opcode{0x5d, 0, m0F, 0}
	vDIVPS   = opcode{0x5e, 0, m0F, 0}
	vMAXPS   = opcode{0x5f, 0, m0F, 0}
	vSQRTPS  = opcode{0x51, 0, m0F, 0}
	vCMPPS   = opcode{0xc2, 0, m0F, 0}
	vMOVUPS  = opcode{0x10, 0, m0F, 0}
	vMOVUPSs = opcode{0x11, 0, m0F, 0} // to memory
	vMOVAPS  = opcode{0x28, 0, m0F, 0}

	vRNDSCALEPS = opcode{0x08, p66, m0F3A, 0}
	vRNDSCALEPD = opcode{0x09, p66, m0F3A, 1}
	vSCALEFPS   = opcode{0x2c, p66, m0F38, 0}
	vFPCLASSPS  = opcode{0x66, p66, m0F3A, 0}

	vFMADD132PS  = opcode{0x98, p66, m0F38, 0}
	vFMADD213PS  = opcode{0xa8, p66, m0F38, 0}
	vFMADD231PS  = opcode{0xb8, p66, m0F38, 0}
	vFNMADD231PS = opcode{0xbc, p66, m0F38, 0}

	vPADDD   = opcode{0xfe, p66, m0F, 0}
	vPADDQ   = opcode{0xd4, p66, m0F, 1}
	vPSUBD   = opcode{0xfa, p66, m0F, 0}
	vPSUBQ   = opcode{0xfb, p66, m0F, 1}
	vPMULLD  = opcode{0x40, p66, m0F38, 0}
	vPMULUDQ = opcode{0xf4, p66, m0F, 1}
	vPMINSD  = opcode{0x39, p66, m0F38, 0}
	vPMINUD  = opcode{0x3b, p66, m0F38, 0}
	vPMAXSD  = opcode{0x3d, p66, m0F38, 0}
	vPMAXUD  = opcode{0x3f, p66, m0F38, 0}
	vPABSD   = opcode{0x1e, p66, m0F38, 0}
	vPABSQ   = opcode{0x1f, p66, m0F38, 1}
	vPANDD   = opcode{0xdb, p66, m0F, 0}
	vPORD    = opcode{0xeb, p66, m0F, 0}
	vPXORD   = opcode{0xef, p66, m0F, 0}
	vPSLLVD  = opcode{0x47, p66, m0F38, 0}
	vPSRLVD  = opcode{0x45, p66, m0F38, 0}
	vPSRAVD  = opcode{0x46, p66, m0F38, 0}
	vPCMPD   = opcode{0x1f, p66, m0F3A, 0}
	vPCMPUD  = opcode{0x1e, p66, m0F3A, 0}

	vBLENDMPS    = opcode{0x65, p66, m0F38, 0}
	vPBLENDMD    = opcode{0x64, p66, m0F38, 0}
	vBROADCASTSS = opcode{0x18, p66, m0F38, 0}
	vBROADCASTSD = opcode{0x19, p66, m0F38, 1}
	vPBROADCASTD = opcode{0x7c, p66, m0F38, 0} // from a general register
	vMOVDtoR     = opcode{0x7e, p66, m0F, 0}
	vMOVDfromR   = opcode{0x6e, p66, m0F, 0}
	vALIGND      = opcode{0x03, p66, m0F3A, 0}
	vPMOVM2D     = opcode{0x38, pF3, m0F38, 0}
	vPMOVD2M     = opcode{0x39, pF3, m0F38, 0}

	vCVTDQ2PS   = opcode{0x5b, 0, m0F, 0}
	vCVTUDQ2PS  = opcode{0x7a, pF2, m0F, 0}
	vCVTTPS2DQ  = opcode{0x5b, pF3, m0F, 0}
	vCVTTPS2UDQ = opcode{0x78, 0, m0F, 0}
	vCVTDQ2PD   = opcode{0xe6, pF3, m0F, 0}
	vCVTUDQ2PD  = opcode{0x7a, pF3, m0F, 0}
	vCVTTPD2DQ  = opcode{0xe6, p66, m0F, 1}
	vCVTTPD2UDQ = opcode{0x78, 0, m0F, 1}
	vCVTPS2PD   = opcode{0x5a, 0, m0F, 0}
	vCVTPD2PS   = opcode{0x5a, p66, m0F, 1}
	vCVTQQ2PS   = opcode{0x5b, 0, m0F, 1}
	vCVTQQ2PD   = opcode{0xe6, pF3, m0F, 1}
	vCVTTPD2QQ  = opcode{0x7a, p66, m0F, 1}
	vCVTTPS2QQ  = opcode{0x7a, p66, m0F, 0}
	vPMOVSXDQ   = opcode{0x25, p66, m0F38, 0}
	vPMOVZXDQ   = opcode{0x35, p66, m0F38, 0}
	vPMOVQD     = opcode{0x35, pF3, m0F38, 0} // the register is the source
	vCVTPH2PS   = opcode{0x13, p66, m0F38, 0}
	vCVTPS2PH   = opcode{0x1d, p66, m0F3A, 0} // the register is the source
	vPMOVZXBD   = opcode{0x31, p66, m0F38, 0}
	vPMOVZXWD   = opcode{0x33, p66, m0F38, 0}
	vPMOVDB     = opcode{0x31, pF3, m0F38, 0} // the register is the source
	vPMOVDW     = opcode{0x33, pF3, m0F38, 0} // the register is the source

	vPGATHERDD  = opcode{0x90, p66, m0F38, 0}
	vPSCATTERDD = opcode{0xa0, p66, m0F38, 0}

	vEXTRACTI64X4 = opcode{0x3b, p66, m0F3A, 1} // the register is the source
	vINSERTI64X4  = opcode{0x3a, p66, m0F3A, 1}
)

// wide returns the form for 64-bit elements of an instruction that differs in W alone, and for the instructions of floats
// without a prefix also in the prefix.
func (o opcode) wide() opcode {
	o.w = 1
	if o.space == m0F && o.prefix == 0 {
		o.prefix = p66
	}
	return o
}

// sized returns the form for elements of size bytes.
func (o opcode) sized(size int) opcode {
	if size == 8 {
		switch o {
		case vPADDD:
			return vPADDQ
		case vPSUBD:
			return vPSUBQ
		case vPABSD:
			return vPABSQ
		case vRNDSCALEPS:
			return vRNDSCALEPD
		case vBROADCASTSS:
			return vBROADCASTSD
		}
		return o.wide()
	}
	return o
}

// predicates of the integer comparisons
const (
	cmpEQ  = 0
	cmpLT  = 1
	cmpLE  = 2
	cmpNE  = 4
	cmpNLT = 5 // greater or equal
	cmpNLE = 6
)

// predicates of the comparisons of floats, without signals
const (
	fcmpEQ    = 0x00
	fcmpLT    = 0x11
	fcmpLE    = 0x12
	fcmpUNORD = 0x03
	fcmpNE    = 0x04
	fcmpGE    = 0x1d
	fcmpGT    = 0x1e
)
