/* Tile programs on AVX2: for frames that go through their tables on the way, and for packed words that straddle groups
 * of channels. (Other plain moves have kernels of their own.)
 *
 * A vector of 32 bytes of the result is put together from windows of 16 bytes of the source, a pair of them at a time,
 * one for each lane: load, shuffle, or. Where pairs can be chosen side by side, one load takes both. The vectors of a
 * tile take turns in sweeps over the two innermost loops, so that what one of them needs stays in registers; a sweep is
 * as long as its lines stay in the nearest cache. Three vectors that come from the same four windows, as the words of
 * blocks of twelve bytes from two rows do, take their turns together.
 */
#ifndef S2DQ_AVX2_TILE_H
#define S2DQ_AVX2_TILE_H

#include <string.h>

#include "isa.h"
#include "tile.h"

enum {
    S2DQ_STEP_BYTES = 32,
    S2DQ_STEP_LANE = 16,
    S2DQ_STEP_WINDOWS = 16,                                                  /* of a lane: one for each byte */
    S2DQ_STEP_SWEPT = 6,                                                     /* as many may stay in registers */
    S2DQ_STEPS = S2DQ_REGISTERS * S2DQ_REGISTER_BYTES / S2DQ_STEP_BYTES,     /* of a tile */
    S2DQ_STEP_SWEEP = 6144                                                   /* bytes of the source in one */
};

/* How to make and store one vector. */
typedef struct {
    int windows, output, half, filled;
    int joined;      /* whether the windows of both lanes lie side by side */
    int whole;       /* 1: its lanes are stored whole, 2: and as one */
    uint32_t stored; /* bytes */
    int64_t dst[2];  /* of each lane */
    int64_t at[S2DQ_STEP_WINDOWS][2];
    uint8_t shuffle[S2DQ_STEP_WINDOWS][S2DQ_STEP_BYTES];
} s2dq_step;

/* Three vectors from two runs of the source, which lie beside each other in either half of a lane: the first one is all
 * from the first run, the last one from the second, and the one in between from both. Windows are `apart` in the lanes:
 * two of the first run, for the lower halves and for the upper ones, then those of the second. */
typedef struct {
    int step[3];
    int64_t at[4], apart;
    uint8_t shuffle[4][S2DQ_STEP_BYTES];
} s2dq_trio;

typedef struct s2dq_steps {
    int count, trios; /* trios of all steps, or none */
    s2dq_step step[S2DQ_STEPS];
    s2dq_trio trio[S2DQ_STEPS / 3];
} s2dq_steps;

/* Where byte i of output k comes from. */
static inline int64_t s2dq_tile_source(const s2dq_tile *tile, int k, int i)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile->loads;
    const int place = (int)(tile->upper[k] >> i & 1) * 2 * S2DQ_REGISTER_BYTES + tile->table[k][i];
    return tile->src[place / width] + place % width;
}

/* Covers bytes of a vector, a bit of `left` for each, with windows between `low` and `high`; those of its upper lane
 * are read `beside` bytes behind the windows. OUT: where these start. Returns how many, or -1: one is out of reach. */
static inline int s2dq_step_cover(int64_t *at, const int64_t *from, uint32_t left, int64_t beside, int64_t low,
                                  int64_t high)
{
    const int64_t last = high - beside - S2DQ_STEP_LANE;
    int windows = 0;
    while (left) {
        int64_t start = last;
        uint32_t reached = 0;
        for (int i = 0; i < S2DQ_STEP_BYTES; i++) {
            const int64_t place = from[i] - i / S2DQ_STEP_LANE * beside;
            if (left >> i & 1) start = s2dq_min(start, place);
        }
        for (int i = 0; i < S2DQ_STEP_BYTES; i++) {
            const int64_t place = from[i] - i / S2DQ_STEP_LANE * beside - start;
            reached |= (uint32_t)(place >= 0 && place < S2DQ_STEP_LANE) << i;
        }
        if (!(left & reached) || start < low || windows == S2DQ_STEP_WINDOWS) return -1;
        left &= ~reached;
        at[windows++] = start;
    }
    return windows;
}

