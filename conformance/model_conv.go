package conformance

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train/nn"
)

// modelInts reads a number or a tuple of numbers of a printed module, such as "(3, 3)".
func modelInts(text string) ([]int, error) {
	var out []int
	for _, part := range strings.Split(strings.Trim(text, "()"), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("model: %q is no list of integers", text)
		}
		out = append(out, n)
	}
	return out, nil
}

// parseWindowModule builds a convolution or a pooling from what PyTorch prints; nil where the name is of neither.
// Arguments without a name are called "0", "1", ….
func parseWindowModule(name string, args map[string]string) (nn.Module, error) {
	lists := map[string][]int{}
	for _, key := range []string{"0", "1", "kernel_size", "stride", "padding", "output_padding", "dilation", "groups", "output_size"} {
		if text, ok := args[key]; ok && text != "same" && text != "valid" {
			l, err := modelInts(text)
			if err != nil {
				return nil, fmt.Errorf("%w (%s of %s)", err, key, name)
			}
			lists[key] = l
		}
	}
	first := func(key string, def int) int {
		if l := lists[key]; len(l) > 0 {
			return l[0]
		}
		return def
	}
	var opts []nn.Option
	if args["bias"] == "False" {
		opts = append(opts, nn.NoBias())
	}
	conv := tensor.ConvOptions{Stride: lists["stride"], Padding: lists["padding"], Dilation: lists["dilation"], Groups: first("groups", 1), Same: args["padding"] == "same"}
	kernel := nn.Kernel(lists["kernel_size"])
	switch name {
	case "Conv1d":
		return nn.NewConv1d(first("0", 0), first("1", 0), kernel, conv, opts...), nil
	case "Conv2d":
		return nn.NewConv2d(first("0", 0), first("1", 0), kernel, conv, opts...), nil
	case "ConvTranspose2d":
		return nn.NewConvTranspose2d(first("0", 0), first("1", 0), kernel, tensor.ConvTransposeOptions{Stride: conv.Stride, Padding: conv.Padding,
			OutputPadding: lists["output_padding"], Dilation: conv.Dilation, Groups: conv.Groups}, opts...), nil
	case "MaxPool2d":
		return nn.NewMaxPool2d(tensor.MaxPoolOptions{Kernel: kernel, Stride: conv.Stride, Padding: conv.Padding, Dilation: conv.Dilation, CeilMode: args["ceil_mode"] == "True"}), nil
	case "AvgPool2d":
		return nn.NewAvgPool2d(tensor.AvgPoolOptions{Kernel: kernel, Stride: conv.Stride, Padding: conv.Padding, CeilMode: args["ceil_mode"] == "True"}), nil
	case "AdaptiveAvgPool2d":
		return nn.NewAdaptiveAvgPool2d(lists["output_size"]...), nil
	}
	return nil, nil
}
