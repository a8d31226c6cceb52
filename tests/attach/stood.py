#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stood.py CALLS: allocates through ctypes from changing call stacks, and writes down each native stack by glibc's backtrace.

Waits for a file `go`.  Each thread writes stood-TID: a line of addresses for each call.  One line calls both backtrace and cudaMalloc, so
that both have the same native frames.  Runs in the interpreter under test: 3.9 syntax, standard library only."""
import ctypes
import functools
import os
import random
import sys
import threading
import time

cuda, libc = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libc.so.6")
DEPTH = 256
local = threading.local()


def allocate():
    pcs, block, count = (ctypes.c_void_p * DEPTH)(), ctypes.c_void_p(), 0
    for function, first, second in ((libc.backtrace, pcs, DEPTH), (cuda.cudaMalloc, ctypes.byref(block), 512)):
        answer = function(first, second)
        count = count or answer
    local.stood.append(pcs[:count])
    cuda.cudaFree(block)


def deep(n):
    return deep(n - 1) if n else allocate()


class Thing:
    def __lt__(self, other):
        allocate()
        return False

    def __call__(self):
        allocate()


WAYS = [lambda choice: deep(choice.randrange(12)), lambda choice: sorted([Thing(), Thing()]), lambda choice: Thing()(),
        lambda choice: functools.reduce(lambda a, b: deep(choice.randrange(3)), [1, 2, 3]), lambda choice: list(map(deep, [1, 2]))]


def work(calls, seed):
    choice = random.Random(seed)
    local.stood = []
    while len(local.stood) < calls:
        choice.choice(WAYS)(choice)
    if os.path.exists("go"):
        with open("stood-%d" % threading.get_native_id(), "w") as file:
            for pcs in local.stood:
                file.write(" ".join("%x" % pc for pc in pcs) + "\n")


work(500, 0)  # warms up: at first the interpreter specializes its instructions, even between the two calls
open("made", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
threads = [threading.Thread(target=work, args=(int(sys.argv[1]), seed)) for seed in (1, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
open("done", "w").close()
while not os.path.exists("end"):
    time.sleep(0.01)
os._exit(0)
