package data_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/train/data"
)

func TestPairs(t *testing.T) {
	table, err := data.ReadCSV(strings.NewReader("a,price,b,rent\n1,10,2,0.5\n3,30,4,1.5\n5,50,6,2.5\n"), data.CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := table.Pairs("rent", "price")
	if err != nil || set.Len() != 3 {
		t.Fatalf("%d samples, %v", set.Len(), err)
	}
	if s, err := set.At(1); err != nil || fmt.Sprint(s) != "{[3 4] [1.5 30]}" {
		t.Errorf("sample %v, %v", s, err)
	}
	if _, err := set.At(3); err == nil {
		t.Error("sample 3 of 3 is there")
	}
	var got []string
	for b, err := range data.NewLoaderOf(set, data.LoaderConfig{BatchSize: 2}, data.CollatePairs).Epoch(0) {
		if err != nil {
			t.Fatal(err)
		}
		x, _ := b.X.Float32s()
		y, _ := b.Y.Float32s()
		got = append(got, fmt.Sprint(b.X.Shape(), x, b.Y.Shape(), y, b.Len()))
	}
	if want := "[[2 2] [1 2 3 4] [2 2] [0.5 10 1.5 30] 2 [1 2] [5 6] [1 2] [2.5 50] 1]"; fmt.Sprint(got) != want {
		t.Errorf("batches %v, want %s", got, want)
	}
	for want, targets := range map[string][]string{"0 of 4 columns": {}, "4 of 4 columns": {"a", "b", "price", "rent"}, `"c" is not there`: {"c"}} {
		if _, err := table.Pairs(targets...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", targets, err, want)
		}
	}
	if _, err := data.CollatePairs([]data.Pair{{X: []float32{1}, Y: []float32{1}}, {X: []float32{1, 2}, Y: []float32{1}}}); err == nil || !strings.Contains(err.Error(), "sample 1 of the batch has 2 features") {
		t.Errorf("error %v", err)
	}
	if _, err := data.CollatePairs(nil); err == nil {
		t.Error("a batch of nothing was made")
	}
}
