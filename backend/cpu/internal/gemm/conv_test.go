package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// convCase is a convolution on random values, with what its three products must be, in float64.
type convCase struct {
	Conv
	image, weight, grid                Array
	bias, inBias                       []float32
	forward, input, weights            []float64 // the results
	forwardAbs, inputAbs, weightsAbs   []float64 // the sums of the magnitudes of their terms
	biasSums                           []float32 // as computed; half of the cases ask for them
	biases, biasesAbs                  []float64
	forwardTerms, inputTerms, wghTerms int
}

func (c *Conv) name() string {
	return fmt.Sprintf("%dx%d>%d/%d image %v grid %v kernel %v stride %v pad %v dilation %v precise %v", c.N, c.C, c.O, c.Groups, c.Image, c.Grid, c.Kernel, c.Stride, c.Pad, c.Dilation, c.Precise)
}

// withGrid fills in the number of windows.
func (c Conv) withGrid() Conv {
	for d := range 3 {
		c.Grid[d] = (c.Image[d]+2*c.Pad[d]-c.Dilation[d]*(c.Kernel[d]-1)-1)/c.Stride[d] + 1
	}
	return c
}

func newConvCase(r *rand.Rand, c Conv, kinds [3]Kind, alloc func(int) []byte) *convCase {
	f := &convCase{Conv: c}
	array := func(a *Array, kind Kind, n int) []float64 {
		vals := make([]float64, n)
		for i := range vals {
			vals[i] = r.NormFloat64()
		}
		*a = Array{Kind: kind, Data: alloc(n * kind.Size())}
		return encode(kind, vals, a.Data)
	}
	x, w, z := array(&f.image, kinds[0], c.imageSize()), array(&f.weight, kinds[1], c.weightSize()), array(&f.grid, kinds[2], c.gridSize())
	for range c.O {
		f.bias = append(f.bias, float32(r.NormFloat64()))
	}
	for range c.C {
		f.inBias = append(f.inBias, float32(r.NormFloat64()))
	}
	ci, co := c.perGroup()
	f.forward, f.forwardAbs = make([]float64, len(z)), make([]float64, len(z))
	f.input, f.inputAbs = make([]float64, len(x)), make([]float64, len(x))
	f.weights, f.weightsAbs = make([]float64, len(w)), make([]float64, len(w))
	f.forwardTerms, f.inputTerms, f.wghTerms = ci*c.taps(), co*c.taps(), c.N*volume(c.Grid)
	add := func(sums, abs []float64, i int, v float64) { sums[i], abs[i] = sums[i]+v, abs[i]+math.Abs(v) }
	for i := range z {
		add(f.forward, f.forwardAbs, i, float64(f.bias[i/volume(c.Grid)%c.O]))
	}
	for i := range x {
		add(f.input, f.inputAbs, i, float64(f.inBias[i/volume(c.Image)%c.C]))
	}
	f.biases, f.biasesAbs = make([]float64, c.O), make([]float64, c.O)
	for i, v := range z {
		add(f.biases, f.biasesAbs, i/volume(c.Grid)%c.O, v)
	}
	if r.IntN(2) == 0 {
		f.biasSums = make([]float32, c.O)
	} else {
		f.biases = nil
	}
	for n := range c.N {
		for o := range c.O {
			for i := range ci {
				channel := (n*c.C + o/co*ci + i) * volume(c.Image)
				c.eachTap(func(tap int, k [3]int) {
					wi := (o*ci+i)*c.taps() + tap
					for g := range volume(c.Grid) {
						at, inside := 0, true
						for d, v := range [3]int{g / c.Grid[2] / c.Grid[1], g / c.Grid[2] % c.Grid[1], g % c.Grid[2]} {
							h := v*c.Stride[d] - c.Pad[d] + k[d]*c.Dilation[d]
							inside = inside && h >= 0 && h < c.Image[d]
							at = at*c.Image[d] + h
						}
						if !inside {
							continue
						}
						xi, zi := channel+at, (n*c.O+o)*volume(c.Grid)+g
						add(f.forward, f.forwardAbs, zi, x[xi]*w[wi])
						add(f.input, f.inputAbs, xi, z[zi]*w[wi])
						add(f.weights, f.weightsAbs, wi, x[xi]*z[zi])
					}
				})
			}
		}
	}
	return f
}

