/* Random tile programs and networks against an executor in plain C, every array between inaccessible pages.
 *
 *     cc -O2 -I s2dq/_micro tests/tiles.c -o tiles && ./tiles [ROUNDS [SEED [INSTRUCTION_SET]]]
 *     cc -O2 -I s2dq/_micro -DTRACED tests/tiles.c -o traced && ./traced 1500 1 avx2 tests/recorded_tiles.txt
 *
 * Checks the kernels of one instruction set, the best that runs unless told: NEON, which `.ci/emulate` emulates, or
 * AVX-512; or AVX2. Traced, they have to load, store and fetch in the recorded order, as with boxes.c.
 */
#include "drawn.h"
#include "traced.h"

#include "dispatch.h"

enum { ARENA = 1 << 18, POISON = 0xA5, NET_BYTES = S2DQ_NET_REGISTERS * S2DQ_REGISTER_BYTES };
enum kind { LOOPS, EDGE, NETWORK };

static s2dq_kernels kernels;
static s2dq_tile tile;
static s2dq_steps steps;
static s2dq_network network;
static s2dq_filling filling;
static s2dq_lines lines;
static uint8_t tables[256][256];
static s2dq_axis loops[S2DQ_TILE_LOOPS];
static long aligned, sames, paired;
static uint64_t digest;

/* ------------------------------------------------------------------------------------------ the plain executor */

static int64_t plain_word(int64_t value, int output, int lane)
{
    const int odd = lane % 2, word = lane / 2;
    return word_of_line(value ^ lines.first[0], lines.slope[output][odd][word], lines.more[output][odd][word],
                        lines.less[output][odd][word]);
}

static uint8_t plain_line(int64_t value, int output, int lane)
{
    return byte_of_word(plain_word(value, output, lane), lines.shift);
}

static uint8_t plain_byte(const uint8_t *src, int output, int lane)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile.loads, upper = tile.upper[output] >> lane & 1;
    const int from = upper ? 2 * S2DQ_REGISTER_BYTES + tile.high[output][lane] : tile.low[output][lane];
    const uint8_t fill = filling.fill[output][lane];
    if (!filling.keep[output][lane]) return fill;
    const uint8_t value = src[tile.src[from / width] + from % width];
    return (tile.mapped ? plain_line(value, output, lane) : value) ^ fill;
}

