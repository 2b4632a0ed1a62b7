package conformance_test

import (
	"os"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/conformance"
	"github.com/anygpu/anygpu/tensor"
)

// TestOperatorReference fails when docs/operators.md is not what the operator table gives.
func TestOperatorReference(t *testing.T) {
	got, err := os.ReadFile("../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != conformance.OperatorReference() {
		t.Error("docs/operators.md is stale; run: go run ./conformance/internal/gendocs")
	}
}

// TestRowsAreComplete fails for a row without documentation, a reference, samples or error samples. There are no exceptions: a
// row that cannot fail, or only names a method, says so with its reason.
func TestRowsAreComplete(t *testing.T) {
	for _, o := range tensor.Ops() {
		if lacks := conformance.Lacks(o); len(lacks) > 0 {
			t.Errorf("%s lacks %s", o.Name, strings.Join(lacks, ", "))
		}
	}
}

// TestLacks holds what counts as complete.
func TestLacks(t *testing.T) {
	call := func(in []*tensor.Tensor, _ tensor.Attrs) []*tensor.Tensor { return in }
	ref := func(in []tensor.Array, _ tensor.Attrs) ([]tensor.Array, error) { return in, nil }
	good, bad := tensor.Sample{Name: "good"}, tensor.Sample{Name: "bad", Err: "bad"}
	for _, tc := range []struct {
		name string
		op   tensor.OpInfo
		want string
	}{
		{"complete", tensor.OpInfo{Doc: "d", Call: call, Ref: ref, Samples: []tensor.Sample{good, bad}}, ""},
		{"nothing can be wrong", tensor.OpInfo{Doc: "d", Call: call, Ref: ref, Samples: []tensor.Sample{good}, NoErrors: "r"}, ""},
		{"no errors", tensor.OpInfo{Doc: "d", Call: call, Ref: ref, Samples: []tensor.Sample{good}}, "error samples or the reason"},
		{"errors and a reason", tensor.OpInfo{Doc: "d", Call: call, Ref: ref, Samples: []tensor.Sample{good, bad}, NoErrors: "r"}, "either error samples or a reason"},
		{"random without reference", tensor.OpInfo{Doc: "d", Kind: tensor.KindRandom, Call: call, Samples: []tensor.Sample{good, bad}}, "reference"},
		{"no samples", tensor.OpInfo{Doc: "d", Call: call, Ref: ref}, "samples"},
		{"no call", tensor.OpInfo{Doc: "d", Ref: ref, Samples: []tensor.Sample{good, bad}}, "call"},
		{"a name", tensor.OpInfo{Doc: "d", NamesOnly: "r"}, ""},
		{"a name with a call", tensor.OpInfo{Doc: "d", NamesOnly: "r", Call: call}, "only a name"},
		{"no documentation", tensor.OpInfo{NamesOnly: "r"}, "doc"},
	} {
		got := strings.Join(conformance.Lacks(&tc.op), ", ")
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: lacks %q, want %q", tc.name, got, tc.want)
		}
	}
}
