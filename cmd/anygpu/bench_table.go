package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/anygpu/anygpu/backend"
)

// slowOnCPU is the size of a product, in operations, that the table leaves out for devices that run on the CPU.
const slowOnCPU = 1e11

// The workloads that tell a device's limits: what it copies, and the fastest product that was timed.
const copyWorkload = "copy_64m"

// table times all workloads and prints them beside the best that the device was seen to do.
func (c *benchFlags) table(ctx context.Context, w io.Writer) error {
	match, err := regexp.Compile(c.match)
	if err != nil {
		return usagef("--match: %v", err)
	}
	useThreads(c.threads)
	dev, err := openDevice(c.device)
	if err != nil {
		return err
	}
	defer dev.Close()
	var reports []*benchReport
	var copied, product float64
	for _, l := range workloads {
		if err := ctx.Err(); err != nil {
			return err
		}
		info := dev.Info()
		if info.Type == backend.CPUDevice && l.flops > slowOnCPU || info.API == "cpu" && strings.HasPrefix(l.name, "transfer_") {
			continue // too slow, or nothing to do
		}
		if !match.MatchString(l.name) {
			continue
		}
		r, err := c.on(dev, l)
		if err != nil {
			r = &benchReport{Workload: l.name, Device: dev.Info().String(), Error: err.Error()}
		}
		reports = append(reports, r)
		product = max(product, r.GFLOPs)
		if l.name == copyWorkload {
			copied = r.GBs
		}
	}
	if match.MatchString(firstStep) {
		r, err := benchFirstStep(ctx, dev.Info().String(), c.threads, c.cold)
		if err != nil {
			r = &benchReport{Workload: firstStep, Error: err.Error()}
		}
		reports = append(reports, r)
	}
	if c.json != "" {
		err := writeFile(c.json, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", " ")
			return enc.Encode(reports)
		})
		if err != nil {
			return err
		}
	}
	return writeBenchTable(w, reports, copied, product)
}

func writeBenchTable(w io.Writer, reports []*benchReport, copied, product float64) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\tmedian ms\tbest ms\truns\tGFLOP/s\tGB/s\tof limit\tlaunches\tpeak memory\t")
	for _, r := range reports {
		if r.Error != "" {
			fmt.Fprintf(t, "%s\tfailed: %s\t\n", r.Workload, r.Error)
			continue
		}
		rate := func(v, limit float64) (string, string) {
			if v == 0 {
				return "", ""
			}
			if limit == 0 {
				return fmt.Sprintf("%.1f", v), ""
			}
			return fmt.Sprintf("%.1f", v), fmt.Sprintf("%.0f %%", 100*v/limit)
		}
		flops, ofProduct := rate(r.GFLOPs, product)
		bytes, ofCopy := rate(r.GBs, copied)
		fmt.Fprintf(t, "%s\t%.4g\t%.4g\t%d\t%s\t%s\t%s\t%.0f\t%s\t\n", r.Workload, r.MedianMS, r.BestMS, r.Runs, flops, bytes, ofProduct+ofCopy, r.Launches, backend.FormatBytes(r.PeakBytes))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "of limit: of the fastest product above (%.1f GFLOP/s), and of %s (%.1f GB/s)\n", product, copyWorkload, copied)
	return err
}