/* OUT: the windows of a step whose bytes come `from` where it `wants` them: as few as possible, between `low` and
 * `high`. */
static inline void s2dq_step_windows(s2dq_step *step, const int64_t *from, uint32_t wants, int64_t low, int64_t high)
{
    const uint32_t lower = 0xFFFF;
    int64_t at[3][S2DQ_STEP_WINDOWS]; /* of either lane, and of both */
    const int one = s2dq_step_cover(at[0], from, wants & lower, 0, low, high);
    const int other = s2dq_step_cover(at[1], from, wants & ~lower, 0, low, high);
    const int both = s2dq_step_cover(at[2], from, wants, S2DQ_STEP_LANE, low, high);
    step->windows = (int)s2dq_max(one, other);
    step->joined = both > 0 && both <= step->windows; /* fewer there cannot be */
    if (!step->windows) step->windows = 1;
    memset(step->shuffle, 0x80, sizeof step->shuffle); /* such a byte becomes 0 */
    for (int w = 0; w < step->windows; w++) {
        step->at[w][0] = step->joined ? at[2][w] : w < one ? at[0][w] : high - S2DQ_STEP_LANE;
        step->at[w][1] = step->joined ? at[2][w] + S2DQ_STEP_LANE : w < other ? at[1][w] : high - S2DQ_STEP_LANE;
        for (int i = 0; i < S2DQ_STEP_BYTES; i++) {
            const int64_t place = from[i] - step->at[w][i / S2DQ_STEP_LANE];
            if (!(wants >> i & 1) || place < 0 || place >= S2DQ_STEP_LANE) continue;
            step->shuffle[w][i] = (uint8_t)place;
            wants &= ~((uint32_t)1 << i);
        }
    }
}

/* Places of the source that one window is to reach. */
typedef struct {
    int64_t first, last;
} s2dq_reach;

/* Takes a place in. Returns 0 where it is too far from the others. */
static inline bool s2dq_reach_to(s2dq_reach *reach, int64_t place)
{
    const s2dq_reach wider = {s2dq_min(reach->first, place), s2dq_max(reach->last, place)};
    if (wider.last - wider.first >= S2DQ_STEP_LANE) return false;
    *reach = wider;
    return true;
}

/* OUT: how three steps, of which all bytes are wanted, are made together; `low` and `high` as for windows. Returns 0
 * where that is not possible. */
static inline bool s2dq_step_trio(s2dq_trio *trio, const s2dq_steps *steps, const s2dq_tile *tile, int64_t low,
                                  int64_t high)
{
    enum { HALF = S2DQ_STEP_LANE / 2, LAST = S2DQ_STEP_LANE - 1 };
    s2dq_reach reach[2][4]; /* of each lane, and window */
    int64_t from[3][S2DQ_STEP_BYTES];
    int run[S2DQ_STEP_BYTES]; /* that bytes in between are from */
    for (int k = 0; k < 3; k++) {
        const s2dq_step *step = &steps->step[trio->step[k]];
        for (int i = 0; i < S2DQ_STEP_BYTES; i++)
            from[k][i] = s2dq_tile_source(tile, step->output, step->half * S2DQ_STEP_BYTES + i);
    }
    for (int at = 0; at < S2DQ_STEP_BYTES; at += HALF) {
        s2dq_reach *const lane = &reach[at / S2DQ_STEP_LANE][at / HALF % 2];
        lane[0].first = lane[2].first = INT64_MAX / 2, lane[0].last = lane[2].last = INT64_MIN / 2;
        for (int i = at; i < at + HALF; i++)
            if (!s2dq_reach_to(&lane[0], from[0][i]) || !s2dq_reach_to(&lane[2], from[2][i])) return false;
        for (int i = at; i < at + HALF; i++) {
            run[i] = !s2dq_reach_to(&lane[0], from[1][i]);
            if (run[i] && !s2dq_reach_to(&lane[2], from[1][i])) return false;
        }
    }
    trio->apart = reach[1][0].first - reach[0][0].first;
    memset(trio->shuffle, 0x80, sizeof trio->shuffle);
    for (int w = 0; w < 4; w++) {
        const s2dq_reach one = reach[0][w], other = {reach[1][w].first - trio->apart, reach[1][w].last - trio->apart};
        const int64_t start = s2dq_max(low, low - trio->apart), end = s2dq_min(high, high - trio->apart);
        trio->at[w] = s2dq_min(s2dq_min(one.first, other.first), end - S2DQ_STEP_LANE);
        if (trio->at[w] < start || trio->at[w] + LAST < s2dq_max(one.last, other.last)) return false;
        for (int i = 0; i < S2DQ_STEP_BYTES; i++) {
            const int64_t begin = trio->at[w] + i / S2DQ_STEP_LANE * trio->apart;
            const int place = i / S2DQ_STEP_LANE * S2DQ_STEP_LANE + i % HALF;
            if (i / HALF % 2 != w % 2) continue;
            trio->shuffle[w][place] = (uint8_t)(from[w / 2 * 2][i] - begin);
            if (run[i] == w / 2) trio->shuffle[w][place + HALF] = (uint8_t)(from[1][i] - begin);
        }
    }
    return true;
}

