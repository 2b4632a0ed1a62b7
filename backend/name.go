package backend

import (
	"regexp"
	"strconv"
)

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

// gpuName is the device string's word for the best GPU of any API; no driver can be called so.
const gpuName = "gpu"

var (
	nameGrammar = regexp.MustCompile(`\A([a-zA-Z_]+)(?::([1-9][0-9]*|0))?\z`)
	apiGrammar  = regexp.MustCompile(`\A[a-zA-Z_]+\z`)
)

// ParseName parses a device string by PyTorch's grammar, letters and underscores with an optional colon and decimal
// index: "cpu", "vulkan:1", "gpu". hasIndex tells "vulkan:0" from "vulkan". It checks the form only; whether there is
// such a device is for [Open] to say. The error is a [*NameError].
func ParseName(s string) (n Name, hasIndex bool, err error) {
	if s == "" {
		return Name{}, false, &NameError{}
	}
	m := nameGrammar.FindStringSubmatch(s)
	if m == nil {
		return Name{}, false, &NameError{Device: s}
	}
	if m[2] == "" {
		return Name{API: m[1]}, false, nil
	}
	// 31 bits, so that a name is good or bad alike on every platform.
	i, err := strconv.ParseInt(m[2], 10, 32)
	if err != nil {
		return Name{}, false, &NameError{Device: s, Index: m[2]}
	}
	return Name{API: m[1], Index: int(i)}, true, nil
}
