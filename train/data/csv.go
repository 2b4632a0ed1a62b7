package data

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/anygpu/anygpu/tensor"
)

// Table is numbers in named columns.
type Table struct {
	Columns []string
	Values  []float32 // row-major
}

// CSVOptions says how a CSV file is read.
type CSVOptions struct {
	Comma    rune // ',' if 0
	NoHeader bool // the first line has values; columns are then named "0", "1", …
	MaxRows  int  // more rows are an error; 100 million if 0
}

// ReadCSVFile reads a CSV file of numbers.
func ReadCSVFile(path string, o CSVOptions) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	defer f.Close()
	t, err := ReadCSV(f, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// ReadCSV reads a table of finite numbers. Errors name the line and the column.
func ReadCSV(r io.Reader, o CSVOptions) (*Table, error) {
	cr := csv.NewReader(r)
	cr.ReuseRecord, cr.TrimLeadingSpace = true, true
	if o.Comma != 0 {
		cr.Comma = o.Comma
	}
	most := o.MaxRows
	if most == 0 {
		most = 100_000_000
	}
	t := &Table{}
	for rows := 0; ; {
		rec, err := cr.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("csv: %w", err) // names the line
		}
		line, _ := cr.FieldPos(0)
		if t.Columns == nil {
			for i, name := range rec {
				if name = strings.TrimSpace(name); o.NoHeader {
					name = strconv.Itoa(i)
				}
				if slices.Contains(t.Columns, name) {
					return nil, fmt.Errorf("csv: line %d: the column %q appears twice", line, name)
				}
				t.Columns = append(t.Columns, strings.Clone(name))
			}
			if !o.NoHeader {
				continue
			}
		}
		if rows++; rows > most {
			return nil, fmt.Errorf("csv: line %d: there are more than %d rows", line, most)
		}
		for i, text := range rec {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("csv: line %d, column %q: %q is not a finite number", line, t.Columns[i], text)
			}
			t.Values = append(t.Values, float32(v))
		}
	}
	if len(t.Values) == 0 {
		return nil, fmt.Errorf("csv: there are no rows")
	}
	return t, nil
}

// Rows returns the number of rows.
func (t *Table) Rows() int { return len(t.Values) / max(len(t.Columns), 1) }

// split separates the named columns from the others.
func (t *Table) split(names []string) (x, y []float32, err error) {
	target := make([]int, len(t.Columns)) // 1 + place among names
	for i, name := range names {
		at := slices.Index(t.Columns, name)
		if at < 0 || target[at] != 0 {
			return nil, nil, fmt.Errorf("data: target column %q is not there, or given twice; there are %q", name, t.Columns)
		}
		target[at] = i + 1
	}
	for row := range t.Rows() {
		ys := make([]float32, len(names))
		for i, at := range target {
			if v := t.Values[row*len(t.Columns)+i]; at == 0 {
				x = append(x, v)
			} else {
				ys[at-1] = v
			}
		}
		y = append(y, ys...)
	}
	return x, y, nil
}

// Tensors returns the target columns [rows, targets], in the order of their names, and all others [rows, features], on the CPU, for
// regression.
func (t *Table) Tensors(targets ...string) (x, y *tensor.Tensor, err error) {
	xs, ys, err := t.split(targets)
	if err != nil {
		return nil, nil, err
	}
	return tensor.FromFloat32s(xs, t.Rows(), len(t.Columns)-len(targets)), tensor.FromFloat32s(ys, t.Rows(), len(targets)), nil
}

// Dataset returns a dataset whose labels are the whole numbers 0 to classes-1 of a column, and whose features are the others.
func (t *Table) Dataset(target string, classes int) (*Memory, error) {
	x, y, err := t.split([]string{target})
	if err != nil {
		return nil, err
	}
	labels := make([]int64, len(y))
	for i, v := range y {
		if labels[i] = int64(v); float32(labels[i]) != v {
			return nil, fmt.Errorf("data: label of row %d is %v; it must be a whole number", i, v)
		}
	}
	return FromSlices(x, []int{len(t.Columns) - 1}, labels, classes)
}
