/* Random conversions and frames against plain loops, every array between inaccessible pages.
 *
 *     cc -O2 -ffp-contract=off -I s2dq/_micro tests/numbers.c -o numbers -lm && ./numbers [ROUNDS [SEED [ISA]]]
 *
 * Checks quantize, dequantize and both in a row, the frames of Preprocessor on their way through a scratch row, and all
 * float16 numbers, on every instruction set that runs; whatever rounds, flushes and traps in the calling thread.
 */
#include "drawn.h"

#include <fenv.h>
#include <math.h>

#include "convert.h"
#include "stage.h"

enum { ARENA = 1 << 20, POISON = 0xA5, BESIDE = 4096, TURNED = 5, PARAMETERS = 1 << 12 };

static const char *const types[S2DQ_NUMBERS] = {"int8", "uint8", "int16", "uint16", "int32", "float16", "float32",
                                                "float64"};
static const double least[] = {-128, 0, -32768, 0, -2147483648.0}, most[] = {127, 255, 32767, 65535, 2147483647.0};

/* ------------------------------------------------------------------------------------------------- plain numbers */

/* What a float16 stands for: NaN for all that are none. */
static double of_half(unsigned half)
{
    const int exponent = (int)(half >> 10 & 31), digits = (int)(half & 0x3FF);
    const double size = exponent == 31 ? (digits ? NAN : INFINITY)
                                       : ldexp(exponent ? 1024 + digits : digits, (exponent ? exponent : 1) - 25);
    return half & 0x8000 ? -size : size;
}

/* The nearest float16, half to even; of NaN sign and upper digits, some of which are set. */
static unsigned half_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, 4);
    const unsigned sign = bits >> 31 ? 0x8000 : 0;
    const double size = fabs((double)number);
    if (number != number) return sign | 0x7C00 | ((bits >> 13 & 0x3FF) ? bits >> 13 & 0x3FF : 1);
    if (size >= 65520) return sign | 0x7C00;
    int exponent = -14;
    while (exponent < 15 && size >= ldexp(1, exponent + 1)) exponent++;
    const int steps = (int)nearbyint(ldexp(size, 10 - exponent)); /* 2048 of them carry into the exponent */
    return sign | (unsigned)((exponent + 14) * 1024 + steps);
}

typedef union {
    uint8_t bytes[8];
    int8_t i8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    float f32;
    double f64;
} element;

static element element_of(const uint8_t *at, int type, int swapped)
{
    const int64_t size = s2dq_size_of(type);
    element value = {{0}};
    for (int64_t k = 0; k < size; k++) value.bytes[swapped ? size - 1 - k : k] = at[k];
    return value;
}

static int64_t integer_of(element value, int type)
{
    switch (type) {
    case S2DQ_I8: return value.i8;
    case S2DQ_U8: return value.bytes[0];
    case S2DQ_I16: return value.i16;
    case S2DQ_U16: return value.u16;
    default: return value.i32;
    }
}

static double real_of(element value, int type)
{
    return type == S2DQ_F16 ? of_half(value.u16) : type == S2DQ_F32 ? (double)value.f32 : value.f64;
}

static int64_t stored_of(double ratio, int64_t zero, int type)
{
    const double sum = nearbyint(ratio) + (double)zero;
    if (ratio != ratio) return zero;
    return (int64_t)(sum < least[type] ? least[type] : sum > most[type] ? most[type] : sum);
}

static void write_element(uint8_t *at, int type, int swapped, int64_t integer, double real)
{
    const int64_t size = s2dq_size_of(type);
    element value = {{0}};
    switch (type) {
    case S2DQ_I8: case S2DQ_U8: value.bytes[0] = (uint8_t)integer; break;
    case S2DQ_I16: case S2DQ_U16: value.u16 = (uint16_t)integer; break;
    case S2DQ_I32: value.i32 = (int32_t)integer; break;
    case S2DQ_F16: value.u16 = (uint16_t)half_of((float)real); break;
    case S2DQ_F32: value.f32 = (float)real; break;
    default: value.f64 = real;
    }
    for (int64_t k = 0; k < size; k++) at[k] = value.bytes[swapped ? size - 1 - k : k];
}

/* ------------------------------------------------------------------------------------------------- random numbers */

