/* Arithmetic between real numbers and stored integers: quantize, dequantize, and both in a row.
 *
 *     stored = saturate(half_to_even(number / scale) + zero)        NaN: zero
 *     number = float32(stored - zero) * scale
 *
 * Loops are plain C, compiled once for each instruction set and vectorised by the compiler. All of them give the same
 * bits: divisions are divisions, nothing is contracted (-ffp-contract=off), sums and differences are exact, and the
 * floating-point environment of the calling thread is put aside for the time being.
 */
#ifndef S2DQ_CONVERT_H
#define S2DQ_CONVERT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "axis.h"
#include "isa.h"

#if defined(S2DQ_X86) || defined(_M_X64)
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

#if defined(__GNUC__)
#define S2DQ_EVERYWHERE static inline __attribute__((always_inline)) /* compiled for the caller's instruction set */
#else
#define S2DQ_EVERYWHERE static inline
#endif

/* ------------------------------------------------------------------------------------------------- environment */

/* Rounding to nearest, subnormal numbers kept, nothing trapped; OUT: what there was before. Flags raised in between
 * are gone with it. */
#if defined(S2DQ_X86) || defined(_M_X64)
typedef unsigned s2dq_environment;
static void s2dq_enter(s2dq_environment *before)
{
    *before = _mm_getcsr();
    _mm_setcsr(0x1F80);
}
static void s2dq_leave(const s2dq_environment *before) { _mm_setcsr(*before); }
#else
typedef fenv_t s2dq_environment;
static void s2dq_enter(s2dq_environment *before)
{
    fegetenv(before);
    fesetenv(FE_DFL_ENV);
}
static void s2dq_leave(const s2dq_environment *before) { fesetenv(before); }
#endif

/* ------------------------------------------------------------------------------------------------------- loops */

/* Sums with these have no digits behind the point: nearest integers, half to even, of numbers below 2^22 and 2^51. */
#define S2DQ_WHOLE_FLOAT 12582912.0f
#define S2DQ_WHOLE_DOUBLE 6755399441055744.0

/* Without a branch that the compiler would keep. */
S2DQ_EVERYWHERE uint32_t s2dq_choose(int first, uint32_t one, uint32_t other)
{
    const uint32_t mask = (uint32_t)-first;
    return (one & mask) | (other & ~mask);
}

/* n elements. IN: one scale and zero point for all of them, or one for each (`each`, a constant).
 * The bounds are those of the result less the zero point, so that what is rounded fits the integer it is cast to.
 */
#define S2DQ_QUANTIZE(NAME, INTEGER, LOW, HIGH)                                                                   \
    S2DQ_EVERYWHERE void NAME(INTEGER *S2DQ_RESTRICT dst, const float *S2DQ_RESTRICT src, int64_t n,              \
                              const float *S2DQ_RESTRICT scale, const int32_t *S2DQ_RESTRICT zero, bool each)      \
    {                                                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                         \
            const int32_t z = zero[each ? i : 0];                                                                 \
            const float low = (float)(LOW - z), high = (float)(HIGH - z);                                         \
            float steps = src[i] / scale[each ? i : 0];                                                           \
            steps = steps == steps ? steps : 0.0f;                                                                \
            steps = steps > low ? steps : low;                                                                    \
            steps = steps < high ? steps : high;                                                                  \
            dst[i] = (INTEGER)((int32_t)((steps + S2DQ_WHOLE_FLOAT) - S2DQ_WHOLE_FLOAT) + z);                     \
        }                                                                                                         \
    }

/* The same from float64, in float64. */
#define S2DQ_QUANTIZE_DOUBLE(NAME, INTEGER, LOW, HIGH)                                                            \
    S2DQ_EVERYWHERE void NAME(INTEGER *S2DQ_RESTRICT dst, const double *S2DQ_RESTRICT src, int64_t n,             \
                              const float *S2DQ_RESTRICT scale, const int32_t *S2DQ_RESTRICT zero, bool each)      \
    {                                                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                         \
            const double z = (double)zero[each ? i : 0];                                                          \
            const double low = (double)(LOW) - z, high = (double)(HIGH) - z;                                      \
            double steps = src[i] / (double)scale[each ? i : 0];                                                  \
            steps = steps == steps ? steps : 0.0;                                                                 \
            steps = steps > low ? steps : low;                                                                    \
            steps = steps < high ? steps : high;                                                                  \
            dst[i] = (INTEGER)(int32_t)(((steps + S2DQ_WHOLE_DOUBLE) - S2DQ_WHOLE_DOUBLE) + z);                   \
        }                                                                                                         \
    }

