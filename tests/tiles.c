/* Random tile programs, sweeps of them and networks against an executor in plain C, every array between inaccessible
 * pages.
 *
 *     cc -O2 -I s2dq/_micro tests/tiles.c -o tiles && ./tiles [ROUNDS [SEED [INSTRUCTION_SET]]]
 *     cc -O2 -I s2dq/_micro -DTRACED tests/tiles.c -o traced && ./traced 8000 1 avx2 tests/recorded_tiles.txt
 *
 * Checks the kernels of one instruction set, the best that runs unless told: NEON, which `.ci/emulate` emulates, or
 * AVX-512; or AVX2. Traced, they have to load, store and fetch in the recorded order, as with boxes.c.
 */
#include "drawn.h"
#include "traced.h"

#include "dispatch.h"

enum { ARENA = 1 << 18, POISON = 0xA5 };
enum { NEARLY = 400, APART = 600, BARE = 200, ROWS = 400, STILL = 200, WORDS = 400, BENDS = 400 }; /* more rounds */
enum { NET_BYTES = S2DQ_NET_REGISTERS * S2DQ_REGISTER_BYTES };
enum kind { LOOPS, EDGE, SWEEPS, NETWORK, KINDS };

static s2dq_kernels kernels;
static s2dq_tile asked, tile; /* as drawn, and as it is run, with stores joined and ways chosen */
static s2dq_steps steps;
static s2dq_network network;
static s2dq_filling filling;
static s2dq_lines lines;
static s2dq_line own[256];             /* of every table */
static uint8_t first, flip, fill[128]; /* bits that are turned before a line and behind it; values to fill with */
static uint8_t tables[256][256];
static s2dq_axis loops[S2DQ_TILE_LOOPS];
static int64_t group; /* indices in a turn of a sweep */
static s2dq_carry carry;
static long aligned, in_rows, sames, paired, joined, swept, in_lines, trios;
static uint64_t digest;

/* ------------------------------------------------------------------------------------------ the plain executor */

static int64_t plain_word(int64_t value, int table)
{
    return word_of_line(value ^ first, own[table].slope, own[table].more, own[table].less);
}

static uint8_t plain_line(int64_t value, int table) { return byte_of_word(plain_word(value, table), own[table].shift); }

static uint8_t plain_byte(const uint8_t *src, int output, int lane)
{
    const int width = S2DQ_REGISTER_BYTES / (int)asked.loads, upper = asked.upper[output] >> lane & 1;
    const int from = upper ? 2 * S2DQ_REGISTER_BYTES + asked.high[output][lane] : asked.low[output][lane];
    if (asked.fill[output][lane] >= 0) return fill[asked.fill[output][lane]];
    const uint8_t value = src[asked.src[from / width] + from % width];
    return (asked.mapped ? plain_line(value, asked.tab[output][lane]) : value) ^ flip;
}

static void plain_tile(uint8_t *dst, const uint8_t *src)
{
    const int width = S2DQ_REGISTER_BYTES / (int)asked.stores;
    for (int piece = 0; piece < asked.outputs * asked.stores; piece++)
        for (int bit = 0; bit < width; bit++)
            if (asked.dst_mask[piece] >> bit & 1)
                dst[asked.dst[piece] + bit] = plain_byte(src, piece * width / S2DQ_REGISTER_BYTES,
                                                         piece * width % S2DQ_REGISTER_BYTES + bit);
}

/* How far turn `i` of loop `k` is from its first turn. */
static int64_t src_at(int k, int64_t i) { return i * loops[k].src - (i == loops[k].extent - 1) * loops[k].src_back; }
static int64_t dst_at(int k, int64_t i) { return i * loops[k].dst - (i == loops[k].extent - 1) * loops[k].dst_back; }

static void plain_network(uint8_t *dst, const uint8_t *src)
{
    const int in_width = S2DQ_REGISTER_BYTES / (int)network.loads;
    const int out_width = S2DQ_REGISTER_BYTES / (int)network.stores;
    uint8_t now[NET_BYTES], then[NET_BYTES];
    for (int k = 0; k < NET_BYTES; k++) now[k] = src[network.src[k / in_width] + k % in_width];
    for (int level = 0; level < network.levels; level++) {
        for (int k = 0; k < NET_BYTES; k++) {
            const int number = k / S2DQ_REGISTER_BYTES, bit = 1 << level;
            const int from = network.table[level][number >> level & 1][k % S2DQ_REGISTER_BYTES];
            const int other = from < S2DQ_REGISTER_BYTES ? number & ~bit : number | bit;
            then[k] = now[other * S2DQ_REGISTER_BYTES + from % S2DQ_REGISTER_BYTES];
        }
        memcpy(now, then, sizeof now);
    }
    for (int k = 0; k < NET_BYTES; k++) dst[network.dst[k / out_width] + k % out_width] = now[k];
}

/* Where place `i` lies on the uneven side. */
static int64_t bend_at(int64_t i)
{
    int64_t place = 0;
    for (int k = 0; k < S2DQ_NET_DIGITS; k++) {
        place += i % network.bend.extent[k] * network.bend.step[k];
        i /= network.bend.extent[k];
    }
    return place;
}

/* OUT: the pieces of the uneven side, where the places begin with `first`. */
static void move_network(const s2dq_network *all, int64_t first)
{
    const int64_t *base = all->bend.side == 1 ? all->src : all->dst;
    int64_t *at = all->bend.side == 1 ? network.src : network.dst;
    for (int64_t piece = 0; piece < S2DQ_NET_REGISTERS * (all->bend.side == 1 ? all->loads : all->stores); piece++)
        at[piece] = base[piece] + bend_at(first + all->bend.index[piece]);
}

/* A network at all its places, as if each were one of its own. */
static void plain_bent(uint8_t *dst, const uint8_t *src)
{
    const s2dq_network all = network;
    const s2dq_bend *bend = &all.bend;
    const int64_t last = bend->total - bend->indices;
    for (int64_t done = 0; done < bend->total; done += bend->indices) {
        const int64_t first = done < last ? done : last, even = first * bend->unit;
        move_network(&all, first);
        plain_network(dst + (bend->side == 1 ? even : 0), src + (bend->side == 1 ? 0 : even));
        network = all;
    }
}

static void plain_run(uint8_t *dst, const uint8_t *src, void (*plain)(uint8_t *, const uint8_t *))
{
    for (int64_t i = 0; i < loops[0].extent; i++)
        for (int64_t j = 0; j < loops[1].extent; j++)
            for (int64_t k = 0; k < loops[2].extent; k++)
                plain(dst + dst_at(0, i) + dst_at(1, j) + dst_at(2, k),
                      src + src_at(0, i) + src_at(1, j) + src_at(2, k));
}

/* ---------------------------------------------------------------------------------------------- random programs */

static uint64_t draw_mask(int width)
{
    const uint64_t full = ~0ULL >> (64 - width);
    switch (between(0, 5)) {
    case 0: return draw() & full;
    case 1: return ~0ULL >> (64 - between(1, width));
    case 2: return full & ~(1ULL << between(0, width - 1));
    case 3: return 0;
    default: return full;
    }
}

