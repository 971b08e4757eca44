/* Tile programs on AVX-512 VBMI: one runner per shape of a tile, its tables in registers over three loops. */
#ifndef S2DQ_AVX512_H
#define S2DQ_AVX512_H

#include "avx2.h"
#include "isa.h"
#include "portable.h"
#include "tile.h"

#if defined(S2DQ_X86)

#include <immintrin.h>
#include <string.h>

#define S2DQ_512_NARROW 256
#define S2DQ_512_LONG 4096   /* bytes of a run from which memcpy knows better */
#define S2DQ_512_ALIGNED 512 /* and from which it is worth to begin with a part of a line */

#define S2DQ_512_APART 512        /* bytes from one piece of a network to the next from which these are far apart */
#define S2DQ_512_MANY 4           /* pieces of the source, whose offsets still have general registers */
#define S2DQ_512_FEW 8            /* turns of a loop that is not worth a way of its own */
#define S2DQ_512_RESULT_AHEAD 512 /* bytes of a result, between its stores and the lines that are asked for */

#define S2DQ_512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi,bmi2")))
#define S2DQ_512_INLINE static inline __attribute__((always_inline)) S2DQ_512

/* Offset k: of many in memory, for general registers are few, and the compiler would keep it in one of vectors. */
S2DQ_512_INLINE int64_t s2dq_512_at(const int64_t *at, int k, bool many)
{
    return many ? *(const volatile int64_t *)(at + k) : at[k];
}

/* One register from its pieces, read in full: what a mask leaves out is read too, and never looked at. */
S2DQ_512_INLINE __m512i s2dq_512_load_of(const uint8_t *src, const int64_t *at, int loads, bool many)
{
    if (loads == 1) return _mm512_loadu_si512(src + s2dq_512_at(at, 0, many));
    if (loads == 2) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(src + s2dq_512_at(at, 0, many)));
        __m256i high = _mm256_loadu_si256((const __m256i *)(src + s2dq_512_at(at, 1, many)));
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    __m128i a = _mm_loadu_si128((const __m128i *)(src + s2dq_512_at(at, 0, many)));
    __m128i b = _mm_loadu_si128((const __m128i *)(src + s2dq_512_at(at, 1, many)));
    __m128i c = _mm_loadu_si128((const __m128i *)(src + s2dq_512_at(at, 2, many)));
    __m128i d = _mm_loadu_si128((const __m128i *)(src + s2dq_512_at(at, 3, many)));
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

S2DQ_512_INLINE __m512i s2dq_512_load(const uint8_t *src, const int64_t *at, int loads)
{
    return s2dq_512_load_of(src, at, loads, false);
}

/* Keeps the compiler from loading a register again for its second use. */
#define S2DQ_512_LOADED(value) __asm__("" : "+v"(value))

