/* Tile programs and networks on AArch64 NEON: lists of steps that make 16 bytes each.
 *
 * TBL looks bytes up in one to four registers of 16. So a *step* makes one 16-byte part of an output register from
 * those 16-byte parts of the inputs that it takes bytes of, usually one or two: it loads them, which is cheaper than
 * keeping all inputs in registers and passing over all of them, and looks up in no more of them than there are.
 * It is repeated for some turns of the innermost loop before the next step has its turn, so that its table stays in a
 * register, and few enough turns that they stay in the nearest cache.
 */
#ifndef S2DQ_NEON_H
#define S2DQ_NEON_H

#include "isa.h"
#include "tile.h"

#if defined(S2DQ_ARM)

#include <arm_neon.h>
#include <string.h>

#define S2DQ_NEON_INLINE static inline __attribute__((always_inline))

enum {
    S2DQ_NEON_PART = 16,  /* bytes */
    S2DQ_NEON_PARTS = 16, /* in all registers of a side */
    S2DQ_NEON_LOOKUP = 4, /* parts of one TBL at most */
    S2DQ_NEON_TURNS = 8
};

/* One part of an output register. */
typedef struct {
    uint8x16_t index[S2DQ_NEON_PARTS / S2DQ_NEON_LOOKUP]; /* out of range where another lookup has the byte */
    uint8x16_t keep, fill;
    uint8x16_t tail;              /* moves the end of a store in part to the front */
    int64_t src[S2DQ_NEON_PARTS]; /* the parts to look up in, filled up to a whole number of lookups */
    int64_t dst;
    unsigned parts;
    int filled;
    int length;                   /* bytes to store, or 0: */
    unsigned mask;                /* these */
} s2dq_neon_step;

/* ------------------------------------------------------------------------------------------------ a tile's steps */

/* 0xff in the lanes of the bits of a mask. */
S2DQ_NEON_INLINE uint8x16_t s2dq_neon_lanes(unsigned mask)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    return vtstq_u8(vcombine_u8(vdup_n_u8(mask & 255), vdup_n_u8(mask >> 8 & 255)), bit);
}

/* Where the bytes of an output come from, in all inputs laid end to end: 0..255. */
S2DQ_NEON_INLINE uint8x16_t s2dq_neon_origin(const s2dq_tile *tile, int output, int lane)
{
    const uint8x16_t upper = s2dq_neon_lanes(tile->upper[output] >> lane & 0xffff);
    const uint8x16_t high = vorrq_u8(vld1q_u8(tile->high[output] + lane), vdupq_n_u8(128));
    return vbslq_u8(upper, high, vld1q_u8(tile->low[output] + lane));
}

/* Which parts the lanes of `wanted` come from, a bit each. */
S2DQ_NEON_INLINE unsigned s2dq_neon_parts(uint8x16_t origin, uint8x16_t wanted)
{
    const int8x16_t part = vreinterpretq_s8_u8(vshrq_n_u8(origin, 4));
    const uint16x8_t low = vshlq_u16(vdupq_n_u16(1), vmovl_s8(vget_low_s8(part)));
    const uint16x8_t high = vshlq_u16(vdupq_n_u16(1), vmovl_s8(vget_high_s8(part)));
    const uint16x8_t bits = vorrq_u16(vandq_u16(low, vreinterpretq_u16_u8(vzip1q_u8(wanted, wanted))),
                                      vandq_u16(high, vreinterpretq_u16_u8(vzip2q_u8(wanted, wanted))));
    const uint64x2_t halves = vreinterpretq_u64_u16(bits);
    uint64_t all = vgetq_lane_u64(halves, 0) | vgetq_lane_u64(halves, 1);
    all |= all >> 32;
    return (all | all >> 16) & 0xffff;
}

/* Offset of part k of one side. */
S2DQ_NEON_INLINE int64_t s2dq_neon_offset(const int64_t *at, int64_t width, int k)
{
    return at[k * S2DQ_NEON_PART / width] + k * S2DQ_NEON_PART % width;
}

