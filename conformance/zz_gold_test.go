package conformance_test

import (
	"os"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/conformance"
)

func TestGoldQuick(t *testing.T) {
	cases, err := conformance.LoadGolden(os.DirFS("/work/shared/golden/ops"))
	if err != nil {
		t.Fatal(err)
	}
	only := os.Getenv("GOLD")
	eachDevice(t, "g", func(t *testing.T, dev device) {
		n, bad, no := 0, 0, map[string]bool{}
		for _, c := range cases {
			if only != "" && !strings.Contains(c.Name, only) {
				continue
			}
			if !c.Supported() {
				no[c.Op] = true
				continue
			}
			if err := c.Run(dev); err != nil {
				bad++
				t.Error(err)
			} else {
				n++
			}
		}
		t.Logf("passed %d failed %d of %d, unsupported %v", n, bad, len(cases), no)
	})
}
