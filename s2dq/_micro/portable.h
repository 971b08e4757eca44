/* Portable micro-kernels: plain C loops that a compiler can vectorise, the floor every other variant must match.
 *
 * s2dq_copy        move granules of `width` bytes through any number of loops
 * s2dq_copy_lanes  the same, and fill the spare lanes behind each run of them
 * s2dq_lookup      the same for single bytes, each sent through the 256-byte table its loop position selects
 *
 * Requires: source and destination do not overlap, all addresses the loops reach are valid, extents >= 1.
 * Guarantees: writes exactly the granules named by the loops and reads them, or bytes between two of them less than a
 * line apart; any alignment, any sign of a source step.
 */
#ifndef S2DQ_PORTABLE_H
#define S2DQ_PORTABLE_H

#include <stdint.h>
#include <string.h>

#include "axis.h"

typedef struct {
    uint64_t half[2];
} s2dq_u128;

/* One granule of constant size: memcpy becomes a single load and store. */
#define S2DQ_MOVE_ONE(T, D, S)          \
    do {                                \
        T value_;                       \
        memcpy(&value_, (S), sizeof(T)); \
        memcpy((D), &value_, sizeof(T)); \
    } while (0)

/* Where there are no vectors the loop itself costs as much as what it moves: four turns at a time. */
#if defined(__clang__)
#define S2DQ_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#elif defined(__GNUC__)
#define S2DQ_UNROLL_4 _Pragma("GCC unroll 4")
#else
#define S2DQ_UNROLL_4
#endif

#define S2DQ_LOOP(T, N, DS, SS)                                                          \
    for (int64_t i = 0; i < (N); i++) {                                                  \
        S2DQ_MOVE_ONE(T, dst + i * (int64_t)(DS), src + i * (int64_t)(SS));              \
    }

/* A run of granules, one side contiguous where possible. Constant steps let the compiler shuffle in registers. */
#define S2DQ_DEFINE_RUN(T, NAME)                                                                                  \
    static void NAME(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src, int64_t n, int64_t ds,         \
                     int64_t ss)                                                                                  \
    {                                                                                                             \
        const int64_t w = (int64_t)sizeof(T);                                                                     \
        if (ds == w) {                                                                                            \
            if (ss == 2 * w) { S2DQ_LOOP(T, n, sizeof(T), 2 * sizeof(T)) }                                        \
            else if (ss == 3 * w) { S2DQ_LOOP(T, n, sizeof(T), 3 * sizeof(T)) }                                   \
            else if (ss == 4 * w) { S2DQ_LOOP(T, n, sizeof(T), 4 * sizeof(T)) }                                   \
            else if (ss == 0) {                                                                                   \
                T value;                                                                                          \
                memcpy(&value, src, sizeof(T));                                                                   \
                for (int64_t i = 0; i < n; i++) memcpy(dst + i * (int64_t)sizeof(T), &value, sizeof(T));          \
            }                                                                                                     \
            else { S2DQ_LOOP(T, n, sizeof(T), ss) }                                                               \
        }                                                                                                         \
        else if (ss == w) {                                                                                       \
            if (ds == 2 * w) { S2DQ_LOOP(T, n, 2 * sizeof(T), sizeof(T)) }                                        \
            else if (ds == 3 * w) { S2DQ_LOOP(T, n, 3 * sizeof(T), sizeof(T)) }                                   \
            else if (ds == 4 * w) { S2DQ_LOOP(T, n, 4 * sizeof(T), sizeof(T)) }                                   \
            else { S2DQ_LOOP(T, n, ds, sizeof(T)) }                                                               \
        }                                                                                                         \
        else {                                                                                                    \
            S2DQ_UNROLL_4                                                                                         \
            S2DQ_LOOP(T, n, ds, ss)                                                                               \
        }                                                                                                         \
    }

S2DQ_DEFINE_RUN(uint8_t, s2dq_run_1)
S2DQ_DEFINE_RUN(uint16_t, s2dq_run_2)
S2DQ_DEFINE_RUN(uint32_t, s2dq_run_4)
S2DQ_DEFINE_RUN(uint64_t, s2dq_run_8)
S2DQ_DEFINE_RUN(s2dq_u128, s2dq_run_16)

