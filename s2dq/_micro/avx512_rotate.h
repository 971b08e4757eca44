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
    __m512i table[S2DQ_REGISTERS]; /* of each output, which makes it as it lies in its lines */
    __mmask64 upper[S2DQ_REGISTERS];
    __mmask64 own[S2DQ_REGISTERS]; /* of each run: the bytes of a line that its newest register has */
    int64_t started[S2DQ_REGISTERS], at[S2DQ_REGISTERS], line_at[S2DQ_REGISTERS];
} s2dq_512_rotation;

/* OUT: all for turns at `dst`. */
S2DQ_512_INLINE void s2dq_512_rotate_to(s2dq_512_rotation *to, uint8_t *dst, const s2dq_tile *tile, int outputs,
                                        int pieces, int way)
{
#pragma GCC unroll 4
    for (int k = 0; k < outputs; k++) {
        const int run = k / pieces;
        to->at[run] = tile->dst[run * pieces];
        to->started[run] = (int64_t)((uintptr_t)(dst + to->at[run]) & (S2DQ_REGISTER_BYTES - 1));
        to->line_at[run] = to->at[run] - to->started[run];
        to->own[run] = UINT64_MAX << to->started[run];
        const __m512i places = _mm512_loadu_si512(s2dq_512_places);
        const __m512i turn = _mm512_sub_epi8(places, _mm512_set1_epi8((char)to->started[run]));
        const __m512i table = _mm512_loadu_si512(way == S2DQ_MIXED ? tile->table[k] : tile->pair[k]);
        to->table[k] = _mm512_permutexvar_epi8(turn, table);
        to->upper[k] = tile->upper[k] << to->started[run] | tile->upper[k] >> (-to->started[run] & 63);
    }
}

