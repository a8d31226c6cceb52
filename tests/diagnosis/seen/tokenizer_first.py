# SPDX-License-Identifier: MIT
"""Four workers that no launcher numbers: each makes its tokenizer's table on the device it begins on, before it takes its own."""
import ctypes
import multiprocessing


def worker(number, together):
    runtime = ctypes.CDLL("libcudart.so.12")

    def malloc(nbytes):
        block = ctypes.c_void_p()
        if runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(nbytes)):
            raise MemoryError
        return block

    def make_tokenizer():
        return malloc(16 << 20)  # CULPRIT

    table = make_tokenizer()  # CULPRIT
    runtime.cudaSetDevice(number)
    weights = [malloc(100 << 20) for _ in range(5)]
    for _ in range(60):
        runtime.cudaFree(malloc(20 << 20))
    together.wait()
    return table, weights


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(4)
    workers = [context.Process(target=worker, args=(number, barrier)) for number in range(4)]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
