# SPDX-License-Identifier: MIT
import numpy
from numba import cuda
from say import say

say("is_available", cuda.is_available)
say("detect", cuda.detect)
say("memory info", lambda: cuda.current_context().get_memory_info())


def arrays():
    """Each way to allocate memory with Numba, some kept and some freed."""
    kept = [cuda.device_array(1 << 20, numpy.uint8) for _ in range(3)]
    copied = cuda.to_device(numpy.arange(1000.0))
    pinned = cuda.pinned_array(5000, numpy.uint8)
    mapped = cuda.mapped_array(6000, numpy.uint8)
    managed = cuda.managed_array(7000, numpy.uint8)
    sizes = [array.nbytes for array in (*kept, copied, pinned, mapped, managed)]
    del kept[0]
    cuda.synchronize()
    return sizes


say("arrays", arrays)
say("close", cuda.close)
