# SPDX-License-Identifier: MIT
"""Reports blocks of CuPy's and RMM's pools, and the tags of vLLM's sleep mode: stormlog-run --python-pools, or install() at the
program's begin.

CuPy and RMM export no function that could be wrapped from outside.  So we use their hooks for a custom allocator: ours calls the
allocator that the program set and reports each block.  That costs a call in Python for each block and for its end.  Before anything is
changed we check that this release of the package has the form that we know."""
from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.util
import inspect
import sys
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional

from . import agent

TOLD = "_stormlog_told"


@functools.lru_cache(maxsize=None)
def _told_memory(cupy: Any) -> Any:
    """A class for blocks of CuPy that reports their end.  TypeError: this release's blocks are not of the form that we know."""
    probe = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(512, 1024, None, 0), 0)
    if (probe.ptr, probe.mem.size, probe.device_id) != (512, 1024, 0):
        raise TypeError("a block is not what it is made of")
    gone = agent.block_gone

    class Told(cupy.cuda.UnownedMemory):  # type: ignore[misc]
        """Keeps the pool's block alive, and reports the free before the pool takes the block back."""

        __slots__ = ()

        def __del__(self) -> None:
            gone(self.ptr)

    return Told


def told_cupy(cupy: Any, allocator: Optional[Callable[[int], Any]]) -> Optional[Callable[[int], Any]]:
    """An allocator for cupy.cuda.set_allocator that reports the blocks of `allocator`.  RMM's allocator is returned as it is, since
    RMM's own blocks are reported; so is None, which asks the driver."""
    if allocator is None or hasattr(allocator, TOLD) or str(getattr(allocator, "__module__", "")).split(".")[0] == "rmm":
        return allocator
    new_memory, new_pointer, block = _told_memory(cupy), cupy.cuda.MemoryPointer, agent.block_bytes

    def malloc(size: int) -> Any:
        pointer = allocator(size)
        address = pointer.ptr
        if not address:
            return pointer
        size = pointer.mem.size
        block(address, size, b"CuPy array")
        return new_pointer(new_memory(address, size, pointer, pointer.device_id), 0)

    setattr(malloc, TOLD, True)
    return malloc


def hook_cupy(cupy: Any) -> None:
    real, real_using = cupy.cuda.set_allocator, cupy.cuda.using_allocator
    told = told_cupy(cupy, cupy.cuda.get_allocator())

    @functools.wraps(real)
    def set_allocator(allocator: Any = None) -> None:
        real(told_cupy(cupy, allocator))

    @functools.wraps(real_using)
    def using_allocator(allocator: Any = None) -> Any:
        return real_using(told_cupy(cupy, allocator))

    for module in (cupy.cuda, cupy.cuda.memory):
        module.set_allocator, module.using_allocator = set_allocator, using_allocator
    real(told)


def told_rmm(mr: Any, resource: Any) -> Any:
    """A resource that reports the blocks of `resource`.  A resource that asks the driver for each block is returned as it is."""
    if hasattr(resource, TOLD) or type(resource).__name__ in ("CudaMemoryResource", "ManagedMemoryResource", "CudaAsyncMemoryResource",
                                                              "PinnedHostMemoryResource", "SystemMemoryResource"):
        return resource

    class Told(mr.CallbackMemoryResource):  # type: ignore[misc]
        """Wraps `resource` and keeps it alive; all other attributes are those of `resource`."""

        def __getattr__(self, name: str) -> Any:
            return getattr(resource, name)

    take, give, block, gone = resource.allocate, resource.deallocate, agent.block_bytes, agent.block_gone

    def allocate(size: int, stream: Any) -> int:
        address = int(take(size, stream))
        block(address, size, b"RMM buffer")
        return address

    def deallocate(address: int, size: int, stream: Any) -> None:
        gone(address)
        give(address, size, stream)

    told = Told(allocate, deallocate)
    setattr(told, TOLD, resource)
    return told


