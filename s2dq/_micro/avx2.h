/* Kernels for AVX2. */
#ifndef S2DQ_AVX2_H
#define S2DQ_AVX2_H

#include "isa.h"
#include "portable.h"

static void s2dq_avx2_copy(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    s2dq_copy(dst, src, axes, count, width);
}

#endif
