/* Tile programs on AVX-512 VBMI for results that do not begin at a cache line, on processors to which stores of whole
 * registers across two lines are not dear enough for the runners of avx512_align.h, and that fetch by themselves: what
 * counts there is how many instructions a turn has, for the fewer, the more lines are under way. Measured on Zen 4.
 */
#ifndef S2DQ_AVX512_ROTATE_H
#define S2DQ_AVX512_ROTATE_H

#include "avx512_align.h"

#if defined(S2DQ_X86)

#define S2DQ_512_ROTATED 128 /* lines of a row on its own, from which it is worth its two ends */

/* Keeps the compiler from making one number of a pointer and an offset, and from keeping many of those. */
#define S2DQ_512_OPAQUE(value) __asm__("" : "+r"(value))

/* Runs that grow side by side, as of one turn. */
typedef struct {
    s2dq_512_constants with;       /* which make each output as it lies in its lines */
    __mmask64 own[S2DQ_REGISTERS]; /* of each run: the bytes of a line that its newest register has */
    int64_t started[S2DQ_REGISTERS], at[S2DQ_REGISTERS], line_at[S2DQ_REGISTERS];
} s2dq_512_rotation;

/* The lines of bytes that lie so many places further on; beyond the end, at the start. */
S2DQ_512_INLINE void s2dq_512_rotate_lines(s2dq_512_lines *own, int64_t by)
{
    const s2dq_512_lines before = *own;
    for (int odd = 0; odd < 2; odd++) {
        const int64_t from = (odd - by) & (S2DQ_REGISTER_BYTES - 1); /* the byte that comes to the first such place */
        const __m512i words = _mm512_add_epi8(_mm512_loadu_si512(s2dq_512_places), _mm512_set1_epi8((char)(from & ~1)));
        own->slope[odd] = _mm512_permutexvar_epi8(words, from & 1 ? before.slope[1] : before.slope[0]);
        own->more[odd] = _mm512_permutexvar_epi8(words, from & 1 ? before.more[1] : before.more[0]);
    }
}

/* OUT: all for turns at `dst`. */
S2DQ_512_INLINE void s2dq_512_rotate_to(s2dq_512_rotation *to, uint8_t *dst, const s2dq_tile *tile,
                                        const s2dq_filling *filling, int inputs, int outputs, int pieces, int way,
                                        bool fills, int mapped)
{
    s2dq_512_constants *with = &to->with;
    s2dq_512_read_constants(with, tile, filling, inputs, outputs, way, mapped, fills);
#pragma GCC unroll 4
    for (int k = 0; k < outputs; k++) {
        const int run = k / pieces;
        to->at[run] = tile->dst[run * pieces];
        to->started[run] = (int64_t)((uintptr_t)(dst + to->at[run]) & (S2DQ_REGISTER_BYTES - 1));
        to->line_at[run] = to->at[run] - to->started[run];
        to->own[run] = UINT64_MAX << to->started[run];
        const __m512i places = _mm512_loadu_si512(s2dq_512_places);
        const __m512i turn = _mm512_sub_epi8(places, _mm512_set1_epi8((char)to->started[run]));
        with->table[k] = _mm512_permutexvar_epi8(turn, with->table[k]);
        with->upper[k] = with->upper[k] << to->started[run] | with->upper[k] >> (-to->started[run] & 63);
        if (fills) {
            with->keep[k] = _mm512_permutexvar_epi8(turn, with->keep[k]);
            with->fill[k] = _mm512_permutexvar_epi8(turn, with->fill[k]);
        }
        if (mapped >= S2DQ_512_LINES) s2dq_512_rotate_lines(&with->own[k], to->started[run]);
    }
}

