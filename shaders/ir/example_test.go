package ir_test

import (
	"errors"
	"fmt"

	"github.com/anygpu/anygpu/shaders/ir"
)

// A kernel is built by calls, verified by Build, and printed as text.
func Example() {
	b := ir.NewBuilder("axpy", 64, 1, 1)
	x, y := b.Buffer("x", ir.F32, ir.Read), b.Buffer("y", ir.F32, ir.ReadWrite)
	n, a := b.Param("n", ir.U32), b.Param("a", ir.F32)
	i := b.Named(b.GlobalID(0), "i")
	b.If(b.Lt(i, n), func() {
		b.Store(y, i, b.Add(b.Mul(a, b.Load(x, i, 1)), b.Load(y, i, 1)))
	}, nil)
	k, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(k)
	// Output:
	// kernel axpy local 64x1x1
	//   param 0 u32 n
	//   param 1 f32 a
	//   global 0 read f32 x
	//   global 1 readwrite f32 y
	//   %0:u32 = param 0  ; n
	//   %1:f32 = param 1  ; a
	//   %2:u32 = global_id 0  ; i
	//   %3:bool = lt %2, %0
	//   if %3
	//     %5:f32 = load x, %2
	//     %6:f32 = mul %1, %5
	//     %7:f32 = load y, %2
	//     %8:f32 = add %6, %7
	//     store y, %2, %8
}

// On a device without bfloat16 and without 16-bit storage, a buffer of bfloat16 becomes one of 32-bit words.
func ExampleLower() {
	b := ir.NewBuilder("widen", 64, 1, 1)
	x, y := b.Buffer("x", ir.BF16, ir.Read), b.Buffer("y", ir.F32, ir.Write)
	i := b.GlobalID(0)
	b.Store(y, i, b.Convert(b.Load(x, i, 1), ir.F32))
	k, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	k, err = ir.Lower(k, ir.Caps{MaxLanes: 4, NativeMath: ir.VulkanMath()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(k)
	// Output:
	// kernel widen local 64x1x1
	//   global 0 read u32 x
	//   global 1 write f32 y
	//   %0:u32 = global_id 0
	//   %1:u32 = const 1
	//   %2:u32 = shr %0, %1
	//   %3:u32 = load x, %2
	//   %4:u32 = and %0, %1
	//   %5:u32 = const 16
	//   %6:u32 = mul %4, %5
	//   %7:u32 = shr %3, %6
	//   %8:u32 = const 65535
	//   %9:u32 = and %7, %8
	//   %10:u32 = shl %9, %5
	//   %11:f32 = bitcast %10
	//   store y, %0, %11
}

// An error of the verifier names the kernel, the instruction and the rule.
func ExampleVerify() {
	b := ir.NewBuilder("tile", 64, 1, 1)
	b.If(b.Lt(b.LocalID(0), b.U32(32)), b.Barrier, nil)
	_, err := b.Build()
	fmt.Println(err)
	fmt.Println(errors.Is(err, ir.ErrInvalid))
	// Output:
	// ir: kernel tile: in "barrier": barrier under divergent control flow: not every invocation of the workgroup reaches it
	// true
}
