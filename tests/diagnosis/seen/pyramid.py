# SPDX-License-Identifier: MIT
"""Scores image pyramids of a native library; what leaks is inside of it."""
import ctypes
import os

library = ctypes.CDLL(os.path.join(os.environ["CORPUS_LIB"], "libpyramid.so"))
library.pyramid_score.restype = ctypes.c_int


def score(image):
    return library.pyramid_score(512 + 64 * (image % 5), 512)


good = sum(score(image) >= 0 for image in range(200))
print(good)