/* From float32 to what float32 cannot hold: the ratio is one of float32, all that follows is exact. NaN is put right
 * at the end, for the compiler makes a branch of it elsewhere. */
S2DQ_EVERYWHERE void s2dq_f32_i32(int32_t *S2DQ_RESTRICT dst, const float *S2DQ_RESTRICT src, int64_t n,
                                  const float *S2DQ_RESTRICT scale, const int32_t *S2DQ_RESTRICT zero, bool each)
{
    for (int64_t i = 0; i < n; i++) {
        const double z = (double)zero[each ? i : 0];
        const double low = (double)INT32_MIN - z, high = (double)INT32_MAX - z;
        const float ratio = src[i] / scale[each ? i : 0];
        double steps = (double)ratio;
        steps = steps > low ? steps : low;
        steps = steps < high ? steps : high;
        const int32_t stored = (int32_t)(((steps + S2DQ_WHOLE_DOUBLE) - S2DQ_WHOLE_DOUBLE) + z);
        dst[i] = (int32_t)s2dq_choose(ratio == ratio, (uint32_t)stored, (uint32_t)zero[each ? i : 0]);
    }
}

#define S2DQ_DEQUANTIZE(NAME, INTEGER, DIFFERENCE)                                                                \
    S2DQ_EVERYWHERE void NAME(float *S2DQ_RESTRICT dst, const INTEGER *S2DQ_RESTRICT src, int64_t n,              \
                              const float *S2DQ_RESTRICT scale, const int32_t *S2DQ_RESTRICT zero, bool each)      \
    {                                                                                                             \
        for (int64_t i = 0; i < n; i++)                                                                           \
            dst[i] = (float)((DIFFERENCE)src[i] - (DIFFERENCE)zero[each ? i : 0]) * scale[each ? i : 0];          \
    }

S2DQ_QUANTIZE(s2dq_f32_i8, int8_t, INT8_MIN, INT8_MAX)
S2DQ_QUANTIZE(s2dq_f32_u8, uint8_t, 0, UINT8_MAX)
S2DQ_QUANTIZE(s2dq_f32_i16, int16_t, INT16_MIN, INT16_MAX)
S2DQ_QUANTIZE(s2dq_f32_u16, uint16_t, 0, UINT16_MAX)
S2DQ_QUANTIZE_DOUBLE(s2dq_f64_i8, int8_t, INT8_MIN, INT8_MAX)
S2DQ_QUANTIZE_DOUBLE(s2dq_f64_u8, uint8_t, 0, UINT8_MAX)
S2DQ_QUANTIZE_DOUBLE(s2dq_f64_i16, int16_t, INT16_MIN, INT16_MAX)
S2DQ_QUANTIZE_DOUBLE(s2dq_f64_u16, uint16_t, 0, UINT16_MAX)
S2DQ_QUANTIZE_DOUBLE(s2dq_f64_i32, int32_t, INT32_MIN, INT32_MAX)
S2DQ_DEQUANTIZE(s2dq_i8_f32, int8_t, int32_t)
S2DQ_DEQUANTIZE(s2dq_u8_f32, uint8_t, int32_t)
S2DQ_DEQUANTIZE(s2dq_i16_f32, int16_t, int32_t)
S2DQ_DEQUANTIZE(s2dq_u16_f32, uint16_t, int32_t)
S2DQ_DEQUANTIZE(s2dq_i32_f32, int32_t, double) /* which holds all 33 bits */

S2DQ_EVERYWHERE uint32_t s2dq_bits_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

S2DQ_EVERYWHERE float s2dq_float_of(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* In integers: not every processor has these conversions. Exact. */
S2DQ_EVERYWHERE void s2dq_f16_f32(float *S2DQ_RESTRICT dst, const uint16_t *S2DQ_RESTRICT src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t sign = (uint32_t)(src[i] & 0x8000) << 16, digits = src[i] & 0x7FFF;
        const uint32_t small = s2dq_bits_of((float)(int32_t)digits * 0x1p-24f);
        const uint32_t normal = (digits << 13) + (112u << 23) + ((digits >= 0x7C00) * (112u << 23)); /* or no number */
        dst[i] = s2dq_float_of(sign | s2dq_choose(digits < 0x0400, small, normal));
    }
}

