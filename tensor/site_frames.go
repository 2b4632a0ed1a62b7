//go:build amd64 || arm64

package tensor

// frames fills pcs with the return addresses on the stack, from that of its caller's caller on, and returns how many there are. The
// compiler keeps frame pointers on these architectures.
//
//go:noescape
func frames(pcs *[maxFrames]uintptr) int
