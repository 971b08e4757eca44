# Calls that `s2dq.kernels.prepare` has made ready, run from other Cython code: without Python, the GIL or a header.
#
#     from s2dq.kernels cimport Plan, plan_of, run
#
#     cdef const Plan *plan = plan_of(prepared)     # with the GIL, once; valid as long as `prepared` lives
#     with nogil:
#         run(plan, x, out, 1)                      # any number of times, from any number of threads
#
# `prepare` checks a call as the operator does. `run` checks nothing: the caller guarantees that
#
#     x      points to the first element of a tensor with the prepared shape, strides and dtype. All bytes from
#            x + plan.x_low to x + plan.x_high can be read, and no others are.
#     out    points to plan.out_bytes bytes that can be written, all of which are: the result, C-contiguous. None of
#            them is read by this call, or read or written by another one meanwhile.
#
# Either may lie at any address. `num_threads` is the largest team of threads to use; 0 leaves it to that of `prepare`,
# then to `s2dq.set_num_threads` and the environment. In a parallel region of the caller's own, 1 is right.
#
# `run` raises MemoryError, before it writes, where there is no memory for scratch rows, and what signal handlers raise:
# a long run looks at signals every 30 ms, for which it takes the GIL. On one thread it takes it for that and for errors
# alone, and lets go of none that its caller holds. A team of threads is led as the operators lead theirs: the GIL is
# taken to begin and to end, and nobody has it in between. A thread that Python has not seen has no team, and is told of
# an error by -1 alone.
#
# Nothing of s2dq is linked to, and nothing but the first fields of `s2dq_plan` is compiled into a module, which so goes
# on with newer versions of s2dq; where it cannot, `plan_of` says so.

from libc.stdint cimport int64_t


cdef extern from *:
    """
    #ifndef S2DQ_KERNELS_PXD
    #define S2DQ_KERNELS_PXD
    #include <stdint.h>

    /* What a module is compiled for. Fields are added at the end, and the version is counted up. A field that moves or
     * means something else makes modules of before useless: then `oldest` says from which version on they are not. */
    #define S2DQ_PLAN_VERSION 1

    typedef struct s2dq_plan s2dq_plan;
    struct s2dq_plan {
        int version, oldest;
        int (*run)(const s2dq_plan *plan, const void *x, void *out, int num_threads);
        int64_t x_low, x_high, out_bytes;
    };

    static inline const s2dq_plan *s2dq_plan_of(PyObject *prepared)
    {
        const s2dq_plan *plan = NULL;
        PyObject *capsule = PyObject_GetAttrString(prepared, "__s2dq_plan__");
        if (PyCapsule_IsValid(capsule, "s2dq.plan"))
            plan = (const s2dq_plan *)PyCapsule_GetPointer(capsule, "s2dq.plan");
        else if (capsule || PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Format(PyExc_TypeError, "plan_of: expected what s2dq.kernels.prepare returns, not %R",
                         (PyObject *)Py_TYPE(prepared));
        Py_XDECREF(capsule);
        if (plan && (plan->version < S2DQ_PLAN_VERSION || plan->oldest > S2DQ_PLAN_VERSION)) {
            PyErr_Format(PyExc_RuntimeError,
                         "plan_of: this module was compiled for version %d of s2dq's plans, and the s2dq that is "
                         "installed has versions %d to %d: compile it again, or install another s2dq",
                         S2DQ_PLAN_VERSION, plan->oldest, plan->version);
            plan = NULL;
        }
        return plan;
    }

    static inline int s2dq_plan_run(const s2dq_plan *plan, const void *x, void *out, int num_threads)
    {
        return plan->run(plan, x, out, num_threads);
    }
    #endif
    """
    int S2DQ_PLAN_VERSION

    ctypedef struct Plan "s2dq_plan":
        int version, oldest
        int (*run)(const Plan *plan, const void *x, void *out, int num_threads) noexcept nogil
        int64_t x_low, x_high    # ends of what is read, in bytes from the first element of x
        int64_t out_bytes        # of the result

    # TypeError for anything that `prepare` has not made, RuntimeError where this module was compiled for another s2dq.
    const Plan *plan_of "s2dq_plan_of" (object prepared) except NULL

    int run "s2dq_plan_run" (const Plan *plan, const void *x, void *out, int num_threads) except -1 nogil
