#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_hostile.py STORMLOG_SERVER: packs made to do harm.  Each costs one child process and becomes a run or is refused with a sentence.  Nothing outside of the store is written, and no FIFO is waited for."""
import json
import os
import shutil
import struct
import sys
import tempfile
import unittest

from runs import t  # skips where msgpack is missing
import zstandard
from served import Server, name_of, pack_of_members, wait_for

PROGRAM = os.path.abspath(sys.argv[1])
MOST, NAME = 2 ** 64 - 1, b"rank-00000-100.msgpack.zst"
DEVICE = {"def": "device", "ordinal": 0, "family": "cuda_runtime", "name": "H", "uuid": "GPU-1", "total_bytes": 1 << 37, "ns": t.T0}


def calls(count=100, thread=None, **columns):
    return (thread or t.Thread()).events(count, **{"api": t.MALLOC, "kind": 1, "duration_ns": 10, "address": [4096 * (i + 16) for i in range(count)], "bytes": 4096, **columns})


def zeros(size, before=b""):
    """A zstd frame of so many zero bytes, behind `before`, that does not state its size."""
    compressor = zstandard.ZstdCompressor(level=1, write_content_size=False).compressobj()
    return b"".join([compressor.compress(before)] + [compressor.compress(bytes(1 << 20)) for _ in range(size >> 20)] + [compressor.flush()])


def lie(frame, **changes):
    """The frame with members of its index changed."""
    names = "magic size kind thread first end count compressed begin_ns end_ns check".split()
    head = t.INDEX.pack(*dict(zip(names, t.INDEX.unpack(frame[:64])), **changes).values())
    return head[:56] + struct.pack("<Q", t.check(head)) + frame[64:]


