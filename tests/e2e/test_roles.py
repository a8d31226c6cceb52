#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Roles of memory: report.json, screen and table name the roles of blocks of tests/apps/trainer.py, where each role has a size of its own."""
import json
import os
import re
import subprocess
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
import e2e

TRAINER = os.path.join(HERE, "..", "apps", "trainer.py")
SIZES = {"parameters": 1 << 20, "gradients": 3 << 19, "optimizer": 5 << 18, "activations": 7 << 20, "workspace": 11 << 18, "unknown": 13 << 18}


def truth_of(run):
    """{size: bytes that lived at the peak}."""
    live, top, truth = {}, 0, {}
    for effect in run.truth()[0].effects:
        if effect.what == "alloc":
            live[effect.address] = effect.bytes
        else:
            live.pop(effect.address, None)
        if sum(live.values()) > top:
            top = sum(live.values())
            truth = {role: sum(size for size in live.values() if size == of) for role, of in SIZES.items()}
    return truth


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = e2e.Recording("python3", TRAINER)
        cls.truth = truth_of(cls.run_)

    @classmethod
    def tearDownClass(cls):
        cls.run_.__exit__()

    def analyze(self, *arguments):
        return subprocess.run([e2e.ANALYZE, *arguments, self.run_.traces], capture_output=True, text=True, check=True,
                              env=dict(os.environ, COLUMNS="100")).stdout

    def test_each_role_has_the_bytes_that_the_simulator_gave_for_it(self):
        process, = self.run_.report()["processes"]
        self.assertEqual({row["role"]: row["bytes_at_peak"] for row in process["roles"]}, self.truth)
        self.assertEqual({row["device"] for row in process["roles"]}, {0})

    def test_the_state_of_an_optimizer_that_each_model_makes_anew_is_the_optimizers(self):
        with e2e.Recording("python3", TRAINER, "4") as run:
            process, = run.report()["processes"]
            self.assertEqual({row["role"]: row["bytes_at_peak"] for row in process["roles"]}["optimizer"], truth_of(run)["optimizer"])

    def test_the_table_by_role_is_the_same(self):
        owners = json.loads(self.analyze("table", "--by", "role", "--json"))["owners"]
        self.assertEqual({owner["name"]: owner["bytes"] for owner in owners}, self.truth)

    def test_the_screen_has_the_shares_largest_first(self):
        rows = [(float(size) * 2**20, role) for size, role in re.findall(r"^ *([\d.]+)  (\w+) +█", self.analyze(), re.M)]
        self.assertGreaterEqual(len(rows), 4)
        self.assertEqual(rows, sorted(rows, reverse=True))
        for size, role in rows:
            self.assertAlmostEqual(size, self.truth[role], delta=0.05 * 2**20, msg=role)

    def test_a_program_of_which_nothing_is_known_has_no_roles(self):
        with e2e.script("alloc=10", "free") as run:
            process, = run.report()["processes"]
            self.assertEqual(process["roles"], [])


if __name__ == "__main__":
    unittest.main()
