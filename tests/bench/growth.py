#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""growth.py ANALYZE [LARGEST [DECADES [SHAPE]]]: how the analyzer's cost grows with each thing that a file may have many of.

The cost may grow as n log n, not as n squared: the test fails on the exponent between two sizes that are ten times apart (a decade),
and never on a time.  A cost is the process's own time (user and system), less that of a small file.  A decade whose larger cost is
under a tenth of a second has no exponent.  If ANALYZE is tests/bench/counted, a cost is the work that it counted, in millions, each
shape must have an exponent, and those of NAMED may grow less in the last decade: n log n has 1.13 from 1000 to 10 000, and a scan
of all for each has 1.2 where what each costs by itself does not hide it (LARGER).

Longer than other files: it has a shape for each of these things."""
import glob
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
import traces as t  # noqa: E402

ANALYZE, LARGEST = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20000
DECADES, ONLY = int(sys.argv[3]) if len(sys.argv) > 3 else 1, sys.argv[4] if len(sys.argv) > 4 else None
EXPONENT_MAX, WORK_EXPONENT_MAX, NAMED_EXPONENT_MAX, LEAST_SECONDS = 1.5, 1.35, 1.2, 0.1
ODD, WORD = 0x9E3779B97F4A7C15, 2 ** 64


def one(folder, maps, events=b"", **fields):
    t.write(os.path.join(folder, "rank-00000-100.msgpack.zst"), t.header(**fields), t.defs(maps), events, t.footer())


def mallocs(n, **columns):
    numbers = range(1, n + 1)
    return t.Thread().events(n, api=t.MALLOC, kind=1, duration_ns=1, address=[4096 * i for i in numbers], bytes=4096, **columns)


def stacks(folder, n):
    maps = [{"def": "frame", "id": i, "function": "f%d" % i, "file": "/a/m%d.py" % (i % 1000), "line": i % 5000} for i in range(1, n + 1)]
    one(folder, maps + [{"def": "python_stack", "id": i, "frames": [i, i % n + 1]} for i in range(1, n + 1)],
        mallocs(n, python=list(range(1, n + 1))))


def depth(folder, n):
    """Stacks of as many functions, each entered from C."""
    n //= 5
    maps = [{"def": "frame", "id": i, "function": "f%d" % i, "file": "/a/m%d.py" % (i % 1000), "line": i % 5000} for i in range(1, n + 1)]
    for k in range(1, 801):
        frames = [(i + k) % n + 1 for i in range(n)]
        maps += [{"def": "python_stack", "id": k, "frames": frames, "c_boundaries": list(range(n))}, {"def": "native_stack", "id": k, "pcs": struct.pack("<%dQ" % n, *frames)}]
    one(folder, maps, mallocs(800, python=list(range(1, 801)), native=list(range(1, 801))))


def labels(folder, n):
    maps = [{"def": "text", "id": i, "text": "label_%s x" % "".join(chr(97 + i // 26 ** k % 26) for k in range(4))} for i in range(1, n + 1)]
    count = 3 * n
    one(folder, maps, t.Thread().events(count, api=[t.PUSH, t.MALLOC, t.POP] * n, kind=[0, 1, 0] * n, duration_ns=1,
                                        address=[4096 * (i // 3 + 1) if i % 3 == 1 else 0 for i in range(count)],
                                        bytes=[0, 4096, 0] * n, label=[i // 3 + 1 for i in range(count)]))


def runs(folder, n):
    for i in range(n):
        t.write(os.path.join(folder, "rank-00000-%d.msgpack.zst" % i), t.header(run_id="run%d" % i, pid=i, started_ns=t.UNIX0 + i * 7919 % 100003))


def files(folder, n):
    for i in range(n):
        t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (i, i)), b"no frame")


def named(folder, n):
    """Files of one run and as many segments of one process, each given by its name."""
    for i in range(n // 10):
        t.write(os.path.join(folder, "rank-00000-%d.msgpack.zst" % (i + 2)), t.header(pid=i + 2))
        t.write(os.path.join(folder, "rank-00000-1.%06d.msgpack.zst" % i), t.header(pid=1))


def strays(folder, n):
    """Ranks that each use two other devices before their own."""
    for i in range(n // 10):
        events = t.Thread().events(3, api=t.MALLOC, kind=1, duration_ns=1, address=[4096, 8192, 1 << 21], bytes=[4096, 4096, 1 << 20],
                                   device=[(i + 1) % 8, (i + 2) % 8, i % 8])
        t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (i, i)), t.header(rank=i, world_size=n // 10, pid=i + 1), events, t.footer())


def stray_places(folder, n):
    """The same, by lines of their own, eight ranks on each host, alike on their own devices."""
    for i in range(n // 10):
        maps = [{"def": "device", "ordinal": k, "name": "GPU", "uuid": "GPU-%d-%d" % (i // 8, k), "ns": t.T0} for k in range(8)]
        maps += [one for k in range(1, 9) for one in ({"def": "frame", "id": k, "function": "f", "file": "/a/m%d.py" % (i if k < 3 else 0), "line": k},
                                                      {"def": "python_stack", "id": k, "frames": [k]})]
        events = t.Thread().events(8, api=t.MALLOC, kind=1, duration_ns=1, address=[k << 22 for k in range(8)], bytes=[4096] * 2 + [1 << 20] * 6,
                                   device=[(i + 1) % 8, (i + 2) % 8] + [i % 8] * 6, python=list(range(1, 9)))
        t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (i, i)), t.header(rank=i, world_size=n // 10, pid=i + 1, host="h%d" % (i // 8)),
                t.defs(maps), events, t.footer())


def hosts(folder, n):
    """Ranks that meet once, each on a host of its own, whose clocks all differ."""
    for i in range(n // 10):
        events = t.Thread().events(1, api=len(t.HOOKS) + 1, duration_ns=2 * 10 ** 7, extra2=n // 10, time_ns=t.T0 + 3 * 10 ** 7)
        t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (i, i)),
                t.header(rank=i, world_size=n // 10, pid=i + 1, host="host%d" % i, started_ns=t.UNIX0 + i * 10 ** 10,
                         hooks=t.HOOKS + [["ncclCommInitRank", t.VERB["CALL"], 0, 4]]), events, t.footer())


def segments(folder, n):
    for i in range(1, n + 1):
        t.write(os.path.join(folder, "rank-00000-100.%06d.msgpack.zst" % i), t.header(file=i))


def pids(folder, n):
    one(folder, [{"def": "sample", "ns": t.T0 + i * 1000, "begin_ns": t.T0 + i * 1000, "device": 0, "free_bytes": 1 << 40, "total_bytes": 1 << 41,
                  "used_bytes": 1 << 40, "process_bytes": 4096, "processes": [[i * 64 + k, 4096] for k in range(64)]} for i in range(n // 10)],
        mallocs(10))


def communicators(folder, n):
    one(folder, [{"def": "communicator", "handle": i + 1, "rank": 0, "world_size": 1, "device": 0, "name": "c%d" % i, "ns": t.T0}
                 for i in range(n)], mallocs(10))


def traffic(folder, n):
    """A collective of each of as many communicators, in no order."""
    maps = [{"def": "text", "id": 1, "text": "NCCL:AllReduce"}]
    maps += [{"def": "communicator", "handle": ODD * i % WORD, "rank": 0, "world_size": 1, "device": 0, "name": "c", "ns": t.T0} for i in range(1, n + 1)]
    one(folder, maps, t.Thread().events(2 * n, api=[t.PUSH, t.POP] * n, duration_ns=1, address=[ODD * (i // 2 + 1) % WORD if i % 2 == 0 else 0 for i in range(2 * n)],
                                        bytes=[8, 0] * n, label=[1, 0] * n))


def modules(folder, n):
    maps = [{"def": "module", "base": i << 20, "end": (i + 1) << 20, "path": "/nowhere/lib%d.so" % i, "build_id": "aa", "ns": t.T0}
            for i in range(1, n + 1)]
    maps += [{"def": "native_stack", "id": i, "pcs": struct.pack("<2Q", (i << 20) + 8, ((i // 2 + 1) << 20) + 8)} for i in range(1, n + 1)]
    one(folder, maps, mallocs(n, native=list(range(1, n + 1)), caller=[(i << 20) + 8 for i in range(1, n + 1)]))


def live(folder, n):
    one(folder, [], mallocs(10 * n))


def threads(folder, n):
    one(folder, [{"def": "thread", "id": i, "tid": 1000 + i, "name": "t%d" % i, "ns": t.T0} for i in range(1, n + 1)],
        b"".join(t.Thread(i).events(2, api=[t.MALLOC, t.FREE], kind=[1, 11], duration_ns=1, address=i << 16, bytes=[4096, 0])
                 for i in range(1, n + 1)))


def damage(folder, n):
    """Indexes of frames that claim more bytes than any frame has."""
    t.write(os.path.join(folder, "rank-00000-100.msgpack.zst"), t.header(), big_index() * n, t.footer())


def big_index():
    index = t.INDEX.pack(0x184D2A5C, 56, t.BLOCK, 1, 1, 3, 1, 1 << 30, 0, 0, 0)
    return index[:56] + struct.pack("<Q", t.check(index))


def links(folder, n):
    one(folder, [], mallocs(10))
    for i in range(n // 10):
        os.symlink(".", os.path.join(folder, "l%d" % i))


def suppressions(folder, n):
    """A pattern with many stars, and a long one, matched against a name that fits up to its end."""
    one(folder, [{"def": "frame", "id": 1, "function": "a" * 16000, "file": "/x/a.py", "line": 1},
                 {"def": "python_stack", "id": 1, "frames": [1]}], mallocs(10, python=1))
    with open(os.path.join(folder, "supp"), "w") as file:
        file.write("leak:" + "a*" * n + "b\nleak:" + "a" * min(8000, n) + "b\n")


def pattern_lines(folder, n):
    """Many stacks, matched against 1000 patterns."""
    stacks(folder, n)
    with open(os.path.join(folder, "supp"), "w") as file:
        file.write("".join("leak:no_such_function_%d\n" % i for i in range(1000)))


def frames(folder, n):
    """One frame of the file for each event, the last event first."""
    thread = t.Thread()
    blocks = [thread.events(1, api=t.MALLOC, kind=1, duration_ns=1, address=4096 * (i + 1), bytes=16) for i in range(n)]
    t.write(os.path.join(folder, "rank-00000-100.msgpack.zst"), t.header(), *reversed(blocks), t.footer())


def late(folder, n):
    """Calls that all began before the first of them ended, the last one first."""
    one(folder, [], t.Thread().events(n, api=t.MALLOC, kind=1, duration_ns=10 ** 9, address=[4096 * i for i in range(1, n + 1)], bytes=16,
                                      time_ns=[t.T0 + 2 * 10 ** 9 - i for i in range(n)]))


def unmixed(h):
    """Keys that an unseeded 64-bit hash maps to one slot: an attacker can choose them."""
    x = h ^ h >> 29 ^ h >> 58
    x = x * pow(ODD, -1, WORD) % WORD
    return x ^ x >> 32


def gathered_ids(folder, n):
    ids = [unmixed(i << 32) for i in range(1, n + 1)]
    maps = [{"def": "frame", "id": one, "function": "f", "file": "/a.py", "line": i} for i, one in enumerate(ids)]
    one(folder, maps + [{"def": "text", "id": one, "text": "t%d" % i} for i, one in enumerate(ids)], mallocs(10))


def gathered_addresses(folder, n):
    """Addresses of live blocks that an unseeded hash maps to one slot."""
    inverse = pow(ODD, -1, WORD)
    one(folder, [], t.Thread().events(n, api=t.MALLOC, kind=1, duration_ns=1, address=[i * inverse % WORD for i in range(1, n + 1)], bytes=16))


def lists(folder, n):
    """Many of what a real process has a few of: hooks, devices, capabilities, notes, keys of metadata."""
    maps = [{"def": "device", "ordinal": i, "name": "d", "ns": t.T0} for i in range(n)]
    maps += [{"def": "capability", "name": "c%d" % i, "value": "v"} for i in range(n)]
    maps += [{"def": "metadata", "key": "k%d" % i, "value": "v"} for i in range(n)] + [{"def": "note", "text": "n"}] * n
    one(folder, maps, mallocs(10), hooks=t.HOOKS + [["h%d" % i, 1, 1, 1] for i in range(n)])


def samples(folder, n):
    one(folder, [{"def": "sample", "ns": t.T0 + i * 1000, "begin_ns": t.T0 + i * 1000, "device": 0, "free_bytes": 1 << 40,
                  "total_bytes": 1 << 41, "used_bytes": 1 << 40, "process_bytes": 4096, "processes": []} for i in range(n)], mallocs(10))


RECORD = {"allocator_active_bytes": None, "allocator_allocated_bytes": 8192, "allocator_change_bytes": 0, "allocator_inactive_bytes": None,
          "allocator_reserved_bytes": 8192, "collector": "stormlog.cuda_preload", "context": None, "device_free_bytes": None, "device_id": 0,
          "device_total_bytes": None, "device_used_bytes": 8192, "event_type": "sample", "host": "h", "job_id": "j", "local_rank": 0,
          "metadata": {}, "pid": 100, "rank": 0, "sampling_interval_ms": 0, "schema_version": 3, "session_id": "s",
          "timestamp_ns": t.UNIX0, "world_size": 1}


def telemetry(folder, n, ranks=1, sessions=1):
    with open(os.path.join(folder, "events.jsonl"), "w") as file:
        for i in range(n):
            rank = i % ranks
            file.write(json.dumps(dict(RECORD, rank=rank, local_rank=rank % 8, host="h%d" % (rank // 8), world_size=ranks, session_id="s%d" % (i % sessions),
                                       timestamp_ns=t.UNIX0 + i // (ranks * sessions) * 10 ** 9)) + "\n")


def telemetry_segments(folder, n):
    segments = ["segment-%06d.jsonl" % i for i in range(n // 10)]
    for i, name in enumerate(segments):
        with open(os.path.join(folder, name), "w") as file:
            file.write(json.dumps(dict(RECORD, timestamp_ns=t.UNIX0 + i * 10 ** 9)) + "\n")
    with open(os.path.join(folder, "manifest.json"), "w") as file:
        json.dump({"format": "stormlog.telemetry.sink", "schema_version": 1, "sessions": [],
                   "segments": [{"filename": name, "session_id": "s", "event_count": 1, "size_bytes": 1, "closed": True} for name in segments]}, file)


def telemetry_bundles(folder, n):
    for i in range(max(n // 100, 1)):
        bundle = os.path.join(folder, "oom_dump_%d" % i)
        os.mkdir(bundle)
        for name, content in (("manifest", {"bundle_name": "b%d" % i, "reason": "oom", "backend": "cuda", "event_count": 1, "files": ["events.json"]}),
                              ("metadata", {"exception_type": "OutOfMemoryError"}), ("events", [dict(RECORD, session_id="b%d" % i)])):
            with open(os.path.join(bundle, name + ".json"), "w") as file:
                json.dump(content, file)


def telemetry_ranks(folder, n):
    telemetry(folder, n, ranks=n)


def telemetry_sessions(folder, n):
    telemetry(folder, n, sessions=max(n // 4, 1))


def telemetry_files(folder, n):
    """Ranks of one job, with a file and a session each; the session of all is named after all their names."""
    for i in range(n // 20):
        with open(os.path.join(folder, "events%d.jsonl" % i), "w") as file:
            file.write(json.dumps(dict(RECORD, rank=i, world_size=n // 20, session_id="%02000d" % i)) + "\n")


def telemetry_records(folder, n):
    telemetry(folder, n)


def cost(make, n):
    folder = tempfile.mkdtemp(prefix="stormlog-growth-")
    try:
        make(folder, n)
        extra = ["--suppressions", os.path.join(folder, "supp")] if make in (suppressions, pattern_lines) else []
        if not make.__name__.startswith("telemetry") and make not in (streams, table, baseline) + FIT + LISTED:
            extra += ["-j", "1"]
        verb = {snapshot_of_resets: ["export", "pytorch-snapshot", "-o", os.path.join(folder, "o")], ranks_of_places: ["export", "speedscope", "-o", os.path.join(folder, "o")], streams: ["fit", "--capacity", "350M,400M"], table: ["table", "--by", "stack", "--sort", "made"], baseline: ["check", "--baseline", os.path.join(folder, "base.json")], **dict.fromkeys(FIT, ["fit"]), **dict.fromkeys(LISTED, ["runs", "-q", "--catalogue", os.path.join(folder, "catalogue")])}.get(
            make, ["-q", "-o", os.path.join(folder, "o"), *extra])
        paths = sorted(glob.glob(os.path.join(folder, "*.zst"))) if make is named else [folder]
        with tempfile.TemporaryFile("w+") as said, subprocess.Popen([ANALYZE, *verb, *paths], stdout=subprocess.DEVNULL, stderr=said) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = status
            said.seek(0)
            work = int(said.read().split("work ")[-1]) / 1e6 if COUNTED else None
        if os.WIFSIGNALED(status):
            sys.exit("%s of %d: ended by signal %d" % (make.__name__, n, os.WTERMSIG(status)))
        if os.WEXITSTATUS(status) != {files: 3, baseline: 1}.get(make, 0):
            sys.exit("%s of %d: exit status %d" % (make.__name__, n, os.WEXITSTATUS(status)))
        return work if COUNTED else usage.ru_utime + usage.ru_stime, usage.ru_maxrss
    finally:
        shutil.rmtree(folder)


HOOKS = dict(context="CONTEXT_CREATE", drop="CONTEXT_DESTROY", reset="DEVICE_RESET", load="MODULE_LOAD", unload="MODULE_UNLOAD", pool="POOL_CREATE", call="NAME", node="GRAPH_ALLOC", unnode="GRAPH_FREE",
             instance="GRAPH_INSTANTIATE", launch="GRAPH_LAUNCH", undo="GRAPH_DESTROY", end="EXEC_DESTROY", pooled="BLOCK_ALLOC", pinned="ALLOC",
             unblock="BLOCK_FREE", wait="BLOCK_WAIT", done="BLOCK_DONE", refused="BLOCK_OOM",
             **{"CUDAGraph::capture_begin": "BLOCK_POOL", "CUDAGraph::capture_end": "BLOCK_POOL", "MemPool::MemPool": "BLOCK_POOL", "MemPool::~MemPool": "BLOCK_POOL"})
API = {name: len(t.HOOKS) + 1 + i for i, name in enumerate(HOOKS)}
API.update(malloc=t.MALLOC, free=t.FREE, block=t.TORCH_ALLOC, push=t.PUSH, pop=t.POP)
KIND_OF = {"malloc": t.KIND["device"], "node": t.KIND["graph"], "block": t.KIND["block"], "pooled": t.KIND["block"], "pinned": t.KIND["host_pinned"], "free": t.KIND["unknown"]}
FAMILIES = t.FAMILIES + [["pool", 0]]


def rows_of(thread, rows):
    names = sorted({name for _, columns in rows for name in columns})
    columns = {name: [row.get(name, 0) for _, row in rows] for name in names}
    return thread.events(len(rows), api=[API[api] for api, _ in rows], kind=[KIND_OF.get(api, 0) for api, _ in rows], duration_ns=1, **columns)


def calls(folder, *rows, others=b"", maps=(), **fields):
    """Calls one after the other: (api, {column: value})."""
    one(folder, list(maps), others + rows_of(t.Thread(), rows), families=FAMILIES, **fields,
        hooks=t.HOOKS + [[name, t.VERB[verb], KIND_OF.get(name, 0), len(t.FAMILIES) if name == "pooled" else 1] for name, verb in HOOKS.items()])


def block(i, **columns):
    return "malloc", dict(address=i + 1 << 21, bytes=1 << 20, **columns)


def resets(folder, n):
    """Live blocks on one device; another device is reset again and again, each time with one block on it."""
    calls(folder, *[block(i, device=1) for i in range(n)], *[row for i in range(n) for row in (block(n + i), ("reset", {}))])


def snapshot_of_resets(folder, n):
    resets(folder, n)


def contexts(folder, n):
    calls(folder, *[row for i in range(n) for row in (("context", {"context": i + 1}), block(i, context=i + 1), ("load", dict(address=i + 1, context=i + 1)))],
          *[("drop", {"context": i + 1}) for i in range(n)])


def short_contexts(folder, n):
    """Contexts that are made and dropped, each with one block, beside the live blocks of one that stays."""
    calls(folder, *[block(i, context=1) for i in range(n)],
          *[row for i in range(n) for row in (("context", {"context": 2}), block(n, context=2), ("drop", {"context": 2}))])


def loads(folder, n):
    """Modules that take memory, unloaded the oldest first; then an out of memory in each of as many pools with a maximum."""
    calls(folder, *[("load", dict(address=i + 1, context=1, extra=2 << 20, extra2=1 << 20)) for i in range(n)], *[("unload", {"address": i + 1}) for i in range(n)],
          *[("pool", dict(address=i + 1, bytes=1 << 20)) for i in range(n)],
          *[("malloc", dict(object=n - i, bytes=2 << 20, result=2)) for i in range(n)])


def names(folder, n):
    """Each block is named, from the last to the first."""
    calls(folder, *[block(i) for i in range(n)], *[("call", dict(address=n - i << 21, label=i + 1)) for i in range(n)])


def regions(folder, n):
    """A part inside each block is named."""
    calls(folder, *[block(i) for i in range(n)], *[("call", dict(address=(i + 1 << 21) + 512, bytes=512, label=i + 1)) for i in range(n)])


def parts(folder, n):
    """Parts of one block are named, the last one first; then pieces inside these, which split them."""
    calls(folder, ("malloc", dict(address=1 << 21, bytes=n << 12)),
          *[("call", dict(address=(1 << 21) + (n - 1 - i << 12), bytes=4096, label=i + 1)) for i in range(n)],
          *[("call", dict(address=(1 << 21) + (i << 12) + 512, bytes=512, label=i + 1)) for i in range(n)])


def pools(folder, n):
    """Each of n blocks of the driver, made at n places, gets a block of a framework's pool, the last one first."""
    calls(folder, *[block(i, caller=i + 1) for i in range(n)], *[("pooled", dict(address=n - i << 21, bytes=512)) for i in range(n)],
          *[("free", {"address": i + 1 << 21}) for i in range(n)])