/* Half to even; of what is not a number, the upper digits. */
S2DQ_EVERYWHERE void s2dq_f32_f16(uint16_t *S2DQ_RESTRICT dst, const float *S2DQ_RESTRICT src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = s2dq_bits_of(src[i]), sign = bits >> 16 & 0x8000, digits = bits & 0x7FFFFFFF;
        const uint32_t normal = (digits - (112u << 23) + 0xFFF + (digits >> 13 & 1)) >> 13;
        const uint32_t small = s2dq_bits_of(s2dq_float_of(digits) + 0.5f) - 0x3F000000; /* 0.5 ends where they end */
        const uint32_t finite = s2dq_choose(digits < 113u << 23, small, normal);
        const uint32_t number = s2dq_choose(digits >= 143u << 23, 0x7C00, finite);
        const uint32_t none = 0x7C00 | (digits >> 13 & 0x3FF) | ((digits >> 13 & 0x3FF) == 0);
        dst[i] = (uint16_t)(sign | s2dq_choose(digits > 255u << 23, none, number));
    }
}

S2DQ_EVERYWHERE void s2dq_f32_f64(double *S2DQ_RESTRICT dst, const float *S2DQ_RESTRICT src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) dst[i] = (double)src[i];
}

/* ------------------------------------------------------------------------------------------- instruction sets */

enum { S2DQ_I8, S2DQ_U8, S2DQ_I16, S2DQ_U16, S2DQ_I32, S2DQ_F16, S2DQ_F32, S2DQ_F64, S2DQ_NUMBERS };

static int64_t s2dq_size_of(int number)
{
    static const int8_t sizes[S2DQ_NUMBERS] = {1, 1, 2, 2, 4, 2, 4, 8};
    return sizes[number];
}

typedef void (*s2dq_scaler)(void *dst, const void *src, int64_t n, const float *scale, const int32_t *zero);
typedef void (*s2dq_caster)(void *dst, const void *src, int64_t n);

typedef struct {
    /* By the type of the integers; the last index tells one pair of parameters for all from one for each. */
    s2dq_scaler from_float[5][2], from_double[5][2], to_float[5][2];
    s2dq_caster widen, narrow, to_double; /* float16 to float32 and back, float32 to float64 */
} s2dq_converters;

/* One loop for one instruction set, twice. */
#define S2DQ_SCALER(ISA, TARGET, NAME)                                                                            \
    TARGET static void NAME##_all_##ISA(void *dst, const void *src, int64_t n, const float *scale,                \
                                        const int32_t *zero)                                                      \
    {                                                                                                             \
        NAME(dst, src, n, scale, zero, false);                                                                    \
    }                                                                                                             \
    TARGET static void NAME##_each_##ISA(void *dst, const void *src, int64_t n, const float *scale,               \
                                         const int32_t *zero)                                                     \
    {                                                                                                             \
        NAME(dst, src, n, scale, zero, true);                                                                     \
    }

#define S2DQ_CASTER(ISA, TARGET, NAME) \
    TARGET static void NAME##_##ISA(void *dst, const void *src, int64_t n) { NAME(dst, src, n); }

#define S2DQ_BOTH(ISA, NAME) {NAME##_all_##ISA, NAME##_each_##ISA}

