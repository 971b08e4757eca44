# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True, embedsignature=True
"""Execution of plans: the driver, and the only parallel loop of the package.

A *plan* (see `_plan`) arrives as a flat table of integers and is read once into a `Program`. It holds *segments*; a
segment has *rows*, the units of parallel work, and the *boxes* to run for each of them. A box copies granules of a
fixed width through nested loops from one buffer to another, or runs a *tile* (`_micro/tile.h`) at every turn of them:

    X  the source array         addressed by pointer and byte steps, so any strides, alignment and dtype will do
    Y  the result               C-contiguous, never overlapping X
    T  a scratch row            one per thread, allocated before the threads start
    F  fill values              lane element first, then the pad element or one per channel

Who guarantees what. `_validate` has proven that X and Y have the shapes the plan was made for, that they do not
overlap and that every product fits in 63 bits. `_plan` guarantees that each byte of Y is written exactly once, and
that no step leaves X. Here nothing is checked again: below `run` everything is `noexcept nogil`, and divisors are
row extents and task sizes, which are at least 1.

A tile reads its pieces in full, and so more than its own bytes of them. The driver lets it where that stays between
the first and the last byte that the program reads of X; elsewhere the tile runs alone, with masks. Tiles of one loop
may overlap and write the same bytes twice; rows never do, for different threads run them.

The rows of all segments are laid end to end and cut into tasks; a task is a range of rows of one segment. Within a
task, consecutive rows along the innermost row axis are run together as one more loop (a *strip*).

Nothing here knows an operator or a layout.
"""

import os
from types import MethodType

import numpy as np

cimport cython
from cython.parallel cimport prange
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_New, PyCapsule_SetContext
from cpython.ref cimport Py_DECREF, Py_INCREF

cimport numpy as cnp

from s2dq.kernels cimport Plan, S2DQ_PLAN_VERSION

cnp.import_array()


cdef extern from "numpy/arrayobject.h":
    # Takes the reference to `descr` over, also when it fails.
    object PyArray_NewFromDescr(PyTypeObject *subtype, cnp.PyArray_Descr *descr, int nd, const cnp.npy_intp *dims,
                                const cnp.npy_intp *strides, void *data, int flags, PyObject *obj)
    PyTypeObject PyArray_Type

    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *ctx, size_t size)
        void *(*calloc)(void *ctx, size_t count, size_t size)
        void *(*realloc)(void *ctx, void *data, size_t size)
        void (*free)(void *ctx, void *data, size_t size)
    ctypedef struct PyDataMem_Handler:
        char name[127]
        uint8_t version
        PyDataMemAllocator allocator
    object PyDataMem_SetHandler(object handler)

cdef extern from "_micro/memory.h" nogil:
    """
    #if defined(S2DQ_KEEPS_MEMORY)
    static PyDataMem_Handler s2dq_memory = {
        "s2dq", 1,
        {&s2dq_memory_source, s2dq_memory_new, s2dq_source_zeroed, s2dq_source_resized, s2dq_memory_free}};
    static PyDataMem_Handler s2dq_lines_memory = {
        "s2dq lines", 1,
        {&s2dq_lines_source, s2dq_lines_new, s2dq_source_zeroed, s2dq_source_resized, s2dq_lines_free}};
    static PyDataMem_Handler *s2dq_get_memory(int keeps) { return keeps ? &s2dq_memory : &s2dq_lines_memory; }
    #else
    static PyDataMem_Handler *s2dq_get_memory(int keeps) { return (void)keeps, NULL; }
    #endif
    """
    PyDataMem_Handler *s2dq_get_memory(int keeps) noexcept

cdef extern from "_micro/axis.h" nogil:
    ctypedef struct s2dq_axis:
        int64_t extent, src, dst, tab, src_back, dst_back
    ctypedef struct s2dq_frame:
        int64_t lead, gap, tail

cdef extern from "_micro/avx2_tile.h" nogil:
    pass

cdef extern from "_micro/tile.h" nogil:
    enum:
        S2DQ_REGISTERS
        S2DQ_PIECES
        S2DQ_REGISTER_BYTES
        S2DQ_TILE_LOOPS
        S2DQ_FETCH_NEAREST
        S2DQ_FETCH_SECOND
        S2DQ_NET_PIECES
        S2DQ_NET_DIGITS
    ctypedef struct s2dq_steps:
        int trios
    ctypedef struct s2dq_tile:
        int64_t inputs, loads, outputs, stores, fills, far, asks, mapped, past
        int64_t src[S2DQ_PIECES]
        int64_t dst[S2DQ_PIECES]
        int64_t runs, run_pieces
        uint64_t src_mask[S2DQ_PIECES]
        uint64_t dst_mask[S2DQ_PIECES]
        uint64_t upper[S2DQ_REGISTERS]
        uint8_t low[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]
        uint8_t high[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]
        int8_t fill[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]
        uint8_t tab[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]
        const s2dq_steps *steps
    void s2dq_tile_join_stores(s2dq_tile *tile) noexcept
    void s2dq_tile_choose(s2dq_tile *tile) noexcept
    ctypedef struct s2dq_bend:
        int64_t side, total, indices, unit, inside
        int64_t extent[S2DQ_NET_DIGITS]
        int64_t step[S2DQ_NET_DIGITS]
        int64_t index[S2DQ_NET_PIECES]
        const int32_t *at
    ctypedef struct s2dq_network:
        int64_t levels, loads, stores, run, unit, step, far, asks
        s2dq_bend bend
        int64_t src[S2DQ_NET_PIECES]
        int64_t dst[S2DQ_NET_PIECES]
        uint8_t table[4][2][S2DQ_REGISTER_BYTES]
    ctypedef void (*s2dq_network_runner)(uint8_t *dst, const uint8_t *src, const s2dq_network *network,
                                         const s2dq_axis *loops) noexcept nogil
    int64_t s2dq_bend_turns(const s2dq_bend *bend) noexcept
    int64_t s2dq_bend_pieces(const s2dq_network *network) noexcept
    bint s2dq_bend_table(int32_t *at, const s2dq_network *network) noexcept
    void s2dq_network_in_lines(s2dq_network_runner runner, uint8_t *dst, const uint8_t *src,
                               const s2dq_network *network, const s2dq_axis *loops) noexcept nogil
    ctypedef struct s2dq_line:
        int64_t slope, more, less, shift
    ctypedef struct s2dq_lines:
        pass
    ctypedef struct s2dq_filling:
        uint8_t keep[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]
        uint8_t fill[S2DQ_REGISTERS][S2DQ_REGISTER_BYTES]
        const s2dq_lines *lines
    void s2dq_tile_fill(s2dq_filling *filling, s2dq_lines *lines, const s2dq_tile *tile, const uint8_t *fill,
                        uint8_t first, uint8_t flip, const s2dq_line *tables, const uint8_t *bytes) noexcept
    ctypedef void (*s2dq_tile_runner)(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,
                                      const s2dq_filling *filling, const s2dq_axis *loops) noexcept nogil
    ctypedef void (*s2dq_tile_edge_runner)(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile,
                                           const s2dq_filling *filling) noexcept nogil
    ctypedef struct s2dq_carry:
        pass

cdef extern from "_micro/isa.h" nogil:
    int S2DQ_ISA_COUNT
    const char *s2dq_isa_name(int isa) noexcept
    bint s2dq_isa_runs(int isa) noexcept
    bint s2dq_follows_streams() noexcept
    int s2dq_stores_across() noexcept

cdef extern from "_micro/avx2_map.h" nogil:
    ctypedef struct s2dq_tables:
        const uint8_t *tables
        const s2dq_line *lines
        uint8_t first, flip

cdef extern from "_micro/dispatch.h" nogil:
    ctypedef struct s2dq_kernels:
        void (*copy)(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width) noexcept nogil
        void (*copy_lanes)(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width,
                           int64_t lanes, const uint8_t *fill, int64_t element) noexcept nogil
        void (*copy_framed)(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int count, int64_t width,
                            const s2dq_frame *frame, const uint8_t *fill, int64_t element) noexcept nogil
        void (*lookup)(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_axis *axes,
                       int count) noexcept nogil
        s2dq_tile_runner (*tile)(const s2dq_tile *tile) noexcept nogil
        s2dq_tile_runner (*streamer)(const s2dq_tile *tile) noexcept nogil
        s2dq_tile_runner (*aligner)(const s2dq_tile *tile) noexcept nogil
        bint (*aligns)(const uint8_t *dst, const s2dq_tile *tile, const s2dq_axis *loops) noexcept nogil
        s2dq_network_runner (*network)(const s2dq_network *network) noexcept nogil
        s2dq_tile_edge_runner edge
        void (*sweep)(uint8_t *dst, const uint8_t *src, const s2dq_tile *tile, const s2dq_filling *filling,
                      const s2dq_axis *loop, int64_t group, int64_t next, s2dq_tile_runner streamer,
                      s2dq_carry *carry) noexcept nogil
        void (*flush)(s2dq_carry *carry) noexcept nogil
        void (*settle)() noexcept nogil
        bint short_rows
        int (*steps)(s2dq_steps *steps, const s2dq_tile *tile) noexcept nogil
        bint lines, tables, bends
        void (*map)(uint8_t *dst, const uint8_t *src, const uint8_t *table, const s2dq_tables *mapping,
                    const s2dq_axis *axes, int count) noexcept nogil
        bint joins
    s2dq_kernels s2dq_kernels_of(int isa, int across, bint follows) noexcept

cdef extern from "_micro/convert.h" nogil:
    ctypedef struct s2dq_environment:
        pass
    void s2dq_enter(s2dq_environment *before) noexcept
    void s2dq_leave(const s2dq_environment *before) noexcept
    enum:
        S2DQ_VIEW_AXES
    ctypedef struct s2dq_converters:
        pass
    ctypedef struct s2dq_along:
        int64_t groups, run, period
    ctypedef struct s2dq_parameters:
        const float *scale
        const int32_t *zero
    ctypedef struct s2dq_conversion:
        const uint8_t *x
        uint8_t *y
        int from_ "from", to
        bint x_swapped, y_swapped, x_direct, y_direct
        int axes
        int64_t extent[S2DQ_VIEW_AXES]
        int64_t step[S2DQ_VIEW_AXES]
        s2dq_parameters source, target
        s2dq_along along
    const s2dq_converters *s2dq_converters_of(int isa) noexcept
    void s2dq_convert(const s2dq_conversion *conversion, const s2dq_converters *converters, int64_t first,
                      int64_t last) noexcept

cdef extern from "_micro/stage.h" nogil:
    ctypedef struct s2dq_stage:
        int from_ "from", to
        int64_t constants
        float rescale, scale
        int32_t zero
        const float *mean
        const float *std
        const uint8_t *table
    void s2dq_stage_rows(uint8_t *dst, const uint8_t *src, const s2dq_axis *axes, int64_t first,
                         const s2dq_stage *stage, const s2dq_converters *converters, int isa) noexcept