/* Past the caches, for whole lines of results so large that they would not stay there. */
S2DQ_512_INLINE void s2dq_512_stream(uint8_t *dst, const int64_t *at, __m512i value)
{
    _mm512_stream_si512((__m512i *)(dst + at[0]), value);
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

/* (value & keep) ^ fill: what ternary logic calls it. */
#define S2DQ_512_FILL 0x6A

/* How bytes of a tile are mapped: by the lines of each, of which most take nothing off, turn no bits before and never
 * saturate, and many are not shifted; or all bytes of an output by its one table. */
enum { S2DQ_512_TABLES = 1, S2DQ_512_LINES, S2DQ_512_SHIFTED, S2DQ_512_PLAIN };

static int s2dq_512_lines_kind(const s2dq_lines *lines)
{
    if (lines->turns || lines->falls || lines->ends) return S2DQ_512_LINES;
    return lines->shift ? S2DQ_512_SHIFTED : S2DQ_512_PLAIN;
}

/* The lines of one output, or of the one input: of its even bytes, then of its odd ones. */
typedef struct {
    __m512i slope[2], more[2], less[2], first, up, flip;
    int falls, turns;
} s2dq_512_lines;

/* The bits of `flip`, the highest one or none, are turned behind the lines: by the addition where no word saturates. */
S2DQ_512_INLINE s2dq_512_lines s2dq_512_lines_of(const s2dq_lines *lines, int k, uint8_t flip, int mapped)
{
    s2dq_512_lines own = {.first = _mm512_loadu_si512(lines->first)};
    own.falls = lines->falls != 0;
    own.turns = lines->turns != 0;
    own.up = _mm512_set1_epi16((short)lines->shift);
    own.flip = _mm512_set1_epi8((char)flip);
    const __m512i turn = _mm512_set1_epi16((short)(mapped == S2DQ_512_LINES ? 0 : flip << (8 - lines->shift)));
    for (int odd = 0; odd < 2; odd++) {
        own.slope[odd] = _mm512_loadu_si512(lines->slope[k][odd]);
        own.more[odd] = _mm512_add_epi16(_mm512_loadu_si512(lines->more[k][odd]), turn);
        own.less[odd] = _mm512_loadu_si512(lines->less[k][odd]);
    }
    return own;
}

/* Half of the bytes of a register through their lines, from the upper half of a word to the upper half. */
S2DQ_512_INLINE __m512i s2dq_512_line(__m512i value, const s2dq_512_lines *own, int odd, int mapped)
{
    if (mapped == S2DQ_512_LINES && own->falls) value = _mm512_subs_epu16(value, own->less[odd]);
    value = _mm512_mulhi_epu16(value, own->slope[odd]);
    if (mapped == S2DQ_512_PLAIN) return _mm512_add_epi16(value, own->more[odd]);
    if (mapped == S2DQ_512_SHIFTED) return _mm512_sllv_epi16(_mm512_add_epi16(value, own->more[odd]), own->up);
    return _mm512_xor_si512(_mm512_sllv_epi16(_mm512_adds_epu16(value, own->more[odd]), own->up), own->flip);
}

/* The bytes of a register through their lines: the even ones, and the odd ones. */
S2DQ_512_INLINE void s2dq_512_halves(__m512i *halves, __m512i value, const s2dq_512_lines *own, int mapped)
{
    if (mapped == S2DQ_512_LINES && own->turns) value = _mm512_xor_si512(value, own->first);
    halves[0] = s2dq_512_line(_mm512_slli_epi16(value, 8), own, 0, mapped);
    halves[1] = s2dq_512_line(_mm512_and_si512(value, _mm512_set1_epi16((short)0xFF00)), own, 1, mapped);
}

/* The bytes of an output through their lines. */
S2DQ_512_INLINE __m512i s2dq_512_map(__m512i value, const s2dq_512_lines *own, int mapped)
{
    const __m512i upper = _mm512_set4_epi32(0x0F0F0D0D, 0x0B0B0909, 0x07070505, 0x03030101);
    __m512i halves[2];
    s2dq_512_halves(halves, value, own, mapped);
    return _mm512_mask_shuffle_epi8(halves[1], 0x5555555555555555, halves[0], upper);
}

/* Bytes through the table that four registers hold. */
S2DQ_512_INLINE __m512i s2dq_512_look_up(__m512i value, const __m512i *table)
{
    const __m512i low = _mm512_permutex2var_epi8(table[0], value, table[1]);
    const __m512i high = _mm512_permutex2var_epi8(table[2], value, table[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(value), high);
}

/* Lines that give the fill values in their places, and turn the bits that these turn elsewhere; of those that never
 * saturate. */
S2DQ_512_INLINE void s2dq_512_fold(s2dq_512_lines *own, __m512i keep, __m512i fill, int shift)
{
    const __m512i upper = _mm512_set1_epi16((short)0xFF00);
    for (int odd = 0; odd < 2; odd++) { /* the bytes in the upper halves of words, as they go through their lines */
        const __m512i kept = odd ? _mm512_and_si512(keep, upper) : _mm512_slli_epi16(keep, 8);
        const __m512i filled = odd ? _mm512_and_si512(fill, upper) : _mm512_slli_epi16(fill, 8);
        const __m512i words = _mm512_or_si512(kept, _mm512_srlv_epi16(kept, _mm512_set1_epi16(8)));
        own->slope[odd] = _mm512_and_si512(own->slope[odd], words);
        own->more[odd] = _mm512_add_epi16(_mm512_and_si512(own->more[odd], words),
                                          _mm512_srlv_epi16(filled, _mm512_set1_epi16((short)shift)));
    }
}

/* Whether the one input goes through its lines before the outputs are made, which then need no merging. */
S2DQ_512_INLINE bool s2dq_512_early(int inputs, int way, int mapped)
{
    return mapped >= S2DQ_512_LINES && inputs == 1 && way == S2DQ_MIXED;
}

/* Whether fill values are of the lines. */
S2DQ_512_INLINE bool s2dq_512_folds(int inputs, int way, int mapped)
{
    return mapped > S2DQ_512_LINES && !s2dq_512_early(inputs, way, mapped);
}

/* A way of mapped tiles alone, whose shuffles show beside what else they do: of three outputs the first comes from the
 * first two of three inputs, the last from the last two. */
#define S2DQ_512_ENDS (S2DQ_SAME + 1)

static bool s2dq_512_from_ends(const s2dq_tile *tile)
{
    if (!tile->mapped || tile->way != S2DQ_MIXED || tile->inputs != 3 || tile->outputs != 3) return false;
    for (int i = 0; i < S2DQ_REGISTER_BYTES; i++) {
        if (s2dq_tile_wants(tile, 0, i) && tile->upper[0] >> i & 1) return false;
        if (s2dq_tile_wants(tile, 2, i) && !(tile->upper[2] >> i & 1) && tile->table[2][i] < S2DQ_REGISTER_BYTES)
            return false;
    }
    return true;
}

/* The table of output k; at an end as indices in its two inputs. */
S2DQ_512_INLINE __m512i s2dq_512_table(const s2dq_tile *tile, int k, int way)
{
    if (way != S2DQ_MIXED && way != S2DQ_512_ENDS) return _mm512_loadu_si512(tile->pair[k]);
    const __m512i table = _mm512_loadu_si512(tile->table[k]);
    if (way == S2DQ_MIXED || k != 2) return table;
    const __m512i next = _mm512_set1_epi8(S2DQ_REGISTER_BYTES);
    return _mm512_mask_mov_epi8(_mm512_xor_si512(table, next), tile->upper[k], _mm512_or_si512(table, next));
}

/* Output k of a tile whose inputs are in registers. */
S2DQ_512_INLINE __m512i s2dq_512_output(const __m512i *in, int k, __m512i table, __mmask64 upper, int inputs,
                                        int outputs, int way)
{
    if (way == S2DQ_512_ENDS && k != 1) return _mm512_permutex2var_epi8(in[k / 2], table, in[k / 2 + 1]);
    if (way == S2DQ_512_ENDS) way = S2DQ_MIXED;
    const int first = way == S2DQ_MIXED ? 0 : s2dq_pair_of(inputs, outputs, way, k);
    if (way == S2DQ_SAME) return in[k];
    if (inputs == 1) return _mm512_permutexvar_epi8(table, in[0]);
    if (inputs == 2 || way != S2DQ_MIXED)
        return _mm512_permutex2var_epi8(in[first], table, in[(first + 1) % inputs]);
    const __m512i value = _mm512_permutex2var_epi8(in[0], table, in[1]);
    if (inputs == 3) return _mm512_mask_permutexvar_epi8(value, upper, table, in[2]);
    return _mm512_mask_mov_epi8(value, upper, _mm512_permutex2var_epi8(in[2], table, in[3]));
}

/* Two registers of pieces of 32 or 16 bytes: the pieces of one turn each before those of the next. */
S2DQ_512_INLINE void s2dq_512_pair(__m512i *pairs, int stores, __m512i value, __m512i next)
{
    const __m512i first = stores == 2 ? _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 10, 11)
                                      : _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_or_si512(first, _mm512_set1_epi64(4));
    pairs[0] = _mm512_permutex2var_epi64(value, first, next);
    pairs[1] = _mm512_permutex2var_epi64(value, second, next);
}

/* As s2dq_512_store, where the pieces of the next turn lie right behind those of this one. Shuffles are cheaper than
 * stores of less than half a register. */
S2DQ_512_INLINE void s2dq_512_store_two(uint8_t *dst, const int64_t *at, int stores, __m512i value, __m512i next)
{
    __m512i pairs[2];
    s2dq_512_pair(pairs, stores, value, next);
    const __m512i a = pairs[0], b = pairs[1];
    if (stores == 2) {
        _mm512_storeu_si512(dst + at[0], a);
        _mm512_storeu_si512(dst + at[1], b);
    } else {
        _mm256_storeu_si256((__m256i *)(dst + at[0]), _mm512_castsi512_si256(a));
        _mm256_storeu_si256((__m256i *)(dst + at[1]), _mm512_extracti64x4_epi64(a, 1));
        _mm256_storeu_si256((__m256i *)(dst + at[2]), _mm512_castsi512_si256(b));
        _mm256_storeu_si256((__m256i *)(dst + at[3]), _mm512_extracti64x4_epi64(b, 1));
    }
}

static const uint8_t s2dq_512_places[S2DQ_REGISTER_BYTES] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
    48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* What the outputs of a tile are made with. */
typedef struct {
    __m512i table[S2DQ_REGISTERS], keep[S2DQ_REGISTERS], fill[S2DQ_REGISTERS], bytes[S2DQ_REGISTERS][4];
    __mmask64 upper[S2DQ_REGISTERS];
    s2dq_512_lines own[S2DQ_REGISTERS]; /* of each output, or the first of the one input */
} s2dq_512_constants;

S2DQ_512_INLINE void s2dq_512_read_constants(s2dq_512_constants *with, const s2dq_tile *tile,
                                             const s2dq_filling *filling, int inputs, int outputs, int way, int mapped,
                                             bool fills)
{
    const bool early = s2dq_512_early(inputs, way, mapped);
    const uint8_t flip = fills ? 0 : filling->fill[0][0]; /* all of them are that where nothing is filled in */
    if (early) with->own[0] = s2dq_512_lines_of(filling->lines, S2DQ_INPUT_LINES, flip, mapped);
    for (int k = 0; k < outputs; k++) {
        with->table[k] = s2dq_512_table(tile, k, way);
        with->upper[k] = tile->upper[k];
        with->keep[k] = _mm512_loadu_si512(filling->keep[k]);
        with->fill[k] = _mm512_loadu_si512(filling->fill[k]);
        if (early) { /* from the upper halves of words, in two registers */
            const __m512i one = _mm512_set1_epi8(1), next = _mm512_set1_epi8(S2DQ_REGISTER_BYTES);
            const __mmask64 odd = _mm512_test_epi8_mask(with->table[k], one);
            with->table[k] = _mm512_or_si512(with->table[k], _mm512_mask_mov_epi8(one, odd, next));
        } else if (mapped >= S2DQ_512_LINES) {
            with->own[k] = s2dq_512_lines_of(filling->lines, k, flip, mapped);
            if (fills && s2dq_512_folds(inputs, way, mapped))
                s2dq_512_fold(&with->own[k], with->keep[k], with->fill[k], (int)filling->lines->shift);
        }
        for (int part = 0; part < 4 && mapped == S2DQ_512_TABLES; part++)
            with->bytes[k][part] =
                _mm512_loadu_si512(filling->tables + tile->own[k] * 256 + part * S2DQ_REGISTER_BYTES);
    }
}

/* Output k: through its lines and with its fill values, or through its table. */
S2DQ_512_INLINE __m512i s2dq_512_filled(const __m512i *in, int k, const s2dq_512_constants *with, int inputs,
                                        int outputs, int way, int mapped, bool fills)
{
    const bool early = s2dq_512_early(inputs, way, mapped);
    __m512i value = s2dq_512_output(in, k, with->table[k], with->upper[k], inputs + early, outputs, way);
    if (mapped == S2DQ_512_TABLES) return s2dq_512_look_up(value, with->bytes[k]);
    if (mapped && !early) value = s2dq_512_map(value, &with->own[k], mapped);
    if (!fills || s2dq_512_folds(inputs, way, mapped)) return value;
    return _mm512_ternarylogic_epi64(value, with->keep[k], with->fill[k], S2DQ_512_FILL);
}

/* The inputs of a turn: the halves of one that goes through its lines early. */
S2DQ_512_INLINE void s2dq_512_read(__m512i *in, const uint8_t *src, const int64_t *at, const s2dq_512_constants *with,
                                   int inputs, int loads, int way, int mapped)
{
#pragma GCC unroll 4
    for (int k = 0; k < inputs; k++) {
        in[k] = s2dq_512_load_of(src, at + k * loads, loads, mapped && inputs * loads > S2DQ_512_MANY);
        S2DQ_512_LOADED(in[k]);
    }
    if (s2dq_512_early(inputs, way, mapped)) s2dq_512_halves(in, in[0], &with->own[0], mapped);
}

/* Lines of a later turn, into the nearest cache. */
S2DQ_512_INLINE void s2dq_512_fetch(const uint8_t *from, const int64_t *at, int registers, int pieces)
{
#pragma GCC unroll 16
    for (int k = 0; k < registers * pieces; k += pieces) _mm_prefetch((const char *)(from + at[k]), _MM_HINT_T0);
}

/* The same for runners that store past the caches: those stores wait in the places that the nearest cache has for lines
 * on their way, so what comes from memory is fetched into the second cache instead. */
S2DQ_512_INLINE void s2dq_512_fetch_past(const s2dq_tile *tile, const uint8_t *from, const int64_t *at, int registers,
                                         int pieces)
{
    if (tile->far == S2DQ_FETCH_SECOND) {
#pragma GCC unroll 16
        for (int k = 0; k < registers * pieces; k += pieces) _mm_prefetch((const char *)(from + at[k]), _MM_HINT_T1);
    } else {
        s2dq_512_fetch(from, at, registers, pieces);
    }
}

/* An output, in the way of a runner. */
S2DQ_512_INLINE void s2dq_512_put(uint8_t *dst, const int64_t *at, const uint64_t *mask, int stores, int kind,
                                  __m512i value)
{
    if (kind == S2DQ_TILE_STREAMED)
        s2dq_512_stream(dst, at, value);
    else if (kind == S2DQ_TILE_MASKED)
        s2dq_512_mask_store(dst, at, mask, stores, value);
    else
        s2dq_512_store(dst, at, stores, value);
}

/* Whether lines of the result are asked for ahead: not where whole ones go past the caches, or one run is stored. */
S2DQ_512_INLINE bool s2dq_512_asks(const s2dq_tile *tile, int outputs, int stores, int kind)
{
    return kind != S2DQ_TILE_STREAMED && outputs * stores > 1 && tile->asks;
}

/* One turn. */
S2DQ_512_INLINE void s2dq_512_turn(uint8_t *dst, const uint8_t *src, const int64_t *dst_at, const uint64_t *dst_mask,
                                   const int64_t *src_at, const s2dq_512_constants *with, int inputs, int loads,
                                   int outputs, int stores, int way, int kind, bool fills, int mapped)
{
    __m512i in[S2DQ_REGISTERS];
    s2dq_512_read(in, src, src_at, with, inputs, loads, way, mapped);
#pragma GCC unroll 4
    for (int k = 0; k < outputs; k++)
        s2dq_512_put(dst, dst_at + k * stores, dst_mask + k * stores, stores, kind,
                     s2dq_512_filled(in, k, with, inputs, outputs, way, mapped, fills));
}

/* All turns of the loops. The counts of registers and pieces are constants wherever this is inlined, and so are
 * `kind`, whether anything is filled in, and whether lines are fetched ahead: what is not done takes no registers. */
S2DQ_512_INLINE void s2dq_512_run(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                  const s2dq_tile *tile, const s2dq_filling *filling, const s2dq_axis *loops,
                                  int inputs, int loads, int outputs, int stores, int way, int kind, bool fills,
                                  bool far, int mapped)
{
    int64_t src_at[S2DQ_PIECES], dst_at[S2DQ_PIECES];
    uint64_t dst_mask[S2DQ_PIECES];
    s2dq_512_constants with;
    for (int k = 0; k < inputs * loads; k++) src_at[k] = tile->src[k];
    for (int k = 0; k < outputs * stores; k++) dst_at[k] = tile->dst[k], dst_mask[k] = tile->dst_mask[k];
    s2dq_512_read_constants(&with, tile, filling, inputs, outputs, way, mapped, fills);
    s2dq_ahead ahead = {.turns = 0};
    if (far) ahead = s2dq_tile_ahead(loops, inputs * S2DQ_REGISTER_BYTES);
    const bool asks = s2dq_512_asks(tile, outputs, stores, kind);
    s2dq_ahead results = {.turns = 0};
    int64_t ask = 0, ask_around = 0;
    if (asks) results = s2dq_result_ahead(loops, S2DQ_512_RESULT_AHEAD);
    /* From the end of a turn to the start of the next one. */
    const int64_t src_middle = loops[1].src - loops[2].extent * loops[2].src + loops[2].src_back;
    const int64_t dst_middle = loops[1].dst - loops[2].extent * loops[2].dst + loops[2].dst_back;
    const int64_t src_outer = loops[0].src - loops[1].extent * loops[1].src + loops[1].src_back;
    const int64_t dst_outer = loops[0].dst - loops[1].extent * loops[1].dst + loops[1].dst_back;
    /* Two turns at once, where what they store lies side by side and lines leave the registers for it; the last turn
     * may be moved back. Not where pieces are whole pages apart, and push each other out of the cache: measured, twice
     * as slow. */
    const bool by_two = kind == S2DQ_TILE_PLAIN && stores > 1 && mapped < S2DQ_512_LINES;
    const bool paged = by_two && (dst_at[1] - dst_at[0]) % 4096 == 0;
    const bool joins = by_two && loops[2].dst == S2DQ_REGISTER_BYTES / stores && !paged;
    const int64_t alone = joins ? 1 + (loops[2].src_back != 0 || loops[2].dst_back != 0) : loops[2].extent;
    /* Those of one input that goes through its lines are so short that what is around them shows: again two at once. */
    const bool twins = s2dq_512_early(inputs, way, mapped) && loads <= 2;
    const int64_t src_in = loops[2].src, dst_in = loops[2].dst;
    /* One loop, not three: where the innermost one is short, constants that leave the registers around it would cost as
     * much as the tiles. */
    int64_t i = loops[0].extent, j = loops[1].extent, left = loops[2].extent, fetch = 0, around = 0;
    const uint8_t *s = src - (i == 1 ? loops[0].src_back : 0) - (j == 1 ? loops[1].src_back : 0);
    uint8_t *d = dst - (i == 1 ? loops[0].dst_back : 0) - (j == 1 ? loops[1].dst_back : 0);
    if (far) s2dq_ahead_at(&ahead, 0, 0, &fetch, &around);
    if (asks) s2dq_ahead_at(&results, 0, 0, &ask, &ask_around);
    for (;;) {
        if (asks) {
            if (left <= results.turns) ask = ask_around;
            s2dq_512_fetch(d + ask, dst_at, outputs * stores, 1);
        }
        if (loads <= 2 && far) {
            if (left <= ahead.turns) fetch = around;
            if (kind == S2DQ_TILE_STREAMED) s2dq_512_fetch_past(tile, s + fetch, src_at, inputs, loads);
            else s2dq_512_fetch(s + fetch, src_at, inputs, loads);
        }
        if (twins && left > 2) {
#pragma GCC unroll 2
            for (int turn = 0; turn < 2; turn++) {
                s2dq_512_turn(d, s, dst_at, dst_mask, src_at, &with, inputs, loads, outputs, stores, way, kind, fills,
                              mapped);
                if (turn == 0) s += src_in, d += dst_in;
            }
            left--;
        } else if (by_two && left > alone) {
            __m512i in[S2DQ_REGISTERS], next[S2DQ_REGISTERS];
            if (loads <= 2 && far) s2dq_512_fetch(s + src_in + fetch, src_at, inputs, loads);
#pragma GCC unroll 4
            for (int k = 0; k < inputs; k++) {
                in[k] = s2dq_512_load(s, src_at + k * loads, loads);
                next[k] = s2dq_512_load(s + src_in, src_at + k * loads, loads);
                S2DQ_512_LOADED(in[k]);
                S2DQ_512_LOADED(next[k]);
            }
#pragma GCC unroll 4
            for (int k = 0; k < outputs; k++) {
                const __m512i value = s2dq_512_filled(in, k, &with, inputs, outputs, way, mapped, fills);
                const __m512i behind = s2dq_512_filled(next, k, &with, inputs, outputs, way, mapped, fills);
                s2dq_512_store_two(d, dst_at + k * stores, stores, value, behind);
            }
            s += src_in;
            d += dst_in;
            left--;
        } else {
            if (left == 1) s -= loops[2].src_back, d -= loops[2].dst_back;
            s2dq_512_turn(d, s, dst_at, dst_mask, src_at, &with, inputs, loads, outputs, stores, way, kind, fills,
                          mapped);
        }
        s += src_in;
        d += dst_in;
        if (--left > 0) continue;
        s += src_middle;
        d += dst_middle;
        if (--j == 0) {
            s += src_outer;
            d += dst_outer;
            if (--i == 0) return;
            j = loops[1].extent;
            if (i == 1) s -= loops[0].src_back, d -= loops[0].dst_back;
        }
        if (j == 1) s -= loops[1].src_back, d -= loops[1].dst_back;
        left = loops[2].extent;
        if (far) s2dq_ahead_at(&ahead, loops[0].extent - i, loops[1].extent - j, &fetch, &around);
        if (asks) s2dq_ahead_at(&results, loops[0].extent - i, loops[1].extent - j, &ask, &ask_around);
    }
}

/* The same where nothing is filled in, fetched or asked for: a long innermost loop is nothing but its turns. */
S2DQ_512_INLINE void s2dq_512_run_long(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                       const s2dq_tile *tile, const s2dq_filling *filling, const s2dq_axis *loops,
                                       int inputs, int loads, int outputs, int stores, int way, int kind)
{
    int64_t src_at[S2DQ_PIECES], dst_at[S2DQ_PIECES];
    uint64_t dst_mask[S2DQ_PIECES];
    s2dq_512_constants with;
    for (int k = 0; k < inputs * loads; k++) src_at[k] = tile->src[k];
    for (int k = 0; k < outputs * stores; k++) dst_at[k] = tile->dst[k], dst_mask[k] = tile->dst_mask[k];
    s2dq_512_read_constants(&with, tile, filling, inputs, outputs, way, 0, false);
    const int64_t moved = loops[2].src_back != 0 || loops[2].dst_back != 0; /* the last turn */
    for (int64_t i = 0; i < loops[0].extent; i++) {
        for (int64_t j = 0; j < loops[1].extent; j++) {
            const uint8_t *s = src;
            uint8_t *d = dst;
            s2dq_tile_turn(loops, i, j, &s, &d);
            for (int64_t left = loops[2].extent - moved; left > 0; left--) {
                s2dq_512_turn(d, s, dst_at, dst_mask, src_at, &with, inputs, loads, outputs, stores, way, kind, false,
                              0);
                s += loops[2].src;
                d += loops[2].dst;
            }
            if (moved)
                s2dq_512_turn(d - loops[2].dst_back, s - loops[2].src_back, dst_at, dst_mask, src_at, &with, inputs,
                              loads, outputs, stores, way, kind, false, 0);
        }
    }
}

/* The outputs of one tile of any shape. IN: its pieces in full, or only the bytes of its masks; then there is room for
 * a register more, as the last piece may need. */
S2DQ_512 static void s2dq_512_outputs(uint8_t *registers, const uint8_t *src, const s2dq_tile *tile,
                                      const s2dq_filling *filling, bool full)
{
    const int loads = (int)tile->loads, width = S2DQ_REGISTER_BYTES / loads;
    __m512i in[S2DQ_REGISTERS];
    for (int k = 0; k < tile->inputs * loads && !full; k++)
        _mm512_storeu_si512(registers + k * width, _mm512_maskz_loadu_epi8(tile->src_mask[k], src + tile->src[k]));
    for (int k = 0; k < S2DQ_REGISTERS; k++) {
        if (k >= tile->inputs)
            in[k] = _mm512_setzero_si512();
        else if (!full)
            in[k] = _mm512_loadu_si512(registers + k * S2DQ_REGISTER_BYTES);
        else if (loads == 1)
            in[k] = s2dq_512_load(src, tile->src + k, 1);
        else if (loads == 2)
            in[k] = s2dq_512_load(src, tile->src + k * 2, 2);
        else
            in[k] = s2dq_512_load(src, tile->src + k * 4, 4);
    }
    for (int k = 0; k < tile->outputs; k++) {
        __m512i value = s2dq_512_output(in, k, _mm512_loadu_si512(tile->table[k]), tile->upper[k], S2DQ_REGISTERS,
                                        S2DQ_REGISTERS, S2DQ_MIXED);
        if (tile->mapped) {
            const s2dq_512_lines own = s2dq_512_lines_of(filling->lines, k, 0, S2DQ_512_LINES);
            value = s2dq_512_map(value, &own, S2DQ_512_LINES);
        }
        value = _mm512_ternarylogic_epi64(value, _mm512_loadu_si512(filling->keep[k]),
                                          _mm512_loadu_si512(filling->fill[k]), S2DQ_512_FILL);
        _mm512_storeu_si512(registers + k * S2DQ_REGISTER_BYTES, value);
    }
}

/* One tile at an end of the source. */
S2DQ_512 static void s2dq_512_run_edge(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,
                                       const s2dq_filling *filling)
{
    uint8_t registers[(S2DQ_REGISTERS + 1) * S2DQ_REGISTER_BYTES];
    const int width = S2DQ_REGISTER_BYTES / (int)tile->stores;
    s2dq_512_outputs(registers, src, tile, filling, false);
    for (int k = 0; k < tile->outputs * tile->stores; k++)
        _mm512_mask_storeu_epi8(dst + tile->dst[k], tile->dst_mask[k],
                                _mm512_maskz_loadu_epi8(tile->dst_mask[k], registers + k * width));
}

/* Store what is known of a line that waits for its rest. */
S2DQ_512 static void s2dq_512_give_up(s2dq_carry *carry, int k)
{
    const int64_t count = carry->slot[k].count;
    if (count)
        _mm512_mask_storeu_epi8(carry->slot[k].next - count, UINT64_MAX >> (64 - count),
                                _mm512_loadu_si512(carry->slot[k].line));
    carry->slot[k].count = 0;
}

/* The end of a stream: nothing waits any more. */
static void s2dq_512_flush(s2dq_carry *carry)
{
    for (int k = 0; k < S2DQ_CARRIED; k++) s2dq_512_give_up(carry, k);
}

/* The end of all of them: other threads may look. Waits for memory, so it is not for every stream. */
static void s2dq_512_settle(void) { _mm_sfence(); }

/* The first `count` bytes of a sweep, up to the next line: together with the bytes that wait for them, if any do. */
S2DQ_512 static void s2dq_512_begin_line(s2dq_carry *carry, uint8_t *at, int64_t count, __m512i bytes)
{
    const __mmask64 mask = UINT64_MAX >> (64 - count);
    for (int k = 0; k < S2DQ_CARRIED; k++) {
        if (carry->slot[k].count && carry->slot[k].next == at) {
            _mm512_mask_storeu_epi8(carry->slot[k].line + carry->slot[k].count, mask, bytes);
            _mm512_stream_si512((__m512i *)(at - carry->slot[k].count), _mm512_loadu_si512(carry->slot[k].line));
            carry->slot[k].count = 0;
            return;
        }
    }
    _mm512_mask_storeu_epi8(at, mask, bytes);
}

/* The last `count` bytes of a sweep, from a line's start: they wait for the sweep that goes on there. */
S2DQ_512 static void s2dq_512_end_line(s2dq_carry *carry, uint8_t *at, int64_t count, const uint8_t *bytes)
{
    const int k = carry->oldest;
    carry->oldest = (k + 1) % S2DQ_CARRIED;
    s2dq_512_give_up(carry, k);
    memcpy(carry->slot[k].line, bytes, (size_t)count);
    carry->slot[k].count = count;
    carry->slot[k].next = at + count;
}

/* One loop over tiles past the caches, in whole lines: what a sweep leaves of its last line waits for the next sweep,
 * which often goes on there. Part of a line stored between streamed ones would cost more than all the rest.
 *
 * IN: `next`, the distance in the source to where the next sweep starts; a tile of full 64-byte pieces and `runs`
 * alike; `group` indices of the axis in a turn, a whole number of them from `dst` to the next line; at least one tile
 * beyond that line. OUT: the whole sweep, but for `carry`.
 */
S2DQ_512 static void s2dq_512_sweep(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,
                                    const s2dq_filling *filling, const s2dq_axis *loop, int64_t group, int64_t next,
                                    s2dq_tile_runner streamer, s2dq_carry *carry)
{
    uint8_t registers[S2DQ_REGISTERS * S2DQ_REGISTER_BYTES];
    const int64_t src_step = loop->src / group, dst_step = loop->dst / group, run = loop->dst;
    const int64_t ahead = -(int64_t)(dst + tile->dst[0]) & (S2DQ_REGISTER_BYTES - 1);
    const int64_t pieces = tile->run_pieces;
    int64_t indices = loop->extent * group - loop->dst_back / dst_step;
    s2dq_axis loops[S2DQ_TILE_LOOPS] = {{.extent = 1}, {.extent = 1, .src = next}, *loop};

    if (ahead) {
        s2dq_512_outputs(registers, src, tile, filling, true);
        for (int r = 0; r < tile->runs; r++)
            s2dq_512_begin_line(carry, dst + tile->dst[r * pieces], ahead, _mm512_loadu_si512(registers + r * run));
        src += ahead / dst_step * src_step;
        dst += ahead;
        indices -= ahead / dst_step;
    }
    loops[2].extent = indices / group;
    loops[2].src_back = loops[2].dst_back = 0;
    streamer(dst, src, tile, filling, loops);
    const int64_t rest = (indices - loops[2].extent * group) * dst_step, lines = rest & -64;
    if (rest == 0) return;
    s2dq_512_outputs(registers, src + (indices - group) * src_step, tile, filling, true);
    dst += indices * dst_step - rest;
    for (int r = 0; r < tile->runs; r++) {
        const uint8_t *bytes = registers + (r + 1) * run - rest;
        uint8_t *at = dst + tile->dst[r * pieces];
        for (int64_t k = 0; k < lines; k += 64)
            _mm512_stream_si512((__m512i *)(at + k), _mm512_loadu_si512(bytes + k));
        if (rest > lines) s2dq_512_end_line(carry, at + lines, rest - lines, bytes + lines);
    }
}

#define S2DQ_512_RUNNER_OF(NAME, I, L, O, S, WAY, KIND, FILLS, FAR)                                              \
    S2DQ_512 static void s2dq_512_##NAME##_##I##L##O##S(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, \
                                                        const s2dq_filling *filling, const s2dq_axis *loops)     \
    {                                                                                                            \
        s2dq_512_run(dst, src, tile, filling, loops, I, L, O, S, WAY, KIND, FILLS, FAR, 0);                      \
    }
