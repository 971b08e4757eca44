/* Streams that become one, or that one becomes, for AVX2.
 *
 * s2dq_avx2_streams_for  merge and split: the kernel of so many streams of granules of so many bytes
 * s2dq_avx2_blocks_12    four streams of 12-byte granules
 * s2dq_avx2_runs_kernels runs of RGB pixels to words of one channel, or back
 */
#ifndef S2DQ_AVX2_STREAMS_H
#define S2DQ_AVX2_STREAMS_H

#include "avx2_registers.h"

#if defined(S2DQ_X86)

/* How far lines of results are asked for, ahead of the stores: one that misses the first cache holds up all behind it. */
#define S2DQ_AVX2_SPLIT_AHEAD 256 /* of each stream */
#define S2DQ_AVX2_WORDS_AHEAD 512 /* of each stream of words that runs of pixels are split to */
#define S2DQ_AVX2_MERGE_AHEAD 512

/* ------------------------------------------------------------------------------------------ merge and split */

#define S2DQ_AVX2_EXACT 2 /* in place of an axis: one step takes a whole row, and no more */

/* Streams of `bytes` bytes in each of rows[1].extent times rows[0].extent rows; stream k starts at offset[k]. A row
 * other than the last of rows[over] may run past its end, where `over` is 0 or 1. */
typedef struct {
    int64_t offset[16];
    int64_t bytes;
    s2dq_axis rows[2];
    int over;
} s2dq_avx2_streams;

/* `bytes` of each stream, woven. */
S2DQ_AVX2_INLINE void s2dq_avx2_merge_step(uint8_t *dst, const uint8_t *src, const int64_t *offset, int streams,
                                           int w, int bytes)
{
    __m256i v[16];
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++) {
        v[k] = s2dq_avx2_load(src + offset[k], bytes);
        if (bytes == 32 && streams <= 8) S2DQ_AVX2_LOADED(v[k]);
    }
    s2dq_avx2_interleave(v, streams, w);
    if (bytes < 32) {
        S2DQ_UNROLL
        for (int k = 0; 16 * k < streams * bytes; k++)
            s2dq_avx2_store(dst + 16 * k, v[k], (int)s2dq_min(streams * bytes - 16 * k, 16));
        return;
    }
    S2DQ_UNROLL
    for (int k = 0; k < streams * 32; k += S2DQ_LINE) s2dq_avx2_fetch(dst + k + S2DQ_AVX2_MERGE_AHEAD);
    /* The low lanes are the first half of the result, the high lanes the second; of an odd number the last of the first
     * half shares a vector with the first of the second. Stores one behind the other are quicker. */
    const int odd = streams % 2;
    S2DQ_UNROLL
    for (int k = 0; k < streams - odd; k += 2)
        s2dq_avx2_store(dst + 16 * k, _mm256_permute2x128_si256(v[k], v[k + 1], 0x20), 32);
    if (odd) s2dq_avx2_store(dst + 16 * (streams - 1), _mm256_blend_epi32(v[streams - 1], v[0], 0xF0), 32);
    S2DQ_UNROLL
    for (int k = odd; k < streams; k += 2)
        s2dq_avx2_store(dst + 16 * (k + streams), _mm256_permute2x128_si256(v[k], v[k + 1], 0x31), 32);
}

/* What `bytes` of each of so many woven streams are in, for s2dq_avx2_deinterleave: of 32 the low lanes are the first
 * half, the high lanes the second. */
S2DQ_AVX2_INLINE void s2dq_avx2_take(__m256i *v, const uint8_t *src, int streams, int bytes)
{
    if (bytes < 32) {
        S2DQ_UNROLL
        for (int k = 0; k < streams; k++) {
            const int left = streams * bytes - 16 * k;
            v[k] = left > 0 ? s2dq_avx2_load(src + 16 * k, (int)s2dq_min(left, 16)) : _mm256_setzero_si256();
        }
    } else if (streams % 2) {
        __m256i t[9];
        S2DQ_UNROLL
        for (int k = 0; k < streams; k++) t[k] = s2dq_avx2_load(src + 32 * k, 32);
        S2DQ_UNROLL
        for (int k = 0; k < streams; k++)
            v[k] = k % 2 ? _mm256_permute2x128_si256(t[k / 2], t[(k + streams) / 2], 0x21)
                         : _mm256_blend_epi32(t[k / 2], t[(k + streams) / 2], 0xF0);
    } else {
        S2DQ_UNROLL
        for (int k = 0; k < streams; k += 2) {
            __m256i a = s2dq_avx2_load(src + 16 * k, 32), b = s2dq_avx2_load(src + 16 * (k + streams), 32);
            S2DQ_AVX2_LOADED(a);
            S2DQ_AVX2_LOADED(b);
            v[k] = _mm256_permute2x128_si256(a, b, 0x20);
            v[k + 1] = _mm256_permute2x128_si256(a, b, 0x31);
        }
    }
}

