#include "queue.h"

#include <stdlib.h>
#include <string.h>

#include "library.h"

static cl_int set_args(const clload_launch *l, void *const *buffers, const uint64_t *offsets, const uint32_t *params) {
	cl_kernel k = l->kernel;
	cl_uint arg = 0;
	cl_int err;
	for (uint32_t i = 0; i < l->nbuffers; i++) {
		cl_mem m = buffers[i];
		cl_ulong offset = offsets[i];
		if ((err = clSetKernelArg(k, arg++, sizeof m, &m))) return err;
		if ((err = clSetKernelArg(k, arg++, sizeof offset, &offset))) return err;
	}
	for (uint32_t i = 0; i < l->nparams; i++)
		if ((err = clSetKernelArg(k, arg++, sizeof *params, &params[i]))) return err;
	return CL_SUCCESS;
}

int clload_submit(void *queue, const clload_launch *launches, uint32_t n, void *const *buffers, const uint64_t *offsets,
	const uint32_t *params, void **event, uint32_t *failed) {
	cl_event last = NULL;
	cl_int err = CL_SUCCESS;
	uint32_t i;
	for (i = 0; i < n; i++) {
		const clload_launch *l = &launches[i];
		if ((err = set_args(l, buffers, offsets, params))) break;
		err = clEnqueueNDRangeKernel(queue, l->kernel, 3, NULL, l->global, l->local, 0, NULL, i + 1 == n ? &last : NULL);
		if (err) break;
		buffers += l->nbuffers;
		offsets += l->nbuffers;
		params += l->nparams;
	}
	*failed = i;
	if (err && i > 0) {
		// What was enqueued still runs: a marker tells when it is done, and where there is none it is waited for.
		if (clEnqueueMarkerWithWaitList(queue, 0, NULL, &last)) {
			last = NULL;
			clFinish(queue);
		}
	}
	*event = last;
	cl_int flushed = clFlush(queue);
	return err ? err : flushed;
}

int clload_read(void *queue, void *buffer, size_t offset, size_t size, void *data, void **event) {
	cl_event e = NULL;
	cl_int err = clEnqueueReadBuffer(queue, buffer, CL_FALSE, offset, size, data, 0, NULL, &e);
	*event = e;
	if (!err) err = clFlush(queue);
	return err;
}

int clload_write(void *queue, void *buffer, size_t offset, size_t size, const void *data, int staging, void **copy, void **event) {
	cl_event e = NULL;
	*copy = NULL;
	*event = NULL;
	if (staging) {
		if (!(*copy = malloc(size))) return CL_OUT_OF_HOST_MEMORY;
		memcpy(*copy, data, size);
		data = *copy;
	}
	cl_int err = clEnqueueWriteBuffer(queue, buffer, CL_FALSE, offset, size, data, 0, NULL, &e);
	if (err && staging) {
		free(*copy);
		*copy = NULL;
	}
	*event = e;
	if (!err) err = clFlush(queue);
	return err;
}

int clload_touch(void *queue, void *buffer) {
	const cl_uint zero = 0;
	return clEnqueueFillBuffer(queue, buffer, &zero, sizeof zero, 0, sizeof zero, 0, NULL, NULL);
}

int clload_finish(void *queue) { return clFinish(queue); }

int clload_event_status(void *event, int *err) {
	cl_int status = CL_QUEUED;
	*err = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
	return status;
}

int clload_event_times(void *event, uint64_t *queued, uint64_t *start, uint64_t *end) {
	cl_ulong q = 0, s = 0, e = 0;
	cl_int err = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof q, &q, NULL);
	if (!err) err = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof s, &s, NULL);
	if (!err) err = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof e, &e, NULL);
	*queued = q, *start = s, *end = e;
	return err;
}

int clload_event_wait(void *event) {
	cl_event e = event;
	return clWaitForEvents(1, &e);
}

void clload_event_retain(void *event) { clRetainEvent(event); }
void clload_event_release(void *event) { clReleaseEvent(event); }

int clload_device_info(void *device, uint32_t param, size_t size, void *value, size_t *actual) {
	return clGetDeviceInfo(device, param, size, value, actual);
}

int clload_platform_info(void *platform, uint32_t param, size_t size, void *value, size_t *actual) {
	return clGetPlatformInfo(platform, param, size, value, actual);
}

int clload_queue_info(void *queue, uint32_t param, size_t size, void *value) {
	return clGetCommandQueueInfo(queue, param, size, value, NULL);
}

int clload_build(void *program, void *device, const char *options) {
	cl_device_id d = device;
	return clBuildProgram(program, 1, &d, options, NULL, NULL);
}

int clload_build_log(void *program, void *device, size_t size, char *log, size_t *actual) {
	return clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log, actual);
}