def told(folder, n):
    """A pool reports with each block that it has grown by a size that no block of the driver has."""
    calls(folder, *[block(i) for i in range(n)], *[("pooled", dict(address=i + 1, bytes=1, extra=i, extra2=(3 << 19) + i)) for i in range(n)])


def many_ranges(folder, n):
    """Blocks of a thread without an open range, beside n threads with one."""
    calls(folder, *[block(i, label=1) for i in range(n)],
          others=b"".join(rows_of(t.Thread(i + 2), [("push", {"label": 2})]) for i in range(n)))


def graphs(folder, n):
    calls(folder, *[row for i in range(n) for row in (("node", dict(object=i + 1, address=i + 1 << 21, bytes=1 << 20)),
                                                      ("instance", dict(address=(1 << 40) + i, object=i + 1)), ("launch", {"address": (1 << 40) + i}))],
          *[row for i in range(n) for row in (("end", {"address": (1 << 40) + i}), ("undo", {"address": i + 1}))])


def nodes(folder, n):
    """Allocation nodes of one graph, each freed in the graph."""
    calls(folder, *[("node", dict(object=1, address=i + 1 << 21, bytes=1 << 20)) for i in range(n)],
          *[("unnode", dict(object=1, address=i + 1 << 21)) for i in range(n)], ("instance", dict(address=2, object=1)), ("launch", {"address": 2}))