S2DQ_AVX2_INLINE void s2dq_avx2_split_step(uint8_t *dst, const uint8_t *src, const int64_t *offset, int streams,
                                           int w, int bytes)
{
    __m256i v[16];
    s2dq_avx2_take(v, src, streams, bytes);
    s2dq_avx2_deinterleave(v, streams, w);
    /* Backwards: streams that nobody wants have the place of the first one, which comes last. */
    S2DQ_UNROLL
    for (int k = streams - 1; k >= 0; k--) {
        s2dq_avx2_fetch(dst + offset[k] + S2DQ_AVX2_SPLIT_AHEAD);
        s2dq_avx2_store(dst + offset[k], v[k], bytes);
    }
}

/* 16 bytes of each of three streams, of two rows at once: one in each lane. `next` is from a row of the streams to the
 * other one; those of the woven side follow each other. */
S2DQ_AVX2_INLINE void s2dq_avx2_pair_step(uint8_t *dst, const uint8_t *src, const int64_t *offset, int64_t next,
                                          bool merge, int w)
{
    __m256i v[3];
    if (merge) {
        S2DQ_UNROLL
        for (int k = 0; k < 3; k++) v[k] = s2dq_avx2_load_pair(src + offset[k], src + offset[k] + next);
        s2dq_avx2_interleave(v, 3, w);
        s2dq_avx2_store(dst, _mm256_permute2x128_si256(v[0], v[1], 0x20), 32);
        s2dq_avx2_store(dst + 32, _mm256_blend_epi32(v[2], v[0], 0xF0), 32);
        s2dq_avx2_store(dst + 64, _mm256_permute2x128_si256(v[1], v[2], 0x31), 32);
        return;
    }
    const __m256i a = s2dq_avx2_load(src, 32), b = s2dq_avx2_load(src + 32, 32), c = s2dq_avx2_load(src + 64, 32);
    v[0] = _mm256_blend_epi32(a, b, 0xF0);
    v[1] = _mm256_permute2x128_si256(a, c, 0x21);
    v[2] = _mm256_blend_epi32(b, c, 0xF0);
    s2dq_avx2_deinterleave(v, 3, w);
    S2DQ_UNROLL
    for (int k = 2; k >= 0; k--) {
        s2dq_avx2_store(dst + offset[k], v[k], 16);
        _mm_storeu_si128((__m128i *)(dst + offset[k] + next), _mm256_extracti128_si256(v[k], 1));
    }
}

typedef void (*s2dq_avx2_stepper)(uint8_t *, const uint8_t *, const int64_t *, int64_t);

/* Bytes i .. i + bytes of every stream. */
S2DQ_AVX2_INLINE void s2dq_avx2_step(uint8_t *dst, const uint8_t *src, const int64_t *offset, int64_t i, bool merge,
                                     int streams, int w, int bytes)
{
    if (merge)
        s2dq_avx2_merge_step(dst + i * streams, src + i, offset, streams, w, bytes);
    else
        s2dq_avx2_split_step(dst + i, src + i * streams, offset, streams, w, bytes);
}

/* Whether rows that may run past their end take one step each. */
static inline bool s2dq_avx2_is_short(const s2dq_avx2_streams *job, int streams)
{
    return streams != 3 && job->bytes <= 32 && job->over >= 0;
}

