"""The one list of named cases: real layers and uses, for the tests and every benchmark.

A case says which operator runs on what kind of array with which arguments. Nothing of s2dq is imported here,
only NumPy: asv loads this file by its path, from its own checkout, to measure commits older than the list.

To add a case, add a row to the table of its operator. The name starts with the layer or the use and ends with
what sets the row apart from its neighbours; a name that has results is never given to anything else.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

Value = TypeVar("Value")

TAGS = {
    "small": "so little data that the cost of the call is all there is to see",
    "crop": "the input is a window of a larger frame, read where it lies",
    "pad": "values outside of the input are filled in",
    "cut": "values are cut off the edges of the result",
    "ragged": "the number of channels is not a multiple of the vector width",
    "convert": "the layout changes in the same pass",
}


@dataclass(frozen=True)
class Case:
    """One call: `operator(x, **arguments)` with `x` of this shape and dtype."""

    name: str
    operator: str
    shape: tuple[int, ...]
    dtype: str
    arguments: dict[str, Any]
    tags: tuple[str, ...] = ()
    frame: tuple[int, ...] = field(default=())  # shape of the array that x is the middle of; empty: x is a whole array

    def call(self, operators: ModuleType, x: np.ndarray, **options: Any) -> Any:
        """Run the case on `x`; `operators` is the module that has it, `s2dq` or `s2dq.reference`."""
        return getattr(operators, self.operator)(x, **self.arguments, **options)


def make_input(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Return an input for `case`: random bits for integers, normal values for floats."""
    shape, dtype = case.frame or case.shape, np.dtype(case.dtype)
    if dtype.kind == "f":
        x = rng.standard_normal(shape).astype(dtype)
    else:
        x = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()
    starts = [(outer - inner) // 2 for outer, inner in zip(shape, case.shape, strict=True)]
    return x[tuple(slice(start, start + count) for start, count in zip(starts, case.shape, strict=True))]


def input_nbytes(case: Case) -> int:
    return int(np.prod(case.shape)) * np.dtype(case.dtype).itemsize


def find(name: str) -> Case:
    """Return the case of this name: one of the list, or random_SEED_INDEX."""
    if re.fullmatch(r"random_\d+_\d+", name):
        _, seed, index = name.split("_")
        return random_cases(int(seed), int(index) + 1)[-1]
    return BY_NAME[name]


def rows_of(operator: str, *parameters: str) -> Callable[..., Case]:
    """Return a function that makes cases of `operator` whose first values are those of `parameters`, then tags."""

    def row(
        name: str, shape: tuple[int, ...], dtype: str, *values: Any, frame: tuple[int, ...] = (), **more: Any
    ) -> Case:
        arguments = dict(zip(parameters, values[: len(parameters)], strict=True))
        return Case(name, operator, shape, dtype, {**arguments, **more}, values[len(parameters):], frame)

    return row


s2d = rows_of("space_to_depth", "block_size", "data_format")
d2s = rows_of("depth_to_space", "block_size", "data_format")
s2b = rows_of("space_to_batch_nd", "block_shape", "paddings")
b2s = rows_of("batch_to_space_nd", "block_shape", "crops")
pack = rows_of("pack_vect_c", "vect", "data_format")
unpack = rows_of("unpack_vect_c", "data_format")


def prepare(name: str, shape: tuple[int, ...], *tags: str, frame: tuple[int, ...] = (), **arguments: Any) -> Case:
    return Case(name, "preprocess", shape, "uint8", arguments, tags, frame)


SPACE_TO_DEPTH = (
    s2d("tiny_s2d_nhwc", (1, 4, 4, 4), "int8", 2, "NHWC", "small"),
    s2d("tiny_s2d_nchw", (1, 4, 4, 4), "int8", 2, "NCHW", "small"),
    s2d("tiny_s2d_nhwc_crd", (1, 4, 4, 4), "int8", 2, "NHWC", "small", mode="CRD"),
    # Stems that trade resolution for channels: MLPerf ResNet-50 on TPUs, TResNet, ViT patches of 8 pixels.
    s2d("resnet50_stem_224", (1, 224, 224, 3), "int8", 2, "NHWC"),
    s2d("resnet50_stem_224_batch32", (32, 224, 224, 3), "uint8", 2, "NHWC"),
    s2d("tresnet_stem_224_nhwc", (1, 224, 224, 3), "int8", 4, "NHWC"),
    s2d("tresnet_stem_224_nchw_f32", (1, 3, 224, 224), "float32", 4, "NCHW"),
    s2d("vit_patches8_224_nhwc", (1, 224, 224, 3), "uint8", 8, "NHWC"),
    s2d("vit_patches8_224_nchw", (1, 3, 224, 224), "uint8", 8, "NCHW"),
    s2d("vit_patches8_224_nhwc_batch32", (32, 224, 224, 3), "uint8", 8, "NHWC"),
    # YOLOv5's Focus layer, and Swin's patch merging, which has the same order.
    s2d("yolov5_focus_640_nchw", (1, 3, 640, 640), "uint8", 2, "NCHW", mode="focus"),
    s2d("yolov5_focus_640_nhwc", (1, 640, 640, 3), "int8", 2, "NHWC", mode="focus"),
    s2d("yolov5_focus_640_nchw_batch32", (32, 3, 640, 640), "uint8", 2, "NCHW", mode="focus"),
    s2d("swin_patch_merging_56", (1, 56, 56, 96), "float16", 2, "NHWC", mode="focus"),
    # YOLOv2's passthrough from 26x26 to 13x13, 8-bit and float.
    s2d("yolov2_passthrough_26", (1, 26, 26, 64), "int8", 2, "NHWC"),
    s2d("yolov2_passthrough_26_f32", (1, 26, 26, 64), "float32", 2, "NHWC"),
    s2d("feature_map_14_c512_nhwc", (1, 14, 14, 512), "int8", 2, "NHWC"),
    s2d("feature_map_14_c512_nchw", (1, 512, 14, 14), "int8", 2, "NCHW"),
    s2d("feature_map_14_c256_nchw_batch32", (32, 256, 14, 14), "int8", 2, "NCHW"),
    s2d("feature_map_28_c512_nhwc", (1, 28, 28, 512), "int8", 2, "NHWC"),
    s2d("feature_map_56_c256_nchw", (1, 256, 56, 56), "int8", 2, "NCHW"),
    s2d("feature_map_56_c64_crd", (1, 56, 56, 64), "int8", 2, "NHWC", mode="CRD"),
    s2d("feature_map_56_c64_crd_batch32", (32, 56, 56, 64), "int8", 2, "NHWC", mode="CRD"),
    s2d("feature_map_64_c64_nchw", (1, 64, 64, 64), "int8", 2, "NCHW"),
    # pixel_unshuffle in front of restoration networks: FFDNet (2), Real-ESRGAN x1 (4).
    s2d("ffdnet_unshuffle2_256", (1, 3, 256, 256), "float32", 2, "NCHW", mode="CRD"),
    s2d("realesrgan_unshuffle4_512", (1, 3, 512, 512), "uint8", 4, "NCHW", mode="CRD"),
    s2d("realesrgan_unshuffle4_1024", (1, 3, 1024, 1024), "uint8", 4, "NCHW", mode="CRD"),
    s2d("unshuffle2_1080p_f16", (1, 3, 1080, 1920), "float16", 2, "NCHW", mode="CRD"),
    # One colour per pixel to one pixel of four colours.
    s2d("bayer_mosaic_1080p", (1, 1080, 1920, 1), "uint16", 2, "NHWC"),
    s2d("bayer_mosaic_1080p_8bit", (1, 1080, 1920, 1), "uint8", 2, "NHWC"),
    s2d("bayer_mosaic_4k", (1, 2160, 3840, 1), "uint16", 2, "NHWC"),
    s2d("bayer_mosaic_61mp", (1, 6388, 9576, 1), "uint16", 2, "NHWC"),
    s2d("quad_bayer_mosaic_1080p", (1, 1080, 1920, 1), "uint16", 4, "NHWC"),
    s2d("infrared_1024", (1, 1024, 1024, 1), "uint8", 2, "NHWC"),
    s2d("full_hd_s2d_nhwc", (1, 1080, 1920, 3), "uint8", 2, "NHWC"),
    s2d("full_hd_s2d_b3_nhwc", (1, 1080, 1920, 3), "uint8", 3, "NHWC"),
    s2d("full_hd_s2d_b3_nchw_crd", (1, 3, 1080, 1920), "uint8", 3, "NCHW", mode="CRD"),
    s2d("frame_4k_s2d_nhwc", (1, 2160, 3840, 3), "uint8", 2, "NHWC"),
    s2d("frame_8k_s2d_nhwc", (1, 4320, 7680, 3), "uint8", 2, "NHWC"),
    # Square tiles, whose planes are powers of two apart: microscopes and satellites (four bands of Sentinel-2).
    s2d("microscope_512_c16_nchw", (1, 16, 512, 512), "int8", 2, "NCHW"),
    s2d("microscope_1024_b8_nchw", (1, 4, 1024, 1024), "uint8", 8, "NCHW"),
    s2d("hyperspectral_512_c16", (1, 512, 512, 16), "uint16", 2, "NHWC"),
    s2d("satellite_2048_nchw", (1, 8, 2048, 2048), "uint8", 2, "NCHW"),
    s2d("satellite_4096_nchw", (1, 4, 4096, 4096), "uint16", 2, "NCHW"),
    s2d("label_map_512_int64", (1, 512, 512, 1), "int64", 2, "NHWC"),
    s2d("camera_crop_640_of_1080p", (1, 640, 640, 3), "uint8", 2, "NHWC", "crop", frame=(1, 1080, 1920, 3)),
    s2d("camera_crop_224_of_1080p_nchw", (1, 3, 224, 224), "uint8", 4, "NCHW", "crop", frame=(1, 3, 1080, 1920)),
    s2d("yolo_1080p_to_stride32", (1, 1080, 1920, 3), "uint8", 2, "NHWC", "pad", paddings=[[4, 4], [0, 0]],
        pad_value=114),
    s2d("era5_field_f64", (1, 721, 1440, 1), "float64", 4, "NHWC", "pad", paddings=[[0, 3], [0, 0]]),
    s2d("era5_levels_f64_nchw", (1, 2, 720, 1440), "float64", 4, "NCHW"),
    s2d("focus_640_int8x4", (1, 1, 640, 640, 4), "int8", 2, "NCHW_VECT_C"),
    s2d("feature_map_56_c256_int8x32", (1, 8, 56, 56, 32), "int8", 2, "NCHW_VECT_C"),
    # One and three spatial dims: raw audio, a magnetic resonance volume, clips cut into tubelets.
    s2d("audio_patches4_nwc", (1, 16000, 1), "int16", 4, "NWC"),
    s2d("audio_frames_ncw_crd", (1, 64, 4096), "float32", 2, "NCW", mode="CRD"),
    s2d("mri_volume_ncdhw", (1, 1, 64, 128, 128), "int16", 2, "NCDHW"),
    s2d("clip_tubelets_ndhwc", (1, 16, 112, 112, 3), "uint8", (2, 4, 4), "NDHWC"),
    # A frame as cameras give it, into the layout that the first convolution wants, in one pass.
    s2d("camera_640_to_nchw", (1, 640, 640, 3), "uint8", 2, "NHWC", "convert", out_format="NCHW"),
    s2d("camera_640_to_int8x4", (1, 640, 640, 3), "uint8", 2, "NHWC", "convert", out_format="NCHW_VECT_C"),
    s2d("camera_640_to_int8x32", (1, 640, 640, 3), "uint8", 2, "NHWC", "convert", "ragged",
        out_format="NCHW_VECT_C", vect=32),
    s2d("camera_640_to_int8x32_crd", (1, 640, 640, 3), "uint8", 2, "NHWC", "convert", "ragged",
        out_format="NCHW_VECT_C", vect=32, mode="CRD"),
    s2d("camera_1080p_to_nchw_crd", (1, 1080, 1920, 3), "uint8", 2, "NHWC", "convert", out_format="NCHW", mode="CRD"),
    s2d("camera_1080p_hwc_to_chw", (1, 1080, 1920, 3), "uint8", 1, "NHWC", "convert", out_format="NCHW"),
    s2d("camera_1080p_chw_to_hwc", (1, 3, 1080, 1920), "uint8", 1, "NCHW", "convert", out_format="NHWC"),
    s2d("feature_map_56_c64_nchw_to_int8x32", (1, 64, 56, 56), "int8", 2, "NCHW", "convert",
        out_format="NCHW_VECT_C", vect=32),
    s2d("feature_map_180_c256_to_nchw_f32", (1, 180, 180, 256), "float32", 2, "NHWC", "convert", out_format="NCHW"),
    # Latent images into transformer tokens: Stable Diffusion 3 (512 pixels), FLUX (1024 pixels).
    s2d("sd3_latents_64_to_tokens", (1, 16, 64, 64), "float16", 2, "NCHW", "convert", out_format="NHWC", mode="CRD"),
    s2d("flux_latents_128_to_tokens", (1, 16, 128, 128), "float16", 2, "NCHW", "convert", out_format="NHWC",
        mode="CRD"),
    s2d("layout_56_c64_nhwc_to_nchw", (1, 56, 56, 64), "int8", 1, "NHWC", "convert", out_format="NCHW"),
    s2d("layout_56_c64_nchw_to_nhwc_batch32", (32, 64, 56, 56), "int8", 1, "NCHW", "convert", out_format="NHWC"),
    s2d("layout_64_c64_nhwc_to_nchw_batch16", (16, 64, 64, 64), "int8", 1, "NHWC", "convert", out_format="NCHW"),
    s2d("layout_28_c512_nhwc_to_nchw_f32", (1, 28, 28, 512), "float32", 1, "NHWC", "convert", out_format="NCHW"),
    s2d("layout_56_c64_int8x4_to_nhwc", (1, 16, 56, 56, 4), "int8", 1, "NCHW_VECT_C", "convert",
        out_format="NHWC"),
    s2d("focus_640_int8x4_rgb_to_nchw", (1, 1, 640, 640, 4), "int8", 2, "NCHW_VECT_C", "convert", "ragged",
        out_format="NCHW", mode="focus", channels=3),
)

DEPTH_TO_SPACE = (
    d2s("tiny_d2s_nhwc", (1, 4, 4, 4), "int8", 2, "NHWC", "small"),
    d2s("tiny_d2s_nchw_crd", (1, 4, 4, 4), "int8", 2, "NCHW", "small", mode="CRD"),
    # Decoder steps on the last feature maps of a classifier.
    d2s("feature_map_7_c1024", (1, 1024, 7, 7), "int8", 2, "NCHW"),
    d2s("feature_map_7_c1024_batch32", (32, 1024, 7, 7), "int8", 2, "NCHW"),
    d2s("feature_map_28_c1024", (1, 1024, 28, 28), "int8", 2, "NCHW"),
    d2s("feature_map_28_c512_batch32", (32, 512, 28, 28), "int8", 2, "NCHW"),
    d2s("feature_map_14_c512_up_nhwc", (1, 14, 14, 512), "int8", 2, "NHWC"),
    # Super-resolution: the pixel shuffle at the end makes the picture.
    d2s("espcn_x3_1080p", (1, 27, 360, 640), "uint8", 3, "NCHW", mode="CRD"),
    d2s("espcn_x2_1080p_f32", (1, 12, 540, 960), "float32", 2, "NCHW", mode="CRD"),
    d2s("espcn_x4_1080p", (1, 48, 270, 480), "uint8", 4, "NCHW", mode="CRD"),
    d2s("swinir_x3_480_f32", (1, 27, 160, 160), "float32", 3, "NCHW", mode="CRD"),
    d2s("edsr_x2_48", (1, 256, 48, 48), "float32", 2, "NCHW", mode="CRD"),
    d2s("edsr_x2_48_f16", (1, 256, 48, 48), "float16", 2, "NCHW", mode="CRD"),
    d2s("edsr_x2_48_batch16", (16, 256, 48, 48), "float32", 2, "NCHW", mode="CRD"),
    d2s("mobile_sr_x3_1080p", (1, 360, 640, 27), "uint8", 3, "NHWC"),
    d2s("mobile_sr_x2_540p_crd", (1, 270, 480, 12), "int8", 2, "NHWC", mode="CRD"),
    d2s("mobile_sr_x2_1080p", (1, 540, 960, 12), "uint8", 2, "NHWC"),
    d2s("mobile_sr_x4_1080p_crd", (1, 270, 480, 48), "uint8", 4, "NHWC", mode="CRD"),
    d2s("mobile_sr_x2_8k_nchw", (1, 12, 2160, 3840), "uint8", 2, "NCHW"),
    d2s("land_cover_4096", (1, 2048, 2048, 32), "int8", 2, "NHWC"),
    d2s("quicksrnet_x4_512", (1, 128, 128, 48), "int8", 4, "NHWC"),
    d2s("quicksrnet_x4_512_to_nchw", (1, 128, 128, 48), "int8", 4, "NHWC", "convert", out_format="NCHW"),
    d2s("sr_x4_1080p_cut", (1, 272, 480, 48), "uint8", 4, "NHWC", "cut", crops=[[4, 4], [0, 0]]),
    # Dense upsampling convolution: 19 Cityscapes classes at once from 1/8 of the resolution.
    d2s("duc_cityscapes_b8", (1, 1216, 28, 28), "int8", 8, "NCHW", mode="CRD"),
    d2s("mae_patches8_224_batch32", (32, 28, 28, 192), "uint8", 8, "NHWC"),
    d2s("label_map_512_int64_undo", (1, 256, 256, 4), "int64", 2, "NHWC"),
    d2s("era5_field_f64_undo", (1, 181, 360, 16), "float64", 4, "NHWC", "cut", crops=[[0, 3], [0, 0]]),
    d2s("bayer_mosaic_1080p_undo", (1, 540, 960, 4), "uint16", 2, "NHWC"),
    d2s("microscope_512_c16_undo", (1, 64, 256, 256), "int8", 2, "NCHW"),
    d2s("microscope_1024_b8_undo", (1, 256, 128, 128), "uint8", 8, "NCHW"),
    d2s("flux_latents_128_from_tokens", (1, 64, 64, 64), "float16", 2, "NHWC", "convert", out_format="NCHW",
        mode="CRD"),
    d2s("yolov5_focus_640_undo", (1, 320, 320, 12), "int8", 2, "NHWC", mode="focus"),
    d2s("yolov5_focus_640_undo_nchw", (1, 12, 320, 320), "uint8", 2, "NCHW", mode="focus"),
    d2s("feature_map_28_c1024_int8x32", (1, 32, 28, 28, 32), "int8", 2, "NCHW_VECT_C"),
    d2s("audio_upsample_ncw_crd", (1, 64, 4096), "float32", 2, "NCW", mode="CRD"),
    d2s("audio_patches4_nwc_undo", (1, 4000, 4), "int16", 4, "NWC"),
    d2s("mri_volume_ncdhw_undo", (1, 8, 32, 64, 64), "int16", 2, "NCDHW"),
    d2s("clip_tubelets_ndhwc_undo", (1, 8, 28, 28, 96), "uint8", (2, 4, 4), "NDHWC"),
    d2s("preview_640_from_int8x4", (1, 3, 320, 320, 4), "uint8", 2, "NCHW_VECT_C", "convert",
        out_format="NHWC"),
    d2s("preview_1080p_from_nchw", (1, 12, 540, 960), "uint8", 2, "NCHW", "convert", out_format="NHWC"),
)

SPACE_TO_BATCH = (
    s2b("tiny_s2b", (1, 4, 4, 4), "int8", [2, 2], [[0, 0], [0, 0]], "small"),
    # Dilated convolutions as plain ones: DeepLabv3's branch of rate 6, WaveNet's dilation 8, a video one.
    s2b("deeplab_rate6", (1, 33, 33, 256), "float32", [6, 6], [[6, 9], [6, 9]], "pad"),
    s2b("deeplab_rate6_int8", (1, 33, 33, 256), "int8", [6, 6], [[6, 9], [6, 9]], "pad", pad_value=-128),
    s2b("erfnet_dilation4", (1, 64, 128, 128), "int8", [4, 4], [[0, 0], [0, 0]]),
    s2b("espnet_dilation8_c1", (1, 512, 1024, 1), "uint8", [8, 8], [[0, 0], [0, 0]]),
    s2b("wavenet_dilation8", (1, 16000, 32), "float32", [8], [[8, 0]], "pad"),
    s2b("wavenet_dilation512", (1, 16000, 32), "float32", [512], [[512, 384]], "pad"),
    s2b("clip_every_fourth_frame", (1, 32, 224, 224, 3), "uint8", [4], [[0, 0]]),
    s2b("video_dilation2", (1, 16, 56, 56, 64), "int8", [2, 2, 2], [[0, 0], [0, 0], [0, 0]]),
    s2b("video_dilation2_odd", (1, 15, 55, 55, 64), "int8", [2, 2, 2], [[0, 1], [0, 1], [0, 1]], "pad"),
    s2b("mask_512", (1, 512, 512, 1), "uint8", [2, 2], [[0, 0], [0, 0]]),
    s2b("mask_8192", (1, 8192, 8192, 1), "uint8", [2, 2], [[0, 0], [0, 0]]),
    s2b("feature_map_28_c128_batch32", (32, 28, 28, 128), "int8", [2, 2], [[0, 0], [0, 0]]),
    # Channels first: the channel dim is a block dim of 1.
    s2b("feature_map_56_c64_nchw", (8, 64, 56, 56), "int8", [1, 2, 2], [[0, 0], [0, 0], [0, 0]]),
)

BATCH_TO_SPACE = (
    b2s("tiny_b2s", (4, 2, 2, 4), "int8", [2, 2], [[0, 0], [0, 0]], "small"),
    b2s("deeplab_rate6_undo", (36, 6, 6, 256), "float32", [6, 6], [[0, 3], [0, 3]], "cut"),
    b2s("deeplab_rate6_int8_undo", (36, 6, 6, 256), "int8", [6, 6], [[0, 3], [0, 3]], "cut"),
    b2s("deeplab_rate12_undo", (144, 5, 5, 256), "float32", [12, 12], [[12, 15], [12, 15]], "cut"),
    b2s("erfnet_dilation4_undo", (16, 16, 32, 128), "int8", [4, 4], [[0, 0], [0, 0]]),
    b2s("wavenet_dilation8_undo", (8, 2001, 32), "float32", [8], [[8, 0]], "cut"),
    b2s("video_dilation2_undo", (8, 8, 28, 28, 64), "int8", [2, 2, 2], [[0, 0], [0, 0], [0, 0]]),
    b2s("video_dilation2_odd_undo", (8, 8, 28, 28, 64), "int8", [2, 2, 2], [[0, 1], [0, 1], [0, 1]], "cut"),
    b2s("mask_512_undo", (4, 256, 256, 1), "uint8", [2, 2], [[0, 0], [0, 0]]),
    b2s("feature_map_28_c128_batch32_undo", (128, 14, 14, 128), "int8", [2, 2], [[0, 0], [0, 0]]),
)

PACKING = (
    pack("tiny_pack_v4", (1, 4, 4, 4), "int8", 4, "NCHW", "small"),
    unpack("tiny_unpack_v4", (1, 1, 4, 4, 4), "int8", "NCHW", "small"),
    pack("feature_map_56_c64_to_int8x4", (1, 64, 56, 56), "int8", 4, "NCHW"),
    pack("feature_map_56_c64_nhwc_to_int8x4", (1, 56, 56, 64), "int8", 4, "NHWC"),
    pack("feature_map_56_c64_nhwc_to_int8x4_batch32", (32, 56, 56, 64), "int8", 4, "NHWC"),
    pack("feature_map_64_c64_to_int8x4", (1, 64, 64, 64), "int8", 4, "NCHW"),
    pack("feature_map_64_c64_to_int8x32_batch16", (16, 64, 64, 64), "int8", 32, "NCHW"),
    pack("feature_map_28_c512_nhwc_to_int8x32", (1, 28, 28, 512), "int8", 32, "NHWC"),
    pack("feature_map_14_c256_to_int8x32_batch32", (32, 256, 14, 14), "int8", 32, "NCHW"),
    pack("feature_map_112_c64_to_int8x4_batch32", (32, 64, 112, 112), "int8", 4, "NCHW"),
    pack("feature_map_56_c100_nhwc_to_int8x32", (1, 56, 56, 100), "int8", 32, "NHWC", "ragged"),
    pack("feature_map_56_c256_to_int8x32", (1, 256, 56, 56), "int8", 32, "NCHW"),
    pack("rgb_640_to_int8x4", (1, 640, 640, 3), "int8", 4, "NHWC", "ragged"),
    pack("rgb_1080p_nchw_to_int8x4", (1, 3, 1080, 1920), "int8", 4, "NCHW", "ragged"),
    pack("feature_map_28_c100_to_f16x16", (1, 100, 28, 28), "float16", 16, "NCHW", "ragged"),
    pack("feature_map_28_c96_to_f32x8", (1, 96, 28, 28), "float32", 8, "NCHW"),
    unpack("feature_map_56_c64_from_int8x4", (1, 16, 56, 56, 4), "int8", "NCHW"),
    unpack("feature_map_56_c64_nhwc_from_int8x4", (1, 16, 56, 56, 4), "int8", "NHWC"),
    unpack("feature_map_56_c64_nhwc_from_int8x4_batch32", (32, 16, 56, 56, 4), "int8", "NHWC"),
    unpack("feature_map_64_c64_from_int8x32_batch16", (16, 2, 64, 64, 32), "int8", "NCHW"),
    unpack("feature_map_14_c256_from_int8x32_batch32", (32, 8, 14, 14, 32), "int8", "NCHW"),
    unpack("feature_map_56_c256_from_int8x32", (1, 8, 56, 56, 32), "int8", "NCHW"),
    unpack("rgb_640_from_int8x4", (1, 1, 640, 640, 4), "int8", "NHWC", "ragged", channels=3),
    unpack("rgb_1080p_nchw_from_int8x4", (1, 1, 1080, 1920, 4), "int8", "NCHW", "ragged", channels=3),
)

# The main job: `arguments` are those of `Preprocessor`, of `reference.preprocess` and of no other operator.
CAMERA: dict[str, Any] = {"scale": 1 / 255, "zero_point": -128}  # the grey level itself, its top bit flipped
IMAGENET: dict[str, Any] = {
    "scale": 0.018658, "zero_point": -14, "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225),
}  # fmt: skip
IMAGENET_UINT8 = IMAGENET | {"zero_point": 114, "dtype": "uint8"}
FROM_MINUS_1_TO_1: dict[str, Any] = {"scale": 1 / 128, "mean": 0.5, "std": 0.5}  # one table for all channels
FROM_MINUS_1_TO_1_UINT8 = FROM_MINUS_1_TO_1 | {"zero_point": 128, "dtype": "uint8"}

PREPROCESSING = (
    # Detectors that take frames from 0 to 1.
    prepare("model_input_640_nhwc", (1, 640, 640, 3), data_format="NHWC", **CAMERA),
    prepare("model_input_640_nchw", (1, 640, 640, 3), data_format="NCHW", **CAMERA),
    prepare("model_input_640_s2d_nhwc", (1, 640, 640, 3), data_format="NHWC", block_size=2, **CAMERA),
    prepare("model_input_640_s2d_int8x4", (1, 640, 640, 3), data_format="NCHW_VECT_C", block_size=2,
            **CAMERA),
    prepare("model_input_640_focus_nchw", (1, 640, 640, 3), data_format="NCHW", block_size=2, mode="focus", **CAMERA),
    prepare("model_input_480x640_letterboxed", (1, 480, 640, 3), "pad", size=640, block_size=2, **CAMERA),
    prepare("model_input_640_of_1080p", (1, 640, 640, 3), "crop", frame=(1, 1080, 1920, 3), block_size=2,
            **CAMERA),
    prepare("model_input_1080p_s2d_nhwc", (1, 1080, 1920, 3), data_format="NHWC", block_size=2, **CAMERA),
    # Classifiers and segmentation networks: three tables. OpenCV's frames are BGR, decoders of images give planes.
    prepare("imagenet_224_nhwc", (1, 224, 224, 3), data_format="NHWC", **IMAGENET),
    prepare("imagenet_224_s2d_nhwc_batch32", (32, 224, 224, 3), data_format="NHWC", block_size=2, **IMAGENET),
    prepare("imagenet_224_bgr_nchw_batch32", (32, 224, 224, 3), data_format="NCHW", reverse_channels=True,
            **IMAGENET),
    prepare("imagenet_640_nhwc", (1, 640, 640, 3), data_format="NHWC", **IMAGENET),
    prepare("imagenet_640_nchw_uint8", (1, 640, 640, 3), data_format="NCHW", **IMAGENET_UINT8),
    prepare("imagenet_640_planes_s2d_nchw", (1, 3, 640, 640), input_format="NCHW", data_format="NCHW", block_size=2,
            **IMAGENET),
    prepare("imagenet_640_int8x4", (1, 640, 640, 3), "ragged", data_format="NCHW_VECT_C", **IMAGENET),
    prepare("imagenet_640_s2d_int8x4", (1, 640, 640, 3), data_format="NCHW_VECT_C", block_size=2, **IMAGENET),
    prepare("imagenet_640_s2d_b4_int8x32", (1, 640, 640, 3), "ragged", data_format="NCHW_VECT_C", block_size=4, vect=32,
            **IMAGENET),
    prepare("imagenet_640_s2d_crd_int8x16", (1, 640, 640, 3), "ragged", data_format="NCHW_VECT_C", block_size=2,
            mode="CRD", vect=16, **IMAGENET),
    prepare("imagenet_480x640_letterboxed_bgr_nchw", (1, 480, 640, 3), "pad", data_format="NCHW", size=640,
            reverse_channels=True, **IMAGENET),
    prepare("imagenet_1080p_nhwc", (1, 1080, 1920, 3), data_format="NHWC", **IMAGENET),
    prepare("imagenet_1080p_nchw", (1, 1080, 1920, 3), data_format="NCHW", **IMAGENET),
    prepare("imagenet_1080p_bgr_s2d_nhwc", (1, 1080, 1920, 3), data_format="NHWC", block_size=2,
            reverse_channels=True, **IMAGENET),
    prepare("imagenet_1080p_s2d_nchw", (1, 1080, 1920, 3), data_format="NCHW", block_size=2, **IMAGENET),
    prepare("imagenet_1080p_s2d_b4_nhwc_uint8", (1, 1080, 1920, 3), data_format="NHWC", block_size=4,
            **IMAGENET_UINT8),
    prepare("imagenet_1080p_letterboxed_s2d_int8x4", (1, 1080, 1920, 3), "pad", data_format="NCHW_VECT_C", block_size=2,
            size=(1088, 1920), **IMAGENET),
    # MobileNet and its relatives: one table that is no flip of a bit.
    prepare("mobilenet_224_nhwc_uint8_batch32", (32, 224, 224, 3), data_format="NHWC", **FROM_MINUS_1_TO_1_UINT8),
    prepare("mobilenet_640_s2d_b4_nchw", (1, 640, 640, 3), data_format="NCHW", block_size=4, **FROM_MINUS_1_TO_1),
)

CASES = (*SPACE_TO_DEPTH, *DEPTH_TO_SPACE, *SPACE_TO_BATCH, *BATCH_TO_SPACE, *PACKING)
NAMED = (*CASES, *PREPROCESSING)
BY_NAME = {case.name: case for case in NAMED}


# ---- random cases

DTYPES = ("int8", "uint8", "int16", "float16", "int32", "float32", "int64", "float64")
WEIGHTS = np.array([4, 4, 2, 2, 1, 2, 1, 1])  # half of the draws are 8-bit: what this package is about
CHANNELS = (1, 2, 3, 4, 8, 12, 16, 27, 32, 48, 64, 100, 128, 256, 512)
SPATIAL_DIMS = {"NWC": 1, "NCW": 1, "NHWC": 2, "NCHW": 2, "NCHW_VECT_C": 2, "NDHWC": 3, "NCDHW": 3}


def random_cases(seed: int, count: int, largest: int = 2**25, smallest: int = 64) -> list[Case]:
    """Return `count` cases of any operator, layout, mode and element width: the same ones for the same seed.

    Sizes are drawn log-uniform from `smallest` to `largest` bytes. Rounding to whole blocks and words moves them a
    little; a case that leaves the range is drawn again.
    """
    rng = np.random.default_rng(seed)
    draws = (random_depth, random_depth, random_depth, random_depth, random_batch, random_batch, random_packing)
    drawn: list[Case] = []
    while len(drawn) < count:
        case = choose(rng, draws)(rng, f"random_{seed}_{len(drawn)}", smallest, largest)
        if smallest <= input_nbytes(case) <= largest:
            drawn.append(case)
    return drawn


def random_depth(rng: np.random.Generator, name: str, smallest: int, largest: int) -> Case:
    """space_to_depth or depth_to_space, any two layouts of one rank."""
    to_depth = choose(rng, (True, False))
    data_format = choose(rng, ("NHWC", "NHWC", "NHWC", "NCHW", "NCHW", "NCHW", "NCHW_VECT_C", *SPATIAL_DIMS))
    dims = SPATIAL_DIMS[data_format]
    partners = [layout for layout in SPATIAL_DIMS if SPATIAL_DIMS[layout] == dims]
    out_format = choose(rng, partners) if rng.random() < 0.3 else data_format
    dtype = random_dtype(rng)
    if data_format == out_format == "NCHW_VECT_C":
        dtype = choose(rng, ("int8", "uint8"))  # words to words: 8-bit elements alone
    source_lanes, lanes = (choose(rng, (4, 4, 8, 16, 32)) if layout == "NCHW_VECT_C" else 1
                           for layout in (data_format, out_format))
    if data_format == out_format:
        lanes = source_lanes
    block = choose(rng, (1, 2, 2, 2, 2, 3, 4, 8) if data_format != out_format else (2, 2, 2, 2, 3, 4, 8))
    channels = choose(rng, CHANNELS)
    deep = channels * block**dims
    # What the packed source holds: whole words, of which `channels=` may leave a few lanes unused.
    held = deep if not to_depth else channels
    words = -(-held // source_lanes)
    if source_lanes > 1 and not to_depth and data_format == out_format:
        words = -(-words // block**dims) * block**dims  # words to words: the count of words is what is split
    ragged = source_lanes > 1 and words * source_lanes != held and data_format != out_format
    if source_lanes > 1 and not ragged:
        held = words * source_lanes

    elements = random_elements(rng, dtype, smallest, largest)
    batch = min(choose(rng, (1, 1, 1, 2, 8, 32)), max(1, elements // held))
    unit = block if to_depth else 1
    extents = random_extents(rng, elements / batch / held, dims, unit)
    margins = [[0, 0]] * dims
    arguments: dict[str, Any] = {}
    if rng.random() < 0.2:
        if to_depth:
            margins = [random_margins(rng, extent - 1) for extent in extents]
            arguments["paddings"] = margins
            if rng.random() < 0.5:
                arguments["pad_value"] = 7
        else:
            margins = [random_margins(rng, extent * block - 1) for extent in extents]
            arguments["crops"] = margins
    if to_depth:
        extents = [extent - start - end for extent, (start, end) in zip(extents, margins, strict=True)]
    frame_extents = extents
    if rng.random() < 0.15:
        frame_extents = [extent + int(rng.integers(1, 1 + max(1, extent // 2))) for extent in extents]

    mode = choose(rng, ("DCR", "DCR", "CRD", "CRD", "focus"))
    arguments = {"block_size": block, "data_format": data_format, **arguments}
    if mode != "DCR":
        arguments["mode"] = mode
    if out_format != data_format:
        arguments["out_format"] = out_format
    if lanes > 1 and lanes != 4 and out_format != data_format:
        arguments["vect"] = lanes
    if ragged:
        arguments["channels"] = held
    shape = in_layout(data_format, batch, extents, held, words, source_lanes)
    frame = in_layout(data_format, batch, frame_extents, held, words, source_lanes)
    result_channels = held * block**dims if to_depth else held // block**dims
    spare = ragged or (lanes > 1 and out_format != data_format and result_channels % lanes != 0)
    return tagged(name, "space_to_depth" if to_depth else "depth_to_space", shape, dtype, arguments, frame, spare)


def random_batch(rng: np.random.Generator, name: str, smallest: int, largest: int) -> Case:
    """space_to_batch_nd or batch_to_space_nd with one to three block dims."""
    to_batch, dims, dtype = choose(rng, (True, False)), choose(rng, (1, 2, 2, 2, 3)), random_dtype(rng)
    block = [choose(rng, (1, 2, 2, 2, 3, 4, 6, 8)) for _ in range(dims)]
    elements = random_elements(rng, dtype, smallest, largest)
    rest = (min(choose(rng, CHANNELS[:-2]), max(1, elements // int(np.prod(block)))),) * choose(rng, (0, 1, 1, 1))
    batch = choose(rng, (1, 1, 2, 8))
    counts = random_extents(rng, elements / np.prod(block) / np.prod(rest) / batch, dims, 1)
    extents = [count * b for count, b in zip(counts, block, strict=True)]
    margins = [[0, 0]] * dims
    if rng.random() < 0.4:
        margins = [random_margins(rng, extent - 1) for extent in extents]
    if to_batch:
        shape = (batch, *(extent - sum(pair) for extent, pair in zip(extents, margins, strict=True)), *rest)
        arguments = {"block_shape": block, "paddings": margins}
    else:
        shape = (batch * int(np.prod(block)), *counts, *rest)
        arguments = {"block_shape": block, "crops": margins}
    return tagged(name, "space_to_batch_nd" if to_batch else "batch_to_space_nd", shape, dtype, arguments)


def random_packing(rng: np.random.Generator, name: str, smallest: int, largest: int) -> Case:
    """pack_vect_c or unpack_vect_c, whole words or ragged."""
    packing, lanes, dtype = choose(rng, (True, False)), choose(rng, (4, 4, 8, 16, 32, 32)), random_dtype(rng)
    data_format, channels = choose(rng, ("NCHW", "NHWC")), choose(rng, CHANNELS)
    words = -(-channels // lanes)
    elements = random_elements(rng, dtype, smallest, largest)
    batch = min(choose(rng, (1, 1, 8, 32)), max(1, elements // (words * lanes)))
    extents = random_extents(rng, elements / batch / (words * lanes), 2, 1)
    arguments: dict[str, Any] = {"data_format": data_format}
    ragged = channels % lanes != 0
    if packing:
        arguments["vect"] = lanes
        shape = in_layout(data_format, batch, extents, channels, 0, 1)
    else:
        shape = in_layout("NCHW_VECT_C", batch, extents, channels, words, lanes)
        if ragged:
            arguments["channels"] = channels
    return tagged(name, "pack_vect_c" if packing else "unpack_vect_c", shape, dtype, arguments, spare=ragged)


def tagged(
    name: str, operator: str, shape: tuple[int, ...], dtype: str, arguments: dict[str, Any],
    frame: tuple[int, ...] = (), spare: bool = False,
) -> Case:  # fmt: skip
    """A case with the tags that say what it is."""
    frame = () if frame == shape else frame
    is_tagged = {
        "small": np.prod(shape) * np.dtype(dtype).itemsize <= 1024,
        "crop": bool(frame),
        "pad": bool(np.any(arguments.get("paddings", 0))),
        "cut": bool(np.any(arguments.get("crops", 0))),
        "ragged": spare,
        "convert": "out_format" in arguments,
    }
    return Case(name, operator, shape, dtype, arguments, tuple(tag for tag in TAGS if is_tagged[tag]), frame)


def in_layout(
    layout: str, batch: int, extents: Sequence[int], channels: int, words: int, lanes: int
) -> tuple[int, ...]:
    if layout == "NCHW_VECT_C":
        return (batch, words, *extents, lanes)
    return (batch, channels, *extents) if layout[1] == "C" else (batch, *extents, channels)


def random_elements(rng: np.random.Generator, dtype: str, smallest: int, largest: int) -> int:
    """How many elements make a size drawn log-uniform."""
    nbytes = np.exp(rng.uniform(np.log(smallest), np.log(largest)))
    return max(1, int(nbytes) // np.dtype(dtype).itemsize)


def random_extents(rng: np.random.Generator, volume: float, dims: int, unit: int) -> list[int]:
    """`dims` multiples of `unit` whose product is near `volume`; at random powers of two, where pitches collide."""
    extents = []
    for left in range(dims, 0, -1):
        extent = max(1.0, volume) ** (1 / left) * rng.uniform(0.6, 1.6) ** (left > 1)
        if rng.random() < 0.25:
            extent = 2 ** round(np.log2(max(1.0, extent)))
        extents.append(max(1, round(extent / unit)) * unit)
        volume /= extents[-1]
    return extents


def random_margins(rng: np.random.Generator, most: int) -> list[int]:
    """Start and end, together at most `most` and usually a few elements."""
    start = int(rng.integers(0, 1 + min(9, most)))
    return [start, int(rng.integers(0, 1 + min(9, most - start)))]


def random_dtype(rng: np.random.Generator) -> str:
    return DTYPES[rng.choice(len(DTYPES), p=WEIGHTS / WEIGHTS.sum())]


def choose(rng: np.random.Generator, values: Sequence[Value]) -> Value:
    return values[int(rng.integers(len(values)))]
