#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Why programs of PyTorch ran out of memory over tests/sim, or in a dry run: causes/NAME has the program, its recording, and `words` as those of
tests/real-gpu.

    test_causes.py ANALYZE"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CAUSES = Path(__file__).resolve().parent / "causes"
LINES = 30
wrong = []
for case in sorted(CAUSES.iterdir()):
    with tempfile.TemporaryDirectory(prefix="stormlog-causes-") as folder:
        shutil.copy(case / "rank-00000.msgpack.zst", folder)
        text = subprocess.run([sys.argv[1], folder], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"}).stdout
    screen = " ".join(" ".join(text.splitlines()[:LINES]).split())
    for word in (case / "words").read_text().splitlines():
        if bool(re.search(word[2:], screen)) != (word[0] == "+"):
            wrong.append(f"{case.name} {'lacks' if word[0] == '+' else 'has'} {word[2:]}\n{text}")
print("\n".join(wrong) or "each cause is told")
sys.exit(bool(wrong))
