# SPDX-License-Identifier: MIT
"""A pool with a maximum: what is freed stays in it in pieces for other sizes, and little is live when it refuses."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Props(ctypes.Structure):
    _fields_ = [("allocation", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("security", ctypes.c_void_p),
                ("most", ctypes.c_size_t), ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 54)]


def pool_of(most):
    props = Props(allocation=1, location=Location(1, 0), most=most)
    pool = ctypes.c_void_p()
    assert not rt.cudaMemPoolCreate(ctypes.byref(pool), ctypes.byref(props))  # CULPRIT
    return pool


def batch(pool, nbytes, stream):
    at = ctypes.c_void_p()
    if rt.cudaMallocFromPoolAsync(ctypes.byref(at), ctypes.c_size_t(nbytes), pool, stream):
        raise SystemExit(1)
    return at


def main():
    stream = ctypes.c_void_p()
    rt.cudaStreamCreate(ctypes.byref(stream))
    pool = pool_of(400 << 20)  # CULPRIT
    for step in range(100):
        parts = [batch(pool, (5 + step) << 20, stream) for _ in range(5)]
        time.sleep(0.001)
        for at in parts:
            rt.cudaFreeAsync(at, stream)


main()