static float draw_scale(void)
{
    static const float ends[] = {1e-45f, 1e-38f, 3e-5f, 0.1f, 1e10f, 3e38f};
    if (one_in(3)) return ldexpf(1, (int)between(-12, 3));
    return one_in(4) ? ends[between(0, 5)] : (float)between(1, 1 << 20) / 1e7f;
}

static int32_t draw_zero(int type)
{
    const int64_t low = (int64_t)least[type], high = (int64_t)most[type];
    if (one_in(3)) return (int32_t)(one_in(2) ? low : high);
    return (int32_t)(one_in(3) ? 0 : between(low, high));
}

/* A number that tells roundings, ends and signs apart, in steps of a scale. */
static double draw_real(float scale)
{
    static const double ends[] = {0, 1e-45, 1e-40, 65504, 65520, 3e38, 1e300, INFINITY, NAN};
    const int64_t wide = 1LL << between(1, 33);
    double number = (double)between(-wide, wide) / 2 * (double)scale;
    if (one_in(4)) number = ends[between(0, 8)];
    if (one_in(4)) number = nextafter(number, one_in(2) ? 1e308 : 0);
    return one_in(2) ? -number : number;
}

static void draw_elements(uint8_t *at, int64_t size, int type, float scale)
{
    const int64_t width = s2dq_size_of(type);
    draw_memory(at, size);
    for (int64_t k = 0; k + width <= size && type >= S2DQ_F16; k += width)
        if (!one_in(4)) write_element(at + k, type, 0, 0, draw_real(scale));
}

/* What a thread may have done to its floating point: rounding, subnormals, traps and flags. */
static int draw_environment(void)
{
#if defined(__SSE__)
    const int masks = one_in(3) ? (int)between(0, 63) : 63;
    return (int)(between(0, 3) << 13 | between(0, 1) << 15 | masks << 7 | between(0, 1) << 6 | between(0, 63));
#else
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    return modes[between(0, 3)];
#endif
}

static void set_environment(int environment)
{
#if defined(__SSE__)
    _mm_setcsr((unsigned)environment);
#else
    fesetround(environment);
#endif
}

static int get_environment(void)
{
#if defined(__SSE__)
    return (int)_mm_getcsr();
#else
    return fegetround();
#endif
}

/* ---------------------------------------------------------------------------------------------------- conversions */

typedef struct {
    s2dq_conversion c;
    int64_t total, first, last;
} conversion;

static uint8_t *x_arena, *y_arena, *scale_arena, *zero_arena, expected[ARENA];
static uint8_t *more_scales, *more_zeros;

static void draw_parameters(s2dq_parameters *p, uint8_t *scales, uint8_t *zeros, int64_t count, int type)
{
    float *scale = (float *)(scales + PARAMETERS * 4) - count; /* up to the page behind */
    int32_t *zero = (int32_t *)(zeros + PARAMETERS * 4) - count;
    for (int64_t k = 0; k < count; k++) scale[k] = draw_scale(), zero[k] = draw_zero(type);
    *p = (s2dq_parameters){scale, zero};
}