static void s2dq_neon_make_step(s2dq_neon_step *step, const s2dq_tile *tile, const s2dq_filling *filling, int k,
                                unsigned mask)
{
    static const uint8_t count_up[2 * S2DQ_NEON_PART] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                         11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                         22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    const int output = k / 4, lane = k % 4 * S2DQ_NEON_PART;
    const uint8x16_t origin = s2dq_neon_origin(tile, output, lane);
    uint8_t place[S2DQ_NEON_PARTS];
    unsigned parts;
    step->keep = vld1q_u8(filling->keep[output] + lane);
    step->fill = vld1q_u8(filling->fill[output] + lane);
    step->filled = vminvq_u8(step->keep) != 255 || vmaxvq_u8(step->fill) != 0;
    step->dst = s2dq_neon_offset(tile->dst, S2DQ_REGISTER_BYTES / tile->stores, k);
    step->mask = mask;
    step->length = mask & (mask + 1) ? 0 : __builtin_popcount(mask);
    step->tail = vld1q_u8(count_up + (step->length > 8 ? step->length - 8 : step->length > 4 ? step->length - 4 : 0));

    memset(place, 0, sizeof place);
    step->parts = 0;
    parts = s2dq_neon_parts(origin, vandq_u8(s2dq_neon_lanes(mask), vtstq_u8(step->keep, step->keep)));
    for (; parts; parts &= parts - 1) {
        const int part = __builtin_ctz(parts);
        place[part] = (uint8_t)(step->parts * S2DQ_NEON_PART);
        step->src[step->parts++] = s2dq_neon_offset(tile->src, S2DQ_REGISTER_BYTES / tile->loads, part);
    }
    for (int i = step->parts; i % S2DQ_NEON_LOOKUP; i++) step->src[i] = step->src[0];
    step->index[0] = vorrq_u8(vqtbl1q_u8(vld1q_u8(place), vshrq_n_u8(origin, 4)), vandq_u8(origin, vdupq_n_u8(15)));
    for (unsigned i = 1; i * S2DQ_NEON_LOOKUP < step->parts; i++)
        step->index[i] = vsubq_u8(step->index[i - 1], vdupq_n_u8(S2DQ_NEON_LOOKUP * S2DQ_NEON_PART));
}

/* OUT: the steps of a tile. Returns how many there are. */
static int s2dq_neon_make_steps(s2dq_neon_step *steps, const s2dq_tile *tile, const s2dq_filling *filling)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile->stores;
    int count = 0;
    for (int k = 0; k < tile->outputs * 4; k++) {
        const unsigned mask =
            tile->dst_mask[k * S2DQ_NEON_PART / width] >> k * S2DQ_NEON_PART % width & 0xffff;
        if (mask) s2dq_neon_make_step(&steps[count++], tile, filling, k, mask);
    }
    return count;
}

/* --------------------------------------------------------------------------------------------------- their turns */

/* Bytes looked up in four parts; those out of range stay as in `value`. */
S2DQ_NEON_INLINE uint8x16_t s2dq_neon_lookup_more(uint8x16_t value, const uint8_t *src, const int64_t *at,
                                                  uint8x16_t index)
{
    const uint8x16x4_t table = {
        {vld1q_u8(src + at[0]), vld1q_u8(src + at[1]), vld1q_u8(src + at[2]), vld1q_u8(src + at[3])}};
    return vqtbx4q_u8(value, table, index);
}

/* Bytes looked up in `parts` parts, four at most; 0 where the index is out of range. */
S2DQ_NEON_INLINE uint8x16_t s2dq_neon_lookup(const uint8_t *src, const int64_t *at, uint8x16_t index, int parts)
{
    if (parts == 0) return vdupq_n_u8(0);
    if (parts == 1) return vqtbl1q_u8(vld1q_u8(src + at[0]), index);
    if (parts == 2) {
        const uint8x16x2_t table = {{vld1q_u8(src + at[0]), vld1q_u8(src + at[1])}};
        return vqtbl2q_u8(table, index);
    }
    if (parts == 3) {
        const uint8x16x3_t table = {{vld1q_u8(src + at[0]), vld1q_u8(src + at[1]), vld1q_u8(src + at[2])}};
        return vqtbl3q_u8(table, index);
    }
    const uint8x16x4_t table = {
        {vld1q_u8(src + at[0]), vld1q_u8(src + at[1]), vld1q_u8(src + at[2]), vld1q_u8(src + at[3])}};
    return vqtbl4q_u8(table, index);
}

