package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/train/data"
)

// demoConfig holds the flags of 'anygpu demo'.
type demoConfig struct {
	devices    string
	model      string
	precisions []string
	epochs     int
	batch      int
	lr         float64
	seed       uint64
	dataDir    string
	jsonFile   string
}

const (
	precisionFP32 = "fp32"
	precisionAMP  = "amp"
)

// comparedSteps is how many steps' losses are compared between rows.
const comparedSteps = 20

// demoRow is a line of the demo's table and JSON.
type demoRow struct {
	Device          string  `json:"device"`
	Driver          string  `json:"driver"`
	Precision       string  `json:"precision"`
	Steps           int     `json:"steps"`
	Loss            float64 `json:"loss"` // mean of the last steps
	TestAccuracy    float64 `json:"test_accuracy"`
	ImagesPerSecond float64 `json:"images_per_second"`
	PeakBytes       int64   `json:"peak_bytes"`
	Scale           float64 `json:"scale"` // 1 without mixed precision
	SkippedSteps    int     `json:"skipped_steps"`
	MaxRelLossDiff  float64 `json:"max_rel_loss_diff"` // from the first row's over the first steps

	losses []float64
}

func newDemo() *cobra.Command {
	var cfg demoConfig
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Train Fashion-MNIST on devices and precisions, from the same weights, and compare",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.devices, "device", "all", "device strings, separated by commas, or all")
	f.StringVar(&cfg.model, "model", "mlp", "the model: mlp ("+models["mlp"].doc+") or cnn ("+models["cnn"].doc+")")
	f.StringSliceVar(&cfg.precisions, "precision", []string{precisionFP32, precisionAMP}, "fp32, amp (mixed precision), or both")
	f.IntVar(&cfg.epochs, "epochs", 3, "passes over the training data")
	f.IntVar(&cfg.batch, "batch", 128, "images a step")
	f.Float64Var(&cfg.lr, "lr", 1e-3, "learning rate of Adam")
	f.Uint64Var(&cfg.seed, "seed", 0, "seed of the initial weights and of the order of the images")
	f.StringVar(&cfg.dataDir, "data", "", "folder with Fashion-MNIST's four files; without it the embedded sample of 10,000 images")
	f.StringVar(&cfg.jsonFile, "json", "", "write the rows to this file as JSON")
	return cmd
}

func (c demoConfig) check() error {
	switch {
	case models[c.model].make == nil:
		return usagef("unknown model %q: mlp and cnn are accepted", c.model)
	case c.epochs < 1:
		return usagef("--epochs %d: must be at least 1", c.epochs)
	case c.batch < 1:
		return usagef("--batch %d: must be at least 1", c.batch)
	case !(c.lr > 0) || math.IsInf(c.lr, 0):
		return usagef("--lr %v: must be positive and finite", c.lr)
	case len(c.precisions) == 0:
		return usagef("--precision: give fp32, amp or both")
	}
	for _, p := range c.precisions {
		if p != precisionFP32 && p != precisionAMP {
			return usagef("unknown precision %q: fp32 and amp are accepted", p)
		}
	}
	return nil
}

func runDemo(ctx context.Context, cfg demoConfig, out, errOut io.Writer) error {
	if err := cfg.check(); err != nil {
		return err
	}
	trainSet, testSet, err := data.FashionMNIST(cfg.dataDir)
	if err != nil {
		return err
	}
	if cfg.batch > trainSet.Len() {
		return fmt.Errorf("--batch %d is larger than the training data: choose at most %d", cfg.batch, trainSet.Len())
	}
	names, err := chooseDevices(cfg.devices)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Fashion-MNIST: %d images to train, %d to test; %s, Adam %g, batch %d, %d epochs, seed %d\n",
		trainSet.Len(), testSet.Len(), cfg.model, cfg.lr, cfg.batch, cfg.epochs, cfg.seed)
	var rows []demoRow
	bars := newProgress(errOut)
	defer bars.wait()
	for _, name := range names {
		for _, precision := range cfg.precisions {
			row, err := trainOn(ctx, name, precision, cfg, trainSet, testSet, bars)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, precision, err)
			}
			rows = append(rows, row)
		}
	}
	bars.wait()
	for i := range rows {
		rows[i].MaxRelLossDiff = maxRelDiff(rows[i].losses, rows[0].losses)
	}
	if err := printRows(out, rows); err != nil {
		return err
	}
	if cfg.jsonFile != "" {
		return writeJSON(cfg.jsonFile, struct {
			Rows []demoRow `json:"rows"`
		}{rows})
	}
	return nil
}

// chooseDevices returns device strings: those given, or every device that can be opened, the CPU first.
func chooseDevices(list string) ([]string, error) {
	var names []string
	if list == "all" {
		for _, i := range realDevices() {
			if i.Problem == "" {
				names = append(names, i.String())
			}
		}
		return names, nil
	}
	for _, n := range strings.Split(list, ",") {
		info, err := backend.Find(strings.TrimSpace(n))
		if err != nil {
			return nil, err
		}
		if info.Problem != "" {
			return nil, fmt.Errorf("device %s (%s): %s", n, info.Name, info.Problem)
		}
		if s := info.String(); !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names, nil
}

// maxRelDiff returns the largest |a-b|/|b| over the steps that both have.
func maxRelDiff(a, b []float64) float64 {
	most := 0.0
	for i := range min(len(a), len(b)) {
		d := math.Abs(a[i]-b[i]) / math.Abs(b[i])
		if d > most || math.IsNaN(d) {
			most = d
		}
	}
	return most
}

func printRows(w io.Writer, rows []demoRow) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "device\tdriver\tprecision\tloss\ttest accuracy\timages/s\tpeak memory\tscale\tskipped\tloss diff")
	for _, r := range rows {
		scale, skipped := "-", "-"
		if r.Precision == precisionAMP {
			scale, skipped = fmt.Sprintf("%g", r.Scale), fmt.Sprint(r.SkippedSteps)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%.4f\t%.3f\t%.0f\t%s\t%s\t%s\t%.1e\n",
			r.Device, shorten(r.Driver, 44), r.Precision, r.Loss, r.TestAccuracy, r.ImagesPerSecond, bytesText(r.PeakBytes), scale, skipped, r.MaxRelLossDiff)
	}
	return tw.Flush()
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-1] + "…"
}

// writeJSON writes a file whole or not at all.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".anygpu-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(append(b, '\n')); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
