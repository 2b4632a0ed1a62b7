package backend

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

func TestOpenIsShared(t *testing.T) {
	vk := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8), gpu("GTX", DiscreteGPU, 4)}}
	r := newRegistry("", map[string]Driver{"vulkan": vk})
	a, errA := r.open("vulkan:0")
	b, errB := r.open("gpu")
	c, errC := r.open("vulkan:1")
	if err := errors.Join(errA, errB, errC); err != nil {
		t.Fatal(err)
	}
	if a != b || a == c || len(vk.opened) != 2 {
		t.Errorf("a == b: %v, a == c: %v, %d devices opened; want true, false, 2", a == b, a == c, len(vk.opened))
	}
	dev := vk.opened[0]
	var order []string
	hook := func(s string) func() { return func() { order = append(order, s) } }
	a.(CloseHooker).OnClose(hook("first"))
	b.(CloseHooker).OnClose(func() {
		// The device still works, and may be closed too often.
		if _, err := a.Alloc(4); err != nil {
			t.Errorf("in a hook: %v", err)
		}
		a.Close()
		a.(CloseHooker).OnClose(hook("late"))
		hook("second")()
	})
	if err := a.Close(); err != nil || len(order) > 0 || dev.closes.Load() != 0 {
		t.Errorf("the first Close closed the device: %v, %v", err, order)
	}
	if _, err := b.Submit(nil); err != nil {
		t.Errorf("Submit after the first Close: %v", err)
	}
	if err := b.Close(); err != nil || dev.closes.Load() != 1 {
		t.Errorf("the last Close: %v, closed %d times", err, dev.closes.Load())
	}
	if want := []string{"second", "first", "late"}; !slices.Equal(order, want) {
		t.Errorf("hooks %v, want %v", order, want)
	}
	if err := a.Close(); err != nil || dev.closes.Load() != 1 {
		t.Errorf("one more Close: %v, closed %d times", err, dev.closes.Load())
	}
	a.(CloseHooker).OnClose(hook("at once"))
	if order[len(order)-1] != "at once" {
		t.Error("OnClose of a closed device did not run its function")
	}
	for name, f := range map[string]func() error{
		"Alloc":       func() error { _, err := a.Alloc(4); return err },
		"Compile":     func() error { _, err := a.Compile(nil); return err },
		"Submit":      func() error { _, err := a.Submit(nil); return err },
		"Override":    func() error { _, err := a.(Overrider).Override(nil); return err },
		"Synchronize": func() error { return a.(Syncer).Synchronize(t.Context()) },
	} {
		if err := f(); !errors.Is(err, ErrClosed) || err.Error() != "vulkan:0: device is closed" {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	again, err := r.open("vulkan:0")
	if err != nil || again == a || len(vk.opened) != 3 {
		t.Errorf("opening a closed device: %v, %v", again, err)
	}
	again.Close()
	c.Close()
}

func TestHookPanicIsAnError(t *testing.T) {
	vk := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8)}}
	d, err := newRegistry("", map[string]Driver{"vulkan": vk}).open("vulkan")
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	d.(CloseHooker).OnClose(func() { ran = true })
	d.(CloseHooker).OnClose(func() { panic("oh") })
	const want = "vulkan:0: a function given to OnClose panicked: oh"
	if err := d.Close(); err == nil || err.Error() != want || !ran || vk.opened[0].closes.Load() != 1 {
		t.Errorf("Close: %v, other hook ran: %v, closed: %d; want %s", err, ran, vk.opened[0].closes.Load(), want)
	}
}

func TestLostDeviceIsOpenedAnew(t *testing.T) {
	ways := map[string]func(Device, *fakeDevice){
		"alloc": func(d Device, f *fakeDevice) { f.allocErr = func(int64) error { return errLost }; d.Alloc(4) },
		"compile": func(d Device, f *fakeDevice) {
			f.compile = func(*ir.Kernel) (Program, error) { return nil, errLost }
			d.Compile(nil)
		},
		"submit": func(d Device, f *fakeDevice) { f.submitErr = errLost; d.Submit(nil) },
		"synchronize": func(d Device, f *fakeDevice) {
			f.fence = func() Fence { return lostFence() }
			d.(Syncer).Synchronize(context.Background())
		},
		"queue": func(d Device, f *fakeDevice) {
			f.fence = func() Fence { return lostFence() }
			q := NewQueue(d, QueueConfig{})
			q.Add(Launch{Groups: [3]int{1, 1, 1}})
			q.Wait(context.Background())
		},
	}
	for name, lose := range ways {
		vk := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8)}}
		r := newRegistry("", map[string]Driver{"vulkan": vk})
		a, _ := r.open("vulkan")
		a2, _ := r.open("vulkan")
		lose(a, vk.opened[0])
		b, err := r.open("vulkan")
		if err != nil || b == a || len(vk.opened) != 2 {
			t.Errorf("%s: the lost device was given again (%v)", name, err)
			continue
		}
		// The users of the lost one still close it, and only it.
		if err := errors.Join(a.Close(), a2.Close()); err != nil || vk.opened[0].closes.Load() != 1 || vk.opened[1].closes.Load() != 0 {
			t.Errorf("%s: closing the lost device: %v", name, err)
		}
		if c, _ := r.open("vulkan"); c != b {
			t.Errorf("%s: the new device is not shared", name)
		}
	}
}