/* OUT: the trios of a tile whose steps are made, where all of these are in one. */
static inline void s2dq_step_trios(s2dq_steps *steps, const s2dq_tile *tile, int64_t low, int64_t high)
{
    const int third = steps->count / 3;
    steps->trios = 0;
    if (steps->count % 3) return;
    for (int k = 0; k < steps->count; k++)
        if (steps->step[k].whole != 2 || steps->step[k].filled || steps->step[k].windows < 2) return;
    for (int k = 0; k < third; k++) {
        s2dq_trio *trio = &steps->trio[k];
        for (int i = 0; i < 3; i++) trio->step[i] = i * third + k;
        if (!s2dq_step_trio(trio, steps, tile, low, high)) return;
    }
    steps->trios = third;
}

/* OUT: the steps of a tile. Returns the most windows of any. */
static inline int s2dq_tile_steps(s2dq_steps *steps, const s2dq_tile *tile)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile->stores;
    int64_t low = INT64_MAX, high = INT64_MIN;
    int most = 0;
    for (int k = 0; k < tile->inputs * tile->loads; k++) {
        const int64_t end = tile->src[k] + S2DQ_REGISTER_BYTES / tile->loads;
        low = s2dq_min(low, tile->src[k]);
        high = s2dq_max(high, end);
    }
    steps->count = 0;
    for (int at = 0; at < tile->outputs * 2; at++) {
        s2dq_step *step = &steps->step[steps->count];
        int64_t from[S2DQ_STEP_BYTES];
        uint32_t wants = 0;
        step->output = at / 2, step->half = at % 2, step->stored = 0, step->filled = 0;
        for (int i = 0; i < S2DQ_STEP_BYTES; i++) {
            const int byte = step->half * S2DQ_STEP_BYTES + i, piece = step->output * (int)tile->stores + byte / width;
            step->stored |= (uint32_t)(tile->dst_mask[piece] >> byte % width & 1) << i;
            step->filled |= tile->fill[step->output][byte] >= 0;
            wants |= (uint32_t)s2dq_tile_wants(tile, step->output, byte) << i;
            from[i] = s2dq_tile_source(tile, step->output, byte);
            if (i % S2DQ_STEP_LANE == 0) step->dst[i / S2DQ_STEP_LANE] = tile->dst[piece] + byte % width;
        }
        if (!step->stored) continue;
        step->whole = step->stored != ~(uint32_t)0 ? 0 : step->dst[1] == step->dst[0] + S2DQ_STEP_LANE ? 2 : 1;
        s2dq_step_windows(step, from, wants, low, high);
        most = (int)s2dq_max(most, step->windows);
        steps->count++;
    }
    s2dq_step_trios(steps, tile, low, high);
    return most;
}

#if defined(S2DQ_X86)

#include <immintrin.h>

#define S2DQ_STEP __attribute__((target("avx2")))
#define S2DQ_STEP_INLINE static inline __attribute__((always_inline)) S2DQ_STEP

