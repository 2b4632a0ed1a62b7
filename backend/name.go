package backend

import "strconv"

// Name is a parsed device string: the API and the index.
type Name struct {
	API   string
	Index int
}

// String returns "vulkan:0"; the CPU is "cpu".
func (n Name) String() string {
	if n.API == "cpu" && n.Index == 0 {
		return "cpu"
	}
	return n.API + ":" + strconv.Itoa(n.Index)
}
