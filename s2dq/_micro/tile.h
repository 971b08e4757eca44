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

#include <string.h>

#include "axis.h"

/* How outputs are looked up: in all registers; each in two neighbours alone; or not at all, for they are the inputs. */
enum { S2DQ_MIXED, S2DQ_PAIRED, S2DQ_PAIRED_IN_TURN, S2DQ_WAYS, S2DQ_SAME = S2DQ_WAYS };
/* How a runner stores. */
enum { S2DQ_TILE_PLAIN, S2DQ_TILE_MASKED, S2DQ_TILE_STREAMED };
/* Into which cache software fetches the source; not at all where 0. */
enum { S2DQ_FETCH_NEAREST = 1, S2DQ_FETCH_SECOND };
enum { S2DQ_REGISTERS = 4, S2DQ_PIECES = 16, S2DQ_REGISTER_BYTES = 64, S2DQ_TILE_LOOPS = 3 };

struct s2dq_steps;

typedef struct {
    int64_t inputs, loads;   /* registers, pieces in each */
    int64_t outputs, stores; /* the same */
    int64_t fills;           /* how many bytes are not looked up but filled */
    int64_t far;             /* whether the source has to be fetched from beyond the nearer caches: see S2DQ_FETCH */
    int64_t asks;            /* whether lines of the result are fetched before they are written */
    int64_t mapped;          /* whether bytes go through lines */
    int64_t past;            /* whether whole lines go past the caches where turns make one run */
    int64_t src[S2DQ_PIECES], dst[S2DQ_PIECES]; /* filled up with the first */
    int64_t runs, run_pieces; /* runs of the destination and pieces in each, where all are alike; else 0 */
    uint64_t src_mask[S2DQ_PIECES], dst_mask[S2DQ_PIECES];
    uint64_t upper[S2DQ_REGISTERS];
    uint8_t low[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES], high[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES];
    int8_t fill[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]; /* offset in the fill values, or -1 */
    uint8_t tab[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]; /* which lookup table a byte goes through */
    /* Made by s2dq_tile_choose: indices in the lower or the upper two registers; how else outputs may be looked up, and
     * indices in two neighbours for that. */
    uint8_t table[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES];
    int64_t way;
    int64_t same; /* whether all outputs are the inputs, byte for byte, stored in full */
    int64_t apart; /* whether the bytes of an output all go through one lookup table, which is that of `own` */
    uint8_t own[S2DQ_REGISTERS];
    int64_t forks; /* whether a byte of the only input goes through more than one table, to several places */
    uint8_t pair[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES];
    const struct s2dq_steps *steps; /* of the instruction sets that run those, see avx2_tile.h */
} s2dq_tile;

/* The first of the two neighbours in which output k is looked up; the neighbour of the last register is the first. */
static inline int s2dq_pair_of(int inputs, int outputs, int way, int k)
{
    if (inputs == 4 && outputs == 4) return way == S2DQ_PAIRED ? k / 2 * 2 : k % 2 * 2;
    if (inputs == 4 && outputs == 2) return 2 * k;
    return k;
}

/* Whether lane i of output k is looked up at all. */
static inline bool s2dq_tile_wants(const s2dq_tile *tile, int k, int i)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile->stores;
    return tile->fill[k][i] < 0 && (tile->dst_mask[k * tile->stores + i / width] >> i % width & 1);
}

/* Fills the table of pairs. Returns 0 if an output comes from elsewhere. */
static inline bool s2dq_tile_pair(s2dq_tile *tile, int way)
{
    for (int k = 0; k < tile->outputs; k++) {
        const int first = s2dq_pair_of((int)tile->inputs, (int)tile->outputs, way, k);
        for (int i = 0; i < S2DQ_REGISTER_BYTES; i++) {
            const int index = tile->table[k][i], place = index % S2DQ_REGISTER_BYTES;
            const int from = (int)(tile->upper[k] >> i & 1) * 2 + index / S2DQ_REGISTER_BYTES;
            if (from != first && from != (first + 1) % tile->inputs && s2dq_tile_wants(tile, k, i)) return false;
            tile->pair[k][i] = (uint8_t)(from == first ? place : S2DQ_REGISTER_BYTES + place);
        }
    }
    return true;
}

