/* Tile programs on AVX-512 VBMI: one runner per shape of a tile, its tables in registers over three loops. */
#ifndef S2DQ_AVX512_H
#define S2DQ_AVX512_H

#include "isa.h"
#include "tile.h"

#if defined(S2DQ_X86)

#include <immintrin.h>

#define S2DQ_512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi,bmi2")))
#define S2DQ_512_INLINE static inline __attribute__((always_inline)) S2DQ_512

/* One register from its pieces, read in full: what a mask leaves out is read too, and never looked at. */
S2DQ_512_INLINE __m512i s2dq_512_load(const uint8_t *src, const int64_t *at, int loads)
{
    if (loads == 1) return _mm512_loadu_si512(src + at[0]);
    if (loads == 2) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(src + at[0]));
        __m256i high = _mm256_loadu_si256((const __m256i *)(src + at[1]));
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    __m128i a = _mm_loadu_si128((const __m128i *)(src + at[0]));
    __m128i b = _mm_loadu_si128((const __m128i *)(src + at[1]));
    __m128i c = _mm_loadu_si128((const __m128i *)(src + at[2]));
    __m128i d = _mm_loadu_si128((const __m128i *)(src + at[3]));
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

S2DQ_512_INLINE void s2dq_512_store(uint8_t *dst, const int64_t *at, int stores, __m512i value)
{
    if (stores == 1) {
        _mm512_storeu_si512(dst + at[0], value);
    } else if (stores == 2) {
        _mm256_storeu_si256((__m256i *)(dst + at[0]), _mm512_castsi512_si256(value));
        _mm256_storeu_si256((__m256i *)(dst + at[1]), _mm512_extracti64x4_epi64(value, 1));
    } else {
        _mm_storeu_si128((__m128i *)(dst + at[0]), _mm512_castsi512_si128(value));
        _mm_storeu_si128((__m128i *)(dst + at[1]), _mm512_extracti32x4_epi32(value, 1));
        _mm_storeu_si128((__m128i *)(dst + at[2]), _mm512_extracti32x4_epi32(value, 2));
        _mm_storeu_si128((__m128i *)(dst + at[3]), _mm512_extracti32x4_epi32(value, 3));
    }
}

S2DQ_512_INLINE void s2dq_512_mask_store(uint8_t *dst, const int64_t *at, const uint64_t *mask, int stores,
                                         __m512i value)
{
    if (stores == 1) {
        _mm512_mask_storeu_epi8(dst + at[0], mask[0], value);
    } else if (stores == 2) {
        _mm256_mask_storeu_epi8(dst + at[0], (__mmask32)mask[0], _mm512_castsi512_si256(value));
        _mm256_mask_storeu_epi8(dst + at[1], (__mmask32)mask[1], _mm512_extracti64x4_epi64(value, 1));
    } else {
        _mm_mask_storeu_epi8(dst + at[0], (__mmask16)mask[0], _mm512_castsi512_si128(value));
        _mm_mask_storeu_epi8(dst + at[1], (__mmask16)mask[1], _mm512_extracti32x4_epi32(value, 1));
        _mm_mask_storeu_epi8(dst + at[2], (__mmask16)mask[2], _mm512_extracti32x4_epi32(value, 2));
        _mm_mask_storeu_epi8(dst + at[3], (__mmask16)mask[3], _mm512_extracti32x4_epi32(value, 3));
    }
}

/* (value & keep) | fill, the three inputs of the table below. */
#define S2DQ_512_FILL 0xEA

/* Output register k of a tile whose inputs are in registers. */
S2DQ_512_INLINE __m512i s2dq_512_output(const __m512i *in, __m512i low, __m512i high, __mmask64 upper, int inputs)
{
    if (inputs == 1) return _mm512_permutexvar_epi8(low, in[0]);
    __m512i value = _mm512_permutex2var_epi8(in[0], low, in[1]);
    if (inputs == 3) return _mm512_mask_permutexvar_epi8(value, upper, high, in[2]);
    if (inputs == 4) return _mm512_mask_mov_epi8(value, upper, _mm512_permutex2var_epi8(in[2], high, in[3]));
    return value;
}

