# SPDX-License-Identifier: MIT
"""Converts a snapshot of PyTorch's allocator (torch.cuda.memory._dump_snapshot) into a trace for stormlog-analyze, mainly for `fit`:

    python -m stormlog_native snapshot SNAPSHOT.pickle --torch 2.6 -o FOLDER
"""
from __future__ import annotations

import contextlib
import os
import pickle
import re
import struct
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Tuple

import msgpack
import zstandard

from .errors import ConfigurationError

_VERBS = ("ALLOC", "FREE", "MAP", "UNMAP", "BLOCK_ALLOC", "BLOCK_FREE", "BLOCK_OOM", "BLOCK_WAIT", "BLOCK_DONE")
_KINDS = ("device", "vmm", "block")
_FAMILIES = (("cuda_runtime", 2), ("cuda_driver", 2), ("torch", 0))
_HOOKS = (("cudaMalloc", "ALLOC", "device", 0), ("cudaFree", "FREE", "device", 0), ("cuMemCreate", "ALLOC", "vmm", 1),
          ("cuMemMap", "MAP", "vmm", 1), ("cuMemUnmap", "UNMAP", "vmm", 1), ("cuMemRelease", "FREE", "vmm", 1),
          ("block_alloc", "BLOCK_ALLOC", "block", 2), ("block_free", "BLOCK_FREE", "block", 2), ("block_oom", "BLOCK_OOM", "block", 2),
          ("block_wait", "BLOCK_WAIT", "block", 2), ("block_done", "BLOCK_DONE", "block", 2))
_API = {hook[0]: number + 1 for number, hook in enumerate(_HOOKS)}
_COLUMNS = ("time_ns", "api", "kind", "device", "result", "address", "bytes", "stream", "object", "extra", "extra2", "python")
_BEGIN_NS = 1000000000
_REFUSALS = 4  # more failed calls than PyTorch makes before it gives up
_MIB = 1 << 20
# A pickle can refer to one object many times, in two bytes each: a small file could hold any number of entries without these limits.
_DEVICES = 256
_EVENTS, _EVENTS_OF_BYTE = 1000000, 8  # an entry is about 50 bytes; one that maps 1 TiB in pages of 20 MiB becomes 157 287 events
_FUNCTION, _FILE = 1024, 4096  # longest names; longer ones are cut
_TAKEN = ("PROTO FRAME MARK STOP NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINUNICODE EMPTY_LIST APPEND APPENDS"
          " EMPTY_DICT SETITEM SETITEMS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 BINGET LONG_BINGET BINPUT LONG_BINPUT MEMOIZE STACK_GLOBAL GLOBAL").split()


class _Opcodes(Dict[int, Any]):
    def __missing__(self, code: int) -> Any:
        raise pickle.UnpicklingError("it holds more than a snapshot does: opcode %d" % code)


def _listed(count: int) -> Any:
    """Makes a list of the last `count` objects."""
    def take(unpickler: Any) -> None:
        unpickler.stack[-count:] = [unpickler.stack[-count:]]
    return take


def _set(unpickler: Any, pairs: List[Any]) -> None:
    for key, value in zip(pairs[::2], pairs[1::2]):
        if not isinstance(key, str):
            raise pickle.UnpicklingError("it holds more than a snapshot does: a key that is no text")
        unpickler.stack[-1][key] = value


def _set_one(unpickler: Any) -> None:
    pairs = unpickler.stack[-2:]
    del unpickler.stack[-2:]
    _set(unpickler, pairs)


class _Data(pickle._Unpickler):
    """Unpickles lists, dictionaries, numbers and texts only; a pickle that names anything else is refused.

    It is the unpickler in Python, whose memo is a dictionary: that in C allocates 16 bytes for each index up to the greatest, which 9 bytes of
    pickle can name.  Tuples become lists, and keys are texts: the hash of a tuple that holds itself twice, forty deep, takes for ever, and whoever writes
    numbers chooses their hashes."""

    dispatch = _Opcodes({getattr(pickle, name)[0]: pickle._Unpickler.dispatch[getattr(pickle, name)[0]] for name in _TAKEN})
    dispatch.update({pickle.EMPTY_TUPLE[0]: dispatch[pickle.EMPTY_LIST[0]], pickle.TUPLE[0]: pickle._Unpickler.dispatch[pickle.LIST[0]],
                     pickle.TUPLE1[0]: _listed(1), pickle.TUPLE2[0]: _listed(2), pickle.TUPLE3[0]: _listed(3),
                     pickle.SETITEM[0]: _set_one, pickle.SETITEMS[0]: lambda unpickler: _set(unpickler, unpickler.pop_mark())})

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError("it holds more than data: %a.%a" % (module, name))


