# SPDX-License-Identifier: MIT
"""Writes any trace, valid or not, from doc/trace-format.md alone and without our code."""
import os
import struct
import sys

try:
    import msgpack
    import numpy
    import zstandard
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)

INDEX = struct.Struct("<IIIIQQIIQQQ")
HEADER, DEFS, BLOCK, FOOTER = 1, 2, 3, 4
T0, UNIX0 = 1_000_000_000_000, 1_790_000_000_000_000_000
FIELDS = ("time_ns duration_ns api driver_api kind flags device result address bytes stream context object extra extra2 caller"
          " python native label").split()
SIGNED = {"device", "result"}
VERBS = ("CALL ALLOC FREE RESERVE UNRESERVE MAP UNMAP RETAIN EXPORT POOL_CREATE POOL_DESTROY POOL_SET POOL_TRIM CONTEXT_CREATE"
         " CONTEXT_DESTROY PRIMARY_RETAIN PRIMARY_RELEASE DEVICE_RESET MODULE_LOAD MODULE_UNLOAD LIMIT GRAPH_ALLOC GRAPH_FREE"
         " GRAPH_CREATE GRAPH_INSTANTIATE GRAPH_LAUNCH GRAPH_DESTROY EXEC_DESTROY GRAPH_TRIM BLOCK_ALLOC BLOCK_FREE BLOCK_OOM"
         " RANGE_PUSH RANGE_POP RANGE_START RANGE_END MARK PROCESS UNMAP_MORE PAIR NAME BLOCK_WAIT BLOCK_DONE BLOCK_POOL").split()
BEFORE = set("FREE UNRESERVE UNMAP POOL_DESTROY CONTEXT_DESTROY PRIMARY_RELEASE DEVICE_RESET MODULE_UNLOAD GRAPH_DESTROY EXEC_DESTROY"
             " PROCESS UNMAP_MORE".split())
KINDS = "none device pool managed vmm array graph imported host_pinned host_registered block unknown".split()
HOST = {"none", "host_pinned", "host_registered"}
FLAGS = "in_flight abandoned estimated captured borrowed injected nested late".split()
FAMILIES = [["cuda_runtime", 2], ["cuda_driver", 2], ["hip", 2], ["hsa", 0x1008], ["nccl", 0], ["torch", 0], ["label", 0],
            ["process", 0], ["nvml", 0]]
VERB = {name: i for i, name in enumerate(VERBS)}
KIND = {name: i for i, name in enumerate(KINDS)}
HOOKS = [["cudaMalloc", "ALLOC", "device", 0], ["cudaFree", "FREE", "unknown", 0], ["nvtxRangePushA", "RANGE_PUSH", "none", 6],
         ["nvtxRangePop", "RANGE_POP", "none", 6], ["torch_alloc", "BLOCK_ALLOC", "block", 5], ["torch_free", "BLOCK_FREE", "block", 5],
         ["nvtxMarkA", "MARK", "none", 6], ["ncclAllReduce", "RANGE_PUSH", "none", 4]]
HOOKS = [[name, VERB[verb], KIND[kind], family] for name, verb, kind, family in HOOKS]
MALLOC, FREE, PUSH, POP, TORCH_ALLOC, TORCH_FREE, MARK, NCCL = range(1, 9)


def check(data):
    value = 0xCBF29CE484222325
    for byte in data[:56]:
        value = ((value ^ byte) * 0x100000001B3) & (2 ** 64 - 1)
    return value


def packed(value):
    return msgpack.packb(value, use_bin_type=True, unicode_errors="surrogateescape")


def frame(kind, content, thread=0, first=0, end=0, count=1, begin_ns=0, end_ns=0, sized=True):
    data = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=sized).compress(content)
    return framed(kind, data, thread, first, end, count, begin_ns, end_ns)


def framed(kind, data, thread=0, first=0, end=0, count=1, begin_ns=0, end_ns=0):
    """A frame around bytes that are compressed already."""
    index = INDEX.pack(0x184D2A5C, 56, kind, thread, first, end, count, len(data), begin_ns, end_ns, 0)
    return index[:56] + struct.pack("<Q", check(index)) + data


