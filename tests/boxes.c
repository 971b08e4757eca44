/* Random boxes of granules against plain loops, every array between inaccessible pages.
 *
 *     cc -O2 -I s2dq/_micro tests/boxes.c -o boxes && ./boxes [ROUNDS [SEED [INSTRUCTION_SET]]]
 *     cc -O2 -I s2dq/_micro -DTRACED tests/boxes.c -o traced && ./traced 20000 1 all tests/recorded_boxes.txt
 *
 * Checks what the kernels of every instruction set that runs make of moves, of moves with spare lanes, of lookups, and
 * of pictures within frames; traced, whether they load, store and fetch in the recorded order, so that a kernel which
 * moves other boxes than before, or turns its loops otherwise, does so on purpose. `./traced 20000 1 all` prints what to
 * record.
 */
#include "drawn.h"
#include "traced.h"

#include "dispatch.h"

enum { ARENA = 1 << 20, AXES = S2DQ_BOX_AXES + 2, TABLES = 24, POISON = 0xA5, BESIDE = 4096, BY_HAND = 600 };
enum kind { MOVE, LANES, LOOKUP, FRAMED, KINDS };

static const char *const names[KINDS] = {"a move", "a move with spare lanes", "a lookup", "pictures within frames"};

typedef struct {
    enum kind kind;
    int count, mapped; /* axes; whether the tables have lines, or turn the same bits */
    int64_t width, lanes, element, run; /* the lanes are behind so many bytes; which its innermost axes write */
    s2dq_axis axes[AXES];
    int inner[AXES]; /* whether an axis steps inside of a run, or of a picture, whose lanes are all of it */
    s2dq_frame frame;
    int streams, joins; /* the first axes, of which the next is split or joined; 0: axes in any order */
} box_call;

static uint8_t tables[TABLES * 256], fill[64];
static s2dq_line lines[TABLES];
static s2dq_tables mapping;

/* ------------------------------------------------------------------------------------------- the plain executor */

static void plain(uint8_t *dst, const uint8_t *src, const uint8_t *table, const box_call *call, int axis, int at_run)
{
    if (axis == call->count) {
        if (at_run) {
            for (int64_t k = 0; k < call->lanes; k++) dst[call->run + k] = fill[k % call->element];
        } else if (call->kind == LOOKUP) {
            *dst = table[*src];
        } else {
            memcpy(dst + call->frame.lead, src, (size_t)call->width);
        }
        return;
    }
    const s2dq_axis loop = call->axes[axis];
    const int64_t extent = at_run && call->inner[axis] ? 1 : loop.extent;
    for (int64_t i = 0; i < extent; i++)
        plain(dst + i * loop.dst, src + i * loop.src, table + i * loop.tab, call, axis + 1, at_run);
}

/* -------------------------------------------------------------------------------------------------- random calls */

static int64_t draw_extent(void)
{
    static const int rows[] = {3, 6, 12, 24, 48, 5, 7, 96};
    switch (between(0, 4)) {
    case 0: return 1LL << between(0, 8);
    case 1: return rows[between(0, 7)];
    case 2: return between(1, 70);
    case 3: return between(1, 300);
    default: return between(1, 5);
    }
}

static int64_t draw_width(void)
{
    if (one_in(2)) return 1;
    if (one_in(2)) return 1LL << between(1, 6);
    if (one_in(2)) return one_in(3) ? between(90, 4200) : 64 * (one_in(2) ? between(1, 8) : between(1, 66));
    return one_in(3) ? 3 << between(0, 3) : between(1, 90);
}

/* In what order axes lie, innermost first: the streams and what they are split from, or that alone, and others. */
static void draw_order(int *order, const box_call *call, int streams_first)
{
    const int known = !call->streams ? 0 : streams_first ? call->streams + 1 : 1;
    for (int k = 0; k < call->count; k++) order[k] = k;
    for (int k = 0; k <= call->streams && known == 1; k++) order[k] = (k + call->streams) % (call->streams + 1);
    if (one_in(4)) return;
    for (int k = call->count - 1; k > known; k--) {
        const int other = (int)between(known, k), kept = order[k];
        order[k] = order[other];
        order[other] = kept;
    }
}

/* A few elements of which each goes to another stream, and a row of such groups, about as long as kernels need it.
 * Returns how many axes the call has. */
static int draw_streams(box_call *call)
{
    static const int few[] = {2, 2, 3, 4, 6, 8, 12}, edges[] = {8, 16, 32, 64, 128, 512};
    int64_t together = 1;
    call->joins = one_in(2);
    for (call->streams = 0; call->streams < 3 && (call->streams == 0 || one_in(3)); call->streams++) {
        const int64_t extent = one_in(4) ? between(2, 80) : few[between(0, 6)];
        if (together * extent > 160) break;
        call->axes[call->streams].extent = extent;
        together *= extent;
    }
    const int64_t beside = between(-1, 1), longest = 300 * between(1, 3);
    call->axes[call->streams].extent = one_in(2) ? edges[between(0, 5)] + beside : between(1, longest);
    if (call->kind == MOVE && one_in(8)) call->width = 12;
    else if (call->kind == MOVE && !one_in(4)) call->width = one_in(4) ? between(1, 8) : 1 << between(0, 2);
    return call->streams + 1 + (int)between(0, 3);
}

static int64_t widened(int64_t step, int64_t width)
{
    switch (between(0, 7)) {
    case 0: return step + between(1, 40);
    case 1: return step + width * between(1, 9);
    case 2: return (step + 4095) / 4096 * 4096; /* where places of a cache collide */
    case 3: return (step + 63) / 64 * 64;
    default: return step;
    }
}

/* Steps of a tensor whose axes lie in some order, gaps between some of them; now and then an axis runs backwards, or
 * in the source stays where it is or overlaps itself. */
static void draw_source(box_call *call)
{
    int order[AXES];
    int64_t step = call->width;
    const int gaps = one_in(3), odd = one_in(call->kind == LOOKUP ? 3 : 8);
    draw_order(order, call, !call->joins);
    for (int k = 0; k < call->count; k++) {
        s2dq_axis *axis = &call->axes[order[k]];
        if (k == call->streams && k && !call->joins && one_in(3)) step += call->width * between(1, 4);
        axis->src = step;
        if (odd && one_in(3)) axis->src = one_in(2) ? one_in(2) ? 0 : between(1, 8) : between(-100, 100);
        else step *= axis->extent;
        if (one_in(call->kind == LOOKUP && order[k] < call->streams ? 4 : 16)) axis->src = -axis->src;
        if (gaps) step = widened(step, call->width);
    }
}

