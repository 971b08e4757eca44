/* With -DTRACED, every load, store and fetch of the kernels is noted, and how much they compute in between: which of
 * several ways they take, and in what order, shows in these alone where all of them write the same bytes. Before the
 * kernels' headers, behind drawn.h.
 *
 * What is noted of a place is its distance from the array's start, so that it is the same in every run. Assignments
 * without intrinsics and memcpy are not noted. Loads may come in any order, for the compiler's is not ours; of
 * shuffles, sums and the like there are only so many.
 */
#ifndef S2DQ_TRACED_H
#define S2DQ_TRACED_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef TRACED
#define begin_trace(dst, src, size) ((void)0)
#define end_trace(digest) ((void)0)
#define is_recorded(program, name, rounds, digest, path) ((void)(name), (void)(digest), 1)
#else

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define always_inline /* with all of its constants in place, the compiler takes minutes */

enum { TRACED_TOGETHER = 100 }; /* calls of one digest */
enum { TRACED_SHUFFLE, TRACED_BITS, TRACED_SUM, TRACED_SHIFT, TRACED_FENCE, TRACED_WORKS };

typedef struct {
    const uint8_t *start, *end;
} traced_array;

static traced_array traced[2]; /* nothing is noted of others */
static uint64_t stored, loaded, worked[TRACED_WORKS];

static uint64_t traced_place(const void *place, uint64_t size)
{
    for (uint64_t k = 0; k < 2; k++)
        if ((const uint8_t *)place >= traced[k].start && (const uint8_t *)place < traced[k].end)
            return ((uint64_t)((const uint8_t *)place - traced[k].start) << 10 | size << 1 | k) + 1;
    return 0;
}

static __attribute__((noinline)) void note_store(const void *place, uint64_t size)
{
    const uint64_t at = traced_place(place, size);
    if (at) stored = (stored ^ at) * 0x9E3779B97F4A7C15ULL, stored ^= stored >> 29;
}

static __attribute__((noinline)) void note_load(const void *place, uint64_t size)
{
    uint64_t at = traced_place(place, size) * 0x9E3779B97F4A7C15ULL;
    loaded += at ^ at >> 32;
}

/* Addresses beside the arrays too: where fetches go, nothing has to be. Those beside a scratch are elsewhere in every
 * run. */
static __attribute__((noinline)) void note_fetch(const void *place)
{
    const intptr_t from = (intptr_t)place, start = (intptr_t)traced[0].start, beside = 1 << 24;
    const int k = from < start - 4096 || from >= (intptr_t)traced[0].end + 4096;
    const intptr_t at = from - (intptr_t)traced[k].start;
    if (at < -beside || at >= beside) return;
    stored = (stored ^ (uint64_t)at << 1 ^ (uint64_t)k) * 0xD6E8FEB86659FD93ULL;
    stored ^= stored >> 31;
}

static __attribute__((noinline)) void note_work(int kind) { worked[kind]++; }

static void begin_trace(const uint8_t *dst, const uint8_t *src, int64_t size)
{
    traced[0] = (traced_array){dst, dst + size};
    traced[1] = (traced_array){src, src + size};
}

static void end_trace(uint64_t *digest)
{
    memset(traced, 0, sizeof traced);
    *digest = (*digest ^ stored ^ (loaded << 31 | loaded >> 33)) * 0x9E3779B97F4A7C15ULL;
    for (int k = 0; k < TRACED_WORKS; k++) *digest = (*digest ^ *digest >> 29 ^ worked[k]) * 0xD6E8FEB86659FD93ULL;
    memset(worked, 0, sizeof worked);
    stored = loaded = 0;
}

/* Whether the digest of so many rounds is in the file; without a file it is printed. Each is of some rounds alone. */
static int is_recorded(const char *program, const char *name, long rounds, uint64_t *digest, const char *path)
{
    static FILE *file;
    char line[80], other[80];
    if (rounds % TRACED_TOGETHER) return 1;
    snprintf(line, sizeof line, "%s %ld %016llx", name, rounds, (unsigned long long)*digest);
    *digest = 0;
    if (!path) return puts(line) > 0;
    if (!file) file = fopen(path, "r");
    if (!file) {
        perror(path);
        return 0;
    }
    rewind(file);
    while (fgets(other, sizeof other, file)) {
        other[strcspn(other, "\r\n")] = 0;
        if (!strcmp(line, other)) return 1;
    }
    fprintf(stderr, "%s: not in the recorded order: %s, one of the %d rounds before %ld\n", program, name,
            TRACED_TOGETHER, rounds);
    return 0;
}

#define memcpy(dst, src, size) (note_load(src, size), note_store(dst, size), memcpy(dst, src, size))
#define memset(dst, value, size) (note_store(dst, size), memset(dst, value, size))

