package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
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
	data       string // folder of images or text file
	sample     int
	jsonFile   string
	plotFile   string
	save       string
	resume     string
}

const (
	precisionFP32 = "fp32"
	precisionAMP  = "amp"
)

// comparedSteps is how many steps' losses are compared between rows.
const comparedSteps = 20

// demoRow is a line of the demo's table and JSON.
type demoRow struct {
	Device          string   `json:"device"`
	Driver          string   `json:"driver"`
	Precision       string   `json:"precision"`
	Lower           string   `json:"lower_precision,omitempty"` // with mixed precision: the dtype, and how the device works with it
	Steps           int      `json:"steps"`
	Loss            float64  `json:"loss"`                    // mean of the last steps
	TestAccuracy    *float64 `json:"test_accuracy,omitempty"` // of a model of images
	TestLoss        *float64 `json:"test_loss,omitempty"`     // of a model of text
	ImagesPerSecond *float64 `json:"images_per_second,omitempty"`
	TokensPerSecond *float64 `json:"tokens_per_second,omitempty"`
	PeakBytes       int64    `json:"peak_bytes"`
	Scale           float64  `json:"scale"` // 1 without mixed precision
	SkippedSteps    int      `json:"skipped_steps"`
	MaxRelLossDiff  float64  `json:"max_rel_loss_diff"` // from the first row's over the first steps
	Sample          string   `json:"sample,omitempty"`  // text that the model wrote

	losses []float64
	curve  []lossAt
}

// lossAt is the loss of a step.
type lossAt struct {
	step int
	loss float64
}

func newDemo() *cobra.Command {
	var cfg demoConfig
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Train a model on devices and precisions, from the same weights, and compare",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kind, ok := demoKinds[cfg.model]
			if !ok {
				return usagef("unknown model %q: %s are accepted", cfg.model, strings.Join(demoModels(), ", "))
			}
			if !cmd.Flags().Changed("epochs") {
				cfg.epochs = kind.epochs
			}
			if !cmd.Flags().Changed("batch") {
				cfg.batch = kind.batch
			}
			if !cmd.Flags().Changed("lr") {
				cfg.lr = kind.lr
			}
			if kind.sample == 0 && cmd.Flags().Changed("sample") {
				return usagef("--sample: %s writes no text; choose --model gpt", cfg.model)
			}
			return runDemo(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.devices, "device", "all", "device strings, separated by commas, or all")
	var docs []string
	for _, name := range demoModels() {
		docs = append(docs, name+" ("+demoKinds[name].doc+")")
	}
	f.StringVar(&cfg.model, "model", "mlp", "the model: "+strings.Join(docs, ", "))
	f.StringSliceVar(&cfg.precisions, "precision", []string{precisionFP32, precisionAMP}, "fp32, amp (mixed precision), or both")
	f.IntVar(&cfg.epochs, "epochs", demoKinds["mlp"].epochs, fmt.Sprintf("passes over the training data (gpt: %d)", demoKinds["gpt"].epochs))
	f.IntVar(&cfg.batch, "batch", demoKinds["mlp"].batch, fmt.Sprintf("images, or pieces of text, a step (gpt: %d)", demoKinds["gpt"].batch))
	f.Float64Var(&cfg.lr, "lr", demoKinds["mlp"].lr, fmt.Sprintf("learning rate of Adam (gpt: %g)", demoKinds["gpt"].lr))
	f.Uint64Var(&cfg.seed, "seed", 0, "seed of the initial weights, of the order of the data and of the sample")
	f.StringVar(&cfg.data, "data", "", "folder with Fashion-MNIST's four files, or a text file for gpt; without it an embedded sample of 10,000 images, or the book of Genesis")
	f.IntVar(&cfg.sample, "sample", demoKinds["gpt"].sample, "characters that the gpt of the first row writes at the end")
	f.StringVar(&cfg.jsonFile, "json", "", "write the rows to this file as JSON")
	f.StringVar(&cfg.plotFile, "plot", "", "draw the losses to this PNG file")
	f.StringVar(&cfg.save, "save", "", "save a checkpoint of the run to FILE.json, FILE.safetensors and FILE.state.safetensors at the end, or when interrupted; with one device and precision")
	f.StringVar(&cfg.resume, "resume", "", "go on from a checkpoint that --save wrote; with one device and precision")
	return cmd
}

func (c demoConfig) check() error {
	switch {
	case c.epochs < 1:
		return usagef("--epochs %d: must be at least 1", c.epochs)
	case c.batch < 1:
		return usagef("--batch %d: must be at least 1", c.batch)
	case !(c.lr > 0) || math.IsInf(c.lr, 0):
		return usagef("--lr %v: must be positive and finite", c.lr)
	case len(c.precisions) == 0:
		return usagef("--precision: give fp32, amp or both")
	case c.sample < 0 || c.sample > maxSample:
		return usagef("--sample %d: must be from 0 to %d", c.sample, maxSample)
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
	task, err := demoKinds[cfg.model].load(cfg)
	if err != nil {
		return err
	}
	names, err := chooseDevices(cfg.devices)
	if err != nil {
		return err
	}
	if err := cfg.checkFiles(len(names) * len(cfg.precisions)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s; %s, Adam %g, batch %d, %d epochs, seed %d\n", task.title, cfg.model, cfg.lr, cfg.batch, cfg.epochs, cfg.seed)
	var rows []demoRow
	bars := newProgress(errOut)
	defer bars.wait()
	for _, name := range names {
		for _, precision := range cfg.precisions {
			r := &demoRun{cfg: cfg, task: task, bars: bars, first: len(rows) == 0}
			row, err := r.train(ctx, name, precision)
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
	if err := printRows(out, task, rows); err != nil {
		return err
	}
	if len(rows) > 0 && rows[0].Sample != "" {
		fmt.Fprintf(out, "\nsample of %s, %s:\n%s\n", rows[0].Device, rows[0].Precision, rows[0].Sample)
	}
	if cfg.plotFile != "" {
		if err := plotRows(cfg.plotFile, rows); err != nil {
			return err
		}
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

func printRows(w io.Writer, task *demoTask, rows []demoRow) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "device\tdriver\tprecision\tloss\t%s\t%s/s\tpeak memory\tscale\tskipped\tloss diff\n", task.score, task.unit)
	for _, r := range rows {
		scale, skipped := "-", "-"
		if r.Precision == precisionAMP {
			scale, skipped = fmt.Sprintf("%g", r.Scale), fmt.Sprint(r.SkippedSteps)
		}
		score, speed := "-", "-"
		if v := cmp.Or(r.TestAccuracy, r.TestLoss); v != nil {
			score = fmt.Sprintf("%.3f", *v)
		}
		if v := cmp.Or(r.ImagesPerSecond, r.TokensPerSecond); v != nil {
			speed = fmt.Sprintf("%.0f", *v)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%.4f\t%s\t%s\t%s\t%s\t%s\t%.1e\n",
			r.Device, shorten(r.Driver, 44), r.Precision, r.Loss, score, speed, bytesText(r.PeakBytes), scale, skipped, r.MaxRelLossDiff)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Lower != "" {
			fmt.Fprintf(w, "amp on %s: %s\n", r.Device, r.Lower)
		}
	}
	return nil
}

// lowerText says in which dtype a device runs mixed precision, and how.
func lowerText(dtype tensor.DType, caps ir.Caps) string {
	if dtype == tensor.Float16 {
		return "float16, " + fp16Text(caps.F16Storage, caps.F16Arith)
	}
	return dtype.String() + ", by operations on its bits; arithmetic in fp32"
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
	return writeFile(path, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}