#define S2DQ_CONVERTERS(ISA, TARGET)                                                                              \
    S2DQ_SCALER(ISA, TARGET, s2dq_f32_i8)                                                                         \
    S2DQ_SCALER(ISA, TARGET, s2dq_f32_u8)                                                                         \
    S2DQ_SCALER(ISA, TARGET, s2dq_f32_i16)                                                                        \
    S2DQ_SCALER(ISA, TARGET, s2dq_f32_u16)                                                                        \
    S2DQ_SCALER(ISA, TARGET, s2dq_f32_i32)                                                                        \
    S2DQ_SCALER(ISA, TARGET, s2dq_f64_i8)                                                                         \
    S2DQ_SCALER(ISA, TARGET, s2dq_f64_u8)                                                                         \
    S2DQ_SCALER(ISA, TARGET, s2dq_f64_i16)                                                                        \
    S2DQ_SCALER(ISA, TARGET, s2dq_f64_u16)                                                                        \
    S2DQ_SCALER(ISA, TARGET, s2dq_f64_i32)                                                                        \
    S2DQ_SCALER(ISA, TARGET, s2dq_i8_f32)                                                                         \
    S2DQ_SCALER(ISA, TARGET, s2dq_u8_f32)                                                                         \
    S2DQ_SCALER(ISA, TARGET, s2dq_i16_f32)                                                                        \
    S2DQ_SCALER(ISA, TARGET, s2dq_u16_f32)                                                                        \
    S2DQ_SCALER(ISA, TARGET, s2dq_i32_f32)                                                                        \
    S2DQ_CASTER(ISA, TARGET, s2dq_f16_f32)                                                                        \
    S2DQ_CASTER(ISA, TARGET, s2dq_f32_f16)                                                                        \
    S2DQ_CASTER(ISA, TARGET, s2dq_f32_f64)                                                                        \
    static const s2dq_converters s2dq_converters_##ISA = {                                                        \
        {S2DQ_BOTH(ISA, s2dq_f32_i8), S2DQ_BOTH(ISA, s2dq_f32_u8), S2DQ_BOTH(ISA, s2dq_f32_i16),                  \
         S2DQ_BOTH(ISA, s2dq_f32_u16), S2DQ_BOTH(ISA, s2dq_f32_i32)},                                             \
        {S2DQ_BOTH(ISA, s2dq_f64_i8), S2DQ_BOTH(ISA, s2dq_f64_u8), S2DQ_BOTH(ISA, s2dq_f64_i16),                  \
         S2DQ_BOTH(ISA, s2dq_f64_u16), S2DQ_BOTH(ISA, s2dq_f64_i32)},                                             \
        {S2DQ_BOTH(ISA, s2dq_i8_f32), S2DQ_BOTH(ISA, s2dq_u8_f32), S2DQ_BOTH(ISA, s2dq_i16_f32),                  \
         S2DQ_BOTH(ISA, s2dq_u16_f32), S2DQ_BOTH(ISA, s2dq_i32_f32)},                                             \
        s2dq_f16_f32_##ISA, s2dq_f32_f16_##ISA, s2dq_f32_f64_##ISA};

S2DQ_CONVERTERS(portable, )
#if defined(S2DQ_X86)
S2DQ_CONVERTERS(avx2, __attribute__((target("avx2"))))
S2DQ_CONVERTERS(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx2,prefer-vector-width=512"))))
#endif

static const s2dq_converters *s2dq_converters_of(int isa)
{
#if defined(S2DQ_X86)
    if (isa == S2DQ_ISA_AVX512VBMI) return &s2dq_converters_avx512;
    if (isa == S2DQ_ISA_AVX2) return &s2dq_converters_avx2;
#else
    (void)isa;
#endif
    return &s2dq_converters_portable;
}

/* ------------------------------------------------------------------------------------------------- conversions */

enum { S2DQ_VIEW_AXES = 64, S2DQ_CONVERT_BLOCK = 2048 };

/* Parameters of an element: number (element / run % groups) * period + element % run % period of `scale`, `zero`. */
typedef struct {
    int64_t groups, run, period;
} s2dq_along;

typedef struct {
    const float *scale; /* NULL: this side holds real numbers */
    const int32_t *zero;
} s2dq_parameters;

typedef struct {
    const uint8_t *x;
    uint8_t *y;
    int from, to;                     /* types of X and Y, of the enumeration above */
    bool x_swapped, y_swapped;        /* whether bytes are in the other order */
    bool x_direct, y_direct;          /* whether elements lie one behind the other, aligned and in order */
    int axes;                         /* of X, outermost first */
    int64_t extent[S2DQ_VIEW_AXES], step[S2DQ_VIEW_AXES];
    s2dq_parameters source, target;
    s2dq_along along;
} s2dq_conversion;

static void s2dq_swap(uint8_t *bytes, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++, bytes += size)
        for (int64_t k = 0; k < size / 2; k++) {
            const uint8_t byte = bytes[k];
            bytes[k] = bytes[size - 1 - k];
            bytes[size - 1 - k] = byte;
        }
}

#define S2DQ_GATHER(SIZE) \
    for (int64_t k = 0; k < count; k++) memcpy(dst + k * (SIZE), from + k * step, (SIZE));

