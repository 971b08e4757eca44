/* Kernels for AVX2: s2dq_avx2_copy moves the granules of a box like s2dq_copy in portable.h.
 *
 * A call looks at the steps of its loops, takes the first of these that suits them, and runs the other loops around it:
 *
 * fill        every source step is 0: one granule repeated
 * merge       streams of granules of 1, 2, 4, 8, 16 bytes into one, by unpacks: 2, 3, 4, 6, 8, 12, 16 of them
 * split       one stream into so many, by byte shuffles and unpacks
 * blocks      the same of four streams of 12-byte granules, by word shuffles
 * runs        runs of RGB pixels to words of one channel, or back
 * pattern     any bytes that repeat in the result: vectors put together from windows of the source
 * transpose   more streams: 16 or 32 rows by 16 bytes through an unpack network, through a scratch where lines collide
 * scattered   the same where several loops make the rows or the columns
 * halfway     two of these after each other, through a scratch
 * listed      small granules in short loops, from a table of where they are
 * halves      granules of whole vectors that a result in the middle of one has side by side: halves of two at once
 * granules    all else: load and store, one granule after the other
 *
 * Vectors run past the end of a row only where the bytes behind it belong to the box and are written later by the same
 * call; otherwise the last vector of a row overlaps the one before. Reads run past a granule only where another one of
 * the box, less than a page away (S2DQ_AVX2_NEAR), ends no earlier: no page is touched that holds none.
 */
#ifndef S2DQ_AVX2_H
#define S2DQ_AVX2_H

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

#define S2DQ_AVX2_ALIGNED 128 /* bytes of a granule beyond which it is stored at whole vectors' addresses */
#define S2DQ_AVX2_RUN 2048   /* bytes of a granule from which its loop is worth a call */
#define S2DQ_AVX2_LONG 16384 /* and from which memcpy knows better */
#define S2DQ_AVX2_NEAR 4096 /* bytes between two granules that cannot have an unmapped page between them */

#define S2DQ_AVX2_FAR (1 << 19) /* a call that moves as much as this finds its arrays outside of the near caches */
#define S2DQ_AVX2_AHEAD 1024    /* bytes that its fetches run ahead of its loads: the processor's stop with the page */

/* The same for results, ahead of the stores: one that misses the first cache holds up all behind it. */
#define S2DQ_AVX2_SPLIT_AHEAD 256 /* of each stream */
#define S2DQ_AVX2_WORDS_AHEAD 512 /* of each stream of words that runs of pixels are split to */
#define S2DQ_AVX2_MERGE_AHEAD 512

/* Asks for a line that will be read, or written. The address may be anywhere. */
S2DQ_AVX2_INLINE void s2dq_avx2_fetch(const uint8_t *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
S2DQ_AVX2_INLINE void s2dq_avx2_own(uint8_t *p) { __builtin_prefetch(p, 1, 3); }

/* How far ahead of a row that far arrays are read: at the same place of the next one, where that is not too near. */
static inline int64_t s2dq_avx2_ahead(s2dq_axis rows)
{
    const int64_t step = s2dq_magnitude(rows.src);
    return rows.extent > 1 && step >= 256 && step <= 16384 ? rows.src : S2DQ_AVX2_AHEAD;
}

/* Bytes that the loops of a box move. */
static inline int64_t s2dq_avx2_bytes(const s2dq_box *box)
{
    int64_t bytes = box->width;
    for (int a = 0; a < box->count; a++) bytes *= box->axes[a].extent;
    return bytes;
}

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

/* ------------------------------------------------------------------------------------------ merge and split */

#define S2DQ_AVX2_EXACT 2 /* in place of an axis: one step takes a whole row, and no more */

/* Streams of `bytes` bytes in each of rows[1].extent times rows[0].extent rows; stream k starts at offset[k]. A row
 * other than the last of rows[over] may run past its end, where `over` is 0 or 1. */
typedef struct {
    int64_t offset[16];
    int64_t bytes;
    s2dq_axis rows[2];
    int over;
} s2dq_avx2_streams;

/* `bytes` of each stream, woven. */
S2DQ_AVX2_INLINE void s2dq_avx2_merge_step(uint8_t *dst, const uint8_t *src, const int64_t *offset, int streams,
                                           int w, int bytes)
{
    __m256i v[16];
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++) {
        v[k] = s2dq_avx2_load(src + offset[k], bytes);
        if (bytes == 32 && streams <= 8) S2DQ_AVX2_LOADED(v[k]);
    }
    s2dq_avx2_interleave(v, streams, w);
    if (bytes < 32) {
        S2DQ_UNROLL
        for (int k = 0; 16 * k < streams * bytes; k++)
            s2dq_avx2_store(dst + 16 * k, v[k], (int)s2dq_min(streams * bytes - 16 * k, 16));
        return;
    }
    S2DQ_UNROLL
    for (int k = 0; k < streams * 32; k += S2DQ_LINE) s2dq_avx2_fetch(dst + k + S2DQ_AVX2_MERGE_AHEAD);
    /* The low lanes are the first half of the result, the high lanes the second; of an odd number the last of the first
     * half shares a vector with the first of the second. Stores one behind the other are quicker. */
    const int odd = streams % 2;
    S2DQ_UNROLL
    for (int k = 0; k < streams - odd; k += 2)
        s2dq_avx2_store(dst + 16 * k, _mm256_permute2x128_si256(v[k], v[k + 1], 0x20), 32);
    if (odd) s2dq_avx2_store(dst + 16 * (streams - 1), _mm256_blend_epi32(v[streams - 1], v[0], 0xF0), 32);
    S2DQ_UNROLL
    for (int k = odd; k < streams; k += 2)
        s2dq_avx2_store(dst + 16 * (k + streams), _mm256_permute2x128_si256(v[k], v[k + 1], 0x31), 32);
}

/* What `bytes` of each of so many woven streams are in, for s2dq_avx2_deinterleave: of 32 the low lanes are the first
 * half, the high lanes the second. */
S2DQ_AVX2_INLINE void s2dq_avx2_take(__m256i *v, const uint8_t *src, int streams, int bytes)
{
    if (bytes < 32) {
        S2DQ_UNROLL
        for (int k = 0; k < streams; k++) {
            const int left = streams * bytes - 16 * k;
            v[k] = left > 0 ? s2dq_avx2_load(src + 16 * k, (int)s2dq_min(left, 16)) : _mm256_setzero_si256();
        }
    } else if (streams % 2) {
        __m256i t[9];
        S2DQ_UNROLL
        for (int k = 0; k < streams; k++) t[k] = s2dq_avx2_load(src + 32 * k, 32);
        S2DQ_UNROLL
        for (int k = 0; k < streams; k++)
            v[k] = k % 2 ? _mm256_permute2x128_si256(t[k / 2], t[(k + streams) / 2], 0x21)
                         : _mm256_blend_epi32(t[k / 2], t[(k + streams) / 2], 0xF0);
    } else {
        S2DQ_UNROLL
        for (int k = 0; k < streams; k += 2) {
            __m256i a = s2dq_avx2_load(src + 16 * k, 32), b = s2dq_avx2_load(src + 16 * (k + streams), 32);
            S2DQ_AVX2_LOADED(a);
            S2DQ_AVX2_LOADED(b);
            v[k] = _mm256_permute2x128_si256(a, b, 0x20);
            v[k + 1] = _mm256_permute2x128_si256(a, b, 0x31);
        }
    }
}

S2DQ_AVX2_INLINE void s2dq_avx2_split_step(uint8_t *dst, const uint8_t *src, const int64_t *offset, int streams,
                                           int w, int bytes)
{
    __m256i v[16];
    s2dq_avx2_take(v, src, streams, bytes);
    s2dq_avx2_deinterleave(v, streams, w);
    /* Backwards: streams that nobody wants have the place of the first one, which comes last. */
    S2DQ_UNROLL
    for (int k = streams - 1; k >= 0; k--) {
        s2dq_avx2_fetch(dst + offset[k] + S2DQ_AVX2_SPLIT_AHEAD);
        s2dq_avx2_store(dst + offset[k], v[k], bytes);
    }
}

/* 16 bytes of each of three streams, of two rows at once: one in each lane. `next` is from a row of the streams to the
 * other one; those of the woven side follow each other. */
S2DQ_AVX2_INLINE void s2dq_avx2_pair_step(uint8_t *dst, const uint8_t *src, const int64_t *offset, int64_t next,
                                          bool merge, int w)
{
    __m256i v[3];
    if (merge) {
        S2DQ_UNROLL
        for (int k = 0; k < 3; k++) v[k] = s2dq_avx2_load_pair(src + offset[k], src + offset[k] + next);
        s2dq_avx2_interleave(v, 3, w);
        s2dq_avx2_store(dst, _mm256_permute2x128_si256(v[0], v[1], 0x20), 32);
        s2dq_avx2_store(dst + 32, _mm256_blend_epi32(v[2], v[0], 0xF0), 32);
        s2dq_avx2_store(dst + 64, _mm256_permute2x128_si256(v[1], v[2], 0x31), 32);
        return;
    }
    const __m256i a = s2dq_avx2_load(src, 32), b = s2dq_avx2_load(src + 32, 32), c = s2dq_avx2_load(src + 64, 32);
    v[0] = _mm256_blend_epi32(a, b, 0xF0);
    v[1] = _mm256_permute2x128_si256(a, c, 0x21);
    v[2] = _mm256_blend_epi32(b, c, 0xF0);
    s2dq_avx2_deinterleave(v, 3, w);
    S2DQ_UNROLL
    for (int k = 2; k >= 0; k--) {
        s2dq_avx2_store(dst + offset[k], v[k], 16);
        _mm_storeu_si128((__m128i *)(dst + offset[k] + next), _mm256_extracti128_si256(v[k], 1));
    }
}

typedef void (*s2dq_avx2_stepper)(uint8_t *, const uint8_t *, const int64_t *, int64_t);

/* Bytes i .. i + bytes of every stream. */
S2DQ_AVX2_INLINE void s2dq_avx2_step(uint8_t *dst, const uint8_t *src, const int64_t *offset, int64_t i, bool merge,
                                     int streams, int w, int bytes)
{
    if (merge)
        s2dq_avx2_merge_step(dst + i * streams, src + i, offset, streams, w, bytes);
    else
        s2dq_avx2_split_step(dst + i, src + i * streams, offset, streams, w, bytes);
}

/* Whether rows that may run past their end take one step each. */
static inline bool s2dq_avx2_is_short(const s2dq_avx2_streams *job, int streams)
{
    return streams != 3 && job->bytes <= 32 && job->over >= 0;
}

/* Those rows. By itself, for what a longer function keeps on the stack gets in the way of stores at the same place in a
 * page. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_short(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job,
                                          s2dq_avx2_stepper step, int streams)
{
    const s2dq_axis inner = job->rows[0], outer = job->rows[1];
    const int64_t turns = outer.extent - (job->over == 1), rows = inner.extent - (job->over == 0);
    int64_t offset[16];
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++) offset[k] = job->offset[k];
    if (rows == 2) {
        for (int64_t r = turns; r > 0; r--, dst += outer.dst, src += outer.src) {
            step(dst, src, offset, 0);
            step(dst + inner.dst, src + inner.src, offset, 0);
        }
        return;
    }
    for (int64_t r = turns; r > 0; r--, dst += outer.dst, src += outer.src) {
        uint8_t *d = dst;
        const uint8_t *s = src;
        for (int64_t q = rows; q > 0; q--, d += inner.dst, s += inner.src) step(d, s, offset, 0);
    }
}

/* All rows, or those that s2dq_avx2_run_short leaves. Requires job->bytes >= 4, and >= w. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_streams(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job,
                                            s2dq_avx2_stepper by32, s2dq_avx2_stepper by16, s2dq_avx2_stepper by12,
                                            s2dq_avx2_stepper by8, s2dq_avx2_stepper by4, bool merge, int streams,
                                            int w)
{
    const int64_t n = job->bytes;
    const s2dq_axis inner = job->rows[0], outer = job->rows[1];
    const int axis = job->over;
    int64_t offset[16]; /* a copy: what is stored to dst cannot change it, so it stays in registers */
    S2DQ_UNROLL
    for (int k = 0; k < streams; k++) offset[k] = job->offset[k];
    const int done = s2dq_avx2_is_short(job, streams);
    const int64_t first = done && axis == 1 ? outer.extent - 1 : 0;
    dst += first * outer.dst;
    src += first * outer.src;
    for (int64_t r = first; r < outer.extent; r++, dst += outer.dst, src += outer.src) {
        const int64_t free = axis == 1 ? (r < outer.extent - 1 ? inner.extent : 0) : axis == 0 ? inner.extent - 1 : 0;
        int64_t q = done ? free : 0;
        uint8_t *d = dst + q * inner.dst;
        const uint8_t *s = src + q * inner.src;
        if (streams == 3 && n == 16 && (merge ? inner.dst : inner.src) == 48) {
            for (; q < inner.extent - 1; q += 2, d += 2 * inner.dst, s += 2 * inner.src)
                s2dq_avx2_pair_step(d, s, offset, merge ? inner.src : inner.dst, merge, w);
        }
        if (n <= 32) { /* short rows: one step each */
            for (; q < free; q++, d += inner.dst, s += inner.src) {
                if (n > 16)
                    by32(d, s, offset, 0);
                else if (n > 8)
                    by16(d, s, offset, 0);
                else
                    by8(d, s, offset, 0);
            }
        }
        for (; q < inner.extent; q++, d += inner.dst, s += inner.src) {
            const int over = q < free;
            int64_t i = 0;
            if (n >= 32) {
                for (; streams == 2 && i <= n - 64; i += 64) { /* few stores a turn: two turns at once */
                    by32(d, s, offset, i);
                    by32(d, s, offset, i + 32);
                }
                for (; i <= n - 32; i += 32) by32(d, s, offset, i);
                if (i < n) by32(d, s, offset, over ? i : n - 32);
            } else if (n >= 16) {
                for (int last = 0; last < 2; last++) by16(d, s, offset, last ? n - 16 : 0);
            } else if (streams > 8 && n == 12) { /* no step twice */
                by12(d, s, offset, 0);
            } else if (n >= 8) {
                for (int last = 0; last < 2; last++) by8(d, s, offset, last ? n - 8 : 0);
            } else {
                for (int last = 0; last < 2; last++) by4(d, s, offset, last ? n - 4 : 0);
            }
        }
    }
}

