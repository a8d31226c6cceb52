# SPDX-License-Identifier: MIT
"""Every plug-in of a program brings the code of all its kernels, whether the graph uses it or not."""
import ctypes

driver = ctypes.CDLL("libcuda.so.1")
PLUGINS = ["resize", "crop", "blur", "warp", "decode", "encode", "mix", "color", "noise", "mask", "edge", "flow", "depth", "pose", "track", "count"]


def call(name, *args):
    result = getattr(driver, name)(*args)
    if result:
        raise RuntimeError("%s failed: %d" % (name, result))


class Plugin:
    def __init__(self, name):
        self.name = name
        self.code = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(self.code), b"fatbin of " + name.encode())  # CULPRIT


def discover():
    return {name: Plugin(name) for name in PLUGINS}  # CULPRIT


def buffer(n):
    at = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(n))
    return at


def main():
    call("cuInit", 0)
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    plugins = discover()  # CULPRIT
    image = buffer(50 << 20)
    for frame in range(200):
        out = buffer(2 << 20)
        driver.cuMemFree_v2(out)
    driver.cuMemFree_v2(image)
    return plugins


main()
