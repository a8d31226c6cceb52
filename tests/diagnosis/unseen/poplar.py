# SPDX-License-Identifier: MIT
"""Three threads pass blocks along a line of bounded queues; as many are made as are given back."""
import ctypes
import queue
import threading

rt = ctypes.CDLL("libcudart.so.13")


def produce(out, count):
    for number in range(count):
        p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(700_000 + 8192 * (number % 32))):
            raise MemoryError
        out.put(p)
    out.put(None)


def transform(source, out):
    while (p := source.get()) is not None:
        q = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(q), ctypes.c_size_t(350_000)):
            raise MemoryError
        rt.cudaFree(p)
        out.put(q)
    out.put(None)


def consume(source):
    while (q := source.get()) is not None:
        rt.cudaFree(q)


first, second = queue.Queue(6), queue.Queue(3)
threads = [threading.Thread(target=produce, args=(first, 500)), threading.Thread(target=transform, args=(first, second)),
           threading.Thread(target=consume, args=(second,))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
