/* Bytes that change places and go through their tables on the way, for AVX2, which cannot look bytes up.
 *
 * s2dq_avx2_map    the same as s2dq_lookup in portable.h, where every table has a line (see tile.h), or all turn the
 *                  same bits: the channels of pixels, split into as many streams, in registers; each stream has a line
 *                  of its own, so that its constants are the same in all places of a register. One stream is a run that
 *                  stays as it is. What is no such split goes through the tables, and so do bytes of which bits are
 *                  turned first.
 */
#ifndef S2DQ_AVX2_MAP_H
#define S2DQ_AVX2_MAP_H

#include "avx2.h"
#include "tile.h"

/* What all lookups of a call have in common. `lines` has one for each table, or is NULL where only `flip` is turned. */
typedef struct {
    const uint8_t *tables;
    const s2dq_line *lines;
    uint8_t first, flip;
} s2dq_tables;

#if defined(S2DQ_X86)

enum { S2DQ_AVX2_STREAMS_MOST = 16 };

/* What becomes of bytes: bits of them are turned, and nothing else; or they go through a line before, of which
 * something is taken off first, or which is shifted behind. */
enum { S2DQ_AVX2_TURNED, S2DQ_AVX2_LINE, S2DQ_AVX2_FALLING, S2DQ_AVX2_SHIFTED = 4, S2DQ_AVX2_LINE_KINDS = 8 };

/* A row of every stream. */
typedef struct {
    uint16_t slope[S2DQ_AVX2_STREAMS_MOST], more[S2DQ_AVX2_STREAMS_MOST], less[S2DQ_AVX2_STREAMS_MOST];
    int64_t offset[S2DQ_AVX2_STREAMS_MOST]; /* of the streams in the result */
    int64_t bytes;                          /* in a row of each of them */
    int shift;
    uint8_t flip;
} s2dq_avx2_mapped;

/* What is the same for every stream. */
typedef struct {
    __m256i flip;
    __m128i down, up;
} s2dq_avx2_turns;

/* The constants of a stream in every word of a register. */
typedef struct {
    __m256i slope, more, less;
} s2dq_avx2_slope;

/* The bytes of a register through their line. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_through(__m256i value, const s2dq_avx2_turns *turns, const s2dq_avx2_slope *by,
                                           int kind)
{
    const __m256i upper = _mm256_set1_epi16((short)0xFF00);
    if (kind == S2DQ_AVX2_TURNED) return _mm256_xor_si256(value, turns->flip);
    __m256i even = _mm256_slli_epi16(value, 8), odd = _mm256_and_si256(value, upper);
    if (kind & S2DQ_AVX2_FALLING) even = _mm256_subs_epu16(even, by->less), odd = _mm256_subs_epu16(odd, by->less);
    even = _mm256_adds_epu16(_mm256_mulhi_epu16(even, by->slope), by->more);
    odd = _mm256_adds_epu16(_mm256_mulhi_epu16(odd, by->slope), by->more);
    even = kind & S2DQ_AVX2_SHIFTED ? _mm256_srl_epi16(even, turns->down) : _mm256_srli_epi16(even, 8);
    if (kind & S2DQ_AVX2_SHIFTED) odd = _mm256_sll_epi16(odd, turns->up);
    return _mm256_xor_si256(_mm256_blendv_epi8(even, odd, upper), turns->flip);
}

/* `bytes` of each stream, 16 or 32. */
S2DQ_AVX2_INLINE void s2dq_avx2_map_step(uint8_t *dst, const uint8_t *src, const int64_t *offset,
                                         const s2dq_avx2_turns *turns, const s2dq_avx2_slope *slopes, int streams,
                                         int kind, int bytes)
{
    __m256i v[S2DQ_AVX2_STREAMS_MOST];
    if (streams == 1) {
        v[0] = s2dq_avx2_load(src, bytes);
    } else {
        s2dq_avx2_take(v, src, streams, bytes);
        s2dq_avx2_deinterleave(v, streams, 1);
    }
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++)
        s2dq_avx2_store(dst + offset[k], s2dq_avx2_through(v[k], turns, &slopes[k], kind), bytes);
}

