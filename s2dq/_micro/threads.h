/* What the driver needs of threads that Cython does not say: fork(), limits, and the compiler's name.
 *
 * A child forked from a thread that has run a libgomp team hangs for ever in its own first team: the pool that the
 * thread remembers has no threads behind it any more. So before a fork the pool is handed back
 * (omp_pause_resource_all), and where that is impossible the child stays serial.
 *
 * LLVM's and Microsoft's runtimes look after forks themselves, or have none.
 */
#ifndef S2DQ_THREADS_H
#define S2DQ_THREADS_H

#include <stdint.h>
#include <time.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#if defined(_OPENMP) && defined(__GNUC__) && !defined(__clang__) && !defined(_WIN32)
#define S2DQ_GUARD_FORK 1
#include <dlfcn.h>
#include <pthread.h>
#endif

#if defined(_MSC_VER)
#define S2DQ_THREAD_LOCAL __declspec(thread)
#else
#define S2DQ_THREAD_LOCAL _Thread_local
#endif

static int s2dq_forked_serial = 0; /* written in the only thread of a fresh child, read everywhere */

#if defined(S2DQ_GUARD_FORK)

extern int omp_pause_resource_all(omp_pause_resource_t) __attribute__((weak));
extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned) __attribute__((weak));

/* Told by the handler before a fork to the one in the child: both run on the forking thread. */
static S2DQ_THREAD_LOCAL int s2dq_pause_failed = 0;

/* Two copies of libgomp may be loaded (PyTorch brings its own): pausing one says nothing about the other. */
static int s2dq_can_pause(void)
{
    Dl_info pause, parallel;
    void *pause_address = (void *)(size_t)&omp_pause_resource_all;
    void *parallel_address = (void *)(size_t)&GOMP_parallel;
    return pause_address && parallel_address && dladdr(pause_address, &pause) &&
           dladdr(parallel_address, &parallel) && pause.dli_fbase == parallel.dli_fbase;
}

static void s2dq_before_fork(void)
{
    s2dq_pause_failed = !s2dq_can_pause() || omp_pause_resource_all(omp_pause_soft) != 0;
}

static void s2dq_in_child(void)
{
    if (s2dq_pause_failed) s2dq_forked_serial = 1;
}

static int s2dq_guard_fork(void)
{
    return pthread_atfork(s2dq_before_fork, NULL, s2dq_in_child);
}

#else

static int s2dq_guard_fork(void)
{
    return 0;
}

#endif

#if defined(_OPENMP)
static int s2dq_has_openmp(void) { return _OPENMP; }
static int s2dq_in_parallel(void) { return omp_in_parallel(); }
/* The largest team that a region opened here could have, before anybody's wish. */
static int s2dq_openmp_threads(void)
{
    int most = omp_get_max_threads(), limit = omp_get_thread_limit();
    return omp_get_max_active_levels() < 1 ? 1 : most < limit ? most : limit;
}
static int s2dq_processors(void) { return omp_get_num_procs(); }
static int s2dq_thread(void) { return omp_get_thread_num(); }
static int s2dq_team(void) { return omp_get_num_threads(); }
#else
static int s2dq_has_openmp(void) { return 0; }
static int s2dq_in_parallel(void) { return 0; }
static int s2dq_openmp_threads(void) { return 1; }
static int s2dq_processors(void) { return 1; }
static int s2dq_thread(void) { return 0; }
static int s2dq_team(void) { return 1; }
#endif

/* Written by one thread while others read: the cap that callers set, and the quota of the control group. */
#if defined(_MSC_VER)
static volatile long s2dq_cap = 0, s2dq_quota = 0;
static int s2dq_get_cap(void) { return (int)s2dq_cap; }
static void s2dq_set_cap(int count) { s2dq_cap = count; }
static int s2dq_get_quota(void) { return (int)s2dq_quota; }
static void s2dq_set_quota(int count) { s2dq_quota = count; }
#else
static int s2dq_cap = 0, s2dq_quota = 0;
static int s2dq_get_cap(void) { return __atomic_load_n(&s2dq_cap, __ATOMIC_RELAXED); }
static void s2dq_set_cap(int count) { __atomic_store_n(&s2dq_cap, count, __ATOMIC_RELAXED); }
static int s2dq_get_quota(void) { return __atomic_load_n(&s2dq_quota, __ATOMIC_RELAXED); }
static void s2dq_set_quota(int count) { __atomic_store_n(&s2dq_quota, count, __ATOMIC_RELAXED); }
#endif

/* Nanoseconds of a clock that only goes forward; 0 where there is none. */
static int64_t s2dq_now(void)
{
#if defined(_MSC_VER)
    return 0;
#else
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? (int64_t)now.tv_sec * 1000000000 + now.tv_nsec : 0;
#endif
}

/* When the last call on this thread that could have had a team ended. */
static S2DQ_THREAD_LOCAL int64_t s2dq_last_end = 0;

static int64_t s2dq_get_last_end(void) { return s2dq_last_end; }
static void s2dq_set_last_end(int64_t when) { s2dq_last_end = when; }

static S2DQ_THREAD_LOCAL int s2dq_last_team = 1;

static int s2dq_get_last_team(void) { return s2dq_last_team; }
static void s2dq_set_last_team(int size) { s2dq_last_team = size; }

#if defined(__clang__)
#define S2DQ_COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define S2DQ_COMPILER "gcc " __VERSION__
#elif defined(_MSC_VER)
#define S2DQ_STRING_(x) #x
#define S2DQ_STRING(x) S2DQ_STRING_(x)
#define S2DQ_COMPILER "msvc " S2DQ_STRING(_MSC_VER)
#else
#define S2DQ_COMPILER "unknown"
#endif

#endif
