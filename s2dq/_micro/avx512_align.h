/* Tile programs on AVX-512 VBMI for results that do not begin at a cache line: most allocators', 16 bytes behind one.
 * A store across two lines takes twice as long and more. So whole lines are stored, each from the end of the register
 * before it and the start of its own.
 */
#ifndef S2DQ_AVX512_ALIGN_H
#define S2DQ_AVX512_ALIGN_H

#include "avx512.h"
#include "avx512_flood.h"

#if defined(S2DQ_X86)

#define S2DQ_512_ALIGN_PIECES 5 /* from which a run of lines is worth its two ends */

/* Runs of lines that grow side by side, `pieces` registers of each in a step; halves of registers all begin at the same
 * distance from a line, and the first run speaks for all. */
typedef struct {
    __m512i before[2 * S2DQ_REGISTERS]; /* the registers of the last step */
    __m512i turn[S2DQ_REGISTERS];       /* of each run: makes a line of two registers */
    int started[S2DQ_REGISTERS];        /* bytes of its first line that lie before the result */
    uint8_t *end;                       /* the position of the next step, if it goes on; NULL: nothing waits */
} s2dq_512_ends;

/* Which run a register belongs to, as far as lines go. */
S2DQ_512_INLINE int s2dq_512_run_of(int k, int pieces, int stores) { return stores > 1 ? 0 : k / pieces; }

/* Store what waits for its rest. */
S2DQ_512_INLINE void s2dq_512_end_lines(s2dq_512_ends *ends, const int64_t *at, int registers, int pieces, int stores)
{
    if (ends->end) {
#pragma GCC unroll 8
        for (int k = 0; k < registers; k += pieces) {
            const int run = s2dq_512_run_of(k, pieces, stores), started = ends->started[run];
            const __m512i last = ends->before[k + pieces - 1];
            if (started)
                _mm512_mask_storeu_epi8(ends->end + at[k] - started, UINT64_MAX >> (S2DQ_REGISTER_BYTES - started),
                                        _mm512_permutex2var_epi8(last, ends->turn[run], last));
        }
    }
    ends->end = NULL;
}

/* Whether the lines begin anew at `dst`; those that wait are stored then. */
S2DQ_512_INLINE bool s2dq_512_begin_lines(s2dq_512_ends *ends, uint8_t *dst, const int64_t *at, int registers,
                                          int pieces, int stores)
{
    if (dst == ends->end) return false;
    s2dq_512_end_lines(ends, at, registers, pieces, stores);
    const __m512i places = _mm512_loadu_si512(s2dq_512_places);
#pragma GCC unroll 4
    for (int run = 0; run < S2DQ_REGISTERS; run++) {
        const int k = run * pieces;
        if (run > s2dq_512_run_of(registers - 1, pieces, stores)) break;
        ends->started[run] = (int)((uintptr_t)(dst + at[k]) & (S2DQ_REGISTER_BYTES - 1));
        ends->turn[run] =
            _mm512_add_epi8(places, _mm512_set1_epi8((char)(S2DQ_REGISTER_BYTES - ends->started[run])));
    }
    return true;
}

/* As s2dq_512_run, for full pieces in runs that the innermost loop makes longer; those of 32 bytes two turns at a time.
 * `past`: lines go past the caches. */
