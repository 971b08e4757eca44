/* What the driver hands to the micro-kernels: one loop of a box, steps in bytes; and what every header needs. */
#ifndef S2DQ_AXIS_H
#define S2DQ_AXIS_H

#include <stdint.h>

#if defined(_MSC_VER)
#define S2DQ_RESTRICT __restrict
#else
#define S2DQ_RESTRICT restrict
#endif

typedef struct {
    int64_t extent, src, dst, tab;
} s2dq_axis;

#endif