// run computes the three products, into memory or through Store.
func (f *convCase) run(t *testing.T, w Workers, s *isa, store bool, alloc func(int) []byte) (forward, input, weight []float32) {
	t.Helper()
	result := func(n int) ([]float32, Result) {
		v := floatsOf(alloc(4 * n))
		for i := range v {
			v[i] = float32(math.NaN())
		}
		if !store {
			return v, Result{Values: v}
		}
		return v, Result{Store: func(at int, values []float32) { copy(v[at:at+len(values)], values) }}
	}
	forward, fr := result(f.gridSize())
	input, ir := result(f.imageSize())
	weight, wr := result(f.weightSize())
	for _, err := range []error{
		f.Conv.forward(w, s, f.image, f.weight, f.bias, fr),
		f.Conv.input(w, s, f.grid, f.weight, f.inBias, ir),
		f.Conv.weight(w, s, f.image, f.grid, wr, f.biasSums),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return forward, input, weight
}

func (f *convCase) check(t *testing.T, forward, input, weight []float32) {
	t.Helper()
	for _, c := range []struct {
		name      string
		got       []float32
		want, abs []float64
		terms     int
	}{{"forward", forward, f.forward, f.forwardAbs, f.forwardTerms}, {"input", input, f.input, f.inputAbs, f.inputTerms}, {"weight", weight, f.weights, f.weightsAbs, f.wghTerms}, {"bias", f.biasSums, f.biases, f.biasesAbs, f.wghTerms}} {
		for i, want := range c.want {
			tol := c.abs[i] * 0x1p-24 * (4 + math.Sqrt(float64(c.terms)))
			if f.Precise {
				tol = math.Abs(want)*0x1p-24 + c.abs[i]*0x1p-52*(1+math.Sqrt(float64(c.terms)))
			}
			if got := float64(c.got[i]); !(math.Abs(got-want) <= tol) {
				t.Fatalf("%s: %s: element %d is %v, want %v", f.name(), c.name, i, got, want)
			}
		}
	}
}

// randomConv returns a small convolution.
func randomConv(r *rand.Rand) Conv {
	for {
		c := Conv{N: 1 + r.IntN(3), Groups: 1 + r.IntN(2)*r.IntN(3), Precise: r.IntN(3) == 0}
		c.C, c.O = c.Groups*(1+r.IntN(10)), c.Groups*(1+r.IntN(20))
		if r.IntN(4) == 0 { // depthwise
			c.Groups = c.C
			c.O = c.C
		}
		rank := 1 + r.IntN(3)
		size := []int{80, 13, 6}[rank-1]
		ok := true
		for d := range 3 {
			c.Image[d], c.Kernel[d], c.Stride[d], c.Dilation[d] = 1, 1, 1, 1
			if d < 3-rank {
				continue
			}
			c.Image[d], c.Kernel[d], c.Pad[d] = 1+r.IntN(size), 1+r.IntN(4), r.IntN(4)
			if r.IntN(2) == 0 {
				c.Stride[d], c.Dilation[d] = 1+r.IntN(3), 1+r.IntN(3)
			}
			ok = ok && c.Image[d]+2*c.Pad[d] > c.Dilation[d]*(c.Kernel[d]-1)
		}
		if ok {
			return c.withGrid()
		}
	}
}

func TestConvolutions(t *testing.T) {
	eachSet(t, func(t *testing.T, s *isa) {
		r := rand.New(rand.NewPCG(21, 22))
		for i := range 300 {
			c := randomConv(r)
			var kinds [3]Kind
			if i%2 == 0 {
				kinds = [3]Kind{Kind(r.IntN(3)), Kind(r.IntN(3)), Kind(r.IntN(3))}
			}
			f := newConvCase(r, c, kinds, heap)
			forward, input, weight := f.run(t, one{}, s, i%3 == 0, heap)
			f.check(t, forward, input, weight)
			if i%5 == 0 { // more workers, the same bits
				a, b, c := f.run(t, threads(3), s, false, heap)
				if !slices.Equal(a, forward) || !slices.Equal(b, input) || !slices.Equal(c, weight) {
					t.Fatalf("%s: three workers give other bits", f.name())
				}
			}
		}
	})
}

// TestConvolutionsInPieces has sizes whose regions, blocks of channels and parts of the batch are several.
func TestConvolutionsInPieces(t *testing.T) {
	unit := [3]int{1, 1, 1}
	eachSet(t, func(t *testing.T, s *isa) {
		for _, c := range []Conv{
			{N: 1, Groups: 1, C: 40, O: 33, Image: [3]int{1, 90, 70}, Kernel: [3]int{1, 3, 3}, Stride: unit, Pad: [3]int{0, 1, 1}, Dilation: unit},
			{N: 20, Groups: 1, C: 9, O: 5, Image: [3]int{1, 7, 7}, Kernel: [3]int{1, 3, 3}, Stride: [3]int{1, 2, 2}, Pad: [3]int{0, 1, 1}, Dilation: unit},
			{N: 2, Groups: 1, C: 30, O: 280, Image: [3]int{1, 1, 300}, Kernel: unit, Stride: unit, Dilation: unit},
			{N: 1, Groups: 2, C: 2, O: 4, Image: [3]int{1, 1, 100000}, Kernel: [3]int{1, 1, 5}, Stride: [3]int{1, 1, 2}, Pad: [3]int{0, 0, 2}, Dilation: unit},
			{N: 2, Groups: 1, C: 3, O: 8, Image: [3]int{9, 40, 41}, Kernel: [3]int{2, 3, 3}, Stride: unit, Pad: [3]int{1, 0, 1}, Dilation: [3]int{2, 1, 1}},
		} {
			if s == plain {
				c.O = min(c.O, 10)
			}
			f := newConvCase(rand.New(rand.NewPCG(23, 24)), c.withGrid(), [3]Kind{}, heap)
			forward, input, weight := f.run(t, threads(2), s, false, heap)
			f.check(t, forward, input, weight)
			a, b, w := f.run(t, one{}, s, false, heap)
			if !slices.Equal(a, forward) || !slices.Equal(b, input) || !slices.Equal(w, weight) {
				t.Fatalf("%s: two workers give other bits than one", f.name())
			}
		}
	})
}

// TestConvolutionsKeepInfinities: an infinity at the edge of an image reaches the weights of the taps that meet it, and no others.
func TestConvolutionsKeepInfinities(t *testing.T) {
	unit := [3]int{1, 1, 1}
	eachSet(t, func(t *testing.T, s *isa) {
		c := Conv{N: 1, Groups: 1, C: 8, O: 9, Image: [3]int{1, 6, 7}, Kernel: [3]int{1, 3, 3}, Stride: unit, Pad: [3]int{0, 1, 1}, Dilation: unit}.withGrid()
		f := newConvCase(rand.New(rand.NewPCG(25, 26)), c, [3]Kind{}, heap)
		floatsOf(f.image.Data)[0] = float32(math.Inf(1))
		forward, _, weight := f.run(t, one{}, s, false, heap)
		for i, v := range weight {
			tap, channel := i%9, i/9%8
			if meets := channel == 0 && tap/3 < 2 && tap%3 < 2; meets == (math.Abs(float64(v)) < math.Inf(1)) {
				t.Fatalf("tap %d of channel %d is %v", tap, channel, v)
			}
		}
		for i, v := range forward {
			y, x := i%42/7, i%7
			if meets := y < 2 && x < 2; meets == (math.Abs(float64(v)) < math.Inf(1)) {
				t.Fatalf("window %d,%d is %v", y, x, v)
			}
		}
	})
}
