/* Bytes that repeat in the result, in any order, for AVX2: vectors put together from windows of the source.
 *
 * s2dq_avx2_plan_program, s2dq_avx2_program_for  any pattern, vector by vector
 * s2dq_avx2_plan_cycle, s2dq_avx2_cycle_merge, s2dq_avx2_cycle_split  one that 96 bytes are a whole number of, from
 *                                                                     windows of 32 bytes
 */
#ifndef S2DQ_AVX2_PROGRAMS_H
#define S2DQ_AVX2_PROGRAMS_H

#include "avx2_registers.h"

#if defined(S2DQ_X86)

/* ------------------------------------------------------------------------------------------------ programs */

#define S2DQ_AVX2_WINDOWS 4
#define S2DQ_AVX2_NOWHERE INT64_MIN

/* How to make one vector of a pattern that repeats every `dst` bytes of the result and `src` bytes of the source:
 * the OR over the windows of 16 source bytes per lane, shuffled. Bytes that are filled come from no window, and others
 * may have bits turned: `fill` has both, for it is an XOR. */
typedef struct {
    int count; /* windows */
    bool same; /* whether both lanes have the same ones */
    int64_t at[S2DQ_AVX2_WINDOWS][2];
    uint8_t mask[S2DQ_AVX2_WINDOWS][32];
} s2dq_avx2_vector;

typedef struct {
    s2dq_avx2_vector body, edge; /* windows begin, or end, with a byte that is needed */
    int64_t vectors, edges;      /* whole vectors of a row; how many of them, at the end, are edges */
    int64_t step, size;          /* of one vector: bytes of the source, and of the result (16 to 32) */
    int64_t src_last, dst_last;  /* where the last possible vector starts, which overlaps the one before */
    int64_t run, unit;           /* bytes of a repeat that are moved, and all of them; the others are filled */
} s2dq_avx2_program;

S2DQ_AVX2_INLINE __m256i s2dq_avx2_compose(const uint8_t *src, const int64_t (*at)[2], const __m256i *mask,
                                           int count, bool same)
{
    __m256i out = _mm256_setzero_si256();
    S2DQ_UNROLL
    for (int k = 0; k < count; k++) {
        const __m256i in = same ? _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(src + at[k][0])))
                                : s2dq_avx2_load_pair(src + at[k][0], src + at[k][1]);
        const __m256i part = _mm256_shuffle_epi8(in, mask[k]);
        out = k ? _mm256_or_si256(out, part) : part;
    }
    return out;
}

/* A row of the pattern: whole stores as long as vectors follow that overwrite what runs past the end, then edges, which
 * are stored as their first and their last 16 bytes. */
S2DQ_AVX2_INLINE void s2dq_avx2_run_program(uint8_t *dst, const uint8_t *src, const s2dq_avx2_program *p,
                                            s2dq_axis rows, const uint8_t *fill, int count, bool same, bool filled)
{
    /* Copies: what is stored to dst cannot change them, so they stay in registers. */
    __m256i body[S2DQ_AVX2_WINDOWS], edge[S2DQ_AVX2_WINDOWS];
    int64_t at[S2DQ_AVX2_WINDOWS][2];
    const int64_t size = p->size, step = p->step, edges = p->edges, whole = p->vectors - edges;
    const __m256i front = filled ? s2dq_avx2_load(fill, 32) : _mm256_setzero_si256();
    const __m256i back = filled ? s2dq_avx2_load_pair(fill, fill + size - 16) : _mm256_setzero_si256();
    S2DQ_UNROLL
    for (int k = 0; k < count; k++) {
        body[k] = _mm256_loadu_si256((const __m256i *)p->body.mask[k]);
        edge[k] = _mm256_loadu_si256((const __m256i *)p->edge.mask[k]);
        at[k][0] = p->body.at[k][0];
        at[k][1] = p->body.at[k][1];
    }
    for (int64_t r = 0; r < rows.extent; r++, dst += rows.dst, src += rows.src) {
        uint8_t *d = dst;
        const uint8_t *s = src;
        S2DQ_UNROLL_2 /* one turn after the other took up to 1.3 times as long, by where the loop lay */
        for (int64_t i = 0; i < whole; i++, d += size, s += step)
            _mm256_storeu_si256((__m256i *)d, _mm256_xor_si256(front, s2dq_avx2_compose(s, (const int64_t (*)[2])at,
                                                                                         body, count, same)));
        for (int64_t i = 0; i <= edges; i++, d += size, s += step) {
            if (i == edges) {
                d = dst + p->dst_last;
                s = src + p->src_last;
            }
            const __m256i v = _mm256_xor_si256(back, s2dq_avx2_compose(s, p->edge.at, edge, count, same));
            _mm_storeu_si128((__m128i *)d, _mm256_castsi256_si128(v));
            _mm_storeu_si128((__m128i *)(d + size - 16), _mm256_extracti128_si256(v, 1));
        }
    }
}