/* OUT: which bytes of the inputs are there, all of them where the outputs are the inputs. Returns how many. */
static int draw_source(int *there, int same)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile.loads, neighbours = one_in(2);
    int64_t at = between(-300, 300);
    int count = 0;
    for (int piece = 0; piece < tile.inputs * tile.loads; piece++) {
        tile.src[piece] = neighbours ? at : between(-500, 500);
        at += one_in(3) ? between(0, 200) : width;
        tile.src_mask[piece] = same ? ~0ULL >> (64 - width) : piece ? draw_mask(width) : 1 | draw_mask(width);
        for (int bit = 0; bit < width; bit++)
            if (tile.src_mask[piece] >> bit & 1) there[count++] = piece * width + bit;
    }
    for (int piece = (int)(tile.inputs * tile.loads); piece < S2DQ_PIECES; piece++) tile.src[piece] = tile.src[0];
    return count;
}

/* Pieces of the destination in any order, without overlaps, `pitch` bytes from one to the next. */
static void draw_destination(int64_t *at, int pieces, int64_t pitch)
{
    for (int piece = 0; piece < pieces; piece++) {
        const int other = (int)between(0, piece);
        at[piece] = at[other];
        at[other] = piece * pitch - 200;
    }
}

enum { ENDS = S2DQ_WAYS }; /* the first of three outputs from the first two inputs, the last one from the last two */

/* One of the bytes that are there, in two neighbouring registers where `way` is one of those that look up in pairs. */
static int draw_byte(const int *there, int count, int output, int way)
{
    static const int neighbours[2][S2DQ_REGISTERS] = {{0, 0, 2, 2}, {0, 2, 0, 2}}; /* of four, for four outputs */
    int low = output;
    if (tile.inputs == 4 && tile.outputs == 4) low = neighbours[way - S2DQ_PAIRED][output];
    if (tile.inputs == 4 && tile.outputs == 2) low = 2 * output;
    if (way == ENDS && output == 1) return there[between(0, count - 1)];
    if (way == ENDS) low = output / 2;
    for (int trial = 0; trial < 40; trial++) {
        const int from = there[between(0, count - 1)], number = from / S2DQ_REGISTER_BYTES;
        if (number == low || number == (low + 1) % tile.inputs) return from;
    }
    return there[0];
}

/* OUT: the lines of all tables, `first`. */
static void draw_lines(int apart)
{
    const int level = one_in(2), endless = one_in(3) ? 2 : 0, falls = !endless && one_in(2);
    const int64_t shift = endless || one_in(2) ? 0 : between(1, 7);
    first = !endless && one_in(2) ? 128 : 0;
    for (int table = 0; table < 256; table++) {
        const int same = apart && table % S2DQ_REGISTER_BYTES; /* one line for the whole output */
        own[table] = own[same ? table - 1 : table];
        if (same) continue;
        own[table].slope = (uint16_t)draw() >> endless;
        own[table].more = level || one_in(2) ? 0 : (uint16_t)draw() >> endless;
        own[table].less = one_in(2) || !falls ? 0 : (uint16_t)draw();
        own[table].shift = shift;
    }
}

/* OUT: the values to fill with, `flip`. */
static void draw_fill(void)
{
    const int lookup = kernels.steps || tile.mapped;
    const int64_t turned = lookup ? 128 * one_in(2) : between(0, 255); /* of signed bytes, or any */
    flip = tile.mapped || tile.fills ? (uint8_t)turned : 0;
    for (size_t k = 0; k < sizeof fill; k++) fill[k] = (uint8_t)draw();
}

/* Every byte that is stored comes from one that is there, or is filled; what is not stored comes from anywhere. `same`:
 * the outputs are the inputs, but for a byte now and then. */
static void draw_tables(const int *there, int count, int same)
{
    const int other = same && one_in(3) ? (int)between(0, tile.outputs * S2DQ_REGISTER_BYTES - 1) : -1;
    const int pairs = tile.inputs > 2 && tile.outputs > 1 && tile.outputs <= tile.inputs && one_in(3);
    const int ends = pairs && tile.inputs == 3 && tile.outputs == 3 && one_in(2);
    const int way = ends ? ENDS : pairs ? (int)between(S2DQ_PAIRED, S2DQ_PAIRED_IN_TURN) : S2DQ_MIXED;
    const int width = S2DQ_REGISTER_BYTES / (int)tile.stores;
    const int scattered = one_in(6), reach = one_in(3) ? count : (int)between(1, 40);
    tile.mapped = kernels.lines && tile.outputs < S2DQ_REGISTERS && one_in(2);
    const int apart = tile.mapped && one_in(2);
    const int once = tile.mapped && tile.inputs == 1 && !apart && one_in(2); /* one line for all that is made of a byte */
    const int filled = !apart && !same && one_in(3) ? (int)between(1, 100) : 0;
    tile.fills = filled > 0;
    draw_lines(apart);
    draw_fill();
    for (int output = 0; output < tile.outputs; output++) {
        const int begin = (int)between(0, count - 1);
        for (int lane = 0; lane < S2DQ_REGISTER_BYTES; lane++) {
            tile.tab[output][lane] = (uint8_t)(output * S2DQ_REGISTER_BYTES + (apart ? 0 : lane));
            const int near = scattered ? lane % 16 * (count / 16) : (int)between(0, reach - 1);
            const int stored = tile.dst_mask[output * tile.stores + lane / width] >> lane % width & 1;
            int from = there[(begin + near) % count];
            if (!stored) tile.tab[output][lane] = (uint8_t)draw();
            if (way) from = draw_byte(there, count, output, way);
            if (same) from = output * S2DQ_REGISTER_BYTES + lane;
            if (from == other) from = there[between(0, count - 1)];
            tile.fill[output][lane] = between(0, 99) < filled ? (int8_t)between(0, sizeof fill - 1) : -1;
            if ((!stored && !same) || tile.fill[output][lane] >= 0)
                from = (int)between(0, S2DQ_REGISTER_BYTES * tile.inputs - 1);
            if (from >= 2 * S2DQ_REGISTER_BYTES) {
                tile.upper[output] |= 1ULL << lane;
                tile.high[output][lane] = (uint8_t)(from - 2 * S2DQ_REGISTER_BYTES);
            } else {
                tile.low[output][lane] = (uint8_t)from;
            }
            if (stored && once) tile.tab[output][lane] = (uint8_t)from;
        }
    }
}

/* The tile as it is run, of the one that is asked for. */
static void make_tile(int joins)
{
    asked = tile;
    if (joins) s2dq_tile_join_stores(&tile);
    joined += tile.stores != asked.stores;
    s2dq_tile_choose(&tile);
    s2dq_tile_fill(&filling, tile.mapped ? &lines : NULL, &tile, fill, first, flip, own, tables[0]);
    for (int output = 0; output < tile.outputs && tile.mapped && tile.apart; output++)
        for (int value = 0; value < 256; value++)
            tables[tile.own[output]][value] = plain_line(value, tile.own[output]) ^ flip;
}

