/* Bytes that change places and go through their tables on the way, for AVX2, which cannot look bytes up.
 *
 * s2dq_avx2_map    the same as s2dq_lookup in portable.h, where every table has a line (see tile.h), or all turn the
 *                  same bits. Pixels that stay as they are, channel behind channel, are runs whose lines repeat with
 *                  the channels. Channels that are split into as many streams are so in registers; each stream has a
 *                  line of its own, so that its constants are the same in all places of a register. Where bits are
 *                  turned and nothing else, any pattern that repeats in the result will do (see avx2_programs.h). What
 *                  is neither goes through the tables, and so do streams of which bits are turned first.
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

enum { S2DQ_AVX2_STREAMS_MOST = 16, S2DQ_AVX2_PERIOD_MOST = 16 };

/* What becomes of bytes: bits of them are turned, and nothing else; or they go through a line before, of which
 * something is taken off first, or which is shifted behind. Of a line that does neither, no word may saturate: what is
 * added turns bits then, too. And bits may be turned even before. */
enum {
    S2DQ_AVX2_TURNED,
    S2DQ_AVX2_LINE,
    S2DQ_AVX2_FALLING,
    S2DQ_AVX2_SHIFTED = 4,
    S2DQ_AVX2_LINE_KINDS = 8,
    S2DQ_AVX2_ENDLESS = 8,
    S2DQ_AVX2_FIRST = 16
};

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
    __m256i flip, first;
    __m128i down, up;
} s2dq_avx2_turns;

S2DQ_AVX2_INLINE s2dq_avx2_turns s2dq_avx2_turns_of(uint8_t flip, uint8_t first, int shift)
{
    const s2dq_avx2_turns turns = {_mm256_set1_epi8((char)flip), _mm256_set1_epi8((char)first),
                                   _mm_cvtsi32_si128(8 - shift), _mm_cvtsi32_si128(shift)};
    return turns;
}

/* The constants of words: of a stream the same in all of a register. */
typedef struct {
    __m256i slope, more, less;
} s2dq_avx2_slope;

/* The bytes of a register through their lines, those of even places and those of odd ones. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_through(__m256i value, const s2dq_avx2_turns *turns, const s2dq_avx2_slope *evens,
                                           const s2dq_avx2_slope *odds, int kind)
{
    const __m256i upper = _mm256_set1_epi16((short)0xFF00);
    if (kind == S2DQ_AVX2_TURNED) return _mm256_xor_si256(value, turns->flip);
    if (kind & S2DQ_AVX2_FIRST) value = _mm256_xor_si256(value, turns->first);
    __m256i even = _mm256_slli_epi16(value, 8), odd = _mm256_and_si256(value, upper);
    if (kind & S2DQ_AVX2_FALLING)
        even = _mm256_subs_epu16(even, evens->less), odd = _mm256_subs_epu16(odd, odds->less);
    even = _mm256_mulhi_epu16(even, evens->slope), odd = _mm256_mulhi_epu16(odd, odds->slope);
    if (kind & S2DQ_AVX2_ENDLESS)
        even = _mm256_add_epi16(even, evens->more), odd = _mm256_add_epi16(odd, odds->more);
    else
        even = _mm256_adds_epu16(even, evens->more), odd = _mm256_adds_epu16(odd, odds->more);
    even = kind & S2DQ_AVX2_SHIFTED ? _mm256_srl_epi16(even, turns->down) : _mm256_srli_epi16(even, 8);
    if (kind & S2DQ_AVX2_SHIFTED) odd = _mm256_sll_epi16(odd, turns->up);
    value = _mm256_blendv_epi8(even, odd, upper);
    return kind & S2DQ_AVX2_ENDLESS ? value : _mm256_xor_si256(value, turns->flip);
}

/* `bytes` of each stream, 16 or 32. */
S2DQ_AVX2_INLINE void s2dq_avx2_map_step(uint8_t *dst, const uint8_t *src, const int64_t *offset,
                                         const s2dq_avx2_turns *turns, const s2dq_avx2_slope *slopes, int streams,
                                         int kind, int bytes)
{
    __m256i v[S2DQ_AVX2_STREAMS_MOST];
    s2dq_avx2_take(v, src, streams, bytes);
    s2dq_avx2_deinterleave(v, streams, 1);
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++)
        s2dq_avx2_store(dst + offset[k], s2dq_avx2_through(v[k], turns, &slopes[k], &slopes[k], kind), bytes);
}

/* All rows. */
S2DQ_AVX2_INLINE void s2dq_avx2_map_rows(uint8_t *dst, const uint8_t *src, const s2dq_avx2_mapped *job,
                                         const s2dq_box *rows, int streams, int kind)
{
    const int64_t n = job->bytes;
    const s2dq_avx2_turns turns = s2dq_avx2_turns_of(job->flip, 0, job->shift);
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
    S2DQ_AVX2_MAPPED(2), S2DQ_AVX2_MAPPED(3),  S2DQ_AVX2_MAPPED(4), S2DQ_AVX2_MAPPED(6),
    S2DQ_AVX2_MAPPED(8), S2DQ_AVX2_MAPPED(12), S2DQ_AVX2_MAPPED(16)};

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