static void draw_result(box_call *call)
{
    int order[AXES];
    int64_t step = call->width;
    const int gaps = one_in(4), crowd = call->count > S2DQ_BOX_AXES;
    const int inner = call->kind == LANES ? (int)between(0, crowd ? S2DQ_BOX_AXES : call->count) : -1;
    draw_order(order, call, call->joins);
    for (int k = 0; k < call->count && crowd && call->kind == LANES; k++) order[k] = call->count - 1 - k;
    for (int k = 0; k <= call->count; k++) {
        if (k == inner) {
            call->run = step;
            step += call->lanes;
        }
        if (k == call->count) break;
        s2dq_axis *axis = &call->axes[order[k]];
        axis->dst = step;
        step *= axis->extent;
        call->inner[order[k]] = k < inner;
        if (k < inner) continue;
        if (one_in(16)) axis->dst = -axis->dst;
        if (gaps) step = widened(step, call->width);
    }
}

/* The tables of up to two axes, and what they say: anything, the same bits turned, or lines. */
static void draw_tables(box_call *call)
{
    int64_t known = 1;
    for (int k = 0; k < call->count && call->kind == LOOKUP; k++)
        if (one_in(call->streams && k >= call->streams ? 4 : 2) && known * call->axes[k].extent <= TABLES) {
            call->axes[k].tab = 256 * known;
            known *= call->axes[k].extent;
        }
    const int has_lines = one_in(2), falls = one_in(2);
    const int64_t shift = one_in(2) ? 0 : between(1, 7);
    call->mapped = one_in(2);
    mapping.tables = tables;
    mapping.lines = has_lines ? lines : NULL;
    mapping.first = has_lines && one_in(4) ? (uint8_t)draw() : 0;
    mapping.flip = one_in(2) ? 128 : (uint8_t)draw();
    for (int k = 0; k < TABLES; k++) {
        s2dq_line *line = &lines[k];
        line->slope = between(0, 65535);
        line->more = one_in(2) ? 0 : between(0, 65535);
        line->less = falls && one_in(2) ? between(0, 65535) : 0;
        line->shift = shift;
        for (int value = 0; value < 256; value++) {
            uint8_t to = (uint8_t)value;
            if (has_lines)
                to = byte_of_word(word_of_line(value ^ mapping.first, line->slope, line->more, line->less), shift);
            tables[256 * k + value] = call->mapped ? to ^ mapping.flip : (uint8_t)draw();
        }
    }
}

static void draw_call(box_call *call)
{
    int64_t room = one_in(40) ? ARENA / 8 : one_in(2) ? 16384 : 2048;
    memset(call, 0, sizeof *call);
    call->kind = one_in(2) ? one_in(2) ? LOOKUP : LANES : MOVE;
    call->width = call->kind == LOOKUP ? 1 : draw_width();
    call->element = 1;
    if (call->kind == LANES) {
        while (call->element < 16 && call->width % (2 * call->element) == 0 && !one_in(3)) call->element *= 2;
        call->lanes = call->element * between(1, one_in(3) ? 31 : 4);
    }
    call->count = (int)between(0, 7);
    const int crowd = one_in(30); /* more loops than kernels look at */
    if (crowd) call->count = (int)between(S2DQ_BOX_AXES, AXES);
    else if (one_in(call->kind == LOOKUP ? 2 : 3)) call->count = draw_streams(call);
    if (call->streams && one_in(8)) room = ARENA / 8;
    int64_t bytes = call->width;
    for (int k = 0; k < call->count; k++) {
        int64_t extent = call->axes[k].extent ? call->axes[k].extent : crowd ? between(1, 3) : draw_extent();
        const int leaves = k <= call->streams && call->streams + 1 < call->count; /* room for the loops around it */
        while (extent > 1 && bytes * extent > (leaves ? room / 8 : room)) extent = (extent + 1) / 2;
        call->axes[k].extent = extent;
        bytes *= extent;
    }
    draw_source(call);
    draw_result(call);
    draw_tables(call);
    if (call->count < AXES) call->axes[call->count] = (s2dq_axis){3, 1, 1, 256, 1, 1}; /* not to be looked at */
    for (size_t k = 0; k < sizeof fill; k++) fill[k] = (uint8_t)draw();
}

/* A few pictures of short rows, each within a frame of fill elements; one in some has no frame on a side. */
static void draw_pictures(box_call *call)
{
    memset(call, 0, sizeof *call);
    call->kind = FRAMED;
    call->element = 1LL << between(0, 6);
    call->width = call->element * ((63 + call->element) / call->element + between(0, 200) / call->element);
    call->count = (int)between(2, 5);
    s2dq_axis *const rows = &call->axes[call->count - 2], *const row = rows + 1;
    int64_t *const sides[] = {&call->frame.lead, &call->frame.gap, &call->frame.tail};
    for (int k = 0; k < 3; k++)
        if (!one_in(4)) *sides[k] = call->element * between(1, one_in(3) ? 600 / call->element + 1 : 3);
    *row = (s2dq_axis){between(1, 6), call->width * between(1, 4) * (one_in(8) ? -1 : 1), call->width};
    *rows = (s2dq_axis){between(1, 5), between(0, 4000), row->extent * call->width + call->frame.gap};
    call->inner[call->count - 2] = call->inner[call->count - 1] = 1;
    call->lanes = call->frame.lead + rows->extent * rows->dst - call->frame.gap + call->frame.tail;
    int64_t step = call->lanes;
    for (int k = call->count - 3; k >= 0; k--) {
        if (one_in(3)) step += between(1, 99);
        call->axes[k] = (s2dq_axis){between(1, 4), between(-300, 300), step};
        step *= call->axes[k].extent;
    }
    for (size_t k = 0; k < sizeof fill; k++) fill[k] = (uint8_t)draw();
}

/* Nearly the call before, for kernels that remember what they made of it: less of a loop, of granules, of lanes, or the
 * outermost loop of the result with a gap. */
