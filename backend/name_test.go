package backend

import (
	"errors"
	"testing"
)

func TestParseName(t *testing.T) {
	const want = `; expected a form like "cpu", "gpu" or "vulkan:1"`
	for _, c := range []struct {
		in       string
		name     Name
		hasIndex bool
		err      string
	}{
		{in: "cpu", name: Name{"cpu", 0}},
		{in: "cpu:0", name: Name{"cpu", 0}, hasIndex: true},
		{in: "vulkan", name: Name{"vulkan", 0}},
		{in: "vulkan:12", name: Name{"vulkan", 12}, hasIndex: true},
		{in: "my_NPU:0", name: Name{"my_NPU", 0}, hasIndex: true},
		{in: "opencl:2147483647", name: Name{"opencl", 2147483647}, hasIndex: true},
		{in: "", err: "Device string must not be empty" + want},
		{in: "cuda:01", err: "Invalid device string: 'cuda:01'" + want},
		{in: "cuda:", err: "Invalid device string: 'cuda:'" + want},
		{in: "cuda:-1", err: "Invalid device string: 'cuda:-1'" + want},
		{in: "cuda:1:1", err: "Invalid device string: 'cuda:1:1'" + want},
		{in: ":1", err: "Invalid device string: ':1'" + want},
		{in: "1", err: "Invalid device string: '1'" + want},
		{in: " cpu", err: "Invalid device string: ' cpu'" + want},
		{in: "cpu\n", err: "Invalid device string: 'cpu\n'" + want},
		{in: "cpu:٣", err: "Invalid device string: 'cpu:٣'" + want},
		{in: "gpu2", err: "Invalid device string: 'gpu2'" + want},
		{in: "cuda:2147483648", err: "Could not parse device index '2147483648' in device string 'cuda:2147483648'"},
		{in: "cuda:99999999999999999999", err: "Could not parse device index '99999999999999999999' in device string 'cuda:99999999999999999999'"},
	} {
		n, has, err := ParseName(c.in)
		if c.err != "" {
			var ne *NameError
			if err == nil || err.Error() != c.err || !errors.Is(err, ErrUnknownDevice) || !errors.As(err, &ne) {
				t.Errorf("ParseName(%q) = %v, want the error %q", c.in, err, c.err)
			}
			continue
		}
		if err != nil || n != c.name || has != c.hasIndex {
			t.Errorf("ParseName(%q) = %v, %v, %v, want %v, %v", c.in, n, has, err, c.name, c.hasIndex)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"cpu", "vulkan:1", "cuda:01", "", "a:", "gpu:99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, has, err := ParseName(s)
		if err != nil {
			return
		}
		// What was accepted prints to something equal, and is the whole string.
		full := s
		if !has {
			full += ":0"
		}
		if got := n.String(); got != full && !(got == "cpu" && full == "cpu:0") {
			t.Errorf("ParseName(%q) prints as %q", s, got)
		}
	})
}

func TestNameString(t *testing.T) {
	for n, want := range map[Name]string{{"cpu", 0}: "cpu", {"cpu", 1}: "cpu:1", {"vulkan", 0}: "vulkan:0"} {
		if n.String() != want {
			t.Errorf("%#v.String() = %q, want %q", n, n, want)
		}
	}
}
