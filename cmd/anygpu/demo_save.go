package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/anygpu/anygpu/amp"
	"github.com/anygpu/anygpu/train/checkpoint"
)

// checkpointBase takes the ending of a checkpoint's file off.
func checkpointBase(path string) string {
	for _, ext := range []string{".json", ".state.safetensors", ".safetensors"} {
		if base, ok := strings.CutSuffix(path, ext); ok {
			return base
		}
	}
	return path
}

// checkFiles finds before the run what would fail after it.
func (c demoConfig) checkFiles(rows int) error {
	if (c.save != "" || c.resume != "") && rows != 1 {
		return usagef("--save and --resume are for one device and one precision, these are %d: choose with --device and --precision", rows)
	}
	for flag, path := range map[string]string{"--json": c.jsonFile, "--plot": c.plotFile, "--save": c.save} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s %s: there is no folder %s", flag, path, filepath.Dir(path))
		}
	}
	if c.save != "" {
		file := checkpointBase(c.save) + ".json"
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--save %s: %s exists already; choose another name", c.save, file)
		}
	}
	return nil
}

// state is the run as package checkpoint sees it. The data's order follows from batch and seed, so they are kept with it.
func (r *demoRun) state() *checkpoint.Run {
	run := &checkpoint.Run{Model: r.model, Optimizer: r.opt, Position: r.at,
		Metrics: map[string]float64{"batch": float64(r.cfg.batch), "seed": float64(r.cfg.seed)}}
	if r.useAMP {
		run.Parts = map[string]checkpoint.Stateful{"scaler": checkpoint.Of[amp.State](r.scaler)}
	}
	return run
}

// resume goes to where a checkpoint's run was.
func (r *demoRun) resume() error {
	if r.cfg.resume == "" {
		return nil
	}
	run := r.state()
	want := run.Metrics
	if err := checkpoint.Load(checkpointBase(r.cfg.resume), run); err != nil {
		return fmt.Errorf("--resume %s: %w", r.cfg.resume, err)
	}
	for _, name := range []string{"batch", "seed"} {
		if run.Metrics[name] != want[name] {
			return fmt.Errorf("--resume %s: the checkpoint was made with --%s %.0f, this run has %.0f", r.cfg.resume, name, run.Metrics[name], want[name])
		}
	}
	r.at = run.Position
	if r.at.Batch >= r.task.train.Steps() {
		r.at.Epoch, r.at.Batch = r.at.Epoch+1, 0
	}
	if r.at.Epoch >= r.cfg.epochs {
		return fmt.Errorf("--resume %s: the checkpoint has %d epochs behind it; choose --epochs %d or more", r.cfg.resume, r.at.Epoch, r.at.Epoch+1)
	}
	return nil
}

func (r *demoRun) save() error {
	if r.cfg.save == "" {
		return nil
	}
	return checkpoint.Save(checkpointBase(r.cfg.save), r.state())
}

// interrupted saves, if the run is to be saved, and says how to go on.
func (r *demoRun) interrupted(cause error) error {
	if r.cfg.save == "" {
		return fmt.Errorf("interrupted after %d steps: %w; nothing was saved, because there is no --save", r.at.Step, cause)
	}
	if err := r.save(); err != nil {
		return errors.Join(fmt.Errorf("interrupted after %d steps: %w", r.at.Step, cause), err)
	}
	return fmt.Errorf("interrupted after %d steps: %w; saved: go on with --resume %s", r.at.Step, cause, checkpointBase(r.cfg.save))
}
