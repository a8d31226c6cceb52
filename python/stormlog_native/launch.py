# SPDX-License-Identifier: MIT
"""The wheel's commands: replace this process by stormlog-run or stormlog-analyze."""
import os
import sys

from .recording import program


def _become(name: str, **environment: str) -> None:
    path = program(name)
    os.execve(path, [path] + sys.argv[1:], dict(os.environ, **environment))


def run() -> None:
    _become("stormlog-run")


def analyze() -> None:
    fonts = os.path.join(os.path.dirname(__file__), "lib", "fonts.conf")
    if os.path.exists(fonts) and not os.path.exists("/etc/fonts/fonts.conf") and "FONTCONFIG_FILE" not in os.environ:
        _become("stormlog-analyze", FONTCONFIG_FILE=fonts)  # else fontconfig, which draws the pictures' text, complains
    _become("stormlog-analyze")
