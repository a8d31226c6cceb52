# SPDX-License-Identifier: MIT
"""An asynchronous service. A request that times out leaves its entry in the table of requests under way."""
import asyncio
import ctypes

_rt = ctypes.CDLL("libcudart.so.13")


class DeviceFull(RuntimeError):
    ...


def d_alloc(count: int) -> int:
    out = ctypes.c_void_p()
    if (rc := _rt.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(count))) != 0:
        raise DeviceFull(rc)
    return out.value


def d_free(address: int) -> None:
    _rt.cudaFree(ctypes.c_void_p(address))


under_way: dict[int, int] = {}


async def answer(number: int) -> None:
    workspace = d_alloc(777_216)  # CULPRIT
    under_way[number] = workspace
    reply = d_alloc(40_000)
    await asyncio.sleep(0)
    d_free(reply)
    if number % 3 == 0:
        raise asyncio.TimeoutError
    d_free(under_way.pop(number))


async def serve(requests: int) -> None:
    for number in range(0, requests, 10):
        await asyncio.gather(*(answer(number + i) for i in range(10)), return_exceptions=True)


table = d_alloc(70_000_000)
asyncio.run(serve(900))
for address in (table, *under_way.values()):
    d_free(address)
