/* Rows and columns that change places, elements of 1, 2, 4, 8 bytes, for AVX2.
 *
 * s2dq_avx2_transpose  a plane
 * s2dq_avx2_scattered  one whose rows and columns are anywhere
 * s2dq_avx2_staged     one of which the lines of a side are in each other's way in the first cache, through a scratch
 */
#ifndef S2DQ_AVX2_TRANSPOSE_H
#define S2DQ_AVX2_TRANSPOSE_H

#include "avx2_granules.h"
#include "avx2_registers.h"

#if defined(S2DQ_X86)

/* ------------------------------------------------------------------------------------------------ transpose */

#define S2DQ_AVX2_SCATTERED 256 /* rows, or columns, of which a table holds where they are */

/* 32 / w registers, a square of elements of 4 or 8 bytes: lanes apart, then the lanes of both halves. */
S2DQ_AVX2_INLINE void s2dq_avx2_square(__m256i *v, int w)
{
    const int half = 16 / w;
    s2dq_avx2_weave(v, half, w);
    s2dq_avx2_weave(v + half, half, w);
    S2DQ_UNROLL
    for (int i = 0; i < half; i++) {
        const __m256i low = v[i], high = v[i + half];
        v[i] = _mm256_permute2x128_si256(low, high, 0x20);
        v[i + half] = _mm256_permute2x128_si256(low, high, 0x31);
    }
}

/* A tile of `rows` source rows by `columns` bytes, w bytes per element: column j goes to dst + j * ds. rows * w = 32:
 * the low lanes hold the first half of the rows, so that a result is a whole register. */
S2DQ_AVX2_INLINE void s2dq_avx2_tile(uint8_t *dst, const uint8_t *src, int64_t ds, int64_t ss, int w, int row_bytes,
                                     int column_bytes)
{
    const int square = 16 / w, rows = row_bytes / w;
    __m256i v[16];
    if (column_bytes == 32) {
        S2DQ_UNROLL
        for (int i = 0; i < rows; i++) v[i] = s2dq_avx2_load(src + i * ss, 32);
        s2dq_avx2_square(v, w);
        S2DQ_UNROLL
        for (int i = 0; i < rows; i++) s2dq_avx2_store(dst + i * ds, v[i], 32);
        return;
    }
    S2DQ_UNROLL
    for (int i = 0; i < square; i++) {
        if (row_bytes == 32)
            v[i] = s2dq_avx2_load_pair(src + i * ss, src + (i + square) * ss);
        else
            v[i] = i < rows ? s2dq_avx2_load(src + i * ss, column_bytes) : _mm256_setzero_si256();
    }
    s2dq_avx2_weave(v, square, w);
    S2DQ_UNROLL
    for (int i = 0; i < column_bytes / w; i++) s2dq_avx2_store(dst + i * ds, v[i], row_bytes);
}

/* The side of a transpose whose lines collide, so that each has to be used up as soon as it is there. */
enum { S2DQ_AVX2_NEITHER, S2DQ_AVX2_SOURCE, S2DQ_AVX2_RESULT };

/* Elements of w bytes, at least `least`, from `p` to the end of its line or of the next one. Lines that collide have
 * their ends at the same places. */
static inline int64_t s2dq_avx2_head(const uint8_t *p, int64_t w, int64_t least)
{
    const int64_t head = (S2DQ_LINE - (int64_t)((uintptr_t)p % S2DQ_LINE)) / w;
    return head < least ? head + S2DQ_LINE / w : head;
}

