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

#include "avx2_granules.h"
#include "avx2_programs.h"
#include "avx2_registers.h"
#include "avx2_streams.h"
#include "avx2_transpose.h"

#if defined(S2DQ_X86)

#define S2DQ_AVX2_FAR (1 << 19) /* a call that moves as much as this finds its arrays outside of the near caches */

/* Bytes that the loops of a box move. */
static inline int64_t s2dq_avx2_bytes(const s2dq_box *box)
{
    int64_t bytes = box->width;
    for (int a = 0; a < box->count; a++) bytes *= box->axes[a].extent;
    return bytes;
}

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

static void s2dq_avx2_run(uint8_t *dst, const uint8_t *src, s2dq_box *box, bool follows);

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
        s2dq_avx2_run(dst + job.bytes, src + (run.extent - 1) * run.src, &end, false);
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

/* A pattern with `lanes` bytes of the element at `fill` behind each repeat, or none; the others have bits of `turn`
 * turned. */
static bool s2dq_avx2_try_pattern(uint8_t *dst, const uint8_t *src, const s2dq_box *whole, int64_t least, int64_t lanes,
                                  const uint8_t *fill, int64_t element, uint8_t turn)
{
    const s2dq_avx2_pattern *const p = s2dq_avx2_pattern_of(whole, lanes);
    s2dq_box box;
    s2dq_position at;
    uint8_t filled[32];
    if (!p || (!p->kind && s2dq_avx2_yield(&p->program) < least)) return false;
    const bool far = s2dq_avx2_bytes(whole) >= S2DQ_AVX2_FAR;
    box.width = whole->width;
    box.count = whole->count - p->chain;
    for (int a = 0; a < box.count; a++) box.axes[a] = whole->axes[a + p->chain];
    s2dq_order(&box, whole->axes[p->chain - 1].dst * whole->axes[p->chain - 1].extent);
    const s2dq_avx2_program_kernel kernel =
        p->kind ? NULL : s2dq_avx2_program_for(p->program.body.count, p->program.body.same);
    const s2dq_axis rows = s2dq_axis_at(&box, 0);
    memset(filled, turn, sizeof filled);
    for (int64_t i = 0; lanes && i < p->program.size; i++)
        if (i % p->program.unit >= p->program.run) filled[i] = fill[(i % p->program.unit - p->program.run) % element];
    s2dq_start(&at, &box, 1);
    do {
        if (p->kind == 2) s2dq_avx2_cycle_merge(dst + at.dst, src + at.src, &p->cycle, rows, far, turn);
        else if (p->kind == 1) s2dq_avx2_cycle_split(dst + at.dst, src + at.src, &p->cycle, rows, turn);
        else kernel(dst + at.dst, src + at.src, &p->program, rows, lanes || turn ? filled : NULL);
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

static void s2dq_avx2_run_granules(uint8_t *dst, const uint8_t *src, s2dq_box *box, bool follows);

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
        s2dq_avx2_run_granules(dst, pattern, &box, false);
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

#define S2DQ_AVX2_SETS 65536 /* streams so many bytes apart, or a multiple, share a set of the second cache, too */
#define S2DQ_AVX2_WRITTEN 8  /* of which so many that are written are too many for one, */
#define S2DQ_AVX2_READ 16    /* or so many that are read */

/* Granules that lie beside each other on one side, in streams that collide there: those of a line one after the other,
 * for the streams between would drive it out of the caches before its next granule comes. */
static bool s2dq_avx2_try_lines(uint8_t *dst, const uint8_t *src, const s2dq_box *whole)
{
    const int64_t w = whole->width, full = S2DQ_LINE / w;
    s2dq_box box;
    s2dq_position at;
    if (w < 8 || w >= S2DQ_LINE || S2DQ_LINE % w) return false;
    for (int k = 0; k < whole->count * whole->count; k++) {
        const int a = k / whole->count, b = k % whole->count;
        const s2dq_axis run = whole->axes[a], streams = whole->axes[b];
        const bool out = run.dst == w && streams.extent >= S2DQ_AVX2_WRITTEN && streams.dst % S2DQ_AVX2_SETS == 0;
        const bool in = run.src == w && streams.extent >= S2DQ_AVX2_READ && streams.src % S2DQ_AVX2_SETS == 0;
        if (a == b || !(out || in) || run.extent < 2 * full || !streams.src || !streams.dst) continue;
        s2dq_assign(&box, whole);
        s2dq_drop(&box, a > b ? a : b);
        s2dq_drop(&box, a > b ? b : a);
        s2dq_order(&box, w * run.extent * streams.extent);
        s2dq_start(&at, &box, 0);
        do {
            const uintptr_t start = (uintptr_t)(out ? dst + at.dst : src + at.src);
            const int64_t head = (S2DQ_LINE - (int64_t)(start % S2DQ_LINE)) / w;
            for (int64_t i = 0, count; i < run.extent; i += count) {
                count = s2dq_min(i || !head ? full : head, run.extent - i);
                const s2dq_axis line = {count, run.src, run.dst};
                s2dq_avx2_granules(dst + at.dst + i * run.dst, src + at.src + i * run.src, streams, line, w);
            }
        } while (s2dq_next(&at, &box, 0));
        return true;
    }
    return false;
}

static void s2dq_avx2_run_granules(uint8_t *dst, const uint8_t *src, s2dq_box *box, bool follows)
{
    s2dq_position at;
    if (s2dq_avx2_try_lines(dst, src, box)) return;
    s2dq_order(box, box->width);
    if (s2dq_avx2_try_dense(dst, src, box)) return;
    if (s2dq_avx2_try_listed(dst, src, box)) return;
    const int64_t most = follows ? S2DQ_LINE : 2 * S2DQ_LINE; /* bytes of a granule that is worth fetching */
    const bool far = s2dq_avx2_bytes(box) >= S2DQ_AVX2_FAR && box->width >= 32 && box->width <= most;
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

static void s2dq_avx2_run_by(uint8_t *dst, const uint8_t *src, s2dq_box *box, bool halfway, bool follows);

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
        s2dq_avx2_run_by(scratch, src + at.src, &part, false, false);
        part.width = w; /* the first move may have joined granules, of a source that overlaps itself */
        s2dq_simplify(&part, second, count);
        s2dq_avx2_run_by(dst + at.dst, scratch, &part, false, false);
    } while (s2dq_next(&at, &box, 0));
    return true;
}

/* A box of sorted loops, by the kernel that suits its steps, or by two of them if `halfway` says so. */
static void s2dq_avx2_run_by(uint8_t *dst, const uint8_t *src, s2dq_box *box, bool halfway, bool follows)
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
        if (s2dq_avx2_try_pattern(dst, src, box, 6, 0, NULL, 1, 0)) return;
        if (halfway && s2dq_avx2_try_halfway(dst, src, box)) return;
        if (s2dq_avx2_try_merge(dst, src, box, 4)) return;
        if (s2dq_avx2_try_split(dst, src, box, 4)) return;
        if (s2dq_avx2_try_scattered(dst, src, box)) return;
        if (s2dq_avx2_try_transpose(dst, src, box, 4)) return;
        if (s2dq_avx2_try_pattern(dst, src, box, 4, 0, NULL, 1, 0)) return;
    }
    s2dq_avx2_run_granules(dst, src, box, follows);
}