/* Two runs of 16 bytes, one in each lane. */
S2DQ_STEP_INLINE __m256i s2dq_step_load(const uint8_t *src, const int64_t *at)
{
    const __m128i low = _mm_loadu_si128((const __m128i *)(src + at[0]));
    const __m128i high = _mm_loadu_si128((const __m128i *)(src + at[1]));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

S2DQ_STEP_INLINE void s2dq_step_store(uint8_t *dst, const s2dq_step *step, __m256i value)
{
    if (step->whole == 2) {
        _mm256_storeu_si256((__m256i *)(dst + step->dst[0]), value);
    } else if (step->whole) {
        _mm_storeu_si128((__m128i *)(dst + step->dst[0]), _mm256_castsi256_si128(value));
        _mm_storeu_si128((__m128i *)(dst + step->dst[1]), _mm256_extracti128_si256(value, 1));
    } else {
        uint8_t bytes[S2DQ_STEP_BYTES];
        _mm256_storeu_si256((__m256i *)bytes, value);
        for (int lane = 0; lane < 2; lane++) {
            const uint32_t stored = step->stored >> lane * S2DQ_STEP_LANE & 0xFFFF;
            const uint8_t *from = bytes + lane * S2DQ_STEP_LANE;
            uint8_t *to = dst + step->dst[lane];
            int count = 0;
            if (!(stored & (stored + 1))) { /* from the first one on */
                while (stored >> count) count++;
                if (count & 8) memcpy(to, from, 8);
                if (count & 4) memcpy(to + (count & 8), from + (count & 8), 4);
                if (count & 2) memcpy(to + (count & 12), from + (count & 12), 2);
                if (count & 1) to[count - 1] = from[count - 1];
                if (count & 16) memcpy(to, from, 16);
            } else {
                for (int j = 0; j < S2DQ_STEP_LANE; j++)
                    if (stored >> j & 1) to[j] = from[j];
            }
        }
    }
}

#define S2DQ_STEP_BYTES_OF(OF) _mm256_loadu_si256((const __m256i *)(OF))
#define S2DQ_STEP_WORDS(OF) _mm256_loadu_si256((const __m256i *)((OF) + word))

/* What bytes of a vector go through: no lines (0), or lines (1; 2: that take something off, 3: that are shifted, 4:
 * that do all there is; 5: as 1, of which no word saturates, so that what is added turns bits too). */
typedef struct {
    __m256i fill, first, slope[2], more[2], less[2];
    __m128i down, up;
} s2dq_step_line;

S2DQ_STEP_INLINE s2dq_step_line s2dq_step_line_of(const s2dq_step *step, const s2dq_filling *filling, int mapped)
{
    const int k = step->output, byte = step->half * S2DQ_STEP_BYTES, word = byte / 2;
    const s2dq_lines *lines = filling->lines;
    s2dq_step_line line = {.fill = S2DQ_STEP_BYTES_OF(filling->fill[k] + byte)};
    if (!mapped) return line;
    line.first = S2DQ_STEP_BYTES_OF(lines->first);
    line.down = _mm_cvtsi32_si128(8 - (int)lines->shift);
    line.up = _mm_cvtsi32_si128((int)lines->shift);
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++) {
        line.slope[odd] = S2DQ_STEP_WORDS(lines->slope[k][odd]);
        line.more[odd] = S2DQ_STEP_WORDS(lines->more[k][odd]);
        line.less[odd] = S2DQ_STEP_WORDS(lines->less[k][odd]);
    }
    if (mapped == 5) {
        line.more[0] = _mm256_add_epi16(line.more[0], _mm256_slli_epi16(line.fill, 8));
        line.more[1] = _mm256_add_epi16(line.more[1], _mm256_and_si256(line.fill, _mm256_set1_epi16((short)0xFF00)));
    }
    return line;
}

