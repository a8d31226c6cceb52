#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tree and table --from A --to B: blocks made between the two moments and still held at B are compared with the simulator's journal,
PyTorch's blocks with what the program did."""
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

import e2e
import stormlog_trace

MIB = 1 << 20
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
# 3 MiB are kept; three steps keep 1, 2 and 4 MiB and make and free 16 MiB each; one of them has a step inside
PROGRAM = """
import ctypes, time
cuda, nvtx = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1")
def new(mib):
    p = ctypes.c_void_p()
    assert not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20))
    return p
new(3)
for step, keep in enumerate((1, 2, 4), 10):
    nvtx.nvtxRangePushA(b"step_%d" % step)
    nvtx.nvtxRangePushA(b"forward")
    large = new(16)
    new(keep)
    nvtx.nvtxRangePop()
    assert not cuda.cudaFree(large)
    nvtx.nvtxRangePop()
last = new(64)
assert not cuda.cudaFree(last)
new(8)
"""

# two lines of one function, on one device; another function on the other
FUNCTIONS = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
def weights():
    assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
    assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(2 << 20))
def cache():
    assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(5 << 20))
weights()
assert not cuda.cudaSetDevice(1)
cache()
"""

# 600 lines, each of which keeps a page more than the one before
MANY = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
""" + "".join("cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(%d))\n" % (n << 12) for n in range(1, 601))


def analyze(*arguments, code=0):
    done = subprocess.run([e2e.ANALYZE, *arguments], capture_output=True, timeout=600)
    if done.returncode != code:
        raise AssertionError("exit %d, not %d\n%s" % (done.returncode, code, done.stderr.decode()))
    return done.stdout.decode(), done.stderr.decode()


def total(text):
    number, unit = re.match(r"\s*([\d.]+) (\w+)  ", text).groups()
    return round(float(number) * UNITS[unit])


