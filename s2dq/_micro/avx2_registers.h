/* What the kernels for AVX2 are made of: loads and stores of 4 to 32 bytes, and registers whose elements change places. */
#ifndef S2DQ_AVX2_REGISTERS_H
#define S2DQ_AVX2_REGISTERS_H

#include "isa.h"
#include "portable.h"

#if defined(S2DQ_X86)

#include <immintrin.h>

#define S2DQ_AVX2 __attribute__((target("avx2"), noinline))
#define S2DQ_AVX2_INLINE static inline __attribute__((always_inline, target("avx2")))
#if defined(__clang__)
#define S2DQ_UNROLL _Pragma("clang loop unroll(full)")
#define S2DQ_UNROLL_2 _Pragma("clang loop unroll_count(2)")
#else
#define S2DQ_UNROLL _Pragma("GCC unroll 32") /* -O2 leaves arrays of registers in memory without it */
#define S2DQ_UNROLL_2 _Pragma("GCC unroll 2")
#endif

/* Keeps the compiler from loading a register again for its second use. */
#if defined(__GNUC__)
#define S2DQ_AVX2_LOADED(value) __asm__("" : "+x"(value))
#else
#define S2DQ_AVX2_LOADED(value) (void)0
#endif

#define S2DQ_AVX2_NEAR 4096  /* bytes between two granules that cannot have an unmapped page between them */
#define S2DQ_AVX2_AHEAD 1024 /* bytes that fetches run ahead of loads: the processor's stop with the page */

/* Asks for a line that will be read, or written. The address may be anywhere. */
S2DQ_AVX2_INLINE void s2dq_avx2_fetch(const uint8_t *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
S2DQ_AVX2_INLINE void s2dq_avx2_own(uint8_t *p) { __builtin_prefetch(p, 1, 3); }

/* ------------------------------------------------------------------------------------------------ registers */

/* 32, 16, 12, 8 or 4 bytes from `p`; the bytes above them are 0. `bytes` is a constant, as are `w`, `streams` below. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_load(const uint8_t *p, int bytes)
{
    int32_t word;
    if (bytes == 32) return _mm256_loadu_si256((const __m256i *)p);
    if (bytes == 16) return _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p));
    if (bytes == 8) return _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)p));
    if (bytes == 12) {
        memcpy(&word, p + 8, 4);
        return _mm256_castsi128_si256(_mm_insert_epi32(_mm_loadl_epi64((const __m128i *)p), word, 2));
    }
    memcpy(&word, p, 4);
    return _mm256_castsi128_si256(_mm_cvtsi32_si128(word));
}

S2DQ_AVX2_INLINE void s2dq_avx2_store(uint8_t *p, __m256i v, int bytes)
{
    const __m128i low = _mm256_castsi256_si128(v);
    int32_t word;
    if (bytes == 32) {
        _mm256_storeu_si256((__m256i *)p, v);
    } else if (bytes == 16) {
        _mm_storeu_si128((__m128i *)p, low);
    } else if (bytes == 4) {
        word = _mm_cvtsi128_si32(low);
        memcpy(p, &word, 4);
    } else {
        _mm_storel_epi64((__m128i *)p, low);
        if (bytes == 12) {
            word = _mm_extract_epi32(low, 2);
            memcpy(p + 8, &word, 4);
        }
    }
}

/* 16 bytes from each of two places, one per lane. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_load_pair(const uint8_t *low, const uint8_t *high)
{
    return _mm256_inserti128_si256(s2dq_avx2_load(low, 16), _mm_loadu_si128((const __m128i *)high), 1);
}

S2DQ_AVX2_INLINE __m256i s2dq_avx2_unpack_low(__m256i a, __m256i b, int w)
{
    return w == 1 ? _mm256_unpacklo_epi8(a, b) : w == 2 ? _mm256_unpacklo_epi16(a, b)
         : w == 4 ? _mm256_unpacklo_epi32(a, b) : _mm256_unpacklo_epi64(a, b);
}

S2DQ_AVX2_INLINE __m256i s2dq_avx2_unpack_high(__m256i a, __m256i b, int w)
{
    return w == 1 ? _mm256_unpackhi_epi8(a, b) : w == 2 ? _mm256_unpackhi_epi16(a, b)
         : w == 4 ? _mm256_unpackhi_epi32(a, b) : _mm256_unpackhi_epi64(a, b);
}

/* A byte shuffle of each lane: FORMULA(i) is the byte of the lane that goes to place i. */
#define S2DQ_AVX2_MASK(F)                                                                                        \
    _mm256_setr_epi8(F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11), F(12), F(13),      \
                     F(14), F(15), F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11),      \
                     F(12), F(13), F(14), F(15))

/* ------------------------------------------------------------------- interleaving, in each lane of 16 bytes apart */

