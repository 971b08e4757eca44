/* The allocator, but some allocations of s2dq's extension fail: preloaded by tests/test_allocations.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

/* How many allocations come before those that fail, or -1 where none does; and how many there were. */
long failing_after = -1, failing_seen = 0;

static int fails(const void *caller)
{
    Dl_info from;
    if (failing_after < 0 || !dladdr(caller, &from) || !from.dli_fname) return 0;
    if (!strstr(from.dli_fname, "s2dq/_kernels")) return 0;
    return failing_seen++ >= failing_after;
}

void *malloc(size_t size) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}