/* OUT: loop `k` and those outside of it, which step over `span` bytes. */
static void draw_outer(int k, int64_t span, int64_t longest)
{
    for (; k >= 0; k--) {
        const int64_t extent = one_in(3) ? between(1, longest) : between(1, 5);
        memset(&loops[k], 0, sizeof loops[k]);
        loops[k].extent = extent * span > ARENA / 2 ? 1 : extent;
        loops[k].src = between(-150, 150);
        loops[k].dst = one_in(4) ? -span : span;
        if (one_in(2)) loops[k].src_back = between(-100, 100); /* of a single turn too, which is the last */
        if (one_in(2)) loops[k].dst_back = between(0, 60) * (loops[k].dst < 0 ? -1 : 1);
        span *= loops[k].extent;
    }
}

/* Last turns that go back repeat the turn before. */
static void store_alike(void)
{
    for (int k = 0; k < S2DQ_TILE_LOOPS; k++)
        if (loops[k].dst_back && loops[k].extent > 1) loops[k].dst_back = loops[k].dst, loops[k].src_back = loops[k].src;
}

/* Loops that store nothing twice, but for turns that go back, and the pieces of the destination. In half of the cases
 * the innermost loop stores each run of a few pieces right behind that of the turn before. */
static void draw_loops(int64_t *at, int pieces, int width)
{
    const int adjacent = one_in(2), gap = one_in(2) ? 0 : (int)between(1, 9);
    int run = !adjacent ? 1 : one_in(2) ? 4 : (int)between(1, 4); /* pieces */
    while (pieces % run) run--;
    const int64_t step = run * width;
    memset(loops, 0, sizeof loops);
    const int64_t longest = one_in(5) ? 200 : 19; /* AVX2 takes long loops piece by piece */
    loops[2].extent = between(1, longest);
    loops[2].dst = step;
    loops[2].src = between(-150, 150);
    if (longest > 19 && one_in(4)) { /* whole pieces */
        loops[2].src = between(-32, 32);
        loops[2].extent = 96 * between(1, 2);
    }
    if (one_in(2)) loops[2].src_back = between(-100, 100);
    if (one_in(2)) loops[2].dst_back = between(0, step - 1);
    int64_t pitch = adjacent ? loops[2].extent * step + gap : step + gap;
    if (one_in(20)) pitch = (pitch + 4095) / 4096 * 4096; /* where pieces push each other out of the cache */
    draw_destination(at, pieces / run, pitch);
    for (int piece = pieces - 1; piece > 0; piece--) at[piece] = at[piece / run] + piece % run * width;
    draw_outer(S2DQ_TILE_LOOPS - 1 - adjacent, pieces / run * pitch, longest);
    /* Where the pieces of a tile take turns, what is stored twice has to be the same. */
    if (kernels.steps) store_alike();
}

/* OUT: `runs` and `run_pieces`, as Side.runs of `_tiles` has them. */
static void count_runs(void)
{
    const int pieces = (int)(tile.outputs * tile.stores), width = S2DQ_REGISTER_BYTES / (int)tile.stores;
    int64_t length = 0;
    tile.runs = 0;
    for (int piece = 0; piece < pieces; piece++) {
        const int ends = piece + 1 == pieces || tile.dst[piece + 1] != tile.dst[piece] + width;
        length++;
        if (!ends) continue;
        if (tile.runs && length != tile.run_pieces) {
            tile.runs = tile.run_pieces = 0;
            return;
        }
        tile.run_pieces = length;
        tile.runs++;
        length = 0;
    }
}

static int most_windows(void)
{
    int most = 0;
    for (int k = 0; k < steps.count; k++)
        if (steps.step[k].windows > most) most = (int)steps.step[k].windows;
    return most;
}

static void make_steps(void)
{
    if (!kernels.steps) return;
    if (kernels.steps(&steps, &tile) != most_windows()) {
        puts("tiles: not the most windows of a step");
        exit(1);
    }
    tile.steps = &steps;
}

static void draw_tile(void)
{
    int there[S2DQ_REGISTERS * S2DQ_REGISTER_BYTES];
    memset(&tile, 0, sizeof tile);
    tile.inputs = between(1, S2DQ_REGISTERS);
    tile.outputs = between(1, S2DQ_REGISTERS);
    const int same = one_in(10);
    tile.loads = same && !one_in(4) ? 1 : 1 << between(0, 2);
    tile.stores = same && !one_in(4) ? 1 : 1 << between(0, 2);
    if (same) tile.outputs = one_in(4) ? between(1, tile.inputs) : tile.inputs;
    tile.far = one_in(2);
    tile.asks = !one_in(4);
    tile.past = one_in(6);
    tile.way = between(S2DQ_MIXED, S2DQ_SAME); /* whatever was there */
    const int pieces = (int)(tile.outputs * tile.stores), width = S2DQ_REGISTER_BYTES / (int)tile.stores;
    const int full = (same && !one_in(4)) || one_in(2);
    for (int piece = 0; piece < pieces; piece++) tile.dst_mask[piece] = full ? ~0ULL >> (64 - width) : draw_mask(width);
    draw_loops(tile.dst, pieces, width);
    count_runs();
    draw_tables(there, draw_source(there, same), same);
    make_tile(one_in(2));
    make_steps();
}

/* Tiles that are what kernels are quicker for, but for one byte at an end of a register: in order, through one table,
 * through lines that end nowhere, or without values to fill with. */
static void draw_nearly(void)
{
    const int filled = one_in(4), lines_end = !filled && one_in(3) && kernels.lines;
    do draw_tile();
    while (filled ? tile.mapped || tile.fills : lines_end ? !tile.mapped || tile.fills
           : !tile.same && !(tile.mapped && tile.apart));
    const int output = (int)between(0, tile.outputs - 1), lane = one_in(2) ? 0 : S2DQ_REGISTER_BYTES - 1;
    const int same = tile.same != 0, apart = tile.mapped && tile.apart;
    tile = asked;
    if (filled) {
        tile.fill[output][lane] = 0; /* the first of the values */
        tile.fills = 1;
    } else if (lines_end) {
        first = 0;
        for (int table = 0; table < 256; table++)
            own[table] = (s2dq_line){(int64_t)((uint16_t)draw() >> 2), (int64_t)((uint16_t)draw() >> 2), 0, 0};
        own[tile.tab[output][lane]] = (s2dq_line){65535, 257, 0, 0}; /* 255 comes to 65536 */
    } else if (same && (!apart || one_in(2))) {
        uint8_t *const table = tile.upper[output] >> lane & 1 ? tile.high[output] : tile.low[output];
        table[lane] = table[S2DQ_REGISTER_BYTES / 2];
    } else {
        tile.tab[output][lane] = (uint8_t)(tile.tab[output][lane] + S2DQ_REGISTER_BYTES);
    }
    make_tile(0);
    make_steps();
}

/* Tiles whose turns come from far from each other, of which AVX2 takes few at a time. Half of them go past the caches,
 * where other kernels make whole lines. */
static void draw_apart(void)
{
    do draw_tile();
    while (loops[2].extent < 9 || loops[2].extent > 60);
    tile.past = one_in(2);
    loops[2].src = one_in(2) ? between(700, 900) : -between(700, 900);
    if (kernels.steps) store_alike();
}

