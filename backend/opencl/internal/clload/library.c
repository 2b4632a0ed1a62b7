#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE // dladdr
#endif
#include "library.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
static void *open_library(const char *path) { return (void *)LoadLibraryA(path); }
static void *find_symbol(void *lib, const char *name) { return (void *)GetProcAddress((HMODULE)lib, name); }
static void describe_error(char *out, size_t n) { snprintf(out, n, "error %lu", (unsigned long)GetLastError()); }
static void *open_preloaded(char *out, size_t n) { return NULL; }
#else
#include <dlfcn.h>
#include <pthread.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *open_library(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void *find_symbol(void *lib, const char *name) { return dlsym(lib, name); }
static void describe_error(char *out, size_t n) {
	const char *e = dlerror();
	snprintf(out, n, "%s", e ? e : "unknown error");
}

// open_preloaded finds OpenCL in what was loaded with the program: tools such as Oclgrind put themselves in the place of the
// library by LD_PRELOAD. The program's own functions are hidden, and so not found here.
static void *open_preloaded(char *out, size_t n) {
	void *self = dlopen(NULL, RTLD_NOW);
	void *f = self ? dlsym(self, "clGetPlatformIDs") : NULL;
	if (!f) return NULL;
	Dl_info info;
	snprintf(out, n, "%s (loaded with the program)", dladdr(f, &info) && info.dli_fname ? info.dli_fname : "library");
	return self;
}
#endif

#if defined(_WIN32)
static const char *const candidates[] = {"OpenCL.dll"};
#elif defined(__APPLE__)
static const char *const candidates[] = {"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
static const char *const candidates[] = {"libOpenCL.so.1", "libOpenCL.so"};
#endif

static char chosen[1024];      // set by clload_use
static volatile int loading;   // set once the library is being looked for
static void *library;
static char status_text[4096];

static int try_open(const char *path) {
	library = open_library(path);
	size_t used = strlen(status_text);
	if (library) {
		snprintf(status_text, sizeof status_text, "%s", path);
		return 1;
	}
	char why[1024];
	describe_error(why, sizeof why);
	snprintf(status_text + used, sizeof status_text - used, "%s%s: %s", used ? "; " : "", path, why);
	return 0;
}

static void load(void) {
	loading = 1;
	if (chosen[0]) {
		try_open(chosen);
		return;
	}
	if ((library = open_preloaded(status_text, sizeof status_text))) return;
	for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
		if (try_open(candidates[i])) return;
}

#if defined(_WIN32)
static BOOL CALLBACK load_once(PINIT_ONCE o, PVOID p, PVOID *c) {
	load();
	return TRUE;
}
static void ensure(void) { InitOnceExecuteOnce(&once, load_once, NULL, NULL); }
#else
static void ensure(void) { pthread_once(&once, load); }
#endif

int clload_use(const char *path) {
	if (loading) return 0;
	snprintf(chosen, sizeof chosen, "%s", path);
	return 1;
}

int clload_status(const char **text) {
	ensure();
	*text = status_text;
	return library != NULL;
}

// Symbols are looked up at first use and kept: a race stores the same pointer twice.
static void *symbols[64];

void *clload_symbol(int index, const char *name) {
	void *s = __atomic_load_n(&symbols[index], __ATOMIC_ACQUIRE);
	if (s) return s;
	ensure();
	if (!library) return NULL;
	s = find_symbol(library, name);
	__atomic_store_n(&symbols[index], s, __ATOMIC_RELEASE);
	return s;
}
