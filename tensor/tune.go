package tensor

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/tune"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// Bounds of a measurement: runs of a variant, and the time after which it gets no further run.
const (
	tuneRuns = 5
	tuneTime = 200 * time.Millisecond
)

// tuner is an engine's choices of variants; guarded by the engine's lock.
type tuner struct {
	table *tune.Table
	on    bool // measure what has no choice yet
}

// openTuning reads the device's choices.
func (e *engine) openTuning() { e.tune.table = tune.Open(tune.Folder(), e.dev.Info()) }

// SetTuning makes dev measure the variants of each kernel that it meets for the first time, with the operands at hand: it takes
// a moment for each. A variant is chosen only if its result agrees with that of the kernel's own choice. SaveTuning keeps
// what was found.
func SetTuning(dev backend.Device, on bool) error {
	e, err := engineFor(dev)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tune.on = on
	e.plans.forget() // they have the variants of before
	return nil
}

// SaveTuning writes the choices of dev to its file in the cache folder, from which later processes read them, and returns how
// many there are. note is not empty if a file was there that was of no use.
func SaveTuning(dev backend.Device) (choices int, note string, err error) {
	e, err := engineFor(dev)
	if err != nil {
		return 0, "", err
	}
	return e.tune.table.Len(), e.tune.table.Note(), e.tune.table.Save()
}

// tuned returns the variant of a generator that was found to be the fastest; e.mu is held.
func (e *engine) tuned(gen lib.Generator, regions []backend.Region) lib.Generator {
	g, ok := gen.(lib.Tunable)
	if !ok || !e.tune.on && e.tune.table.Len() == 0 {
		return gen
	}
	key := g.TuneKey(e.target)
	if key == "" {
		return gen
	}
	choice, known := e.tune.table.Get(key)
	if !known && e.tune.on {
		if c, err := e.measure(g, regions); err == nil {
			choice = c
			e.tune.table.Set(key, c)
		}
	}
	if choice.Variant < 1 {
		return gen
	}
	if v := g.Variants(e.target); choice.Variant <= len(v) && v[choice.Variant-1] != nil {
		return v[choice.Variant-1]
	}
	return gen
}

// measure times a generator's own choice and its variants, on its operands and with a result that is thrown away.
func (e *engine) measure(g lib.Tunable, regions []backend.Region) (tune.Choice, error) {
	wait := func() error { return e.queue.Wait(context.Background()) }
	if err := wait(); err != nil {
		return tune.Choice{}, err
	}
	last := len(regions) - 1
	m, err := e.allocate(regions[last].Size)
	if err != nil {
		return tune.Choice{}, err
	}
	defer m.free()
	bufs := append(slices.Clone(regions[:last]), m.region)
	bufs[last].Size = regions[last].Size
	run := func(gen lib.Generator) (time.Duration, error) {
		start := time.Now()
		if err := e.launchStages(gen, bufs); err != nil {
			return 0, err
		}
		err := wait()
		return time.Since(start), err
	}
	result := func() ([]byte, error) {
		b := make([]byte, bufs[last].Size)
		return b, bufs[last].Buffer.Read(bufs[last].Offset, b)
	}
	// best runs gen until there is no more time, but not again if a single run is far behind limit.
	best := func(gen lib.Generator, limit time.Duration) (time.Duration, error) {
		if _, err := run(gen); err != nil { // compiles
			return 0, err
		}
		least := time.Duration(math.MaxInt64)
		for begin, n := time.Now(), 0; n < tuneRuns && time.Since(begin) < tuneTime; n++ {
			d, err := run(gen)
			if err != nil {
				return 0, err
			}
			if least = min(least, d); least > 4*limit {
				break
			}
		}
		return least, nil
	}
	own, err := best(g, math.MaxInt64/8)
	if err != nil {
		return tune.Choice{}, err
	}
	want, err := result()
	if err != nil {
		return tune.Choice{}, err
	}
	kind, n := g.Result()
	c := tune.Choice{OwnMS: ms(own), BestMS: ms(own)}
	least := own
	for i, v := range g.Variants(e.target) {
		if v == nil {
			continue
		}
		blank := make([]byte, len(want))
		for j := range blank {
			blank[j] = 0xff // NaN: what a variant leaves out does not pass for its result
		}
		if err := bufs[last].Buffer.Write(bufs[last].Offset, blank); err != nil {
			return tune.Choice{}, err
		}
		d, err := best(v, least)
		if err != nil {
			continue // the device cannot run it
		}
		got, err := result()
		if err != nil || !agree(kind, n, got, want, g.Tolerance()) {
			continue
		}
		c.Measured++
		if d < least*95/100 {
			least, c.Variant, c.BestMS = d, i+1, ms(d)
		}
	}
	return c, wait()
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// agree reports whether two results of n elements differ by no more than tolerance times the largest. NaN and infinities must be in
// the same places.
func agree(kind ir.Kind, n int, got, want []byte, tolerance float64) bool {
	value := func(b []byte, i int) float64 {
		b = b[i*kind.Size():]
		switch kind.Size() {
		case 1:
			return ir.ConstFloat(kind, uint64(b[0]))
		case 2:
			return ir.ConstFloat(kind, uint64(binary.NativeEndian.Uint16(b)))
		case 4:
			return ir.ConstFloat(kind, uint64(binary.NativeEndian.Uint32(b)))
		}
		return ir.ConstFloat(kind, binary.NativeEndian.Uint64(b))
	}
	largest := 0.0
	for i := range n {
		if v := math.Abs(value(want, i)); v > largest && !math.IsInf(v, 0) {
			largest = v
		}
	}
	for i := range n {
		x, y := value(got, i), value(want, i)
		if x != y && !(math.IsNaN(x) && math.IsNaN(y)) && !(math.Abs(x-y) <= tolerance*largest) {
			return false
		}
	}
	return true
}
