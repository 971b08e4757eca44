# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True, embedsignature=True
"""Execution of plans: the driver, and the only parallel loop of the package.

A *plan* (see `_plan`) arrives as a flat table of integers and is read once into a `Program`. It holds *segments*; a
segment has *rows*, the units of parallel work, and the *boxes* to run for each of them. A box copies granules of a
fixed width through nested loops from one buffer to another:

    X  the source array         addressed by pointer and byte steps, so any strides, alignment and dtype will do
    Y  the result               C-contiguous, never overlapping X
    T  a scratch row            one per thread, allocated before the threads start
    F  fill values              lane element first, then the pad element or one per channel

Who guarantees what. `_validate` has proven that X and Y have the shapes the plan was made for, that they do not
overlap and that every product fits in 63 bits. `_plan` guarantees that each byte of Y is written exactly once, and
that no step leaves X. Here nothing is checked again: below `run` everything is `noexcept nogil`, and divisors are
row extents and task sizes, which are at least 1.

The rows of all segments are laid end to end and cut into tasks; a task is a range of rows of one segment. Within a
task, consecutive rows along the innermost row axis are run together as one more loop (a *strip*).

Nothing here knows an operator or a layout.
"""

from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from cpython.exc cimport PyErr_CheckSignals

cimport numpy as cnp

cnp.import_array()


cdef extern from "_micro/axis.h" nogil:
    ctypedef struct s2dq_axis:
        int64_t extent, src, dst, tab

cdef extern from "_micro/portable.h" nogil:
    void s2dq_copy(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width) noexcept
    void s2dq_lookup(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_axis *axes,
                     int count) noexcept

cdef extern from "_micro/threads.h" nogil:
    const char *S2DQ_COMPILER
    int s2dq_forked_serial
    int s2dq_guard_fork() noexcept
    int s2dq_has_openmp() noexcept
    int s2dq_in_parallel() noexcept
    int s2dq_openmp_threads() noexcept
    int s2dq_processors() noexcept
    int s2dq_thread() noexcept
    int s2dq_team() noexcept
    int s2dq_get_last_team() noexcept
    void s2dq_set_last_team(int size) noexcept
    int s2dq_get_cap() noexcept
    void s2dq_set_cap(int count) noexcept
    int s2dq_get_quota() noexcept
    void s2dq_set_quota(int count) noexcept


cdef enum:
    BUFFER_X = 0
    BUFFER_Y = 1
    BUFFER_T = 2
    BUFFER_F = 3
    MAX_AXES = 64                # every axis has an extent of 2 at least, and no result has 2**63 bytes

# Bytes of a result from which a team is worth its start: when the caller asked for threads, and when nobody did.
# A team that has gone to sleep takes milliseconds to wake, so by default only clearly large tensors get one.
cdef int64_t PARALLEL_ASKED = 1 << 18
cdef int64_t PARALLEL_DEFAULT = 1 << 23
cdef int64_t TASK_MIN = 1 << 16      # a task is worth handing out
cdef int64_t TASK_MAX = 1 << 23      # and small enough to share evenly
cdef int64_t SLAB_BYTES = 1 << 26    # of the result, between two looks at pending signals

cdef struct Box:
    int source, target, lookup, count
    int64_t src_offset, dst_offset, tab_offset, width
    s2dq_axis *axes

cdef struct Segment:
    int row_axes, boxes, chained
    int64_t rows                 # how many
    int64_t row_bytes            # written by one row
    int64_t task_rows            # filled in by `run`, in its own copy
    int64_t first_task
    s2dq_axis *axes              # of the rows
    Box *box

cdef struct Buffers:
    const uint8_t *x
    uint8_t *y
    uint8_t *scratch
    const uint8_t *fill
    const uint8_t *tables


