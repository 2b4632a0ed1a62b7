package lib

// Stage is one kernel of a [Staged] generator.
type Stage struct {
	Gen Generator
	// Buffers are the kernel's buffers in its order: i >= 0 is buffer i of the whole, ^i is scratch memory i.
	Buffers []int
}

// Staged is a generator that some targets run as several kernels, one after the other, with scratch memory between them.
type Staged interface {
	Generator
	// Stages returns the kernels for t and the bytes of each scratch memory. Without stages the generator is its own
	// and only kernel. The stages have none themselves.
	Stages(t Target) (stages []Stage, scratch []int64)
}

// Stages returns how gen runs on t: its stages, or itself as the only one, for a kernel of so many buffers.
func Stages(gen Generator, t Target, buffers int) (stages []Stage, scratch []int64) {
	if s, ok := gen.(Staged); ok {
		if stages, scratch = s.Stages(t); len(stages) > 0 {
			return stages, scratch
		}
	}
	own := make([]int, buffers)
	for i := range own {
		own[i] = i
	}
	return []Stage{{gen, own}}, nil
}

// scratchBytes returns the size of a scratch memory for n elements of size bytes each.
func scratchBytes(n, size int) int64 { return (int64(n)*int64(size) + 3) &^ 3 }
