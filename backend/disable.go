package backend

import (
	"fmt"
	"os"
	"strings"
)

// EnvDisable is the environment variable with the optional features that drivers are to leave unused, with commas between
// them, for a driver that gets one of them wrong. Kernels then take the paths of devices that lack the feature. [Open] finds wrong
// paths by itself, with small kernels that it runs once for each version of a driver ([Restricter]).
//
//	f16       float16 arithmetic and 16-bit loads and stores
//	f16arith  float16 arithmetic alone
//	u8        8-bit loads and stores
//	i64       64-bit integers
//	f64       double precision
//	subgroup  exchanges between the invocations of a subgroup
//	jit       machine code for kernels on the CPU device, which interprets them then
const EnvDisable = "ANYGPU_DISABLE"

var features = []struct {
	name string
	off  func(i *Info) (had bool)
}{
	{"f16", func(i *Info) bool {
		arith := drop(&i.Caps.F16Arith)
		return drop(&i.Caps.F16Storage) || arith
	}},
	{"f16arith", func(i *Info) bool { return drop(&i.Caps.F16Arith) }},
	{"u8", func(i *Info) bool { return drop(&i.Caps.U8Storage) }},
	{"i64", func(i *Info) bool { return drop(&i.Caps.I64) }},
	{"f64", func(i *Info) bool { return drop(&i.Caps.F64) }},
	{"subgroup", func(i *Info) bool { return drop(&i.Caps.MaxSubgroups) }},
	{"jit", func(*Info) bool { return false }}, // the CPU device asks for it (see Disabled)
}

// Disabled reports whether the environment variable [EnvDisable] names a feature.
func Disabled(feature string) bool {
	for name := range strings.SplitSeq(os.Getenv(EnvDisable), ",") {
		if strings.EqualFold(strings.TrimSpace(name), feature) {
			return true
		}
	}
	return false
}

// drop makes a capability zero and reports whether it was not.
func drop[T comparable](v *T) bool {
	var zero T
	had := *v != zero
	*v = zero
	return had
}

// Disable takes the features that the environment variable [EnvDisable] names out of a device's description, and notes it there. Drivers
// call it when they describe a device whose kernels are compiled for Info.Caps.
func Disable(info *Info) {
	for name := range strings.SplitSeq(os.Getenv(EnvDisable), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name == "" {
			continue
		}
		known := false
		var names []string
		for _, f := range features {
			names = append(names, f.name)
			if f.name != name {
				continue
			}
			known = true
			if f.off(info) {
				info.Notes = append(info.Notes, fmt.Sprintf("%s was switched off by %s", name, EnvDisable))
			}
		}
		if !known {
			info.Notes = append(info.Notes, fmt.Sprintf("%s names %q, which is no feature; the features are %s", EnvDisable, name, strings.Join(names, ", ")))
		}
	}
}