/* Elements `first` to `first + n` of X, in C order, one behind the other. */
static void s2dq_gather(uint8_t *S2DQ_RESTRICT dst, const s2dq_conversion *c, int64_t first, int64_t n)
{
    const int64_t size = s2dq_size_of(c->from);
    const int inner = c->axes - 1;
    const int64_t row = inner < 0 ? 1 : c->extent[inner], step = inner < 0 ? 0 : c->step[inner];
    int64_t index = inner < 0 ? 0 : first % row, outer = inner < 0 ? 0 : first / row;
    while (n > 0) {
        const int64_t count = s2dq_min(row - index, n);
        const uint8_t *from = c->x + index * step;
        int64_t rest = outer;
        for (int a = inner - 1; a >= 0; a--) {
            from += rest % c->extent[a] * c->step[a];
            rest /= c->extent[a];
        }
        switch (size) {
        case 1: S2DQ_GATHER(1) break;
        case 2: S2DQ_GATHER(2) break;
        case 4: S2DQ_GATHER(4) break;
        default: S2DQ_GATHER(8)
        }
        if (c->x_swapped) s2dq_swap(dst, count, size);
        dst += count * size;
        n -= count;
        index = 0;
        outer++;
    }
}

/* n elements from `first` on, each piece with the parameters it has. */
static void s2dq_scale(const s2dq_scaler *scaler, uint8_t *dst, int64_t dst_size, const uint8_t *src, int64_t src_size,
                       const s2dq_parameters *p, const s2dq_along *along, int64_t first, int64_t n)
{
    while (n > 0) {
        const int64_t inside = first % along->run, group = first / along->run % along->groups;
        const int64_t at = inside % along->period;
        int64_t count = along->run - inside;
        if (along->period > 1) count = s2dq_min(count, along->period - at);
        count = s2dq_min(count, n);
        const int64_t k = group * along->period + at;
        scaler[along->period > 1](dst, src, count, p->scale + k, p->zero + k);
        dst += count * dst_size;
        src += count * src_size;
        first += count;
        n -= count;
    }
}

/* Elements `first` to `last`, on whichever thread. Blocks of them go through buffers in the nearest cache where they
 * cannot be read or written in place. */
static void s2dq_convert(const s2dq_conversion *c, const s2dq_converters *with, int64_t first, int64_t last)
{
    float numbers[S2DQ_CONVERT_BLOCK];
    double read[S2DQ_CONVERT_BLOCK], written[S2DQ_CONVERT_BLOCK]; /* of any type */
    const int64_t x_size = s2dq_size_of(c->from), y_size = s2dq_size_of(c->to);
    s2dq_environment before;
    s2dq_enter(&before);
    for (int64_t at = first; at < last; at += S2DQ_CONVERT_BLOCK) {
        const int64_t n = s2dq_min(last - at, S2DQ_CONVERT_BLOCK);
        const uint8_t *src = c->x_direct ? c->x + at * x_size : (const uint8_t *)read;
        uint8_t *dst = c->y_direct ? c->y + at * y_size : (uint8_t *)written;
        int from = c->from;
        if (!c->x_direct) s2dq_gather((uint8_t *)read, c, at, n);
        if (c->source.scale) {
            uint8_t *to = c->to == S2DQ_F32 ? dst : (uint8_t *)numbers;
            s2dq_scale(with->to_float[from], to, sizeof(float), src, x_size, &c->source, &c->along, at, n);
            src = (const uint8_t *)numbers;
            from = S2DQ_F32;
        } else if (from == S2DQ_F16) {
            with->widen(numbers, src, n);
            src = (const uint8_t *)numbers;
            from = S2DQ_F32;
        }
        if (c->target.scale) {
            const s2dq_scaler *scaler = from == S2DQ_F64 ? with->from_double[c->to] : with->from_float[c->to];
            s2dq_scale(scaler, dst, y_size, src, s2dq_size_of(from), &c->target, &c->along, at, n);
        } else if (c->to == S2DQ_F16) {
            with->narrow(dst, src, n);
        } else if (c->to == S2DQ_F64) {
            with->to_double(dst, src, n);
        }
        if (!c->y_direct) {
            if (c->y_swapped) s2dq_swap(dst, n, y_size);
            memcpy(c->y + at * y_size, dst, (size_t)(n * y_size));
        }
    }
    s2dq_leave(&before);
}

#endif