/* Tiles over a plane, the last ones of each direction overlapping those before. Blocks of rows and columns keep the
 * lines of both sides in the first cache until they are used up. What is left of a line that a block begins is in the
 * one that follows: below it, or at its right where the lines of the source collide. With `far` the lines of the next
 * block are asked for; of the result those where its columns end, for where they begin the block above has been. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_tiles(uint8_t *dst, const uint8_t *src, s2dq_axis rows, s2dq_axis columns, int w,
                                          int row_bytes, int column_bytes, bool far, int lines)
{
    const int64_t high = row_bytes / w, wide = column_bytes / w, block = 64 / w;
    const bool across = lines == S2DQ_AVX2_SOURCE;
    const int64_t outer = across ? rows.extent : columns.extent, inner = across ? columns.extent : rows.extent;
    /* Behind the first block long columns are stored in whole lines, where all begin alike. */
    const bool alike = columns.dst % S2DQ_LINE == 0 && rows.extent >= 4 * block;
    const int64_t down = alike || lines == S2DQ_AVX2_RESULT ? s2dq_avx2_head(dst, w, high) : block;
    const int64_t first = across ? s2dq_avx2_head(src, w, wide) : down, first_outer = across ? down : block;
    for (int64_t o = 0, outer_end; o < outer; o = outer_end) {
        outer_end = s2dq_min(outer, o ? o + block : first_outer);
        for (int64_t n = 0, n_end; n < inner; n = n_end) {
            n_end = s2dq_min(inner, n ? n + block : first);
            const bool on = n_end < inner; /* to the next block */
            const int64_t next_outer = on ? o : outer_end, next_n = on ? n_end : 0;
            const int64_t r = across ? o : n, r_end = across ? outer_end : n_end, next_r = across ? next_outer : next_n;
            const int64_t c = across ? n : o, c_end = across ? n_end : outer_end, next_c = across ? next_n : next_outer;
            const uint8_t *const next_src = src + next_r * rows.src + next_c * w;
            const int64_t next_last = s2dq_min(next_r + block, rows.extent) - 1;
            uint8_t *const next_dst = dst + next_c * columns.dst + next_last * w;
            for (int64_t j = c; j < c_end; j += wide) {
                const int64_t column = s2dq_min(j, columns.extent - wide);
                for (int64_t k = j - c; far && k < j - c + wide; k++) {
                    s2dq_avx2_fetch(next_src + k * rows.src);
                    s2dq_avx2_own(next_dst + k * columns.dst);
                }
                for (int64_t i = r; i < r_end; i += high) {
                    const int64_t row = s2dq_min(i, rows.extent - high);
                    s2dq_avx2_tile(dst + column * columns.dst + row * w, src + row * rows.src + column * w,
                                   columns.dst, rows.src, w, row_bytes, column_bytes);
                }
            }
        }
    }
}

#define S2DQ_AVX2_TILES_OF(ROWS, COLUMNS) s2dq_avx2_run_tiles(dst, src, rows, columns, w, ROWS, COLUMNS, far, lines)
#define S2DQ_AVX2_TILES(W)                                                                                        \
    S2DQ_AVX2 static void s2dq_avx2_transpose_x##W(uint8_t *dst, const uint8_t *src, s2dq_axis rows,              \
                                                   s2dq_axis columns, bool far, int lines)                        \
    {                                                                                                             \
        const int w = W;                                                                                          \
        const int64_t high = rows.extent * w, wide = columns.extent * w;                                          \
        if (w >= 4 && wide >= 32 && high >= 32) S2DQ_AVX2_TILES_OF(32, 32);                                       \
        else if (wide >= 16 && high >= 32) S2DQ_AVX2_TILES_OF(32, 16);                                            \
        else if (wide >= 16 && high >= 16) S2DQ_AVX2_TILES_OF(16, 16);                                            \
        else if (wide >= 16 && high >= 8) S2DQ_AVX2_TILES_OF(8, 16);                                              \
        else if (wide >= 16) S2DQ_AVX2_TILES_OF(w < 8 ? 4 : 8, 16);                                               \
        else if (wide >= 8 && high >= 16) S2DQ_AVX2_TILES_OF(16, 8);                                              \
        else if (wide >= 8 && high >= 8) S2DQ_AVX2_TILES_OF(8, 8);                                                \
        else S2DQ_AVX2_TILES_OF(16, w < 8 ? 4 : 8);                                                               \
    }

S2DQ_AVX2_TILES(1)
S2DQ_AVX2_TILES(2)
S2DQ_AVX2_TILES(4)
S2DQ_AVX2_TILES(8)

/* The same where rows and columns lie anywhere: row i starts at row_at[i] of the source, column j at column_at[j] of
 * the result. `lines` uses up the lines of few rows before those of others, which is for rows that collide. */
typedef struct {
    int64_t rows, columns;
    int lines;
    int64_t row_at[S2DQ_AVX2_SCATTERED], column_at[S2DQ_AVX2_SCATTERED];
} s2dq_avx2_plane;

