#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fetch.py SOURCE WORK: node_modules of the lock file in WORK, made anew only when the lock file changed."""
import pathlib
import shutil
import subprocess
import sys

source, work = map(pathlib.Path, sys.argv[1:])
work.mkdir(parents=True, exist_ok=True)
lock = (source / "package-lock.json").read_text()
stamp = work / "fetched"
if not stamp.exists() or stamp.read_text() != lock:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, work / name)
    npm = shutil.which("npm") or sys.exit("npm is missing")
    subprocess.run([npm, "ci", "--omit-lockfile-registry-resolved", "--ignore-scripts", "--no-audit", "--no-fund"],
                   cwd=work, check=True, timeout=300, stdout=subprocess.DEVNULL)
    stamp.write_text(lock)