#if defined(__x86_64__)
#undef _mm_prefetch
#define _mm_prefetch(place, hint) note_fetch(place)
#define __builtin_prefetch(place, ...) note_fetch(place)
#define TRACED_LOAD(name, place, size) (note_load(place, size), (name)(place))
#define TRACED_STORE(name, place, value, size) (note_store(place, size), (name)(place, value))
#define _mm256_loadu_si256(place) TRACED_LOAD(_mm256_loadu_si256, place, 32)
#define _mm512_loadu_si512(place) TRACED_LOAD(_mm512_loadu_si512, place, 64)
#define _mm_loadl_epi64(place) TRACED_LOAD(_mm_loadl_epi64, place, 8)
#define _mm_loadu_si128(place) TRACED_LOAD(_mm_loadu_si128, place, 16)
#define _mm512_maskz_loadu_epi8(mask, place) (note_load(place, 1), (_mm512_maskz_loadu_epi8)(mask, place))
#define _mm256_storeu_si256(place, value) TRACED_STORE(_mm256_storeu_si256, place, value, 32)
#define _mm512_store_si512(place, value) TRACED_STORE(_mm512_store_si512, place, value, 64)
#define _mm512_storeu_si512(place, value) TRACED_STORE(_mm512_storeu_si512, place, value, 64)
#define _mm512_stream_si512(place, value) TRACED_STORE(_mm512_stream_si512, place, value, 65)
#define _mm_storel_epi64(place, value) TRACED_STORE(_mm_storel_epi64, place, value, 8)
#define _mm_storeu_si128(place, value) TRACED_STORE(_mm_storeu_si128, place, value, 16)
#define TRACED_MASKED(name, place, mask, value) (note_store(place, (uint64_t)(mask) % 511), (name)(place, mask, value))
#define _mm256_mask_storeu_epi8(place, mask, value) TRACED_MASKED(_mm256_mask_storeu_epi8, place, mask, value)
#define _mm512_mask_storeu_epi8(place, mask, value) TRACED_MASKED(_mm512_mask_storeu_epi8, place, mask, value)
#define _mm_mask_storeu_epi8(place, mask, value) TRACED_MASKED(_mm_mask_storeu_epi8, place, mask, value)
#define TRACED_WORK(kind, name, ...) (note_work(TRACED_##kind), (name)(__VA_ARGS__))
#define _mm_sfence() (note_work(TRACED_FENCE), (_mm_sfence)())
#define _mm256_shuffle_epi8(...) TRACED_WORK(SHUFFLE, _mm256_shuffle_epi8, __VA_ARGS__)
#define _mm256_permutevar8x32_epi32(...) TRACED_WORK(SHUFFLE, _mm256_permutevar8x32_epi32, __VA_ARGS__)
#define _mm256_blendv_epi8(...) TRACED_WORK(SHUFFLE, _mm256_blendv_epi8, __VA_ARGS__)
#define _mm512_permutexvar_epi8(...) TRACED_WORK(SHUFFLE, _mm512_permutexvar_epi8, __VA_ARGS__)
#define _mm512_permutex2var_epi8(...) TRACED_WORK(SHUFFLE, _mm512_permutex2var_epi8, __VA_ARGS__)
#define _mm512_mask_permutexvar_epi8(...) TRACED_WORK(SHUFFLE, _mm512_mask_permutexvar_epi8, __VA_ARGS__)
#define _mm256_xor_si256(...) TRACED_WORK(BITS, _mm256_xor_si256, __VA_ARGS__)
#define _mm256_or_si256(...) TRACED_WORK(BITS, _mm256_or_si256, __VA_ARGS__)
#define _mm256_and_si256(...) TRACED_WORK(BITS, _mm256_and_si256, __VA_ARGS__)
#define _mm512_xor_si512(...) TRACED_WORK(BITS, _mm512_xor_si512, __VA_ARGS__)
#define _mm512_or_si512(...) TRACED_WORK(BITS, _mm512_or_si512, __VA_ARGS__)
#define _mm512_and_si512(...) TRACED_WORK(BITS, _mm512_and_si512, __VA_ARGS__)
#define _mm256_subs_epu16(...) TRACED_WORK(SUM, _mm256_subs_epu16, __VA_ARGS__)
#define _mm256_adds_epu16(...) TRACED_WORK(SUM, _mm256_adds_epu16, __VA_ARGS__)
#define _mm256_add_epi16(...) TRACED_WORK(SUM, _mm256_add_epi16, __VA_ARGS__)
#define _mm256_mulhi_epu16(...) TRACED_WORK(SUM, _mm256_mulhi_epu16, __VA_ARGS__)
#define _mm512_subs_epu16(...) TRACED_WORK(SUM, _mm512_subs_epu16, __VA_ARGS__)
#define _mm512_adds_epu16(...) TRACED_WORK(SUM, _mm512_adds_epu16, __VA_ARGS__)
#define _mm512_mulhi_epu16(...) TRACED_WORK(SUM, _mm512_mulhi_epu16, __VA_ARGS__)
#define _mm256_srl_epi16(...) TRACED_WORK(SHIFT, _mm256_srl_epi16, __VA_ARGS__)
#define _mm256_sll_epi16(...) TRACED_WORK(SHIFT, _mm256_sll_epi16, __VA_ARGS__)
#define _mm512_srlv_epi16(...) TRACED_WORK(SHIFT, _mm512_srlv_epi16, __VA_ARGS__)
#define _mm512_sllv_epi16(...) TRACED_WORK(SHIFT, _mm512_sllv_epi16, __VA_ARGS__)
#endif

#endif
#endif
