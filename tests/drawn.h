/* What C programs that try kernels on random calls have in common: numbers, and memory between inaccessible pages. */
#ifndef S2DQ_DRAWN_H
#define S2DQ_DRAWN_H

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t state;

static void sow(long seed) { state = 88172645463325252ULL ^ (uint64_t)seed * 0x9E3779B97F4A7C15ULL; }

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int64_t between(int64_t low, int64_t high) { return low + (int64_t)(draw() >> 11) % (high - low + 1); }
static int one_in(int count) { return between(1, count) == 1; }

static void draw_memory(uint8_t *at, int64_t size)
{
    for (int64_t k = 0; k < size; k += 8) {
        const uint64_t word = draw();
        memcpy(at + k, &word, (size_t)(size - k < 8 ? size - k : 8));
    }
}

/* What a line makes of a byte, before it is cut off at 65535 and shifted out, see tile.h. */
static int64_t word_of_line(int64_t value, int64_t slope, int64_t more, int64_t less)
{
    const int64_t from = value * 256 - less;
    return ((from < 0 ? 0 : from) * slope >> 16) + more;
}

static uint8_t byte_of_word(int64_t word, int64_t shift)
{
    return (uint8_t)((word > 65535 ? 65535 : word) >> (8 - shift));
}

/* `size` bytes, whole pages of them. */
static uint8_t *make_arena(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory = mmap(NULL, size + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) || mprotect(memory + page + size, page, PROT_NONE)) {
        perror("no memory between inaccessible pages");
        exit(2);
    }
    return memory + page;
}

#endif
