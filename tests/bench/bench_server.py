#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""bench_server.py STORMLOG_SERVER SEED_STORE [RUNS [SECONDS]]: a server of 10 000 runs while packs are uploaded and people search.

Prints the processor time of requests that come one after the other, which other load on the machine changes little; then for each kind of
request the 50th and 99th percentile of its time under load, how much was uploaded, and the largest resident size of the server.
"""
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from served import Server, make_pack, name_of  # noqa: E402

PROGRAM, SEED = map(os.path.abspath, sys.argv[1:3])
RUNS = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
SECONDS = float(sys.argv[4]) if len(sys.argv) > 4 else 20
READERS, UPLOADS_A_SECOND, PROCESSES = 50, 20, 5


def asks(dice):
    """Kinds of requests as people make them: mostly searches."""
    project, place = dice.randrange(40), dice.randrange(100)
    return dice.choice([("search", f"project:project-{project}"), ("search", f"function:forward_{project}_{place}"), ("search", f"model_{place}.py peak>22G"),
                        ("search", f"train_{place} branch:main"), ("names", f"forward_{project}"), ("landing", ""), ("trend", f"project=project-{project}")])


def path_of(kind, text):
    quoted = urllib.parse.quote(text)
    return {"search": f"/search?limit=50&q={quoted}", "names": f"/api/v1/names?begins={quoted}", "landing": "/",
            "trend": f"/api/v1/history?field=peak&q={quoted}"}[kind]


def reader(server, number, times, ends):
    dice, connection = random.Random(number), server.connect()
    while not ends.is_set():
        kind, text = asks(dice)
        began = time.monotonic()
        connection.request("GET", path_of(kind, text), headers={"Authorization": "Bearer " + server.reads})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, (answer.status, kind, text)
        times.setdefault(kind, []).append(time.monotonic() - began)
        ends.wait(dice.expovariate(1))  # a person reads the answer for about a second


def sender(server, number, times, ends):
    noise, turn = random.Random(number).randbytes(1 << 20), 0
    while not ends.is_set():
        pack = make_pack(number * 1000000 + turn, 32) + noise
        began = time.monotonic()
        status, _, _ = server.put(pack)
        assert status == 201, status
        times.setdefault("upload", []).append(time.monotonic() - began)
        turn += 1
        ends.wait(max(0, 1 - (time.monotonic() - began)))


class Client(Server):
    """The server as another process sees it."""

    def __init__(self, port, reads, writes):
        self.port, self.reads, self.writes = port, reads, writes


def people(port, reads, writes, number):
    """Run a part of the readers and senders in this process."""
    server, times, ends = Client(port, reads, writes), {}, threading.Event()
    threads = [threading.Thread(target=reader, args=(server, n, times, ends)) for n in range(number, READERS, PROCESSES)]
    threads += [threading.Thread(target=sender, args=(server, n, times, ends)) for n in range(number, UPLOADS_A_SECOND, PROCESSES)]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    ends.set()
    for thread in threads:
        thread.join()
    return times


def seconds_of(pid):
    """Seconds of processor time of the server itself and of its ended children."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return [sum(map(int, fields[at:at + 2])) / os.sysconf("SC_CLK_TCK") for at in (11, 13)]


def alone(server, count=1000):
    """Processor seconds of the server, all its threads, by kind of request."""
    dice, connection, clock, times = random.Random(1), server.connect(), ~server.process.pid << 3 | 2, {}  # clock_getcpuclockid
    for _ in range(count):
        kind, text = asks(dice)
        began = time.clock_gettime(clock)
        connection.request("GET", path_of(kind, text), headers={"Authorization": "Bearer " + server.reads})
        connection.getresponse().read()
        times.setdefault(kind, []).append(time.clock_gettime(clock) - began)
    return times


def tell(times, what):
    for kind, taken in sorted(times.items()):
        taken.sort()
        print(f"{kind:8} {len(taken):6} requests  p50 {taken[len(taken) // 2] * 1000:7.1f} ms  p99 {taken[len(taken) * 99 // 100] * 1000:7.1f} ms {what}", flush=True)


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) >> 10


def main():
    with tempfile.TemporaryDirectory(prefix="stormlog-bench-") as folder:
        store = os.path.join(folder, "store")
        os.mkdir(store)
        began = time.monotonic()
        subprocess.run([SEED, os.path.join(store, "catalogue.sqlite"), str(RUNS)], check=True)
        print(f"{RUNS} runs seeded in {time.monotonic() - began:.1f} s, catalogue {os.path.getsize(os.path.join(store, 'catalogue.sqlite')) >> 20} MiB")
        server, times = Server(PROGRAM, store).start(), {}
        tell(alone(server), "of the processor")
        with multiprocessing.Pool(PROCESSES) as pool:  # clients in several processes, so that Python's lock does not slow them
            for part in pool.starmap(people, [(server.port, server.reads, server.writes, number) for number in range(PROCESSES)]):
                for kind, taken in part.items():
                    times.setdefault(kind, []).extend(taken)
        tell(times, "by the clock")
        print(f"uploads {len(times['upload']) / SECONDS:.1f} MiB/s, resident at most {resident(server.process.pid)} MiB")
        own, children = seconds_of(server.process.pid)
        print(f"processor: {own:.1f} s of the server, {children:.1f} s of its children, in {SECONDS:.0f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        stored = len(server.packs())
        assert stored == len(times["upload"]), (stored, len(times["upload"]))
        server.kill()


main()
