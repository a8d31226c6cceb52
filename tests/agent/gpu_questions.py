# SPDX-License-Identifier: MIT
"""Asks the CUDA runtime, driver and NVML what there is, allocates, and prints the answers as one JSON object."""
import ctypes
import json
import sys

MIB = 1 << 20


def memory(function, *before):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert function(*before, ctypes.byref(free), ctypes.byref(total)) == 0
    return [free.value // MIB, total.value // MIB]


def main(calls, size):
    runtime = ctypes.CDLL("libcudart.so.12")
    driver = ctypes.CDLL("libcuda.so.1")
    address, total = ctypes.c_void_p(), ctypes.c_size_t()
    answers = {"first": memory(runtime.cudaMemGetInfo), "codes": [], "free": [], "addresses": []}
    for _ in range(calls):
        answers["codes"].append(runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size * MIB)))
        answers["addresses"].append(address.value)
        answers["free"].append(memory(runtime.cudaMemGetInfo)[0])
    answers["pending"] = runtime.cudaGetLastError()
    answers["driver"] = memory(driver.cuMemGetInfo_v2)
    driver.cuDeviceTotalMem_v2(ctypes.byref(total), 0)
    answers["device_total"] = total.value // MIB
    properties = ctypes.create_string_buffer(4096)
    assert runtime.cudaGetDeviceProperties_v2(properties, 0) == 0
    # totalGlobalMem lies after name (256 bytes), uuid (16), luid (8) and its mask (4), aligned.
    answers["property_total"] = int.from_bytes(properties.raw[288:296], "little") // MIB
    nvml, handle, info = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
    assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
    assert nvml.nvmlDeviceGetMemoryInfo(handle, info) == 0
    answers["nvml"] = [int(info[1]) // MIB, int(info[0]) // MIB]
    print(json.dumps(answers))


main(int(sys.argv[1]), int(sys.argv[2]))
