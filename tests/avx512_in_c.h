/* AVX-512 by plain C, for processors without it: `cc -O1 -mavx2 -mbmi -mbmi2 -include tests/avx512_in_c.h ...`, before
 * any other header. What kernels take of it is written here after Intel's description of each instruction; the types
 * are the compiler's. The compiler's own versions go by other names, no function asks for instructions which `-m` does
 * not allow, and the processor is said to have them all.
 */
#ifndef S2DQ_AVX512_IN_C_H
#define S2DQ_AVX512_IN_C_H

#define _mm256_mask_storeu_epi8 its_mask_storeu_32
#define _mm_mask_storeu_epi8 its_mask_storeu_16
#define _mm512_mask_storeu_epi8 its_mask_storeu_64
#define _mm512_maskz_loadu_epi8 its_maskz_loadu
#define _mm512_loadu_si512 its_loadu
#define _mm512_storeu_si512 its_storeu
#define _mm512_store_si512 its_store
#define _mm512_stream_si512 its_stream
#define _mm512_setzero_si512 its_setzero
#define _mm512_set1_epi8 its_set1_8
#define _mm512_set1_epi16 its_set1_16
#define _mm512_set1_epi64 its_set1_64
#define _mm512_setr_epi64 its_setr_64
#define _mm512_set4_epi32 its_set4_32
#define _mm512_castsi512_si128 its_cast_128
#define _mm512_castsi512_si256 its_cast_256
#define _mm512_castsi256_si512 its_cast_512
#define _mm512_extracti32x4_epi32 its_extract_128
#define _mm512_extracti64x4_epi64 its_extract_256
#define _mm512_inserti64x4 its_insert_256
#define _mm512_and_si512 its_and
#define _mm512_or_si512 its_or
#define _mm512_xor_si512 its_xor
#define _mm512_ternarylogic_epi64 its_ternarylogic
#define _mm512_add_epi8 its_add_8
#define _mm512_add_epi16 its_add_16
#define _mm512_sub_epi8 its_sub_8
#define _mm512_adds_epu16 its_adds_16
#define _mm512_subs_epu16 its_subs_16
#define _mm512_mulhi_epu16 its_mulhi_16
#define _mm512_slli_epi16 its_slli_16
#define _mm512_sllv_epi16 its_sllv_16
#define _mm512_srlv_epi16 its_srlv_16
#define _mm512_srli_epi64 its_srli_64
#define _mm512_movepi8_mask its_movepi8_mask
#define _mm512_test_epi8_mask its_test_mask
#define _mm512_mask_mov_epi8 its_mask_mov
#define _mm512_mask_blend_epi8 its_mask_blend
#define _mm512_mask_shuffle_epi8 its_mask_shuffle
#define _mm512_permutexvar_epi8 its_permutexvar
#define _mm512_mask_permutexvar_epi8 its_mask_permutexvar
#define _mm512_permutex2var_epi8 its_permutex2var_8
#define _mm512_permutex2var_epi64 its_permutex2var_64
#define _mm512_unpacklo_epi8 its_unpacklo_8
#define _mm512_unpackhi_epi8 its_unpackhi_8
#define _mm512_unpacklo_epi16 its_unpacklo_16
#define _mm512_unpackhi_epi16 its_unpackhi_16
#define _mm512_unpacklo_epi32 its_unpacklo_32
#define _mm512_unpackhi_epi32 its_unpackhi_32
#define _mm512_unpacklo_epi64 its_unpacklo_64
#define _mm512_unpackhi_epi64 its_unpackhi_64

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#undef _mm256_mask_storeu_epi8
#undef _mm_mask_storeu_epi8
#undef _mm512_mask_storeu_epi8
#undef _mm512_maskz_loadu_epi8
#undef _mm512_loadu_si512
#undef _mm512_storeu_si512
#undef _mm512_store_si512
#undef _mm512_stream_si512
#undef _mm512_setzero_si512
#undef _mm512_set1_epi8
#undef _mm512_set1_epi16
#undef _mm512_set1_epi64
#undef _mm512_set4_epi32
#undef _mm512_setr_epi64
#undef _mm512_castsi512_si128
#undef _mm512_castsi512_si256
#undef _mm512_castsi256_si512
#undef _mm512_extracti32x4_epi32
#undef _mm512_extracti64x4_epi64
#undef _mm512_inserti64x4
#undef _mm512_and_si512
#undef _mm512_or_si512
#undef _mm512_xor_si512
#undef _mm512_ternarylogic_epi64
#undef _mm512_add_epi16
#undef _mm512_add_epi8
#undef _mm512_sub_epi8
#undef _mm512_adds_epu16
#undef _mm512_subs_epu16
#undef _mm512_mulhi_epu16
#undef _mm512_slli_epi16
#undef _mm512_sllv_epi16
#undef _mm512_srlv_epi16
#undef _mm512_srli_epi64
#undef _mm512_test_epi8_mask
#undef _mm512_movepi8_mask
#undef _mm512_mask_mov_epi8
#undef _mm512_mask_blend_epi8
#undef _mm512_mask_shuffle_epi8
#undef _mm512_permutexvar_epi8
#undef _mm512_mask_permutexvar_epi8
#undef _mm512_permutex2var_epi8
#undef _mm512_permutex2var_epi64
#undef _mm512_unpacklo_epi8
#undef _mm512_unpackhi_epi8
#undef _mm512_unpacklo_epi16
#undef _mm512_unpackhi_epi16
#undef _mm512_unpacklo_epi32
#undef _mm512_unpackhi_epi32
#undef _mm512_unpacklo_epi64
#undef _mm512_unpackhi_epi64

