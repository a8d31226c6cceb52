# SPDX-License-Identifier: MIT
"""Clips of several rates through a native resampler."""
import ctypes
import os
import time

lib = ctypes.CDLL(os.path.join(os.environ["CORPUS_LIB"], "libresample.so"))
lib.resampler_new.restype = ctypes.c_void_p


class Resampler:
    def __init__(self):
        self.handle, self.rates = ctypes.c_void_p(lib.resampler_new()), None

    def __call__(self, rate):
        if rate != self.rates:
            lib.resampler_rates(self.handle, rate, 16000)
            self.rates = rate

    def __del__(self):
        lib.resampler_free(self.handle)


def main():
    resampler = Resampler()
    for clip in range(420):
        resampler((8000, 16000, 44100, 44100, 48000)[clip % 5])
        time.sleep(0.0007)


main()
