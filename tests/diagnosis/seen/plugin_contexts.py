# SPDX-License-Identifier: MIT
"""Eight plugins, each of which makes a context of its own on the one device: 2.4 GiB that no allocation shows."""
import ctypes
import time

cu = ctypes.CDLL("libcuda.so.1")


class Plugin:
    def __init__(self, name):
        self.name, self.context = name, ctypes.c_void_p()
        error = cu.cuCtxCreate_v2(ctypes.byref(self.context), 0, 0)  # CULPRIT
        if error:
            raise RuntimeError(error)
        self.buffer = ctypes.c_uint64()
        cu.cuMemAlloc_v2(ctypes.byref(self.buffer), ctypes.c_size_t(4 << 20))

    def work(self):
        cu.cuCtxSetCurrent(self.context)
        scratch = ctypes.c_uint64()
        cu.cuMemAlloc_v2(ctypes.byref(scratch), ctypes.c_size_t(1 << 20))
        time.sleep(0.004)
        cu.cuMemFree_v2(scratch)


cu.cuInit(0)
plugins = [Plugin(name) for name in "blur crop denoise encode flip grade hdr ingest".split()]
for frame in range(25):
    for plugin in plugins:
        plugin.work()
