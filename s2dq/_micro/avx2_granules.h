/* Granules of any width that stay as they are, one after the other, for AVX2.
 *
 * s2dq_avx2_granule       one of them
 * s2dq_avx2_granules      two loops of them; s2dq_avx2_granules_far fetches ahead
 * s2dq_avx2_halved        of whole vectors, side by side in a result that begins in the middle of one
 * s2dq_avx2_dense         of less than a vector, side by side in the result
 * s2dq_avx2_fill          one, repeated
 * s2dq_avx2_listed        few of them, from a table of where they are
 */
#ifndef S2DQ_AVX2_GRANULES_H
#define S2DQ_AVX2_GRANULES_H

#include "avx2_registers.h"

#if defined(S2DQ_X86)

#define S2DQ_AVX2_ALIGNED 128 /* bytes of a granule beyond which it is stored at whole vectors' addresses */
#define S2DQ_AVX2_RUN 2048   /* bytes of a granule from which its loop is worth a call */
#define S2DQ_AVX2_LONG 16384 /* and from which memcpy knows better */

/* A run of at least 64 bytes, by stores of whole vectors at their own addresses. */
S2DQ_AVX2 static void s2dq_avx2_copy_run(uint8_t *dst, const uint8_t *src, int64_t bytes)
{
    int64_t i = 32 - (int64_t)((uintptr_t)dst % 32);
    s2dq_avx2_store(dst, s2dq_avx2_load(src, 32), 32);
    for (; i < bytes - 128; i += 128) {
        S2DQ_UNROLL
        for (int k = 0; k < 128; k += 32) s2dq_avx2_store(dst + i + k, s2dq_avx2_load(src + i + k, 32), 32);
    }
    for (; i < bytes - 32; i += 32) s2dq_avx2_store(dst + i, s2dq_avx2_load(src + i, 32), 32);
    s2dq_avx2_store(dst + bytes - 32, s2dq_avx2_load(src + bytes - 32, 32), 32);
}

/* One granule. `width` is a constant or a large number, and not 5 to 7. */
S2DQ_AVX2_INLINE void s2dq_avx2_granule(uint8_t *dst, const uint8_t *src, int64_t width)
{
    if (width > S2DQ_AVX2_RUN) {
        if (width > S2DQ_AVX2_LONG && !s2dq_just_behind(dst, src))
            memcpy(dst, src, (size_t)width);
        else
            s2dq_avx2_copy_run(dst, src, width);
    } else if (width >= 32) {
        const __m256i last = s2dq_avx2_load(src + width - 32, 32);
        int64_t i = 0;
        if (width > S2DQ_AVX2_ALIGNED) { /* a store across two lines takes twice as long */
            s2dq_avx2_store(dst, s2dq_avx2_load(src, 32), 32);
            i = 32 - (int64_t)((uintptr_t)dst % 32);
        }
        for (; i < width - 32; i += 32) s2dq_avx2_store(dst + i, s2dq_avx2_load(src + i, 32), 32);
        s2dq_avx2_store(dst + width - 32, last, 32);
    } else if (width >= 16) {
        const __m256i last = s2dq_avx2_load(src + width - 16, 16);
        s2dq_avx2_store(dst, s2dq_avx2_load(src, 16), 16);
        if (width > 16) s2dq_avx2_store(dst + width - 16, last, 16);
    } else if (width >= 8) {
        const __m256i last = s2dq_avx2_load(src + width - 8, 8);
        s2dq_avx2_store(dst, s2dq_avx2_load(src, 8), 8);
        if (width > 8) s2dq_avx2_store(dst + width - 8, last, 8);
    } else if (width == 4) {
        s2dq_avx2_store(dst, s2dq_avx2_load(src, 4), 4);
    } else if (width >= 2) {
        uint16_t first;
        uint8_t third = src[width - 1];
        memcpy(&first, src, 2);
        memcpy(dst, &first, 2);
        if (width > 2) dst[2] = third;
    } else {
        *dst = *src;
    }
}

