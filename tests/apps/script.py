#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""script.py STEP...: device=N, alloc=MIB, try=MIB (may fail), pin=MIB (may fail), grow=BLOCKS of 1 MiB, free (all), beside (frees what is held at another address, which fails),
calls=PAIRS (an allocation and its free, each of another size), module, unload and function (of the last module), kernel (of a library), launch=TIMES (may fail),
sleep=SECONDS,
samples=N (until the agent has taken so many more), sampled (until it has taken one), meet=NAME (until every rank has come here),
ready=PATH (make that file), wait=PATH (until it is there), library=PATH, arena=MIB (by that library), reserve=MIB (of addresses; may fail),
push=NAME, pop (ranges), losses=MIB (kept), pass=MIB and evaluate=MIB (given back at once), tensor=MIB (of a caching allocator; may fail), drop (every second tensor),
quit (now, without the interpreter's end, which takes long on a busy machine)."""
import ctypes
import itertools
import os
import sys
import time

cudart = ctypes.CDLL('libcudart.so.13', mode=ctypes.RTLD_GLOBAL)
cuda = ctypes.CDLL('libcuda.so.1')
nvtx = ctypes.CDLL('libnvToolsExt.so.1')
held, tensors, sizes = [], [], itertools.count(1)
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()


def allocate(mib, must):
    p = ctypes.c_void_p()
    error = cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20))
    if error and must:
        sys.exit('cudaMalloc: %d' % error)
    if not error:
        held.append(p)


def grow(blocks):
    for _ in range(blocks):
        allocate(1, True)
        time.sleep(0.02)  # longer than a thread usually waits for a processor


def call(pairs):
    p = ctypes.c_void_p()
    for size in itertools.islice(sizes, pairs):
        if cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) or cudart.cudaFree(p):
            sys.exit('%d bytes could not be allocated and freed' % size)


def load_module():
    cudart.cudaFree(None)
    error = cuda.cuModuleLoadData(ctypes.byref(module), b'code of no GPU' + bytes(64))
    if error:
        sys.exit('cuModuleLoadData: %d' % error)


def get_function():
    if cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b'kernel'):
        sys.exit('cuModuleGetFunction')


def get_kernel():
    library = ctypes.c_void_p()
    cudart.cudaFree(None)
    if cuda.cuLibraryLoadData(ctypes.byref(library), b'code of no GPU' + bytes(64), None, None, 0, None, None, 0) or \
            cuda.cuLibraryGetKernel(ctypes.byref(kernel), library, b'kernel'):
        sys.exit('no kernel')


def launch(times):
    for _ in range(times):
        cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)


def caching():
    library = ctypes.CDLL(os.path.join(os.environ['APPS'], 'libc10_cuda.so'))
    library.caching_new.restype = ctypes.c_void_p
    return library


def new_tensor(mib):
    block = caching().caching_new(ctypes.c_size_t(mib << 20))
    if block:
        tensors.append(block)


def wait_for_samples(count):
    """Wait for `count` further samples.  One that is under way may be from before, so one more is waited for."""
    asked = ctypes.CDLL('libnvidia-ml.so.1').sim_nvml_asked
    until = asked() + count + 1
    while asked() < until:
        time.sleep(0.005)


def meet(name):
    path = os.path.join(os.environ['MEET'], 'meet-%s-' % name)
    open(path + (os.environ.get('MEMBER') or os.environ['RANK']), 'w').close()
    while not all(os.path.exists(path + str(rank)) for rank in range(int(os.environ['WORLD_SIZE']))):
        time.sleep(0.005)


def keep_loss(mib):
    allocate(mib, True)


def use(mib):
    allocate(mib, True)
    cudart.cudaFree(held.pop())


def drop_tensors():
    for block in tensors[::2]:
        caching().caching_delete(ctypes.c_void_p(block))
    del tensors[::2]


def wait_for(what, is_there):
    """Wait until is_there(), for minutes if need be: the machine of a test may be slow."""
    end = time.monotonic() + 240
    while not is_there():
        if time.monotonic() > end:
            sys.exit('no %s' % what)
        time.sleep(0.01)


def free_beside():
    for block in held:
        cudart.cudaFree(ctypes.c_void_p(block.value + 512))


def free_all():
    while held:
        cudart.cudaFree(held.pop())


for step in sys.argv[1:]:
    name, _, value = step.partition('=')
    if name == 'device':
        cudart.cudaSetDevice(int(value))
    elif name == 'alloc':
        allocate(int(value), True)
    elif name == 'try':
        allocate(int(value), False)
    elif name == 'grow':
        grow(int(value))
    elif name == 'calls':
        call(int(value))
    elif name == 'module':
        load_module()
    elif name == 'unload':
        if cuda.cuModuleUnload(module):
            sys.exit('cuModuleUnload')
    elif name == 'function':
        get_function()
    elif name == 'kernel':
        get_kernel()
    elif name == 'launch':
        launch(int(value))
    elif name == 'pin':
        cudart.cudaMallocHost(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(int(value) << 20))
    elif name == 'library':
        library = ctypes.CDLL(value)
    elif name == 'arena':
        library.arena(ctypes.c_ulong(int(value)))
    elif name == 'reserve':
        cuda.cuMemAddressReserve(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(int(value) << 20), ctypes.c_size_t(0), ctypes.c_uint64(0),
                                 ctypes.c_uint64(0))
    elif name == 'push':
        nvtx.nvtxRangePushA(value.encode())
    elif name == 'pop':
        nvtx.nvtxRangePop()
    elif name == 'losses':
        keep_loss(int(value))
    elif name == 'pass':
        use(int(value))
    elif name == 'evaluate':
        use(int(value))
    elif name == 'tensor':
        new_tensor(int(value))
    elif name == 'drop':
        drop_tensors()
    elif name == 'samples':
        wait_for_samples(int(value))
    elif name == 'meet':
        meet(value)
    elif name == 'quit':
        os._exit(0)
    elif name == 'free':
        free_all()
    elif name == 'beside':
        free_beside()
    elif name == 'sampled':
        wait_for('sample', ctypes.CDLL('libnvidia-ml.so.1').sim_nvml_asked)
    elif name == 'ready':
        open(value, 'w').close()
    elif name == 'wait':
        wait_for(value, lambda: os.path.exists(value))
    else:
        time.sleep(float(value))
