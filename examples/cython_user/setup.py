"""Build of the extension module: nothing of s2dq is linked, and no folder of it has to be named."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("frame_ring", ["frame_ring.pyx"])])
