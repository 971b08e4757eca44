# cython: language_level=3, freethreading_compatible=True
"""What tests/test_cython_users.py calls: prepared calls on addresses, from the places that Cython code may be in."""

from cython.parallel cimport prange
from libc.stdint cimport int64_t, uintptr_t

from s2dq.kernels cimport Plan, S2DQ_PLAN_VERSION, plan_of, run

VERSION = S2DQ_PLAN_VERSION


def fields(prepared):
    """What the plan says of itself."""
    cdef const Plan *plan = plan_of(prepared)
    return plan.x_low, plan.x_high, plan.out_bytes


def address_of(prepared):
    return <uintptr_t>plan_of(prepared)


def move(prepared, uintptr_t x, uintptr_t out, int num_threads, int times=1):
    """Without the GIL."""
    cdef const Plan *plan = plan_of(prepared)
    cdef int _
    with nogil:
        for _ in range(times):
            run(plan, <const void *>x, <void *>out, num_threads)


def move_with_gil(prepared, uintptr_t x, uintptr_t out, int num_threads):
    run(plan_of(prepared), <const void *>x, <void *>out, num_threads)


def move_each(prepared, uintptr_t x, int64_t step, uintptr_t out, int64_t count, int threads):
    """In a parallel loop of this module's own: results one after the other, tensors `step` bytes apart."""
    cdef const Plan *plan = plan_of(prepared)
    cdef int64_t k
    for k in prange(count, nogil=True, num_threads=threads):
        run(plan, <const void *>(x + k * step), <void *>(out + k * plan.out_bytes), 1)


cdef extern from * nogil:
    """
    #ifdef _WIN32
    static int in_new_thread(void *(*work)(void *), void *given) { (void)work; (void)given; return -1; }
    #else
    #include <pthread.h>
    static int in_new_thread(void *(*work)(void *), void *given)
    {
        pthread_t thread;
        return pthread_create(&thread, NULL, work, given) || pthread_join(thread, NULL);
    }
    #endif
    """
    int in_new_thread(void *(*work)(void *) noexcept, void *given) noexcept


cdef struct Work:
    const Plan *plan
    const void *x
    void *out
    int num_threads, status


cdef void *run_work(void *given) noexcept nogil:
    cdef Work *work = <Work *>given
    work.status = work.plan.run(work.plan, work.x, work.out, work.num_threads)
    return NULL


def status_in_new_thread(prepared, uintptr_t x, uintptr_t out, int num_threads):
    """Of a run in a thread that Python does not know."""
    cdef Work work = Work(plan_of(prepared), <const void *>x, <void *>out, num_threads, -9)
    cdef int refused
    with nogil:
        refused = in_new_thread(run_work, &work)
    return None if refused else work.status


cdef class Progress:
    """Runs that one thread does, and another one counts."""

    cdef volatile int64_t done, wanted

    def work(self, prepared, uintptr_t x, uintptr_t out, int num_threads):
        """Without the GIL, until `stop` is called."""
        cdef const Plan *plan = plan_of(prepared)
        self.wanted = 1
        with nogil:
            while self.wanted:
                run(plan, <const void *>x, <void *>out, num_threads)
                self.done += 1

    def seen(self):
        return self.done

    def stop(self):
        self.wanted = 0

    def hold_the_gil(self, int64_t until, int64_t turns):
        """Keep the GIL until so many runs are done, or for so many turns. Returns whether they were done."""
        cdef volatile int64_t turn = 0
        while self.done < until and turn < turns:
            turn += 1
        return self.done >= until