/* Nothing is filled in or fetched of the source. Pieces of a register are stored two turns at a time, but for masks. */
#define S2DQ_512_NEAR_RUNNER(NAME, I, L, O, S, WAY, KIND)                                                        \
    S2DQ_512 static void s2dq_512_##NAME##_##I##L##O##S(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, \
                                                        const s2dq_filling *filling, const s2dq_axis *loops)     \
    {                                                                                                            \
        const bool one_by_one = S == 1 || KIND == S2DQ_TILE_MASKED;                                              \
        if (one_by_one && loops[2].extent > S2DQ_512_FEW && !s2dq_512_asks(tile, O, S, KIND))                    \
            s2dq_512_run_long(dst, src, tile, filling, loops, I, L, O, S, WAY, KIND);                            \
        else                                                                                                     \
            s2dq_512_run(dst, src, tile, filling, loops, I, L, O, S, WAY, KIND, false, false, 0);                \
    }
#define S2DQ_512_STREAMER(I, L, O, S)                                                                            \
    S2DQ_512_RUNNER_OF(mixed_stream, I, L, O, S, S2DQ_MIXED, S2DQ_TILE_STREAMED, tile->fills != 0, tile->far != 0)
/* What nothing is filled in and fetched for has registers left for all its masks. */
#define S2DQ_512_MASK_RUNNER(NAME, I, L, O, S, WAY)                                      \
    S2DQ_512_NEAR_RUNNER(NAME##_near_mask, I, L, O, S, WAY, S2DQ_TILE_MASKED)            \
    S2DQ_512_RUNNER_OF(NAME##_mask, I, L, O, S, WAY, S2DQ_TILE_MASKED, true, tile->far != 0)
#define S2DQ_512_RUNNER_WAY(NAME, I, L, O, S, WAY)                                       \
    S2DQ_512_NEAR_RUNNER(NAME##_near, I, L, O, S, WAY, S2DQ_TILE_PLAIN)                   \
    S2DQ_512_RUNNER_OF(NAME##_far, I, L, O, S, WAY, S2DQ_TILE_PLAIN, false, true)         \
    S2DQ_512_MASK_RUNNER(NAME, I, L, O, S, WAY)
/* RUN(kind, ...), of the kind that the lines are. */
#define S2DQ_512_BY_LINES(RUN, ...)                                  \
    switch (s2dq_512_lines_kind(filling->lines)) {                   \
    case S2DQ_512_PLAIN: RUN(S2DQ_512_PLAIN, __VA_ARGS__) break;     \
    case S2DQ_512_SHIFTED: RUN(S2DQ_512_SHIFTED, __VA_ARGS__) break; \
    default: RUN(S2DQ_512_LINES, __VA_ARGS__)                        \
    }
#define S2DQ_512_RUN_MAPPED(MAPPED, I, L, O, S, WAY, KIND, FILLS) \
    s2dq_512_run(dst, src, tile, filling, loops, I, L, O, S, WAY, KIND, FILLS, tile->far != 0, MAPPED);
#define S2DQ_512_RUN_LINES(...) S2DQ_512_BY_LINES(S2DQ_512_RUN_MAPPED, __VA_ARGS__)
#define S2DQ_512_MAPPED_RUNNER(I, L, O, S)                                                                      \
    S2DQ_512 static void s2dq_512_mapped_##I##L##O##S(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,  \
                                                      const s2dq_filling *filling, const s2dq_axis *loops)      \
    {                                                                                                           \
        S2DQ_512_RUN_LINES(I, L, O, S, S2DQ_MIXED, S2DQ_TILE_PLAIN, false)                                      \
    }
#define S2DQ_512_MAPPED_MASK_RUNNER(I, L, O, S)                                                                 \
    S2DQ_512 static void s2dq_512_mapped_mask_##I##L##O##S(uint8_t *dst, const uint8_t *src,                    \
                                                           const s2dq_tile *tile, const s2dq_filling *filling,  \
                                                           const s2dq_axis *loops)                              \
    {                                                                                                           \
        if (I > 1 || tile->fills) {                                                                             \
            S2DQ_512_RUN_LINES(I, L, O, S, S2DQ_MIXED, S2DQ_TILE_MASKED, true)                                  \
        } else {                                                                                                \
            S2DQ_512_RUN_LINES(I, L, O, S, S2DQ_MIXED, S2DQ_TILE_MASKED, false)                                 \
        }                                                                                                       \
    }
#define S2DQ_512_TABLED_RUNNER(I, L, O, S)                                                                          \
    S2DQ_512 static void s2dq_512_tabled_##I##L##O##S(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,      \
                                                      const s2dq_filling *filling, const s2dq_axis *loops)          \
    {                                                                                                               \
        s2dq_512_run(dst, src, tile, filling, loops, I, L, O, S, S2DQ_MIXED, S2DQ_TILE_PLAIN, false, tile->far != 0, \
                     S2DQ_512_TABLES);                                                                              \
    }
#define S2DQ_512_MAPPED_WAY(NAME, I, L, O, S, WAY)                                                               \
    S2DQ_512 static void s2dq_512_mapped_##NAME##_##I##L##O##S(uint8_t *dst, const uint8_t *src,                 \
                                                               const s2dq_tile *tile, const s2dq_filling *filling, \
                                                               const s2dq_axis *loops)                           \
    {                                                                                                            \
        S2DQ_512_RUN_LINES(I, L, O, S, WAY, S2DQ_TILE_PLAIN, false)                                              \
    }