/* All bytes of the inputs are there, and each 16 of an output come from as many parts of 16 bytes; one is filled. */
static void scatter(void)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile.loads, part = 16;
    for (int piece = 0; piece < tile.inputs * tile.loads; piece++) tile.src_mask[piece] = ~0ULL >> (64 - width);
    for (int output = 0; output < tile.outputs; output++)
        for (int lane = 0; lane < S2DQ_REGISTER_BYTES; lane++) {
            const int from = (lane % part * part + lane / part + output) % (int)(tile.inputs * S2DQ_REGISTER_BYTES);
            const int upper = from >= 2 * S2DQ_REGISTER_BYTES;
            tile.upper[output] = (tile.upper[output] & ~(1ULL << lane)) | (uint64_t)upper << lane;
            (upper ? tile.high : tile.low)[output][lane] = (uint8_t)(from - upper * 2 * S2DQ_REGISTER_BYTES);
            tile.fill[output][lane] = (int8_t)(output || lane ? -1 : 0);
        }
}

/* Tiles that fill with zeros alone, some from all over the inputs; half of them store but one byte of a piece. */
static void draw_bare(void)
{
    do draw_tile();
    while (!tile.fills || tile.mapped);
    tile = asked;
    if (one_in(2)) scatter();
    else flip = 0;
    if (one_in(2))
        for (int piece = 0; piece < tile.outputs * tile.stores; piece++)
            if (tile.dst_mask[piece]) tile.dst_mask[piece] = 1ULL << (63 - __builtin_clzll(tile.dst_mask[piece]));
    memset(fill, 0, sizeof fill);
    make_tile(one_in(2));
    make_steps();
}

/* Tiles of whole registers whose rows go on in the result, from the row before or from the one before that, or nowhere,
 * as far behind a line or not. In half of them bytes are mapped, or some are filled in. */
static void draw_rows(void)
{
    const int changed = one_in(2);
    do draw_tile();
    while (asked.stores > 1 || (tile.mapped || tile.fills) != changed || !tile.runs || tile.outputs > tile.inputs);
    tile = asked;
    tile.past = 0;
    tile.asks = one_in(8);
    const int long_rows = one_in(8), most = long_rows ? 2 : 5;
    const int64_t step = tile.run_pieces * S2DQ_REGISTER_BYTES, rows = between(1, most);
    const int64_t turns = long_rows ? between(127, 130) / tile.run_pieces : between(1, 9);
    const int64_t odd = one_in(3) ? between(0, 63) : 0; /* bytes from row to row that nothing is written to */
    const int64_t run = (turns * step + odd) * rows;
    for (int output = 0; output < tile.outputs; output++) {
        tile.dst[output] = output / tile.run_pieces * run + output % tile.run_pieces * S2DQ_REGISTER_BYTES;
        tile.dst_mask[output] = ~0ULL;
    }
    const s2dq_axis inner = {.extent = turns, .src = between(-150, 150), .dst = step};
    const s2dq_axis next = {.extent = rows, .src = between(-150, 150), .dst = turns * step + odd};
    const s2dq_axis aside = {.extent = between(1, long_rows ? 2 : 3), .src = between(-150, 150), .dst = tile.runs * run};
    const int first_aside = one_in(2);
    loops[0] = first_aside ? next : aside;
    loops[1] = first_aside ? aside : next;
    loops[2] = inner;
    if (one_in(6)) loops[2].dst_back = between(0, step - 1), loops[2].src_back = between(-100, 100);
    else if (one_in(6)) loops[1].src_back = between(-100, 100);
    else if (one_in(6)) loops[1].dst_back = between(0, step);
    store_alike(); /* what waits for its rest may be stored behind what goes on from elsewhere */
    count_runs();
    make_tile(one_in(2));
    make_steps();
}

/* Tiles that make a run of one register again and again, of the same bytes in most of them. */
static void draw_still(void)
{
    do draw_tile();
    while (tile.mapped || tile.outputs < 2 || asked.dst_mask[0] != ~0ULL >> (64 - S2DQ_REGISTER_BYTES / asked.stores));
    tile = asked;
    const int width = S2DQ_REGISTER_BYTES / (int)tile.stores, other = one_in(3) ? (int)between(1, tile.outputs - 1) : 0;
    const int64_t step = tile.outputs * S2DQ_REGISTER_BYTES;
    for (int piece = 0; piece < tile.outputs * tile.stores; piece++) {
        tile.dst[piece] = piece * width - 64;
        tile.dst_mask[piece] = tile.dst_mask[0];
    }
    for (int output = 1; output < tile.outputs; output++) {
        if (output == other && one_in(2)) continue;
        tile.upper[output] = tile.upper[0];
        memcpy(tile.low[output], tile.low[0], S2DQ_REGISTER_BYTES);
        memcpy(tile.high[output], tile.high[0], S2DQ_REGISTER_BYTES);
        memcpy(tile.fill[output], tile.fill[0], S2DQ_REGISTER_BYTES);
    }
    if (other) tile.low[other][between(0, 63)] ^= 1;
    int64_t span = step;
    for (int k = S2DQ_TILE_LOOPS - 1; k >= 0; k--) {
        loops[k] = (s2dq_axis){.extent = between(1, k == 2 ? 8 : 3), .dst = span + (one_in(3) ? between(0, 99) : 0)};
        if (one_in(8)) loops[k].src = between(-50, 50);
        if (one_in(8)) loops[k].src_back = between(-50, 50);
        if (one_in(3)) loops[k].dst_back = between(0, 90);
        span = loops[k].extent * loops[k].dst;
    }
    if (kernels.steps) store_alike();
    count_runs();
    make_tile(one_in(2));
    make_steps();
}

/* Words of three kinds: of a run of the source, of another one, and of both, six bytes of either for each of them. In
 * half of the tiles all words of a kind are alike, and half go on in the source and in the result where they ended. Some
 * run backwards, some are a vector short, and some have a value to fill with. */
