package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/optim"
)

// Model is what a checkpoint needs of a model; everything that embeds nn.Base satisfies it.
type Model interface {
	StateDict() map[string]*tensor.Tensor
	LoadStateDict(map[string]*tensor.Tensor) error
}

// Stateful is a part of a run with a state of its own: a schedule, a gradient scaler. [Of] makes one.
type Stateful interface {
	saveState() (json.RawMessage, error)
	loadState(json.RawMessage) error
}

// Of wraps anything whose state marshals to JSON: amp.GradScaler, optim.Scheduler, optim.ReduceOnPlateau.
func Of[S any](x interface {
	StateDict() S
	LoadStateDict(S) error
}) Stateful {
	return stateOf[S]{x}
}

type stateOf[S any] struct {
	x interface {
		StateDict() S
		LoadStateDict(S) error
	}
}

func (s stateOf[S]) saveState() (json.RawMessage, error) { return json.Marshal(s.x.StateDict()) }

func (s stateOf[S]) loadState(raw json.RawMessage) error {
	var st S
	if err := json.Unmarshal(raw, &st); err != nil {
		return err
	}
	return s.x.LoadStateDict(st)
}

// Position says where in the data a run is: it goes on with batch Batch of epoch Epoch.
type Position struct {
	Epoch int `json:"epoch"`
	Batch int `json:"batch"`
	Step  int `json:"step"` // optimizer steps so far
}

// Run is all that a training run needs to go on: Save reads it, Load fills it in. Nil parts are left out.
type Run struct {
	Model      Model
	Optimizer  optim.Optimizer
	EMA        *optim.EMA
	Parts      map[string]Stateful          // schedule, scaler, …
	Generators map[string]*tensor.Generator // of dropout and initial values; tensor's default one is always included
	Position   Position
	Metrics    map[string]float64 // those that are not finite are left out
}

// sidecar is the JSON file. It is written last: a checkpoint is there when its sidecar is.
type sidecar struct {
	Version    int                        `json:"version"`
	Position   Position                   `json:"position"`
	Metrics    map[string]float64         `json:"metrics,omitempty"`
	Weights    fileSum                    `json:"weights"`
	State      fileSum                    `json:"state"`
	Optimizer  *optimizerState            `json:"optimizer,omitempty"`
	Averages   int                        `json:"ema,omitempty"`
	Parts      map[string]json.RawMessage `json:"parts,omitempty"`
	Generators map[string]generatorState  `json:"generators"`
}

type fileSum struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

type optimizerState struct {
	Optimizer string            `json:"optimizer"`
	Groups    []json.RawMessage `json:"groups"`
	Sizes     []int             `json:"sizes"`
	Steps     []int             `json:"steps"`
}

type generatorState struct {
	Seed   uint64 `json:"seed"`
	Offset uint64 `json:"offset"`
}

const (
	version          = 1
	defaultGenerator = "default"
	weightsExt       = ".safetensors"
	stateExt         = ".state.safetensors"
	sidecarExt       = ".json"
	maxSidecar       = 64 << 20
	optimizerPrefix  = "optimizer."
	averagePrefix    = "ema."
)

