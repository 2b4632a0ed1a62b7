// The forwarding functions. Their declarations in the Khronos headers are hidden by library.h.
#include "library.h"

#include "trampolines.h"

_Static_assert(CLLOAD_COUNT <= 64, "enlarge the table of symbols in library.c");
