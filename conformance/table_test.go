package conformance_test

import (
	"os"
	"slices"
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

// incompleteRows are the rows that lack something, each with why. A row that need not stay is to be taken off.
var incompleteRows = map[string]bool{
	// The precision suite holds casts against roundings of its own, over all values.
	"cast": true,
	// There are no operands of one tensor that these reject.
	"clone": true, "contiguous": true, "squeeze": true, "any": true, "all": true, "prod": true, "gelu": true,
	// Parts of other operators, which check the operands.
	"gather_grad": true, "index_select_grad": true, "nll": true, "addmm": true,
	// They only name methods in errors and profiles; the tests of tensor, amp and optim have what they do.
	"from_slice": true, "full": true, "total_norm": true, "update": true,
	// A composition with random numbers: the random suite has its stream, train/nn its test.
	"dropout": true,
}

// TestRowsAreComplete fails for a row without documentation, and for one without reference, samples or error samples that is
// not in the list of rows that are known to lack them.
func TestRowsAreComplete(t *testing.T) {
	for _, o := range tensor.Ops() {
		lacks := conformance.Lacks(o)
		if slices.Contains(lacks, "doc") {
			t.Errorf("%s has no documentation", o.Name)
		}
		switch known := incompleteRows[o.Name]; {
		case len(lacks) > 0 && !known:
			t.Errorf("%s lacks %v", o.Name, lacks)
		case len(lacks) == 0 && known:
			t.Logf("%s is complete: take it off incompleteRows", o.Name)
		}
	}
}
