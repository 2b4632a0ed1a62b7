//go:build !amd64 && !arm64

package tensor

// frames returns 0: there are no frame pointers to follow.
func frames(*[maxFrames]uintptr) int { return 0 }
