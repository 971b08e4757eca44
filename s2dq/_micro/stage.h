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

enum { S2DQ_STAGE_BLOCK = 512, S2DQ_STAGE_CHANNELS = 32 }; /* elements at a time; and channels of planes */

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
        if (!mean)                                                                                                \
            for (int64_t i = 0; i < n; i++) dst[i] = src[i] * rescale;                                            \
        else                                                                                                      \
            for (int64_t i = 0; i < n; i++) dst[i] = (src[i] * rescale - mean[i]) / std[i];                       \
    }

S2DQ_NORMALISE(portable, )
#if defined(S2DQ_X86)
S2DQ_NORMALISE(avx2, __attribute__((target("avx2"))))
S2DQ_NORMALISE(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx2,prefer-vector-width=512"))))
#endif

/* No `mean` where that of every element is 0, and its deviation 1. */
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

/* A block of elements one behind the other. */
typedef struct {
    const s2dq_stage *stage;
    const s2dq_converters *converters;
    int isa;
    bool plain; /* means of 0 and deviations of 1 change nothing */
    float mean[S2DQ_STAGE_BLOCK], std[S2DQ_STAGE_BLOCK];
    int32_t where[S2DQ_STAGE_BLOCK]; /* of the tables */
    float from[S2DQ_STAGE_BLOCK], numbers[S2DQ_STAGE_BLOCK], to[S2DQ_STAGE_BLOCK];
} s2dq_stage_block;

/* Constants of channels `first` to `first + n` of every one of the pixels. */
static void s2dq_stage_constants(s2dq_stage_block *block, int64_t first, int64_t n, int64_t pixels)
{
    const s2dq_stage *const stage = block->stage;
    block->plain = true;
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = stage->constants == 1 ? 0 : first + i;
        block->where[i] = (int32_t)(256 * c);
        if (stage->from == S2DQ_U8) continue;
        block->mean[i] = stage->mean[c], block->std[i] = stage->std[c];
        /* Of zeros, only what is subtracted as it is leaves them their sign. */
        block->plain = block->plain && stage->mean[c] == 0 && !signbit(stage->mean[c]) && stage->std[c] == 1;
    }
    for (int64_t have = n; have < n * pixels; have *= 2) {
        const size_t more = (size_t)s2dq_min(have, n * pixels - have) * 4;
        memcpy(block->where + have, block->where, more);
        if (stage->from == S2DQ_U8) continue;
        memcpy(block->mean + have, block->mean, more);
        memcpy(block->std + have, block->std, more);
    }
}

/* Pixels, or a part of their channels, from where they are. OUT: their elements one behind the other. */
static const uint8_t *s2dq_stage_gather(s2dq_stage_block *block, const uint8_t *src, int64_t size, int64_t pixels,
                                        int64_t pixel_step, int64_t channels, int64_t channel_step)
{
    uint8_t *const from = (uint8_t *)block->from;
    if ((channel_step == size || channels == 1) && (pixel_step == size * channels || pixels == 1)) {
        if ((uintptr_t)src % (uintptr_t)size == 0) return src;
        memcpy(from, src, (size_t)(pixels * channels * size));
    } else if (size == 4) {
        for (int64_t c = 0; c < channels; c++)
            for (int64_t w = 0; w < pixels; w++)
                memcpy(from + 4 * (w * channels + c), src + w * pixel_step + c * channel_step, 4);
    } else {
        for (int64_t c = 0; c < channels; c++)
            for (int64_t w = 0; w < pixels; w++) from[w * channels + c] = src[w * pixel_step + c * channel_step];
    }
    return from;
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

/* `n` elements, aligned as what they are. */
static void s2dq_stage_convert(s2dq_stage_block *block, uint8_t *dst, const uint8_t *from, int64_t n)
{
    const s2dq_stage *const stage = block->stage;
    const int64_t size = s2dq_size_of(stage->to);
    uint8_t *const to = (uintptr_t)dst % (uintptr_t)size ? (uint8_t *)block->to : dst;
    if (stage->from == S2DQ_U8) {
        s2dq_stage_look_up(to, from, stage->table, block->where, size, n);
    } else {
        float *const numbers = stage->to == S2DQ_F32 ? (float *)to : block->numbers;
        s2dq_normalise(block->isa, numbers, (const float *)from, n, stage->rescale, block->plain ? NULL : block->mean,
                       block->std);
        if (stage->to == S2DQ_F16) block->converters->narrow(to, numbers, n);
        else if (stage->to != S2DQ_F32)
            block->converters->from_float[stage->to][0](to, numbers, n, &stage->scale, &stage->zero);
    }
    if (to != dst) memcpy(dst, to, (size_t)(n * size));
}

/* Three loops - rows, pixels, channels - from frames to scratch. There, either channels lie one behind the other, and
 * pixels behind those, or pixels do. IN: `first`, the constants of the first channel. */
static void s2dq_stage_rows(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int64_t first,
                            const s2dq_stage *stage, const s2dq_converters *converters, int isa)
{
    s2dq_axis rows = axes[0], across = axes[1];
    const s2dq_axis channels = axes[2];
    const int64_t from_size = s2dq_size_of(stage->from), to_size = s2dq_size_of(stage->to);
    const bool planes = across.dst == to_size;
    /* Of frames in planes, a line of each is used up while it is near. */
    const int64_t most = across.extent > 1 && across.src == from_size ? S2DQ_STAGE_CHANNELS : S2DQ_STAGE_BLOCK;
    const int64_t n = planes ? 1 : s2dq_min(channels.extent, most);
    s2dq_environment before;
    s2dq_stage_block block;
    block.stage = stage, block.converters = converters, block.isa = isa;
    if (rows.src == across.src * across.extent && rows.dst == across.dst * across.extent)
        across.extent *= rows.extent, rows.extent = 1;
    const int64_t pixels = s2dq_min(across.extent, S2DQ_STAGE_BLOCK / n);
    s2dq_enter(&before);
    for (int64_t c = 0; c < channels.extent; c += n) {
        const int64_t some = s2dq_min(channels.extent - c, n);
        s2dq_stage_constants(&block, first + c, some, pixels);
        for (int64_t h = 0; h < rows.extent; h++) {
            for (int64_t w = 0; w < across.extent; w += pixels) {
                const int64_t wide = s2dq_min(across.extent - w, pixels);
                const uint8_t *from = src + h * rows.src + w * across.src + c * channels.src;
                uint8_t *const to = dst + h * rows.dst + w * across.dst + c * channels.dst;
                const bool apart = across.dst != some * to_size;
                from = s2dq_stage_gather(&block, from, from_size, wide, across.src, some, channels.src);
                s2dq_stage_convert(&block, apart ? (uint8_t *)block.to : to, from, wide * some);
                for (int64_t k = 0; apart && k < wide; k++)
                    memcpy(to + k * across.dst, (uint8_t *)block.to + k * some * to_size, (size_t)(some * to_size));
            }
        }
    }
    s2dq_leave(&before);
}

#endif
