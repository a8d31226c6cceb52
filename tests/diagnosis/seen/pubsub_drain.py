# SPDX-License-Identifier: MIT
"""Healthy: viewers come and go all the time; who leaves takes the queue along."""
import asyncio
import ctypes
import random

driver = ctypes.CDLL("libcudart.so.12")


class Frame:
    def __init__(self, nbytes):
        self.address = ctypes.c_void_p()
        assert driver.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(nbytes)) == 0

    def __del__(self):
        driver.cudaFree(self.address)


class Room:
    def __init__(self):
        self.queues = set()

    def publish(self):
        for queue in self.queues:
            queue.put_nowait(Frame(360448))


async def viewer(room, frames, pace):
    queue = asyncio.Queue()
    room.queues.add(queue)
    try:
        for _ in range(frames):
            await queue.get()
            await asyncio.sleep(pace)
    finally:
        room.queues.discard(queue)


async def main():
    room, rng, tasks = Room(), random.Random(2), set()
    for number in range(320):
        if number % 12 == 0:
            task = asyncio.create_task(viewer(room, rng.randrange(10, 30), rng.choice((0.001, 0.003))))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.sleep(0.001)
        room.publish()
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


asyncio.run(main())