/* All turns of the loops. The counts of registers and pieces are constants wherever this is inlined. */
S2DQ_512_INLINE void s2dq_512_run(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                  const s2dq_tile *tile, const s2dq_filling *filling, const s2dq_axis *loops,
                                  int inputs, int loads, int outputs, int stores, int masked)
{
    int64_t src_at[S2DQ_PIECES], dst_at[S2DQ_PIECES];
    uint64_t dst_mask[S2DQ_PIECES];
    __m512i low[S2DQ_REGISTERS], high[S2DQ_REGISTERS], keep[S2DQ_REGISTERS], fill[S2DQ_REGISTERS];
    __mmask64 upper[S2DQ_REGISTERS];
    for (int k = 0; k < inputs * loads; k++) src_at[k] = tile->src[k];
    for (int k = 0; k < outputs * stores; k++) dst_at[k] = tile->dst[k], dst_mask[k] = tile->dst_mask[k];
    for (int k = 0; k < outputs; k++) {
        low[k] = _mm512_loadu_si512(tile->low[k]);
        high[k] = _mm512_loadu_si512(tile->high[k]);
        upper[k] = tile->upper[k];
        keep[k] = _mm512_loadu_si512(filling->keep[k]);
        fill[k] = _mm512_loadu_si512(filling->fill[k]);
    }
    for (int64_t i = 0; i < loops[0].extent; i++) {
        const int64_t i_back = i == loops[0].extent - 1;
        const uint8_t *src_i = src + i * loops[0].src - i_back * loops[0].src_back;
        uint8_t *dst_i = dst + i * loops[0].dst - i_back * loops[0].dst_back;
        for (int64_t j = 0; j < loops[1].extent; j++) {
            const int64_t j_back = j == loops[1].extent - 1;
            const uint8_t *s = src_i + j * loops[1].src - j_back * loops[1].src_back;
            uint8_t *d = dst_i + j * loops[1].dst - j_back * loops[1].dst_back;
            for (int64_t left = loops[2].extent; left > 0; left--) {
                __m512i in[S2DQ_REGISTERS];
                if (left == 1) s -= loops[2].src_back, d -= loops[2].dst_back;
#pragma GCC unroll 4
                for (int k = 0; k < inputs; k++) in[k] = s2dq_512_load(s, src_at + k * loads, loads);
#pragma GCC unroll 4
                for (int k = 0; k < outputs; k++) {
                    __m512i value = s2dq_512_output(in, low[k], high[k], upper[k], inputs);
                    value = _mm512_ternarylogic_epi64(value, keep[k], fill[k], S2DQ_512_FILL);
                    if (masked)
                        s2dq_512_mask_store(d, dst_at + k * stores, dst_mask + k * stores, stores, value);
                    else
                        s2dq_512_store(d, dst_at + k * stores, stores, value);
                }
                s += loops[2].src;
                d += loops[2].dst;
            }
        }
    }
}