// Save writes a run to base.safetensors (the model's weights, which PyTorch can load), base.state.safetensors (optimizer and
// averages) and base.json (all else). The JSON file comes last, so that a base that has one is complete. Saving over
// an existing checkpoint is an error; a [Keeper] finds names.
func Save(base string, r *Run) error {
	if _, err := os.Stat(base + sidecarExt); err == nil {
		return fmt.Errorf("checkpoint: %s exists already; remove it first", base+sidecarExt)
	}
	if r.Model == nil {
		return fmt.Errorf("checkpoint: the run has no model")
	}
	s := sidecar{Version: version, Position: r.Position, Metrics: map[string]float64{}, Parts: map[string]json.RawMessage{}, Generators: map[string]generatorState{}}
	for name, v := range r.Metrics {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.Metrics[name] = v
		}
	}
	for name, p := range r.Parts {
		raw, err := p.saveState()
		if err != nil {
			return fmt.Errorf("checkpoint: state of %s: %w", name, err)
		}
		s.Parts[name] = raw
	}
	for name, g := range r.generators() {
		seed, offset := g.State()
		s.Generators[name] = generatorState{seed, offset}
	}
	arrays := map[string]*tensor.Tensor{}
	if r.Optimizer != nil {
		st, err := r.Optimizer.StateDict()
		if err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		defer st.Free()
		s.Optimizer = &optimizerState{st.Optimizer, st.Groups, st.Sizes, st.Steps}
		for name, t := range st.Arrays {
			arrays[optimizerPrefix+name] = t
		}
	}
	if r.EMA != nil {
		for i, t := range r.EMA.Averages() {
			arrays[averagePrefix+strconv.Itoa(i)] = t
		}
		s.Averages = len(r.EMA.Averages())
	}
	var err error
	s.Weights.File, s.State.File = filepath.Base(base)+weightsExt, filepath.Base(base)+stateExt
	if s.Weights.SHA256, err = saveFile(base+weightsExt, r.Model.StateDict(), map[string]string{"format": "pt"}); err != nil {
		return err
	}
	if s.State.SHA256, err = saveFile(base+stateExt, arrays, nil); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return writeFile(base+sidecarExt, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

func (r *Run) generators() map[string]*tensor.Generator {
	all := map[string]*tensor.Generator{defaultGenerator: tensor.DefaultGenerator()}
	for name, g := range r.Generators {
		all[name] = g
	}
	return all
}

// Load reads a checkpoint into a run whose parts were made as for the one that was saved. It is strict: a part that only one of them
// has, or a tensor that is missing, unexpected or of another shape, is an error that names it. The files are read and checked
// before anything is changed. base may end in ".json".
func Load(base string, r *Run) error {
	base = strings.TrimSuffix(base, sidecarExt)
	s, err := readSidecar(base + sidecarExt)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := s.fits(r); err != nil {
		return fmt.Errorf("checkpoint: %s: %w", base, err)
	}
	weights, err := loadChecked(filepath.Join(filepath.Dir(base), s.Weights.File), s.Weights.SHA256)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer freeAll(weights)
	arrays, err := loadChecked(filepath.Join(filepath.Dir(base), s.State.File), s.State.SHA256)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer freeAll(arrays)
	if err := s.apply(r, weights, arrays); err != nil {
		return fmt.Errorf("checkpoint: %s: %w", base, err)
	}
	return nil
}

func freeAll(ts map[string]*tensor.Tensor) {
	for _, t := range ts {
		t.Free()
	}
}

func readSidecar(path string) (*sidecar, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSidecar+1))
	if err != nil {
		return nil, err
	}
	s, err := parseSidecar(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func parseSidecar(text []byte) (*sidecar, error) {
	if len(text) > maxSidecar {
		return nil, fmt.Errorf("the file has more than %d bytes", maxSidecar)
	}
	s := &sidecar{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	if s.Version != version {
		return nil, fmt.Errorf("version %d; this library reads version %d", s.Version, version)
	}
	for _, f := range []fileSum{s.Weights, s.State} {
		if f.File != filepath.Base(f.File) || f.File == "." || f.File == string(filepath.Separator) {
			return nil, fmt.Errorf("file name %q leads out of the folder", f.File)
		}
	}
	if p := s.Position; p.Epoch < 0 || p.Batch < 0 || p.Step < 0 {
		return nil, fmt.Errorf("position %+v is negative", p)
	}
	return s, nil
}

// fits compares the parts of a checkpoint and a run.
func (s *sidecar) fits(r *Run) error {
	var errs []error
	both := func(what string, saved, wanted bool) {
		switch {
		case saved && !wanted:
			errs = append(errs, fmt.Errorf("the checkpoint has %s, the run has none", what))
		case !saved && wanted:
			errs = append(errs, fmt.Errorf("the run has %s, the checkpoint has none", what))
		}
	}
	if r.Model == nil {
		errs = append(errs, fmt.Errorf("the run has no model"))
	}
	both("an optimizer", s.Optimizer != nil, r.Optimizer != nil)
	both("averages", s.Averages > 0, r.EMA != nil)
	for name := range s.Parts {
		both(fmt.Sprintf("a part %q", name), true, r.Parts[name] != nil)
	}
	for name := range r.Parts {
		both(fmt.Sprintf("a part %q", name), s.Parts[name] != nil, true)
	}
	gens := r.generators()
	for name := range s.Generators {
		both(fmt.Sprintf("a generator %q", name), true, gens[name] != nil)
	}
	for name := range gens {
		_, saved := s.Generators[name]
		both(fmt.Sprintf("a generator %q", name), saved, true)
	}
	return errors.Join(errs...)
}

// apply checks what it can before it changes anything; if a later part fails, the earlier ones are put back.
func (s *sidecar) apply(r *Run, weights, arrays map[string]*tensor.Tensor) (err error) {
	if m, ok := r.Model.(interface {
		CheckStateDict(map[string]*tensor.Tensor) error
	}); ok {
		if err := m.CheckStateDict(weights); err != nil {
			return err
		}
	}
	averages, err := s.averages(r, arrays)
	if err != nil {
		return err
	}
	undo := map[string]json.RawMessage{}
	defer func() {
		if err == nil {
			return
		}
		for name, raw := range undo {
			if uerr := r.Parts[name].loadState(raw); uerr != nil {
				err = errors.Join(err, fmt.Errorf("putting back %s: %w", name, uerr))
			}
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(s.Parts)) {
		before, err := r.Parts[name].saveState()
		if err != nil {
			return fmt.Errorf("state of %s: %w", name, err)
		}
		undo[name] = before
		if err := r.Parts[name].loadState(s.Parts[name]); err != nil {
			return fmt.Errorf("state of %s: %w", name, err)
		}
	}
	if s.Optimizer != nil {
		st := &optim.StateDict{Optimizer: s.Optimizer.Optimizer, Groups: s.Optimizer.Groups, Sizes: s.Optimizer.Sizes, Steps: s.Optimizer.Steps, Arrays: map[string]*tensor.Tensor{}}
		for name, t := range arrays {
			if rest, ok := strings.CutPrefix(name, optimizerPrefix); ok {
				st.Arrays[rest] = t
			}
		}
		if err := r.Optimizer.LoadStateDict(st); err != nil {
			return err
		}
	}
	if err := r.Model.LoadStateDict(weights); err != nil {
		return err
	}
	if r.EMA != nil {
		if err := r.EMA.Load(averages); err != nil {
			return err
		}
	}
	for name, g := range r.generators() {
		g.SetState(s.Generators[name].Seed, s.Generators[name].Offset)
	}
	r.Position, r.Metrics = s.Position, s.Metrics
	return nil
}

// averages returns the saved averages, which fit the run's.
func (s *sidecar) averages(r *Run, arrays map[string]*tensor.Tensor) ([]*tensor.Tensor, error) {
	if r.EMA == nil {
		return nil, nil
	}
	own := r.EMA.Averages()
	if len(own) != s.Averages {
		return nil, fmt.Errorf("the checkpoint has averages of %d parameters, the run of %d", s.Averages, len(own))
	}
	var out []*tensor.Tensor
	for i := range own {
		t := arrays[averagePrefix+strconv.Itoa(i)]
		switch {
		case t == nil:
			return nil, fmt.Errorf("average %d is missing", i)
		case !slices.Equal(t.Shape(), own[i].Shape()):
			return nil, fmt.Errorf("average %d has shape %v, that of the run %v", i, t.Shape(), own[i].Shape())
		}
		out = append(out, t)
	}
	return out, nil
}
