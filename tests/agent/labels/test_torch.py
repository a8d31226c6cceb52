#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real PyTorch on the CPU under --tensors cpu: the wheel of scripts/torch-venv, and Debian's python3-torch where it is installed."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..")]
import torch_venv
from test_labels import events, run  # exits 77 without its modules

TRAIN = os.path.join(HERE, "train.py")
PYTHON = torch_venv.python("torch")


class Training:
    @classmethod
    def setUpClass(cls):
        cls.links = tempfile.mkdtemp(prefix="stormlog-links-")
        cls.addClassCleanup(shutil.rmtree, cls.links)
        torch_venv.stand_ins(os.environ["STORMLOG_BUILD"], cls.links)
        cls.bare, _ = cls.train(preload=False)
        cls.said, (cls.trace,) = cls.train(STORMLOG_TENSORS="cpu")
        cls.rows = events(cls.trace)
        cls.blocks = [row for row in cls.rows if row.verb.startswith("BLOCK")]

    @classmethod
    def train(cls, **environment):
        return run(cls.python, TRAIN, talks=True, LD_LIBRARY_PATH=cls.links, **environment)

    def test_parameters_losses_and_profiler_are_what_they_are_without_the_agent(self):
        self.assertEqual(self.said, self.bare)

    def test_without_being_asked_nothing_is_recorded(self):
        said, traces = self.train()
        self.assertEqual((said, traces), (self.bare, []))

    def test_every_free_ends_a_live_block_of_its_size_and_totals_are_pytorchs_own(self):
        live, wrong = {}, 0
        self.assertGreater(len(self.blocks), 500)
        for row in self.blocks:
            self.assertEqual(row.device, -1)
            if row.verb == "BLOCK_ALLOC":
                self.assertNotIn(row.address, live)
                live[row.address] = row.bytes
            else:
                self.assertEqual(live.pop(row.address), row.bytes)
            wrong += sum(live.values()) != row.index
        self.assertEqual(wrong, 0)

    def test_each_backward_pass_is_a_step_that_ends_even_when_it_throws(self):
        ranges = [(row.verb, row.index) for row in self.rows if row.verb.startswith("RANGE")]
        self.assertEqual(ranges, [(verb, index) for index in range(29) for verb in ("RANGE_PUSH", "RANGE_POP")])
        after = [row for row in self.blocks if row.bytes == 4 * 123457 and row.verb == "BLOCK_ALLOC"]
        self.assertEqual([(row.label, row.stack[0][0]) for row in after], [("", "after")])

    def test_a_gradients_stack_says_who_called_backward(self):
        inside = [row for row in self.blocks if row.label == "backward_#" and row.verb == "BLOCK_ALLOC"]
        self.assertGreater(len(inside), 100)
        for row in inside:
            names = [name.split(".")[-1] for name, _, _ in row.stack]
            self.assertTrue({"train", "fail"} & set(names) and "backward" in names, names)

    def test_the_version_is_said(self):
        self.assertEqual([c["value"] for c in self.trace.defs["capability"] if c["name"] == "pytorch"], ["c10 " + self.version()])

    def version(self):
        code = "import torch; print('.'.join(torch.__version__.split('.')[:2]))"
        return subprocess.run([self.python, "-c", code], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": self.links}).stdout.strip()


@unittest.skipIf(subprocess.run(["/usr/bin/python3", "-c", torch_venv.HAS, "torch"]).returncode, "no python3-torch")
class Debian(Training, unittest.TestCase):
    python = "/usr/bin/python3"


class Wheel(Training, unittest.TestCase):
    python = PYTHON


if __name__ == "__main__":
    unittest.main(verbosity=1)
