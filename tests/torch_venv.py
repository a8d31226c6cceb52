# SPDX-License-Identifier: MIT
"""The environment of scripts/torch-venv, for tests of PyTorch and of other packages of PyPI.  STORMLOG_DRY_PYTHON names another interpreter."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stormlog")
HAS = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"


def find(*modules):
    """The interpreter, if there is one with these modules."""
    found = os.environ.get("STORMLOG_DRY_PYTHON") or subprocess.run(
        [os.path.join(ROOT, "scripts", "torch-venv"), "--where"], stdout=subprocess.PIPE, text=True).stdout.strip()
    return None if not found or subprocess.run([found, "-c", HAS, *modules]).returncode else found


def python(*modules):
    """As find().  Where there is none the test is skipped."""
    found = find(*modules)
    if not found:
        print("skipped: no Python with", *modules, "here: scripts/torch-venv fetches it")
        sys.exit(77)
    return found


def stand_ins(build, folder):
    """Links in the folder by which PyTorch without NVIDIA's libraries is imported outside of a dry run too; it finds no device."""
    with open(os.path.join(build, "dry", "libraries.def")) as file:
        for soname, name in re.findall(r'^LIBRARY\("(.*?)", "(.*?)"\)', file.read(), re.M):
            os.symlink(os.path.join(build, "dry", name), os.path.join(folder, soname))