def load(path: str) -> Dict[str, Any]:
    """What the file says; ConfigurationError where it is no snapshot."""
    try:
        with open(path, "rb") as file:
            said = _Data(file).load()
    except OSError as error:
        raise ConfigurationError("%s: %s" % (path, error.strerror)) from None
    except Exception as error:  # a damaged pickle raises nearly anything
        raise ConfigurationError("%s: not a snapshot: %s" % (path, error)) from None
    if not isinstance(said, dict) or not isinstance(said.get("device_traces"), list) or not isinstance(said.get("segments"), list):
        raise ConfigurationError("%s: not a snapshot of torch.cuda.memory._dump_snapshot()" % path)
    return said


def _number(said: Any) -> int:
    """What the file says as a number; None is 0."""
    if said is None:
        return 0
    if not isinstance(said, int) or said.bit_length() > 64:
        raise OverflowError("a number that is no integer of 64 bits")
    return said


def _lines(frames: List[Dict[str, Any]]) -> Iterator[Tuple[str, str, int]]:
    """(function, file, line) of each frame of Python."""
    for frame in frames:
        function, file = frame.get("name"), frame.get("filename")
        if isinstance(function, str) and isinstance(file, str) and (file.endswith(".py") or file.startswith("<")):
            yield function[:_FUNCTION], file[:_FILE], _number(frame.get("line"))


class _Lane:
    """Turns the entries of one device into events, and tracks the bytes reserved after each."""

    def __init__(self, device: int, entries: List[Dict[str, Any]], segments: List[Dict[str, Any]]) -> None:
        self.device, self.entries, self.segments = device, entries, segments
        grown = sum(_number(e["size"]) * {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}.get(e["action"], 0)
                    for e in entries)
        self.before = sum(_number(s["total_size"]) for s in segments) - grown  # reserved when the history began
        self.reserved = self.before
        self.allocated, self.handles = 0, 0
        self.live: Dict[int, int] = {}     # address -> bytes
        self.waiting: Dict[int, int] = {}  # address -> handle
        self.strangers = 0                 # blocks freed in the history and made before it began

    def handle(self) -> int:
        self.handles += 1
        return (self.device + 1) << 40 | self.handles

    def pages(self, address: int, size: int) -> Iterator[Tuple[int, int]]:
        """The pages of an expandable segment, each of which can be unmapped alone."""
        page = 20 * _MIB if size % (20 * _MIB) == 0 else 2 * _MIB
        for at in range(0, size, page):
            yield address + at, min(page, size - at)

    def events(self, python: Dict[int, int]) -> Iterator[Dict[str, int]]:
        for index, entry in enumerate(self.entries):
            for event in self.of(index, entry):
                yield dict(event, time_ns=_number(entry.get("time_us")) * 1000, device=self.device, python=python.get(index, 0))

    def block(self, name: str, **members: int) -> Dict[str, int]:
        return dict(members, api=_API[name], extra=self.allocated, extra2=self.reserved)

    def of(self, index: int, entry: Dict[str, Any]) -> Iterator[Dict[str, int]]:
        action, size, stream = entry["action"], _number(entry["size"]), _number(entry.get("stream"))
        address = _number(entry.get("addr"))
        if action == "segment_alloc":
            self.reserved += size
            yield {"api": _API["cudaMalloc"], "address": address, "bytes": size}
        elif action == "segment_free":
            self.reserved -= size
            yield {"api": _API["cudaFree"], "address": address}
        elif action == "segment_map":
            self.reserved += size
            for at, bytes_ in self.pages(address, size):
                handle = self.handle()
                yield {"api": _API["cuMemCreate"], "address": handle, "bytes": bytes_}
                yield {"api": _API["cuMemMap"], "address": at, "bytes": bytes_, "object": handle}
                yield {"api": _API["cuMemRelease"], "address": handle}
        elif action == "segment_unmap":
            self.reserved -= size
            yield {"api": _API["cuMemUnmap"], "address": address, "bytes": size}
        elif action == "alloc":
            self.live[address] = size
            self.allocated += size
            yield self.block("block_alloc", address=address, bytes=size, object=1, stream=stream)
        elif action == "free_requested":
            yield from self.free(index, address)
        elif action == "free_completed" and address in self.waiting:
            yield {"api": _API["block_done"], "address": self.waiting.pop(address)}
        elif action == "oom":
            for _ in range(_REFUSALS):
                yield {"api": _API["cudaMalloc"], "bytes": size, "result": 2}
            yield self.block("block_oom", bytes=size, object=1, stream=stream)

    def free(self, index: int, address: int) -> Iterator[Dict[str, int]]:
        if address not in self.live:
            self.strangers += 1
            return
        following = self.entries[index + 1] if index + 1 < len(self.entries) else {}
        if (following.get("action"), following.get("addr")) != ("free_completed", address):  # the free waits for other streams
            self.waiting[address] = self.handle()
            yield {"api": _API["block_wait"], "address": self.waiting[address]}
        size = self.live.pop(address)
        self.allocated -= size
        yield self.block("block_free", address=address, bytes=size)


