# SPDX-License-Identifier: MIT
"""cuda-python's bindings: the driver's functions, each found by cuGetProcAddress, and a runtime of its own inside."""
from cuda.bindings import driver, nvrtc, runtime
from say import code, say

MIB = 1 << 20


def ok(result):
    if code(result):
        raise RuntimeError("%s" % result[0])
    return result[1] if len(result) == 2 else result[1:]


def device_memory():
    blocks = [ok(driver.cuMemAlloc(size)) for size in (MIB, 3 * MIB, 12345)]
    pitched, pitch = ok(driver.cuMemAllocPitch(1000, 64, 4))
    ok(driver.cuMemFree(blocks[1]))
    ok(driver.cuMemFree(pitched))
    return pitch, code(driver.cuMemAlloc(1 << 50))


def other_memory():
    managed = ok(driver.cuMemAllocManaged(2 * MIB, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL))
    pinned = ok(driver.cuMemHostAlloc(MIB, 0))
    ok(driver.cuMemAllocHost(5000))
    ok(driver.cuMemFree(managed))
    return code(driver.cuMemFreeHost(pinned))


def pools(device):
    stream = ok(driver.cuStreamCreate(0))
    first = ok(driver.cuMemAllocAsync(4 * MIB, stream))
    properties = driver.CUmemPoolProps()
    properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = int(device)
    pool = ok(driver.cuMemPoolCreate(properties))
    second = ok(driver.cuMemAllocFromPoolAsync(MIB, pool, stream))
    ok(driver.cuMemFreeAsync(first, stream))
    ok(driver.cuMemFreeAsync(second, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuMemPoolTrimTo(pool, 0))
    return code(driver.cuMemPoolDestroy(pool))


def virtual_memory(device):
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = int(device)
    handle = ok(driver.cuMemCreate(4 * MIB, properties, 0))
    place = ok(driver.cuMemAddressReserve(4 * MIB, 0, 0, 0))
    ok(driver.cuMemMap(place, 4 * MIB, 0, handle, 0))
    ok(driver.cuMemRelease(handle))
    ok(driver.cuMemUnmap(place, 4 * MIB))
    return code(driver.cuMemAddressFree(place, 4 * MIB))


def array():
    what = driver.CUDA_ARRAY_DESCRIPTOR()
    what.Width, what.Height, what.NumChannels, what.Format = 64, 32, 4, driver.CUarray_format.CU_AD_FORMAT_FLOAT
    return code(driver.cuArrayDestroy(ok(driver.cuArrayCreate(what))))


def drive():
    ok(driver.cuInit(0))
    device = ok(driver.cuDeviceGet(0))
    context = ok(driver.cuDevicePrimaryCtxRetain(device))
    ok(driver.cuCtxSetCurrent(context))
    say("device memory", device_memory)
    say("other memory", other_memory)
    say("pools", pools, device)
    say("virtual memory", virtual_memory, device)
    say("array", array)
    return ok(driver.cuMemGetInfo())


say("nvrtc", nvrtc.nvrtcVersion)
say("cuInit", driver.cuInit, 0)
say("count", driver.cuDeviceGetCount)
say("runtime count", runtime.cudaGetDeviceCount)
say("cudaMalloc", runtime.cudaMalloc, 4096)
say("drive", drive)
