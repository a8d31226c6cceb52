# SPDX-License-Identifier: MIT
import ctypes
from types import SimpleNamespace as Of


def get_device_capability():
    runtime, values = ctypes.CDLL("libcudart.so.13"), (ctypes.c_int(), ctypes.c_int())
    assert not any(runtime.cudaDeviceGetAttribute(ctypes.byref(value), 75 + i, 0) for i, value in enumerate(values))
    return tuple(value.value for value in values)


current_platform = Of(get_device_capability=get_device_capability)
