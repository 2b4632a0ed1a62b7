package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

func TestFitLine(t *testing.T) {
	line := func(a, b float64, noise ...float64) (ps []scalingPoint) {
		for i, w := range []float64{0.01, 0.1, 1, 10} {
			ps = append(ps, scalingPoint{gflop: w, milliseconds: (a + b*w) * (1 + noise[i%len(noise)])})
		}
		return ps
	}
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*math.Max(1, math.Abs(y)) }
	for _, c := range [][2]float64{{0.5, 3}, {0, 2}, {4, 0}} {
		if a, b := fitLine(line(c[0], c[1], 0)); !near(a, c[0]) || !near(b, c[1]) {
			t.Errorf("fit of %v: %v %v", c, a, b)
		}
	}
	// Times that fall with the work have no line of two positive parts: the better of the two simple ones is taken.
	falling := []scalingPoint{{gflop: 1, milliseconds: 2}, {gflop: 2, milliseconds: 1}}
	if a, b := fitLine(falling); a <= 0 || b != 0 {
		t.Errorf("falling times: %v %v", a, b)
	}
}

func TestScalingReport(t *testing.T) {
	points := make([][]scalingPoint, len(sweeps))
	for i, s := range sweeps {
		for _, n := range s.sizes {
			points[i] = append(points[i], scalingPoint{size: n, gflop: s.gflop(n), milliseconds: 0.1 + 5*s.gflop(n)})
		}
	}
	points[1][2].milliseconds *= 1.5
	var sb strings.Builder
	if err := printScaling(&sb, points); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(sb.String(), "batch: ms = 0.1 + 5 GFLOP") || !strings.Contains(sb.String(), "+4") {
		t.Error(sb.String())
	}
	path := filepath.Join(t.TempDir(), "scaling.png")
	if err := drawScaling(path, backend.Info{API: "cpu"}, points); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "\x89PNG") {
		t.Errorf("no picture: %v", err)
	}
}
