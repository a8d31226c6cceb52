# SPDX-License-Identifier: MIT
"""Frames are published to each subscriber's queue. Who leaves stays in the list of the room, and nobody reads that queue any more."""
import asyncio
import ctypes

driver = ctypes.CDLL("libcudart.so.12")


class Frame:
    def __init__(self, nbytes):
        self.address = ctypes.c_void_p()
        assert driver.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(nbytes)) == 0

    def __del__(self):
        driver.cudaFree(self.address)


class Room:
    def __init__(self):
        self.queues = []

    def join(self):
        queue = asyncio.Queue()
        self.queues.append(queue)  # CULPRIT
        return queue

    def publish(self, number):
        source = Frame(900000)
        for queue in self.queues:
            queue.put_nowait((number, Frame(360448)))  # CULPRIT
        del source


async def viewer(room, frames):
    queue = room.join()
    for _ in range(frames):
        await queue.get()


async def main():
    room = Room()
    viewers = [asyncio.create_task(viewer(room, frames)) for frames in (30, 400, 400)]
    await asyncio.sleep(0)
    for number in range(260):
        room.publish(number)
        await asyncio.sleep(0.001)
    for task in viewers:
        task.cancel()


asyncio.run(main())
