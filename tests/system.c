/* What memory.h, threads.h and isa.h ask of the system, and what they make of its answers, which are given here.
 *
 *     cc -O1 -fopenmp -I s2dq/_micro tests/system.c -o system && ./system
 *
 * On Linux with gcc: what these headers are to other systems, the suite sees there.
 */
#include "drawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

static int failures;

#define check(condition) ((condition) ? (void)0 : (void)(failures++, printf("system: %d: %s\n", __LINE__, #condition)))

/* ----------------------------------------------------------------------------------- what the system says of memory */

enum { ARENA = 9 << 20, LINE = 64, PAGE = 4096, HUGE_PAGE = 2 << 20, POISON = 0xA5 };

static struct {
    int refuses_memory, refuses_mappings, refuses_advice;
    int64_t offset;            /* of blocks, behind a page */
    int blocks, mapped, asked; /* how many there are; how often it was asked for either */
    size_t size;               /* that was asked for last */
    void *block, *freed, *unmapped;
    struct {
        uint8_t *at;
        size_t size;
        int what, count;
    } advice; /* the last */
} memory;

static uint8_t *arena, *other_arena;

static void *told_malloc(size_t size)
{
    memory.asked++, memory.size = size;
    if (memory.refuses_memory || size > ARENA - 2 * PAGE) return NULL;
    check(memory.blocks++ == 0);
    memory.block = arena + memory.offset;
    return memset(memory.block, POISON, size);
}

static void told_free(void *block)
{
    check(block == memory.block && memory.blocks == 1);
    memory.blocks--;
    memory.freed = block;
}

static void *told_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    check(!at && protection == (PROT_READ | PROT_WRITE) && flags == (MAP_PRIVATE | MAP_ANONYMOUS));
    check(file == -1 && offset == 0);
    memory.asked++, memory.size = size;
    if (memory.refuses_mappings || size > 1ULL << 40) return MAP_FAILED;
    memory.mapped++;
    return mmap(at, size, protection, flags, file, offset);
}

static int told_munmap(void *at, size_t size)
{
    memory.mapped--;
    memory.unmapped = at, memory.size = size;
    return munmap(at, size);
}

static int told_madvise(void *at, size_t size, int what)
{
    memory.advice.at = at, memory.advice.size = size, memory.advice.what = what, memory.advice.count++;
    return memory.refuses_advice ? -1 : 0;
}

#define malloc told_malloc
#define free told_free
#define mmap told_mmap
#define munmap told_munmap
#define madvise told_madvise
#include "memory.h"

/* ---------------------------------------------------------------------------------- what the system says of threads */

static struct {
    int unknown, apart;                   /* the address that no library has: 1, 2; whether they are in two */
    int refuses_pause, pauses, registers; /* what registering handlers returns */
    int most, limit, levels;              /* of OpenMP */
    int64_t times[4];                     /* of the clock, in nanoseconds; the last for ever */
    int no_clock, looks, yields, kills;
    int lasting;                         /* how often a thread that was joined still answers */
    int no_attributes, fails_at;         /* which thread cannot be created */
    int attributes, stacks, created, joined;
    size_t stack, least; /* that is set; that there is, where it is not 0 */
    void (*before)(void), (*behind)(void), (*child)(void);
} told;

static _Atomic int waiting, passed; /* at the gate and through it, the caller included */

static void all_is_well(void)
{
    memset(&memory, 0, sizeof memory);
    memset(&told, 0, sizeof told);
    told.fails_at = -1;
    waiting = passed = 0;
}

int told_pause(omp_pause_resource_t how);
void told_parallel(void (*region)(void *), void *data, unsigned threads, unsigned flags);

static int told_dladdr(void *address, Dl_info *info)
{
    static char libraries[2];
    const int which = address == (void *)(size_t)&told_pause ? 1 : 2;
    if (which == 2) check(address == (void *)(size_t)&told_parallel);
    info->dli_fbase = &libraries[told.apart && which == 2];
    return which != told.unknown;
}

static int told_max_threads(void) { return told.most; }
static int told_thread_limit(void) { return told.limit; }
static int told_max_active_levels(void) { return told.levels; }

static int told_atfork(void (*before)(void), void (*behind)(void), void (*child)(void))
{
    told.before = before, told.behind = behind, told.child = child;
    return told.registers;
}

