/* What the driver hands to the micro-kernels: one loop of a box, steps in bytes; and what every header needs: boxes
 * as they look for loops that suit them, and the order of the loops that remain. */
#ifndef S2DQ_AXIS_H
#define S2DQ_AXIS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(_MSC_VER)
#define S2DQ_RESTRICT __restrict
#else
#define S2DQ_RESTRICT restrict
#endif

/* `src_back`, `dst_back`: how far the last turn of a loop over tiles goes back, so that it ends where the axis ends. */
typedef struct {
    int64_t extent, src, dst, tab, src_back, dst_back;
} s2dq_axis;

/* Bytes of fill values before the first row of a picture, between two rows and behind the last one. */
typedef struct {
    int64_t lead, gap, tail;
} s2dq_frame;

#define S2DQ_BOX_AXES 12 /* loops that a kernel is chosen from; more of them turn around it */
#define S2DQ_LINE 64     /* bytes of a cache line */
#define S2DQ_SWEEP 16384 /* a loop that steps less than a line must not turn around more bytes than this */

static const s2dq_axis s2dq_once = {1, 0, 0, 0}; /* no loop at all */

/* The loops of a box: axes in rising order of their steps in the result. */
typedef struct {
    int count;
    int64_t width;
    s2dq_axis axes[S2DQ_BOX_AXES + 1]; /* one more for lanes */
} s2dq_box;

static inline int64_t s2dq_magnitude(int64_t step) { return step < 0 ? -step : step; }

static inline int64_t s2dq_min(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t s2dq_max(int64_t a, int64_t b) { return a > b ? a : b; }

static inline void s2dq_assign(s2dq_box *box, const s2dq_box *from)
{
    box->count = from->count;
    box->width = from->width;
    for (int a = 0; a < from->count; a++) box->axes[a] = from->axes[a];
}

static inline void s2dq_drop(s2dq_box *box, int at)
{
    for (box->count--; at < box->count; at++) box->axes[at] = box->axes[at + 1];
}

/* Sorts the axes, joins those that continue each other, and widens the granule. */
static inline void s2dq_simplify(s2dq_box *box, const s2dq_axis *axes, int count)
{
    box->count = 0;
    for (int a = count - 1; a >= 0; a--) {
        int at = box->count;
        if (axes[a].extent == 1) continue;
        while (at > 0 && s2dq_magnitude(box->axes[at - 1].dst) > s2dq_magnitude(axes[a].dst)) {
            box->axes[at] = box->axes[at - 1];
            at--;
        }
        box->axes[at] = axes[a];
        box->count++;
    }
    for (int a = 0; a + 1 < box->count;) {
        s2dq_axis *near = &box->axes[a], *far = &box->axes[a + 1];
        if (far->dst == near->dst * near->extent && far->src == near->src * near->extent) {
            near->extent *= far->extent;
            s2dq_drop(box, a + 1);
        } else {
            a++;
        }
    }
    if (box->count && box->axes[0].dst == box->width && box->axes[0].src == box->width) {
        box->width *= box->axes[0].extent;
        s2dq_drop(box, 0);
    }
}

/* The box that fills the `lanes` bytes behind each run of bytes which a box writes without a gap.
 * Returns where its first byte is, relative to that of `box`. */
static inline int64_t s2dq_lanes_of(s2dq_box *fill, const s2dq_box *box, int64_t lanes, int64_t element)
{
    int64_t run = box->width;
    int a = 0;
    while (a < box->count && box->axes[a].dst == run) run *= box->axes[a++].extent;
    fill->width = element;
    fill->count = 0;
    if (lanes > element) {
        const s2dq_axis lane = {lanes / element, 0, element, 0};
        fill->axes[fill->count++] = lane;
    }
    for (; a < box->count; a++) {
        fill->axes[fill->count] = box->axes[a];
        fill->axes[fill->count++].src = 0;
    }
    return run;
}

/* Orders the loops around a kernel that writes `bytes` a turn, innermost first: by their steps in the result, but for
 * those that step less than a line on either side: they must not wait for the lines to leave the cache. */
static inline void s2dq_order(s2dq_box *box, int64_t bytes)
{
    for (int a = 0; a < box->count; a++) {
        const s2dq_axis axis = box->axes[a];
        const int64_t src = s2dq_magnitude(axis.src), dst = s2dq_magnitude(axis.dst);
        if (a && bytes > S2DQ_SWEEP && s2dq_min(src, dst) < S2DQ_LINE) {
            for (int b = a; b > 0; b--) box->axes[b] = box->axes[b - 1];
            box->axes[0] = axis;
        }
        bytes *= axis.extent;
    }
}

/* Position in the loops from `first` on; index[k] counts axes[k]. */
typedef struct {
    int64_t index[S2DQ_BOX_AXES], src, dst;
} s2dq_position;

/* To the next turn of the loops around a kernel; returns 0 after the last. */
static inline bool s2dq_next(s2dq_position *at, const s2dq_box *box, int first)
{
    for (int k = first; k < box->count; k++) {
        at->src += box->axes[k].src;
        at->dst += box->axes[k].dst;
        if (++at->index[k] < box->axes[k].extent) return true;
        at->src -= box->axes[k].extent * box->axes[k].src;
        at->dst -= box->axes[k].extent * box->axes[k].dst;
        at->index[k] = 0;
    }
    return false;
}

static inline void s2dq_start(s2dq_position *at, const s2dq_box *box, int first)
{
    at->src = at->dst = 0;
    for (int k = first; k < box->count; k++) at->index[k] = 0;
}

/* The axis `at` of the loops, or one turn. */
static inline s2dq_axis s2dq_axis_at(const s2dq_box *box, int at)
{
    return at < box->count ? box->axes[at] : s2dq_once;
}

/* Whether `dst` is a few bytes further in its page than `src`. Copying a string in one instruction, as memcpy does with
 * long ones, takes ten times as long there on AMD's third and fourth Zen (glibc's bug 30994). */
static inline bool s2dq_just_behind(const uint8_t *dst, const uint8_t *src)
{
    const uintptr_t apart = ((uintptr_t)dst - (uintptr_t)src) % 4096;
    return apart > 0 && apart < 128;
}

#endif