/* ------------------------------------------------------------------------------------------------ granules */

#define S2DQ_AVX2_GRANULES(W)                                                                                 \
    for (int64_t i = 0; i < outer.extent; i++)                                                                \
        for (int64_t j = 0; j < inner.extent; j++)                                                            \
            s2dq_avx2_granule(dst + i * outer.dst + j * inner.dst, src + i * outer.src + j * inner.src, (W));

/* Two moves of WIDE bytes that overlap. */
#define S2DQ_AVX2_ENDS(WIDE)                                                                                  \
    const __m256i last = s2dq_avx2_load(s + width - WIDE, WIDE);                                              \
    s2dq_avx2_store(d, s2dq_avx2_load(s, WIDE), WIDE);                                                        \
    s2dq_avx2_store(d + width - WIDE, last, WIDE)

#define S2DQ_AVX2_TWICE(WIDE)                                                                                 \
    for (int64_t i = 0; i < outer.extent; i++)                                                                \
        for (int64_t j = 0; j < inner.extent; j++) {                                                          \
            uint8_t *const d = dst + i * outer.dst + j * inner.dst;                                           \
            const uint8_t *const s = src + i * outer.src + j * inner.src;                                     \
            S2DQ_AVX2_ENDS(WIDE);                                                                             \
        }

/* Two loops of granules. */
S2DQ_AVX2 static void s2dq_avx2_granules(uint8_t *dst, const uint8_t *src, s2dq_axis outer, s2dq_axis inner,
                                         int64_t width)
{
    switch (width) {
    case 1: S2DQ_AVX2_GRANULES(1) return;
    case 2: S2DQ_AVX2_GRANULES(2) return;
    case 3: S2DQ_AVX2_GRANULES(3) return;
    case 4: S2DQ_AVX2_GRANULES(4) return;
    case 8: S2DQ_AVX2_GRANULES(8) return;
    case 12: S2DQ_AVX2_GRANULES(12) return;
    case 16: S2DQ_AVX2_GRANULES(16) return;
    case 24: S2DQ_AVX2_GRANULES(24) return;
    case 32: S2DQ_AVX2_GRANULES(32) return;
    case 48: S2DQ_AVX2_GRANULES(48) return;
    case 64: S2DQ_AVX2_GRANULES(64) return;
    case 128: S2DQ_AVX2_GRANULES(128) return;
    default: break;
    }
    if (width < 8) {
        S2DQ_AVX2_TWICE(4)
    } else if (width < 16) {
        S2DQ_AVX2_TWICE(8)
    } else if (width < 32) {
        S2DQ_AVX2_TWICE(16)
    } else {
        S2DQ_AVX2_GRANULES(width)
    }
}

#define S2DQ_AVX2_GRANULES_FAR(W)                                                                             \
    for (int64_t i = 0; i < outer.extent; i++)                                                                \
        for (int64_t j = 0; j < inner.extent; j++) {                                                          \
            const uint8_t *const s = src + i * outer.src + j * inner.src;                                     \
            for (int64_t k = 0; k < (W); k += S2DQ_LINE)                                                      \
                s2dq_avx2_fetch(s + k + S2DQ_AVX2_AHEAD);                                                     \
            s2dq_avx2_granule(dst + i * outer.dst + j * inner.dst, s, (W));                                   \
        }

/* The same for granules of 32 to 128 bytes that come from far. */
S2DQ_AVX2 static void s2dq_avx2_granules_far(uint8_t *dst, const uint8_t *src, s2dq_axis outer, s2dq_axis inner,
                                             int64_t width)
{
    if (width == 32) {
        S2DQ_AVX2_GRANULES_FAR(32)
    } else if (width == 64) {
        S2DQ_AVX2_GRANULES_FAR(64)
    } else {
        S2DQ_AVX2_GRANULES_FAR(width)
    }
}

/* One granule at `dst`, of whole vectors but in the middle of one: its first half is stored with the last one of the
 * granule `before` it in the result, unless that is NULL; its own last half waits. */
