#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The trace has requests to a framework's allocator, their streams, and freed blocks that wait for an event as tests/apps/asked.c made them."""
import os
import struct
import sys
import unittest

import e2e
import stormlog_trace
import zstandard


def unpacked(path):
    with open(path, "rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


CAPTURED = 1 << 3  # FLAG in common/events.def


class Asked(unittest.TestCase):
    def test_size_stream_and_events_of_blocks_are_in_the_trace(self):
        with e2e.Recording(os.path.join(e2e.APPS, "asked")) as recording:
            trace, = stormlog_trace.open_folder(recording.traces)
            raw = b"".join(unpacked(os.path.join(recording.traces, file)) for file in os.listdir(recording.traces))
            self.assertEqual(raw.count(b"\xafmemory_fraction"), 1)  # nothing here exports torch._C._cuda_setMemoryFraction
            events, verbs, texts = trace.events(), trace.verbs(), trace.texts()
            names = trace.names()
            zero = [0] * len(events["api"])
            rows = list(zip(*(events.get(name, zero) if name not in events else events[name].tolist()
                              for name in ("api", "address", "bytes", "stream", "object", "label", "flags", "extra", "extra2"))))
        base = next(row[1] for row in rows if verbs[row[0]] == "ALLOC")
        blocks = [(verbs[api], address - base, size, stream, asked) for api, address, size, stream, asked, *_ in rows
                  if verbs[api] in ("BLOCK_ALLOC", "BLOCK_FREE") and address - base < 16384]
        self.assertEqual(blocks, [
            ("BLOCK_ALLOC", 0, 1024, 0x5000, 1 + 24),
            ("BLOCK_ALLOC", 1024, 2048, 0, 1),
            ("BLOCK_ALLOC", 3072, 512, 0, 1),
            ("BLOCK_ALLOC", 4096, 4096, 0, 0),
            ("BLOCK_ALLOC", 8192, 8192, 0, 0),
            ("BLOCK_FREE", 0, 1024, 0, 0)])
        order = [verbs[row[0]] for row in rows]
        wait, done = order.index("BLOCK_WAIT"), order.index("BLOCK_DONE")
        self.assertEqual(order[wait:done + 1], ["BLOCK_WAIT", "BLOCK_FREE", "BLOCK_DONE"])
        self.assertEqual(rows[wait][1], rows[done][1])
        self.assertEqual([texts[row[5]] for row in rows if verbs[row[0]] == "MARK"], ["expandable_segments:True,max_split_size_mb:64"])
        pools = [(names[row[0]].split("::")[-1], row[1] - base, row[2], row[7], row[8]) for row in rows if verbs[row[0]] == "BLOCK_POOL"]
        told = [at for at, row in enumerate(pools) if row[0] == "cudaStreamGetCaptureInfo"]
        drivers = [pools[at][2] for at in told]
        self.assertEqual((len(drivers), len(set(drivers[-2:]))), (3, 2))
        self.assertEqual([row for at, row in enumerate(pools) if at not in told], [
            ("capture_begin", 0, 0, 5, 0), ("capture_end", 0, 0, 0, 0), ("pool", 0, 77, 0, 0), ("pool", 0, 77, 0, 0), ("reset", 0, 0, 0, 0),
            *((("MemPool", at, 0, 0, differs)) for at, differs in ((1, 0), (2, 1), (3, 0), (4, 1), (5, 1), (6, 1))), ("id", 1, 0, 9, 0),
            ("capture_begin", 100, 0, 0, drivers[-2]), ("capture_begin", 101, 0, 9, drivers[-1]), ("capture_end", 100, 0, 0, 0),
            ("retain_pool", 101, 0, 8, 0), ("capture_end", 101, 0, 0, 0), ("~MemPool", 1, 0, 0, 0), ("~MemPool", 1, 0, 0, 1)])
        order = [(names[row[0]], row[1] - base, row[2]) for row in rows if row[1] - base in range(24576, 26624) or row[2] in drivers]
        self.assertEqual([row[2] if row[0] == "cudaStreamGetCaptureInfo" else row[1] for row in order][-6:],
                         [drivers[-2], 24576, 25088, drivers[-1], 25600, 26112])
        captured = {row[1] - base: row[6] & CAPTURED for row in rows if verbs[row[0]] == "BLOCK_ALLOC"}
        self.assertEqual([address for address, flag in captured.items() if flag], [16384, 24576, 25088, 25600, 26112])

    def test_a_memory_fraction_that_python_sets_is_in_the_trace(self):
        program = ("import ctypes\ncuda, c10 = ctypes.CDLL('libcudart.so.13'), ctypes.CDLL(%r)\n"
                   "def %s(fraction, device=None):\n    assert not c10.set_fraction()\n%s(%s)\n"
                   "assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))\n")
        setter, library = "set_per_process_memory_fraction", os.path.join(e2e.APPS, "libc10_cuda.so")
        read = sys.version_info >= (3, 11)
        for name, argument, bits in ((setter, "0.3", struct.unpack("Q", struct.pack("d", 0.3))[0] if read else 0), (setter, "1", 0),
                                     ("other", "0.3", None)):
            with e2e.Recording(sys.executable, "-c", program % (library, name, name, argument)) as recording:
                trace, = stormlog_trace.open_folder(recording.traces)
                events, verbs = trace.events(), trace.verbs()
                told = [(address, device) for api, address, device in zip(*(events[key].tolist() for key in ("api", "address", "device")))
                        if verbs[api] == "BLOCK_FRACTION"]
                raw = b"".join(unpacked(os.path.join(recording.traces, file)) for file in os.listdir(recording.traces))
            self.assertEqual(told, [] if bits is None else [(bits, 0)], (name, argument))
            self.assertEqual(raw.count(b"free_memory_asked"), int(bits is None), (name, argument))

    def test_a_memory_fraction_that_asks_nothing_of_the_driver_is_in_the_trace(self):
        program = ("import ctypes\ncuda, c10 = ctypes.CDLL('libcudart.so.13'), ctypes.PyDLL(%r)\n"
                   "c10.call_method.argtypes, c10.call_method.restype = [ctypes.py_object], ctypes.c_void_p\n"
                   "assert c10.call_method((0.3, 1))\n"
                   "assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))\n")
        with e2e.Recording(sys.executable, "-c", program % os.path.join(e2e.APPS, "libc10_cuda.so")) as recording:
            trace, = stormlog_trace.open_folder(recording.traces)
            events, verbs = trace.events(), trace.verbs()
            told = [(address, device) for api, address, device in zip(*(events[key].tolist() for key in ("api", "address", "device")))
                    if verbs[api] == "BLOCK_FRACTION"]
        self.assertEqual(told, [(struct.unpack("Q", struct.pack("d", 0.3))[0], 1)])

    def test_who_asks_for_free_memory_is_known_as_such(self):
        ask = "assert not cuda.cudaMemGetInfo(ctypes.byref(ctypes.c_size_t()), ctypes.byref(ctypes.c_size_t()))\n"
        new = "assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))\n"
        size = "assert not cuda.cudaGetDeviceProperties(ctypes.create_string_buffer(4096), 0)\n"
        for program, asked in ((new, False), (ask + new, True), (new + ask + ask, True), (size + new, False)):
            with e2e.Recording("python3", "-c", "import ctypes\ncuda = ctypes.CDLL('libcudart.so.13')\n" + program) as recording:
                raw = b"".join(unpacked(os.path.join(recording.traces, name)) for name in os.listdir(recording.traces))
            self.assertEqual(raw.count(b"free_memory_asked"), int(asked), program)


if __name__ == "__main__":
    unittest.main()