S2DQ_512_INLINE void s2dq_512_align(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                    const s2dq_tile *tile, const s2dq_filling *filling, const s2dq_axis *loops,
                                    int inputs, int loads, int outputs, int stores, int pieces, int way, bool fills,
                                    int mapped)
{
    const int registers = outputs * stores, far = tile->far != 0, past = tile->past != 0;
    int64_t src_at[S2DQ_PIECES], dst_at[S2DQ_PIECES];
    s2dq_512_constants with;
    s2dq_512_ends ends = {.end = NULL};
    for (int k = 0; k < inputs * loads; k++) src_at[k] = tile->src[k];
    for (int k = 0; k < registers; k++) dst_at[k] = tile->dst[k];
    s2dq_512_read_constants(&with, tile, filling, inputs, outputs, way, mapped, fills);
    const s2dq_ahead ahead = s2dq_tile_ahead(loops, inputs * S2DQ_REGISTER_BYTES);
    const int64_t moved = loops[2].src_back != 0 || loops[2].dst_back != 0; /* the last turn */
    const int64_t single = moved + (loops[2].extent - moved) % stores;
    for (int64_t i = loops[0].extent; i > 0; i--, src += loops[0].src, dst += loops[0].dst) {
        if (i == 1) src -= loops[0].src_back, dst -= loops[0].dst_back;
        const uint8_t *row_src = src;
        uint8_t *row_dst = dst;
        for (int64_t j = loops[1].extent; j > 0; j--, row_src += loops[1].src, row_dst += loops[1].dst) {
            if (j == 1) row_src -= loops[1].src_back, row_dst -= loops[1].dst_back;
            const uint8_t *s = row_src;
            uint8_t *d = row_dst;
            int64_t fetch = 0, around = 0, left = loops[2].extent;
            if (far) s2dq_ahead_at(&ahead, loops[0].extent - i, loops[1].extent - j, &fetch, &around);
            /* From there on the loop goes on without a gap. */
            bool begins = left > single && s2dq_512_begin_lines(&ends, d, dst_at, registers, pieces, stores);
            for (; left > single; left -= stores) {
                __m512i in[S2DQ_REGISTERS], next[S2DQ_REGISTERS], made[2 * S2DQ_REGISTERS];
                if (loads <= 2 && far) {
                    if (left <= ahead.turns) fetch = around;
                    s2dq_512_fetch_past(tile, s + fetch, src_at, inputs, loads);
                    if (stores > 1) s2dq_512_fetch_past(tile, s + loops[2].src + fetch, src_at, inputs, loads);
                }
                s2dq_512_read(in, s, src_at, &with, inputs, loads, way, mapped);
                if (stores > 1) s2dq_512_read(next, s + loops[2].src, src_at, &with, inputs, loads, way, mapped);
#pragma GCC unroll 4
                for (int k = 0; k < outputs; k++) {
                    made[k * stores] = s2dq_512_filled(in, k, &with, inputs, outputs, way, mapped, fills);
                    if (stores > 1)
                        s2dq_512_pair(&made[k * stores], stores, made[k * stores],
                                      s2dq_512_filled(next, k, &with, inputs, outputs, way, mapped, fills));
                }
#pragma GCC unroll 8
                for (int k = 0; k < registers; k++) {
                    const int run = s2dq_512_run_of(k, pieces, stores);
                    const __m512i before = k % pieces ? made[k - 1] : ends.before[k + pieces - 1];
                    const __m512i line = _mm512_permutex2var_epi8(before, ends.turn[run], made[k]);
                    uint8_t *at = d + dst_at[k] - ends.started[run];
                    if (begins && k % pieces == 0)
                        _mm512_mask_storeu_epi8(at, UINT64_MAX << ends.started[run], line);
                    else if (past)
                        _mm512_stream_si512((__m512i *)at, line);
                    else
                        _mm512_store_si512((__m512i *)at, line);
                }
#pragma GCC unroll 8
                for (int k = 0; k < registers; k++) ends.before[k] = made[k];
                begins = false;
                ends.end = d + pieces * S2DQ_REGISTER_BYTES;
                s += stores * loops[2].src;
                d += stores * loops[2].dst;
            }
            for (; left > 0; left--) { /* turns that nothing goes on from */
                __m512i in[S2DQ_REGISTERS];
                s2dq_512_end_lines(&ends, dst_at, registers, pieces, stores);
                if (left == 1) s -= loops[2].src_back, d -= loops[2].dst_back;
                s2dq_512_read(in, s, src_at, &with, inputs, loads, way, mapped);
#pragma GCC unroll 4
                for (int k = 0; k < outputs; k++)
                    s2dq_512_store(d, dst_at + k * stores, stores,
                                   s2dq_512_filled(in, k, &with, inputs, outputs, way, mapped, fills));
                s += loops[2].src;
                d += loops[2].dst;
            }
        }
    }
    s2dq_512_end_lines(&ends, dst_at, registers, pieces, stores);
}

