# SPDX-License-Identifier: MIT
import cupy
from say import say

say("version", lambda: cupy.__version__)
say("is_available", cupy.cuda.is_available)
say("device count", cupy.cuda.runtime.getDeviceCount)
say("runtime version", cupy.cuda.runtime.runtimeGetVersion)
say("driver version", cupy.cuda.runtime.driverGetVersion)
say("malloc", cupy.cuda.runtime.malloc, 4096)
say("mallocAsync", cupy.cuda.runtime.mallocAsync, 4096, 0)
say("hostAlloc", cupy.cuda.runtime.hostAlloc, 4096, 0)
say("zeros", cupy.zeros, 3)
say("memory info", cupy.cuda.runtime.memGetInfo)
