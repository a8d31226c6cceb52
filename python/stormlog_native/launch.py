# SPDX-License-Identifier: MIT
"""The wheel's commands: stormlog-run and stormlog-analyze in place of this process."""
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
