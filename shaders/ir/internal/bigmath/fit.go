package bigmath

import (
	"fmt"
	"math"
)

// Fit returns the polynomial of n coefficients, from the lowest degree up, that comes nearest to f on [lo, hi]: by least
// squares of the error times weight (nil: 1) at Chebyshev's points, whose largest error is little above the smallest possible. It
// also returns that largest weighted error at the points.
func Fit(f func(x *Float) *Float, weight func(x float64) float64, lo, hi float64, n int) (coeffs []*Float, worst float64) {
	points := 6 * n
	xs, ys, ws := make([]*Float, points), make([]*Float, points), make([]*Float, points)
	for i := range xs {
		x := (lo+hi)/2 + (hi-lo)/2*math.Cos(math.Pi*(float64(i)+0.5)/float64(points))
		xs[i], ws[i] = New(x), New(1)
		if weight != nil {
			ws[i] = New(weight(x))
		}
		ys[i] = f(xs[i])
	}
	// The normal equations: their condition is bad, and there are digits enough.
	a := make([][]*Float, n)
	for r := range a {
		a[r] = make([]*Float, n+1)
		for c := range a[r] {
			a[r][c] = New(0)
		}
	}
	for i, x := range xs {
		powers := make([]*Float, n+1)
		powers[0] = ws[i]
		for k := 1; k < n; k++ {
			powers[k] = Mul(powers[k-1], x)
		}
		powers[n] = Mul(ws[i], ys[i])
		for r := range n {
			for c := range n + 1 {
				a[r][c].Add(a[r][c], Mul(powers[r], powers[c]))
			}
		}
	}
	coeffs = solve(a)
	for i, x := range xs {
		e, _ := Mul(ws[i], Sub(Eval(coeffs, x), ys[i])).Float64()
		worst = max(worst, math.Abs(e))
	}
	return coeffs, worst
}

// Eval returns the value of a polynomial at x.
func Eval(coeffs []*Float, x *Float) *Float {
	y := New(0)
	for i := len(coeffs) - 1; i >= 0; i-- {
		y = Add(Mul(y, x), coeffs[i])
	}
	return y
}

// solve returns the solution of linear equations by Gauss's elimination; the last column is the right side. The matrix is
// positive definite, so no rows are exchanged.
func solve(a [][]*Float) []*Float {
	n := len(a)
	for p := range n {
		if a[p][p].Sign() <= 0 {
			panic(fmt.Sprintf("bigmath: pivot %d of %d is %v: too few digits", p, n, a[p][p]))
		}
		for r := p + 1; r < n; r++ {
			q := Div(a[r][p], a[p][p])
			for c := p; c <= n; c++ {
				a[r][c] = Sub(a[r][c], Mul(q, a[p][c]))
			}
		}
	}
	x := make([]*Float, n)
	for r := n - 1; r >= 0; r-- {
		v := a[r][n]
		for c := r + 1; c < n; c++ {
			v = Sub(v, Mul(a[r][c], x[c]))
		}
		x[r] = Div(v, a[r][r])
	}
	return x
}
