/* Frames of another element width on their way through a scratch row: float32 to stored integers or to floats, and
 * bytes to floats by a table. What is left is a move.
 *
 *     normalised = (v * rescale - mean) / std          in float32, an operation after the other
 *     stored     = saturate(half_to_even(normalised / scale) + zero)
 */
#ifndef S2DQ_STAGE_H
#define S2DQ_STAGE_H

#include "axis.h"
#include "convert.h"

enum { S2DQ_STAGE_BLOCK = 512 }; /* elements at a time */

typedef struct {
    int from, to;      /* types, as convert.h counts them */
    int64_t constants; /* how many of `mean`, `std` and `table`: 1, or one for each channel */
    float rescale, scale;
    int32_t zero;
    const float *mean, *std;
    const uint8_t *table; /* of bytes: 256 elements of the result each */
} s2dq_stage;

#define S2DQ_NORMALISE(ISA, TARGET)                                                                               \
    TARGET static void s2dq_normalise_##ISA(float *S2DQ_RESTRICT dst, const float *S2DQ_RESTRICT src, int64_t n,  \
                                            float rescale, const float *S2DQ_RESTRICT mean,                       \
                                            const float *S2DQ_RESTRICT std)                                       \
    {                                                                                                             \
        for (int64_t i = 0; i < n; i++) dst[i] = (src[i] * rescale - mean[i]) / std[i];                           \
    }

S2DQ_NORMALISE(portable, )
#if defined(S2DQ_X86)
S2DQ_NORMALISE(avx2, __attribute__((target("avx2"))))
S2DQ_NORMALISE(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx2,prefer-vector-width=512"))))
#endif

static void s2dq_normalise(int isa, float *dst, const float *src, int64_t n, float rescale, const float *mean,
                           const float *std)
{
#if defined(S2DQ_X86)
    if (isa == S2DQ_ISA_AVX512VBMI) s2dq_normalise_avx512(dst, src, n, rescale, mean, std);
    else if (isa == S2DQ_ISA_AVX2) s2dq_normalise_avx2(dst, src, n, rescale, mean, std);
    else s2dq_normalise_portable(dst, src, n, rescale, mean, std);
#else
    (void)isa;
    s2dq_normalise_portable(dst, src, n, rescale, mean, std);
#endif
}

/* Constants of channels `first` to `first + n` of every pixel in a block. */
static void s2dq_stage_constants(float *mean, float *std, int32_t *where, const s2dq_stage *stage, int64_t first,
                                 int64_t n, int64_t pixels)
{
    for (int64_t i = 0; i < pixels * n; i++) {
        const int64_t c = stage->constants == 1 ? 0 : first + i % n;
        mean[i] = stage->mean[c], std[i] = stage->std[c], where[i] = (int32_t)(256 * c);
    }
}

/* A block of pixels, or a part of the channels of one, one element behind the other. */
static void s2dq_stage_gather(uint8_t *block, const uint8_t *src, int64_t size, int64_t pixels, int64_t pixel_step,
                              int64_t channels, int64_t channel_step)
{
    if (channel_step == size && pixel_step == size * channels) {
        memcpy(block, src, (size_t)(pixels * channels * size));
        return;
    }
    for (int64_t w = 0; w < pixels; w++)
        for (int64_t c = 0; c < channels; c++, block += size)
            memcpy(block, src + w * pixel_step + c * channel_step, (size_t)size);
}

/* Elements of a table for each byte, which starts at `table` plus what `where` says of its place. */
static void s2dq_stage_look_up(uint8_t *dst, const uint8_t *bytes, const uint8_t *table, const int32_t *where,
                               int64_t size, int64_t n)
{
    if (size == 4) {
        for (int64_t i = 0; i < n; i++) memcpy(dst + 4 * i, table + 4 * ((int64_t)where[i] + bytes[i]), 4);
    } else {
        for (int64_t i = 0; i < n; i++) memcpy(dst + 2 * i, table + 2 * ((int64_t)where[i] + bytes[i]), 2);
    }
}

/* Three loops - rows, pixels, channels - from frames to scratch, where pixels and channels lie one behind the other.
 * IN: `first`, the constants of the first channel. */
static void s2dq_stage_rows(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int64_t first,
                            const s2dq_stage *stage, const s2dq_converters *converters, int isa)
{
    const s2dq_axis rows = axes[0], across = axes[1], channels = axes[2];
    const int64_t from_size = s2dq_size_of(stage->from), to_size = s2dq_size_of(stage->to);
    const int64_t n = s2dq_min(channels.extent, S2DQ_STAGE_BLOCK);
    const int64_t pixels = S2DQ_STAGE_BLOCK / n;
    float block[S2DQ_STAGE_BLOCK], numbers[S2DQ_STAGE_BLOCK], mean[S2DQ_STAGE_BLOCK], std[S2DQ_STAGE_BLOCK];
    int32_t where[S2DQ_STAGE_BLOCK];
    s2dq_environment before;
    s2dq_enter(&before);
    for (int64_t c = 0; c < channels.extent; c += n) {
        const int64_t some = s2dq_min(channels.extent - c, n);
        s2dq_stage_constants(mean, std, where, stage, first + c, some, pixels);
        for (int64_t h = 0; h < rows.extent; h++) {
            for (int64_t w = 0; w < across.extent; w += pixels) {
                const int64_t wide = s2dq_min(across.extent - w, pixels), count = wide * some;
                const uint8_t *from = src + h * rows.src + w * across.src + c * channels.src;
                uint8_t *to = dst + h * rows.dst + w * across.dst + c * channels.dst;
                s2dq_stage_gather((uint8_t *)block, from, from_size, wide, across.src, some, channels.src);
                if (stage->from == S2DQ_U8) {
                    s2dq_stage_look_up(to, (const uint8_t *)block, stage->table, where, to_size, count);
                    continue;
                }
                s2dq_normalise(isa, numbers, block, count, stage->rescale, mean, std);
                if (stage->to == S2DQ_F32) memcpy(block, numbers, (size_t)count * 4);
                else if (stage->to == S2DQ_F16) converters->narrow(block, numbers, count);
                else converters->from_float[stage->to][0](block, numbers, count, &stage->scale, &stage->zero);
                memcpy(to, block, (size_t)(count * to_size));
            }
        }
    }
    s2dq_leave(&before);
}

#endif
