#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two hosts with different clocks: events are never put in an order that the clocks cannot prove."""
import json
import subprocess
import sys
import tempfile
import unittest

MAKE, ANALYZE = sys.argv[1:3]


def report(*options, ahead=0, meetings=0, width=200, first=5000, second=5700):
    """Rank 2, on the host that is ahead, ran out of memory at `first`, rank 0 at `second` ms."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([MAKE, folder, *map(str, (ahead, meetings, width, first, second))], check=True)
        done = subprocess.run([ANALYZE, "--json", *options, folder], check=True, capture_output=True, timeout=600)
    return json.loads(done.stdout)


def who(found):
    (first,) = [finding for finding in found["findings"] if finding["kind"] == "ranks.first"]
    return first["description"]


class Hosts(unittest.TestCase):
    def test_without_evidence_a_second_is_assumed_and_said(self):
        found = report(ahead=0)
        self.assertEqual(found["run"]["clock_skew"], {"bound_ns": 10**9, "evidence": "assumed", "communicators": 0})
        self.assertRegex(who(found), r"among the first: 1 on other hosts did so within 1\.0 s, by which clocks of hosts may differ \(assumed")

    def test_communicators_that_all_ranks_made_bound_it(self):
        found = report(ahead=300, meetings=3)
        skew = found["run"]["clock_skew"]
        self.assertEqual((skew["evidence"], skew["communicators"]), ("communicators", 3))
        self.assertTrue(300e6 <= skew["bound_ns"] <= 340e6, skew)
        self.assertRegex(who(found), "rank 2 was first; 1 other ran out too")

    def test_what_is_closer_than_the_bound_has_no_order(self):
        """By the clocks rank 0 failed first, but in truth rank 2 did."""
        found = report(ahead=300, meetings=3, first=5000, second=5100)
        self.assertRegex(who(found), r"among the first: 1 on other hosts did so within 3\d\d ms, by which clocks of hosts may differ \(shown by 3 comm")

    def test_clocks_that_differ_by_more_than_is_assumed_are_found_out(self):
        found = report(ahead=5000, meetings=2, first=5000, second=8000)
        self.assertTrue(5e9 <= found["run"]["clock_skew"]["bound_ns"] < 5.3e9)
        self.assertIn("among the first", who(found))
        self.assertTrue([line for line in found["warnings"] if "node-b" in line and "ahead" in line])

    def test_the_user_may_say_it_and_evidence_of_more_wins(self):
        self.assertIn("rank 2 was first", who(report("--clock-skew", "10")))
        found = report("--clock-skew", "10", ahead=300, meetings=3, first=5000, second=5100)
        self.assertEqual(found["run"]["clock_skew"]["evidence"], "communicators")

    def test_calls_that_may_not_have_waited_show_nothing(self):
        self.assertEqual(report(ahead=300, meetings=3, width=60)["run"]["clock_skew"]["evidence"], "assumed")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
