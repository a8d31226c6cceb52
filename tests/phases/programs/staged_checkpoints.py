# SPDX-License-Identifier: MIT
"""A saver thread copies the weights to pinned memory at each checkpoint and gives it back when it has written them.  A last save, then a test."""
import ctypes
import queue
import random
import sys
import threading

draw = random.Random(int(sys.argv[1]))
rt = ctypes.CDLL("libcudart.so.13")
nvtx = ctypes.CDLL("libnvToolsExt.so.1")
rt.cudaFree(None)


class Tensor:
    def __init__(self, size):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(size)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.at)


shapes = [draw.randint(4, 16) << 20 for _ in range(draw.randint(5, 9))]
weights = [Tensor(size) for size in shapes]
orders = queue.Queue()


def save():
    while orders.get() is not None:
        staged = []
        for size in shapes:
            host = ctypes.c_void_p()
            if rt.cudaMallocHost(ctypes.byref(host), ctypes.c_size_t(size)):
                sys.exit("no pinned memory")
            staged.append(host)
        for host in staged:
            rt.cudaFreeHost(host)
        orders.task_done()
    orders.task_done()


def train(steps):
    for step in range(steps):
        nvtx.nvtxRangePushA(b"step_%d" % step)
        activations = [Tensor(size // 2) for size in shapes]
        while activations:
            gradient = Tensor(shapes[0])
            activations.pop()
            del gradient
        nvtx.nvtxRangePop()


saver = threading.Thread(target=save)
saver.start()
for _ in range(draw.randint(4, 9)):
    train(draw.randint(8, 25))
    orders.put("checkpoint")
orders.join()
orders.put(None)
saver.join()
for _ in range(draw.randint(40, 100)):
    outputs = [Tensor(size // 4) for size in shapes]
    del outputs