#define S2DQ_512_ALIGNER_OF(NAME, I, L, O, S, P, WAY, FILLS, MAPPED)                                                  \
    S2DQ_512 static void s2dq_512_##NAME##_align_##I##L##O##S##P(uint8_t *dst, const uint8_t *src,                    \
                                                                 const s2dq_tile *tile, const s2dq_filling *filling, \
                                                                 const s2dq_axis *loops)                              \
    {                                                                                                                 \
        s2dq_512_align(dst, src, tile, filling, loops, I, L, O, S, P, WAY, FILLS, MAPPED);                            \
    }
#define S2DQ_512_MIXED_ALIGNER(I, L, O, S, P) \
    S2DQ_512_ALIGNER_OF(mixed, I, L, O, S, P, S2DQ_MIXED, tile->fills != 0, 0)
#define S2DQ_512_PAIRED_ALIGNER(I, L, O, S, P) S2DQ_512_ALIGNER_OF(paired, I, L, O, S, P, S2DQ_PAIRED, false, 0)
#define S2DQ_512_IN_TURN_ALIGNER(I, L, O, S, P) \
    S2DQ_512_ALIGNER_OF(in_turn, I, L, O, S, P, S2DQ_PAIRED_IN_TURN, false, 0)
#define S2DQ_512_LINE_ALIGNER(I, L, O, S, P)                                                                        \
    S2DQ_512 static void s2dq_512_line_align_##I##L##O##S##P(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, \
                                                             const s2dq_filling *filling, const s2dq_axis *loops)     \
    {                                                                                                               \
        S2DQ_512_BY_LINES(S2DQ_512_ALIGN_MAPPED, I, L, O, S, P)                                                     \
    }
#define S2DQ_512_ALIGN_MAPPED(MAPPED, I, L, O, S, P) \
    s2dq_512_align(dst, src, tile, filling, loops, I, L, O, S, P, S2DQ_MIXED, false, MAPPED);
#define S2DQ_512_TABLE_ALIGNER(I, L, O, S, P) \
    S2DQ_512_ALIGNER_OF(table, I, L, O, S, P, S2DQ_MIXED, false, S2DQ_512_TABLES)

/* Every shape, M(inputs, loads, outputs, stores, pieces): whole registers in runs of a turn's one, two, three or four,
 * and halves. Fill values make more outputs than inputs; where bytes are looked up there are at most three outputs,
 * and the lines leave no registers for two turns. */
#define S2DQ_512_WHOLE_1(M, I, L) M(I, L, 1, 1, 1)
#define S2DQ_512_WHOLE_2(M, I, L) M(I, L, 2, 1, 1) M(I, L, 2, 1, 2)
#define S2DQ_512_WHOLE_3(M, I, L) M(I, L, 3, 1, 1) M(I, L, 3, 1, 3)
#define S2DQ_512_WHOLE_4(M, I, L) M(I, L, 4, 1, 1) M(I, L, 4, 1, 2) M(I, L, 4, 1, 4)
#define S2DQ_512_HALF_1(M, I, L) M(I, L, 1, 2, 1)
#define S2DQ_512_HALF_2(M, I, L) M(I, L, 2, 2, 1)
#define S2DQ_512_HALF_3(M, I, L) M(I, L, 3, 2, 1)
#define S2DQ_512_HALF_4(M, I, L) M(I, L, 4, 2, 1)
#define S2DQ_512_LOADS(SHAPES, M, I) SHAPES(M, I, 1) SHAPES(M, I, 2) SHAPES(M, I, 4)
#define S2DQ_512_LOADS_OF_ALL(SHAPES, M) \
    S2DQ_512_LOADS(SHAPES, M, 1) S2DQ_512_LOADS(SHAPES, M, 2) S2DQ_512_LOADS(SHAPES, M, 3) S2DQ_512_LOADS(SHAPES, M, 4)
#define S2DQ_512_LOADS_FROM_2(SHAPES, M) \
    S2DQ_512_LOADS(SHAPES, M, 2) S2DQ_512_LOADS(SHAPES, M, 3) S2DQ_512_LOADS(SHAPES, M, 4)