cdef extern from "_micro/threads.h" nogil:
    const char *S2DQ_COMPILER
    int s2dq_forked_serial
    int s2dq_guard_fork() noexcept
    int s2dq_has_openmp() noexcept
    bint s2dq_in_parallel() noexcept
    int s2dq_openmp_threads() noexcept
    int s2dq_processors() noexcept
    int s2dq_thread() noexcept
    int s2dq_team() noexcept
    int64_t s2dq_now() noexcept
    int64_t s2dq_get_last_end() noexcept
    void s2dq_set_last_end(int64_t when) noexcept
    int s2dq_get_last_team() noexcept
    void s2dq_set_last_team(int size) noexcept
    int s2dq_get_cap() noexcept
    void s2dq_set_cap(int count) noexcept
    int s2dq_get_quota() noexcept
    void s2dq_set_quota(int count) noexcept
    int s2dq_get_pretended() noexcept
    void s2dq_set_pretended(int count) noexcept
    int64_t s2dq_take(int64_t *next) noexcept
    void s2dq_note(int *place, int value) noexcept
    void s2dq_set_stack_size(int64_t size) noexcept
    bint s2dq_can_start(int team) noexcept
    void s2dq_keep_team(int team) noexcept


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define S2DQ_HAS_GIL 0
    #else
    #define S2DQ_HAS_GIL 1
    #endif
    """
    bint S2DQ_HAS_GIL            # nobody changes an object while we look at it and run no Python code


cdef extern from * nogil:
    """
    #if PY_VERSION_HEX < 0x030D0000
    #define PyThreadState_GetUnchecked _PyThreadState_UncheckedGet
    #endif

    /* Have `act` done with the GIL, whether this thread has it or not. Not by PyGILState_Ensure, which lets a daemon
     * thread that comes after the end of the interpreter crash. Nothing is done then, or in a thread that Python does
     * not know: `otherwise` is returned. */
    static int s2dq_with_gil(int (*act)(void *work), void *work, int otherwise)
    {
        PyThreadState *const thread = PyGILState_GetThisThreadState();
        int status;
        if (!thread) return otherwise;
        if (PyThreadState_GetUnchecked() == thread) return act(work);
        PyEval_RestoreThread(thread);
        status = act(work);
        PyEval_SaveThread();
        return status;
    }

    static int s2dq_check_signals(void *work) { (void)work; return PyErr_CheckSignals(); }
    static int s2dq_no_scratch(void *work)
    {
        (void)work;
        PyErr_SetString(PyExc_MemoryError, "no memory for scratch rows");
        return -1;
    }

    /* 0, or -1 with the exception that a signal's handler has raised. */
    static int s2dq_look_at_signals(void) { return s2dq_with_gil(s2dq_check_signals, NULL, 0); }
    /* -1 */
    static int s2dq_refuse_scratch(void) { return s2dq_with_gil(s2dq_no_scratch, NULL, -1); }
    """
    int s2dq_look_at_signals() noexcept
    int s2dq_refuse_scratch() noexcept

cdef extern from *:
    int s2dq_with_gil(int (*act)(void *work) noexcept, void *work, int otherwise) noexcept nogil


cdef extern from "Python.h":
    ctypedef PyObject *(*vectorcallfunc)(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
    ctypedef struct CallableType "PyTypeObject":
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf)
    object PyObject_Vectorcall(object callable, PyObject *const *args, size_t nargsf, PyObject *names)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items)
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t k)


cdef enum:
    BUFFER_X = 0
    BUFFER_Y = 1
    BUFFER_T = 2
    BUFFER_F = 3
    TABLE = 1                    # how bytes are looked up: in tables, as they lie,
    FLIP = 2                     # as bytes with some bits turned,
    LINE = 3                     # or as arithmetic that comes to the same;
    STAGE = 4                    # or converted, as elements of another width
    SEQUENCE = -1                # of lines past the caches, in one run over all loops
    SEEN_AXES = 16               # calls with more are not remembered
    MEMO_CALLS = 64              # arguments an operator remembers
    MEMO_ARRAYS = 8              # and arrays for each of them
    MEMO_RECENT = 64             # places for the last calls, by shape
    MAX_PARAMETERS = 16
    MAX_AXES = 64                # every axis has an extent of 2 at least, and no result has 2**63 bytes

cdef int64_t FAR = 1 << 20           # results of this size and their sources do not stay in the nearer caches
cdef int64_t NEAR = 32 << 10         # sources of one tile that lie together
cdef int64_t FOLLOWED = 1 << 23      # up to here some processors need no help with what is read in order, or written
cdef bint FOLLOWS = s2dq_follows_streams()
cdef int64_t DEEP = 1 << 26          # and those of such results come from memory, not from the last cache
cdef int64_t GROWN = 1 << 20         # bytes of a result in a block whose source is passed over several times
cdef int64_t LINE_MEMORY = 1 << 18   # bytes of a result from which it is worth 0.2 us that it begins at a cache line
cdef int64_t KEEP_MEMORY = 1 << 25   # bytes of a result from which the allocator would give every page back
cdef int64_t SMALL = 1 << 14         # bytes of a result that are moved before anything is set up
# Bytes of a result from which a team is worth its start: when the caller asked for threads, and when nobody did. A
# team that has gone to sleep takes milliseconds to wake. So by default only calls in quick succession get one, whose
# team is still awake or will be for the next call, and those so large that they do not mind.
cdef int64_t PARALLEL_ASKED = 1 << 18
cdef int64_t PARALLEL_AWAKE = 1 << 20
cdef int64_t PARALLEL_ASLEEP = 1 << 28
cdef int64_t AWAKE = 1000000         # nanoseconds since the last such call
cdef int64_t RESIDENT = 1 << 24      # bytes of a result that may still be in the caches at the next call
cdef int64_t TASK_MIN = 1 << 16      # a task is worth handing out
cdef int64_t TASK_MAX = 1 << 23      # and small enough to share evenly, and to wait for after Ctrl-C
cdef int64_t PART_MAX = 1 << 21      # of a conversion, whose elements may each be in a line of its own
cdef int64_t SHIFT = 30000000        # nanoseconds between two looks at pending signals
cdef int64_t GLANCE = 1 << 20        # bytes of the result between two looks at the clock
cdef int64_t SLAB_BYTES = 1 << 26    # or, without a clock, bytes of the result

# The instruction set in use and its kernels: set once, at the end of the import.
cdef int ISA
cdef s2dq_kernels KERNELS
cdef const s2dq_converters *CONVERTERS

cdef s2dq_filling NO_FILLING         # everything kept
memset(NO_FILLING.keep, 255, sizeof(NO_FILLING.keep))
memset(NO_FILLING.fill, 0, sizeof(NO_FILLING.fill))
NO_FILLING.lines = NULL

cdef struct Box:
    int source, target, lookup, count, number
    int64_t src_offset, dst_offset, tab_offset, width
    int64_t lanes, lane          # bytes of fill behind each run, and of the fill's element
    bint framed                  # whether its last two loops are pictures, within
    s2dq_frame frame
    s2dq_axis *axes
    s2dq_tile *tile              # NULL: granules of `width`
    s2dq_tile_runner runner, streamer, aligner
    s2dq_network *network        # or NULL
    s2dq_network_runner network_runner
    int64_t stream               # 0: the result stays in the caches; SEQUENCE; indices in a turn of the innermost loop
    int64_t low, high            # what a tile reads, seen from its position

cdef struct Segment:
    int row_axes, boxes
    int64_t rows                 # how many
    bint in_turn                 # whether a row runs box after box
    int64_t row_bytes            # written by one row, to the result or to scratch, whichever is more
    int64_t task_rows            # filled in by `run`, in its own copy
    int64_t first_task
    s2dq_axis *axes              # of the rows
    Box *box

cdef struct Buffers:
    const uint8_t *x
    const uint8_t *x_low         # the first byte of X that the program reads
    const uint8_t *x_high        # and one past the last
    uint8_t *y
    uint8_t *scratch
    const uint8_t *fill
    const uint8_t *tables
    const s2dq_filling *fillings  # of every box, where tiles look bytes up
    const s2dq_tables *mapping  # the lines of the tables, where all have one
    const s2dq_stage *stage      # where elements are converted first
    int64_t scratch_bytes        # of a thread
    bint past                    # whether anything goes past the caches


cdef bint worth_fetching(const s2dq_tile *tile) noexcept nogil:
    """Whether software should fetch a tile's lines ahead. For planes far apart, which are read on and on, the
    processor's own prefetchers do better."""
    cdef int k
    if tile.loads > 2:
        return False
    for k in range(tile.inputs * tile.loads):
        if not -NEAR <= tile.src[k] - tile.src[0] <= NEAR:
            return False
    return True


cdef bint reads_in_order(const Segment *segment, const Box *box) noexcept nogil:
    """Whether a tile reads its source from one end to the other."""
    cdef const s2dq_tile *tile = box.tile
    cdef int64_t piece = S2DQ_REGISTER_BYTES // tile.loads
    cdef int64_t read = 0
    cdef int k
    for k in range(tile.inputs * tile.loads):
        if tile.src_mask[k]:
            if tile.src[k] != tile.src[0] + read:
                return False
            read += piece
    return segment.boxes == 1 and goes_on(box.axes, box.count, &read) and goes_on(segment.axes, segment.row_axes, &read)


cdef bint goes_on(const s2dq_axis *axes, int count, int64_t *read) noexcept nogil:
    """Whether each turn of the loops reads on from where the one before stopped. IN, OUT: bytes read in a turn."""
    cdef int k
    for k in range(count - 1, -1, -1):
        if axes[k].src > read[0] or axes[k].src <= 0:
            return False
        read[0] = axes[k].src * axes[k].extent - axes[k].src_back
    return True


cdef void *some_memory(int64_t nbytes) noexcept nogil:
    """For so many bytes, and for at least one: none could be NULL."""
    return malloc(max(1, nbytes))