static void draw_less(box_call *call)
{
    const int axis = (int)between(0, call->count ? call->count - 1 : 0);
    int outer = 0;
    for (int k = 1; k < call->count; k++)
        if (s2dq_magnitude(call->axes[k].dst) > s2dq_magnitude(call->axes[outer].dst)) outer = k;
    switch (between(0, 3)) {
    case 0:
        if (call->count && !call->inner[axis]) call->axes[axis].extent = between(1, call->axes[axis].extent);
        break;
    case 1:
        if (call->kind == MOVE) call->width = between(1, call->width);
        break;
    case 2:
        if (call->kind == LANES) call->lanes = call->element * between(1, call->lanes / call->element);
        break;
    default:
        if (call->count && !call->inner[outer]) {
            const int64_t gap = between(1, 9);
            call->axes[outer].dst += call->axes[outer].dst < 0 ? -gap : gap;
        }
    }
    for (size_t k = 0; k < sizeof fill; k++) fill[k] = (uint8_t)draw();
}

/* -------------------------------------------------------------------------------------------------- calls by hand */

/* What random calls come to too seldom; extents, steps in the source and in the result, steps between tables. */
static const box_call by_hand[] = {
    /* Three streams in rows of 9 and of 16 bytes, the latter two at a time where they lie 48 bytes apart. */
    {.width = 1, .count = 4, .axes = {{3, 80, 1}, {9, 1, 3}, {5, 16, 27}, {2, 240, 135}}},
    {.width = 1, .count = 4, .axes = {{9, 3, 1}, {5, 32, 9}, {3, 1, 45}, {2, 160, 135}}},
    {.width = 1, .count = 3, .axes = {{3, 120, 1}, {16, 1, 3}, {5, 24, 48}}},
    {.width = 1, .count = 3, .axes = {{3, 120, 1}, {16, 1, 3}, {4, 24, 48}}},
    {.width = 1, .count = 3, .axes = {{16, 3, 1}, {5, 48, 20}, {3, 1, 100}}},
    {.width = 1, .count = 3, .axes = {{16, 3, 1}, {4, 48, 48}, {3, 1, 240}}},
    {.width = 1, .count = 3, .axes = {{16, 3, 1}, {5, 50, 48}, {3, 1, 240}}},
    {.width = 1, .count = 3, .axes = {{3, 60, 1}, {8, 1, 3}, {5, 12, 48}}},
    {.width = 1, .count = 3, .axes = {{2, 120, 1}, {16, 1, 2}, {5, 24, 48}}},
    /* Less of six streams than a register holds. */
    {.width = 1, .count = 3, .axes = {{6, 24, 1}, {5, 1, 6}, {3, 8, 30}}},
    /* Rows that end with granules which nobody may read, about as short as kernels take them. */
    {.width = 1, .count = 3, .axes = {{4, 3, 1}, {2, 1, 10}, {3, 60, 100}}},
    {.width = 1, .count = 3, .axes = {{5, 3, 1}, {2, 1, 10}, {3, 60, 100}}},
    {.width = 1, .count = 3, .axes = {{16, 3, 1}, {2, 1, 40}, {3, 60, 100}}},
    {.width = 1, .count = 3, .axes = {{17, 3, 1}, {2, 1, 40}, {3, 60, 100}}},
    /* Loops that come to one byte of a group twice, or to one of the next group. */
    {.width = 1, .count = 3, .axes = {{16, 4, 1}, {2, 1, 16}, {2, 1, 40}}},
    {.width = 1, .count = 3, .axes = {{16, 4, 1}, {2, 3, 16}, {2, 2, 40}}},
    {.width = 1, .count = 3, .axes = {{16, 4, 1}, {2, 3, 16}, {2, 1, 40}}},
    {.kind = LOOKUP, .width = 1, .count = 3, .axes = {{16, 4, 1}, {2, 1, 16, 256}, {2, 1, 40, 512}}},
    {.kind = LOOKUP, .width = 1, .count = 3, .axes = {{16, 4, 1}, {2, 3, 16, 256}, {2, 2, 40, 512}}},
    {.kind = LOOKUP, .width = 1, .count = 3, .axes = {{16, 4, 1}, {2, 4, 16, 256}, {4, 1, 40, 512}}},
    /* As many loops as kernels look at, of lookups. */
    {.kind = LOOKUP, .width = 1, .count = 8,
     .axes = {{16, 4, 1}, {2, 1, 16, 256}, {2, 2, 32, 512}, {2, 70, 64}, {2, 150, 130}, {2, 310, 270}, {2, 640, 550},
              {2, 1300, 1110}}},
    /* Patterns: with more windows in the second lane than in the first, and with more of them at the end of a row. */
    {.width = 2, .count = 2, .axes = {{5, 13, 2}, {40, 30, 10}}},
    {.width = 3, .count = 2, .axes = {{4, 15, 3}, {40, 27, 12}}},
    {.width = 3, .count = 2, .axes = {{5, 15, 3}, {40, 26, 15}}},
    {.width = 1, .count = 2, .axes = {{5, 10, 1}, {40, 8, 5}}},
    /* One behind the other that differ in their granules alone. */
    {.width = 1, .count = 2, .axes = {{3, 5, 1}, {60, 20, 3}}},
    {.width = 2, .count = 2, .axes = {{3, 5, 2}, {60, 20, 6}}},
    {.width = 4, .count = 2, .axes = {{3, 5, 4}, {60, 20, 12}}},
    {.width = 3, .count = 2, .axes = {{4, 10, 3}, {40, 50, 12}}},
    {.width = 1, .count = 2, .axes = {{4, 10, 1}, {40, 50, 4}}},
    /* Repeats that are too few for how far they read past what they want. */
    {.kind = LANES, .width = 8, .lanes = 8, .element = 8, .run = 8, .count = 1, .axes = {{8, 1, 16}}},
    {.kind = LANES, .width = 8, .lanes = 8, .element = 8, .run = 8, .count = 1, .axes = {{9, 1, 16}}},
    {.kind = LANES, .width = 8, .lanes = 8, .element = 8, .run = 8, .count = 1, .axes = {{16, 1, 16}}},
    /* Blocks of four granules of 12 bytes, in loops of both. */
    {.width = 12, .count = 4, .axes = {{4, 36, 12}, {3, 12, 48}, {2, 200, 150}, {3, 500, 330}}},
    {.width = 12, .count = 4, .axes = {{3, 48, 12}, {4, 12, 40}, {2, 200, 170}, {3, 500, 400}}},
    /* Runs of four, three and two RGB pixels to words in planes, and back: as many as a step takes, one more, and one
     * less; runs that follow each other, that others lie between, which are written next or not, and gaps. */
    {.width = 1, .count = 4, .axes = {{4, 3, 1}, {8, 48, 4}, {4, 12, 40}, {3, 1, 200}}},
    {.width = 1, .count = 4, .axes = {{4, 3, 1}, {17, 48, 4}, {4, 12, 70}, {3, 1, 300}}},
    {.width = 1, .count = 3, .axes = {{4, 3, 1}, {7, 48, 4}, {3, 1, 60}}},
    {.width = 1, .count = 3, .axes = {{4, 3, 1}, {16, 13, 4}, {3, 1, 70}}},
    {.width = 1, .count = 4, .axes = {{3, 3, 1}, {8, 27, 3}, {3, 9, 40}, {3, 1, 150}}},
    {.width = 1, .count = 4, .axes = {{3, 3, 1}, {17, 27, 3}, {3, 9, 60}, {3, 1, 200}}},
    {.width = 1, .count = 3, .axes = {{3, 3, 1}, {9, 10, 3}, {3, 1, 30}}},
    {.width = 1, .count = 4, .axes = {{2, 3, 1}, {16, 12, 2}, {2, 6, 40}, {3, 1, 100}}},
    {.width = 1, .count = 5, .axes = {{2, 3, 1}, {33, 12, 2}, {2, 6, 70}, {3, 1, 150}, {3, 410, 500}}},
    {.width = 1, .count = 4, .axes = {{2, 3, 1}, {15, 12, 2}, {2, 6, 40}, {3, 1, 100}}},
    {.width = 1, .count = 4, .axes = {{2, 3, 1}, {17, 14, 2}, {2, 6, 40}, {3, 1, 100}}},
    {.width = 1, .count = 4, .axes = {{3, 200, 1}, {4, 1, 3}, {4, 40, 12}, {8, 4, 48}}},
    {.width = 1, .count = 5, .axes = {{3, 300, 1}, {4, 1, 3}, {4, 70, 12}, {17, 4, 48}, {3, 1000, 900}}},
    {.width = 1, .count = 4, .axes = {{3, 200, 1}, {4, 1, 3}, {3, 40, 12}, {9, 4, 48}}},
    {.width = 1, .count = 4, .axes = {{3, 200, 1}, {4, 1, 3}, {9, 4, 13}, {3, 40, 150}}},
    {.width = 1, .count = 4, .axes = {{3, 150, 1}, {3, 1, 3}, {3, 40, 9}, {8, 3, 27}}},
    {.width = 1, .count = 4, .axes = {{3, 200, 1}, {3, 1, 3}, {3, 60, 9}, {17, 3, 27}}},
    {.width = 1, .count = 4, .axes = {{3, 150, 1}, {3, 1, 3}, {9, 3, 11}, {2, 40, 100}}},
    {.width = 1, .count = 4, .axes = {{3, 100, 1}, {2, 1, 3}, {2, 40, 6}, {16, 2, 12}}},
    {.width = 1, .count = 5, .axes = {{3, 150, 1}, {2, 1, 3}, {2, 70, 6}, {33, 2, 12}, {3, 500, 400}}},
    {.width = 1, .count = 4, .axes = {{3, 100, 1}, {2, 1, 3}, {2, 40, 6}, {17, 2, 13}}},
    {.width = 1, .count = 4, .axes = {{4, 3, 1}, {17, -48, 4}, {4, 12, 70}, {3, 1, 300}}},
    {.width = 1, .count = 4, .axes = {{3, 200, 1}, {4, 1, 3}, {9, 4, 48}, {4, 40, 500}}},
    /* What is nearly of that kind: another number of pixels, no channels, and channels that are the runs' neighbours. */
    {.width = 1, .count = 3, .axes = {{5, 3, 1}, {17, 60, 5}, {3, 1, 100}}},
    {.width = 1, .count = 3, .axes = {{4, 3, 1}, {9, 48, 4}, {2, 500, 60}}},
    {.width = 1, .count = 4, .axes = {{2, 3, 1}, {17, 48, 4}, {4, 3, 100}, {3, 1, 500}}},
    {.width = 1, .count = 3, .axes = {{4, 3, 1}, {3, 1, 4}, {20, 12, 12}}},
    {.width = 1, .count = 4, .axes = {{2, 3, 1}, {17, 12, 2}, {3, 6, 40}, {3, 1, 130}}},
    /* Runs of four pixels to the words of a block, and back. */
    {.width = 1, .count = 4, .axes = {{3, 12, 1}, {4, 1, 3}, {5, 48, 12}, {4, 4, 60}}},
    {.width = 1, .count = 4, .axes = {{3, 16, 1}, {4, 1, 3}, {2, 48, 12}, {4, 4, 30}}},
    {.width = 1, .count = 5, .axes = {{3, 16, 1}, {4, 1, 3}, {5, 48, 12}, {4, 4, 60}, {3, 250, 250}}},
    {.width = 1, .count = 4, .axes = {{3, 16, 1}, {4, 1, 3}, {1, 48, 12}, {4, 4, 30}}},
    {.width = 1, .count = 4, .axes = {{4, 3, 1}, {4, 30, 4}, {3, 1, 16}, {2, 12, 48}}},
    {.width = 1, .count = 5, .axes = {{4, 3, 1}, {4, 60, 4}, {3, 1, 16}, {5, 12, 48}, {3, 250, 250}}},
    {.width = 1, .count = 4, .axes = {{4, 3, 1}, {4, 60, 4}, {3, 1, 16}, {3, 14, 48}}},
    /* Nine streams merged and split, in rows as long as steps are, longer, and shorter; rows that follow each other, or
     * do not. */
    {.width = 1, .count = 4, .axes = {{3, 9, 1}, {3, 64, 3}, {4, 1, 9}, {5, 4, 36}}},
    {.width = 1, .count = 4, .axes = {{3, 13, 1}, {3, 88, 3}, {8, 1, 9}, {5, 8, 72}}},
    {.width = 1, .count = 4, .axes = {{3, 14, 1}, {3, 94, 3}, {9, 1, 9}, {5, 9, 81}}},
    {.width = 1, .count = 4, .axes = {{3, 17, 1}, {3, 112, 3}, {12, 1, 9}, {5, 12, 108}}},
    {.width = 1, .count = 4, .axes = {{3, 21, 1}, {3, 136, 3}, {16, 1, 9}, {5, 16, 144}}},
    {.width = 1, .count = 4, .axes = {{3, 22, 1}, {3, 142, 3}, {17, 1, 9}, {5, 17, 153}}},
    {.width = 1, .count = 4, .axes = {{3, 37, 1}, {3, 232, 3}, {32, 1, 9}, {5, 32, 288}}},
    {.width = 1, .count = 4, .axes = {{3, 38, 1}, {3, 238, 3}, {33, 1, 9}, {5, 33, 297}}},
    {.width = 1, .count = 4, .axes = {{3, 75, 1}, {3, 460, 3}, {70, 1, 9}, {5, 70, 630}}},
    {.width = 1, .count = 4, .axes = {{8, 9, 1}, {3, 1, 8}, {5, 72, 24}, {3, 3, 127}}},
    {.width = 1, .count = 4, .axes = {{9, 9, 1}, {3, 1, 9}, {5, 81, 27}, {3, 3, 142}}},
    {.width = 1, .count = 4, .axes = {{12, 9, 1}, {3, 1, 12}, {5, 108, 36}, {3, 3, 187}}},
    {.width = 1, .count = 4, .axes = {{16, 9, 1}, {3, 1, 16}, {5, 144, 48}, {3, 3, 247}}},
    {.width = 1, .count = 4, .axes = {{17, 9, 1}, {3, 1, 17}, {5, 153, 51}, {3, 3, 262}}},
    {.width = 1, .count = 4, .axes = {{32, 9, 1}, {3, 1, 32}, {5, 288, 96}, {3, 3, 487}}},
    {.width = 1, .count = 4, .axes = {{33, 9, 1}, {3, 1, 33}, {5, 297, 99}, {3, 3, 502}}},
    {.width = 1, .count = 4, .axes = {{70, 9, 1}, {3, 1, 70}, {5, 630, 210}, {3, 3, 1057}}},
    {.width = 1, .count = 3, .axes = {{9, 90, 1}, {40, 1, 9}, {3, 900, 361}}},
    {.width = 1, .count = 3, .axes = {{16, 9, 1}, {3, 150, 16}, {9, 1, 60}}},
    {.width = 1, .count = 4, .axes = {{16, 9, 1}, {4, 144, 16}, {3, 1, 70}, {2, 3, 300}}},
    {.width = 1, .count = 3, .axes = {{20, 9, 1}, {2, 1, 20}, {3, 3, 50}}},
    /* Transposes of granules of 3 bytes: as few as tiles take and fewer, whole tiles, and such that overlap; more than a
     * table holds; rows that collide. */
    {.width = 3, .count = 2, .axes = {{8, 29, 3}, {6, 3, 29}}},
    {.width = 3, .count = 2, .axes = {{8, 26, 3}, {5, 3, 29}}},
    {.width = 3, .count = 2, .axes = {{7, 29, 3}, {6, 3, 26}}},
    {.width = 3, .count = 2, .axes = {{4, 35, 3}, {8, 3, 17}}},
    {.width = 3, .count = 2, .axes = {{4, 32, 3}, {7, 3, 17}}},
    {.width = 3, .count = 2, .axes = {{3, 38, 3}, {9, 3, 14}}},
    {.width = 3, .count = 2, .axes = {{5, 35, 3}, {8, 3, 20}}},
    {.width = 3, .count = 2, .axes = {{9, 29, 3}, {6, 3, 32}}},
    {.width = 3, .count = 2, .axes = {{9, 35, 3}, {8, 3, 32}}},
    {.width = 3, .count = 2, .axes = {{12, 35, 3}, {8, 3, 41}}},
    {.width = 3, .count = 2, .axes = {{13, 38, 3}, {9, 3, 44}}},
    {.width = 3, .count = 2, .axes = {{16, 71, 3}, {20, 3, 53}}},
    {.width = 3, .count = 2, .axes = {{27, 86, 3}, {25, 3, 86}}},
    {.width = 3, .count = 2, .axes = {{32, 32, 3}, {7, 3, 101}}},
    {.width = 3, .count = 4, .axes = {{3, 100, 3}, {3, 400, 9}, {10, 3, 27}, {2, 1300, 300}}},
    {.width = 3, .count = 4, .axes = {{10, 27, 3}, {3, 3, 40}, {3, 9, 150}, {2, 300, 500}}},
    {.width = 3, .count = 3, .axes = {{300, 36, 3}, {3, 3, 1000}, {4, 9, 4000}}},
    {.width = 3, .count = 3, .axes = {{3, 1000, 3}, {4, 4000, 9}, {300, 3, 36}}},
    {.width = 3, .count = 2, .axes = {{270, 810, 3}, {265, 3, 815}}},
    {.width = 3, .count = 3, .axes = {{16, 4096, 3}, {2, 100, 48}, {30, 3, 96}}},
    /* Rows, and columns, of which a table holds a part of the second loop: because the first is short, and where it is
     * long, none of it. */
    {.width = 1, .count = 4, .axes = {{5, 40, 1}, {100, 205, 5}, {40, 1, 510}, {3, 21000, 21000}}},
    {.width = 1, .count = 4, .axes = {{40, 510, 1}, {5, 1, 40}, {100, 5, 205}, {3, 21000, 21000}}},
    {.width = 2, .count = 4, .axes = {{5, 100, 2}, {100, 500, 10}, {20, 2, 1010}, {3, 50100, 20300}}},
    {.width = 1, .count = 4, .axes = {{40, 50, 1}, {10, 2000, 40}, {25, 1, 410}, {25, 25, 10300}}},
    {.width = 1, .count = 4, .axes = {{25, 410, 1}, {25, 10300, 25}, {40, 1, 650}, {10, 40, 26000}}},
    /* Granules of 12 bytes, the loops of which join to one that makes no blocks of four. */
    {.width = 12, .count = 3, .axes = {{3, 48, 12}, {4, 3, 40}, {4, 12, 160}}},
    /* Transposes of four bytes, the rows of which are of two loops or overlap in the source. */
    {.width = 4, .count = 3, .axes = {{3, 300, 4}, {22, 1000, 12}, {67, 4, 264}}},
    {.width = 4, .count = 2, .axes = {{65, 16, 4}, {67, 4, 260}}},
    /* Granules too wide for transposes, and those of 32 bytes that fill. */
    {.width = 16, .count = 3, .axes = {{2, 64, 16}, {2, 160, 32}, {4, 16, 80}}},
    {.width = 16, .count = 3, .axes = {{4, 80, 16}, {4, 16, 64}, {3, 400, 300}}},
    {.width = 32, .count = 2, .axes = {{4, 0, 32}, {3, 0, 150}}},
    /* Granules just too wide for a register of 16 bytes, whose sources overlap. */
    {.width = 17, .count = 2, .axes = {{6, 8, 17}, {3, 100, 130}}},
    {.width = 16, .count = 2, .axes = {{6, 7, 16}, {3, 100, 130}}},
    /* Transposes of bytes whose rows, or columns, collide in the cache. */
    {.width = 1, .count = 2, .axes = {{64, 4096, 1}, {100, 1, 64}}},
    {.width = 1, .count = 2, .axes = {{64, 128, 1}, {100, 1, 4096}}},
    /* Transposes of wider elements whose rows, or columns, or both, collide: those of a block fit in the cache or not. */
    {.width = 2, .count = 2, .axes = {{67, 1024, 2}, {101, 2, 150}}},
    {.width = 2, .count = 2, .axes = {{67, 210, 2}, {101, 2, 1024}}},
    {.width = 2, .count = 2, .axes = {{67, 2048, 2}, {101, 2, 150}}},
    {.width = 4, .count = 2, .axes = {{67, 2048, 4}, {41, 4, 300}}},
    {.width = 4, .count = 3, .axes = {{67, 180, 4}, {41, 4, 2048}, {2, 20000, 100000}}},
    {.width = 4, .count = 2, .axes = {{67, 4096, 4}, {41, 4, 300}}},
    {.width = 4, .count = 2, .axes = {{67, 2048, 4}, {41, 4, 2048}}},
    {.width = 8, .count = 2, .axes = {{19, 4096, 8}, {21, 8, 160}}},
    {.width = 8, .count = 2, .axes = {{19, 200, 8}, {21, 8, 4096}}},
    /* Three digits of a source that overlaps itself: granules that one of two moves joins, but not the other. */
    {.width = 2, .count = 5, .axes = {{4, 4, 2}, {9, 0, 8}, {6, 2, 72}, {3, 58, 432}, {2, 2, 1296}}},
    /* Granules that overlap in the source by as much as may be read too much, too few for a pattern. */
    {.width = 12, .count = 2, .axes = {{5, 4, 12}, {3, 100, 130}}},
    /* One behind the other that differ in their lanes alone. */
    {.kind = LANES, .width = 3, .lanes = 1, .run = 3, .count = 1, .axes = {{40, 7, 4}}},
    {.kind = LANES, .width = 3, .lanes = 2, .run = 3, .count = 1, .axes = {{40, 7, 5}}},
    /* Windows of which the last reads less too much than another. */
    {.kind = LANES, .width = 5, .lanes = 2, .run = 30, .count = 2, .axes = {{6, 43, 5}, {18, 6, 32}}, .inner = {1}},
    /* Rows of 17 bytes that overlap in the source. */
    {.width = 1, .count = 3, .axes = {{2, 200, 1}, {17, 1, 2}, {5, 8, 34}}},
    /* Patterns with bytes just too far apart for two windows, and with windows that read a whole repeat too much. */
    {.width = 2, .count = 3, .axes = {{6, 4, 2}, {2, 27, 12}, {41, 28, 24}}},
    {.width = 4, .count = 3, .axes = {{2, 10, 4}, {4, 3, 8}, {16, 5, 32}}},
    /* Repeats as far apart as may be, of three bytes and of 48. */
    {.width = 1, .count = 2, .axes = {{3, 5, 1}, {100, 1024, 3}}},
    {.width = 6, .count = 2, .axes = {{8, 9, 6}, {9, 1024, 48}}},
    {.width = 4, .count = 2, .axes = {{12, 5, 4}, {9, 1024, 48}}},
    /* Streams whose rows lie one step of them apart, or at one place. */
    {.width = 1, .count = 3, .axes = {{64, 4, 1}, {2, 4, 64}, {4, 1, 128}}},
    {.width = 1, .count = 3, .axes = {{64, 4, 1}, {2, 0, 64}, {4, 1, 128}}},
    /* Streams of which one is the first of the next row, and loops of whole rows among those of streams. */
    {.width = 1, .count = 3, .axes = {{64, 8, 1}, {2, 3, 64}, {2, 5, 128}}},
    {.kind = LOOKUP, .width = 1, .count = 3, .axes = {{16, 4, 1}, {2, 1, 16, 256}, {2, 3, 40, 512}}},
    {.kind = LOOKUP, .width = 1, .count = 3, .axes = {{16, 4, 1}, {2, 4, 16}, {4, 1, 40, 512}}},
    /* Lookups without a run, and with twelve loops. */
    {.kind = LOOKUP, .width = 1, .count = 2, .axes = {{16, 4, 2}, {3, 70, 40}}},
    {.kind = LOOKUP, .width = 1, .count = 12,
     .axes = {{16, 4, 1}, {2, 1, 16, 256}, {2, 2, 32, 512}, {2, 70, 64}, {2, 150, 130}, {2, 310, 270}, {2, 640, 550},
              {2, 1300, 1110}, {2, 2600, 2230}, {2, 5200, 4470}, {2, 10400, 8950}, {2, 20800, 17910}}},
    /* Granules of 32 to 128 bytes that come from far, and just wider ones. */
    {.width = 32, .count = 2, .axes = {{2, 300000, 32}, {8200, 32, 64}}},
    {.width = 64, .count = 2, .axes = {{2, 300000, 64}, {4100, 64, 128}}},
    {.width = 96, .count = 3, .axes = {{2, 300000, 96}, {1375, 96, 192}, {2, 140000, 270000}}},
    {.width = 128, .count = 2, .axes = {{2, 300000, 128}, {2060, 128, 256}}},
    {.width = 129, .count = 2, .axes = {{2, 300000, 129}, {2060, 129, 258}}},
    /* Whole vectors that one loop makes dense: it alone, both, the outer one beside others, and backwards. */
    {.width = 32, .count = 2, .axes = {{7, 100, 32}, {5, 900, 256}}},
    {.width = 32, .count = 2, .axes = {{8, 3200, 32}, {50, 32, 256}}},
    {.width = 32, .count = 3, .axes = {{30, 64, 32}, {20, 2000, 960}, {3, 40, 19232}}},
    {.width = 32, .count = 3, .axes = {{30, 64, 32}, {20, 2000, 960}, {2, 32, 19200}}},
    {.width = 32, .count = 2, .axes = {{3, -40, 320}, {10, -200, 32}}},
    {.width = 64, .count = 2, .axes = {{4, 640, 64}, {10, 64, 256}}},
    {.width = 64, .count = 2, .axes = {{3, 64, 704}, {10, 200, 64}}},
    {.width = 96, .count = 2, .axes = {{2, 96, 480}, {5, 192, 96}}},
    {.width = 128, .count = 2, .axes = {{2, 640, 128}, {5, 128, 256}}},
    {.width = 160, .count = 2, .axes = {{2, 800, 160}, {5, 160, 320}}},
    /* Granules beside each other in streams that share sets of the caches, written and read: too many streams for that,
     * and just not; two lines of them, and just less; with a loop around. */
    {.width = 16, .count = 2, .axes = {{50, 128, 16}, {8, 16, 65536}}},
    {.width = 16, .count = 2, .axes = {{50, 112, 16}, {7, 16, 65536}}},
    {.width = 16, .count = 2, .axes = {{8, 160, 16}, {10, 16, 65536}}},
    {.width = 16, .count = 2, .axes = {{7, 160, 16}, {10, 16, 65536}}},
    {.width = 32, .count = 3, .axes = {{9, 600, 32}, {8, 32, 65536}, {2, 300, 1000}}},
    {.width = 16, .count = 2, .axes = {{16, 65536, 16}, {50, 16, 256}}},
    {.width = 16, .count = 2, .axes = {{15, 65536, 16}, {50, 16, 240}}},
    {.width = 32, .count = 2, .axes = {{16, 61440, 32}, {50, 32, 512}}},
    /* Merged granules, and transposes, that come from far: in one row, in several, in a plane and in planes. */
    {.width = 6, .count = 2, .axes = {{2, 300000, 6}, {44000, 6, 12}}},
    {.width = 6, .count = 3, .axes = {{2, 672, 6}, {112, 6, 12}, {400, 1344, 1344}}},
    {.width = 1, .count = 2, .axes = {{600, 900, 1}, {900, 1, 600}}},
    {.width = 4, .count = 3, .axes = {{100, 120, 4}, {30, 4, 400}, {45, 12000, 12000}}},
    /* Runs as long as a loop of their own is worth, and memcpy: a few bytes further in their page than the source, too
     * far for that, and elsewhere. */
    {.width = 2048, .count = 1, .axes = {{3, 2060, 2049}}},
    {.width = 2049, .count = 1, .axes = {{3, 2060, 2050}}},
    {.width = 16384, .count = 1, .axes = {{2, 16384, 16700}}},
    {.width = 16385, .count = 1, .axes = {{2, 16385, 16700}}},
    {.width = 20000, .count = 1, .axes = {{2, 20001, 20000}}},
    {.width = 20000, .count = 1, .axes = {{2, 20127, 20000}}},
    {.width = 20000, .count = 1, .axes = {{2, 20128, 20000}}},
    {.width = 5000, .count = 1, .axes = {{2, 5064, 5000}}},
    /* Rows, and columns, of 8 to 15 bytes, which several loops make. */
    {.width = 1, .count = 3, .axes = {{3, 64, 1}, {3, 300, 3}, {64, 1, 9}}},
    {.width = 1, .count = 3, .axes = {{3, 64, 1}, {5, 300, 3}, {16, 1, 15}}},
    {.width = 1, .count = 3, .axes = {{7, 64, 1}, {1, 0, 7}, {16, 1, 7}}},
    {.width = 1, .count = 3, .axes = {{64, 9, 1}, {3, 1, 70}, {3, 3, 250}}},
    {.width = 1, .count = 3, .axes = {{16, 15, 1}, {3, 1, 20}, {5, 3, 70}}},
    {.width = 1, .count = 3, .axes = {{15, 9, 1}, {3, 1, 20}, {3, 3, 70}}},
    {.width = 2, .count = 3, .axes = {{5, 40, 2}, {1, 0, 10}, {17, 2, 10}}},
    {.width = 2, .count = 3, .axes = {{17, 10, 2}, {5, 2, 40}, {2, 400, 300}}},
    {.width = 4, .count = 3, .axes = {{3, 40, 4}, {1, 0, 12}, {9, 4, 12}}},
    /* Fillings of less than a vector, of one, and of more, in loops around them. */
    {.width = 1, .count = 3, .axes = {{3, 0, 2}, {5, 0, 7}, {70, 0, 40}}},
    {.width = 1, .count = 4, .axes = {{5, 0, 1}, {3, 0, 9}, {2, 0, 31}, {40, 0, 70}}},
    {.width = 1, .count = 4, .axes = {{31, 0, 1}, {3, 0, 33}, {2, 0, 110}, {4, 0, 300}}},
    {.width = 1, .count = 4, .axes = {{32, 0, 1}, {3, 0, 33}, {2, 0, 110}, {4, 0, 300}}},
    {.width = 4, .count = 4, .axes = {{10, 0, 4}, {3, 0, 50}, {5, 0, 200}, {2, 0, 1100}}},
    /* Short loops of small granules: listed or not, by how many there are of two, and in all, and how wide they are. */
    {.width = 1, .count = 3, .axes = {{2, 7, 3}, {2, 31, 11}, {64, 90, 25}}},
    {.width = 1, .count = 3, .axes = {{2, 7, 3}, {2, 31, 11}, {63, 90, 25}}},
    {.width = 2, .count = 3, .axes = {{4, 7, 3}, {4, 50, 15}, {20, 190, 70}}},
    {.width = 2, .count = 3, .axes = {{17, 7, 3}, {1, 0, 15}, {20, 190, 70}}},
    {.width = 3, .count = 3, .axes = {{3, 7, 5}, {6, 50, 17}, {20, 390, 120}}},
    {.width = 3, .count = 4, .axes = {{2, 7, 5}, {2, 50, 17}, {16, 90, 40}, {5, 1700, 700}}},
    {.width = 4, .count = 4, .axes = {{2, 9, 5}, {2, 50, 17}, {17, 90, 40}, {5, 1700, 700}}},
    {.width = 5, .count = 4, .axes = {{2, 9, 7}, {3, 50, 17}, {6, 190, 60}, {9, 1700, 400}}},
    {.width = 8, .count = 3, .axes = {{2, 19, 9}, {3, 50, 27}, {60, 190, 90}}},
    {.width = 11, .count = 3, .axes = {{2, 19, 13}, {3, 50, 37}, {60, 190, 120}}},
    {.width = 16, .count = 3, .axes = {{2, 29, 18}, {3, 70, 40}, {60, 290, 130}}},
    {.width = 17, .count = 3, .axes = {{2, 29, 18}, {3, 70, 40}, {60, 290, 130}}},
};

