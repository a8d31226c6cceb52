# SPDX-License-Identifier: MIT
"""The formats that `stormlog-analyze export` knows, as its help lists them."""
import re
import subprocess


def of(analyze):
    shown = subprocess.run([analyze, "export", "--help"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^  ([a-z][\w-]*)  +\S", shown, re.M)
    if "csv" not in found:
        raise AssertionError("the help lists no formats: " + shown)
    return found
