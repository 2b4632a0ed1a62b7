//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"sync"
	"testing"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/spirv"
)

func TestTexelRoom(t *testing.T) {
	for _, tt := range []struct{ size, most, want int64 }{
		{4, 1 << 30, 32}, {12, 1 << 30, 32}, {20, 1 << 30, 48}, {48, 1 << 30, 48}, {4096, 1 << 30, 4112}, {4092, 1 << 30, 4112}, {4096, 4096, 4096}, {5000, 1 << 30, 5008},
	} {
		if got := texelRoom(tt.size, tt.most); got != tt.want {
			t.Errorf("%d bytes, at most %d: got %d, want %d", tt.size, tt.most, got, tt.want)
		}
	}
}

// TestViews: a region has one view for each format, and a buffer's views do not grow without end, whatever regions are asked for.
func TestViews(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		if d.opts.Texels == 0 {
			t.Skip("the device does not read through texel buffers")
		}
		const n = 1 << 16
		align := d.info.Limits.BufferOffsetAlign
		b := alloc(t, d, n*align)
		p := compile(t, d, affine(t))
		write(t, b, iota(n))
		d.mu.Lock()
		unlock := sync.OnceFunc(d.mu.Unlock)
		defer unlock()
		for i := range int64(maxViews + 100) {
			r := backend.Region{Buffer: b, Offset: i * align, Size: 4}
			v, err := d.view(r, spirv.Texel{Kind: ir.F32, Lanes: 4})
			if err != nil {
				t.Fatal(err)
			}
			if again, err := d.view(r, spirv.Texel{Kind: ir.F32, Lanes: 4}); err != nil || again != v {
				t.Errorf("region %d has view %v, then %v (%v)", i, v, again, err)
			}
			if other, err := d.view(r, spirv.Texel{Kind: ir.U32, Lanes: 1}); err != nil || other == v {
				t.Errorf("region %d has view %v for two formats (%v)", i, v, err)
			}
			if len(b.memory.views) > maxViews {
				t.Fatalf("%d views of a buffer", len(b.memory.views))
			}
		}
		unlock()
		// The views that were dropped go with the next submission.
		submit(t, d, launch(p, 64, []uint32{64, 2, 1}, b))
		b.Free()
	})
}