S2DQ_AVX2_INLINE void s2dq_avx2_tile_at(uint8_t *dst, const uint8_t *src, const int64_t *row_at,
                                        const int64_t *column_at, int w, int row_bytes, int column_bytes)
{
    const int square = 16 / w;
    __m256i v[16];
    if (column_bytes == 32) {
        S2DQ_UNROLL
        for (int i = 0; i < 2 * square; i++) v[i] = s2dq_avx2_load(src + row_at[i], 32);
        s2dq_avx2_square(v, w);
    } else {
        S2DQ_UNROLL
        for (int i = 0; i < square; i++) {
            if (row_bytes == 32)
                v[i] = s2dq_avx2_load_pair(src + row_at[i], src + row_at[i + square]);
            else
                v[i] = i < row_bytes / w ? s2dq_avx2_load(src + row_at[i], column_bytes) : _mm256_setzero_si256();
        }
        s2dq_avx2_weave(v, square, w);
    }
    S2DQ_UNROLL
    for (int i = 0; i < column_bytes / w; i++) s2dq_avx2_store(dst + column_at[i], v[i], row_bytes);
}

S2DQ_AVX2_INLINE void s2dq_avx2_run_plane(uint8_t *dst, const uint8_t *src, const s2dq_avx2_plane *p, int w,
                                          int row_bytes, int column_bytes)
{
    const int64_t high = row_bytes / w, wide = column_bytes / w, block = 64 / w;
    const int64_t rows = p->rows, columns = p->columns, *const row_at = p->row_at, *const column_at = p->column_at;
    for (int64_t c = 0; c < columns; c += block) {
        const int64_t c_end = c + s2dq_min(columns - c, block);
        for (int64_t r = 0; r < rows; r += p->lines ? high : block) {
            const int64_t next = r + (p->lines ? high : block), r_end = s2dq_min(rows, next);
            for (int64_t j = c; j < c_end; j += wide) {
                const int64_t column = s2dq_min(j, columns - wide);
                for (int64_t i = r; i < r_end; i += high) {
                    const int64_t row = s2dq_min(i, rows - high);
                    s2dq_avx2_tile_at(dst + row * w, src + column * w, row_at + row, column_at + column, w, row_bytes,
                                      column_bytes);
                }
            }
        }
    }
}

#define S2DQ_AVX2_PLANES(W)                                                                                       \
    S2DQ_AVX2 static void s2dq_avx2_plane_x##W(uint8_t *dst, const uint8_t *src, const s2dq_avx2_plane *p)        \
    {                                                                                                             \
        if (W >= 4 && p->rows * W >= 32 && p->columns * W >= 32) s2dq_avx2_run_plane(dst, src, p, W, 32, 32);     \
        else if (p->columns * W < 16) s2dq_avx2_run_plane(dst, src, p, W, 16, 8);                                 \
        else if (p->rows * W >= 32) s2dq_avx2_run_plane(dst, src, p, W, 32, 16);                                  \
        else if (p->rows * W >= 16) s2dq_avx2_run_plane(dst, src, p, W, 16, 16);                                  \
        else s2dq_avx2_run_plane(dst, src, p, W, 8, 16);                                                          \
    }

S2DQ_AVX2_PLANES(1)
S2DQ_AVX2_PLANES(2)
S2DQ_AVX2_PLANES(4)
S2DQ_AVX2_PLANES(8)

/* Eight rows of four granules of 3 bytes. Loads of 16 bytes reach behind these, or, with `back`, before them; stores run
 * 8 bytes past the last row, but with `last`. */
S2DQ_AVX2_INLINE void s2dq_avx2_tile_x3(uint8_t *dst, const uint8_t *src, const int64_t *row_at,
                                        const int64_t *column_at, bool back, bool last)
{
    const __m256i dense = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    __m256i v[4];
    S2DQ_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i pair = s2dq_avx2_load_pair(src + row_at[i] - 4 * back, src + row_at[i + 4] - 4 * back);
        v[i] = s2dq_avx2_spread(back ? _mm256_srli_si256(pair, 4) : pair, false);
    }
    s2dq_avx2_weave(v, 4, 4);
    S2DQ_UNROLL
    for (int i = 0; i < 4; i++)
        s2dq_avx2_store_24(dst + column_at[i], _mm256_permutevar8x32_epi32(s2dq_avx2_spread(v[i], true), dense), last);
}

