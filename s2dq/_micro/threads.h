/* What the driver needs of threads that Cython does not say: fork(), limits, and the compiler's name.
 *
 * A child forked from a thread that has run a libgomp team hangs for ever in its own first team: the pool that the
 * thread remembers has no threads behind it any more. So before a fork the pool is handed back
 * (omp_pause_resource_all), and where that is impossible the child stays serial.
 *
 * LLVM's and Microsoft's runtimes look after forks themselves, or have none.
 *
 * Where a thread cannot be created, OpenMP's runtimes end the process. So before a team grows, its threads are created
 * and ended here once, and the call stays on one thread where that fails.
 */
#ifndef S2DQ_THREADS_H
#define S2DQ_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#if defined(_OPENMP) && !defined(_WIN32)
#define S2DQ_GUARD_TEAM 1
#include <pthread.h>
#include <stdlib.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define S2DQ_GUARD_FORK 1
#include <dlfcn.h>
#endif
#endif

#if defined(_MSC_VER)
#define S2DQ_THREAD_LOCAL __declspec(thread)
#else
#define S2DQ_THREAD_LOCAL _Thread_local
#endif

static int s2dq_forked_serial = 0; /* written in the only thread of a fresh child, read everywhere */

#if defined(S2DQ_GUARD_TEAM)
/* The team that this thread ran last, whose threads OpenMP keeps for the next one; 1 where there is none. */
static S2DQ_THREAD_LOCAL int s2dq_kept_team = 1;
#endif

#if defined(S2DQ_GUARD_FORK)

extern int omp_pause_resource_all(omp_pause_resource_t) __attribute__((weak));
extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned) __attribute__((weak));

/* Told by the handler before a fork to the one in the child: both run on the forking thread. */
static S2DQ_THREAD_LOCAL int s2dq_pause_failed = 0;

/* Two copies of libgomp may be loaded (PyTorch brings its own): pausing one says nothing about the other. */
static bool s2dq_can_pause(void)
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
    if (!s2dq_pause_failed) s2dq_kept_team = 1;
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
/* A region of one thread is one, too: threads of a team in it are made anew every time. */
static bool s2dq_in_parallel(void) { return omp_get_level() > 0; }
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
static bool s2dq_in_parallel(void) { return false; }
static int s2dq_openmp_threads(void) { return 1; }
static int s2dq_processors(void) { return 1; }
static int s2dq_thread(void) { return 0; }
static int s2dq_team(void) { return 1; }
#endif

/* Written by one thread while others read: the cap that callers set, the quota of the control group, the processors
 * that tests count with, and the next task of a team. */
#if defined(_MSC_VER)
#include <intrin.h>
static volatile long s2dq_cap = 0, s2dq_quota = 0, s2dq_pretended = 0;
static int s2dq_get_cap(void) { return (int)s2dq_cap; }
static void s2dq_set_cap(int count) { s2dq_cap = count; }
static int s2dq_get_quota(void) { return (int)s2dq_quota; }
static void s2dq_set_quota(int count) { s2dq_quota = count; }
static int s2dq_get_pretended(void) { return (int)s2dq_pretended; }
static void s2dq_set_pretended(int count) { s2dq_pretended = count; }
static int64_t s2dq_take(int64_t *next) { return _InterlockedExchangeAdd64(next, 1); }
static void s2dq_note(int *place, int value) { _InterlockedExchange((volatile long *)place, value); }
#else
static int s2dq_cap = 0, s2dq_quota = 0, s2dq_pretended = 0;
static int s2dq_get_cap(void) { return __atomic_load_n(&s2dq_cap, __ATOMIC_RELAXED); }
static void s2dq_set_cap(int count) { __atomic_store_n(&s2dq_cap, count, __ATOMIC_RELAXED); }
static int s2dq_get_quota(void) { return __atomic_load_n(&s2dq_quota, __ATOMIC_RELAXED); }
static void s2dq_set_quota(int count) { __atomic_store_n(&s2dq_quota, count, __ATOMIC_RELAXED); }
static int s2dq_get_pretended(void) { return __atomic_load_n(&s2dq_pretended, __ATOMIC_RELAXED); }
static void s2dq_set_pretended(int count) { __atomic_store_n(&s2dq_pretended, count, __ATOMIC_RELAXED); }
static int64_t s2dq_take(int64_t *next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }
static void s2dq_note(int *place, int value) { __atomic_store_n(place, value, __ATOMIC_RELAXED); }
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

