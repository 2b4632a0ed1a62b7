package cpu

import (
	"fmt"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/lib"
)

// Override returns a native program for a matrix product, a convolution or a kernel over windows of images, and nil for other kernels.
func (d *Device) Override(k *ir.Kernel) (backend.Program, error) {
	d.mu.Lock()
	err := d.check()
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if k == nil {
		return nil, nil
	}
	var run native
	switch spec := k.Template.(type) {
	case *lib.MatMul:
		run, err = newMatMul(spec, d.pool, d)
	case *lib.Conv:
		run = newConv(spec, d.pool)
	case *lib.Attention:
		run = newAttention(spec, d)
	case *lib.Window:
		run = newWindow(spec, d.pool)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: kernel %s: %w", d.info, k.Name, err)
	}
	if run == nil {
		return nil, nil
	}
	return &program{d: d, kernel: k, globals: k.Globals(), run: func(_ [3]int, buffers [][]byte, params []uint32) error {
		if err := run(buffers, params); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		return nil
	}}, nil
}
