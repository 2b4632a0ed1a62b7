package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"sort"
	"strconv"

	"github.com/anygpu/anygpu/tensor"
)

// maxHeader is the largest header that is read, as in the reference implementation.
const maxHeader = 100 << 20

// metadataKey is the header's entry that is no tensor.
const metadataKey = "__metadata__"

// dtypes are safetensors' element types; those without a tensor dtype are known but cannot be loaded.
var dtypes = map[string]struct {
	size  uint64
	dtype tensor.DType
}{
	"BOOL": {1, tensor.Bool}, "U8": {1, tensor.Uint8}, "I32": {4, tensor.Int32}, "I64": {8, tensor.Int64},
	"F16": {2, tensor.Float16}, "BF16": {2, tensor.BFloat16}, "F32": {4, tensor.Float32}, "F64": {8, tensor.Float64},
	"I8": {1, 0}, "I16": {2, 0}, "U16": {2, 0}, "U32": {4, 0}, "U64": {8, 0}, "F8_E5M2": {1, 0}, "F8_E4M3": {1, 0},
}

func dtypeName(d tensor.DType) string {
	for name, t := range dtypes {
		if t.dtype == d {
			return name
		}
	}
	return ""
}

// entry is a tensor of a header.
type entry struct {
	name       string
	dtype      string
	shape      []int
	begin, end uint64
}