static void plain_tile(uint8_t *dst, const uint8_t *src)
{
    const int width = S2DQ_REGISTER_BYTES / (int)tile.stores;
    for (int piece = 0; piece < tile.outputs * tile.stores; piece++)
        for (int bit = 0; bit < width; bit++)
            if (tile.dst_mask[piece] >> bit & 1)
                dst[tile.dst[piece] + bit] = plain_byte(src, piece * width / S2DQ_REGISTER_BYTES,
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

/* One of the bytes that are there, in two neighbouring registers where `way` is one of those that look up in pairs. */
static int draw_byte(const int *there, int count, int output, int way)
{
    static const int neighbours[2][S2DQ_REGISTERS] = {{0, 0, 2, 2}, {0, 2, 0, 2}}; /* of four, for four outputs */
    int low = output;
    if (tile.inputs == 4 && tile.outputs == 4) low = neighbours[way - S2DQ_PAIRED][output];
    if (tile.inputs == 4 && tile.outputs == 2) low = 2 * output;
    for (int trial = 0; trial < 40; trial++) {
        const int from = there[between(0, count - 1)], number = from / S2DQ_REGISTER_BYTES;
        if (number == low || number == (low + 1) % tile.inputs) return from;
    }
    return there[0];
}

/* Every byte that is stored comes from one that is there, or is filled; what is not stored comes from anywhere. `same`:
 * the outputs are the inputs, but for a byte now and then. */
static void draw_tables(const int *there, int count, int same)
{
    const int other = same && one_in(3) ? (int)between(0, tile.outputs * S2DQ_REGISTER_BYTES - 1) : -1;
    const int pairs = tile.inputs > 2 && tile.outputs > 1 && tile.outputs <= tile.inputs && one_in(3);
    const int way = pairs ? (int)between(S2DQ_PAIRED, S2DQ_PAIRED_IN_TURN) : S2DQ_MIXED;
    const int width = S2DQ_REGISTER_BYTES / (int)tile.stores;
    const int scattered = one_in(6), reach = one_in(3) ? count : (int)between(1, 40);
    tile.mapped = kernels.lines && tile.outputs < S2DQ_REGISTERS && one_in(2);
    const int apart = tile.mapped && one_in(2);
    const int filled = !apart && !same && one_in(3) ? (int)between(1, 100) : 0;
    tile.fills = filled > 0;
    memset(filling.keep, 255, sizeof filling.keep);
    const int flip = kernels.steps ? 128 * one_in(2) : (int)draw() & 255; /* of signed bytes, or of any */
    memset(filling.fill, tile.mapped || filled ? flip : 0, sizeof filling.fill);
    filling.lines = tile.mapped ? &lines : NULL;
    filling.tables = tables[0];
    const int level = one_in(2), endless = one_in(3) ? 2 : 0;
    lines.turns = !endless && one_in(2);
    memset(lines.first, lines.turns ? 128 : 0, sizeof lines.first);
    lines.falls = !endless && one_in(2);
    lines.shift = endless || one_in(2) ? 0 : between(1, 7);
    for (size_t k = 0; k < sizeof lines.slope / 2; k++) {
        (&lines.slope[0][0][0])[k] = (uint16_t)draw() >> endless;
        (&lines.more[0][0][0])[k] = level || one_in(2) ? 0 : (uint16_t)draw() >> endless;
        (&lines.less[0][0][0])[k] = one_in(2) || !lines.falls ? 0 : (uint16_t)draw();
    }
    for (int output = 0; output < tile.outputs; output++) {
        const int first = (int)between(0, count - 1);
        for (int word = 0; word < S2DQ_REGISTER_BYTES && apart; word++) { /* one line for the whole output */
            const int odd = word % 2;
            lines.slope[output][odd][word / 2] = lines.slope[output][0][0];
            lines.more[output][odd][word / 2] = lines.more[output][0][0];
            lines.less[output][odd][word / 2] = lines.less[output][0][0];
        }
        for (int lane = 0; lane < S2DQ_REGISTER_BYTES; lane++) {
            tile.tab[output][lane] = (uint8_t)(output * S2DQ_REGISTER_BYTES + (apart ? 0 : lane));
            const int near = scattered ? lane % 16 * (count / 16) : (int)between(0, reach - 1);
            const int stored = tile.dst_mask[output * tile.stores + lane / width] >> lane % width & 1;
            int from = there[(first + near) % count];
            if (!stored) tile.tab[output][lane] = (uint8_t)draw();
            if (way) from = draw_byte(there, count, output, way);
            if (same) from = output * S2DQ_REGISTER_BYTES + lane;
            if (from == other) from = there[between(0, count - 1)];
            if (between(0, 99) < filled) filling.keep[output][lane] = 0, filling.fill[output][lane] = (uint8_t)draw();
            tile.fill[output][lane] = filling.keep[output][lane] ? -1 : 0;
            if ((!stored && !same) || !filling.keep[output][lane])
                from = (int)between(0, S2DQ_REGISTER_BYTES * tile.inputs - 1);
            if (from >= 2 * S2DQ_REGISTER_BYTES) {
                tile.upper[output] |= 1ULL << lane;
                tile.high[output][lane] = (uint8_t)(from - 2 * S2DQ_REGISTER_BYTES);
            } else {
                tile.low[output][lane] = (uint8_t)from;
            }
        }
    }
}

/* Whether any line ends before its last byte; and what they come to, in the tables that outputs have to themselves. */
static void draw_bytes(void)
{
    lines.ends = 0;
    for (int k = 0; k < tile.outputs * S2DQ_REGISTER_BYTES && tile.mapped && !lines.ends; k++)
        for (int value = 0; value < 256; value++)
            lines.ends |= plain_word(value, k / S2DQ_REGISTER_BYTES, k % S2DQ_REGISTER_BYTES) > 65535;
    for (int output = 0; output < tile.outputs && tile.mapped && tile.apart; output++)
        for (int value = 0; value < 256; value++)
            tables[tile.own[output]][value] =
                plain_line(value, output, tile.own[output] % S2DQ_REGISTER_BYTES) ^ filling.fill[output][0];
}

/* Loops that store nothing twice, but for turns that go back, and the pieces of the destination. In half of the cases
 * the innermost loop stores each run of a few pieces right behind that of the turn before. */
static void draw_loops(int64_t *at, int pieces, int width)
{
    const int adjacent = one_in(2), gap = one_in(2) ? 0 : (int)between(1, 9);
    int run = adjacent ? (int)between(1, 4) : 1; /* pieces */
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
    if (loops[2].extent > 1 && one_in(2)) loops[2].src_back = between(-100, 100);
    if (loops[2].extent > 1 && one_in(2)) loops[2].dst_back = between(0, step - 1);
    int64_t pitch = adjacent ? loops[2].extent * step + gap : step + gap;
    if (one_in(20)) pitch = (pitch + 4095) / 4096 * 4096; /* where pieces push each other out of the cache */
    int64_t span = pieces / run * pitch;
    draw_destination(at, pieces / run, pitch);
    for (int piece = pieces - 1; piece > 0; piece--) at[piece] = at[piece / run] + piece % run * width;
    for (int k = S2DQ_TILE_LOOPS - 1 - adjacent; k >= 0; k--) {
        const int64_t extent = one_in(3) ? between(1, longest) : between(1, 5);
        memset(&loops[k], 0, sizeof loops[k]);
        loops[k].extent = extent * span > ARENA / 2 ? 1 : extent;
        loops[k].src = between(-150, 150);
        loops[k].dst = one_in(4) ? -span : span;
        if (loops[k].extent > 1 && one_in(2)) loops[k].src_back = between(-100, 100);
        if (loops[k].extent > 1 && one_in(2)) loops[k].dst_back = between(0, 60) * (loops[k].dst < 0 ? -1 : 1);
        span *= loops[k].extent;
    }
    /* Where the pieces of a tile take turns, what is stored twice has to be the same. */
    for (int k = 0; k < S2DQ_TILE_LOOPS && kernels.steps; k++)
        if (loops[k].dst_back) loops[k].dst_back = loops[k].dst, loops[k].src_back = loops[k].src;
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
    tile.past = one_in(6);
    tile.way = between(S2DQ_MIXED, S2DQ_SAME); /* whatever was there */
    const int pieces = (int)(tile.outputs * tile.stores), width = S2DQ_REGISTER_BYTES / (int)tile.stores;
    const int full = (same && !one_in(4)) || one_in(2);
    for (int piece = 0; piece < pieces; piece++) tile.dst_mask[piece] = full ? ~0ULL >> (64 - width) : draw_mask(width);
    draw_loops(tile.dst, pieces, width);
    count_runs();
    draw_tables(there, draw_source(there, same), same);
    s2dq_tile_choose(&tile);
    if (kernels.steps) {
        if (kernels.steps(&steps, &tile) != most_windows()) {
            puts("tiles: not the most windows of a step");
            exit(1);
        }
        tile.steps = &steps;
    }
    draw_bytes();
}

static void draw_network(void)
{
    memset(&network, 0, sizeof network);
    network.levels = between(2, S2DQ_NET_LEVELS);
    network.loads = 1 << between(0, 2);
    network.stores = 1 << between(0, 2);
    network.far = one_in(2);
    for (int piece = 0; piece < S2DQ_NET_REGISTERS * network.loads; piece++) network.src[piece] = between(-5000, 5000);
    draw_loops(network.dst, (int)(S2DQ_NET_REGISTERS * network.stores), S2DQ_REGISTER_BYTES / (int)network.stores);
    for (int level = 0; level < network.levels; level++)
        for (int k = 0; k < 2 * S2DQ_REGISTER_BYTES; k++)
            network.table[level][k / S2DQ_REGISTER_BYTES][k % S2DQ_REGISTER_BYTES] =
                (uint8_t)between(0, 2 * S2DQ_REGISTER_BYTES - 1);
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

/* Whether the program just drawn gives what the plain executor gives, and no byte more. */
static int program_holds(uint8_t *src, uint8_t *dst, uint8_t *expected, enum kind kind)
{
    extent in = reach_of(tile.src, kind == EDGE ? tile.src_mask : NULL, tile.inputs, tile.loads);
    extent out = reach_of(tile.dst, tile.dst_mask, tile.outputs, tile.stores);
    if (kind == NETWORK) {
        in = reach_of(network.src, NULL, S2DQ_NET_REGISTERS, network.loads);
        out = reach_of(network.dst, NULL, S2DQ_NET_REGISTERS, network.stores);
    }
    if (kind != EDGE) in = over_loops(in, src_at), out = over_loops(out, dst_at);
    if (in.high - in.low > ARENA || out.high - out.low > ARENA) {
        puts("tiles: a program does not fit into the arena");
        exit(2);
    }
    const int at_end = one_in(2);
    uint8_t *x = src + (at_end ? ARENA - in.high : -in.low), *y = dst + (at_end ? ARENA - out.high : -out.low);
    draw_memory(src, ARENA);
    memset(dst, POISON, ARENA);
    memset(expected, POISON, ARENA);
    const int aligns = kind == LOOPS && kernels.aligns && kernels.aligns(y, &tile, loops);
    const s2dq_tile_runner aligner = aligns ? kernels.aligner(&tile) : NULL; /* as the driver asks them */
    aligned += aligner != NULL;
    if (kind == LOOPS) sames += tile.same != 0, paired += tile.way != S2DQ_MIXED;
    begin_trace(dst, src, ARENA);
    switch (kind) {
    case LOOPS: (aligner ? aligner : kernels.tile(&tile))(y, x, &tile, &filling, loops); break;
    case EDGE: kernels.edge(y, x, &tile, &filling); break;
    case NETWORK: kernels.network(&network)(y, x, &network, loops); break;
    }
    end_trace(&digest);
    y = expected + (y - dst);
    switch (kind) {
    case LOOPS: plain_run(y, x, plain_tile); break;
    case EDGE: plain_tile(y, x); break;
    case NETWORK: plain_run(y, x, plain_network); break;
    }
    return memcmp(dst, expected, ARENA) == 0;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"tile", "tile at an edge", "network"};
    static uint8_t expected[ARENA];
    const long rounds = argc > 1 ? atol(argv[1]) : 4000, seed = argc > 2 ? atol(argv[2]) : 1;
    uint8_t *src = make_arena(ARENA), *dst = make_arena(ARENA);
    long counts[3] = {0, 0, 0};
    int isa = S2DQ_ISA_COUNT - 1;
    while (isa > 0 && (!s2dq_isa_runs(isa) || (argc > 3 && strcmp(argv[3], s2dq_isa_name(isa))))) isa--;
    kernels = s2dq_kernels_of(isa, 0); /* with whole lines, whatever this processor makes of them */
    const int networks = isa == S2DQ_ISA_NEON; /* that of AVX-512 knows beforehand what most of the tables say */
    if (!kernels.tile || !kernels.edge || (networks && !kernels.network)) {
        printf("tiles: no such kernels for %s\n", s2dq_isa_name(isa));
        return 2;
    }
    sow(seed);
    for (long k = 0; k < rounds; k++) {
        const enum kind kind = networks && one_in(4) ? NETWORK : one_in(3) ? EDGE : LOOPS;
        if (kind == NETWORK)
            draw_network();
        else
            draw_tile();
        counts[kind]++;
        if (!program_holds(src, dst, expected, kind)) {
            printf("tiles: wrong bytes: seed %ld, round %ld, a %s; loops %d %d %d\n", seed, k, names[kind],
                   (int)loops[0].extent, (int)loops[1].extent, (int)loops[2].extent);
            return 1;
        }
        if (!is_recorded("tiles", s2dq_isa_name(isa), k + 1, &digest, argc > 4 ? argv[4] : NULL)) return 1;
    }
    fprintf(stderr,
            "tiles: on %s %ld tiles, %ld of them in whole lines, %ld looked up in pairs, %ld in nothing; %ld at edges, "
            "%ld networks\n", s2dq_isa_name(isa), counts[LOOPS], aligned, paired, sames, counts[EDGE], counts[NETWORK]);
    if ((kernels.aligner && !aligned) || !paired || !sames) return 1;
    return 0;
}