#define S2DQ_512_LOADS_FROM_3(SHAPES, M) S2DQ_512_LOADS(SHAPES, M, 3) S2DQ_512_LOADS(SHAPES, M, 4)
#define S2DQ_512_EACH_LINE_ALIGNER(M)                                                                   \
    S2DQ_512_LOADS_OF_ALL(S2DQ_512_WHOLE_1, M) S2DQ_512_LOADS_FROM_2(S2DQ_512_WHOLE_2, M) \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_3, M)
#define S2DQ_512_EACH_TABLE_ALIGNER(M)                                                                            \
    S2DQ_512_EACH_LINE_ALIGNER(M) S2DQ_512_LOADS_OF_ALL(S2DQ_512_HALF_1, M) S2DQ_512_LOADS_FROM_2(S2DQ_512_HALF_2, M) \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_HALF_3, M)
#define S2DQ_512_EACH_MIXED_ALIGNER(M)                                                              \
    S2DQ_512_LOADS_OF_ALL(S2DQ_512_WHOLE_1, M) S2DQ_512_LOADS_OF_ALL(S2DQ_512_WHOLE_2, M)         \
    S2DQ_512_LOADS_OF_ALL(S2DQ_512_WHOLE_3, M) S2DQ_512_LOADS_OF_ALL(S2DQ_512_WHOLE_4, M)         \
    S2DQ_512_LOADS_OF_ALL(S2DQ_512_HALF_1, M) S2DQ_512_LOADS_FROM_2(S2DQ_512_HALF_2, M)           \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_HALF_3, M) S2DQ_512_LOADS(S2DQ_512_HALF_4, M, 4)
#define S2DQ_512_EACH_PAIRED_ALIGNER(M)                                                           \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_2, M) S2DQ_512_LOADS_FROM_3(S2DQ_512_WHOLE_3, M)       \
    S2DQ_512_LOADS_FROM_3(S2DQ_512_HALF_2, M) S2DQ_512_LOADS_FROM_3(S2DQ_512_HALF_3, M)         \
    S2DQ_512_EACH_IN_TURN_ALIGNER(M)
#define S2DQ_512_EACH_IN_TURN_ALIGNER(M) \
    S2DQ_512_LOADS(S2DQ_512_WHOLE_4, M, 4) S2DQ_512_LOADS(S2DQ_512_HALF_4, M, 4)

S2DQ_512_EACH_MIXED_ALIGNER(S2DQ_512_MIXED_ALIGNER)
S2DQ_512_EACH_PAIRED_ALIGNER(S2DQ_512_PAIRED_ALIGNER)
S2DQ_512_EACH_IN_TURN_ALIGNER(S2DQ_512_IN_TURN_ALIGNER)
S2DQ_512_EACH_LINE_ALIGNER(S2DQ_512_LINE_ALIGNER)
S2DQ_512_EACH_TABLE_ALIGNER(S2DQ_512_TABLE_ALIGNER)

#define S2DQ_512_ALIGNER_ENTRY(NAME, I, L, O, S, P) \
    [I - 1][L / 2][O - 1][S - 1][P / 2] = s2dq_512_##NAME##_align_##I##L##O##S##P,
#define S2DQ_512_MIXED_ENTRY(I, L, O, S, P) S2DQ_512_ALIGNER_ENTRY(mixed, I, L, O, S, P)
#define S2DQ_512_PAIRED_ALIGNER_ENTRY(I, L, O, S, P) S2DQ_512_ALIGNER_ENTRY(paired, I, L, O, S, P)
#define S2DQ_512_IN_TURN_ALIGNER_ENTRY(I, L, O, S, P) S2DQ_512_ALIGNER_ENTRY(in_turn, I, L, O, S, P)
#define S2DQ_512_LINE_ALIGNER_ENTRY(I, L, O, S, P) S2DQ_512_ALIGNER_ENTRY(line, I, L, O, S, P)
#define S2DQ_512_TABLE_ALIGNER_ENTRY(I, L, O, S, P) S2DQ_512_ALIGNER_ENTRY(table, I, L, O, S, P)

enum { S2DQ_512_ALIGN_LINES = S2DQ_WAYS, S2DQ_512_ALIGN_TABLES, S2DQ_512_ALIGNS };

