/* Instruction sets: their names, and which of them this machine runs.
 *
 * Kernels for an instruction set carry `target` attributes, so that one object file holds them all and nothing but
 * the baseline runs before the choice is made. Compilers without these attributes get the portable kernels.
 */
#ifndef S2DQ_ISA_H
#define S2DQ_ISA_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__GNUC__) && defined(__x86_64__)
#define S2DQ_X86 1
#elif defined(__GNUC__) && defined(__aarch64__) && !defined(__AARCH64EB__)
#define S2DQ_ARM 1
#endif

enum { S2DQ_ISA_PORTABLE, S2DQ_ISA_NEON, S2DQ_ISA_AVX2, S2DQ_ISA_AVX512VBMI, S2DQ_ISA_COUNT };

/* As S2DQ_ISA spells them; a better one has a higher number. */
static const char *s2dq_isa_name(int isa)
{
    static const char *const names[S2DQ_ISA_COUNT] = {"portable", "neon", "avx2", "avx512vbmi"};
    return isa >= 0 && isa < S2DQ_ISA_COUNT ? names[isa] : NULL;
}

static bool s2dq_isa_runs(int isa)
{
    switch (isa) {
    case S2DQ_ISA_PORTABLE: return true;
#if defined(S2DQ_ARM)
    case S2DQ_ISA_NEON: return true; /* part of every AArch64 */
#endif
#if defined(S2DQ_X86)
    /* These ask the system too, whether it saves the registers. */
    case S2DQ_ISA_AVX2: __builtin_cpu_init(); return __builtin_cpu_supports("avx2");
    case S2DQ_ISA_AVX512VBMI:
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2");
#endif
    default: return false;
    }
}

/* Whether the processor's own prefetchers keep up with the last cache, and its stores need not find their lines near,
 * so that fetching by software gets in their way: measured on Zen 4. Intel's are better off with help. */
static bool s2dq_follows_streams(void)
{
#if defined(S2DQ_X86)
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") != 0;
#else
    return false;
#endif
}

/* What a store across two lines costs: so much that shuffles and masks that avoid it are cheaper; less than those for
 * whole registers, but not for parts of one; or next to nothing. Measured on Intel's, on Zen 4, and on Zen 5, the first
 * of AMD's with this instruction. */
enum { S2DQ_ACROSS_DEAR, S2DQ_ACROSS_WHOLE, S2DQ_ACROSS_FREE };

static int s2dq_stores_across(void)
{
#if defined(S2DQ_X86)
    __builtin_cpu_init();
    if (!__builtin_cpu_is("amd")) return S2DQ_ACROSS_DEAR;
    return __builtin_cpu_supports("avx512vp2intersect") ? S2DQ_ACROSS_FREE : S2DQ_ACROSS_WHOLE;
#else
    return S2DQ_ACROSS_DEAR;
#endif
}

#endif
