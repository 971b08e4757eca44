/* Portable micro-kernels: plain C loops that a compiler can vectorise, the floor every other variant must match.
 *
 * s2dq_copy    move granules of `width` bytes through up to any number of loops
 * s2dq_lookup  the same for single bytes, each sent through the 256-byte table its loop position selects
 *
 * Requires: source and destination do not overlap, all addresses the loops reach are valid, extents >= 1.
 * Guarantees: reads and writes exactly the granules named by the loops, any alignment, any sign of a source step.
 */
#ifndef S2DQ_PORTABLE_H
#define S2DQ_PORTABLE_H

#include <stdint.h>
#include <string.h>

#include "axis.h"

typedef struct {
    uint64_t half[2];
} s2dq_u128;

/* Inner extent from which a two-axis transpose is cut into tiles, and the length of a tile. */
#define S2DQ_TILE 64
/* A transpose with fewer outer steps than this reads each far-apart line too seldom for tiles to pay. */
#define S2DQ_TILE_OUTER 16

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

/* Two loops. Which of them runs inside is free: bytes move, order does not matter. */
static void s2dq_plane(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src, s2dq_axis outer,
                       s2dq_axis inner, int64_t width)
{
    if (inner.dst == width && outer.dst == inner.extent * width && outer.src == width &&
        s2dq_merge(dst, src, outer.extent, inner.extent, inner.src, width))
        return;
    if (inner.extent < outer.extent && inner.extent <= 8) {
        s2dq_axis swap = outer;
        outer = inner;
        inner = swap;
    }
    if (outer.extent < S2DQ_TILE_OUTER || inner.extent <= S2DQ_TILE || inner.src == width) {
        for (int64_t i = 0; i < outer.extent; i++)
            s2dq_run(dst + i * outer.dst, src + i * outer.src, inner.extent, inner.dst, inner.src, width);
        return;
    }
    /* A transpose: visit the far-apart source lines a tile at a time, while they are still in the first cache. */
    for (int64_t j = 0; j < inner.extent; j += S2DQ_TILE) {
        int64_t left = inner.extent - j < S2DQ_TILE ? inner.extent - j : S2DQ_TILE;
        for (int64_t i = 0; i < outer.extent; i++)
            s2dq_run(dst + i * outer.dst + j * inner.dst, src + i * outer.src + j * inner.src, left, inner.dst,
                     inner.src, width);
    }
}

static void s2dq_copy(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    if (count == 0) {
        memcpy(dst, src, (size_t)width);
    } else if (count == 1) {
        s2dq_run(dst, src, axes->extent, axes->dst, axes->src, width);
    } else if (count == 2) {
        s2dq_plane(dst, src, axes[0], axes[1], width);
    } else {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_copy(dst + i * axes->dst, src + i * axes->src, axes + 1, count - 1, width);
    }
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