/* The next of them, over and over; its arrays lie elsewhere each time. */
static void take_by_hand(box_call *call, long number)
{
    const long count = (long)(sizeof by_hand / sizeof *by_hand);
    box_call drawn;
    *call = by_hand[number % count];
    if (!call->element) call->element = 1;
    drawn = *call;
    do draw_tables(&drawn); /* what they hold; which axes step between them is said */
    while (number / count % 2 && (!drawn.mapped || mapping.first)); /* every second time kernels may map them */
    call->mapped = drawn.mapped;
    call->axes[call->count] = (s2dq_axis){40, 1, 1}; /* not to be looked at, though it seems to be a run */
    for (size_t k = 0; k < sizeof fill; k++) fill[k] = (uint8_t)draw();
}

/* ----------------------------------------------------------------------------------------------------- the check */

typedef struct {
    int64_t low, high;
} extent;

static extent reach_of(const box_call *call, int result)
{
    extent reach = {0, call->width};
    if (result && call->lanes) reach.high = call->run + call->lanes;
    for (int k = 0; k < call->count; k++) {
        const s2dq_axis axis = call->axes[k];
        const int64_t far = (axis.extent - 1) * (result ? axis.dst : axis.src);
        if (result && call->inner[k]) continue; /* within a run */
        if (far < 0) reach.low += far;
        else reach.high += far;
    }
    return reach;
}