/* One turn. IN: `last`, the last register of each run; `begins`: there is none. OUT: `last`. */
S2DQ_512_INLINE void s2dq_512_rotate_turn(uint8_t *dst, const uint8_t *src, const s2dq_512_rotation *to, __m512i *last,
                                          const int64_t *src_at, bool begins, int inputs, int loads, int outputs,
                                          int pieces, int way)
{
    __m512i in[S2DQ_REGISTERS], made[S2DQ_REGISTERS];
    s2dq_512_read(in, src, src_at, NULL, inputs, loads, way, 0);
#pragma GCC unroll 4
    for (int k = 0; k < outputs; k++) {
        const int run = k / pieces, piece = k % pieces;
        uint8_t *const line = dst + to->line_at[run] + piece * S2DQ_REGISTER_BYTES;
        made[k] = s2dq_512_output(in, k, to->table[k], to->upper[k], inputs, outputs, way);
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

/* As s2dq_512_align, for whole registers where nothing is filled in, mapped or fetched, no turn goes back, and nothing
 * goes past the caches: tables make each output already rotated to where it lies in its lines, so that lines are made
 * by a blend. Rows may go on from the one before, or from the one before that: two streams of the result in turn. */
S2DQ_512_INLINE void s2dq_512_rotate(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                     const s2dq_tile *tile, const s2dq_axis *loops, int inputs, int loads, int outputs,
                                     int pieces, int way)
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
                if (anew) s2dq_512_rotate_to(&to, d, tile, outputs, pieces, way);
                s2dq_512_rotate_turn(d, s, &to, last, src_at, true, inputs, loads, outputs, pieces, way);
                s += src_step, d += dst_step, left--;
            }
            for (int64_t more = joined; more > 0; more--) {
                for (; left > 0; left--) {
                    S2DQ_512_OPAQUE(s);
                    S2DQ_512_OPAQUE(d);
                    s2dq_512_rotate_turn(d, s, &to, last, src_at, false, inputs, loads, outputs, pieces, way);
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

#define S2DQ_512_ROTATOR_OF(NAME, I, L, O, P, WAY)                                                                    \
    S2DQ_512 static void s2dq_512_##NAME##_rotate_##I##L##O##P(uint8_t *dst, const uint8_t *src,                      \
                                                               const s2dq_tile *tile, const s2dq_filling *filling,    \
                                                               const s2dq_axis *loops)                                \
    {                                                                                                                 \
        (void)filling;                                                                                                \
        s2dq_512_rotate(dst, src, tile, loops, I, L, O, P, WAY);                                                      \
    }
#define S2DQ_512_MIXED_ROTATOR(I, L, O, S, P) S2DQ_512_ROTATOR_OF(mixed, I, L, O, P, S2DQ_MIXED)
#define S2DQ_512_PAIRED_ROTATOR(I, L, O, S, P) S2DQ_512_ROTATOR_OF(paired, I, L, O, P, S2DQ_PAIRED)
#define S2DQ_512_IN_TURN_ROTATOR(I, L, O, S, P) S2DQ_512_ROTATOR_OF(in_turn, I, L, O, P, S2DQ_PAIRED_IN_TURN)

/* Every shape, M(inputs, loads, outputs, stores, pieces). */
#define S2DQ_512_EACH_MIXED_ROTATOR(M)                                                              \
    S2DQ_512_LOADS_OF_ALL(S2DQ_512_WHOLE_1, M) S2DQ_512_LOADS_FROM_2(S2DQ_512_WHOLE_2, M)         \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_3, M) S2DQ_512_EACH_IN_TURN_ROTATOR(M)
#define S2DQ_512_EACH_PAIRED_ROTATOR(M)                                                             \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_2, M) S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_3, M)         \
    S2DQ_512_EACH_IN_TURN_ROTATOR(M)
#define S2DQ_512_EACH_IN_TURN_ROTATOR(M) S2DQ_512_LOADS(S2DQ_512_WHOLE_4, M, 4)

S2DQ_512_EACH_MIXED_ROTATOR(S2DQ_512_MIXED_ROTATOR)
S2DQ_512_EACH_PAIRED_ROTATOR(S2DQ_512_PAIRED_ROTATOR)
S2DQ_512_EACH_IN_TURN_ROTATOR(S2DQ_512_IN_TURN_ROTATOR)

#define S2DQ_512_ROTATOR_ENTRY(NAME, I, L, O, P) [I - 1][L / 2][O - 1][P / 2] = s2dq_512_##NAME##_rotate_##I##L##O##P,
#define S2DQ_512_MIXED_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(mixed, I, L, O, P)
#define S2DQ_512_PAIRED_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(paired, I, L, O, P)
#define S2DQ_512_IN_TURN_ROTATOR_ENTRY(I, L, O, S, P) S2DQ_512_ROTATOR_ENTRY(in_turn, I, L, O, P)

/* [way][inputs - 1][loads / 2][outputs - 1][pieces / 2], as of the aligners. */
static const s2dq_tile_runner s2dq_512_rotators[S2DQ_WAYS][4][3][4][3] = {
    [S2DQ_MIXED] = {S2DQ_512_EACH_MIXED_ROTATOR(S2DQ_512_MIXED_ROTATOR_ENTRY)},
    [S2DQ_PAIRED] = {S2DQ_512_EACH_PAIRED_ROTATOR(S2DQ_512_PAIRED_ROTATOR_ENTRY)},
    [S2DQ_PAIRED_IN_TURN] = {S2DQ_512_EACH_IN_TURN_ROTATOR(S2DQ_512_IN_TURN_ROTATOR_ENTRY)}};

/* In the place of s2dq_512_aligner, while the processor keeps up with its fetching: of halves, which are better joined,
 * two turns at a time, and of what goes past the caches it is that. */
static s2dq_tile_runner s2dq_512_rotator(const s2dq_tile *tile)
{
    if (tile->past || tile->stores == 2) return s2dq_512_aligner(tile);
    if (tile->runs == 0 || tile->stores > 2 || tile->mapped || tile->fills || tile->asks) return NULL;
    if (tile->outputs > tile->inputs || !s2dq_512_is_full(tile)) return NULL;
    return s2dq_512_rotators[tile->way][tile->inputs - 1][tile->loads / 2][tile->outputs - 1][tile->run_pieces / 2];
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
