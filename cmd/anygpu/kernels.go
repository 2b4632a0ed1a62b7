package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/null"
	"github.com/anygpu/anygpu/shaders/clc"
	"github.com/anygpu/anygpu/shaders/ir"
	"github.com/anygpu/anygpu/shaders/spirv"
	"github.com/anygpu/anygpu/tensor"
)

func newKernels() *cobra.Command {
	var op, format, device, dtype string
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "List the operators, or print the kernels that one compiles to",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if op == "" {
				return listOperators(cmd.OutOrStdout())
			}
			return printKernels(cmd.OutOrStdout(), op, format, device, dtype)
		},
	}
	f := cmd.Flags()
	f.StringVar(&op, "op", "", "the operator; without it the operators are listed")
	f.StringVar(&format, "format", "ir", "ir, clc (OpenCL C) or spirv (assembly)")
	f.StringVar(&device, "device", "", "generate for this device; without it for a typical GPU of the format's API")
	f.StringVar(&dtype, "dtype", "float32", "dtype of the operands")
	return cmd
}

func listOperators(w io.Writer) error {
	var sb strings.Builder
	for _, o := range tensor.Ops() {
		doc, _, _ := strings.Cut(o.Doc, "\n")
		fmt.Fprintf(&sb, "%-20s %-12s %s\n", o.Name, o.Kind, doc)
	}
	_, err := io.WriteString(w, sb.String())
	return err
}

// typicalGPU returns capabilities that most GPUs have.
func typicalGPU(api string) ir.Caps {
	c := ir.InterpCaps()
	c.F16Arith = false
	c.MaxInvocations, c.MaxLocal, c.SharedBytes, c.SubgroupSize, c.MaxSubgroups = 1024, [3]int{1024, 1024, 64}, 32<<10, 32, 0
	c.MaxGroups = [3]int{65535, 65535, 65535}
	c.MaxBufferBytes = 1 << 31
	if api == "vulkan" {
		c.MaxSubgroups = 32
		c.MaxLanes, c.NativeMath, c.NativeMath64 = 4, ir.VulkanMath(), ir.VulkanMath()
	} else {
		c.NativeMath, c.NativeMath64 = ir.OpenCLMath(), ir.OpenCLMath()
	}
	return c
}

func printKernels(w io.Writer, name, format, device, dtypeName string) error {
	api := map[string]string{"ir": "vulkan", "spirv": "vulkan", "clc": "opencl"}[format]
	if api == "" {
		return usagef("unknown format %q: ir, clc and spirv are accepted", format)
	}
	op := tensor.LookupOp(name)
	if op == nil {
		return fmt.Errorf("there is no operator %q; 'anygpu kernels' lists them", name)
	}
	dtype, err := tensor.ParseDType(dtypeName)
	if err != nil {
		return usageError{err}
	}
	cfg := null.Config{API: api, Type: backend.DiscreteGPU}
	caps := typicalGPU(api)
	if device != "" {
		info, err := backend.Find(device)
		if err != nil {
			return err
		}
		caps, cfg.API, cfg.Type, cfg.Vendor = info.Caps, info.API, info.Type, info.Vendor
	}
	cfg.Caps = &caps
	kernels, err := kernelsOf(op, cfg, dtype)
	if err != nil {
		return err
	}
	if len(kernels) == 0 {
		fmt.Fprintf(w, "%s runs no kernel: it only describes memory anew\n", name)
	}
	for _, k := range kernels {
		text, err := kernelText(k, format, caps)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

func kernelText(k *ir.Kernel, format string, caps ir.Caps) (string, error) {
	if format == "ir" {
		return k.String(), nil
	}
	low, err := ir.Lower(k, caps)
	if err != nil {
		return "", err
	}
	if format == "clc" {
		return clc.Emit(low, clc.Options{})
	}
	words, err := spirv.Emit(low, spirv.Options{})
	if err != nil {
		return "", err
	}
	return spirv.Text(words), nil
}

// kernelsOf runs the operator on a device that runs nothing and returns the kernels it was asked to run, each once.
func kernelsOf(op *tensor.OpInfo, cfg null.Config, dtype tensor.DType) ([]*ir.Kernel, error) {
	dev := null.New(cfg)
	defer dev.Close()
	in, attrs, err := exampleOperands(op, dtype)
	if err != nil {
		return nil, err
	}
	s := tensor.NewScope(dev)
	for i, t := range in {
		in[i] = s.To(t)
	}
	if err := tensor.Synchronize(dev); err != nil {
		return nil, err
	}
	dev.ResetLaunches()
	for _, out := range op.Call(in, attrs) {
		if err := out.Err(); err != nil {
			return nil, err
		}
	}
	if err := tensor.Synchronize(dev); err != nil {
		return nil, err
	}
	var kernels []*ir.Kernel
	for _, l := range dev.Launches() {
		if !slices.Contains(kernels, l.Kernel) {
			kernels = append(kernels, l.Kernel)
		}
	}
	return kernels, nil
}

// exampleOperands returns operands of the operator's first valid sample, or of a plain shape.
func exampleOperands(op *tensor.OpInfo, dtype tensor.DType) ([]*tensor.Tensor, tensor.Attrs, error) {
	var in []*tensor.Tensor
	for _, s := range op.Samples {
		if s.Err != "" {
			continue
		}
		for _, a := range s.In {
			d := a.DType
			if d == tensor.InvalidDType {
				d = dtype
			}
			in = append(in, tensor.FromFloat64s(a.Data, a.Shape...).Cast(d))
		}
		return in, s.Attrs, nil
	}
	if op.Elementwise() == nil {
		return nil, nil, fmt.Errorf("operator %s has no sample to compile it with", op.Name)
	}
	for range op.Inputs {
		in = append(in, tensor.Ones(tensor.CPU(), dtype, 64, 256))
	}
	return in, nil, nil
}
