#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""bench_attached.py BUILD [ROUNDS]: CPU a call adds in the calling thread where it is watched from outside: by stormlog-attach, and by bpftrace
with what tools of that kind do of the same two calls (sizes by thread, sums by process; the same by user stack).  As root; prints medians."""
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = """uprobe:%(lib)s:cudaMalloc { @bytes[tid] = arg1; }
uretprobe:%(lib)s:cudaMalloc { if (retval == 0) { @all[%(key)s] = sum(@bytes[tid]); } delete(@bytes[tid]); }
uprobe:%(lib)s:cudaFree { @freed[pid] = count(); }
uretprobe:%(lib)s:cudaFree { @done[pid] = count(); }
BEGIN { printf("ready\\n"); }"""
WAYS = {"absent": None, "bpftrace, sums by process": "pid", "bpftrace, sums by stack": "pid, ustack", "stormlog-attach": ""}


def begin(build, way, pid, folder):
    if way is None:
        return None
    lib = os.path.realpath(os.path.join(build, "tests", "bench", "libcuda.so.1"))
    command = (["bpftrace", "-p", str(pid), "-e", SIZES % {"lib": lib, "key": way}] if way else
               [os.path.join(build, "attach", "stormlog-attach"), "-o", folder, str(pid)])
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in watcher.stdout:
        if line == "ready\n":
            time.sleep(0.5)  # bpftrace says so before its last probe
            return watcher
    sys.exit("%s does not start" % command[0])


def run(build, way):
    """ns a call in the calling thread"""
    with tempfile.TemporaryDirectory() as folder:
        program = subprocess.Popen([os.path.join(build, "tests", "bench", "bench_calls"), "1", "100000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "tests", "bench"), BENCH_WAIT="1"))
        time.sleep(0.3)  # its libraries are loaded
        watcher = begin(build, way, program.pid, folder)
        said = program.communicate("\n")[0].split()
        if watcher:
            watcher.send_signal(signal.SIGINT)
            watcher.communicate()
        return float(said[0])


def main():
    build, rounds = os.path.abspath(sys.argv[1]), int((sys.argv + [""])[2] or 5) if len(sys.argv) > 2 else 5
    found = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            found[name].append(run(build, way))
    print("%d rounds: ns a call, added in the calling thread" % rounds)
    for name in list(WAYS)[1:]:
        print("%-28s %7.0f" % (name, statistics.median(mine - base for mine, base in zip(found[name], found["absent"]))))


if __name__ == "__main__":
    main()