/* The steps of many streams are long: one copy of each, which is called. */
#define S2DQ_AVX2_STEP(LINKAGE, NAME, MERGE, STREAMS, W, BYTES)                                                   \
    LINKAGE void NAME(uint8_t *dst, const uint8_t *src, const int64_t *offset, int64_t i)                         \
    {                                                                                                             \
        s2dq_avx2_step(dst, src, offset, i, MERGE, STREAMS, W, (BYTES) < (W) ? W : BYTES);                        \
    }
#define S2DQ_AVX2_STREAMS(LINKAGE, NAME, MERGE, STREAMS, W)                                                       \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by32, MERGE, STREAMS, W, 32)                                                   \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by16, MERGE, STREAMS, W, 16)                                                   \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by12, MERGE, STREAMS, W, 12)                                                   \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by8, MERGE, STREAMS, W, 8)                                                     \
    S2DQ_AVX2_STEP(LINKAGE, NAME##_by4, MERGE, STREAMS, W, 4)                                                     \
    S2DQ_AVX2 static void NAME##_short32(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job)          \
    {                                                                                                             \
        s2dq_avx2_run_short(dst, src, job, NAME##_by32, STREAMS);                                                 \
    }                                                                                                             \
    S2DQ_AVX2 static void NAME##_short16(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job)          \
    {                                                                                                             \
        s2dq_avx2_run_short(dst, src, job, NAME##_by16, STREAMS);                                                 \
    }                                                                                                             \
    S2DQ_AVX2 static void NAME##_short8(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job)           \
    {                                                                                                             \
        s2dq_avx2_run_short(dst, src, job, NAME##_by8, STREAMS);                                                  \
    }                                                                                                             \
    S2DQ_AVX2 static void NAME(uint8_t *dst, const uint8_t *src, const s2dq_avx2_streams *job)                    \
    {                                                                                                             \
        if (s2dq_avx2_is_short(job, STREAMS)) {                                                                   \
            if (job->bytes > 16)                                                                                  \
                NAME##_short32(dst, src, job);                                                                    \
            else if (job->bytes > 8)                                                                              \
                NAME##_short16(dst, src, job);                                                                    \
            else                                                                                                  \
                NAME##_short8(dst, src, job);                                                                     \
        }                                                                                                         \
        if (job->over == S2DQ_AVX2_EXACT) return;                                                                 \
        s2dq_avx2_run_streams(dst, src, job, NAME##_by32, NAME##_by16, NAME##_by12, NAME##_by8, NAME##_by4, MERGE, \
                              STREAMS, W);                                                                        \
    }
#define S2DQ_AVX2_BOTH(LINKAGE, STREAMS, W)                                               \
    S2DQ_AVX2_STREAMS(LINKAGE, s2dq_avx2_merge_##STREAMS##_x##W, 1, STREAMS, W)           \
    S2DQ_AVX2_STREAMS(LINKAGE, s2dq_avx2_split_##STREAMS##_x##W, 0, STREAMS, W)

S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 4)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 8)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 2, 16)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 3, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 3, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 3, 4)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 4)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 8)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 4, 16)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 6, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 6, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2_INLINE, 8, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 8, 2)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 9, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 12, 1)
S2DQ_AVX2_BOTH(S2DQ_AVX2 static, 16, 1)

typedef void (*s2dq_avx2_streams_kernel)(uint8_t *, const uint8_t *, const s2dq_avx2_streams *);

/* The kernel for so many streams of granules of width w, or NULL. */
static s2dq_avx2_streams_kernel s2dq_avx2_streams_for(bool merge, int64_t streams, int64_t w)
{
#define S2DQ_CASE(S, W) \
    case 256 * S + W: return merge ? s2dq_avx2_merge_##S##_x##W : s2dq_avx2_split_##S##_x##W;
    if (streams > 16 || w > 16) return NULL;
    switch (256 * streams + w) {
    S2DQ_CASE(2, 1) S2DQ_CASE(2, 2) S2DQ_CASE(2, 4) S2DQ_CASE(2, 8) S2DQ_CASE(2, 16)
    S2DQ_CASE(3, 1) S2DQ_CASE(3, 2) S2DQ_CASE(3, 4)
    S2DQ_CASE(4, 1) S2DQ_CASE(4, 2) S2DQ_CASE(4, 4) S2DQ_CASE(4, 8) S2DQ_CASE(4, 16)
    S2DQ_CASE(6, 1) S2DQ_CASE(6, 2) S2DQ_CASE(8, 1) S2DQ_CASE(8, 2)
    S2DQ_CASE(9, 1) S2DQ_CASE(12, 1) S2DQ_CASE(16, 1)
    default: return NULL;
    }
#undef S2DQ_CASE
}

/* ------------------------------------------------------------------------------------------- blocks of 4 x 12 bytes */

/* Four streams of 12-byte granules, as in blocks of 4 x 4 RGB pixels: 24 bytes of each stream are three words out of
 * every four of a vector, none in the place of another's, so one word shuffle per stream and blends do. Two blocks of
 * 48 bytes are `pitch` apart. `back` makes the loads of a merge end with the last granule, `last` the stores of a
 * split. */
enum { S2DQ_NO = 0 /* word in particular: no blend takes it, and no store that counts */ };
#define S2DQ_WORDS(V, ...)                                                                                             \
    _mm256_permutevar8x32_epi32(V, _mm256_add_epi32(_mm256_setr_epi32(__VA_ARGS__), _mm256_set1_epi32(back / 4)))

S2DQ_AVX2_INLINE void s2dq_avx2_merge_12(uint8_t *dst, const uint8_t *src, int64_t stream, int64_t pitch, int back)
{
    const __m256i a = S2DQ_WORDS(s2dq_avx2_load(src - back, 32), 0, 1, 2, S2DQ_NO, 3, 4, 5, S2DQ_NO);
    const __m256i b = S2DQ_WORDS(s2dq_avx2_load(src + stream - back, 32), 4, 5, S2DQ_NO, 0, 1, 2, S2DQ_NO, 3);
    const __m256i c = S2DQ_WORDS(s2dq_avx2_load(src + 2 * stream - back, 32), 2, S2DQ_NO, 3, 4, 5, S2DQ_NO, 0, 1);
    const __m256i d = S2DQ_WORDS(s2dq_avx2_load(src + 3 * stream - back, 32), S2DQ_NO, 0, 1, 2, S2DQ_NO, 3, 4, 5);
    const __m256i x = _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x38), c, 0xC0);
    const __m256i y = _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x80), _mm256_blend_epi32(c, d, 0x0E), 0x0F);
    const __m256i z = _mm256_blend_epi32(_mm256_blend_epi32(c, d, 0xE0), b, 0x03);
    s2dq_avx2_store(dst, x, 32);
    if (pitch == 48) {
        s2dq_avx2_store(dst + 32, y, 32);
    } else {
        s2dq_avx2_store(dst + 32, y, 16);
        _mm_storeu_si128((__m128i *)(dst + pitch), _mm256_extracti128_si256(y, 1));
    }
    s2dq_avx2_store(dst + pitch + 16, z, 32);
}

S2DQ_AVX2_INLINE void s2dq_avx2_store_24(uint8_t *dst, __m256i v, bool last)
{
    s2dq_avx2_store(dst, v, last ? 16 : 32);
    if (last) _mm_storel_epi64((__m128i *)(dst + 16), _mm256_extracti128_si256(v, 1));
}

S2DQ_AVX2_INLINE void s2dq_avx2_split_12(uint8_t *dst, const uint8_t *src, int64_t stream, int64_t pitch, bool last)
{
    const int back = 0;
    const __m256i x = s2dq_avx2_load(src, 32), z = s2dq_avx2_load(src + pitch + 16, 32);
    const __m256i y = pitch == 48 ? s2dq_avx2_load(src + 32, 32) : s2dq_avx2_load_pair(src + 32, src + pitch);
    const __m256i a = _mm256_blend_epi32(x, y, 0x70), d = _mm256_blend_epi32(y, z, 0xE0);
    const __m256i b = _mm256_blend_epi32(_mm256_blend_epi32(x, y, 0x80), z, 0x03);
    const __m256i c = _mm256_blend_epi32(_mm256_blend_epi32(x, y, 0x01), z, 0x1C);
    S2DQ_UNROLL
    for (int k = 0; k < 4; k++) s2dq_avx2_fetch(dst + k * stream + S2DQ_AVX2_SPLIT_AHEAD);
    s2dq_avx2_store_24(dst, S2DQ_WORDS(a, 0, 1, 2, 4, 5, 6, S2DQ_NO, S2DQ_NO), last);
    s2dq_avx2_store_24(dst + stream, S2DQ_WORDS(b, 3, 4, 5, 7, 0, 1, S2DQ_NO, S2DQ_NO), last);
    s2dq_avx2_store_24(dst + 2 * stream, S2DQ_WORDS(c, 6, 7, 0, 2, 3, 4, S2DQ_NO, S2DQ_NO), last);
    s2dq_avx2_store_24(dst + 3 * stream, S2DQ_WORDS(d, 1, 2, 3, 5, 6, 7, S2DQ_NO, S2DQ_NO), last);
}

#undef S2DQ_WORDS

/* `n` blocks in each row, at least three: the last two overlap those before where n is odd. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_12(uint8_t *dst, const uint8_t *src, int64_t stream, int64_t pitch, int64_t n,
                                       s2dq_axis rows, bool merge)
{
    for (int64_t r = 0; r < rows.extent; r++, dst += rows.dst, src += rows.src) {
        for (int64_t i = 0; i <= n - 3; i += 2) {
            if (merge) s2dq_avx2_merge_12(dst + i * pitch, src + 12 * i, stream, pitch, 0);
            else s2dq_avx2_split_12(dst + 12 * i, src + i * pitch, stream, pitch, false);
        }
        if (merge) s2dq_avx2_merge_12(dst + (n - 2) * pitch, src + 12 * (n - 2), stream, pitch, 8);
        else s2dq_avx2_split_12(dst + 12 * (n - 2), src + (n - 2) * pitch, stream, pitch, true);
    }
}

S2DQ_AVX2 static void s2dq_avx2_blocks_12(uint8_t *dst, const uint8_t *src, int64_t stream, int64_t pitch, int64_t n,
                                          s2dq_axis rows, bool merge)
{
    if (merge && pitch == 48) s2dq_avx2_run_12(dst, src, stream, 48, n, rows, true);
    else if (merge) s2dq_avx2_run_12(dst, src, stream, pitch, n, rows, true);
    else if (pitch == 48) s2dq_avx2_run_12(dst, src, stream, 48, n, rows, false);
    else s2dq_avx2_run_12(dst, src, stream, pitch, n, rows, false);
}

/* ------------------------------------------------------------------------------------------------ runs of pixels */

/* Runs of 3 or 4 RGB pixels, or of 2 of each of two rows, to the words that the pixels of one row have of one channel,
 * or back. In each lane the words of some runs are a square, whose columns go to the streams; words of 3 bytes have
 * places of 4 there. */
typedef struct {
    int64_t stream[6];        /* where each begins */
    int64_t run, runs_on, on; /* from a run to the next one; to the runs, and to the words, of the upper lane */
    int64_t steps, free;      /* in a row; and those behind which there is more of it */
    int64_t next_runs, next;  /* to those of the next step, */
    int64_t last_runs, last;  /* and to those of the last one, which may overlap it */
    s2dq_axis rows;
} s2dq_avx2_runs;

/* What follows from the pixels of a row that a run has. */
#define S2DQ_AVX2_PLACE(PIXELS) ((PIXELS) == 2 ? 2 : 4)           /* bytes for a word */
#define S2DQ_AVX2_RUN_BYTES(PIXELS) ((PIXELS) == 3 ? 9 : 12)

/* Channels of the pixels of a run to words in their places, or back. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_regroup(__m256i v, int pixels, bool merge)
{
    const int w = S2DQ_AVX2_PLACE(pixels);
#define S2DQ_TO_WORDS(i) (char)((i) / w / 3 * 3 * pixels + (i) % w * 3 + (i) / w % 3)
#define S2DQ_TO_PIXELS(i) (char)((i) / (3 * pixels) * 3 * w + (i) % 3 * w + (i) / 3 % pixels)
    return _mm256_shuffle_epi8(v, merge ? S2DQ_AVX2_MASK(S2DQ_TO_PIXELS) : S2DQ_AVX2_MASK(S2DQ_TO_WORDS));
#undef S2DQ_TO_WORDS
#undef S2DQ_TO_PIXELS
}

/* Words of 3 bytes that follow each other to places of 4, or back. */
S2DQ_AVX2_INLINE __m256i s2dq_avx2_spread(__m256i v, bool back)
{
#define S2DQ_TO_PLACES(i) (char)((i) / 4 * 3 + (i) % 4)
#define S2DQ_FROM_PLACES(i) (char)((i) / 3 * 4 + (i) % 3)
    return _mm256_shuffle_epi8(v, back ? S2DQ_AVX2_MASK(S2DQ_FROM_PLACES) : S2DQ_AVX2_MASK(S2DQ_TO_PLACES));
#undef S2DQ_TO_PLACES
#undef S2DQ_FROM_PLACES
}

