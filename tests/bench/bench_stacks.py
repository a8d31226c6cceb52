# SPDX-License-Identifier: MIT
"""ns for each stack once caches are warm, by depth, beside the cost of other ways to get one.

bench_stacks.py PROBE.so; run by the interpreter to be measured.
"""
import ctypes
import os
import random
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../agent/stacks"))
from stackprobe import NATIVE, PYTHON, definitions, describe, free, held

CLOCK, BACKTRACE, UNWIND, TURNS = 0, 4, 8, 16
free.probe_bench.restype = ctypes.c_double
free.probe_bench_deep.restype = ctypes.c_double
held.probe_time.restype = ctypes.c_double


def python_depth(depth, what, calls):
    frame, here = sys._getframe(), 0
    while frame:
        frame, here = frame.f_back, here + 1
    return down(depth - here - 1, what, calls)


def down(left, what, calls):
    return free.probe_bench(what, calls) if left <= 0 else down(left - 1, what, calls)


# Functions that call one another by a path of their numbers: each path is another stack.
exec("".join("def step%d(path, what):\n    return table[path[0]](path[1:], what) if path else held.probe_time(what)\n" % i for i in range(16)))
table = [globals()["step%d" % i] for i in range(16)]


def in_turns(frames, stacks, visits):
    """The median cost of a stack when it differs each time; the interpreter runs a new path of `frames` frames before each."""
    paths = [[random.randrange(16) for _ in range(frames - 4)] for _ in range(stacks)]
    took = {what: [] for what in (CLOCK, PYTHON)}
    for _ in range(visits):
        for what, times in took.items():
            times.append(table[0](random.choice(paths), what))
    return statistics.median(took[PYTHON]) - statistics.median(took[CLOCK]) + free.probe_bench(CLOCK, 2000)


def row(name, ns):
    print("  %-44s %8.1f ns" % (name, ns))


def main():
    free.probe_start(PYTHON | NATIVE, 200)
    free.probe_capture(PYTHON | NATIVE)
    print("  %s; %s" % (sys.version.split()[0], describe()))
    row("floor: clock_gettime", free.probe_bench(CLOCK, 2000))
    for depth in (1, 10, 30, 100):
        row("Python stack, %d frames" % depth, python_depth(depth, PYTHON, 500))
    row("200 Python stacks of 30 frames in turns", in_turns(30, 200, 20000))
    for depth in (0, 10, 20, 50):
        number = free.probe_capture(NATIVE) >> 32
        base = len(definitions.read()["native_stack"][number]["pcs"]) // 8
        ns = free.probe_bench_deep(NATIVE, 500, depth)
        row("native stack, %d frames" % (base + depth), ns)
        row("  in turns with another, inner frames differ", free.probe_bench_deep(TURNS, 500, depth))
        row("  unw_backtrace alone, same", free.probe_bench_deep(UNWIND, 500, depth))
        row("  glibc backtrace(), same", free.probe_bench_deep(BACKTRACE, 100, depth))
    row("both, 30 Python frames", python_depth(30, PYTHON | NATIVE, 500))


main()