static void draw_conversion(conversion *call)
{
    s2dq_conversion *c = &call->c;
    int64_t steps[TURNED + 1], low = 0, high, order[TURNED + 1];
    memset(c, 0, sizeof *c);
    c->from = (int)between(S2DQ_I8, S2DQ_F64);
    c->to = (int)between(S2DQ_I8, c->from >= S2DQ_F16 ? S2DQ_I32 : S2DQ_F64);
    const int64_t x_size = s2dq_size_of(c->from), y_size = s2dq_size_of(c->to);
    c->along.period = one_in(3) ? 1 : between(1, one_in(3) ? 300 : 9);
    c->along.groups = one_in(2) ? 1 : between(1, 9);
    c->along.run = one_in(3) ? between(1, 5000) : between(1, 40);
    const int64_t count = c->along.groups * c->along.period;
    if (c->from < S2DQ_F16) draw_parameters(&c->source, scale_arena, zero_arena, count, c->from);
    if (c->to < S2DQ_F16) draw_parameters(&c->target, more_scales, more_zeros, count, c->to);

    c->axes = (int)between(0, TURNED);
    call->total = 1;
    for (int k = 0; k < c->axes; k++) {
        c->extent[k] = between(1, one_in(4) ? 3000 : 9);
        if (call->total * c->extent[k] > 12000) c->extent[k] = 1;
        call->total *= c->extent[k], order[k] = k;
    }
    c->x_direct = one_in(4), c->y_direct = one_in(2);
    c->x_swapped = !c->x_direct && one_in(3), c->y_swapped = !c->y_direct && one_in(3);
    for (int k = c->axes - 1; k > 0 && !c->x_direct; k--) { /* axes lie in memory in any order */
        const int64_t other = between(0, k), kept = order[k];
        order[k] = order[other], order[other] = kept;
    }
    high = x_size;
    for (int k = c->axes - 1; k >= 0; k--) {
        const int64_t at = order[k];
        steps[at] = high;
        if (!c->x_direct && one_in(4)) steps[at] += one_in(2) ? x_size : between(1, 7);
        high = steps[at] * (c->extent[at] - 1) + high;
    }
    for (int k = 0; k < c->axes; k++) {
        c->step[k] = c->x_direct || one_in(2) ? steps[k] : -steps[k];
        if (!c->x_direct && one_in(8)) c->step[k] = 0;
        if (c->step[k] < 0) low += steps[k] * (c->extent[k] - 1);
    }
    call->first = between(0, one_in(2) ? 0 : call->total);
    call->last = one_in(2) ? call->total : between(call->first, call->total);
    if (high > ARENA) high = ARENA + 1; /* is drawn again */
    const int64_t size = call->total * y_size;
    uint8_t *x = x_arena + (one_in(2) ? ARENA - high : 0);
    c->x = (c->x_direct && (uintptr_t)x % (uintptr_t)x_size ? x_arena : x) + low;
    c->y = y_arena + (one_in(2) ? ARENA - size : c->y_direct ? 0 : between(0, 9));
    if (high > ARENA || size + 16 > ARENA) {
        draw_conversion(call);
        return;
    }
    draw_elements((uint8_t *)c->x - low, high, c->from, c->target.scale ? c->target.scale[0] : 1);
}

/* Element `at` of the result, by the definition. */
static void convert_plainly(uint8_t *y, const conversion *call, int64_t at)
{
    const s2dq_conversion *c = &call->c;
    const uint8_t *x = c->x;
    int64_t rest = at;
    for (int k = c->axes - 1; k >= 0; k--) x += rest % c->extent[k] * c->step[k], rest /= c->extent[k];
    const int64_t place = at / c->along.run % c->along.groups * c->along.period + at % c->along.run % c->along.period;
    const element value = element_of(x, c->from, c->x_swapped);
    double real;
    if (c->source.scale) {
        const volatile float steps = (float)(integer_of(value, c->from) - c->source.zero[place]);
        const volatile float product = steps * c->source.scale[place];
        real = product;
    } else {
        real = real_of(value, c->from);
    }
    int64_t stored = 0;
    if (c->target.scale) {
        const float scale = c->target.scale[place];
        const volatile float single = (float)real / scale;
        const volatile double twice = real / (double)scale;
        stored = stored_of(c->from == S2DQ_F64 ? twice : (double)single, c->target.zero[place], c->to);
    }
    write_element(y + at * s2dq_size_of(c->to), c->to, c->y_swapped, stored, real);
}

static __attribute__((noinline)) int convert_in(int environment, const conversion *call, int isa)
{
    set_environment(environment);
    s2dq_convert(&call->c, s2dq_converters_of(isa), call->first, call->last);
    const int after = get_environment();
    fesetenv(FE_DFL_ENV);
    return after == environment;
}

static int conversion_holds(const conversion *call, int isa, int environment)
{
    const int64_t at = call->c.y - y_arena, size = call->total * s2dq_size_of(call->c.to);
    const int64_t low = at > BESIDE ? at - BESIDE : 0;
    const int64_t high = at + size < ARENA - BESIDE ? at + size + BESIDE : ARENA;
    memset(expected + low, POISON, (size_t)(high - low));
    memset(y_arena + low, POISON, (size_t)(high - low));
    for (int64_t k = call->first; k < call->last; k++) convert_plainly(expected + at, call, k);
    const int kept = convert_in(environment, call, isa);
    return kept && !memcmp(y_arena + low, expected + low, (size_t)(high - low));
}