/* 16, 12 or 9 bytes, as above. */
S2DQ_AVX2_INLINE __m128i s2dq_avx2_load_run(const uint8_t *p, int bytes)
{
    if (bytes == 9) return _mm_insert_epi8(_mm_loadl_epi64((const __m128i *)p), p[8], 8);
    return _mm256_castsi256_si128(s2dq_avx2_load(p, bytes));
}

S2DQ_AVX2_INLINE void s2dq_avx2_store_run(uint8_t *p, __m128i v, int bytes)
{
    s2dq_avx2_store(p, _mm256_castsi128_si256(v), bytes == 9 ? 8 : bytes);
    if (bytes == 9) p[8] = (uint8_t)_mm_extract_epi8(v, 8);
}

/* `exact` touches nothing behind a run or behind words, which else the next step reads, or writes. */
S2DQ_AVX2_INLINE void s2dq_avx2_runs_step(uint8_t *dst, const uint8_t *src, const s2dq_avx2_runs *job, int pixels,
                                          bool merge, bool exact, bool last)
{
    const int w = S2DQ_AVX2_PLACE(pixels), n = 16 / w, streams = 12 / w, results = merge ? n : streams;
    const int run = exact ? S2DQ_AVX2_RUN_BYTES(pixels) : 16, words = last && pixels == 3 ? 12 : 16;
    __m256i v[8];
    S2DQ_UNROLL
    for (int i = 0; i < n; i++) {
        v[i] = _mm256_setzero_si256();
        if (merge && i >= streams) continue;
        const uint8_t *const p = src + (merge ? job->stream[i] : i * job->run);
        const int bytes = merge ? words : run;
        v[i] = _mm256_castsi128_si256(s2dq_avx2_load_run(p, bytes));
        v[i] = _mm256_inserti128_si256(v[i], s2dq_avx2_load_run(p + (merge ? job->on : job->runs_on), bytes), 1);
        if (!merge) v[i] = s2dq_avx2_regroup(v[i], pixels, false);
        else if (pixels == 3) v[i] = s2dq_avx2_spread(v[i], false);
    }
    s2dq_avx2_weave(v, n, w);
    S2DQ_UNROLL
    for (int i = 0; i < results; i++) {
        if (merge) v[i] = s2dq_avx2_regroup(v[i], pixels, true);
        else if (pixels == 3) v[i] = s2dq_avx2_spread(v[i], true);
    }
    /* In rising order, for what is written too much is written again. */
    S2DQ_UNROLL
    for (int i = 0; i < 2 * results; i++) {
        const int k = i % results;
        uint8_t *const p = dst + (merge ? k * job->run : job->stream[k]);
        if (i == k && !merge) s2dq_avx2_fetch(p + S2DQ_AVX2_WORDS_AHEAD);
        if (i == k) s2dq_avx2_store_run(p, _mm256_castsi256_si128(v[k]), merge ? run : words);
        else s2dq_avx2_store_run(p + (merge ? job->runs_on : job->on), _mm256_extracti128_si256(v[k], 1),
                                 merge ? run : words);
    }
}

S2DQ_AVX2_INLINE void s2dq_avx2_run_runs(uint8_t *dst, const uint8_t *src, const s2dq_avx2_runs *from, int pixels,
                                         bool merge, bool exact)
{
    const s2dq_avx2_runs job = *from; /* a copy: what is stored to dst cannot change it */
    const int64_t next_dst = merge ? job.next_runs : job.next, next_src = merge ? job.next : job.next_runs;
    const int64_t last_dst = merge ? job.last_runs : job.last, last_src = merge ? job.last : job.last_runs;
    for (int64_t r = 0; r < job.rows.extent; r++, dst += job.rows.dst, src += job.rows.src) {
        int64_t i = 0;
        for (; i < job.free; i++)
            s2dq_avx2_runs_step(dst + i * next_dst, src + i * next_src, &job, pixels, merge, exact, false);
        for (; i < job.steps; i++) {
            const bool last = i == job.steps - 1;
            s2dq_avx2_runs_step(dst + (last ? last_dst : i * next_dst), src + (last ? last_src : i * next_src), &job,
                                pixels, merge, true, true);
        }
    }
}

#define S2DQ_AVX2_RUNS(PIXELS)                                                                                      \
    S2DQ_AVX2 static void s2dq_avx2_runs_of_##PIXELS(uint8_t *dst, const uint8_t *src, const s2dq_avx2_runs *job,   \
                                                     bool merge, bool exact)                                        \
    {                                                                                                               \
        if (!merge) s2dq_avx2_run_runs(dst, src, job, PIXELS, false, false);                                        \
        else if (exact) s2dq_avx2_run_runs(dst, src, job, PIXELS, true, true);                                      \
        else s2dq_avx2_run_runs(dst, src, job, PIXELS, true, false);                                                \
    }

S2DQ_AVX2_RUNS(2)
S2DQ_AVX2_RUNS(3)
S2DQ_AVX2_RUNS(4)

typedef void (*s2dq_avx2_runs_kernel)(uint8_t *, const uint8_t *, const s2dq_avx2_runs *, bool, bool);

static const s2dq_avx2_runs_kernel s2dq_avx2_runs_kernels[] = {s2dq_avx2_runs_of_2, s2dq_avx2_runs_of_3,
                                                               s2dq_avx2_runs_of_4};

/* ------------------------------------------------------------------------------------------------ programs */

#define S2DQ_AVX2_WINDOWS 4
#define S2DQ_AVX2_NOWHERE INT64_MIN

/* How to make one vector of a pattern that repeats every `dst` bytes of the result and `src` bytes of the source:
 * the OR over the windows of 16 source bytes per lane, shuffled. */
typedef struct {
    int count; /* windows */
    bool same; /* whether both lanes have the same ones */
    int64_t at[S2DQ_AVX2_WINDOWS][2];
    uint8_t mask[S2DQ_AVX2_WINDOWS][32];
} s2dq_avx2_vector;

typedef struct {
    s2dq_avx2_vector body, edge; /* windows begin, or end, with a byte that is needed */
    int64_t vectors, edges;      /* whole vectors of a row; how many of them, at the end, are edges */
    int64_t step, size;          /* of one vector: bytes of the source, and of the result (16 to 32) */
    int64_t src_last, dst_last;  /* where the last possible vector starts, which overlaps the one before */
    int64_t run, unit;           /* bytes of a repeat that are moved, and all of them; the others are filled */
} s2dq_avx2_program;

S2DQ_AVX2_INLINE __m256i s2dq_avx2_compose(const uint8_t *src, const int64_t (*at)[2], const __m256i *mask,
                                           int count, bool same)
{
    __m256i out = _mm256_setzero_si256();
    S2DQ_UNROLL
    for (int k = 0; k < count; k++) {
        const __m256i in = same ? _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(src + at[k][0])))
                                : s2dq_avx2_load_pair(src + at[k][0], src + at[k][1]);
        const __m256i part = _mm256_shuffle_epi8(in, mask[k]);
        out = k ? _mm256_or_si256(out, part) : part;
    }
    return out;
}

/* A row of the pattern: whole stores as long as vectors follow that overwrite what runs past the end, then edges, which
 * are stored as their first and their last 16 bytes. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_program(uint8_t *dst, const uint8_t *src, const s2dq_avx2_program *p,
                                            s2dq_axis rows, const uint8_t *fill, int count, bool same, bool filled)
{
    /* Copies: what is stored to dst cannot change them, so they stay in registers. */
    __m256i body[S2DQ_AVX2_WINDOWS], edge[S2DQ_AVX2_WINDOWS];
    int64_t at[S2DQ_AVX2_WINDOWS][2];
    const int64_t size = p->size, step = p->step, edges = p->edges, whole = p->vectors - edges;
    const __m256i front = filled ? s2dq_avx2_load(fill, 32) : _mm256_setzero_si256();
    const __m256i back = filled ? s2dq_avx2_load_pair(fill, fill + size - 16) : _mm256_setzero_si256();
    S2DQ_UNROLL
    for (int k = 0; k < count; k++) {
        body[k] = _mm256_loadu_si256((const __m256i *)p->body.mask[k]);
        edge[k] = _mm256_loadu_si256((const __m256i *)p->edge.mask[k]);
        at[k][0] = p->body.at[k][0];
        at[k][1] = p->body.at[k][1];
    }
    for (int64_t r = 0; r < rows.extent; r++, dst += rows.dst, src += rows.src) {
        uint8_t *d = dst;
        const uint8_t *s = src;
        S2DQ_UNROLL_2 /* one turn after the other took up to 1.3 times as long, by where the loop lay */
        for (int64_t i = 0; i < whole; i++, d += size, s += step)
            _mm256_storeu_si256((__m256i *)d, _mm256_or_si256(front, s2dq_avx2_compose(s, (const int64_t (*)[2])at,
                                                                                        body, count, same)));
        for (int64_t i = 0; i <= edges; i++, d += size, s += step) {
            if (i == edges) {
                d = dst + p->dst_last;
                s = src + p->src_last;
            }
            const __m256i v = _mm256_or_si256(back, s2dq_avx2_compose(s, p->edge.at, edge, count, same));
            _mm_storeu_si128((__m128i *)d, _mm256_castsi256_si128(v));
            _mm_storeu_si128((__m128i *)(d + size - 16), _mm256_extracti128_si256(v, 1));
        }
    }
}

#define S2DQ_AVX2_PROGRAM(COUNT, SAME)                                                                             \
    S2DQ_AVX2 static void s2dq_avx2_program_##COUNT##_##SAME(uint8_t *dst, const uint8_t *src,                     \
                                                             const s2dq_avx2_program *p, s2dq_axis rows,           \
                                                             const uint8_t *fill)                                  \
    {                                                                                                              \
        if (fill) s2dq_avx2_run_program(dst, src, p, rows, fill, COUNT, SAME, true);                               \
        else s2dq_avx2_run_program(dst, src, p, rows, fill, COUNT, SAME, false);                                   \
    }

S2DQ_AVX2_PROGRAM(1, 0)
S2DQ_AVX2_PROGRAM(2, 0)
S2DQ_AVX2_PROGRAM(3, 0)
S2DQ_AVX2_PROGRAM(4, 0)
S2DQ_AVX2_PROGRAM(1, 1)
S2DQ_AVX2_PROGRAM(2, 1)
S2DQ_AVX2_PROGRAM(3, 1)
S2DQ_AVX2_PROGRAM(4, 1)

typedef void (*s2dq_avx2_program_kernel)(uint8_t *, const uint8_t *, const s2dq_avx2_program *, s2dq_axis,
                                         const uint8_t *);

static s2dq_avx2_program_kernel s2dq_avx2_program_for(int count, bool same)
{
    static const s2dq_avx2_program_kernel kernels[2][S2DQ_AVX2_WINDOWS] = {
        {s2dq_avx2_program_1_0, s2dq_avx2_program_2_0, s2dq_avx2_program_3_0, s2dq_avx2_program_4_0},
        {s2dq_avx2_program_1_1, s2dq_avx2_program_2_1, s2dq_avx2_program_3_1, s2dq_avx2_program_4_1},
    };
    return kernels[same][count - 1];
}

/* Covers source bytes by windows. IN: where[lane][i], for `size[lane]` places of each lane, S2DQ_AVX2_NOWHERE for a
 * place that is filled. OUT: *v.
 * Returns how far a window reaches past the bytes wanted from it at most, or -1 where too many windows are needed. */
static int64_t s2dq_avx2_cover(s2dq_avx2_vector *v, const int64_t *const where[2], const int size[2], bool same,
                               bool from_end)
{
    int64_t low[2][S2DQ_AVX2_WINDOWS], high[2][S2DQ_AVX2_WINDOWS], slack = 0;
    uint8_t window[2][16];
    int used[2] = {0, 0};
    for (int lane = 0; lane < 2; lane++) {
        const int of = same ? 0 : lane;
        for (int i = 0; i < size[lane]; i++) {
            const int64_t at = where[lane][i];
            int k = 0;
            if (at == S2DQ_AVX2_NOWHERE) continue;
            while (k < used[of] && (at > low[of][k] + 15 || at < high[of][k] - 15)) k++;
            if (k == S2DQ_AVX2_WINDOWS) return -1;
            if (k == used[of]) {
                low[of][k] = high[of][k] = at;
                used[of]++;
            }
            low[of][k] = s2dq_min(low[of][k], at);
            high[of][k] = s2dq_max(high[of][k], at);
            window[lane][i] = (uint8_t)k;
        }
    }
    v->count = (int)s2dq_max(used[0], used[1]);
    v->same = same;
    for (int lane = 0; lane < 2; lane++) {
        const int of = same ? 0 : lane;
        for (int k = 0; k < v->count; k++) { /* a lane with fewer windows repeats its first */
            const int known = k < used[of] ? k : 0;
            const int64_t past = 15 - (high[of][known] - low[of][known]);
            v->at[k][lane] = low[of][known] - (from_end ? past : 0);
            slack = s2dq_max(slack, past);
        }
    }
    memset(v->mask, 0x80, sizeof v->mask);
    for (int lane = 0; lane < 2; lane++)
        for (int i = 0; i < size[lane]; i++) {
            const int k = window[lane][i];
            if (where[lane][i] != S2DQ_AVX2_NOWHERE)
                v->mask[k][16 * lane + i] = (uint8_t)(where[lane][i] - v->at[k][lane]);
        }
    return slack;
}

