# SPDX-License-Identifier: MIT
"""A server of coroutines whose load comes and goes; a request holds its cache for as long as it generates."""
import asyncio
import ctypes
import random

rt = ctypes.CDLL("libcudart.so.12")
random.seed(12)


class Kv:
    def __init__(self):
        self.pages = []

    def __enter__(self):
        return self

    def append(self):
        p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(262144)):
            raise MemoryError
        self.pages.append(p)

    def __exit__(self, *_):
        for p in self.pages:
            rt.cudaFree(p)


async def request(gate, tokens):
    async with gate:
        with Kv() as kv:
            for token in range(tokens):
                if token % 8 == 0:
                    kv.append()
                await asyncio.sleep(0)


async def main():
    gate = asyncio.Semaphore(12)
    await asyncio.gather(*(request(gate, random.randrange(8, 90)) for _ in range(260)))


asyncio.run(main())
