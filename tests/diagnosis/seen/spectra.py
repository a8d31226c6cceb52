# SPDX-License-Identifier: MIT
"""Spectra of radio recordings by libspectral.so."""
import ctypes
import os

lib = ctypes.CDLL(os.path.join(os.environ["CORPUS_LIB"], "libspectral.so"))


class Recorder:
    def __init__(self, lengths):
        self.lengths = lengths

    def spectrum(self, length):
        if lib.spectral_forward(length, 12):
            raise RuntimeError("transform failed")

    def scan(self, passes):
        for _ in range(passes):
            for length in self.lengths:
                self.spectrum(length)


Recorder((1 << 14, 1 << 15, 3 << 14)).scan(110)