/* Bytes of stack of OpenMP's threads; 0 is the system's default. Set once, at the end of the import. */
static size_t s2dq_stack_size = 0;

static void s2dq_set_stack_size(int64_t size) { s2dq_stack_size = size < 0 ? 0 : (size_t)size; }

#if defined(S2DQ_GUARD_TEAM)

enum { S2DQ_LEAST_STACK = 1 << 17 }; /* kernels overran 32 KiB */

typedef struct {
    pthread_t thread;
    pthread_mutex_t *gate;
    long id;
} s2dq_recruit;

/* Stays until all of them are there. */
static void *s2dq_stand_by(void *recruit)
{
    s2dq_recruit *self = (s2dq_recruit *)recruit;
#if defined(__linux__)
    self->id = syscall(SYS_gettid);
#endif
    pthread_mutex_lock(self->gate);
    pthread_mutex_unlock(self->gate);
    return NULL;
}

/* Whether a thread that was joined counts no longer: the kernel lets go of it a little later. */
static bool s2dq_has_gone(const s2dq_recruit *recruit)
{
#if defined(__linux__)
    const int64_t patience = s2dq_now() + 2000000000;
    while (syscall(SYS_tgkill, getpid(), recruit->id, 0) == 0) {
        if (s2dq_now() > patience) return false;
        sched_yield();
    }
#else
    (void)recruit;
#endif
    return true;
}

/* Whether `count` threads like OpenMP's can be had, all at once, and have stack enough for kernels. They are gone
 * afterwards, and their memory is at hand. */
static bool s2dq_can_recruit(int count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t attributes;
    s2dq_recruit *recruits = (s2dq_recruit *)malloc((size_t)count * sizeof(s2dq_recruit));
    size_t stack = 0;
    int started = 0, gone = 1;
    if (!recruits) return false;
    if (pthread_attr_init(&attributes) != 0) {
        free(recruits);
        return false;
    }
    if (s2dq_stack_size) pthread_attr_setstacksize(&attributes, s2dq_stack_size); /* or it stays, as in OpenMP */
    pthread_attr_getstacksize(&attributes, &stack);
    if (stack < S2DQ_LEAST_STACK) count = -1;
    pthread_mutex_lock(&gate);
    for (; started < count; started++) {
        recruits[started].gate = &gate;
        if (pthread_create(&recruits[started].thread, &attributes, s2dq_stand_by, &recruits[started]) != 0) break;
    }
    pthread_mutex_unlock(&gate);
    for (int k = 0; k < started; k++) pthread_join(recruits[k].thread, NULL);
    for (int k = 0; k < started; k++) gone &= s2dq_has_gone(&recruits[k]);
    pthread_attr_destroy(&attributes);
    free(recruits);
    return gone && started == count;
}

/* Whether this thread may open a region of `team` threads. The answer is at hand unless its team has to grow. */
static bool s2dq_can_start(int team)
{
    return team <= s2dq_kept_team || s2dq_can_recruit(team - 1);
}

/* OpenMP lets go of the threads that a smaller team has no use for. */
static void s2dq_keep_team(int team) { s2dq_kept_team = team; }

#else

static bool s2dq_can_start(int team)
{
    (void)team;
    return true;
}

static void s2dq_keep_team(int team) { (void)team; }

#endif

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
