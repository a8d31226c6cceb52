#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`table` against the simulator's journal: births, lifetimes and survivors of each place; lines of `tree`; one rank or process alone."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import e2e
import stormlog_trace

# Sizes tell the places apart in the journal.  at_once frees each block before the next is made, in_turn just after that.
PROGRAM = """
import ctypes, time
cuda = ctypes.CDLL("libcudart.so.13")
def new(size):
    p = ctypes.c_void_p()
    assert not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size))
    return p
def free(p): assert not cuda.cudaFree(p)
all_ = []
def kept():
    for n in range(7): all_.append(new(5000))
def at_once():
    for n in range(9):
        free(new(600))
def in_turn():
    one = new(100 << 20)
    for n in range(4):
        two = new(100 << 20)
        free(one)
        one = two
    free(one)
def sizes():
    for s in (1, 512, 513, 2048, 2049, 600 << 20): all_.append(new(s))
kept()
sizes()
at_once()
in_turn()
"""


def analyze(*arguments, code=0, **environment):
    done = subprocess.run([e2e.ANALYZE, *arguments], capture_output=True, timeout=600, env={**os.environ, **environment})
    if done.returncode != code:
        raise AssertionError("exit %d, not %d\n%s" % (done.returncode, code, done.stderr.decode()))
    return done.stdout.decode() if code == 0 else done.stderr.decode()


