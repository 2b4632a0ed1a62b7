package tensor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"codeberg.org/sbinet/npyio/npy"
)

// maxNPYHeader bounds a .npy header: a real one has about a hundred bytes.
const maxNPYHeader = 1 << 16

// npyTypes are the dtypes in NumPy's notation; bfloat16 has none.
var npyTypes = map[DType]string{Bool: "|b1", Uint8: "|u1", Int32: "<i4", Int64: "<i8", Float16: "<f2", Float32: "<f4", Float64: "<f8"}

// WriteNPY writes the tensor in NumPy's .npy format, version 1.0. The tensor must be on the CPU and not require grad.
func (t *Tensor) WriteNPY(w io.Writer) error {
	if err := t.exportable("WriteNPY", "a .npy file"); err != nil {
		return err
	}
	descr := npyTypes[t.dtype]
	if descr == "" {
		return t.wrongDType("WriteNPY", "a dtype that NumPy has")
	}
	data, err := t.bytes()
	if err != nil {
		return err
	}
	shape := ""
	for _, d := range t.shape {
		shape += fmt.Sprintf("%d, ", d)
	}
	if len(t.shape) > 1 {
		shape = strings.TrimSuffix(shape, ", ")
	} else {
		shape = strings.TrimSuffix(shape, " ")
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	// Magic, version and length take 10 bytes; data begin at a multiple of 64.
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	head := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	if _, err := w.Write(append(head, header...)); err != nil {
		return err
	}
	_, err = w.Write(littleEndian(data[:Numel(t.shape)*t.dtype.Size()], t.dtype.Size()))
	return err
}

// littleEndian converts elements between the machine's byte order and the file's, in place.
func littleEndian(data []byte, size int) []byte {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return data
	}
	for i := 0; i+size <= len(data); i += size {
		slices.Reverse(data[i : i+size])
	}
	return data
}

// ReadNPY reads a .npy array of bool, uint8, int32, int64, float16, float32 or float64 as a CPU tensor, in C or Fortran order. A
// file with a wrong magic number, a hostile header, more elements than a tensor has, or too few data is an error;
// memory is taken only for data that are there.
func ReadNPY(r io.Reader) (*Tensor, error) {
	t, err := readNPY(r)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return t, nil
}

func readNPY(r io.Reader) (*Tensor, error) {
	h, err := npyHeader(r)
	if err != nil {
		return nil, err
	}
	dtype := InvalidDType
	for d, name := range npyTypes {
		if strings.TrimLeft(strings.Trim(h.Descr.Type, "'\""), "<|=") == strings.TrimLeft(name, "<|") {
			dtype = d
		}
	}
	if dtype == InvalidDType {
		return nil, fmt.Errorf("dtype %q is not supported; there are little-endian bool, uint8, int32, int64, float16, float32 and float64", h.Descr.Type)
	}
	shape := h.Descr.Shape
	n, err := checkShape(shape)
	if err != nil {
		return nil, err
	}
	want := int64(n) * int64(dtype.Size())
	var buf bytes.Buffer
	got, err := io.CopyN(&buf, r, want) // grows with the data, not with what the header claims
	if err != nil {
		return nil, fmt.Errorf("shape %v of %s needs %d bytes, but the file has %d: %w", shape, dtype, want, got, io.ErrUnexpectedEOF)
	}
	data := littleEndian(buf.Bytes(), dtype.Size())
	if dtype == Bool {
		for i, v := range data {
			if v > 1 {
				data[i] = 1
			}
		}
	}
	if h.Descr.Fortran {
		shape = slices.Clone(shape)
		slices.Reverse(shape)
	}
	e, err := cpuEngine()
	if err != nil {
		return nil, err
	}
	st, err := e.upload(dtype, n, append(data, make([]byte, -len(data)&3)...))
	if err != nil {
		return nil, err
	}
	t := newTensor(st, shape, contiguousStrides(shape), 0, dtype, nil)
	if h.Descr.Fortran {
		dims := make([]int, len(shape))
		for i := range dims {
			dims[i] = len(shape) - 1 - i
		}
		f := t.Permute(dims...)
		defer t.Free()
		return f.copyAs("contiguous", dtype), nil
	}
	return t, nil
}

// npyHeader reads the header, with a bound on its length.
func npyHeader(r io.Reader) (h npy.Header, err error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:10]); err != nil {
		return h, fmt.Errorf("the file is too short for a header: %w", err)
	}
	if string(head[:6]) != "\x93NUMPY" {
		return h, fmt.Errorf("wrong magic number % x, expected that of a .npy file", head[:6])
	}
	pre, length := head[:10], int64(binary.LittleEndian.Uint16(head[8:]))
	if head[6] >= 2 {
		if _, err := io.ReadFull(r, head[10:]); err != nil {
			return h, fmt.Errorf("the file is too short for a header: %w", err)
		}
		pre, length = head[:], int64(binary.LittleEndian.Uint32(head[8:]))
	}
	if length > maxNPYHeader {
		return h, fmt.Errorf("the header claims %d bytes, more than %d", length, maxNPYHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, fmt.Errorf("the header claims %d bytes, but the file ends before: %w", length, err)
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		return h, fmt.Errorf("the header does not end with a newline")
	}
	defer func() { // the parser was not made for hostile files
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed header %q", text)
		}
	}()
	nr, err := npy.NewReader(io.MultiReader(bytes.NewReader(pre), bytes.NewReader(text)))
	if err != nil {
		return h, fmt.Errorf("malformed header: %w", err)
	}
	return nr.Header, nil
}
