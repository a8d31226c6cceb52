#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The most memory that a program had.  A process of its own starts it: a child begins with the memory of its parent, and ours is large."""
import resource
import subprocess
import sys
import tempfile


def run(argv, **how):
    """The program that has ended, as subprocess.run has it, and the most KiB that it had."""
    with tempfile.NamedTemporaryFile("r") as told:
        done = subprocess.run([sys.executable, "-I", "-S", __file__, told.name, *argv], **how)
        done.returncode, most = map(int, told.read().split())
        return done, most


if __name__ == "__main__":
    code = subprocess.run(sys.argv[2:]).returncode
    with open(sys.argv[1], "w") as file:
        print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=file)
