# SPDX-License-Identifier: MIT
"""Each stage starts a new pool of threads, whose threads keep a work area in a registry that outlives them."""
import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor

gpu = ctypes.CDLL("libcudart.so.13")
registry = {}
guard = threading.Lock()


def grab(size):
    box = ctypes.c_void_p()
    if gpu.cudaMalloc(ctypes.byref(box), ctypes.c_size_t(size)):
        raise RuntimeError("no memory")
    return box


def work_area():
    key = threading.get_ident(), threading.current_thread().name
    if key not in registry:
        area = grab(3000000)  # CULPRIT
        with guard:
            registry[key] = area  # CULPRIT
    return registry[key]


def resize(image):
    work_area()  # CULPRIT
    tmp = grab(50000 + image % 9 * 1000)
    gpu.cudaFree(tmp)
    return image


def stage(number, images):
    with ThreadPoolExecutor(3, thread_name_prefix="stage%d" % number) as pool:
        return sum(pool.map(resize, images))


for number in range(40):
    stage(number, range(12))
for area in registry.values():
    gpu.cudaFree(area)