func lostFence() Fence {
	f := &chanFence{done: make(chan struct{}), err: errLost}
	close(f.done)
	return f
}

func TestCompilePanicIsAnError(t *testing.T) {
	vk := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8)}}
	d, _ := newRegistry("", map[string]Driver{"vulkan": vk}).open("vulkan")
	defer d.Close()
	vk.opened[0].compile = func(*ir.Kernel) (Program, error) { panic("index out of range") }
	for k, want := range map[*ir.Kernel]string{
		nil:              "vulkan:0: compiling kernel <nil> panicked: index out of range",
		{Name: "gelu_2"}: "vulkan:0: compiling kernel gelu_2 panicked: index out of range",
	} {
		if _, err := d.Compile(k); err == nil || err.Error() != want {
			t.Errorf("Compile: %v, want %s", err, want)
		}
	}
}

// fullDevice has the optional interfaces, and one that the package does not know.
type fullDevice struct {
	*fakeDevice
	synced int
}

func (d *fullDevice) Override(*ir.Kernel) (Program, error)  { return nil, errors.New("overridden") }
func (d *fullDevice) Synchronize(ctx context.Context) error { d.synced++; return nil }
func (d *fullDevice) Temperature() int                      { return 42 }

func TestAs(t *testing.T) {
	full := &fullDevice{fakeDevice: &fakeDevice{}}
	r := newRegistry("", map[string]Driver{"full": openFunc(func() (Device, error) { return full, nil }), "plain": openFunc(func() (Device, error) { return &fakeDevice{}, nil })})
	d, _ := r.open("full")
	defer d.Close()
	p, _ := r.open("plain")
	defer p.Close()
	type thermometer interface{ Temperature() int }
	if th, ok := As[thermometer](d); !ok || th.Temperature() != 42 {
		t.Error("As does not find an interface of the driver's device")
	}
	if _, ok := As[thermometer](p); ok {
		t.Error("As finds what is not there")
	}
	if _, ok := As[thermometer](nil); ok {
		t.Error("As finds something in nil")
	}
	if got, ok := As[*fullDevice](d); !ok || got != full {
		t.Error("As does not find the driver's type")
	}
	if got, ok := As[Device](d); !ok || got != d {
		t.Error("As[Device] is not the device itself")
	}
	for dev, want := range map[Device]string{d: "overridden", p: ""} {
		o, ok := As[Overrider](dev)
		if !ok {
			t.Fatal("no Overrider")
		}
		prog, err := o.Override(nil)
		if prog != nil || want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("Override = %v, %v, want error %q", prog, err, want)
		}
		if err := dev.(Syncer).Synchronize(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if inner, _ := As[*fakeDevice](p); full.synced != 1 || len(inner.batches) != 1 {
		t.Errorf("Synchronize: %d calls, %v submissions, want 1 of each", full.synced, inner.batches)
	}
}

func TestOpenConcurrently(t *testing.T) {
	vk := &fakeDriver{infos: []Info{gpu("RTX", DiscreteGPU, 8)}}
	r := newRegistry("", map[string]Driver{"cpu": cpuDriver, "vulkan": vk})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				d, err := r.open("gpu")
				if err != nil {
					t.Error(err)
					return
				}
				if i%8 == 0 {
					d.(CloseHooker).OnClose(func() { d.Info() })
				}
				if _, err := d.Submit(nil); err != nil {
					t.Errorf("an open device: %v", err)
				}
				r.list()
				r.rescan()
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, d := range vk.opened {
		if n := d.closes.Load(); n != 1 {
			t.Errorf("device %d was closed %d times", i, n)
		}
	}
}