def traces(fifo):
    """(name, bytes of a trace) of each hostile trace."""
    def trace(*parts, foot=True, **header):
        return b"".join([t.header(**header), *parts] + ([t.footer()] if foot else []))

    device, block = t.defs([DEVICE]), calls()
    note = t.packed({"def": "note", "text": "x" * (30 << 20)})
    yield "an honest one", trace(device, block)
    yield "a frame that is a bomb", trace(t.framed(t.DEFS, zeros(1 << 30)), block)
    yield "sixty frames of one note", trace(t.frame(t.DEFS, note) * 60, block)
    yield "nils", trace(t.frame(t.DEFS, b"\x82" + t.packed("def") + t.packed("note") + t.packed("text") + b"\xdd" + struct.pack(">I", 30 << 20) + b"\xc0" * (30 << 20)) * 10)
    yield "stacks of a million frames", trace(t.frame(t.DEFS, t.packed({"def": "python_stack", "id": 1, "frames": [1] * 1000000})) * 20, block)
    yield "nesting", trace(t.frame(t.DEFS, b"\x82" + t.packed("def") + t.packed("note") + t.packed("x") + b"\x91" * 100000 + b"\xc0"), block)
    yield "maps without a kind", trace(t.frame(t.DEFS, t.packed({"x": 1})), t.frame(t.DEFS, b"\0"), block)
    for count in 2 ** 31, 2 ** 32 - 1:
        yield f"an array of {count}", trace(t.frame(t.DEFS, b"\x81" + t.packed("def") + b"\xdd" + struct.pack(">I", count)), block)
    for count in 5000, 2 ** 31, 2 ** 32, 2 ** 63:
        columns = {name: [0, 0, 0, value, b""] for name, value in dict(time_ns=t.T0, api=1, kind=1, bytes=4096, address=4096).items()}
        content = {"def": "block", "thread": 1, "first": 1, "next": 2 ** 63, "count": count, "columns": columns}
        yield f"a block of {count}", trace(device, t.frame(t.BLOCK, t.packed(content), thread=1, first=1, end=2 ** 63))
    for name, column in {"of three bytes": [0, 3, 0, 0, bytes(30)], "that is short": [0, 8, 0, 0, bytes(3)], "shifted by 200": [0, 1, 200, 0, b"\1" * 10],
                         "of another form": [9, 1, 0, 0, b"\1" * 10], "from below zero": [0, 1, 0, -5, b"\1" * 10], "of 255 bytes": [0, 255, 0, 0, b"\1" * 10]}.items():
        content = {"def": "block", "thread": 1, "first": 1, "next": 21, "count": 10, "columns": {"time_ns": column, "api": column, "bytes": column}}
        yield f"a column {name}", trace(t.frame(t.BLOCK, t.packed(content), thread=1, first=1, end=21, count=10))
    for name, columns in {"sizes of 2^64": {"bytes": MOST}, "sizes of 2^63": {"bytes": 2 ** 63}, "addresses that wrap": {"address": MOST - 100, "bytes": 2 ** 60},
                          "devices below zero": {"device": [i - 50 for i in range(100)]}, "a call of 2^63": {"api": 2 ** 63}, "a kind of 2^64": {"kind": MOST},
                          "stacks of 2^64": {"python": MOST, "native": MOST, "label": MOST}, "time that goes back": {"time_ns": [t.T0 + (100 - i) * 10 ** 9 for i in range(100)]},
                          "no time": {"time_ns": 0}, "all of time": {"time_ns": [3 if i % 2 else MOST - 5 for i in range(100)]}, "calls without end": {"duration_ns": MOST}}.items():
        yield name, trace(device, calls(**columns))
    for header in ({"started_ns": 0}, {"started_ns": MOST}, {"started_ns": -2 ** 63}, {"monotonic_ns": MOST}, {"rank": 2 ** 63 - 1, "world_size": 2 ** 63 - 1},
                   {"rank": -5, "world_size": -7, "local_rank": -9}, {"pid": -1, "pids": [2 ** 63] * 1000}, {"version": 2 ** 63}, {"format": "x"},
                   {"fields": [], "verbs": [], "kinds": [], "hooks": [], "families": [], "flags": []}, {"world_size": 10 ** 9, "rank": 10 ** 9 - 1},
                   {"fields": 5, "verbs": {}, "kinds": "x", "hooks": [[1, 2, 3, 4], [], ["a"], ["x", 99, 99, 99]], "families": [1]}):
        yield f"a header with {' '.join(header)} {next(iter(header.values()))!r:.30}", trace(device, block, **header)
    for ring in fifo, "/dev/zero", "/dev/full", "../../../etc/passwd", "/tmp":
        yield f"a ring at {os.path.basename(ring)}", trace(device, block, foot=False, ring=ring)
        maps = [{"def": "module", "base": 1 << 24, "end": 2 << 24, "path": ring, "build_id": "", "ns": t.T0}, {"def": "native_stack", "id": 1, "pcs": struct.pack("<2Q", (1 << 24) + 5, (1 << 24) + 9)}]
        yield f"a library at {os.path.basename(ring)}", trace(t.defs(maps), calls(native=1))
    for name, frames in {"count": [lie(block, count=2 ** 32 - 1)], "first": [lie(block, first=2 ** 63, end=0)], "time": [lie(block, begin_ns=MOST, end_ns=0)], "thread": [lie(block, thread=2 ** 32 - 1)],
                         "kind": [lie(block, kind=2), lie(device, kind=3), lie(block, kind=77)], "no size": [lie(block, compressed=0)], "less": [lie(block, compressed=len(block) - 65)],
                         "more": [lie(block, compressed=8 << 20)], "the same again": [block, block, calls(), calls()], "nothing else": [lie(block, compressed=9 << 20)[:64] * 50000]}.items():
        yield f"an index that lies: {name}", trace(device, *frames)
    yield "tiny frames", trace(device, t.frame(t.DEFS, t.packed({"def": "x"})) * 100000)
    values = [{"def": "sample", "ns": at, "begin_ns": MOST - at, "device": d, "free_bytes": free, "total_bytes": total, "used_bytes": MOST, "process_bytes": 0, "source": 5, "processes": [[1, MOST]] * 3}
              for at in (0, t.T0, MOST) for d in (0, -5, 2 ** 62) for free in (MOST, float("nan"), -1) for total in (0, MOST)]
    yield "samples of nothing", trace(t.defs([DEVICE] + values), block)
    yield "failures without end", trace(t.defs([DEVICE] + [{"def": "oom", "ns": t.T0 + i, "thread": 1, "seq": i, "device": 0, "free_bytes": MOST, "processes": [[1, MOST]] * 100} for i in range(1000)]), calls(result=2))
    maps = [{"def": "frame", "id": i + 1, "function": f"f{i}", "file": "a.py", "line": i} for i in range(20000)] + [{"def": "python_stack", "id": i + 1, "frames": [i + 1, 1]} for i in range(20000)]
    yield "twenty thousand places", trace(t.defs(maps), calls(20000, python=[i + 1 for i in range(20000)]))
    big = "A" * (1 << 20)
    maps = [{"def": "text", "id": 1, "text": big}, {"def": "frame", "id": 1, "function": big, "file": big, "line": 1}, {"def": "python_stack", "id": 1, "frames": [1] * 64}]
    yield "names of a megabyte", trace(t.defs(maps), calls(31, python=1, label=1), argv=[big, big], exe=big, tag=big, metadata={big: big})