/* Granules of other sizes: two overlapping constant-size moves cover any size from one power of two to the next. */
#define S2DQ_RUN_BETWEEN(T)                                                   \
    for (int64_t i = 0; i < n; i++, dst += ds, src += ss) {                   \
        T low, high;                                                          \
        memcpy(&low, src, sizeof(T));                                         \
        memcpy(&high, src + width - (int64_t)sizeof(T), sizeof(T));           \
        memcpy(dst, &low, sizeof(T));                                         \
        memcpy(dst + width - (int64_t)sizeof(T), &high, sizeof(T));           \
    }

static void s2dq_run(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src, int64_t n, int64_t ds,
                     int64_t ss, int64_t width)
{
    switch (width) {
    case 1: s2dq_run_1(dst, src, n, ds, ss); return;
    case 2: s2dq_run_2(dst, src, n, ds, ss); return;
    case 4: s2dq_run_4(dst, src, n, ds, ss); return;
    case 8: s2dq_run_8(dst, src, n, ds, ss); return;
    case 16: s2dq_run_16(dst, src, n, ds, ss); return;
    default: break;
    }
    if (width < 4) {
        S2DQ_RUN_BETWEEN(uint16_t)
    } else if (width < 8) {
        S2DQ_RUN_BETWEEN(uint32_t)
    } else if (width < 16) {
        S2DQ_RUN_BETWEEN(uint64_t)
    } else if (width < 32) {
        S2DQ_RUN_BETWEEN(s2dq_u128)
    } else {
        for (int64_t i = 0; i < n; i++, dst += ds, src += ss) memcpy(dst, src, (size_t)width);
    }
}

/* `streams` contiguous source rows merged granule by granule into one contiguous run: two, three or four of bytes,
 * two of granules of 2 or 4. */
#define S2DQ_MERGE(T, STREAMS)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        for (int k = 0; k < (STREAMS); k++) {                                                      \
            S2DQ_MOVE_ONE(T, dst + (i * (STREAMS) + k) * (int64_t)sizeof(T),                       \
                          src + k * stream + i * (int64_t)sizeof(T));                              \
        }                                                                                          \
    }

static void s2dq_merge(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src, int64_t n, int64_t streams,
                       int64_t stream, int64_t width)
{
    if (width == 2) { S2DQ_MERGE(uint16_t, 2) }
    else if (width == 4) { S2DQ_MERGE(uint32_t, 2) }
    else if (streams == 2) { S2DQ_MERGE(uint8_t, 2) }
    else if (streams == 3) { S2DQ_MERGE(uint8_t, 3) }
    else { S2DQ_MERGE(uint8_t, 4) }
}

/* ------------------------------------------------------------------------------------------------ transpose */

/* Perfect shuffles, which compilers make of vectors: the halves of `x` interleaved, and apart again.
 *
 * The first sends place i of n to 2i modulo n - 1. So k of them send row by row to column by column where there are
 * 2^k rows, and k of the second do where there are 2^k columns. */
#define S2DQ_DEFINE_SHUFFLE(T, W)                                                                             \
    static inline void s2dq_shuffle_##W(T *S2DQ_RESTRICT y, const T *S2DQ_RESTRICT x, int half)                \
    {                                                                                                          \
        for (int i = 0; i < half; i++) {                                                                       \
            y[2 * i] = x[i];                                                                                   \
            y[2 * i + 1] = x[half + i];                                                                        \
        }                                                                                                      \
    }

S2DQ_DEFINE_SHUFFLE(uint8_t, 1)
S2DQ_DEFINE_SHUFFLE(uint16_t, 2)

static inline void s2dq_unshuffle_1(uint8_t *S2DQ_RESTRICT y, const uint8_t *S2DQ_RESTRICT x, int half)
{
    for (int i = 0; i < half; i++) {
        y[i] = x[2 * i];
        y[half + i] = x[2 * i + 1];
    }
}

