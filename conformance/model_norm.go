package conformance

import (
	"fmt"
	"strconv"

	"github.com/anygpu/anygpu/train/nn"
)

// parseNormModule builds a normalisation or an embedding from what PyTorch prints; nil where the name is of neither.
func parseNormModule(name string, args map[string]string) (nn.Module, error) {
	var opts []nn.NormOption
	for key, option := range map[string]func(float64) nn.NormOption{"eps": nn.WithEps, "momentum": nn.WithMomentum} {
		if text, ok := args[key]; ok {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("model: %s: %s: %w", name, key, err)
			}
			opts = append(opts, option(v))
		}
	}
	if args["affine"] == "False" || args["elementwise_affine"] == "False" {
		opts = append(opts, nn.NoAffine())
	}
	if args["track_running_stats"] == "False" {
		opts = append(opts, nn.NoRunningStats())
	}
	var sizes []int
	for _, key := range []string{"0", "1"} {
		if text, ok := args[key]; ok {
			l, err := modelInts(text)
			if err != nil || len(l) == 0 {
				return nil, fmt.Errorf("model: %s: argument %s is %q", name, key, text)
			}
			if name == "LayerNorm" {
				return nn.NewLayerNorm(l, opts...), nil
			}
			sizes = append(sizes, l[0])
		}
	}
	switch {
	case name == "BatchNorm1d" && len(sizes) == 1:
		return nn.NewBatchNorm1d(sizes[0], opts...), nil
	case name == "BatchNorm2d" && len(sizes) == 1:
		return nn.NewBatchNorm2d(sizes[0], opts...), nil
	case name == "GroupNorm" && len(sizes) == 2:
		return nn.NewGroupNorm(sizes[0], sizes[1], opts...), nil
	case name == "Embedding" && len(sizes) == 2:
		return nn.NewEmbedding(sizes[0], sizes[1]), nil
	}
	return nil, nil
}