S2DQ_STEP_INLINE __m256i s2dq_step_through(__m256i value, const s2dq_step_line *by, int mapped)
{
    const __m256i upper = _mm256_set1_epi16((short)0xFF00);
    const bool falls = mapped == 2 || mapped == 4, shifts = mapped == 3 || mapped == 4;
    if (!mapped) return value;
    if (mapped == 4) value = _mm256_xor_si256(value, by->first);
    __m256i even = _mm256_slli_epi16(value, 8), odd = _mm256_and_si256(value, upper);
    if (falls) even = _mm256_subs_epu16(even, by->less[0]), odd = _mm256_subs_epu16(odd, by->less[1]);
    even = _mm256_mulhi_epu16(even, by->slope[0]), odd = _mm256_mulhi_epu16(odd, by->slope[1]);
    even = mapped == 5 ? _mm256_add_epi16(even, by->more[0]) : _mm256_adds_epu16(even, by->more[0]);
    odd = mapped == 5 ? _mm256_add_epi16(odd, by->more[1]) : _mm256_adds_epu16(odd, by->more[1]);
    even = shifts ? _mm256_srl_epi16(even, by->down) : _mm256_srli_epi16(even, 8);
    if (shifts) odd = _mm256_sll_epi16(odd, by->up);
    return _mm256_blendv_epi8(even, odd, upper);
}

/* Turns of two loops for one vector of their tile. What is said of it is a constant where this is inlined: how many
 * windows it has, what lines it goes through, whether it has bytes that are filled, whether pairs of windows are loaded
 * at once, and how it is stored. */
S2DQ_STEP_INLINE void s2dq_step_sweep_of(uint8_t *dst, const uint8_t *src, const s2dq_axis *sweep,
                                         const s2dq_step *step, const s2dq_filling *filling, int windows, int mapped,
                                         int filled, int joined, int whole)
{
    const s2dq_axis outer = sweep[0], inner = sweep[1];
    const s2dq_step_line line = s2dq_step_line_of(step, filling, mapped);
    const __m256i keep = S2DQ_STEP_BYTES_OF(filling->keep[step->output] + step->half * S2DQ_STEP_BYTES);
    __m256i shuffle[S2DQ_STEP_SWEPT];
    int64_t at[S2DQ_STEP_SWEPT][2];
    const int64_t to[2] = {step->dst[0], step->dst[1]};
#pragma GCC unroll 6
    for (int w = 0; w < windows; w++) {
        shuffle[w] = S2DQ_STEP_BYTES_OF(step->shuffle[w]);
        at[w][0] = step->at[w][0], at[w][1] = step->at[w][1];
    }
    for (int64_t j = 0; j < outer.extent; j++) {
        const uint8_t *s = src + j * outer.src;
        uint8_t *d = dst + j * outer.dst;
        for (int64_t left = inner.extent; left > 0; left--) {
            if (left == 1) s -= inner.src_back, d -= inner.dst_back;
            __m256i value = line.fill;
#pragma GCC unroll 6
            for (int w = 0; w < windows; w++) {
                const __m256i window = joined ? S2DQ_STEP_BYTES_OF(s + at[w][0]) : s2dq_step_load(s, at[w]);
                const __m256i part = _mm256_shuffle_epi8(window, shuffle[w]);
                value = w ? _mm256_or_si256(value, part) : part;
            }
            value = s2dq_step_through(value, &line, mapped);
            if (filled) value = _mm256_and_si256(value, keep);
            if (mapped != 5) value = _mm256_xor_si256(value, line.fill);
            if (whole == 2) {
                _mm256_storeu_si256((__m256i *)(d + to[0]), value);
            } else {
                _mm_storeu_si128((__m128i *)(d + to[0]), _mm256_castsi256_si128(value));
                _mm_storeu_si128((__m128i *)(d + to[1]), _mm256_extracti128_si256(value, 1));
            }
            s += inner.src;
            d += inner.dst;
        }
    }
}

typedef void (*s2dq_step_sweep)(uint8_t *, const uint8_t *, const s2dq_axis *, const s2dq_step *,
                                const s2dq_filling *);

#define S2DQ_STEP_SWEEP_OF(W, M, F, J, S)                                                                           \
    S2DQ_STEP static void s2dq_step_sweep_##W##M##F##J##S(uint8_t *dst, const uint8_t *src, const s2dq_axis *sweep, \
                                                          const s2dq_step *step, const s2dq_filling *filling)       \
    {                                                                                                               \
        s2dq_step_sweep_of(dst, src, sweep, step, filling, W, M, F, J, S);                                          \
    }
