package tensor

// Failed returns a tensor that carries an error, for layers of one's own that check more than their operators do: op is the layer's
// name, operands what is wrong with which others. It belongs to the scope of the first operand, and names the place of the
// caller outside the library. If an operand has failed already, its error stays.
func Failed(op string, err error, operands ...*Tensor) *Tensor {
	var s *Scope
	for _, t := range operands {
		if t == nil {
			continue
		}
		if s == nil {
			s = t.scope
		}
		if t.err != nil {
			return failed(t.err, s)
		}
	}
	e := &Error{Op: op, Err: err, Operands: describeOperands(nil, operands)}
	e.File, e.Line = here(1).resolve()
	return failed(trap(e), s)
}