/* Four registers of two elements of 8 bytes per lane: four streams to the order a0 b0, c0 d0, a1 b1, c1 d1, or back. */
S2DQ_AVX2_INLINE void s2dq_avx2_weave_8(__m256i *v, bool merge)
{
    const __m256i a = v[0], b = v[merge ? 1 : 2], c = v[merge ? 2 : 1], d = v[3];
    v[0] = _mm256_unpacklo_epi64(a, b);
    v[merge ? 2 : 1] = _mm256_unpackhi_epi64(a, b);
    v[merge ? 1 : 2] = _mm256_unpacklo_epi64(c, d);
    v[3] = _mm256_unpackhi_epi64(c, d);
}

/* S registers a b c .. to a0 b0 c0 .. a1 b1 c1 .., S a power of two: log2(S) perfect shuffles. */
S2DQ_AVX2_INLINE void s2dq_avx2_weave(__m256i *v, int streams, int w)
{
    __m256i t[16];
    if (streams == 4 && w == 8) {
        s2dq_avx2_weave_8(v, true);
        return;
    }
    S2DQ_UNROLL
    for (int stage = 1; stage < streams; stage *= 2) {
        S2DQ_UNROLL
        for (int i = 0; i < streams / 2; i++) {
            t[2 * i] = s2dq_avx2_unpack_low(v[i], v[i + streams / 2], w);
            t[2 * i + 1] = s2dq_avx2_unpack_high(v[i], v[i + streams / 2], w);
        }
        S2DQ_UNROLL
        for (int i = 0; i < streams; i++) v[i] = t[i];
    }
}

/* Sorts the elements of a lane by their index modulo S, a power of two. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_sort(__m256i v, int streams, int w)
{
#define S2DQ_SORT(i) (char)(((i) / w % (16 / (w * streams)) * streams + (i) / w / (16 / (w * streams))) * w + (i) % w)
    return _mm256_shuffle_epi8(v, S2DQ_AVX2_MASK(S2DQ_SORT));
#undef S2DQ_SORT
}

/* The inverse of s2dq_avx2_weave: sorted lanes are a square of chunks to transpose. Requires streams * w <= 16, or four
 * streams of 8 bytes. */
S2DQ_AVX2_INLINE void s2dq_avx2_unweave(__m256i *v, int streams, int w)
{
    if (streams == 4 && w == 8) {
        s2dq_avx2_weave_8(v, false);
        return;
    }
    if (streams * w < 16) {
        S2DQ_UNROLL
        for (int i = 0; i < streams; i++) v[i] = s2dq_avx2_sort(v[i], streams, w);
    }
    s2dq_avx2_weave(v, streams, 16 / streams);
}

/* Places of a lane that hold stream (k - j * 16 / w) mod 3 of three woven ones. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_third(int r, int w)
{
#define S2DQ_THIRD(i) (char)((i) / w % 3 == r ? -1 : 0)
    return S2DQ_AVX2_MASK(S2DQ_THIRD);
#undef S2DQ_THIRD
}

/* Element e of stream k of three belongs to place 3e + k; 3 is odd, so modulo the 16 / w places no two collide, and
 * one shuffle per stream and two blends per result do. 11 is the inverse of 3 modulo 16, 8, 4 and 2. */
S2DQ_AVX2_INLINE void s2dq_avx2_weave3(__m256i *a, __m256i *b, __m256i *c, int w)
{
    const int n = 16 / w;
#define S2DQ_PLACE(k, i) (char)((((i) / w - (k) + n) * 11) % n * w + (i) % w)
#define S2DQ_PLACE0(i) S2DQ_PLACE(0, i)
#define S2DQ_PLACE1(i) S2DQ_PLACE(1, i)
#define S2DQ_PLACE2(i) S2DQ_PLACE(2, i)
    const __m256i x = _mm256_shuffle_epi8(*a, S2DQ_AVX2_MASK(S2DQ_PLACE0));
    const __m256i y = _mm256_shuffle_epi8(*b, S2DQ_AVX2_MASK(S2DQ_PLACE1));
    const __m256i z = _mm256_shuffle_epi8(*c, S2DQ_AVX2_MASK(S2DQ_PLACE2));
#undef S2DQ_PLACE0
#undef S2DQ_PLACE1
#undef S2DQ_PLACE2
#undef S2DQ_PLACE
#define S2DQ_PICK(j)                                                                                    \
    _mm256_blendv_epi8(_mm256_blendv_epi8(x, y, s2dq_avx2_third((1 + 2 * (j) * n) % 3, w)), z,           \
                       s2dq_avx2_third((2 + 2 * (j) * n) % 3, w))
    *a = S2DQ_PICK(0);
    *b = S2DQ_PICK(1);
    *c = S2DQ_PICK(2);
#undef S2DQ_PICK
}

