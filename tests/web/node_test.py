#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""node_test.py SOURCE WORK: runs the tests of the page's modules with node in WORK, where npm put their packages."""
import pathlib
import shutil
import subprocess
import sys

source, work = map(pathlib.Path, sys.argv[1:])
for name in ("src", "test"):
    shutil.copytree(source / name, work / "tested" / name, dirs_exist_ok=True)
tests = sorted(map(str, (work / "tested/test").glob("*.test.js")))
sys.exit(subprocess.run([shutil.which("node"), "--test", *tests], cwd=work / "tested").returncode)