static void say_conversion(const conversion *call)
{
    const s2dq_conversion *c = &call->c;
    printf("%s to %s; groups, run, period: %d, %d, %d; elements %d to %d; extent, step:", types[c->from], types[c->to],
           (int)c->along.groups, (int)c->along.run, (int)c->along.period, (int)call->first, (int)call->last);
    for (int k = 0; k < c->axes; k++) printf(" (%d, %d)", (int)c->extent[k], (int)c->step[k]);
    printf("; %s%s%s%s\n", c->x_direct ? " x direct" : "", c->y_direct ? " y direct" : "",
           c->x_swapped ? " x swapped" : "", c->y_swapped ? " y swapped" : "");
}

/* --------------------------------------------------------------------------------------------------------- frames */

typedef struct {
    s2dq_stage stage;
    s2dq_axis axes[3];
    int64_t first;
    uint8_t *dst;
    const uint8_t *src;
} frame;

static uint8_t table[256 * 4 * 2048];

/* Bytes from the first of the result to the last. */
static int64_t frame_size(const frame *call)
{
    int64_t size = s2dq_size_of(call->stage.to);
    for (int k = 0; k < 3; k++) size += call->axes[k].dst * (call->axes[k].extent - 1);
    return size;
}

static void draw_frame(frame *call)
{
    static const int results[] = {S2DQ_I8, S2DQ_U8, S2DQ_F16, S2DQ_F32};
    s2dq_stage *stage = &call->stage;
    s2dq_axis *rows = &call->axes[0], *across = &call->axes[1], *channels = &call->axes[2];
    stage->from = one_in(2) ? S2DQ_U8 : S2DQ_F32;
    stage->to = results[stage->from == S2DQ_U8 ? between(2, 3) : between(0, 3)];
    channels->extent = one_in(4) ? between(500, 1400) : between(1, one_in(2) ? 4 : 70);
    across->extent = channels->extent > 70 ? between(1, 3) : between(1, one_in(3) ? 400 : 40);
    rows->extent = between(1, across->extent * channels->extent > 4000 ? 2 : 4);
    call->first = one_in(2) ? 0 : between(1, 500);
    stage->constants = one_in(2) ? 1 : call->first + channels->extent;
    stage->rescale = one_in(2) ? 1 : draw_scale();
    stage->scale = draw_scale();
    stage->zero = stage->to < S2DQ_F16 ? draw_zero(stage->to) : 0;
    float *mean = (float *)(scale_arena + PARAMETERS * 4) - stage->constants;
    float *std = (float *)(zero_arena + PARAMETERS * 4) - stage->constants;
    const int plain = one_in(3); /* but for the sign of a zero, or one deviation */
    for (int64_t k = 0; k < stage->constants; k++) {
        mean[k] = plain ? (one_in(200) ? -0.0f : (float)one_in(200)) : one_in(4) ? 0 : (float)between(-1000, 1000) / 7;
        std[k] = plain && !one_in(200) ? 1 : (one_in(4) ? -1.0f : 1.0f) * draw_scale();
    }
    stage->mean = stage->from == S2DQ_U8 ? NULL : mean; /* bytes have tables */
    stage->std = stage->from == S2DQ_U8 ? NULL : std;
    const int64_t from = s2dq_size_of(stage->from), to = s2dq_size_of(stage->to);
    stage->table = table + sizeof table - 256 * to * stage->constants; /* sanitizers see its end */
    if (one_in(2)) { /* channels one behind the other, or pixels */
        channels->dst = to, across->dst = to * (channels->extent + (one_in(4) ? between(1, 3) : 0));
        rows->dst = across->dst * across->extent + to * between(0, 3);
    } else {
        across->dst = to, rows->dst = to * (across->extent + between(0, 3));
        channels->dst = rows->dst * rows->extent + to * between(0, 3);
    }
    const int planes = one_in(3);
    const int64_t gap = one_in(3) ? between(1, 9) : 0;
    channels->src = planes ? from * across->extent + gap : from + gap;
    across->src = planes ? from : channels->src * channels->extent + (one_in(3) ? between(1, 9) : 0);
    rows->src = planes ? channels->src * channels->extent : across->src * across->extent;
    if (one_in(4)) channels->src = -channels->src;
    if (one_in(4)) across->src = -across->src;
    int64_t low = 0, high = from;
    for (int k = 0; k < 3; k++) {
        const int64_t far = call->axes[k].src * (call->axes[k].extent - 1);
        if (far < 0) low -= far;
        else high += far;
    }
    const int64_t size = frame_size(call);
    call->src = x_arena + (one_in(2) ? ARENA - high : low);
    call->dst = y_arena + (one_in(2) ? ARENA - size : between(0, 9));
    if (low + high > ARENA || size + 16 > ARENA) {
        draw_frame(call);
        return;
    }
    draw_elements((uint8_t *)call->src - low, low + high, stage->from, stage->scale);
}

