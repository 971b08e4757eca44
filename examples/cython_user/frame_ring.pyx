# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""A ring of camera frames, rearranged without Python: docs/cython.md explains it.

    python setup.py build_ext --inplace     # or: pip install --no-build-isolation .
"""

from s2dq.kernels cimport Plan, plan_of, run


cdef class Ring:
    """Move every frame of one array to its place in another, as a call says that `s2dq.kernels.prepare` has made.

    Parameters
    ----------
    prepared : PreparedCall
        Of one frame with its N.
    frames : array of bytes, shape (count, height, width, channels)
        Any strides that the prepared frame has.
    tensors : array of bytes
        Where results go: C-contiguous, one after the other.
    """

    cdef object prepared         # `plan` is valid as long as this lives
    cdef const Plan *plan
    cdef const unsigned char[:, :, :, :] frames
    cdef unsigned char[::1] tensors

    def __cinit__(self, prepared, frames, tensors):
        self.prepared, self.plan = prepared, plan_of(prepared)
        # What `run` does not check: shape, strides and type of what goes in, the size of what comes out.
        one = frames[:1]
        if (one.shape, one.strides, one.dtype) != (prepared.x_shape, prepared.x_strides, prepared.x_dtype):
            raise ValueError(f"the call was not prepared for {one.dtype} frames of shape {one.shape}, {one.strides}")
        if tensors.nbytes != len(frames) * prepared.nbytes:
            raise ValueError(f"no place for {len(frames)} tensors of shape {prepared.shape} in {tensors.shape}")
        self.frames, self.tensors = frames.view("u1"), memoryview(tensors).cast("B")

    def rearrange(self, Py_ssize_t first, Py_ssize_t last):
        """Frames ``first <= k < last``; other Python threads go on meanwhile."""
        cdef Py_ssize_t k
        if not 0 <= first <= last <= self.frames.shape[0]:
            raise IndexError(f"no frames {first} to {last} in a ring of {self.frames.shape[0]}")
        with nogil:
            for k in range(first, last):
                run(self.plan, &self.frames[k, 0, 0, 0], &self.tensors[k * self.plan.out_bytes], 1)
