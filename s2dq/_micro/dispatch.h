/* The kernels of the instruction set in use, behind one table.
 *
 * A new instruction set is a header with some of these functions, a name in isa.h, and a case below.
 */
#ifndef S2DQ_DISPATCH_H
#define S2DQ_DISPATCH_H

#include "avx2.h"
#include "avx2_map.h"
#include "avx2_tile.h"
#include "avx512.h"
#include "avx512_align.h"
#include "avx512_flood.h"
#include "avx512_frame.h"
#include "avx512_rotate.h"
#include "isa.h"
#include "neon.h"
#include "portable.h"
#include "tile.h"

typedef struct {
    /* Granules through any number of loops. */
    void (*copy)(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width);
    /* The same, and behind each run `lanes` bytes of fill, an element at a time. */
    void (*copy_lanes)(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width,
                       int64_t lanes, const uint8_t *fill, int64_t element);
    /* Pictures, whose rows and granules are the last two axes, within frames of a fill element; or NULL. */
    void (*copy_framed)(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width,
                        const s2dq_frame *frame, const uint8_t *fill, int64_t element);
    /* Bytes, each through the table that its place in the loops selects. */
    void (*lookup)(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_axis *axes, int count);
    /* The same by arithmetic, or NULL. */
    void (*map)(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_tables *mapping,
                const s2dq_axis *axes, int count);
    /* The runner of a tile, one that stores past the caches, and one that makes whole lines wherever the result
     * begins; that of a network, and one for the ends of the source. NULL where there is none. */
    s2dq_tile_runner (*tile)(const s2dq_tile *tile);
    s2dq_tile_runner (*streamer)(const s2dq_tile *tile);
    s2dq_tile_runner (*aligner)(const s2dq_tile *tile);
    s2dq_network_runner (*network)(const s2dq_network *network);
    s2dq_tile_edge_runner edge;
    /* Whether loops are worth making whole lines for. */
    bool (*aligns)(const uint8_t *dst, const s2dq_tile *tile, const s2dq_axis *loops);
    /* A loop over tiles past the caches, the lines that it leaves, and what makes all of it visible to other threads. */
    void (*sweep)(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, const s2dq_filling *filling,
                  const s2dq_axis *loop, int64_t group, int64_t next, s2dq_tile_runner streamer, s2dq_carry *carry);
    void (*flush)(s2dq_carry *carry);
    void (*settle)(void);
    /* Whether `copy` is quicker than tiles at merging or splitting streams in rows of 17 to 31 bytes. */
    bool short_rows;
    /* What tiles run that are for lookups alone (see avx2_tile.h), or NULL. */
    int (*steps)(s2dq_steps *steps, const s2dq_tile *tile);
    /* Whether tiles may be mapped, and whether they are quicker where each register goes through one table. */
    bool lines, tables;
    /* Whether networks may have places that are uneven on one side. */
    bool bends;
    /* Whether a whole register is better stored at once, across two lines, than in pieces that seldom are. */
    bool joins;
} s2dq_kernels;

/* `across` and `follows`: as s2dq_stores_across and s2dq_follows_streams say of this machine. */
static s2dq_kernels s2dq_kernels_of(int isa, int across, bool follows)
{
    s2dq_kernels kernels = {.copy = s2dq_copy, .copy_lanes = s2dq_copy_lanes, .lookup = s2dq_lookup};
#if defined(S2DQ_X86)
    if (isa >= S2DQ_ISA_AVX2) {
        kernels.copy = follows ? s2dq_avx2_copy_followed : s2dq_avx2_copy;
        kernels.copy_lanes = s2dq_avx2_copy_lanes;
    }
    if (isa == S2DQ_ISA_AVX2) {
        kernels.tile = s2dq_step_runner;
        kernels.edge = s2dq_step_run_edge;
        kernels.steps = s2dq_tile_steps;
        kernels.map = s2dq_avx2_map;
        kernels.lines = true;
    }
    if (isa == S2DQ_ISA_AVX512VBMI) {
        kernels.copy = across == S2DQ_ACROSS_FREE ? s2dq_512_copy_across : s2dq_512_copy;
        kernels.copy_framed = s2dq_512_copy_framed;
        kernels.lookup = s2dq_512_lookup;
        kernels.tile = s2dq_512_runner;
        kernels.streamer = s2dq_512_streamer;
        kernels.aligner = across == S2DQ_ACROSS_FREE    ? s2dq_512_past_aligner
                          : across == S2DQ_ACROSS_WHOLE ? s2dq_512_rotator
                                                        : s2dq_512_aligner;
        kernels.aligns = across == S2DQ_ACROSS_WHOLE ? s2dq_512_rotates : s2dq_512_aligns;
        kernels.network = s2dq_512_network_runner;
        kernels.edge = s2dq_512_run_edge;
        kernels.sweep = s2dq_512_sweep;
        kernels.flush = s2dq_512_flush;
        kernels.settle = s2dq_512_settle;
        kernels.short_rows = true;
        kernels.lines = true;
        kernels.tables = true;
        kernels.bends = true;
        kernels.joins = across != S2DQ_ACROSS_DEAR;
    }
#elif defined(S2DQ_ARM)
    if (isa == S2DQ_ISA_NEON) {
        kernels.tile = s2dq_neon_runner;
        kernels.network = s2dq_neon_network_runner;
        kernels.edge = s2dq_neon_run_edge;
    }
#else
    (void)isa;
#endif
    (void)across, (void)follows;
    return kernels;
}

#endif
