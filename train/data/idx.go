package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// IDX is an array of bytes read from an IDX file, the format of MNIST and its relatives
// (http://yann.lecun.com/exdb/mnist: two zero bytes, a type byte, the number of dimensions, big-endian uint32 sizes, data).
type IDX struct {
	Shape []int
	Data  []byte // row-major, unsigned bytes
}

const (
	idxUnsignedByte = 0x08
	idxMaxDims      = 8
	idxMaxBytes     = 4 << 30 // far above any dataset of this format
	idxChunk        = 1 << 20
)

// ReadIDXFile reads an IDX file of unsigned bytes, plain or gzip-compressed.
func ReadIDXFile(path string) (*IDX, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("idx: %w", err)
	}
	defer f.Close()
	a, err := ReadIDX(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// ReadIDX reads an IDX array of unsigned bytes, plain or gzip-compressed. Memory grows with the data that is really
// there, so that a header which promises more than the file holds costs nothing.
func ReadIDX(r io.Reader) (*IDX, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	if head, err := br.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		zr, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("idx: bad gzip data: %w", err)
		}
		defer zr.Close()
		br = bufio.NewReaderSize(zr, 1<<16)
	}
	var magic [4]byte
	if _, err := io.ReadFull(br, magic[:]); err != nil {
		return nil, fmt.Errorf("idx: file ends within the 4-byte magic number: %w", noEOF(err))
	}
	if magic[0] != 0 || magic[1] != 0 {
		return nil, fmt.Errorf("idx: wrong magic number %#08x: an IDX file starts with two zero bytes", binary.BigEndian.Uint32(magic[:]))
	}
	if magic[2] != idxUnsignedByte {
		return nil, fmt.Errorf("idx: wrong magic number %#08x: element type %#02x, only unsigned bytes (0x08) are accepted", binary.BigEndian.Uint32(magic[:]), magic[2])
	}
	dims := int(magic[3])
	if dims < 1 || dims > idxMaxDims {
		return nil, fmt.Errorf("idx: wrong magic number %#08x: %d dimensions, 1 to %d are accepted", binary.BigEndian.Uint32(magic[:]), dims, idxMaxDims)
	}
	a := &IDX{Shape: make([]int, dims)}
	total := int64(1)
	for i := range a.Shape {
		var size [4]byte
		if _, err := io.ReadFull(br, size[:]); err != nil {
			return nil, fmt.Errorf("idx: file ends within the header, at dimension %d of %d: %w", i, dims, noEOF(err))
		}
		n := int64(binary.BigEndian.Uint32(size[:]))
		a.Shape[i] = int(n)
		if n != 0 && total > idxMaxBytes/n {
			return nil, fmt.Errorf("idx: header promises more than %d bytes (dimensions %v so far); the file is damaged or not an IDX file", int64(idxMaxBytes), a.Shape[:i+1])
		}
		total *= n
	}
	var buf bytes.Buffer
	buf.Grow(int(min(total, idxChunk)))
	n, err := io.Copy(&buf, io.LimitReader(br, total))
	if err != nil {
		return nil, fmt.Errorf("idx: after %d of %d bytes of data: %w", n, total, noEOF(err))
	}
	if n < total {
		return nil, fmt.Errorf("idx: header %v promises %d bytes of data, but the file ends after %d", a.Shape, total, n)
	}
	if _, err := br.ReadByte(); err == nil {
		return nil, fmt.Errorf("idx: data goes on after the %d bytes that the header %v promises", total, a.Shape)
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("idx: after the data: %w", err)
	}
	a.Data = buf.Bytes()
	return a, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
