#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench_asleep.py BUILD [ROUNDS [THREADS]]: CPU time of a call in the calling threads and in the writer, with the agent absent, asleep and
awake.  Each round runs each of them once, so that other load on the machine hits all alike.  Prints medians, and the paired ratio to awake."""
import os
import statistics
import subprocess
import sys
import tempfile

WAYS = {"absent": None, "asleep": {"STORMLOG_ASLEEP": "1"}, "awake": {}, "awake, no stacks": {"STORMLOG_STACKS": "none"}}


def run(build, threads, settings):
    """(ns of a call in the calling threads, ns in all other threads)"""
    with tempfile.TemporaryDirectory() as traces:
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "tests", "bench"), STORMLOG_DIR=traces)
        if settings is not None:
            env.update(settings, LD_PRELOAD=os.path.join(build, "agent", "libstormlog_preload.so"))
        said = subprocess.run([os.path.join(build, "tests", "bench", "bench_calls"), str(threads), "400000"], env=env, check=True,
                              capture_output=True, text=True).stdout.split()
        return float(said[0]), float(said[1])


def main():
    build, rounds, threads = sys.argv[1], int((sys.argv + [""] * 2)[2] or 9), int((sys.argv + [""] * 3)[3] or 1)
    found = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, settings in WAYS.items():
            found[way].append(run(build, threads, settings))
    absent, awake = found["absent"], found["awake"]
    print("%d threads, %d rounds: ns a call, added in the calling threads; in the writer; of both, relative to awake" % (threads, rounds))
    for way in list(WAYS)[1:]:
        added = [mine[0] - base[0] for mine, base in zip(found[way], absent)]
        writer = [mine[1] - base[1] for mine, base in zip(found[way], absent)]
        ratio = [(mine[0] + mine[1] - base[0] - base[1]) / (full[0] + full[1] - base[0] - base[1])
                 for mine, base, full in zip(found[way], absent, awake)]
        print("%-18s %6.1f %6.1f %6.2f" % (way, statistics.median(added), statistics.median(writer), statistics.median(ratio)))


if __name__ == "__main__":
    main()
