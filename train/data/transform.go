package data

import (
	"fmt"
	"math/rand/v2"
)

// Transform changes a sample, with random numbers of its own; it makes new memory. Loader.Transform applies one.
type Transform = func(r *rand.Rand, e Example) (Example, error)

// Compose applies transforms one after the other.
func Compose(ts ...Transform) Transform {
	return func(r *rand.Rand, e Example) (Example, error) {
		for _, t := range ts {
			var err error
			if e, err = t(r, e); err != nil {
				return e, err
			}
		}
		return e, nil
	}
}

// image3 returns channels, height and width of a sample of shape [c, h, w].
func image3(e Example, what string) (c, h, w int, err error) {
	if len(e.Shape) != 3 || len(e.X) != e.Shape[0]*e.Shape[1]*e.Shape[2] {
		return 0, 0, 0, fmt.Errorf("%s needs a sample of shape [channels, height, width], got %v with %d values", what, e.Shape, len(e.X))
	}
	return e.Shape[0], e.Shape[1], e.Shape[2], nil
}

// Normalize maps each channel to (x - mean) / std; one value of each for all channels, or one a channel.
func Normalize(mean, std []float32) Transform {
	return func(_ *rand.Rand, e Example) (Example, error) {
		c, h, w, err := image3(e, "normalise")
		if err != nil {
			return e, err
		}
		if (len(mean) != c && len(mean) != 1) || len(std) != len(mean) {
			return e, fmt.Errorf("normalise: %d means and %d deviations for %d channels", len(mean), len(std), c)
		}
		out := make([]float32, len(e.X))
		for i, v := range e.X {
			k := i / (h * w) % len(mean)
			if std[k] == 0 {
				return e, fmt.Errorf("normalise: the deviation of channel %d is 0", k)
			}
			out[i] = (v - mean[k]) / std[k]
		}
		e.X = out
		return e, nil
	}
}

// CenterCrop cuts the middle height by width out of an image.
func CenterCrop(height, width int) Transform {
	return func(_ *rand.Rand, e Example) (Example, error) {
		_, h, w, err := image3(e, "crop")
		if err != nil {
			return e, err
		}
		return crop(e, (h-height)/2, (w-width)/2, height, width)
	}
}

// RandomCrop surrounds an image with padding zeros on each side and cuts height by width out of it, at a random place.
func RandomCrop(height, width, padding int) Transform {
	return func(r *rand.Rand, e Example) (Example, error) {
		_, h, w, err := image3(e, "crop")
		if err != nil {
			return e, err
		}
		spareH, spareW := h+2*padding-height, w+2*padding-width
		if spareH < 0 || spareW < 0 || padding < 0 {
			return e, fmt.Errorf("crop: %dx%d does not fit in %dx%d with padding %d", height, width, h, w, padding)
		}
		return crop(e, r.IntN(spareH+1)-padding, r.IntN(spareW+1)-padding, height, width)
	}
}

// crop cuts out a rectangle; what lies outside of the image is 0.
func crop(e Example, top, left, height, width int) (Example, error) {
	c, h, w := e.Shape[0], e.Shape[1], e.Shape[2]
	if height < 1 || width < 1 || height > 1<<20 || width > 1<<20 {
		return e, fmt.Errorf("crop: size %dx%d", height, width)
	}
	out := make([]float32, c*height*width)
	for k := range c {
		for y := range height {
			for x := range width {
				if sy, sx := y+top, x+left; sy >= 0 && sy < h && sx >= 0 && sx < w {
					out[(k*height+y)*width+x] = e.X[(k*h+sy)*w+sx]
				}
			}
		}
	}
	e.X, e.Shape = out, []int{c, height, width}
	return e, nil
}

// RandomFlip mirrors an image left to right with probability p.
func RandomFlip(p float64) Transform {
	return func(r *rand.Rand, e Example) (Example, error) {
		_, _, w, err := image3(e, "flip")
		if err != nil || r.Float64() >= p {
			return e, err
		}
		out := make([]float32, len(e.X))
		for i := range out {
			out[i] = e.X[i/w*w+w-1-i%w]
		}
		e.X = out
		return e, nil
	}
}
