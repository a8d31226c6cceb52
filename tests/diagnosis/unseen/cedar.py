# SPDX-License-Identifier: MIT
"""Filters photographs with an extension in C++."""
import ctypes
import os

ext = ctypes.CDLL(os.path.join(os.environ["CORPUS_LIB"], "libcedar.so"))
ext.cedar_conv.restype = ctypes.c_void_p


def conv(pixels, step):
    return ext.cedar_conv(ctypes.c_size_t(pixels), 1 if step % 4 == 0 else 0)


def filter_photo(step):
    edges = conv(640 * 480, step)
    blurred = conv(320 * 240, 1)
    ext.cedar_release(ctypes.c_void_p(edges))
    ext.cedar_release(ctypes.c_void_p(blurred))


for step in range(320):
    filter_photo(step)