cdef class Program:
    """A plan in the form the driver reads: immutable, shared between threads.

    Parameters
    ----------
    table : memoryview of int64
        What `Plan.encode` gives.
    """

    cdef Segment *segments
    cdef Box *boxes
    cdef s2dq_axis *axes
    cdef int count
    cdef readonly int64_t scratch
    cdef readonly int64_t nbytes

    def __cinit__(self, const int64_t[::1] table not None):
        cdef Py_ssize_t length = table.shape[0]
        cdef Py_ssize_t at = 2
        cdef int s, k, axes = 0, boxes = 0
        cdef int64_t size
        cdef Segment *segment
        cdef Box *box
        if length < 2 or not 0 <= table[0] <= length:
            raise ValueError("plan table: no plan starts like this")
        self.count = <int>table[0]
        self.scratch = table[1]
        # No part of the table is longer than the table, which bounds what has to be allocated.
        self.segments = <Segment *>calloc(self.count + 1, sizeof(Segment))
        self.boxes = <Box *>calloc(length // 8 + 1, sizeof(Box))
        self.axes = <s2dq_axis *>calloc(length // 4 + 1, sizeof(s2dq_axis))
        if not self.segments or not self.boxes or not self.axes:
            raise MemoryError("plan table: no memory for the program")
        for s in range(self.count):
            segment = &self.segments[s]
            segment.row_axes = <int>table[at]
            segment.boxes = <int>table[at + 1]
            at += 2
            segment.axes = &self.axes[axes]
            segment.rows = 1
            for k in range(segment.row_axes):
                self._read_axis(table, &at, &axes)
                segment.rows *= segment.axes[k].extent
            segment.box = &self.boxes[boxes]
            for _ in range(segment.boxes):
                box = &self.boxes[boxes]
                boxes += 1
                box.source = <int>table[at]
                box.target = <int>table[at + 1]
                box.src_offset = table[at + 2]
                box.dst_offset = table[at + 3]
                box.width = table[at + 4]
                box.lookup = <int>table[at + 5]
                box.tab_offset = table[at + 6]
                box.count = <int>table[at + 7]
                at += 8
                box.axes = &self.axes[axes]
                size = box.width
                for k in range(box.count):
                    self._read_axis(table, &at, &axes)
                    size *= box.axes[k].extent
                if box.target == BUFFER_Y:
                    segment.row_bytes += size
                else:
                    segment.chained = 1
            self.nbytes += segment.rows * segment.row_bytes
        if at != length:
            raise ValueError("plan table: length does not match its contents")

    cdef void _read_axis(self, const int64_t[::1] table, Py_ssize_t *at, int *axes):
        cdef s2dq_axis *axis = &self.axes[axes[0]]
        axis.extent = table[at[0]]
        axis.src = table[at[0] + 1]
        axis.dst = table[at[0] + 2]
        axis.tab = table[at[0] + 3]
        at[0] += 4
        axes[0] += 1

    def __dealloc__(self):
        free(self.segments)
        free(self.boxes)
        free(self.axes)


# ------------------------------------------------------------------------------------------------ the driver

cdef void run_box(const Box *box, const uint8_t *src, uint8_t *dst, const uint8_t *table, const s2dq_axis *axes,
                  int count) noexcept nogil:
    """One box. IN: src, dst, table already moved to this row. OUT: the granules of the loops `axes`."""
    if box.lookup:
        s2dq_lookup(dst, src, table, axes, count)
    else:
        s2dq_copy(dst, src, axes, count, box.width)


cdef void run_row(const Segment *segment, const Buffers *buffers, uint8_t *scratch, int64_t src,
                  int64_t dst) noexcept nogil:
    """All boxes of one row of a chain; `src` and `dst` are the row's offsets in X and Y."""
    cdef int b
    cdef const Box *box
    cdef const uint8_t *source
    cdef uint8_t *target
    for b in range(segment.boxes):
        box = &segment.box[b]
        if box.source == BUFFER_X:
            source = buffers.x + src
        elif box.source == BUFFER_T:
            source = scratch
        else:
            source = buffers.fill
        target = buffers.y + dst if box.target == BUFFER_Y else scratch
        run_box(box, source + box.src_offset, target + box.dst_offset, buffers.tables + box.tab_offset, box.axes,
                box.count)


cdef void run_rows(const Segment *segment, const Buffers *buffers, uint8_t *scratch, int64_t first,
                   int64_t last) noexcept nogil:
    """Rows ``first <= row < last`` of a segment; `first` < `last`."""
    cdef int64_t index[MAX_AXES]
    cdef s2dq_axis loops[MAX_AXES + 1]
    cdef int inner = segment.row_axes - 1
    cdef int64_t src = 0, dst = 0, tab = 0, row = first, strip
    cdef int k
    cdef const s2dq_axis *axes = segment.axes
    cdef const Box *box = segment.box
    cdef const uint8_t *source = buffers.x if box.source == BUFFER_X else buffers.fill

    if inner < 0:  # a single row
        if segment.chained:
            run_row(segment, buffers, scratch, 0, 0)
        else:
            run_box(box, source + box.src_offset, buffers.y + box.dst_offset, buffers.tables + box.tab_offset,
                    box.axes, box.count)
        return

    for k in range(inner, -1, -1):
        index[k] = row % axes[k].extent
        row = row // axes[k].extent
        src += index[k] * axes[k].src
        dst += index[k] * axes[k].dst
        tab += index[k] * axes[k].tab
    if not segment.chained:
        loops[0] = axes[inner]
        for k in range(box.count):
            loops[k + 1] = box.axes[k]
    row = first
    while True:
        strip = min(axes[inner].extent - index[inner], last - row)
        if segment.chained:
            for k in range(strip):
                run_row(segment, buffers, scratch, src + k * axes[inner].src, dst + k * axes[inner].dst)
        else:
            loops[0].extent = strip
            run_box(box, source + box.src_offset + src, buffers.y + box.dst_offset + dst,
                    buffers.tables + box.tab_offset + tab, loops, box.count + 1)
        row += strip
        if row >= last:
            return
        # To the start of the next strip: back along the innermost row axis, then carry.
        src -= index[inner] * axes[inner].src
        dst -= index[inner] * axes[inner].dst
        tab -= index[inner] * axes[inner].tab
        index[inner] = 0
        k = inner - 1
        while True:
            index[k] += 1
            src += axes[k].src
            dst += axes[k].dst
            tab += axes[k].tab
            if index[k] < axes[k].extent:
                break
            src -= axes[k].extent * axes[k].src
            dst -= axes[k].extent * axes[k].dst
            tab -= axes[k].extent * axes[k].tab
            index[k] = 0
            k -= 1


cdef void run_task(const Segment *segments, int count, const Buffers *buffers, int64_t scratch, int64_t task,
                   int *team) noexcept nogil:
    """One task, on whichever thread picks it up. OUT: the size of the team, where `team` is not NULL."""
    cdef int low = 0, high = count - 1, middle
    cdef int64_t first
    cdef const Segment *segment
    if team:
        team[0] = s2dq_team()
    while low < high:  # the last segment that starts at or before this task
        middle = (low + high + 1) // 2
        if segments[middle].first_task <= task:
            low = middle
        else:
            high = middle - 1
    segment = &segments[low]
    first = (task - segment.first_task) * segment.task_rows
    run_rows(segment, buffers, buffers.scratch + s2dq_thread() * scratch, first,
             min(first + segment.task_rows, segment.rows))


cdef int64_t share_out(Program program, Segment *segments, int team) noexcept nogil:
    """Cut the rows of all segments into tasks; OUT: `task_rows` and `first_task`. Returns the number of tasks."""
    cdef int64_t size = min(max(program.nbytes // (4 * team), TASK_MIN), TASK_MAX)
    cdef int64_t tasks = 0
    cdef int s
    for s in range(program.count):
        segments[s] = program.segments[s]
        segments[s].task_rows = max(1, size // max(1, segments[s].row_bytes))
        segments[s].first_task = tasks
        tasks += (segments[s].rows + segments[s].task_rows - 1) // segments[s].task_rows
    return tasks


def run(Program program not None, cnp.ndarray x not None, cnp.ndarray out not None, const uint8_t[::1] fill not None,
        const uint8_t[::1] tables, int num_threads):
    """Run a program on a pair of arrays.

    Parameters
    ----------
    program : Program
    x, out : ndarray
        Of the shapes, strides and element width the program was made for; not overlapping, `out` C-contiguous.
    fill : buffer of bytes
        Lane element, then the pad element or one per channel.
    tables : buffer of bytes or None
        256 bytes per channel, for programs that look bytes up.
    num_threads : int
        Size of the team wanted; 0 leaves it to the setter, the environment and OpenMP.

    Raises
    ------
    MemoryError
        No memory for the scratch rows.
    """
    if program.count == 0:
        return
    cdef Buffers buffers
    cdef Segment *segments = NULL
    cdef int team = 1, seen = 1
    cdef int64_t tasks, slab, begin, end, task
    buffers.x = <const uint8_t *>cnp.PyArray_DATA(x)
    buffers.y = <uint8_t *>cnp.PyArray_DATA(out)
    buffers.fill = &fill[0]
    buffers.tables = &tables[0] if tables is not None else buffers.fill  # never read without lookups
    buffers.scratch = NULL
    segments = <Segment *>malloc(program.count * sizeof(Segment))
    try:
        if program.nbytes >= (PARALLEL_ASKED if num_threads else PARALLEL_DEFAULT):
            team = team_limit(num_threads)
        if segments:
            tasks = share_out(program, segments, team)
            team = <int>min(<int64_t>team, tasks)
            # At least one task for each thread, else as many as fit in the bytes of a slab.
            slab = max(team, SLAB_BYTES // max(1, program.nbytes // tasks))
            buffers.scratch = <uint8_t *>malloc(max(1, team * program.scratch))
        if not segments or not buffers.scratch:
            raise MemoryError("no memory for scratch rows")
        begin = 0
        while begin < tasks:
            end = min(begin + slab, tasks)
            with nogil:
                if team == 1:
                    for task in range(begin, end):
                        run_task(segments, program.count, &buffers, program.scratch, task, NULL)
                else:
                    for task in prange(begin, end, schedule="dynamic", chunksize=1, num_threads=team):
                        # One task tells, so that no two threads write.
                        run_task(segments, program.count, &buffers, program.scratch, task,
                                 &seen if task == begin else NULL)
            begin = end
            if begin < tasks:
                PyErr_CheckSignals()
        s2dq_set_last_team(seen)
    finally:
        free(segments)
        free(buffers.scratch)


# --------------------------------------------------------------------------------------------------- threads

cdef int team_limit(int wanted) noexcept nogil:
    """The largest team a call on this thread may have now; `wanted` 0 leaves it to the cap."""
    cdef int limit, quota = s2dq_get_quota()
    if s2dq_forked_serial or s2dq_in_parallel():
        return 1
    limit = min(s2dq_openmp_threads(), s2dq_processors())
    if quota:
        limit = min(limit, quota)
    if not wanted:
        wanted = s2dq_get_cap()
    if wanted:
        limit = min(limit, wanted)
    return max(limit, 1)


def get_team_limit():
    """Size of the team a large call on this thread would get now."""
    return team_limit(0)


def set_thread_cap(int count):
    """Set how many threads calls without an explicit count want; 0 leaves it to OpenMP."""
    s2dq_set_cap(count)


def set_quota(int count):
    """Set how many CPUs the control group grants; 0 is no limit."""
    s2dq_set_quota(count)


def last_team_size():
    """Size of the team of the last call on this thread: for tests."""
    return s2dq_get_last_team()


def build_info():
    """What the compiler knew: ``(compiler, OpenMP version or 0)``."""
    return S2DQ_COMPILER.decode(), s2dq_has_openmp()


if s2dq_guard_fork() != 0:
    raise ImportError("s2dq: pthread_atfork refused the fork handlers")
