#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_snapshot.py ANALYZE: fit gives the same answers for a snapshot of PyTorch's as for the recorded run.

golden/streams-2.6.pickle.zst is the snapshot that PyTorch 2.6 wrote of the program `streams` (tests/fit/programs.py) in the torch rig, with shorter paths.
PEAK_RESERVED is PyTorch's own figure.  ALWAYS_FROM is what fit gave for the agent's trace of the same run: the smallest capacities.
"""
import json
import os
import pickle
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import msgpack  # noqa: F401
    import zstandard
except ImportError as error:
    print("skipped: python3-msgpack and python3-zstandard are needed:", error)
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
ANALYZE = os.path.abspath(sys.argv[1])
PEAK_RESERVED = 482344960
ALWAYS_FROM = {"": 371195904, "expandable_segments:True": 398458880, "max_split_size_mb:128": 371195904,
               "roundup_power2_divisions:4": 394264576, "expandable_segments:True,roundup_power2_divisions:4": 398458880}


def golden():
    with open(os.path.join(HERE, "golden", "streams-2.6.pickle.zst"), "rb") as file:
        return pickle.loads(zstandard.ZstdDecompressor().decompress(file.read()))


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


class Snapshot(unittest.TestCase):
    def setUp(self):
        self.at = tempfile.TemporaryDirectory()
        self.addCleanup(self.at.cleanup)

    def made(self, what, code=0):
        """Runs the converter.  Returns (what it printed, the folder that it made)."""
        path, folder = os.path.join(self.at.name, "snapshot.pickle"), os.path.join(self.at.name, "trace")
        with open(path, "wb") as file:
            file.write(what if isinstance(what, bytes) else pickle.dumps(what))
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "snapshot", path, "--torch", "2.6", "-o", folder], capture_output=True,
                              text=True, preexec_fn=limited, env={**os.environ, "PYTHONPATH": os.path.join(HERE, "..", "..", "python")})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr, folder

    def fit(self, folder):
        done = subprocess.run([ANALYZE, "fit", "--json", "--allocator-capacity", "64G", folder], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def test_the_answers_are_those_of_the_recorded_run_and_the_peak_is_pytorch_s_own(self):
        said = self.fit(self.made(golden())[1])
        self.assertEqual((said["reproduces"], said["events"], said["notes"]), (True, 960, []))
        self.assertEqual({item["settings"]: item["always_from_bytes"] for item in said["smallest"]}, ALWAYS_FROM)
        self.assertEqual(next(run for run in said["runs"] if run["settings"] == "")["peak_reserved_bytes"], PEAK_RESERVED)
        self.assertTrue(all(run["fits"] for run in said["runs"]))

    def test_the_lines_are_the_program_s(self):
        folder = self.made(golden())[1]
        tree = subprocess.run([ANALYZE, "tree", "--at", "peak", folder], capture_output=True, text=True, check=True).stdout
        self.assertIn("programs.py:", tree)
        self.assertIn("streams", tree)

    def test_a_history_that_begins_late_has_no_verdict_and_that_is_said(self):
        late = golden()
        del late["device_traces"][0][:100]
        text, folder = self.made(late)
        self.assertIn("the history begins after the program did", text)
        said = self.fit(folder)
        self.assertFalse(said["reproduces"])
        self.assertEqual({run["fits"] for run in said["runs"]}, {None})

    def test_private_pools_have_no_verdict(self):
        pooled = golden()
        pooled["segments"][0]["segment_pool_id"] = (0, 1)
        text, folder = self.made(pooled)
        self.assertIn("private pools", text)
        self.assertFalse(self.fit(folder)["reproduces"])

    def test_a_trace_that_is_there_stays(self):
        folder = self.made(golden())[1]
        self.assertIn("File exists", self.made(golden(), code=2)[0])
        self.assertTrue(self.fit(folder)["reproduces"])

    def test_what_is_more_than_data_or_no_snapshot_is_refused(self):
        class Evil:
            def __reduce__(self):
                return os.mkdir, (os.path.join(HERE, "made-by-a-pickle"),)

        for what, why in ((Evil(), "more than data"), (b"\x80", "not a snapshot"), ([1], "not a snapshot"),
                          ({"segments": [], "device_traces": [[]]}, "no history"),
                          ({"segments": [], "device_traces": [[{"action": "alloc"}]]}, "not a snapshot as PyTorch writes it"),
                          ({"segments": [], "device_traces": [[{"action": "alloc", "size": 1, "addr": "x"}]]}, "not a snapshot as PyTorch writes it")):
            with self.subTest(why=why):
                self.assertIn(why, self.made(what, code=2)[0])
                self.assertFalse(os.path.exists(os.path.join(self.at.name, "trace")) and os.listdir(os.path.join(self.at.name, "trace")))
        self.assertFalse(os.path.exists(os.path.join(HERE, "made-by-a-pickle")))

    def test_a_small_file_cannot_cost_much(self):
        def entry(**members):
            return dict({"action": "segment_map", "addr": 1 << 21, "size": 20 << 20, "stream": 0, "time_us": 1, "frames": []}, **members)

        blocks, many = [{"state": "active_allocated", "address": 1}] * 100000, [entry(action="alloc", frames=[])] * 100000
        for what, why in (([[entry(size=1 << 62)]], "more devices"), ([[entry(size=1 << 45)] * 1000], "more devices"),
                          ([many] * 257, "more devices"), ([many] * 200, "more devices"), ([[entry(time_us=float("inf"))]], "OverflowError")):
            with self.subTest(why=why):
                self.assertIn(why, self.made({"segments": [], "device_traces": what}, code=2)[0])
        segments = [{"device": 0, "total_size": 1, "blocks": blocks}] * 100000
        self.assertIn("more devices", self.made({"segments": segments, "device_traces": [[entry()]]}, code=2)[0])
        frames = [{"name": "f", "filename": "a.c", "line": 1}] * 100000
        self.made({"segments": [], "device_traces": [[entry(action="alloc", frames=frames)] * 1000]})

    def test_names_and_numbers_of_a_small_file_cannot_cost_much(self):
        def of(count, **members):
            entry = {"action": "alloc", "addr": 1 << 21, "size": 512, "stream": 0, "time_us": 1, "frames": []}
            return {"segments": [], "device_traces": [[dict(entry, **members)] * count]}

        nest = ["x"]
        for _ in range(40):
            nest = [nest, nest]
        long = {"name": "f" * 200000, "filename": "a" * 200000 + ".py", "line": 1}
        _, folder = self.made(of(1, frames=[dict(long, filename=nest), dict(long, name=nest)] + [long] * 100000))
        file, = os.listdir(folder)
        self.assertLess(os.path.getsize(os.path.join(folder, file)), 200000)
        for number, why in (1 << 800000, "more than a snapshot"), (1 << 64, "64 bits"), (1.0, "64 bits"), ("1", "64 bits"):
            self.assertIn(why, self.made(of(10000, size=number), code=2)[0])

    def test_an_opcode_cannot_cost_more_than_its_bytes(self):
        far = b"\x80\x02Nr" + struct.pack("<I", 1 << 27) + b"."  # an index of the memo
        self.assertIn("not a snapshot of", self.made(far, code=2)[0])
        key = b"\x80\x02})" + b"q\0h\0\x86" * 40 + b"Ns."  # a tuple that holds itself twice, forty deep
        self.assertIn("a key that is no text", self.made(key, code=2)[0])
        equal = [i * (2 ** 61 - 1) for i in range(20000)]  # the hash of each is 0
        self.assertIn("a key that is no text", self.made(pickle.dumps(dict.fromkeys(equal[:3])), code=2)[0])

    def test_what_a_refused_name_says_steers_no_terminal(self):
        self.assertNotIn("\x1b", self.made(b"cos\x1b]0;x\x07\nsystem\n.", code=2)[0])


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