static void draw_words(void)
{
    enum { WORD = 4, BLOCK = 6, BLOCKS = S2DQ_REGISTER_BYTES / WORD, PIECE = 32 };
    uint8_t from[3][WORD];
    const int alike = one_in(2), on = one_in(2), runs_apart = !one_in(6), turned = one_in(4);
    memset(&tile, 0, sizeof tile);
    tile.inputs = tile.outputs = 3;
    tile.loads = 2;
    tile.stores = 1 << (one_in(3) ? between(1, 2) : 0);
    tile.far = one_in(2);
    tile.asks = !one_in(4);
    tile.mapped = kernels.lines && one_in(2);
    const int64_t other = runs_apart ? 3 * PIECE + between(0, 300) : between(-20, 20);
    for (int k = 0; k < 6; k++) {
        tile.src[k] = k % 3 * PIECE + k / 3 * other - 50;
        tile.src_mask[k] = ~0ULL >> (64 - PIECE);
    }
    draw_lines(0);
    draw_fill();
    for (int kind = 0; kind < 3; kind++) {
        for (int lane = 0; lane < S2DQ_REGISTER_BYTES; lane++) {
            const int i = lane % WORD, second = kind == 2 || (kind == 1 && i >= WORD / 2);
            if (lane < WORD || !alike) from[kind][i] = (uint8_t)(second * 3 * PIECE + between(0, BLOCK - 1));
            const int place = from[kind][i] + (turned ? BLOCKS - 1 - lane / WORD : lane / WORD) * BLOCK;
            tile.upper[kind] |= (uint64_t)(place >= 2 * S2DQ_REGISTER_BYTES) << lane;
            if (place < 2 * S2DQ_REGISTER_BYTES) tile.low[kind][lane] = (uint8_t)place;
            else tile.high[kind][lane] = (uint8_t)(place - 2 * S2DQ_REGISTER_BYTES);
            tile.fill[kind][lane] = -1;
            tile.tab[kind][lane] = (uint8_t)(alike ? kind * WORD + i : draw());
        }
    }
    if (one_in(8)) tile.fill[between(0, 2)][between(0, S2DQ_REGISTER_BYTES - 1)] = 0, tile.fills = 1;
    loops[2] = (s2dq_axis){.extent = between(1, 30), .src = on ? BLOCKS * BLOCK : between(-150, 150),
                           .dst = S2DQ_REGISTER_BYTES + (on ? 0 : between(0, 9))};
    if (one_in(3)) loops[2].dst_back = loops[2].dst / 2, loops[2].src_back = loops[2].src / 2;
    int64_t span = loops[2].extent * loops[2].dst;
    for (int k = 1; k >= 0; k--) {
        loops[k] = (s2dq_axis){.extent = between(1, 4), .src = between(-500, 500), .dst = span + between(0, 9)};
        span = loops[k].extent * loops[k].dst;
    }
    if (kernels.steps) store_alike();
    for (int piece = 0; piece < 3 * tile.stores; piece++) {
        const int64_t width = S2DQ_REGISTER_BYTES / tile.stores;
        tile.dst[piece] = piece / tile.stores * (span + 40) + piece % tile.stores * width;
        tile.dst_mask[piece] = ~0ULL >> (64 - width);
    }
    if (tile.stores == 2 && one_in(2)) tile.dst_mask[between(0, 5)] = 0; /* a number that three does not divide */
    count_runs();
    make_tile(one_in(2));
    make_steps();
    if (kernels.steps) trios += steps.trios != 0;
}

/* Tiles that make whole lines of a few runs, all of the same indices: those of a sweep take some of the first and the
 * last turn alone. The loop outside is of sweeps, most of which go on in the result where the one before has ended. */