/* A square of SIDE x SIDE elements: row i starts at row_at[i] of the source, column j at column_at[j] of the result. */
#define S2DQ_DEFINE_SQUARE(T, W, SIDE, ROUNDS)                                                                 \
    static inline void s2dq_square_##W##_##SIDE(uint8_t *dst, const uint8_t *src, const int64_t *row_at,       \
                                                const int64_t *column_at)                                      \
    {                                                                                                          \
        T v[2][SIDE * SIDE];                                                                                   \
        for (int i = 0; i < SIDE; i++) memcpy(v[0] + SIDE * i, src + row_at[i], SIDE * W);                     \
        for (int k = 0; k < ROUNDS; k++) s2dq_shuffle_##W(v[(k + 1) % 2], v[k % 2], SIDE * SIDE / 2);          \
        for (int i = 0; i < SIDE; i++) memcpy(dst + column_at[i], v[ROUNDS % 2] + SIDE * i, SIDE * W);         \
    }

S2DQ_DEFINE_SQUARE(uint8_t, 1, 8, 3)
S2DQ_DEFINE_SQUARE(uint8_t, 1, 16, 4)
S2DQ_DEFINE_SQUARE(uint16_t, 2, 4, 2)
S2DQ_DEFINE_SQUARE(uint16_t, 2, 8, 3)

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define S2DQ_BIG_ENDIAN 1
#else
#define S2DQ_BIG_ENDIAN 0
#endif

/* Swaps the bits of `low` under `mask` << shift with those of `high` under `mask`. */
#define S2DQ_SWAP(LOW, HIGH, SHIFT, MASK)                                 \
    do {                                                                  \
        const uint64_t moved_ = (((LOW) >> (SHIFT)) ^ (HIGH)) & (MASK);   \
        (HIGH) ^= moved_;                                                 \
        (LOW) ^= moved_ << (SHIFT);                                       \
    } while (0)

/* The same where a row is a word: quarters are swapped, then quarters of those. No row has to reach memory before it
 * is read as part of a vector. Rows are `ss` apart, columns `ds`. Requires a little endian. */
#define S2DQ_DEFINE_WORDS(W, SIDE)                                                                             \
    static inline void s2dq_turn_##W(uint8_t *dst, const uint8_t *src, int64_t ds, int64_t ss)                 \
    {                                                                                                          \
        uint64_t v[SIDE];                                                                                      \
        for (int i = 0; i < SIDE; i++) memcpy(&v[i], src + i * ss, 8);                                         \
        for (int i = 0; i < SIDE / 2; i++) S2DQ_SWAP(v[i], v[i + SIDE / 2], 32, UINT64_C(0x00000000FFFFFFFF)); \
        for (int i = 0; W <= 2 && i < SIDE; i++)                                                               \
            if (!(i & SIDE / 4)) S2DQ_SWAP(v[i], v[i + SIDE / 4], 16, UINT64_C(0x0000FFFF0000FFFF));           \
        for (int i = 0; W == 1 && i < SIDE; i += 2) S2DQ_SWAP(v[i], v[i + 1], 8, UINT64_C(0x00FF00FF00FF00FF)); \
        for (int i = 0; i < SIDE; i++) memcpy(dst + i * ds, &v[i], 8);                                         \
    }                                                                                                          \
    static inline void s2dq_words_##W##_##SIDE(uint8_t *dst, const uint8_t *src, const int64_t *row_at,        \
                                               const int64_t *column_at)                                       \
    {                                                                                                          \
        s2dq_turn_##W(dst + column_at[0], src + row_at[0], column_at[1] - column_at[0], row_at[1] - row_at[0]); \
    }

S2DQ_DEFINE_WORDS(1, 8)
S2DQ_DEFINE_WORDS(2, 4)
S2DQ_DEFINE_WORDS(4, 2)

/* Squares over rows and columns, the last ones of each direction overlapping those before.
 * Requires SIDE rows and columns. */