/* Makes the program of a box: axes[0 .. chain) are dense in the result, innermost first, and axes[chain - 1] is the
 * repeat, after each turn of which `lanes` bytes are filled. Returns whether there is one. */
static bool s2dq_avx2_plan_program(s2dq_avx2_program *p, const s2dq_axis *axes, int chain, int64_t width, int64_t lanes)
{
    const s2dq_axis repeat = axes[chain - 1];
    int64_t where[32], slack;
    int size = (int)width;
    if (repeat.dst > 32 || repeat.src <= 0 || repeat.src > S2DQ_AVX2_NEAR / 4) return false;
    const int repeats = 32 / (int)repeat.dst;
    p->size = repeats * repeat.dst;
    if (repeat.extent < 3 * repeats || p->size < 16) return false;
    for (int i = 0; i < size; i++) where[i] = i;
    for (int a = 0; a < chain - 1; a++) {
        const int all = size * (int)axes[a].extent;
        for (int i = size; i < all; i++) where[i] = where[i - size] + axes[a].src;
        size = all;
    }
    p->run = size;
    p->unit = size + lanes;
    for (int i = size; i < p->unit; i++) where[i] = S2DQ_AVX2_NOWHERE;
    for (int i = (int)p->unit; i < p->size; i++)
        where[i] = where[i - p->unit] == S2DQ_AVX2_NOWHERE ? S2DQ_AVX2_NOWHERE : where[i - p->unit] + repeat.src;
    size = (int)p->size;
    p->step = repeat.src * repeats;
    p->vectors = repeat.extent / repeats;
    p->src_last = (repeat.extent - repeats) * repeat.src;
    p->dst_last = (repeat.extent - repeats) * repeat.dst;

    const int64_t *const places[2] = {where, where + 16}, *const edges[2] = {where, where + size - 16};
    const int body_size[2] = {16, size - 16}, edge_size[2] = {16, 16};
    slack = s2dq_avx2_cover(&p->body, places, body_size, true, false); /* one load for both lanes is better than two */
    if (slack < 0) slack = s2dq_avx2_cover(&p->body, places, body_size, false, false);
    /* What lies after the bytes of a window, or before those of an edge, must lie between them and another vector's. */
    p->edges = slack > p->step ? (slack + p->step - 1) / p->step : 1;
    /* -1 where the body has too many windows */
    slack = s2dq_avx2_cover(&p->edge, edges, edge_size, p->body.same, true);
    /* Kernels are for one number of windows. */
    return slack >= 0 && p->edge.count == p->body.count && slack <= (p->vectors - p->edges) * p->step;
}

/* Bytes of the result per load. */
static int64_t s2dq_avx2_yield(const s2dq_avx2_program *p)
{
    return p->size / (p->body.count * (p->body.same ? 1 : 2));
}

/* ------------------------------------------------------------------------------------------------ cycles */

/* A pattern of which 96 bytes are a whole number of repeats: granules of 3, 6, 12 bytes. Three whole vectors, each of
 * two pieces: either two runs of 32 source bytes, of which both lanes take up to four words each (few streams merged),
 * or one run of 32 bytes for each lane (a stream thinned out). */
typedef struct {
    int64_t at[3][2];
    int32_t words[3][2][8];
    uint8_t mask[3][2][32];
} s2dq_avx2_triple;

typedef struct {
    s2dq_avx2_triple body, edge; /* as in programs */
    int64_t triples, step;       /* whole ones of a row; source bytes of one */
    int64_t src_last, dst_last;
} s2dq_avx2_cycle;

/* A triple in registers. */
typedef struct {
    int64_t at[3][2];
    __m256i words[3][2], mask[3][2];
} s2dq_avx2_held;

S2DQ_AVX2_INLINE s2dq_avx2_held s2dq_avx2_hold(const s2dq_avx2_triple *t)
{
    s2dq_avx2_held h;
    S2DQ_UNROLL
    for (int i = 0; i < 6; i++) {
        h.at[i / 2][i % 2] = t->at[i / 2][i % 2];
        h.words[i / 2][i % 2] = s2dq_avx2_load((const uint8_t *)t->words[i / 2][i % 2], 32);
        h.mask[i / 2][i % 2] = s2dq_avx2_load(t->mask[i / 2][i % 2], 32);
    }
    return h;
}

S2DQ_AVX2_INLINE void s2dq_avx2_cycle_step(uint8_t *dst, const uint8_t *src, const s2dq_avx2_held *t, bool merge,
                                           int64_t ahead)
{
    S2DQ_UNROLL
    for (int v = 0; v < 3; v++) {
        const uint8_t *const a = src + t->at[v][0], *const b = src + t->at[v][1];
        if (ahead) s2dq_avx2_fetch(a + ahead), s2dq_avx2_fetch(b + ahead);
        /* For lanes of their own two loads each: they come cheaper than moving lanes about. */
        const __m256i p = merge ? _mm256_permutevar8x32_epi32(s2dq_avx2_load(a, 32), t->words[v][0])
                                : s2dq_avx2_load_pair(a, b);
        const __m256i q = merge ? _mm256_permutevar8x32_epi32(s2dq_avx2_load(b, 32), t->words[v][1])
                                : _mm256_blend_epi32(s2dq_avx2_load(a + 16, 16), s2dq_avx2_load(b, 32), 0xF0);
        s2dq_avx2_store(dst + 32 * v, _mm256_or_si256(_mm256_shuffle_epi8(p, t->mask[v][0]),
                                                      _mm256_shuffle_epi8(q, t->mask[v][1])), 32);
    }
}

S2DQ_AVX2_INLINE void s2dq_avx2_run_cycle(uint8_t *dst, const uint8_t *src, const s2dq_avx2_cycle *c, s2dq_axis rows,
                                          bool merge, int64_t ahead)
{
    const s2dq_avx2_held body = s2dq_avx2_hold(&c->body);
    const int64_t triples = c->triples, step = c->step;
    for (int64_t r = 0; r < rows.extent; r++, dst += rows.dst, src += rows.src) {
        const s2dq_avx2_held edge = s2dq_avx2_hold(&c->edge);
        uint8_t *d = dst;
        const uint8_t *s = src;
        for (int64_t i = 1; i < triples; i++, d += 96, s += step)
            s2dq_avx2_cycle_step(d, s, &body, merge, ahead);
        s2dq_avx2_cycle_step(d, s, &edge, merge, 0);
        s2dq_avx2_cycle_step(dst + c->dst_last, src + c->src_last, &edge, merge, 0);
    }
}

S2DQ_AVX2 static void s2dq_avx2_cycle_merge(uint8_t *dst, const uint8_t *src, const s2dq_avx2_cycle *c, s2dq_axis rows,
                                            bool far)
{
    if (far) s2dq_avx2_run_cycle(dst, src, c, rows, true, s2dq_avx2_ahead(rows));
    else s2dq_avx2_run_cycle(dst, src, c, rows, true, 0);
}

S2DQ_AVX2 static void s2dq_avx2_cycle_split(uint8_t *dst, const uint8_t *src, const s2dq_avx2_cycle *c, s2dq_axis rows)
{
    s2dq_avx2_run_cycle(dst, src, c, rows, false, 0);
}

/* One vector of a cycle. IN: where[0 .. 32). OUT: place v of *t. Returns the slack as s2dq_avx2_cover does. */
static int64_t s2dq_avx2_cover_wide(s2dq_avx2_triple *t, int v, const int64_t *where, bool merge, bool from_end)
{
    int64_t low[2], high[2], slack = 0;
    int used = 0, count[2][2] = {{0, 0}, {0, 0}};
    uint8_t piece[32];
    for (int i = 0; i < 32; i++) {
        int k = merge ? 0 : i / 16;
        if (merge)
            while (k < used && (where[i] > low[k] + 31 || where[i] < high[k] - 31)) k++;
        if (k == 2) return -1;
        if (k >= used) {
            low[k] = high[k] = where[i];
            used = k + 1;
        }
        low[k] = s2dq_min(low[k], where[i]);
        high[k] = s2dq_max(high[k], where[i]);
        if (high[k] - low[k] > 31) return -1;
        piece[i] = (uint8_t)k;
    }
    memset(t->words[v], 0, sizeof t->words[v]);
    memset(t->mask[v], 0x80, sizeof t->mask[v]);
    for (int k = 0; k < 2; k++) {
        const int known = k < used ? k : 0;
        const int64_t past = 31 - (high[known] - low[known]);
        t->at[v][k] = low[known] - (from_end ? past : 0);
        slack = s2dq_max(slack, past);
    }
    for (int i = 0; i < 32; i++) {
        const int k = piece[i], lane = i / 16, byte = (int)(where[i] - t->at[v][k]);
        int word = 0;
        if (!merge) {
            t->mask[v][byte / 16][i] = (uint8_t)(byte % 16);
            continue;
        }
        while (word < count[k][lane] && t->words[v][k][4 * lane + word] != byte / 4) word++;
        if (word == 4) return -1;
        if (word == count[k][lane]) t->words[v][k][4 * lane + count[k][lane]++] = byte / 4;
        t->mask[v][k][i] = (uint8_t)(4 * word + byte % 4);
    }
    return slack;
}