#define S2DQ_512_MAPPED_PAIRED_RUNNER(I, L, O, S) S2DQ_512_MAPPED_WAY(paired, I, L, O, S, S2DQ_PAIRED)
#define S2DQ_512_FILL_RUNNER(I, L, O, S) \
    S2DQ_512_RUNNER_OF(mixed_fill, I, L, O, S, S2DQ_MIXED, S2DQ_TILE_PLAIN, true, tile->far != 0)
#define S2DQ_512_RUNNER(I, L, O, S) \
    S2DQ_512_RUNNER_WAY(mixed, I, L, O, S, S2DQ_MIXED) S2DQ_512_FILL_RUNNER(I, L, O, S)
#define S2DQ_512_GROWING_RUNNER(I, L, O, S) \
    S2DQ_512_MASK_RUNNER(mixed, I, L, O, S, S2DQ_MIXED) S2DQ_512_FILL_RUNNER(I, L, O, S)
#define S2DQ_512_PAIRED_RUNNER(I, L, O, S) S2DQ_512_RUNNER_WAY(paired, I, L, O, S, S2DQ_PAIRED)
#define S2DQ_512_IN_TURN_RUNNER(I, L, O, S) S2DQ_512_RUNNER_WAY(in_turn, I, L, O, S, S2DQ_PAIRED_IN_TURN)