/* [way, or what bytes go through][inputs - 1][loads / 2][outputs - 1][stores - 1][pieces / 2]: one piece, two or three,
 * or four. */
static const s2dq_tile_runner s2dq_512_aligners[S2DQ_512_ALIGNS][4][3][4][2][3] = {
    [S2DQ_MIXED] = {S2DQ_512_EACH_MIXED_ALIGNER(S2DQ_512_MIXED_ENTRY)},
    [S2DQ_PAIRED] = {S2DQ_512_EACH_PAIRED_ALIGNER(S2DQ_512_PAIRED_ALIGNER_ENTRY)},
    [S2DQ_PAIRED_IN_TURN] = {S2DQ_512_EACH_IN_TURN_ALIGNER(S2DQ_512_IN_TURN_ALIGNER_ENTRY)},
    [S2DQ_512_ALIGN_LINES] = {S2DQ_512_EACH_LINE_ALIGNER(S2DQ_512_LINE_ALIGNER_ENTRY)},
    [S2DQ_512_ALIGN_TABLES] = {S2DQ_512_EACH_TABLE_ALIGNER(S2DQ_512_TABLE_ALIGNER_ENTRY)}};

/* The runner that stores whole lines, or NULL: where pieces are not full or lie otherwise, and where stores are not
 * what takes the time: bytes that go through lines and stay in order, and runs of several registers that are gathered
 * from more of them, where a shuffle more for each would cost a third. */
static s2dq_tile_runner s2dq_512_aligner(const s2dq_tile *tile)
{
    if (tile->runs == 0 || tile->stores > 2 || (tile->stores == 2 && tile->run_pieces != 1)) return NULL;
    if (!s2dq_512_is_full(tile)) return NULL;
    for (int k = 0; k < tile->outputs * tile->stores; k++)
        if (tile->stores == 2 && (tile->dst[k] - tile->dst[0]) % S2DQ_REGISTER_BYTES) return NULL;
    if ((tile->mapped && tile->fills) || s2dq_512_floods(tile)) return NULL;
    if (tile->inputs > tile->outputs && tile->run_pieces > 1 && !tile->past) return NULL;
    const bool apart = tile->mapped && tile->apart;
    if (tile->same && tile->mapped && !apart) return NULL;
    const int64_t way = apart          ? S2DQ_512_ALIGN_TABLES
                        : tile->mapped ? S2DQ_512_ALIGN_LINES
                        : tile->fills  ? S2DQ_MIXED
                                       : tile->way;
    const int64_t inputs = way == S2DQ_512_ALIGN_LINES ? s2dq_512_inputs(tile) : tile->inputs;
    return s2dq_512_aligners[way][inputs - 1][tile->loads / 2][tile->outputs - 1][tile->stores - 1]
                            [tile->run_pieces / 2];
}

/* The same where all stores may be across lines; those past the caches may not. */
static s2dq_tile_runner s2dq_512_past_aligner(const s2dq_tile *tile)
{
    return tile->past ? s2dq_512_aligner(tile) : NULL;
}

/* Whether that is worth while: the loops make long runs, which do not begin at a line. */
static bool s2dq_512_aligns(const uint8_t *dst, const s2dq_tile *tile, const s2dq_axis *loops)
{
    const s2dq_axis *inner = &loops[2], *middle = &loops[1];
    const int64_t step = tile->run_pieces * S2DQ_REGISTER_BYTES / tile->stores;
    if (inner->dst != step) return false;
    /* The loop around it may go on where it ends; a turn that goes back does not. */
    const bool longer = !inner->dst_back && inner->extent % tile->stores == 0 && middle->dst == inner->extent * step;
    const int64_t turns = longer ? inner->extent * middle->extent : inner->extent - (inner->dst_back != 0);
    if (turns * tile->run_pieces < S2DQ_512_ALIGN_PIECES) return false;
    uint64_t off = 0; /* distances from a line */
    for (int k = 0; k < tile->outputs * tile->stores; k += (int)tile->run_pieces) off |= (uintptr_t)(dst + tile->dst[k]);
    return off % S2DQ_REGISTER_BYTES != 0;
}

#endif

#endif
