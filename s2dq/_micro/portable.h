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

/* Rows and columns of bytes that a transpose works on at a time: lines of both sides stay in the first cache. */
#define S2DQ_BLOCK 64

/* One granule of constant size: memcpy becomes a single load and store. */
#define S2DQ_MOVE_ONE(T, D, S)          \
    do {                                \
        T value_;                       \
        memcpy(&value_, (S), sizeof(T)); \
        memcpy((D), &value_, sizeof(T)); \
    } while (0)

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
        else { S2DQ_LOOP(T, n, ds, ss) }                                                                          \
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
    if (ss == width && ds == width) {
        memcpy(dst, src, (size_t)(n * width));
        return;
    }
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

/* `streams` contiguous source rows merged granule by granule into one contiguous run. */
#define S2DQ_MERGE(T, STREAMS)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        for (int k = 0; k < (STREAMS); k++) {                                                      \
            S2DQ_MOVE_ONE(T, dst + (i * (STREAMS) + k) * (int64_t)sizeof(T),                       \
                          src + k * stream + i * (int64_t)sizeof(T));                              \
        }                                                                                          \
    }

static int s2dq_merge(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src, int64_t n, int64_t streams,
                      int64_t stream, int64_t width)
{
    if (width == 1) {
        if (streams == 2) { S2DQ_MERGE(uint8_t, 2) return 1; }
        if (streams == 3) { S2DQ_MERGE(uint8_t, 3) return 1; }
        if (streams == 4) { S2DQ_MERGE(uint8_t, 4) return 1; }
    } else if (width == 2 && streams == 2) {
        S2DQ_MERGE(uint16_t, 2)
        return 1;
    } else if (width == 4 && streams == 2) {
        S2DQ_MERGE(uint32_t, 2)
        return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------ transpose */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define S2DQ_BIG_ENDIAN 1
#else
#define S2DQ_BIG_ENDIAN 0
#endif

/* Swaps the bits of `low` under `mask` << shift with those of `high` under `mask`. */
#define S2DQ_SWAP(LOW, HIGH, SHIFT, MASK)                                \
    do {                                                                 \
        const uint64_t moved_ = (((LOW) >> (SHIFT)) ^ (HIGH)) & (MASK);   \
        (HIGH) ^= moved_;                                                \
        (LOW) ^= moved_ << (SHIFT);                                      \
    } while (0)

/* Eight bytes of a row. */
static inline uint64_t s2dq_word(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

/* Transposes a square of 8 x 8 bytes: words are matrices of bytes, halved three times. */
static inline void s2dq_turn(uint64_t *v)
{
    for (int i = 0; i < 4; i++) S2DQ_SWAP(v[i], v[i + 4], 32, UINT64_C(0x00000000FFFFFFFF));
    for (int i = 0; i < 8; i += 4) {
        S2DQ_SWAP(v[i], v[i + 2], 16, UINT64_C(0x0000FFFF0000FFFF));
        S2DQ_SWAP(v[i + 1], v[i + 3], 16, UINT64_C(0x0000FFFF0000FFFF));
    }
    for (int i = 0; i < 8; i += 2) S2DQ_SWAP(v[i], v[i + 1], 8, UINT64_C(0x00FF00FF00FF00FF));
}

/* A square of 8 x 8 bytes: column j goes to dst + j * ds. */
static inline void s2dq_square_1(uint8_t *dst, const uint8_t *src, int64_t ds, int64_t ss)
{
    uint64_t v[8];
    for (int i = 0; i < 8; i++) v[i] = s2dq_word(src + i * ss);
    s2dq_turn(v);
    for (int i = 0; i < 8; i++) memcpy(dst + i * ds, &v[i], 8);
}

/* The same of 4 x 4 elements of 2 bytes. */
static inline void s2dq_square_2(uint8_t *dst, const uint8_t *src, int64_t ds, int64_t ss)
{
    uint64_t v[4];
    for (int i = 0; i < 4; i++) v[i] = s2dq_word(src + i * ss);
    for (int i = 0; i < 2; i++) S2DQ_SWAP(v[i], v[i + 2], 32, UINT64_C(0x00000000FFFFFFFF));
    for (int i = 0; i < 4; i += 2) S2DQ_SWAP(v[i], v[i + 1], 16, UINT64_C(0x0000FFFF0000FFFF));
    for (int i = 0; i < 4; i++) memcpy(dst + i * ds, &v[i], 8);
}

/* Squares over a plane, block by block; the last ones of each direction overlap those before.
 * Requires W * extent >= 8 on both sides. */
#define S2DQ_DEFINE_TRANSPOSE(W)                                                                                   \
    static void s2dq_transpose_##W(uint8_t *dst, const uint8_t *src, s2dq_axis rows, s2dq_axis columns)            \
    {                                                                                                              \
        const int64_t side = 8 / W, block = S2DQ_BLOCK / W;                                                        \
        for (int64_t c = 0; c < columns.extent; c += block) {                                                      \
            const int64_t c_end = columns.extent - c < block ? columns.extent : c + block;                         \
            for (int64_t r = 0; r < rows.extent; r += block) {                                                     \
                const int64_t r_end = rows.extent - r < block ? rows.extent : r + block;                           \
                for (int64_t j = c; j < c_end; j += side) {                                                        \
                    const int64_t column = j > columns.extent - side ? columns.extent - side : j;                  \
                    for (int64_t i = r; i < r_end; i += side) {                                                    \
                        const int64_t row = i > rows.extent - side ? rows.extent - side : i;                       \
                        s2dq_square_##W(dst + column * columns.dst + row * W, src + row * rows.src + column * W,   \
                                        columns.dst, rows.src);                                                    \
                    }                                                                                              \
                }                                                                                                  \
            }                                                                                                      \
        }                                                                                                          \
    }

S2DQ_DEFINE_TRANSPOSE(1)
S2DQ_DEFINE_TRANSPOSE(2)

/* Bytes 0, 3, 6 of a word from the one at `shift` on, side by side at its bottom. */
static inline uint64_t s2dq_thirds(uint64_t word, int shift)
{
    word >>= shift;
    return (word & 0xFF) | (word >> 16 & 0xFF00) | (word >> 32 & 0xFF0000);
}

/* A stream of `n` triples of bytes split into three. Requires n >= 8 and a little endian. */
static void s2dq_split_3(uint8_t *dst, const uint8_t *src, int64_t n, const int64_t *offset)
{
    const int64_t first = offset[0], second = offset[1], third = offset[2];
    for (int64_t r = 0; r < n; r += 8) {
        const int64_t i = r > n - 8 ? n - 8 : r;
        const uint64_t a = s2dq_word(src + 3 * i), b = s2dq_word(src + 3 * i + 8), c = s2dq_word(src + 3 * i + 16);
        const uint64_t x = s2dq_thirds(a, 0) | s2dq_thirds(b, 8) << 24 | s2dq_thirds(c, 16) << 48;
        const uint64_t y = s2dq_thirds(a, 8) | s2dq_thirds(b, 16) << 24 | s2dq_thirds(c, 0) << 40;
        const uint64_t z = s2dq_thirds(a, 16) | s2dq_thirds(b, 0) << 16 | s2dq_thirds(c, 8) << 40;
        memcpy(dst + first + i, &x, 8);
        memcpy(dst + second + i, &y, 8);
        memcpy(dst + third + i, &z, 8);
    }
}

/* Rows of 5 to 8 bytes split into streams: byte place[k] of each row belongs to stream k, at dst + offset[k].
 * Requires 8 rows, in ascending order. */
static void s2dq_scatter(uint8_t *dst, const uint8_t *src, const int64_t *offset, const int *place, int streams,
                         s2dq_axis rows)
{
    int last = 0;
    for (int k = 0; k < streams; k++)
        if (place[k] > last) last = place[k];
    for (int64_t r = 0; r < rows.extent; r += 8) {
        const int64_t row = r > rows.extent - 8 ? rows.extent - 8 : r;
        uint64_t v[8];
        for (int i = 0; i < 7; i++) v[i] = s2dq_word(src + (row + i) * rows.src);
        if (row < rows.extent - 8) /* the last row of all is read from its end on, nothing lies behind it */
            v[7] = s2dq_word(src + (row + 7) * rows.src);
        else
            v[7] = s2dq_word(src + (row + 7) * rows.src + last - 7) >> 8 * (7 - last);
        s2dq_turn(v);
        for (int k = 0; k < streams; k++) memcpy(dst + offset[k] + row, &v[place[k]], 8);
    }
}

/* ------------------------------------------------------------------------------------------- choice of the loops */

/* Streams merged into one, or a transpose: the innermost loop of the result and the one that is dense in the source
 * become a kernel. Returns whether there is one. */
static int s2dq_try_plane(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    const int64_t w = whole->width;
    s2dq_box box;
    s2dq_position at;
    int other = 1;
    if (w > 8 || whole->count < 2 || whole->axes[0].dst != w) return 0;
    while (other < whole->count && whole->axes[other].src != w) other++;
    if (other == whole->count) return 0;
    const s2dq_axis rows = whole->axes[0], columns = whole->axes[other];
    const int transposed = !S2DQ_BIG_ENDIAN && w <= 2 && rows.extent * w >= 8 && columns.extent * w >= 8;
    const int merged = columns.dst == w * rows.extent &&
                       ((rows.extent <= 4 && w == 1) || (rows.extent == 2 && (w == 2 || w == 4)));
    if (!transposed && !merged) return 0;
    s2dq_assign(&box, whole);
    s2dq_drop(&box, other);
    s2dq_drop(&box, 0);
    s2dq_order(&box, rows.extent * columns.extent * w);
    s2dq_start(&at, &box, 0);
    do {
        if (merged) s2dq_merge(dst + at.dst, src + at.src, columns.extent, rows.extent, rows.src, w);
        else if (w == 1) s2dq_transpose_1(dst + at.dst, src + at.src, rows, columns);
        else s2dq_transpose_2(dst + at.dst, src + at.src, rows, columns);
    } while (s2dq_next(&at, &box, 0));
    return 1;
}

/* One stream split by rows of 3 or 5 to 8 bytes; the loops that step inside of a row are the streams. */
static int s2dq_try_scatter(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    s2dq_box box;
    s2dq_position at;
    int64_t offset[8] = {0};
    int place[8] = {0}, streams = 1;
    if (S2DQ_BIG_ENDIAN || whole->width != 1 || whole->count < 2 || whole->axes[0].dst != 1) return 0;
    const s2dq_axis rows = whole->axes[0];
    if (rows.src < 3 || rows.src == 4 || rows.src > 8 || rows.extent < 8) return 0;
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
            if (place[k] >= rows.src) return 0;
        }
        streams *= (int)axis.extent;
    }
    if (streams < 3) return 0;
    if (rows.src == 3 && (place[1] != 1 || place[2] != 2)) return 0;
    s2dq_order(&box, rows.extent * streams);
    s2dq_start(&at, &box, 0);
    do {
        if (rows.src == 3) s2dq_split_3(dst + at.dst, src + at.src, rows.extent, offset);
        else s2dq_scatter(dst + at.dst, src + at.src, offset, place, streams, rows);
    } while (s2dq_next(&at, &box, 0));
    return 1;
}

/* Whether neighbours along a loop share a line, on either side. */
static inline int s2dq_is_near(s2dq_axis axis)
{
    const int64_t src = s2dq_magnitude(axis.src), dst = s2dq_magnitude(axis.dst);
    return (src < dst ? src : dst) < S2DQ_LINE;
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
    if (s2dq_try_plane(dst, src, box) || s2dq_try_scatter(dst, src, box)) return;
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
 * Requires: as above; element divides lanes; loops outside of a run step over its lanes too. */
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
