#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""comings.py [COUNT [SECONDS]]: attaches to a program and detaches again, COUNT times or for SECONDS.  The program has two threads that call
without a pause.  Each trace must be complete, hold calls, and say how many were lost.  The program must end and print as it does when it
is not watched."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import stormlog_trace


def look(folder):
    """One attachment.  Returns the number of calls, of calls lost, and what is wrong."""
    trace, = stormlog_trace.open_folder(folder)
    events = trace.events()
    calls = len(events["api"]) if events else 0
    wrong = list(trace.damage) + ([] if calls else ["no calls"])
    footer = [footer["how"] for footer in trace.defs.get("footer", [])]
    return calls, sum(gap["count"] for gap in trace.defs.get("gap", [])), wrong + ([] if footer == ["detached"] else ["footer %s" % footer])


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 600
    environment = dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_LATENCY="50000", SIM_DIR="/dev/shm/stormlog-comings-%d" % os.getpid())
    child = subprocess.Popen([os.path.join(e2e.APPS, "kill_me"), "2"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.readline()
    folder, done, calls, lost, bad, end = environment["SIM_DIR"] + "-traces", 0, 0, 0, [], time.monotonic() + seconds
    while done < count and time.monotonic() < end and child.poll() is None:
        said = subprocess.run([e2e.ATTACH, "--duration", "0.05", "-o", folder, str(child.pid)], capture_output=True, text=True, timeout=120)
        if said.returncode:
            bad.append(said.stderr)
        else:
            seen, gone, wrong = look(folder)
            calls, lost, bad = calls + seen, lost + gone, bad + wrong
        shutil.rmtree(folder, ignore_errors=True)
        done += 1
    alive = child.poll() is None
    child.kill()
    said = child.communicate()
    shutil.rmtree(environment["SIM_DIR"], ignore_errors=True)
    print("%d attachments, %d calls seen, %d said to be lost, %d wrong; the program %s and said %r" % (
        done, calls, lost, len(bad), "ran on" if alive else "ended", b"".join(said)))
    print(*sorted(set(map(str, bad))), sep="\n")
    return bool(bad) or not alive


if __name__ == "__main__":
    sys.exit(main())
