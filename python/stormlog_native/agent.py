# SPDX-License-Identifier: MIT
"""Calls of the agent in this process, by ctypes: the table of agent/include/stormlog.h.  Without the agent they do nothing; trace_path raises."""
from __future__ import annotations

import collections
import contextlib
import ctypes
import inspect
import itertools
import os
import re
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from .errors import ConfigurationError

HOW_TO_START = ("this program is not recorded. Start it under the recorder:\n"
                "    stormlog-run python train.py")


class _Table(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t),
                ("push", ctypes.CFUNCTYPE(None, ctypes.c_char_p)),
                ("push_step", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64)),
                ("pair", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)),
                ("pop", ctypes.CFUNCTYPE(None)),
                ("mark", ctypes.CFUNCTYPE(None, ctypes.c_char_p)),
                ("metadata", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)),
                ("name", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)),
                ("flush", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)),
                ("record", ctypes.CFUNCTYPE(None, ctypes.c_int)),
                ("trace", ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)),
                ("block", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)),
                ("block_gone", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


def _find() -> Optional[_Table]:
    try:
        return _Table.in_dll(ctypes.CDLL(None), "stormlog_api_v1")
    except (ValueError, OSError):
        return None


_agent = _find()


def available() -> bool:
    """True: the agent is in this process and records what these functions are given."""
    return _agent is not None


def trace_path() -> str:
    """Path of this process's trace.  ConfigurationError: there is none, or none yet."""
    if _agent is None:
        raise ConfigurationError(HOW_TO_START)
    size = _agent.trace(None, 0)
    if not size:
        raise ConfigurationError("nothing is recorded yet: this process has made no GPU call. To record what a program without a GPU "
                                 "uses:\n    stormlog-run --host python train.py")
    room = ctypes.create_string_buffer(size + 1)
    _agent.trace(room, len(room))
    return os.fsdecode(room.value)


def recording() -> bool:
    """True: the recording has begun, at this process's first GPU call or, under --host, at its start."""
    return _agent is not None and _agent.trace(None, 0) > 0


def _bytes(text: Any) -> bytes:
    return str(text).encode("utf-8", "replace").replace(b"\0", b"?")


def push(name: str, step: Optional[int] = None, **pairs: Any) -> None:
    """Open a range of this thread, with `pairs` as its metadata.  With a step it is that entry of "NAME_#"."""
    if _agent is None:
        return
    if step is None:
        _agent.push(_bytes(name))
    else:
        _agent.push_step(_bytes(name), step)
    for key, value in pairs.items():
        _agent.pair(_bytes(key), _bytes(value))


def pop() -> None:
    """Close the innermost range of this thread that was opened here."""
    if _agent is not None:
        _agent.pop()


class Call:
    """Identifies one entry of a range, so that its figures can be found in the recording."""

    __slots__ = ("name", "label", "step")

    def __init__(self, name: str, label: str, step: int) -> None:
        self.name, self.label, self.step = name, label, step


_calls: Dict[str, Iterator[int]] = collections.defaultdict(itertools.count)


def begin(name: str, pairs: Optional[Mapping[str, Any]] = None) -> Call:
    """Open a numbered range.  The agent replaces digits of a name by "#", so calls are counted under that name."""
    name = _bytes(name)[:200].decode("utf-8", "ignore")
    label = re.sub(r"[0-9]+", "#", name) + "_#"
    call = Call(name, label, next(_calls[label]))
    push(name, call.step, **dict(pairs or {}))
    return call


def refuse_halves(function: Any) -> None:
    """ConfigurationError: a coroutine function or a generator.  Its call returns before its body runs, so no range covers the body."""
    if any(asks(function) for asks in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)):
        raise ConfigurationError("%s is a coroutine function or a generator: its call returns before its body runs. Profile what it does between "
                                 "two awaits or yields: with profile_context(...)" % getattr(function, "__name__", function))


@contextlib.contextmanager
def range(name: str, step: Optional[int] = None, **pairs: Any) -> Iterator[None]:  # noqa: A001
    """with range("forward"): ...  Recorded as an NVTX range, with `pairs` as its metadata."""
    push(name, step, **pairs)
    try:
        yield
    finally:
        pop()


