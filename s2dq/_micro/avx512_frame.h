/* Pictures within frames of fill values on AVX-512 VBMI, as space-to-batch makes them of padding. A result is written
 * from one end to the other; its rows and the paddings beside them would be boxes of their own, each a pass over it.
 */
#ifndef S2DQ_AVX512_FRAME_H
#define S2DQ_AVX512_FRAME_H

#include "avx512.h"

#if defined(S2DQ_X86)

S2DQ_512_INLINE uint8_t *s2dq_512_frame_fill(uint8_t *dst, int64_t size, __m512i pattern)
{
    int64_t k = 0;
    for (; k + S2DQ_REGISTER_BYTES <= size; k += S2DQ_REGISTER_BYTES) _mm512_storeu_si512(dst + k, pattern);
    if (k < size) _mm512_mask_storeu_epi8(dst + k, UINT64_MAX >> (S2DQ_REGISTER_BYTES - (size - k)), pattern);
    return dst + size;
}

/* A granule of at least one register, the last one overlapping. */
S2DQ_512_INLINE void s2dq_512_frame_copy(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src, int64_t width)
{
    int64_t k = 0;
    for (; k + S2DQ_REGISTER_BYTES <= width; k += S2DQ_REGISTER_BYTES)
        _mm512_storeu_si512(dst + k, _mm512_loadu_si512(src + k));
    if (k < width) {
        k = width - S2DQ_REGISTER_BYTES;
        _mm512_storeu_si512(dst + k, _mm512_loadu_si512(src + k));
    }
}

S2DQ_512 static void s2dq_512_frame_rows(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count,
                                         int64_t width, const s2dq_frame *frame, __m512i pattern)
{
    if (count > 2) {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_512_frame_rows(dst + i * axes->dst, src + i * axes->src, axes + 1, count - 1, width, frame, pattern);
        return;
    }
    dst = s2dq_512_frame_fill(dst, frame->lead, pattern);
    for (int64_t i = 0; i < axes[0].extent; i++) {
        if (i) dst = s2dq_512_frame_fill(dst, frame->gap, pattern);
        for (int64_t j = 0; j < axes[1].extent; j++, dst += width)
            s2dq_512_frame_copy(dst, src + i * axes[0].src + j * axes[1].src, width);
    }
    s2dq_512_frame_fill(dst, frame->tail, pattern);
}

/* IN: axes, the last two those of rows and of granules, between which there is nothing but the frame; fill, its element.
 * OUT: dst, the pictures and their frames.
 * Requires: as in portable.h; granules of a register at least; element is 1, 2, 4 .. 64, and divides all sizes. */
S2DQ_512 static void s2dq_512_copy_framed(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count,
                                          int64_t width, const s2dq_frame *frame, const uint8_t *fill, int64_t element)
{
    uint8_t pattern[S2DQ_REGISTER_BYTES];
    memcpy(pattern, fill, (size_t)element);
    for (int64_t k = element; k < S2DQ_REGISTER_BYTES; k *= 2) memcpy(pattern + k, pattern, (size_t)k);
    s2dq_512_frame_rows(dst, src, axes, count, width, frame, _mm512_loadu_si512(pattern));
}

#endif

#endif