def launched(folder, n, *nodes):
    calls(folder, *nodes, ("instance", dict(address=2, object=1)), *[("launch", {"address": 2})] * n)


def launches(folder, n):
    """Launches of a graph that frees its nodes' memory."""
    launched(folder, n, *[("node", dict(object=1, address=i + 1 << 21, bytes=1 << 20)) for i in range(n)],
             *[("unnode", dict(object=1, address=i + 1 << 21)) for i in range(n)])


def leaving(folder, n):
    """Launches of a graph that leaves its nodes' memory until the next launch."""
    launched(folder, n, *[("node", dict(object=1, address=i + 1 << 21, bytes=1 << 20)) for i in range(n)])


def one_stack_each(n):
    return [one for i in range(1, n + 1) for one in ({"def": "frame", "id": i, "function": "f%d" % i, "file": "/a/m%d.py" % i, "line": i},
                                                     {"def": "python_stack", "id": i, "frames": [i]})]


def labelled_leaks(folder, n):
    """A block of a stack of its own that is left, in a range with a label of its own."""
    maps = [{"def": "text", "id": i, "text": "label %d" % i} for i in range(1, n + 1)] + one_stack_each(n)
    one(folder, maps, rows_of(t.Thread(), [row for i in range(1, n + 1) for row in (
        ("push", {"label": i}), ("malloc", dict(address=i << 12, bytes=4096, python=i)), ("pop", {"label": i}))]))


