package jit

import (
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/encodings.txt anew, with objdump")

// encodings are instructions in each form of operands, with registers of each bank.
func encodings() []func(a *asm) {
	var out []func(a *asm)
	add := func(f func(a *asm)) { out = append(out, f) }
	f512, f256, f128 := form{length: len512}, form{length: len256}, form{}
	places := []memory{at(rax, 0), at(rbx, 8), at(r13, 0), at(r12, 0x1234), at(r15, 64), {base: rax, index: rsi, scale: 4}, {base: r15, index: r12, scale: 8, disp: 128},
		{base: r13, index: r9, scale: 1}, {base: rdi, index: rbx, scale: 2, disp: -4}}
	// all vector instructions of three registers
	for i, o := range []opcode{vADDPS, vMULPS, vSUBPS, vMINPS, vDIVPS, vMAXPS, vSCALEFPS, vFMADD132PS, vFMADD213PS, vFMADD231PS, vFNMADD231PS, vPADDD, vPSUBD, vPMULLD,
		vPMINSD, vPMINUD, vPMAXSD, vPMAXUD, vPANDD, vPORD, vPXORD, vPSLLVD, vPSRLVD, vPSRAVD} {
		d, x, y := i%32, (i*7+9)%32, (i*11+18)%32
		add(func(a *asm) { a.rrr(o, f512, d, x, y) })
		add(func(a *asm) { a.rrr(o.sized(8), f512, d, x, y) })
		add(func(a *asm) { a.rrr(o, form{length: len256, mask: 1 + i%7, zero: true}, y, d, x) })
		add(func(a *asm) { a.rrm(o, form{length: len512, broadcast: true}, d, x, places[i%len(places)]) })
		add(func(a *asm) {
			a.rrm(o.sized(8), form{length: len256, broadcast: true}, d, x, places[(i+4)%len(places)])
		})
	}
	for i, o := range []opcode{vSQRTPS, vPABSD, vCVTDQ2PS, vCVTUDQ2PS, vCVTTPS2DQ, vCVTTPS2UDQ, vMOVAPS, vCVTPS2PD, vCVTDQ2PD, vCVTUDQ2PD, vCVTPD2PS, vCVTTPD2DQ, vCVTTPD2UDQ, vCVTQQ2PS,
		vCVTQQ2PD, vCVTTPD2QQ, vCVTTPS2QQ, vPMOVSXDQ, vPMOVZXDQ, vCVTPH2PS, vPMOVZXBD, vPMOVZXWD, vPMOVQD, vPMOVDB, vPMOVDW, vSQRTPS.wide(), vPABSQ, vBROADCASTSS, vBROADCASTSD} {
		d, x := (i*5+3)%32, (i*13+17)%32
		add(func(a *asm) { a.rrr(o, f512, d, 0, x) })
		add(func(a *asm) { a.rrr(o, form{length: len256, mask: 3}, x, 0, d) })
	}
	for _, o := range []opcode{vCMPPS, vCMPPS.wide(), vPCMPD, vPCMPUD, vPCMPD.wide(), vPCMPUD.wide()} {
		add(func(a *asm) { a.rrr(o, f512, 3, 17, 9, cmpLE) })
		add(func(a *asm) { a.rrm(o, form{length: len256, broadcast: true, mask: 2}, 5, 30, at(r15, 392), cmpNLT) })
	}
	for _, o := range []opcode{vRNDSCALEPS, vRNDSCALEPD} {
		add(func(a *asm) { a.rrr(o, f512, 20, 0, 11, 9) })
	}
	for i, m := range places {
		add(func(a *asm) { a.rrm(vMOVUPS, f512, 3+8*(i%4), 0, m) })
		add(func(a *asm) { a.rrm(vMOVUPSs, form{length: len512, mask: 4}, 31-i, 0, m) })
		add(func(a *asm) { a.rrm(vMOVUPS.wide(), f256, i, 0, m) })
		add(func(a *asm) { a.rrm(vPMOVDB, f512, 16+i, 0, m) })
		add(func(a *asm) { a.rrm(vCVTPS2PH, form{length: len512, mask: 1}, 16+i, 0, m, 0) })
		add(func(a *asm) { a.load(4, i, m) })
		add(func(a *asm) { a.load(8, 15-i, m) })
		add(func(a *asm) { a.load(1, i, m) })
		add(func(a *asm) { a.load(2, 8+i%8, m) })
		for _, size := range []int{1, 2, 4, 8} {
			add(func(a *asm) { a.store(size, m, (6+i)%16) })
		}
		add(func(a *asm) { a.lea(true, r9, m) })
		add(func(a *asm) { a.prefetch(m) })
		add(func(a *asm) { a.rm(opCMP, true, r10, m) })
		add(func(a *asm) { storeScalar(a, 4, m, 30) })
		add(func(a *asm) { storeScalar(a, 8, m, 3) })
		add(func(a *asm) { a.vexMem(opKMOV, 0, 5, 0, m) })
		add(func(a *asm) { a.vexMem(opKMOVSt, 0, 6, 0, m) })
	}
	for _, index := range []int{2, 12, 19, 31} {
		add(func(a *asm) {
			a.vsib(vPGATHERDD, form{length: len512, mask: 2}, 5, memory{base: rax, index: index, scale: 4})
		})
		add(func(a *asm) {
			a.vsib(vPGATHERDD.wide(), form{length: len512, mask: 7}, 25, memory{base: r8, index: index, scale: 8})
		})
		add(func(a *asm) {
			a.vsib(vPSCATTERDD, form{length: len256, mask: 1}, 17, memory{base: rax, index: index, scale: 2})
		})
	}
	for _, r := range []int{rbx, rsi, r8, r14} {
		add(func(a *asm) { a.rrr(vPBROADCASTD, f512, 21, 0, r) })
		add(func(a *asm) { a.rrr(vMOVDtoR, f128, 18, 0, r) })
		add(func(a *asm) { a.rrr(vMOVDfromR, f128, 7, 0, r) })
		add(func(a *asm) { a.k2(opKFromGPR, 3, r) })
		add(func(a *asm) { a.k2(opKToGPR, r, 6) })
		add(func(a *asm) { a.setcc(ccB, r) })
		add(func(a *asm) { a.cmov(ccG, true, r, r11) })
		add(func(a *asm) { a.imul(false, r, r9) })
		add(func(a *asm) { a.imulImm(false, r, r10, 77) })
		add(func(a *asm) { a.shift(digitSar, false, r, 5) })
		add(func(a *asm) { a.shiftx(opSHLX, true, r, r9, rdi) })
		add(func(a *asm) { a.shiftx(opSARX, false, rdi, r, r13) })
		add(func(a *asm) { a.shiftx(opSHRX, false, r11, rbx, r) })
		add(func(a *asm) { a.unary(digitNeg, true, r) })
		add(func(a *asm) { a.unary(digitIdiv, false, r) })
		add(func(a *asm) { a.ri(opCMP, true, r, -1) })
		add(func(a *asm) { a.ri(opAND, false, r, 255) })
		add(func(a *asm) { a.rr(opMOVSX, true, r, rdx) })
		add(func(a *asm) { a.rr(opTEST, false, r, r) })
		add(func(a *asm) { a.adcZero(true, r) })
		add(func(a *asm) { a.tzcnt(r, rcx) })
		add(func(a *asm) { a.blsr(r, r12) })
		add(func(a *asm) { a.testImm(r, 15) })
		add(func(a *asm) { a.movImm(r, 0x1234567890) })
		add(func(a *asm) { a.movImm(r, 7) })
	}
	for _, o := range []opcode{opKAND, opKANDN, opKOR, opKXNOR, opKXOR} {
		add(func(a *asm) { a.k3(o, 1, 4, 7) })
	}
	for _, o := range []opcode{opKNOT, opKMOV, opKORTESTW, opKORTESTB} {
		add(func(a *asm) { a.k2(o, 2, 5) })
	}
	add(func(a *asm) { a.rrr(vALIGND, f512, 4, 19, 19, 3) })
	add(func(a *asm) { a.rrr(vEXTRACTI64X4, f512, 19, 0, 28, 1) })
	add(func(a *asm) { a.rrr(vINSERTI64X4, f512, 19, 3, 28, 1) })
	add(func(a *asm) { a.rrr(vPMULUDQ, f512, 19, 3, 28) })
	add(func(a *asm) { a.rrr(vBLENDMPS, form{length: len512, mask: 5}, 19, 3, 28) })
	add(func(a *asm) { a.rrr(vPBLENDMD.wide(), form{length: len512, mask: 5}, 1, 30, 2) })
	return out
}

// TestEncodings compares encodings with recorded ones, which objdump has shown to be the instructions meant.
func TestEncodings(t *testing.T) {
	file := filepath.Join("testdata", "encodings.txt")
	var got []string
	for _, f := range encodings() {
		a := &asm{}
		f(a)
		got = append(got, hex.EncodeToString(a.buf))
	}
	if *update {
		var sb strings.Builder
		for _, h := range got {
			sb.WriteString(h + " " + disassemble(t, h) + "\n")
		}
		if err := os.WriteFile(file, []byte(sb.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(want) != len(got) {
		t.Fatalf("%d encodings, recorded are %d; run the test with -update", len(got), len(want))
	}
	for i, line := range want {
		h, text, _ := strings.Cut(line, " ")
		if h != got[i] {
			t.Errorf("encoding %d is %s, recorded is %s: %s", i, got[i], h, text)
		}
		if strings.Contains(text, "(bad)") {
			t.Errorf("encoding %d: %s is no instruction: %s", i, h, text)
		}
	}
}

func disassemble(t *testing.T, code string) string {
	t.Helper()
	b, _ := hex.DecodeString(code)
	name := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(out), "<.data>:\n")
	var lines []string
	for line := range strings.Lines(list) {
		_, text, _ := strings.Cut(line, ":")
		lines = append(lines, strings.Join(strings.Fields(text), " "))
	}
	return strings.Join(lines, "; ")
}