/* The bytes of the step's mask and no others: the ends of a prefix as two overlapping halves. */
S2DQ_NEON_INLINE void s2dq_neon_store(uint8_t *dst, uint8x16_t value, int length, uint8x16_t tail, unsigned mask)
{
    const uint8x16_t end = vqtbl1q_u8(value, tail);
    if (length > 8) {
        vst1_u8(dst, vget_low_u8(value));
        vst1_u8(dst + length - 8, vget_low_u8(end));
    } else if (length >= 4) {
        const uint32_t first = vgetq_lane_u32(vreinterpretq_u32_u8(value), 0);
        const uint32_t last = vgetq_lane_u32(vreinterpretq_u32_u8(end), 0);
        memcpy(dst, &first, 4);
        memcpy(dst + length - 4, &last, 4);
    } else if (length) {
        dst[0] = vgetq_lane_u8(value, 0);
        if (length > 1) dst[1] = vgetq_lane_u8(value, 1);
        if (length > 2) dst[2] = vgetq_lane_u8(value, 2);
    } else {
        uint8_t bytes[S2DQ_NEON_PART];
        vst1q_u8(bytes, value);
        for (; mask; mask &= mask - 1) dst[__builtin_ctz(mask)] = bytes[__builtin_ctz(mask)];
    }
}

/* One step at some turns of a loop. `parts`, up to four, and `whole` are constants wherever this is inlined: four
 * parts may be more, and a step that is not whole may have fill values or store in part.
 */
S2DQ_NEON_INLINE void s2dq_neon_repeat(uint8_t *S2DQ_RESTRICT dst, const uint8_t *S2DQ_RESTRICT src,
                                       const s2dq_neon_step *step, int64_t turns, int64_t src_step, int64_t dst_step,
                                       int parts, int whole)
{
    const uint8x16_t index = step->index[0];
    int64_t at[S2DQ_NEON_LOOKUP];
    for (int k = 0; k < parts; k++) at[k] = step->src[k];
    dst += step->dst;
    for (; turns > 0; turns--) {
        uint8x16_t value = s2dq_neon_lookup(src, at, index, parts);
        for (unsigned k = S2DQ_NEON_LOOKUP; parts == S2DQ_NEON_LOOKUP && k < step->parts; k += S2DQ_NEON_LOOKUP)
            value = s2dq_neon_lookup_more(value, src, step->src + k, step->index[k / S2DQ_NEON_LOOKUP]);
        if (whole) {
            vst1q_u8(dst, value);
        } else {
            if (step->filled) value = veorq_u8(vandq_u8(value, step->keep), step->fill);
            if (step->length == S2DQ_NEON_PART)
                vst1q_u8(dst, value);
            else
                s2dq_neon_store(dst, value, step->length, step->tail, step->mask);
        }
        src += src_step;
        dst += dst_step;
    }
}

/* All steps at some turns of a loop. */
static void s2dq_neon_run_steps(uint8_t *dst, const uint8_t *src, const s2dq_neon_step *steps, int count,
                                int64_t turns, int64_t src_step, int64_t dst_step)
{
    for (const s2dq_neon_step *step = steps; step < steps + count; step++) {
        const int whole = !step->filled && step->length == S2DQ_NEON_PART;
        const int parts = (int)s2dq_min(step->parts, S2DQ_NEON_LOOKUP);
        switch (2 * parts + whole) {
#define S2DQ_NEON_CASE(PARTS)                                                                             \
    case 2 * PARTS: s2dq_neon_repeat(dst, src, step, turns, src_step, dst_step, PARTS, 0); break;         \
    case 2 * PARTS + 1: s2dq_neon_repeat(dst, src, step, turns, src_step, dst_step, PARTS, 1); break;
            S2DQ_NEON_CASE(0)
            S2DQ_NEON_CASE(1)
            S2DQ_NEON_CASE(2)
            S2DQ_NEON_CASE(3)
            S2DQ_NEON_CASE(4)
#undef S2DQ_NEON_CASE
        }
    }
}