/* Makes the cycle of a box, as s2dq_avx2_plan_program makes its program. Returns 2 to merge, 1 to split, 0 for none. */
static int s2dq_avx2_plan_cycle(s2dq_avx2_cycle *c, const s2dq_axis *axes, int chain, int64_t width)
{
    const s2dq_axis repeat = axes[chain - 1];
    int64_t where[96];
    int size = (int)width;
    if (repeat.dst > 48 || 96 % repeat.dst || repeat.src <= 0 || repeat.src > S2DQ_AVX2_NEAR / 4) return 0;
    const int repeats = 96 / (int)repeat.dst;
    if (repeat.extent < 2 * repeats) return 0;
    for (int i = 0; i < size; i++) where[i] = i;
    for (int a = 0; a < chain; a++) {
        const int all = a < chain - 1 ? size * (int)axes[a].extent : 96;
        for (int i = size; i < all; i++) where[i] = where[i - size] + axes[a].src;
        size = all;
    }
    c->triples = repeat.extent / repeats;
    c->step = repeats * repeat.src;
    c->src_last = (repeat.extent - repeats) * repeat.src;
    c->dst_last = (repeat.extent - repeats) * repeat.dst;
    for (int merge = 1; merge >= 0; merge--) {
        int v = 0;
        for (; v < 6; v++) {
            const int64_t slack =
                s2dq_avx2_cover_wide(v < 3 ? &c->body : &c->edge, v % 3, where + v % 3 * 32, merge, v >= 3);
            if (slack < 0 || slack > c->step) break;
        }
        if (v == 6) return merge + 1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------ transpose */

#define S2DQ_AVX2_SCATTERED 256 /* rows, or columns, of which a table holds where they are */

/* 32 / w registers, a square of elements of 4 or 8 bytes: lanes apart, then the lanes of both halves. */
S2DQ_AVX2_INLINE void s2dq_avx2_square(__m256i *v, int w)
{
    const int half = 16 / w;
    s2dq_avx2_weave(v, half, w);
    s2dq_avx2_weave(v + half, half, w);
    S2DQ_UNROLL
    for (int i = 0; i < half; i++) {
        const __m256i low = v[i], high = v[i + half];
        v[i] = _mm256_permute2x128_si256(low, high, 0x20);
        v[i + half] = _mm256_permute2x128_si256(low, high, 0x31);
    }
}

/* A tile of `rows` source rows by `columns` bytes, w bytes per element: column j goes to dst + j * ds. rows * w = 32:
 * the low lanes hold the first half of the rows, so that a result is a whole register. */
S2DQ_AVX2_INLINE void s2dq_avx2_tile(uint8_t *dst, const uint8_t *src, int64_t ds, int64_t ss, int w, int row_bytes,
                                     int column_bytes)
{
    const int square = 16 / w, rows = row_bytes / w;
    __m256i v[16];
    if (column_bytes == 32) {
        S2DQ_UNROLL
        for (int i = 0; i < rows; i++) v[i] = s2dq_avx2_load(src + i * ss, 32);
        s2dq_avx2_square(v, w);
        S2DQ_UNROLL
        for (int i = 0; i < rows; i++) s2dq_avx2_store(dst + i * ds, v[i], 32);
        return;
    }
    S2DQ_UNROLL
    for (int i = 0; i < square; i++) {
        if (row_bytes == 32)
            v[i] = s2dq_avx2_load_pair(src + i * ss, src + (i + square) * ss);
        else
            v[i] = i < rows ? s2dq_avx2_load(src + i * ss, column_bytes) : _mm256_setzero_si256();
    }
    s2dq_avx2_weave(v, square, w);
    S2DQ_UNROLL
    for (int i = 0; i < column_bytes / w; i++) s2dq_avx2_store(dst + i * ds, v[i], row_bytes);
}

/* The side of a transpose whose lines collide, so that each has to be used up as soon as it is there. */
enum { S2DQ_AVX2_NEITHER, S2DQ_AVX2_SOURCE, S2DQ_AVX2_RESULT };

/* Elements of w bytes, at least `least`, from `p` to the end of its line. Lines that collide have their ends at the
 * same places. */
static inline int64_t s2dq_avx2_head(const uint8_t *p, int64_t w, int64_t least)
{
    return s2dq_max(least, (S2DQ_LINE - (int64_t)((uintptr_t)p % S2DQ_LINE)) / w);
}

/* Tiles over a plane, the last ones of each direction overlapping those before. Blocks of rows and columns keep the
 * lines of both sides in the first cache until they are used up. What is left of a line that a block begins is in the
 * one that follows: below it, or at its right where the lines of the source collide. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_tiles(uint8_t *dst, const uint8_t *src, s2dq_axis rows, s2dq_axis columns, int w,
                                          int row_bytes, int column_bytes, bool far, int lines)
{
    const int64_t high = row_bytes / w, wide = column_bytes / w, block = 64 / w;
    const bool across = lines == S2DQ_AVX2_SOURCE;
    const int64_t outer = across ? rows.extent : columns.extent, inner = across ? columns.extent : rows.extent;
    /* Behind the first block long columns are stored in whole lines, where all begin alike. */
    const bool alike = columns.dst % S2DQ_LINE == 0 && rows.extent >= 4 * block;
    const int64_t down = alike || lines == S2DQ_AVX2_RESULT ? s2dq_avx2_head(dst, w, high) : block;
    const int64_t first = across ? s2dq_avx2_head(src, w, wide) : down, first_o = across ? down : block;
    for (int64_t o = 0, o_end; o < outer; o = o_end) {
        o_end = s2dq_min(outer, o ? o + block : first_o);
        for (int64_t n = 0, n_end; n < inner; n = n_end) {
            n_end = s2dq_min(inner, n ? n + block : first);
            const bool on = n_end < inner; /* to the next block */
            const int64_t next_o = on ? o : o_end, next_n = on ? n_end : 0;
            const int64_t r = across ? o : n, r_end = across ? o_end : n_end, next_r = across ? next_o : next_n;
            const int64_t c = across ? n : o, c_end = across ? n_end : o_end, next_c = across ? next_n : next_o;
            const uint8_t *const next_src = src + next_r * rows.src + next_c * w;
            uint8_t *const next_dst = dst + next_c * columns.dst + next_r * w;
            for (int64_t j = c; j < c_end; j += wide) {
                const int64_t column = s2dq_min(j, columns.extent - wide);
                for (int64_t k = j - c; far && k < j - c + wide; k++) {
                    s2dq_avx2_fetch(next_src + k * rows.src);
                    s2dq_avx2_own(next_dst + k * columns.dst);
                }
                for (int64_t i = r; i < r_end; i += high) {
                    const int64_t row = s2dq_min(i, rows.extent - high);
                    s2dq_avx2_tile(dst + column * columns.dst + row * w, src + row * rows.src + column * w,
                                   columns.dst, rows.src, w, row_bytes, column_bytes);
                }
            }
        }
    }
}

#define S2DQ_AVX2_TILES_OF(ROWS, COLUMNS) s2dq_avx2_run_tiles(dst, src, rows, columns, w, ROWS, COLUMNS, far, lines)
#define S2DQ_AVX2_TILES(W)                                                                                        \
    S2DQ_AVX2 static void s2dq_avx2_transpose_x##W(uint8_t *dst, const uint8_t *src, s2dq_axis rows,              \
                                                   s2dq_axis columns, bool far, int lines)                        \
    {                                                                                                             \
        const int w = W;                                                                                          \
        const int64_t high = rows.extent * w, wide = columns.extent * w;                                          \
        if (w >= 4 && wide >= 32 && high >= 32) S2DQ_AVX2_TILES_OF(32, 32);                                       \
        else if (wide >= 16 && high >= 32) S2DQ_AVX2_TILES_OF(32, 16);                                            \
        else if (wide >= 16 && high >= 16) S2DQ_AVX2_TILES_OF(16, 16);                                            \
        else if (wide >= 16 && high >= 8) S2DQ_AVX2_TILES_OF(8, 16);                                              \
        else if (wide >= 16) S2DQ_AVX2_TILES_OF(w < 8 ? 4 : 8, 16);                                               \
        else if (wide >= 8 && high >= 16) S2DQ_AVX2_TILES_OF(16, 8);                                              \
        else if (wide >= 8 && high >= 8) S2DQ_AVX2_TILES_OF(8, 8);                                                \
        else S2DQ_AVX2_TILES_OF(16, w < 8 ? 4 : 8);                                                               \
    }

S2DQ_AVX2_TILES(1)
S2DQ_AVX2_TILES(2)
S2DQ_AVX2_TILES(4)
S2DQ_AVX2_TILES(8)

/* The same where rows and columns lie anywhere: row i starts at row_at[i] of the source, column j at column_at[j] of
 * the result. `lines` uses up the lines of few rows before those of others, which is for rows that collide. */
typedef struct {
    int64_t rows, columns;
    int lines;
    int64_t row_at[S2DQ_AVX2_SCATTERED], column_at[S2DQ_AVX2_SCATTERED];
} s2dq_avx2_plane;

S2DQ_AVX2_INLINE void s2dq_avx2_tile_at(uint8_t *dst, const uint8_t *src, const int64_t *row_at,
                                        const int64_t *column_at, int w, int row_bytes, int column_bytes)
{
    const int square = 16 / w;
    __m256i v[16];
    if (column_bytes == 32) {
        S2DQ_UNROLL
        for (int i = 0; i < 2 * square; i++) v[i] = s2dq_avx2_load(src + row_at[i], 32);
        s2dq_avx2_square(v, w);
    } else {
        S2DQ_UNROLL
        for (int i = 0; i < square; i++) {
            if (row_bytes == 32)
                v[i] = s2dq_avx2_load_pair(src + row_at[i], src + row_at[i + square]);
            else
                v[i] = i < row_bytes / w ? s2dq_avx2_load(src + row_at[i], column_bytes) : _mm256_setzero_si256();
        }
        s2dq_avx2_weave(v, square, w);
    }
    S2DQ_UNROLL
    for (int i = 0; i < column_bytes / w; i++) s2dq_avx2_store(dst + column_at[i], v[i], row_bytes);
}

S2DQ_AVX2_INLINE void s2dq_avx2_run_plane(uint8_t *dst, const uint8_t *src, const s2dq_avx2_plane *p, int w,
                                          int row_bytes, int column_bytes)
{
    const int64_t high = row_bytes / w, wide = column_bytes / w, block = 64 / w;
    const int64_t rows = p->rows, columns = p->columns, *const row_at = p->row_at, *const column_at = p->column_at;
    for (int64_t c = 0; c < columns; c += block) {
        const int64_t c_end = c + s2dq_min(columns - c, block);
        for (int64_t r = 0; r < rows; r += p->lines ? high : block) {
            const int64_t next = r + (p->lines ? high : block), r_end = s2dq_min(rows, next);
            for (int64_t j = c; j < c_end; j += wide) {
                const int64_t column = s2dq_min(j, columns - wide);
                for (int64_t i = r; i < r_end; i += high) {
                    const int64_t row = s2dq_min(i, rows - high);
                    s2dq_avx2_tile_at(dst + row * w, src + column * w, row_at + row, column_at + column, w, row_bytes,
                                      column_bytes);
                }
            }
        }
    }
}

#define S2DQ_AVX2_PLANES(W)                                                                                       \
    S2DQ_AVX2 static void s2dq_avx2_plane_x##W(uint8_t *dst, const uint8_t *src, const s2dq_avx2_plane *p)        \
    {                                                                                                             \
        if (W >= 4 && p->rows * W >= 32 && p->columns * W >= 32) s2dq_avx2_run_plane(dst, src, p, W, 32, 32);     \
        else if (p->columns * W < 16) s2dq_avx2_run_plane(dst, src, p, W, 16, 8);                                 \
        else if (p->rows * W >= 32) s2dq_avx2_run_plane(dst, src, p, W, 32, 16);                                  \
        else if (p->rows * W >= 16) s2dq_avx2_run_plane(dst, src, p, W, 16, 16);                                  \
        else s2dq_avx2_run_plane(dst, src, p, W, 8, 16);                                                          \
    }

S2DQ_AVX2_PLANES(1)
S2DQ_AVX2_PLANES(2)
S2DQ_AVX2_PLANES(4)
S2DQ_AVX2_PLANES(8)

/* Eight rows of four granules of 3 bytes. Loads of 16 bytes reach behind these, or, with `back`, before them; stores run
 * 8 bytes past the last row, but with `last`. */
S2DQ_AVX2_INLINE void s2dq_avx2_tile_x3(uint8_t *dst, const uint8_t *src, const int64_t *row_at,
                                        const int64_t *column_at, bool back, bool last)
{
    const __m256i dense = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    __m256i v[4];
    S2DQ_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i pair = s2dq_avx2_load_pair(src + row_at[i] - 4 * back, src + row_at[i + 4] - 4 * back);
        v[i] = s2dq_avx2_spread(back ? _mm256_srli_si256(pair, 4) : pair, false);
    }
    s2dq_avx2_weave(v, 4, 4);
    S2DQ_UNROLL
    for (int i = 0; i < 4; i++)
        s2dq_avx2_store_24(dst + column_at[i], _mm256_permutevar8x32_epi32(s2dq_avx2_spread(v[i], true), dense), last);
}

/* Four rows of eight of them, and no byte more. */
S2DQ_AVX2_INLINE void s2dq_avx2_wide_tile_x3(uint8_t *dst, const uint8_t *src, const int64_t *row_at,
                                             const int64_t *column_at)
{
    const __m256i apart = _mm256_setr_epi32(0, 1, 2, 3, 5, 6, 7, 4);
    __m256i v[4];
    S2DQ_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i pair = s2dq_avx2_load_pair(src + row_at[i], src + row_at[i] + 8);
        v[i] = s2dq_avx2_spread(_mm256_permutevar8x32_epi32(pair, apart), false);
    }
    s2dq_avx2_weave(v, 4, 4);
    S2DQ_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i runs = s2dq_avx2_spread(v[i], true);
        s2dq_avx2_store(dst + column_at[i], runs, 12);
        s2dq_avx2_store(dst + column_at[i + 4], _mm256_permute2x128_si256(runs, runs, 0x01), 12);
    }
}

/* Requires at least 8 rows and 6 columns, or 4 and 8. */
S2DQ_AVX2 static void s2dq_avx2_plane_x3(uint8_t *dst, const uint8_t *src, const s2dq_avx2_plane *p)
{
    const int64_t rows = p->rows, columns = p->columns, *const row_at = p->row_at, *const column_at = p->column_at;
    const int64_t block = p->lines ? 8 : 24, left = rows % 8;
    const int64_t most = columns >= 8 && (rows < 8 || left <= 4) ? rows - left : rows; /* of which tiles have eight */
    for (int64_t c = 0; c < columns; c += 20) {
        const int64_t c_end = s2dq_min(columns, c + 20);
        for (int64_t r = 0; r < most; r += block) {
            const int64_t r_end = s2dq_min(most, r + block);
            for (int64_t j = c; j < c_end; j += 4) {
                const int64_t column = s2dq_min(j, columns - 4), *const to = column_at + column;
                const bool back = column > columns - 6;
                for (int64_t i = r; i < r_end; i += 8) {
                    const int64_t row = s2dq_min(i, rows - 8);
                    const bool last = row > rows - 11;
                    uint8_t *const d = dst + row * 3;
                    const uint8_t *const s = src + column * 3;
                    if (back) s2dq_avx2_tile_x3(d, s, row_at + row, to, true, last);
                    else if (last) s2dq_avx2_tile_x3(d, s, row_at + row, to, false, true);
                    else s2dq_avx2_tile_x3(d, s, row_at + row, to, false, false);
                }
            }
        }
    }
    for (int64_t i = most; i < rows; i += 4) {
        const int64_t row = s2dq_min(i, rows - 4);
        for (int64_t j = 0; j < columns; j += 8) {
            const int64_t column = s2dq_min(j, columns - 8);
            s2dq_avx2_wide_tile_x3(dst + row * 3, src + column * 3, row_at + row, column_at + column);
        }
    }
}

/* Requires at least 8 bytes in one direction and 16 in the other; of granules of 3 bytes, what is said there. */
static void s2dq_avx2_scattered(uint8_t *dst, const uint8_t *src, const s2dq_avx2_plane *p, int64_t w)
{
    switch (w) {
    case 1: s2dq_avx2_plane_x1(dst, src, p); return;
    case 2: s2dq_avx2_plane_x2(dst, src, p); return;
    case 3: s2dq_avx2_plane_x3(dst, src, p); return;
    case 4: s2dq_avx2_plane_x4(dst, src, p); return;
    default: s2dq_avx2_plane_x8(dst, src, p); return;
    }
}

/* Whether s2dq_avx2_transpose has a tile for a plane of so many bytes; for elements of 8 bytes it always has. */
static bool s2dq_avx2_has_tile(int64_t high, int64_t wide)
{
    return (wide >= 16 && high >= 4) || (wide >= 8 && high >= 8) || (wide >= 4 && high >= 16);
}

