# SPDX-License-Identifier: MIT
"""use_vllm.py [PORT]: runs vLLM's own allocator of the sleep mode, its Python and its C part; with a port its own publisher of KV cache events.  What these
import from PyTorch and from the rest of vLLM are stand-ins: a tensor is a call of my_malloc, as PyTorch's pluggable allocator makes it."""
import contextlib
import ctypes
import dataclasses
import importlib.util
import logging
import os
import sys
import types

MIB = 1 << 20


def stand_in(name, **members):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    module.__dict__.update(members)
    return module


class Allocator:
    def __init__(self, path, malloc, free):
        library = ctypes.CDLL(path)
        self._allocator, self.malloc, self.free = self, getattr(library, malloc), getattr(library, free)
        self.malloc.restype = ctypes.c_void_p

    def take(self, size):
        return self.malloc(ctypes.c_ssize_t(size), 0, None)


class Pool:
    used = None

    def __init__(self, allocator):
        self.allocator, self.id = allocator, (0, 1)

    def snapshot(self):
        return []


@contextlib.contextmanager
def use(pool):
    Pool.used = pool
    yield


vllm = os.path.dirname(importlib.util.find_spec("vllm").origin)
stand_in("vllm").__path__ = [vllm]
stand_in("vllm.distributed").__path__ = [os.path.join(vllm, "distributed")]
stand_in("vllm.logger", init_logger=logging.getLogger)


def sleep_and_wake_up():
    memory = types.SimpleNamespace(CUDAPluggableAllocator=Allocator, MemPool=Pool, use_mem_pool=use)
    stand_in("torch", cuda=types.SimpleNamespace(memory=memory), Tensor=bytes,
             accelerator=types.SimpleNamespace(synchronize=lambda *_: None, empty_cache=lambda: None))
    stand_in("vllm.platforms", current_platform=types.SimpleNamespace(is_rocm=lambda: False))
    stand_in("vllm.utils")
    stand_in("vllm.utils.system_utils", find_loaded_library=lambda name: sys.modules["vllm." + name].__file__)
    stand_in("vllm.utils.torch_utils", PIN_MEMORY=False)
    stand_in("vllm.distributed.device_communicators")
    stand_in("vllm.distributed.device_communicators.cuda_wrapper", CudaRTLibrary=lambda: None)
    stand_in("vllm.device_allocator.alloc_conf", EXPANDABLE_SEGMENTS="", current_alloc_conf=str, conf_flag_enabled=lambda *_: False,
             set_alloc_conf=None, with_conf_flag=None)
    from vllm.device_allocator.cumem import CuMemAllocator
    assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0  # as PyTorch did
    allocator = CuMemAllocator.get_instance()
    for tag, sizes in (("weights", [8]), ("kv_cache", [16, 4])):
        with allocator.use_memory_pool(tag=tag):
            for size in sizes:
                assert Pool.used.allocator.take(size * MIB)
    with allocator.cudagraph_pool() as pool:
        assert pool == (0, 1) and allocator.allocator_and_pools["cudagraph"][0][1].take(2 * MIB)
    print(allocator.get_current_usage(), flush=True)
    allocator.discard(("cudagraph",))
    allocator.sleep(())
    allocator.wake_up(tags=["weights"])  # wakes also what is neither weights nor KV cache
    os._exit(0)


def publish(port):
    stand_in("vllm.config")
    stand_in("vllm.config.kv_events", KVEventsConfig=dict)
    stand_in("vllm.utils")
    stand_in("vllm.utils.network_utils", get_ip=None, get_tcp_uri=None, is_valid_ipv6_address=None, split_zmq_path=None)
    for name in ("vllm.v1", "vllm.v1.core"):
        stand_in(name)
    stand_in("vllm.v1.core.kv_cache_utils", ExternalBlockHash=bytes)
    from vllm.distributed import kv_events
    stored = dict(parent_block_hash=None, block_size=16, lora_id=None, lora_name=None)
    events = [[kv_events.BlockStored(block_hashes=[b"a", b"b"], token_ids=[1] * 32, medium=kv_events.MEDIUM_GPU, **stored)],
              [kv_events.BlockStored(block_hashes=[b"a"], token_ids=[1] * 16, medium=kv_events.MEDIUM_GPU, group_idx=1, **stored),
               kv_events.BlockStored(block_hashes=[b"c"], token_ids=[1] * 16, medium=kv_events.MEDIUM_CPU, **stored)],
              [kv_events.BlockRemoved(block_hashes=[b"a"], medium=kv_events.MEDIUM_GPU)],
              [kv_events.AllBlocksCleared()]]
    kv_events.zmq.PUB = kv_events.zmq.XPUB  # an XPUB socket receives subscriptions
    publisher = kv_events.ZmqEventPublisher(0, "tcp://*:%d" % port)  # it binds if the address has a star
    publisher._pub.recv()
    for number, some in enumerate(events):
        publisher.publish(kv_events.KVEventBatch(ts=1.5 + number, events=some))
    publisher._thread.join()  # until the test kills us


publish(int(sys.argv[1])) if len(sys.argv) > 1 else sleep_and_wake_up()
