# SPDX-License-Identifier: MIT
"""A curriculum: texts become longer until the end, and each step gives back all it took. A few lengths have a table of positions, made once."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")
positions = {}


class Pool:
    def __enter__(self):
        self.taken = []
        return self

    def take(self, nbytes):
        p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
            raise MemoryError
        self.taken.append(p)
        return p

    def __exit__(self, *error):
        for p in self.taken:
            rt.cudaFree(p)


forever = Pool().__enter__()


def table(length):
    bucket = (length + 255) // 256 * 256
    if bucket not in positions:
        positions[bucket] = forever.take(bucket * 2048)
    return positions[bucket]


weights = [forever.take(16 << 20) for _ in range(8)]
for step in range(200):
    length = 64 + 5 * step
    with Pool() as pool:
        table(length)
        for layer in range(8):
            pool.take(length * 4096)
        pool.take(length * length * 8)