static int told_clock(clockid_t clock, struct timespec *now)
{
    check(clock == CLOCK_MONOTONIC);
    const int64_t time = told.times[told.looks < 3 ? told.looks : 3];
    told.looks++;
    now->tv_sec = time / 1000000000, now->tv_nsec = time % 1000000000;
    return told.no_clock ? -1 : 0;
}

static long told_syscall(long number, ...)
{
    va_list more;
    if (number == SYS_gettid) return syscall(SYS_gettid);
    va_start(more, number);
    check(number == SYS_tgkill && va_arg(more, int) == getpid());
    check(va_arg(more, long) > 0);
    check(va_arg(more, int) == 0);
    va_end(more);
    told.kills++;
    return told.lasting-- > 0 ? 0 : -1;
}

static int told_yield(void) { return told.yields++, 0; }

static int told_lock(pthread_mutex_t *gate)
{
    waiting++;
    const int answer = pthread_mutex_lock(gate);
    passed++;
    return answer;
}

static int told_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *data)
{
    const int known = waiting;
    if (told.created == told.fails_at) return EAGAIN;
    told.created++;
    check(attributes != NULL && pthread_create(thread, attributes, start, data) == 0);
    for (int k = 0; k < 2000 && waiting == known; k++) usleep(500);
    usleep(300);
    check(known >= 1 && waiting == known + 1 && passed == 1); /* only the caller is through */
    return 0;
}

