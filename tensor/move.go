package tensor

import "github.com/anygpu/anygpu/backend"

var opDetach = register(&OpInfo{Name: "detach", Kind: KindView, Doc: "The same value without its history."})
var opTo = register(&OpInfo{Name: "to", Kind: KindMove, Doc: "The value on another device."})

func (c *call) to(e *engine) *Tensor { return c.fail("", errTodo) }

// To returns the tensor on dev: t itself if it is there, else a copy. It is differentiable.
func (t *Tensor) To(dev backend.Device) *Tensor { return t }

// CPU returns the tensor on the CPU: t itself if it is there, else a copy.
func (t *Tensor) CPU() *Tensor { return t }

// MoveTo moves the tensor to dev in place, with its gradient: t stays the same *Tensor, so that modules and optimizers still see it.
func (t *Tensor) MoveTo(dev backend.Device) error { return errTodo }

// CopyFrom overwrites the tensor's values with u's (broadcast to t's shape and cast to its dtype), in place; u may be on another device.
func (t *Tensor) CopyFrom(u *Tensor) error { return errTodo }

// Clone returns a copy with memory of its own. It is differentiable.
func (t *Tensor) Clone() *Tensor { return t }
