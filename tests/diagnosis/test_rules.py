# SPDX-License-Identifier: MIT
"""The rule of the score over screens and reports that are right, nearly right and wrong; the manifests; the claims about a journal."""
import types
import unittest

import corpus
import rules
import truth

SCREEN = """train.py  pid 7  231 ms  completed

LEAK   gpu.py:5 keeps 1 MiB of every step

  train.py:10  step
  gpu.py:5       alloc                    <- made here

  why    all 200 blocks that gpu.py:5 made were never freed, 200 MiB.

  204  MiB held, at the peak
  200  this leak  gpu.py:5 alloc

also   UNEVEN  rank 3 is unlike the others
next   stormlog-analyze tree --at end traces
report traces/analysis/report.html
"""


def program(cls, *places, noun=None):
    return types.SimpleNamespace(cls=cls, noun=noun, places=lambda: list(places), healthy=cls == "healthy")


class Screen(unittest.TestCase):
    def test_the_place_beside_the_class_word_is_right(self):
        self.assertEqual(rules.on_screen(program("leak", ("train.py", 10)), SCREEN), (True, False))
        self.assertEqual(rules.on_screen(program("leak", ("gpu.py", 5)), SCREEN), (True, True))

    def test_the_place_in_another_block_than_the_class_word_is_wrong(self):
        self.assertEqual(rules.on_screen(program("hidden", ("train.py", 10)), SCREEN), (False, False))

    def test_the_words_may_stand_on_two_lines(self):
        screen = "OUT OF MEMORY\n  requests at train.py:10 step grew, up to 2 at\n      once\n"
        self.assertEqual(rules.on_screen(program("oom-spike", ("train.py", 10)), screen), (True, True))

    def test_a_line_is_not_a_longer_one_nor_a_file_a_longer_one(self):
        self.assertFalse(rules.on_screen(program("leak", ("train.py", 1)), SCREEN)[0])
        self.assertFalse(rules.on_screen(program("leak", ("rain.py", 10)), SCREEN)[0])

    def test_the_noun_must_stand_there_too(self):
        self.assertFalse(rules.on_screen(program("leak", ("train.py", 10), noun="contexts"), SCREEN)[0])
        self.assertTrue(rules.on_screen(program("leak", ("train.py", 10), noun="blocks"), SCREEN)[0])

    def test_what_comes_after_thirty_lines_does_not_count(self):
        self.assertFalse(rules.on_screen(program("leak", ("train.py", 10)), "\n" * 28 + SCREEN)[0])

    def test_every_class_has_an_answer_that_is_right_and_is_not_met_by_a_place_alone(self):
        right = {
            "leak": "LEAK  +1 MiB per step", "oom-growth": "OUT OF MEMORY\n  it grew by 1 MiB a step",
            "oom-spike": "OUT OF MEMORY\n  asked five times what it asked before", "oom-fragmented": "OUT OF MEMORY\n  fragmented: largest piece 5 MiB",
            "oom-neighbour": "OUT OF MEMORY\n  1 GiB  another process", "oom-limit": "OUT OF MEMORY\n  --limit of 2 GiB",
            "spike": "OK   no failed request\n  note  step 77 asked 5 times as much", "rank": "UNEVEN   rank 3 differs", "rank-leak": "GROWS   rank 3 grows by 1 MiB a step",
            "stray": "UNEVEN   3 stray contexts on device 0", "hidden": "HIDDEN  2 GiB",
        }
        self.assertEqual(right.keys(), rules.CLASSES.keys())
        for cls, said in right.items():
            here = program(cls, ("a.py", 3))
            self.assertTrue(rules.on_screen(here, said + "\n    a.py:3 f")[0], cls)
            self.assertFalse(rules.on_screen(here, "HOST MEMORY  1 GiB\n    a.py:3 f\n" + said)[0], cls)


