package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/anygpu/anygpu/train/nn"
)

var (
	modelLine = regexp.MustCompile(`^\s*\(\d+\): (\w+)\((.*)\)$`)
	modelArg  = regexp.MustCompile(`(?:(\w+)=)?('[^']*'|\([^)]*\)|[^,\s]+)`)
)

// parseModel builds the model that PyTorch prints as text: a Sequential of modules that package nn has.
func parseModel(text string) (*nn.Sequential, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) < 3 || lines[0] != "Sequential(" || lines[len(lines)-1] != ")" {
		return nil, &NotSupportedError{"model " + strings.SplitN(text, "(", 2)[0]}
	}
	var modules []nn.Module
	for _, line := range lines[1 : len(lines)-1] {
		m := modelLine.FindStringSubmatch(line)
		if m == nil {
			return nil, &NotSupportedError{"module " + strings.TrimSpace(line)}
		}
		args := map[string]string{}
		for i, a := range modelArg.FindAllStringSubmatch(m[2], -1) {
			if a[1] == "" {
				a[1] = strconv.Itoa(i)
			}
			args[a[1]] = strings.Trim(a[2], "' ")
		}
		mod, err := parseModule(m[1], args)
		if err != nil {
			return nil, err
		}
		modules = append(modules, mod)
	}
	return nn.NewSequential(modules...), nil
}

func parseModule(name string, args map[string]string) (nn.Module, error) {
	switch name {
	case "Flatten":
		if args["start_dim"] == "1" && args["end_dim"] == "-1" {
			return nn.NewFlatten(), nil
		}
	case "ReLU":
		return nn.NewReLU(), nil
	case "Tanh":
		return nn.NewTanh(), nil
	case "Sigmoid":
		return nn.NewSigmoid(), nil
	case "GELU":
		if args["approximate"] == "none" {
			return nn.NewGELU(), nil
		}
	case "Linear":
		in, err := strconv.Atoi(args["in_features"])
		if err != nil {
			return nil, fmt.Errorf("model: Linear: in_features: %w", err)
		}
		out, err := strconv.Atoi(args["out_features"])
		if err != nil {
			return nil, fmt.Errorf("model: Linear: out_features: %w", err)
		}
		if args["bias"] == "False" {
			return nn.NewLinear(in, out, nn.NoBias()), nil
		}
		return nn.NewLinear(in, out), nil
	}
	if m, err := parseWindowModule(name, args); m != nil || err != nil {
		return m, err
	}
	if m, err := parseNormModule(name, args); m != nil || err != nil {
		return m, err
	}
	return nil, &NotSupportedError{fmt.Sprintf("module %s with %v", name, args)}
}
