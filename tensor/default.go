package tensor

import "sync"

var defaults struct {
	once sync.Once
	gen  *Generator
}

// DefaultGenerator returns the generator that layers draw initial values and dropout masks from unless they are given
// another one. Its seed is 0 until [ManualSeed].
func DefaultGenerator() *Generator {
	defaults.once.Do(func() { defaults.gen = NewGenerator(0) })
	return defaults.gen
}

// ManualSeed restarts the default generator with a seed, as torch.manual_seed does.
func ManualSeed(seed uint64) { DefaultGenerator().SetState(seed, 0) }

// Fail makes err the scope's error, unless it has one: Close will return it. It is for code that finds a mistake outside of an
// operator, such as an optimizer.
func (s *Scope) Fail(err error) { s.note(err) }