/* Those rows. By itself, for what a longer function keeps on the stack gets in the way of stores at the same place in a
 * page. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_short(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job,
                                          s2dq_avx2_stepper step, int streams)
{
    const s2dq_axis inner = job->rows[0], outer = job->rows[1];
    const int64_t turns = outer.extent - (job->over == 1), rows = inner.extent - (job->over == 0);
    int64_t offset[16];
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++) offset[k] = job->offset[k];
    if (rows == 2) {
        for (int64_t r = turns; r > 0; r--, dst += outer.dst, src += outer.src) {
            step(dst, src, offset, 0);
            step(dst + inner.dst, src + inner.src, offset, 0);
        }
        return;
    }
    for (int64_t r = turns; r > 0; r--, dst += outer.dst, src += outer.src) {
        uint8_t *d = dst;
        const uint8_t *s = src;
        for (int64_t q = rows; q > 0; q--, d += inner.dst, s += inner.src) step(d, s, offset, 0);
    }
}

/* All rows, or those that s2dq_avx2_run_short leaves. Requires job->bytes >= 4, and >= w. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_streams(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job,
                                            s2dq_avx2_stepper by32, s2dq_avx2_stepper by16, s2dq_avx2_stepper by12,
                                            s2dq_avx2_stepper by8, s2dq_avx2_stepper by4, bool merge, int streams,
                                            int w)
{
    const int64_t n = job->bytes;
    const s2dq_axis inner = job->rows[0], outer = job->rows[1];
    const int axis = job->over;
    int64_t offset[16]; /* a copy: what is stored to dst cannot change it, so it stays in registers */
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++) offset[k] = job->offset[k];
    const int done = s2dq_avx2_is_short(job, streams);
    const int64_t first = done && axis == 1 ? outer.extent - 1 : 0;
    dst += first * outer.dst;
    src += first * outer.src;
    for (int64_t r = first; r < outer.extent; r++, dst += outer.dst, src += outer.src) {
        const int64_t free = axis == 1 ? (r < outer.extent - 1 ? inner.extent : 0) : axis == 0 ? inner.extent - 1 : 0;
        int64_t q = done ? free : 0;
        uint8_t *d = dst + q * inner.dst;
        const uint8_t *s = src + q * inner.src;
        if (streams == 3 && n == 16 && (merge ? inner.dst : inner.src) == 48) {
            for (; q < inner.extent - 1; q += 2, d += 2 * inner.dst, s += 2 * inner.src)
                s2dq_avx2_pair_step(d, s, offset, merge ? inner.src : inner.dst, merge, w);
        }
        if (n <= 32) { /* short rows: one step each */
            for (; q < free; q++, d += inner.dst, s += inner.src) {
                if (n > 16)
                    by32(d, s, offset, 0);
                else if (n > 8)
                    by16(d, s, offset, 0);
                else
                    by8(d, s, offset, 0);
            }
        }
        for (; q < inner.extent; q++, d += inner.dst, s += inner.src) {
            const int over = q < free;
            int64_t i = 0;
            if (n >= 32) {
                for (; streams == 2 && i <= n - 64; i += 64) { /* few stores a turn: two turns at once */
                    by32(d, s, offset, i);
                    by32(d, s, offset, i + 32);
                }
                for (; i <= n - 32; i += 32) by32(d, s, offset, i);
                if (i < n) by32(d, s, offset, over ? i : n - 32);
            } else if (n >= 16) {
                for (int last = 0; last < 2; last++) by16(d, s, offset, last ? n - 16 : 0);
            } else if (streams > 8 && n == 12) { /* no step twice */
                by12(d, s, offset, 0);
            } else if (n >= 8) {
                for (int last = 0; last < 2; last++) by8(d, s, offset, last ? n - 8 : 0);
            } else {
                for (int last = 0; last < 2; last++) by4(d, s, offset, last ? n - 4 : 0);
            }
        }
    }
}

/* The steps of many streams are long: one copy of each, which is called. */
#define S2DQ_AVX2_STEP(LINKAGE, NAME, MERGE, STREAMS, W, BYTES)                                                   \
    LINKAGE void NAME(uint8_t *dst, const uint8_t *src, const int64_t *offset, int64_t i)                         \
    {                                                                                                             \
        s2dq_avx2_step(dst, src, offset, i, MERGE, STREAMS, W, (BYTES) < (W) ? W : BYTES);                        \
    }