static void stage_plainly(uint8_t *dst, const frame *call)
{
    const s2dq_stage *stage = &call->stage;
    for (int64_t h = 0; h < call->axes[0].extent; h++)
        for (int64_t w = 0; w < call->axes[1].extent; w++)
            for (int64_t c = 0; c < call->axes[2].extent; c++) {
                const uint8_t *x = call->src + h * call->axes[0].src + w * call->axes[1].src + c * call->axes[2].src;
                uint8_t *y = dst + h * call->axes[0].dst + w * call->axes[1].dst + c * call->axes[2].dst;
                const int64_t k = stage->constants == 1 ? 0 : call->first + c, to = s2dq_size_of(stage->to);
                if (stage->from == S2DQ_U8) {
                    memcpy(y, stage->table + (256 * k + *x) * to, (size_t)to);
                    continue;
                }
                float number;
                memcpy(&number, x, 4);
                const volatile float rescaled = number * stage->rescale, centred = rescaled - stage->mean[k];
                const volatile float normalised = centred / stage->std[k], ratio = normalised / stage->scale;
                const int64_t stored = stage->to < S2DQ_F16 ? stored_of(ratio, stage->zero, stage->to) : 0;
                write_element(y, stage->to, 0, stored, normalised);
            }
}

static __attribute__((noinline)) int stage_in(int environment, const frame *call, int isa)
{
    set_environment(environment);
    s2dq_stage_rows(call->dst, call->src, call->axes, call->first, &call->stage, s2dq_converters_of(isa), isa);
    const int after = get_environment();
    fesetenv(FE_DFL_ENV);
    return after == environment;
}

/* NaN is like NaN: which of two payloads a sum keeps is the processor's. */
static int same_numbers(const uint8_t *one, const uint8_t *other, int type, int64_t n)
{
    const int64_t size = s2dq_size_of(type);
    for (int64_t k = 0; k < n; k++, one += size, other += size) {
        if (!memcmp(one, other, (size_t)size)) continue;
        const double x = real_of(element_of(one, type, 0), type), y = real_of(element_of(other, type, 0), type);
        if (type < S2DQ_F16 || x == x || y == y) return 0;
    }
    return 1;
}

static int frame_holds(const frame *call, int isa, int environment)
{
    const s2dq_axis rows = call->axes[0], across = call->axes[1], channels = call->axes[2];
    const int64_t at = call->dst - y_arena, size = frame_size(call), each = s2dq_size_of(call->stage.to);
    const int64_t low = at > BESIDE ? at - BESIDE : 0;
    const int64_t high = at + size < ARENA - BESIDE ? at + size + BESIDE : ARENA;
    memset(expected + low, POISON, (size_t)(high - low));
    memset(y_arena + low, POISON, (size_t)(high - low));
    stage_plainly(expected + at, call);
    if (!stage_in(environment, call, isa)) return 0;
    for (int64_t h = 0; h < rows.extent; h++)
        for (int64_t w = 0; w < across.extent; w++)
            for (int64_t c = 0; c < channels.extent; c++) {
                const int64_t place = at + h * rows.dst + w * across.dst + c * channels.dst;
                if (!same_numbers(y_arena + place, expected + place, call->stage.to, 1)) return 0;
                memcpy(expected + place, y_arena + place, (size_t)each); /* equal, but for what NaN it is */
            }
    if (memcmp(y_arena + low, expected + low, (size_t)(high - low))) return 0; /* what lies beside */
    return 1;
}

static void say_frame(const frame *call)
{
    printf("a frame of %s to %s; %d constants, the first of them %d; extent, src, dst:", types[call->stage.from],
           types[call->stage.to], (int)call->stage.constants, (int)call->first);
    for (int k = 0; k < 3; k++)
        printf(" (%d, %d, %d)", (int)call->axes[k].extent, (int)call->axes[k].src, (int)call->axes[k].dst);
    puts("");
}

