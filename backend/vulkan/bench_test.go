//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

package vulkan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anygpu/anygpu/backend"
)

// benchDevice opens the first device that works.
func benchDevice(b *testing.B) *device {
	infos, err := theDriver.Devices()
	if err != nil {
		b.Skip(err)
	}
	for _, info := range infos {
		if dev, err := theDriver.Open(info.Index); err == nil {
			b.Cleanup(func() { dev.Close() })
			b.Log(info.Name)
			return dev.(*device)
		}
	}
	b.Skip("no device can be opened")
	return nil
}

// BenchmarkDispatch submits small dependent launches and waits: the time is per launch.
func BenchmarkDispatch(b *testing.B) {
	for _, size := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			d := benchDevice(b)
			buf := alloc(b, d, 256)
			batch := slices.Repeat([]backend.Launch{launch(compile(b, d, affine(b)), 64, []uint32{64, 3, 1}, buf)}, size)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%size != 0 {
					continue
				}
				if err := submit(b, d, batch...).Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSubmit is the host's share of a launch: checking, recording and submitting it in a batch of 100. The waits are not counted.
func BenchmarkSubmit(b *testing.B) {
	const size = 100
	d := benchDevice(b)
	buf := alloc(b, d, 256)
	batch := slices.Repeat([]backend.Launch{launch(compile(b, d, affine(b)), 64, []uint32{64, 3, 1}, buf)}, size)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += size {
		f := submit(b, d, batch...)
		b.StopTimer()
		if err := f.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkTransfer writes and reads 64 MiB.
func BenchmarkTransfer(b *testing.B) {
	data := make([]byte, 64<<20)
	for _, staged := range []bool{false, true} {
		for _, op := range []string{"write", "read"} {
			b.Run(fmt.Sprintf("%s staged=%v", op, staged), func(b *testing.B) {
				d := benchDevice(b)
				buf := alloc(b, d, int64(len(data)))
				if staged {
					hide(buf)
				}
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					var err error
					if op == "write" {
						err = buf.Write(0, data)
					} else {
						err = buf.Read(0, data)
					}
					if err == nil {
						err = d.Synchronize(b.Context())
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
