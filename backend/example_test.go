package backend_test

import (
	"errors"
	"fmt"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/shaders/ir"
)

// A device is opened by name, shared by its users, and closed by the last of them.
func ExampleOpen() {
	dev, err := backend.Open("null")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	same, err := backend.Open("null:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer same.Close()
	fmt.Println(dev.Info(), dev == same)

	_, err = backend.Open("null:1")
	fmt.Println(errors.Is(err, backend.ErrUnknownDevice), err)
	// Output:
	// null:0 true
	// true unknown device null:1: there is only null:0 (null device)
}

// As finds an optional interface, or the driver's own type, behind a device from Open.
func ExampleAs() {
	dev, err := backend.Open("null")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	if n, ok := backend.As[*null.Device](dev); ok {
		fmt.Println(n.Info().Name, n.Counts().Allocs)
	}
	// Output: null device 0
}

// Memory comes from an allocator, launches go through a queue.
func Example() {
	dev := null.New(null.Config{})
	defer dev.Close()
	queue := backend.NewQueue(dev, backend.QueueConfig{})
	memory := backend.NewAllocator(dev, backend.AllocatorConfig{Flush: func() error { _, err := queue.Flush(); return err }})
	defer memory.Close()

	b := ir.NewBuilder("fill", 64, 1, 1)
	out := b.Buffer("out", ir.F32, ir.Write)
	i := b.GlobalID(0)
	b.If(b.Lt(i, b.Param("n", ir.U32)), func() { b.Store(out, i, b.F32(1)) }, nil)
	kernel, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := dev.Compile(kernel)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer program.Free()

	for range 3 {
		block, err := memory.Alloc(4 * 1000)
		if err != nil {
			fmt.Println(err)
			return
		}
		err = queue.Add(backend.Launch{Program: program, Groups: [3]int{16, 1, 1}, Buffers: []backend.Region{block.Region()}, Params: []uint32{1000}})
		if err != nil {
			fmt.Println(err)
			return
		}
		block.Free() // at once: the next owner's work comes after
	}
	if _, err := queue.Flush(); err != nil {
		fmt.Println(err)
		return
	}
	s := memory.Stats()
	fmt.Println("launches", len(dev.Launches()), "submissions", queue.Stats().Submissions)
	fmt.Println("reserved", backend.FormatBytes(s.ReservedBytes.Current), "peak in use", backend.FormatBytes(s.AllocatedBytes.Peak))
	// Output:
	// launches 3 submissions 1
	// reserved 2.0 MiB peak in use 4.0 KiB
}