static void s2dq_avx2_run(uint8_t *dst, const uint8_t *src, s2dq_box *box, bool follows)
{
    s2dq_avx2_run_by(dst, src, box, true, follows);
}

/* Move the granules of a box, as s2dq_copy does.
 * IN: src; axes[0 .. count), outermost first; width, bytes of a granule; follows, whether the processor follows
 * streams, so that granules of two lines need no fetching.
 * OUT: dst, exactly the granules named by the loops.
 * Requires: no overlap of src and dst, distinct places in dst, extents >= 1, a CPU with AVX2. */
static void s2dq_avx2_copy_by(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width,
                              bool follows)
{
    s2dq_box box;
    if (count > S2DQ_BOX_AXES) {
        for (int64_t i = 0; i < axes->extent; i++)
            s2dq_avx2_copy_by(dst + i * axes->dst, src + i * axes->src, axes + 1, count - 1, width, follows);
        return;
    }
    box.width = width;
    s2dq_simplify(&box, axes, count);
    s2dq_avx2_run(dst, src, &box, follows);
}

static void s2dq_avx2_copy(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    s2dq_avx2_copy_by(dst, src, axes, count, width, false);
}

/* The same for processors that do. */
static void s2dq_avx2_copy_followed(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width)
{
    s2dq_avx2_copy_by(dst, src, axes, count, width, true);
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
    if (width < 32 && s2dq_avx2_try_pattern(dst, src, &box, 4, lanes, fill, element, 0)) return;
    const int64_t start = s2dq_lanes_of(&spare, &box, lanes, element);
    s2dq_avx2_run(dst, src, &box, false);
    s2dq_avx2_run(dst + start, fill, &spare, false);
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