class Report(unittest.TestCase):
    leak = {"severity": "warning", "verdict": "live_at_exit",
            "stack": [{"file": "/x/gpu.py", "line": 5}, {"file": "/x/train.py", "line": 10}]}

    def test_a_place_in_the_stack_of_a_finding_of_the_class_is_right(self):
        report = {"leaks": [self.leak], "findings": []}
        self.assertTrue(rules.in_report(program("leak", ("train.py", 10)), report))
        self.assertFalse(rules.in_report(program("leak", ("train.py", 11)), report))
        self.assertFalse(rules.in_report(program("stray", ("train.py", 10)), report))

    def test_class_and_place_of_two_findings_do_not_add_up(self):
        report = {"findings": [{"id": "leak.growing", "severity": "warning", "stack": []},
                               {"id": "peak", "severity": "info", "stack": self.leak["stack"]}]}
        self.assertFalse(rules.in_report(program("leak", ("train.py", 10)), report))

    def test_what_was_recorded_is_no_finding(self):
        report = {"processes": [{"labels": [{"what": "leak at train.py:10"}]}], "telemetry": {"growth": [{"at": "train.py:10"}]}}
        self.assertFalse(rules.in_report(program("leak", ("train.py", 10)), report))

    def test_a_finding_within_a_process_or_of_a_new_section_counts(self):
        finding = {"class": "leak", "place": {"file": "train.py", "line": 10}}
        self.assertTrue(rules.in_report(program("leak", ("train.py", 10)), {"processes": [{"findings": [finding]}]}))
        self.assertTrue(rules.in_report(program("leak", ("train.py", 10)), {"answers": {"kept": [finding]}}))

    def test_an_id_is_read_as_words(self):
        finding = {"id": "out_of_memory.other_process", "severity": "critical", "stack": self.leak["stack"]}
        self.assertTrue(rules.in_report(program("oom-neighbour", ("gpu.py", 5)), {"findings": [finding]}))


class Healthy(unittest.TestCase):
    def test_alarms_on_the_screen_count_and_information_does_not(self):
        self.assertEqual(len(rules.alarms_on_screen(SCREEN)), 2)
        self.assertEqual(len(rules.alarms_on_screen("OUT OF MEMORY   pid 7\n  asked\n")), 1)
        self.assertEqual(rules.alarms_on_screen("OK   no leak, no failed request\n\n  note   rank 2 grows\n"), [])

    def test_findings_above_information_count_also_within_a_process(self):
        self.assertEqual(len(rules.alarms_in_report({"findings": [{"severity": "warning", "id": "x"}]})), 1)
        self.assertEqual(len(rules.alarms_in_report({"processes": [{"findings": [{"severity": "critical"}]}]})), 1)
        self.assertEqual(rules.alarms_in_report({"leaks": [{"severity": "info"}], "findings": []}), [])

    def test_alerts_of_the_telemetry_do_not_count(self):
        self.assertEqual(rules.alarms_in_report({"telemetry": {"issues": [{"severity": "warning"}]}}), [])


class Manifests(unittest.TestCase):
    def test_each_program_is_well_described(self):
        names = set()
        for half in corpus.HALVES:
            for each in corpus.load(half):
                self.assertNotIn(each.name, names)
                names.add(each.name)
                self.assertTrue(each.healthy or each.cls in rules.CLASSES, each.name)
                self.assertTrue(set(each.truth) <= set(truth.CLAIMS), each.name)
                self.assertTrue(each.truth, each.name)
                if not each.healthy:
                    self.assertTrue(each.places(), each.name)


def process(*effects):
    """(what, address, bytes)..."""
    return types.SimpleNamespace(effects=[types.SimpleNamespace(what=what, kind="device", address=address, bytes=size)
                                          for what, address, size in effects])


class Claims(unittest.TestCase):
    def setUp(self):
        self.kept = process(*[("alloc", at, 8) for at in range(8)], *[("free", at, 8) for at in range(8)])
        self.steady = process(*[(what, 1, 8) for _ in range(8) for what in ("alloc", "free")])

    def test_what_is_kept_until_the_teardown_rises(self):
        claim = {"bytes": [8, 8], "least": 8}
        self.assertIsNone(truth.rising([self.kept], claim))
        self.assertIsNotNone(truth.rising([self.steady], claim))
        self.assertIsNotNone(truth.rising([self.kept], {"bytes": [9, 9], "least": 1}))
        self.assertIsNotNone(truth.rising([self.kept, self.kept], claim))

    def test_what_comes_and_goes_is_steady(self):
        self.assertIsNone(truth.steady([self.steady], 1.0))
        self.assertIsNotNone(truth.steady([self.kept], 1.1))
        self.assertIsNone(truth.returns([process(("alloc", 1, 8), ("free", 1, 8), ("alloc", 2, 1))], .2))
        self.assertIsNotNone(truth.returns([self.kept], .9))
        self.assertIsNone(truth.empty([self.kept, self.steady], True))
        self.assertIsNone(truth.most([self.kept, self.steady], 64))
        self.assertIsNotNone(truth.most([self.kept, self.steady], 63))


if __name__ == "__main__":
    unittest.main()
