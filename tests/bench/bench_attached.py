#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""bench_attached.py BUILD [ROUNDS [GADGETS]]: CPU time that a call adds in the calling thread when it is watched from outside: by stormlog-attach,
by bpftrace with scripts like those of such tools (sizes by thread, sums by process; the same by user stack), and by Inspektor Gadget's own
programs, compiled into the folder GADGETS as top_cuda_memory.o and profile_cuda.o (doc/attach.md).  Needs root; prints medians."""
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = """uprobe:{lib}:cudaMalloc { @bytes[tid] = arg1; }
uretprobe:{lib}:cudaMalloc { if (retval == 0) { @all[%s] = sum(@bytes[tid]); } delete(@bytes[tid]); }
uprobe:{lib}:cudaFree { @freed[pid] = count(); }
uretprobe:{lib}:cudaFree { @done[pid] = count(); }
BEGIN { printf("ready\\n"); }"""
BPFTRACE = ["bpftrace", "-p", "{pid}", "-e"]
GADGET = ["{build}/tests/bench/bench_gadget"]
WAYS = {"bpftrace, sums by process": [*BPFTRACE, SIZES % "pid"],
        "bpftrace, sums by stack": [*BPFTRACE, SIZES % "pid, ustack"],
        "gadget top_cuda_memory": [*GADGET, "{gadgets}/top_cuda_memory.o", "{lib}", "{pid}", "cudaMalloc=cudaMalloc", "cudaFree=cudaFree"],
        "gadget profile_cuda": [*GADGET, "{gadgets}/profile_cuda.o", "{lib}", "{pid}", "cuMemAlloc_v2=cudaMalloc"],
        "stormlog-attach": ["{build}/attach/stormlog-attach", "-o", "{folder}", "{pid}"]}


def begin(command, **names):
    for name, value in names.items():
        command = [word.replace("{%s}" % name, str(value)) for word in command]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in watcher.stdout:
        if line == "ready\n":
            time.sleep(0.5)  # bpftrace says that it has begun before its last probe is set
            return watcher
    sys.exit("%s does not start" % command[0])


def run(build, gadgets, command):
    """ns of a call in the calling thread"""
    with tempfile.TemporaryDirectory() as folder:
        program = subprocess.Popen([os.path.join(build, "tests", "bench", "bench_calls"), "1", "20000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "tests", "bench"), BENCH_WAIT="1"))
        time.sleep(0.3)  # its libraries are loaded
        lib = os.path.realpath(os.path.join(build, "tests", "bench", "libcuda.so.1"))
        watcher = begin(command, build=build, gadgets=gadgets, pid=program.pid, lib=lib, folder=folder) if command else None
        said = program.communicate("\n")[0].split()
        if watcher:
            watcher.send_signal(signal.SIGINT)
            watcher.communicate()
        return float(said[0])


def main():
    build, rounds, gadgets = (sys.argv[1:] + ["5", ""][len(sys.argv) - 2:])[:3]
    ways = {name: command for name, command in WAYS.items() if gadgets or "{gadgets}" not in " ".join(command)}
    found = {name: [] for name in ["absent", *ways]}
    for _ in range(int(rounds)):
        for name in found:
            found[name].append(run(os.path.abspath(build), os.path.abspath(gadgets), ways.get(name)))
    print("%s rounds: ns a call, added in the calling thread" % rounds)
    for name in ways:
        print("%-28s %7.0f" % (name, statistics.median(mine - base for mine, base in zip(found[name], found["absent"]))))


if __name__ == "__main__":
    main()