typedef struct {
    s2dq_kernels kernels;
    char name[32];
    uint64_t digest;
} kernel_set;

static void run(const s2dq_kernels *kernels, uint8_t *dst, const uint8_t *src, const box_call *call)
{
    switch (call->kind) {
    case MOVE: kernels->copy(dst, src, call->axes, call->count, call->width); break;
    case LANES:
        kernels->copy_lanes(dst, src, call->axes, call->count, call->width, call->lanes, fill, call->element);
        break;
    case FRAMED:
        kernels->copy_framed(dst, src, call->axes, call->count, call->width, &call->frame, fill, call->element);
        break;
    default:
        if (call->mapped && kernels->map) kernels->map(dst, src, tables, &mapping, call->axes, call->count);
        else kernels->lookup(dst, src, tables, call->axes, call->count);
    }
}

/* The first of `count` sets of kernels on which the call gives other bytes than the plain loops, or more of them; `count`
 * if there is none, and -1 if the call has no room. */
static int first_wrong(uint8_t *src, uint8_t *dst, const box_call *call, kernel_set *sets, int count)
{
    static uint8_t expected[ARENA];
    const extent in = reach_of(call, 0), out = reach_of(call, 1);
    const int64_t off = one_in(3) ? between(0, 63) : one_in(2) ? 16 : 0; /* within a line: NumPy's is 16 */
    if (in.high - in.low > ARENA || out.high - out.low + off > ARENA) return -1;
    uint8_t *x = src + (one_in(2) ? ARENA - in.high : -in.low);
    const int64_t at = one_in(2) ? ARENA - out.high - off : off - out.low;
    const int64_t low = at + out.low > BESIDE ? at + out.low - BESIDE : 0;
    const int64_t high = at + out.high < ARENA - BESIDE ? at + out.high + BESIDE : ARENA;
    draw_memory(x + in.low, in.high - in.low);
    memset(expected + low, POISON, (size_t)(high - low));
    if (call->lanes) plain(expected + at, x, tables, call, 0, 1);
    plain(expected + at, x, tables, call, 0, 0);
    for (int k = 0; k < count; k++) {
        if (call->kind == FRAMED && !sets[k].kernels.copy_framed) continue;
        memset(dst + low, POISON, (size_t)(high - low));
        begin_trace(dst, src, ARENA);
        run(&sets[k].kernels, dst + at, x, call);
        end_trace(&sets[k].digest);
        if (memcmp(dst + low, expected + low, (size_t)(high - low))) return k;
    }
    return count;
}

