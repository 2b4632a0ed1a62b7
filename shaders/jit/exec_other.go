//go:build !(linux && amd64)

package jit

import "errors"

type executable struct{}

func (e *executable) entry() uintptr { return 0 }

func call(code, frame uintptr) {}

var errPlatform = errors.New("there is no machine code for this system and processor")

func available() error { return errPlatform }

func newExecutable([]byte) (*executable, error) { return nil, errPlatform }
