package text_test

import (
	"strings"
	"testing"

	"github.com/anygpu/anygpu/train/data/text"
)

func TestGenesis(t *testing.T) {
	if !strings.HasPrefix(text.Genesis, "In the beginning God created the heaven and the earth.\n") || !strings.HasSuffix(text.Genesis, "in Egypt.\n") {
		t.Error("the text does not begin or end as it should")
	}
	if n := strings.Count(text.Genesis, "\n"); n != 1533 || len(text.Genesis) != 196818 {
		t.Errorf("%d lines of %d bytes, want 1533 verses of 196818", n, len(text.Genesis))
	}
	for i := range len(text.Genesis) {
		if c := text.Genesis[i]; c != '\n' && (c < ' ' || c > '~') {
			t.Fatalf("byte %d is %#x, want ASCII", i, c)
		}
	}
}