#define S2DQ_AVX2_PROGRAM(COUNT, SAME)                                                                             \
    S2DQ_AVX2 static void s2dq_avx2_program_##COUNT##_##SAME(uint8_t *dst, const uint8_t *src,                     \
                                                             const s2dq_avx2_program *p, s2dq_axis rows,           \
                                                             const uint8_t *fill)                                  \
    {                                                                                                              \
        if (fill) s2dq_avx2_run_program(dst, src, p, rows, fill, COUNT, SAME, true);                               \
        else s2dq_avx2_run_program(dst, src, p, rows, fill, COUNT, SAME, false);                                   \
    }

S2DQ_AVX2_PROGRAM(1, 0)
S2DQ_AVX2_PROGRAM(2, 0)
S2DQ_AVX2_PROGRAM(3, 0)
S2DQ_AVX2_PROGRAM(4, 0)
S2DQ_AVX2_PROGRAM(1, 1)
S2DQ_AVX2_PROGRAM(2, 1)
S2DQ_AVX2_PROGRAM(3, 1)
S2DQ_AVX2_PROGRAM(4, 1)

typedef void (*s2dq_avx2_program_kernel)(uint8_t *, const uint8_t *, const s2dq_avx2_program *, s2dq_axis,
                                         const uint8_t *);

static s2dq_avx2_program_kernel s2dq_avx2_program_for(int count, bool same)
{
    static const s2dq_avx2_program_kernel kernels[2][S2DQ_AVX2_WINDOWS] = {
        {s2dq_avx2_program_1_0, s2dq_avx2_program_2_0, s2dq_avx2_program_3_0, s2dq_avx2_program_4_0},
        {s2dq_avx2_program_1_1, s2dq_avx2_program_2_1, s2dq_avx2_program_3_1, s2dq_avx2_program_4_1},
    };
    return kernels[same][count - 1];
}

/* Covers source bytes by windows. IN: where[lane][i], for `size[lane]` places of each lane, S2DQ_AVX2_NOWHERE for a
 * place that is filled. OUT: *v.
 * Returns how far a window reaches past the bytes wanted from it at most, or -1 where too many windows are needed. */
static int64_t s2dq_avx2_cover(s2dq_avx2_vector *v, const int64_t *const where[2], const int size[2], bool same,
                               bool from_end)
{
    int64_t low[2][S2DQ_AVX2_WINDOWS], high[2][S2DQ_AVX2_WINDOWS], slack = 0;
    uint8_t window[2][16];
    int used[2] = {0, 0};
    for (int lane = 0; lane < 2; lane++) {
        const int of = same ? 0 : lane;
        for (int i = 0; i < size[lane]; i++) {
            const int64_t at = where[lane][i];
            int k = 0;
            if (at == S2DQ_AVX2_NOWHERE) continue;
            while (k < used[of] && (at > low[of][k] + 15 || at < high[of][k] - 15)) k++;
            if (k == S2DQ_AVX2_WINDOWS) return -1;
            if (k == used[of]) {
                low[of][k] = high[of][k] = at;
                used[of]++;
            }
            low[of][k] = s2dq_min(low[of][k], at);
            high[of][k] = s2dq_max(high[of][k], at);
            window[lane][i] = (uint8_t)k;
        }
    }
    v->count = (int)s2dq_max(used[0], used[1]);
    v->same = same;
    for (int lane = 0; lane < 2; lane++) {
        const int of = same ? 0 : lane;
        for (int k = 0; k < v->count; k++) { /* a lane with fewer windows repeats its first */
            const int known = k < used[of] ? k : 0;
            const int64_t past = 15 - (high[of][known] - low[of][known]);
            v->at[k][lane] = low[of][known] - (from_end ? past : 0);
            slack = s2dq_max(slack, past);
        }
    }
    memset(v->mask, 0x80, sizeof v->mask);
    for (int lane = 0; lane < 2; lane++)
        for (int i = 0; i < size[lane]; i++) {
            const int k = window[lane][i];
            if (where[lane][i] != S2DQ_AVX2_NOWHERE)
                v->mask[k][16 * lane + i] = (uint8_t)(where[lane][i] - v->at[k][lane]);
        }
    return slack;
}

