#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ggml's tensors are recorded as blocks of its buffers.  Compared with the journal of a stand-in for libggml-base.so (tests/pools/ggml_base.c)."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from pools import BUILD, Pools, collapsed, real
import e2e

LLAMA = os.path.join(BUILD, "llama")
MIB = 1 << 20


def replay(journal):
    """Expected events, and at the peak of all buffers: (bytes of buffers, {name: bytes of tensors and compute buffers})."""
    events, buffers, blocks, peak = [], {}, {}, (0, {})
    for what, address, *rest in journal:
        if what == "buffer":
            buffers[address] = int(rest[0])
        elif what == "usage" and rest[0] == "2":
            blocks[address] = ("CUDA# compute", buffers[address])
            events.append(("BLOCK_ALLOC", int(address, 16), buffers[address], "CUDA# compute"))
        elif what == "tensor" and not rest[1].startswith("2 "):
            name = rest[1].split(None, 1)[1]
            blocks[address] = (collapsed(name), int(rest[0]))
            events.append(("BLOCK_ALLOC", int(address, 16), int(rest[0]), collapsed(name)))
        elif what == "free":
            begin, end = int(address, 16), int(address, 16) + buffers.pop(address)
            events.append(("BLOCK_DROP", begin, end - begin, ""))
            blocks = {at: block for at, block in blocks.items() if not begin <= int(at, 16) < end}
        if sum(buffers.values()) >= peak[0]:
            named = {}
            for name, size in blocks.values():
                named[name] = named.get(name, 0) + size
            peak = (sum(buffers.values()), named)
    return events, peak, {at: block for at, block in blocks.items()}


class Ggml(unittest.TestCase):
    maxDiff = 4000

    def test_each_tensor_is_in_the_trace_as_the_library_placed_it(self):
        with Pools(LLAMA) as run:
            expected, _, _ = replay(run.journal())
            self.assertEqual(run.blocks(), expected)
            self.assertGreater(len(expected), 45)

    def test_tensors_and_the_unnamed_rest_are_the_buffers_and_most_has_a_name(self):
        with Pools(LLAMA) as run:
            _, (peak, named), left = replay(run.journal())
            process, = run.report()["processes"]
            shown = subprocess.run([e2e.ANALYZE, "tree", "--at", "peak", "--by", "label", run.traces], capture_output=True, check=True)
            device, = process["pytorch"]
            segments = [row for row in process["memory"] if row["kind"] == "device"]
        self.assertEqual(segments[0]["peak_bytes"], peak + MIB)  # the workspace of 1 MiB lies in none of the buffers
        self.assertEqual(device["peak_reserved_bytes"], peak)
        self.assertEqual(device["peak_allocated_bytes"], sum(named.values()))
        self.assertGreaterEqual(sum(named.values()), 0.95 * peak)
        self.assertEqual((device["live_blocks"], device["allocated_bytes"]), (len(left), sum(size for _, size in left.values())))
        self.assertEqual(device["reserved_bytes"], 100 * MIB)
        text = shown.stdout.decode()
        for name in named:
            self.assertIn(name, text)
        self.assertIn("in pools, unnamed", text)

    def test_buffers_have_the_name_of_their_use(self):
        with Pools(LLAMA) as run:
            process, = run.report()["processes"]
        names = {row["name"]: row for row in process["names"]}
        self.assertEqual(names["CUDA# weights"]["live_bytes"], 100 * MIB)
        self.assertEqual(names["CUDA# compute"]["peak_bytes"], 16 * MIB)

    def test_freeing_all_leaves_nothing(self):
        with Pools(LLAMA, "CUDA0", "all") as run:
            device, = run.report()["processes"][0]["pytorch"]
        self.assertEqual((device["live_blocks"], device["allocated_bytes"], device["reserved_bytes"]), (0, 0, 0))

    def test_host_buffers_are_recorded_where_asked_for(self):
        with Pools(LLAMA, "CPU") as run:
            self.assertEqual(run.blocks(), [])
        with Pools(LLAMA, "CPU", STORMLOG_TENSORS="cpu", STORMLOG_HOST="1") as run:
            expected = [row for row in replay(run.journal())[0]]
            self.assertEqual([row[:3] for row in run.blocks()], [row[:3] for row in expected])
        with Pools(LLAMA, STORMLOG_TENSORS="off") as run:
            self.assertEqual(run.blocks(), [])

    def test_a_library_that_does_not_answer_is_left_alone_and_the_trace_says_so(self):
        for name, why in (("lacks", "the library does not export ggml_get_name"), ("astray", "a tensor was outside its buffer")):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(os.path.join(BUILD, "libggml-base-%s.so" % name), os.path.join(folder, "libggml-base.so"))
                paths = folder + ":" + e2e.SIM
                with Pools(LLAMA, LD_LIBRARY_PATH=paths, preload=False) as plain, Pools(LLAMA, LD_LIBRARY_PATH=paths) as run:
                    # the program's own run path comes after LD_LIBRARY_PATH
                    self.assertEqual(run.done.stdout, plain.done.stdout)
                    self.assertEqual([row for row in run.blocks() if row[0] == "BLOCK_ALLOC" and row[3] != "CUDA# compute"], [])
                    said = [row["value"] for row in run.trace().defs["capability"] if row["name"] == "ggml"]
                    self.assertEqual(said, ["tensors are not recorded: " + why])


class Real(unittest.TestCase):
    def test_the_real_library_places_tensors_that_we_see(self):
        python = real.python_of("ggml")
        if not python:
            self.skipTest("PyPI does not give pywhispercpp")
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "use_ggml.py")
        with e2e.Recording(python, program, preload=False) as plain, \
                Pools(python, program, STORMLOG_TENSORS="cpu", STORMLOG_HOST="1") as run:
            self.assertEqual(run.done.stdout, plain.done.stdout)
            names = run.done.stdout.decode().split()
            blocks = run.blocks()
            trace_names = [row[3] for row in blocks if row[0] == "BLOCK_ALLOC"]
            self.assertEqual(trace_names, [collapsed(name) for name in names])
            self.assertEqual({row[2] for row in blocks if row[0] == "BLOCK_ALLOC"}, {256 * 128 * 4})
            self.assertEqual([row[2] for row in blocks if row[0] == "BLOCK_DROP"], [len(names) * 256 * 128 * 4])
        with Pools(python, program) as run:
            self.assertEqual(run.files(), [])  # host memory alone does not start a recording


if __name__ == "__main__":
    if sys.argv[1:] == ["cost"]:
        for agent in (False, True):
            with e2e.Recording(LLAMA, "CUDA0", "cost", preload=agent) as run:
                print("agent %s: ns a tensor in a compute buffer, elsewhere: %s" % (agent, run.done.stdout.decode().strip()))
        sys.exit()
    unittest.main()