#define S2DQ_AVX2_STREAMS(LINKAGE, NAME, MERGE, STREAMS, W)                                                       \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by32, MERGE, STREAMS, W, 32)                                                   \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by16, MERGE, STREAMS, W, 16)                                                   \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by12, MERGE, STREAMS, W, 12)                                                   \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by8, MERGE, STREAMS, W, 8)                                                     \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by4, MERGE, STREAMS, W, 4)                                                     \
    S2DQ_AVX2 static void NAME##_short32(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job)          \
    {                                                                                                             \
        s2dq_avx2_run_short(dst, src, job, NAME##_by32, STREAMS);                                                 \
    }                                                                                                             \
    S2DQ_AVX2 static void NAME##_short16(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job)          \
    {                                                                                                             \
        s2dq_avx2_run_short(dst, src, job, NAME##_by16, STREAMS);                                                 \
    }                                                                                                             \
    S2DQ_AVX2 static void NAME##_short8(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job)           \
    {                                                                                                             \
        s2dq_avx2_run_short(dst, src, job, NAME##_by8, STREAMS);                                                  \
    }                                                                                                             \
    S2DQ_AVX2 static void NAME(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job)                    \
    {                                                                                                             \
        if (s2dq_avx2_is_short(job, STREAMS)) {                                                                   \
            if (job->bytes > 16)                                                                                  \
                NAME##_short32(dst, src, job);                                                                    \
            else if (job->bytes > 8)                                                                              \
                NAME##_short16(dst, src, job);                                                                    \
            else                                                                                                  \
                NAME##_short8(dst, src, job);                                                                     \
        }                                                                                                         \
        if (job->over == S2DQ_AVX2_EXACT) return;                                                                 \
        s2dq_avx2_run_streams(dst, src, job, NAME##_by32, NAME##_by16, NAME##_by12, NAME##_by8, NAME##_by4, MERGE, \
                              STREAMS, W);                                                                        \
    }
#define S2DQ_AVX2_BOTH(LINKAGE, STREAMS, W)                                               \
    S2DQ_AVX2_STREAMS(LINKAGE, s2dq_avx2_merge_##STREAMS##_x##W, 1, STREAMS, W)           \
    S2DQ_AVX2_STREAMS(LINKAGE, s2dq_avx2_split_##STREAMS##_x##W, 0, STREAMS, W)

S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 4)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 8)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 16)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 3, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 3, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 3, 4)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 4)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 8)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 16)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 6, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 6, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 8, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 8, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 9, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 12, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 16, 1)

typedef void (*s2dq_avx2_streams_kernel)(uint8_t *, const uint8_t *, const s2dq_avx2_streams *);

/* The kernel for so many streams of granules of width w, or NULL. */
static s2dq_avx2_streams_kernel s2dq_avx2_streams_for(bool merge, int64_t streams, int64_t w)
{
#define S2DQ_CASE(S, W) \
    case 256 * S + W: return merge ? s2dq_avx2_merge_##S##_x##W : s2dq_avx2_split_##S##_x##W;
    if (streams > 16 || w > 16) return NULL;
    switch (256 * streams + w) {
    S2DQ_CASE(2, 1) S2DQ_CASE(2, 2) S2DQ_CASE(2, 4) S2DQ_CASE(2, 8) S2DQ_CASE(2, 16)
    S2DQ_CASE(3, 1) S2DQ_CASE(3, 2) S2DQ_CASE(3, 4)
    S2DQ_CASE(4, 1) S2DQ_CASE(4, 2) S2DQ_CASE(4, 4) S2DQ_CASE(4, 8) S2DQ_CASE(4, 16)
    S2DQ_CASE(6, 1) S2DQ_CASE(6, 2) S2DQ_CASE(8, 1) S2DQ_CASE(8, 2)
    S2DQ_CASE(9, 1) S2DQ_CASE(12, 1) S2DQ_CASE(16, 1)
    default: return NULL;
    }
#undef S2DQ_CASE
}

/* ------------------------------------------------------------------------------------------- blocks of 4 x 12 bytes */

/* Four streams of 12-byte granules, as in blocks of 4 x 4 RGB pixels: 24 bytes of each stream are three words out of
 * every four of a vector, none in the place of another's, so one word shuffle per stream and blends do. Two blocks of
 * 48 bytes are `pitch` apart. `back` makes the loads of a merge end with the last granule, `last` the stores of a
 * split. */
enum { S2DQ_NO = 0 /* word in particular: no blend takes it, and no store that counts */ };
#define S2DQ_WORDS(V, ...)                                                                                             \
    _mm256_permutevar8x32_epi32(V, _mm256_add_epi32(_mm256_setr_epi32(__VA_ARGS__), _mm256_set1_epi32(back / 4)))

