package vec

// fma returns a*b + c, rounded once: the compiler makes it one instruction on this architecture (a test holds it to that).
func fma(a, b, c float32) float32 { return a*b + c }
