/* Tile programs on AVX-512 VBMI that read the same everywhere, as those of paddings do: one register, stored again and
 * again in whole lines. A store across two lines takes twice as long, and there is nothing to wait for meanwhile.
 */
#ifndef S2DQ_AVX512_FLOOD_H
#define S2DQ_AVX512_FLOOD_H

#include "avx512.h"

#if defined(S2DQ_X86)

/* A register again and again, `size` bytes, a whole number of it. */
S2DQ_512_INLINE void s2dq_512_flood_run(uint8_t *dst, int64_t size, __m512i value)
{
    const int64_t ahead = S2DQ_REGISTER_BYTES - (int64_t)((uintptr_t)dst & (S2DQ_REGISTER_BYTES - 1));
    const __m512i places = _mm512_loadu_si512(s2dq_512_places);
    const __m512i line = _mm512_permutexvar_epi8(_mm512_add_epi8(places, _mm512_set1_epi8((char)ahead)), value);
    _mm512_storeu_si512(dst, value);
    for (int64_t k = ahead; k + S2DQ_REGISTER_BYTES <= size; k += S2DQ_REGISTER_BYTES)
        _mm512_store_si512((__m512i *)(dst + k), line);
    _mm512_storeu_si512(dst + size - S2DQ_REGISTER_BYTES, value);
}

/* As the runner of the shape. */
S2DQ_512 static void s2dq_512_flood(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,
                                    const s2dq_filling *filling, const s2dq_axis *loops)
{
    __m512i registers[S2DQ_REGISTERS]; /* no bytes, which AddressSanitizer aligns less than the compiler relies on */
    const s2dq_axis *inner = &loops[2];
    const int64_t bytes = tile->outputs * S2DQ_REGISTER_BYTES;
    /* The last turn is a run of its own where it goes back, and all are where they do not go on from each other. */
    const int64_t joined = inner->dst != bytes ? 1 : inner->extent - (inner->dst_back != 0);
    for (int k = 0; k < S2DQ_TILE_LOOPS; k++) {
        if (loops[k].src || loops[k].src_back) {
            s2dq_512_shape_runner(tile)(dst, src, tile, filling, loops);
            return;
        }
    }
    s2dq_512_outputs((uint8_t *)registers, src, tile, filling, true);
    const __m512i value = registers[0];
    for (int64_t i = 0; i < loops[0].extent; i++) {
        for (int64_t j = 0; j < loops[1].extent; j++) {
            uint8_t *d = dst + tile->dst[0];
            s2dq_tile_turn(loops, i, j, &src, &d);
            if (joined > 1) s2dq_512_flood_run(d, joined * bytes, value);
            for (int64_t k = joined > 1 ? joined : 0; k < inner->extent; k++)
                s2dq_512_flood_run(d + k * inner->dst - (k == inner->extent - 1 ? inner->dst_back : 0), bytes, value);
        }
    }
}

/* Whether a tile makes one run of equal registers. */
static bool s2dq_512_floods(const s2dq_tile *tile)
{
    if (tile->mapped || tile->past || tile->runs != 1 || tile->run_pieces != tile->outputs * tile->stores) return false;
    if (tile->outputs == 1 || !s2dq_512_is_full(tile)) return false;
    for (int k = 1; k < tile->outputs; k++)
        if (tile->upper[k] != tile->upper[0] || memcmp(tile->table[k], tile->table[0], S2DQ_REGISTER_BYTES) ||
            memcmp(tile->fill[k], tile->fill[0], S2DQ_REGISTER_BYTES))
            return false;
    return true;
}

static s2dq_tile_runner s2dq_512_runner(const s2dq_tile *tile)
{
    return s2dq_512_floods(tile) ? s2dq_512_flood : s2dq_512_shape_runner(tile);
}

#endif

#endif
