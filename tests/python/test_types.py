#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The package is typed: mypy --strict, where it is installed, has nothing to say."""
import os
import subprocess
import sys
import tempfile

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode:
    print("skipped: python3 -m mypy is not installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as cache:
    sys.exit(subprocess.run([sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", cache, "stormlog_native"], cwd=PYTHON).returncode)
