# SPDX-License-Identifier: MIT
"""The wheel's commands: replace this process by stormlog-run or stormlog-analyze."""
import os
import sys

from .recording import program


def _become(name: str) -> None:
    path = program(name)
    os.execv(path, [path] + sys.argv[1:])


def run() -> None:
    _become("stormlog-run")


def analyze() -> None:
    _become("stormlog-analyze")
