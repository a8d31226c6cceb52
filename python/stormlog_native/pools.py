# SPDX-License-Identifier: MIT
"""Blocks of CuPy's and RMM's pools, and the tags of vLLM's sleep mode, told to the recorder: stormlog-run --python-pools, or install()
at the program's begin.

These packages export no function that could be wrapped from outside.  So we use their hooks for a custom allocator: ours calls the
allocator that the program set and reports each block.  That costs a call in Python for each block, a microsecond or two."""
from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, Optional

from . import agent

TOLD = "_stormlog_told"


class _Held:
    """Owner of a CuPy block.  CuPy drops it before the pool takes the block back, which is when the free is reported."""

    __slots__ = ("pointer", "address")

    def __init__(self, pointer: Any, address: int) -> None:
        self.pointer, self.address = pointer, address

    def __del__(self) -> None:
        agent.block_gone(self.address)


def told_cupy(cupy: Any, allocator: Optional[Callable[[int], Any]]) -> Optional[Callable[[int], Any]]:
    """An allocator for cupy.cuda.set_allocator that reports the blocks of `allocator`.  RMM's is returned as it is, since RMM reports
    its own; so is None, the driver."""
    if allocator is None or hasattr(allocator, TOLD) or str(getattr(allocator, "__module__", "")).split(".")[0] == "rmm":
        return allocator

    def malloc(size: int) -> Any:
        pointer = allocator(size)
        if not pointer.ptr:
            return pointer
        agent.block(pointer.ptr, pointer.mem.size, "CuPy array")
        held = cupy.cuda.UnownedMemory(pointer.ptr, pointer.mem.size, _Held(pointer, pointer.ptr), pointer.device_id)
        return cupy.cuda.MemoryPointer(held, 0)

    setattr(malloc, TOLD, True)
    return malloc


def hook_cupy(cupy: Any) -> None:
    real, real_using = cupy.cuda.set_allocator, cupy.cuda.using_allocator

    @functools.wraps(real)
    def set_allocator(allocator: Any = None) -> None:
        real(told_cupy(cupy, allocator))

    @functools.wraps(real_using)
    def using_allocator(allocator: Any = None) -> Any:
        return real_using(told_cupy(cupy, allocator))

    for module in (cupy.cuda, cupy.cuda.memory):
        module.set_allocator, module.using_allocator = set_allocator, using_allocator
    set_allocator(cupy.get_default_memory_pool().malloc)


def told_rmm(mr: Any, resource: Any) -> Any:
    """A resource that reports the blocks of `resource`.  One that asks the driver for each block is returned as it is."""
    if hasattr(resource, TOLD) or type(resource).__name__ in ("CudaMemoryResource", "ManagedMemoryResource", "CudaAsyncMemoryResource",
                                                              "PinnedHostMemoryResource", "SystemMemoryResource"):
        return resource

    class Told(mr.CallbackMemoryResource):  # type: ignore[misc]
        """Wraps `resource` and keeps it alive; all other attributes are those of `resource`."""

        def __getattr__(self, name: str) -> Any:
            return getattr(resource, name)

    def allocate(size: int, stream: Any) -> int:
        address = int(resource.allocate(size, stream))
        agent.block(address, size, "RMM buffer")
        return address

    def deallocate(address: int, size: int, stream: Any) -> None:
        agent.block_gone(address)
        resource.deallocate(address, size, stream)

    told = Told(allocate, deallocate)
    setattr(told, TOLD, resource)
    return told


def hook_rmm(rmm: Any) -> None:
    mr = rmm.mr
    for name, at in (("set_current_device_resource", 0), ("set_per_device_resource", 1)):
        def setter(*arguments: Any, real: Callable[..., Any] = getattr(mr, name), at: int = at) -> Any:
            return real(*arguments[:at], told_rmm(mr, arguments[at]), *arguments[at + 1:])
        setattr(mr, name, functools.wraps(getattr(mr, name))(setter))
    real = rmm.reinitialize

    @functools.wraps(real)
    def reinitialize(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        mr.set_current_device_resource(mr.get_current_device_resource())

    rmm.reinitialize = reinitialize


def hook_vllm(cumem: Any) -> None:
    """Memory of its sleep mode is mapped in a range of the tag by which vLLM frees and wakes it: "vLLM weights", "vLLM kv_cache"."""
    kind = cumem.CuMemAllocator
    real_use, real_map = kind.use_memory_pool, cumem.create_and_map

    @contextlib.contextmanager
    def use_memory_pool(self: Any, tag: Optional[str] = None) -> Iterator[None]:
        with agent.range("vLLM " + (tag or kind.default_tag)), real_use(self, tag):
            yield

    @functools.wraps(real_map)
    def create_and_map(handle: Any) -> None:  # when it wakes up
        data = kind.instance.pointer_to_data.get(handle[2]) if kind.instance else None
        with agent.range("vLLM " + (data.tag if data else kind.default_tag)):
            real_map(handle)

    kind.use_memory_pool, cumem.create_and_map = use_memory_pool, create_and_map
    for name in ("sleep", "wake_up"):
        def call(self: Any, *arguments: Any, real: Callable[..., Any] = getattr(kind, name), said: str = "vLLM " + name, **options: Any) -> Any:
            agent.mark(said)
            return real(self, *arguments, **options)
        setattr(kind, name, functools.wraps(getattr(kind, name))(call))


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
    """Call the hook.  A release without what it needs is left unchanged, and a mark in the recording says so."""
    try:
        hook(module)
    except Exception as error:
        agent.mark("stormlog: blocks of %s are not recorded: %s: %s" % (name, type(error).__name__, error))


def install() -> None:
    """Install the hooks of CuPy, RMM and vLLM, whether imported already or later.  Without the agent it does nothing."""
    if not agent.available() or any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    finder = _Finder()
    for name in HOOKS:
        if name in sys.modules:
            _try(name, finder.wanted.pop(name), sys.modules[name])
    sys.meta_path.insert(0, finder)
