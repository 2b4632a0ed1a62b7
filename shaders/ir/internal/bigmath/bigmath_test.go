package bigmath

import (
	"math"
	"testing"
)

// TestDigits holds identities, and known digits, to 200 bits.
func TestDigits(t *testing.T) {
	digits := func(s string) *Float {
		f, _, err := num().Parse(s, 10)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	sin, cos := SinCos(New(1e22))
	s3, _ := SinCos(Mul(Pi(), Div(New(1), New(6))))
	for _, c := range []struct {
		name      string
		got, want *Float
	}{
		{"pi", Pi(), digits("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")},
		{"ln 2", Ln2(), digits("0.693147180559945309417232121458176568075500134360255254120680009493393621969694716")},
		{"e", Exp(New(1)), digits("2.71828182845904523536028747135266249775724709369995957496696762772407663035354759")},
		{"log of exp", Log(Exp(New(3.7))), New(3.7)},
		{"log of exp of a negative number", Log(Exp(New(-700.25))), New(-700.25)},
		{"log 1024", Log(New(1024)), Mul(Ln2(), New(10))},
		{"log1p of expm1", Log1p(Expm1(New(1e-20))), New(1e-20)},
		{"erf 1", Erf(New(1)), digits("0.842700792949714869341220635082609259296066997966302908459937897834717254096010841")},
		{"erf 5", Erf(New(5)), digits("0.9999999999984625402055719651498116565146166211098819496852766200693121")},
		{"sin 1e22", sin, digits("-0.8522008497671888017727058937530293682617621504100436562565093260259103")},
		{"sin^2 + cos^2", Add(Mul(sin, sin), Mul(cos, cos)), New(1)},
		{"sin pi/6", s3, New(0.5)},
		{"atan of tan", Atan(func() *Float { s, c := SinCos(New(1.25)); return Div(s, c) }()), New(1.25)},
		{"asin of sin", Asin(func() *Float { s, _ := SinCos(New(-1.5)); return s }()), New(-1.5)},
		{"acos of cos", Acos(func() *Float { _, c := SinCos(New(3)); return c }()), New(3)},
	} {
		bits := exponent(c.want) - exponent(Sub(c.got, c.want))
		if bits < 170 {
			t.Errorf("%s is %.60g, want %.60g: %d bits agree", c.name, c.got, c.want, bits)
		}
	}
}

// TestFit: a polynomial is found exactly; the exponential with the error that its next term promises.
func TestFit(t *testing.T) {
	poly := []*Float{New(3), New(-1), New(0.5)}
	got, worst := Fit(func(x *Float) *Float { return Eval(poly, x) }, nil, -1, 2, 3)
	for i := range got {
		if v, _ := got[i].Float64(); v != []float64{3, -1, 0.5}[i] {
			t.Errorf("coefficient %d is %v", i, v)
		}
	}
	if worst > 0x1p-200 {
		t.Errorf("a polynomial is off by %v", worst)
	}
	_, worst = Fit(Exp, nil, -1, 1, 6)
	if limit := 1 / (720 * math.Pow(2, 5)); worst < limit/2 || worst > 2.5*limit {
		t.Errorf("the exponential is off by %v, want about %v", worst, limit)
	}
}