/* Bytes that stay in their order. IN: `period`, after how many of them their lines repeat, and `line`, the first. */
typedef struct {
    const s2dq_line *line;
    int64_t line_step, bytes; /* from the line of a byte to that of the next one; in a row */
    int period, shift;
    uint8_t first, flip;
} s2dq_avx2_ordered;

/* OUT: the constants of the even places of a register, whichever of the period its first byte is; those of its odd
 * places are the next ones. */
S2DQ_AVX2_INLINE void s2dq_avx2_phases(s2dq_avx2_slope *phases, const s2dq_avx2_ordered *job, int kind)
{
    const int step = job->period > 2 ? 2 : 0; /* from a word to the next one: a remainder takes longer than all else */
    for (int p = 0; p <= job->period; p++) {
        uint16_t slope[16], more[16], less[16];
        for (int i = 0, at = p < job->period ? p : 0; i < 16; i++) {
            const s2dq_line *line = job->line + at * job->line_step;
            slope[i] = (uint16_t)line->slope;
            more[i] = (uint16_t)(line->more + (kind & S2DQ_AVX2_ENDLESS ? job->flip << 8 : 0));
            less[i] = (uint16_t)line->less;
            at += step;
            at -= at < job->period ? 0 : job->period;
        }
        phases[p].slope = s2dq_avx2_load((const uint8_t *)slope, 32);
        phases[p].more = s2dq_avx2_load((const uint8_t *)more, 32);
        phases[p].less = s2dq_avx2_load((const uint8_t *)less, 32);
    }
}

S2DQ_AVX2_INLINE void s2dq_avx2_ordered_step(uint8_t *dst, const uint8_t *src, const s2dq_avx2_turns *turns,
                                             const s2dq_avx2_slope *phase, int kind, int bytes)
{
    s2dq_avx2_store(dst, s2dq_avx2_through(s2dq_avx2_load(src, bytes), turns, phase, phase + 1, kind), bytes);
}

/* All rows. IN: `vectors`, after how many of them the period begins with one. */
S2DQ_AVX2_INLINE void s2dq_avx2_ordered_rows(uint8_t *dst, const uint8_t *src, const s2dq_avx2_ordered *job,
                                             const s2dq_box *rows, int vectors, int kind)
{
    const int64_t n = job->bytes;
    const s2dq_avx2_turns turns = s2dq_avx2_turns_of(job->flip, job->first, job->shift);
    s2dq_avx2_slope phases[S2DQ_AVX2_PERIOD_MOST + 1], own[6];
    s2dq_position at;
    if (kind != S2DQ_AVX2_TURNED) s2dq_avx2_phases(phases, job, kind);
    S2DQ_UNROLL
    for (int k = 0; k < vectors && kind != S2DQ_AVX2_TURNED; k++)
        own[2 * k] = phases[32 * k % job->period], own[2 * k + 1] = phases[32 * k % job->period + 1];
    s2dq_start(&at, rows, 0);
    do {
        uint8_t *d = dst + at.dst;
        const uint8_t *s = src + at.src;
        int64_t i = 0;
        if (n < 32) {
            s2dq_avx2_ordered_step(d, s, &turns, phases, kind, 16);
            s2dq_avx2_ordered_step(d + n - 16, s + n - 16, &turns, &phases[(n - 16) % job->period], kind, 16);
            continue;
        }
        for (; i <= n - 32 * vectors; i += 32 * vectors) {
            S2DQ_UNROLL
            for (int k = 0; k < vectors; k++)
                s2dq_avx2_ordered_step(d + i + 32 * k, s + i + 32 * k, &turns, &own[2 * k], kind, 32);
        }
        for (; i <= n - 32; i += 32) s2dq_avx2_ordered_step(d + i, s + i, &turns, &phases[i % job->period], kind, 32);
        if (i < n) /* once more, from behind */
            s2dq_avx2_ordered_step(d + n - 32, s + n - 32, &turns, &phases[(n - 32) % job->period], kind, 32);
    } while (s2dq_next(&at, rows, 0));
}

typedef void (*s2dq_avx2_runner)(uint8_t *, const uint8_t *, const s2dq_avx2_ordered *, const s2dq_box *);

#define S2DQ_AVX2_RUNNER(VECTORS, KIND)                                                                                \
    S2DQ_AVX2 static void s2dq_avx2_ordered_##VECTORS##_##KIND(uint8_t *dst, const uint8_t *src,                       \
                                                               const s2dq_avx2_ordered *job, const s2dq_box *rows)     \
    {                                                                                                                  \
        s2dq_avx2_ordered_rows(dst, src, job, rows, VECTORS, KIND);                                                    \
    }
