# SPDX-License-Identifier: MIT
"""CUPTI by ctypes, as a profiler in the process: it subscribes before the program's first call and turns activities on; then calls follow.

Without NVIDIA's driver subscribing fails: CUPTI needs internal tables of the driver."""
import ctypes
import glob
import os
import sys
from say import say

found = [path for place in sys.path for path in glob.glob(os.path.join(place, "nvidia", "cuda_cupti", "lib", "libcupti.so.*"))]
cupti, cuda = ctypes.CDLL(found[0]), ctypes.CDLL("libcuda.so.1")
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
seen, subscriber, other, version = set(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
callback = CALLBACK(lambda data, domain, name, what: seen.add((domain, name)))
context, block, text = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_char_p()


def says(name, *arguments):
    """The result, and CUPTI's own name of it."""
    def call():
        result = getattr(cupti, name)(*arguments)
        return result, cupti.cuptiGetResultString(result, ctypes.byref(text)) or text.value
    say(name, call)


says("cuptiGetVersion", ctypes.byref(version))
says("cuptiSubscribe", ctypes.byref(subscriber), callback, None)
says("cuptiSubscribe", ctypes.byref(other), callback, None)  # CUPTI allows one subscriber
for domain in range(1, 6):
    says("cuptiEnableDomain", 1, subscriber, domain)
for kind in (1, 3, 4, 5, 49):
    says("cuptiActivityEnable", kind)
say("cuInit", cuda.cuInit, 0)
say("cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain, ctypes.byref(context), 0)
say("cuCtxSetCurrent", cuda.cuCtxSetCurrent, context)
for size in (1 << 20, 1 << 50, 3 << 20):
    say("cuMemAlloc", cuda.cuMemAlloc_v2, ctypes.byref(block), ctypes.c_size_t(size))
say("cuMemFree", cuda.cuMemFree_v2, block)
say("callbacks", lambda: sorted(seen))
says("cuptiUnsubscribe", subscriber)
says("cuptiFinalize")
