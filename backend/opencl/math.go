package opencl

import "github.com/anygpu/anygpu/shaders/ir"

// nativeMath are the math functions whose OpenCL built-ins are within the bounds of the project: all but erf, which is allowed 16 ULP and
// slow in PoCL.
var nativeMath = ir.AllMath().Without(ir.OpErf)
