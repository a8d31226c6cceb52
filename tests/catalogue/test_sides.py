#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze diff of two queries of the catalogue gives the same differences as diff of the runs' traces."""
import json
import os
import unittest

from test_runs import Catalogue


class Sides(Catalogue):
    def differences(self, *arguments):
        found = json.loads(self.ask("diff", "--json", *arguments))
        return found, {(d["of"], d["key"]): d for d in found["differences"]}

    def path(self, name):
        return os.path.join(self.runs, name)

    def test_a_query_is_its_newest_runs(self):
        truth = {name: self.record(name, peak, leak, file="train.py")[0]
                 for name, peak, leak in (("a1", 100, 4), ("a2", 104, 4), ("b1", 300, 8), ("b2", 310, 8))}
        self.list(self.runs)
        by_query, of_query = self.differences("run:a", "run:b")
        by_path, of_path = self.differences(self.path("a1"), self.path("a2"), "--", self.path("b1"), self.path("b2"))
        self.assertEqual((by_query["before"], by_query["after"], by_query["runs_before"]), (["a2", "a1"], ["b2", "b1"], 2))
        self.assertEqual(set(of_query), set(of_path))
        for key, difference in of_path.items():
            for part in ("change", "change_bytes", "before", "after"):
                self.assertEqual(of_query[key][part], difference[part], (key, part))
        peaks = {name: max(row.peak_bytes for row in process.memory.values()) for name, process in truth.items()}
        peak = of_query[("total", "peak")]
        self.assertEqual((peak["change"], peak["before"]["min_bytes"], peak["after"]["max_bytes"]), ("more", peaks["a1"], peaks["b2"]))
        newest, _ = self.differences("--newest", "1", "run:a", self.path("b1"))
        self.assertEqual((newest["before"], newest["after"]), (["a2"], [self.path("b1")]))
        text = self.ask("diff", "run:a", "run:b")
        self.assertRegex(text, r"(?s)^MORE   peak 100 MiB \.\. 104 MiB -> 300 MiB \.\. 310 MiB, .*\n\nTOTALS\n.*\n\nbefore  a2\n +a1\nafter   b2\n +b1\n$")

    def test_events_that_a_run_lost_are_said_as_of_a_path(self):
        for name in "a1", "b1":
            self.record(name)
        self.lose_events("b1")
        self.list(self.runs)
        for side in "run:b", self.path("b1"):
            found, _ = self.differences("run:a", side)
            self.assertEqual([(part["side"], part["path"], part["damaged"]) for part in found["incomplete"]], [("after", "b1" if side == "run:b" else side, True)])
        self.assertIn("incomplete: after, b1: events: 3 were lost, so less is known than happened", self.ask("diff", "run:a", "run:b"))

    def test_what_cannot_be_compared_is_said(self):
        self.record("a1")
        self.ask("diff", "run:a", "run:b", code=2)  # no catalogue yet
        self.assertFalse(os.path.exists(self.catalogue))
        self.list(self.runs)
        self.ask("diff", "run:a", "run:b", code=2)
        self.assertIn("run:b: no such path, and no run", self.said)
        self.ask("diff", "run:a", "peek>1", code=2)
        self.assertIn("did you mean peak", self.said)
        self.ask("diff", "--html", self.path("x.html"), "run:a", "run:a", code=2)
        self.ask("diff", self.path("a1"), "no/such", code=2)


if __name__ == "__main__":
    unittest.main()