/* Makes the program of a box: axes[0 .. chain) are dense in the result, innermost first, and axes[chain - 1] is the
 * repeat, after each turn of which `lanes` bytes are filled. Returns whether there is one. */
static bool s2dq_avx2_plan_program(s2dq_avx2_program *p, const s2dq_axis *axes, int chain, int64_t width, int64_t lanes)
{
    const s2dq_axis repeat = axes[chain - 1];
    int64_t where[32], slack;
    int size = (int)width;
    if (repeat.dst > 32 || repeat.src <= 0 || repeat.src > S2DQ_AVX2_NEAR / 4) return false;
    const int repeats = 32 / (int)repeat.dst;
    p->size = repeats * repeat.dst;
    if (repeat.extent < 3 * repeats || p->size < 16) return false;
    for (int i = 0; i < size; i++) where[i] = i;
    for (int a = 0; a < chain - 1; a++) {
        const int all = size * (int)axes[a].extent;
        for (int i = size; i < all; i++) where[i] = where[i - size] + axes[a].src;
        size = all;
    }
    p->run = size;
    p->unit = size + lanes;
    for (int i = size; i < p->unit; i++) where[i] = S2DQ_AVX2_NOWHERE;
    for (int i = (int)p->unit; i < p->size; i++)
        where[i] = where[i - p->unit] == S2DQ_AVX2_NOWHERE ? S2DQ_AVX2_NOWHERE : where[i - p->unit] + repeat.src;
    size = (int)p->size;
    p->step = repeat.src * repeats;
    p->vectors = repeat.extent / repeats;
    p->src_last = (repeat.extent - repeats) * repeat.src;
    p->dst_last = (repeat.extent - repeats) * repeat.dst;

    const int64_t *const places[2] = {where, where + 16}, *const edges[2] = {where, where + size - 16};
    const int body_size[2] = {16, size - 16}, edge_size[2] = {16, 16};
    slack = s2dq_avx2_cover(&p->body, places, body_size, true, false); /* one load for both lanes is better than two */
    if (slack < 0) slack = s2dq_avx2_cover(&p->body, places, body_size, false, false);
    /* What lies after the bytes of a window, or before those of an edge, must lie between them and another vector's. */
    p->edges = slack > p->step ? (slack + p->step - 1) / p->step : 1;
    /* -1 where the body has too many windows */
    slack = s2dq_avx2_cover(&p->edge, edges, edge_size, p->body.same, true);
    /* Kernels are for one number of windows. */
    return slack >= 0 && p->edge.count == p->body.count && slack <= (p->vectors - p->edges) * p->step;
}

/* Bytes of the result per load. */
static int64_t s2dq_avx2_yield(const s2dq_avx2_program *p)
{
    return p->size / (p->body.count * (p->body.same ? 1 : 2));
}

/* ------------------------------------------------------------------------------------------------ cycles */

/* How far ahead of a row that far arrays are read: at the same place of the next one, where that is not too near. */
static inline int64_t s2dq_avx2_ahead(s2dq_axis rows)
{
    const int64_t step = s2dq_magnitude(rows.src);
    return rows.extent > 1 && step >= 256 && step <= 16384 ? rows.src : S2DQ_AVX2_AHEAD;
}

/* A pattern of which 96 bytes are a whole number of repeats: granules of 3, 6, 12 bytes. Three whole vectors, each of
 * two pieces: either two runs of 32 source bytes, of which both lanes take up to four words each (few streams merged),
 * or one run of 32 bytes for each lane (a stream thinned out). */
