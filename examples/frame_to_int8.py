"""Camera frames to int8 model inputs: a ring of outputs, a crop read in place, and a box mapped back.

    python examples/frame_to_int8.py
"""

from pathlib import Path

import numpy as np
from PIL import Image

import s2dq


def main():
    frame = np.asarray(Image.open(Path(__file__).with_name("scene.png")).convert("RGB"))
    print(f"frame            {frame.shape} {frame.dtype}")

    # The model's own numbers: q stands for (q + 128) / 255, in words of four channels, at half the size.
    pre = s2dq.Preprocessor(
        scale=1 / 255, zero_point=-128, size=(608, 800), block_size=2, data_format="NCHW_VECT_C"
    )

    # Four outputs, used in turn: no new array per frame, and a slot stays as it is for three more frames.
    ring = np.empty((4, 3, 304, 400, 4), np.int8)
    for number in range(8):
        seen = np.roll(frame, -10 * number, axis=1)  # a camera that pans
        slot = ring[number % 4 : number % 4 + 1]
        pre(seen, out=slot)
    print(f"ring             {ring.shape} {ring.dtype}, frames 4 to 7, levels {ring.min()}..{ring.max()}")

    # Undone: the words unpacked, the blocks put back, int8 to grey level. The last frame is there, exactly.
    pixels = s2dq.depth_to_space(slot, 2, "NCHW_VECT_C", out_format="NHWC", channels=12)
    top, left = pre.geometry(*frame.shape[:2])
    inside = pixels[0, top : top + frame.shape[0], left : left + frame.shape[1]]
    restored = (inside.astype(np.int16) + 128).astype(np.uint8)
    print(f"undone           {restored.shape} {restored.dtype}, equal to the frame: "
          f"{np.array_equal(restored, seen)}")

    # A second model looks at the car alone. The crop is a view of the frame, read with the frame's strides.
    x, y, width, height = 384, 462, 216, 96
    crop = frame[y : y + height, x : x + width]
    closer = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=(128, 256), data_format="NCHW")
    tensor = closer(crop)
    print(f"crop             {crop.shape} at x={x}, y={y} -> {tensor.shape} {tensor.dtype}")

    # A box the model finds comes back by taking off the padding and adding where the crop was.
    top, left = closer.geometry(height, width)
    found = np.array([50, 66, 90, 106])  # left, top, right, bottom: the front wheel
    in_frame = found + [x - left, y - top, x - left, y - top]
    print(f"box              {found.tolist()} of the crop's model is {in_frame.tolist()} of the frame")


if __name__ == "__main__":
    main()
