#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every finding of the analyzer has an end-to-end test in which it is found, and one in which it must not appear."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [path.read_text() for path in sorted((ROOT / "analyzer" / "analyses").glob("*.c"))]
TESTS = "".join(path.read_text() for path in sorted((ROOT / "tests" / "e2e").glob("test_*.py")))


def findings():
    """The values that a member .id is set to in the sources: a string, or an entry of a table of strings."""
    found = set()
    for source in SOURCES:
        found |= set(re.findall(r'\.id = "([^"]+)"', source))
        for table in re.findall(r"\.id = (\w+)\[", source):
            (body,) = re.findall(r"\b%s\[\] = \{(.*?)\};" % table, source, re.S)
            found |= set(re.findall(r'"([^"]+)"', body))
    return found


class Findings(unittest.TestCase):
    def test_the_source_names_them(self):
        self.assertEqual(sum(source.count(".id = ") for source in SOURCES),
                         sum(len(re.findall(r'\.id = ("|\w+\[)', source)) for source in SOURCES))
        self.assertLessEqual({"oom.full", "leak.growing", "ranks.first", "label.growing"}, findings())

    def test_each_is_found_where_it_is_true_and_absent_where_it_is_not(self):
        for method in ("found", "absent"):
            shown = set(re.findall(r'self\.%s\("([^"]+)"' % method, TESTS))
            self.assertEqual(findings() - shown, set(), "without a test that says self.%s" % method)
            self.assertEqual(shown - findings(), set(), "no finding of the analyzer")


if __name__ == "__main__":
    sys.exit(unittest.main())
