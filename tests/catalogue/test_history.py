#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze history: the values of the simulator's journal, and the run where they changed."""
import json
import os
import unittest

from test_runs import Catalogue, HERE

PEAKS = [1000] * 12 + [1020] * 3  # MiB that `work` takes: 2 % more from the thirteenth run on


class History(Catalogue):
    def fill(self):
        """Record 15 runs; returns the most that each held, by the journal."""
        truth = []
        for i, peak in enumerate(PEAKS):
            (process,) = self.record("r%02d" % i, peak, 4, "load_batch", file="train.py")
            truth.append(max(row.peak_bytes for row in process.memory.values()))
        self.list(self.runs)
        return truth

    def test_the_run_that_changed_a_quantity_is_named(self):
        truth = self.fill()
        found = json.loads(self.ask("history", "--json", "peak"))
        self.assertEqual([point["value"] for point in found["points"]], truth)
        self.assertEqual([point["run"] for point in found["points"]], ["r%02d" % i for i in range(15)])
        self.assertEqual((found["of"], found["key"], found["unit"], found["unknown"]), ("run", "peak", "bytes", 0))
        (change,) = found["changes"]
        self.assertEqual((change["run"], change["confirmed_by"], change["before"], change["after"]), ("r12", "r13", truth[0], truth[12]))
        self.assertEqual((change["commit"], change["settled"]), (found["points"][12]["commit"], False))

        place = json.loads(self.ask("history", "--json", "load_batch"))
        self.assertEqual((place["of"], [point["value"] for point in place["points"]]), ("stack", truth))
        self.assertIn("load_batch", place["what"])
        self.assertEqual([change["run"] for change in place["changes"]], ["r12"])
        self.assertEqual(json.loads(self.ask("history", "--json", place["key"])), place)

        # a change is named once a second run confirms it, not before
        self.assertEqual(json.loads(self.ask("history", "--json", "peak", "not (run:r13 or run:r14)"))["changes"], [])
        self.assertEqual(len(json.loads(self.ask("history", "--json", "peak", "not run:r14"))["changes"]), 1)
        leak = json.loads(self.ask("history", "--json", "--of", "leak", "remember"))
        self.assertEqual((leak["of"], {point["value"] for point in leak["points"]}, leak["changes"]), ("leak", {4 << 20}, []))

        for what in "peak", "load_batch":
            lines = self.ask("history", what).splitlines()
            self.assertTrue(all(line.isascii() and line.isprintable() for line in lines))
            self.assertRegex(" ".join(lines[-2:]), r"15 runs, .*; 0\.98 GiB \.\. 1\.00 GiB$")
            self.assertRegex("\n".join(lines), r"(?m)^CHANGED  .* 0\.98 GiB -> 1\.00 GiB \(\+2\.0 %\)$")
            self.assertIn("run r12", "\n".join(lines))
            self.assertIn("the next run, r13, agrees", "\n".join(lines))
            self.assertIn("not sure yet: later runs may take it back", "\n".join(lines))
        self.assertNotIn("CHANGED", self.ask("history", "leak"))
        try:
            import jsonschema
        except ImportError:
            return
        with open(os.path.join(HERE, "..", "..", "schemas", "history.schema.json")) as file:
            schema = json.load(file)
        jsonschema.validate(found, schema)
        jsonschema.validate(place, schema)

    def test_bytes_of_a_run_that_lost_events_are_no_points(self):
        """Two runs seem to hold less than the five before them, but that is only what is known of them."""
        for i, peak in enumerate([1000] * 5 + [500] * 2):
            self.record("r%d" % i, peak, 4, "load_batch", file="train.py")
        self.list(self.runs)
        self.assertIn("CHANGED", self.ask("history", "peak"))
        for name in "r5", "r6":
            self.lose_events(name)
        self.list(self.runs)
        for what in "peak", "load_batch":
            found = json.loads(self.ask("history", "--json", what))
            self.assertEqual(([point["run"] for point in found["points"]], found["unknown"], found["changes"]), (["r%d" % i for i in range(5)], 2, []))
            self.assertIn("of 2 more it is not known (2 lost events)", self.ask("history", what))
        self.assertEqual(len(json.loads(self.ask("history", "--json", "oom"))["points"]), 7)
        self.assertEqual(self.ask("history", "peak", "lost>0"), "")
        self.assertIn("no such runs of which it is known (2 lost events)", self.said)

    def test_what_is_not_there_is_said(self):
        self.record("one")
        self.ask("history", "nowhere", self.runs, code=2)
        self.assertIn("is called nowhere", self.said)
        self.ask("history", code=2)
        self.ask("history", "peak", "peek>3", code=2)
        self.assertIn("column 1", self.said)
        self.assertIn("too few runs", self.ask("history", "peak"))
        self.assertEqual(self.ask("history", "peak", "oom>5"), "")
        self.assertIn("no such runs", self.said)


if __name__ == "__main__":
    unittest.main()