#define S2DQ_SQUARES(KIND, W, SIDE)                                                                            \
    for (int64_t j = 0; j < columns; j += SIDE) {                                                              \
        const int64_t column = s2dq_min(j, columns - SIDE);                                                   \
        for (int64_t i = 0; i < rows; i += SIDE) {                                                             \
            const int64_t row = s2dq_min(i, rows - SIDE);                                                      \
            s2dq_##KIND##_##W##_##SIDE(dst + row * W, src + column * W, row_at + row, column_at + column);     \
        }                                                                                                      \
    }

/* `even`: squares of words may be used. Vectors of bytes do not beat them, those of two bytes do.
 * Requires `even` for w 4. */
static void s2dq_block(uint8_t *dst, const uint8_t *src, const int64_t *row_at, int64_t rows,
                       const int64_t *column_at, int64_t columns, int64_t w, bool even)
{
    /* Lines at a distance of whole pages share a set of the first cache, which keeps eight of them. */
    const bool crowded = (column_at[1] - column_at[0]) % 4096 == 0 || (row_at[1] - row_at[0]) % 4096 == 0;
    const bool wide = rows * w >= 16 && columns * w >= 16 && !crowded;
    if (w == 4) { S2DQ_SQUARES(words, 4, 2) }
    else if (w == 2 && wide) { S2DQ_SQUARES(square, 2, 8) }
    else if (w == 2 && even) { S2DQ_SQUARES(words, 2, 4) }
    else if (w == 2) { S2DQ_SQUARES(square, 2, 4) }
    else if (even) { S2DQ_SQUARES(words, 1, 8) }
    else if (wide) { S2DQ_SQUARES(square, 1, 16) }
    else { S2DQ_SQUARES(square, 1, 8) }
}

/* Loops that continue each other on one side of a transpose: those of the rows do in the result, those of the columns
 * in the source. */
typedef struct {
    int64_t extent;
    int count;
    s2dq_axis axes[S2DQ_BOX_AXES];
} s2dq_chain;

/* Whether `side` elements from any multiple of `side` on are at equal distances on the other side. */
static bool s2dq_is_even(const s2dq_chain *chain, int64_t side)
{
    return chain->count == 1 || chain->axes[0].extent % side == 0;
}

/* Where indices `first` to `first + n` lie on the other side. */
static void s2dq_places(int64_t *at, const s2dq_chain *chain, int64_t first, int64_t n, bool columns)
{
    int64_t index[S2DQ_BOX_AXES], place = 0;
    for (int a = 0; a < chain->count; a++) {
        index[a] = first;
        if (a + 1 < chain->count) {
            index[a] = first % chain->axes[a].extent;
            first /= chain->axes[a].extent;
        }
        place += index[a] * (columns ? chain->axes[a].dst : chain->axes[a].src);
    }
    const s2dq_axis inner = chain->axes[0];
    const int64_t near = columns ? inner.dst : inner.src;
    for (int64_t i = 0; i < n;) {
        const int64_t run = s2dq_min(inner.extent - index[0], n - i);
        for (int64_t k = 0; k < run; k++) at[i + k] = place + k * near;
        i += run;
        place -= index[0] * near;
        index[0] = 0;
        for (int a = 1; a < chain->count; a++) {
            const int64_t step = columns ? chain->axes[a].dst : chain->axes[a].src;
            place += step;
            if (++index[a] < chain->axes[a].extent) break;
            place -= chain->axes[a].extent * step;
            index[a] = 0;
        }
    }
}

/* Rows and columns of bytes that a transpose works on at a time: lines of both sides stay in the first cache. */
#define S2DQ_BLOCK 64
#define S2DQ_BLOCK_LEAST 16 /* what is left over must be enough for a square */

/* How much to take of what is left: a block, or all of it where the rest would be too short. */
static int64_t s2dq_piece(int64_t left, int64_t w)
{
    return left * w < S2DQ_BLOCK + S2DQ_BLOCK_LEAST ? left : S2DQ_BLOCK / w;
}

/* A plane of bytes of one loop each, often so small that tables of places would cost as much as the rest.
 * Requires a little endian, 8 rows and 8 columns. */