/* One turn. IN: `last`, the last register of each run; `begins`: there is none. OUT: `last`. */
S2DQ_512_INLINE void s2dq_512_rotate_turn(uint8_t *dst, const uint8_t *src, const s2dq_512_rotation *to, __m512i *last,
                                          const int64_t *src_at, bool begins, int inputs, int loads, int outputs,
                                          int pieces, int way, bool fills, int mapped)
{
    __m512i in[S2DQ_REGISTERS], made[S2DQ_REGISTERS];
    s2dq_512_read(in, src, src_at, &to->with, inputs, loads, way, mapped);
#pragma GCC unroll 4
    for (int k = 0; k < outputs; k++) {
        const int run = k / pieces, piece = k % pieces;
        uint8_t *const line = dst + to->line_at[run] + piece * S2DQ_REGISTER_BYTES;
        made[k] = s2dq_512_filled(in, k, &to->with, inputs, outputs, way, mapped, fills);
        if (begins && piece == 0)
            _mm512_mask_storeu_epi8(line, to->own[run], made[k]);
        else
            _mm512_store_si512((__m512i *)line,
                               _mm512_mask_blend_epi8(to->own[run], piece ? made[k - 1] : last[run], made[k]));
    }
#pragma GCC unroll 4
    for (int run = 0; run < outputs / pieces; run++) last[run] = made[(run + 1) * pieces - 1];
}

/* Stores what waits for its rest at `end`, if that is anywhere. */
S2DQ_512_INLINE void s2dq_512_rotate_end(uint8_t *end, const s2dq_512_rotation *to, const __m512i *last, int runs)
{
#pragma GCC unroll 4
    for (int run = 0; run < runs && end; run++)
        if (to->started[run]) _mm512_mask_storeu_epi8(end + to->line_at[run], ~to->own[run], last[run]);
}

/* As s2dq_512_align, for whole registers where nothing is fetched, no turn goes back, and nothing goes past the caches:
 * tables make each output already rotated to where it lies in its lines, so that lines are made by a blend. Rows may go
 * on from the one before, or from the one before that: two streams of the result in turn. */
S2DQ_512_INLINE void s2dq_512_rotate(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                     const s2dq_tile *tile, const s2dq_filling *filling, const s2dq_axis *loops,
                                     int inputs, int loads, int outputs, int pieces, int way, bool fills, int mapped)
{
    const int runs = outputs / pieces;
    int64_t src_at[S2DQ_PIECES];
    uint8_t *end = NULL, *other = NULL; /* where rows go on: one behind `last`, one behind `kept` */
    __m512i last[S2DQ_REGISTERS], kept[S2DQ_REGISTERS];
    s2dq_512_rotation to = {.started = {0}};
    for (int k = 0; k < inputs * loads; k++) src_at[k] = tile->src[k];
    for (int k = 0; k < runs; k++) last[k] = kept[k] = _mm512_setzero_si512();
    const int64_t src_step = loops[2].src, dst_step = loops[2].dst;
    /* A middle loop that goes on in the result is one with the innermost, but for where it reads. */
    const bool longer = !loops[1].dst_back && !loops[1].src_back && loops[1].dst == loops[2].extent * dst_step;
    const int64_t rows = longer ? 1 : loops[1].extent, joined = longer ? loops[1].extent : 1;
    const int64_t src_middle = loops[1].src - loops[2].extent * src_step;
    for (int64_t i = loops[0].extent; i > 0; i--, src += loops[0].src, dst += loops[0].dst) {
        if (i == 1) src -= loops[0].src_back, dst -= loops[0].dst_back;
        const uint8_t *row_src = src;
        uint8_t *row_dst = dst;
        for (int64_t j = rows; j > 0; j--, row_src += loops[1].src, row_dst += loops[1].dst) {
            if (j == 1) row_src -= loops[1].src_back, row_dst -= loops[1].dst_back;
            const uint8_t *s = row_src;
            uint8_t *d = row_dst;
            int64_t left = loops[2].extent;
            if (d == other && d != end) {
                other = end;
#pragma GCC unroll 4
                for (int run = 0; run < runs; run++) {
                    const __m512i swapped = last[run];
                    last[run] = kept[run], kept[run] = swapped;
                }
            } else if (d != end) {
                const bool anew = !end || ((uintptr_t)d ^ (uintptr_t)end) & (S2DQ_REGISTER_BYTES - 1);
                s2dq_512_rotate_end(other, &to, kept, runs);
                if (anew) s2dq_512_rotate_end(end, &to, last, runs);
                other = anew ? NULL : end;
#pragma GCC unroll 4
                for (int run = 0; run < runs; run++) kept[run] = last[run];
                if (anew) s2dq_512_rotate_to(&to, d, tile, filling, inputs, outputs, pieces, way, fills, mapped);
                s2dq_512_rotate_turn(d, s, &to, last, src_at, true, inputs, loads, outputs, pieces, way, fills,
                                     mapped);
                s += src_step, d += dst_step, left--;
            }
            for (int64_t more = joined; more > 0; more--) {
                for (; left > 0; left--) {
                    S2DQ_512_OPAQUE(s);
                    S2DQ_512_OPAQUE(d);
                    s2dq_512_rotate_turn(d, s, &to, last, src_at, false, inputs, loads, outputs, pieces, way, fills,
                                         mapped);
                    s += src_step, d += dst_step;
                }
                left = loops[2].extent, s += src_middle;
            }
            end = d;
        }
    }
    s2dq_512_rotate_end(other, &to, kept, runs);
    s2dq_512_rotate_end(end, &to, last, runs);
}

