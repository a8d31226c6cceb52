# SPDX-License-Identifier: MIT
"""With the tables of another version: no stack, no crash, and a reason.

wrong_tables.py PROBE_WRONG.so
"""
import os
import subprocess
import sys

MINORS = range(9, 16)
# 3.9 and 3.10 differ in the place of the instruction's index alone: lines would be wrong, which is why the version
# chooses the table and the check comes second.
ALIKE = {(9, 10), (10, 9)}


def capture_with_the_tables_in_the_environment():
    from stackprobe import PYTHON, describe, free

    def recurse(n):
        return recurse(n - 1) if n else free.probe_capture(PYTHON)

    free.probe_start(PYTHON, 100)
    captured = {recurse(n) for n in range(30)}
    print(describe())
    return captured != {0}


def main():
    own = sys.version_info[1]
    if own not in MINORS:
        return 0
    failed = 0
    for minor in MINORS:
        environment = dict(os.environ, STORMLOG_TEST_MINOR=str(minor))
        run = subprocess.run([sys.executable] + sys.argv, env=environment, stdout=subprocess.PIPE)
        said = run.stdout.decode().strip()
        # "no stack so far": what should be a thread's frames looks empty to these tables
        refused = any(word in said for word in ("refused", "not supported", "no stack so far"))
        right = run.returncode == 1 if minor == own else run.returncode == 0 and refused
        if not right and not (run.returncode == 1 and (own, minor) in ALIKE):
            failed += 1
            print("not ok 3.%d with the tables of 3.%d: exit %d, %s" % (own, minor, run.returncode, said))
    print("%s: %d wrong tables believed" % (sys.version.split()[0], failed))
    return failed != 0


sys.exit(capture_with_the_tables_in_the_environment() if "STORMLOG_TEST_MINOR" in os.environ else main())
