/* A tile program: a small fixed rearrangement, run again and again by up to three loops.
 *
 * A tile reads `pieces` of the source into `inputs` registers of 64 bytes, makes `outputs` registers of them by table
 * lookups, and stores those in pieces. A register holds one piece of 64 bytes, two of 32 or four of 16; a mask tells
 * which bytes of a piece are there. Only bytes of the masks are looked at and written.
 *
 * Output register o is   (low[o] looked up in registers 0 and 1, or, where bit i of upper[o] is set, high[o] in
 * registers 2 and 3).   Index bytes are 0..63 for the first register of a pair, 64..127 for the second.
 */
#ifndef S2DQ_TILE_H
#define S2DQ_TILE_H

#include "axis.h"

enum { S2DQ_TILE_PLAIN, S2DQ_TILE_MASKED, S2DQ_TILE_STREAMED }; /* how a runner stores */
enum { S2DQ_REGISTERS = 4, S2DQ_PIECES = 16, S2DQ_REGISTER_BYTES = 64, S2DQ_TILE_LOOPS = 3 };

typedef struct {
    int64_t inputs, loads;   /* registers, pieces in each */
    int64_t outputs, stores; /* the same */
    int64_t fills;           /* how many bytes are not looked up but filled */
    int64_t far;             /* whether the source has to be fetched from beyond the nearer caches */
    int64_t src[S2DQ_PIECES], dst[S2DQ_PIECES];
    int64_t runs, run_pieces; /* runs of the destination and pieces in each, where all are alike; else 0 */
    uint64_t src_mask[S2DQ_PIECES], dst_mask[S2DQ_PIECES];
    uint64_t upper[S2DQ_REGISTERS];
    uint8_t low[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES], high[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES];
    int8_t fill[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]; /* offset in the fill values, or -1 */
} s2dq_tile;

/* A network: a tile of 1024 bytes in sixteen registers, for transposes of many streams.
 *
 * On level l every pair of registers whose numbers differ in bit l is looked up in twice: table[l][0] makes the one
 * with the bit clear, table[l][1] the other. Pieces are full, and lie where the bits of their numbers say: src[k] is
 * the sum of those src[2^b] whose bit b of k is set, and so for dst.
 */
enum { S2DQ_NET_REGISTERS = 16, S2DQ_NET_PIECES = 64, S2DQ_NET_LEVELS = 4 };

typedef struct {
    int64_t levels, loads, stores; /* pieces in a register */
    int64_t far;                   /* whether the source has to be fetched from beyond the nearer caches */
    int64_t src[S2DQ_NET_PIECES], dst[S2DQ_NET_PIECES];
    uint8_t table[S2DQ_NET_LEVELS][2][S2DQ_REGISTER_BYTES];
} s2dq_network;

typedef void (*s2dq_network_runner)(uint8_t *dst, const uint8_t *src, const s2dq_network *network,
                                    const s2dq_axis *loops);

/* What replaces the bytes that are not looked up: output = (looked up & keep) | fill. */
typedef struct {
    uint8_t keep[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES], fill[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES];
} s2dq_filling;

/* Runs a tile at every position of three loops. OUT: the bytes of its masks.
 * Reads its pieces in full, whatever their masks.
 */
typedef void (*s2dq_tile_runner)(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, const s2dq_filling *filling,
                                 const s2dq_axis *loops);

/* Runs one tile, and reads and writes nothing but the bytes of its masks. */
typedef void (*s2dq_tile_edge_runner)(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,
                                      const s2dq_filling *filling);

/* Lines that streams have begun and not finished: the first `count` bytes wait for those that go to `next`. */
enum { S2DQ_CARRIED = 16 };

typedef struct {
    struct {
        int64_t count;
        uint8_t *next;
        uint8_t line[S2DQ_REGISTER_BYTES];
    } slot[S2DQ_CARRIED];
    int oldest;
} s2dq_carry;

/* Moves `src` and `dst` to turn i of the outermost loop and j of the middle one. */
static inline void s2dq_tile_turn(const s2dq_axis *loops, int64_t i, int64_t j, const uint8_t **src, uint8_t **dst)
{
    const int64_t i_back = i == loops[0].extent - 1, j_back = j == loops[1].extent - 1;
    *src += i * loops[0].src - i_back * loops[0].src_back + j * loops[1].src - j_back * loops[1].src_back;
    *dst += i * loops[0].dst - i_back * loops[0].dst_back + j * loops[1].dst - j_back * loops[1].dst_back;
}

/* How many turns of the innermost loop to fetch ahead. */
static inline int64_t s2dq_tile_ahead(const s2dq_axis *loops)
{
    const int64_t far = 3072, step = loops[2].src < 0 ? -loops[2].src : loops[2].src;
    const int64_t turns = step == 0 ? 0 : step < far ? far / step : 1;
    return turns < loops[2].extent ? turns : loops[2].extent;
}

/* The way in the source from a turn of the middle loop to the next one, which may be in the next of the outermost.
 * After the very last turn nothing is known, unless the only turn says how a sweep goes on. */
static inline int64_t s2dq_tile_next(const s2dq_axis *loops, int64_t i_last, int64_t j_last)
{
    if (!j_last || (i_last && loops[1].extent == 1)) return loops[1].src;
    return i_last ? 0 : loops[0].src - (loops[1].extent - 1) * loops[1].src;
}

#endif
