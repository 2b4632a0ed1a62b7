#ifndef ANYGPU_CLLOAD_LIBRARY_H
#define ANYGPU_CLLOAD_LIBRARY_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS

// Hidden: the program's own definitions of the cl functions must not be found by OpenCL drivers, which may export and
// call functions of the same names.
#if !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif
#if defined(__APPLE__)
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

// clload_use sets the path tried first; it must be called before the first OpenCL call. Returns 0 if it came too late.
int clload_use(const char *path);

// clload_status loads the library if that has not happened, and returns whether it was found. The text names the library, or
// each path tried and why it failed.
int clload_status(const char **text);

void *clload_symbol(int index, const char *name);

#if !defined(_WIN32)
#pragma GCC visibility pop
#endif

// CL_PLATFORM_NOT_FOUND_KHR
#define CLLOAD_NOT_FOUND (-1001)

#endif