cdef void *room(int64_t length, int64_t numbers, size_t size) noexcept:
    """Cleared memory for all parts of a table that take so many of its `length` numbers, or more."""
    return calloc(length // numbers + 1, size)


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
    cdef s2dq_tile *tiles
    cdef s2dq_network *networks
    cdef int all_networks
    cdef s2dq_steps *steps
    cdef int count, all_boxes
    cdef readonly int64_t low, high  # what is read of X, seen from its first element
    cdef readonly int64_t scratch
    cdef readonly int64_t nbytes
    cdef bint past               # whether results go past the caches
    cdef int64_t work            # bytes written, of the result and to scratch
    cdef bint boxed              # whether a task is less than a row, so that one thread has all

    def __cinit__(self, const int64_t[::1] table not None):
        cdef Py_ssize_t length = table.shape[0]
        cdef Py_ssize_t at = 2
        cdef int s, k, axes = 0, boxes = 0, tiles = 0, networks = 0
        cdef int64_t size
        cdef int64_t written[2]  # to the result, and to scratch
        cdef Segment *segment
        cdef Box *box
        if length < 2 or not 0 <= table[0] <= length // 2:
            raise ValueError("plan table: no plan starts like this")
        self.count = <int>table[0]
        self.scratch = table[1]
        self.low, self.high = INT64_MAX, INT64_MIN
        # Parts are of so many numbers at least, which bounds how many there are.
        self.segments = <Segment *>room(length, 2, sizeof(Segment))
        self.boxes = <Box *>room(length, 8, sizeof(Box))
        self.axes = <s2dq_axis *>room(length, 6, sizeof(s2dq_axis))
        self.tiles = <s2dq_tile *>room(length, 68, sizeof(s2dq_tile))
        self.networks = <s2dq_network *>room(length, 128, sizeof(s2dq_network))
        if not self.segments or not self.boxes or not self.axes or not self.tiles or not self.networks:
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
            written[0] = written[1] = 0
            for _ in range(segment.boxes):
                box = &self.boxes[boxes]
                box.number = boxes
                boxes += 1
                box.source = <int>table[at]
                box.target = <int>table[at + 1]
                box.src_offset = table[at + 2]
                box.dst_offset = table[at + 3]
                box.width = table[at + 4]
                box.lookup = <int>table[at + 5]
                box.tab_offset = table[at + 6]
                box.lanes = table[at + 7]
                box.lane = table[at + 8]
                box.count = <int>table[at + 9]
                at += 10
                box.axes = &self.axes[axes]
                size = box.width
                for k in range(box.count):
                    self._read_axis(table, &at, &axes)
                    size *= box.axes[k].extent
                at += 1
                if table[at - 1] == 2:
                    box.network = &self.networks[networks]
                    networks += 1
                    self.all_networks = networks
                    at += 1
                    self._read_network(table, &at, box.network)
                    box.network_runner = KERNELS.network(box.network)
                    if box.network_runner == NULL:
                        raise ValueError("plan table: no kernel for a network of this shape")
                    self._reads(box, box.network.src, 16, box.network.loads)
                elif table[at - 1] == 3:
                    box.framed = True
                    box.lane = table[at]
                    box.frame.lead, box.frame.gap, box.frame.tail = table[at + 1], table[at + 2], table[at + 3]
                    at += 4
                    size += self._frames(box)
                elif table[at - 1]:
                    box.tile = &self.tiles[tiles]
                    tiles += 1
                    box.stream = table[at]
                    self.past = self.past or (box.stream != 0 and KERNELS.settle != NULL)
                    at += 1
                    self._read_tile(table, &at, box.tile)
                    if box.lookup:
                        box.tile.mapped = box.lookup == LINE
                        box.tile.fills += box.lookup == FLIP  # as kernels see it
                    self._reads(box, box.tile.src, box.tile.inputs, box.tile.loads)
                if box.source == BUFFER_X:
                    self._reach(segment, box)
                written[box.target == BUFFER_T] += size
            self.nbytes += segment.rows * written[0]
            segment.in_turn = segment.boxes > 1
            segment.row_bytes = max(written[0], written[1])
            self.work += segment.rows * segment.row_bytes
            self.boxed = self.boxed or in_boxes(segment)
        if self.low > self.high:  # it reads nothing
            self.low = self.high = 0
        self._choose_fetching()
        self.all_boxes = boxes
        if KERNELS.steps != NULL and tiles:
            self.steps = <s2dq_steps *>calloc(tiles, sizeof(s2dq_steps))
            if not self.steps:
                raise MemoryError("plan table: no memory for the program")
            for k in range(tiles):
                KERNELS.steps(&self.steps[k], &self.tiles[k])
                self.tiles[k].steps = &self.steps[k]
        for k in range(boxes):
            box = &self.boxes[k]
            if box.tile:
                box.tile.past = box.stream != 0 and (box.stream == SEQUENCE or not FOLLOWS)
                box.runner = KERNELS.tile(box.tile)
                if box.stream > 0:
                    box.streamer = KERNELS.streamer(box.tile)
                if KERNELS.aligner != NULL:
                    box.aligner = KERNELS.aligner(box.tile)
        if at != length:
            raise ValueError("plan table: length does not match its contents")

    cdef void _choose_fetching(self):
        """Where software fetches what is read or written next. OUT: `far` and `asks` of tiles and networks."""
        cdef Segment *segment
        cdef Box *box
        cdef bint followed = FOLLOWS and self.nbytes < FOLLOWED
        cdef int s, k
        for s in range(self.count):
            segment = &self.segments[s]
            for k in range(segment.boxes):
                box = &segment.box[k]
                if box.network:
                    box.network.far = self.nbytes >= FAR and not FOLLOWS
                    box.network.asks = not FOLLOWS
                elif box.tile:
                    box.tile.far = S2DQ_FETCH_NEAREST if self.nbytes >= FAR and worth_fetching(box.tile) else 0
                    box.tile.asks = not followed
                    # Steps fetch a whole sweep at once, which is in the way of a processor that follows streams.
                    if (followed and reads_in_order(segment, box)) or (FOLLOWS and KERNELS.steps != NULL):
                        box.tile.far = 0
                    if box.tile.far and box.stream and self.nbytes >= DEEP and not FOLLOWS:
                        box.tile.far = S2DQ_FETCH_SECOND

    cdef int64_t _frames(self, const Box *box) noexcept:
        """How many bytes of the result the frames of a box are."""
        cdef int64_t size = box.frame.lead + (box.axes[box.count - 2].extent - 1) * box.frame.gap + box.frame.tail
        cdef int k
        for k in range(box.count - 2):
            size *= box.axes[k].extent
        return size

    cdef void _reads(self, Box *box, const int64_t *src, int64_t registers, int64_t loads):
        """What a tile or network reads when it reads its pieces in full. OUT: `low` and `high` of the box."""
        cdef int k
        cdef int64_t last
        box.low, box.high = src[0], src[0]
        for k in range(registers * loads):
            box.low = min(box.low, src[k])
            box.high = max(box.high, src[k] + S2DQ_REGISTER_BYTES // loads)
        if box.network and box.network.bend.side == 1:
            for k in range(S2DQ_NET_DIGITS):
                last = (box.network.bend.extent[k] - 1) * box.network.bend.step[k]
                box.low += min(0, last)
                box.high += max(0, last)
        elif box.network and box.network.bend.side == 2:
            box.high += (box.network.bend.total - box.network.bend.indices) * box.network.bend.unit

    cdef void _reach(self, const Segment *segment, const Box *box):
        """Widen what is read of X by what this box reads."""
        cdef int64_t low = box.src_offset, high = box.src_offset, first = 0, last = box.width
        cdef int k, bit
        for k in range(segment.row_axes + box.count):
            widen(&segment.axes[k] if k < segment.row_axes else &box.axes[k - segment.row_axes], &low, &high)
        if box.network:
            first, last = box.low, box.high
        if box.tile:  # not position 0, which it may have no byte at
            first, last = INT64_MAX, INT64_MIN
            for k in range(box.tile.inputs * box.tile.loads):
                for bit in range(64):
                    if box.tile.src_mask[k] >> bit & 1:
                        first = min(first, box.tile.src[k] + bit)
                        last = max(last, box.tile.src[k] + bit + 1)
            if first > last:
                return
        self.low = min(self.low, low + first)
        self.high = max(self.high, high + last)

    cdef void _read_axis(self, const int64_t[::1] table, Py_ssize_t *at, int *axes):
        cdef s2dq_axis *axis = &self.axes[axes[0]]
        axis.extent = table[at[0]]
        axis.src = table[at[0] + 1]
        axis.dst = table[at[0] + 2]
        axis.tab = table[at[0] + 3]
        axis.src_back = table[at[0] + 4]
        axis.dst_back = table[at[0] + 5]
        at[0] += 6
        axes[0] += 1

    cdef int _read_network(self, const int64_t[::1] table, Py_ssize_t *at, s2dq_network *network) except -1:
        cdef Py_ssize_t here = at[0]
        cdef int k, level, half
        network.levels = table[here]
        network.run, network.unit, network.step = table[here + 1], table[here + 2], table[here + 3]
        network.loads = table[here + 4]
        here += 5
        for k in range(S2DQ_NET_PIECES):
            network.src[k] = table[here + k]
        here += S2DQ_NET_PIECES
        network.stores = table[here]
        for k in range(S2DQ_NET_PIECES):
            network.dst[k] = table[here + 1 + k]
        here += 1 + S2DQ_NET_PIECES
        for level in range(network.levels):
            for half in range(2):
                self._read_register(table, &here, network.table[level][half])
        network.bend.side = table[here]
        here += 1
        if network.bend.side:
            here = self._read_bend(table, here, network)
        at[0] = here
        return 0

    cdef Py_ssize_t _read_bend(self, const int64_t[::1] table, Py_ssize_t here, s2dq_network *network) except -1:
        cdef s2dq_bend *bend = &network.bend
        cdef int32_t *at
        cdef int k
        bend.total, bend.indices = table[here], table[here + 1]
        bend.unit, bend.inside = table[here + 2], table[here + 3]
        here += 4
        for k in range(S2DQ_NET_DIGITS):
            bend.extent[k], bend.step[k] = table[here + 2 * k], table[here + 2 * k + 1]
        here += 2 * S2DQ_NET_DIGITS
        for k in range(S2DQ_NET_PIECES):
            bend.index[k] = table[here + k]
        at = <int32_t *>malloc(s2dq_bend_turns(bend) * s2dq_bend_pieces(network) * sizeof(int32_t))
        bend.at = at
        if at == NULL:
            raise MemoryError("plan table: no memory for the program")
        if not s2dq_bend_table(at, network):
            raise ValueError("plan table: a network reaches too far")
        return here + S2DQ_NET_PIECES

    cdef void _read_tile(self, const int64_t[::1] table, Py_ssize_t *at, s2dq_tile *tile):
        cdef Py_ssize_t here = at[0]
        cdef int k, part
        tile.inputs, tile.loads = table[here], table[here + 1]
        here += 2
        for k in range(S2DQ_PIECES):
            tile.src[k] = table[here + k]
            tile.src_mask[k] = <uint64_t>table[here + S2DQ_PIECES + k]
        here += 2 * S2DQ_PIECES
        tile.outputs, tile.stores = table[here], table[here + 1]
        here += 2
        for k in range(S2DQ_PIECES):
            tile.dst[k] = table[here + k]
            tile.dst_mask[k] = <uint64_t>table[here + S2DQ_PIECES + k]
        here += 2 * S2DQ_PIECES
        tile.runs, tile.run_pieces = table[here], table[here + 1]
        here += 2
        for k in range(tile.outputs):
            tile.upper[k] = <uint64_t>table[here]
            here += 1
            self._read_register(table, &here, tile.low[k])
            self._read_register(table, &here, tile.high[k])
            self._read_register(table, &here, <uint8_t *>tile.fill[k])
            self._read_register(table, &here, tile.tab[k])
            for part in range(S2DQ_REGISTER_BYTES):
                tile.fills += tile.fill[k][part] >= 0
        if KERNELS.joins:
            s2dq_tile_join_stores(tile)
        s2dq_tile_choose(tile)
        at[0] = here

    cdef void _read_register(self, const int64_t[::1] table, Py_ssize_t *at, uint8_t *register):
        cdef int k
        for k in range(S2DQ_REGISTER_BYTES):
            register[k] = <uint8_t>(table[at[0] + k // 8] >> 8 * (k % 8) & 255)
        at[0] += S2DQ_REGISTER_BYTES // 8

    def chosen(self):
        """What the plan leaves open, for tests: the reach in X, whether lines go past the caches, and for each box what
        it reads, whether that or the result is fetched, which kernels there are, how a tile's stores were joined, and
        in how many trios its steps are.
        """
        cdef Box *box
        cdef int k
        boxes = []
        for k in range(self.all_boxes):
            box = &self.boxes[k]
            if box.network:
                boxes.append((box.low, box.high, box.network.far, box.network.asks, box.network.run, box.network.unit,
                              box.network.step))
            elif box.tile:
                boxes.append((box.low, box.high, box.tile.far, box.tile.asks, box.tile.past, box.tile.stores,
                              box.tile.fills, box.tile.mapped, box.streamer != NULL, box.aligner != NULL,
                              box.tile.steps.trios if box.tile.steps != NULL else -1))
        return self.low, self.high, self.past, boxes

    def tasks(self, int team):
        """How rows are cut into tasks for a team, for tests: rows in a task of each segment, its first task, and how
        many there are in all."""
        cdef int s
        cdef int64_t count
        memory = bytearray(self.count * sizeof(Segment))
        cdef Segment *segments = <Segment *><char *>memory
        count = share_out(self, segments, team)
        return [(segments[s].task_rows, segments[s].first_task) for s in range(self.count)], count

    def __dealloc__(self):
        cdef int k
        free(self.segments)
        free(self.boxes)
        free(self.axes)
        free(self.tiles)
        for k in range(self.all_networks):
            free(<void *>self.networks[k].bend.at)
        free(self.networks)
        free(self.steps)


# ------------------------------------------------------------------------------------------------ the driver

cdef struct Tiling:
    const Box *box
    const s2dq_filling *filling
    const uint8_t *low           # what may be read of the source
    const uint8_t *high
    s2dq_carry *carry            # of a stream
    int64_t next                 # and how far its next sweep is


cdef void widen(const s2dq_axis *axis, int64_t *low, int64_t *high) noexcept nogil:
    """Widen places of the source by what a loop steps; its last turn goes back."""
    cdef int64_t last = (axis.extent - 1) * axis.src - axis.src_back, before = last
    if axis.extent > 1:
        before = (axis.extent - 2) * axis.src
        low[0] += min(0, before, last)
        high[0] += max(0, before, last)
    else:
        low[0] += last
        high[0] += last


cdef bint inside(const Tiling *tiling, const uint8_t *src, const s2dq_axis *loops, int count) noexcept nogil:
    """Whether every piece that the loops read in full lies within the source."""
    cdef int64_t low = tiling.box.low, high = tiling.box.high
    cdef int k
    for k in range(count):
        widen(&loops[k], &low, &high)
    return tiling.low - src <= low and high <= tiling.high - src


cdef bint is_sequence(const s2dq_tile *tile, const s2dq_axis *loops) noexcept nogil:
    """Whether the loops write one run without a gap, each turn behind the one before. IN: a tile that writes a run."""
    cdef int64_t size = tile.outputs * S2DQ_REGISTER_BYTES
    cdef int k
    for k in range(S2DQ_TILE_LOOPS - 1, -1, -1):
        if loops[k].dst_back or (loops[k].extent > 1 and loops[k].dst != size):
            return False
        size *= loops[k].extent
    return True


cdef bint makes_lines(const Box *box, const uint8_t *dst, const s2dq_axis *loops) noexcept nogil:
    """Whether the loops are run in whole lines: past the caches, or because the result does not begin at one."""
    if box.stream == SEQUENCE:
        return is_sequence(box.tile, loops)
    return KERNELS.aligns(dst, box.tile, loops)


cdef bint run_grown(const Tiling *tiling, const uint8_t *src, uint8_t *dst, const s2dq_axis *loops,
                    int count) noexcept nogil:
    """Loops over tiles past the caches, where one makes the runs of the innermost one longer: turn after turn of that
    one, for those around it in blocks. OUT: whether that was possible, or nothing was done."""
    cdef s2dq_axis three[S2DQ_TILE_LOOPS]
    cdef const s2dq_axis *inner = &loops[count - 1]
    cdef int64_t block, i
    cdef int k, grown = -1
    if tiling.box.aligner == NULL or FOLLOWS or inner.dst_back:
        return False
    memset(three, 0, sizeof(three))
    three[0].extent = 1
    for k in range(count - 1):
        if grown < 0 and loops[k].dst == inner.dst * inner.extent and not loops[k].dst_back:
            grown = k
        else:
            three[0] = loops[k]
    if grown < 0 or not inside(tiling, src, loops, count):
        return False
    block = max(1, GROWN // (tiling.box.width * inner.extent * three[0].extent))
    three[1] = loops[grown]
    three[2] = inner[0]
    i = 0
    while i < loops[grown].extent:
        three[1].extent = min(block, loops[grown].extent - i)
        tiling.box.aligner(dst + i * three[1].dst, src + i * three[1].src, tiling.box.tile, tiling.filling, three)
        i += block
    return True


cdef bint run_stream(const Tiling *tiling, const uint8_t *src, uint8_t *dst, const s2dq_axis *loop,
                     int64_t next) noexcept nogil:
    """One loop over tiles past the caches. OUT: whether that was possible, or nothing was done."""
    cdef const Box *box = tiling.box
    cdef int64_t step = loop.dst // box.stream, ahead = -(<int64_t>dst + box.tile.dst[0]) & S2DQ_REGISTER_BYTES - 1
    if ahead % step or ahead + loop.dst > loop.extent * loop.dst - loop.dst_back or not inside(tiling, src, loop, 1):
        return False
    KERNELS.sweep(dst, src, box.tile, tiling.filling, loop, box.stream, next, box.streamer, tiling.carry)
    return True


cdef void run_tiles(Tiling *tiling, const uint8_t *src, uint8_t *dst, s2dq_axis *loops,
                    int count) noexcept nogil:
    """Any number of loops over tiles. Those near the ends of the source are run one by one, with masks.

    `loops` is changed and restored.
    """
    cdef s2dq_axis three[S2DQ_TILE_LOOPS]
    cdef s2dq_axis outer
    cdef int64_t i, turns
    cdef int k
    while count and loops.extent == 1:
        src -= loops.src_back
        dst -= loops.dst_back
        loops += 1
        count -= 1
    if 1 < count <= S2DQ_TILE_LOOPS and tiling.box.stream > 0 and run_grown(tiling, src, dst, loops, count):
        return
    if count > 1 and tiling.box.stream > 0:
        if count == 2:
            tiling.next = loops.src
        for i in range(loops.extent - 1):
            run_tiles(tiling, src + i * loops.src, dst + i * loops.dst, loops + 1, count - 1)
        i = loops.extent - 1
        run_tiles(tiling, src + i * loops.src - loops.src_back, dst + i * loops.dst - loops.dst_back, loops + 1,
                  count - 1)
        return
    if count == 1 and tiling.box.stream > 0 and run_stream(tiling, src, dst, loops, tiling.next):
        return
    if count <= S2DQ_TILE_LOOPS and inside(tiling, src, loops, count):
        for k in range(S2DQ_TILE_LOOPS):
            if k < S2DQ_TILE_LOOPS - count:
                memset(&three[k], 0, sizeof(s2dq_axis))
                three[k].extent = 1
            else:
                three[k] = loops[k - S2DQ_TILE_LOOPS + count]
        if tiling.box.network and not tiling.box.network.bend.side and KERNELS.aligner != NULL:
            s2dq_network_in_lines(tiling.box.network_runner, dst, src, tiling.box.network, three)
        elif tiling.box.network:
            tiling.box.network_runner(dst, src, tiling.box.network, three)
        elif tiling.box.aligner != NULL and makes_lines(tiling.box, dst, three):
            tiling.box.aligner(dst, src, tiling.box.tile, tiling.filling, three)
        else:
            tiling.box.runner(dst, src, tiling.box.tile, tiling.filling, three)
        return
    if count == 0:
        KERNELS.edge(dst, src, tiling.box.tile, tiling.filling)
        return
    outer = loops[0]
    if count > S2DQ_TILE_LOOPS:
        for i in range(outer.extent - 1):
            run_tiles(tiling, src + i * outer.src, dst + i * outer.dst, loops + 1, count - 1)
    else:
        # All turns but the last, in one piece if they are inside and else in halves.
        turns = outer.extent - 1
        loops.extent, loops.src_back, loops.dst_back = turns, 0, 0
        if turns > 1 and not inside(tiling, src, loops, count):
            loops.extent = turns // 2
            run_tiles(tiling, src, dst, loops, count)
            src += loops.extent * outer.src
            dst += loops.extent * outer.dst
            loops.extent = turns - turns // 2
            run_tiles(tiling, src, dst, loops, count)
            src -= turns // 2 * outer.src
            dst -= turns // 2 * outer.dst
        else:
            run_tiles(tiling, src, dst, loops, count)
        loops[0] = outer
    i = outer.extent - 1
    run_tiles(tiling, src + i * outer.src - outer.src_back, dst + i * outer.dst - outer.dst_back, loops + 1,
              count - 1)


cdef void run_box(const Box *box, const Buffers *buffers, const uint8_t *scratch, const uint8_t *src, uint8_t *dst,
                  const uint8_t *table, const s2dq_axis *axes, int count) noexcept nogil:
    """One box. IN: src, dst, table already moved to this row. OUT: the granules of the loops `axes`."""
    cdef s2dq_filling filling
    cdef Tiling tiling
    cdef s2dq_carry carry
    cdef s2dq_axis loops[2 * MAX_AXES]
    cdef int k
    if box.tile or box.network:
        tiling.filling = &NO_FILLING
        if box.lookup:
            tiling.filling = &buffers.fillings[box.number]
        elif box.tile and box.tile.fills:
            tiling.filling = &filling
            s2dq_tile_fill(&filling, NULL, box.tile, buffers.fill, 0, 0, NULL, NULL)
        tiling.box = box
        if box.stream > 0:
            memset(&carry, 0, sizeof(carry))
        tiling.carry = &carry
        tiling.next = 0
        if box.source == BUFFER_X:
            tiling.low, tiling.high = buffers.x_low, buffers.x_high
        elif box.source == BUFFER_F:
            # Behind the fill values a register may be read, and no piece begins behind them.
            tiling.low, tiling.high = buffers.fill, buffers.fill + INT32_MAX
        else:
            tiling.low, tiling.high = scratch, scratch + buffers.scratch_bytes
        for k in range(count):
            loops[k] = axes[k]
        run_tiles(&tiling, src, dst, loops, count)
        if box.stream > 0:
            KERNELS.flush(&carry)
    elif box.lookup == STAGE:
        s2dq_stage_rows(dst, src, axes, (table - buffers.tables) // 256, buffers.stage, CONVERTERS, ISA)
    elif box.lookup == TABLE:
        KERNELS.lookup(dst, src, table, axes, count)
    elif box.lookup:
        KERNELS.map(dst, src, table, buffers.mapping, axes, count)
    elif box.framed:
        KERNELS.copy_framed(dst, src, axes, count, box.width, &box.frame, buffers.fill + box.lane, box.lane)
    elif box.lanes:
        KERNELS.copy_lanes(dst, src, axes, count, box.width, box.lanes, buffers.fill, box.lane)
    else:
        KERNELS.copy(dst, src, axes, count, box.width)


cdef void run_row(const Segment *segment, const Buffers *buffers, uint8_t *scratch, int64_t src,
                  int64_t dst) noexcept nogil:
    """All boxes of one row; `src` and `dst` are its offsets in X and Y."""
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
        run_box(box, buffers, scratch, source + box.src_offset, target + box.dst_offset,
                buffers.tables + box.tab_offset, box.axes, box.count)


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
        run_row(segment, buffers, scratch, 0, 0)
        return

    for k in range(inner, -1, -1):
        index[k] = row % axes[k].extent
        row = row // axes[k].extent
        src += index[k] * axes[k].src
        dst += index[k] * axes[k].dst
        tab += index[k] * axes[k].tab
    if not segment.in_turn:
        loops[0] = axes[inner]
        for k in range(box.count):
            loops[k + 1] = box.axes[k]
    row = first
    while True:
        strip = min(axes[inner].extent - index[inner], last - row)
        if segment.in_turn:
            for k in range(strip):
                run_row(segment, buffers, scratch, src + k * axes[inner].src, dst + k * axes[inner].dst)
        else:
            loops[0].extent = strip
            run_box(box, buffers, NULL, source + box.src_offset + src, buffers.y + box.dst_offset + dst,
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


cdef struct Errand:
    const Segment *segments
    int count
    const Buffers *buffers
    bint shared                  # by a team of ours: else our number is that in a region of others


cdef inline Errand errand_of(Program program, const Segment *segments, const Buffers *buffers,
                             bint shared) noexcept nogil:
    cdef Errand errand
    errand.segments, errand.count, errand.buffers, errand.shared = segments, program.count, buffers, shared
    return errand


cdef void run_task(const void *work, int64_t task) noexcept nogil:
    """One task of an `Errand`, on whichever thread picks it up."""
    cdef const Errand *errand = <const Errand *>work
    cdef const Buffers *buffers = errand.buffers
    cdef int low = 0, high = errand.count - 1, middle
    cdef int64_t first
    cdef const Segment *segment
    cdef Segment one
    while low < high:  # the last segment that starts at or before this task
        middle = (low + high + 1) // 2
        if errand.segments[middle].first_task <= task:
            low = middle
        else:
            high = middle - 1
    segment = &errand.segments[low]
    first = (task - segment.first_task) * segment.task_rows
    if in_boxes(segment):
        one = segment[0]
        one.box += first % one.boxes
        first = first // one.boxes
        one.boxes = 1
        segment = &one
    run_rows(segment, buffers, buffers.scratch + (s2dq_thread() * buffers.scratch_bytes if errand.shared else 0), first,
             min(first + segment.task_rows, segment.rows))
    if buffers.past:  # once for many streams, for it waits until they have arrived
        KERNELS.settle()


cdef inline bint in_boxes(const Segment *segment) noexcept nogil:
    """Whether a row is too much for a task, as that of a pixel with millions of channels: each of its boxes is one."""
    return segment.in_turn and segment.row_bytes > TASK_MAX


cdef inline int sharers(Program program, int num_threads) noexcept nogil:
    """How many threads share a program, and its scratch."""
    return 1 if program.boxed else team_for(program.work, num_threads)


cdef int64_t share_out(Program program, Segment *segments, int team) noexcept nogil:
    """Cut the rows of all segments into tasks; OUT: `task_rows` and `first_task`. Returns the number of tasks."""
    cdef int64_t parts = 4 * team if team > 1 else 1  # a thread of its own has nobody to share with
    cdef int64_t size = min(max(program.work // parts, TASK_MIN), TASK_MAX)
    cdef int64_t tasks = 0
    cdef int s
    for s in range(program.count):
        segments[s] = program.segments[s]
        segments[s].task_rows = max(1, size // max(1, segments[s].row_bytes))
        segments[s].first_task = tasks
        if in_boxes(&segments[s]):
            tasks += segments[s].rows * segments[s].boxes
        else:
            tasks += (segments[s].rows + segments[s].task_rows - 1) // segments[s].task_rows
    return tasks


cdef class Lookups:
    """What the tiles of a program make of the bytes they look up; immutable, shared between threads.

    Parameters
    ----------
    program : Program
    fill : bytes
        Fill values, as for `run`.
    kind, tables, lines, first, flip
        Of a `_lookup.Lookup`.
    """

    cdef s2dq_filling *fillings
    cdef s2dq_tables mapping
    cdef const uint8_t[::1] tables
    cdef const int64_t[:, ::1] lines
    cdef s2dq_stage stage
    cdef const float[::1] mean
    cdef const float[::1] std

    def __cinit__(self, Program program not None, bytes fill not None, kind, const uint8_t[::1] tables not None,
                  const int64_t[:, ::1] lines, int first, int flip):
        cdef int64_t fillings = program.all_boxes * sizeof(s2dq_filling)
        cdef const s2dq_line *line = <const s2dq_line *>&lines[0, 0] if lines is not None else NULL
        cdef s2dq_lines *own
        cdef Box *box
        cdef int k
        self.tables = tables
        self.lines = lines
        self.mapping.tables = &tables[0]
        self.mapping.lines = line if kind == "line" else NULL
        self.mapping.first, self.mapping.flip = <uint8_t>first, <uint8_t>flip
        self.fillings = <s2dq_filling *>some_memory(fillings + program.all_boxes * <int64_t>sizeof(s2dq_lines))
        if not self.fillings:
            raise MemoryError("no memory for the lookups")
        for k in range(program.all_boxes):
            box = &program.boxes[k]
            if box.lookup and box.tile:
                own = <s2dq_lines *>(<uint8_t *>self.fillings + fillings) + k if box.lookup == LINE else NULL
                s2dq_tile_fill(&self.fillings[k], own, box.tile, <const uint8_t *>PyBytes_AS_STRING(fill),
                               <uint8_t>first, <uint8_t>flip, line + box.tab_offset // 256, &tables[box.tab_offset])

    def __dealloc__(self):
        free(self.fillings)


def staged(Program program not None, bytes fill not None, source, target, const uint8_t[::1] tables not None,
           double rescale, const float[::1] mean not None, const float[::1] std not None, double scale, int zero):
    """Lookups of a program that converts elements first.

    Parameters
    ----------
    program : Program
    fill : bytes
        Fill values, as for `run`.
    source, target : dtype
        From uint8 to float16 or float32; or from float32 to those, to int8 or to uint8.
    tables : buffer of bytes
        Of uint8: 256 elements of the target for each of the constants.
    rescale, mean, std, scale, zero
        Of float32; `mean` and `std` have one entry, or one for each channel.
    """
    cdef Lookups made = Lookups(program, fill, "stage", tables, None, 0, 0)
    made.mean, made.std = mean, std
    made.stage.from_ = NUMBERS[f"{source.kind}{source.itemsize}"]
    made.stage.to = NUMBERS[f"{target.kind}{target.itemsize}"]
    made.stage.constants = mean.shape[0]
    made.stage.rescale, made.stage.scale, made.stage.zero = <float>rescale, <float>scale, zero
    made.stage.mean, made.stage.std, made.stage.table = &mean[0], &std[0], &tables[0]
    return made


def run(Program program not None, cnp.ndarray x not None, cnp.ndarray out not None, const uint8_t[::1] fill not None,
        Lookups lookups, int num_threads):
    """Run a program on a pair of arrays.

    Parameters
    ----------
    program : Program
    x, out : ndarray
        Of the shapes, strides and element width the program was made for; not overlapping, `out` C-contiguous.
    fill : buffer of bytes
        Lane element, then the pad element or one per channel, then the bytes of a register.
    lookups : Lookups or None
        For programs that look bytes up: of the same program and fill values.
    num_threads : int
        Size of the team wanted; 0 leaves it to the setter, the environment and OpenMP.

    Raises
    ------
    ValueError
        No room behind the fill values.
    MemoryError
        No memory for the scratch rows.
    """
    cdef Buffers buffers
    check_slack(fill.shape[0])
    set_up(&buffers, &fill[0], lookups)
    buffers.x = <const uint8_t *>cnp.PyArray_DATA(x)
    buffers.y = <uint8_t *>cnp.PyArray_DATA(out)
    execute(program, &buffers, num_threads)


cdef int check_slack(Py_ssize_t size) except -1:
    """Refuse fill values with nothing behind them, where kernels read a whole register."""
    if size < S2DQ_REGISTER_BYTES:
        raise ValueError(f"fill: {size} bytes have no room for {S2DQ_REGISTER_BYTES} behind the values")
    return 0


cdef void set_up(Buffers *buffers, const uint8_t *fill, Lookups lookups) noexcept:
    """OUT: what is the same in every run."""
    memset(buffers, 0, sizeof(Buffers))
    buffers.fill = fill
    if lookups is not None:
        buffers.mapping = &lookups.mapping
        buffers.stage = &lookups.stage
        buffers.tables = &lookups.tables[0]
        buffers.fillings = lookups.fillings


ctypedef void (*task_runner)(const void *work, int64_t task) noexcept nogil

cdef struct Shift:               # of a team, between two looks at pending signals
    task_runner run
    const void *work
    int64_t next, stop           # tasks, counted by all threads
    int64_t over                 # when
    int team                     # how many threads there are, as they find it themselves
    int64_t glance               # tasks that a thread runs between two looks at the clock


cdef inline void begin_shift(Shift *shift, int64_t done, int64_t tasks, int64_t nbytes, int team) noexcept nogil:
    """All tasks but the first `done`, until somebody should look at signals. OUT: all but `run`, `work`
    and `team`."""
    cdef int64_t each = max(1, nbytes // tasks)
    shift.glance = max(1, GLANCE // each)
    shift.over = s2dq_now() + SHIFT if tasks > shift.glance else 0
    shift.next, shift.stop = done, tasks
    if shift.over == SHIFT:  # no clock
        shift.stop = min(tasks, done + max(<int64_t>team, SLAB_BYTES // each))


cdef void work_on(Shift *shift) noexcept nogil:
    """Run tasks until all are taken or the shift is over. OUT: `team`."""
    cdef int64_t task, left = shift.glance
    s2dq_note(&shift.team, s2dq_team())
    while left or s2dq_now() < shift.over:  # looked at first: a task that was taken is run
        left = (left or shift.glance) - 1
        task = s2dq_take(&shift.next)
        if task >= shift.stop:
            return
        shift.run(shift.work, task)


cdef void run_one(Shift *shift, int64_t task) noexcept nogil:
    """A given task. OUT: as of `work_on`."""
    s2dq_note(&shift.team, s2dq_team())
    shift.run(shift.work, task)


cdef int run_tasks(task_runner run, const void *work, int64_t tasks, int64_t nbytes, int team) except -1:
    """Run every task once, on a team of at most this size; `nbytes` are those of the result.

    Signals are looked at after every shift, by time: some programs move a hundred times as many bytes as others.
    """
    cdef Shift shift
    cdef int _member
    cdef int64_t task, done = 0
    shift.run, shift.work = run, work
    while done < tasks:
        # Every time: what handles a signal may have forked, or had a smaller team.
        if team > 1 and (s2dq_forked_serial or not s2dq_can_start(team)):
            team = 1
        with nogil:
            begin_shift(&shift, done, tasks, nbytes, team)
            if team == 1:
                work_on(&shift)
            elif nbytes < RESIDENT:
                # The same part for the same thread, call after call: it is in that thread's caches.
                for task in prange(tasks, schedule="static", num_threads=team):
                    run_one(&shift, task)
                shift.next = tasks
            else:
                for _member in prange(team, schedule="static", chunksize=1, num_threads=team):
                    work_on(&shift)
            done = min(shift.next, shift.stop)
        if team > 1:
            team = shift.team
            s2dq_keep_team(team)
        if done < tasks:
            PyErr_CheckSignals()
    s2dq_set_last_team(team)
    if nbytes >= PARALLEL_AWAKE:
        s2dq_set_last_end(s2dq_now())
    return 0


cdef inline bint run_small(Program program, Buffers *buffers) noexcept nogil:
    """Run a program that is too little to share, or even to let go of the GIL; tell whether it was one. IN: all of
    `buffers` but scratch and the ends of X. OUT: the latter."""
    cdef int s
    if program.count == 0:
        return True
    buffers.x_low = buffers.x + program.low
    buffers.x_high = buffers.x + program.high
    buffers.scratch = NULL
    buffers.scratch_bytes = program.scratch
    buffers.past = program.past
    if program.nbytes > SMALL or program.scratch != 0 or program.past:
        return False
    for s in range(program.count):
        run_rows(&program.segments[s], buffers, NULL, 0, program.segments[s].rows)
    s2dq_set_last_team(1)
    return True


cdef tuple NO_SCRATCH = ("no memory for scratch rows",)


cdef int execute(Program program, Buffers *buffers, int num_threads) except -1:
    """Run a program. IN: all of `buffers` but scratch and the ends of X."""
    cdef Segment *segments
    cdef Errand errand
    cdef int team
    cdef int64_t tasks
    if run_small(program, buffers):
        return 0
    segments = <Segment *>malloc(program.count * sizeof(Segment))
    try:
        team = sharers(program, num_threads)
        if segments:
            tasks = share_out(program, segments, team)
            team = <int>min(<int64_t>team, tasks)
            buffers.scratch = <uint8_t *>some_memory(team * program.scratch)
        if not segments or not buffers.scratch:
            raise MemoryError(*NO_SCRATCH)
        errand = errand_of(program, segments, buffers, team > 1)
        run_tasks(run_task, &errand, tasks, program.work, team)
    finally:
        free(segments)
        free(buffers.scratch)
    return 0


# ------------------------------------------------------------------------------------------------ prepared calls

cdef struct Ready:
    Plan plan                    # first: who has its address has that of the rest
    Buffers buffers              # of every run, but for X, Y and scratch
    PyObject *program
    int num_threads


cdef enum:
    ALONE = 1                    # instead of a status: nothing was run

cdef struct Wish:                # of a run with a team
    PyObject *program
    Buffers *buffers
    int num_threads


cdef int run_together(void *work) noexcept:
    """A run with a team, by the driver of the operators. OUT: 0, or -1 with an exception set."""
    cdef Wish *wish = <Wish *>work
    cdef object program = <object>wish.program
    # The exception stays set, where a function that cannot raise would drop it.
    return (<int (*)(Program, Buffers *, int) noexcept>execute)(<Program>program, wish.buffers, wish.num_threads)


cdef int run_alone(Program program, Buffers *buffers) noexcept nogil:
    """A run on this thread, without the GIL. OUT: as of `run_together`."""
    cdef Errand errand
    cdef Shift shift
    cdef int64_t tasks, done = 0
    cdef int status = 0
    cdef Segment *segments = <Segment *>malloc(program.count * sizeof(Segment))
    buffers.scratch = <uint8_t *>some_memory(program.scratch)
    if segments and buffers.scratch:
        errand = errand_of(program, segments, buffers, False)
        tasks = share_out(program, segments, 1)
        shift.run, shift.work = run_task, &errand
        while done < tasks and status == 0:
            begin_shift(&shift, done, tasks, program.work, 1)
            work_on(&shift)
            done = min(shift.next, shift.stop)
            if done < tasks:
                status = s2dq_look_at_signals()
        s2dq_set_last_team(1)
    else:
        status = s2dq_refuse_scratch()
    free(segments)
    free(buffers.scratch)
    return status


cdef int run_plan(const Plan *plan, const void *x, void *out, int num_threads) noexcept nogil:
    """What `run` of kernels.pxd does. OUT: 0, or -1 with an exception set."""
    cdef const Ready *ready = <const Ready *>plan
    cdef Buffers buffers = ready.buffers
    cdef Wish wish
    cdef int status
    buffers.x, buffers.y = <const uint8_t *>x, <uint8_t *>out
    if run_small(<Program>ready.program, &buffers):
        return 0
    wish.program, wish.buffers = ready.program, &buffers
    wish.num_threads = num_threads if num_threads > 0 else ready.num_threads
    if sharers(<Program>ready.program, wish.num_threads) > 1:
        status = s2dq_with_gil(run_together, &wish, ALONE)
        if status != ALONE:
            return status
    return run_alone(<Program>ready.program, &buffers)


cdef void let_go(object capsule) noexcept:
    Py_DECREF(<object>PyCapsule_GetContext(capsule))


@cython.final
cdef class PreparedCall:
    """A call that Cython code can run: immutable, shared between threads. `s2dq.kernels.prepare` makes them.

    Attributes
    ----------
    x_shape, x_strides : tuple of int
        Of the tensors that it reads.
    x_dtype : dtype
    x_low, x_high : int
        Ends of the bytes that it reads, seen from the first element of the tensor.
    shape : tuple of int
        Of the result, which is C-contiguous.
    dtype : dtype
    nbytes : int
        Of the result.
    num_threads : int
        The largest team where a run does not say; 0 leaves it to the setter, the environment and OpenMP.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> bottom_up = np.empty((1, 480, 640, 3), np.uint8)[:, ::-1]
    >>> prepared = s2dq.kernels.prepare(s2dq.Preprocessor(scale=1 / 255, zero_point=-128), bottom_up)
    >>> prepared
    <PreparedCall (1, 480, 640, 3) uint8 -> (1, 480, 640, 3) int8>
    >>> prepared.x_strides, prepared.x_low, prepared.x_high  # rows are read backwards
    ((921600, -1920, 3, 1), -919680, 1920)
    """

    cdef Ready ready
    cdef Program program
    cdef bytes fill
    cdef Lookups lookups
    cdef readonly tuple x_shape, x_strides, shape
    cdef readonly cnp.dtype x_dtype, dtype

    def __cinit__(self, cnp.ndarray x not None, cnp.ndarray out not None, Program program not None,
                  bytes fill not None, Lookups lookups, int num_threads):
        check_slack(len(fill))
        self.x_shape, self.x_strides, self.x_dtype = (<object>x).shape, (<object>x).strides, x.dtype
        self.shape, self.dtype = (<object>out).shape, out.dtype
        self.program, self.fill, self.lookups = program, fill, lookups
        self.ready.plan.version = self.ready.plan.oldest = S2DQ_PLAN_VERSION
        self.ready.plan.run = run_plan
        self.ready.plan.x_low, self.ready.plan.x_high = program.low, program.high
        self.ready.plan.out_bytes = cnp.PyArray_NBYTES(out)
        set_up(&self.ready.buffers, <const uint8_t *>PyBytes_AS_STRING(fill), lookups)
        self.ready.program = <PyObject *>program
        self.ready.num_threads = num_threads

    @property
    def x_low(self):
        return self.ready.plan.x_low

    @property
    def x_high(self):
        return self.ready.plan.x_high

    @property
    def nbytes(self):
        return self.ready.plan.out_bytes

    @property
    def num_threads(self):
        return self.ready.num_threads

    @property
    def __s2dq_plan__(self):
        """The `Plan` for kernels.pxd, in a capsule that keeps this call."""
        capsule = PyCapsule_New(&self.ready.plan, "s2dq.plan", let_go)
        PyCapsule_SetContext(capsule, <void *>self)
        Py_INCREF(self)
        return capsule

    def __repr__(self):
        return f"<PreparedCall {self.x_shape} {self.x_dtype} -> {self.shape} {self.dtype}>"


# --------------------------------------------------------------------------------------------- calls seen before

cdef object MISSING = object()
cdef object KEPT = PyCapsule_New(s2dq_get_memory(1), "mem_handler", NULL) if s2dq_get_memory(1) else None
cdef object LINED = PyCapsule_New(s2dq_get_memory(0), "mem_handler", NULL) if s2dq_get_memory(0) else None


cdef class Seen:
    """What a call came to: the program and its result, for arrays of one shape, strides and dtype.

    Parameters
    ----------
    x, out : ndarray
        The arrays of the call, checked, with at most `SEEN_AXES` axes.
    program : Program
    fill : bytes
    lookups : Lookups or None
    key : tuple
        What the arguments of the call are known by, as `exact` gives it.
    """

    cdef int ndim, out_ndim
    cdef cnp.npy_intp shape[SEEN_AXES]
    cdef cnp.npy_intp strides[SEEN_AXES]
    cdef cnp.npy_intp out_shape[SEEN_AXES]
    cdef int64_t low, high       # where the elements of x lie, seen from the first
    cdef int64_t out_bytes
    cdef cnp.dtype dtype, out_dtype
    cdef bytes fill
    cdef Program program
    cdef Lookups lookups
    cdef tuple key

    def __cinit__(self, cnp.ndarray x not None, cnp.ndarray out not None, Program program not None,
                  bytes fill not None, Lookups lookups, tuple key not None):
        cdef int k
        self.ndim, self.out_ndim = cnp.PyArray_NDIM(x), cnp.PyArray_NDIM(out)
        for k in range(self.ndim):
            self.shape[k], self.strides[k] = cnp.PyArray_DIM(x, k), cnp.PyArray_STRIDE(x, k)
            if self.strides[k] < 0:
                self.low += (self.shape[k] - 1) * self.strides[k]
            else:
                self.high += (self.shape[k] - 1) * self.strides[k]
        self.high += cnp.PyArray_ITEMSIZE(x)
        for k in range(self.out_ndim):
            self.out_shape[k] = cnp.PyArray_DIM(out, k)
        self.out_bytes = cnp.PyArray_NBYTES(out)
        self.dtype, self.out_dtype = x.dtype, out.dtype
        self.fill, self.program, self.lookups, self.key = fill, program, lookups, key

    cdef bint fits(self, cnp.ndarray x):
        cdef int k
        if <void *>cnp.PyArray_DESCR(x) != <void *>self.dtype or cnp.PyArray_NDIM(x) != self.ndim:
            return False
        for k in range(self.ndim):
            if cnp.PyArray_DIM(x, k) != self.shape[k] or cnp.PyArray_STRIDE(x, k) != self.strides[k]:
                return False
        return True

    cdef cnp.ndarray _fresh(self):
        Py_INCREF(self.out_dtype)  # the next line takes one reference
        return PyArray_NewFromDescr(&PyArray_Type, <cnp.PyArray_Descr *>self.out_dtype, self.out_ndim, self.out_shape,
                                    NULL, NULL, 0, NULL)

    cdef cnp.ndarray _placed(self):
        """Fresh, from a cache line on; if it is large, in memory that is kept for the next result when it is freed."""
        handler = LINED if self.program.nbytes < KEEP_MEMORY else KEPT
        if handler is None:
            return self._fresh()
        before = PyDataMem_SetHandler(handler)
        try:
            return self._fresh()
        finally:
            PyDataMem_SetHandler(before)

    cdef cnp.ndarray result_for(self, const uint8_t *x, out):
        """A fresh result, or `out` where it is plainly fit; None leaves it to the door to say what is wrong."""
        cdef int k
        cdef const uint8_t *y
        if out is None:
            try:
                return self._fresh() if self.program.nbytes < LINE_MEMORY else self._placed()
            except MemoryError:
                return None
        if type(out) is not cnp.ndarray or <void *>cnp.PyArray_DESCR(out) != <void *>self.out_dtype:
            return None
        if cnp.PyArray_NDIM(out) != self.out_ndim or not cnp.PyArray_IS_C_CONTIGUOUS(out):
            return None
        for k in range(self.out_ndim):
            if cnp.PyArray_DIM(out, k) != self.out_shape[k]:
                return None
        y = <const uint8_t *>cnp.PyArray_DATA(out)
        if not cnp.PyArray_ISWRITEABLE(out):
            return None
        if y < x + self.high and x + self.low < y + self.out_bytes:
            return None
        return out

    cdef cnp.ndarray run(self, cnp.ndarray x, out, int threads):
        """The result for an `x` that fits; None where `out` does not, or where the door has to say what is wrong."""
        cdef Buffers buffers
        cdef cnp.ndarray result = self.result_for(<const uint8_t *>cnp.PyArray_DATA(x), out)
        if result is not None:
            set_up(&buffers, <const uint8_t *>PyBytes_AS_STRING(self.fill), self.lookups)
            buffers.x = <const uint8_t *>cnp.PyArray_DATA(x)
            buffers.y = <uint8_t *>cnp.PyArray_DATA(result)
            try:
                execute(self.program, &buffers, threads)
            except MemoryError as error:
                if error.args != NO_SCRATCH:  # raised by what handles a signal
                    raise
                return None
        return result


# The types of numbers that are known by their bytes.
cdef tuple SCALARS = (float, *[np.dtype(code).type for code in np.typecodes["AllInteger"] + "efd"])


@cython.final
cdef class Exactly:
    """A float or one of NumPy's numbers, equal to no other number but those of its type and bytes."""

    cdef object kind
    cdef uint64_t bits

    def __cinit__(self, number):
        self.kind, self.bits = type(number), bits_of(number)

    def __hash__(self):
        return hash((self.kind, self.bits))

    def __eq__(self, other):
        return type(other) is Exactly and self.kind is (<Exactly>other).kind and self.bits == (<Exactly>other).bits

    cdef bint holds(self, number):
        return type(number) is self.kind and bits_of(number) == self.bits


cdef bint is_scalar(number):
    """Whether the number is of one of `SCALARS`; a look at its type runs no code, as hashing that could."""
    cdef Py_ssize_t k
    for k in range(len(SCALARS)):
        if type(number) is SCALARS[k]:
            return True
    return False


cdef uint64_t bits_of(number):
    """The bytes of a number of one of `SCALARS`."""
    cdef uint64_t bits = 0
    cdef double value
    if type(number) is float:
        value = number
        memcpy(&bits, &value, sizeof(value))
    else:
        cnp.PyArray_ScalarAsCtype(number, &bits)
    return bits


cdef class Memo:
    """An operator with a memory: a call like one before goes straight to its program.

    Parameters
    ----------
    check : callable
        ``check(x, out, num_threads, arguments)`` for a call not seen before: checks it, runs it, and returns
        ``(result, x as read, out as written, program, fill, lookups)``, with None for the program where there is
        nothing to remember.

    Notes
    -----
    Only calls whose arguments are plain numbers, NumPy's among them, strings, None, and lists or tuples of them are
    remembered: none of them can run code. They are equal only when they mean the same, but for floats and NumPy's
    numbers, which are known by their types and bytes. (0.0 is equal to 0 and to -0.0, and NaN to nothing. A bool, which
    is equal to an int and means something else, is not remembered.)
    """

    cdef object check
    cdef readonly dict calls
    cdef list recent             # where `Recall` looks first: one call for each hash of a shape

    def __init__(self, check):
        self.check = check
        self.calls = {}
        self.recent = [None] * MEMO_RECENT

    def clear(self):
        """Forget all calls."""
        cdef Py_ssize_t k
        self.calls.clear()
        for k in range(MEMO_RECENT):
            self.recent[k] = None

    def call(self, x, out, num_threads, tuple arguments not None):
        """Run the operator on `x`."""
        cdef Seen seen
        cdef cnp.ndarray result
        cdef tuple key, frozen = None
        cdef int threads = 0
        if type(x) is cnp.ndarray and known_threads(num_threads, &threads):
            frozen = plain(arguments, 0)
        if frozen is not None:
            key = exact(frozen)
            seen = self._find(key, <cnp.ndarray>x)
            if seen is not None:
                result = seen.run(<cnp.ndarray>x, out, threads)
                if result is not None:
                    self._put_first(<cnp.ndarray>x, seen)
                    return result
        # What is remembered is what was checked: the frozen arguments, which nobody can change in between. Not for
        # objects, which may themselves be lists to pad with, nor for records, whose pad value is a tuple and no list.
        if frozen is not None and not x.dtype.hasobject and x.dtype.names is None:
            try:
                returned, view, written, program, fill, lookups = self.check(x, out, num_threads, frozen)
            except Exception as error:
                if not error.__dict__.get("refused"):  # a signal's handler raised it, or there was no memory
                    raise
            else:
                if program is not None and max(cnp.PyArray_NDIM(view), cnp.PyArray_NDIM(written)) <= SEEN_AXES:
                    self._remember(key, view, Seen(view, written, program, fill, lookups, key))
                return returned
        # Also for the message of a call that was refused: it shows the arguments as the caller wrote them.
        return self.check(x, out, num_threads, arguments)[0]

    cdef Seen _find(self, tuple key, cnp.ndarray x):
        cdef Seen seen
        known = self.calls.get(key)
        if known is not None:
            for seen in <tuple>known:
                if seen.fits(x):
                    return seen
        return None

    cdef void _remember(self, tuple key, cnp.ndarray x, Seen seen):
        cdef Seen other
        cdef list known = [other for other in self.calls.get(key, ()) if not other.fits(x)]
        if not known and len(self.calls) >= MEMO_CALLS:
            self.clear()
        self.calls[key] = (seen, *known[:MEMO_ARRAYS - 1])
        self._put_first(x, seen)

    cdef void _put_first(self, cnp.ndarray x, Seen seen):
        if S2DQ_HAS_GIL:
            self.recent[place_of(x)] = seen


cdef Py_ssize_t place_of(cnp.ndarray x) noexcept:
    """Which of the recent calls an array of this shape may have."""
    cdef uint64_t hash = cnp.PyArray_NDIM(x)
    cdef int k
    for k in range(cnp.PyArray_NDIM(x)):
        hash = hash * 31 + <uint64_t>cnp.PyArray_DIM(x, k)
    return <Py_ssize_t>((hash ^ hash >> 6 ^ hash >> 12) % MEMO_RECENT)


def recent_place(cnp.ndarray x not None):
    """Where `Recall` looks for calls on arrays of this shape, for tests."""
    return place_of(x)


@cython.final
@cython.no_gc_clear
cdef class Recall:
    """A function of `Memo.call`, skipped by calls like the last one on an array of this shape.

    Such a call is told by looking at its arguments where they lie: nothing is made, hashed or called. Any other call
    is passed on as it is, so that all errors are the function's own.

    Parameters
    ----------
    function : callable
        ``function(x, ..., out=None, num_threads=None)``, whose other parameters are, in order, the first `arguments`
        of its ``memo.call``.
    memo : Memo
    """

    cdef vectorcallfunc enter    # where the interpreter begins a call
    cdef object function
    cdef Memo memo
    cdef tuple names, defaults   # of all parameters; no default is `MISSING`
    cdef int positional, count, out, threads
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, function, Memo memo not None):
        code = function.__code__
        self.enter = <vectorcallfunc>enter_recall
        begin_with_enter(self)
        self.function, self.memo = function, memo
        self.positional, self.count = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        self.names = code.co_varnames[:self.count]
        if self.count > MAX_PARAMETERS or self.names[0] != "x":
            raise ValueError(f"cannot recall calls of {function}")
        self.out, self.threads = self.names.index("out"), self.names.index("num_threads")
        given = dict(zip(reversed(self.names[:self.positional]), reversed(function.__defaults__ or ())))
        given.update(function.__kwdefaults__ or {})
        self.defaults = tuple([given.get(name, MISSING) for name in self.names])

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    def __repr__(self):
        return f"<function {self.function.__module__}.{self.function.__qualname__}>"

    def __reduce__(self):
        return self.function.__qualname__

    cdef bint _bind(self, PyObject *const *args, Py_ssize_t positional, PyObject *names, PyObject **given) noexcept:
        """Whether it is plain which argument is which. OUT: one for each parameter, borrowed."""
        cdef Py_ssize_t k, at
        if not 0 < positional <= self.positional:
            return False
        for k in range(self.count):
            given[k] = args[k] if k < positional else PyTuple_GET_ITEM(<PyObject *>self.defaults, k)
        if names != NULL:
            for k in range(PyTuple_GET_SIZE(names)):
                for at in range(positional, self.count):
                    # Names are interned, but for those that are put together at run time.
                    if PyTuple_GET_ITEM(<PyObject *>self.names, at) == PyTuple_GET_ITEM(names, k):
                        given[at] = args[positional + k]
                        break
                else:
                    return False
        return True

    cdef object _recall(self, PyObject **given):
        """The result, or None where this is no call like the last one."""
        cdef Seen seen
        cdef Py_ssize_t k, part = 0
        cdef int threads = 0
        x = <object>given[0]
        if not S2DQ_HAS_GIL or type(x) is not cnp.ndarray or not known_threads(<object>given[self.threads], &threads):
            return None
        found = self.memo.recent[place_of(<cnp.ndarray>x)]
        if found is None:
            return None
        seen = <Seen>found
        if not seen.fits(<cnp.ndarray>x) or len(seen.key) < self.count - 3:
            return None
        for k in range(1, self.count):
            if k != self.out and k != self.threads:
                if not means(<object>given[k], <object>PyTuple_GET_ITEM(<PyObject *>seen.key, part)):
                    return None
                part += 1
        return seen.run(<cnp.ndarray>x, <object>given[self.out], threads)


cdef object enter_recall(object self, PyObject *const *args, size_t nargsf, PyObject *names):
    cdef Recall recall = <Recall>self
    cdef PyObject *given[MAX_PARAMETERS]
    if recall._bind(args, PyVectorcall_NARGS(nargsf), names, given):
        result = recall._recall(given)
        if result is not None:
            return result
    return PyObject_Vectorcall(recall.function, args, nargsf, names)


cdef bint means(argument, known):
    """Whether `argument` is what was frozen to `known`: the same plain values, in lists or tuples."""
    cdef Py_ssize_t k
    if argument is known:
        return True
    kind = type(argument)
    if kind is int or kind is str:
        return type(known) is kind and argument == known
    if type(known) is Exactly:
        return (<Exactly>known).holds(argument)
    if type(known) is not tuple:
        return False
    if kind is list and S2DQ_HAS_GIL:
        if len(<list>argument) != len(<tuple>known):
            return False
        for k in range(len(<list>argument)):
            if not means((<list>argument)[k], (<tuple>known)[k]):
                return False
        return True
    if kind is not tuple or len(<tuple>argument) != len(<tuple>known):
        return False
    for k in range(len(<tuple>argument)):
        if not means((<tuple>argument)[k], (<tuple>known)[k]):
            return False
    return True


cdef void begin_with_enter(Recall recall):
    """Tell the interpreter where a `Recall` keeps its `enter`: Cython has no word for it."""
    owner = type(recall)
    cdef CallableType *kind = <CallableType *><PyObject *>owner
    kind.tp_vectorcall_offset = <char *>&recall.enter - <char *><PyObject *>recall
    kind.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL


cdef bint known_threads(num_threads, int *threads):
    """Whether `num_threads` is None or a plain count. OUT: the count, or 0."""
    if num_threads is None:
        return True
    if type(num_threads) is not int or not 0 < num_threads < 1 << 30:
        return False
    threads[0] = num_threads
    return True


cdef tuple plain(arguments, int depth):
    """`arguments` as a tuple of plain numbers, strings, None, and such tuples; None where one is anything else."""
    cdef tuple given = tuple(arguments)  # a list may change while it is looked at
    cdef list frozen = None
    cdef Py_ssize_t k
    for k in range(len(given)):
        argument = given[k]
        kind = type(argument)
        if kind is list or kind is tuple:
            inner = plain(argument, depth + 1) if depth < 2 else None
            if inner is None:
                return None
            if frozen is None:
                frozen = list(given)
            frozen[k] = inner
        elif kind is not int and kind is not str and argument is not None and not is_scalar(argument):
            return None
    return given if frozen is None else tuple(frozen)


cdef tuple exact(tuple frozen):
    """What `plain` gave, with `Exactly` in the place of numbers that may be equal and mean something else."""
    cdef list found = None
    cdef Py_ssize_t k
    for k in range(len(frozen)):
        argument = frozen[k]
        if type(argument) is tuple:
            inner = exact(<tuple>argument)
        elif is_scalar(argument):
            inner = Exactly(argument)
        else:
            continue
        if inner is not argument:
            if found is None:
                found = list(frozen)
            found[k] = inner
    return frozen if found is None else tuple(found)


# --------------------------------------------------------------------------------------------------- threads

cdef bint is_awake(int64_t nbytes) noexcept nogil:
    """Whether a call of this size should have a team when nobody asked for one."""
    if nbytes >= PARALLEL_ASLEEP:
        return True
    return nbytes >= PARALLEL_AWAKE and s2dq_now() - s2dq_get_last_end() < AWAKE


cdef int team_limit(int wanted) noexcept nogil:
    """The largest team a call on this thread may have now; `wanted` 0 leaves it to the cap."""
    cdef int limit, quota = s2dq_get_quota()
    if not wanted:
        wanted = s2dq_get_cap()
    if wanted == 1 or s2dq_forked_serial or s2dq_in_parallel():
        return 1  # without a system call for the processors, which takes 0.4 us
    limit = min(s2dq_openmp_threads(), s2dq_get_pretended() or s2dq_processors())
    if quota:
        limit = min(limit, quota)
    if wanted:
        limit = min(limit, wanted)
    return max(limit, 1)


cdef int team_for(int64_t nbytes, int num_threads) noexcept nogil:
    """The team that a result of this size is worth."""
    if nbytes >= PARALLEL_ASKED and (num_threads or s2dq_get_cap() or is_awake(nbytes)):
        return team_limit(num_threads)
    return 1


def shift_of(int64_t done, int64_t tasks, int64_t nbytes, int team):
    """How long tasks are run between two looks at signals, for tests: the tasks between two looks at the clock, how
    many nanoseconds until the shift is over or 0 where nobody looks, and the task at which it ends."""
    cdef Shift shift
    begin_shift(&shift, done, tasks, nbytes, team)
    return shift.glance, shift.over and shift.over - s2dq_now(), shift.stop


cdef void wait_for(const void *nanoseconds, int64_t _task) noexcept nogil:
    cdef int64_t until = s2dq_now() + (<const int64_t *>nanoseconds)[0]
    while s2dq_now() < until:
        pass


def tasks_of_shift(int64_t tasks, int64_t nbytes, int64_t nanoseconds):
    """How many tasks that take so long a thread runs until somebody should look at signals, for tests."""
    cdef Shift shift
    shift.run, shift.work = wait_for, &nanoseconds
    with nogil:
        begin_shift(&shift, 0, tasks, nbytes, 1)
        work_on(&shift)
    return min(shift.next, shift.stop)


def team_of(int64_t nbytes, int num_threads):
    """Size of the team that a call with a result of this size would get now, for tests."""
    return team_for(nbytes, num_threads)


cdef int64_t FENCES = 0


cdef void count_fence() noexcept nogil:
    s2dq_take(&FENCES)


def fences_of(Program program not None, cnp.ndarray x not None, cnp.ndarray out not None,
              const uint8_t[::1] fill not None, int num_threads):
    """How often a run waits until what it stored past the caches can be seen, for tests."""
    global FENCES
    settle = KERNELS.settle
    FENCES = 0
    KERNELS.settle = count_fence
    try:
        run(program, x, out, fill, None, num_threads)
    finally:
        KERNELS.settle = settle
    return FENCES


def get_team_limit():
    """Size of the team a large call on this thread would get now."""
    return team_limit(0)


def set_thread_cap(int count):
    """Set how many threads calls without an explicit count want; 0 leaves it to OpenMP."""
    s2dq_set_cap(count)


def set_quota(int count):
    """Set how many CPUs the control group grants; 0 is no limit."""
    s2dq_set_quota(count)


def set_stack_size(int64_t size):
    """Set how many bytes of stack OpenMP gives its threads; 0 is the system's default."""
    s2dq_set_stack_size(size)


def pretend_processors(int count):
    """Count with so many processors, whatever the machine has; 0 asks the system again: for tests."""
    s2dq_set_pretended(count)


def last_team_size():
    """Size of the team of the last call on this thread: for tests."""
    return s2dq_get_last_team()


def build_info():
    """What the compiler knew: ``(compiler, OpenMP version or 0)``."""
    return S2DQ_COMPILER.decode(), s2dq_has_openmp()


# ------------------------------------------------------------------------------------------------- conversions

# The enumeration of convert.h, by kind and width.
cdef dict NUMBERS = {"i1": 0, "u1": 1, "i2": 2, "u2": 3, "i4": 4, "f2": 5, "f4": 6, "f8": 7}


def rounding_to_nearest(function, *args):
    """``function(*args)`` in the default floating-point environment, whatever that of the calling thread is."""
    cdef s2dq_environment before
    s2dq_enter(&before)
    try:
        return function(*args)
    finally:
        s2dq_leave(&before)


def convert(cnp.ndarray x not None, cnp.ndarray out not None, source, target, tuple along not None, int num_threads):
    """Dequantize, quantize, or do both in a row.

    Parameters
    ----------
    x : ndarray
        Of int8, uint8, int16, uint16 or int32 where there is a `source`, else of float16, float32 or float64; any
        strides, alignment and byte order.
    out : ndarray
        The same by `target`; C-contiguous, with as many elements as `x`, not overlapping it.
    source, target : (array of float32, array of int32) or None
        Scales and zero points of the integers in `x` and in `out`. At least one.
    along : (groups, run, period)
        Where the parameters of an element are among them, by its position:
        ``position // run % groups * period + position % run % period``.
    num_threads : int
        Size of the team wanted; 0 leaves it to the setter, the environment and OpenMP.

    Raises
    ------
    ValueError
        Arrays and parameters that do not go together.
    """
    cdef s2dq_conversion conversion
    cdef const float[::1] source_scale, target_scale
    cdef const int32_t[::1] source_zero, target_zero
    cdef int64_t groups, run, period, count = cnp.PyArray_SIZE(x)
    memset(&conversion, 0, sizeof(conversion))
    conversion.from_ = number_of(x, source is not None)
    conversion.to = number_of(out, target is not None)
    if (source is None and target is None) or cnp.PyArray_SIZE(out) != count or not cnp.PyArray_IS_C_CONTIGUOUS(out):
        raise ValueError("conversion: the result does not go with its source")
    if count == 0:
        return
    groups, run, period = along
    if groups < 1 or period < 1 or run < 1:
        raise ValueError("conversion: no parameters lie like this")
    conversion.along.groups, conversion.along.run, conversion.along.period = groups, run, period
    if source is not None:
        source_scale, source_zero = source
        if not source_scale.shape[0] == source_zero.shape[0] == groups * period:
            raise ValueError("conversion: too many or too few parameters of the source")
        conversion.source.scale, conversion.source.zero = &source_scale[0], &source_zero[0]
    if target is not None:
        target_scale, target_zero = target
        if not target_scale.shape[0] == target_zero.shape[0] == groups * period:
            raise ValueError("conversion: too many or too few parameters of the result")
        conversion.target.scale, conversion.target.zero = &target_scale[0], &target_zero[0]
    view_source(&conversion, x)
    conversion.y = <uint8_t *>cnp.PyArray_DATA(out)
    conversion.y_swapped = not cnp.PyArray_ISNOTSWAPPED(out)
    conversion.y_direct = cnp.PyArray_ISALIGNED(out) and cnp.PyArray_ISNOTSWAPPED(out)
    run_conversion(&conversion, count, max(cnp.PyArray_ITEMSIZE(x), cnp.PyArray_ITEMSIZE(out)), num_threads)


cdef int number_of(cnp.ndarray array, bint stored) except -1:
    """The type of an array, as convert.h counts them; `stored` ones are integers."""
    cdef int number = NUMBERS.get(f"{array.dtype.kind}{array.dtype.itemsize}", -1)
    if number < 0 or stored != (array.dtype.kind != "f"):
        raise ValueError(f"conversion: not from or to {array.dtype} here")
    return number


cdef void view_source(s2dq_conversion *conversion, cnp.ndarray x):
    """OUT: how X lies; axes that follow one another are one."""
    cdef int k, axes = 0
    cdef int64_t extent, step
    for k in range(cnp.PyArray_NDIM(x)):
        extent, step = cnp.PyArray_DIM(x, k), cnp.PyArray_STRIDE(x, k)
        if extent == 1:
            continue
        if axes and conversion.step[axes - 1] == extent * step:
            conversion.extent[axes - 1] *= extent
            conversion.step[axes - 1] = step
        else:
            conversion.extent[axes], conversion.step[axes] = extent, step
            axes += 1
    conversion.axes = axes
    conversion.x = <const uint8_t *>cnp.PyArray_DATA(x)
    conversion.x_swapped = not cnp.PyArray_ISNOTSWAPPED(x)
    conversion.x_direct = (cnp.PyArray_IS_C_CONTIGUOUS(x) and cnp.PyArray_ISALIGNED(x)
                           and cnp.PyArray_ISNOTSWAPPED(x))


cdef struct Parts:               # of a conversion
    const s2dq_conversion *conversion
    int64_t count, size          # elements, and those of a part


cdef int64_t part_size(int64_t nbytes, int64_t width, int team) noexcept nogil:
    """Elements that a thread of a team converts at once: parts begin at lines of the result, so that no two threads
    write one."""
    return min(max(nbytes // (4 * team), TASK_MIN), PART_MAX) // width // 64 * 64


def conversion_part(int64_t nbytes, int64_t width, int team):
    """Elements in a part of a conversion, for tests."""
    return part_size(nbytes, width, team)


cdef int run_conversion(const s2dq_conversion *conversion, int64_t count, int64_t width, int num_threads) except -1:
    """Convert `count` elements of at most `width` bytes, shared out as `execute` does it."""
    cdef int64_t nbytes = count * width
    cdef int64_t tasks
    cdef Parts parts
    cdef int team
    if nbytes <= SMALL:
        s2dq_convert(conversion, CONVERTERS, 0, count)
        s2dq_set_last_team(1)
        return 0
    team = team_for(nbytes, num_threads)
    parts.conversion, parts.count = conversion, count
    parts.size = part_size(nbytes, width, team)
    tasks = (count + parts.size - 1) // parts.size
    return run_tasks(run_part, &parts, tasks, nbytes, <int>min(<int64_t>team, tasks))


cdef void run_part(const void *work, int64_t task) noexcept nogil:
    """One of the `Parts`, on whichever thread picks it up."""
    cdef const Parts *parts = <const Parts *>work
    s2dq_convert(parts.conversion, CONVERTERS, task * parts.size, min(task * parts.size + parts.size, parts.count))


# ----------------------------------------------------------------------------------------------- instruction sets

def isa():
    """Name of the instruction set in use."""
    return s2dq_isa_name(ISA).decode()


def tile_means():
    """What the instruction set in use, and this processor, do with tiles: the fields of `_plan.Means`.

    None where there are no tiles.
    """
    if KERNELS.tile == NULL:
        return None
    return KERNELS.network != NULL, KERNELS.streamer != NULL, KERNELS.short_rows != 0, KERNELS.lines != 0, \
        KERNELS.steps == NULL, KERNELS.map != NULL, KERNELS.tables != 0, \
        KERNELS.copy_framed != NULL and bool(FOLLOWS), KERNELS.bends != 0


def available_isas():
    """Names of the instruction sets that this build has and this machine runs, from the plainest on."""
    return [s2dq_isa_name(k).decode() for k in range(S2DQ_ISA_COUNT) if s2dq_isa_runs(k)]


def pretend_habits(follows_streams=None, stores_across=None):
    """Make programs as for a processor with these habits; None asks this one again: for tests."""
    global FOLLOWS, KERNELS
    FOLLOWS = s2dq_follows_streams() if follows_streams is None else follows_streams
    KERNELS = s2dq_kernels_of(ISA, s2dq_stores_across() if stores_across is None else stores_across, FOLLOWS)


def _choose_isa():
    """Take the instruction set that ``S2DQ_ISA`` names, else the best one."""
    wanted = os.environ.get("S2DQ_ISA", "").strip()
    chosen = None
    for k in range(S2DQ_ISA_COUNT):
        if s2dq_isa_runs(k) and wanted in ("", s2dq_isa_name(k).decode()):
            chosen = k
    if chosen is None:
        available = ", ".join(available_isas())
        raise ImportError(f"S2DQ_ISA={wanted!r} cannot run: this build on this machine has {available}")
    return chosen


ISA = _choose_isa()
KERNELS = s2dq_kernels_of(ISA, s2dq_stores_across(), FOLLOWS)
CONVERTERS = s2dq_converters_of(ISA)

if s2dq_guard_fork() != 0:
    raise ImportError("s2dq: pthread_atfork refused the fork handlers")