S2DQ_AVX2_INLINE void s2dq_avx2_merge_12(uint8_t *dst, const uint8_t *src, int64_t stream, int64_t pitch, int back)
{
    const __m256i a = S2DQ_WORDS(s2dq_avx2_load(src - back, 32), 0, 1, 2, S2DQ_NO, 3, 4, 5, S2DQ_NO);
    const __m256i b = S2DQ_WORDS(s2dq_avx2_load(src + stream - back, 32), 4, 5, S2DQ_NO, 0, 1, 2, S2DQ_NO, 3);
    const __m256i c = S2DQ_WORDS(s2dq_avx2_load(src + 2 * stream - back, 32), 2, S2DQ_NO, 3, 4, 5, S2DQ_NO, 0, 1);
    const __m256i d = S2DQ_WORDS(s2dq_avx2_load(src + 3 * stream - back, 32), S2DQ_NO, 0, 1, 2, S2DQ_NO, 3, 4, 5);
    const __m256i x = _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x38), c, 0xC0);
    const __m256i y = _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x80), _mm256_blend_epi32(c, d, 0x0E), 0x0F);
    const __m256i z = _mm256_blend_epi32(_mm256_blend_epi32(c, d, 0xE0), b, 0x03);
    s2dq_avx2_store(dst, x, 32);
    if (pitch == 48) {
        s2dq_avx2_store(dst + 32, y, 32);
    } else {
        s2dq_avx2_store(dst + 32, y, 16);
        _mm_storeu_si128((__m128i *)(dst + pitch), _mm256_extracti128_si256(y, 1));
    }
    s2dq_avx2_store(dst + pitch + 16, z, 32);
}

S2DQ_AVX2_INLINE void s2dq_avx2_store_24(uint8_t *dst, __m256i v, bool last)
{
    s2dq_avx2_store(dst, v, last ? 16 : 32);
    if (last) _mm_storel_epi64((__m128i *)(dst + 16), _mm256_extracti128_si256(v, 1));
}

S2DQ_AVX2_INLINE void s2dq_avx2_split_12(uint8_t *dst, const uint8_t *src, int64_t stream, int64_t pitch, bool last)
{
    const int back = 0;
    const __m256i x = s2dq_avx2_load(src, 32), z = s2dq_avx2_load(src + pitch + 16, 32);
    const __m256i y = pitch == 48 ? s2dq_avx2_load(src + 32, 32) : s2dq_avx2_load_pair(src + 32, src + pitch);
    const __m256i a = _mm256_blend_epi32(x, y, 0x70), d = _mm256_blend_epi32(y, z, 0xE0);
    const __m256i b = _mm256_blend_epi32(_mm256_blend_epi32(x, y, 0x80), z, 0x03);
    const __m256i c = _mm256_blend_epi32(_mm256_blend_epi32(x, y, 0x01), z, 0x1C);
    S2DQ_UNROLL
    for (int k = 0; k < 4; k++) s2dq_avx2_fetch(dst + k * stream + S2DQ_AVX2_SPLIT_AHEAD);
    s2dq_avx2_store_24(dst, S2DQ_WORDS(a, 0, 1, 2, 4, 5, 6, S2DQ_NO, S2DQ_NO), last);
    s2dq_avx2_store_24(dst + stream, S2DQ_WORDS(b, 3, 4, 5, 7, 0, 1, S2DQ_NO, S2DQ_NO), last);
    s2dq_avx2_store_24(dst + 2 * stream, S2DQ_WORDS(c, 6, 7, 0, 2, 3, 4, S2DQ_NO, S2DQ_NO), last);
    s2dq_avx2_store_24(dst + 3 * stream, S2DQ_WORDS(d, 1, 2, 3, 5, 6, 7, S2DQ_NO, S2DQ_NO), last);
}

#undef S2DQ_WORDS

