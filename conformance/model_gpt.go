package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// trainedModel is a model that a recorded run trains.
type trainedModel interface {
	nn.Module
	Parameters() []*tensor.Tensor
	NamedParameters() []nn.Named
	NamedBuffers() []nn.Named
	To(backend.Device) error
	ToDType(tensor.DType) error
	Free()
}

// gptHeads is the number of attention heads of the recorded model; its text does not have it.
const gptHeads = 4

var gptLine = regexp.MustCompile(`^\((\w+)\): (?:Embedding\((\d+), (\d+)\)|Module\()`)

// parseTrained builds the model that PyTorch prints as text: a Sequential, or the decoder called GPT.
func parseTrained(text string) (trainedModel, error) {
	if !strings.HasPrefix(text, "GPT(") {
		return parseModel(text)
	}
	c := nn.DecoderConfig{Heads: gptHeads}
	for _, line := range strings.Split(text, "\n") {
		m := gptLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		first, _ := strconv.Atoi(m[2])
		second, _ := strconv.Atoi(m[3])
		switch name := m[1]; {
		case name == "tok":
			c.Vocab, c.Width = first, second
		case name == "pos":
			c.Block = first
		case strings.HasSuffix(m[0], ": Module("):
			c.Layers++
		}
	}
	d, err := nn.NewDecoder(c)
	if err != nil {
		return nil, fmt.Errorf("model GPT: %w", err)
	}
	return d, nil
}

var cosineText = regexp.MustCompile(`^lr\(step\) = (\S+) \* 0\.5 \* \(1 \+ cos\(pi \* step / (\d+)\)\)`)

// scheduler sets the recorded learning rates, nil where the run has a constant one.
func (c *TrainingCase) scheduler(opt optim.Optimizer) (*optim.Scheduler, error) {
	if c.expect.LRSchedule == nil {
		return nil, nil
	}
	m := cosineText.FindStringSubmatch(*c.expect.LRSchedule)
	if m == nil {
		return nil, &NotSupportedError{"learning-rate schedule " + *c.expect.LRSchedule}
	}
	base, err := strconv.ParseFloat(m[1], 64)
	if err != nil || base != opt.LR() {
		return nil, fmt.Errorf("%s: expect.json: the schedule starts at %s, the optimizer at %v", c.Name, m[1], opt.LR())
	}
	steps, err := strconv.Atoi(m[2])
	if err != nil {
		return nil, fmt.Errorf("%s: expect.json: schedule: %w", c.Name, err)
	}
	return optim.NewScheduler(opt, optim.Cosine(steps, 0)), nil
}