static void run_beside(void *(*start)(void *))
{
    pthread_t thread;
    check(pthread_create(&thread, NULL, start, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static int told_join(pthread_t thread, void **result)
{
    told.joined++;
    return pthread_join(thread, result);
}

static int told_attr_init(pthread_attr_t *attributes)
{
    if (told.no_attributes) return ENOMEM;
    told.attributes++;
    return pthread_attr_init(attributes);
}

static int told_attr_destroy(pthread_attr_t *attributes) { return told.attributes--, pthread_attr_destroy(attributes); }

static int told_setstacksize(pthread_attr_t *attributes, size_t size)
{
    told.stacks++, told.stack = size;
    return pthread_attr_setstacksize(attributes, size);
}

static int told_getstacksize(const pthread_attr_t *attributes, size_t *size)
{
    const int answer = pthread_attr_getstacksize(attributes, size);
    if (told.least) *size = told.least;
    return answer;
}

#define omp_pause_resource_all told_pause
#define GOMP_parallel told_parallel
#define dladdr told_dladdr
#define omp_get_max_threads told_max_threads
#define omp_get_thread_limit told_thread_limit
#define omp_get_max_active_levels told_max_active_levels
#define pthread_atfork told_atfork
#define clock_gettime told_clock
#define syscall told_syscall
#define sched_yield told_yield
#define pthread_mutex_lock told_lock
#define pthread_create told_create
#define pthread_join told_join
#define pthread_attr_init told_attr_init
#define pthread_attr_destroy told_attr_destroy
#define pthread_attr_setstacksize told_setstacksize
#define pthread_attr_getstacksize told_getstacksize
#include "threads.h"

int told_pause(omp_pause_resource_t how)
{
    check(how == omp_pause_soft);
    told.pauses++;
    return told.refuses_pause ? -1 : 0;
}

void told_parallel(void (*region)(void *), void *data, unsigned threads, unsigned flags)
{
    (void)region, (void)data, (void)threads, (void)flags;
    check(!"is only asked for its address");
}

/* -------------------------------------------------------------------------------- what the processor says of itself */

static const char *features; /* with a space on both sides of each */

static int has(const char *name)
{
    char word[40];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(features, word) != NULL;
}

#define __builtin_cpu_init() ((void)0)
#define __builtin_cpu_supports(name) has(name)
#define __builtin_cpu_is(name) has(name)
#include "isa.h"
#undef __builtin_cpu_init
#undef __builtin_cpu_supports
#undef __builtin_cpu_is

/* ------------------------------------------------------------------------------------------------------- the checks */

static void check_lines(void)
{
    static const int64_t offsets[] = {0, 16, 32, 48, 4048, 4064, 4080};
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4095, (4 << 20) - 1, 4 << 20, (4 << 20) + 5};
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 9; k++) {
            const size_t size = sizes[k];
            all_is_well();
            memory.offset = offsets[i];
            uint8_t *data = s2dq_lines_new(&s2dq_lines_source, size), *block = memory.block;
            check(data && memory.blocks == 1 && (uintptr_t)data % LINE == 0);
            check(data >= block + sizeof(s2dq_lined) && data + size <= block + memory.size);
            check(s2dq_lines_held(data) == size);
            check(memory.advice.count == (size >= 4 << 20));
            if (memory.advice.count) {
                uint8_t *page = (uint8_t *)(((uintptr_t)data + PAGE - 1) / PAGE * PAGE);
                check(memory.advice.at == page && memory.advice.what == MADV_HUGEPAGE);
                check(memory.advice.at + memory.advice.size == data + size);
            }
            s2dq_lines_free(&s2dq_lines_source, data, size);
            check(memory.blocks == 0 && memory.freed == block);
        }
    all_is_well();
    check(!s2dq_lines_new(NULL, SIZE_MAX - 127) && !memory.asked);
    check(!s2dq_lines_new(NULL, SIZE_MAX - 128) && memory.asked && memory.size > SIZE_MAX - 128);
    memory.refuses_memory = 1;
    check(!s2dq_lines_new(NULL, 5) && !memory.blocks);
    s2dq_lines_free(NULL, NULL, 0);
    check(!memory.freed);
}

static void check_advice(uint8_t *at, uint8_t *end, int what)
{
    check(memory.advice.count == 1 && memory.advice.at == at && memory.advice.what == what);
    check(memory.advice.at + memory.advice.size == end);
    memory.advice.count = 0;
}

static void check_mappings(void)
{
    static const size_t sizes[] = {1, HUGE_PAGE - LINE, HUGE_PAGE - LINE + 1, 5 * HUGE_PAGE};
    uint8_t *data, *first;
    for (int k = 0; k < 4; k++) {
        const size_t whole = (sizes[k] + LINE + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        all_is_well();
        data = s2dq_memory_new(NULL, sizes[k]);
        check(data && memory.size == whole && memory.mapped == 1);
        check_advice(data - LINE, data - LINE + whole, MADV_HUGEPAGE);
        check(s2dq_memory_held(data) == whole - LINE);
        data[0] = data[sizes[k] - 1] = 1;
        s2dq_memory_free(NULL, data, sizes[k]);
        check_advice(data - LINE + PAGE, data - LINE + whole, MADV_FREE);
        check(memory.mapped == 1);
        /* The next of this size is the same one, whose pages the system may have taken. */
        memset(data - LINE + PAGE, 0, whole - PAGE);
        first = s2dq_memory_new(NULL, sizes[k]);
        check(first == data && memory.mapped == 1 && memory.asked == 1 && !memory.advice.count);
        check(s2dq_memory_held(data) == whole - LINE);
        /* One that is freed while another is kept takes its place. */
        data = s2dq_memory_new(NULL, sizes[k]);
        check(data != first && memory.mapped == 2);
        s2dq_memory_free(NULL, first, 0);
        check(memory.mapped == 2);
        s2dq_memory_free(NULL, data, 0);
        check(memory.mapped == 1 && memory.unmapped == first - LINE && memory.size == whole);
        /* One of another size is none to use. */
        first = s2dq_memory_new(NULL, sizes[k] + HUGE_PAGE);
        check(memory.unmapped == data - LINE && memory.mapped == 1);
        check(s2dq_memory_held(first) == whole - LINE + HUGE_PAGE);
        /* What cannot be marked is not kept. */
        memory.refuses_advice = 1;
        s2dq_memory_free(NULL, first, 0);
        check(memory.mapped == 0 && memory.unmapped == first - LINE && memory.size == whole + HUGE_PAGE);
        data = s2dq_memory_new(NULL, sizes[k]);
        check(data && memory.mapped == 1);
        s2dq_memory_free(NULL, data, 0);
        check(memory.mapped == 0);
    }
    all_is_well();
    check(!s2dq_memory_new(NULL, SIZE_MAX - 2 * HUGE_PAGE + 1) && !memory.asked);
    check(!s2dq_memory_new(NULL, SIZE_MAX - 2 * HUGE_PAGE) && memory.asked && memory.size > SIZE_MAX - 2 * HUGE_PAGE);
    memory.refuses_mappings = 1;
    check(!s2dq_memory_new(NULL, 5) && !memory.advice.count);
    s2dq_memory_free(NULL, NULL, 0);
    check(!memory.advice.count && !memory.mapped);
}

/* A source whose data end where an arena does: the older ones in the first, the newer ones in the second. */
static struct {
    int refuses, asked, fresh, freed;
    size_t size;
    void *last;
} edge;

static void *edge_new(void *context, size_t size)
{
    (void)context;
    edge.asked++;
    if (edge.refuses || size > ARENA) return edge.last = NULL;
    edge.size = edge.fresh ? edge.size : size;
    uint8_t *data = (edge.fresh++ ? other_arena : arena) + ARENA - size;
    return edge.last = memset(data, POISON, size);
}

static void edge_free(void *context, void *data, size_t size)
{
    (void)context, (void)size;
    check(data == arena + ARENA - edge.size);
    edge.freed++;
}

static size_t edge_held(const void *data) { return (void)data, edge.size; }

static s2dq_source edge_source = {edge_new, edge_free, edge_held};

static void check_sources(void)
{
    static const size_t counts[][2] = {{0, 5}, {5, 0}, {3, 5}, {1, 1}, {SIZE_MAX, 0}};
    for (int k = 0; k < 5; k++) {
        memset(&edge, 0, sizeof edge);
        uint8_t *data = s2dq_source_zeroed(&edge_source, counts[k][0], counts[k][1]);
        check(data && data == edge.last && edge.size == counts[k][0] * counts[k][1]);
        for (size_t at = 0; at < edge.size; at++) check(data[at] == 0);
    }
    memset(&edge, 0, sizeof edge);
    check(!s2dq_source_zeroed(&edge_source, SIZE_MAX / 16 + 1, 16) && !edge.asked);
    check(!s2dq_source_zeroed(&edge_source, SIZE_MAX / 15, 15) && edge.asked == 1 && !edge.fresh);
    edge.refuses = 1;
    check(!s2dq_source_zeroed(&edge_source, 1, 1));
    static uint8_t row[1 << 16];
    memset(&edge, 0, sizeof edge);
    check(s2dq_source_zeroed(&edge_source, sizeof row, 1) == arena + ARENA - sizeof row);

    for (size_t size = 0; size <= 200; size += 50) {
        memset(&edge, 0, sizeof edge);
        uint8_t *data = edge_new(NULL, 100), copy[100];
        draw_memory(copy, 100);
        memcpy(data, copy, 100);
        uint8_t *moved = s2dq_source_resized(&edge_source, data, size);
        check(moved == other_arena + ARENA - size && edge.freed == 1);
        check(memcmp(moved, copy, size < 100 ? size : 100) == 0);
    }
    memset(&edge, 0, sizeof edge);
    check(s2dq_source_resized(&edge_source, NULL, 7) == arena + ARENA - 7 && !edge.freed);
    memset(&edge, 0, sizeof edge);
    void *kept = edge_new(NULL, 9);
    edge.refuses = 1;
    check(!s2dq_source_resized(&edge_source, kept, 7) && !edge.freed);
}

static void check_forks(void)
{
    for (int apart = 0; apart <= 1; apart++)
        for (int unknown = 0; unknown <= 2; unknown++)
            for (int refuses = 0; refuses <= 1; refuses++) {
                const int can = !apart && !unknown, fails = !can || refuses;
                all_is_well();
                told.apart = apart, told.unknown = unknown, told.refuses_pause = refuses;
                check(s2dq_can_pause() == can);
                s2dq_forked_serial = 0;
                s2dq_keep_team(5);
                s2dq_before_fork();
                check(told.pauses == can && s2dq_kept_team == (fails ? 5 : 1));
                s2dq_in_child();
                check(s2dq_forked_serial == fails);
            }
    s2dq_in_child();
    all_is_well();
    s2dq_before_fork();
    s2dq_in_child();
    check(s2dq_forked_serial == 1); /* for good */
    s2dq_forked_serial = 0;
    told.registers = 7;
    check(s2dq_guard_fork() == 7);
    check(told.before == s2dq_before_fork && !told.behind && told.child == s2dq_in_child);
}

static void *other_thread(void *data)
{
    (void)data;
    check(s2dq_get_last_end() == 0 && s2dq_get_last_team() == 1 && s2dq_kept_team == 1);
    s2dq_set_last_end(1), s2dq_set_last_team(9), s2dq_keep_team(9);
    return NULL;
}

static void check_states(void)
{
    static const int teams[][4] = {/* most, limit, levels, size */
                                   {4, 8, 1, 4}, {8, 4, 1, 4}, {5, 5, 3, 5}, {4, 8, 0, 1}, {1, 1, 1, 1}};
    all_is_well();
    for (int k = 0; k < 5; k++) {
        told.most = teams[k][0], told.limit = teams[k][1], told.levels = teams[k][2];
        check(s2dq_openmp_threads() == teams[k][3]);
    }
    int seen[3] = {0}, sizes[3] = {0};
    check(s2dq_has_openmp() == _OPENMP && !s2dq_in_parallel() && s2dq_team() == 1 && s2dq_thread() == 0);
    check(s2dq_processors() == omp_get_num_procs());
#pragma omp parallel num_threads(3)
    {
        const int me = omp_get_thread_num();
        seen[me] = s2dq_thread() == me && s2dq_in_parallel(), sizes[me] = s2dq_team();
    }
    check(seen[0] && (sizes[0] < 2 || seen[1]) && (sizes[0] < 3 || seen[2]) && sizes[0] >= 1 && sizes[0] <= 3);

    check(s2dq_get_cap() == 0 && s2dq_get_quota() == 0 && s2dq_get_pretended() == 0);
    s2dq_set_cap(3), s2dq_set_quota(4), s2dq_set_pretended(5);
    check(s2dq_get_cap() == 3 && s2dq_get_quota() == 4 && s2dq_get_pretended() == 5);
    int64_t next = 0;
    for (int k = 0; k < 5; k++) check(s2dq_take(&next) == k);
    int noted = 0;
    s2dq_note(&noted, 5);
    check(noted == 5);

    all_is_well();
    told.times[0] = 3000000007, told.times[1] = told.times[2] = 5;
    check(s2dq_now() == 3000000007 && s2dq_now() == 5);
    told.no_clock = 1;
    check(s2dq_now() == 0);

    s2dq_set_last_end(77), s2dq_set_last_team(3), s2dq_keep_team(4);
    run_beside(other_thread);
    check(s2dq_get_last_end() == 77 && s2dq_get_last_team() == 3 && s2dq_kept_team == 4);
    s2dq_set_stack_size(-1);
    check(s2dq_stack_size == 0);
    s2dq_set_stack_size(1 << 18);
    check(s2dq_stack_size == 1 << 18);
    s2dq_set_stack_size(0);
    check(s2dq_stack_size == 0);
}

/* Whether `count` threads can be had, and nothing of them is left. */
static int recruits(int count)
{
    const int can = s2dq_can_recruit(count);
    check(memory.blocks == 0 && told.attributes == 0 && told.joined == told.created);
    check(told.created < 1 || memory.size == (size_t)count * sizeof(s2dq_recruit));
    waiting = passed = 0;
    return can;
}

static void check_recruits(void)
{
    for (int count = 1; count <= 4; count++) {
        all_is_well();
        check(recruits(count) && told.created == count && told.kills == count && !told.stacks);
        for (int fails = 0; fails < count; fails++) {
            all_is_well();
            told.fails_at = fails;
            check(!recruits(count) && told.created == fails && told.kills == fails);
        }
        all_is_well();
        told.no_attributes = 1;
        check(!recruits(count) && !told.created);
        all_is_well();
        memory.refuses_memory = 1;
        check(!recruits(count) && !told.created);
    }
    all_is_well();
    told.least = (1 << 17) - 1;
    check(!recruits(2) && !told.created);
    told.least = 1 << 17;
    check(recruits(2) && told.created == 2);
    all_is_well();
    s2dq_set_stack_size(1 << 19);
    check(recruits(1) && told.stacks == 1 && told.stack == 1 << 19);
    s2dq_set_stack_size(1 << 16);
    check(!recruits(1) && told.stacks == 2);
    s2dq_set_stack_size(1); /* which no thread can have: as if it had not been set */
    check(recruits(1) && told.stacks == 3);
    s2dq_set_stack_size(0);

    /* A thread that was joined counts a little longer, for two seconds at most. */
    static const int64_t times[][4] = {{5, 2000000005, 2000000005, 2000000005}, {5, 2000000005, 2000000006, 0}};
    for (int late = 0; late <= 1; late++) {
        all_is_well();
        memcpy(told.times, times[late], sizeof told.times);
        told.lasting = 2;
        check(recruits(3) == !late && told.kills == (late ? 4 : 5) && told.yields == (late ? 1 : 2));
    }

    /* Only a team that has to grow asks for threads: for all of it but the one that there is. */
    all_is_well();
    s2dq_keep_team(3);
    check(s2dq_can_start(2) && s2dq_can_start(3) && !told.created);
    check(s2dq_can_start(4) && told.created == 3);
    waiting = passed = 0;
    told.fails_at = 4;
    check(!s2dq_can_start(4) && s2dq_can_start(3));
    waiting = passed = 0;
    s2dq_keep_team(4);
    check(s2dq_can_start(4));
}

static void check_processors(void)
{
    static const struct {
        const char *features;
        int avx2, avx512vbmi, follows, across;
    } processors[] = {
        {" intel sse2 ", 0, 0, 0, 0},
        {" amd avx2 ", 1, 0, 1, 1},
        {" intel avx2 avx512bw avx512vl avx512vbmi ", 1, 1, 0, 0},
        {" amd avx2 avx512bw avx512vl avx512vbmi ", 1, 1, 1, 1},
        {" amd avx2 avx512bw avx512vl avx512vbmi avx512vp2intersect ", 1, 1, 1, 2},
        {" intel avx2 avx512bw avx512vl avx512vbmi avx512vp2intersect ", 1, 1, 0, 0},
        {" intel avx2 avx512bw avx512vl ", 1, 0, 0, 0},
        {" intel avx2 avx512bw avx512vbmi ", 1, 0, 0, 0},
        {" intel avx2 avx512vl avx512vbmi ", 1, 0, 0, 0},
        {" intel avx512bw avx512vl avx512vbmi ", 0, 0, 0, 0},
        {" intel avx512vbmi ", 0, 0, 0, 0},
        {" intel avx512bw ", 0, 0, 0, 0},
        {" intel avx512vl ", 0, 0, 0, 0},
    };
    static const char *const names[] = {"portable", "neon", "avx2", "avx512vbmi"};
    check(S2DQ_ISA_COUNT == 4);
    for (int isa = 0; isa < S2DQ_ISA_COUNT; isa++) check(strcmp(s2dq_isa_name(isa), names[isa]) == 0);
    check(!s2dq_isa_name(-1) && !s2dq_isa_name(S2DQ_ISA_COUNT));
    check(!s2dq_isa_runs(-1) && !s2dq_isa_runs(S2DQ_ISA_COUNT));
    for (size_t k = 0; k < sizeof processors / sizeof processors[0]; k++) {
        features = processors[k].features;
        check(s2dq_isa_runs(S2DQ_ISA_PORTABLE) == 1);
#if defined(S2DQ_X86)
        check(s2dq_isa_runs(S2DQ_ISA_NEON) == 0);
        check(s2dq_isa_runs(S2DQ_ISA_AVX2) == processors[k].avx2);
        check(s2dq_isa_runs(S2DQ_ISA_AVX512VBMI) == processors[k].avx512vbmi);
        check(s2dq_follows_streams() == processors[k].follows && s2dq_stores_across() == processors[k].across);
#else
        check(s2dq_isa_runs(S2DQ_ISA_AVX2) == 0 && s2dq_isa_runs(S2DQ_ISA_AVX512VBMI) == 0);
        check(s2dq_follows_streams() == 0 && s2dq_stores_across() == 0);
#endif
    }
}

int main(void)
{
    alarm(60); /* what waits for ever has failed */
    arena = make_arena(ARENA), other_arena = make_arena(ARENA);
    sow(1);
    check_lines();
    check_mappings();
    check_sources();
    check_forks();
    check_states();
    check_recruits();
    check_processors();
    if (!failures) fprintf(stderr, "system: all as it should be\n");
    return failures != 0;
}