S2DQ_AVX2 static void s2dq_avx2_transpose(uint8_t *dst, const uint8_t *src, s2dq_axis rows, s2dq_axis columns,
                                          int64_t w, bool far, int lines)
{
    switch (w) {
    case 1: s2dq_avx2_transpose_x1(dst, src, rows, columns, far, lines); return;
    case 2: s2dq_avx2_transpose_x2(dst, src, rows, columns, far, lines); return;
    case 4: s2dq_avx2_transpose_x4(dst, src, rows, columns, far, lines); return;
    default: s2dq_avx2_transpose_x8(dst, src, rows, columns, far, lines); return;
    }
}

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

/* ---------------------------------------------------------------------- transpose where the lines of a side collide */

#define S2DQ_AVX2_WAYS 6      /* lines of one set that may live for long, of the eight of a first cache */
#define S2DQ_AVX2_ALL 8       /* and that may live for a moment */
#define S2DQ_AVX2_STAGE 512   /* bytes of each stream that go through the scratch at a time */
#define S2DQ_AVX2_ACROSS 64   /* bytes of each row on the other side */
#define S2DQ_AVX2_PITCH 576   /* an odd number of lines: scratch rows do not collide */

/* Whether the streams that start at `at` meet in the sets of a first cache of 4 KiB ways. */
static bool s2dq_avx2_crowded(const int64_t *at, int64_t streams, int ways)
{
    uint8_t lines[64] = {0};
    if (streams <= ways) return false;
    for (int64_t k = 0; k < streams && k < 64; k++)
        if (++lines[(uint64_t)at[k] / 64 % 64] > ways) return true;
    return false;
}

/* Whether so many streams, `step` bytes apart, do. */
static bool s2dq_avx2_collide(int64_t streams, int64_t step, int ways)
{
    int64_t at[64];
    for (int64_t k = 0; k < 64; k++) at[k] = k * step;
    return s2dq_avx2_crowded(at, streams, ways);
}

/* How much to take of what is left: `size`, or all of it where the rest would be too short for a tile. */
static int64_t s2dq_avx2_piece(int64_t left, int64_t size, int64_t least)
{
    return left < size + least ? left : size;
}

/* A plane through a scratch, in pieces of whole lines: from there or to there the streams go one after the other.
 * `out` tells that the streams of the result collide, else those of the source do. */