int main(int argc, char **argv)
{
    const long rounds = argc > 1 ? atol(argv[1]) : 20000, seed = argc > 2 ? atol(argv[2]) : 1;
    uint8_t *src = make_arena(ARENA), *dst = make_arena(ARENA);
    const char *const only = argc > 3 && strcmp(argv[3], "all") ? argv[3] : NULL;
    kernel_set set[2 * S2DQ_ISA_COUNT];
    box_call call;
    long counts[KINDS] = {0};
    int sets = 0;
    for (int isa = 0; isa < S2DQ_ISA_COUNT; isa++) {
        if (!s2dq_isa_runs(isa) || (only && strcmp(only, s2dq_isa_name(isa)))) continue;
        const bool follows = isa == S2DQ_ISA_AVX2, across = isa == S2DQ_ISA_AVX512VBMI;
        for (int other = 0; other <= (follows || across); other++) { /* habits that copies differ in */
            const int costs = other && across ? S2DQ_ACROSS_FREE : S2DQ_ACROSS_DEAR;
            const char *const habit = !other ? "" : across ? " across" : " followed";
            set[sets] = (kernel_set){.kernels = s2dq_kernels_of(isa, costs, other && follows)};
            snprintf(set[sets].name, sizeof set->name, "%s%s", s2dq_isa_name(isa), habit);
            fprintf(stderr, "boxes: %s\n", set[sets++].name);
        }
    }
    if (!sets) return 2;
    sow(seed);
    for (long k = 0; k < rounds + BY_HAND; k++) {
        if (k >= rounds) take_by_hand(&call, k - rounds);
        else if (one_in(20)) draw_pictures(&call);
        else if (k && call.kind != FRAMED && one_in(8)) draw_less(&call);
        else draw_call(&call);
        const int wrong = first_wrong(src, dst, &call, set, sets);
        counts[call.kind] += wrong == sets;
        if (wrong < 0 && k >= rounds) return 2; /* a call by hand that has no room */
        if (wrong >= 0 && wrong < sets) {
            printf("boxes: wrong bytes on %s: seed %ld, round %ld, %s of %d bytes; lanes %d; extent, src, dst, tab:",
                   set[wrong].name, seed, k, names[call.kind], (int)call.width, (int)call.lanes);
            for (int a = 0; a < call.count; a++)
                printf(" (%d, %d, %d, %d)", (int)call.axes[a].extent, (int)call.axes[a].src, (int)call.axes[a].dst,
                       (int)call.axes[a].tab);
            puts("");
            return 1;
        }
        for (int s = 0; s < sets; s++)
            if (!is_recorded("boxes", set[s].name, k + 1, &set[s].digest, argc > 4 ? argv[4] : NULL)) return 1;
    }
    fprintf(stderr, "boxes: %ld moves, %ld with spare lanes, %ld lookups, %ld pictures within frames\n", counts[MOVE],
            counts[LANES], counts[LOOKUP], counts[FRAMED]);
    return 0;
}
