// Package progress shows a training run as a bar in the terminal: steps, loss, rate, time left.
//
// # Overview
//
//	loop.Observers = append(loop.Observers, progress.New(os.Stderr))
//
// Nothing is drawn where the writer is no terminal.
package progress

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/anygpu/anygpu/train"
)

// New returns an observer that draws a bar on w.
func New(w io.Writer) train.Observer {
	b := &bar{p: mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))}
	b.text.Store("")
	return b
}

type bar struct {
	p    *mpb.Progress
	b    *mpb.Bar
	text atomic.Value // string: what stands behind the bar
}

func (b *bar) OnSteps(s train.StepInfo) error {
	b.text.Store(fmt.Sprintf("loss %.4f", s.Loss))
	if b.b == nil {
		b.b = b.p.AddBar(int64(s.Steps),
			mpb.PrependDecorators(decor.CountersNoUnit("%d/%d", decor.WCSyncSpace)),
			mpb.AppendDecorators(
				decor.Any(func(decor.Statistics) string { return b.text.Load().(string) }, decor.WCSyncSpace),
				decor.AverageSpeed(0, " %.1f steps/s", decor.WCSyncSpace),
				decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace), "done")))
	}
	b.b.SetCurrent(int64(s.Step))
	return nil
}

func (b *bar) OnEpoch(train.EpochInfo) error { return nil }

func (b *bar) OnEnd(error) error {
	if b.b != nil {
		b.b.Abort(false) // a complete bar is not changed
	}
	b.p.Wait()
	return nil
}