static void draw_sweeps(void)
{
    static const int widths[] = {1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    memset(&tile, 0, sizeof tile);
    tile.outputs = between(1, S2DQ_REGISTERS);
    tile.stores = 1;
    tile.far = one_in(2);
    tile.asks = !one_in(4);
    do tile.runs = between(1, tile.outputs);
    while (tile.outputs % tile.runs);
    tile.run_pieces = tile.outputs / tile.runs;
    const int run = (int)tile.run_pieces * S2DQ_REGISTER_BYTES;
    int width; /* of an index in a run */
    do width = widths[between(0, sizeof widths / sizeof *widths - 1)];
    while (run % width);
    group = run / width;
    tile.loads = group > 8 ? 4 : 1 << between(group > 4, 2);
    const int piece = S2DQ_REGISTER_BYTES / (int)tile.loads;
    const int most = S2DQ_REGISTERS * S2DQ_REGISTER_BYTES / (int)group; /* bytes of the source for an index */
    const int apart = group <= S2DQ_REGISTERS * tile.loads && one_in(2); /* a piece for each, or one behind the other */
    const int window = (int)between(1, apart && piece < most ? piece : most), beside = apart ? piece : window;
    const int64_t step = apart ? between(-200, 200) : window;
    const int bytes = (int)group * beside;
    tile.inputs = (bytes + S2DQ_REGISTER_BYTES - 1) / S2DQ_REGISTER_BYTES;
    for (int k = 0; k < tile.inputs * tile.loads; k++) {
        tile.src[k] = k * (apart ? step : piece) - 100;
        tile.src_mask[k] = ~0ULL >> (64 - piece);
    }
    const int fills = one_in(3) ? (int)between(1, 50) : 0;
    uint8_t from[S2DQ_REGISTERS * S2DQ_REGISTER_BYTES];
    int8_t value[sizeof from];
    tile.fills = fills > 0;
    draw_lines(0);
    draw_fill();
    for (size_t k = 0; k < sizeof from; k++) {
        from[k] = (uint8_t)between(0, window - 1);
        value[k] = between(0, 99) < fills ? (int8_t)between(0, sizeof fill - 1) : -1;
    }
    for (int output = 0; output < tile.outputs; output++) {
        for (int lane = 0; lane < S2DQ_REGISTER_BYTES; lane++) {
            const int place = output * S2DQ_REGISTER_BYTES + lane, index = place % run / width;
            const int like = place / run * width + place % width; /* the same in every index */
            const int source = index * beside + from[like];
            tile.fill[output][lane] = value[like];
            tile.upper[output] |= (uint64_t)(source >= 2 * S2DQ_REGISTER_BYTES) << lane;
            if (source < 2 * S2DQ_REGISTER_BYTES) tile.low[output][lane] = (uint8_t)source;
            else tile.high[output][lane] = (uint8_t)(source - 2 * S2DQ_REGISTER_BYTES);
        }
        tile.dst_mask[output] = ~0ULL;
    }
    memset(loops, 0, sizeof loops);
    loops[0].extent = 1;
    loops[2].extent = between(2, 12);
    loops[2].src = group * step;
    loops[2].dst = run;
    const int64_t back = one_in(2) ? between(0, group - 1) : 0;
    loops[2].src_back = back * step;
    loops[2].dst_back = back * width;
    const int64_t length = loops[2].extent * run - loops[2].dst_back;
    loops[1].extent = between(1, 6);
    loops[1].src = between(-500, 500);
    loops[1].dst = length + (one_in(4) ? between(0, 100) : 0);
    const int64_t pitch = (loops[1].extent * loops[1].dst + S2DQ_LINE - 1) / S2DQ_LINE * S2DQ_LINE;
    const int64_t base = between(-100, 100);
    for (int k = 0; k < tile.outputs; k++)
        tile.dst[k] = base + k / tile.run_pieces * pitch + k % tile.run_pieces * S2DQ_REGISTER_BYTES;
    make_tile(0);
}

static void run_sweeps(uint8_t *dst, const uint8_t *src)
{
    for (int64_t k = 0; k < loops[1].extent; k++, dst += loops[1].dst, src += loops[1].src) {
        const s2dq_axis three[S2DQ_TILE_LOOPS] = {{.extent = 1}, {.extent = 1}, loops[2]};
        const int64_t ahead = -(int64_t)(uintptr_t)(dst + tile.dst[0]) & (S2DQ_REGISTER_BYTES - 1);
        if (ahead % (loops[2].dst / group) || ahead + loops[2].dst > loops[2].extent * loops[2].dst - loops[2].dst_back)
            kernels.tile(&tile)(dst, src, &tile, &filling, three);
        else
            kernels.sweep(dst, src, &tile, &filling, &loops[2], group, loops[1].src, kernels.streamer(&tile), &carry),
                swept++;
    }
    kernels.flush(&carry);
    kernels.settle();
}

static void draw_network(void)
{
    memset(&network, 0, sizeof network);
    network.levels = between(2, S2DQ_NET_LEVELS);
    network.loads = 1 << between(0, 2);
    network.stores = 1 << between(0, 2);
    network.far = one_in(2);
    network.asks = !one_in(4);
    for (int piece = 0; piece < S2DQ_NET_REGISTERS * network.loads; piece++) network.src[piece] = between(-5000, 5000);
    draw_loops(network.dst, (int)(S2DQ_NET_REGISTERS * network.stores), S2DQ_REGISTER_BYTES / (int)network.stores);
    for (int level = 0; level < network.levels; level++)
        for (int k = 0; k < 2 * S2DQ_REGISTER_BYTES; k++)
            network.table[level][k / S2DQ_REGISTER_BYTES][k % S2DQ_REGISTER_BYTES] =
                (uint8_t)between(0, 2 * S2DQ_REGISTER_BYTES - 1);
}

static int place_of(const int *bits, int count, int wanted)
{
    for (int k = 0; k < count; k++)
        if (bits[k] == wanted) return k;
    return -1;
}

/* A transpose, as `build_network` lays it out. Ten bits say where a byte of it is: those of a granule, of columns and
 * of rows in the source; of a granule, of rows and of columns in the result. */
static void draw_transpose(void)
{
    enum { BITS = 10, INSIDE = 6 };
    memset(&network, 0, sizeof network);
    const int granule = (int)between(0, 4), load = (int)between(granule < 4 ? 4 : 5, 6), rows = BITS - load;
    const int run = granule + rows, store = run < INSIDE ? run : INSIDE;
    int stored[BITS], now[INSIDE], inside[INSIDE], leaving[BITS], kept[BITS], coming[BITS], waiting[BITS];
    int leaves = 0, keeps = 0, comes = 0, waits = 0, taken = 0;
    for (int k = 0; k < granule; k++) stored[k] = k;
    for (int k = 0; k < rows; k++) stored[granule + k] = load + k;
    for (int k = 0; k < load - granule; k++) stored[run + k] = load - 1 - k;
    /* Pieces side by side in a register are the last rows of a register of the result. */
    for (int k = 0; k < load; k++) now[k] = k;
    for (int k = INSIDE - 1, at = INSIDE - 1; at >= load; k--)
        if (stored[k] >= load) now[at--] = stored[k];
    for (int bit = load; bit < BITS; bit++) {
        if (place_of(now, INSIDE, bit) >= 0) continue;
        if (place_of(stored, BITS, bit) < INSIDE) leaving[leaves++] = bit;
        else kept[keeps++] = bit;
    }
    for (int k = 0; k < INSIDE; k++) inside[k] = now[k];
    /* Rows that are interleaved leave from the last to the first. */
    const int interleaved = leaves - 1 < 4 - granule ? leaves - 1 : 4 - granule;
    for (int k = 0; k < interleaved / 2; k++) {
        const int other = leaving[k];
        leaving[k] = leaving[interleaved - 1 - k];
        leaving[interleaved - 1 - k] = other;
    }
    for (int k = INSIDE; k < BITS; k++)
        if (place_of(kept, keeps, stored[k]) < 0) waiting[waits++] = stored[k];
    network.levels = leaves;
    network.loads = 1 << (INSIDE - load);
    network.stores = 1 << (INSIDE - store);
    network.far = one_in(2);
    network.asks = !one_in(4);
    for (int level = 0; level < leaves; level++) {
        const int out = leaving[level];
        int then[INSIDE], new = waiting[taken];
        memcpy(then, now, sizeof now);
        if (level == leaves - 1) {
            memcpy(then, stored, sizeof then);
        } else if (comes < 4 - granule) {
            new = now[3];
            for (int k = 3; k > granule; k--) then[k] = now[k - 1];
            then[granule] = out;
        } else {
            then[place_of(now, INSIDE, new)] = out;
        }
        const int at = place_of(waiting, waits, new);
        for (int k = at; k > taken; k--) waiting[k] = waiting[k - 1];
        taken++;
        coming[comes++] = new;
        for (int k = 0; k < 2 * S2DQ_REGISTER_BYTES; k++) {
            int from = 0;
            for (int bit = 0; bit < INSIDE; bit++) {
                const int place = place_of(then, INSIDE, now[bit]);
                from |= (place < 0 ? k / S2DQ_REGISTER_BYTES : k >> place & 1) << bit;
            }
            from += (k >> place_of(then, INSIDE, out) & 1) * S2DQ_REGISTER_BYTES;
            network.table[level][k / S2DQ_REGISTER_BYTES][k % S2DQ_REGISTER_BYTES] = (uint8_t)from;
        }
        memcpy(now, then, sizeof now);
    }

    /* Rows of one axis or of several; columns one behind the other, in any order; and the loop along the rows. */
    int64_t src_step[BITS], dst_step[BITS];
    const int width = 1 << granule, bytes = 1 << run, line = bytes < S2DQ_LINE ? bytes : S2DQ_LINE, alike = !one_in(4);
    /* 512 is just far enough apart for pieces to be asked for by their last byte. */
    const int64_t step = rows < 5 && one_in(8) ? 512 : between(-60, 60);
    const int one = one_in(2), paged = !one && one_in(3); /* rows of pages: kernels look whether they share a set */
    for (int k = 0; k < rows; k++) {
        src_step[load + k] = one ? step * (1 << k) : paged ? 4096 * between(-1, 1) : between(-3000, 3000);
        dst_step[load + k] = (int64_t)width << k;
    }
    const int along = (int)between(0, S2DQ_TILE_LOOPS - 1);
    memset(loops, 0, sizeof loops);
    for (int k = 0; k < S2DQ_TILE_LOOPS; k++) loops[k].extent = 1;
    loops[along].extent = one_in(4) ? between(1, 9) : between(8, 20);
    loops[along].dst = bytes;
    loops[along].src = one_in(10) ? between(-200, 200) : step * (1 << rows);
    if (loops[along].extent > 1 && one && one_in(2)) {
        const int64_t back = between(0, (1 << rows) - 1);
        loops[along].dst_back = back * width;
        loops[along].src_back = back * step;
    }
    int64_t span = loops[along].extent * bytes + (alike ? line * between(0, 3) : between(0, 100));
    int order[BITS];
    for (int k = 0; k < load - granule; k++) {
        const int other = (int)between(0, k);
        order[k] = order[other];
        order[other] = granule + k;
    }
    for (int k = 0; k < load - granule; k++) {
        dst_step[order[k]] = span;
        span *= 2;
    }
    for (int k = S2DQ_TILE_LOOPS - 1; k >= 0; k--) {
        if (k == along) continue;
        loops[k].extent = span > ARENA / 4 ? 1 : one_in(2) ? between(1, 3) : between(1, ARENA / 2 / span);
        loops[k].src = between(-150, 150);
        loops[k].dst = span + (one_in(4) ? between(0, 9) : 0);
        if (loops[k].extent > 1 && one_in(4)) loops[k].src_back = loops[k].src, loops[k].dst_back = loops[k].dst;
        span = loops[k].dst * loops[k].extent;
    }
    int sources[BITS], targets[BITS], in = 0, out = 0;
    for (int k = load; k < INSIDE; k++) sources[in++] = inside[k];
    for (int k = 0; k < leaves; k++) sources[in++] = leaving[k];
    for (int k = store; k < INSIDE; k++) targets[out++] = stored[k];
    for (int k = 0; k < comes; k++) targets[out++] = coming[k];
    for (int k = 0; k < keeps; k++) sources[in++] = targets[out++] = kept[k];
    for (int piece = 0; piece < 1 << in; piece++)
        for (int k = 0; k < in; k++)
            if (piece >> k & 1) network.src[piece] += src_step[sources[k]];
    for (int piece = 0; piece < 1 << out; piece++)
        for (int k = 0; k < out; k++)
            if (piece >> k & 1) network.dst[piece] += dst_step[targets[k]];
    network.run = bytes;
    for (int piece = 0; piece < 1 << out; piece++) network.unit |= network.dst[piece] & (line - 1);
    network.unit = network.unit || !one ? 0 : width;
    network.step = network.unit ? step : 0;
}

/* Transposes one loop of which goes on in the source where it would along the runs, but elsewhere in the result. */
static void draw_astray(void)
{
    int other;
    do draw_transpose();
    while (!network.unit);
    do other = (int)between(0, S2DQ_TILE_LOOPS - 1);
    while (loops[other].dst == network.run);
    const int64_t src = network.run / network.unit * network.step, most = ARENA / 2 / (s2dq_magnitude(src) + 1);
    loops[other].src = src;
    if (loops[other].extent > most) loops[other].extent = most;
}

/* Networks whose places are uneven on one side: any digits, any pieces of the source; nothing is stored twice but by a
 * network that goes back. */
static void draw_bent(void)
{
    draw_transpose();
    s2dq_bend *bend = &network.bend;
    const int into = S2DQ_NET_REGISTERS * (int)network.stores, from = S2DQ_NET_REGISTERS * (int)network.loads;
    const int width = S2DQ_REGISTER_BYTES / (int)network.stores;
    bend->side = between(1, 2);
    bend->indices = 1LL << between(0, bend->side == 1 ? 6 : network.stores == 1 ? 4 : network.stores == 2 ? 5 : 6);
    do {
        bend->total = 1;
        for (int k = 0; k < S2DQ_NET_DIGITS; k++) bend->total *= bend->extent[k] = one_in(2) ? 1 : between(1, 12);
    } while (bend->total < bend->indices || bend->total > 300 || bend->total / bend->indices > 64);
    bend->inside = between(0, S2DQ_TILE_LOOPS);
    int64_t span;
    if (bend->side == 1) {
        bend->unit = between(0, 8);
        for (int k = 0; k < S2DQ_NET_DIGITS; k++) bend->step[k] = between(-200, 200);
        for (int piece = 0; piece < from; piece++) {
            bend->index[piece] = between(0, bend->indices - 1);
            network.src[piece] = between(-100, 100);
        }
        const int64_t step = width + between(0, 9);
        const int turned = (int)between(0, 5); /* which bit of a piece's number steps least */
        for (int piece = 0; piece < into; piece++) {
            network.dst[piece] = 0;
            for (int bit = 0, bits = place_of((const int[]){16, 32, 64}, 3, into) + 4; bit < bits; bit++)
                if (piece >> bit & 1) network.dst[piece] += step << (bit + turned) % bits;
        }
        span = step * into + bend->unit * bend->total;
    } else {
        bend->unit = between(-20, 20);
        const int64_t each = into / bend->indices;
        int64_t step = each * width + between(0, 9);
        for (int k = 0; k < S2DQ_NET_DIGITS; k++) {
            bend->step[k] = step;
            step = step * bend->extent[k] + between(0, 9);
        }
        span = step;
        int order[S2DQ_NET_PIECES];
        for (int piece = 0; piece < into; piece++) {
            const int other = (int)between(0, piece);
            order[piece] = order[other];
            order[other] = piece;
        }
        for (int piece = 0; piece < into; piece++) {
            bend->index[order[piece]] = piece / each;
            network.dst[order[piece]] = piece % each * width;
        }
        int64_t steps[6];
        for (int bit = 0; bit < 6; bit++) steps[bit] = between(-500, 500);
        for (int piece = 0; piece < from; piece++) {
            network.src[piece] = 0;
            for (int bit = 0; bit < 6; bit++)
                if (piece >> bit & 1) network.src[piece] += steps[bit];
        }
    }
    for (int k = S2DQ_TILE_LOOPS - 1; k >= 0; k--) {
        loops[k].extent = span > ARENA / 12 ? 1 : between(1, 3);
        loops[k].src = between(-150, 150);
        loops[k].dst = span;
        loops[k].src_back = one_in(2) ? between(-100, 100) : 0;
        loops[k].dst_back = -between(0, 9); /* the last turn goes further instead: places may turn around the loops */
        span = span * loops[k].extent + 9;
    }
}

static void run_network(uint8_t *dst, const uint8_t *src)
{
    static int32_t at[300 * S2DQ_NET_PIECES];
    if (network.bend.side && !s2dq_bend_table(at, &network)) exit(1);
    network.bend.at = at;
    if (!kernels.aligner || network.bend.side) {
        kernels.network(&network)(dst, src, &network, loops);
        return;
    }
    s2dq_network_in_lines(kernels.network(&network), dst, src, &network, loops);
    in_lines += network.unit && (uintptr_t)dst % S2DQ_LINE;
}

/* ------------------------------------------------------------------------------------------------- the check */

typedef struct {
    int64_t low, high;
} extent;

/* From where to where the pieces of one side reach; `masks` where only their bytes count. */
static extent reach_of(const int64_t *at, const uint64_t *masks, int64_t registers, int64_t pieces)
{
    const int width = S2DQ_REGISTER_BYTES / (int)pieces;
    extent reach = {INT64_MAX, INT64_MIN};
    for (int piece = 0; piece < registers * pieces; piece++)
        for (int bit = 0; bit < width; bit++)
            if (!masks || masks[piece] >> bit & 1) {
                if (at[piece] + bit < reach.low) reach.low = at[piece] + bit;
                if (at[piece] + bit + 1 > reach.high) reach.high = at[piece] + bit + 1;
            }
    if (reach.low > reach.high) reach.low = reach.high = 0;
    return reach;
}

static extent over_loops(extent reach, int64_t (*at)(int, int64_t))
{
    for (int k = 0; k < S2DQ_TILE_LOOPS; k++) {
        int64_t low = 0, high = 0;
        for (int64_t i = 0; i < loops[k].extent; i++) {
            if (at(k, i) < low) low = at(k, i);
            if (at(k, i) > high) high = at(k, i);
        }
        reach.low += low;
        reach.high += high;
    }
    return reach;
}

static extent reach_together(extent a, extent b)
{
    return (extent){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

/* OUT: what a network reads and writes in one turn of the loops, at all its places. */
static void network_reach(extent *in, extent *out)
{
    const s2dq_network all = network;
    const s2dq_bend *bend = &all.bend;
    const int64_t last = bend->total - bend->indices;
    *in = *out = (extent){INT64_MAX, INT64_MIN};
    for (int64_t done = 0; done == 0 || done < bend->total; done += bend->side ? bend->indices : 1) {
        const int64_t first = done < last ? done : last, even = bend->side ? first * bend->unit : 0;
        if (bend->side) move_network(&all, first);
        extent reads = reach_of(network.src, NULL, S2DQ_NET_REGISTERS, network.loads);
        extent writes = reach_of(network.dst, NULL, S2DQ_NET_REGISTERS, network.stores);
        if (bend->side == 1) writes.low += even, writes.high += even;
        else reads.low += even, reads.high += even;
        *in = reach_together(*in, reads), *out = reach_together(*out, writes);
        network = all;
    }
}

/* Whether the program just drawn gives what the plain executor gives, and no byte more. `moves`: wherever in a line the
 * result begins, as some kernels look. */
static int program_holds(uint8_t *src, uint8_t *dst, uint8_t *expected, enum kind kind, int moves)
{
    extent in, out;
    if (kind == NETWORK) {
        network_reach(&in, &out);
    } else {
        in = reach_of(asked.src, kind == EDGE ? asked.src_mask : NULL, asked.inputs, asked.loads);
        out = reach_of(asked.dst, asked.dst_mask, asked.outputs, asked.stores);
    }
    if (kind != EDGE) in = over_loops(in, src_at), out = over_loops(out, dst_at);
    if (in.high - in.low > ARENA || out.high - out.low > ARENA) {
        puts("tiles: a program does not fit into the arena");
        exit(1);
    }
    const int at_end = one_in(2);
    uint8_t *x = src + (at_end ? ARENA - in.high : -in.low), *y = dst + (at_end ? ARENA - out.high : -out.low);
    if ((kind >= SWEEPS || moves) && one_in(2)) { /* kernels look where in a line the result begins */
        const int64_t room = ARENA - (out.high - out.low), some = between(0, room < 127 ? room : 127);
        y += at_end ? -some : some;
    }
    draw_memory(src, ARENA);
    memset(dst, POISON, ARENA);
    memset(expected, POISON, ARENA);
    const int aligns = kind == LOOPS && kernels.aligns && kernels.aligns(y, &tile, loops);
    const s2dq_tile_runner aligner = aligns ? kernels.aligner(&tile) : NULL; /* as the driver asks them */
    aligned += aligner != NULL;
    in_rows += moves && aligner;
    if (kind == LOOPS) sames += tile.same != 0, paired += tile.way != S2DQ_MIXED;
    begin_trace(dst, src, ARENA);
    switch (kind) {
    case LOOPS: (aligner ? aligner : kernels.tile(&tile))(y, x, &tile, &filling, loops); break;
    case EDGE: kernels.edge(y, x, &tile, &filling); break;
    case SWEEPS: run_sweeps(y, x); break;
    default: run_network(y, x);
    }
    end_trace(&digest);
    y = expected + (y - dst);
    switch (kind) {
    case EDGE: plain_tile(y, x); break;
    case NETWORK: plain_run(y, x, network.bend.side ? plain_bent : plain_network); break;
    default: plain_run(y, x, plain_tile);
    }
    return memcmp(dst, expected, ARENA) == 0;
}

static enum kind draw_kind(void)
{
    if (kernels.network && one_in(4)) return NETWORK;
    if (kernels.sweep && one_in(6)) return SWEEPS;
    return one_in(3) ? EDGE : LOOPS;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"tile", "tile at an edge", "sweep", "network"};
    static uint8_t expected[ARENA];
    const long rounds = argc > 1 ? atol(argv[1]) : 4000, seed = argc > 2 ? atol(argv[2]) : 1;
    uint8_t *src = make_arena(ARENA), *dst = make_arena(ARENA);
    long counts[KINDS] = {0};
    int isa = S2DQ_ISA_COUNT - 1;
    while (isa > 0 && (!s2dq_isa_runs(isa) || (argc > 3 && strcmp(argv[3], s2dq_isa_name(isa))))) isa--;
    /* With whole lines, whatever this processor makes of them. */
    kernels = s2dq_kernels_of(isa, S2DQ_ACROSS_DEAR, false);
    if (!kernels.tile || !kernels.edge) {
        printf("tiles: no such kernels for %s\n", s2dq_isa_name(isa));
        return 2;
    }
    sow(seed);
    long bents = 0;
    for (long k = 0; k < rounds + NEARLY + APART + BARE + ROWS + STILL + WORDS + BENDS; k++) {
        const long more = k - rounds - NEARLY, bare = more - APART, rows = bare - BARE, still = rows - ROWS;
        const long words = still - STILL, bends = words - WORDS;
        /* Which make whole lines past the caches alone, and which make them otherwise. */
        if (more == 0) kernels = s2dq_kernels_of(isa, S2DQ_ACROSS_FREE, false);
        if (rows == 0) kernels = s2dq_kernels_of(isa, S2DQ_ACROSS_WHOLE, false);
        const int astray = more >= 0 && bare < 0 && kernels.network && more % 2;
        const int edge = bare >= 0 && rows < 0 && bare % 2;
        const int bent = bends >= 0 && kernels.network && kernels.aligner; /* which no other instruction set runs */
        const enum kind kind = k < rounds ? draw_kind() : astray || bent ? NETWORK : edge ? EDGE : LOOPS;
        if (astray) draw_astray();
        else if (bent) draw_bent(), bents++;
        else if (bends >= 0) draw_tile();
        else if (words >= 0) draw_words();
        else if (still >= 0) draw_still();
        else if (rows >= 0) draw_rows();
        else if (bare >= 0) draw_bare();
        else if (more >= 0) draw_apart();
        else if (k >= rounds) draw_nearly();
        else if (kind == SWEEPS) draw_sweeps();
        else if (kind != NETWORK) draw_tile();
        else if (isa == S2DQ_ISA_NEON && one_in(2)) draw_network(); /* AVX-512 knows what most of the tables say */
        else draw_transpose();
        counts[kind]++;
        if (!program_holds(src, dst, expected, kind, rows >= 0)) {
            printf("tiles: wrong bytes: seed %ld, round %ld, a %s; loops %d %d %d\n", seed, k, names[kind],
                   (int)loops[0].extent, (int)loops[1].extent, (int)loops[2].extent);
            return 1;
        }
        if (!is_recorded("tiles", s2dq_isa_name(isa), k + 1, &digest, argc > 4 ? argv[4] : NULL)) return 1;
    }
    fprintf(stderr,
            "tiles: on %s %ld tiles, %ld of them in whole lines, %ld looked up in pairs, %ld in nothing, %ld with "
            "stores joined, %ld in trios; %ld at edges; %ld sweeps past the caches; %ld networks, %ld of them perhaps "
            "within lines\n",
            s2dq_isa_name(isa), counts[LOOPS], aligned, paired, sames, joined, trios, counts[EDGE], swept,
            counts[NETWORK], in_lines);
    if (kernels.steps && (!trios || trios == WORDS)) return 1;
    if ((kernels.aligner && (!aligned || !in_rows)) || !paired || !sames || !joined) return 1;
    if ((kernels.sweep && !swept) || (kernels.network && kernels.aligner && (!in_lines || !bents))) return 1;
    return 0;
}