// WriteSafetensors writes tensors in the safetensors format, with optional metadata. Tensors may be on any device. The output is a
// function of the values alone.
func WriteSafetensors(w io.Writer, tensors map[string]*tensor.Tensor, metadata map[string]string) error {
	var entries []entry
	for name, t := range tensors {
		if err := t.Err(); err != nil {
			return fmt.Errorf("safetensors: %s: %w", name, err)
		}
		if name == metadataKey {
			return fmt.Errorf("safetensors: a tensor cannot have the name %q", name)
		}
		entries = append(entries, entry{name: name, dtype: dtypeName(t.DType()), shape: t.Shape()})
	}
	// Wide elements first: everything is then aligned.
	sort.Slice(entries, func(i, j int) bool {
		a, b := entries[i], entries[j]
		if x, y := dtypes[a.dtype].size, dtypes[b.dtype].size; x != y {
			return x > y
		}
		return a.name < b.name
	})
	header := &bytes.Buffer{}
	header.WriteByte('{')
	if len(metadata) > 0 {
		m, err := json.Marshal(metadata) // in order of keys
		if err != nil {
			return err
		}
		fmt.Fprintf(header, "%q:%s", metadataKey, m)
	}
	at := uint64(0)
	for i := range entries {
		e := &entries[i]
		e.begin = at
		at += uint64(tensor.Numel(e.shape)) * dtypes[e.dtype].size
		e.end = at
		if header.Len() > 1 {
			header.WriteByte(',')
		}
		name, err := json.Marshal(e.name)
		if err != nil {
			return err
		}
		shape, err := json.Marshal(e.shape)
		if err != nil {
			return err
		}
		fmt.Fprintf(header, `%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, e.dtype, shape, e.begin, e.end)
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	if header.Len() > maxHeader {
		return fmt.Errorf("safetensors: the header has %d bytes; at most %d are allowed", header.Len(), maxHeader)
	}
	if err := binary.Write(w, binary.LittleEndian, uint64(header.Len())); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if _, err := w.Write(header.Bytes()); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for _, e := range entries {
		data, err := hostBytes(tensors[e.name])
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return fmt.Errorf("safetensors: %s: %w", e.name, err)
		}
	}
	return nil
}

// hostBytes copies a tensor's elements from its device.
func hostBytes(t *tensor.Tensor) ([]byte, error) {
	d := t.Detach()
	defer d.Free()
	c := d.CPU()
	if c != d {
		defer c.Free()
	}
	return c.Bytes()
}

// ReadSafetensors reads a whole safetensors file as CPU tensors, and its metadata. Files are hostile until checked: a huge header,
// unknown or repeated names, sizes that contradict dtypes and shapes, overlaps, holes, offsets beyond the end and bytes
// that belong to nothing are errors, and memory is taken only for data that are there.
func ReadSafetensors(r io.Reader) (map[string]*tensor.Tensor, map[string]string, error) {
	tensors, metadata, err := readSafetensors(r)
	if err != nil {
		for _, t := range tensors {
			t.Free()
		}
		return nil, nil, fmt.Errorf("safetensors: %w", err)
	}
	return tensors, metadata, nil
}

func readSafetensors(r io.Reader) (map[string]*tensor.Tensor, map[string]string, error) {
	var length uint64
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return nil, nil, fmt.Errorf("the file ends within the 8 bytes of the header's length: %w", noEOF(err))
	}
	if length > maxHeader {
		return nil, nil, fmt.Errorf("the header claims %d bytes; at most %d are allowed", length, maxHeader)
	}
	text, err := readExactly(r, length)
	if err != nil {
		return nil, nil, fmt.Errorf("header: %w", err)
	}
	entries, metadata, err := parseHeader(text)
	if err != nil {
		return nil, nil, fmt.Errorf("header: %w", err)
	}
	tensors := map[string]*tensor.Tensor{}
	for _, e := range entries {
		data, err := readExactly(r, e.end-e.begin)
		if err != nil {
			return tensors, nil, fmt.Errorf("%s: %w", e.name, err)
		}
		t := tensor.FromBytes(dtypes[e.dtype].dtype, data, e.shape...)
		if err := t.Err(); err != nil {
			return tensors, nil, fmt.Errorf("%s: %w", e.name, err)
		}
		tensors[e.name] = t
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n != 0 {
		return tensors, nil, fmt.Errorf("there are data after the last tensor")
	} else if !errors.Is(err, io.EOF) {
		return tensors, nil, err
	}
	return tensors, metadata, nil
}

// readExactly reads n bytes; memory grows with what is there, not with what the header claims.
func readExactly(r io.Reader, n uint64) ([]byte, error) {
	if n > math.MaxInt64 {
		return nil, fmt.Errorf("%d bytes claimed", n)
	}
	var buf bytes.Buffer
	got, err := io.CopyN(&buf, r, int64(n))
	if err != nil {
		return nil, fmt.Errorf("%d bytes claimed, but the file ends after %d of them: %w", n, got, noEOF(err))
	}
	return buf.Bytes(), nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseHeader returns the tensors in order of their data, which is without overlaps and holes.
func parseHeader(text []byte) ([]entry, map[string]string, error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, nil, fmt.Errorf("it does not start with '{'")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var entries []entry
	var metadata map[string]string
	err := object(dec, func(name string) error {
		if name == metadataKey {
			metadata = map[string]string{}
			return object(dec, func(key string) error {
				v, err := stringToken(dec)
				metadata[key] = v
				return err
			})
		}
		e, err := parseEntry(dec, name)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("something follows the closing brace")
	}
	sort.SliceStable(entries, func(i, j int) bool {
		a, b := entries[i], entries[j]
		if a.begin != b.begin {
			return a.begin < b.begin
		}
		return a.end < b.end
	})
	at := uint64(0)
	for _, e := range entries {
		switch {
		case e.begin < at:
			return nil, nil, fmt.Errorf("%s: its data overlap those before, which end at %d: offsets [%d, %d]", e.name, at, e.begin, e.end)
		case e.begin > at:
			return nil, nil, fmt.Errorf("%s: a hole of %d bytes before its data: offsets [%d, %d]", e.name, e.begin-at, e.begin, e.end)
		}
		at = e.end
	}
	return entries, metadata, nil
}

// parseEntry reads {"dtype", "shape", "data_offsets"} and holds them against one another.
func parseEntry(dec *json.Decoder, name string) (entry, error) {
	e := entry{name: name}
	var shape, offsets []uint64
	seen := 0
	err := object(dec, func(key string) (err error) {
		seen++
		switch key {
		case "dtype":
			e.dtype, err = stringToken(dec)
		case "shape":
			shape, err = numbers(dec)
		case "data_offsets":
			offsets, err = numbers(dec)
		default:
			err = fmt.Errorf("unknown field %q", key)
		}
		return err
	})
	if err != nil {
		return e, fmt.Errorf("%s: %w", name, err)
	}
	d, known := dtypes[e.dtype]
	switch {
	case seen != 3:
		return e, fmt.Errorf("%s: dtype, shape and data_offsets are needed", name)
	case !known:
		return e, fmt.Errorf("%s: unknown dtype %q", name, e.dtype)
	case d.dtype == 0:
		return e, fmt.Errorf("%s: dtype %s is not supported; there are BOOL, U8, I32, I64, F16, BF16, F32 and F64", name, e.dtype)
	case len(offsets) != 2 || offsets[1] < offsets[0]:
		return e, fmt.Errorf("%s: data_offsets %v are not a begin and an end", name, offsets)
	}
	e.begin, e.end = offsets[0], offsets[1]
	size, dims := d.size, []int{}
	for _, n := range shape {
		hi, lo := bits.Mul64(size, n)
		if hi != 0 || n > math.MaxInt32 {
			return e, fmt.Errorf("%s: shape %v is too large", name, shape)
		}
		size = lo
		dims = append(dims, int(n))
	}
	e.shape = dims
	if e.end-e.begin != size {
		return e, fmt.Errorf("%s: shape %v of %s needs %d bytes, but data_offsets [%d, %d] have %d", name, shape, e.dtype, size, e.begin, e.end, e.end-e.begin)
	}
	return e, nil
}

// object reads a JSON object; f reads the value of each key. A repeated key is an error.
func object(dec *json.Decoder, f func(key string) error) error {
	if err := delim(dec, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := stringToken(dec)
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("the name %q appears twice", key)
		}
		seen[key] = true
		if err := f(key); err != nil {
			return err
		}
	}
	return delim(dec, '}')
}

func delim(dec *json.Decoder, want json.Delim) error {
	t, err := dec.Token()
	if err != nil {
		return noEOF(err)
	}
	if t != want {
		return fmt.Errorf("%v where %v is expected", t, want)
	}
	return nil
}

func stringToken(dec *json.Decoder) (string, error) {
	t, err := dec.Token()
	if err != nil {
		return "", noEOF(err)
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%v where a string is expected", t)
	}
	return s, nil
}

// numbers reads an array of integers that are not negative.
func numbers(dec *json.Decoder) ([]uint64, error) {
	if err := delim(dec, '['); err != nil {
		return nil, err
	}
	var out []uint64
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, noEOF(err)
		}
		n, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v where a number is expected", t)
		}
		v, err := strconv.ParseUint(n.String(), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%v where a whole number is expected", n)
		}
		out = append(out, v)
	}
	return out, delim(dec, ']')
}
