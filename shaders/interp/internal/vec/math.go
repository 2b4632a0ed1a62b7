package vec

import (
	"math"

	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/vmath"
)

// Scalar returns a math function of package vmath, for any argument; nil if there is none.
func Scalar(op ir.Op) func(x float32) float32 {
	f, def := scalars[op], vmath.Of(op)
	if f == nil || def.Limit == 0 {
		return f
	}
	rest, limit := beyond[op], def.Limit
	return func(x float32) float32 {
		if !(x >= -limit && x <= limit) {
			return float32(rest(float64(x)))
		}
		return f(x)
	}
}

// beyond has the functions with limits, for arguments beyond them.
var beyond = map[ir.Op]func(x float64) float64{ir.OpSin: math.Sin, ir.OpCos: math.Cos}

// Math returns the loop of a math function of package vmath, which does all elements; nil if there is none. It has the
// bits of [Scalar], other than which NaN a NaN is.
func Math(op ir.Op) func(d, a []float32) { return mathLoop(best, op) }

func mathLoop(s *set, op ir.Op) func(d, a []float32) {
	f := Scalar(op)
	switch {
	case f == nil:
		return nil
	case s == nil:
		return func(d, a []float32) {
			a = a[:len(d)]
			for i := range d {
				d[i] = f(a[i])
			}
		}
	case s.limited[op] != nil:
		loop := s.limited[op]
		return func(d, a []float32) {
			for a = a[:len(d)]; len(d) >= s.lanes; {
				n := loop(&d[0], &a[0], uintptr(len(d)&^(s.lanes-1)))
				if d, a = d[n:], a[n:]; len(d) < s.lanes {
					break
				}
				for i := range s.lanes { // a vector with a large element
					d[i] = f(a[i])
				}
				d, a = d[s.lanes:], a[s.lanes:]
			}
			for i := range d {
				d[i] = f(a[i])
			}
		}
	}
	loop := s.math[op]
	return func(d, a []float32) {
		n := whole(len(d), s.lanes, len(a))
		if n > 0 {
			loop(&d[0], &a[0], uintptr(n))
		}
		if n < len(d) {
			var x [16]float32
			copy(x[:], a[n:len(d)])
			loop(&x[0], &x[0], uintptr(s.lanes))
			copy(d[n:], x[:])
		}
	}
}
