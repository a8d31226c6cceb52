#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Peak resident memory of a program.  A small process starts it, because a child's peak begins with its parent's memory, and a test's is large."""
import resource
import subprocess
import sys
import tempfile


def run(argv, **how):
    """Runs a program.  Returns what subprocess.run does, with the program's exit status, and its peak in KiB."""
    with tempfile.NamedTemporaryFile("r") as told:
        done = subprocess.run([sys.executable, "-I", "-S", __file__, told.name, *argv], **how)
        done.returncode, most = map(int, told.read().split())
        return done, most


if __name__ == "__main__":
    code = subprocess.run(sys.argv[2:]).returncode
    with open(sys.argv[1], "w") as file:
        print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=file)
