#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze export: each format read back by its own tool or schema, and its numbers equal to the report's."""
import csv
import gzip
import io
import json
import os
import pickle
import pickletools
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "gate"), os.path.join(HERE, "..", "e2e")]
from e2e import ANALYZE, APPS, BUILD, SCRIPT, Recording, script
import formats
import most
import outside

FORMATS = formats.of(ANALYZE)
DEMO = os.path.join(BUILD, "tests", "analyzer", "make_demo_trace")

# The pickle opcodes that unpickle() of torch/utils/viz/MemoryViz.js knows.
VIEWER = {"PROTO", "MARK", "STOP", "BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "BINFLOAT", "NONE",
          "NEWTRUE", "NEWFALSE", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "APPEND",
          "APPENDS", "SETITEM", "SETITEMS", "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "FRAME"}


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-exports-")
        cls.demo = os.path.join(cls.folder, "demo")
        os.mkdir(cls.demo)
        subprocess.run([DEMO, cls.demo], check=True)
        cls.app = Recording(os.path.join(APPS, "runtime13"))
        cls.traces = {"demo": cls.demo, "app": cls.app.traces}
        cls.reports = {name: json.loads(subprocess.run([ANALYZE, "--json", path], capture_output=True, check=True).stdout)
                       for name, path in cls.traces.items()}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)
        shutil.rmtree(cls.app.folder)

    def export(self, form, *arguments, code=0, of="demo", binary=True):
        path = os.path.join(self.folder, "out." + form)
        done = subprocess.run([ANALYZE, "export", form, "-o", path, *map(str, arguments),
                               self.traces.get(of, of)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        self.stderr = done.stderr
        if code:
            return None
        with open(path, "rb") as file:
            data = file.read()
        return data if binary else data.decode()

    def known(self, process, what="peak_bytes"):
        return sum(row[what] for row in process["memory"]
                   if row["kind"] in ("device", "pool", "vmm", "array", "graph"))

    # every format

    def test_a_line_is_called_what_the_report_calls_it(self):
        """A helper that is called from several lines is not the line that is named."""
        text = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
def take(size):
    block = ctypes.c_void_p()
    cudart.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(size << 20))
first = take(1)
second = take(2)
third = take(4)
"""
        with Recording("python3", "-c", "exec(compile(%r, 'train.py', 'exec'))" % text) as run:  # gives the code a file name, which -c does not
            places = json.loads(subprocess.run([ANALYZE, "table", "--at", "peak", "--by", "place", "--json", run.traces], capture_output=True,
                                               check=True).stdout)
            named = {owner["bytes"]: owner["name"] for owner in places["owners"]}
            self.assertEqual(named, {1 << 20: "train.py:7 <module>", 2 << 20: "train.py:8 <module>", 4 << 20: "train.py:9 <module>"})
            wanted = {size: name + " via train.py:6 take" for size, name in named.items()}
            rows = csv.DictReader(io.StringIO(self.export("csv", of=run.traces, binary=False)))
            self.assertEqual({int(row["bytes"]): row["where"] for row in rows if row["api"] == "cudaMalloc"}, wanted)
            rows = map(json.loads, self.export("ndjson", of=run.traces, binary=False).splitlines())
            self.assertEqual({row["bytes"]: row["where"] for row in rows if row.get("api") == "cudaMalloc"}, wanted)
            self.export("sqlite", of=run.traces)
            with sqlite3.connect(os.path.join(self.folder, "out.sqlite")) as base:
                self.assertEqual(dict(base.execute("SELECT bytes, line FROM held_at_end")), wanted)

    def test_functions_that_differ_only_at_the_end_of_long_names_are_apart(self):
        names = ["f" * 700 + end for end in "ab"]
        text = "import ctypes; cudart = ctypes.CDLL('libcudart.so.13'); take = cudart.cudaMalloc; block = ctypes.c_void_p()\n"
        text += "exec(compile('def %s(): take(ctypes.byref(block), ctypes.c_size_t(1 << 20))', 'train.py', 'exec'));" * 2 % tuple(names)
        with Recording("python3", "-c", text + "%s(); %s()" % tuple(names)) as run:
            lines = self.export("collapsed", of=run.traces, binary=False).splitlines()
            self.assertEqual([sum(name in line for line in lines) for name in names], [1, 1])
            frames = json.loads(self.export("speedscope", of=run.traces))["shared"]["frames"]
            self.assertEqual([sum(name in frame["name"] for frame in frames) for name in names], [1, 1])
            texts = gzip.decompress(self.export("pprof", of=run.traces))
            self.assertEqual([texts.count(name.encode()) for name in names], [1, 1])
            for verb in ("tree", "flame"):
                shown = subprocess.run([ANALYZE, verb, "--at", "end", run.traces], capture_output=True, check=True, text=True).stdout
                whole = "".join(shown.split())  # a name longer than the width is cut into lines
                self.assertEqual([whole.count(name) for name in names], [1, 1], verb)
            leaks = run.report()["leaks"]
            self.assertEqual([leak["bytes"] for leak in leaks], [1 << 20, 1 << 20])
            screen = subprocess.run([ANALYZE, run.traces], capture_output=True, check=True, text=True).stdout
            self.assertRegex(screen, r"2\.00  MiB held, at the peak(.*\n)+ +2\.00 .*train\.py:1 f{20}")

    def test_what_goes_to_stdout_is_what_goes_to_a_file(self):
        for form in FORMATS:
            data = self.export(form)
            self.assertTrue(data, form)
            if form != "sqlite":
                out = subprocess.run([ANALYZE, "export", form, self.demo], capture_output=True, check=True).stdout
                self.assertEqual(out, data, form)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".part")], [])

    def test_bad_names_and_values_are_usage(self):
        self.export("excel", code=2)
        self.assertIn("pytorch-snapshot", self.stderr)
        self.export("csv", "--from", "yesterday", code=2)
        self.export("csv", "--from", "2", "--to", "1", code=2)
        self.assertIn("1 is not after 2", self.stderr)
        self.export("csv", "--rank", "first", code=2)
        self.export("csv", "--rank", "7", code=2)
        self.export("csv", "--run", "nobody", code=2)
        self.export("csv", "--weigh", "heavy", code=2)
        self.export("csv", "--max-events", "0", code=2)
        self.export("csv", "--colour", code=2)
        self.export("csv", "--json", code=2)
        self.assertIn("ndjson are JSON", self.stderr)
        self.export("csv", of=os.path.join(self.folder, "nowhere"), code=2)
        for arguments in (["export"], ["export", "csv"], ["export", "sqlite", self.demo], ["export", "sqlite", "-o", "-", self.demo]):
            self.assertEqual(subprocess.run([ANALYZE, *arguments], capture_output=True).returncode, 2, arguments)

    def test_nothing_readable_is_3_and_leaves_no_file(self):
        empty = os.path.join(self.folder, "empty")
        broken = os.path.join(self.folder, "broken")
        for folder in (empty, broken):
            os.makedirs(folder, exist_ok=True)
        with open(os.path.join(broken, "rank-00000-1.msgpack.zst"), "wb") as file:
            file.write(b"\x00" * 100)
        for form in FORMATS:
            target = os.path.join(self.folder, "out." + form)
            if os.path.exists(target):
                os.unlink(target)
            self.export(form, of=empty, code=3)
            self.export(form, of=broken, code=3)
            self.assertFalse(os.path.exists(target))

    def test_a_trace_without_an_allocation_exports(self):
        with Recording(os.path.join(APPS, "ending"), "return", code=None) as run:
            for form in FORMATS:
                self.export(form, of=run.traces)

    def test_a_killed_process_exports(self):
        self.assertEqual(self.reports["demo"]["processes"][1]["status"], "interrupted")
        for form in FORMATS:
            self.export(form, "--rank", 1)

    # lines

    def rows(self, *arguments, of="demo"):
        return list(csv.DictReader(io.StringIO(self.export("csv", *arguments, of=of, binary=False), newline="")))

    def test_csv_and_ndjson_have_every_event_of_dump(self):
        steps = []
        for name, path in self.traces.items():
            dump = [json.loads(line) for line in subprocess.run([ANALYZE, "dump", path], capture_output=True).stdout.splitlines()]
            events = [line for line in map(json.loads, self.export("ndjson", of=name).splitlines()) if line["type"] == "event"]
            rows = self.rows(of=name)
            self.assertEqual((len(events), len(rows)), (len(dump), len(dump)))
            for row, event, true in zip(rows, events, dump):
                for column in ("t0_ns", "t1_ns", "rank", "pid", "thread", "api", "verb", "kind", "address", "bytes", "device",
                               "stream", "result", "label", "step"):
                    self.assertEqual(event[column], true[column], column)
                    self.assertEqual(row[column], "" if true[column] is None else str(true[column]), column)
            steps += [row["step"] for row in dump if row["step"] is not None]
        self.assertTrue(steps)

    def test_a_part_of_the_time_is_a_part_of_the_events(self):
        rows = self.rows("--rank", 0)
        middle = rows[len(rows) // 2]["t0_ns"]
        early, late = self.rows("--rank", 0, "--to", middle), self.rows("--rank", 0, "--from", middle)
        self.assertTrue(early and late)
        self.assertEqual(early + late, rows)
        self.assertEqual({row["rank"] for row in rows}, {"0"})
        self.assertEqual(self.rows("--from", "1000000"), [])

    # stacks

    def test_collapsed_adds_up_to_the_peaks(self):
        text = self.export("collapsed", binary=False)
        for process in self.reports["demo"]["processes"]:
            lines = [line for line in text.splitlines() if line.startswith("rank %d;" % process["rank"])]
            self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines), self.known(process))
        self.assertIn("rank 0;train.py:89 <module>;train.py:98 train_step;train.py:97 remember;train.py ",
                      re.sub(r"train.py:\d+ <module>", "train.py:89 <module>", text))

    def test_collapsed_weighs_what_is_live_too(self):
        text = self.export("collapsed", "--weigh", "live", binary=False)
        total = sum(self.known(process, "live_bytes") for process in self.reports["demo"]["processes"])
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()), total)

    def test_speedscope_fits_its_schema(self):
        file = json.loads(self.export("speedscope"))
        self.assertEqual([sum(profile["weights"]) for profile in file["profiles"]],
                         [self.known(process) for process in self.reports["demo"]["processes"]])
        for profile in file["profiles"]:
            self.assertEqual(profile["endValue"], sum(profile["weights"]))
            self.assertLess(max(max(sample) for sample in profile["samples"]), len(file["shared"]["frames"]))
        outside.validate(self, file, outside.speedscope_schema(self))

    def test_pprof_opens_in_go_tool_pprof(self):
        self.export("pprof")
        tool = outside.tool(self, "go", "golang-go")
        top = subprocess.run([tool, "tool", "pprof", "-top", "-unit=B", os.path.join(self.folder, "out.pprof")], capture_output=True,
                             text=True, env=dict(os.environ, HOME=self.folder))
        self.assertEqual(top.returncode, 0, top.stderr)
        self.assertIn("Type: peak_space", top.stdout)
        total = sum(self.known(process) for process in self.reports["demo"]["processes"])
        self.assertEqual(int(re.search(r"of (\d+)B total", top.stdout)[1]), total)
        self.assertRegex(top.stdout, r"(?m) remember$")

    # perfetto

    def packets(self, *arguments, **of):
        trace_pb2 = outside.perfetto_messages(self)
        trace = trace_pb2()
        trace.ParseFromString(self.export("perfetto", *arguments, **of))
        return trace.packet

    def test_protoc_knows_every_field_by_the_published_schema(self):
        data = self.export("perfetto")
        protoc = outside.tool(self, "protoc", "protobuf-compiler")
        schema, head = outside.perfetto_descriptor(self), b"\n"  # FileDescriptorSet.file
        size = len(schema)
        while size > 127:
            head, size = head + bytes([size & 127 | 128]), size >> 7
        path = os.path.join(self.folder, "perfetto.set")
        with open(path, "wb") as file:
            file.write(head + bytes([size]) + schema)
        done = subprocess.run([protoc, "--descriptor_set_in=" + path, "--decode=perfetto.protos.Trace"], input=data, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(rb"(?m)^ *\d+[:{ ].*", done.stdout), [])  # protoc prints unknown fields by number
        self.assertGreater(done.stdout.count(b"\npacket {"), 100)

    def test_perfetto_counts_up_to_the_peak_and_closes_what_it_opens(self):
        packets = self.packets("--rank", 0)
        tracks = {p.track_descriptor.uuid: p.track_descriptor for p in packets if p.HasField("track_descriptor")}
        held = next(uuid for uuid, track in tracks.items() if track.name == "device 0 held")
        values = [p.track_event.counter_value for p in packets if p.track_event.track_uuid == held]
        self.assertEqual(max(values), self.known(self.reports["demo"]["processes"][0]))
        self.assertEqual(tracks[held].counter.unit, 3)
        types = [p.track_event.type for p in packets if p.HasField("track_event")]
        self.assertEqual(types.count(1), 100)  # a slice for each step
        self.assertEqual(types.count(2), 100)
        names = {p.track_event.name for p in packets if p.track_event.type == 1}
        self.assertIn("step_42", names)
        for p in packets:
            if p.HasField("track_event"):
                self.assertIn(p.track_event.track_uuid, tracks)
        self.assertRegex(packets[0].system_info.tracing_service_version, r"^stormlog \d")
        self.assertEqual(packets[1].sequence_flags, 1)

    def test_perfetto_counts_down_with_frees_that_name_no_device(self):
        packets = self.packets(of="app")
        held = next(p.track_descriptor.uuid for p in packets if p.track_descriptor.name == "device 0 held")
        values = [p.track_event.counter_value for p in packets if p.track_event.track_uuid == held]
        self.assertEqual(values[-1], sum(row["live_bytes"] for row in self.reports["app"]["processes"][0]["memory"]
                                         if row["device"] == 0 and row["kind"] in ("device", "pool", "vmm", "array", "graph")))

    def test_perfetto_marks_what_ran_out_of_memory(self):
        found = [p.track_event for p in self.packets("--rank", 1) if p.track_event.type == 3]
        self.assertEqual([event.name for event in found], ["out of memory: cudaMalloc"])
        notes = {note.name: note for note in found[0].debug_annotations}
        self.assertEqual(notes["requested_bytes"].uint_value, 20 << 30)
        self.assertIn("forward", notes["where"].string_value)

    # pytorch-snapshot

    def snapshot(self, *arguments, of="demo"):
        return pickle.loads(self.export("pytorch-snapshot", *arguments, of=of))

    def test_the_snapshot_has_opcodes_of_the_viewer_alone(self):
        for name in self.traces:
            found = {op.name for op, _, _ in pickletools.genops(self.export("pytorch-snapshot", of=name))}
            self.assertEqual(found - VIEWER, set())

    def test_what_has_no_address_is_said_to_be_missing(self):
        program = """
import ctypes
cudart, cuda = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1")
assert cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(4 << 20)) == 0
prop = (ctypes.c_int * 16)(1, 1, 1, 0)
assert cuda.cuMemCreate(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(64 << 20), prop, ctypes.c_uint64(0)) == 0
assert cudart.cudaMallocArray(ctypes.byref(ctypes.c_void_p()), (ctypes.c_int * 5)(32, 0, 0, 0, 2), ctypes.c_size_t(1024), ctypes.c_size_t(1024), 0) == 0
"""
        run = Recording(sys.executable, "-c", program)
        self.addCleanup(shutil.rmtree, run.folder)
        done = subprocess.run([ANALYZE, "export", "pytorch-snapshot", "-q", run.traces], check=True, capture_output=True)
        self.assertEqual([segment["total_size"] for segment in pickle.loads(done.stdout)["segments"]], [4 << 20])
        self.assertIn(b"left out of the snapshot (no device address): 64.0 MiB unmapped, 4.00 MiB in arrays\n", done.stderr)
        self.assertNotIn("not in the snapshot", (self.snapshot(), self.stderr)[1])

    def test_an_error_in_the_snapshot_has_what_was_free(self):
        """The simulated device has 8 GiB, of which the context takes 300 MiB."""
        with script("alloc=1024", "try=9000") as run:
            (trace,) = self.snapshot(of=run.traces)["device_traces"]
        self.assertEqual({entry["device_free"] for entry in trace if entry["action"] == "oom"}, {(8192 - 300 - 1024) << 20})

    def test_our_reader_has_the_figures_of_the_run_and_no_cache_of_programs_without_one(self):
        """cudaFree before cudaMalloc is no cache that PyTorch gives back; ggml's buffers and TensorFlow's pool lead to the final state."""
        pools, journal = os.path.join(BUILD, "tests", "pools"), ["env", "POOLS_JOURNAL=journal.txt"]
        for argv in [sys.executable, SCRIPT, "alloc=8", "calls=50", "alloc=2"], *([*journal, os.path.join(pools, name)] for name in ("llama", "tensorflow")):
            with self.subTest(argv[-1]), Recording(*argv) as run:
                said = json.loads(subprocess.run([ANALYZE, "--json", run.traces], check=True, capture_output=True).stdout)["run"]["devices"][0]
                self.export("pytorch-snapshot", "-q", of=run.traces)
                path = os.path.join(self.folder, "out.pytorch-snapshot")
                report, screen = (subprocess.run([ANALYZE, *more, "-o", os.path.join(self.folder, "read"), path], check=True, capture_output=True, text=True).stdout
                                  for more in (["--json"], []))
                self.assertEqual(json.loads(report)["processes"][0]["pytorch"][0]["peak_reserved_bytes"], said["known_peak_bytes"])
                self.assertNotRegex(screen, "incomplete|NEARLY|cache back|empty_cache")

    def test_the_snapshots_lists_are_spread_in_small_batches(self):
        depth, worst, items = [], 0, 0
        for op, _, _ in pickletools.genops(self.export("pytorch-snapshot", "--rank", 0)):
            if op.name == "MARK":
                depth.append(0)
            elif op.name in ("APPENDS", "SETITEMS"):
                worst = max(worst, depth.pop())
            elif depth and op.name in ("EMPTY_LIST", "EMPTY_DICT", "BINUNICODE", "BININT", "BININT1", "LONG1", "NEWTRUE", "NEWFALSE",
                                       "LONG_BINGET"):
                depth[-1] += 1
        self.assertLessEqual(worst, 2000)  # 1000 keys and their values

    def test_blocks_tile_their_segments(self):
        for snapshot in (self.snapshot(), self.snapshot(of="app"), self.snapshot(of=self.blocks())):
            for segment in snapshot["segments"]:
                at = segment["address"]
                for block in segment["blocks"]:
                    self.assertEqual(block["address"], at)
                    at += block["size"]
                self.assertEqual(at, segment["address"] + segment["total_size"])
                self.assertLess(segment["device"], len(snapshot["device_traces"]))
                for frame in segment["frames"]:
                    self.assertIsInstance(frame["name"], str)
                    self.assertIsInstance(frame["filename"], str)

    def blocks(self):
        folder = os.path.join(self.folder, "blocks")
        if not os.path.isdir(folder):
            os.mkdir(folder)
            subprocess.run([os.path.join(BUILD, "tests", "exports", "make_blocks"), folder, "3000"], check=True)
        return folder

    def test_segments_of_pytorch_hold_its_blocks(self):
        segments = self.snapshot(of=self.blocks())["segments"]
        self.assertEqual([segment["total_size"] for segment in segments], [20 << 20])
        states = [(block["state"], block["size"]) for block in segments[0]["blocks"]]
        self.assertEqual(states, [("active_allocated", 1 << 20), ("inactive", 1 << 20), ("active_allocated", 2 << 20),
                                  ("inactive", 16 << 20)])

    def test_the_segments_are_what_is_live(self):
        for name in self.traces:
            segments = self.snapshot(of=name)["segments"]
            live = sum(row["live_bytes"] for process in self.reports[name]["processes"] for row in process["memory"]
                       if row["kind"] in ("device", "pool", "managed", "graph"))
            self.assertEqual(sum(segment["total_size"] for segment in segments if not segment["is_expandable"]), live)

    def test_the_events_replay_to_the_segments(self):
        snapshot = self.snapshot("--rank", 0)
        live = {}
        for event in snapshot["device_traces"][0]:
            if event["action"] == "alloc":
                self.assertNotIn(event["addr"], live)
                live[event["addr"]] = event["size"]
            elif event["action"] == "free_completed":
                self.assertEqual(live.pop(event["addr"]), event["size"])
        self.assertEqual(live, {block["address"]: block["size"] for segment in snapshot["segments"] for block in segment["blocks"]})
        self.assertEqual({event["category"] for event in snapshot["device_traces"][0]},
                         {"libcublas.so.13", "train.py", "unknown"})

    def test_the_cap_keeps_the_newest_and_is_said(self):
        whole = self.snapshot(of=self.blocks())["device_traces"][0]
        few = self.snapshot("--max-events", 50, of=self.blocks())["device_traces"][0]
        self.assertIn("the newest 50 of ", self.stderr)
        self.assertEqual(few[-20:], whole[-20:])
        self.assertLessEqual(len(few), 51)

    def test_pytorchs_own_reader_takes_it(self):
        snapshot = self.snapshot()
        viz = outside.memory_viz(self)
        path = os.path.join(self.folder, "out.pytorch-snapshot")
        verbs = ("segsum", "trace")
        if "segsum" not in subprocess.run([sys.executable, viz, "--help"], capture_output=True, text=True).stdout:
            verbs = ("stats",)  # torch 1.13 reads only a list of segments
            with open(path, "wb") as file:
                pickle.dump(snapshot["segments"], file)
        for verb in verbs:
            done = subprocess.run([sys.executable, viz, verb, path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("active_allocated" if verb == "stats" else "seg", done.stdout)

    # the others

    def test_prometheus_passes_promtool(self):
        data = self.export("prometheus")
        self.assertTrue(data.endswith(b"\n"))
        self.assertIn(b'pid="4242",rank="0",device="0",kind="device"} %d\n' % self.known(self.reports["demo"]["processes"][0]), data)
        done = subprocess.run([outside.tool(self, "promtool", "prometheus"), "check", "metrics"], input=data, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_sqlite_answers_as_the_report_does(self):
        self.export("sqlite")
        base = sqlite3.connect(os.path.join(self.folder, "out.sqlite"))
        self.addCleanup(base.close)
        self.assertEqual(base.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        for process in self.reports["demo"]["processes"]:
            self.assertEqual(base.execute("SELECT count(*) FROM events JOIN processes USING(process) WHERE pid = ? AND t1_ns NOT NULL",
                                          (process["pid"],)).fetchone(), (process["events"],))
            self.assertEqual(base.execute("SELECT sum(bytes) FROM held_at_peak WHERE pid = ?", (process["pid"],)).fetchone(),
                             (self.known(process),))
        self.assertEqual(base.execute("SELECT api, bytes FROM failures").fetchall(), [("cudaMalloc", 20 << 30)])

    def test_the_documented_queries_run(self):
        self.export("sqlite")
        base = sqlite3.connect(os.path.join(self.folder, "out.sqlite"))
        self.addCleanup(base.close)
        with open(os.path.join(HERE, "..", "..", "doc", "sqlite.md")) as page:
            queries = re.findall(r"```sql\n(.*?)```", page.read(), re.S)
        self.assertGreaterEqual(len(queries), 5)
        if sqlite3.sqlite_version_info < (3, 35):
            queries = [query for query in queries if "log2" not in query]
        for query in queries:
            with self.subTest(query):
                self.assertTrue(base.execute(query).fetchall())
        # a free of a bad pointer fails too, but is no out of memory
        names = [row[1] for row in base.execute("PRAGMA table_info(events)")]
        values = {"api": "'cudaFree'", "verb": "'FREE'", "bytes": "0", "result": "1"}
        base.execute("INSERT INTO events SELECT %s FROM events WHERE api = 'cudaMalloc' AND result = 2" %
                     ", ".join(values.get(name, name) for name in names))
        query, = (query for query in queries if "FROM failures" in query)
        self.assertEqual([row[2] for row in base.execute(query)], ["cudaMalloc"])

    def test_memory_does_not_grow_with_the_trace(self):
        big = os.path.join(self.folder, "big")
        os.mkdir(big)
        subprocess.run([os.path.join(BUILD, "tests", "exports", "make_blocks"), big, "200000"], check=True)
        for form in ("csv", "ndjson", "perfetto", "pytorch-snapshot", "sqlite", "pprof"):
            peaks = []
            for path in (self.blocks(), big):
                target = os.path.join(self.folder, "size.sqlite") if form == "sqlite" else "/dev/null"
                done, kib = most.run([ANALYZE, "export", form, "--max-events", "1000", "-o", target, path], stderr=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0)
                peaks.append(kib)
            self.assertLess(peaks[1], peaks[0] + 24 * 1024, "%s: KiB of a small and of a big trace: %s" % (form, peaks))


if __name__ == "__main__":
    unittest.main()
