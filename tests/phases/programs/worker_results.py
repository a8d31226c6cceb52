# SPDX-License-Identifier: MIT
"""In each round a thread pool embeds documents, whose vectors stay in a dictionary by document and round; training steps follow each round."""
import concurrent.futures
import ctypes
import random
import sys

draw = random.Random(int(sys.argv[1]))
rt = ctypes.CDLL("libcudart.so.13")
rt.cudaFree(None)


class DeviceArray:
    def __init__(self, nbytes):
        self.ptr = ctypes.c_void_p()
        status = rt.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(nbytes))
        if status:
            raise RuntimeError(status)

    def __del__(self):
        rt.cudaFree(self.ptr)


width = draw.randint(1, 4) << 18
vectors = {}


def embed(document):
    hidden = [DeviceArray(2 * width) for _ in range(3)]
    vector = DeviceArray(width)  # CULPRIT
    vectors[document] = vector  # CULPRIT
    return len(hidden)


def train(steps):
    for _ in range(steps):
        batch, gradient = DeviceArray(4 * width), DeviceArray(4 * width)
        del batch, gradient


weights = [DeviceArray(16 << 20) for _ in range(4)]
documents = draw.randint(24, 60)
workers = draw.randint(2, 4)
for number in range(draw.randint(4, 7)):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(embed, ((number, document) for document in range(documents))))
    train(draw.randint(40, 120))
