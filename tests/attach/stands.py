# SPDX-License-Identifier: MIT
"""stands.py CALLS THREADS: allocates through ctypes from changing call stacks, and writes down each Python stack by sys._getframe.

Waits for a file `go`.  Each thread writes stands-TID: a line for each call, [[function, file, line], ...].  Runs in the interpreter under
test: 3.9 syntax, standard library only."""
import ctypes
import functools
import json
import os
import random
import sys
import threading
import time

cuda = ctypes.CDLL("libcudart.so.12")
QUALNAME = sys.version_info >= (3, 11)
DEPTH = 128  # frames that are taken
local = threading.local()


def where(frame):
    out = []
    while frame and len(out) < DEPTH:
        out.append((frame.f_code.co_qualname if QUALNAME else frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return out


def allocate():
    block = ctypes.c_void_p()
    local.stands.append(where(sys._getframe())); cuda.cudaMalloc(ctypes.byref(block), 512)
    cuda.cudaFree(block)


def deep(n):
    if n:
        return deep(n - 1)
    allocate()


def generate(n):
    allocate()
    if n:
        yield from generate(n - 1)
    yield n


class Thing:
    @property
    def value(self):
        allocate()
        return 1

    def __lt__(self, other):
        allocate()
        return False

    def __del__(self):
        allocate()


def made(choice):
    """Code that is compiled, run and freed, so that the next code has its addresses."""
    space = {"allocate": allocate}
    lines = "\n" * choice.randrange(50)
    exec(compile("def f():\n%s\tallocate()\n\tallocate()\nf()\n" % lines, "<made %d>" % choice.randrange(5), "exec"), space)


def crowd(choice):
    """Frees up to 2000 code objects between two calls, so many that stormlog-attach counts some together with live ones."""
    allocate()
    crowd = [allocate.__code__.replace(co_firstlineno=1 + line) for line in range(choice.randrange(2000))]
    del crowd
    allocate()


def later(choice):
    """Calls in a generator, whose frame outlives calls, and in a method that the interpreter calls from C."""
    list(generate(choice.randrange(6)))
    sorted([Thing(), Thing()])


def multi(
    choice,
):
    functools.reduce(
        lambda a, b: allocate(), [
            1,
            2,
        ],
    )
    Thing().value


WAYS = [lambda choice: allocate(), lambda choice: deep(choice.randrange(30)), lambda choice: deep(choice.randrange(200)), made, crowd, later, multi,
        lambda choice: [allocate() for _ in range(2)], lambda choice: eval("allocate()")]


def work(calls, seed):
    choice = random.Random(seed)
    local.stands = []
    while len(local.stands) < calls:
        choice.choice(WAYS)(choice)
    with open("stands-%d" % threading.get_native_id(), "w") as file:
        for stand in local.stands:
            file.write(json.dumps(stand) + "\n")


def come_and_go(stop):
    """Threads that live for a moment, so that Python's thread states are freed and used again."""
    while not stop.is_set():
        threads = [threading.Thread(target=time.sleep, args=(0.001,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main(calls, count):
    open("made", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    stop = threading.Event()
    others = threading.Thread(target=come_and_go, args=(stop,))
    others.start()
    threads = [threading.Thread(target=work, args=(calls, seed)) for seed in range(1, count)]
    for thread in threads:
        thread.start()
    work(calls, 0)
    for thread in threads:
        thread.join()
    stop.set()
    others.join()
    open("done", "w").close()
    while not os.path.exists("end"):
        time.sleep(0.01)
    os._exit(0)  # objects that still live would make calls in __del__, which nothing compares


main(int(sys.argv[1]), int(sys.argv[2]))