/* Calls: in line, they took the compiler twice as long. */
#define IN_C static __attribute__((unused, noinline))
#define IN_C_EACH(N) for (int i = 0; i < (N); i++)

typedef union {
    __m512i all;
    __m256i half[2];
    __m128i quarter[4];
    uint8_t u8[64];
    uint16_t u16[32];
    uint32_t u32[16];
    uint64_t u64[8];
} in_c_register;

/* ------------------------------------------------------------------------------------------------------- memory */

/* Bytes that a mask leaves out are not touched, as there. */
IN_C void in_c_mask_store(void *place, uint64_t mask, const uint8_t *value, int size)
{
    IN_C_EACH(size) if (mask >> i & 1) ((uint8_t *)place)[i] = value[i];
}

IN_C void _mm512_mask_storeu_epi8(void *place, __mmask64 mask, __m512i value)
{
    const in_c_register v = {value};
    in_c_mask_store(place, mask, v.u8, 64);
}

IN_C void _mm256_mask_storeu_epi8(void *place, __mmask32 mask, __m256i value)
{
    const in_c_register v = {.half = {value}};
    in_c_mask_store(place, mask, v.u8, 32);
}

IN_C void _mm_mask_storeu_epi8(void *place, __mmask16 mask, __m128i value)
{
    const in_c_register v = {.quarter = {value}};
    in_c_mask_store(place, mask, v.u8, 16);
}

IN_C __m512i _mm512_maskz_loadu_epi8(__mmask64 mask, const void *place)
{
    in_c_register v;
    IN_C_EACH(64) v.u8[i] = mask >> i & 1 ? ((const uint8_t *)place)[i] : 0;
    return v.all;
}

IN_C __m512i _mm512_loadu_si512(const void *place)
{
    in_c_register v;
    memcpy(&v, place, 64);
    return v.all;
}

IN_C void _mm512_storeu_si512(void *place, __m512i value)
{
    memcpy(place, &value, 64);
}

/* These two end the program where the place is no line's, as there. */
IN_C void _mm512_store_si512(void *place, __m512i value)
{
    if ((uintptr_t)place % 64) __builtin_trap();
    memcpy(place, &value, 64);
}

IN_C void _mm512_stream_si512(void *place, __m512i value)
{
    _mm512_store_si512(place, value);
}

/* ---------------------------------------------------------------------------------------------- constants, parts */

#define IN_C_SET(NAME, TYPE, PART, N)                                                                           \
    IN_C __m512i NAME(TYPE value)                                                                               \
    {                                                                                                           \
        in_c_register v;                                                                                        \
        IN_C_EACH(N) v.PART[i] = (__typeof__(v.PART[0]))value;                                                  \
        return v.all;                                                                                           \
    }
IN_C_SET(_mm512_set1_epi8, char, u8, 64)
IN_C_SET(_mm512_set1_epi16, short, u16, 32)
IN_C_SET(_mm512_set1_epi64, long long, u64, 8)

IN_C __m512i _mm512_setzero_si512(void)
{
    return _mm512_set1_epi8(0);
}

IN_C __m512i _mm512_setr_epi64(long long a, long long b, long long c, long long d, long long e, long long f,
                               long long g, long long h)
{
    const in_c_register v = {.u64 = {(uint64_t)a, (uint64_t)b, (uint64_t)c, (uint64_t)d, (uint64_t)e, (uint64_t)f,
                                     (uint64_t)g, (uint64_t)h}};
    return v.all;
}

