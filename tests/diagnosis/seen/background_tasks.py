# SPDX-License-Identifier: MIT
"""A service of coroutines starts a task for each upload and keeps all of them in a set, since a task that nobody holds may be collected. Their results live as long."""
import asyncio
import ctypes

gpu = ctypes.CDLL("libcudart.so.13")


class Frame:
    def __init__(self, size):
        self.at = ctypes.c_void_p()
        if gpu.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(size)) != 0:
            raise RuntimeError("no device memory")

    def __del__(self):
        gpu.cudaFree(self.at)


tasks = set()


async def thumbnail(frame):
    await asyncio.sleep(0)
    return Frame(170000)  # CULPRIT


async def upload(number):
    frame = Frame(800000)
    tasks.add(asyncio.create_task(thumbnail(frame)))  # CULPRIT
    await asyncio.sleep(.0005)


async def frames(count):
    for number in range(count):
        yield number
        await asyncio.sleep(0)


async def main():
    detector = Frame(9 << 20)
    async for number in frames(260):
        await upload(number)


asyncio.run(main())
