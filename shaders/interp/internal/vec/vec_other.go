//go:build !amd64

package vec

var (
	sets []*set
	best *set
)