/* One tile of any shape that reads nothing but the bytes of its masks: for the ends of the source. */
S2DQ_512 static void s2dq_512_run_edge(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,
                                       const s2dq_filling *filling)
{
    uint8_t registers[S2DQ_REGISTERS * S2DQ_REGISTER_BYTES];
    const int in_width = S2DQ_REGISTER_BYTES / (int)tile->loads, out_width = S2DQ_REGISTER_BYTES / (int)tile->stores;
    __m512i in[S2DQ_REGISTERS];
    for (int k = 0; k < tile->inputs * tile->loads; k++)
        _mm512_mask_storeu_epi8(registers + k * in_width, ~0ULL >> (S2DQ_REGISTER_BYTES - in_width),
                                _mm512_maskz_loadu_epi8(tile->src_mask[k], src + tile->src[k]));
    for (int k = 0; k < S2DQ_REGISTERS; k++)
        in[k] = k < tile->inputs ? _mm512_loadu_si512(registers + k * S2DQ_REGISTER_BYTES) : _mm512_setzero_si512();
    for (int k = 0; k < tile->outputs; k++) {
        __m512i value = s2dq_512_output(in, _mm512_loadu_si512(tile->low[k]), _mm512_loadu_si512(tile->high[k]),
                                        tile->upper[k], S2DQ_REGISTERS);
        value = _mm512_ternarylogic_epi64(value, _mm512_loadu_si512(filling->keep[k]),
                                          _mm512_loadu_si512(filling->fill[k]), S2DQ_512_FILL);
        _mm512_storeu_si512(registers + k * S2DQ_REGISTER_BYTES, value);
    }
    for (int k = 0; k < tile->outputs * tile->stores; k++)
        _mm512_mask_storeu_epi8(dst + tile->dst[k], tile->dst_mask[k],
                                _mm512_maskz_loadu_epi8(tile->dst_mask[k], registers + k * out_width));
}

#define S2DQ_512_RUNNER_OF(I, L, O, S, M)                                                                       \
    S2DQ_512 static void s2dq_512_run_##I##L##O##S##M(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, \
                                                      const s2dq_filling *filling,               \
                                                      const s2dq_axis *loops)                                  \
    {                                                                                                          \
        s2dq_512_run(dst, src, tile, filling, loops, I, L, O, S, M);                                           \
    }
#define S2DQ_512_RUNNER(I, L, O, S) S2DQ_512_RUNNER_OF(I, L, O, S, 0) S2DQ_512_RUNNER_OF(I, L, O, S, 1)

#define S2DQ_512_EACH_STORE(M, I, L, O) M(I, L, O, 1) M(I, L, O, 2) M(I, L, O, 4)
#define S2DQ_512_EACH_OUTPUT(M, I, L) \
    S2DQ_512_EACH_STORE(M, I, L, 1)   \
    S2DQ_512_EACH_STORE(M, I, L, 2)   \
    S2DQ_512_EACH_STORE(M, I, L, 3)   \
    S2DQ_512_EACH_STORE(M, I, L, 4)
#define S2DQ_512_EACH_LOAD(M, I) S2DQ_512_EACH_OUTPUT(M, I, 1) S2DQ_512_EACH_OUTPUT(M, I, 2) S2DQ_512_EACH_OUTPUT(M, I, 4)
#define S2DQ_512_EACH(M) S2DQ_512_EACH_LOAD(M, 1) S2DQ_512_EACH_LOAD(M, 2) S2DQ_512_EACH_LOAD(M, 3) S2DQ_512_EACH_LOAD(M, 4)

S2DQ_512_EACH(S2DQ_512_RUNNER)

#define S2DQ_512_ENTRY(I, L, O, S) \
    [I - 1][L / 2][O - 1][S / 2] = {s2dq_512_run_##I##L##O##S##0, s2dq_512_run_##I##L##O##S##1},

static const s2dq_tile_runner s2dq_512_runners[4][3][4][3][2] = {S2DQ_512_EACH(S2DQ_512_ENTRY)};

static s2dq_tile_runner s2dq_512_runner(const s2dq_tile *tile)
{
    const uint64_t full = ~0ULL >> (S2DQ_REGISTER_BYTES - S2DQ_REGISTER_BYTES / tile->stores);
    int masked = 0;
    for (int k = 0; k < tile->outputs * tile->stores; k++) masked |= tile->dst_mask[k] != full;
    return s2dq_512_runners[tile->inputs - 1][tile->loads / 2][tile->outputs - 1][tile->stores / 2][masked];
}

static s2dq_tile_edge_runner s2dq_512_edge_runner(void) { return s2dq_512_run_edge; }

#else

static s2dq_tile_runner s2dq_512_runner(const s2dq_tile *tile)
{
    (void)tile;
    return NULL;
}

static s2dq_tile_edge_runner s2dq_512_edge_runner(void) { return NULL; }

#endif

#endif
