package nn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anygpu/anygpu/tensor"
)

// StateDict returns the parameters and buffers of the module and its descendants by their paths, as torch's state_dict does. The
// tensors are the model's own, not copies; one that two modules share has two names.
func (b *Base) StateDict() map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	b.each(func(prefix string, m *Base) {
		for _, n := range append(slices.Clone(m.params), m.buffers...) {
			out[prefix+n.Name] = n.Tensor
		}
	})
	return out
}

// LoadStateDict copies values to the parameters and buffers of the same paths, across devices and dtypes. Every path of
// the model must be in the state with the model's shape, and no other; the error names all that are missing, unexpected or of
// another shape, and then nothing was changed.
func (b *Base) LoadStateDict(state map[string]*tensor.Tensor) error {
	_, _, err := b.loadState(state, true)
	return err
}

// LoadStateDictLoose is LoadStateDict for a state with other paths: it leaves out what the state or the model lacks, and returns
// those paths. Another shape is still an error.
func (b *Base) LoadStateDictLoose(state map[string]*tensor.Tensor) (missing, unexpected []string, err error) {
	return b.loadState(state, false)
}

// CheckStateDict returns the error that LoadStateDict would give because of paths, shapes or failed tensors, and changes nothing.
func (b *Base) CheckStateDict(state map[string]*tensor.Tensor) error {
	_, _, err := b.compareState(b.StateDict(), state, true)
	return err
}

func (b *Base) loadState(state map[string]*tensor.Tensor, strict bool) (missing, unexpected []string, err error) {
	own := b.StateDict()
	missing, unexpected, err = b.compareState(own, state, strict)
	if err != nil {
		return missing, unexpected, err
	}
	for _, name := range slices.Sorted(maps.Keys(state)) { // of two names of a shared tensor the later one counts
		if dst := own[name]; dst != nil {
			if err := dst.CopyFrom(state[name]); err != nil {
				return missing, unexpected, fmt.Errorf("nn: state: %s: %w", name, err)
			}
		}
	}
	return missing, unexpected, nil
}

// compareState holds a state against the model's own.
func (b *Base) compareState(own, state map[string]*tensor.Tensor, strict bool) (missing, unexpected []string, err error) {
	given := map[*tensor.Tensor]bool{} // a shared tensor needs one of its names
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(state)) {
		src, dst := state[name], own[name]
		if dst == nil {
			unexpected = append(unexpected, name)
			continue
		}
		given[dst] = true
		if src == nil {
			return nil, nil, fmt.Errorf("nn: state: %s is nil", name)
		}
		if err := src.Err(); err != nil {
			return nil, nil, fmt.Errorf("nn: state: %s: %w", name, err)
		}
		if err := dst.Err(); err != nil {
			return nil, nil, fmt.Errorf("nn: model: %s: %w", name, err)
		}
		if !slices.Equal(src.Shape(), dst.Shape()) {
			wrong = append(wrong, fmt.Sprintf("size mismatch for %s: the state has shape %v, the shape in the model is %v", name, src.Shape(), dst.Shape()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if !given[own[name]] {
			missing = append(missing, name)
		}
	}
	var problems []string
	if strict && len(missing) > 0 {
		problems = append(problems, "missing key(s): "+strings.Join(missing, ", "))
	}
	if strict && len(unexpected) > 0 {
		problems = append(problems, "unexpected key(s): "+strings.Join(unexpected, ", "))
	}
	if problems = append(problems, wrong...); len(problems) > 0 {
		return missing, unexpected, fmt.Errorf("nn: error(s) in loading state:\n\t%s", strings.Join(problems, "\n\t"))
	}
	return missing, unexpected, nil
}
