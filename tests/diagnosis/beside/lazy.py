# SPDX-License-Identifier: MIT
"""lazy.py modules N | streams N | events N: code is loaded at the first launch of each kernel; handles are made for each request."""
import ctypes
import sys

cuda, rt = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.13")
what, count = sys.argv[1], int(sys.argv[2])
weights = ctypes.c_void_p()
assert not rt.cudaMalloc(ctypes.byref(weights), ctypes.c_size_t(3 << 30))
library = ctypes.c_void_p()
assert not cuda.cuLibraryLoadData(ctypes.byref(library), b"code of no GPU" + bytes(64), None, None, 0, None, None, 0)


def load_kernel(name):
    kernel = ctypes.c_void_p()
    assert not cuda.cuLibraryGetKernel(ctypes.byref(kernel), library, b"kernel %d" % name)
    return kernel


def open_request():
    handle = ctypes.c_void_p()
    assert not getattr(rt, {"streams": "cudaStreamCreate", "events": "cudaEventCreate"}[what])(ctypes.byref(handle))


for request in range(count):
    work = ctypes.c_void_p()
    assert not rt.cudaMalloc(ctypes.byref(work), ctypes.c_size_t(1 << 20))
    if what == "modules":
        kernel = load_kernel(request)
        for product in range(3):
            function = ctypes.c_void_p()
            assert not cuda.cuKernelGetFunction(ctypes.byref(function), kernel)
            cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    else:
        open_request()
    rt.cudaFree(work)