/* Four rows of eight of them, and no byte more. */
S2DQ_AVX2_INLINE void s2dq_avx2_wide_tile_x3(uint8_t *dst, const uint8_t *src, const int64_t *row_at,
                                             const int64_t *column_at)
{
    const __m256i apart = _mm256_setr_epi32(0, 1, 2, 3, 5, 6, 7, 4);
    __m256i v[4];
    S2DQ_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i pair = s2dq_avx2_load_pair(src + row_at[i], src + row_at[i] + 8);
        v[i] = s2dq_avx2_spread(_mm256_permutevar8x32_epi32(pair, apart), false);
    }
    s2dq_avx2_weave(v, 4, 4);
    S2DQ_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i runs = s2dq_avx2_spread(v[i], true);
        s2dq_avx2_store(dst + column_at[i], runs, 12);
        s2dq_avx2_store(dst + column_at[i + 4], _mm256_permute2x128_si256(runs, runs, 0x01), 12);
    }
}

/* Requires at least 8 rows and 6 columns, or 4 and 8. */
S2DQ_AVX2 static void s2dq_avx2_plane_x3(uint8_t *dst, const uint8_t *src, const s2dq_avx2_plane *p)
{
    const int64_t rows = p->rows, columns = p->columns, *const row_at = p->row_at, *const column_at = p->column_at;
    const int64_t block = p->lines ? 8 : 24, left = rows % 8;
    const int64_t most = columns >= 8 && (rows < 8 || left <= 4) ? rows - left : rows; /* of which tiles have eight */
    for (int64_t c = 0; c < columns; c += 20) {
        const int64_t c_end = s2dq_min(columns, c + 20);
        for (int64_t r = 0; r < most; r += block) {
            const int64_t r_end = s2dq_min(most, r + block);
            for (int64_t j = c; j < c_end; j += 4) {
                const int64_t column = s2dq_min(j, columns - 4), *const to = column_at + column;
                const bool back = column > columns - 6;
                for (int64_t i = r; i < r_end; i += 8) {
                    const int64_t row = s2dq_min(i, rows - 8);
                    const bool last = row > rows - 11;
                    uint8_t *const d = dst + row * 3;
                    const uint8_t *const s = src + column * 3;
                    if (back) s2dq_avx2_tile_x3(d, s, row_at + row, to, true, last);
                    else if (last) s2dq_avx2_tile_x3(d, s, row_at + row, to, false, true);
                    else s2dq_avx2_tile_x3(d, s, row_at + row, to, false, false);
                }
            }
        }
    }
    for (int64_t i = most; i < rows; i += 4) {
        const int64_t row = s2dq_min(i, rows - 4);
        for (int64_t j = 0; j < columns; j += 8) {
            const int64_t column = s2dq_min(j, columns - 8);
            s2dq_avx2_wide_tile_x3(dst + row * 3, src + column * 3, row_at + row, column_at + column);
        }
    }
}

/* Requires at least 8 bytes in one direction and 16 in the other; of granules of 3 bytes, what is said there. */
static void s2dq_avx2_scattered(uint8_t *dst, const uint8_t *src, const s2dq_avx2_plane *p, int64_t w)
{
    switch (w) {
    case 1: s2dq_avx2_plane_x1(dst, src, p); return;
    case 2: s2dq_avx2_plane_x2(dst, src, p); return;
    case 3: s2dq_avx2_plane_x3(dst, src, p); return;
    case 4: s2dq_avx2_plane_x4(dst, src, p); return;
    default: s2dq_avx2_plane_x8(dst, src, p); return;
    }
}

/* Whether s2dq_avx2_transpose has a tile for a plane of so many bytes; for elements of 8 bytes it always has. */
static bool s2dq_avx2_has_tile(int64_t high, int64_t wide)
{
    return (wide >= 16 && high >= 4) || (wide >= 8 && high >= 8) || (wide >= 4 && high >= 16);
}

