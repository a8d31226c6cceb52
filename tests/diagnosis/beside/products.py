# SPDX-License-Identifier: MIT
"""products.py threads|streams|torch N [full]: cuBLAS takes a workspace for each thread, or for each stream of one thread; or PyTorch for each stream, and `full`: runs out."""
import ctypes
import os
import sys
import threading
import time

rt = ctypes.CDLL("libcudart.so.13")
cublas = ctypes.CDLL(os.path.join(os.environ["APPS"], "libcublas.so.13"))
how, count = sys.argv[1], int(sys.argv[2])
weights = ctypes.c_void_p()
assert not rt.cudaMalloc(ctypes.byref(weights), ctypes.c_size_t(1 << 30))


def multiply(handle, stream=None):
    assert not cublas.cublasSetStream_v2(handle, stream)
    for _ in range(20):
        assert not cublas.cublasSgemm_v2(handle)


def make_handle():
    handle = ctypes.c_void_p()
    assert not cublas.cublasCreate_v2(ctypes.byref(handle))
    return handle


def serve():
    multiply(make_handle())


def work():
    for _ in range(60):
        result = ctypes.c_void_p()
        assert not rt.cudaMalloc(ctypes.byref(result), ctypes.c_size_t(8 << 20))
        time.sleep(0.01)
        rt.cudaFree(result)


if how == "threads":
    threads = [threading.Thread(target=serve) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
elif how == "torch":
    c10 = ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so"))

    def forward():
        c10._ZN2at4cuda24getCurrentCUDABlasHandleEv(ctypes.c_size_t(260 << 20))  # its segments have 256 MiB or the size of one block
        c10.caching_new(ctypes.c_size_t(10 << 20))

    def load():
        c10.caching_new.restype = ctypes.c_void_p
        while c10.caching_new(ctypes.c_size_t(500 << 20)):
            pass
    for _ in range(count):
        forward()
    if sys.argv[3:]:
        load()
        sys.exit(1)
else:
    handle = make_handle()
    for _ in range(count):
        stream = ctypes.c_void_p()
        assert not rt.cudaStreamCreate(ctypes.byref(stream))
        multiply(handle, stream)
work()