class _Trace:
    """Writes the trace file: doc/trace-format.md."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.log, self.zstd = file, 0, zstandard.ZstdCompressor(write_checksum=True)
        self.ids: Dict[Tuple[Any, ...], int] = {}
        self.last: Dict[str, int] = {}

    def frame(self, kind: int, maps: List[Dict[str, Any]], thread: int = 0, first: int = 0, following: int = 0, count: Optional[int] = None,
              begin_ns: int = 0, end_ns: int = 0) -> None:
        body = b"".join(msgpack.packb(one) for one in maps)
        if kind == 2:
            first, following, self.log = self.log, self.log + len(body), self.log + len(body)
        packed = self.zstd.compress(body)
        index = struct.pack("<IIIIQQIIQQ", 0x184D2A5C, 56, kind, thread, first, following, len(maps) if count is None else count, len(packed),
                            begin_ns, end_ns)
        check = 0xcbf29ce484222325
        for byte in index:
            check = (check ^ byte) * 0x100000001b3 & (1 << 64) - 1
        self.file.write(index + struct.pack("<Q", check) + packed)

    def defined(self, maps: List[Dict[str, Any]], kind: str, key: Tuple[Any, ...], **members: Any) -> int:
        """The id of a line or a stack; new ones join `maps`."""
        number = self.ids.get((kind,) + key)
        if number is None:
            number = self.ids[(kind,) + key] = self.last[kind] = self.last.get(kind, 0) + 1
            maps.append(dict({"def": kind, "id": number}, **members))
        return number

    def stacks(self, entries: List[Dict[str, Any]]) -> Dict[int, int]:
        maps: List[Dict[str, Any]] = []
        found: Dict[int, int] = {}
        known: Dict[int, int] = {}  # id of a list of frames, which several entries may share: its stack; 0: no line of Python
        for index, entry in enumerate(entries):
            place = id(entry.get("frames"))
            if known.get(place):
                found[index] = known[place]
            if place in known:
                continue
            known[place] = 0
            frames = [self.defined(maps, "frame", line, function=line[0], file=line[1], line=line[2]) for line in _lines(entry.get("frames") or [])]
            if not frames:
                continue
            found[index] = known[place] = self.defined(maps, "python_stack", tuple(frames), frames=frames)
        if maps:
            self.frame(2, maps)
        return found

    def block(self, thread: int, first: int, events: List[Dict[str, int]]) -> None:
        columns = {name: [0, 8, 0, 0, struct.pack("<%dQ" % len(events), *(event.get(name, 0) & (1 << 64) - 1 for event in events))]
                   for name in _COLUMNS}
        self.frame(3, [{"def": "block", "thread": thread, "first": first, "next": first + len(events), "count": len(events),
                        "columns": columns}], thread, first, first + len(events), len(events), events[0]["time_ns"], events[-1]["time_ns"])


@contextlib.contextmanager
def _new_file(path: str) -> Iterator[BinaryIO]:
    """A file that must not exist yet; after an error it is removed."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = open(path, "xb")
    except OSError as error:
        raise ConfigurationError("%s: %s" % (path, error.strerror)) from None
    try:
        with file:
            yield file
    except BaseException:
        os.remove(path)
        raise


def _header(path: str, said: Dict[str, Any], started_ns: int) -> Dict[str, Any]:
    settings = said.get("allocator_settings")
    conf = settings.get("PYTORCH_CUDA_ALLOC_CONF") if isinstance(settings, dict) else None
    return {"def": "header", "format": "stormlog.trace", "version": 1, "agent": "snapshot", "started_ns": started_ns, "monotonic_ns": _BEGIN_NS,
            "host": "snapshot", "pid": 1, "run_id": "snapshot", "argv": [os.path.basename(path)],
            "environment": {"PYTORCH_CUDA_ALLOC_CONF": conf} if isinstance(conf, str) and conf else {},
            "verbs": [[name, "before" if name.endswith("FREE") or name == "UNMAP" else "after"] for name in _VERBS],
            "kinds": [[name, "device"] for name in _KINDS], "families": [list(family) for family in _FAMILIES],
            "hooks": [[name, _VERBS.index(verb), _KINDS.index(kind), family] for name, verb, kind, family in _HOOKS]}