#define S2DQ_STEP_EACH_STORE(M, W, MAPPED, F, J) M(W, MAPPED, F, J, 1) M(W, MAPPED, F, J, 2)
#define S2DQ_STEP_EACH_LOAD(M, W, MAPPED, F) \
    S2DQ_STEP_EACH_STORE(M, W, MAPPED, F, 0) S2DQ_STEP_EACH_STORE(M, W, MAPPED, F, 1)
#define S2DQ_STEP_EACH_FILL(M, W, MAPPED) S2DQ_STEP_EACH_LOAD(M, W, MAPPED, 0) S2DQ_STEP_EACH_LOAD(M, W, MAPPED, 1)
#define S2DQ_STEP_EACH_KIND(M, W)                                                              \
    S2DQ_STEP_EACH_FILL(M, W, 0) S2DQ_STEP_EACH_FILL(M, W, 1) S2DQ_STEP_EACH_FILL(M, W, 2) \
    S2DQ_STEP_EACH_FILL(M, W, 3) S2DQ_STEP_EACH_FILL(M, W, 4) S2DQ_STEP_EACH_LOAD(M, W, 5, 0)
#define S2DQ_STEP_EACH(M)                                                              \
    S2DQ_STEP_EACH_KIND(M, 1) S2DQ_STEP_EACH_KIND(M, 2) S2DQ_STEP_EACH_KIND(M, 3) \
    S2DQ_STEP_EACH_KIND(M, 4) S2DQ_STEP_EACH_KIND(M, 5) S2DQ_STEP_EACH_KIND(M, 6)

S2DQ_STEP_EACH(S2DQ_STEP_SWEEP_OF)

#define S2DQ_STEP_ENTRY(W, M, F, J, S) [M][F][J][S - 1][W - 1] = s2dq_step_sweep_##W##M##F##J##S,
static const s2dq_step_sweep s2dq_step_sweeps[6][2][2][2][S2DQ_STEP_SWEPT] = {S2DQ_STEP_EACH(S2DQ_STEP_ENTRY)};

/* Turns of two loops for the three vectors of a trio. */
S2DQ_STEP_INLINE void s2dq_trio_sweep_of(uint8_t *dst, const uint8_t *src, const s2dq_axis *sweep,
                                         const s2dq_steps *steps, const s2dq_trio *trio, const s2dq_filling *filling,
                                         int mapped)
{
    const s2dq_axis outer = sweep[0], inner = sweep[1];
    const int64_t apart = trio->apart;
    int64_t at[4], to[3];
    __m256i shuffle[4];
    s2dq_step_line line[3];
#pragma GCC unroll 4
    for (int w = 0; w < 4; w++) at[w] = trio->at[w], shuffle[w] = S2DQ_STEP_BYTES_OF(trio->shuffle[w]);
#pragma GCC unroll 3
    for (int k = 0; k < 3; k++) {
        const s2dq_step *step = &steps->step[trio->step[k]];
        to[k] = step->dst[0], line[k] = s2dq_step_line_of(step, filling, mapped);
    }
    for (int64_t j = 0; j < outer.extent; j++) {
        const uint8_t *s = src + j * outer.src;
        uint8_t *d = dst + j * outer.dst;
        for (int64_t left = inner.extent; left > 0; left--, s += inner.src, d += inner.dst) {
            if (left == 1) s -= inner.src_back, d -= inner.dst_back;
            const uint8_t *const other = s + apart;
            __m256i v[4], value[3];
#pragma GCC unroll 4
            for (int w = 0; w < 4; w++) {
                const __m128i low = _mm_loadu_si128((const __m128i *)(s + at[w]));
                const __m128i high = _mm_loadu_si128((const __m128i *)(other + at[w]));
                v[w] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
                v[w] = _mm256_shuffle_epi8(v[w], shuffle[w]);
            }
            value[0] = _mm256_unpacklo_epi64(v[0], v[1]), value[2] = _mm256_unpacklo_epi64(v[2], v[3]);
            value[1] = _mm256_or_si256(_mm256_unpackhi_epi64(v[0], v[1]), _mm256_unpackhi_epi64(v[2], v[3]));
#pragma GCC unroll 3
            for (int k = 0; k < 3; k++) {
                value[k] = s2dq_step_through(value[k], &line[k], mapped);
                if (mapped != 5) value[k] = _mm256_xor_si256(value[k], line[k].fill);
                _mm256_storeu_si256((__m256i *)(d + to[k]), value[k]);
            }
        }
    }
}

