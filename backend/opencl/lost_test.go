//go:build cgo

package opencl

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
	"github.com/anygpu/anygpu/shaders/ir"
)

func TestLost(t *testing.T) {
	stages := map[string]func(d *device, p backend.Program, b backend.Buffer) error{
		"allocation": func(d *device, p backend.Program, b backend.Buffer) error { _, err := d.Alloc(64); return err },
		"submission": func(d *device, p backend.Program, b backend.Buffer) error {
			_, err := d.Submit([]backend.Launch{launch(p, b, 1, 1, 1)})
			return err
		},
		"compilation": func(d *device, p backend.Program, b backend.Buffer) error {
			_, err := d.Compile(&ir.Kernel{Name: "k", Local: [3]int{1, 1, 1}, Body: &ir.Block{}})
			return err
		},
		"write": func(d *device, p backend.Program, b backend.Buffer) error { return b.Write(0, make([]byte, 4)) },
		"read":  func(d *device, p backend.Program, b backend.Buffer) error { return b.Read(0, make([]byte, 4)) },
		"status of execution": func(d *device, p backend.Program, b backend.Buffer) error {
			f, err := d.Submit([]backend.Launch{launch(p, b, 1, 1, 1)})
			if err != nil {
				return err
			}
			return f.Wait(context.Background())
		},
	}
	eachDevice(t, func(t *testing.T, first *device) {
		for during, use := range stages {
			t.Run(during, func(t *testing.T) {
				dev, err := Driver().Open(first.info.Index)
				if err != nil {
					t.Fatal(err)
				}
				d := dev.(*device)
				p, b := compile(t, d, addKernel(t)), alloc(t, d, 256)
				pending, err := d.Submit([]backend.Launch{launch(p, b, 64, 64, 1)})
				if err != nil {
					t.Fatal(err)
				}
				d.injectOnce(during, clload.DeviceNotAvailable)
				err = use(d, p, b)
				var lost *backend.LostError
				if !errors.As(err, &lost) || !errors.Is(err, backend.ErrDeviceLost) || !errors.Is(err, clload.DeviceNotAvailable) {
					t.Fatalf("got %v, want a LostError", err)
				}
				if !d.Lost() || !pending.Done() {
					t.Error("the device does not say that it is lost, or work is pending on it")
				}
				for name, again := range stages {
					if err := again(d, p, b); !errors.Is(err, backend.ErrDeviceLost) {
						t.Errorf("%s afterwards: %v, want the lost device", name, err)
					}
				}
				b.Free()
				p.Free()
				if err := d.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		}
		// Other devices go on.
		alloc(t, first, 64).Free()
	})
}

// TestFailedCommand is a command that ends with an error, as NVIDIA's driver reports a fault of a kernel.
func TestFailedCommand(t *testing.T) {
	eachDevice(t, func(t *testing.T, first *device) {
		dev, err := Driver().Open(first.info.Index)
		if err != nil {
			t.Fatal(err)
		}
		d := dev.(*device)
		defer d.Close()
		user, err := d.context.CreateUserEvent()
		if err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		event := clload.HandleOf(user)
		clload.Retain(event)
		f := &fence{d, d.track(event, "execution")}
		d.mu.Unlock()
		if f.Done() {
			t.Error("done while the command is pending")
		}
		if err := user.SetUserEventStatus(int(clload.OutOfResources)); err != nil {
			t.Fatal(err)
		}
		user.Release()
		err = f.Wait(context.Background())
		if !errors.Is(err, backend.ErrDeviceLost) || !errors.Is(err, clload.OutOfResources) || !strings.Contains(err.Error(), "execution") {
			t.Errorf("got %v, want a lost device", err)
		}
		if _, err := d.Alloc(4); !errors.Is(err, backend.ErrDeviceLost) {
			t.Errorf("afterwards: %v, want a lost device", err)
		}
	})
}

func TestClosed(t *testing.T) {
	eachDevice(t, func(t *testing.T, first *device) {
		dev, err := Driver().Open(first.info.Index)
		if err != nil {
			t.Fatal(err)
		}
		p, spin := compile(t, dev, addKernel(t)), compile(t, dev, spinKernel(t))
		b := alloc(t, dev, 256)
		f, err := dev.Submit([]backend.Launch{launch(spin, b, 64, 1<<20)})
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		go func() { waited <- f.Wait(context.Background()) }()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("waiting while the device closes: %v", err)
		}
		if err := f.Wait(context.Background()); err != nil || !f.Done() {
			t.Errorf("the fence of finished work after Close: %v", err)
		}
		if err := dev.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		_, allocErr := dev.Alloc(4)
		_, compileErr := dev.Compile(addKernel(t))
		_, submitErr := dev.Submit([]backend.Launch{launch(p, b, 1, 1, 1)})
		for name, err := range map[string]error{"Alloc": allocErr, "Compile": compileErr, "Submit": submitErr, "Write": b.Write(0, make([]byte, 4)),
			"Read": b.Read(0, make([]byte, 4)), "Synchronize": dev.(backend.Syncer).Synchronize(context.Background())} {
			if !errors.Is(err, backend.ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", name, err)
			}
		}
		b.Free()
		p.Free()
	})
}
