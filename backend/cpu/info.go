package cpu

import (
	"bufio"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/backend/cpu/internal/gemm"
	"github.com/anygpu/anygpu/shaders/ir"
)

// offsetAlign is the alignment of regions: a cache line.
const offsetAlign = 64

// hostInfo describes the processor, as far as the operating system tells in a portable way.
var hostInfo = sync.OnceValue(func() backend.Info {
	name, vendor := processor()
	i := backend.Info{
		API: "cpu", Name: name, Vendor: vendor, Driver: "anygpu", DriverVersion: runtime.Version(), APIVersion: runtime.GOARCH,
		Type: backend.CPUDevice, Memory: totalMemory(), Caps: ir.InterpCaps(),
		Limits: backend.Limits{MaxAllocBytes: math.MaxInt, BufferOffsetAlign: offsetAlign},
		Notes:  []string{strconv.Itoa(runtime.GOMAXPROCS(0)) + " cores are used (GOMAXPROCS)", "float32 products in " + gemm.Name()},
	}
	if i.Memory > 0 {
		i.Limits.MaxAllocBytes = i.Memory
	}
	return i
})

// describe is hostInfo with how kernels run, which the environment may change.
func describe() backend.Info {
	i := hostInfo()
	_, note := machineCode()
	i.Notes = append(slices.Clone(i.Notes), note)
	return i
}

// processor returns the model and the vendor of the processor: from /proc/cpuinfo where there is one.
func processor() (name, vendor string) {
	name, vendor = runtime.GOARCH+" processor", "unknown"
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return name, vendor
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		key, value, _ := strings.Cut(sc.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "":
			if strings.TrimSpace(sc.Text()) == "" {
				return name, vendor // the end of the first processor
			}
		case "model name", "Processor", "cpu model":
			name = strings.Join(strings.Fields(value), " ")
		case "vendor_id":
			vendor = value
		}
	}
	return name, vendor
}

// totalMemory returns the bytes of memory that the process may use, 0 if unknown: what the machine has, or the bound of
// the control group if that is less.
func totalMemory() int64 {
	total := memInfo("MemTotal")
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && (total == 0 || n < total) {
			total = n
		}
	}
	return total
}

// memInfo returns a value of /proc/meminfo in bytes, 0 if there is none.
func memInfo(key string) int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if fields := strings.Fields(value); name == key && len(fields) > 0 {
			kb, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil {
				return 0
			}
			return kb * 1024
		}
	}
	return 0
}