static void s2dq_plane(uint8_t *dst, const uint8_t *src, s2dq_axis rows, s2dq_axis columns)
{
    for (int64_t c = 0, wide; c < columns.extent; c += wide) {
        wide = s2dq_piece(columns.extent - c, 1);
        for (int64_t r = 0, high; r < rows.extent; r += high) {
            high = s2dq_piece(rows.extent - r, 1);
            for (int64_t j = c; j < c + wide; j += 8) {
                const int64_t column = s2dq_min(j, columns.extent - 8);
                for (int64_t i = r; i < r + high; i += 8) {
                    const int64_t row = s2dq_min(i, rows.extent - 8);
                    s2dq_turn_1(dst + column * columns.dst + row, src + row * rows.src + column, columns.dst, rows.src);
                }
            }
        }
    }
}

/* A plane of elements of w bytes. Requires 8 bytes at least in both directions; `even` as above. */
static void s2dq_transpose(uint8_t *dst, const uint8_t *src, const s2dq_chain *rows, const s2dq_chain *columns,
                           int64_t w, bool even)
{
    int64_t row_at[S2DQ_BLOCK + S2DQ_BLOCK_LEAST], column_at[S2DQ_BLOCK + S2DQ_BLOCK_LEAST];
    if (w == 1 && even && rows->count == 1 && columns->count == 1) {
        s2dq_plane(dst, src, rows->axes[0], columns->axes[0]);
        return;
    }
    for (int64_t c = 0, wide; c < columns->extent; c += wide) {
        wide = s2dq_piece(columns->extent - c, w);
        s2dq_places(column_at, columns, c, wide, true);
        for (int64_t r = 0, high; r < rows->extent; r += high) {
            high = s2dq_piece(rows->extent - r, w);
            if (c == 0 || high < rows->extent) s2dq_places(row_at, rows, r, high, false);
            s2dq_block(dst + r * w, src + c * w, row_at, high, column_at, wide, w, even);
        }
    }
}

/* ----------------------------------------------------------------------------------------- splitting and joining */

#define S2DQ_STREAMS 12 /* that a stream is split into or joined from at most */

/* Rows of WIDE bytes, end to end, split into streams: byte place[k] of each belongs to stream k, at dst + offset[k].
 * N rows at a time, 2^ROUNDS; whole vectors if all is constant. Reads nothing behind the last byte wanted.
 * Requires N rows. */
#define S2DQ_DEFINE_SPLIT(WIDE, N, ROUNDS)                                                                     \
    static void s2dq_split_##WIDE(uint8_t *dst, const uint8_t *src, const int64_t *offset, const int *place,   \
                                  int streams, int64_t rows)                                                   \
    {                                                                                                          \
        uint8_t v[2][WIDE * N] = {{0}};                                                                        \
        int spare = WIDE - 1;                                                                                  \
        for (int k = 0; k < streams; k++)                                                                      \
            spare = (int)s2dq_min(spare, WIDE - 1 - place[k]);                                                 \
        for (int64_t r = 0; r < rows; r += N) {                                                                \
            const int64_t row = s2dq_min(r, rows - N);                                                         \
            if (spare && row == rows - N) memcpy(v[0], src + row * WIDE, (size_t)(WIDE * N - spare));          \
            else memcpy(v[0], src + row * WIDE, WIDE * N);                                                     \
            for (int k = 0; k < ROUNDS; k++) s2dq_shuffle_1(v[(k + 1) % 2], v[k % 2], WIDE * N / 2);           \
            for (int k = 0; k < streams; k++) memcpy(dst + offset[k] + row, v[ROUNDS % 2] + N * place[k], N);  \
        }                                                                                                      \
    }

