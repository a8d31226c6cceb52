#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""screens.py FOLLOWED TOP PROBE > doc/top.md: writes two views of stormlog-top at 80x24, for four ranks on the simulated GPU."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_top import Terminal, VIEWS, e2e  # takes FOLLOWED, TOP and PROBE

TRAIN = """import ctypes
import os
import time

cuda, c10, rank = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libc10_cuda.so"), int(os.environ["RANK"])
c10.caching_new.restype = ctypes.c_void_p
kept = []


def allocate(mib):
    block = ctypes.c_void_p()
    assert not cuda.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(mib << 20))
    return block


def parameters():
    kept.append(allocate(500))
    kept.extend(c10.caching_new(ctypes.c_size_t(20 << 20)) for _ in range(8))


def checkpoint():
    kept.append(allocate(2))


def step():
    workspace = allocate(40)
    activation = c10.caching_new(ctypes.c_size_t(30 << 20))
    time.sleep(0.05)
    c10.caching_delete(ctypes.c_void_p(activation))
    cuda.cudaFree(workspace)
    if rank == 3:
        checkpoint()


parameters()
while True:
    step()
"""
HEAD = """# The screens of stormlog-top

Two views in a terminal of 80 columns and 24 lines; README has the overview: four ranks on simulated devices of 3 GiB; rank 3 keeps 2 MiB a step. `tests/top/screens.py` captured them from tmux; empty lines below a table are left out.
"""


SHOWN = ("Places", "Findings")


def ranks(run):
    os.mkdir(run.traces)
    script = os.path.join(run.folder, "train.py")
    with open(script, "w") as file:
        file.write(TRAIN)
    env = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
    env.update(LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS, SIM_DIR=os.path.join(run.folder, "sim"), SIM_DEVICES="4", SIM_VRAM="3G",
               LD_PRELOAD=e2e.PRELOAD, STORMLOG_DIR=run.traces, STORMLOG_RUN_ID="screens", WORLD_SIZE="4")
    return [subprocess.Popen(["python3", "train.py"], cwd=run.folder, env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank), CUDA_VISIBLE_DEVICES=str(rank))) for rank in range(4)]


def without_gap(screen):
    lines = [line.rstrip() for line in screen.splitlines()]
    last = len(lines) - 1
    while last and not lines[last - 1]:
        del lines[last - 1]
        last -= 1
    return "\n".join(lines)


def main():
    with e2e.Recording("true", preload=False) as run:
        children = ranks(run)
        try:
            with Terminal(run.traces) as terminal:
                terminal.wait_for("grows at")
                time.sleep(10)
                print(HEAD)
                for number, view in enumerate(VIEWS, 1):
                    if view not in SHOWN:
                        continue
                    print("## %s\n" % view)
                    terminal.keys(str(number))
                    time.sleep(4 if view == "Findings" else 1)
                    print("```\n%s\n```\n" % without_gap(terminal.screen()))
        finally:
            for child in children:
                child.kill()
                child.wait()


if __name__ == "__main__":
    main()