S2DQ_AVX2 static void s2dq_avx2_transpose(uint8_t *dst, const uint8_t *src, s2dq_axis rows, s2dq_axis columns,
                                          int64_t w, bool far, int lines)
{
    switch (w) {
    case 1: s2dq_avx2_transpose_x1(dst, src, rows, columns, far, lines); return;
    case 2: s2dq_avx2_transpose_x2(dst, src, rows, columns, far, lines); return;
    case 4: s2dq_avx2_transpose_x4(dst, src, rows, columns, far, lines); return;
    default: s2dq_avx2_transpose_x8(dst, src, rows, columns, far, lines); return;
    }
}

/* ---------------------------------------------------------------------- transpose where the lines of a side collide */

#define S2DQ_AVX2_WAYS 6      /* lines of one set that may live for long, of the eight of a first cache */
#define S2DQ_AVX2_ALL 8       /* and that may live for a moment */
#define S2DQ_AVX2_STAGE 512   /* bytes of each stream that go through the scratch at a time */
#define S2DQ_AVX2_ACROSS 64   /* bytes of each row on the other side */
#define S2DQ_AVX2_PITCH 576   /* an odd number of lines: scratch rows do not collide */

/* Whether the streams that start at `at` meet in the sets of a first cache of 4 KiB ways. */
static bool s2dq_avx2_crowded(const int64_t *at, int64_t streams, int ways)
{
    uint8_t lines[64] = {0};
    if (streams <= ways) return false;
    for (int64_t k = 0; k < streams && k < 64; k++)
        if (++lines[(uint64_t)at[k] / 64 % 64] > ways) return true;
    return false;
}

/* Whether so many streams, `step` bytes apart, do. */
static bool s2dq_avx2_collide(int64_t streams, int64_t step, int ways)
{
    int64_t at[64];
    for (int64_t k = 0; k < 64; k++) at[k] = k * step;
    return s2dq_avx2_crowded(at, streams, ways);
}

/* How much to take of what is left: `size`, or all of it where the rest would be too short for a tile. */
static int64_t s2dq_avx2_piece(int64_t left, int64_t size, int64_t least)
{
    return left < size + least ? left : size;
}

/* A plane through a scratch, in pieces of whole lines: from there or to there the streams go one after the other.
 * `out` tells that the streams of the result collide, else those of the source do. */
S2DQ_AVX2 static void s2dq_avx2_staged(uint8_t *dst, const uint8_t *src, s2dq_axis rows, s2dq_axis columns, int64_t w,
                                       bool out)
{
    _Alignas(S2DQ_LINE) uint8_t scratch[(S2DQ_AVX2_ACROSS + 32) * S2DQ_AVX2_PITCH];
    const s2dq_axis along = out ? rows : columns, across = out ? columns : rows;
    const uintptr_t start = out ? (uintptr_t)dst : (uintptr_t)src;
    const int64_t head = S2DQ_AVX2_STAGE - (int64_t)(start % S2DQ_LINE) / w * w;
    for (int64_t c = 0, streams; c < across.extent; c += streams) {
        streams = s2dq_avx2_piece(across.extent - c, S2DQ_AVX2_ACROSS / w, 32 / w);
        for (int64_t r = 0, count; r < along.extent; r += count) {
            count = s2dq_avx2_piece(along.extent - r, (r ? S2DQ_AVX2_STAGE : head) / w, 32 / w);
            uint8_t *const d = dst + (out ? c * columns.dst + r * w : r * columns.dst + c * w);
            const uint8_t *const s = src + (out ? r * rows.src + c * w : c * rows.src + r * w);
            const s2dq_axis piece = {count, along.src, along.dst};
            if (out) {
                const s2dq_axis staged = {streams, w, S2DQ_AVX2_PITCH};
                s2dq_avx2_transpose(scratch, s, piece, staged, w, false, S2DQ_AVX2_NEITHER);
                for (int64_t k = 0; k < streams; k++)
                    s2dq_avx2_granule(d + k * columns.dst, scratch + k * S2DQ_AVX2_PITCH, count * w);
            } else {
                const s2dq_axis staged = {streams, S2DQ_AVX2_PITCH, w};
                for (int64_t k = 0; k < streams; k++)
                    s2dq_avx2_granule(scratch + k * S2DQ_AVX2_PITCH, s + k * rows.src, count * w);
                s2dq_avx2_transpose(d, scratch, staged, piece, w, false, S2DQ_AVX2_NEITHER);
            }
        }
    }
}

#endif
#endif
