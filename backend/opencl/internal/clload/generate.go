//go:build ignore

// Generate writes trampolines.h: one forwarding function for each OpenCL function below.
package main

import (
	"fmt"
	"os"
	"strings"
)

// What a function returns where the library or the symbol is missing.
const (
	code    = "code"    // an error code
	errcode = "errcode" // NULL, and the code through the last parameter
)

// functions are the OpenCL functions that the binding or the driver calls: return type, name, parameters, failure.
var functions = []struct{ ret, name, params, fail string }{
	{"cl_int", "clGetPlatformIDs", "cl_uint a, cl_platform_id *b, cl_uint *c", code},
	{"cl_int", "clGetPlatformInfo", "cl_platform_id a, cl_platform_info b, size_t c, void *d, size_t *e", code},
	{"cl_int", "clGetDeviceIDs", "cl_platform_id a, cl_device_type b, cl_uint c, cl_device_id *d, cl_uint *e", code},
	{"cl_int", "clGetDeviceInfo", "cl_device_id a, cl_device_info b, size_t c, void *d, size_t *e", code},
	{"cl_context", "clCreateContext", "const cl_context_properties *a, cl_uint b, const cl_device_id *c, void (CL_CALLBACK *d)(const char *, const void *, size_t, void *), void *e, cl_int *err", errcode},
	{"cl_int", "clReleaseContext", "cl_context a", code},
	{"cl_command_queue", "clCreateCommandQueue", "cl_context a, cl_device_id b, cl_command_queue_properties c, cl_int *err", errcode},
	{"cl_int", "clGetCommandQueueInfo", "cl_command_queue a, cl_command_queue_info b, size_t c, void *d, size_t *e", code},
	{"cl_int", "clReleaseCommandQueue", "cl_command_queue a", code},
	{"cl_mem", "clCreateBuffer", "cl_context a, cl_mem_flags b, size_t c, void *d, cl_int *err", errcode},
	{"cl_mem", "clCreateImage", "cl_context a, cl_mem_flags b, const cl_image_format *c, const cl_image_desc *d, void *e, cl_int *err", errcode},
	{"cl_int", "clReleaseMemObject", "cl_mem a", code},
	{"cl_int", "clGetSupportedImageFormats", "cl_context a, cl_mem_flags b, cl_mem_object_type c, cl_uint d, cl_image_format *e, cl_uint *f", code},
	{"cl_program", "clCreateProgramWithSource", "cl_context a, cl_uint b, const char **c, const size_t *d, cl_int *err", errcode},
	{"cl_int", "clReleaseProgram", "cl_program a", code},
	{"cl_int", "clBuildProgram", "cl_program a, cl_uint b, const cl_device_id *c, const char *d, void (CL_CALLBACK *e)(cl_program, void *), void *f", code},
	{"cl_int", "clGetProgramBuildInfo", "cl_program a, cl_device_id b, cl_program_build_info c, size_t d, void *e, size_t *f", code},
	{"cl_kernel", "clCreateKernel", "cl_program a, const char *b, cl_int *err", errcode},
	{"cl_int", "clReleaseKernel", "cl_kernel a", code},
	{"cl_int", "clSetKernelArg", "cl_kernel a, cl_uint b, size_t c, const void *d", code},
	{"cl_int", "clGetKernelInfo", "cl_kernel a, cl_kernel_info b, size_t c, void *d, size_t *e", code},
	{"cl_int", "clGetKernelArgInfo", "cl_kernel a, cl_uint b, cl_kernel_arg_info c, size_t d, void *e, size_t *f", code},
	{"cl_int", "clGetKernelWorkGroupInfo", "cl_kernel a, cl_device_id b, cl_kernel_work_group_info c, size_t d, void *e, size_t *f", code},
	{"cl_int", "clWaitForEvents", "cl_uint a, const cl_event *b", code},
	{"cl_int", "clGetEventInfo", "cl_event a, cl_event_info b, size_t c, void *d, size_t *e", code},
	{"cl_event", "clCreateUserEvent", "cl_context a, cl_int *err", errcode},
	{"cl_int", "clSetUserEventStatus", "cl_event a, cl_int b", code},
	{"cl_int", "clRetainEvent", "cl_event a", code},
	{"cl_int", "clReleaseEvent", "cl_event a", code},
	{"cl_int", "clGetEventProfilingInfo", "cl_event a, cl_profiling_info b, size_t c, void *d, size_t *e", code},
	{"cl_int", "clFlush", "cl_command_queue a", code},
	{"cl_int", "clFinish", "cl_command_queue a", code},
	{"cl_int", "clEnqueueReadBuffer", "cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, void *f, cl_uint g, const cl_event *h, cl_event *i", code},
	{"cl_int", "clEnqueueWriteBuffer", "cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, const void *f, cl_uint g, const cl_event *h, cl_event *i", code},
	{"cl_int", "clEnqueueFillBuffer", "cl_command_queue a, cl_mem b, const void *c, size_t d, size_t e, size_t f, cl_uint g, const cl_event *h, cl_event *i", code},
	{"cl_int", "clEnqueueCopyBuffer", "cl_command_queue a, cl_mem b, cl_mem c, size_t d, size_t e, size_t f, cl_uint g, const cl_event *h, cl_event *i", code},
	{"cl_int", "clEnqueueReadImage", "cl_command_queue a, cl_mem b, cl_bool c, const size_t *d, const size_t *e, size_t f, size_t g, void *h, cl_uint i, const cl_event *j, cl_event *k", code},
	{"cl_int", "clEnqueueWriteImage", "cl_command_queue a, cl_mem b, cl_bool c, const size_t *d, const size_t *e, size_t f, size_t g, const void *h, cl_uint i, const cl_event *j, cl_event *k", code},
	{"void *", "clEnqueueMapBuffer", "cl_command_queue a, cl_mem b, cl_bool c, cl_map_flags d, size_t e, size_t f, cl_uint g, const cl_event *h, cl_event *i, cl_int *err", errcode},
	{"void *", "clEnqueueMapImage", "cl_command_queue a, cl_mem b, cl_bool c, cl_map_flags d, const size_t *e, const size_t *f, size_t *g, size_t *h, cl_uint i, const cl_event *j, cl_event *k, cl_int *err", errcode},
	{"cl_int", "clEnqueueUnmapMemObject", "cl_command_queue a, cl_mem b, void *c, cl_uint d, const cl_event *e, cl_event *f", code},
	{"cl_int", "clEnqueueNDRangeKernel", "cl_command_queue a, cl_kernel b, cl_uint c, const size_t *d, const size_t *e, const size_t *f, cl_uint g, const cl_event *h, cl_event *i", code},
	{"cl_int", "clEnqueueTask", "cl_command_queue a, cl_kernel b, cl_uint c, const cl_event *d, cl_event *e", code},
	{"cl_int", "clEnqueueMarkerWithWaitList", "cl_command_queue a, cl_uint b, const cl_event *c, cl_event *d", code},
	{"cl_int", "clEnqueueBarrierWithWaitList", "cl_command_queue a, cl_uint b, const cl_event *c, cl_event *d", code},
}