typedef struct {
    int64_t at[3][2];
    int32_t words[3][2][8];
    uint8_t mask[3][2][32];
} s2dq_avx2_triple;

typedef struct {
    s2dq_avx2_triple body, edge; /* as in programs */
    int64_t triples, step;       /* whole ones of a row; source bytes of one */
    int64_t src_last, dst_last;
} s2dq_avx2_cycle;

/* A triple in registers. */
typedef struct {
    int64_t at[3][2];
    __m256i words[3][2], mask[3][2];
} s2dq_avx2_held;

S2DQ_AVX2_INLINE s2dq_avx2_held s2dq_avx2_hold(const s2dq_avx2_triple *t)
{
    s2dq_avx2_held h;
    S2DQ_UNROLL
    for (int i = 0; i < 6; i++) {
        h.at[i / 2][i % 2] = t->at[i / 2][i % 2];
        h.words[i / 2][i % 2] = s2dq_avx2_load((const uint8_t *)t->words[i / 2][i % 2], 32);
        h.mask[i / 2][i % 2] = s2dq_avx2_load(t->mask[i / 2][i % 2], 32);
    }
    return h;
}

/* With `turned`, bits are turned, else none are, whatever `turn` is. */
S2DQ_AVX2_INLINE void s2dq_avx2_cycle_step(uint8_t *dst, const uint8_t *src, const s2dq_avx2_held *t, bool merge,
                                           int64_t ahead, __m256i turn, bool turned)
{
    S2DQ_UNROLL
    for (int v = 0; v < 3; v++) {
        const uint8_t *const a = src + t->at[v][0], *const b = src + t->at[v][1];
        if (ahead) s2dq_avx2_fetch(a + ahead), s2dq_avx2_fetch(b + ahead);
        /* For lanes of their own two loads each: they come cheaper than moving lanes about. */
        const __m256i p = merge ? _mm256_permutevar8x32_epi32(s2dq_avx2_load(a, 32), t->words[v][0])
                                : s2dq_avx2_load_pair(a, b);
        const __m256i q = merge ? _mm256_permutevar8x32_epi32(s2dq_avx2_load(b, 32), t->words[v][1])
                                : _mm256_blend_epi32(s2dq_avx2_load(a + 16, 16), s2dq_avx2_load(b, 32), 0xF0);
        const __m256i value = _mm256_or_si256(_mm256_shuffle_epi8(p, t->mask[v][0]),
                                              _mm256_shuffle_epi8(q, t->mask[v][1]));
        s2dq_avx2_store(dst + 32 * v, turned ? _mm256_xor_si256(value, turn) : value, 32);
    }
}

S2DQ_AVX2_INLINE void s2dq_avx2_run_cycle(uint8_t *dst, const uint8_t *src, const s2dq_avx2_cycle *c, s2dq_axis rows,
                                          bool merge, int64_t ahead, uint8_t turn, bool turned)
{
    const __m256i by = _mm256_set1_epi8((char)turn);
    const s2dq_avx2_held body = s2dq_avx2_hold(&c->body);
    const int64_t triples = c->triples, step = c->step;
    for (int64_t r = 0; r < rows.extent; r++, dst += rows.dst, src += rows.src) {
        const s2dq_avx2_held edge = s2dq_avx2_hold(&c->edge);
        uint8_t *d = dst;
        const uint8_t *s = src;
        for (int64_t i = 1; i < triples; i++, d += 96, s += step)
            s2dq_avx2_cycle_step(d, s, &body, merge, ahead, by, turned);
        s2dq_avx2_cycle_step(d, s, &edge, merge, 0, by, turned);
        s2dq_avx2_cycle_step(dst + c->dst_last, src + c->src_last, &edge, merge, 0, by, turned);
    }
}

S2DQ_AVX2 static void s2dq_avx2_cycle_merge(uint8_t *dst, const uint8_t *src, const s2dq_avx2_cycle *c, s2dq_axis rows,
                                            bool far, uint8_t turn)
{
    const int64_t ahead = far ? s2dq_avx2_ahead(rows) : 0;
    if (turn) s2dq_avx2_run_cycle(dst, src, c, rows, true, ahead, turn, true);
    else if (far) s2dq_avx2_run_cycle(dst, src, c, rows, true, ahead, 0, false);
    else s2dq_avx2_run_cycle(dst, src, c, rows, true, 0, 0, false);
}