/* The inverse: `n` bytes of each stream, the k-th from src + offset[k], into rows of WIDE bytes. Requires N bytes. */
#define S2DQ_DEFINE_JOIN(WIDE, N, ROUNDS)                                                                      \
    static void s2dq_join_##WIDE(uint8_t *dst, const uint8_t *src, const int64_t *offset, int64_t n)           \
    {                                                                                                          \
        uint8_t v[2][WIDE * N];                                                                                \
        for (int64_t r = 0; r < n; r += N) {                                                                   \
            const int64_t row = s2dq_min(r, n - N);                                                            \
            for (int k = 0; k < WIDE; k++) memcpy(v[0] + N * k, src + offset[k] + row, N);                     \
            for (int k = 0; k < ROUNDS; k++) s2dq_unshuffle_1(v[(k + 1) % 2], v[k % 2], WIDE * N / 2);         \
            memcpy(dst + row * WIDE, v[ROUNDS % 2], WIDE * N);                                                 \
        }                                                                                                      \
    }

S2DQ_DEFINE_SPLIT(3, 32, 5)
S2DQ_DEFINE_SPLIT(6, 16, 4)
S2DQ_DEFINE_SPLIT(8, 16, 4)
S2DQ_DEFINE_SPLIT(12, 16, 4)
S2DQ_DEFINE_JOIN(4, 16, 4)
S2DQ_DEFINE_JOIN(6, 16, 4)
S2DQ_DEFINE_JOIN(12, 16, 4)

typedef void (*s2dq_splitter)(uint8_t *, const uint8_t *, const int64_t *, const int *, int, int64_t);

typedef void (*s2dq_joiner)(uint8_t *, const uint8_t *, const int64_t *, int64_t);

/* The kernel for so many streams of `n` bytes, or NULL. */
static s2dq_joiner s2dq_joiner_for(int64_t streams, int64_t n)
{
    if (n < 16) return NULL;
    return streams == 4 ? s2dq_join_4 : streams == 6 ? s2dq_join_6 : streams == 12 ? s2dq_join_12 : NULL;
}

/* The kernel for `rows` rows of so many bytes, or NULL. */
static s2dq_splitter s2dq_splitter_for(int64_t wide, int64_t rows)
{
    if (wide == 3 && rows >= 32) return s2dq_split_3;
    if (wide == 6 && rows >= 16) return s2dq_split_6;
    if (wide == 8 && rows >= 16) return s2dq_split_8;
    if (wide == 12 && rows >= 16) return s2dq_split_12;
    return NULL;
}

/* ------------------------------------------------------------------------------------------- choice of the loops */

/* Few streams merged into one: the innermost loop of the result steps over them, the next is dense in the source.
 * Returns whether that is so. */
static bool s2dq_try_merge(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    const int64_t w = whole->width;
    s2dq_box box;
    s2dq_position at;
    if (w > 4 || w == 3 || whole->count < 2 || whole->axes[0].dst != w) return false;
    const s2dq_axis streams = whole->axes[0], run = whole->axes[1];
    if (run.src != w || run.dst != w * streams.extent || streams.extent > (w == 1 ? 4 : 2)) return false;
    s2dq_assign(&box, whole);
    s2dq_drop(&box, 1);
    s2dq_drop(&box, 0);
    s2dq_order(&box, streams.extent * run.extent * w);
    s2dq_start(&at, &box, 0);
    do s2dq_merge(dst + at.dst, src + at.src, run.extent, streams.extent, streams.src, w);
    while (s2dq_next(&at, &box, 0));
    return true;
}

/* More streams of bytes joined: the loops dense in the result up to one that is dense in the source. */
static bool s2dq_try_join(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    s2dq_box box;
    s2dq_position at;
    int64_t offset[S2DQ_STREAMS] = {0}, streams = 1;
    int chain = 0;
    if (whole->width != 1) return false;
    while (s2dq_axis_at(whole, chain).dst == streams && whole->axes[chain].src != 1) {
        const s2dq_axis axis = whole->axes[chain++];
        if (streams * axis.extent > S2DQ_STREAMS) return false;
        for (int64_t k = streams; k < streams * axis.extent; k++) offset[k] = offset[k - streams] + axis.src;
        streams *= axis.extent;
    }
    const s2dq_axis run = s2dq_axis_at(whole, chain);
    const s2dq_joiner kernel = s2dq_joiner_for(streams, run.extent);
    if (!kernel || run.src != 1 || run.dst != streams) return false;
    s2dq_assign(&box, whole);
    for (; chain >= 0; chain--) s2dq_drop(&box, chain);
    s2dq_order(&box, run.extent * streams);
    s2dq_start(&at, &box, 0);
    do kernel(dst + at.dst, src + at.src, offset, run.extent);
    while (s2dq_next(&at, &box, 0));
    return true;
}

