#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The table of tests/diagnosis/numbers.md has each number that an analysis or the report defines, beside a program that needs it.  Each name there exists."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"^#define[ \t]+([A-Z][A-Z_0-9]*)[ \t]+(?:\\\n[ \t]*)?[-(]*\d[^A-Z\n]*?(?:/\*.*)?$", re.M)

numbers = {name for files in ("analyses/*.[ch]", "report/*.[ch]", "base/amounts.h") for path in (ROOT / "analyzer").glob(files) for name in NUMBER.findall(path.read_text())}
section = (ROOT / "tests/diagnosis/numbers.md").read_text()
names = set(re.findall(r"`([A-Z_0-9]+)`", section))

wrong = ["%s has no program in tests/diagnosis/numbers.md" % number for number in sorted(numbers - names)]
wrong += ["tests/diagnosis/numbers.md names %s, which no file defines" % name for name in sorted(names - numbers)]
print("\n".join(wrong) or "%d numbers have their program" % len(numbers))
sys.exit(bool(wrong))
