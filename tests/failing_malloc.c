/* The C library, but some of what s2dq's extension asks of it is refused: preloaded by tests/test_allocations.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

/* How many allocations come before those that fail, or -1 where none does; and how many there were. */
long failing_after = -1, failing_seen = 0;

static int is_ours(const void *caller)
{
    Dl_info from;
    return dladdr(caller, &from) && from.dli_fname && strstr(from.dli_fname, "s2dq/_kernels");
}

static int fails(const void *caller)
{
    return failing_after >= 0 && is_ours(caller) && failing_seen++ >= failing_after;
}

void *malloc(size_t size) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

/* What pthread_atfork calls. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *module)
{
    int (*call)(void (*)(void), void (*)(void), void (*)(void), void *) = dlsym(RTLD_NEXT, "__register_atfork");
    if (getenv("FAILING_ATFORK") && is_ours(__builtin_return_address(0))) return ENOMEM;
    return call(prepare, parent, child, module);
}