def mark(text: str) -> None:
    """Mark this instant on the time line."""
    if _agent is not None:
        _agent.mark(_bytes(text))


def metadata(**pairs: Any) -> None:
    """Metadata of the whole run, as stormlog-run's --meta: metadata(model="resnet50")."""
    if _agent is not None:
        for key, value in pairs.items():
            _agent.metadata(_bytes(key), _bytes(value))


def flush(timeout: float = 10.0) -> bool:
    """Write what was recorded until now to the trace file, and sync it.  False: `timeout` seconds were not enough."""
    return _agent is None or _agent.flush(int(timeout * 1000)) == 0


def record(on: bool) -> None:
    """on=False: record calls without stacks from now on.  Stacks are most of the cost of recording."""
    if _agent is not None:
        _agent.record(1 if on else 0)


_steps = threading.local()
_step_count = itertools.count()


def step(number: Optional[int] = None) -> int:
    """Begin a step and end the one before it on this thread: call it first in the loop's body, and not inside a range opened by
    this module that must outlive the step."""
    end_step()
    number = next(_step_count) if number is None else number
    push("step", number)
    _steps.open = True
    return number


def end_step() -> None:
    """End the last step.  Every other step ends when the next one begins."""
    if getattr(_steps, "open", False):
        _steps.open = False
        pop()


def _bound(name: str, *arguments: Any) -> Callable[..., None]:
    """A function of the table, for calls that are made often.  It is bound once, because each access to a member makes a new object.
    It keeps the GIL, because releasing and taking it costs more than the call."""
    if _agent is None or _agent.bytes <= getattr(_Table, name).offset:
        return lambda *_: None
    address = ctypes.c_void_p.from_buffer(_agent, getattr(_Table, name).offset).value or 0
    return ctypes.PYFUNCTYPE(None, *arguments)(address)


block_bytes = _bound("block", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)  # as block(), with the name as bytes
block_gone = _bound("block_gone", ctypes.c_void_p)  # block_gone(address): call it before the pool takes the block back


def block(address: int, size: int, name: str) -> None:
    """A pool of the program handed out a block of memory that it got from the driver.  Call it after the block was taken."""
    block_bytes(address, size, _bytes(name))


def _extents(what: Any) -> List["tuple[int, int]"]:
    """[(address, bytes), ...] of a tensor of any framework, a module's parameters and buffers, or a mapping or list of such."""
    if isinstance(what, Mapping):
        return [extent for value in what.values() for extent in _extents(value)]
    if isinstance(what, (list, tuple)):
        return [extent for value in what for extent in _extents(value)]
    if hasattr(what, "parameters") and hasattr(what, "buffers"):
        return [extent for part in (*what.parameters(), *what.buffers()) for extent in _extents(part)]
    if hasattr(what, "untyped_storage"):
        storage = what.untyped_storage()
        return [(storage.data_ptr(), storage.nbytes())]
    if hasattr(what, "data_ptr"):
        return [(what.data_ptr(), what.numel() * what.element_size())]
    interface = getattr(what, "__cuda_array_interface__", None)
    if interface:
        size = int(interface["typestr"][2:])
        for extent in interface["shape"]:
            size *= extent
        return [(interface["data"][0], size)]
    raise TypeError("annotate: %s is neither a tensor nor made of tensors" % type(what).__name__)


def annotate(what: Any, name: str) -> Any:
    """Call the memory of a tensor, or of a container of tensors (a module, a list, a dict), `name` in every report.  Returns its
    argument.  A pair (address, bytes) of integers is an address range; bytes 0 is the whole block at that address."""
    if _agent is None:
        return what
    if isinstance(what, tuple) and len(what) == 2 and all(isinstance(part, int) for part in what):
        extents = [what]
    else:
        extents = [extent for extent in _extents(what) if extent[0] and extent[1]]
    for address, size in extents:
        _agent.name(address, size, _bytes(name))
    return what