S2DQ_AVX2_INLINE void s2dq_avx2_halves(uint8_t *dst, const uint8_t *before, const uint8_t *src, int64_t width, bool far)
{
    if (far)
        for (int64_t k = 0; k < width; k += S2DQ_LINE) s2dq_avx2_fetch(src + k + S2DQ_AVX2_AHEAD);
    if (before) s2dq_avx2_store(dst - 16, s2dq_avx2_load_pair(before + width - 16, src), 32);
    else s2dq_avx2_store(dst, s2dq_avx2_load(src, 16), 16);
    for (int64_t k = 16; k < width - 16; k += 32) s2dq_avx2_store(dst + k, s2dq_avx2_load(src + k, 32), 32);
}

/* Granules of whole vectors that one of the loops makes dense in the result, which begins in the middle of a vector, as
 * NumPy's arrays do. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_halved(uint8_t *dst, const uint8_t *src, s2dq_axis outer, s2dq_axis inner,
                                           int64_t width, bool far)
{
    if (inner.dst == width) {
        const bool joined = outer.dst == width * inner.extent;
        const uint8_t *before = NULL;
        for (int64_t i = 0; i < outer.extent; i++) {
            uint8_t *d = dst + i * outer.dst;
            const uint8_t *s = src + i * outer.src;
            for (int64_t j = 0; j < inner.extent; j++, before = s, d += width, s += inner.src)
                s2dq_avx2_halves(d, before, s, width, far);
            if (joined && i < outer.extent - 1) continue;
            s2dq_avx2_store(d - 16, s2dq_avx2_load(before + width - 16, 16), 16);
            before = NULL;
        }
    } else {
        for (int64_t j = 0; j < inner.extent; j++)
            s2dq_avx2_halves(dst + j * inner.dst, NULL, src + j * inner.src, width, far);
        for (int64_t i = 1; i < outer.extent; i++) {
            uint8_t *d = dst + i * outer.dst;
            const uint8_t *s = src + i * outer.src;
            for (int64_t j = 0; j < inner.extent; j++, d += inner.dst, s += inner.src)
                s2dq_avx2_halves(d, s - outer.src, s, width, far);
        }
        uint8_t *end = dst + outer.extent * width - 16;
        const uint8_t *last = src + (outer.extent - 1) * outer.src + width - 16;
        for (int64_t j = 0; j < inner.extent; j++)
            s2dq_avx2_store(end + j * inner.dst, s2dq_avx2_load(last + j * inner.src, 16), 16);
    }
}

S2DQ_AVX2 static void s2dq_avx2_halved(uint8_t *dst, const uint8_t *src, s2dq_axis outer, s2dq_axis inner,
                                       int64_t width, bool far)
{
    switch (width) {
    case 32: s2dq_avx2_run_halved(dst, src, outer, inner, 32, far); return;
    case 64: s2dq_avx2_run_halved(dst, src, outer, inner, 64, far); return;
    default: s2dq_avx2_run_halved(dst, src, outer, inner, width, far); return;
    }
}

/* Dense granules of 9 to 32 bytes: whole vectors, whose ends the next granule overwrites. The last granule of each
 * inner loop is moved exactly where `every` says so, else those of the last inner loop are. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_dense(uint8_t *dst, const uint8_t *src, s2dq_axis outer, s2dq_axis inner,
                                          int64_t extent, int64_t width, bool every, int bytes)
{
    for (int64_t i = 0; i < outer.extent; i++) {
        uint8_t *d = dst + i * outer.dst;
        const uint8_t *s = src + i * outer.src;
        if (!every && i < outer.extent - 1) {
            S2DQ_UNROLL_4
            for (int64_t j = 0; j < extent; j++)
                s2dq_avx2_store(d + j * width, s2dq_avx2_load(s + j * inner.src, bytes), bytes);
            continue;
        }
        for (int64_t j = 0; j < inner.extent; j++, d += width, s += inner.src) {
            if (every && j < inner.extent - 1) {
                s2dq_avx2_store(d, s2dq_avx2_load(s, bytes), bytes);
            } else {
                const __m256i last = s2dq_avx2_load(s + width - bytes / 2, bytes / 2);
                s2dq_avx2_store(d, s2dq_avx2_load(s, bytes / 2), bytes / 2);
                s2dq_avx2_store(d + width - bytes / 2, last, bytes / 2);
            }
        }
    }
}

S2DQ_AVX2 static void s2dq_avx2_dense(uint8_t *dst, const uint8_t *src, s2dq_axis outer, s2dq_axis inner,
                                      int64_t width, bool every)
{
    const int64_t n = inner.extent;
    if (width <= 16) {
        if (n == 2) s2dq_avx2_run_dense(dst, src, outer, inner, 2, width, every, 16);
        else if (n == 3) s2dq_avx2_run_dense(dst, src, outer, inner, 3, width, every, 16);
        else if (n == 4) s2dq_avx2_run_dense(dst, src, outer, inner, 4, width, every, 16);
        else s2dq_avx2_run_dense(dst, src, outer, inner, n, width, every, 16);
    } else {
        s2dq_avx2_run_dense(dst, src, outer, inner, n, width, every, 32);
    }
}

/* Rows of `bytes` bytes, 32 or more, that repeat a pattern of 32. */
S2DQ_AVX2 static void s2dq_avx2_fill(uint8_t *dst, const uint8_t *pattern, int64_t bytes, s2dq_axis outer,
                                     s2dq_axis inner)
{
    const __m256i v = s2dq_avx2_load(pattern, 32);
    for (int64_t j = 0; j < outer.extent; j++, dst += outer.dst) {
        uint8_t *row = dst;
        for (int64_t r = 0; r < inner.extent; r++, row += inner.dst) {
            for (int64_t i = 0; i <= bytes - 32; i += 32) s2dq_avx2_store(row + i, v, 32);
            s2dq_avx2_store(row + bytes - 32, v, 32);
        }
    }
}

