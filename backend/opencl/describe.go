//go:build cgo

package opencl

import (
	"fmt"
	"math"
	"strings"

	"github.com/jgillich/go-opencl/cl"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/opencl/internal/clload"
	"github.com/anygpu/anygpu/shaders/clc"
	"github.com/anygpu/anygpu/shaders/ir"
)

// Properties of devices and platforms, as numbered by the OpenCL headers.
const (
	platformName = 0x0902

	deviceType             = 0x1000
	deviceMaxWorkGroupSize = 0x1004
	deviceMaxWorkItemSizes = 0x1005
	deviceMaxMemAllocSize  = 0x1010
	deviceMaxParameterSize = 0x1017
	deviceSingleFPConfig   = 0x101B
	deviceGlobalMemSize    = 0x101F
	deviceLocalMemSize     = 0x1023
	deviceEndianLittle     = 0x1026
	deviceAvailable        = 0x1027
	deviceCompiler         = 0x1028
	deviceName             = 0x102B
	deviceVendor           = 0x102C
	driverVersion          = 0x102D
	deviceProfile          = 0x102E
	deviceVersion          = 0x102F
	deviceExtensions       = 0x1030
	deviceUnifiedMemory    = 0x1035
	deviceUUID             = 0x106A // cl_khr_device_uuid
	deviceWarpSize         = 0x4003 // cl_nv_device_attribute_query
	deviceBoardName        = 0x4038 // cl_amd_device_attribute_query
	deviceWavefrontWidth   = 0x4043 // cl_amd_device_attribute_query
)

// fpConfig is a device's single-precision configuration, a set of CL_FP_ bits.
type fpConfig uint64

const (
	fpDenorm                 fpConfig = 1 << 0
	fpInfNaN                 fpConfig = 1 << 1
	fpFMA                    fpConfig = 1 << 5
	fpCorrectlyRoundedDivide fpConfig = 1 << 7
)

// describer queries one device. The first query that fails sticks.
type describer struct {
	handle clload.Handle
	exts   map[string]bool
	err    error
}

func (q *describer) text(param uint32, what string) string {
	s, code := clload.DeviceString(q.handle, param)
	q.check(what, code)
	return s
}

func (q *describer) check(what string, code clload.Code) {
	if code != 0 && q.err == nil {
		q.err = fmt.Errorf("%s: %w", what, code)
	}
}

func value[T any](q *describer, param uint32, what string) T {
	v, code := clload.DeviceValue[T](q.handle, param)
	q.check(what, code)
	return v
}

// optional returns a property of an extension, or zero.
func optional[T any](q *describer, extension string, param uint32) (v T) {
	if q.exts[extension] {
		if got, code := clload.DeviceValue[T](q.handle, param); code == 0 {
			return got
		}
	}
	return v
}

// describe makes the description of a device.
func describe(p *cl.Platform, dev *cl.Device) (candidate, error) {
	q := &describer{handle: clload.HandleOf(dev), exts: map[string]bool{}}
	for _, e := range strings.Fields(q.text(deviceExtensions, "extensions")) {
		q.exts[e] = true
	}
	info := backend.Info{
		API:           "opencl",
		Name:          q.name(),
		Vendor:        q.text(deviceVendor, "vendor"),
		DriverVersion: q.text(driverVersion, "driver version"),
		APIVersion:    q.text(deviceVersion, "version"),
		Type:          q.deviceType(),
		UUID:          optional[[16]byte](q, "cl_khr_device_uuid", deviceUUID),
		Memory:        clamp(value[uint64](q, deviceGlobalMemSize, "memory size")),
		Limits: backend.Limits{
			MaxAllocBytes:     clamp(value[uint64](q, deviceMaxMemAllocSize, "largest allocation")),
			BufferOffsetAlign: clc.Align,
		},
	}
	info.Driver, _ = clload.PlatformString(clload.HandleOf(p), platformName)
	info.Caps = q.caps(info.Limits)
	info.Caps.NativeMath64 &^= inexact64(info)
	c := candidate{info: info, device: dev, config: fpConfig(value[uint64](q, deviceSingleFPConfig, "float configuration"))}
	c.info.Problem = q.problem(info.APIVersion)
	c.annotate()
	return c, q.err
}

// name returns the device's name; AMD's drivers report a chip's code name there, and its name for people elsewhere.
func (q *describer) name() string {
	name := q.text(deviceName, "name")
	if q.exts["cl_amd_device_attribute_query"] {
		if board, code := clload.DeviceString(q.handle, deviceBoardName); code == 0 && board != "" {
			return fmt.Sprintf("%s (%s)", board, name)
		}
	}
	return name
}