typedef void (*s2dq_trio_sweep)(uint8_t *, const uint8_t *, const s2dq_axis *, const s2dq_steps *, const s2dq_trio *,
                                const s2dq_filling *);

#define S2DQ_TRIO_SWEEP(MAPPED)                                                                                     \
    S2DQ_STEP static void s2dq_trio_sweep_##MAPPED(uint8_t *dst, const uint8_t *src, const s2dq_axis *sweep,       \
                                                   const s2dq_steps *steps, const s2dq_trio *trio,                  \
                                                   const s2dq_filling *filling)                                     \
    {                                                                                                               \
        s2dq_trio_sweep_of(dst, src, sweep, steps, trio, filling, MAPPED);                                          \
    }

S2DQ_TRIO_SWEEP(0)
S2DQ_TRIO_SWEEP(4)
S2DQ_TRIO_SWEEP(5)

/* Any vector, once. */
S2DQ_STEP static void s2dq_step_once(uint8_t *dst, const uint8_t *src, const s2dq_step *step,
                                     const s2dq_filling *filling)
{
    const int mapped = filling->lines ? 4 : 0;
    const s2dq_step_line line = s2dq_step_line_of(step, filling, mapped);
    __m256i value = _mm256_setzero_si256();
    for (int w = 0; w < step->windows; w++) {
        const __m256i shuffle = S2DQ_STEP_BYTES_OF(step->shuffle[w]);
        value = _mm256_or_si256(value, _mm256_shuffle_epi8(s2dq_step_load(src, step->at[w]), shuffle));
    }
    value = s2dq_step_through(value, &line, mapped);
    value = _mm256_and_si256(value, S2DQ_STEP_BYTES_OF(filling->keep[step->output] + step->half * S2DQ_STEP_BYTES));
    value = _mm256_xor_si256(value, line.fill);
    s2dq_step_store(dst, step, value);
}

/* One sweep: all turns of two loops, vector by vector. */
static void s2dq_step_all(uint8_t *dst, const uint8_t *src, const s2dq_steps *steps, const s2dq_filling *filling,
                          const s2dq_axis *sweep)
{
    const s2dq_lines *lines = filling->lines;
    const bool all = lines && (lines->turns || (lines->shift && lines->falls));
    const int mapped = !lines ? 0 : all ? 4 : lines->shift ? 3 : lines->falls ? 2 : 1;
    const s2dq_trio_sweep together = !mapped                       ? s2dq_trio_sweep_0
                                     : mapped == 1 && !lines->ends ? s2dq_trio_sweep_5
                                                                   : s2dq_trio_sweep_4;
    for (int k = 0; k < steps->trios; k++) together(dst, src, sweep, steps, &steps->trio[k], filling);
    if (steps->trios) return;
    for (int k = 0; k < steps->count; k++) {
        const s2dq_step *step = &steps->step[k];
        if (step->whole && step->windows <= S2DQ_STEP_SWEPT) {
            const bool endless = mapped == 1 && !lines->ends && !step->filled;
            s2dq_step_sweeps[endless ? 5 : mapped][step->filled][step->joined][step->whole - 1][step->windows - 1](
                dst, src, sweep, step, filling);
            continue;
        }
        for (int64_t j = 0; j < sweep[0].extent; j++) {
            for (int64_t i = 0; i < sweep[1].extent; i++) {
                const int64_t back = i == sweep[1].extent - 1;
                s2dq_step_once(dst + j * sweep[0].dst + i * sweep[1].dst - back * sweep[1].dst_back,
                               src + j * sweep[0].src + i * sweep[1].src - back * sweep[1].src_back, step, filling);
            }
        }
    }
}