class Between(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_of_steps = e2e.Recording("python3", "-c", PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.run_of_steps.__exit__()

    def between(self, *moments, verb="table", code=0):
        return analyze(verb, *moments, self.run_of_steps.traces, code=code)

    def held(self, *moments):
        return total(self.between(*moments)[0])

    def journal_between(self, since_ns, until_ns):
        """Bytes of the device that were allocated after the first moment and held at the second."""
        process, = self.run_of_steps.truth()
        live = {}
        for effect in process.effects:
            if effect.kind != "device" or effect.time_ns > until_ns:
                continue
            if effect.what == "alloc":
                live[effect.address] = (effect.bytes, effect.time_ns)
            else:
                live.pop(effect.address, None)
        return sum(size for size, born in live.values() if born > since_ns)

    def test_times_are_held_against_the_journal(self):
        process, = self.run_of_steps.truth()
        times = sorted(effect.time_ns for effect in process.effects if effect.kind == "device")
        self.assertEqual(len(times), 3 * 3 + 4)
        image, = stormlog_trace.open_folder(self.run_of_steps.traces)
        unix = image.header["started_ns"] - image.header["monotonic_ns"]
        middles = [(a + b) // 2 for a, b in zip(times, times[1:])]
        for since in middles[::3]:
            for until in middles[1::2]:
                true = self.journal_between(since, until)
                if since < until and true:
                    self.assertEqual(self.held("--from", str(unix + since), "--to", str(unix + until)), true, (since, until))

    def test_named_moments(self):
        self.assertEqual(self.held("--from", "start"), self.journal_between(0, 1 << 63))
        self.assertEqual(self.held("--from", "start"), (3 + 1 + 2 + 4 + 8) * MIB)
        self.assertEqual(self.held("--from", "peak"), 8 * MIB)
        self.assertEqual(self.held("--to", "peak"), (3 + 1 + 2 + 4 + 64) * MIB)
        self.assertEqual(self.held("--from", "step_#11"), (2 + 4 + 8) * MIB)
        self.assertEqual(self.held("--from", "step_#10", "--to", "step_#12"), (1 + 2) * MIB)
        self.assertEqual(self.held("--from", "step_##1", "--to", "step_##2"), 1 * MIB)
        self.assertEqual(self.held("--from", "forward#2", "--to", "forward#3"), 2 * MIB)
        text, _ = self.between("--from", "forward#2", "--to", "forward#3", verb="tree")
        self.assertIn("born after forward#2 and still held at forward#3", text)
        self.assertEqual(self.between("--from", "forward#2", "--to", "forward#3", verb="flame")[0].rsplit(" ", 1)[1], "%d\n" % (2 * MIB))

    def test_what_makes_no_sense_is_told_so(self):
        for moments, why in ((("--from", "end"), "no time after the end"), (("--to", "start"), "before the start"),
                             (("--from", "peak", "--to", "step_#11"), "step_#11 is not after peak"),
                             (("--from", "forward#4"), r"no process has so many entries of forward: the most are 3"),
                             (("--from", "step_#4"), r"step_# has 3 entries, but not that number"),
                             (("--from", "nowhere#1"), "no range is named nowhere"), (("--to", "oom"), "no call ran out of memory"),
                             (("--from", "soon"), '--from: "soon" is not start, peak'), (("--from", "step_#x"), "is not start, peak"),
                             (("--at", "start"), "is not peak, end"), (("--at", "peak", "--to", "end"), "--at is one moment")):
            with self.subTest(moments):
                out, said = self.between(*moments, code=2)
                self.assertEqual(out, "")
                self.assertIn(why, said)

    def test_blocks_of_pytorch_and_physical_memory_count_from_their_own_births(self):
        steps = ("tensor=4", "push=a", "tensor=1", "tensor=1", "pop", "push=b", "drop", "pop")
        with e2e.Recording("python3", e2e.SCRIPT, *steps, APPS=e2e.APPS) as run:
            self.assertEqual(total(analyze("table", "--from", "a#1", "--to", "b#1", run.traces)[0]), 2 * MIB)
            self.assertEqual(total(analyze("table", "--from", "a#1", run.traces)[0]), 1 * MIB)  # the block of 4 MiB and the second of 1 were dropped
        with e2e.Recording(os.path.join(e2e.APPS, "vmm")) as run:
            process, = run.truth()
            self.assertEqual(total(analyze("table", "--to", "peak", run.traces)[0]), process.memory["vmm", 0].peak_bytes)

    def shares(self, by, traces):
        answer = json.loads(analyze("table", "--at", "end", "--by", by, "--json", traces)[0])
        return {owner["name"]: owner["bytes"] for owner in answer["owners"]}

    def test_by_function_and_by_device(self):
        with e2e.Recording("python3", "-c", FUNCTIONS) as run:
            self.assertEqual(self.shares("function", run.traces), {"<string> weights": 3 * MIB, "<string> cache": 5 * MIB})
            process, = run.truth()
            devices = self.shares("device", run.traces)
            self.assertEqual(len(devices), 2)
            self.assertEqual(sorted(devices.values()), sorted(process.memory["device", d].live_bytes for d in (0, 1)))

    def test_json_obeys_its_schema_and_is_short(self):
        answer = json.loads(self.between("--from", "step_#11", "--json", verb="tree")[0])
        self.assertEqual((answer["bytes"], answer["from"], answer["to"], answer["at"], answer["left_out"]), (14 * MIB, "step_#11", "end", None, 0))
        for owner in answer["owners"]:
            self.assertEqual(sum(child["bytes"] for child in owner["owners"]), owner["bytes"])
        nothing = json.loads(self.between("--at", "0", "--json")[0])
        with e2e.Recording("python3", "-c", MANY) as run:
            out = analyze("tree", "--at", "end", "--json", run.traces)[0]
            many = json.loads(out)
            table = json.loads(analyze("table", "--at", "end", "--by", "place", "--json", run.traces)[0])
        self.assertLessEqual(len(out), 16384)
        self.assertEqual(many["bytes"], sum(range(1, 601)) * 4096)
        self.assertGreater(len(out), 12000, "as much as fits")
        shown = lambda owner: 1 + sum(map(shown, owner["owners"]))
        self.assertGreaterEqual(sum(map(shown, many["owners"])) + many["left_out"], 601)
        self.assertEqual(len(table["owners"]) + table["left_out"], 600)
        sizes = [owner["bytes"] // 4096 for owner in table["owners"]]
        self.assertEqual(sizes, list(range(600, 600 - len(sizes), -1)), "the largest")
        flame = json.loads(self.between("--from", "step_#11", "--json", verb="flame")[0])
        self.assertEqual((flame["bytes"], sum(owner["bytes"] for owner in flame["owners"])), (14 * MIB, 14 * MIB))
        try:
            import jsonschema
        except ImportError:
            self.skipTest("no jsonschema")
        with open(os.path.join(e2e.HERE, "..", "..", "schemas", "tree.schema.json")) as file:
            schema = json.load(file)
        for one in (answer, flame, nothing, many, table):
            jsonschema.validate(one, schema)


# cuMemCreate of 20 MiB on the device, and of 40 and 80 on the host (CU_MEM_LOCATION_TYPE_HOST, _HOST_NUMA), beside 10 by a plain call
ON_HOST = """
import ctypes
class Place(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", Place), ("meta", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 32)]
cuda, driver = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1")
assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(10 << 20))
for place, mib in ((1, 20), (2, 40), (3, 80)):
    assert not driver.cuMemCreate(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20), ctypes.byref(Properties(1, 0, Place(place, 0))),
                                  ctypes.c_ulonglong(0))
"""


# Lines whose blocks live for calls or for the whole program, of sizes of several classes; and tensors inside a segment.
LIVES = """
import ctypes, os, random
cuda, c10 = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so"))
c10.caching_new.restype = ctypes.c_void_p
pick, held = random.Random(3), []
def plain(size):
    p = ctypes.c_void_p()
    assert not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size))
    return lambda: cuda.cudaFree(p)
def tensor(size):
    p = c10.caching_new(ctypes.c_size_t(size))
    return lambda: c10.caching_delete(ctypes.c_void_p(p))
for i in range(600):
    held.append(plain(512 << pick.randrange(14)) if pick.random() < 0.5 else tensor(512 << pick.randrange(12)))
    while len(held) > 40 and pick.random() < 0.7:
        held.pop(pick.randrange(len(held)))()
"""


def range_of(places, first, end):
    """From the page's places: {place: bytes born in windows [first, end) that lived at their end}; and the blocks born and freed in one window."""
    stays, held, born = places["stays"], {}, 0
    for i, place in enumerate(stays["place"]):
        if not first <= stays["born"][i] < end:
            continue
        if stays["born"][i] == stays["ended"][i]:
            born += stays["blocks"][i]
        elif stays["ended"][i] >= end:
            held[place] = held.get(place, 0) + int(stays["bytes"][i])
    return held, born


ONE_LINE = """
import ctypes, functools, heapq
lib, size = ctypes.CDLL("libcudart.so.13"), ctypes.c_size_t
at = ctypes.byref(ctypes.c_void_p())
take = functools.partial(lib.cudaMalloc, at)
for step in range(5):
    take(size(1 << 20)), heapq.nlargest(1, [size(1 << 21)], key=take)
"""


class Page(unittest.TestCase):
    def test_places_of_one_line_have_its_name_whatever_it_called(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "train.py")
            with open(program, "w") as file:
                file.write(ONE_LINE)
            with e2e.Recording("python3", program) as run:
                analyze("-q", run.traces)
                page = run.page()
        places, = page["places"]
        self.assertEqual(sorted(map(int, places["made_bytes"])), [5 << 20, 10 << 20])
        self.assertEqual({page["strings"][name] for name in places["name"]}, {"train.py:7 <module>"})

    def test_the_page_tells_of_any_two_of_its_windows_what_tree_tells(self):
        with e2e.Recording("python3", "-c", LIVES, APPS=e2e.APPS) as run:
            analyze("-q", run.traces)
            page = run.page()
            table = json.loads(analyze("table", "--at", "end", "--by", "library", "--json", run.traces)[0])
            places, = page["places"]
            stays = places["stays"]
            edges = [int(page["t0_unix_ns"]) + round(stays["begin"] + k * stays["width"]) - 1 for k in range(stays["windows"] + 1)]
            self.assertGreater(stays["windows"], 8)
            events = [event for event in map(json.loads, analyze("dump", run.traces)[0].splitlines()) if event["bytes"]]
            segment, = [event for event in events if event["bytes"] == 256 * MIB]
            tensor = min(event["t0_ns"] for event in events if event["kind"] == "block")
            self.assertLess(segment["t1_ns"], tensor)
            seen = 0
            for first, end in ((0, stays["windows"]), (0, 5), (3, stays["windows"] - 2), (stays["windows"] // 2, stays["windows"] // 2 + 3)):
                held, _ = range_of(places, first, end)
                early = any(segment["t1_ns"] <= edges[at] <= tensor for at in (first, end))  # then the segment still counts as a block, not as a pool
                if sum(held.values()) and not early:
                    to = str(edges[end]) if end < stays["windows"] else "end"  # the process ends within the last window
                    tree = json.loads(analyze("tree", "--from", str(edges[first]), "--to", to, "--json", run.traces)[0])
                    self.assertEqual(sum(held.values()), tree["bytes"], (first, end))
                    seen += 1
            *_, born = (event for event in events if event["verb"] == "ALLOC")
            before, after = (json.loads(analyze("tree", "--to", str(born["t1_ns"] - early), "--json", run.traces)[0])["bytes"] for early in (1, 0))
            self.assertEqual(after - before, born["bytes"])  # a moment is exact to the nanosecond
            self.assertGreater(seen, 0)  # the whole run can always be compared; the others depend on the machine's pace
            held, born = range_of(places, 0, stays["windows"])
            self.assertEqual({place: int(held.get(place, 0)) for place in range(len(places["stack"]))}, dict(enumerate(places["live_bytes"])))
            self.assertEqual(born, sum(places["made"]))
            blocks = [owner for owner in table["owners"] if owner["temporary"] is not None and owner["made"]]
            self.assertEqual((sum(places["made"]), sum(places["temporary"])), (sum(o["made"] for o in blocks), sum(o["temporary"] for o in blocks)))
            shown = {}
            for i, size_class in enumerate(stays["size_class"]):
                if stays["born"][i] == stays["ended"][i]:
                    shown[size_class] = shown.get(size_class, 0) + int(stays["blocks"][i])
            told = {}
            for owner in blocks:
                for size in owner["sizes"]:
                    told[size["up_to_bytes"]] = told.get(size["up_to_bytes"], 0) + size["blocks"]
            self.assertEqual({512 << 2 * k: n for k, n in shown.items()}, told)


class Once(unittest.TestCase):
    def test_memory_of_the_host_is_none_of_the_device(self):
        with e2e.Recording("/usr/bin/python3", "-c", ON_HOST, SIM_VRAM="4G") as run:
            report = run.report()
            rows = {(row["kind"], row["device"]): row["live_bytes"] for row in report["processes"][0]["memory"]}
            self.assertEqual(rows, {("device", 0): 10 * MIB, ("vmm", 0): 20 * MIB, ("vmm", None): 120 * MIB})
            self.assertEqual(report["run"]["devices"][0]["known_peak_bytes"], 30 * MIB)
            for words in (["tree"], ["tree", "--at", "end"], ["table"], ["tree", "--from", "start", "--to", "end"]):
                self.assertIn("30.0 MiB  pid", analyze(*words, run.traces)[0], words)

    def test_what_is_damaged_is_said_once(self):
        with e2e.Recording("/usr/bin/python3", "-c", PROGRAM, LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
            trace, = [name for name in run.files() if name.endswith(".zst")]
            with open(os.path.join(run.traces, trace), "r+b") as file:
                file.truncate(file.seek(0, 2) - 100)
            for words in (["--from", "start", "--to", "end"], ["--at", "0.001"], ["--at", "end"]):
                said = [line for line in analyze("tree", *words, run.traces)[1].splitlines() if trace in line]
                self.assertTrue(said, words)
                self.assertEqual(len(said), len(set(said)), said)

    def test_a_torn_frame_is_told_with_what_was_read_before_it(self):
        with e2e.script("calls=8000") as run:
            trace, = [os.path.join(run.traces, name) for name in run.files() if name.endswith(".zst")]
            whole = len(analyze("dump", run.traces)[0].splitlines())
            os.truncate(trace, os.path.getsize(trace) * 3 // 5)
            lines, said = (text.splitlines() for text in analyze("dump", run.traces))
            torn, = [re.search(r"frame is torn; ([\d ]+) events before it were read", line) for line in said if "torn" in line]
            self.assertEqual(int(torn[1].replace(" ", "")), len(lines))
            self.assertTrue(0 < len(lines) < whole)

    def test_a_kill_in_the_middle_of_a_write_is_no_damage(self):
        """The kernel may end a killed process's write after any page.  The ring still has what was being written."""
        def when(run):
            while not os.path.exists(os.path.join(run.folder, "made")):
                time.sleep(0.02)
        for cut in (12, 64, 80, None):
            with self.subTest(cut), e2e.script("calls=8000", "ready=made", "wait=never", kill_when=when, code=-9) as run:
                trace, = [os.path.join(run.traces, name) for name in run.files() if name.endswith(".zst")]
                whole, said = analyze("dump", run.traces)
                torn = re.search(r"offset (\d+): its last frame was being written", said)
                with open(trace, "r+b") as file:
                    if torn: # by this kill itself
                        file.truncate(int(torn[1]))
                    data = file.read()
                    if cut:
                        start = data.index(b"\x5c\x2a\x4d\x18", 4)
                        file.write(data[start:start + cut])
                    else:
                        file.truncate(len(data) * 3 // 5)
                mine, = run.report()["processes"]
                self.assertEqual(mine["damaged"], cut is None)
                self.assertEqual(mine["lost_events"] > 0, cut is None)
                dump, said = analyze("dump", run.traces)
                self.assertEqual(dump == whole, cut is not None)
                self.assertIn("its last frame was being written" if cut else "is torn", said)


if __name__ == "__main__":
    unittest.main()
