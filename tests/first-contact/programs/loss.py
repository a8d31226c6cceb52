"""A package whose line holds MIB."""
import ctypes

cudart = ctypes.CDLL("libcudart.so.13")


def forward():
    if cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(MIB << 20)):
        raise SystemExit("out of memory")