#define S2DQ_512_ROTATOR_NAME(NAME, I, L, O, P)                                                                       \
    S2DQ_512 static void s2dq_512_##NAME##_rotate_##I##L##O##P(uint8_t *dst, const uint8_t *src,                      \
                                                               const s2dq_tile *tile, const s2dq_filling *filling,    \
                                                               const s2dq_axis *loops)
#define S2DQ_512_ROTATOR_OF(NAME, I, L, O, P, WAY, FILLS, MAPPED)                                                     \
    S2DQ_512_ROTATOR_NAME(NAME, I, L, O, P)                                                                           \
    {                                                                                                                 \
        s2dq_512_rotate(dst, src, tile, filling, loops, I, L, O, P, WAY, FILLS, MAPPED);                              \
    }
#define S2DQ_512_MIXED_ROTATOR(I, L, O, S, P) S2DQ_512_ROTATOR_OF(mixed, I, L, O, P, S2DQ_MIXED, false, 0)
#define S2DQ_512_PAIRED_ROTATOR(I, L, O, S, P) S2DQ_512_ROTATOR_OF(paired, I, L, O, P, S2DQ_PAIRED, false, 0)
#define S2DQ_512_IN_TURN_ROTATOR(I, L, O, S, P) S2DQ_512_ROTATOR_OF(in_turn, I, L, O, P, S2DQ_PAIRED_IN_TURN, false, 0)
#define S2DQ_512_FILL_ROTATOR(I, L, O, S, P) S2DQ_512_ROTATOR_OF(fill, I, L, O, P, S2DQ_MIXED, true, 0)
#define S2DQ_512_TABLE_ROTATOR(I, L, O, S, P) \
    S2DQ_512_ROTATOR_OF(table, I, L, O, P, S2DQ_MIXED, false, S2DQ_512_TABLES)
/* Lines that saturate are seldom, and left to the runner of the shape. */
#define S2DQ_512_ROTATE_BY_LINES(MAPPED, I, L, O, P, WAY)                                                             \
    if (MAPPED == S2DQ_512_LINES)                                                                                     \
        s2dq_512_shape_runner(tile)(dst, src, tile, filling, loops);                                                  \
    else                                                                                                              \
        s2dq_512_rotate(dst, src, tile, filling, loops, I, L, O, P, WAY, tile->fills != 0, MAPPED);
#define S2DQ_512_LINE_ROTATOR_OF(NAME, I, L, O, P, WAY)                                                               \
    S2DQ_512_ROTATOR_NAME(NAME, I, L, O, P)                                                                           \
    {                                                                                                                 \
        S2DQ_512_BY_LINES(S2DQ_512_ROTATE_BY_LINES, I, L, O, P, WAY)                                                  \
    }
#define S2DQ_512_LINE_ROTATOR(I, L, O, S, P) S2DQ_512_LINE_ROTATOR_OF(line, I, L, O, P, S2DQ_MIXED)
#define S2DQ_512_LINE_PAIRED_ROTATOR(I, L, O, S, P) \
    S2DQ_512_LINE_ROTATOR_OF(line_paired, I, L, O, P, S2DQ_PAIRED)
