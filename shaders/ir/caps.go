package ir

// Caps says what a device can do, as far as kernels care. [Lower] rewrites kernels to it.
type Caps struct {
	F16Arith     bool    // F16 values: arithmetic and conversion
	F16Storage   bool    // loads and stores of 16-bit elements (F16, U16); else they are packed into U32 words
	U8Storage    bool    // loads and stores of 8-bit elements; else packed into U32 words
	I64          bool    // 64-bit integer arithmetic and storage; else pairs of U32
	F64          bool    // double precision; without it a kernel that uses F64 is an error
	MaxLanes     int     // widest vector value (4 in Vulkan, 16 in OpenCL)
	NativeMath   MathSet // math functions of F32 (and of F16, which are computed in F32)
	NativeMath64 MathSet // math functions of F64
	FMA          bool    // Fma is one instruction and rounds once: the replacements of math functions of F32 use it

	MaxInvocations int    // invocations in a workgroup
	MaxLocal       [3]int // workgroup size in each dimension
	MaxGroups      [3]int // workgroups in each dimension of a launch
	SharedBytes    int    // workgroup memory
	MaxBuffers     int    // global buffers of one kernel
	MaxBufferBytes int64  // bytes of one global buffer that a kernel can see
	SubgroupSize   int    // 0 if unknown
	MaxSubgroups   int    // subgroups of SubgroupSize invocations (of any number, if that is 0) in a workgroup whose kernel exchanges values in them; 0 if none can
	MaxLoopTrips   int    // iterations of all loops together that one invocation may run; 0 if unlimited (llvmpipe: 65,535, then it leaves loops silently)
}

// Subgroup returns the size of the subgroups in which the invocations of a one-dimensional workgroup of local invocations can exchange
// values ([Builder.SetSubgroup]), or 0.
func (c Caps) Subgroup(local int) int {
	n := c.SubgroupSize
	if n < 2 || local%n != 0 || local/n > c.MaxSubgroups {
		return 0
	}
	return n
}

// MathSet is a set of math operations.
type MathSet uint64

// MathOps returns the set of the given operations.
func MathOps(ops ...Op) MathSet {
	var s MathSet
	for _, o := range ops {
		if o.IsMath() {
			s |= 1 << (o - OpSqrt)
		}
	}
	return s
}

// AllMath is the set of all math operations.
func AllMath() MathSet { return 1<<(OpRound-OpSqrt+1) - 1 }

// Has reports whether o is in the set.
func (s MathSet) Has(o Op) bool { return o.IsMath() && s&(1<<(o-OpSqrt)) != 0 }

// Without returns the set less the given operations.
func (s MathSet) Without(ops ...Op) MathSet { return s &^ MathOps(ops...) }

// InterpCaps is what the executors of package interp can do: everything.
func InterpCaps() Caps {
	const many = 1 << 30
	return Caps{F16Arith: true, F16Storage: true, U8Storage: true, I64: true, F64: true, MaxLanes: MaxLanes, NativeMath: AllMath(),
		NativeMath64: AllMath(), MaxSubgroups: 4096, MaxInvocations: 4096, MaxLocal: [3]int{4096, 4096, 4096}, MaxGroups: [3]int{many, many, many}, SharedBytes: 1 << 20,
		MaxBuffers: 64, MaxBufferBytes: 1 << 46}
}