def packs(fifo):
    """(name, bytes of a pack) of each hostile pack."""
    begin, honest = b"stormlog.pack\n\1\0", None
    for name, data in traces(fifo):
        honest = honest or data
        yield name, pack_of_members([(NAME, data)])
    inside = struct.pack("<I", len(NAME)) + NAME + struct.pack("<Q", len(honest)) + honest
    ring = struct.pack("<I", 19) + b"rank-00000-100.ring" + struct.pack("<Q", 8 << 30)
    yield "a member that is a bomb", begin + zeros(8 << 30, inside + ring)
    yield "nothing but zeros", begin + zeros(1 << 30)
    for name in (b"../../x.msgpack.zst", fifo.encode() + b".msgpack.zst", b"/etc/x.msgpack.zst", b"rank\0-00000-100.msgpack.zst", b"a" * 300 + b".ring", b"..", b"",
                 b"rank-00000-100\n::set-env name=X::y\x1b[31m.msgpack.zst"):
        yield f"a member called {name[-30:]!r}", pack_of_members([(name, honest), (NAME, honest + b"more")])
    yield "one member thrice", pack_of_members([(NAME, honest)] * 3)
    yield "two hundred ranks", pack_of_members([(b"rank-%05d-%d.msgpack.zst" % (i, i + 100), t.header(rank=i, pid=i + 100, world_size=200) + calls(4) + t.footer()) for i in range(200)])
    yield "five thousand members", pack_of_members([(b"rank-%05d-1.msgpack.zst" % i, b"") for i in range(5000)])
    compressed = zstandard.ZstdCompressor().compress
    yield "a member of 2^64", begin + compressed(struct.pack("<I", len(NAME)) + NAME + struct.pack("<Q", MOST) + honest)
    yield "a name of 2^32", begin + compressed(struct.pack("<I", 2 ** 32 - 1) + b"x")
    yield "no end", begin + compressed(inside)
    yield "half", pack_of_members([(NAME, os.urandom(4096) + honest)])[:2500]
    yield "another version", pack_of_members([(NAME, honest)]).replace(begin, b"stormlog.pack\n\xff\0", 1)


class Hostile(unittest.TestCase):
    def test_each_is_a_run_or_a_sentence_and_costs_one_child(self):
        folder = tempfile.mkdtemp(prefix="stormlog-hostile-")
        self.addCleanup(shutil.rmtree, folder, True)
        fifo, children, beside = (os.path.join(folder, name) for name in ("fifo", "children", "tmp"))
        os.mkfifo(fifo)
        os.mkdir(beside)
        os.mkdir(os.path.join(folder, "bin"))
        program = os.path.join(folder, "bin", "stormlog-server")  # the server starts the stormlog-index in its own folder
        shutil.copy(PROGRAM, program)
        with open(os.path.join(folder, "bin", "stormlog-index"), "w") as index:
            index.write(f"#!/bin/sh\necho $# >>'{children}'\nexec '{os.path.join(os.path.dirname(PROGRAM), 'stormlog-index')}' \"$@\"\n")
        os.chmod(index.name, 0o755)
        os.environ["TMPDIR"] = beside
        server = Server(program, os.path.join(folder, "store")).start()
        self.addCleanup(server.kill)
        sent, shown = {}, 0

        def tree():
            return sorted(os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files if not at.startswith(server.store))
        open(children, "w").close()
        before = tree()
        for name, pack in packs(fifo):
            status = server.put(pack)[0]
            self.assertIn(status, (201, 422), name)
            if status == 201:
                sent[name_of(pack)] = name
        for sha, name in sent.items():
            with self.subTest(name):
                status, headers, body = wait_for(lambda: (lambda got: got[0] != 202 and got)(server.get("/packs/" + sha)), 300)
                shown += status == 302
                if status == 302:
                    number = int(headers["Location"].rsplit("/", 1)[1])
                    self.assertEqual((server.get(f"/runs/{number}")[0], server.get(f"/api/v1/runs/{number}/report")[0]), (200, 200))
                else:
                    self.assertEqual(status, 422)
                    self.assertRegex(body.decode(), r"[a-z]+ [a-z]+ [a-z]+", "a sentence")
                    self.assertTrue(len(body) < 400 and all(line.isprintable() for line in body.decode().splitlines()), body)
        with open(children) as file:
            self.assertEqual(len(file.readlines()), len(sent), "one child for each")
        self.assertEqual(tree(), before, "nothing was written elsewhere")
        wait_for(lambda: not os.listdir(os.path.join(server.store, "work")))  # of the last pack, which is a run before its folder is gone
        self.assertEqual(json.loads(server.get("/api/v1/runs?limit=500")[2])["count"], shown)
        with open(f"/proc/{server.process.pid}/status") as status:
            most, = (int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        print(f"{len(sent)} packs: {shown} are runs; the server held {most >> 10} MiB", flush=True)
        self.assertLess(most, 300 << 10)


unittest.main(argv=sys.argv[:1], verbosity=2)
