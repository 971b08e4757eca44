/* What the driver hands to the micro-kernels: one loop of a box, steps in bytes; and what every header needs. */
#ifndef S2DQ_AXIS_H
#define S2DQ_AXIS_H

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

#endif
