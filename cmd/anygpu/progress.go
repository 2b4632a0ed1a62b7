package main

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows a bar with rate and time left for each run; nothing where the output is no terminal.
type progress struct {
	p *mpb.Progress
}

func newProgress(w io.Writer) *progress {
	return &progress{mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))}
}

// wait ends the drawing. A second call does nothing.
func (p *progress) wait() {
	if p.p != nil {
		p.p.Wait()
		p.p = nil
	}
}

type bar struct {
	b        *mpb.Bar
	lastLoss atomic.Value
}

func (p *progress) add(name string, total int) *bar {
	b := &bar{}
	b.lastLoss.Store("")
	b.b = p.p.AddBar(int64(total),
		mpb.PrependDecorators(decor.Name(name, decor.WC{W: 16, C: decor.DindentRight}), decor.CountersNoUnit("%d/%d", decor.WCSyncSpace)),
		mpb.AppendDecorators(
			decor.Any(func(decor.Statistics) string { return b.lastLoss.Load().(string) }, decor.WCSyncSpace),
			decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace), "done"),
		))
	return b
}

func (b *bar) increment() { b.b.Increment() }

func (b *bar) loss(v float64) { b.lastLoss.Store(fmt.Sprintf("loss %.4f", v)) }

// note replaces the text after the bar.
func (b *bar) note(s string) { b.lastLoss.Store(s) }

func (b *bar) abort() { b.b.Abort(false) }
