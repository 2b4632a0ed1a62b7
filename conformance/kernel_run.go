package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/shaders/interp"
	"github.com/anygpu/anygpu/shaders/ir"
)

// guardBytes is how much memory around a kernel's buffer is watched for stores out of bounds.
const guardBytes = 1024

const guardByte = 0xa5

// runKernel runs a kernel on the device on copies of buffers, with sentinels around each, and returns what the buffers hold then.
func (x *run) runKernel(k *ir.Kernel, groups [3]int, buffers [][]byte, params []uint32) ([][]byte, error) {
	p, err := x.dev.Compile(k)
	if err != nil {
		if errors.Is(err, backend.ErrUnsupported) || errors.Is(err, ir.ErrUnsupported) {
			return nil, notSupported("%v", err)
		}
		return nil, err
	}
	defer p.Free()
	align := max(int64(guardBytes), x.info.Limits.BufferOffsetAlign)
	launch := backend.Launch{Program: p, Groups: groups, Params: params}
	var mem []backend.Buffer
	defer func() {
		for _, b := range mem {
			b.Free()
		}
	}()
	for _, data := range buffers {
		b, err := x.dev.Alloc(align + int64(len(data)) + guardBytes)
		if err != nil {
			return nil, err
		}
		mem = append(mem, b)
		filled := bytes.Repeat([]byte{guardByte}, int(b.Size()))
		copy(filled[align:], data)
		if err := b.Write(0, filled); err != nil {
			return nil, err
		}
		launch.Buffers = append(launch.Buffers, backend.Region{Buffer: b, Offset: align, Size: int64(len(data))})
	}
	f, err := x.dev.Submit([]backend.Launch{launch})
	if err != nil {
		return nil, err
	}
	if err := f.Wait(context.Background()); err != nil {
		return nil, err
	}
	out := make([][]byte, len(buffers))
	for i, b := range mem {
		all := make([]byte, b.Size())
		if err := b.Read(0, all); err != nil {
			return nil, err
		}
		end := int(align) + len(buffers[i])
		out[i] = all[align:end]
		for at, v := range all {
			if v != guardByte && (at < int(align) || at >= end) {
				return nil, fmt.Errorf("kernel %s: a store out of bounds: byte %d, counted from the start of buffer %s of %d bytes, was overwritten", k.Name, at-int(align), k.Globals()[i].Name, len(buffers[i]))
			}
		}
	}
	return out, nil
}

// reference runs a kernel with the checking executor on copies of buffers.
func reference(k *ir.Kernel, groups [3]int, buffers [][]byte, params []uint32, written []int) ([][]byte, error) {
	out := make([][]byte, len(buffers))
	for i, b := range buffers {
		out[i] = bytes.Clone(b)
	}
	return out, interp.Check(k, groups, out, params, interp.CheckOptions{Uninit: written})
}

// elementAt returns the value of element i of a buffer.
func elementAt(b []byte, k ir.Kind, i int) float64 {
	var bits uint64
	switch k.Size() {
	case 1:
		bits = uint64(b[i])
	case 2:
		bits = uint64(binary.NativeEndian.Uint16(b[2*i:]))
	case 4:
		bits = uint64(binary.NativeEndian.Uint32(b[4*i:]))
	default:
		bits = binary.NativeEndian.Uint64(b[8*i:])
		if k == ir.I64 && math.Abs(float64(int64(bits))) >= 1<<53 {
			return float64(int64(bits)) // differences in the last bits are found by comparing bytes
		}
	}
	return ir.ConstFloat(k, bits)
}
