# SPDX-License-Identifier: MIT
"""Healthy: each layer tries for a large workspace and takes a small one where there is no room, in a function of its own."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


def raw(nbytes):
    at = ctypes.c_void_p()
    return at if rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)) == 0 else None


def fast_workspace(nbytes):
    return raw(nbytes)


def slow_workspace(nbytes):
    return raw(nbytes // 3)


def layer(nbytes):
    workspace = fast_workspace(nbytes)
    if workspace is None:
        workspace = slow_workspace(nbytes)
    time.sleep(0.001)
    rt.cudaFree(workspace)


weights = raw(900 << 20)
for step in range(60):
    for width in (60, 90, 150, 220):
        layer(width << 20)
