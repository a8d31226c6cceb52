# SPDX-License-Identifier: MIT
"""Compares answers with golden ones: numbers to 1e-9; prose is not compared."""
import json
import math
import subprocess
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent / "stormlog"
PROSE = {"description", "remediation", "notes", "title"}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def differences(got, want, path=""):
    """A list of 'where: what'; empty when the two are the same."""
    if isinstance(want, dict) and isinstance(got, dict):
        out = [f"{path}.{k}: unexpected" for k in got if k not in want and k not in PROSE]
        for k in want:
            if k in PROSE:
                continue
            out += differences(got[k], want[k], f"{path}.{k}") if k in got else [f"{path}.{k}: missing"]
        return out
    if isinstance(want, list) and isinstance(got, list):
        if len(got) != len(want):
            return [f"{path}: {len(got)} items, not {len(want)}"]
        return [d for i, (g, w) in enumerate(zip(got, want)) for d in differences(g, w, f"{path}[{i}]")]
    if isinstance(want, bool) or isinstance(got, bool) or want is None or got is None:
        return [] if got is want else [f"{path}: {got!r}, not {want!r}"]
    if isinstance(want, (int, float)) and isinstance(got, (int, float)):
        if isinstance(want, int) != isinstance(got, int):
            return [f"{path}: {got!r} is of another type than {want!r}"]
        same = got == want or math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-12)
        return [] if same else [f"{path}: {got!r}, not {want!r}"]
    return [] if got == want else [f"{path}: {got!r}, not {want!r}"]


def run(*command, **keywords):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, **keywords)