/* --------------------------------------------------------------------------------------------------------- halves */

/* Every float16, and of each the numbers about it that round to another. */
static int halves_hold(const s2dq_converters *converters)
{
    for (unsigned half = 0; half < 65536; half++) {
        const uint16_t stored = (uint16_t)half;
        float wide;
        converters->widen(&wide, &stored, 1);
        const double real = of_half(half);
        uint32_t bits;
        memcpy(&bits, &wide, 4);
        if (real == real ? (double)wide != real || bits >> 31 != half >> 15
                         : bits != ((half & 0x8000u) << 16 | 0x7F800000u | (half & 0x3FFu) << 13)) {
            printf("float16 %04x becomes float32 %08x\n", half, (unsigned)bits);
            return 0;
        }
        for (int k = -2; k <= 2; k++)
            for (int tie = 0; tie < 2; tie++) {
                const uint32_t near = bits + (uint32_t)k + (tie ? 0x1000u : 0u);
                float number;
                uint16_t narrow;
                memcpy(&number, &near, 4);
                converters->narrow(&narrow, &number, 1);
                if (narrow != half_of(number)) {
                    printf("float32 %08x becomes float16 %04x\n", (unsigned)near, (unsigned)narrow);
                    return 0;
                }
            }
    }
    for (int k = 0; k < 200000; k++) {
        const uint32_t bits = (uint32_t)(draw() >> 32);
        float number;
        uint16_t narrow;
        memcpy(&number, &bits, 4);
        if (one_in(2)) number = (float)ldexp((double)between(1, 4096), (int)between(-40, -20)); /* subnormal ties */
        converters->narrow(&narrow, &number, 1);
        if (narrow != half_of(number)) {
            printf("float32 %a becomes float16 %04x\n", (double)number, (unsigned)narrow);
            return 0;
        }
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------- all */

int main(int argc, char **argv)
{
    const long rounds = argc > 1 ? atol(argv[1]) : 20000, seed = argc > 2 ? atol(argv[2]) : 1;
    const char *const only = argc > 3 && strcmp(argv[3], "all") ? argv[3] : NULL;
    int isas[S2DQ_ISA_COUNT], count = 0;
    conversion converted;
    frame staged;
    const s2dq_converters *const mine[S2DQ_ISA_COUNT] = {
        &s2dq_converters_portable, &s2dq_converters_portable,
#if defined(S2DQ_X86)
        &s2dq_converters_avx2, &s2dq_converters_avx512,
#endif
    };
    x_arena = make_arena(ARENA), y_arena = make_arena(ARENA);
    scale_arena = make_arena(PARAMETERS * 4), zero_arena = make_arena(PARAMETERS * 4);
    more_scales = make_arena(PARAMETERS * 4), more_zeros = make_arena(PARAMETERS * 4);
    for (int isa = 0; isa < S2DQ_ISA_COUNT; isa++) {
        if (!s2dq_isa_runs(isa) || (only && strcmp(only, s2dq_isa_name(isa)))) continue;
        isas[count++] = isa;
        fprintf(stderr, "numbers: %s\n", s2dq_isa_name(isa));
    }
    if (!count) return 2;
    sow(seed);
    draw_memory(table, sizeof table);
    for (int k = 0; k < count; k++) {
        if (s2dq_converters_of(isas[k]) != mine[isas[k]]) return printf("loops of another instruction set\n"), 1;
        if (!halves_hold(s2dq_converters_of(isas[k]))) return 1;
    }
    for (long k = 0; k < rounds; k++) {
        draw_conversion(&converted);
        for (int i = 0; i < count; i++)
            if (!conversion_holds(&converted, isas[i], draw_environment())) {
                printf("numbers: wrong: seed %ld, round %ld, %s, ", seed, k, s2dq_isa_name(isas[i]));
                say_conversion(&converted);
                return 1;
            }
        if (!one_in(3)) continue;
        draw_frame(&staged);
        for (int i = 0; i < count; i++)
            if (!frame_holds(&staged, isas[i], draw_environment())) {
                printf("numbers: wrong: seed %ld, round %ld, %s, ", seed, k, s2dq_isa_name(isas[i]));
                say_frame(&staged);
                return 1;
            }
    }
    fprintf(stderr, "numbers: %ld rounds\n", rounds);
    return 0;
}
