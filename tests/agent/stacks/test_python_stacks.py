#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every CPython at hand: captured stacks are what sys._getframe says.

test_python_stacks.py PROBE.so PROBE_WRONG.so EMBED [--fetched]

Where a suite has the shared libpython too, EMBED runs the tests from that; Debian's programs have the interpreter inside.
Interpreters: STORMLOG_TEST_PYTHONS (words, each PATH or ROOT:PATH inside a chroot), else python3* on PATH and pyenv's.
--fetched: those that fetch_pythons unpacks into STORMLOG_TEST_PYTHONS_PREFIX.
"""
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = ("python_stacks.py", "native_stacks.py", "wrong_tables.py")


def skip(why):
    print("SKIP:", why)
    sys.exit(77)


def is_python(path):
    name = os.path.basename(path)
    return name.startswith("python3") and name[7:].replace(".", "").rstrip("t").isdigit() or name == "python3"


def at_hand():
    if os.environ.get("STORMLOG_TEST_PYTHONS"):
        return os.environ["STORMLOG_TEST_PYTHONS"].split()
    folders = os.environ.get("PATH", "").split(":") + glob.glob(os.path.expanduser("~/.pyenv/versions/3*/bin"))
    found = {}
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "python3*"))):
            # a shim is a script that asks which version is meant
            with open(path, "rb") as f:
                elf = f.read(4) == b"\x7fELF"
            if elf and is_python(path) and os.access(path, os.X_OK):
                found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def fetched():
    prefix = os.environ.get("STORMLOG_TEST_PYTHONS_PREFIX")
    if not prefix:
        skip("set STORMLOG_TEST_PYTHONS_PREFIX=FOLDER to fetch and test the CPythons of Debian 11, 13 and sid (2 GB)")
    if os.getuid():
        skip("only root may chroot into what fetch_pythons unpacks")
    run = subprocess.run([os.path.join(HERE, "fetch_pythons"), prefix], stdout=subprocess.PIPE)
    if run.returncode == 77:
        skip("no Debian mirror can be reached")
    return run.stdout.decode().split()


def shared(python, embed):
    """The same interpreter from its shared library, in the form of the list, where EMBED runs there."""
    root, path = python.split(":")
    shutil.copy(embed, root + "/tmp/embed")
    for library in glob.glob(root + "/usr/lib/*/lib%s.so.1.0" % os.path.basename(path)):
        command = ["/tmp/embed", library[len(root):]]
        if subprocess.run(["chroot", root, *command, "-c", "pass"], capture_output=True).returncode == 0:
            return "%s:%s" % (root, " ".join(command))
    return None


def run(python, script, probe):
    if ":" not in python:
        command = [python, os.path.join(HERE, script), probe]
    else:
        root, path = python.split(":")
        shutil.copy(probe, root + "/tmp/under_test.so")
        for name in SCRIPTS + ("stackprobe.py",):
            shutil.copy(os.path.join(HERE, name), root + "/tmp")
        command = ["chroot", root, *path.split(" "), "/tmp/" + script, "/tmp/under_test.so"]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", MALLOC_PERTURB_="213")  # fresh memory is not zero, so nothing works by luck
    return subprocess.run(command, timeout=600, env=environment).returncode


def main():
    probe, wrong, embed = map(os.path.abspath, sys.argv[1:4])
    pythons = fetched() if "--fetched" in sys.argv else at_hand()
    pythons += filter(None, [shared(python, embed) for python in pythons if ":" in python])
    failed = 0
    if not pythons:
        skip("no python3 here: set STORMLOG_TEST_PYTHONS")
    for python in pythons:
        for script in SCRIPTS[:2] if "/embed" in python else SCRIPTS:  # the last one starts sys.executable
            code = run(python, script, wrong if script == "wrong_tables.py" else probe)
            if code:
                failed += 1
                print("not ok", python, script, "exit", code, flush=True)
    print("%d interpreters, %d runs failed" % (len(pythons), failed))
    return failed != 0


sys.exit(main())
