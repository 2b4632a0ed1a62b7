package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// ErrNone is the error of looking for a checkpoint in a folder that has none.
var ErrNone = errors.New("no checkpoint")

// Keeper saves the checkpoints of a run in a folder, named after their steps, and removes old ones.
type Keeper struct {
	Dir string
	// Last is how many of the latest checkpoints stay: 3 if 0, all if negative.
	Last int
	// Best names the metric of the one checkpoint that stays besides, whatever its age; empty for none.
	Best string
	// Max says that a larger value of the metric is better.
	Max bool
}

// name is step-00000010 or, where that was taken, step-00000010-1.
var name = regexp.MustCompile(`^step-(\d{8,15})(?:-(\d{1,6}))?\.json$`)

type kept struct {
	base       string
	step, copy int
}

// list returns the folder's complete checkpoints in order.
func (k *Keeper) list() ([]kept, error) {
	files, err := os.ReadDir(k.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var out []kept
	for _, f := range files {
		m := name.FindStringSubmatch(f.Name())
		if m == nil {
			continue
		}
		step, _ := strconv.Atoi(m[1])
		n, _ := strconv.Atoi(m[2]) // absent: 0
		out = append(out, kept{filepath.Join(k.Dir, f.Name()[:len(f.Name())-len(sidecarExt)]), step, n})
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].step != out[j].step {
			return out[i].step < out[j].step
		}
		return out[i].copy < out[j].copy
	})
	return out, nil
}

// Save writes the run's checkpoint, removes those that need not stay, and returns the checkpoint's path without extension.
func (k *Keeper) Save(r *Run) (string, error) {
	if err := os.MkdirAll(k.Dir, 0o755); err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	base := filepath.Join(k.Dir, fmt.Sprintf("step-%08d", r.Position.Step))
	for n := 1; exists(base + sidecarExt); n++ {
		base = filepath.Join(k.Dir, fmt.Sprintf("step-%08d-%d", r.Position.Step, n))
	}
	if err := Save(base, r); err != nil {
		return "", err
	}
	return base, k.prune()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// prune removes the checkpoints that need not stay, and what an interrupted Save left.
func (k *Keeper) prune() error {
	all, err := k.list()
	if err != nil {
		return err
	}
	last := k.Last
	if last == 0 {
		last = 3
	}
	stay := map[string]bool{}
	for i, c := range all {
		if last < 0 || i >= len(all)-last {
			stay[c.base] = true
		}
	}
	if best, err := k.best(all); err == nil {
		stay[best] = true
	}
	var errs []error
	for _, c := range all {
		if !stay[c.base] {
			// The sidecar first: what is left without it is no checkpoint.
			errs = append(errs, removeAll(c.base+sidecarExt, c.base+weightsExt, c.base+stateExt))
		}
	}
	leftovers, _ := filepath.Glob(filepath.Join(k.Dir, ".step-*.tmp")) // the pattern is well formed
	weights, _ := filepath.Glob(filepath.Join(k.Dir, "step-*"+weightsExt))
	for _, w := range weights {
		if base := strings.TrimSuffix(strings.TrimSuffix(w, stateExt), weightsExt); !exists(base + sidecarExt) {
			leftovers = append(leftovers, w)
		}
	}
	errs = append(errs, removeAll(leftovers...))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("checkpoint: removing old checkpoints: %w", err)
	}
	return nil
}

// Latest returns the newest checkpoint, without extension, or ErrNone.
func (k *Keeper) Latest() (string, error) {
	all, err := k.list()
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", fmt.Errorf("checkpoint: %s: %w", k.Dir, ErrNone)
	}
	return all[len(all)-1].base, nil
}

// BestPath returns the checkpoint with the best metric, without extension, or ErrNone.
func (k *Keeper) BestPath() (string, error) {
	all, err := k.list()
	if err != nil {
		return "", err
	}
	return k.best(all)
}

// best prefers the earlier of equal ones.
func (k *Keeper) best(all []kept) (string, error) {
	found, value := "", math.Inf(1)
	if k.Best != "" {
		for _, c := range all {
			s, err := readSidecar(c.base + sidecarExt)
			if err != nil {
				continue // an unreadable file is not the best
			}
			v, ok := s.Metrics[k.Best]
			if k.Max {
				v = -v
			}
			if ok && v < value {
				found, value = c.base, v
			}
		}
	}
	if found == "" {
		return "", fmt.Errorf("checkpoint: %s: %w with metric %q", k.Dir, ErrNone, k.Best)
	}
	return found, nil
}
