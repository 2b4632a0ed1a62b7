package curves_test

import (
	"bytes"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/curves"
)

var epochs = []train.EpochInfo{
	{Epoch: 0, Loss: 2, Metrics: map[string]float64{"val_loss": 2.5, "accuracy": 0.3}},
	{Epoch: 1, Loss: 1, Metrics: map[string]float64{"val_loss": 1.5, "accuracy": 0.6}},
	{Epoch: 2, Loss: math.NaN(), Metrics: map[string]float64{"val_loss": math.Inf(1), "accuracy": 0.7}},
}

// TestDraw counts coloured pixels: curves are the only ones.
func TestDraw(t *testing.T) {
	coloured := func(es []train.EpochInfo) int {
		var b bytes.Buffer
		if err := curves.Draw(&b, es); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				if max(c.R, c.G, c.B)-min(c.R, c.G, c.B) > 60 {
					n++
				}
			}
		}
		return n
	}
	few := []train.EpochInfo{{Epoch: 0, Loss: 2}, {Epoch: 1, Loss: 1}}
	if one, all := coloured(few), coloured(epochs); one < 100 || all < 2*one {
		t.Errorf("%d coloured pixels of one curve, %d of three", one, all)
	}
	if err := curves.Draw(&bytes.Buffer{}, nil); err == nil {
		t.Error("drawing nothing gave no error")
	}
}

func TestObserver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.png")
	o := curves.Observer(path)
	for _, e := range epochs {
		if err := o.OnEpoch(e); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() < 1000 {
		t.Errorf("%v, %v", info, err)
	}
	if err := curves.WriteFile(filepath.Join(path, "no", "c.png"), epochs); err == nil {
		t.Error("a folder that is not there gave no error")
	}
}
