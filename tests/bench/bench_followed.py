#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench_followed.py BUILD [PAIRS [CALLS]]: what a follower costs the job: processor time of the calling thread for a call, in ns, with and
without a `monitor` that reads ten times a second.  Prints both figures of each pair, their medians and minima."""
import os
import statistics
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
PAIRS, CALLS = (int(word) for word in (sys.argv[2:] + ["10", "200000"][len(sys.argv) - 2:]))


def nanoseconds(followed):
    with tempfile.TemporaryDirectory() as folder:
        traces = os.path.join(folder, "traces")
        os.mkdir(traces)
        bench = os.path.join(BUILD, "tests", "bench")
        env = dict(os.environ, LD_LIBRARY_PATH=bench, STORMLOG_DIR=traces, LD_PRELOAD=os.path.join(BUILD, "agent", "libstormlog_preload.so"))
        job = subprocess.Popen([os.path.join(bench, "bench_calls"), "1", str(CALLS)], env=env, stdout=subprocess.PIPE, text=True)
        reader = followed and subprocess.Popen([os.path.join(BUILD, "analyzer", "stormlog-analyze"), "monitor", "--format", "csv", "--interval", "0.1", traces],
                                               stdout=subprocess.PIPE, text=True)
        said, _ = job.communicate()
        if followed:
            rows = reader.communicate()[0].splitlines()
            if len(rows) < 3:
                sys.exit("bench_followed.py: the reader saw it %d times" % (len(rows) - 1))
        return float(said.split()[0])


pairs = []
for turn in range(PAIRS):
    first = turn % 2 == 1  # the two alternate in running first
    one = [nanoseconds(first), nanoseconds(not first)]
    pairs.append(one[::-1] if first else one)
    print("alone %7.1f   followed %7.1f" % tuple(pairs[-1]), flush=True)
for name, of in ("median", statistics.median), ("least", min):
    print("%s: alone %.1f, followed %.1f, difference %+.1f ns" % (name, of(a for a, _ in pairs), of(b for _, b in pairs),
                                                                  of(b for _, b in pairs) - of(a for a, _ in pairs)))
print("median of the differences: %+.1f ns" % statistics.median(b - a for a, b in pairs))