/* Every shape: M(inputs, loads, outputs, stores), and G of them where there are more outputs than inputs: as no byte
 * goes to two places, they have fill values or masks. */
#define S2DQ_512_ANY_STORE(M, I, L, O) M(I, L, O, 1) M(I, L, O, 2) M(I, L, O, 4)
#define S2DQ_512_WHOLE_STORE(M, I, L, O) M(I, L, O, 1)
#define S2DQ_512_ANY_LOAD(E, M, I, O) E(M, I, 1, O) E(M, I, 2, O) E(M, I, 4, O)
#define S2DQ_512_EACH(E, M, G)                                                                    \
    S2DQ_512_ANY_LOAD(E, M, 1, 1) S2DQ_512_ANY_LOAD(E, G, 1, 2) S2DQ_512_ANY_LOAD(E, G, 1, 3)   \
    S2DQ_512_ANY_LOAD(E, G, 1, 4) S2DQ_512_ANY_LOAD(E, M, 2, 1) S2DQ_512_ANY_LOAD(E, M, 2, 2)   \
    S2DQ_512_ANY_LOAD(E, G, 2, 3) S2DQ_512_ANY_LOAD(E, G, 2, 4) S2DQ_512_ANY_LOAD(E, M, 3, 1)   \
    S2DQ_512_ANY_LOAD(E, M, 3, 2) S2DQ_512_ANY_LOAD(E, M, 3, 3) S2DQ_512_ANY_LOAD(E, G, 3, 4)   \
    S2DQ_512_ANY_LOAD(E, M, 4, 1) S2DQ_512_ANY_LOAD(E, M, 4, 2) S2DQ_512_ANY_LOAD(E, M, 4, 3)   \
    S2DQ_512_ANY_LOAD(E, M, 4, 4)
/* Those whose outputs may come from neighbours, and those where that can be in two orders. */
#define S2DQ_512_EACH_PAIRED(M)                                                                     \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 3, 2) S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 3, 3) \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 4, 2) S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 4, 3) \
    S2DQ_512_EACH_IN_TURN(M)
/* Those whose constants have room in registers. */
#define S2DQ_512_EACH_MAPPED(M)                                                                   \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 1, 1) S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 2, 1) \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 2, 2) S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 3, 1) \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 4, 1) S2DQ_512_EACH_MAPPED_PAIRED(M)
#define S2DQ_512_EACH_MAPPED_GROWING(M)                                                           \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 1, 2) S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 1, 3) \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 2, 3)
#define S2DQ_512_EACH_MAPPED_PAIRED(M)                                                                  \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 3, 2) S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 3, 3) \
    S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 4, 2) S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 4, 3)
#define S2DQ_512_EACH_IN_TURN(M) S2DQ_512_ANY_LOAD(S2DQ_512_ANY_STORE, M, 4, 4)

S2DQ_512_EACH(S2DQ_512_ANY_STORE, S2DQ_512_RUNNER, S2DQ_512_GROWING_RUNNER)
S2DQ_512_EACH_MAPPED(S2DQ_512_MAPPED_RUNNER)
S2DQ_512_EACH_MAPPED(S2DQ_512_MAPPED_MASK_RUNNER)
S2DQ_512_EACH_MAPPED_GROWING(S2DQ_512_MAPPED_MASK_RUNNER)
S2DQ_512_EACH_MAPPED(S2DQ_512_TABLED_RUNNER)
S2DQ_512_EACH_MAPPED_PAIRED(S2DQ_512_MAPPED_PAIRED_RUNNER)
S2DQ_512_MAPPED_WAY(ends, 3, 1, 3, 1, S2DQ_512_ENDS)
S2DQ_512_MAPPED_WAY(ends, 3, 2, 3, 1, S2DQ_512_ENDS)
S2DQ_512_MAPPED_WAY(same, 1, 1, 1, 1, S2DQ_SAME)
S2DQ_512_MAPPED_WAY(same, 2, 1, 2, 1, S2DQ_SAME)
S2DQ_512_MAPPED_WAY(same, 3, 1, 3, 1, S2DQ_SAME)
S2DQ_512_EACH(S2DQ_512_WHOLE_STORE, S2DQ_512_STREAMER, S2DQ_512_STREAMER)
S2DQ_512_EACH_PAIRED(S2DQ_512_PAIRED_RUNNER)
S2DQ_512_EACH_IN_TURN(S2DQ_512_IN_TURN_RUNNER)

enum { S2DQ_512_NEAR, S2DQ_512_FAR, S2DQ_512_NEAR_MASKED, S2DQ_512_MASKED, S2DQ_512_FILLED, S2DQ_512_KINDS };

