package ir

import "fmt"

// lowerPass is one step of Lower.
type lowerPass struct {
	name string
	run  func(k *Kernel, caps Caps) (*Kernel, error)
}

// lowerPasses are the steps in order. Each has its own file, whose comment says what holds after it; later passes rely on
// it and keep it.
var lowerPasses = []lowerPass{
	{"lanes", lowerLanes},     // vectors no wider than MaxLanes
	{"convert", lowerConvert}, // few kinds of conversions, floats to integers in range
	{"math", lowerMath},       // math functions only those in NativeMath and NativeMath64
	{"narrow", lowerNarrow},   // no BF16, U8, U16 values; F16 as the device has it; packed memory
	{"int64", lowerInt64},     // I64 as pairs of U32
	{"common", shareCommon},   // equal expressions computed once
	{"dead", removeDead},      // unused values removed
}

// Lower rewrites a kernel to what a device can do and returns the new kernel; k is not changed. The result is verified.
// Limits of zero in caps mean that the limit is unknown and not checked.
//
// Errors match [ErrLimit] (a *[LimitError] names limit, wanted and allowed) or [ErrUnsupported] (F64 or exchanges in subgroups on a device
// without them, a math function of F64 that a device without 64-bit integers lacks).
//
// After Lower:
//   - there are no values of BF16, U8 or U16, except U8 and U16 between a load and its conversion to U32, and between a
//     conversion from U32 and its store, and BF16 memory is U16 memory;
//   - without F16Arith an F16 value is an F32 value that F16 can represent: a load of F32 from F16 memory converts, a store
//     of F32 to F16 memory rounds to nearest even, and F16 arrays in shared and private memory are F32 arrays;
//   - without F16Storage (U8Storage) buffers of 16-bit (8-bit) elements are U32 buffers of packed words, in little-endian
//     order; scalar stores are an atomic and + or of the word, so these buffers become readwrite;
//   - without I64, memory of I64 is U32 memory with the low word first;
//   - conversions are between I32, U32, I64, F32 and F64, F16 and F32, and U8 and U16 and U32 as above; operands of
//     conversions from floats to integers are in range and not NaN; Bool is neither source nor target;
//   - no vector is wider than MaxLanes, and math functions are those in NativeMath, of F32, and in NativeMath64, of F64.
func Lower(k *Kernel, caps Caps) (*Kernel, error) {
	if err := Verify(k); err != nil {
		return nil, err
	}
	if caps.MaxLanes < 1 {
		caps.MaxLanes = MaxLanes
	}
	if !ValidLanes(caps.MaxLanes) {
		return nil, fmt.Errorf("ir: kernel %s: MaxLanes is %d: 1, 2, 4, 8 and 16 are possible", k.Name, caps.MaxLanes)
	}
	if err := checkLimits(k, caps); err != nil {
		return nil, err
	}
	for _, p := range lowerPasses {
		n, err := p.run(k, caps)
		if err != nil {
			return nil, err
		}
		if n == k {
			continue
		}
		if err := Verify(n); err != nil {
			return nil, fmt.Errorf("after lowering pass %s: %w", p.name, err)
		}
		k = n
	}
	// Arrays grow where their kind is widened.
	if err := checkLimits(k, caps); err != nil {
		return nil, err
	}
	return k, nil
}

// checkLimits compares the kernel with the device's limits, and finds F64 and exchanges in subgroups where there are none.
func checkLimits(k *Kernel, caps Caps) error {
	type limit struct {
		name            string
		wanted, allowed int
	}
	limits := []limit{
		{"invocations in a workgroup", k.Invocations(), caps.MaxInvocations},
		{"workgroup size in dimension 0", k.Local[0], caps.MaxLocal[0]},
		{"workgroup size in dimension 1", k.Local[1], caps.MaxLocal[1]},
		{"workgroup size in dimension 2", k.Local[2], caps.MaxLocal[2]},
		{"workgroup memory in bytes", k.SharedBytes(), caps.SharedBytes},
		{"global buffers", len(k.Globals()), caps.MaxBuffers},
	}
	if k.Subgroup > 0 {
		limits = append(limits, limit{"subgroups in a workgroup", k.Local[0] / k.Subgroup, caps.MaxSubgroups})
	}
	for _, l := range limits {
		if l.allowed > 0 && l.wanted > l.allowed {
			return &LimitError{k.Name, l.name, int64(l.wanted), int64(l.allowed)}
		}
	}
	if s := k.Subgroup; s > 0 && (caps.MaxSubgroups == 0 || caps.SubgroupSize > 0 && caps.SubgroupSize != s) {
		return &UnsupportedError{Kernel: k.Name, What: fmt.Sprintf("exchange within subgroups of %d invocations", s)}
	}
	if caps.F64 {
		return nil
	}
	for _, m := range k.Mems {
		if m.Kind == F64 {
			return &UnsupportedError{Kernel: k.Name, What: fmt.Sprintf("double precision, which memory %q needs", m.Name)}
		}
	}
	var bad *Instr
	k.Walk(func(in *Instr) {
		if bad == nil && in.Type.Kind == F64 {
			bad = in
		}
	})
	if bad != nil {
		return &UnsupportedError{Kernel: k.Name, Instr: bad.String(), What: "double precision"}
	}
	return nil
}