/* Whether the outputs are the inputs. */
static inline bool s2dq_tile_same(const s2dq_tile *tile)
{
    if (tile->inputs != tile->outputs || tile->loads != 1 || tile->stores != 1) return false;
    for (int k = 0; k < tile->outputs; k++)
        for (int i = 0; i < S2DQ_REGISTER_BYTES; i++)
            if (!s2dq_tile_wants(tile, k, i) || (tile->upper[k] >> i & 1) != (uint64_t)(k / 2) ||
                tile->table[k][i] != k % 2 * S2DQ_REGISTER_BYTES + i)
                return false;
    return true;
}

/* OUT: `own`. Returns 0 if an output goes through more than one table. */
static inline bool s2dq_tile_apart(s2dq_tile *tile)
{
    for (int k = 0; k < tile->outputs; k++) {
        bool found = false;
        for (int i = 0; i < S2DQ_REGISTER_BYTES; i++) {
            if (!s2dq_tile_wants(tile, k, i)) continue;
            if (found && tile->own[k] != tile->tab[k][i]) return false;
            tile->own[k] = tile->tab[k][i];
            found = true;
        }
    }
    return true;
}

/* After `table` is made. */
static inline bool s2dq_tile_forks(const s2dq_tile *tile)
{
    int tables[S2DQ_REGISTER_BYTES];
    for (int i = 0; i < S2DQ_REGISTER_BYTES; i++) tables[i] = -1;
    for (int k = 0; k < tile->outputs && tile->inputs == 1; k++) {
        for (int i = 0; i < S2DQ_REGISTER_BYTES; i++) {
            if (!s2dq_tile_wants(tile, k, i)) continue;
            const int from = tile->table[k][i];
            if (tables[from] >= 0 && tables[from] != tile->tab[k][i]) return true;
            tables[from] = tile->tab[k][i];
        }
    }
    return false;
}

/* OUT: `table`, `way`, `same`, `apart`, `own`, `forks`, `pair`. */
static inline void s2dq_tile_choose(s2dq_tile *tile)
{
    for (int k = 0; k < tile->outputs; k++)
        for (int i = 0; i < S2DQ_REGISTER_BYTES; i++)
            tile->table[k][i] = tile->upper[k] >> i & 1 ? tile->high[k][i] : tile->low[k][i];
    tile->same = s2dq_tile_same(tile);
    tile->apart = s2dq_tile_apart(tile);
    tile->forks = s2dq_tile_forks(tile);
    tile->way = S2DQ_MIXED;
    for (int way = S2DQ_PAIRED; way < S2DQ_WAYS && !tile->way; way++)
        if (tile->inputs > 2 && tile->outputs > 1 && tile->outputs <= tile->inputs && s2dq_tile_pair(tile, way))
            tile->way = way;
}

/* Stores whole registers where four pieces of them follow each other; before s2dq_tile_choose. */
static inline void s2dq_tile_join_stores(s2dq_tile *tile)
{
    if (tile->stores != 4 || tile->run_pieces % 4) return;
    for (int k = 0; k < tile->outputs * 4; k++)
        if (tile->dst_mask[k] != 0xFFFF || tile->dst[k] != tile->dst[k / 4 * 4] + k % 4 * 16) return;
    for (int k = 0; k < tile->outputs; k++) {
        tile->dst[k] = tile->dst[k * 4];
        tile->dst_mask[k] = UINT64_MAX;
    }
    tile->stores = 1;
    tile->run_pieces /= 4;
}

/* A network: a tile of 1024 bytes in sixteen registers, for transposes of many streams.
 *
 * On level l every pair of registers whose numbers differ in bit l is looked up in twice: table[l][0] makes the one
 * with the bit clear, table[l][1] the other. First levels may interleave granules within 16 bytes; all others move
 * words of 8 bytes, and AVX-512 looks at no more of their tables (see `build_network`). Pieces are full, and lie where
 * the bits of their numbers say: src[k] is the sum of those src[2^b] whose bit b of k is set, and so for dst. Where a
 * run of the result is indices of one axis, `unit` bytes each, `step` is how far they are apart in the source; else
 * `unit` is 0.
 */
