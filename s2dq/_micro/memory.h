/* Memory of fresh results.
 *
 * NumPy's begins 16 bytes behind a cache line, where every second store of some kernels takes two lines: results of
 * some size begin at a line.
 *
 * A result of tens of MiB costs as much again in page faults as in being computed, call after call, because the
 * allocator gives its pages back as soon as it is freed. So one freed result is kept for the next one of about its
 * size. Its pages are marked with MADV_FREE: the system takes them whenever it wants memory, and until then writing to
 * them again costs nothing.
 *
 * Where there is no MADV_FREE, results come from the allocator that NumPy uses.
 */
#ifndef S2DQ_MEMORY_H
#define S2DQ_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(__linux__) && defined(MADV_FREE) && defined(MADV_HUGEPAGE)
#define S2DQ_KEEPS_MEMORY 1

enum { S2DQ_MEMORY_HEADER = 64, S2DQ_HUGE_PAGE = 1 << 21, S2DQ_HUGE_FROM = 1 << 22 };

/* Before every result from a line on. */
typedef struct {
    void *block; /* that malloc gave */
    size_t size;
} s2dq_lined;

static void *s2dq_lines_new(void *context, size_t size)
{
    (void)context;
    if (size > SIZE_MAX - 128) return NULL;
    void *block = malloc(size + 64 + sizeof(s2dq_lined));
    if (!block) return NULL;
    uint8_t *data = (uint8_t *)(((uintptr_t)block + sizeof(s2dq_lined) + 63) & ~(uintptr_t)63);
    *((s2dq_lined *)data - 1) = (s2dq_lined){block, size};
    if (size >= S2DQ_HUGE_FROM) { /* as NumPy asks for them */
        uint8_t *page = (uint8_t *)(((uintptr_t)data + 4095) & ~(uintptr_t)4095);
        madvise(page, size - (size_t)(page - data), MADV_HUGEPAGE);
    }
    return data;
}

static void s2dq_lines_free(void *context, void *data, size_t size)
{
    (void)context, (void)size;
    if (data) free(((s2dq_lined *)data - 1)->block);
}

static size_t s2dq_lines_held(const void *data) { return ((const s2dq_lined *)data - 1)->size; }

/* At the start of every mapping, a line before the data. */
typedef struct {
    size_t size;
} s2dq_mapping;

static s2dq_mapping *s2dq_spare = NULL; /* exchanged atomically: whoever takes it owns it */

static s2dq_mapping *s2dq_take_spare(s2dq_mapping *instead)
{
    return __atomic_exchange_n(&s2dq_spare, instead, __ATOMIC_ACQ_REL);
}

static void s2dq_unmap(s2dq_mapping *mapping)
{
    if (mapping) munmap(mapping, mapping->size);
}

static void *s2dq_memory_new(void *context, size_t size)
{
    (void)context;
    if (size > SIZE_MAX - 2 * S2DQ_HUGE_PAGE) return NULL;
    const size_t whole = (size + S2DQ_MEMORY_HEADER + S2DQ_HUGE_PAGE - 1) & ~(size_t)(S2DQ_HUGE_PAGE - 1);
    s2dq_mapping *mapping = s2dq_take_spare(NULL);
    if (mapping && mapping->size != whole) {
        s2dq_unmap(mapping);
        mapping = NULL;
    }
    if (!mapping) {
        void *fresh = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) return NULL;
        madvise(fresh, whole, MADV_HUGEPAGE);
        mapping = (s2dq_mapping *)fresh;
        mapping->size = whole;
    }
    return (uint8_t *)mapping + S2DQ_MEMORY_HEADER;
}

static void s2dq_memory_free(void *context, void *data, size_t size)
{
    (void)context, (void)size;
    if (!data) return;
    s2dq_mapping *mapping = (s2dq_mapping *)((uint8_t *)data - S2DQ_MEMORY_HEADER);
    /* All but the page with the header, which has to survive. */
    uint8_t *second = (uint8_t *)mapping + 4096;
    if (madvise(second, mapping->size - 4096, MADV_FREE) != 0) {
        s2dq_unmap(mapping);
        return;
    }
    s2dq_unmap(s2dq_take_spare(mapping));
}

static size_t s2dq_memory_held(const void *data)
{
    return ((const s2dq_mapping *)((const uint8_t *)data - S2DQ_MEMORY_HEADER))->size - S2DQ_MEMORY_HEADER;
}

/* Where memory comes from, as the context of NumPy's allocators. */
typedef struct {
    void *(*fresh)(void *context, size_t size);
    void (*free)(void *context, void *data, size_t size);
    size_t (*held)(const void *data); /* bytes that there are from `data` on */
} s2dq_source;

static s2dq_source s2dq_lines_source = {s2dq_lines_new, s2dq_lines_free, s2dq_lines_held};
static s2dq_source s2dq_memory_source = {s2dq_memory_new, s2dq_memory_free, s2dq_memory_held};

static void *s2dq_source_zeroed(void *context, size_t count, size_t size)
{
    const s2dq_source *source = (const s2dq_source *)context;
    if (size && count > SIZE_MAX / size) return NULL;
    void *data = source->fresh(context, count * size);
    if (data) memset(data, 0, count * size);
    return data;
}

static void *s2dq_source_resized(void *context, void *data, size_t size)
{
    const s2dq_source *source = (const s2dq_source *)context;
    void *moved = source->fresh(context, size);
    if (moved && data) {
        const size_t held = source->held(data);
        memcpy(moved, data, held < size ? held : size);
        source->free(context, data, 0);
    }
    return moved;
}

#endif

#endif
