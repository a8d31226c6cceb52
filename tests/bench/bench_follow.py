#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench_follow.py BUILD [RANKS [EVENTS_A_SECOND [SECONDS]]]: the cost of following RANKS processes with so many block events a second each.  Prints the
share of a core for each rank and the resident memory of `monitor`, stormlog-top and stormlog-exporter, which look once a second.  The followed processes
are not asked for anything, so a further rank costs nothing else.  The numbers are in doc/live.md."""
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
import threading
import time

BUILD = os.path.abspath(sys.argv[1])
RANKS, RATE, SECONDS = (int(word) for word in (sys.argv[2:] + ["8", "20000", "20"][len(sys.argv) - 2:]))


def jobs(folder):
    """Start the ranks; keep_me rests after each 1000 events of a thread, so that it makes RATE events a second."""
    rest = str(1000 * 1000000 // RATE)
    for rank in range(RANKS):
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "tests/sim"), LD_PRELOAD=os.path.join(BUILD, "agent/libstormlog_preload.so"),
                   SIM_DIR=folder, SIM_DEVICES=str(RANKS), STORMLOG_DIR=os.path.join(folder, "traces"), STORMLOG_RUN_ID="bench", RANK=str(rank),
                   LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), STORMLOG_KEEP="64M")
        yield subprocess.Popen([os.path.join(BUILD, "tests/apps/keep_me"), os.path.join(folder, "journal-%d" % rank), "1", "0", "stay", rest], env=env)


def spent(pid):
    """Seconds of user and system time; KiB resident now and at most."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")")[-1].split()
    with open("/proc/%d/status" % pid) as file:
        status = file.read()
    return ((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), *(int(re.search(name + r":\s+(\d+)", status)[1]) for name in ("VmRSS", "VmHWM")))


def events(folder):
    """The number of events that all ranks have recorded, by `monitor`."""
    text = subprocess.run([os.path.join(BUILD, "analyzer/stormlog-analyze"), "monitor", "--duration", "0.1", "--format", "csv", folder], capture_output=True,
                          text=True).stdout.splitlines()
    column = text[0].split(",").index("events")
    return sum(int(line.split(",")[column]) for line in text[1:1 + RANKS])


def measure(name, argv, folder):
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (50, 200))
    reader = subprocess.Popen(argv, stdin=end, stdout=end, stderr=subprocess.DEVNULL, env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8"))
    threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(terminal, 65536), b"")], daemon=True).start()
    used = 1
    while used > 0.2:  # of a core: the reader still replays what was recorded before it began
        before = spent(reader.pid)[0]
        time.sleep(1)
        used = spent(reader.pid)[0] - before
    before, begun = spent(reader.pid), time.monotonic()
    time.sleep(SECONDS)
    after, lasted = spent(reader.pid), time.monotonic() - begun
    reader.terminate()
    reader.wait()
    print("%-10s %6.2f %% of a core a rank, %5.1f MiB resident, %5.1f MiB at most" %
          (name, 100 * (after[0] - before[0]) / lasted / RANKS, after[1] / 1024, after[2] / 1024))


def main():
    with tempfile.TemporaryDirectory() as folder:
        running = list(jobs(folder))
        try:
            time.sleep(2)
            traces = os.path.join(folder, "traces")
            first, begun = events(traces), time.monotonic()
            measure("monitor", [os.path.join(BUILD, "analyzer/stormlog-analyze"), "monitor", traces], folder)
            for name, *arguments in ("top", traces), ("exporter", "--listen", "127.0.0.1:0", traces):
                program = os.path.join(BUILD, name, "stormlog-" + name)
                if os.path.exists(program):
                    measure(name, [program, *arguments], folder)
            print("%d ranks, %.0f events a second each" % (RANKS, (events(traces) - first) / (time.monotonic() - begun) / RANKS))
        finally:
            for process in running:
                process.kill()
            for process in running:
                process.wait()


if __name__ == "__main__":
    main()
