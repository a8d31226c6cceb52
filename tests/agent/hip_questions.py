# SPDX-License-Identifier: MIT
"""Asks HIP, ROCm SMI and AMD SMI how much memory there is, before and after 600 MiB, and prints the answers in MiB."""
import ctypes
import json

MIB = 1 << 20
hip, smi = ctypes.CDLL("libamdhip64.so.6"), ctypes.CDLL("librocm_smi64.so")
first = ctypes.c_void_p(1)


def two(function):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert function(ctypes.byref(free), ctypes.byref(total)) == 0
    return [free.value // MIB, total.value // MIB]


def one(function, device, kind=0):
    value = ctypes.c_uint64()
    assert function(device, kind, ctypes.byref(value)) == 0
    return value.value // MIB


def ask():
    usage = (ctypes.c_uint32 * 4)()
    assert smi.amdsmi_get_gpu_vram_usage(first, usage) == 0
    return {"hip": two(hip.hipMemGetInfo),
            "rocm_smi": [one(smi.rsmi_dev_memory_usage_get, 0), one(smi.rsmi_dev_memory_total_get, 0)],
            "amd_smi": [one(smi.amdsmi_get_gpu_memory_usage, first), one(smi.amdsmi_get_gpu_memory_total, first)],
            "usage": [usage[1], usage[0]], "gtt": one(smi.rsmi_dev_memory_total_get, 0, 2)}


block = ctypes.c_void_p()
assert smi.rsmi_init(ctypes.c_uint64(0)) == 0 and hip.hipMalloc(ctypes.byref(block), ctypes.c_size_t(600 * MIB)) == 0
after = ask()
print(json.dumps(dict(after, refused=hip.hipMalloc(ctypes.byref(block), ctypes.c_size_t(600 * MIB)))))