enum { S2DQ_NET_REGISTERS = 16, S2DQ_NET_PIECES = 64, S2DQ_NET_LEVELS = 4 };

enum { S2DQ_NET_DIGITS = 4 };

/* Indices that follow each other in one side's runs and not evenly in the other's: those of a narrow line of pixels,
 * then of the next line. There, place p is where the digits of p say, of which the first changes fastest. */
typedef struct {
    int64_t side; /* on which places are uneven: 1 the source, 2 the result, 0 none */
    int64_t total, indices, unit; /* places, those of a network, bytes from one to the next on the even side */
    int64_t inside; /* loops that turn at every place of the network */
    int64_t extent[S2DQ_NET_DIGITS], step[S2DQ_NET_DIGITS];
    int64_t index[S2DQ_NET_PIECES]; /* of each piece of the uneven side */
    const int32_t *at;              /* and where it lies, for one network after the other; see s2dq_bend_table */
} s2dq_bend;

typedef struct {
    int64_t levels, loads, stores; /* pieces in a register */
    int64_t run, unit, step;       /* bytes of a run of the result, of an index in it, and between those of the source */
    int64_t far;                   /* whether the source has to be fetched from beyond the nearer caches */
    int64_t asks;                  /* whether lines of the result are fetched before they are written */
    int64_t src[S2DQ_NET_PIECES], dst[S2DQ_NET_PIECES];
    s2dq_bend bend;
    uint8_t table[S2DQ_NET_LEVELS][2][S2DQ_REGISTER_BYTES];
} s2dq_network;

/* How many networks there are along uneven places: the last one goes back. */
static inline int64_t s2dq_bend_turns(const s2dq_bend *bend)
{
    return (bend->total + bend->indices - 1) / bend->indices;
}

static inline int64_t s2dq_bend_pieces(const s2dq_network *net)
{
    return S2DQ_NET_REGISTERS * (net->bend.side == 1 ? net->loads : net->stores);
}

/* OUT: where every piece of the uneven side lies, network after network. Returns 0 if one is too far away. */
static inline bool s2dq_bend_table(int32_t *at, const s2dq_network *net)
{
    const s2dq_bend *bend = &net->bend;
    const int64_t *base = bend->side == 1 ? net->src : net->dst;
    for (int64_t turn = 0; turn < s2dq_bend_turns(bend); turn++) {
        const int64_t first = s2dq_min(turn * bend->indices, bend->total - bend->indices);
        for (int64_t piece = 0; piece < s2dq_bend_pieces(net); piece++) {
            int64_t left = first + bend->index[piece], place = base[piece];
            for (int k = 0; k < S2DQ_NET_DIGITS; k++) {
                place += left % bend->extent[k] * bend->step[k];
                left /= bend->extent[k];
            }
            if (place != (int32_t)place) return false;
            *at++ = (int32_t)place;
        }
    }
    return true;
}

typedef void (*s2dq_network_runner)(uint8_t *dst, const uint8_t *src, const s2dq_network *network,
                                    const s2dq_axis *loops);

#define S2DQ_NET_TURNS 8 /* turns from which one more is worth stores within lines */

/* As the runner, whose loops are these, but stores lie within lines where all runs begin at the same distance from one:
 * one loop goes on from there, behind a turn at its start. That has to be the loop along the axis of the runs: another
 * one may go on behind them in the result, but from elsewhere in the source. */
