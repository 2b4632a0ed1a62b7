package progress_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/progress"
)

// TestEnds waits for the bar of a run that completes, of one that fails, and of one without steps.
func TestEnds(t *testing.T) {
	for _, steps := range [][]int{{1, 5, 10}, {1, 5}, {}} {
		var out bytes.Buffer
		o := progress.New(&out)
		for _, n := range steps {
			if err := o.OnSteps(train.StepInfo{Step: n, Steps: 10, Loss: 0.5}); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.OnEnd(errors.New("stopped")); err != nil {
			t.Error(err)
		}
	}
}
