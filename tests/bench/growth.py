#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""growth.py ANALYZE [LARGEST]: how the analyzer's cost grows with each thing that a file may have many of.

Ten times as many may cost ten times as much and the logarithm, not a hundred times: it fails on the exponent between two sizes, and
never on a time.  Costs are the process's own (user and system), less what a small file costs; under a tenth of a second there is
nothing to measure."""
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
EXPONENT_MAX, LEAST_SECONDS = 1.5, 0.1


def one(folder, maps, events=b"", **fields):
    t.write(os.path.join(folder, "rank-00000-100.msgpack.zst"), t.header(**fields), t.defs(maps), events, t.footer())


def mallocs(n, **columns):
    numbers = range(1, n + 1)
    return t.Thread().events(n, api=t.MALLOC, kind=1, duration_ns=1, address=[4096 * i for i in numbers], bytes=4096, **columns)


def stacks(folder, n):
    maps = [{"def": "frame", "id": i, "function": "f%d" % i, "file": "/a/m%d.py" % (i % 1000), "line": i % 5000} for i in range(1, n + 1)]
    one(folder, maps + [{"def": "python_stack", "id": i, "frames": [i, i % n + 1]} for i in range(1, n + 1)],
        mallocs(n, python=list(range(1, n + 1))))


def labels(folder, n):
    maps = [{"def": "text", "id": i, "text": "label_%s x" % "".join(chr(97 + i // 26 ** k % 26) for k in range(4))} for i in range(1, n + 1)]
    count = 3 * n
    one(folder, maps, t.Thread().events(count, api=[t.PUSH, t.MALLOC, t.POP] * n, kind=[0, 1, 0] * n, duration_ns=1,
                                        address=[4096 * (i // 3 + 1) if i % 3 == 1 else 0 for i in range(count)],
                                        bytes=[0, 4096, 0] * n, label=[i // 3 + 1 for i in range(count)]))


def runs(folder, n):
    for i in range(n // 10):
        t.write(os.path.join(folder, "rank-00000-%d.msgpack.zst" % i), t.header(run_id="run%d" % i, pid=i, started_ns=t.UNIX0 + i * 7919 % 100003))


def files(folder, n):
    for i in range(n):
        t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (i, i)), b"no frame")


def segments(folder, n):
    for i in range(1, n // 10):
        t.write(os.path.join(folder, "rank-00000-100.%06d.msgpack.zst" % i), t.header(file=i))


def pids(folder, n):
    one(folder, [{"def": "sample", "ns": t.T0 + i * 1000, "begin_ns": t.T0 + i * 1000, "device": 0, "free_bytes": 1 << 40, "total_bytes": 1 << 41,
                  "used_bytes": 1 << 40, "process_bytes": 4096, "processes": [[i * 64 + k, 4096] for k in range(64)]} for i in range(n // 10)],
        mallocs(10))


def communicators(folder, n):
    one(folder, [{"def": "communicator", "handle": i + 1, "rank": 0, "world_size": 1, "device": 0, "name": "c%d" % i, "ns": t.T0}
                 for i in range(n)], mallocs(10))


def modules(folder, n):
    maps = [{"def": "module", "base": i << 20, "end": (i + 1) << 20, "path": "/nowhere/lib%d.so" % i, "build_id": "aa", "ns": t.T0}
            for i in range(1, n + 1)]
    maps += [{"def": "native_stack", "id": i, "pcs": struct.pack("<2Q", (i << 20) + 8, ((i // 2 + 1) << 20) + 8)} for i in range(1, n + 1)]
    one(folder, maps, mallocs(n, native=list(range(1, n + 1)), caller=[(i << 20) + 8 for i in range(1, n + 1)]))


def live(folder, n):
    one(folder, [], mallocs(10 * n))


def threads(folder, n):
    one(folder, [{"def": "thread", "id": i, "tid": 1000 + i, "name": "t%d" % i, "ns": t.T0} for i in range(1, n // 10)],
        b"".join(t.Thread(i).events(2, api=[t.MALLOC, t.FREE], kind=[1, 11], duration_ns=1, address=i << 16, bytes=[4096, 0])
                 for i in range(1, n // 10)))


def damage(folder, n):
    """Indexes that claim more than any frame has."""
    t.write(os.path.join(folder, "rank-00000-100.msgpack.zst"), t.header(), big_index() * n, t.footer())


def big_index():
    index = t.INDEX.pack(0x184D2A5C, 56, t.BLOCK, 1, 1, 3, 1, 1 << 30, 0, 0, 0)
    return index[:56] + struct.pack("<Q", t.check(index))


def links(folder, n):
    one(folder, [], mallocs(10))
    for i in range(n // 1000):
        os.symlink(".", os.path.join(folder, "l%d" % i))


def suppressions(folder, n):
    """A pattern of many stars against names that nearly match."""
    one(folder, [{"def": "frame", "id": 1, "function": "a" * 60, "file": "/x/" + "a" * (n // 100) + ".py", "line": 1},
                 {"def": "python_stack", "id": 1, "frames": [1]}], mallocs(10, python=1))
    with open(os.path.join(folder, "supp"), "w") as file:
        file.write("leak:" + "a*" * 12 + "b\n")


def cost(make, n):
    folder = tempfile.mkdtemp(prefix="stormlog-growth-")
    try:
        make(folder, n)
        extra = ["--suppressions", os.path.join(folder, "supp")] if make is suppressions else []
        with subprocess.Popen([ANALYZE, "-q", "-j", "1", "-o", os.path.join(folder, "o"), *extra, folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = status
        if os.WIFSIGNALED(status):
            return math.inf, 0
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss
    finally:
        shutil.rmtree(folder)


def main():
    failed = []
    print("%-15s %10s %10s %9s %9s" % ("", LARGEST // 10, LARGEST, "exponent", "MB"))
    for make in stacks, labels, runs, files, segments, pids, communicators, modules, live, threads, damage, links, suppressions:
        base, small, (large, memory) = cost(make, LARGEST // 1000)[0], cost(make, LARGEST // 10)[0], cost(make, LARGEST)
        net = [max(small - base, LEAST_SECONDS / 10), max(large - base, LEAST_SECONDS / 10)]
        exponent = math.log10(net[1] / net[0]) if net[1] > LEAST_SECONDS else 0
        print("%-15s %9.2fs %9.2fs %9.2f %9d" % (make.__name__, small, large, exponent, memory >> 10), flush=True)
        if exponent > EXPONENT_MAX:
            failed.append(make.__name__)
    if failed:
        print("more than n log n:", ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