/* `n` blocks in each row, at least three: the last two overlap those before where n is odd. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_12(uint8_t *dst, const uint8_t *src, int64_t stream, int64_t pitch, int64_t n,
                                       s2dq_axis rows, bool merge)
{
    for (int64_t r = 0; r < rows.extent; r++, dst += rows.dst, src += rows.src) {
        for (int64_t i = 0; i <= n - 3; i += 2) {
            if (merge) s2dq_avx2_merge_12(dst + i * pitch, src + 12 * i, stream, pitch, 0);
            else s2dq_avx2_split_12(dst + 12 * i, src + i * pitch, stream, pitch, false);
        }
        if (merge) s2dq_avx2_merge_12(dst + (n - 2) * pitch, src + 12 * (n - 2), stream, pitch, 8);
        else s2dq_avx2_split_12(dst + 12 * (n - 2), src + (n - 2) * pitch, stream, pitch, true);
    }
}

S2DQ_AVX2 static void s2dq_avx2_blocks_12(uint8_t *dst, const uint8_t *src, int64_t stream, int64_t pitch, int64_t n,
                                          s2dq_axis rows, bool merge)
{
    if (merge && pitch == 48) s2dq_avx2_run_12(dst, src, stream, 48, n, rows, true);
    else if (merge) s2dq_avx2_run_12(dst, src, stream, pitch, n, rows, true);
    else if (pitch == 48) s2dq_avx2_run_12(dst, src, stream, 48, n, rows, false);
    else s2dq_avx2_run_12(dst, src, stream, pitch, n, rows, false);
}

/* ------------------------------------------------------------------------------------------------ runs of pixels */

/* Runs of 3 or 4 RGB pixels, or of 2 of each of two rows, to the words that the pixels of one row have of one channel,
 * or back. In each lane the words of some runs are a square, whose columns go to the streams; words of 3 bytes have
 * places of 4 there. */
typedef struct {
    int64_t stream[6];        /* where each begins */
    int64_t run, runs_on, on; /* from a run to the next one; to the runs, and to the words, of the upper lane */
    int64_t steps, free;      /* in a row; and those behind which there is more of it */
    int64_t next_runs, next;  /* to those of the next step, */
    int64_t last_runs, last;  /* and to those of the last one, which may overlap it */
    s2dq_axis rows;
} s2dq_avx2_runs;

/* What follows from the pixels of a row that a run has. */
#define S2DQ_AVX2_PLACE(PIXELS) ((PIXELS) == 2 ? 2 : 4)           /* bytes for a word */
#define S2DQ_AVX2_RUN_BYTES(PIXELS) ((PIXELS) == 3 ? 9 : 12)

/* Channels of the pixels of a run to words in their places, or back. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_regroup(__m256i v, int pixels, bool merge)
{
    const int w = S2DQ_AVX2_PLACE(pixels);
#define S2DQ_TO_WORDS(i) (char)((i) / w / 3 * 3 * pixels + (i) % w * 3 + (i) / w % 3)
#define S2DQ_TO_PIXELS(i) (char)((i) / (3 * pixels) * 3 * w + (i) % 3 * w + (i) / 3 % pixels)
    return _mm256_shuffle_epi8(v, merge ? S2DQ_AVX2_MASK(S2DQ_TO_PIXELS) : S2DQ_AVX2_MASK(S2DQ_TO_WORDS));
#undef S2DQ_TO_WORDS
#undef S2DQ_TO_PIXELS
}

/* Words of 3 bytes that follow each other to places of 4, or back. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_spread(__m256i v, bool back)
{
#define S2DQ_TO_PLACES(i) (char)((i) / 4 * 3 + (i) % 4)
#define S2DQ_FROM_PLACES(i) (char)((i) / 3 * 4 + (i) % 3)
    return _mm256_shuffle_epi8(v, back ? S2DQ_AVX2_MASK(S2DQ_FROM_PLACES) : S2DQ_AVX2_MASK(S2DQ_TO_PLACES));
#undef S2DQ_TO_PLACES
#undef S2DQ_FROM_PLACES
}

/* 16, 12 or 9 bytes, as above. */
S2DQ_AVX2_INLINE __m128i s2dq_avx2_load_run(const uint8_t *p, int bytes)
{
    if (bytes == 9) return _mm_insert_epi8(_mm_loadl_epi64((const __m128i *)p), p[8], 8);
    return _mm256_castsi256_si128(s2dq_avx2_load(p, bytes));
}

S2DQ_AVX2_INLINE void s2dq_avx2_store_run(uint8_t *p, __m128i v, int bytes)
{
    s2dq_avx2_store(p, _mm256_castsi128_si256(v), bytes == 9 ? 8 : bytes);
    if (bytes == 9) p[8] = (uint8_t)_mm_extract_epi8(v, 8);
}