/* All turns of the loops. */
static void s2dq_neon_run(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, const s2dq_filling *filling,
                          const s2dq_axis *loops)
{
    const s2dq_axis inner = loops[2];
    const int goes_back = inner.src_back || inner.dst_back;
    const int64_t last = inner.extent - 1, turns = inner.extent - goes_back;
    s2dq_neon_step steps[S2DQ_NEON_PARTS];
    const int count = s2dq_neon_make_steps(steps, tile, filling);
    for (int64_t i = 0; i < loops[0].extent; i++) {
        for (int64_t j = 0; j < loops[1].extent; j++) {
            const uint8_t *s = src;
            uint8_t *d = dst;
            s2dq_tile_turn(loops, i, j, &s, &d);
            for (int64_t k = 0; k < turns; k += S2DQ_NEON_TURNS)
                s2dq_neon_run_steps(d + k * inner.dst, s + k * inner.src, steps, count,
                                    s2dq_min(turns - k, S2DQ_NEON_TURNS), inner.src, inner.dst);
            if (goes_back)
                s2dq_neon_run_steps(d + last * inner.dst - inner.dst_back, s + last * inner.src - inner.src_back,
                                    steps, count, 1, 0, 0);
        }
    }
}

/* ------------------------------------------------------------------------------------- one tile, not a byte more */

/* Copies the bytes of the bits of a mask. */
static void s2dq_neon_copy_bytes(uint8_t *dst, const uint8_t *src, uint64_t mask)
{
    while (mask) {
        const int start = __builtin_ctzll(mask);
        const uint64_t rest = ~(mask >> start);
        const int length = rest ? __builtin_ctzll(rest) : 64;
        memcpy(dst + start, src + start, (size_t)length);
        mask &= start + length < 64 ? UINT64_MAX << (start + length) : 0;
    }
}

/* One tile of any shape that reads nothing but the bytes of its masks: for the ends of the source. Steps are not worth
 * their making here, so every output is looked up in all inputs.
 */
static void s2dq_neon_run_edge(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, const s2dq_filling *filling)
{
    const int in_width = S2DQ_REGISTER_BYTES / (int)tile->loads, out_width = S2DQ_REGISTER_BYTES / (int)tile->stores;
    uint8_t in[S2DQ_REGISTERS * S2DQ_REGISTER_BYTES], out[S2DQ_REGISTERS * S2DQ_REGISTER_BYTES];
    static const int64_t at[S2DQ_NEON_LOOKUP] = {0, 16, 32, 48};
    memset(in, 0, sizeof in);
    for (int k = 0; k < tile->inputs * tile->loads; k++)
        s2dq_neon_copy_bytes(in + k * in_width, src + tile->src[k], tile->src_mask[k]);
    for (int k = 0; k < tile->outputs * 4; k++) {
        const int output = k / 4, lane = k % 4 * S2DQ_NEON_PART;
        uint8x16_t index = s2dq_neon_origin(tile, output, lane);
        uint8x16_t value = s2dq_neon_lookup(in, at, index, S2DQ_NEON_LOOKUP);
        for (int i = 1; i < tile->inputs; i++) {
            index = vsubq_u8(index, vdupq_n_u8(S2DQ_REGISTER_BYTES));
            value = s2dq_neon_lookup_more(value, in + i * S2DQ_REGISTER_BYTES, at, index);
        }
        value = veorq_u8(vandq_u8(value, vld1q_u8(filling->keep[output] + lane)),
                         vld1q_u8(filling->fill[output] + lane));
        vst1q_u8(out + k * S2DQ_NEON_PART, value);
    }
    for (int k = 0; k < tile->outputs * tile->stores; k++)
        s2dq_neon_copy_bytes(dst + tile->dst[k], out + k * out_width, tile->dst_mask[k]);
}

/* ---------------------------------------------------------------------------------------------------- networks */