#define S2DQ_AVX2_LISTED 64 /* granules of which a table holds where they are */
#define S2DQ_AVX2_FEW 16    /* so many of two loops are soon done: a call, and turns that end before they are foreseen */

/* Where the granules of several short loops are, on both sides. */
typedef struct {
    int64_t count, from[S2DQ_AVX2_LISTED], to[S2DQ_AVX2_LISTED];
} s2dq_avx2_list;

#define S2DQ_AVX2_EACH(MOVE)                                                                                  \
    for (int64_t i = 0; i < rows.extent; i++, dst += rows.dst, src += rows.src)                               \
        for (int64_t k = 0; k < count; k++) {                                                                 \
            uint8_t *const d = dst + list->to[k];                                                             \
            const uint8_t *const s = src + list->from[k];                                                     \
            MOVE;                                                                                             \
        }

/* The granules of a list, of up to 16 bytes, in each of the rows. */
S2DQ_AVX2 static void s2dq_avx2_listed(uint8_t *dst, const uint8_t *src, const s2dq_avx2_list *list, s2dq_axis rows,
                                       int64_t width)
{
    const int64_t count = list->count;
    switch (width) {
    case 1: S2DQ_AVX2_EACH(s2dq_avx2_granule(d, s, 1)) return;
    case 2: S2DQ_AVX2_EACH(s2dq_avx2_granule(d, s, 2)) return;
    case 3: S2DQ_AVX2_EACH(s2dq_avx2_granule(d, s, 3)) return;
    case 4: S2DQ_AVX2_EACH(s2dq_avx2_granule(d, s, 4)) return;
    case 8: S2DQ_AVX2_EACH(s2dq_avx2_granule(d, s, 8)) return;
    case 16: S2DQ_AVX2_EACH(s2dq_avx2_granule(d, s, 16)) return;
    default: break;
    }
    if (width < 8) {
        S2DQ_AVX2_EACH(S2DQ_AVX2_ENDS(4))
    } else {
        S2DQ_AVX2_EACH(S2DQ_AVX2_ENDS(8))
    }
}

#endif
#endif