#define S2DQ_AVX2_RUNNERS(VECTORS)                                                                                     \
    S2DQ_AVX2_RUNNER(VECTORS, 1) S2DQ_AVX2_RUNNER(VECTORS, 5) S2DQ_AVX2_RUNNER(VECTORS, 7)                             \
    S2DQ_AVX2_RUNNER(VECTORS, 9) S2DQ_AVX2_RUNNER(VECTORS, 23)

S2DQ_AVX2_RUNNER(1, 0)
S2DQ_AVX2_RUNNERS(1)
S2DQ_AVX2_RUNNERS(3)

/* A runner for a period that does all that `kind` says; or NULL. */
static s2dq_avx2_runner s2dq_avx2_ordered_runner(int period, int kind)
{
    static const s2dq_avx2_runner runners[2][5] = {
        {s2dq_avx2_ordered_1_1, s2dq_avx2_ordered_1_5, s2dq_avx2_ordered_1_7, s2dq_avx2_ordered_1_9,
         s2dq_avx2_ordered_1_23},
        {s2dq_avx2_ordered_3_1, s2dq_avx2_ordered_3_5, s2dq_avx2_ordered_3_7, s2dq_avx2_ordered_3_9,
         s2dq_avx2_ordered_3_23},
    };
    const int wide = 32 % period != 0;
    if (kind == S2DQ_AVX2_TURNED) return s2dq_avx2_ordered_1_0;
    if (wide && 96 % period) return NULL;
    if (kind & S2DQ_AVX2_FIRST) return runners[wide][4];
    if (kind & S2DQ_AVX2_ENDLESS) return runners[wide][3];
    if (kind & S2DQ_AVX2_FALLING) return runners[wide][2];
    return runners[wide][kind != S2DQ_AVX2_LINE];
}

/* Loops over bytes that stay in their order, of which one at most counts tables: that of channels. Returns 0 where
 * they are something else. */
static bool s2dq_avx2_map_ordered(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_tables *mapping,
                                  const s2dq_axis *axes, int count)
{
    s2dq_avx2_ordered job = {.period = 1, .first = mapping->first, .flip = mapping->flip};
    s2dq_axis others[S2DQ_BOX_AXES];
    s2dq_box rows = {.width = 1};
    int left = 0, kind = S2DQ_AVX2_TURNED;
    if (count > S2DQ_BOX_AXES) return false;
    for (int a = 0; a < count; a++) {
        others[left++] = axes[a];
        if (!axes[a].tab || axes[a].extent == 1) continue;
        if (axes[a].src != 1 || axes[a].dst != 1 || job.period > 1 || axes[a].extent > S2DQ_AVX2_PERIOD_MOST)
            return false;
        rows.width = job.period = (int)axes[a].extent;
        job.line_step = axes[a].tab / 256;
        left--;
    }
    s2dq_simplify(&rows, others, left);
    job.bytes = rows.width;
    if (job.bytes < 16) return false;
    if (mapping->lines) {
        bool ends = false;
        job.line = &mapping->lines[(table - mapping->tables) / 256];
        kind = S2DQ_AVX2_LINE | (job.first ? S2DQ_AVX2_FIRST : 0);
        for (int k = 0; k < job.period; k++) {
            const s2dq_line *own = job.line + k * job.line_step;
            kind |= (own->less ? S2DQ_AVX2_FALLING : 0) | (own->shift ? S2DQ_AVX2_SHIFTED : 0);
            ends = ends || s2dq_line_ends(own);
            job.shift = (int)own->shift;
        }
        if (kind == S2DQ_AVX2_LINE && !ends && !(job.flip & 127)) kind |= S2DQ_AVX2_ENDLESS; /* a sum turns the sign */
    }
    const s2dq_avx2_runner runner = s2dq_avx2_ordered_runner(job.period, kind);
    if (!runner) return false;
    s2dq_order(&rows, job.bytes);
    runner(dst, src, &job, &rows);
    return true;
}

static void s2dq_avx2_map(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_tables *mapping,
                          const s2dq_axis *axes, int count)
{
    s2dq_avx2_mapped job = {.flip = mapping->flip};
    s2dq_axis others[S2DQ_BOX_AXES + 1];
    int64_t line[S2DQ_AVX2_STREAMS_MOST], back;
    s2dq_box rows;
    int run = 0, left = 0;
    if (s2dq_avx2_map_ordered(dst, src, table, mapping, axes, count)) return;
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
    if (!mapping->lines && count <= S2DQ_BOX_AXES) {
        rows.width = 1;
        s2dq_simplify(&rows, axes, count);
        if (s2dq_avx2_try_pattern(dst, src, &rows, 4, 0, NULL, 1, mapping->flip)) return;
    }
    s2dq_lookup(dst, src, table, axes, count);
}

#endif
#endif
