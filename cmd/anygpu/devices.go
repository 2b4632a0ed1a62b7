package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anygpu/anygpu/backend"
)

// deviceReport is a device as 'anygpu devices --json' prints it.
type deviceReport struct {
	Device          string   `json:"device"`
	Name            string   `json:"name"`
	Vendor          string   `json:"vendor"`
	Driver          string   `json:"driver"`
	DriverVersion   string   `json:"driver_version"`
	APIVersion      string   `json:"api_version"`
	Type            string   `json:"type"`
	UUID            string   `json:"uuid,omitempty"`
	MemoryBytes     int64    `json:"memory_bytes"`
	MaxAllocBytes   int64    `json:"max_alloc_bytes"`
	MaxBufferBytes  int64    `json:"max_buffer_bytes"`
	MaxAllocs       int      `json:"max_allocs"`
	FP16Storage     bool     `json:"fp16_storage"`
	FP16Arithmetic  bool     `json:"fp16_arithmetic"`
	FP64            bool     `json:"fp64"`
	Int64           bool     `json:"int64"`
	WorkgroupSize   int      `json:"workgroup_size"`
	WorkgroupMemory int      `json:"workgroup_memory_bytes"`
	MaxBuffers      int      `json:"max_buffers"`
	SubgroupSize    int      `json:"subgroup_size"`
	Default         bool     `json:"default"`
	Why             string   `json:"why"`
	Problem         string   `json:"problem,omitempty"`
	Notes           []string `json:"notes,omitempty"`
}

type devicesReport struct {
	Devices   []deviceReport `json:"devices"`
	Drivers   []string       `json:"drivers"`
	Diagnosis []string       `json:"diagnosis"` // what was looked for and found
}

func newDevices() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices, and say what was looked for where none was found",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := reportDevices()
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(r)
			}
			return printDevices(cmd.OutOrStdout(), r)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// nullAPI is the driver that runs nothing; 'anygpu kernels' generates code with it, and people need not see it.
const nullAPI = "null"

func realDevices() []backend.Info {
	var out []backend.Info
	for _, i := range backend.List() {
		if i.API != nullAPI {
			out = append(out, i)
		}
	}
	return out
}

func reportDevices() devicesReport {
	r := devicesReport{Diagnosis: backend.Diagnose()}
	for _, d := range backend.Drivers() {
		if d != nullAPI {
			r.Drivers = append(r.Drivers, d)
		}
	}
	def := backend.DefaultName()
	for _, i := range realDevices() {
		d := deviceReport{
			Device: i.String(), Name: i.Name, Vendor: i.Vendor, Driver: i.Driver, DriverVersion: i.DriverVersion, APIVersion: i.APIVersion,
			Type: i.Type.String(), MemoryBytes: i.Memory, MaxAllocBytes: i.Limits.MaxAllocBytes, MaxBufferBytes: i.Caps.MaxBufferBytes,
			MaxAllocs: i.Limits.MaxAllocs, FP16Storage: i.Caps.F16Storage, FP16Arithmetic: i.Caps.F16Arith, FP64: i.Caps.F64, Int64: i.Caps.I64,
			WorkgroupSize: i.Caps.MaxInvocations, WorkgroupMemory: i.Caps.SharedBytes, MaxBuffers: i.Caps.MaxBuffers, SubgroupSize: i.Caps.SubgroupSize,
			Default: i.String() == def, Why: backend.Why(i), Problem: i.Problem, Notes: i.Notes,
		}
		if i.UUID != [16]byte{} {
			d.UUID = hex.EncodeToString(i.UUID[:])
		}
		r.Devices = append(r.Devices, d)
	}
	return r
}

func printDevices(w io.Writer, r devicesReport) error {
	var sb strings.Builder
	found := map[string]bool{}
	for _, d := range r.Devices {
		api, _, _ := strings.Cut(d.Device, ":")
		found[api] = true
		mark := " "
		if d.Default {
			mark = "*"
		}
		fmt.Fprintf(&sb, "%s %-10s %s\n", mark, d.Device, d.Name)
		line := func(label, format string, args ...any) {
			fmt.Fprintf(&sb, "    %-10s %s\n", label, fmt.Sprintf(format, args...))
		}
		if d.Problem != "" {
			line("problem", "%s", d.Problem)
			continue
		}
		line("driver", "%s", strings.Join(nonEmpty(d.Driver, d.DriverVersion, d.Vendor, d.APIVersion), ", "))
		line("type", "%s", d.Type)
		line("memory", "%s; one allocation up to %s, one kernel argument up to %s", bytesText(d.MemoryBytes), bytesText(d.MaxAllocBytes), bytesText(min(d.MaxBufferBytes, d.MaxAllocBytes)))
		line("fp16", "%s", fp16Text(d.FP16Storage, d.FP16Arithmetic))
		line("workgroup", "up to %d invocations, %s of workgroup memory", d.WorkgroupSize, bytesText(int64(d.WorkgroupMemory)))
		if d.Default {
			line("default", "yes: %s", strings.TrimPrefix(d.Why, "default: "))
		} else {
			line("default", "no: %s", d.Why)
		}
		for _, n := range d.Notes {
			line("note", "%s", n)
		}
	}
	fmt.Fprintf(&sb, "\n* the default device; the environment variable %s or a device string chooses another\n", backend.EnvDevice)
	for _, api := range r.Drivers {
		if found[api] {
			continue
		}
		fmt.Fprintf(&sb, "\nNo %s device was found:\n", api)
		for _, l := range r.Diagnosis {
			if text, ok := strings.CutPrefix(l, api+": "); ok {
				fmt.Fprintf(&sb, "  - %s\n", text)
			}
		}
	}
	_, err := io.WriteString(w, sb.String())
	return err
}

// fp16Text says how a device works with float16.
func fp16Text(storage, arithmetic bool) string {
	switch {
	case storage && arithmetic:
		return "storage and arithmetic"
	case storage:
		return "storage; arithmetic in fp32"
	}
	return "packed in 32-bit words; arithmetic in fp32"
}

func nonEmpty(ss ...string) []string {
	var out []string
	for _, s := range ss {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// bytesText prints a number of bytes with a binary unit.
func bytesText(n int64) string {
	if n <= 0 {
		return "unknown"
	}
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n), -1
	for v >= 1024 && u < len(units)-1 {
		v /= 1024
		u++
	}
	return fmt.Sprintf("%.4g %ciB", v, units[u])
}
