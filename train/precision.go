package train

import (
	"encoding/json"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/checkpoint"
)

// Precision is mixed precision as a Loop sees it: amp.ForLoop makes one of a gradient scaler and the optimizer. Its JSON is its state in
// checkpoints.
type Precision interface {
	Autocast(s *tensor.Scope, f func())
	Scale(loss *tensor.Tensor) *tensor.Tensor
	Unscale() error
	// Step steps the optimizer unless a gradient overflowed.
	Step() (skipped bool, err error)
	Update() error
	json.Marshaler
	json.Unmarshaler
}

// precisionState is a Precision as a part of a checkpoint.
type precisionState struct{ p Precision }

func (s precisionState) StateDict() json.RawMessage {
	b, err := s.p.MarshalJSON()
	if err != nil {
		return nil // null, which LoadStateDict refuses
	}
	return b
}

func (s precisionState) LoadStateDict(b json.RawMessage) error { return s.p.UnmarshalJSON(b) }

func (r *run[B]) precisionState() checkpoint.Stateful {
	return checkpoint.Of[json.RawMessage](precisionState{r.Precision})
}
