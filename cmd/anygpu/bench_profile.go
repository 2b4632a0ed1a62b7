package main

import (
	"io"

	"github.com/anygpu/anygpu/tensor"
)

// profiledRuns is how many runs a profile is of.
const profiledRuns = 5

// writeProfile profiles a few runs of a workload, after some that warm up.
func (c *benchFlags) writeProfile(out io.Writer) error {
	w, err := findWorkload(c.workload)
	if err != nil {
		return err
	}
	useThreads(c.threads)
	dev, err := openDevice(c.device)
	if err != nil {
		return err
	}
	defer dev.Close()
	run, err := w.prepare(dev, c.options)
	if err != nil {
		return err
	}
	repeat := func(n int) error {
		for range n {
			if err := run(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := repeat(warmUps); err != nil {
		return err
	}
	p, err := tensor.Profile(dev, func() error { return repeat(profiledRuns) })
	if err != nil {
		return err
	}
	if err := p.WriteTable(out); err != nil {
		return err
	}
	if err := writeFile(c.profile+".trace.json", p.WriteChromeTrace); err != nil {
		return err
	}
	return writeFile(c.profile+".pb.gz", p.WritePprof)
}