def refusal(i):
    return "malloc", dict(bytes=1 << 45, result=2, python=i)


def refusals(folder, n):
    """Errors, one for each of as many stacks that hold a block."""
    one(folder, one_stack_each(n), rows_of(t.Thread(), [("malloc", dict(address=i << 12, bytes=4096, python=i)) for i in range(1, n + 1)] +
                                           [refusal(i) for i in range(1, n + 1)]))


def refusals_between(folder, n):
    """The same, an error after each block."""
    one(folder, one_stack_each(n), rows_of(t.Thread(), [row for i in range(1, n + 1) for row in (
        ("malloc", dict(address=i << 12, bytes=4096, python=i)), refusal(i))]))


def table(folder, n):
    """Places with one block each, sorted by how many they made."""
    one(folder, one_stack_each(n), mallocs(n, python=list(range(1, n + 1))))


def namesakes(folder, n):
    """Traces of one name, each in a folder of its own."""
    for i in range(n // 10):
        t.write(os.path.join(folder, "d%d" % i, "rank-00000-1.msgpack.zst"), t.header(rank=i, world_size=n // 10, pid=i + 1), t.footer())


def baseline(folder, n):
    """Places that a baseline with as many does not have."""
    stacks(folder, n)
    with open(os.path.join(folder, "base.json"), "w") as file:
        json.dump({"schema": "stormlog.baseline", "schema_version": 1, "total": {}, **{of: {"%s %d" % (of, i): {"what": "w", "bytes": 1} for i in range(n)}
                                                                   for of in ("stack", "leak")}}, file)


def on_device(folder, i, began, seconds):
    """A process with a block and two samples, for so many seconds."""
    maps = [{"def": "device", "ordinal": 0, "family": "cuda_runtime", "name": "H", "uuid": "GPU-1", "total_bytes": 1 << 40, "ns": t.T0}]
    maps += [{"def": "sample", "ns": at, "begin_ns": at, "device": 0, "free_bytes": 1 << 39, "total_bytes": 1 << 40, "used_bytes": 1 << 39,
              "process_bytes": 4096, "processes": [[i + 1, 4096]]} for at in (t.T0 + 10 ** 6, t.T0 + seconds * 10 ** 9 - 10 ** 6)]
    t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (i, i)), t.header(rank=i, pid=i + 1, started_ns=t.UNIX0 + began * 10 ** 9),
            t.defs(maps), t.Thread().events(1, api=t.MALLOC, kind=1, duration_ns=1, address=4096, bytes=1 << 20), t.footer(t.T0 + seconds * 10 ** 9))


def beside(folder, n):
    """Processes that use one device at the same time."""
    for i in range(n // 10):
        on_device(folder, i, 0, 10)


def one_by_one(folder, n):
    """Processes that use one device one after the other, beside one that uses it all the time."""
    on_device(folder, 0, 0, 10 * n)
    for i in range(1, n // 10):
        on_device(folder, i, 20 * i, 10)


def keep(folder, n, given_back, freed):
    """Places that keep a block in each of twenty rounds; given_back: and free another one there; freed: those kept, at the end.
    On the host, since a place counts on a device only if it holds a part of what the device does."""
    rows = []
    for k in range(20):
        rows += [("pinned", dict(address=(1 << 40) + (k * n + i << 21), bytes=1 << 20, python=i + 1)) for i in range(n)]
        if given_back:
            rows += [("pinned", dict(address=(1 << 50) + (i << 21), bytes=1 << 20, python=i + 1)) for i in range(n)]
            rows += [("free", {"address": (1 << 50) + (i << 21)}) for i in range(n)]
    if freed:
        rows += [("free", {"address": (1 << 40) + (i << 21)}) for i in range(20 * n)]
    calls(folder, *rows, maps=one_stack_each(n))


def keeping(folder, n):
    keep(folder, n, False, False)


def queues(folder, n):
    keep(folder, n, True, False)


def collecting(folder, n):
    keep(folder, n, False, True)


def streams(folder, n):
    calls(folder, *[("block", dict(address=i + 1 << 21, bytes=1 << 20, stream=n - i, object=5, extra=i << 20, extra2=i << 20)) for i in range(n)])


def of_pytorch(folder, *rows, total=1 << 40, settings=None):
    calls(folder, *rows, environment={"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {}, maps=[{"def": "capability", "name": "pytorch", "value": "c10 2.6.0"},
                               {"def": "device", "ordinal": 0, "family": "cuda_runtime", "name": "GPU", "uuid": "GPU-0", "total_bytes": total, "ns": t.T0}])


def tensor(i, size=512):
    return "block", dict(address=i + 1 << 21, bytes=size, object=1, extra=i + 1 << 9, extra2=2 << 20)


def refused(size):
    """PyTorch asks the driver twice."""
    return [("malloc", dict(bytes=size, result=2))] * 2 + [("refused", dict(bytes=size, object=1, extra2=2 << 20))]


def captured(i):
    return "CUDAGraph::capture_begin", dict(address=i + 1, bytes=i + 1, extra=i, extra2=i + 1)


def waiting(folder, n):
    """Freed blocks that wait for events, of which the newest completes first; then a request that is refused after each."""
    of_pytorch(folder, *[tensor(i) for i in range(n)], *[row for i in range(n) for row in (("wait", {"address": i + 1}), ("unblock", dict(address=i + 1 << 21, bytes=512)))],
               *[("done", {"address": n - i}) for i in range(n)])


def captures(folder, n):
    """Graphs whose capture does not end, and requests meanwhile."""
    of_pytorch(folder, *[captured(i) for i in range(n)], *[tensor(i) for i in range(n)])


def private_pools(folder, n):
    """Pools of graphs and of the program, and requests that are refused."""
    of_pytorch(folder, *[row for i in range(n) for row in (captured(i), ("CUDAGraph::capture_end", {"address": i + 1}), ("MemPool::MemPool", {"address": 1 << 40 | n - i}))],
               *[row for i in range(n) for row in (tensor(i), refused(1 << 50)[-1], ("MemPool::~MemPool", {"address": 1 << 40 | i + 1}))])


def corrections(folder, n):
    """Contexts between requests of PyTorch's: each corrects what was there from the beginning."""
    of_pytorch(folder, *[row for i in range(n) for row in (("context", dict(context=i + 1, extra=(1 << 40) - (i << 20), extra2=(1 << 40) - (i + 1 << 20))), tensor(i))])


def rooms(folder, n):
    """An expandable segment of blocks that are free or have no memory, in turns, and requests that are larger than all."""
    size = 20 << 20
    of_pytorch(folder, *[tensor(i, size) for i in range(2 * n + 1)], *[("unblock", dict(address=2 * i + 1 << 21, bytes=size)) for i in range(n)], *refused(3 * size),
               *[("unblock", dict(address=2 * i + 2 << 21, bytes=size)) for i in range(n)], *[tensor(2 * n + 9 + i, (2 * n + 1) * size) for i in range(8)],
               total=1 << 56, settings="expandable_segments:True")


def holders(folder, n):
    """Libraries that each allocate on each of a hundred devices."""
    count = n // 100 or 1
    maps = [{"def": "module", "base": i << 20, "end": (i + 1) << 20, "path": "/nowhere/lib%d.so" % i, "build_id": "aa", "ns": t.T0} for i in range(1, count + 1)]
    maps += [{"def": "native_stack", "id": i, "pcs": struct.pack("<Q", (i << 20) + 8)} for i in range(1, count + 1)]
    one(folder, maps, mallocs(n, native=[i % count + 1 for i in range(n)], device=[i // count for i in range(n)]))


def ranks_of_places(folder, n):
    """Ranks with a hundred places each, as one flame graph of each."""
    for i in range(n // 10):
        t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (i, i)), t.header(rank=i, world_size=n // 10, pid=i + 1), t.defs(one_stack_each(100)),
                mallocs(100, python=list(range(1, 101))), t.footer())


def listed(folder, n):
    """Runs that the catalogue learns: their traces in one folder."""
    events = mallocs(2)
    for i in range(n // 10):
        t.write(os.path.join(folder, "rank-00000-%d.msgpack.zst" % i), t.header(run_id="run%d" % i, pid=i + 1, started_ns=t.UNIX0 + i * 10 ** 9), events, t.footer())


def gathered(folder, n, verb, name):
    """The same in one file."""
    listed(os.path.join(folder, "traces"), n)
    subprocess.run([ANALYZE, verb, "--run", "all", "-o", os.path.join(folder, name), os.path.join(folder, "traces")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(os.path.join(folder, "traces"))


def listed_summary(folder, n):
    gathered(folder, n, "summarize", "made.summary")


def listed_pack(folder, n):
    gathered(folder, n, "pack", "made.stormlog")


LISTED = (listed, listed_summary, listed_pack)
FIT = (waiting, captures, private_pools, corrections, rooms)
COUNTED = os.path.basename(ANALYZE) == "counted"
NAMED = (stacks, runs, files, segments, samples, modules, communicators, suppressions, telemetry_ranks, labels, threads, live)
LARGER = {stacks: 3, modules: 5, telemetry_ranks: 5, labels: 5, beside: 1 / 4, one_by_one: 1 / 4}  # so many times the sizes, where one decade is counted
WORK = NAMED + (depth, traffic, gathered_addresses, resets, contexts, short_contexts, loads, names, regions, parts, pools, told, many_ranges, graphs,
        nodes, launches, leaving, streams, labelled_leaks, holders, refusals, refusals_between, table, namesakes, baseline, stray_places, beside, one_by_one, ranks_of_places, keeping, queues,
        collecting) + LISTED + FIT
SHAPES = WORK if COUNTED else (stacks, depth, labels, runs, files, named, strays, hosts, segments, pids, samples, communicators, traffic, modules, live, threads, lists, damage, links, suppressions,
          pattern_lines, frames, late, telemetry_segments, telemetry_bundles, telemetry_ranks, telemetry_sessions, telemetry_files, telemetry_records, gathered_ids, gathered_addresses,
          snapshot_of_resets)


def main():
    failed = []
    print("%-18s" % "" + "".join("%10d" % (LARGEST // 10 ** k) for k in range(DECADES, -1, -1)) + "  exponents       MB")
    for make in SHAPES:
        if ONLY and make.__name__ != ONLY:
            continue
        times = LARGER.get(make, 1) if COUNTED and DECADES == 1 else 1
        sizes = [int(LARGEST // 10 ** k * times) for k in range(DECADES, -1, -1)]
        base = cost(make, max(sizes[0] // 10, 1 if make in NAMED else 20))[0]
        measured = [cost(make, size) for size in sizes]
        net = [max(seconds - base, LEAST_SECONDS / 10) for seconds, _ in measured]
        exponents = [math.log10(net[k + 1] / net[k]) if net[k + 1] > LEAST_SECONDS else 0 for k in range(DECADES)]
        print("%-18s" % (make.__name__ + (" x%g" % times if times != 1 else "")) + "".join("%9.2f%s" % (seconds, "M" if COUNTED else "s") for seconds, _ in measured) + "  "
              + " ".join("%.2f" % e if e else "-" for e in exponents) + "%9d" % (measured[-1][1] >> 10), flush=True)
        told = not COUNTED or (any(exponents) and (make not in NAMED or exponents[-1] <= NAMED_EXPONENT_MAX))
        if max(exponents) > (WORK_EXPONENT_MAX if COUNTED else EXPONENT_MAX) or not told:
            failed.append(make.__name__)
    if failed:
        print("more than n log n, or not to be told:", ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
