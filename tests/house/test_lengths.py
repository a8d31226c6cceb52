#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A file of more than LINES_MAX lines says in its first 40 lines why it is not two: "Longer than other files: ..."."""
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINES_MAX = 700
FOLDERS = ("agent", "analyzer", "common", "doc/examples", "python", "tests", "tools")
WHY = "Longer than other files: "


def long_files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".py", ".js", ".ts") and path.is_file() and "node_modules" not in path.parts:
                lines = path.read_text(errors="replace").splitlines()
                if len(lines) > LINES_MAX:
                    yield path.relative_to(root).as_posix(), lines


class Lengths(unittest.TestCase):
    def test_a_long_file_says_why(self):
        silent = [name for name, lines in long_files(ROOT)
                  if WHY not in "\n".join(lines[:40])]
        self.assertEqual(silent, [], f"split it, or write \"{WHY}...\" in its first comment")


if __name__ == "__main__":
    sys.exit(unittest.main())