S2DQ_AVX2_INLINE void s2dq_avx2_unweave3(__m256i *a, __m256i *b, __m256i *c, int w)
{
    const int n = 16 / w;
    const __m256i x = *a, y = *b, z = *c;
    /* Register j has stream k in the places s with j * n + s = k modulo 3. */
#define S2DQ_PICK(k)                                                                                    \
    _mm256_blendv_epi8(_mm256_blendv_epi8(x, y, s2dq_avx2_third(((k) + 2 * n) % 3, w)), z,               \
                       s2dq_avx2_third(((k) + 4 * n) % 3, w))
#define S2DQ_ELEMENT(k, i) (char)((3 * ((i) / w) + (k)) % n * w + (i) % w)
#define S2DQ_ELEMENT0(i) S2DQ_ELEMENT(0, i)
#define S2DQ_ELEMENT1(i) S2DQ_ELEMENT(1, i)
#define S2DQ_ELEMENT2(i) S2DQ_ELEMENT(2, i)
    *a = _mm256_shuffle_epi8(S2DQ_PICK(0), S2DQ_AVX2_MASK(S2DQ_ELEMENT0));
    *b = _mm256_shuffle_epi8(S2DQ_PICK(1), S2DQ_AVX2_MASK(S2DQ_ELEMENT1));
    *c = _mm256_shuffle_epi8(S2DQ_PICK(2), S2DQ_AVX2_MASK(S2DQ_ELEMENT2));
#undef S2DQ_ELEMENT0
#undef S2DQ_ELEMENT1
#undef S2DQ_ELEMENT2
#undef S2DQ_ELEMENT
#undef S2DQ_PICK
}

/* Three thirds by threes, the same register of each, or back: nine streams are woven by threes, third by third, and
 * then what has been made of each. */
S2DQ_AVX2_INLINE void s2dq_avx2_weave9(__m256i *v)
{
    S2DQ_UNROLL
    for (int i = 0; i < 3; i++) s2dq_avx2_weave3(&v[i], &v[i + 3], &v[i + 6], 1);
    S2DQ_UNROLL
    for (int i = 0; i < 9; i += 3) s2dq_avx2_weave3(&v[i], &v[i + 1], &v[i + 2], 1);
}

S2DQ_AVX2_INLINE void s2dq_avx2_unweave9(__m256i *v)
{
    S2DQ_UNROLL
    for (int i = 0; i < 9; i += 3) s2dq_avx2_unweave3(&v[i], &v[i + 1], &v[i + 2], 1);
    S2DQ_UNROLL
    for (int i = 0; i < 3; i++) s2dq_avx2_unweave3(&v[i], &v[i + 3], &v[i + 6], 1);
}

/* Interleave: v[k] is stream k, becomes bytes 16k .. 16k + 15 of the result. Three times a power of two: the power
 * inside each third, then the thirds. */
S2DQ_AVX2_INLINE void s2dq_avx2_interleave(__m256i *v, int streams, int w)
{
    const int part = streams / 3;
    __m256i t[12];
    if (w == 16) return; /* a lane is one element */
    if (streams == 9) {
        s2dq_avx2_weave9(v);
        return;
    }
    if (streams % 3) {
        s2dq_avx2_weave(v, streams, w);
        return;
    }
    S2DQ_UNROLL
    for (int i = 0; i < 3; i++) s2dq_avx2_weave(v + i * part, part, w);
    S2DQ_UNROLL
    for (int i = 0; i < part; i++) s2dq_avx2_weave3(&v[i], &v[i + part], &v[i + 2 * part], w * part);
    S2DQ_UNROLL
    for (int i = 0; i < streams; i++) t[i] = v[i % 3 * part + i / 3];
    S2DQ_UNROLL
    for (int i = 0; i < streams; i++) v[i] = t[i];
}

/* The inverse of s2dq_avx2_interleave. */
S2DQ_AVX2_INLINE void s2dq_avx2_deinterleave(__m256i *v, int streams, int w)
{
    const int part = streams / 3;
    __m256i t[12];
    if (w == 16) return;
    if (streams == 9) {
        s2dq_avx2_unweave9(v);
        return;
    }
    if (streams % 3) {
        s2dq_avx2_unweave(v, streams, w);
        return;
    }
    S2DQ_UNROLL
    for (int i = 0; i < streams; i++) t[i % 3 * part + i / 3] = v[i];
    S2DQ_UNROLL
    for (int i = 0; i < part; i++) s2dq_avx2_unweave3(&t[i], &t[i + part], &t[i + 2 * part], w * part);
    S2DQ_UNROLL
    for (int i = 0; i < streams; i++) v[i] = t[i];
    S2DQ_UNROLL
    for (int i = 0; i < 3 && part > 1; i++) s2dq_avx2_unweave(v + i * part, part, w);
}

#endif
#endif