/* The last argument comes first in memory. */
IN_C __m512i _mm512_set4_epi32(int d, int c, int b, int a)
{
    const int part[4] = {a, b, c, d};
    in_c_register v;
    IN_C_EACH(16) v.u32[i] = (uint32_t)part[i % 4];
    return v.all;
}

IN_C __m128i _mm512_extracti32x4_epi32(__m512i value, int part)
{
    const in_c_register v = {value};
    return v.quarter[part];
}

IN_C __m256i _mm512_extracti64x4_epi64(__m512i value, int part)
{
    const in_c_register v = {value};
    return v.half[part];
}

IN_C __m128i _mm512_castsi512_si128(__m512i value)
{
    return _mm512_extracti32x4_epi32(value, 0);
}

IN_C __m256i _mm512_castsi512_si256(__m512i value)
{
    return _mm512_extracti64x4_epi64(value, 0);
}

/* The upper half may be anything there: it is something here. */
IN_C __m512i _mm512_castsi256_si512(__m256i value)
{
    in_c_register v = {_mm512_set1_epi8(0x5A)};
    v.half[0] = value;
    return v.all;
}

IN_C __m512i _mm512_inserti64x4(__m512i value, __m256i part, int at)
{
    in_c_register v = {value};
    v.half[at] = part;
    return v.all;
}

/* ----------------------------------------------------------------------------------------------- bits and numbers */

#define IN_C_OF_TWO(NAME, PART, N, VALUE)                                                                       \
    IN_C __m512i NAME(__m512i first, __m512i second)                                                            \
    {                                                                                                           \
        const in_c_register a = {first}, b = {second};                                                          \
        in_c_register v;                                                                                        \
        IN_C_EACH(N) v.PART[i] = (__typeof__(v.PART[0]))(VALUE);                                                \
        return v.all;                                                                                           \
    }
IN_C_OF_TWO(_mm512_and_si512, u64, 8, a.u64[i] & b.u64[i])
IN_C_OF_TWO(_mm512_or_si512, u64, 8, a.u64[i] | b.u64[i])
IN_C_OF_TWO(_mm512_xor_si512, u64, 8, a.u64[i] ^ b.u64[i])
IN_C_OF_TWO(_mm512_add_epi8, u8, 64, a.u8[i] + b.u8[i])
IN_C_OF_TWO(_mm512_add_epi16, u16, 32, a.u16[i] + b.u16[i])
IN_C_OF_TWO(_mm512_sub_epi8, u8, 64, a.u8[i] - b.u8[i])
IN_C_OF_TWO(_mm512_adds_epu16, u16, 32, a.u16[i] + b.u16[i] > 0xFFFF ? 0xFFFF : a.u16[i] + b.u16[i])
IN_C_OF_TWO(_mm512_subs_epu16, u16, 32, a.u16[i] < b.u16[i] ? 0 : a.u16[i] - b.u16[i])
IN_C_OF_TWO(_mm512_mulhi_epu16, u16, 32, (uint32_t)a.u16[i] * b.u16[i] >> 16)
IN_C_OF_TWO(_mm512_sllv_epi16, u16, 32, b.u16[i] > 15 ? 0 : a.u16[i] << b.u16[i])
IN_C_OF_TWO(_mm512_srlv_epi16, u16, 32, b.u16[i] > 15 ? 0 : a.u16[i] >> b.u16[i])

IN_C __m512i _mm512_srli_epi64(__m512i value, unsigned count)
{
    const in_c_register a = {value};
    in_c_register v;
    IN_C_EACH(8) v.u64[i] = count > 63 ? 0 : a.u64[i] >> count;
    return v.all;
}

IN_C __m512i _mm512_slli_epi16(__m512i value, unsigned count)
{
    return _mm512_sllv_epi16(value, _mm512_set1_epi16((short)count));
}

IN_C __m512i _mm512_ternarylogic_epi64(__m512i first, __m512i second, __m512i third, int table)
{
    const in_c_register a = {first}, b = {second}, c = {third};
    in_c_register v = {_mm512_setzero_si512()};
    IN_C_EACH(512)
    {
        const int word = i / 64, bit = i % 64;
        const int row = (int)((a.u64[word] >> bit & 1) << 2 | (b.u64[word] >> bit & 1) << 1 | (c.u64[word] >> bit & 1));
        v.u64[word] |= (uint64_t)(table >> row & 1) << bit;
    }
    return v.all;
}