/* All rows. */
S2DQ_AVX2_INLINE void s2dq_avx2_map_rows(uint8_t *dst, const uint8_t *src, const s2dq_avx2_mapped *job,
                                         const s2dq_box *rows, int streams, int kind)
{
    const int64_t n = job->bytes;
    const s2dq_avx2_turns turns = {
        _mm256_set1_epi8((char)job->flip), _mm_cvtsi32_si128(8 - job->shift), _mm_cvtsi32_si128(job->shift)};
    s2dq_avx2_slope slopes[S2DQ_AVX2_STREAMS_MOST];
    int64_t offset[S2DQ_AVX2_STREAMS_MOST]; /* a copy: what is stored to dst cannot change it */
    s2dq_position at;
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++) {
        offset[k] = job->offset[k];
        slopes[k].slope = _mm256_set1_epi16((short)job->slope[k]);
        slopes[k].more = _mm256_set1_epi16((short)job->more[k]);
        slopes[k].less = _mm256_set1_epi16((short)job->less[k]);
    }
    s2dq_start(&at, rows, 0);
    do {
        uint8_t *d = dst + at.dst;
        const uint8_t *s = src + at.src;
        if (n < 32) {
            s2dq_avx2_map_step(d, s, offset, &turns, slopes, streams, kind, 16);
            s2dq_avx2_map_step(d + n - 16, s + (n - 16) * streams, offset, &turns, slopes, streams, kind, 16);
        } else {
            int64_t i = 0;
            for (; i <= n - 32; i += 32)
                s2dq_avx2_map_step(d + i, s + i * streams, offset, &turns, slopes, streams, kind, 32);
            if (i < n) /* once more, from behind */
                s2dq_avx2_map_step(d + n - 32, s + (n - 32) * streams, offset, &turns, slopes, streams, kind, 32);
        }
    } while (s2dq_next(&at, rows, 0));
}

typedef void (*s2dq_avx2_mapper)(uint8_t *, const uint8_t *, const s2dq_avx2_mapped *, const s2dq_box *);

#define S2DQ_AVX2_MAPPER(S, KIND)                                                                                      \
    S2DQ_AVX2 static void s2dq_avx2_map_##S##_##KIND(uint8_t *dst, const uint8_t *src, const s2dq_avx2_mapped *job,    \
                                                     const s2dq_box *rows)                                             \
    {                                                                                                                  \
        s2dq_avx2_map_rows(dst, src, job, rows, S, KIND);                                                              \
    }
#define S2DQ_AVX2_MAPPERS(S)                                                                                           \
    S2DQ_AVX2_MAPPER(S, 0) S2DQ_AVX2_MAPPER(S, 1) S2DQ_AVX2_MAPPER(S, 3) S2DQ_AVX2_MAPPER(S, 5) S2DQ_AVX2_MAPPER(S, 7)

S2DQ_AVX2_MAPPERS(1)
S2DQ_AVX2_MAPPERS(2)
S2DQ_AVX2_MAPPERS(3)
S2DQ_AVX2_MAPPERS(4)
S2DQ_AVX2_MAPPERS(6)
S2DQ_AVX2_MAPPERS(8)
S2DQ_AVX2_MAPPERS(12)
S2DQ_AVX2_MAPPERS(16)

