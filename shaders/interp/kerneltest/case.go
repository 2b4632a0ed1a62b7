package kerneltest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/anygpu/anygpu/shaders/ir"
)

// Config says what the kernels may contain.
type Config struct {
	Kinds   []ir.Kind // kinds of values; nil: Bool, U8, U16, I32, U32, I64, F16, BF16, F32 and F64
	Lanes   []int     // vector widths besides 1; nil: 2, 4, 8 and 16
	Exact   bool      // results that every device must agree on
	Math    bool      // division of floats and math functions; not with Exact
	Control bool      // branches, loops, variables and private arrays
	Shared  bool      // workgroup arrays, barriers and integer atomics
	Steps   int       // operations, about; 0: 24

	// Subgroup is the size of the subgroups in which invocations exchange values, where the workgroup has whole ones; 0: they do not.
	Subgroup int
}

// Case is a kernel with its launch.
type Case struct {
	Kernel  *ir.Kernel
	Groups  [3]int
	Params  []uint32
	Written []int    // bindings that the kernel writes
	buffers [][]byte // as they are before the launch
}

// New returns the case of a seed.
func New(seed uint64, cfg Config) (*Case, error) {
	if cfg.Kinds == nil {
		cfg.Kinds = []ir.Kind{ir.Bool, ir.U8, ir.U16, ir.I32, ir.U32, ir.I64, ir.F16, ir.BF16, ir.F32, ir.F64}
	}
	if cfg.Lanes == nil {
		cfg.Lanes = []int{2, 4, 8, 16}
	}
	if cfg.Steps == 0 {
		cfg.Steps = 24
	}
	cfg.Math = cfg.Math && !cfg.Exact
	g := newMaker(seed, cfg)
	return g.make()
}

// Data returns a fresh copy of the buffers before the launch, in order of binding; their sizes are multiples of 4 bytes.
func (c *Case) Data() [][]byte {
	out := make([][]byte, len(c.buffers))
	for i, b := range c.buffers {
		out[i] = append([]byte(nil), b...)
	}
	return out
}

// Compare reports the first difference between two runs in the buffers that the kernel writes; any NaN equals any
// other, and zeros of both signs are equal.
func (c *Case) Compare(want, got [][]byte) error {
	for _, i := range c.Written {
		m := c.Kernel.Globals()[i]
		size := m.Kind.Size()
		for e := 0; (e+1)*size <= len(want[i]); e++ {
			w, g := bitsAt(want[i], e, size), bitsAt(got[i], e, size)
			if w == g {
				continue
			}
			if m.Kind.IsFloat() {
				x, y := ir.ConstFloat(m.Kind, w), ir.ConstFloat(m.Kind, g)
				if x == y || math.IsNaN(x) && math.IsNaN(y) {
					continue
				}
			}
			return fmt.Errorf("kernel %s: %s[%d] is %#x (%v), want %#x (%v)", c.Kernel.Name, m.Name, e, g, ir.ConstFloat(m.Kind, g), w, ir.ConstFloat(m.Kind, w))
		}
	}
	return nil
}

func bitsAt(b []byte, e, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[e])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b[2*e:]))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b[4*e:]))
	}
	return binary.NativeEndian.Uint64(b[8*e:])
}

func putBits(b []byte, e, size int, v uint64) {
	switch size {
	case 1:
		b[e] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(b[2*e:], uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(b[4*e:], uint32(v))
	default:
		binary.NativeEndian.PutUint64(b[8*e:], v)
	}
}

// randomBits returns the bits of an input value of a kind.
func randomBits(r *rand.Rand, k ir.Kind, exact bool) uint64 {
	if k.IsFloat() {
		if exact {
			return ir.ConstBits(k, float64(r.IntN(33)-16))
		}
		special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, -3e-8, 65504, 65520, 3.4e38, 1e300, 2.5, 3.5, 4294967296, -2147483648, 1e19, 255.9}
		if r.IntN(4) == 0 {
			return ir.ConstBits(k, special[r.IntN(len(special))])
		}
		return ir.ConstBits(k, r.NormFloat64()*math.Exp(3*r.NormFloat64()))
	}
	if k == ir.Bool {
		return uint64(r.IntN(2))
	}
	v := r.Uint64()
	switch r.IntN(4) {
	case 0: // all bits
	case 1:
		v = uint64(int64(r.IntN(9) - 4))
	default:
		v = uint64(int64(r.IntN(2001) - 1000))
	}
	if s := k.Size(); s < 8 {
		v &= 1<<(8*s) - 1
	}
	return v
}
