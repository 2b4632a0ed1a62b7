package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/data/text"
	"github.com/anygpu/anygpu/train/nn"
)

const (
	gptBlock    = 64      // characters that the model sees
	gptStride   = 32      // characters from a piece of text to the next
	gptTest     = 10      // one part in this many, the end of the text, is for testing
	maxText     = 1 << 28 // bytes
	maxSample   = 100_000
	temperature = 0.8
)

// textTask trains a decoder on the characters of a text.
func textTask(cfg demoConfig) (*demoTask, error) {
	title, content := "Genesis", text.Genesis
	if cfg.data != "" {
		f, err := os.Open(cfg.data)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if content, err = data.ReadText(f, maxText); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.data, err)
		}
		title = filepath.Base(cfg.data)
	}
	vocabulary := data.NewVocabulary(content)
	tokens, err := vocabulary.Encode(content)
	if err != nil {
		return nil, err
	}
	at := len(tokens) - len(tokens)/gptTest
	if least := gptTest * (gptBlock + 1); len(tokens) < least {
		return nil, fmt.Errorf("%s has %d characters; the model needs a text of at least %d", title, len(tokens), least)
	}
	trainSet, err := data.NewWindows(tokens[:at], gptBlock, gptStride)
	if err != nil {
		return nil, err
	}
	testSet, err := data.NewWindows(tokens[at:], gptBlock, gptBlock)
	if err != nil {
		return nil, err
	}
	if cfg.batch > trainSet.Len() {
		return nil, fmt.Errorf("--batch %d is larger than the training data: choose at most %d", cfg.batch, trainSet.Len())
	}
	// A language model's loss is that of every position; batches that are not full would make other shapes and kernels.
	loader := data.NewLoaderOf(trainSet, data.LoaderConfig{BatchSize: cfg.batch, Shuffle: true, Seed: cfg.seed, DropLast: true}, data.CollateSequences)
	config := nn.DecoderConfig{Vocab: vocabulary.Len(), Block: gptBlock, Width: 128, Heads: 4, Layers: 4}
	return &demoTask{
		title: fmt.Sprintf("%s: %d characters to train, %d to test, %d different", title, at, len(tokens)-at, vocabulary.Len()),
		unit:  "tokens",
		score: "test loss",
		train: loader,
		model: func() (demoModel, error) {
			return nn.NewDecoder(config, nn.WithGenerator(tensor.NewGenerator(cfg.seed)))
		},
		loss: textLoss,
		clip: 1,
		evaluate: func(m demoModel, dev backend.Device) (float64, error) {
			return textTestLoss(m, dev, data.NewLoaderOf(testSet, data.LoaderConfig{BatchSize: min(cfg.batch, testSet.Len())}, data.CollateSequences))
		},
		write: &writer{vocabulary: vocabulary, start: tokens[0], seed: cfg.seed},
	}, nil
}

// textLoss is the mean cross entropy over all positions of logits [n, positions, vocabulary].
func textLoss(output, target *tensor.Tensor) *tensor.Tensor {
	return nn.CrossEntropy(output.Flatten(0, 1), target.Flatten(0, 1))
}

// textTestLoss returns the mean loss in nats a character.
func textTestLoss(m demoModel, dev backend.Device, test batches) (float64, error) {
	m.Eval()
	defer m.Train()
	total, n := 0.0, 0
	for batch, err := range test.EpochFrom(0, 0) {
		if err != nil {
			return 0, err
		}
		s := tensor.NewScope(dev)
		loss := tensor.NoGrad(s, func() *tensor.Tensor { return textLoss(m.Forward(s.To(batch.X)), s.To(batch.Y)) })
		v, err := loss.Item()
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return 0, err
		}
		total += v * float64(batch.Y.Numel())
		n += batch.Y.Numel()
	}
	return total / float64(n), nil
}

// writer lets a model write text.
type writer struct {
	vocabulary *data.Vocabulary
	start      int64 // the first character
	seed       uint64
}

// text returns n characters, each drawn from the model's distribution after those before, sharpened by the temperature.
func (w *writer) text(ctx context.Context, m demoModel, dev backend.Device, n int) (string, error) {
	m.Eval()
	defer m.Train()
	r := rand.New(rand.NewPCG(w.seed, 1))
	tokens := []int64{w.start}
	for len(tokens) < n {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		logits, err := nextLogits(m, dev, tokens)
		if err != nil {
			return "", err
		}
		tokens = append(tokens, drawToken(r, logits))
	}
	return w.vocabulary.Decode(tokens[:n]), nil
}

// nextLogits returns the logits of the token that follows.
func nextLogits(m demoModel, dev backend.Device, tokens []int64) (logits []float64, err error) {
	// The window is always full, so that there is one shape and one set of kernels; what follows a position does not change it.
	window := make([]int64, gptBlock)
	used := copy(window, tokens[max(0, len(tokens)-gptBlock):])
	s := tensor.NewScope(dev)
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	out := tensor.NoGrad(s, func() *tensor.Tensor {
		return m.Forward(s.To(tensor.FromInt64s(window, 1, gptBlock))).Select(0, 0).Select(0, used-1)
	})
	return out.Float64s()
}

// drawToken returns an index with the probability of softmax(logits/temperature).
func drawToken(r *rand.Rand, logits []float64) int64 {
	top := math.Inf(-1)
	for _, v := range logits {
		top = max(top, v)
	}
	sum := 0.0
	weights := make([]float64, len(logits))
	for i, v := range logits {
		weights[i] = math.Exp((v - top) / temperature)
		sum += weights[i]
	}
	at := r.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return int64(i)
		}
	}
	return int64(len(weights) - 1) // rounding, or logits that are not numbers
}
