# SPDX-License-Identifier: MIT
"""An asyncio server: a task per client; finished tasks stay in a set that is meant to keep running ones alive."""
import asyncio
import ctypes
import random

rt = ctypes.CDLL("libcudart.so.12")
random.seed(2)


def cuda_malloc(n):
    out = ctypes.c_void_p()
    status = rt.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(n))
    if status != 0:
        raise MemoryError(status)
    return out


class Embedding:
    def __init__(self, tokens):
        self.p = cuda_malloc(tokens * 3072)

    def __del__(self):
        rt.cudaFree(self.p)


async def encode(tokens):
    scratch = Embedding(4 * tokens)
    await asyncio.sleep(0.0005)
    del scratch
    return Embedding(tokens)  # CULPRIT: asked here


async def client(number):
    result = await encode(random.randint(40, 90))
    return result


tasks = set()


async def serve():
    for number in range(70):
        task = asyncio.create_task(client(number))
        tasks.add(task)  # CULPRIT: kept here
        if number % 4 == 3:
            await asyncio.wait(tasks)
    await asyncio.wait(tasks)


asyncio.run(serve())