func (q *describer) deviceType() backend.DeviceType {
	const cpu, gpu, accelerator = 2, 4, 8
	bits := value[uint64](q, deviceType, "type")
	switch {
	case bits&cpu != 0: // simulators set several bits
		return backend.CPUDevice
	case bits&gpu != 0:
		if value[uint32](q, deviceUnifiedMemory, "unified memory") != 0 {
			return backend.IntegratedGPU
		}
		return backend.DiscreteGPU
	case bits&accelerator != 0:
		return backend.Accelerator
	}
	return backend.OtherDevice
}

func (q *describer) caps(limits backend.Limits) ir.Caps {
	embedded := q.text(deviceProfile, "profile") != "FULL_PROFILE"
	items := value[[16]uintptr](q, deviceMaxWorkItemSizes, "work-item sizes") // the device fills in as many as it has dimensions
	c := ir.Caps{
		F16Arith:       q.exts["cl_khr_fp16"],
		F16Storage:     true, // vload_half and vstore_half are core
		U8Storage:      true, // core since OpenCL 1.1
		I64:            !embedded || q.exts["cles_khr_int64"],
		F64:            q.exts["cl_khr_fp64"],
		MaxLanes:       16,
		NativeMath:     ir.OpenCLMath(),
		NativeMath64:   ir.OpenCLMath(),
		MaxInvocations: int(value[uintptr](q, deviceMaxWorkGroupSize, "workgroup size")),
		SharedBytes:    int(clamp(value[uint64](q, deviceLocalMemSize, "local memory size"))),
		MaxBufferBytes: limits.MaxAllocBytes,
		SubgroupSize: int(max(optional[uint32](q, "cl_nv_device_attribute_query", deviceWarpSize),
			optional[uint32](q, "cl_amd_device_attribute_query", deviceWavefrontWidth))),
	}
	for i := range c.MaxLocal {
		c.MaxLocal[i] = int(items[i])
	}
	// Kernels know their position as 32-bit numbers, and some drivers hold the global size in as many bits; the second and third dimensions of
	// NVIDIA's grids are 16-bit numbers.
	c.MaxGroups = [3]int{min(math.MaxInt32, math.MaxUint32/max(1, c.MaxLocal[0])), 65535, 65535}
	// A buffer takes a pointer and an offset; the scalar parameters must fit beside them.
	params := int(value[uintptr](q, deviceMaxParameterSize, "parameter size"))
	c.MaxBuffers = (params - 4*ir.MaxParams) / 16
	return c
}

// problem returns why the device cannot be used, or "".
func (q *describer) problem(version string) string {
	var major, minor int
	_, err := fmt.Sscanf(version, "OpenCL %d.%d", &major, &minor)
	switch {
	case value[uint32](q, deviceAvailable, "availability") == 0:
		return "the driver says that the device is not available"
	case value[uint32](q, deviceCompiler, "compiler") == 0:
		return "the driver has no compiler for OpenCL C"
	case value[uint32](q, deviceEndianLittle, "byte order") == 0:
		return "the device is big-endian; only little-endian devices are supported"
	case err != nil || major < 1 || major == 1 && minor < 2:
		return fmt.Sprintf("the device has %q; OpenCL 1.2 is needed", version)
	}
	return ""
}

// annotate adds notes on what a person should know.
func (c *candidate) annotate() {
	backend.Disable(&c.info)
	note := func(s string) { c.info.Notes = append(c.info.Notes, s) }
	if suspect(c.info) {
		note("rusticl of this version is known to compute wrong results for some kernels; prefer another device, or Mesa 23.1 or later")
	}
	if c.config&fpDenorm == 0 {
		note("the device flushes subnormal float32 numbers to zero")
	}
	if c.config&fpInfNaN == 0 {
		note("the device does not promise infinities and NaN; results that overflow are unspecified")
	}
}

// lanewise returns the functions that a device gets right for scalars only. In PoCL 3.1 a vector's sin, cos and tan are wrong in
// all lanes once one lane is large: sin((float4)(0.001, 0.1, 1, 1e10)).x is 0.008.
func lanewise(info backend.Info) ir.MathSet {
	if info.Driver == "Portable Computing Language" {
		return ir.MathOps(ir.OpSin, ir.OpCos, ir.OpTan)
	}
	return 0
}

// inexact64 returns the functions of float64 that a device computes less exactly than OpenCL promises. PoCL 3.1's log2 is off by 9 ULP
// near 1, where 3 are allowed.
func inexact64(info backend.Info) ir.MathSet {
	if info.Driver == "Portable Computing Language" {
		return ir.MathOps(ir.OpLog2)
	}
	return 0
}

// suspect reports whether a device is known to compute wrong results.
func suspect(info backend.Info) bool { return info.Driver == "rusticl" && oldMesa(info.DriverVersion) }

// oldMesa reports whether a Mesa version is before 23.1, or cannot be read.
func oldMesa(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return true
	}
	return major < 23 || major == 23 && minor < 1
}

func clamp(v uint64) int64 {
	if v > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}
