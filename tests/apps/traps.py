#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""traps.py WHAT [NAME=OFFSET...]: calls that interposers have stumbled over (tests/e2e/test_others.py says which); prints every answer.
Offsets are of functions in libcuda.so.1, to call it past every interposer."""
import ctypes
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

MB = 1 << 20
cuda, cudart = ctypes.CDLL('libcuda.so.1'), ctypes.CDLL('libcudart.so.13')


def ok(error):
    if error:
        raise SystemExit('error %d' % error)


def with_context():
    context = c_void_p()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))


def free_memory():
    free, total = c_size_t(), c_size_t()
    ok(cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    return free.value


def null_outputs():
    with_context()
    for function in (cuda.cuMemGetInfo_v2, cudart.cudaMemGetInfo):
        free, total = c_size_t(), c_size_t()
        print(function(None, byref(total)), total.value, function(byref(free), None), free.value, function(None, None))
    p = c_void_p()
    print(cuda.cuDeviceTotalMem_v2(None, 0), cuda.cuMemAlloc_v2(None, c_size_t(MB)), cudart.cudaMalloc(None, c_size_t(MB)),
          cuda.cuMemAllocPitch_v2(byref(p), None, c_size_t(100), c_size_t(4), 4), cuda.cuMemCreate(None, c_size_t(2 * MB), (c_int * 8)(1, 0, 1, 0), c_uint64(0)),
          cuda.cuMemHostAlloc(None, c_size_t(MB), 0), cuda.cuMemAllocAsync(None, c_size_t(MB), None), cuda.cuIpcGetMemHandle(None, c_uint64(0)),
          cuda.cuArrayCreate_v2(byref(p), None), cuda.cuGraphicsUnmapResources(1, byref(c_void_p()), None))


def unseen(offsets):
    """Take memory past the interposers and free it by the ordinary function."""
    with open('/proc/self/maps') as maps:
        line = next(line for line in maps if line.rstrip().endswith('libcuda.so.1'))
    base = int(line.split('-')[0], 16)

    def real(name, *arguments):
        ok(ctypes.CFUNCTYPE(c_int)(base + int(offsets[name], 16))(*arguments))
    with_context()
    before = free_memory()
    p, q, host, handle = c_void_p(), c_void_p(), c_void_p(), c_uint64()
    prop = (c_int * 8)(1, 0, 1, 0)
    real('cuMemAlloc_v2', byref(p), c_size_t(4 * MB))
    real('cuMemAllocAsync', byref(q), c_size_t(8 * MB), None)
    real('cuMemHostAlloc', byref(host), c_size_t(MB), 0)
    real('cuMemCreate', byref(handle), c_size_t(16 * MB), prop, c_uint64(0))
    print(before - free_memory())
    print(cudart.cudaFree(p), cuda.cuMemFree_v2(q), cudart.cudaFreeHost(host), cuda.cuMemRelease(handle), cudart.cudaFree(p), cudart.cudaDeviceSynchronize())
    print(before - free_memory())


def without_context():
    """Physical memory asked for by a thread that has no context, on another device and on the host."""
    ok(cuda.cuInit(0))
    for type, id in ((1, 1), (2, 0), (3, 0), (4, 0)):
        handle, prop = c_uint64(), (c_int * 8)(1, 0, type, id)
        ok(cuda.cuMemCreate(byref(handle), c_size_t(4 * MB), prop, c_uint64(0)))
        if type != 3:
            ok(cuda.cuMemRelease(handle))
    device = c_int(77)
    print(cuda.cuCtxGetDevice(byref(device)), cuda.cuMemAlloc_v2(byref(handle), c_size_t(MB)))


def graph_freed():
    """Memory of a graph outlives the launch, is freed by an ordinary call, and is made again by the next launch."""
    with_context()
    graph, node, runs = c_void_p(), c_void_p(), c_void_p()
    params = (c_uint64 * 15)()  # CUDA_MEM_ALLOC_NODE_PARAMS: 88 bytes of pool, accesses, their count, bytes, address
    ctypes.memmove(params, (c_int * 4)(1, 0, 1, 0), 16)
    params[13] = 6 * MB
    ok(cuda.cuGraphCreate(byref(graph), 0))
    ok(cuda.cuGraphAddMemAllocNode(byref(node), graph, None, c_size_t(0), params))
    made = c_void_p(params[14])
    ok(cuda.cuGraphInstantiateWithFlags(byref(runs), graph, c_uint64(0)))
    ok(cuda.cuGraphLaunch(runs, None))
    print(cuda.cuGraphLaunch(runs, None), cudart.cudaFree(made), cuda.cuGraphLaunch(runs, None))
    ok(cuda.cuGraphExecDestroy(runs))
    ok(cuda.cuGraphInstantiateWithFlags(byref(runs), graph, c_uint64(1)))  # AUTO_FREE_ON_LAUNCH
    print(cudart.cudaFree(made), cuda.cuGraphLaunch(runs, None), cuda.cuGraphLaunch(runs, None))
    ok(cuda.cuGraphExecDestroy(runs))
    ok(cuda.cuGraphDestroy(graph))
    print(cudart.cudaFree(c_void_p(12345)))


def attributes():
    with_context()
    p, q, r = c_void_p(), c_void_p(), c_void_p()
    ok(cuda.cuMemAllocManaged(byref(p), c_size_t(MB), 1))
    ok(cuda.cuMemAlloc_v2(byref(q), c_size_t(MB)))
    ok(cuda.cuMemHostAlloc(byref(r), c_size_t(MB), 0))
    for pointer in (p, q, r):
        for attribute in (2, 8, 9):  # memory type, managed, device
            value = c_int(-1)
            print(cuda.cuPointerGetAttribute(byref(value), attribute, pointer), value.value)
    value = c_int(-1)
    print(cuda.cuDeviceGetAttribute(byref(value), 83, 0), value.value)  # managed memory


def pitches():
    with_context()
    for element in (4, 8, 16):
        for width in (1, 511, 512, 513, 5000):
            p, pitch = c_void_p(), c_size_t()
            ok(cuda.cuMemAllocPitch_v2(byref(p), byref(pitch), c_size_t(width), c_size_t(7), element))
            print(pitch.value)


def formats():
    with_context()
    for format in (*range(0x30), *range(0x90, 0xd0), 0x50, 0xff, 0x7fffffff, 0xffffffff):
        for channels in (0, 1, 4, 5):
            array, desc = c_void_p(), (c_uint64 * 5)(64, 64, 0, format | channels << 32, 0)
            print(cuda.cuArray3DCreate_v2(byref(array), desc))


def signals():
    def caught():  # not those that the C library keeps for its threads
        with open('/proc/self/status') as status:
            return [int(line.split()[1], 16) & 0x7fffffff for line in status if line.startswith(('SigBlk', 'SigIgn', 'SigCgt'))]
    before = caught()
    with_context()
    p = c_void_p()
    for _ in range(1000):
        ok(cudart.cudaMalloc(byref(p), c_size_t(MB)))
        ok(cudart.cudaFree(p))
    print(caught() == before)


what = {function.__name__: function for function in (null_outputs, unseen, without_context, graph_freed, attributes, pitches, formats, signals)}
arguments = sys.argv[2:]
what[sys.argv[1]](*([dict(argument.split('=') for argument in arguments)] if arguments else []))
