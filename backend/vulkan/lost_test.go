//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"context"
	"errors"
	"sync"
	"testing"

	vk "github.com/vulkan-go/vulkan"

	"github.com/anygpu/anygpu/backend"
)

func TestDeviceLost(t *testing.T) {
	for _, call := range []string{"vkQueueSubmit", "vkWaitForFences", "vkGetFenceStatus", "vkCreateComputePipelines", "vkAllocateMemory", "recording of commands"} {
		t.Run(call, func(t *testing.T) {
			eachDevice(t, func(t *testing.T, d *device) {
				const n = 64
				p := compile(t, d, affine(t))
				b := alloc(t, d, 4*n)
				hidden := hide(alloc(t, d, 4*n))
				write(t, b, iota(n))
				f := submit(t, d, launch(p, n, []uint32{n, 2, 1}, b))
				hook := func(c string) vk.Result {
					if c == call {
						return vk.ErrorDeviceLost
					}
					if c == "vkGetFenceStatus" && call == "vkWaitForFences" {
						return vk.NotReady // so that there is something to wait for
					}
					return vk.Success
				}
				d.hook.Store(&hook)
				use := map[string]func() error{
					"submit":  func() error { _, err := d.Submit([]backend.Launch{launch(p, n, []uint32{n, 2, 1}, b)}); return err },
					"alloc":   func() error { _, err := d.Alloc(64); return err },
					"compile": func() error { _, err := d.Compile(mix(t)); return err },
					"write":   func() error { return hidden.Write(0, make([]byte, 4)) },
					"read":    func() error { return hidden.Read(0, make([]byte, 4)) },
					"sync":    func() error { return d.Synchronize(context.Background()) },
				}
				for range 2 {
					for _, f := range use {
						_ = f()
					}
				}
				if !d.Lost() {
					t.Fatalf("the device is not known to be lost")
				}
				d.hook.Store(nil) // the loss sticks
				for name, f := range use {
					var lost *backend.LostError
					if err := f(); !errors.As(err, &lost) || lost.During != call || !errors.Is(err, backend.ErrDeviceLost) {
						t.Errorf("%s after the loss: %v", name, err)
					}
				}
				if !f.Done() {
					t.Error("a fence of a lost device is not done")
				}
				if err := f.Wait(t.Context()); err != nil && !errors.Is(err, backend.ErrDeviceLost) {
					t.Error(err)
				}
				b.Free()
				p.Free()
				if err := d.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		})
	}
}

func TestUseAfterClose(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		const n = 64
		p := compile(t, d, affine(t))
		b := alloc(t, d, 4*n)
		write(t, hide(alloc(t, d, 4*n)), iota(n)) // staged, and then in the way of Close
		f := submit(t, d, launch(p, n, []uint32{n, 2, 1}, b))
		write(t, hide(alloc(t, d, 4*n)), iota(n))
		for range 2 {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for name, f := range map[string]func() error{
			"submit":  func() error { _, err := d.Submit(nil); return err },
			"alloc":   func() error { _, err := d.Alloc(64); return err },
			"compile": func() error { _, err := d.Compile(mix(t)); return err },
			"write":   func() error { return b.Write(0, make([]byte, 4)) },
			"read":    func() error { return b.Read(0, make([]byte, 4)) },
			"sync":    func() error { return d.Synchronize(context.Background()) },
		} {
			if err := f(); !errors.Is(err, backend.ErrClosed) {
				t.Errorf("%s after Close: %v", name, err)
			}
		}
		if err := f.Wait(t.Context()); err != nil || !f.Done() {
			t.Errorf("fence after Close: %v", err)
		}
		b.Free()
		p.Free()
	})
}

// Close while other goroutines work: they get ErrClosed, and nothing crashes.
func TestCloseDuringUse(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		const n = 64
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for g := range 4 {
			p := compile(t, d, affine(t))
			b := alloc(t, d, 4*n)
			if g%2 == 1 {
				hide(b)
			}
			wg.Go(func() {
				for i := 0; ; i++ {
					if i == 3 {
						started <- struct{}{}
					}
					f, err := d.Submit([]backend.Launch{launch(p, n, []uint32{n, 2, 1}, b)})
					if err == nil {
						err = b.Write(0, make([]byte, 4))
					}
					if err == nil {
						err = b.Read(0, make([]byte, 4))
					}
					if err == nil {
						err = f.Wait(context.Background())
					}
					if err != nil {
						if !errors.Is(err, backend.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		for range 4 {
			<-started
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}
