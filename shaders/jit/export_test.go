package jit

import "unsafe"

func unsafeBytes(f *frame, n int) []byte { return unsafe.Slice((*byte)(f.base), n) }
