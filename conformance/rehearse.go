package conformance

import (
	"slices"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/tensor"
)

// A compiler that takes long to start spends most of a run on starting: cases need a kernel or two each. So the cases are
// rehearsed some at a time, on the CPU in the guise of the device, which tells the kernels that they will ask for, and the
// device compiles these in one go ([backend.Preparer]). What a rehearsal computes is not looked at.

// rehearsedSuites are those with many kernels whose cases do nothing but compute.
var rehearsedSuites = set("kernels", "operators", "gradients", "precision", "random", "determinism", "amp")

// rehearsedKernels is how many kernels are compiled together: enough that the start of the compiler is forgotten.
const rehearsedKernels = 48

// rehearser prepares a device for cases, while it runs the cases before.
type rehearser struct {
	env    *env // with the understudy as its device
	device backend.Preparer
	double *understudy
	jobs   []job
	next   int           // the first job that was not rehearsed, once ready is closed
	ready  chan struct{} // the jobs before next are prepared
	end    int           // next, of the rehearsal before: cases from here on wait for ready
}

// newRehearser returns a rehearser of jobs for e's device, or nil where there is no use for one.
func newRehearser(e *env, jobs []job) *rehearser {
	p, ok := backend.As[backend.Preparer](e.dev)
	if !ok {
		return nil
	}
	r := &rehearser{device: p, double: &understudy{Device: tensor.CPU(), info: e.info}, jobs: jobs}
	r.env = &env{dev: r.double, info: e.info, opts: e.opts, golden: e.golden}
	r.start()
	return r
}

// start prepares the next jobs in the background.
func (r *rehearser) start() {
	ready := make(chan struct{})
	r.ready = ready
	go func() {
		defer close(ready)
		r.prepare()
	}()
}

// before waits until job i is prepared, and has the jobs after it prepared meanwhile.
func (r *rehearser) before(i int) {
	if r == nil || i < r.end {
		return
	}
	<-r.ready
	if r.end = r.next; r.next < len(r.jobs) {
		r.start()
	}
}

// prepare rehearses jobs until they have kernels enough, and compiles these.
func (r *rehearser) prepare() {
	var kernels []*ir.Kernel
	for ; r.next < len(r.jobs) && len(kernels) < rehearsedKernels; r.next++ {
		j := r.jobs[r.next]
		if !rehearsedSuites[j.suite] || r.env.skips(j.name) || r.env.opts.Context.Err() != nil {
			continue
		}
		x := &run{env: r.env, name: j.name}
		_ = guarded(func() error { return j.run(x) })
		kernels = append(kernels, r.double.taken()...)
	}
	r.device.Prepare(kernels)
}

// close ends the rehearsals and forgets what they left.
func (r *rehearser) close() {
	if r == nil {
		return
	}
	<-r.ready
	r.double.leave()
}

// understudy is the CPU in the guise of another device. It remembers the kernels that it is asked for.
type understudy struct {
	backend.Device // the CPU
	info           backend.Info

	mu      sync.Mutex
	kernels []*ir.Kernel
	onClose []func()
}

func (d *understudy) Info() backend.Info { return d.info }

func (d *understudy) Compile(k *ir.Kernel) (backend.Program, error) {
	d.mu.Lock()
	d.kernels = append(d.kernels, k)
	d.mu.Unlock()
	return d.Device.Compile(k)
}

// OnClose implements backend.CloseHooker: the tensors of the understudy end before it.
func (d *understudy) OnClose(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onClose = append(d.onClose, f)
}

// taken returns the kernels that were asked for since it was called last.
func (d *understudy) taken() []*ir.Kernel {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kernels
	d.kernels = nil
	return k
}

// leave ends the understudy's tensors; the CPU stays open.
func (d *understudy) leave() {
	d.mu.Lock()
	hooks := d.onClose
	d.onClose = nil
	d.mu.Unlock()
	for _, f := range slices.Backward(hooks) {
		f()
	}
}