/* `exact` touches nothing behind a run or behind words, which else the next step reads, or writes. */
S2DQ_AVX2_INLINE void s2dq_avx2_runs_step(uint8_t *dst, const uint8_t *src, const s2dq_avx2_runs *job, int pixels,
                                          bool merge, bool exact, bool last)
{
    const int w = S2DQ_AVX2_PLACE(pixels), n = 16 / w, streams = 12 / w, results = merge ? n : streams;
    const int run = exact ? S2DQ_AVX2_RUN_BYTES(pixels) : 16, words = last && pixels == 3 ? 12 : 16;
    __m256i v[8];
    S2DQ_UNROLL
    for (int i = 0; i < n; i++) {
        v[i] = _mm256_setzero_si256();
        if (merge && i >= streams) continue;
        const uint8_t *const p = src + (merge ? job->stream[i] : i * job->run);
        const int bytes = merge ? words : run;
        v[i] = _mm256_castsi128_si256(s2dq_avx2_load_run(p, bytes));
        v[i] = _mm256_inserti128_si256(v[i], s2dq_avx2_load_run(p + (merge ? job->on : job->runs_on), bytes), 1);
        if (!merge) v[i] = s2dq_avx2_regroup(v[i], pixels, false);
        else if (pixels == 3) v[i] = s2dq_avx2_spread(v[i], false);
    }
    s2dq_avx2_weave(v, n, w);
    S2DQ_UNROLL
    for (int i = 0; i < results; i++) {
        if (merge) v[i] = s2dq_avx2_regroup(v[i], pixels, true);
        else if (pixels == 3) v[i] = s2dq_avx2_spread(v[i], true);
    }
    /* In rising order, for what is written too much is written again. */
    S2DQ_UNROLL
    for (int i = 0; i < 2 * results; i++) {
        const int k = i % results;
        uint8_t *const p = dst + (merge ? k * job->run : job->stream[k]);
        if (i == k && !merge) s2dq_avx2_fetch(p + S2DQ_AVX2_WORDS_AHEAD);
        if (i == k) s2dq_avx2_store_run(p, _mm256_castsi256_si128(v[k]), merge ? run : words);
        else s2dq_avx2_store_run(p + (merge ? job->runs_on : job->on), _mm256_extracti128_si256(v[k], 1),
                                 merge ? run : words);
    }
}

S2DQ_AVX2_INLINE void s2dq_avx2_run_runs(uint8_t *dst, const uint8_t *src, const s2dq_avx2_runs *from, int pixels,
                                         bool merge, bool exact)
{
    const s2dq_avx2_runs job = *from; /* a copy: what is stored to dst cannot change it */
    const int64_t next_dst = merge ? job.next_runs : job.next, next_src = merge ? job.next : job.next_runs;
    const int64_t last_dst = merge ? job.last_runs : job.last, last_src = merge ? job.last : job.last_runs;
    for (int64_t r = 0; r < job.rows.extent; r++, dst += job.rows.dst, src += job.rows.src) {
        int64_t i = 0;
        for (; i < job.free; i++)
            s2dq_avx2_runs_step(dst + i * next_dst, src + i * next_src, &job, pixels, merge, exact, false);
        for (; i < job.steps; i++) {
            const bool last = i == job.steps - 1;
            s2dq_avx2_runs_step(dst + (last ? last_dst : i * next_dst), src + (last ? last_src : i * next_src), &job,
                                pixels, merge, true, true);
        }
    }
}

#define S2DQ_AVX2_RUNS(PIXELS)                                                                                      \
    S2DQ_AVX2 static void s2dq_avx2_runs_of_##PIXELS(uint8_t *dst, const uint8_t *src, const s2dq_avx2_runs *job,   \
                                                     bool merge, bool exact)                                        \
    {                                                                                                               \
        if (!merge) s2dq_avx2_run_runs(dst, src, job, PIXELS, false, false);                                        \
        else if (exact) s2dq_avx2_run_runs(dst, src, job, PIXELS, true, true);                                      \
        else s2dq_avx2_run_runs(dst, src, job, PIXELS, true, false);                                                \
    }

S2DQ_AVX2_RUNS(2)
S2DQ_AVX2_RUNS(3)
S2DQ_AVX2_RUNS(4)

typedef void (*s2dq_avx2_runs_kernel)(uint8_t *, const uint8_t *, const s2dq_avx2_runs *, bool, bool);

static const s2dq_avx2_runs_kernel s2dq_avx2_runs_kernels[] = {s2dq_avx2_runs_of_2, s2dq_avx2_runs_of_3,
                                                               s2dq_avx2_runs_of_4};

#endif
#endif
