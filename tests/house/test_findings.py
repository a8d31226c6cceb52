#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every finding of the analyzer has an end-to-end test in which it is found, and one in which it must not appear."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [path.read_text() for path in sorted((ROOT / "analyzer" / "analyses").glob("*.c"))]
ROWS = re.findall(r"(?m)^KIND\((\w+), (\w+), (\w+)\)$", (ROOT / "analyzer" / "report" / "found.def").read_text())
OLD = """leak.growing leak.kept label.growing oom.full oom.fragmented oom.too_large oom.neighbour device.neighbour oom.driver oom.unknown
    oom.host host.killed oom.address_space oom.injected memory.no_room memory.retried hidden.place processes.idle_contexts ranks.outlier
    ranks.role ranks.first ranks.stray_context ranks.share_device stray.threads memory.held memory.only_taken memory.collected
    memory.kept_late memory.handles memory.filling memory.overlap memory.spike memory.rising leak.failed_free allocator.arena run.ok
    run.running run.refused snapshot.ok snapshot.held snapshot.empty dry.fits dry.may_fit dry.largest dry.against dry.server
    dry.server_start log.oom log.start log.nearly log.host log.handled log.nothing"""
TESTS = "".join(path.read_text() for path in sorted((ROOT / "tests" / "e2e").glob("test_*.py")))


def findings():
    """The kinds that a member .kind is set to in the sources: a constant, or an entry of a table of constants."""
    found = set()
    for source in SOURCES:
        found |= set(re.findall(r"\.kind = SL_FOUND_(\w+)", source))
        for table in re.findall(r"\.kind = (kinds)\[", source):
            (body,) = re.findall(r"\b%s\[\] = \{(.*?)\};" % table, source, re.S)
            found |= set(re.findall(r"SL_FOUND_(\w+)", body))
    return {"%s.%s" % (family, name) for family, name, _ in ROWS if "%s_%s" % (family, name) in found}


class Findings(unittest.TestCase):
    def test_the_source_names_them(self):
        self.assertLessEqual({"oom.full", "leak.growing", "ranks.first", "label.growing"}, findings())

    def test_a_user_learns_at_most_22_ids_and_each_is_a_kind(self):
        ids = {id for _, _, id in ROWS}
        self.assertLessEqual(len(ids), 22)
        self.assertLessEqual(ids, {"%s_%s" % (family, name) for family, name, id in ROWS if id == "%s_%s" % (family, name)})

    def test_each_is_found_where_it_is_true_and_absent_where_it_is_not(self):
        for method in ("found", "absent"):
            shown = set(re.findall(r'self\.%s\("([^"]+)"' % method, TESTS))
            self.assertEqual(findings() - shown, set(), "without a test that says self.%s" % method)
            self.assertEqual(shown - findings(), set(), "no finding of the analyzer")

    def test_an_id_of_before_they_were_joined_is_explained_for_good(self):
        for old in OLD.split():
            done = subprocess.run([os.path.join(os.environ["STORMLOG_BUILD"], "analyzer", "stormlog-analyze"), "explain", old], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(old, done.stdout.split("\nIds: ")[1].split())


if __name__ == "__main__":
    sys.exit(unittest.main())