/* Takes the loops of a chain out of a box, from axis `first` on: those that continue each other in the source
 * (`columns`) or in the result. */
static void s2dq_take_chain(s2dq_chain *chain, s2dq_box *box, int first, bool columns)
{
    chain->extent = 1;
    chain->count = 0;
    for (int a = first; a < box->count && chain->extent * box->width < S2DQ_BLOCK;) {
        const s2dq_axis axis = box->axes[a];
        if ((columns ? axis.src : axis.dst) != chain->extent * box->width) {
            a++;
            continue;
        }
        chain->extent *= axis.extent;
        chain->axes[chain->count++] = axis;
        s2dq_drop(box, a);
        a = first;
    }
}

/* A transpose: the loops dense in the source become columns, those dense in the result rows. */
static bool s2dq_try_transpose(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    const int64_t w = whole->width;
    s2dq_chain rows, columns;
    s2dq_box box;
    s2dq_position at;
    const int64_t side = 8 / w;
    const int64_t least = w == 4 ? 64 : side; /* plain loops over fewer lines find them in the nearest cache */
    if (w > 4 || w == 3 || whole->count < 2 || whole->axes[0].dst != w) return false;
    s2dq_assign(&box, whole);
    s2dq_take_chain(&columns, &box, 1, true);
    s2dq_take_chain(&rows, &box, 0, false);
    if (rows.extent < least || columns.extent < least) return false;
    const bool even = !S2DQ_BIG_ENDIAN && s2dq_is_even(&rows, side) && s2dq_is_even(&columns, side);
    if (w == 4 && (!even || whole->axes[0].src <= 4 * w)) return false; /* plain loops are faster */
    s2dq_order(&box, rows.extent * columns.extent * w);
    s2dq_start(&at, &box, 0);
    do s2dq_transpose(dst + at.dst, src + at.src, &rows, &columns, w, even);
    while (s2dq_next(&at, &box, 0));
    return true;
}

/* One stream of bytes split: the innermost loop of the result steps over rows of a few bytes; the loops that step
 * inside of a row are the streams. */
static bool s2dq_try_split(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    s2dq_box box;
    s2dq_position at;
    int64_t offset[S2DQ_STREAMS] = {0};
    int place[S2DQ_STREAMS] = {0}, streams = 1;
    if (whole->width != 1 || whole->count < 2 || whole->axes[0].dst != 1) return false;
    const s2dq_axis rows = whole->axes[0];
    const s2dq_splitter kernel = s2dq_splitter_for(rows.src, rows.extent);
    if (!kernel) return false;
    box.width = 1;
    box.count = 0;
    for (int a = 1; a < whole->count; a++) {
        const s2dq_axis axis = whole->axes[a];
        if (axis.src <= 0 || axis.src >= rows.src || streams * axis.extent > rows.src) {
            box.axes[box.count++] = axis;
            continue;
        }
        for (int k = streams; k < streams * axis.extent; k++) {
            place[k] = place[k - streams] + (int)axis.src;
            offset[k] = offset[k - streams] + axis.dst;
            if (place[k] >= rows.src) return false;
        }
        streams *= (int)axis.extent;
    }
    if (2 * streams < rows.src) return false;
    s2dq_order(&box, rows.extent * streams);
    s2dq_start(&at, &box, 0);
    do kernel(dst + at.dst, src + at.src, offset, place, streams, rows.extent);
    while (s2dq_next(&at, &box, 0));
    return true;
}

