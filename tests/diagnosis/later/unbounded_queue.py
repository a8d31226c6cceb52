# SPDX-License-Identifier: MIT
"""A producer of coroutines that is faster than its consumer, and a queue between them without a bound, until the device is full."""
import asyncio
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class Frame:
    def __init__(self, w, h):
        self.p = ctypes.c_void_p()
        self.nbytes = w * h * 3
        status = rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(self.nbytes))
        if status:
            self.p = None
            raise MemoryError(f"{self.nbytes} bytes: error {status}")

    def release(self):
        rt.cudaFree(self.p)


async def capture(queue):
    while True:
        for _ in range(3):
            await queue.put(Frame(3840, 2160))  # CULPRIT
        await asyncio.sleep(0)


async def detect(queue):
    while True:
        frame = await queue.get()
        small = Frame(640, 360)
        small.release()
        frame.release()
        await asyncio.sleep(0)


async def main():
    queue = asyncio.Queue()  # CULPRIT
    consumer = asyncio.create_task(detect(queue))
    try:
        await capture(queue)
    finally:
        consumer.cancel()


asyncio.run(main())
