# SPDX-License-Identifier: MIT
"""Convolutions by plans. A plan is found by the address of its input, so hardly any is found again."""
import ctypes
import random

rt = ctypes.CDLL("libcudart.so.12")
random.seed(11)
_plans = {}


def gpu_malloc(size):
    handle = ctypes.c_void_p()
    status = rt.cudaMalloc(ctypes.byref(handle), ctypes.c_size_t(size))
    if status != 0:
        raise MemoryError("cudaMalloc returned %d" % status)
    return handle


def get_plan(image, channels):
    key = (image.value, random.randrange(1 << 30), channels)
    if key not in _plans:
        _plans[key] = gpu_malloc(384 << 10)  # CULPRIT
    return _plans[key]


def conv(image, channels):
    plan = get_plan(image, channels)
    result = gpu_malloc(channels * 96 * 96)
    return plan, result


def main():
    for number in range(500):
        image = gpu_malloc(random.choice((640, 800, 1024)) * 480 * 3)
        for channels in (16, 32):
            _, result = conv(image, channels)
            rt.cudaFree(result)
        rt.cudaFree(image)
    for plan in _plans.values():
        rt.cudaFree(plan)


main()
