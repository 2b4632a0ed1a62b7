// Text trains a small decoder-only transformer on the characters of a text, and lets it write. An interrupt (Ctrl-C) saves, and the
// program goes on from there when it is started again.
//
// Usage: go run ./docs/examples/text [-device NAME] [-data FILE.txt] [-runs FOLDER] [-epochs N] [-sample N]
// Without -data it learns the book of Genesis.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all"
	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/checkpoint"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/data/text"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
	"github.com/anygpu/anygpu/train/progress"
	"github.com/anygpu/anygpu/train/tensorboard"
)

const block = 64 // characters that the model sees

func main() {
	name := flag.String("device", backend.DefaultName(), "a device string")
	file := flag.String("data", "", "a UTF-8 text; the book of Genesis if empty")
	runs := flag.String("runs", "text-run", "where checkpoints and TensorBoard's files go")
	epochs := flag.Int("epochs", 1, "passes over the text")
	sample := flag.Int("sample", 300, "characters to write")
	width := flag.Int("width", 128, "features of a character")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *name, *file, *runs, *epochs, *sample, *width); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name, file, runs string, epochs, sample, width int) error {
	content := text.Genesis
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		if content, err = data.ReadText(f, 1<<28); err != nil {
			return err
		}
	}
	vocabulary := data.NewVocabulary(content)
	tokens, err := vocabulary.Encode(content)
	if err != nil {
		return err
	}
	windows, err := data.NewWindows(tokens, block, block/2)
	if err != nil {
		return err
	}

	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()
	model, err := nn.NewDecoder(nn.DecoderConfig{Vocab: vocabulary.Len(), Block: block, Width: width, Heads: 4, Layers: 4})
	if err != nil {
		return err
	}
	defer model.Free()
	if err := model.To(dev); err != nil {
		return err
	}
	opt := optim.NewAdamW(model.Parameters(), optim.AdamConfig{LR: 3e-3})
	defer opt.Free()
	loader := data.NewLoaderOf(windows, data.LoaderConfig{BatchSize: min(32, windows.Len()), Shuffle: true, DropLast: true}, data.CollateSequences)
	board, err := tensorboard.New(runs)
	if err != nil {
		return err
	}
	steps := epochs * loader.Steps()
	loop := &train.Loop[data.Batch]{
		Model: model, Optimizer: opt, Device: dev, Data: loader, Epochs: epochs, ClipNorm: 1,
		Forward: func(s *tensor.Scope, b data.Batch) (output, target *tensor.Tensor) {
			return model.Forward(s.To(b.X)).Flatten(0, 1), s.To(b.Y).Flatten(0, 1) // a position a row
		},
		Loss:      nn.CrossEntropy,
		Schedule:  optim.NewScheduler(opt, optim.Warmup(steps/10, 0.1, optim.Cosine(steps-steps/10, 0))),
		Keeper:    &checkpoint.Keeper{Dir: runs},
		SaveEvery: 200, Resume: true,
		Observers: []train.Observer{progress.New(os.Stderr), board},
	}
	if _, err := loop.Run(ctx); err != nil {
		return err // after an interrupt it says where the checkpoint is
	}
	written, err := write(model, dev, tokens[:1], sample)
	if err != nil {
		return err
	}
	fmt.Println(vocabulary.Decode(written))
	return nil
}

// write lets the model go on with tokens, n times with one drawn from what it expects next.
func write(model *nn.Decoder, dev backend.Device, tokens []int64, n int) ([]int64, error) {
	model.Eval()
	gen := tensor.NewGenerator(1)
	out := append([]int64(nil), tokens...)
	for range n {
		window := make([]int64, block) // always full, so that there is one shape; what follows a position does not change it
		used := copy(window, out[max(0, len(out)-block):])
		s := tensor.NewScope(dev)
		next := tensor.NoGrad(s, func() *tensor.Tensor {
			logits := model.Forward(s.To(tensor.FromInt64s(window, 1, block))).Select(0, 0).Select(0, used-1)
			return logits.DivScalar(0.8).Softmax(0).Multinomial(gen, 1, true) // 0.8 is the temperature
		})
		token, err := next.Item()
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
		out = append(out, int64(token))
	}
	return out, nil
}