enum { S2DQ_NEON_NET_BYTES = S2DQ_NET_REGISTERS * S2DQ_REGISTER_BYTES, S2DQ_NEON_PAIR_STEPS = 8 };

/* OUT: the steps of one level: a tile that makes a pair of registers, in memory, of another such pair. */
static void s2dq_neon_make_level(s2dq_neon_step *steps, const s2dq_network *net, int level)
{
    s2dq_tile tile;
    s2dq_filling filling;
    memset(&tile, 0, sizeof tile);
    memset(&filling.keep, 255, sizeof filling.keep);
    memset(&filling.fill, 0, sizeof filling.fill);
    tile.inputs = tile.outputs = 2;
    tile.loads = tile.stores = 1;
    tile.src[1] = tile.dst[1] = (int64_t)S2DQ_REGISTER_BYTES << level;
    tile.dst_mask[0] = tile.dst_mask[1] = UINT64_MAX;
    memcpy(tile.low, net->table[level], sizeof net->table[level]);
    s2dq_neon_make_steps(steps, &tile, &filling);
}

/* One level: its steps at every pair of registers whose numbers differ in bit `level`. */
static void s2dq_neon_run_level(uint8_t *dst, const uint8_t *src, const s2dq_neon_step *steps, int level)
{
    const int64_t below = 1 << level, above = S2DQ_NET_REGISTERS / 2 / below, step = S2DQ_REGISTER_BYTES;
    if (below < above) {
        for (int64_t k = 0; k < below; k++)
            s2dq_neon_run_steps(dst + k * step, src + k * step, steps, S2DQ_NEON_PAIR_STEPS, above, 2 * below * step,
                                2 * below * step);
    } else {
        for (int64_t k = 0; k < above; k++)
            s2dq_neon_run_steps(dst + 2 * k * below * step, src + 2 * k * below * step, steps, S2DQ_NEON_PAIR_STEPS,
                                below, step, step);
    }
}

/* Sixteen registers of 64 bytes are more than there are, so every level goes from memory to memory, in the nearest
 * cache.
 */
static void s2dq_neon_run_network(uint8_t *dst, const uint8_t *src, const s2dq_network *net, const s2dq_axis *loops)
{
    const int levels = (int)net->levels;
    const int in_width = S2DQ_REGISTER_BYTES / (int)net->loads, out_width = S2DQ_REGISTER_BYTES / (int)net->stores;
    s2dq_neon_step steps[S2DQ_NET_LEVELS][S2DQ_NEON_PAIR_STEPS];
    uint8_t registers[2][S2DQ_NEON_NET_BYTES];
    for (int level = 0; level < levels; level++) s2dq_neon_make_level(steps[level], net, level);
    for (int64_t i = 0; i < loops[0].extent; i++) {
        for (int64_t j = 0; j < loops[1].extent; j++) {
            const uint8_t *s = src;
            uint8_t *d = dst;
            s2dq_tile_turn(loops, i, j, &s, &d);
            for (int64_t left = loops[2].extent; left > 0; left--) {
                if (left == 1) s -= loops[2].src_back, d -= loops[2].dst_back;
                for (int k = 0; k < S2DQ_NEON_NET_BYTES; k += S2DQ_NEON_PART)
                    vst1q_u8(registers[0] + k, vld1q_u8(s + net->src[k / in_width] + k % in_width));
                for (int level = 0; level < levels; level++)
                    s2dq_neon_run_level(registers[~level & 1], registers[level & 1], steps[level], level);
                for (int k = 0; k < S2DQ_NEON_NET_BYTES; k += S2DQ_NEON_PART)
                    vst1q_u8(d + net->dst[k / out_width] + k % out_width, vld1q_u8(registers[levels & 1] + k));
                s += loops[2].src;
                d += loops[2].dst;
            }
        }
    }
}

/* -------------------------------------------------------------------------------------------------- the runners */

static s2dq_tile_runner s2dq_neon_runner(const s2dq_tile *tile)
{
    (void)tile;
    return s2dq_neon_run;
}

static s2dq_network_runner s2dq_neon_network_runner(const s2dq_network *net)
{
    return net->bend.side ? NULL : s2dq_neon_run_network;
}

#endif

#endif