static inline void s2dq_network_in_lines(s2dq_network_runner runner, uint8_t *dst, const uint8_t *src,
                                         const s2dq_network *net, const s2dq_axis *loops)
{
    const int64_t width = s2dq_min(net->run, S2DQ_LINE), lead = -(int64_t)(uintptr_t)dst & (width - 1);
    s2dq_axis moved[S2DQ_TILE_LOOPS];
    const int64_t apart = net->unit ? net->run / net->unit * net->step : 0; /* runs, in the source */
    int along = -1, possible = lead && net->unit && lead % net->unit == 0;
    for (int k = 0; k < S2DQ_TILE_LOOPS; k++) {
        moved[k] = loops[k];
        if (along < 0 && loops[k].dst == net->run && loops[k].src == apart && loops[k].extent >= S2DQ_NET_TURNS)
            along = k;
        else if (loops[k].extent > 1 && (loops[k].dst | loops[k].dst_back) & (width - 1))
            possible = 0;
    }
    if (along < 0 || !possible) {
        runner(dst, src, net, loops);
        return;
    }
    s2dq_axis *axis = &moved[along];
    const int64_t bytes = axis->extent * net->run - axis->dst_back - lead; /* behind the lead */
    axis->extent = 1;
    axis->src_back = axis->dst_back = 0;
    runner(dst, src, net, moved);
    axis->extent = (bytes + net->run - 1) / net->run;
    axis->dst_back = axis->extent * net->run - bytes;
    axis->src_back = axis->dst_back / net->unit * net->step;
    runner(dst + lead, src + lead / net->unit * net->step, net, moved);
}

/* A lookup table that is a line with ends, as arithmetic of 16 bits without a sign: of v, a byte of which the bits of
 * `first` have been turned (the highest one where bytes have a sign),
 *
 *     u = max(v * 256 - less, 0);  y = min((u * slope >> 16) + more, 65535)
 *
 * and the table's value is y >> (8 - shift) & 255. Slopes from 1 on leave words fewer bits behind the point: that is
 * what the shift is for, and `more` contains what lets such a word saturate at 65535 with all the others. */
typedef struct {
    int64_t slope, more, less, shift;
} s2dq_line;

/* Whether words of any byte saturate. */
static inline bool s2dq_line_ends(const s2dq_line *line)
{
    return (255 * 256 * line->slope >> 16) + line->more > 65535;
}

/* The lines of every byte of the outputs, all of one shift: those of even places, then those of odd ones; and where
 * there is one input, those of its bytes. */
enum { S2DQ_WORDS = S2DQ_REGISTER_BYTES / 2, S2DQ_INPUT_LINES = S2DQ_REGISTERS, S2DQ_LINE_SETS };

typedef struct {
    int64_t falls; /* whether anything is taken off */
    int64_t ends;  /* whether words of any byte saturate */
    int64_t shift;
    int64_t turns; /* whether bits of the bytes are turned first, and those bits */
    uint8_t first[S2DQ_REGISTER_BYTES];
    uint16_t slope[S2DQ_LINE_SETS][2][S2DQ_WORDS], more[S2DQ_LINE_SETS][2][S2DQ_WORDS];
    uint16_t less[S2DQ_LINE_SETS][2][S2DQ_WORDS];
} s2dq_lines;

/* What comes of the bytes that are looked up, and of those that are not: output = (looked up & keep) ^ fill. */
typedef struct {
    uint8_t keep[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES], fill[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES];
    const s2dq_lines *lines; /* through which they go before, where the tile is mapped */
    const uint8_t *tables;   /* what comes of all that, 256 bytes of each table */
} s2dq_filling;

/* OUT: the lines of place `i` of set k. */
static inline void s2dq_put_line(s2dq_lines *lines, int k, int i, const s2dq_line *line)
{
    lines->slope[k][i & 1][i / 2] = (uint16_t)line->slope;
    lines->more[k][i & 1][i / 2] = (uint16_t)line->more;
    lines->less[k][i & 1][i / 2] = (uint16_t)line->less;
    lines->shift = line->shift;
    lines->falls |= line->less != 0;
    lines->ends |= s2dq_line_ends(line);
}

/* OUT: what becomes of the bytes of a tile: fill values where it says so, elsewhere its bytes, through the lines of
 * their tables (where `lines` is given) with the bits of `first` turned before and those of `flip` behind, the
 * highest or none where lines are given; `bytes` are the tables themselves. */