#define S2DQ_512_ENTRY_OF(WAY, NAME, I, L, O, S)                                             \
    [WAY][I - 1][L / 2][O - 1][S / 2] = {s2dq_512_##NAME##_near_##I##L##O##S,                \
                                         s2dq_512_##NAME##_far_##I##L##O##S,                 \
                                         s2dq_512_##NAME##_near_mask_##I##L##O##S,           \
                                         s2dq_512_##NAME##_mask_##I##L##O##S,                \
                                         s2dq_512_mixed_fill_##I##L##O##S},
#define S2DQ_512_ENTRY(I, L, O, S) S2DQ_512_ENTRY_OF(S2DQ_MIXED, mixed, I, L, O, S)
#define S2DQ_512_GROWING_ENTRY(I, L, O, S)                                                                         \
    [S2DQ_MIXED][I - 1][L / 2][O - 1][S / 2] = {s2dq_512_mixed_fill_##I##L##O##S, s2dq_512_mixed_fill_##I##L##O##S, \
                                                s2dq_512_mixed_near_mask_##I##L##O##S, s2dq_512_mixed_mask_##I##L##O##S, \
                                                s2dq_512_mixed_fill_##I##L##O##S},
#define S2DQ_512_PAIRED_ENTRY(I, L, O, S) S2DQ_512_ENTRY_OF(S2DQ_PAIRED, paired, I, L, O, S)
#define S2DQ_512_IN_TURN_ENTRY(I, L, O, S) S2DQ_512_ENTRY_OF(S2DQ_PAIRED_IN_TURN, in_turn, I, L, O, S)
#define S2DQ_512_MAPPED_ENTRY(I, L, O, S)                                                                  \
    [I - 1][L / 2][O - 1][S / 2] = {s2dq_512_mapped_##I##L##O##S, s2dq_512_mapped_mask_##I##L##O##S},
#define S2DQ_512_MAPPED_GROWING_ENTRY(I, L, O, S) \
    [I - 1][L / 2][O - 1][S / 2] = {s2dq_512_mapped_mask_##I##L##O##S, s2dq_512_mapped_mask_##I##L##O##S},
#define S2DQ_512_TABLED_ENTRY(I, L, O, S) [I - 1][L / 2][O - 1][S / 2] = s2dq_512_tabled_##I##L##O##S,
#define S2DQ_512_MAPPED_PAIRED_ENTRY(I, L, O, S) [I - 3][L / 2][O - 2][S / 2] = s2dq_512_mapped_paired_##I##L##O##S,
#define S2DQ_512_STREAM_ENTRY(I, L, O, S) [I - 1][L / 2][O - 1] = s2dq_512_mixed_stream_##I##L##O##S,

static const s2dq_tile_runner s2dq_512_runners[S2DQ_WAYS][4][3][4][3][S2DQ_512_KINDS] = {
    S2DQ_512_EACH(S2DQ_512_ANY_STORE, S2DQ_512_ENTRY, S2DQ_512_GROWING_ENTRY)
        S2DQ_512_EACH_PAIRED(S2DQ_512_PAIRED_ENTRY) S2DQ_512_EACH_IN_TURN(S2DQ_512_IN_TURN_ENTRY)};
static const s2dq_tile_runner s2dq_512_mapped[4][3][3][3][2] = {
    S2DQ_512_EACH_MAPPED(S2DQ_512_MAPPED_ENTRY) S2DQ_512_EACH_MAPPED_GROWING(S2DQ_512_MAPPED_GROWING_ENTRY)};
static const s2dq_tile_runner s2dq_512_tabled[4][3][3][3] = {S2DQ_512_EACH_MAPPED(S2DQ_512_TABLED_ENTRY)};
static const s2dq_tile_runner s2dq_512_mapped_paired[2][3][2][3] = {
    S2DQ_512_EACH_MAPPED_PAIRED(S2DQ_512_MAPPED_PAIRED_ENTRY)};
static const s2dq_tile_runner s2dq_512_mapped_same[3] = {s2dq_512_mapped_same_1111, s2dq_512_mapped_same_2121,
                                                         s2dq_512_mapped_same_3131};
static const s2dq_tile_runner s2dq_512_streamers[4][3][4] = {
    S2DQ_512_EACH(S2DQ_512_WHOLE_STORE, S2DQ_512_STREAM_ENTRY, S2DQ_512_STREAM_ENTRY)};

/* 128 bytes in half registers: fewer of their loads and stores are across two lines. */
S2DQ_512_INLINE void s2dq_512_copy_pair(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src)
{
    const __m256i *from = (const __m256i *)src;
    __m256i *to = (__m256i *)dst;
    const __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
    const __m256i c = _mm256_loadu_si256(from + 2), d = _mm256_loadu_si256(from + 3);
    _mm256_storeu_si256(to, a);
    _mm256_storeu_si256(to + 1, b);
    _mm256_storeu_si256(to + 2, c);
    _mm256_storeu_si256(to + 3, d);
}

/* A run of at least one register, the last one overlapping. Long runs are stored in whole lines: a store across two
 * lines takes nearly twice as long. */
S2DQ_512_INLINE void s2dq_512_copy_run(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src, int64_t width)
{
    int64_t k = 0;
    if (width >= S2DQ_512_ALIGNED) {
        _mm512_storeu_si512(dst, _mm512_loadu_si512(src));
        k = S2DQ_REGISTER_BYTES - ((int64_t)(uintptr_t)dst & (S2DQ_REGISTER_BYTES - 1));
    }
    for (; k + 128 <= width; k += 128) s2dq_512_copy_pair(dst + k, src + k);
    for (; k + 64 <= width; k += 64) _mm512_storeu_si512(dst + k, _mm512_loadu_si512(src + k));
    if (k < width) _mm512_storeu_si512(dst + width - 64, _mm512_loadu_si512(src + width - 64));
}

/* Runs of whole registers that all begin `started` bytes behind a line: the rest of that line, whole ones, and the
 * start of one. */
S2DQ_512 static void s2dq_512_copy_lines(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count,
                                         int64_t width, int started)
{
    const __mmask64 first = UINT64_MAX >> started, last = UINT64_MAX >> (S2DQ_REGISTER_BYTES - started);
    for (int64_t i = 0; i < axes->extent; i++, dst += axes->dst, src += axes->src) {
        if (count > 1) {
            s2dq_512_copy_lines(dst, src, axes + 1, count - 1, width, started);
            continue;
        }
        _mm512_mask_storeu_epi8(dst, first, _mm512_loadu_si512(src));
        for (int64_t k = S2DQ_REGISTER_BYTES - started; k < width - started; k += S2DQ_REGISTER_BYTES)
            _mm512_store_si512((__m512i *)(dst + k), _mm512_loadu_si512(src + k));
        _mm512_mask_storeu_epi8(dst + width - started, last, _mm512_maskz_loadu_epi8(last, src + width - started));
    }
}

/* Runs of whole registers where stores may be across lines. */
S2DQ_512 static void s2dq_512_copy_registers(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count,
                                             int64_t width)
{
    for (int64_t i = 0; i < axes->extent; i++, dst += axes->dst, src += axes->src) {
        if (count > 1) {
            s2dq_512_copy_registers(dst, src, axes + 1, count - 1, width);
            continue;
        }
        int64_t k = 0;
        for (; k + 128 <= width; k += 128) s2dq_512_copy_pair(dst + k, src + k);
        if (k < width) _mm512_storeu_si512(dst + k, _mm512_loadu_si512(src + k));
    }
}

/* How far the runs begin behind a line; -1 where they differ in that, or are short or long. */
static int s2dq_512_started(const uint8_t *dst, const s2dq_axis *axes, int count, int64_t width)
{
    if (width % S2DQ_REGISTER_BYTES || width < 2 * S2DQ_REGISTER_BYTES || width >= S2DQ_512_ALIGNED) return -1;
    for (int k = 0; k < count; k++)
        if (axes[k].dst % S2DQ_REGISTER_BYTES) return -1;
    return count ? (int)((uintptr_t)dst & (S2DQ_REGISTER_BYTES - 1)) : -1;
}

/* Granules through any number of loops. Those of up to four registers are left to AVX2, which knows their widths, but
 * for whole registers that all begin at one distance from a line: their loops stay in the order of the plan. `across`:
 * stores may be across lines. */
S2DQ_512 static void s2dq_512_copy_any(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count,
                                       int64_t width, bool across)
{
    const int started = s2dq_512_started(dst, axes, count, width);
    if (started >= 0 && across) {
        s2dq_512_copy_registers(dst, src, axes, count, width);
    } else if (started > 0) {
        s2dq_512_copy_lines(dst, src, axes, count, width, started);
    } else if (started < 0 && width <= S2DQ_512_NARROW) {
        s2dq_avx2_copy(dst, src, axes, count, width);
    } else if (count == 0) {
        if (width >= S2DQ_512_LONG && !s2dq_just_behind(dst, src))
            memcpy(dst, src, (size_t)width);
        else
            s2dq_512_copy_run(dst, src, width);
    } else if (count == 1 && width < S2DQ_512_LONG) {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_512_copy_run(dst + i * axes->dst, src + i * axes->src, width);
    } else {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_512_copy_any(dst + i * axes->dst, src + i * axes->src, axes + 1, count - 1, width, across);
    }
}

static void s2dq_512_copy(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    s2dq_512_copy_any(dst, src, axes, count, width, false);
}

static void s2dq_512_copy_across(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    s2dq_512_copy_any(dst, src, axes, count, width, true);
}

/* Bytes through one table, which four registers hold. */
S2DQ_512 static void s2dq_512_lookup_run(uint8_t *dst, const uint8_t *src, const uint8_t *table, int64_t width)
{
    __m512i own[4];
    for (int k = 0; k < 4; k++) own[k] = _mm512_loadu_si512(table + k * S2DQ_REGISTER_BYTES);
    for (int64_t k = 0; k < width; k += 64) {
        const __mmask64 mask = width - k < 64 ? UINT64_MAX >> (64 - (width - k)) : UINT64_MAX;
        _mm512_mask_storeu_epi8(dst + k, mask, s2dq_512_look_up(_mm512_maskz_loadu_epi8(mask, src + k), own));
    }
}

/* As s2dq_lookup; runs that go through one table in registers. */
S2DQ_512 static void s2dq_512_lookup(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_axis *axes,
                                     int count)
{
    if (count > 1) {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_512_lookup(dst + i * axes->dst, src + i * axes->src, table + i * axes->tab, axes + 1, count - 1);
    } else if (count && axes->src == 1 && axes->dst == 1 && axes->tab == 0) {
        s2dq_512_lookup_run(dst, src, table, axes->extent);
    } else {
        s2dq_lookup(dst, src, table, axes, count);
    }
}

/* The inputs of the runner of a mapped tile: one more, which is the first again, where the first goes through its lines
 * early but has several of them. */
static int64_t s2dq_512_inputs(const s2dq_tile *tile) { return tile->inputs + tile->forks; }

/* Whether every piece is stored in full. */
static bool s2dq_512_is_full(const s2dq_tile *tile)
{
    const uint64_t full = UINT64_MAX >> (S2DQ_REGISTER_BYTES - S2DQ_REGISTER_BYTES / tile->stores);
    for (int k = 0; k < tile->outputs * tile->stores; k++)
        if (tile->dst_mask[k] != full) return false;
    return true;
}

/* The runner of a tile of any shape. */
static s2dq_tile_runner s2dq_512_shape_runner(const s2dq_tile *tile)
{
    int kind = tile->fills ? S2DQ_512_FILLED : tile->far ? S2DQ_512_FAR : S2DQ_512_NEAR;
    if (!s2dq_512_is_full(tile)) kind = tile->fills || tile->far ? S2DQ_512_MASKED : S2DQ_512_NEAR_MASKED;
    if (tile->mapped && tile->apart && kind <= S2DQ_512_FAR && tile->outputs <= tile->inputs)
        return s2dq_512_tabled[tile->inputs - 1][tile->loads / 2][tile->outputs - 1][tile->stores / 2];
    if (tile->mapped && tile->same && !tile->fills) return s2dq_512_mapped_same[tile->outputs - 1];
    if (kind <= S2DQ_512_FAR && tile->stores == 1 && tile->loads <= 2 && s2dq_512_from_ends(tile))
        return tile->loads == 1 ? s2dq_512_mapped_ends_3131 : s2dq_512_mapped_ends_3231;
    if (tile->mapped && tile->way == S2DQ_PAIRED && kind <= S2DQ_512_FAR)
        return s2dq_512_mapped_paired[tile->inputs - 3][tile->loads / 2][tile->outputs - 2][tile->stores / 2];
    if (tile->mapped)
        return s2dq_512_mapped[s2dq_512_inputs(tile) - 1][tile->loads / 2][tile->outputs - 1][tile->stores / 2]
                              [kind > S2DQ_512_FAR];
    return s2dq_512_runners[tile->way][tile->inputs - 1][tile->loads / 2][tile->outputs - 1][tile->stores / 2][kind];
}

/* The same with stores past the caches: for tiles of whole lines, at aligned destinations. */
static s2dq_tile_runner s2dq_512_streamer(const s2dq_tile *tile)
{
    return s2dq_512_streamers[tile->inputs - 1][tile->loads / 2][tile->outputs - 1];
}

/* Where register k of a network lies, from the steps of the bits of k: in few registers, for what is kept on the stack
 * gets in the way of stores at the same place in a page. */
S2DQ_512_INLINE int64_t s2dq_512_place(const int64_t *steps, int k)
{
    return ((k & 8 ? steps[3] : 0) + (k & 4 ? steps[2] : 0)) + ((k & 2 ? steps[1] : 0) + (k & 1 ? steps[0] : 0));
}

/* One of the two registers that a level makes of two; level by level as `build_network` arranges the tables. */
S2DQ_512_INLINE __m512i s2dq_512_exchange(__m512i a, __m512i b, __m512i table, int granule, bool high)
{
    switch (granule) {
    case 1: return high ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
    case 2: return high ? _mm512_unpackhi_epi16(a, b) : _mm512_unpacklo_epi16(a, b);
    case 4: return high ? _mm512_unpackhi_epi32(a, b) : _mm512_unpacklo_epi32(a, b);
    case 8: return high ? _mm512_unpackhi_epi64(a, b) : _mm512_unpacklo_epi64(a, b);
    default: return _mm512_permutex2var_epi64(a, table, b);
    }
}

/* The tables of a network, which are for words of 8 bytes on all levels that do not interleave: on Intel's processors
 * those are one operation, lookups of bytes three. */
S2DQ_512_INLINE void s2dq_512_tables(__m512i (*table)[2], const s2dq_network *net, int levels)
{
    for (int l = 0; l < levels; l++)
        for (int k = 0; k < 2; k++) table[l][k] = _mm512_srli_epi64(_mm512_loadu_si512(net->table[l][k]), 3);
}

/* All levels of a network. */
S2DQ_512_INLINE void s2dq_512_exchanges(__m512i *r, const __m512i (*table)[2], int levels, int granule)
{
#pragma GCC unroll 4
    for (int l = 0; l < levels; l++) {
        const int bit = 1 << l, interleaved = l < levels - 1 && l < 4 - granule ? 1 << granule : 0;
#pragma GCC unroll 16
        for (int k = 0; k < S2DQ_NET_REGISTERS; k++) {
            if (k & bit) continue;
            const __m512i a = r[k], b = r[k | bit];
            r[k] = s2dq_512_exchange(a, b, table[l][0], interleaved, false);
            r[k | bit] = s2dq_512_exchange(a, b, table[l][1], interleaved, true);
        }
    }
}

/* All turns of the loops of a network; see s2dq_512_run. */
S2DQ_512_INLINE void s2dq_512_net(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                  const s2dq_network *net, const s2dq_axis *loops, int levels, int loads, int stores)
{
    __m512i table[S2DQ_NET_LEVELS][2];
    int64_t src_step[4], dst_step[4], src_at[4] = {0}, dst_at[4] = {0};
    const bool far = net->far != 0;
    const int granule = 6 - levels - loads / 2 - stores / 2; /* the logarithm of its bytes */
    for (int bit = 0; bit < 4; bit++) src_step[bit] = net->src[loads << bit], dst_step[bit] = net->dst[stores << bit];
    for (int k = 0; k < loads; k++) src_at[k] = net->src[k];
    for (int k = 0; k < stores; k++) dst_at[k] = net->dst[k];
    s2dq_512_tables(table, net, levels);
    const s2dq_ahead ahead = s2dq_tile_ahead(loops, S2DQ_NET_REGISTERS * S2DQ_REGISTER_BYTES);
    /* Lines of the result are asked for ahead, but where those of the source share a set and would have to leave it for
     * a result whose pieces are side by side, or every other one: for that the processor's own guess is good enough. */
    const s2dq_ahead results = s2dq_result_ahead(loops, 1);
    int64_t nearest = INT64_MAX, nearest_src = INT64_MAX;
    int paged = 0; /* of the rows' steps, also of those side by side in a register */
    for (int piece = 1; piece < S2DQ_NET_REGISTERS * loads; piece *= 2)
        paged += net->src[piece] && net->src[piece] % 4096 == 0;
    for (int bit = 0; bit < 4; bit++) {
        nearest = s2dq_min(nearest, s2dq_magnitude(dst_step[bit]));
        nearest_src = s2dq_min(nearest_src, s2dq_magnitude(src_step[bit]));
    }
    const bool asks = net->asks && (paged < 3 || nearest > 2 * S2DQ_LINE);
    /* Of a piece across two lines the second one is new: it is asked for by its last byte. Pieces near each other bring
     * it along, and are better asked for by their first. */
    const int64_t load_last = nearest_src < S2DQ_512_APART ? 0 : S2DQ_REGISTER_BYTES / loads - 1;
    const int64_t store_last = nearest < S2DQ_512_APART ? 0 : S2DQ_REGISTER_BYTES / stores - 1;
    for (int64_t i = 0; i < loops[0].extent; i++) {
        for (int64_t j = 0; j < loops[1].extent; j++) {
            const uint8_t *s = src;
            uint8_t *d = dst;
            int64_t fetch = 0, around = 0, ask = 0, ask_around = 0;
            s2dq_tile_turn(loops, i, j, &s, &d);
            if (far) s2dq_ahead_at(&ahead, i, j, &fetch, &around);
            s2dq_ahead_at(&results, i, j, &ask, &ask_around);
            for (int64_t left = loops[2].extent; left > 0; left--) {
                __m512i r[S2DQ_NET_REGISTERS];
                if (left <= results.turns) ask = ask_around;
                /* Written out: as a function of both sides, behind a branch, networks took up to 1.3 times as long. */
#pragma GCC unroll 16
                for (int k = 0; asks && k < S2DQ_NET_REGISTERS; k++) {
#pragma GCC unroll 4
                    for (int piece = 0; piece < stores; piece++)
                        _mm_prefetch((const char *)(d + (ask + store_last) + dst_at[piece] +
                                                    s2dq_512_place(dst_step, k)), _MM_HINT_T0);
                }
                if (far) {
                    if (left <= ahead.turns) fetch = around;
#pragma GCC unroll 16
                    for (int k = 0; k < S2DQ_NET_REGISTERS; k++) {
#pragma GCC unroll 4
                        for (int piece = 0; piece < loads; piece++)
                            _mm_prefetch((const char *)(s + (fetch + load_last) + src_at[piece] +
                                                        s2dq_512_place(src_step, k)), _MM_HINT_T0);
                    }
                }
                if (left == 1) s -= loops[2].src_back, d -= loops[2].dst_back;
#pragma GCC unroll 16
                for (int k = 0; k < S2DQ_NET_REGISTERS; k++) {
                    r[k] = s2dq_512_load(s + s2dq_512_place(src_step, k), src_at, loads);
                    S2DQ_512_LOADED(r[k]);
                }
                s2dq_512_exchanges(r, table, levels, granule);
#pragma GCC unroll 16
                for (int k = 0; k < S2DQ_NET_REGISTERS; k++)
                    s2dq_512_store(d + s2dq_512_place(dst_step, k), dst_at, stores, r[k]);
                s += loops[2].src;
                d += loops[2].dst;
            }
        }
    }
}

/* Four pieces of 16 bytes, or two of 32, from or to where a table says. */
S2DQ_512_INLINE __m512i s2dq_512_load_at(const uint8_t *src, const int32_t *at, int loads)
{
    const int64_t wide[4] = {at[0], loads > 1 ? at[1] : 0, loads > 2 ? at[2] : 0, loads > 2 ? at[3] : 0};
    return s2dq_512_load(src, wide, loads);
}

S2DQ_512_INLINE void s2dq_512_store_at(uint8_t *dst, const int32_t *at, int stores, __m512i value)
{
    const int64_t wide[4] = {at[0], stores > 1 ? at[1] : 0, stores > 2 ? at[2] : 0, stores > 2 ? at[3] : 0};
    s2dq_512_store(dst, wide, stores, value);
}

/* The same for places that are uneven on one side. Nothing is fetched by software. */
S2DQ_512_INLINE void s2dq_512_bent(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                   const s2dq_network *net, const s2dq_axis *loops, int levels, int loads, int stores,
                                   int side)
{
    __m512i table[S2DQ_NET_LEVELS][2];
    const s2dq_bend *bend = &net->bend;
    const int granule = 6 - levels - loads / 2 - stores / 2, others = side == 1 ? stores : loads;
    const int64_t *even_side = side == 1 ? net->dst : net->src;
    int64_t even[4] = {0}, even_step[4];
    for (int k = 0; k < others; k++) even[k] = even_side[k];
    for (int bit = 0; bit < 4; bit++) even_step[bit] = even_side[others << bit];
    s2dq_512_tables(table, net, levels);
    const int64_t turns = s2dq_bend_turns(bend);
    const int32_t *at = bend->at;
    for (int64_t turn = 0; turn < turns; turn++, at += S2DQ_NET_REGISTERS * (side == 1 ? loads : stores)) {
        const int64_t along = s2dq_min(turn * bend->indices, bend->total - bend->indices) * bend->unit;
        for (int64_t i = 0; i < loops[0].extent; i++) {
            for (int64_t j = 0; j < loops[1].extent; j++) {
                const uint8_t *s = src + (side == 1 ? 0 : along);
                uint8_t *d = dst + (side == 1 ? along : 0);
                s2dq_tile_turn(loops, i, j, &s, &d);
                for (int64_t left = loops[2].extent; left > 0; left--) {
                    __m512i r[S2DQ_NET_REGISTERS];
                    if (left == 1) s -= loops[2].src_back, d -= loops[2].dst_back;
#pragma GCC unroll 16
                    for (int k = 0; k < S2DQ_NET_REGISTERS; k++) {
                        r[k] = side == 1 ? s2dq_512_load_at(s, at + k * loads, loads)
                                         : s2dq_512_load(s + s2dq_512_place(even_step, k), even, loads);
                        S2DQ_512_LOADED(r[k]);
                    }
                    s2dq_512_exchanges(r, table, levels, granule);
#pragma GCC unroll 16
                    for (int k = 0; k < S2DQ_NET_REGISTERS; k++) {
                        if (side == 1) s2dq_512_store(d + s2dq_512_place(even_step, k), even, stores, r[k]);
                        else s2dq_512_store_at(d, at + k * stores, stores, r[k]);
                    }
                    s += loops[2].src;
                    d += loops[2].dst;
                }
            }
        }
    }
}

/* The loops around it first. */
S2DQ_512_INLINE void s2dq_512_bent_outside(s2dq_network_runner runner, uint8_t *dst, const uint8_t *src,
                                           const s2dq_network *net, const s2dq_axis *loops)
{
    s2dq_axis inner[S2DQ_TILE_LOOPS], outer[S2DQ_TILE_LOOPS];
    for (int k = 0; k < S2DQ_TILE_LOOPS; k++) {
        const bool inside = k >= S2DQ_TILE_LOOPS - net->bend.inside;
        inner[k] = inside ? loops[k] : s2dq_once;
        outer[k] = inside ? s2dq_once : loops[k];
    }
    for (int64_t i = 0; i < outer[0].extent; i++) {
        for (int64_t j = 0; j < outer[1].extent; j++) {
            const uint8_t *s = src;
            uint8_t *d = dst;
            s2dq_tile_turn(outer, i, j, &s, &d);
            for (int64_t k = 0; k < outer[2].extent; k++) {
                const bool last = k == outer[2].extent - 1;
                runner(d - (last ? outer[2].dst_back : 0), s - (last ? outer[2].src_back : 0), net, inner);
                s += outer[2].src;
                d += outer[2].dst;
            }
        }
    }
}

#define S2DQ_512_NET(V, L, S)                                                                                  \
    S2DQ_512 static void s2dq_512_net_##V##L##S(uint8_t *dst, const uint8_t *src, const s2dq_network *network, \
                                                const s2dq_axis *loops)                                        \
    {                                                                                                          \
        s2dq_512_net(dst, src, network, loops, V, L, S);                                                       \
    }
/* Levels, loads and stores of all there are: rows and columns of 16 to 64 bytes, granules of 1 to 16. */
#define S2DQ_512_EACH_NET(M)                                                                                \
    M(4, 1, 1) M(4, 1, 2) M(4, 1, 4) M(4, 2, 1) M(4, 2, 2) M(4, 4, 1) M(3, 1, 1) M(3, 2, 1) M(3, 4, 1) M(2, 1, 1) \
    M(2, 2, 1) M(2, 4, 1) M(1, 2, 1) M(1, 4, 1)

S2DQ_512_EACH_NET(S2DQ_512_NET)

#define S2DQ_512_NET_ENTRY(V, L, S) [V - 1][L / 2][S / 2] = s2dq_512_net_##V##L##S,

static const s2dq_network_runner s2dq_512_networks[S2DQ_NET_LEVELS][3][3] = {S2DQ_512_EACH_NET(S2DQ_512_NET_ENTRY)};

#define S2DQ_512_BENT_OF(SIDE, V, L, S)                                                                             \
    S2DQ_512 static void s2dq_512_bent_turns_##SIDE##V##L##S(uint8_t *dst, const uint8_t *src,                   \
                                                             const s2dq_network *network, const s2dq_axis *loops) \
    {                                                                                                            \
        s2dq_512_bent(dst, src, network, loops, V, L, S, SIDE);                                                  \
    }                                                                                                            \
    S2DQ_512 static void s2dq_512_bent_##SIDE##V##L##S(uint8_t *dst, const uint8_t *src,                         \
                                                       const s2dq_network *network, const s2dq_axis *loops)      \
    {                                                                                                            \
        s2dq_512_bent_outside(s2dq_512_bent_turns_##SIDE##V##L##S, dst, src, network, loops);                    \
    }
#define S2DQ_512_BENT(V, L, S) S2DQ_512_BENT_OF(1, V, L, S) S2DQ_512_BENT_OF(2, V, L, S)

S2DQ_512_EACH_NET(S2DQ_512_BENT)

#define S2DQ_512_BENT_ENTRY(V, L, S) \
    [V - 1][L / 2][S / 2] = {s2dq_512_bent_1##V##L##S, s2dq_512_bent_2##V##L##S},

static const s2dq_network_runner s2dq_512_bents[S2DQ_NET_LEVELS][3][3][2] = {S2DQ_512_EACH_NET(S2DQ_512_BENT_ENTRY)};

static s2dq_network_runner s2dq_512_network_runner(const s2dq_network *net)
{
    if (net->bend.side) return s2dq_512_bents[net->levels - 1][net->loads / 2][net->stores / 2][net->bend.side - 1];
    return s2dq_512_networks[net->levels - 1][net->loads / 2][net->stores / 2];
}

#endif

#endif