class Table(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        program = os.path.join(cls.folder.name, "table.py")
        with open(program, "w") as file:
            file.write(PROGRAM)
        cls.run_ = e2e.Recording("python3", program)
        cls.owners = {owner["name"].split()[-1]: owner
                      for owner in json.loads(analyze("table", "--by", "function", "--json", cls.run_.traces))["owners"]}

    @classmethod
    def tearDownClass(cls):
        cls.run_.__exit__()
        cls.folder.cleanup()

    def journal(self, *sizes):
        """From the journal: births, survivors, and lifetimes of freed blocks, for blocks of these sizes."""
        process, = self.run_.truth()
        live, births, lifetimes = {}, 0, []
        for effect in process.effects:
            if effect.kind != "device":
                continue
            if effect.what == "alloc" and effect.bytes in sizes:
                live[effect.address] = effect.time_ns
                births += 1
            elif effect.what != "alloc" and effect.address in live:
                lifetimes.append(effect.time_ns - live.pop(effect.address))
        return births, len(live), lifetimes

    def test_births_survivors_and_lifetimes_are_the_journals(self):
        for name, sizes in (("kept", [5000]), ("at_once", [600]), ("in_turn", [100 << 20])):
            births, left, lifetimes = self.journal(*sizes)
            owner = self.owners[name]
            self.assertEqual((owner["made"], owner["kept"]), (births, left), name)
            if not lifetimes:
                self.assertIsNone(owner["lifetime_ns"])
                continue
            # the journal takes times inside the call, the agent at its begin and end
            slowest = max(lifetimes) + 5_000_000 * len(lifetimes)
            self.assertTrue(0 < owner["lifetime_ns"] <= slowest, (name, owner, lifetimes))
        self.assertGreater(self.owners["in_turn"]["lifetime_ns"], 0)

    def test_temporary_is_what_was_freed_before_the_next(self):
        self.assertEqual({name: owner["temporary"] for name, owner in self.owners.items()},
                         {"kept": 0, "at_once": 8, "in_turn": 0, "sizes": 0})  # after the ninth there was no next one

    def test_sizes_are_counted_by_classes(self):
        self.assertEqual([(one["up_to_bytes"], one["blocks"]) for one in self.owners["sizes"]["sizes"]],
                         [(512, 2), (2048, 2), (8192, 1), (None, 1)])
        self.assertEqual(self.owners["in_turn"]["sizes"], [{"up_to_bytes": 128 << 20, "blocks": 5}])

    def test_columns_and_their_order(self):
        text = analyze("table", "--by", "function", "--sort", "made", self.run_.traces, LC_ALL="C", COLUMNS="120")
        rows = text.splitlines()
        self.assertEqual(rows[1].split(), "held share blocks made kept temporary lifetime sizes by function".split())
        self.assertEqual([row.split()[-1] for row in rows[2:6]], ["at_once", "kept", "sizes", "in_turn"])
        self.assertEqual(rows[3].split()[3:7], ["7", "7", "7", "0"])  # held by 7 blocks, made, kept, temporary
        self.assertEqual(analyze("table", "--sort", "made", "--from", "start", self.run_.traces, code=2),
                         "stormlog-analyze: --sort is of table at one moment, and not of names\n")
        self.assertIn("--sort is of table", analyze("tree", "--sort", "made", self.run_.traces, code=2))

    def test_what_counts_up_to_a_moment_says_so(self):
        """Counts at the peak are those of the whole run; at another moment, or at the peak of a kind, they are up to then, and the table says so."""
        process, = self.run_.truth()
        first = next(effect for effect in process.effects if effect.kind == "device" and effect.bytes == 600)
        header = stormlog_trace.open_folder(self.run_.traces)[0].header
        at = "%d" % (first.time_ns - header["monotonic_ns"] + header["started_ns"])
        births = sum(effect.what == "alloc" and effect.kind == "device" and effect.time_ns < first.time_ns for effect in process.effects)
        for words, of in ((), "run"), (("--at", "end"), "run"), (("--at", at), "moment"), (("--kind", "device"), "moment"):
            text, told = (analyze("table", "--by", "function", *more, *words, self.run_.traces) for more in ((), ("--json",)))
            told = json.loads(told)
            self.assertEqual(told["counted"], of, words)
            self.assertIn("made: blocks ever; kept: not freed by the end;" if of == "run" else "made: blocks up to that moment; kept: not freed by then;", text)
            self.assertLessEqual(max(map(len, text[text.index("made: "):].splitlines())), 80)
            if at in words:
                self.assertEqual(sum(owner["made"] for owner in told["owners"]), births)
        self.assertIsNone(json.loads(analyze("tree", "--json", self.run_.traces))["counted"])

    def test_a_stack_of_table_is_the_whole_stack(self):
        owners = json.loads(analyze("table", "--by", "stack", "--json", self.run_.traces))["owners"]
        self.assertEqual(len(owners), 4 + 1, "in_turn asks in two lines")
        self.assertTrue(all(owner["name"].startswith("table.py:6 new < ") for owner in owners), owners)

    def test_stacks_that_differ_only_far_from_the_call_are_apart(self):
        with e2e.Recording(os.path.join(e2e.APPS, "foreign"), "many_stacks", 25) as run:
            self.assertEqual(analyze("table", "--by", "stack", run.traces).count(" one_call < "), 8 * 25)

    def test_tree_is_drawn_as_one(self):
        rows = analyze("tree", "--by", "function", "--at", "end", "--all-frames", self.run_.traces, LC_ALL="C").splitlines()[2:]
        names = [re.sub(r"^ *\S+ \S+ +\S+% +\d+  ", "", row) for row in rows]
        self.assertEqual(names[0], "table.py sizes")
        self.assertTrue(names[1].startswith("`-"), names)
        self.assertTrue(names[2].startswith("  `-"), names)
        self.assertIn("\u2514", analyze("tree", self.run_.traces, LC_ALL="C.UTF-8"))

    def test_blocks_are_those_of_the_moment(self):
        process, = self.run_.truth()
        peak = json.loads(analyze("tree", "--json", self.run_.traces))
        live = most = blocks = 0
        sizes = {}
        for effect in process.effects:
            if effect.kind == "device":
                if effect.what == "alloc":
                    sizes[effect.address] = effect.bytes
                    live += effect.bytes
                else:
                    live -= sizes.pop(effect.address)
                if live > most:
                    most, blocks = live, len(sizes)
        self.assertEqual((peak["bytes"], sum(owner["blocks"] for owner in peak["owners"])), (most, blocks))


class Moments(unittest.TestCase):
    """A table shows what was held at its moment, and says which moment that is."""

    def test_tensors_at_the_peak_are_those_of_the_peak_and_not_of_the_end(self):
        """One of two blocks of PyTorch's allocator is freed before the end."""
        program = """
import ctypes, os
c10 = ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so"))
c10.caching_new.restype = ctypes.c_void_p
first, second = c10.caching_new(ctypes.c_size_t(5 << 20)), c10.caching_new(ctypes.c_size_t(3 << 20))
c10.caching_delete(ctypes.c_void_p(first))
"""
        with e2e.Recording(sys.executable, "-c", program, APPS=e2e.APPS, LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
            held = {at: json.loads(analyze("table", "--kind", "block", "--at", at, "--json", run.traces))["bytes"] >> 20 for at in ("peak", "end")}
            self.assertEqual(held, {"peak": 8, "end": 3})

    def test_a_peak_of_one_kind_or_by_name_is_one_moment_of_all_devices_and_says_so(self):
        """Device 0 peaks first: it holds 9 MiB while device 1 holds 1; device 1 holds 5 later."""
        program = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
def new(device, mib):
    p = ctypes.c_void_p()
    assert not cuda.cudaSetDevice(device) and not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20))
    return p
