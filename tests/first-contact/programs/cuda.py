"""Asks the runtime for 900 MiB of the device twice.  The second call may be refused."""
import ctypes

cudart, block, size = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p(), ctypes.c_size_t(900 << 20)
first = cudart.cudaMalloc(ctypes.byref(block), size)
second = cudart.cudaMalloc(ctypes.byref(block), size)
