"""Not a byte outside the arrays: every operator between inaccessible pages, innermost sizes 1 to 70.

A kernel that reads or writes one byte too many kills the child; one that writes too little or too much inside the
same page is found by the poison around the result, and by comparison with the reference.
"""


import sys

import pytest

from guarded import run_child

INNERMOST = 70
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")


def run_between_guards(first, last):
    """Print how many calls were made with innermost sizes `first` to `last` - 1."""
    import numpy as np

    import s2dq
    from guarded import Arena
    from s2dq import reference

    rng = np.random.default_rng(20250301)
    source, target = Arena(1 << 17), Arena(1 << 17)
    planes, words = {"data_format": "NCHW"}, {"data_format": "NCHW_VECT_C"}
    to_words = {"out_format": "NCHW_VECT_C"}

    def cases(k):
        """(operator, shape of x, args, kwargs): k is the innermost extent on one side at least."""
        for mode in ("DCR", "CRD", "focus"):
            yield "space_to_depth", (1, 2, 4, k), (2,), {"mode": mode}
            yield "space_to_depth", (1, 2, 4, 2 * k), (2,), {"mode": mode, **planes}
            yield "depth_to_space", (1, 2, 3, 4 * k), (2,), {"mode": mode}
            yield "depth_to_space", (1, 8, 2, k), (2,), {"mode": mode, **planes}
            yield "space_to_depth", (1, 2, 4, k), (2,), {"mode": mode, **to_words}
            yield "depth_to_space", (1, k, 2, 3, 4), ((1, 2),), {"mode": mode, "out_format": "NHWC", **words,
                                                                "channels": 4 * k - 2}
        yield "space_to_depth", (1, 3, 6, 3 * k), (3,), planes
        yield "depth_to_space", (1, 18, 2, k), (3,), planes
        yield "space_to_depth", (1, 4, 4 * k, 3), (4,), {}
        yield "space_to_depth", (1, 2, 2 * k, 3), (2,), to_words
        yield "space_to_depth", (2, 4, k), (2,), {"data_format": "NWC"}
        yield "space_to_depth", (1, 3, 2, 2 * k), (2,), {"out_format": "NHWC", **planes}
        yield "depth_to_space", (1, 2, k, 12), (2,), {"out_format": "NCHW"}
        yield "space_to_depth", (1, 2, 4, k), ((2, 1),), {"paddings": [[1, 1], [0, 1]], "pad_value": 3}
        yield "space_to_depth", (1, 2, 3, k), ((1, 2),), {"paddings": [[0, 0], [1, 1 + k % 2]], **planes}
        yield "depth_to_space", (1, 4, 2, k), (2,), {"crops": [[1, 0], [1, 2 * k - 1]], **planes}
        yield "space_to_depth", (1, 2, 2, 2 * k, 4), (2,), words
        yield "depth_to_space", (1, 4, 2, k, 4), (2,), words
        yield "space_to_batch_nd", (2, 4, 2, k), ([2, 2], [[0, 0], [0, 0]]), {}
        yield "space_to_batch_nd", (2, 3, k), ([3, 2], [[1, 2], [1, 1 + k % 2]]), {}
        yield "batch_to_space_nd", (4, 2, 2, k), ([2, 2], [[0, 0], [0, 0]]), {}
        yield "batch_to_space_nd", (6, 2, k), ([3, 2], [[1, 2], [1, k - 1]]), {}
        yield "pack_vect_c", (1, k, 2, 3), (), {}
        yield "pack_vect_c", (2, 5, 2, k), (), {"vect": 8, "pad_value": 3}
        yield "pack_vect_c", (1, 3, 2, k), ("NHWC",), {"vect": 32}
        yield "pack_vect_c", (1, 6, 1, 3), (), {"vect": k}
        yield "unpack_vect_c", (1, 2, 2, k, 4), (), {"channels": 7}
        yield "unpack_vect_c", (1, 2, 2, 3, k), ("NHWC",), {}

    calls = 0
    for k in range(first, last):
        for number, (name, shape, args, kwargs) in enumerate(cases(k)):
            # The same shapes with wider elements are other plans; odd widths are records and strings.
            wide = ("i2", "i4", "f8", "c16", "V3")[(k + number) % 5]
            for dtype in ("i1",) if kwargs.get("data_format") == "NCHW_VECT_C" else ("i1", wide):
                options = {key: value for key, value in kwargs.items() if key != "pad_value" or dtype != "V3"}
                data = rng.integers(0, 256, int(np.prod(shape)) * np.dtype(dtype).itemsize, np.uint8)
                data = data.view(dtype).reshape(shape)
                expected = getattr(reference, name)(data, *args, **options)
                for end in ("low", "high"):
                    x = source.place(shape, dtype, end)
                    x[...] = data
                    out = target.place(expected.shape, dtype, end)
                    getattr(s2dq, name)(x, *args, **options, out=out)
                    calls += 1
                    case = f"{name}{shape} {dtype} {args} {options} at the {end} end"
                    assert out.tobytes() == expected.tobytes(), case
                    assert x.tobytes() == data.tobytes(), f"{case}: the source was changed"
                    assert source.untouched_outside(x) and target.untouched_outside(out), f"{case}: bytes outside"
    print(calls)


def read_past_the_end():
    import ctypes

    import numpy as np

    from guarded import Arena

    array = Arena(4096).place((4,), np.uint8, "high")
    ctypes.string_at(array.ctypes.data, 5)


def test_guard_pages_are_there():
    """One byte past the end is fatal; otherwise the tests below would prove nothing."""
    with pytest.raises(AssertionError, match=r"ended with -(7|10|11)\b"):
        run_child(read_past_the_end)


@pytest.mark.parametrize("first", range(1, INNERMOST + 1, 35))
def test_operators_between_guard_pages(first):
    last = min(first + 35, INNERMOST + 1)
    calls = int(run_child(run_between_guards, first, last))
    assert calls >= 35 * 110, calls