#define S2DQ_512_LINE_ENDS_ROTATOR(I, L, O, S, P) \
    S2DQ_512_LINE_ROTATOR_OF(line_ends, I, L, O, P, S2DQ_512_ENDS)

/* Every shape, M(inputs, loads, outputs, stores, pieces). */
#define S2DQ_512_EACH_MIXED_ROTATOR(M)                                                              \
    S2DQ_512_LOADS_OF_ALL(S2DQ_512_WHOLE_1, M) S2DQ_512_LOADS_FROM_2(S2DQ_512_WHOLE_2, M)         \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_3, M) S2DQ_512_EACH_IN_TURN_ROTATOR(M)
#define S2DQ_512_EACH_PAIRED_ROTATOR(M)                                                             \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_2, M) S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_3, M)         \
    S2DQ_512_EACH_IN_TURN_ROTATOR(M)
#define S2DQ_512_EACH_IN_TURN_ROTATOR(M) S2DQ_512_LOADS(S2DQ_512_WHOLE_4, M, 4)
/* Where bytes are changed, of loads of 32 bytes and more. */
#define S2DQ_512_WIDE_LOADS(SHAPES, M, I) SHAPES(M, I, 1) SHAPES(M, I, 2)
#define S2DQ_512_EACH_CHANGING_ROTATOR(M)                                                           \
    S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_1, M, 1) S2DQ_512_EACH_LINE_ROTATOR(M)
#define S2DQ_512_EACH_LINE_ROTATOR(M)                                                               \
    S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_1, M, 2) S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_2, M, 2)       \
    S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_1, M, 3) S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_1, M, 4)       \
    S2DQ_512_EACH_LINE_PAIRED_ROTATOR(M)
#define S2DQ_512_EACH_LINE_PAIRED_ROTATOR(M)                                                        \
    S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_2, M, 3) S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_2, M, 4)           \
    S2DQ_512_EACH_LINE_ENDS_ROTATOR(M) S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_3, M, 4)
#define S2DQ_512_EACH_LINE_ENDS_ROTATOR(M) S2DQ_512_WIDE_LOADS(S2DQ_512_WHOLE_3, M, 3)

S2DQ_512_EACH_MIXED_ROTATOR(S2DQ_512_MIXED_ROTATOR)
S2DQ_512_EACH_PAIRED_ROTATOR(S2DQ_512_PAIRED_ROTATOR)
S2DQ_512_EACH_IN_TURN_ROTATOR(S2DQ_512_IN_TURN_ROTATOR)
S2DQ_512_EACH_CHANGING_ROTATOR(S2DQ_512_FILL_ROTATOR)
S2DQ_512_EACH_LINE_ROTATOR(S2DQ_512_LINE_ROTATOR)
S2DQ_512_EACH_LINE_PAIRED_ROTATOR(S2DQ_512_LINE_PAIRED_ROTATOR)
S2DQ_512_EACH_LINE_ENDS_ROTATOR(S2DQ_512_LINE_ENDS_ROTATOR)
S2DQ_512_EACH_CHANGING_ROTATOR(S2DQ_512_TABLE_ROTATOR)

#define S2DQ_512_ROTATOR_ENTRY(NAME, I, L, O, P) [I - 1][L / 2][O - 1][P / 2] = s2dq_512_##NAME##_rotate_##I##L##O##P,
#define S2DQ_512_MIXED_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(mixed, I, L, O, P)
#define S2DQ_512_PAIRED_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(paired, I, L, O, P)
#define S2DQ_512_IN_TURN_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(in_turn, I, L, O, P)
#define S2DQ_512_FILL_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(fill, I, L, O, P)
#define S2DQ_512_LINE_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(line, I, L, O, P)
#define S2DQ_512_LINE_PAIRED_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(line_paired, I, L, O, P)
#define S2DQ_512_LINE_ENDS_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(line_ends, I, L, O, P)
#define S2DQ_512_TABLE_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(table, I, L, O, P)

enum {
    S2DQ_512_ROTATE_FILLED = S2DQ_WAYS,
    S2DQ_512_ROTATE_LINES,
    S2DQ_512_ROTATE_PAIRED_LINES,
    S2DQ_512_ROTATE_ENDS_LINES,
    S2DQ_512_ROTATE_TABLES,
    S2DQ_512_ROTATES
};