def hook_rmm(rmm: Any) -> None:
    mr, real = rmm.mr, rmm.reinitialize
    given: List[int] = []
    probe = mr.CallbackMemoryResource(lambda size, stream: 4096 + size, lambda address, size, stream: given.append(address))
    address = probe.allocate(256)
    probe.deallocate(address, 256)
    if (int(address), given) != (4352, [4352]):
        raise TypeError("a resource does not call what it is made of")
    setters = [(name, at, getattr(mr, name)) for name, at in (("set_current_device_resource", 0), ("set_per_device_resource", 1))]
    for name, at, set_resource in setters:
        def setter(*arguments: Any, real: Callable[..., Any] = set_resource, at: int = at) -> Any:
            return real(*arguments[:at], told_rmm(mr, arguments[at]), *arguments[at + 1:])
        setattr(mr, name, functools.wraps(set_resource)(setter))

    @functools.wraps(real)
    def reinitialize(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        mr.set_current_device_resource(mr.get_current_device_resource())

    rmm.reinitialize = reinitialize


def hook_vllm(cumem: Any) -> None:
    """Memory of the sleep mode is mapped inside a range named after its tag, by which vLLM frees and wakes it: "vLLM weights"."""
    kind = cumem.CuMemAllocator
    real_use, real_map, default = kind.use_memory_pool, cumem.create_and_map, kind.default_tag
    real_graphs: Any = getattr(kind, "cudagraph_pool", None)
    calls = [(name, getattr(kind, name)) for name in ("sleep", "wake_up", "discard") if name != "discard" or hasattr(kind, name)]
    if "tag" not in inspect.signature(real_use).parameters or not hasattr(kind, "instance"):
        raise TypeError("its allocator has no tags")

    @contextlib.contextmanager
    def use_memory_pool(self: Any, tag: Optional[str] = None) -> Iterator[None]:
        with agent.range("vLLM " + (tag or default)), real_use(self, tag):
            yield

    @contextlib.contextmanager
    def cudagraph_pool(self: Any) -> Iterator[Any]:
        with agent.range("vLLM cudagraph"), real_graphs(self) as pool:
            yield pool

    @functools.wraps(real_map)
    def create_and_map(handle: Any) -> None:  # vLLM calls it when it wakes up
        try:
            tag = kind.instance.pointer_to_data[handle[2]].tag
        except (AttributeError, LookupError, TypeError):
            tag = default
        with agent.range("vLLM %s" % tag):
            real_map(handle)

    kind.use_memory_pool, cumem.create_and_map = use_memory_pool, create_and_map
    if real_graphs:  # older releases have none
        kind.cudagraph_pool = cudagraph_pool
    for name, real in calls:
        def call(self: Any, *arguments: Any, real: Callable[..., Any] = real, said: str = "vLLM " + name, **options: Any) -> Any:
            agent.mark(said)
            return real(self, *arguments, **options)
        setattr(kind, name, functools.wraps(real)(call))


HOOKS: Dict[str, Callable[[Any], None]] = {"cupy": hook_cupy, "rmm": hook_rmm, "vllm.device_allocator.cumem": hook_vllm}


class _Finder(importlib.abc.MetaPathFinder):
    """Install the hooks of a package when the package is imported."""

    def __init__(self) -> None:
        self.wanted = dict(HOOKS)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        hook = self.wanted.pop(name, None)
        spec = importlib.util.find_spec(name) if hook else None
        loader = spec.loader if spec else None
        if spec is None or loader is None:
            return None
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            _try(name, hook, module)

        loader.exec_module = exec_module  # type: ignore[method-assign, union-attr]
        return spec


def _try(name: str, hook: Any, module: Any) -> None:
    """Call the hook.  A release that lacks what the hook needs stays unchanged, and a mark in the recording says so."""
    try:
        hook(module)
    except Exception as error:
        agent.mark("stormlog: blocks of %s are not recorded: %s: %s" % (name, type(error).__name__, error))


def install() -> None:
    """Install the hooks of CuPy, RMM and vLLM, whether they are imported already or later.  Without the agent this does nothing."""
    if not agent.available() or any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    finder = _Finder()
    for name in HOOKS:
        if name in sys.modules:
            _try(name, finder.wanted.pop(name), sys.modules[name])
    sys.meta_path.insert(0, finder)