func main() {
	var sb strings.Builder
	sb.WriteString("// Code generated by generate.go; DO NOT EDIT.\n")
	for i, f := range functions {
		var args []string
		for _, p := range split(f.params) {
			args = append(args, argName(p))
		}
		list := strings.Join(args, ", ")
		fmt.Fprintf(&sb, "\n%s CL_API_CALL %s(%s) {\n", f.ret, f.name, f.params)
		fmt.Fprintf(&sb, "\ttypedef %s (CL_API_CALL *fn)(%s);\n", f.ret, f.params)
		fmt.Fprintf(&sb, "\tfn call = (fn)clload_symbol(%d, \"%s\");\n", i, f.name)
		if f.fail == errcode {
			sb.WriteString("\tif (!call) {\n\t\tif (err) *err = CLLOAD_NOT_FOUND;\n\t\treturn NULL;\n\t}\n")
		} else {
			sb.WriteString("\tif (!call) return CLLOAD_NOT_FOUND;\n")
		}
		fmt.Fprintf(&sb, "\treturn call(%s);\n}\n", list)
	}
	fmt.Fprintf(&sb, "\n#define CLLOAD_COUNT %d\n", len(functions))
	if err := os.WriteFile("trampolines.h", []byte(sb.String()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// split splits parameters at the commas outside parentheses.
func split(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[start:i])
				start = i + 1
			}
		}
	}
	return append(out, s[start:])
}

// argName returns the name of a parameter: its last word, or that inside a function pointer's first parentheses.
func argName(p string) string {
	if i := strings.Index(p, "(CL_CALLBACK *"); i >= 0 {
		rest := p[i+len("(CL_CALLBACK *"):]
		return rest[:strings.Index(rest, ")")]
	}
	fields := strings.Fields(p)
	return strings.TrimLeft(fields[len(fields)-1], "*")
}