static inline void s2dq_tile_fill(s2dq_filling *filling, s2dq_lines *lines, const s2dq_tile *tile, const uint8_t *fill,
                                  uint8_t first, uint8_t flip, const s2dq_line *tables, const uint8_t *bytes)
{
    filling->lines = lines;
    filling->tables = bytes;
    if (lines) {
        lines->falls = lines->ends = 0;
        lines->turns = first != 0;
        memset(lines->first, first, sizeof lines->first);
    }
    for (int k = 0; k < tile->outputs; k++) {
        for (int i = 0; i < S2DQ_REGISTER_BYTES; i++) {
            const int filled = tile->fill[k][i] >= 0;
            filling->keep[k][i] = filled ? 0 : 255;
            filling->fill[k][i] = filled ? fill[tile->fill[k][i]] : flip;
            if (!lines) continue;
            s2dq_put_line(lines, k, i, &tables[tile->tab[k][i]]);
            if (tile->inputs == 1 && s2dq_tile_wants(tile, k, i))
                s2dq_put_line(lines, S2DQ_INPUT_LINES, tile->table[k][i], &tables[tile->tab[k][i]]);
        }
    }
}

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

/* How far ahead in the source the lines of a tile are fetched: by `fetch`, and by `around` once the innermost loop has
 * no more than `turns` left. Both in three states: within the loops, where the next turn of the outermost one comes
 * first, and behind the very last turn, where nothing is known but what the step of a loop without turns says. */
typedef struct {
    int64_t turns;
    int64_t outer_end, middle_end, last; /* of the first state, and of the second */
    int64_t fetch[3], around[3];
} s2dq_ahead;

/* Some turns of the innermost loop, or of the first one around it that is long enough: `far` bytes of the source, in at
 * most so many turns. */
static inline s2dq_ahead s2dq_ahead_by(const s2dq_axis *loops, int64_t far, int64_t most)
{
    const int64_t step = s2dq_magnitude(loops[2].src);
    int64_t turns = step == 0 ? 0 : step < far ? far / step : 1;
    int loop = 2;
    turns = s2dq_min(turns, most);
    while (loop > 0 && turns >= loops[loop].extent) {
        turns = (turns + loops[loop].extent - 1) / loops[loop].extent;
        loop--;
    }
    const int64_t middle = loop == 2 ? 1 : loop == 1 ? turns : 0; /* turns of the middle loop */
    s2dq_ahead ahead = {.turns = turns};
    ahead.outer_end = loops[0].extent - (loop == 0 ? turns : 0);
    ahead.middle_end = loops[1].extent - middle;
    ahead.last = loop == 0 ? 0 : loops[0].extent - 1;
    ahead.fetch[0] = loop == 0 ? turns * loops[0].src : middle * loops[1].src;
    ahead.fetch[1] = loops[0].src + (middle - loops[1].extent) * loops[1].src;
    ahead.fetch[2] = loops[0].extent == 1 && loops[1].extent == 1 ? loops[1].src : 0;
    for (int k = 0; k < 3; k++) {
        ahead.around[k] = ahead.fetch[k];
        if (loop == 2) {
            ahead.around[k] -= (loops[2].extent - turns) * loops[2].src;
            ahead.fetch[k] = turns * loops[2].src;
        }
    }
    return ahead;
}

/* Not so far that lines are gone again when they are needed. */
static inline s2dq_ahead s2dq_tile_ahead(const s2dq_axis *loops, int64_t turn_bytes)
{
    return s2dq_ahead_by(loops, 3072, 12288 / turn_bytes);
}

/* The same along the result. A store that misses the first cache holds up all behind it, and one of a part of a line
 * does so once for each part: lines that are there in time make such stores as quick as a copy's. */
static inline s2dq_ahead s2dq_result_ahead(const s2dq_axis *loops, int64_t far)
{
    s2dq_axis results[S2DQ_TILE_LOOPS] = {{0}};
    for (int k = 0; k < S2DQ_TILE_LOOPS; k++) results[k].extent = loops[k].extent, results[k].src = loops[k].dst;
    return s2dq_ahead_by(results, far, far);
}

/* OUT: how far ahead lines are asked for in turn i of the outermost loop and j of the middle one, and in the last turns
 * of the innermost loop there. */
static inline void s2dq_ahead_at(const s2dq_ahead *ahead, int64_t i, int64_t j, int64_t *fetch, int64_t *around)
{
    const int state = i < ahead->outer_end && j < ahead->middle_end ? 0 : i < ahead->last ? 1 : 2;
    *fetch = ahead->fetch[state];
    *around = ahead->around[state];
}

#endif
