/* What the driver hands to the micro-kernels: one loop of a box, steps in bytes. */
#ifndef S2DQ_AXIS_H
#define S2DQ_AXIS_H

#include <stdint.h>

typedef struct {
    int64_t extent, src, dst, tab;
} s2dq_axis;

#endif
