"""Another program on the card: it holds 2004 MiB and a context until its input ends."""
import ctypes
import sys

block = ctypes.c_void_p()
assert not ctypes.CDLL("libcudart.so.13").cudaMalloc(ctypes.byref(block), ctypes.c_size_t(2004 << 20))
print("holds", flush=True)
sys.stdin.read()