S2DQ_AVX2 static void s2dq_avx2_cycle_split(uint8_t *dst, const uint8_t *src, const s2dq_avx2_cycle *c, s2dq_axis rows,
                                            uint8_t turn)
{
    if (turn) s2dq_avx2_run_cycle(dst, src, c, rows, false, 0, turn, true);
    else s2dq_avx2_run_cycle(dst, src, c, rows, false, 0, 0, false);
}

/* One vector of a cycle. IN: where[0 .. 32). OUT: place v of *t. Returns the slack as s2dq_avx2_cover does. */
static int64_t s2dq_avx2_cover_wide(s2dq_avx2_triple *t, int v, const int64_t *where, bool merge, bool from_end)
{
    int64_t low[2], high[2], slack = 0;
    int used = 0, count[2][2] = {{0, 0}, {0, 0}};
    uint8_t piece[32];
    for (int i = 0; i < 32; i++) {
        int k = merge ? 0 : i / 16;
        if (merge)
            while (k < used && (where[i] > low[k] + 31 || where[i] < high[k] - 31)) k++;
        if (k == 2) return -1;
        if (k >= used) {
            low[k] = high[k] = where[i];
            used = k + 1;
        }
        low[k] = s2dq_min(low[k], where[i]);
        high[k] = s2dq_max(high[k], where[i]);
        if (high[k] - low[k] > 31) return -1;
        piece[i] = (uint8_t)k;
    }
    memset(t->words[v], 0, sizeof t->words[v]);
    memset(t->mask[v], 0x80, sizeof t->mask[v]);
    for (int k = 0; k < 2; k++) {
        const int known = k < used ? k : 0;
        const int64_t past = 31 - (high[known] - low[known]);
        t->at[v][k] = low[known] - (from_end ? past : 0);
        slack = s2dq_max(slack, past);
    }
    for (int i = 0; i < 32; i++) {
        const int k = piece[i], lane = i / 16, byte = (int)(where[i] - t->at[v][k]);
        int word = 0;
        if (!merge) {
            t->mask[v][byte / 16][i] = (uint8_t)(byte % 16);
            continue;
        }
        while (word < count[k][lane] && t->words[v][k][4 * lane + word] != byte / 4) word++;
        if (word == 4) return -1;
        if (word == count[k][lane]) t->words[v][k][4 * lane + count[k][lane]++] = byte / 4;
        t->mask[v][k][i] = (uint8_t)(4 * word + byte % 4);
    }
    return slack;
}

/* Makes the cycle of a box, as s2dq_avx2_plan_program makes its program. Returns 2 to merge, 1 to split, 0 for none. */
static int s2dq_avx2_plan_cycle(s2dq_avx2_cycle *c, const s2dq_axis *axes, int chain, int64_t width)
{
    const s2dq_axis repeat = axes[chain - 1];
    int64_t where[96];
    int size = (int)width;
    if (repeat.dst > 48 || 96 % repeat.dst || repeat.src <= 0 || repeat.src > S2DQ_AVX2_NEAR / 4) return 0;
    const int repeats = 96 / (int)repeat.dst;
    if (repeat.extent < 2 * repeats) return 0;
    for (int i = 0; i < size; i++) where[i] = i;
    for (int a = 0; a < chain; a++) {
        const int all = a < chain - 1 ? size * (int)axes[a].extent : 96;
        for (int i = size; i < all; i++) where[i] = where[i - size] + axes[a].src;
        size = all;
    }
    c->triples = repeat.extent / repeats;
    c->step = repeats * repeat.src;
    c->src_last = (repeat.extent - repeats) * repeat.src;
    c->dst_last = (repeat.extent - repeats) * repeat.dst;
    for (int merge = 1; merge >= 0; merge--) {
        int v = 0;
        for (; v < 6; v++) {
            const int64_t slack =
                s2dq_avx2_cover_wide(v < 3 ? &c->body : &c->edge, v % 3, where + v % 3 * 32, merge, v >= 3);
            if (slack < 0 || slack > c->step) break;
        }
        if (v == 6) return merge + 1;
    }
    return 0;
}

#endif
#endif
