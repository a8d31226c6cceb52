# SPDX-License-Identifier: MIT
"""An inference service of coroutines. A request that runs out of time is cancelled, and does not come to its free()."""
import asyncio
import ctypes
import random

rt = ctypes.CDLL("libcudart.so.12")
random.seed(9)


def malloc(size):
    out = ctypes.c_void_p()
    status = rt.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(size))
    assert status == 0, status
    return out


def free(p):
    rt.cudaFree(p)


async def encode(text):
    tmp = malloc(30000 + 100 * text)
    await asyncio.sleep(0)
    free(tmp)


async def generate(text, slow):
    state = malloc(777216)  # CULPRIT
    await encode(text)
    await asyncio.sleep(1 if slow else 0)
    logits = malloc(64000)
    free(logits)
    free(state)


async def handle(number):
    try:
        await asyncio.wait_for(generate(random.randrange(200), number % 6 == 5), .002)
    except asyncio.TimeoutError:
        return "504"
    return "200"


async def client(numbers):
    for number in numbers:
        await handle(number)


async def main():
    weights = [malloc(8 << 20) for _ in range(5)]
    await asyncio.gather(*(client(range(c, 600, 4)) for c in range(4)))
    for p in weights:
        free(p)


asyncio.run(main())