IN_C __mmask64 _mm512_movepi8_mask(__m512i value)
{
    const in_c_register v = {value};
    uint64_t mask = 0;
    IN_C_EACH(64) mask |= (uint64_t)(v.u8[i] >> 7) << i;
    return mask;
}

IN_C __mmask64 _mm512_test_epi8_mask(__m512i first, __m512i second)
{
    const in_c_register a = {first}, b = {second};
    uint64_t mask = 0;
    IN_C_EACH(64) mask |= (uint64_t)((a.u8[i] & b.u8[i]) != 0) << i;
    return mask;
}

IN_C __m512i _mm512_mask_mov_epi8(__m512i otherwise, __mmask64 mask, __m512i value)
{
    const in_c_register a = {otherwise}, b = {value};
    in_c_register v;
    IN_C_EACH(64) v.u8[i] = mask >> i & 1 ? b.u8[i] : a.u8[i];
    return v.all;
}

IN_C __m512i _mm512_mask_blend_epi8(__mmask64 mask, __m512i otherwise, __m512i value)
{
    return _mm512_mask_mov_epi8(otherwise, mask, value);
}

/* ------------------------------------------------------------------------------------------------------- shuffles */

/* Within each 16 bytes; a table byte of 128 and more gives none. */
IN_C __m512i _mm512_mask_shuffle_epi8(__m512i otherwise, __mmask64 mask, __m512i value, __m512i table)
{
    const in_c_register at = {table}, a = {value};
    in_c_register v;
    IN_C_EACH(64) v.u8[i] = at.u8[i] & 128 ? 0 : a.u8[i / 16 * 16 + at.u8[i] % 16];
    return _mm512_mask_mov_epi8(otherwise, mask, v.all);
}

IN_C __m512i _mm512_permutexvar_epi8(__m512i table, __m512i value)
{
    const in_c_register at = {table}, a = {value};
    in_c_register v;
    IN_C_EACH(64) v.u8[i] = a.u8[at.u8[i] % 64];
    return v.all;
}

IN_C __m512i _mm512_mask_permutexvar_epi8(__m512i otherwise, __mmask64 mask, __m512i table, __m512i value)
{
    return _mm512_mask_mov_epi8(otherwise, mask, _mm512_permutexvar_epi8(table, value));
}

#define IN_C_PERMUTE_2(NAME, PART, N)                                                                           \
    IN_C __m512i NAME(__m512i first, __m512i table, __m512i second)                                             \
    {                                                                                                           \
        const in_c_register a = {first}, at = {table}, b = {second};                                            \
        in_c_register v;                                                                                        \
        IN_C_EACH(N) v.PART[i] = at.PART[i] & N ? b.PART[at.PART[i] % N] : a.PART[at.PART[i] % N];              \
        return v.all;                                                                                           \
    }
IN_C_PERMUTE_2(_mm512_permutex2var_epi8, u8, 64)
IN_C_PERMUTE_2(_mm512_permutex2var_epi64, u64, 8)

/* Of each 16 bytes one half, `from` elements on. */
#define IN_C_UNPACK(NAME, PART, LANE, FROM)                                                                     \
    IN_C __m512i NAME(__m512i first, __m512i second)                                                            \
    {                                                                                                           \
        const in_c_register a = {first}, b = {second};                                                          \
        in_c_register v;                                                                                        \
        IN_C_EACH(4 * LANE)                                                                                     \
        {                                                                                                       \
            const int at = i / LANE * LANE + FROM + i % LANE / 2;                                               \
            v.PART[i] = i % 2 ? b.PART[at] : a.PART[at];                                                        \
        }                                                                                                       \
        return v.all;                                                                                           \
    }
IN_C_UNPACK(_mm512_unpacklo_epi8, u8, 16, 0)
IN_C_UNPACK(_mm512_unpackhi_epi8, u8, 16, 8)
IN_C_UNPACK(_mm512_unpacklo_epi16, u16, 8, 0)
IN_C_UNPACK(_mm512_unpackhi_epi16, u16, 8, 4)
IN_C_UNPACK(_mm512_unpacklo_epi32, u32, 4, 0)
IN_C_UNPACK(_mm512_unpackhi_epi32, u32, 4, 2)
IN_C_UNPACK(_mm512_unpacklo_epi64, u64, 2, 0)
IN_C_UNPACK(_mm512_unpackhi_epi64, u64, 2, 1)

/* -------------------------------------------------------------------------------------------- what is said of both */

#define target(...) unused /* no function asks for more than `-m` allows */
#define __asm__(...)       /* registers of that size are none to hold a value in */
#define __builtin_cpu_supports(name) 1

#endif