first, other = new(0, 8), new(1, 1)
new(0, 1)
assert not cuda.cudaFree(first)
new(1, 4)
"""
        with e2e.Recording(sys.executable, "-c", program) as run:
            for how, words in ((), ", each of 2 devices at its own peak"), (("--kind", "device"), r", at [\d.]+ \w+, the peak of that kind on one device"), \
                    (("--by", "name"), ", at the peak of the fullest of 2 devices"):
                with self.subTest(how):  # and no sum over devices
                    self.assertRegex(analyze("table", *how, run.traces), r"^pid \d+%s\n" % words)
            self.assertRegex(analyze("tree", run.traces), r"(?s)\n +9.00 MiB +100.0% +2  device 0.*\n +5.00 MiB +100.0% +2  device 1")


class OneOfMany(unittest.TestCase):
    def test_one_rank_is_read_and_no_other(self):
        script = "import ctypes, os, time\ntime.sleep(0.1 * int(os.environ['RANK']))\n" \
                 "assert not ctypes.CDLL('libcudart.so.13').cudaMalloc(ctypes.byref(ctypes.c_void_p()), 1 + int(os.environ['RANK']) << 20)\n"
        with e2e.Recording("sh", "-c", "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 python3 -c \"$0\"; done", script) as run:
            one = json.loads(analyze("tree", "--rank", "1", "--json", run.traces))
            self.assertEqual((one["processes"], one["bytes"]), (1, 2 << 20))
            pids = {image.header["pid"]: image.header["rank"] for image in stormlog_trace.open_folder(run.traces)}
            for pid, rank in pids.items():
                self.assertEqual(json.loads(analyze("table", "--pid", str(pid), "--json", run.traces))["bytes"], rank + 1 << 20)
            self.assertIn("there is no rank 7 in", analyze("tree", "--rank", "7", run.traces, code=2))
            self.assertIn("there is no process 1 in", analyze("table", "--pid", "1", run.traces, code=2))
            # times count from the run's beginning, which is rank 0's: 20 ms before rank 2 began nothing of it lived
            last = max(stormlog_trace.open_folder(run.traces), key=lambda image: image.header["started_ns"])
            began = min(image.header["started_ns"] for image in stormlog_trace.open_folder(run.traces))
            before = (last.header["started_ns"] - began) / 1e9 - 0.02
            self.assertEqual(json.loads(analyze("tree", "--rank", "2", "--at", str(before), "--json", run.traces))["bytes"], 0)
            self.assertEqual(json.loads(analyze("tree", "--rank", "2", "--at", "1000", "--json", run.traces))["processes"], 0)
            # a damaged trace of another rank does not matter
            for name in os.listdir(run.traces):
                if name.startswith("rank-00000"):
                    path = os.path.join(run.traces, name)
                    with open(path, "r+b") as file:
                        file.truncate(os.path.getsize(path) - 20)
            done = subprocess.run([e2e.ANALYZE, "tree", "--rank", "1", run.traces], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Ends(unittest.TestCase):
    """The exit status of each process, in whatever way it ended."""
    WAYS = {"main": ("pass", 0), "exit": ("sys.exit(3)", 3), "raised": ("raise ValueError", 1), "_exit": ("os._exit(260)", 4),
            "handler": ("ctypes.CDLL(None).exit(7)", 7), "killed": ("os.kill(os.getpid(), 9)", None)}

    def test_exit_statuses(self):
        start = "import ctypes, os, sys; ctypes.CDLL('libcudart.so.13').cudaMalloc(ctypes.byref(ctypes.c_void_p()), 1 << 20); "
        script = "".join("RANK=%d WORLD_SIZE=%d python3 -c \"%s%s\" 2>/dev/null\n" % (n, len(self.WAYS), start, way)
                         for n, (way, _) in enumerate(self.WAYS.values())) + "true"
        with e2e.Recording("sh", "-c", script) as run:
            report = json.loads(analyze("report", "--json", run.traces))
            text = analyze("ranks", run.traces)
            head = analyze(run.traces, COLUMNS="120").splitlines()[0]
        expected = [status for _, status in self.WAYS.values()]
        by_rank = {process["rank"]: process["exit_status"] for process in report["processes"]}
        self.assertEqual([by_rank[rank] for rank in range(len(expected))], expected)
        self.assertEqual(len(text.splitlines()), 1 + len(expected))
        for said in ("exit 3", "exit 1", "exit 4", "exit 7", "killed", "completed"):
            self.assertIn(said, text)
        self.assertIn("rank 5 killed, 4 failed, 1 completed", head)

    def test_a_process_of_several_devices_has_a_line_for_each(self):
        with e2e.script("alloc=10", "device=1", "alloc=500", "try=900000", "free", "device=0", "alloc=3", SIM_VRAM="4G", RANK=4, WORLD_SIZE=8) as run:
            text = analyze("ranks", run.traces).splitlines()
            tree = analyze("tree", run.traces).splitlines()[0]
        self.assertRegex(tree, "^rank 4, each of 2 devices at its own peak$")  # the rank never held so much at once
        self.assertEqual([re.search(r" 4 +([01]) +(\S+ \S+) +(\S+ MiB) ", line).groups() for line in text[1:]],
                         [("0", "3.00 MiB", "10.0 MiB"), ("1", "0 B", "500 MiB")])

    def test_a_word_that_is_neither_verb_nor_file(self):
        self.assertIn("leaks: no such file or folder (nor a verb", analyze("leaks", "somewhere", code=2))
        self.assertIn("tabel is no verb; did you mean table?", analyze("tabel", "somewhere", code=2))
        self.assertNotIn("verb", analyze("nowhere/traces", code=2))


if __name__ == "__main__":
    unittest.main()