def _doubts(said: Dict[str, Any], lanes: List[_Lane]) -> Iterator[str]:
    for lane in lanes:
        unseen = sum(1 for segment in lane.segments for block in segment.get("blocks") or ()
                     if block.get("state") == "active_allocated" and _number(block.get("address")) not in lane.live
                     and "address" in block)
        if lane.before or lane.strangers or unseen:
            yield ("device %d: the history begins after the program did (its first entries are lost beyond max_entries, or it was turned on "
                   "later): %d bytes were reserved before, and %d blocks are not in it" % (lane.device, lane.before, lane.strangers + unseen))
    if any((segment.get("segment_pool_id") or [0, 0]) != [0, 0] for segment in said["segments"]):
        yield "there are private pools (CUDA graphs, MemPool), which are not replayed"


def _too_much(path: str) -> ConfigurationError:
    return ConfigurationError("%s: more devices, entries or pages than a snapshot of its size has" % path)


def write(path: str, release: str, folder: str) -> Tuple[str, int, List[str]]:
    """Makes a trace of the snapshot.  Returns its path, the number of its events, and the reasons why `fit` gives no verdict."""
    said = load(path)
    if not re.match(r"\d+\.\d+", release):
        raise ConfigurationError("%s: not a release of PyTorch, such as 2.6" % release)
    try:
        most = _EVENTS + _EVENTS_OF_BYTE * os.path.getsize(path)
        traces = said["device_traces"]
        segments: Dict[int, List[Any]] = {}
        if len(traces) > _DEVICES or sum(len(entries) for entries in traces) > most or \
                sum(len(segment.get("blocks") or ()) for segment in said["segments"]) > most:
            raise _too_much(path)
        for segment in said["segments"]:
            segments.setdefault(_number(segment["device"]), []).append(segment)
        lanes = [_Lane(device, entries, segments.get(device, [])) for device, entries in enumerate(traces) if entries]
        if not lanes:
            raise ConfigurationError("%s: no history: torch.cuda.memory._record_memory_history() comes before the program" % path)
        return _write(path, said, lanes, release, folder, most)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        raise ConfigurationError("%s: not a snapshot as PyTorch writes it: %s: %s" % (path, type(error).__name__, error)) from None


def _write(path: str, said: Dict[str, Any], lanes: List[_Lane], release: str, folder: str, most: int) -> Tuple[str, int, List[str]]:
    begin_ns = min(_number(lane.entries[0].get("time_us")) for lane in lanes) * 1000
    target, total, last = os.path.join(folder, "rank-00000-1.msgpack.zst"), 0, _BEGIN_NS
    with _new_file(target) as file:
        trace = _Trace(file)
        trace.frame(1, [_header(path, said, begin_ns)])
        trace.frame(2, [{"def": "capability", "name": "pytorch", "value": "c10 " + release},
                        {"def": "note", "ns": _BEGIN_NS, "text": "made of a snapshot of PyTorch's: requests, not the blocks they got; what else "
                                                                 "took memory of the device is not in it"}])
        for lane in lanes:
            batch: List[Dict[str, int]] = []
            done, now = 1, _BEGIN_NS
            for event in lane.events(trace.stacks(lane.entries)):
                now = event["time_ns"] = max(now + 1, event["time_ns"] - begin_ns + _BEGIN_NS)
                event["kind"] = _KINDS.index(_HOOKS[event["api"] - 1][2])
                batch.append(event)
                if len(batch) == 4096:
                    trace.block(lane.device + 1, done, batch)
                    done, batch = done + len(batch), []
                    if total + done > most:
                        raise _too_much(path)
            if batch:
                trace.block(lane.device + 1, done, batch)
            total, last = total + done - 1 + len(batch), max(last, now)
        doubts = list(_doubts(said, lanes))
        trace.frame(2, [{"def": "gap", "count": 1, "begin_ns": _BEGIN_NS, "end_ns": _BEGIN_NS, "why": why} for why in doubts] or
                    [{"def": "note", "ns": last, "text": "the history begins with the program"}])
        trace.frame(4, [{"def": "footer", "ns": last + 1, "how": "exit", "events": total}])
    return target, total, doubts