/* Fetches what a sweep reads. */
static void s2dq_step_fetch(const uint8_t *src, const s2dq_tile *tile, const s2dq_axis *sweep)
{
    for (int64_t j = 0; j < sweep[0].extent; j++)
        for (int64_t i = 0; i < sweep[1].extent; i++)
            for (int64_t k = 0; k < tile->inputs * tile->loads; k++)
                _mm_prefetch((const char *)(src + j * sweep[0].src + i * sweep[1].src + tile->src[k]), _MM_HINT_T0);
}

static void s2dq_step_run(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, const s2dq_filling *filling,
                          const s2dq_axis *loops)
{
    const int64_t read = s2dq_magnitude(loops[2].src);
    /* Of the result, twice as much may be in a sweep: words that are mostly fill are much longer than their source. */
    const int64_t size = s2dq_max(read * 2 > S2DQ_REGISTER_BYTES ? read : S2DQ_REGISTER_BYTES,
                                  tile->outputs * S2DQ_REGISTER_BYTES / 2);
    const int64_t most = size * 8 < S2DQ_STEP_SWEEP ? S2DQ_STEP_SWEEP / size : 8; /* turns in a sweep */
    const int64_t back = loops[1].src_back || loops[1].dst_back;
    for (int64_t i = 0; i < loops[0].extent; i++) {
        for (int64_t j = 0; j < loops[1].extent;) {
            const uint8_t *s = src;
            uint8_t *d = dst;
            s2dq_axis sweep[2] = {loops[1], loops[2]};
            s2dq_tile_turn(loops, i, j, &s, &d);
            sweep[0].extent = loops[2].extent < most ? most / loops[2].extent : 1;
            sweep[0].extent = s2dq_min(sweep[0].extent, loops[1].extent - j);
            if (sweep[0].extent > 1 && back && j + sweep[0].extent == loops[1].extent) sweep[0].extent--;
            j += sweep[0].extent;
            for (int64_t from = 0; from < loops[2].extent; from += most) {
                const bool last = from + most >= loops[2].extent;
                sweep[1].extent = last ? loops[2].extent - from : most;
                sweep[1].src_back = last ? loops[2].src_back : 0;
                sweep[1].dst_back = last ? loops[2].dst_back : 0;
                if (tile->far)
                    s2dq_step_fetch(last ? s + sweep[0].extent * loops[1].src : s + (from + most) * loops[2].src, tile,
                                    sweep);
                s2dq_step_all(d + from * loops[2].dst, s + from * loops[2].src, tile->steps, filling, sweep);
            }
        }
    }
}

static s2dq_tile_runner s2dq_step_runner(const s2dq_tile *tile)
{
    (void)tile;
    return s2dq_step_run;
}

/* What the arithmetic of a line comes to for one byte. */
static inline uint8_t s2dq_line_value(const s2dq_lines *lines, int k, int i, uint8_t byte)
{
    int64_t from = (int64_t)(byte ^ lines->first[0]) * 256 - lines->less[k][i & 1][i / 2];
    from = s2dq_max(from, 0);
    int64_t value = (from * lines->slope[k][i & 1][i / 2] >> 16) + lines->more[k][i & 1][i / 2];
    value = s2dq_min(value, 65535);
    return (uint8_t)(value >> (8 - lines->shift));
}

/* One tile at an end of the source, byte by byte. */
static void s2dq_step_run_edge(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, const s2dq_filling *filling)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile->stores;
    for (int k = 0; k < tile->outputs; k++) {
        for (int i = 0; i < S2DQ_REGISTER_BYTES; i++) {
            const int piece = k * (int)tile->stores + i / width;
            uint8_t value = 0;
            if (!(tile->dst_mask[piece] >> i % width & 1)) continue;
            if (filling->keep[k][i]) {
                value = src[s2dq_tile_source(tile, k, i)];
                if (filling->lines) value = s2dq_line_value(filling->lines, k, i, value);
            }
            dst[tile->dst[piece] + i % width] = value ^ filling->fill[k][i];
        }
    }
}

#endif
#endif
