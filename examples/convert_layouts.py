"""Channel orders, packed words and batch blocks, on arrays small enough to check by eye.

    python examples/convert_layouts.py
"""

import numpy as np

import s2dq


def show(title, array):
    print(f"{title}  {array.shape}\n    {array.ravel().tolist()}")


def channel_orders():
    """The same four pixels, deep in TensorFlow's order and in PyTorch's."""
    pixels = np.array([[[[10, 11, 12], [20, 21, 22]],
                        [[30, 31, 32], [40, 41, 42]]]], np.int8)  # fmt: skip
    show("NHWC, tens count the pixel, ones the channel", pixels)
    tensorflow = s2dq.space_to_depth(pixels, 2, "NHWC", mode="DCR")
    show("DCR: TensorFlow, TFLite, ONNX by default", tensorflow)
    pytorch = s2dq.space_to_depth(pixels, 2, "NHWC", mode="CRD", out_format="NCHW")
    show("CRD: PyTorch's pixel_unshuffle, here also NHWC -> NCHW in the same pass", pytorch)

    # From one to the other: back to pixels in the order it was made in, and down again in the other.
    restored = s2dq.depth_to_space(tensorflow, 2, mode="DCR")
    converted = s2dq.space_to_depth(restored, 2, mode="CRD", out_format="NCHW")
    print(f"    converted DCR -> CRD, equal: {np.array_equal(converted, pytorch)}\n")


def packed_words():
    """NCHW_VECT_C: four channels side by side, the last word filled up."""
    planes = np.arange(1, 7, dtype=np.int8).reshape(1, 6, 1, 1)
    words = s2dq.pack_vect_c(planes, "NCHW", vect=4)
    show("six channels in words of four: NCHW_VECT_C", words)
    back = s2dq.unpack_vect_c(words, "NCHW", channels=6)
    print(f"    unpacked with channels=6, equal: {np.array_equal(back, planes)}")

    pixels = np.arange(1, 13, dtype=np.int8).reshape(1, 2, 2, 3)
    fused = s2dq.space_to_depth(pixels, 2, "NHWC", out_format="NCHW_VECT_C")
    show("RGB frame straight to words: twelve channels, no filler", fused)
    first_packed = s2dq.space_to_depth(s2dq.pack_vect_c(pixels, "NHWC"), 2, "NCHW_VECT_C")
    show("packed first, then deep: a filler after every third", first_packed)
    print()


def round_trip():
    """depth_to_space undoes space_to_depth, for any block and any number of spatial dimensions."""
    volume = np.arange(2 * 4 * 6 * 8 * 3, dtype=np.int32).reshape(2, 4, 6, 8, 3)
    for mode in ("DCR", "CRD", "focus"):
        deep = s2dq.space_to_depth(volume, (2, 3, 4), "NDHWC", mode=mode)
        back = s2dq.depth_to_space(deep, (2, 3, 4), "NDHWC", mode=mode)
        print(f"round trip {volume.shape} -> {deep.shape} -> {back.shape} {mode}, equal: "
              f"{np.array_equal(back, volume)}")
    print()


def batch_blocks():
    """Every second pixel in an image of its own; what is missing at the edge is the zero point."""
    row = np.array([[[[1], [2], [3], [4], [5]]]], np.int8)
    batches = s2dq.space_to_batch_nd(row, [1, 2], [[0, 0], [0, 1]], pad_value=-128)
    show("space_to_batch_nd, one column of padding that holds the zero point -128", batches)
    back = s2dq.batch_to_space_nd(batches, [1, 2], [[0, 0], [0, 1]])
    print(f"    batch_to_space_nd crops it again, equal: {np.array_equal(back, row)}")


if __name__ == "__main__":
    channel_orders()
    packed_words()
    round_trip()
    batch_blocks()