/* Whether neighbours along a loop share a line, on either side. */
static inline bool s2dq_is_near(s2dq_axis axis)
{
    const int64_t src = s2dq_magnitude(axis.src), dst = s2dq_magnitude(axis.dst);
    return s2dq_min(src, dst) < S2DQ_LINE;
}

/* Takes the loop to run innermost out of a box: the one of the result, or where that is too short to pay for its
 * restart the longest of those that use up lines. */
static s2dq_axis s2dq_take_inner(s2dq_box *box)
{
    int best = 0;
    if (box->count == 0) return s2dq_once;
    if (box->axes[0].extent <= 8)
        for (int a = 1; a < box->count; a++)
            if (box->axes[a].extent > box->axes[best].extent && s2dq_is_near(box->axes[a])) best = a;
    const s2dq_axis inner = box->axes[best];
    s2dq_drop(box, best);
    return inner;
}

/* A box of any loops. */
static void s2dq_copy_box(uint8_t *dst, const uint8_t *src, s2dq_box *box)
{
    s2dq_position at;
    if (s2dq_try_merge(dst, src, box) || s2dq_try_join(dst, src, box)) return;
    if (s2dq_try_split(dst, src, box) || s2dq_try_transpose(dst, src, box)) return;
    const s2dq_axis inner = s2dq_take_inner(box);
    s2dq_order(box, box->width * inner.extent);
    const s2dq_axis outer = s2dq_axis_at(box, 0);
    s2dq_start(&at, box, 1);
    do {
        for (int64_t i = 0; i < outer.extent; i++)
            s2dq_run(dst + at.dst + i * outer.dst, src + at.src + i * outer.src, inner.extent, inner.dst, inner.src,
                     box->width);
    } while (s2dq_next(&at, box, 1));
}

/* Move the granules of a box.
 * IN: src; axes[0 .. count), outermost first; width, bytes of a granule.
 * OUT: dst, exactly the granules named by the loops.
 * Requires: no overlap of src and dst, distinct places in dst, extents >= 1. */
static void s2dq_copy(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    s2dq_box box;
    if (count > S2DQ_BOX_AXES) {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_copy(dst + i * axes->dst, src + i * axes->src, axes + 1, count - 1, width);
        return;
    }
    box.width = width;
    s2dq_simplify(&box, axes, count);
    s2dq_copy_box(dst, src, &box);
}

/* The same, and fill the spare lanes behind each run of bytes that the granules make without a gap.
 * IN: as above; lanes, bytes of them behind each run; fill, their element, of `element` bytes.
 * OUT: dst, exactly the granules and the lanes.
 * Requires: as above; element divides lanes; loops outside of a run step over its lanes too, and come first where there
 * are more loops than S2DQ_BOX_AXES. */
static void s2dq_copy_lanes(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width,
                            int64_t lanes, const uint8_t *fill, int64_t element)
{
    s2dq_box box, spare;
    if (count > S2DQ_BOX_AXES) {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_copy_lanes(dst + i * axes->dst, src + i * axes->src, axes + 1, count - 1, width, lanes, fill, element);
        return;
    }
    box.width = width;
    s2dq_simplify(&box, axes, count);
    const int64_t start = s2dq_lanes_of(&spare, &box, lanes, element);
    s2dq_copy_box(dst, src, &box);
    s2dq_copy_box(dst + start, fill, &spare);
}

static void s2dq_lookup(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                        const uint8_t *S2DQ_RESTRICT table, const s2dq_axis *axes, int count)
{
    if (count == 0) {
        *dst = table[*src];
        return;
    }
    const int64_t n = axes->extent, ds = axes->dst, ss = axes->src, ts = axes->tab;
    if (count > 1) {
        for (int64_t i = 0; i < n; i++)
            s2dq_lookup(dst + i * ds, src + i * ss, table + i * ts, axes + 1, count - 1);
    } else if (ts == 0) {
        for (int64_t i = 0; i < n; i++) dst[i * ds] = table[src[i * ss]];
    } else {
        for (int64_t i = 0; i < n; i++) dst[i * ds] = table[i * ts + src[i * ss]];
    }
}

#endif