#define S2DQ_AVX2_MAPPED(S)                                                                                            \
    [S] = {[0] = s2dq_avx2_map_##S##_0, [1] = s2dq_avx2_map_##S##_1, [3] = s2dq_avx2_map_##S##_3,                      \
           [5] = s2dq_avx2_map_##S##_5, [7] = s2dq_avx2_map_##S##_7}
static const s2dq_avx2_mapper s2dq_avx2_mappers[S2DQ_AVX2_STREAMS_MOST + 1][S2DQ_AVX2_LINE_KINDS] = {
    S2DQ_AVX2_MAPPED(1), S2DQ_AVX2_MAPPED(2), S2DQ_AVX2_MAPPED(3),  S2DQ_AVX2_MAPPED(4),
    S2DQ_AVX2_MAPPED(6), S2DQ_AVX2_MAPPED(8), S2DQ_AVX2_MAPPED(12), S2DQ_AVX2_MAPPED(16)};

/* The streams of a run: those places of its source step that other loops distribute, all of them. IN: the loops but the
 * run. OUT: job->offset, the line of each stream, the loops that remain, and how far the first stream's bytes are from
 * where the loops begin. Returns 0 where some place is nobody's. */
static bool s2dq_avx2_map_streams(s2dq_avx2_mapped *job, int64_t *line, s2dq_box *rows, int64_t *back,
                                  const s2dq_axis *axes, int count, int64_t streams)
{
    int64_t place[S2DQ_AVX2_STREAMS_MOST] = {0}, offset[S2DQ_AVX2_STREAMS_MOST] = {0};
    int64_t table[S2DQ_AVX2_STREAMS_MOST] = {0}, known = 1;
    uint32_t taken = 0;
    rows->count = 0;
    rows->width = 1;
    *back = 0;
    for (int a = 0; a < count; a++) {
        const s2dq_axis axis = axes[a];
        if (axis.extent == 1) continue;
        if (axis.src == 0 || s2dq_magnitude(axis.src) >= streams || known * axis.extent > streams) {
            if (axis.tab || rows->count == S2DQ_BOX_AXES) return false;
            rows->axes[rows->count++] = axis;
            continue;
        }
        if (axis.src < 0) *back += (axis.extent - 1) * -axis.src;
        for (int64_t k = known; k < known * axis.extent; k++) {
            place[k] = place[k - known] + axis.src;
            offset[k] = offset[k - known] + axis.dst;
            table[k] = table[k - known] + axis.tab;
        }
        known *= axis.extent;
    }
    for (int64_t k = 0; k < known; k++) {
        const int64_t at = place[k] + *back;
        if (at >= streams || (taken >> at & 1)) return false;
        taken |= (uint32_t)1 << at;
        job->offset[at] = offset[k];
        line[at] = table[k] / 256;
    }
    return known == streams;
}

static void s2dq_avx2_map(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_tables *mapping,
                          const s2dq_axis *axes, int count)
{
    s2dq_avx2_mapped job = {.flip = mapping->flip};
    s2dq_axis others[S2DQ_BOX_AXES + 1];
    int64_t line[S2DQ_AVX2_STREAMS_MOST], back;
    s2dq_box rows;
    int run = 0, left = 0;
    while (run < count && (axes[run].dst != 1 || axes[run].src < 1 || axes[run].tab)) run++;
    if (run < count && count <= S2DQ_BOX_AXES && axes[run].extent >= 16 && !mapping->first) {
        const int64_t streams = axes[run].src;
        for (int a = 0; a < count; a++)
            if (a != run) others[left++] = axes[a];
        if (streams <= S2DQ_AVX2_STREAMS_MOST && s2dq_avx2_mappers[streams][0] &&
            s2dq_avx2_map_streams(&job, line, &rows, &back, others, left, streams)) {
            int kind = S2DQ_AVX2_TURNED;
            job.bytes = axes[run].extent;
            for (int k = 0; mapping->lines && k < streams; k++) {
                const s2dq_line *own = &mapping->lines[(table - mapping->tables) / 256 + line[k]];
                job.slope[k] = (uint16_t)own->slope, job.more[k] = (uint16_t)own->more;
                job.less[k] = (uint16_t)own->less, job.shift = (int)own->shift;
                kind |= S2DQ_AVX2_LINE | (own->less ? S2DQ_AVX2_FALLING : 0) | (own->shift ? S2DQ_AVX2_SHIFTED : 0);
            }
            s2dq_order(&rows, job.bytes * streams);
            s2dq_avx2_mappers[streams][kind](dst, src - back, &job, &rows);
            return;
        }
    }
    s2dq_lookup(dst, src, table, axes, count);
}

#endif
#endif