S2DQ_AVX2 static void s2dq_avx2_staged(uint8_t *dst, const uint8_t *src, s2dq_axis rows, s2dq_axis columns, int64_t w,
                                       bool out)
{
    _Alignas(S2DQ_LINE) uint8_t scratch[(S2DQ_AVX2_ACROSS + 32) * S2DQ_AVX2_PITCH];
    const s2dq_axis along = out ? rows : columns, across = out ? columns : rows;
    const uintptr_t start = out ? (uintptr_t)dst : (uintptr_t)src;
    const int64_t head = S2DQ_AVX2_STAGE - (int64_t)(start % S2DQ_LINE) / w * w;
    for (int64_t c = 0, streams; c < across.extent; c += streams) {
        streams = s2dq_avx2_piece(across.extent - c, S2DQ_AVX2_ACROSS / w, 32 / w);
        for (int64_t r = 0, count; r < along.extent; r += count) {
            count = s2dq_avx2_piece(along.extent - r, (r ? S2DQ_AVX2_STAGE : head) / w, 32 / w);
            uint8_t *const d = dst + (out ? c * columns.dst + r * w : r * columns.dst + c * w);
            const uint8_t *const s = src + (out ? r * rows.src + c * w : c * rows.src + r * w);
            const s2dq_axis piece = {count, along.src, along.dst};
            if (out) {
                const s2dq_axis staged = {streams, w, S2DQ_AVX2_PITCH};
                s2dq_avx2_transpose(scratch, s, piece, staged, w, false, S2DQ_AVX2_NEITHER);
                for (int64_t k = 0; k < streams; k++)
                    s2dq_avx2_granule(d + k * columns.dst, scratch + k * S2DQ_AVX2_PITCH, count * w);
            } else {
                const s2dq_axis staged = {streams, S2DQ_AVX2_PITCH, w};
                for (int64_t k = 0; k < streams; k++)
                    s2dq_avx2_granule(scratch + k * S2DQ_AVX2_PITCH, s + k * rows.src, count * w);
                s2dq_avx2_transpose(d, scratch, staged, piece, w, false, S2DQ_AVX2_NEITHER);
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------ granules */

#define S2DQ_AVX2_GRANULES(W)                                                                                 \
    for (int64_t i = 0; i < outer.extent; i++)                                                                \
        for (int64_t j = 0; j < inner.extent; j++)                                                            \
            s2dq_avx2_granule(dst + i * outer.dst + j * inner.dst, src + i * outer.src + j * inner.src, (W));

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
        for (int64_t i = 0; i < outer.extent; i++)
            for (int64_t j = 0; j < inner.extent; j++) {
                uint8_t *d = dst + i * outer.dst + j * inner.dst;
                const uint8_t *s = src + i * outer.src + j * inner.src;
                const __m256i last = s2dq_avx2_load(s + width - 4, 4);
                s2dq_avx2_store(d, s2dq_avx2_load(s, 4), 4);
                s2dq_avx2_store(d + width - 4, last, 4);
            }
    } else if (width < 16) {
        for (int64_t i = 0; i < outer.extent; i++)
            for (int64_t j = 0; j < inner.extent; j++) {
                uint8_t *d = dst + i * outer.dst + j * inner.dst;
                const uint8_t *s = src + i * outer.src + j * inner.src;
                const __m256i last = s2dq_avx2_load(s + width - 8, 8);
                s2dq_avx2_store(d, s2dq_avx2_load(s, 8), 8);
                s2dq_avx2_store(d + width - 8, last, 8);
            }
    } else if (width < 32) {
        for (int64_t i = 0; i < outer.extent; i++)
            for (int64_t j = 0; j < inner.extent; j++) {
                uint8_t *d = dst + i * outer.dst + j * inner.dst;
                const uint8_t *s = src + i * outer.src + j * inner.src;
                const __m256i last = s2dq_avx2_load(s + width - 16, 16);
                s2dq_avx2_store(d, s2dq_avx2_load(s, 16), 16);
                s2dq_avx2_store(d + width - 16, last, 16);
            }
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
/* Two moves of WIDE bytes that overlap. */
#define S2DQ_AVX2_ENDS(WIDE)                                                                                  \
    const __m256i last = s2dq_avx2_load(s + width - WIDE, WIDE);                                              \
    s2dq_avx2_store(d, s2dq_avx2_load(s, WIDE), WIDE);                                                        \
    s2dq_avx2_store(d + width - WIDE, last, WIDE)

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

/* ------------------------------------------------------------------------------------------- choice of a kernel */

/* How rows may run past their end: `size` is what a row writes (to one place), `past` how far it would overrun, and
 * `read_past` how far its reads would. The number of the row axis whose last turn must not, or -1. */
static int s2dq_avx2_overrun(const s2dq_axis *rows, int64_t size, int64_t past, int64_t read_past)
{
    if (past == 0 || past > size) return -1;
    for (int k = 1; k >= 0; k--) {
        const s2dq_axis *row = &rows[k];
        const int dense = row->dst == size || (k == 1 && rows[0].dst == size && row->dst == size * rows[0].extent);
        if (row->extent > 1 && dense && row->src >= read_past && row->src <= S2DQ_AVX2_NEAR) return k;
    }
    return -1;
}

static void s2dq_avx2_drive_streams(uint8_t *dst, const uint8_t *src, s2dq_box *box, s2dq_avx2_streams *job,
                                    s2dq_avx2_streams_kernel kernel, bool merge, int64_t streams)
{
    const int64_t step = job->bytes > 16 ? 32 : 8; /* whose multiple the steps of a row are */
    const int64_t past = (step - job->bytes % step) % step;
    s2dq_position at;
    s2dq_order(box, job->bytes * streams);
    job->rows[0] = s2dq_axis_at(box, 0);
    job->rows[1] = s2dq_axis_at(box, 1);
    if (past == 0 && job->bytes <= 32 && streams != 3)
        job->over = S2DQ_AVX2_EXACT;
    else
        job->over = s2dq_avx2_overrun(job->rows, merge ? streams * job->bytes : job->bytes,
                                  merge ? streams * past : past, merge ? past : streams * past);
    s2dq_start(&at, box, 2);
    do kernel(dst + at.dst, src + at.src, job);
    while (s2dq_next(&at, box, 2));
}

/* Streams merged into one: the loops dense in the result up to one that is dense in the source. */
static bool s2dq_avx2_try_merge(uint8_t *dst, const uint8_t *src, const s2dq_box *whole, int64_t least)
{
    const int64_t w = whole->width;
    s2dq_avx2_streams job;
    s2dq_box box;
    int64_t size = w;
    int chain = 0;
    s2dq_assign(&box, whole);
    while (s2dq_axis_at(&box, chain).dst == size && box.axes[chain].src != w) {
        size *= box.axes[chain++].extent;
        if (size > 16 * w) return false;
    }
    if (s2dq_axis_at(&box, chain).dst != size) return false;
    const s2dq_avx2_streams_kernel kernel = s2dq_avx2_streams_for(true, size / w, w);
    job.bytes = box.axes[chain].extent * w;
    if (!kernel || job.bytes < (size >= 9 * w ? 8 : least)) return false;
    /* see transpose */
    if (chain == 1 && size >= 12 * w && s2dq_avx2_collide(size / w, box.axes[0].src, S2DQ_AVX2_WAYS)) return false;
    job.offset[0] = 0;
    for (int64_t a = 0, known = 1; a < chain; known *= box.axes[a++].extent)
        for (int64_t k = known; k < known * box.axes[a].extent; k++)
            job.offset[k] = job.offset[k - known] + box.axes[a].src;
    for (int a = chain; a >= 0; a--) s2dq_drop(&box, a);
    s2dq_avx2_drive_streams(dst, src, &box, &job, kernel, true, size / w);
    return true;
}

static void s2dq_avx2_run(uint8_t *dst, const uint8_t *src, s2dq_box *box);

/* One stream split: the innermost loop of the result steps over `streams` granules of the source, which other loops
 * distribute. Up to half of them may be unwanted. */
static bool s2dq_avx2_try_split(uint8_t *dst, const uint8_t *src, const s2dq_box *whole, int64_t least)
{
    const int64_t w = whole->width;
    s2dq_avx2_streams job;
    s2dq_box box;
    if (whole->count < 2 || whole->axes[0].dst != w || whole->axes[0].src <= w || whole->axes[0].src % w) return false;
    const s2dq_axis run = whole->axes[0];
    const int64_t streams = run.src / w;
    const s2dq_avx2_streams_kernel kernel = s2dq_avx2_streams_for(false, streams, w);
    int64_t place[16], known = 1;
    if (streams >= 9) least = 9;
    if (!kernel || run.extent * w < least) return false;
    place[0] = job.offset[0] = 0;
    box.width = w;
    box.count = 0;
    for (int a = 1; a < whole->count; a++) {
        const s2dq_axis axis = whole->axes[a];
        if (axis.src <= 0 || axis.src % w || axis.src >= run.src || known * axis.extent > streams) {
            box.axes[box.count++] = axis;
            continue;
        }
        for (int64_t k = known; k < known * axis.extent; k++) {
            place[k] = place[k - known] + axis.src / w;
            job.offset[k] = job.offset[k - known] + axis.dst;
        }
        known *= axis.extent;
    }
    if (known < 2 || 2 * known < streams) return false;
    int64_t offset[16] = {0}, last = 0;
    uint32_t taken = 0;
    for (int64_t k = 0; k < known; k++) {
        if (place[k] >= streams || (taken >> place[k] & 1)) return false;
        taken |= (uint32_t)1 << place[k];
        offset[place[k]] = job.offset[k];
        last = s2dq_max(last, place[k]);
    }
    /* see transpose */
    if (streams >= 12 && s2dq_avx2_collide(streams, offset[1] - offset[0], S2DQ_AVX2_WAYS)) return false;
    for (int64_t k = 0; k < streams; k++) job.offset[k] = taken >> k & 1 ? offset[k] : 0;
    job.bytes = run.extent * w;
    if (last < streams - 1) { /* the row ends with granules that nobody may read */
        s2dq_box end;
        job.bytes -= w;
        if (job.bytes < least) return false;
        s2dq_assign(&end, whole);
        s2dq_drop(&end, 0);
        s2dq_avx2_run(dst + job.bytes, src + (run.extent - 1) * run.src, &end);
    }
    s2dq_avx2_drive_streams(dst, src, &box, &job, kernel, false, streams);
    return true;
}

#define S2DQ_AVX2_CHAIN 6

/* How a repeating pattern is made, and of which loops; plans are kept, because one takes longer than to move 10 KB and
 * the rows of a chain of moves come one by one. */
typedef struct {
    int count, chain;              /* loops dense in the result, innermost first; of which the pattern covers some */
    int kind;                      /* of s2dq_avx2_plan_cycle; 0 is a program, or nothing if chain is 0 */
    int64_t width, lanes;
    s2dq_axis axes[S2DQ_AVX2_CHAIN];
    s2dq_avx2_cycle cycle;
    s2dq_avx2_program program;
} s2dq_avx2_pattern;

/* Whether a pattern of as many loops is of these. */
static bool s2dq_avx2_same_pattern(const s2dq_avx2_pattern *p, const s2dq_axis *axes, int64_t width, int64_t lanes)
{
    if (p->width != width || p->lanes != lanes) return false;
    for (int a = 0; a < p->count; a++)
        if (p->axes[a].extent != axes[a].extent || p->axes[a].src != axes[a].src) return false;
    return true;
}

static const s2dq_avx2_pattern *s2dq_avx2_pattern_of(const s2dq_box *box, int64_t lanes)
{
    static __thread s2dq_avx2_pattern kept[2];
    static __thread int oldest;
    int64_t size = box->width;
    int count = 0;
    while (count < S2DQ_AVX2_CHAIN && s2dq_axis_at(box, count).dst == size && size <= 48)
        size *= box->axes[count++].extent;
    if (lanes) {
        if (count == S2DQ_AVX2_CHAIN || s2dq_axis_at(box, count).dst != size + lanes) return NULL;
        count++;
    }
    if (count == 0) return NULL;
    for (int k = 0; k < 2; k++)
        if (kept[k].count == count && s2dq_avx2_same_pattern(&kept[k], box->axes, box->width, lanes))
            return kept[k].chain ? &kept[k] : NULL;
    s2dq_avx2_pattern *p = &kept[oldest];
    oldest = !oldest;
    p->count = count;
    p->width = box->width;
    p->lanes = lanes;
    for (int a = 0; a < count; a++) p->axes[a] = box->axes[a];
    for (p->chain = count; p->chain; p->chain = lanes ? 0 : p->chain - 1) {
        p->kind = lanes ? 0 : s2dq_avx2_plan_cycle(&p->cycle, box->axes, p->chain, box->width);
        if (p->kind || s2dq_avx2_plan_program(&p->program, box->axes, p->chain, box->width, lanes)) break;
    }
    return p->chain ? p : NULL;
}

/* A pattern with `lanes` bytes of the element at `fill` behind each repeat, or none. */
static bool s2dq_avx2_try_pattern(uint8_t *dst, const uint8_t *src, const s2dq_box *whole, int64_t least, int64_t lanes,
                                  const uint8_t *fill, int64_t element)
{
    const s2dq_avx2_pattern *const p = s2dq_avx2_pattern_of(whole, lanes);
    s2dq_box box;
    s2dq_position at;
    uint8_t filled[32] = {0};
    if (!p || (!p->kind && s2dq_avx2_yield(&p->program) < least)) return false;
    const bool far = s2dq_avx2_bytes(whole) >= S2DQ_AVX2_FAR;
    box.width = whole->width;
    box.count = whole->count - p->chain;
    for (int a = 0; a < box.count; a++) box.axes[a] = whole->axes[a + p->chain];
    s2dq_order(&box, whole->axes[p->chain - 1].dst * whole->axes[p->chain - 1].extent);
    const s2dq_avx2_program_kernel kernel =
        p->kind ? NULL : s2dq_avx2_program_for(p->program.body.count, p->program.body.same);
    const s2dq_axis rows = s2dq_axis_at(&box, 0);
    for (int64_t i = 0; lanes && i < p->program.size; i++)
        if (i % p->program.unit >= p->program.run) filled[i] = fill[(i % p->program.unit - p->program.run) % element];
    s2dq_start(&at, &box, 1);
    do {
        if (p->kind == 2) s2dq_avx2_cycle_merge(dst + at.dst, src + at.src, &p->cycle, rows, far);
        else if (p->kind == 1) s2dq_avx2_cycle_split(dst + at.dst, src + at.src, &p->cycle, rows);
        else kernel(dst + at.dst, src + at.src, &p->program, rows, lanes ? filled : NULL);
    } while (s2dq_next(&at, &box, 1));
    return true;
}

/* Blocks of four 12-byte granules: a loop of four dense in one side, and a longer one dense in the other. */
static bool s2dq_avx2_try_12(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    s2dq_box box;
    s2dq_position at;
    if (whole->width != 12 || whole->count < 2 || whole->axes[0].dst != 12) return false;
    const s2dq_axis first = whole->axes[0];
    for (int a = 1; a < whole->count; a++) {
        const s2dq_axis other = whole->axes[a];
        const bool merge = first.extent == 4 && other.extent >= 3 && other.dst >= 48;
        if (other.src != 12 || !(merge || (other.extent == 4 && first.extent >= 3 && first.src >= 48))) continue;
        s2dq_assign(&box, whole);
        s2dq_drop(&box, a);
        s2dq_drop(&box, 0);
        s2dq_order(&box, 48 * (merge ? other.extent : first.extent));
        s2dq_start(&at, &box, 1);
        do
            s2dq_avx2_blocks_12(dst + at.dst, src + at.src, merge ? first.src : other.dst,
                                merge ? other.dst : first.src, merge ? other.extent : first.extent,
                                s2dq_axis_at(&box, 0), merge);
        while (s2dq_next(&at, &box, 1));
        return true;
    }
    return false;
}

/* The loop of so many turns, or of any number where that is 0, which steps so far on the side of the runs, and on that
 * of the words, where these are not 0; or NULL. */
static const s2dq_axis *s2dq_avx2_loop_of(const s2dq_box *box, bool merge, int64_t extent, int64_t runs, int64_t words)
{
    for (const s2dq_axis *axis = box->axes; axis < box->axes + box->count; axis++) {
        const int64_t run = merge ? axis->dst : axis->src, word = merge ? axis->src : axis->dst;
        if ((!extent || axis->extent == extent) && (!runs || run == runs) && (!words || word == words)) return axis;
    }
    return NULL;
}

/* Runs of so many RGB pixels to words of one channel, or back: words of the same row of a plane follow each other; or
 * those of a block of 4 x 4, whose rows are the runs, where `blocks` says so. (No loop can be two of those looked for:
 * their steps differ.) */
static bool s2dq_avx2_try_runs_of(uint8_t *dst, const uint8_t *src, const s2dq_box *whole, int pixels, bool merge,
                                  bool blocks)
{
    const int n = 16 / S2DQ_AVX2_PLACE(pixels), streams = 12 / S2DQ_AVX2_PLACE(pixels);
    const int64_t word = blocks ? 48 : pixels, turns = blocks ? 2 : 2 * n; /* bytes of a turn; turns of a step */
    const bool tall = blocks || pixels == 2;
    const s2dq_axis *const pixel = s2dq_avx2_loop_of(whole, merge, pixels, 3, 1);
    const s2dq_axis *const channel = s2dq_avx2_loop_of(whole, merge, 3, 1, 0);
    const s2dq_axis *const row = !tall    ? NULL
                                 : blocks ? s2dq_avx2_loop_of(whole, merge, 4, 0, 4)
                                          : s2dq_avx2_loop_of(whole, merge, 2, 6, 0);
    const s2dq_axis *const along = s2dq_avx2_loop_of(whole, merge, 0, tall ? 12 : 0, word);
    s2dq_avx2_runs job;
    s2dq_box box;
    s2dq_position at;
    if (!pixel || !channel || !along || (tall && !row) || along->extent < turns) return false;
    const int64_t size = S2DQ_AVX2_RUN_BYTES(pixels), step = merge ? along->dst : along->src;
    const int64_t other_row = row ? (merge ? row->src : row->dst) : 0;
    if (step < size || step > S2DQ_AVX2_NEAR) return false;
    for (int k = 0; k < streams; k++)
        job.stream[k] = k % 3 * (merge ? channel->src : channel->dst) + k / 3 * other_row;
    job.run = blocks ? (merge ? row->dst : row->src) : step;
    job.runs_on = blocks ? step : n * step;
    job.on = blocks ? word : n * word;
    job.steps = (along->extent + turns - 1) / turns;
    job.free = (along->extent - (pixels == 3 ? 2 : 1)) / turns; /* a byte more than a word of 3 */
    job.next_runs = turns * step;
    job.next = turns * word;
    job.last_runs = (along->extent - turns) * step;
    job.last = (along->extent - turns) * word;
    box.width = 1;
    box.count = 0;
    for (const s2dq_axis *axis = whole->axes; axis < whole->axes + whole->count; axis++)
        if (axis != pixel && axis != channel && axis != row && axis != along) box.axes[box.count++] = *axis;
    s2dq_order(&box, size * streams / 3 * along->extent);
    job.rows = s2dq_axis_at(&box, 0);
    /* What is written behind a run is written again where runs follow each other, or the runs of the next row do. */
    const bool filled = merge && step != size && job.rows.dst == size && step == size * job.rows.extent;
    const s2dq_avx2_runs_kernel kernel = s2dq_avx2_runs_kernels[pixels - 2];
    s2dq_start(&at, &box, 1);
    do {
        uint8_t *const d = dst + at.dst;
        const uint8_t *const s = src + at.src;
        if (!filled) {
            kernel(d, s, &job, merge, step != size);
        } else {
            const int64_t rows = job.rows.extent - 1;
            job.rows.extent = rows;
            kernel(d, s, &job, merge, false);
            job.rows.extent = 1;
            kernel(d + rows * job.rows.dst, s + rows * job.rows.src, &job, merge, true);
            job.rows.extent = rows + 1;
        }
    } while (s2dq_next(&at, &box, 1));
    return true;
}

static bool s2dq_avx2_try_runs(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    if (whole->width != 1 || whole->count < 3 || whole->axes[0].dst != 1) return false;
    const bool merge = whole->axes[0].src != 3; /* the pixels of a row */
    if (s2dq_avx2_try_runs_of(dst, src, whole, 4, merge, true)) return true;
    for (int pixels = 2; pixels <= 4; pixels++)
        if (s2dq_avx2_try_runs_of(dst, src, whole, pixels, merge, false)) return true;
    return false;
}

/* Adds the places of a further loop to those of `known` rows or columns. */
static int64_t s2dq_avx2_places(int64_t *at, int64_t known, int64_t extent, int64_t step)
{
    for (int64_t k = known; k < known * extent; k++) at[k] = at[k - known] + step;
    return known * extent;
}

/* A transpose of rows that several loops make, dense in the result, or of columns that several make, dense in the
 * source. Requires granules of less than 16 bytes, as the next one. */
static bool s2dq_avx2_try_scattered(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    const int64_t w = whole->width;
    s2dq_avx2_plane plane;
    s2dq_box box;
    s2dq_position at;
    s2dq_axis down = s2dq_once, along = s2dq_once; /* loops of which the tables hold a part */
    int64_t rows = 1, columns = 1;                       /* turns of these that they hold */
    int loops[2] = {0, 0};
    if ((w & (w - 1) && w != 3) || whole->axes[0].dst != w) return false;
    s2dq_assign(&box, whole);
    plane.rows = plane.columns = 1;
    plane.row_at[0] = plane.column_at[0] = 0;
    for (int a = 0; a < box.count;) { /* sorted by their steps in the result */
        s2dq_axis axis = box.axes[a];
        if (axis.dst != plane.rows * w || axis.src == w || down.extent > 1) break;
        if (axis.extent > S2DQ_AVX2_SCATTERED / plane.rows) {
            if (plane.rows * w >= 32) break;
            down = axis;
            axis.extent = rows = S2DQ_AVX2_SCATTERED / plane.rows;
        }
        loops[0]++;
        plane.rows = s2dq_avx2_places(plane.row_at, plane.rows, axis.extent, axis.src);
        s2dq_drop(&box, a);
    }
    for (int a = 0; a < box.count;) {
        s2dq_axis axis = box.axes[a];
        const int64_t room = S2DQ_AVX2_SCATTERED / plane.columns;
        if (axis.src != plane.columns * w || along.extent > 1 || (axis.extent > room && plane.columns * w >= 32)) {
            a++;
            continue;
        }
        if (axis.extent > room) {
            along = axis;
            axis.extent = columns = room;
        }
        loops[1]++;
        plane.columns = s2dq_avx2_places(plane.column_at, plane.columns, axis.extent, axis.dst);
        s2dq_drop(&box, a);
        a = 0;
    }
    const int64_t high = plane.rows * w, wide = plane.columns * w;
    if (w == 3 ? (plane.rows < 8 || plane.columns < 6) && (plane.rows < 4 || plane.columns < 8)
               : loops[0] + loops[1] < 3 || s2dq_min(high, wide) < 8 || (high < 16 && wide < 16))
        return false;
    plane.lines = s2dq_avx2_crowded(plane.row_at, plane.rows, S2DQ_AVX2_WAYS);
    s2dq_order(&box, plane.rows * plane.columns * w);
    s2dq_start(&at, &box, 0);
    do {
        for (int64_t i = 0; i < down.extent; i += rows) {
            const int64_t row = s2dq_min(i, down.extent - rows);
            for (int64_t j = 0; j < along.extent; j += columns) {
                const int64_t column = s2dq_min(j, along.extent - columns);
                s2dq_avx2_scattered(dst + at.dst + row * down.dst + column * along.dst,
                                    src + at.src + row * down.src + column * along.src, &plane, w);
            }
        }
    } while (s2dq_next(&at, &box, 0));
    return true;
}

/* Requires `least` bytes in either direction. */
static bool s2dq_avx2_try_transpose(uint8_t *dst, const uint8_t *src, const s2dq_box *whole, int64_t least)
{
    const int64_t w = whole->width;
    s2dq_box box;
    s2dq_position at;
    int column = 1;
    s2dq_assign(&box, whole);
    if ((w & (w - 1)) || box.count < 2 || box.axes[0].dst != w) return false;
    while (column < box.count && box.axes[column].src != w) column++;
    if (column == box.count) return false;
    const s2dq_axis rows = box.axes[0], columns = box.axes[column];
    const int64_t high = rows.extent * w, wide = columns.extent * w;
    if (s2dq_min(high, wide) < least || !s2dq_avx2_has_tile(high, wide)) return false;
    s2dq_drop(&box, column);
    s2dq_drop(&box, 0);
    s2dq_order(&box, rows.extent * columns.extent * w);
    s2dq_start(&at, &box, 0);
    const bool out = high >= 64 && wide >= 16 && s2dq_avx2_collide(columns.extent, columns.dst, S2DQ_AVX2_WAYS);
    const bool in = wide >= 64 && high >= 16 && s2dq_avx2_collide(rows.extent, rows.src, S2DQ_AVX2_WAYS);
    const bool far = s2dq_avx2_bytes(whole) >= S2DQ_AVX2_FAR;
    /* Lines of one side that collide are best used up at once, where all those of a block fit. */
    const int64_t step = in ? rows.src : columns.dst;
    const bool fits = w > 1 && in != out && !s2dq_avx2_collide(S2DQ_LINE / w, step, S2DQ_AVX2_ALL);
    const int lines = in ? S2DQ_AVX2_SOURCE : out ? S2DQ_AVX2_RESULT : S2DQ_AVX2_NEITHER;
    do {
        if (lines && !fits) s2dq_avx2_staged(dst + at.dst, src + at.src, rows, columns, w, out);
        else s2dq_avx2_transpose(dst + at.dst, src + at.src, rows, columns, w, far, lines);
    } while (s2dq_next(&at, &box, 0));
    return true;
}

static void s2dq_avx2_run_granules(uint8_t *dst, const uint8_t *src, s2dq_box *box);

static bool s2dq_avx2_try_fill(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    const int64_t w = whole->width;
    uint8_t pattern[32];
    s2dq_box box;
    s2dq_position at;
    s2dq_assign(&box, whole);
    for (int a = 0; a < box.count; a++)
        if (box.axes[a].src) return false;
    if ((w & (w - 1)) || w > 32) return false;
    if (box.axes[0].dst == w) {
        box.width *= box.axes[0].extent;
        s2dq_drop(&box, 0);
    }
    for (int64_t i = 0; i < 32; i += w) memcpy(pattern + i, src, (size_t)w);
    if (box.width < 32) {
        s2dq_avx2_run_granules(dst, pattern, &box);
        return true;
    }
    s2dq_start(&at, &box, 2);
    do s2dq_avx2_fill(dst + at.dst, pattern, box.width, s2dq_axis_at(&box, 1), s2dq_axis_at(&box, 0));
    while (s2dq_next(&at, &box, 2));
    return true;
}

/* Granules of 9 to 31 bytes where vectors may run past them: the next ones in the result are written later, and the
 * bytes between those of the source are near. */
static bool s2dq_avx2_try_dense(uint8_t *dst, const uint8_t *src, const s2dq_box *box)
{
    const int64_t w = box->width;
    const s2dq_axis inner = s2dq_axis_at(box, 0), outer = s2dq_axis_at(box, 1);
    s2dq_position at;
    if (w <= 8 || w >= 32 || inner.dst != w) return false;
    const int64_t past = (w <= 16 ? 16 : 32) - w; /* what is read too much must lie before the end of the next one */
    const int joined =
        outer.dst == w * inner.extent && outer.src >= past && outer.src > 0 && outer.src <= S2DQ_AVX2_NEAR;
    if (!joined && (inner.src < past || inner.src <= 0 || inner.src > S2DQ_AVX2_NEAR || inner.extent < 4)) return false;
    s2dq_start(&at, box, 2);
    do s2dq_avx2_dense(dst + at.dst, src + at.src, outer, inner, w, !joined);
    while (s2dq_next(&at, box, 2));
    return true;
}

/* Short loops of small granules around which there are more, in which it pays to look for where these are. */
static bool s2dq_avx2_try_listed(uint8_t *dst, const uint8_t *src, const s2dq_box *box)
{
    s2dq_avx2_list list;
    s2dq_position at;
    int64_t all = 1;
    int loops = 0;
    if (box->width > 16 || box->count < 3 || box->axes[0].extent * box->axes[1].extent > S2DQ_AVX2_FEW) return false;
    for (int a = 0; a < box->count; a++) all *= box->axes[a].extent;
    if (all < 4 * S2DQ_AVX2_LISTED) return false;
    list.from[0] = list.to[0] = 0;
    for (list.count = 1; loops < box->count - 1; loops++) {
        const s2dq_axis axis = box->axes[loops];
        if (list.count * axis.extent > S2DQ_AVX2_LISTED) break;
        s2dq_avx2_places(list.to, list.count, axis.extent, axis.dst);
        list.count = s2dq_avx2_places(list.from, list.count, axis.extent, axis.src);
    }
    s2dq_start(&at, box, loops + 1);
    do s2dq_avx2_listed(dst + at.dst, src + at.src, &list, s2dq_axis_at(box, loops), box->width);
    while (s2dq_next(&at, box, loops + 1));
    return true;
}

static void s2dq_avx2_run_granules(uint8_t *dst, const uint8_t *src, s2dq_box *box)
{
    s2dq_position at;
    s2dq_order(box, box->width);
    if (s2dq_avx2_try_dense(dst, src, box)) return;
    if (s2dq_avx2_try_listed(dst, src, box)) return;
    const bool far = s2dq_avx2_bytes(box) >= S2DQ_AVX2_FAR && box->width >= 32 && box->width <= 128;
    const bool whole = box->width % 32 == 0 && box->width <= 128;
    s2dq_start(&at, box, 2);
    do {
        const s2dq_axis outer = s2dq_axis_at(box, 1), inner = s2dq_axis_at(box, 0);
        const int64_t grows = inner.dst == box->width ? inner.extent : outer.dst == box->width ? outer.extent : 1;
        if (whole && grows > 1 && (uintptr_t)(dst + at.dst) % 32 == 16 && (inner.dst | outer.dst) % 32 == 0)
            s2dq_avx2_halved(dst + at.dst, src + at.src, outer, inner, box->width, far);
        else if (far) s2dq_avx2_granules_far(dst + at.dst, src + at.src, outer, inner, box->width);
        else s2dq_avx2_granules(dst + at.dst, src + at.src, outer, inner, box->width);
    } while (s2dq_next(&at, box, 2));
}

static void s2dq_avx2_run_by(uint8_t *dst, const uint8_t *src, s2dq_box *box, bool halfway);

#define S2DQ_AVX2_HALFWAY 24576 /* bytes of a scratch between two moves: it stays in the first cache */

/* Two moves through a scratch, where one alone has no kernel: an element of three digits whose order is reversed. The
 * first move takes one digit away from between the other two, which then make a wider granule.
 *
 * split   the source has  .. j i,  and the result  .. j  with i elsewhere: i goes first to the outside
 * merge   the result has  .. j i,  and the source  .. j  with i elsewhere: i goes first to the inside */
static bool s2dq_avx2_try_halfway(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    _Alignas(S2DQ_LINE) uint8_t scratch[S2DQ_AVX2_HALFWAY];
    const int64_t w = whole->width;
    s2dq_axis first[S2DQ_BOX_AXES], second[S2DQ_BOX_AXES];
    s2dq_box box, part;
    s2dq_position at;
    int count = 0, moved = -1;
    bool split = false;
    if (whole->count < 4 || whole->axes[0].dst != w) return false;
    const s2dq_axis inner = whole->axes[0];
    for (int a = 1; a < whole->count; a++) {
        const s2dq_axis axis = whole->axes[a];
        if (axis.src != w) continue;
        if (inner.src == w * axis.extent && s2dq_avx2_streams_for(false, axis.extent, w)) {
            moved = a;
            split = true;
        } else if (axis.dst == w * inner.extent && s2dq_avx2_streams_for(true, inner.extent, w)) {
            moved = 0;
        }
    }
    if (moved < 0) return false;
    /* The scratch has the loops in the order of the source, but for the one moved. What does not fit turns outside. */
    const s2dq_axis digit = whole->axes[moved];
    s2dq_assign(&box, whole);
    s2dq_drop(&box, moved);
    int64_t size = w, bytes = w * digit.extent;
    for (bool whole_loops = true; whole_loops;) {
        int nearest = -1;
        for (int a = 0; a < box.count; a++)
            if (box.axes[a].src > 0 && (nearest < 0 || box.axes[a].src < box.axes[nearest].src)) nearest = a;
        if (nearest < 0) break;
        s2dq_axis axis = box.axes[nearest];
        whole_loops = bytes * axis.extent <= S2DQ_AVX2_HALFWAY;
        if (whole_loops) {
            s2dq_drop(&box, nearest);
        } else { /* in pieces that are all alike */
            int64_t fit = S2DQ_AVX2_HALFWAY / bytes;
            while (fit > 1 && axis.extent % fit) fit--;
            if (fit < 4) break;
            box.axes[nearest].extent = axis.extent / fit;
            box.axes[nearest].src *= fit;
            box.axes[nearest].dst *= fit;
            axis.extent = fit;
        }
        first[count] = axis;
        first[count].dst = split ? size : size * digit.extent;
        second[count] = axis;
        second[count].src = first[count].dst;
        count++;
        size *= axis.extent;
        bytes *= axis.extent;
    }
    if (count < 3 || bytes < 256) return false;
    first[count] = second[count] = digit;
    first[count].dst = second[count].src = split ? size : w;
    count++;
    s2dq_start(&at, &box, 0);
    do {
        part.width = w;
        s2dq_simplify(&part, first, count);
        s2dq_avx2_run_by(scratch, src + at.src, &part, false);
        part.width = w; /* the first move may have joined granules, of a source that overlaps itself */
        s2dq_simplify(&part, second, count);
        s2dq_avx2_run_by(dst + at.dst, scratch, &part, false);
    } while (s2dq_next(&at, &box, 0));
    return true;
}

/* A box of sorted loops, by the kernel that suits its steps, or by two of them if `halfway` says so. */
static void s2dq_avx2_run_by(uint8_t *dst, const uint8_t *src, s2dq_box *box, bool halfway)
{
    if (box->count && s2dq_avx2_try_fill(dst, src, box)) return;
    if (box->count && box->width <= 16) {
        if (s2dq_avx2_try_merge(dst, src, box, 16)) return;
        if (s2dq_avx2_try_split(dst, src, box, 16)) return;
        if (s2dq_avx2_try_12(dst, src, box)) return;
        if (s2dq_avx2_try_runs(dst, src, box)) return;
    }
    if (box->count && box->width < 16) {
        /* Windows of a pattern would be half empty; but where rows of the result are short, it writes them in order. */
        if (box->width == 8 && box->axes[0].extent >= 16 && s2dq_avx2_try_transpose(dst, src, box, 32)) return;
        if (s2dq_avx2_try_pattern(dst, src, box, 6, 0, NULL, 1)) return;
        if (halfway && s2dq_avx2_try_halfway(dst, src, box)) return;
        if (s2dq_avx2_try_merge(dst, src, box, 4)) return;
        if (s2dq_avx2_try_split(dst, src, box, 4)) return;
        if (s2dq_avx2_try_scattered(dst, src, box)) return;
        if (s2dq_avx2_try_transpose(dst, src, box, 4)) return;
        if (s2dq_avx2_try_pattern(dst, src, box, 4, 0, NULL, 1)) return;
    }
    s2dq_avx2_run_granules(dst, src, box);
}

static void s2dq_avx2_run(uint8_t *dst, const uint8_t *src, s2dq_box *box)
{
    s2dq_avx2_run_by(dst, src, box, true);
}

/* Move the granules of a box, as s2dq_copy does.
 * IN: src; axes[0 .. count), outermost first; width, bytes of a granule.
 * OUT: dst, exactly the granules named by the loops.
 * Requires: no overlap of src and dst, distinct places in dst, extents >= 1, a CPU with AVX2. */
static void s2dq_avx2_copy(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    s2dq_box box;
    if (count > S2DQ_BOX_AXES) {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_avx2_copy(dst + i * axes->dst, src + i * axes->src, axes + 1, count - 1, width);
        return;
    }
    box.width = width;
    s2dq_simplify(&box, axes, count);
    s2dq_avx2_run(dst, src, &box);
}

/* The same, and fill the spare lanes behind each run of bytes that the granules make without a gap.
 * IN: as above; lanes, bytes of them behind each run; fill, their element, of `element` bytes.
 * OUT: dst, exactly the granules and the lanes.
 * Requires: as above; element is 1, 2, 4 .. and divides lanes; loops outside of a run step over its lanes too, and come
 * first where there are more loops than S2DQ_BOX_AXES. */
static void s2dq_avx2_copy_lanes(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width,
                                 int64_t lanes, const uint8_t *fill, int64_t element)
{
    s2dq_box box, spare;
    if (count > S2DQ_BOX_AXES) {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_avx2_copy_lanes(dst + i * axes->dst, src + i * axes->src, axes + 1, count - 1, width, lanes, fill,
                                 element);
        return;
    }
    box.width = width;
    s2dq_simplify(&box, axes, count);
    if (width < 32 && s2dq_avx2_try_pattern(dst, src, &box, 4, lanes, fill, element)) return;
    const int64_t start = s2dq_lanes_of(&spare, &box, lanes, element);
    s2dq_avx2_run(dst, src, &box);
    s2dq_avx2_run(dst + start, fill, &spare);
}

#else

static void s2dq_avx2_copy(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    s2dq_copy(dst, src, axes, count, width);
}

static void s2dq_avx2_copy_lanes(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width,
                                 int64_t lanes, const uint8_t *fill, int64_t element)
{
    s2dq_copy_lanes(dst, src, axes, count, width, lanes, fill, element);
}

#endif
#endif