/* [way, or what is done to bytes][inputs - 1][loads / 2][outputs - 1][pieces / 2], as of the aligners. */
static const s2dq_tile_runner s2dq_512_rotators[S2DQ_512_ROTATES][4][3][4][3] = {
    [S2DQ_MIXED] = {S2DQ_512_EACH_MIXED_ROTATOR(S2DQ_512_MIXED_ROTATOR_ENTRY)},
    [S2DQ_PAIRED] = {S2DQ_512_EACH_PAIRED_ROTATOR(S2DQ_512_PAIRED_ROTATOR_ENTRY)},
    [S2DQ_PAIRED_IN_TURN] = {S2DQ_512_EACH_IN_TURN_ROTATOR(S2DQ_512_IN_TURN_ROTATOR_ENTRY)},
    [S2DQ_512_ROTATE_FILLED] = {S2DQ_512_EACH_CHANGING_ROTATOR(S2DQ_512_FILL_ROTATOR_ENTRY)},
    [S2DQ_512_ROTATE_LINES] = {S2DQ_512_EACH_LINE_ROTATOR(S2DQ_512_LINE_ROTATOR_ENTRY)},
    [S2DQ_512_ROTATE_PAIRED_LINES] = {S2DQ_512_EACH_LINE_PAIRED_ROTATOR(S2DQ_512_LINE_PAIRED_ROTATOR_ENTRY)},
    [S2DQ_512_ROTATE_ENDS_LINES] = {S2DQ_512_EACH_LINE_ENDS_ROTATOR(S2DQ_512_LINE_ENDS_ROTATOR_ENTRY)},
    [S2DQ_512_ROTATE_TABLES] = {S2DQ_512_EACH_CHANGING_ROTATOR(S2DQ_512_TABLE_ROTATOR_ENTRY)}};

/* In the place of s2dq_512_aligner, while the processor keeps up with its fetching: of halves, which are better joined,
 * two turns at a time, and of what goes past the caches it is that. */
static s2dq_tile_runner s2dq_512_rotator(const s2dq_tile *tile)
{
    if (tile->past || tile->stores == 2) return s2dq_512_aligner(tile);
    if (tile->runs == 0 || tile->stores > 2 || tile->asks) return NULL;
    if (tile->outputs > tile->inputs || !s2dq_512_is_full(tile) || s2dq_512_floods(tile)) return NULL;
    const bool apart = tile->mapped && tile->apart && !tile->fills, lines = tile->mapped && !apart;
    int64_t inputs = tile->inputs, way = tile->way;
    /* Lines, not stores, are what takes the time where bytes stay in order, and where one input goes through them. */
    if (lines && ((tile->same && !tile->fills) || s2dq_512_inputs(tile) == 1)) return NULL;
    if (lines) {
        inputs = s2dq_512_inputs(tile);
        way = s2dq_512_from_ends(tile) ? S2DQ_512_ROTATE_ENDS_LINES
              : way == S2DQ_PAIRED     ? S2DQ_512_ROTATE_PAIRED_LINES
                                       : S2DQ_512_ROTATE_LINES;
    } else if (apart) {
        way = S2DQ_512_ROTATE_TABLES;
    } else if (tile->fills) {
        way = S2DQ_512_ROTATE_FILLED;
    }
    return s2dq_512_rotators[way][inputs - 1][tile->loads / 2][tile->outputs - 1][tile->run_pieces / 2];
}

/* As s2dq_512_aligns; of whole registers, no turns that go back, and rows that are long or go on from each other. */
static bool s2dq_512_rotates(const uint8_t *dst, const s2dq_tile *tile, const s2dq_axis *loops)
{
    const s2dq_axis *inner = &loops[2];
    const int64_t row = inner->extent * inner->dst;
    const bool goes_on = loops[1].dst == row || (loops[1].extent <= 2 && loops[0].dst == row);
    const bool alone = !goes_on && row < S2DQ_512_ROTATED * S2DQ_REGISTER_BYTES;
    if (tile->stores == 1 && (inner->src_back || inner->dst_back || alone)) return false;
    return s2dq_512_aligns(dst, tile, loops);
}

#endif

#endif