def header(**changes):
    fields = {
        "def": "header", "format": "stormlog.trace", "version": 1, "agent": "1.0", "started_ns": UNIX0, "monotonic_ns": T0,
        "host": "h", "pid": 100, "pids": [100], "ppid": 1, "process_start": 5, "boot_id": "00000000-0000-0000-0000-000000000000",
        "run_id": "run1", "job_id": "j", "rank": 0, "local_rank": 0, "world_size": 1, "restart": 0, "argv": ["python", "train.py"],
        "exe": "/usr/bin/python3", "cwd": "/tmp", "tag": None, "metadata": {}, "settings": {}, "environment": {}, "ring": "x.ring",
        "file": 1, "fields": [[name, "i" if name in SIGNED else "u", ""] for name in FIELDS],
        "verbs": [[verb, "before" if verb in BEFORE else "after"] for verb in VERBS],
        "kinds": [[kind, "host" if kind in HOST else "device"] for kind in KINDS], "flags": FLAGS, "families": FAMILIES, "hooks": HOOKS}
    fields.update(changes)
    return frame(HEADER, packed(fields))


def defs(maps, most=4 << 20):
    """Frames of definitions: of maps, or of bytes that need not be valid maps."""
    out, part, size, count = [], [], 0, 0
    for one in maps:
        data = one if isinstance(one, bytes) else packed(one)
        part.append(data)
        size, count = size + len(data), count + 1
        if size > most:
            out.append(frame(DEFS, b"".join(part), count=count))
            part, size, count = [], 0, 0
    return b"".join(out) + (frame(DEFS, b"".join(part), count=count) if part else b"")


def column(name, values):
    array = numpy.asarray(values, dtype=numpy.int64 if name in SIGNED else numpy.uint64).astype("<u8")
    return [0, 8, 0, 0, array.tobytes()]


class Thread:
    """Blocks of events of one thread, in the order of its slots."""

    def __init__(self, number=1):
        self.number, self.next, self.time = number, 1, T0

    def block(self, columns, count):
        first, self.next = self.next, self.next + 2 * count
        times = columns["time_ns"]
        content = {"def": "block", "thread": self.number, "first": first, "next": self.next, "count": count,
                   "columns": {name: column(name, values) for name, values in columns.items()}}
        return frame(BLOCK, packed(content), thread=self.number, first=first, end=self.next, count=count,
                     begin_ns=int(min(times)), end_ns=int(max(times)))

    def events(self, count, **columns):
        """Blocks of `count` events.  A column has `count` values or one for all; times are a microsecond apart unless given."""
        out = []
        for at in range(0, count, 4096):
            size = min(4096, count - at)
            part = {name: values[at:at + size] if hasattr(values, "__len__") else numpy.full(size, values) for name, values in columns.items()}
            part.setdefault("time_ns", numpy.arange(size, dtype=numpy.uint64) * 1000 + self.time)
            part.setdefault("device", numpy.zeros(size))
            self.time = int(max(part["time_ns"])) + 1000
            out.append(self.block(part, size))
        return b"".join(out)


def footer(ns=T0 + 10 ** 10, how="exit", events=0):
    return frame(FOOTER, packed({"def": "footer", "ns": ns, "how": how, "events": events}))


def write(path, *parts):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        for part in parts:
            file.write(part)
    return path


def ring(trace, maps=b"", started=5, **changes):
    """A ring whose process is dead, with one segment of definitions that begins with the bytes `maps`."""
    inside = zstandard.ZstdDecompressor().decompress(header(ring=os.path.basename(trace), **changes)[INDEX.size:])
    head = bytearray(256 << 10)
    head[0:16] = b"stormlog.ring\n\1\0"
    struct.pack_into("<IIII", head, 16, 2, 1 << 20, 256, len(inside))
    struct.pack_into("<QQ", head, 32, 100, started)
    struct.pack_into("<IIII", head, 88, 1, 1, 1, 0)
    struct.pack_into("<IIiIQQ", head, 16 + 16 + 16 + 40 + 16 + 24 + 256 + 512, 3, 0, 0, 1, 0, 0)
    head[65536:65536 + len(inside)] = inside
    segment = bytearray(1 << 20)
    segment[:len(maps)] = maps
    return bytes(head) + bytes(segment)


def record(content, done=True, size=None):
    """One definition as a ring has it.  done=False: the process was killed between reserving the room and filling it."""
    size = len(content) if size is None else size
    return struct.pack("<Q", size << 8 | (2 if done else 1)) + content + bytes(-len(content) % 8)
