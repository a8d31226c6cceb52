#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The reader in Python, written from the page of the format, and stormlog-analyze dump agree about real traces."""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "..", "python"), os.path.join(HERE, "..", "hostile")]
from e2e import ANALYZE, APPS, BUILD, Recording
import stormlog_trace
import traces


class Reader(unittest.TestCase):
    def dump(self, path):
        return [json.loads(line) for line in subprocess.run([ANALYZE, "dump", path], capture_output=True).stdout.splitlines()]

    def assert_same(self, folder):
        """Compares every event of the dump, in every field that both have."""
        mine = []
        for trace in stormlog_trace.open_folder(folder):
            events, names, texts = trace.events(), trace.names(), trace.texts()
            if not events:
                continue
            stamps = trace.unix_ns(events["time_ns"])
            before = {0: False, **{i + 1: trace.header["verbs"][hook[1]][1] == "before" for i, hook in enumerate(trace.hooks)}}
            for i in range(len(stamps)):
                api, flying = int(events["api"][i]), int(events["flags"][i]) & stormlog_trace.FLAG_IN_FLIGHT
                begin = int(stamps[i]) - (0 if before[api] or flying else int(events["duration_ns"][i]))
                mine.append((begin, trace.header["pid"], names[api], int(events["address"][i]) or None, int(events["bytes"][i]) or None,
                             None if events["device"][i] < 0 else int(events["device"][i]), None if flying else int(events["result"][i]),
                             texts[int(events["label"][i])]))
        theirs = [(e["t0_ns"], e["pid"], e["api"], e["address"], e["bytes"], e["device"], e["result"], e["label"])
                  for e in self.dump(folder)]
        key = lambda row: tuple(str(field) for field in row)
        self.assertTrue(theirs)
        self.assertEqual(sorted(mine, key=key), sorted(theirs, key=key))

    def test_recorded_programs(self):
        for name in ("runtime13", "vmm", "pools", "graphs", "threads", "fork_exec"):
            with self.subTest(name), Recording(os.path.join(APPS, name), code=None) as run:
                self.assert_same(run.traces)

    def test_a_killed_process(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.path.join(BUILD, "tests", "analyzer", "make_demo_trace"), folder], check=True)
            self.assert_same(folder)
            self.assertEqual([trace.complete for trace in stormlog_trace.open_folder(folder)], [True, False])
            first = stormlog_trace.open_folder(folder)[0]
            samples = first.samples()
            self.assertEqual(len(samples["ns"]), 100)
            self.assertEqual(samples["used_bytes"][1] - samples["used_bytes"][0], 2 << 20)
            self.assertEqual(first.gaps, [])
            stack = first.stack(next(i for i in first.events()["python"] if i))
            self.assertEqual([frame[0] for frame in stack], ["forward", "train_step", "<module>"])

    def test_a_frame_that_was_taken_out_is_missed(self):
        events = traces.Thread().events(3, api=1, kind=1, duration_ns=1, address=[8, 16, 24], bytes=8)
        with tempfile.TemporaryDirectory() as folder:
            gap = traces.frame(traces.DEFS, traces.packed({"def": "gap", "count": 2, "begin_ns": 1, "end_ns": 2, "why": "removed", "removed": 1}))
            for said, told, damage in (3, [], []), (5, [], ["its end says that it has 5 events, and it has 3: the others are missing"]), (5, [gap], []):
                path = traces.write(os.path.join(folder, "rank-00000-1.msgpack.zst"), traces.header(), events, *told, traces.footer(events=said))
                self.assertEqual([why.partition(": ")[2] for _, why in stormlog_trace.Trace(path).damage], damage)

    def test_what_is_no_definition_is_damage_and_the_rest_is_read(self):
        good = [traces.header(), traces.Thread().events(3, api=1, kind=1, duration_ns=1, address=[8, 16, 24], bytes=8), traces.footer()]
        column = lambda count, api: traces.packed(  # of width 0
            {"def": "block", "thread": 1, "first": 1, "next": 2, "count": count, "columns": {"api": [0, 0, 0, api, b""]}})
        right = [0, 8, 0, 1, bytes(8)]
        wrong = [traces.packed({"def": "block", "thread": 1, "first": 1, "next": 2, "count": 1, "columns": {
            "api": [0, 0, 0, 1, b""], "time_ns": right, "bytes": right[:at] + [value] + right[at + 1:]}})
                 for at in range(5) for value in ([], [1], [[1], [2]], None, {}, 1.5, "x", -1, 1 << 63) if at != 3 or not isinstance(value, int)]
        wrong += [traces.packed({"def": "block", "thread": value, "first": 1, "next": 2, "count": 1, "columns": {"api": [0, 0, 0, 1, b""], "time_ns": right}})
                  for value in ([], [1], None, 1.5, "x")]
        with tempfile.TemporaryDirectory() as folder:
            for content in (traces.packed([1]), traces.packed({"def": "block"}), b"\xc1", *wrong, column(1, 99), column(1 << 60, 1), column(-1, 1),
                            traces.packed({"def": "header", "hooks": [["f", 99, 0, 0]], "verbs": []}), traces.packed({"def": "checkpoint"})):
                traces.write(os.path.join(folder, "rank-00000-1.msgpack.zst"), *good[:2], traces.frame(traces.DEFS, content), good[2])
                trace, = stormlog_trace.open_folder(folder)
                self.assertEqual((len(trace.events()["api"]), len(trace.damage), trace.complete), (3, 1, True), content)

    def test_a_malformed_definition_is_damage_and_every_question_has_an_answer(self):
        right = [{"def": "text", "id": 1, "text": "x"}, {"def": "frame", "id": 1, "function": "f", "file": "a.py", "line": 3},
                 {"def": "python_stack", "id": 1, "frames": [1]}, {"def": "native_stack", "id": 1, "pcs": bytes(8)},
                 {"def": "module", "base": 0, "end": 9, "path": "a", "ns": 1}, {"def": "sample", "ns": 1}]
        wrong = [None, "zz", [1], {"a": 1}, b"zz", 1.5]
        cases = [(name, value, {}, [dict(one, **{name: value}) for one in right if name in one]) for name in ("id", "text", "function", "frames", "pcs", "base", "ns") for value in wrong]
        cases += [("frames", "none there", {}, right + [{"def": "python_stack", "id": 1, "frames": [7, 8, 2 ** 63]}]),
                  ("frames", "too many", {}, right + [{"def": "python_stack", "id": 1, "frames": [1] * 5000}])]
        cases += [(name, value, {name: value}, right) for name in ("hooks", "verbs", "kinds", "fields", "started_ns", "monotonic_ns", "pid", "rank", "run_id", "ring", "format", "version")
                  for value in [*wrong, 2 ** 63, -2 ** 63, [[]], [["a"]], [["a", "b", "c", "d"]], "x" * 5000, "../x\0y"]]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rank-00000-1.msgpack.zst")
            traces.write(os.path.join(folder, "rank-00000-1.no-num.msgpack.zst"), b"")
            for name, value, header, maps in cases:
                with self.subTest("%s %r" % (name, value)):
                    events = traces.Thread().events(3, api=1, kind=1, duration_ns=1, address=[8, 16, 24], bytes=8, python=1, native=1, label=1)
                    traces.write(path, traces.header(**header), traces.defs(maps), events, traces.footer())
                    trace = stormlog_trace.Trace(path)
                    columns = trace.events()
                    self.assertEqual(len(columns.get("api", [])), 3 if trace.header else 0)
                    self.assertFalse(trace.header and name in ("format", "version"))
                    self.assertIn(trace.stack(1), ([], [("f", "a.py", 3)]))
                    trace.native_stack(1), trace.place(5, 5), trace.samples(), trace.gaps, trace.texts(), trace.names(), trace.verbs(), trace.hooks, trace.fields
                    if trace.header:
                        trace.unix_ns(columns["time_ns"])
                    self.assertTrue(all(why.startswith(path + ": ") for _, why in trace.damage))

    def test_blocks_of_other_columns_and_holes_are_read(self):
        few = traces.frame(traces.BLOCK, traces.packed({"def": "block", "thread": 2, "first": 1, "next": 5, "count": 2, "columns": {
            "api": traces.column("api", [1, 1]), "time_ns": traces.column("time_ns", [traces.T0, traces.T0])}}))
        with tempfile.TemporaryDirectory() as folder:
            path = traces.write(os.path.join(folder, "rank-00000-1.msgpack.zst"), traces.header(), traces.Thread().events(3, api=1, bytes=8), few)
            with open(path, "r+b") as file:
                file.truncate(1 << 40)
                file.seek((1 << 40) - (1 << 20))
                file.write(traces.footer())
            trace = stormlog_trace.Trace(path)
            self.assertEqual((len(trace.events()["bytes"]), sum(trace.events()["bytes"]), trace.complete), (5, 24, True))

    def test_a_file_system_that_knows_of_no_blocks_takes_no_events(self):
        constant = [0, 0, 0, 1, b""]
        block = traces.packed({"def": "block", "thread": 1, "first": 1, "next": 2, "count": 4096, "columns": {name: constant for name in traces.FIELDS}})
        few = traces.frame(traces.BLOCK, block * 140)  # of more numbers than any trace may have that takes no room
        with tempfile.TemporaryDirectory() as folder:
            path = traces.write(os.path.join(folder, "rank-00000-1.msgpack.zst"), traces.header(), few, traces.frame(traces.DEFS, os.urandom(100 << 10)), traces.footer())
            real, found = os.fstat, {}
            for blocks in None, 0, 1:
                def fstat(file):
                    status = real(file)
                    return os.stat_result(tuple(status)[:10], {"st_blocks": status.st_blocks if blocks is None else blocks})
                with mock.patch("os.fstat", fstat):
                    trace = stormlog_trace.Trace(path)
                found[blocks] = [why for _, why in trace.damage if "more events" in why], len(trace.blocks)
            self.assertEqual(found, dict.fromkeys((None, 0, 1), ([], 140)))

    def test_a_file_that_shrinks_while_it_is_read_is_damage(self):
        """In a process of its own, which ended by SIGBUS.  The trace shrinks where the reader knows how far it has data, the ring where it is open."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.path.join(BUILD, "tests", "analyzer", "make_demo_trace"), folder], check=True)
            (ring,) = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".ring")]
            trace = ring[:-len(".ring")] + ".msgpack.zst"
            with open(trace, "ab") as file:
                file.write(b"\1" * (1 << 22))
            for path, at, least in (trace, "os.lseek", 1), (ring, "Trace._take_ring", 0):
                done = subprocess.run([sys.executable, "-c", """if 1:
                    import os, sys
                    from unittest import mock
                    from stormlog_native import reader
                    path, trace, at, size = sys.argv[1:]
                    owner, name = getattr(reader, at.split(".")[0]), at.split(".")[1]
                    before = getattr(owner, name)
                    def shrinking(*arguments):
                        end = before(*arguments) if name == "lseek" else None
                        if arguments[2:] != (os.SEEK_DATA,):
                            os.truncate(path, int(size))
                        return end or before(*arguments)
                    with mock.patch.object(owner, name, shrinking):
                        found = reader.Trace(trace)
                    print(len(found.damage))""", path, trace, at, "100"], stdout=subprocess.PIPE, text=True,
                    env={**os.environ, "PYTHONPATH": os.path.join(HERE, "..", "..", "python")})
                self.assertEqual(done.returncode, 0, at)
                self.assertGreaterEqual(int(done.stdout), least, at)

    def test_maps_and_lists_are_counted(self):
        for content in (b"\x82" + traces.packed("def") + traces.packed("x") + traces.packed("a") + b"\xdd" + (4 << 20).to_bytes(4, "big") + b"\x90" * (4 << 20), b"\x80" * (4 << 20),
                        b"".join(traces.packed({"def": "x"}) for _ in range(1100000))):
            with tempfile.TemporaryDirectory() as folder:
                path = traces.write(os.path.join(folder, "rank-00000-1.msgpack.zst"), traces.header(), traces.frame(traces.DEFS, content), traces.footer())
                trace = stormlog_trace.Trace(path)
                self.assertIn("more definitions than a trace of its size has", trace.damage[0][1])

    def test_the_door_closes_to_what_the_analyzers_does(self):
        from stormlog_native import door
        with open(os.path.join(HERE, "..", "..", "analyzer", "base", "utf8.c")) as file:
            tables = dict(re.findall(r"uint32_t (steer|hide)\[\]\[2\] = \{(.*?)\};", file.read(), re.S))
        steer, hide = ({code for first, last in re.findall(r"\{(\w+), (\w+)\}", tables[name]) for code in range(int(first, 0), int(last, 0) + 1)}
                       for name in ("steer", "hide"))
        for code in range(0x110000):
            steers = code in steer or 0xD800 <= code < 0xE000
            found = [text == "?" and code != ord("?") for text in (door.text(chr(code)), door.line(chr(code)))]
            self.assertEqual(found, [steers, steers or code in hide], hex(code))
        names = "##vso[", "a###b", "::error", " ::x", "a::b", "caf\u00e9 \U0001f469\u200d\U0001f680", "mi\u200ckh\u00ad"
        self.assertEqual([door.line(text) for text in names], ["# #vso[", "a# # #b", ": :error", " : :x", "a::b", "caf\u00e9 \U0001f469\u200d\U0001f680", "mi?kh?"])
        self.assertEqual([door.text(text) for text in names], list(names))
        cells = "=1", "@a", "-3", "\t=x", "\uff1d1", "::e", " \u3000::x", "a;=b", "a; \"\"+b", "a;\uff0db", "a;b", "a=b,c", "##x", "x"
        with tempfile.TemporaryDirectory() as folder:
            pushed = traces.Thread().events(len(cells), api=3, duration_ns=1, label=list(range(1, len(cells) + 1)))
            traces.write(os.path.join(folder, "rank-00000-1.msgpack.zst"), traces.header(), traces.defs([{"def": "text", "id": i + 1, "text": text} for i, text in enumerate(cells)]), pushed, traces.footer())
            rows = subprocess.run([ANALYZE, "export", "csv", folder], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.assertEqual([door.cell(text) for text in cells], [row["label"] for row in csv.DictReader(rows)])

    def test_what_exceeds_a_limit_is_damage_with_its_file_and_offset(self):
        block = lambda count, columns: traces.packed({"def": "block", "thread": 1, "first": 1, "next": 2, "count": count, "columns": columns})
        constant = [0, 0, 0, 1, b""]
        whole = block(4096, {name: constant for name in traces.FIELDS})
        for content, why in ((b"\xc0" * (1 << 28), "unpacks to more than"), (b"\x80" * (60 << 20), "unpacks to more than"), (whole * 1000, "more events than"),
                             (block(1 << 20, {"api": constant}), "1048576 events"), (block(1, {str(i): constant for i in range(1000)}), "1000 columns")):
            for sized in True, False:
                with tempfile.TemporaryDirectory() as folder:
                    path, header = os.path.join(folder, "rank-00000-1.msgpack.zst"), traces.header()
                    traces.write(path, header, traces.frame(traces.DEFS, content, sized=sized), traces.footer())
                    trace, = stormlog_trace.open_folder(folder)
                    (at, told), = trace.damage
                    self.assertEqual((at, trace.complete), (len(header), True))
                    self.assertTrue(told.startswith(path + ": "))
                    self.assertIn(why if sized else "", told)

    def test_a_ring_that_a_trace_names_is_a_regular_file_of_its_owner(self):
        with tempfile.TemporaryDirectory() as folder:
            path, ring = os.path.join(folder, "rank-00000-100.msgpack.zst"), os.path.join(folder, "far")
            note = traces.ring(path, traces.record(traces.packed({"def": "note", "text": "far"})))

            def read(owner=None):
                traces.write(path, traces.header(ring=ring))
                if owner is not None:
                    os.chown(ring, owner, owner)
                return stormlog_trace.Trace(path)

            traces.write(ring, note)
            self.assertEqual((read().damage, read().defs["note"][0]["text"]), ([], "far"))
            if os.geteuid() == 0:
                trace = read(65534)
                self.assertEqual((trace.damage, trace.defs), ([(0, ring + ": is not read: it is not of the trace's owner")], {}))
            os.unlink(ring)
            traces.write(ring, note[:1000])
            self.assertIn("damaged ring", read().damage[0][1])
            os.unlink(ring)
            os.mkfifo(ring)
            self.assertEqual(read().damage, [(0, ring + ": is no regular file")])

    @unittest.skipUnless(os.geteuid() == 0, "only root makes files of others")
    def test_a_strangers_file_beside_a_trace_is_not_read(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o1777)
            path = traces.write(os.path.join(folder, "rank-00000-100.msgpack.zst"), traces.header())
            ring = traces.write(path[:-len(".msgpack.zst")] + ".ring", traces.ring(path, traces.record(traces.packed({"def": "note", "text": "x"}))))
            later = traces.write(path[:-len(".msgpack.zst")] + ".000002.msgpack.zst", traces.header(), traces.footer())
            self.assertEqual(stormlog_trace.Trace(path).damage, [])
            for beside in ring, later:
                os.chown(beside, 65534, 65534)
            trace = stormlog_trace.Trace(path)
            self.assertEqual((trace.defs, [why.split(": ")[0] for _, why in trace.damage]), ({}, [later, ring]))

    def test_a_file_between_others_that_is_gone_is_missed(self):
        """The analyzer says the same; files that are folded into the first are not missed."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rank-00000-100.msgpack.zst")
            checkpoint = {"def": "checkpoint", "through": 2, "log_next": 0, "threads": [], "blocks": []}
            for folded, there, missing in ((), (2, 3), None), ((), (2, 4), 3), ((), (3, 4), 2), ((checkpoint,), (3, 4), None), ((checkpoint,), (2, 4), 3):
                with self.subTest(there=there, folded=folded):
                    traces.write(path, traces.header(), traces.defs(folded))
                    later = [traces.write("%s.%06d.msgpack.zst" % (path[:-len(".msgpack.zst")], number), traces.header()) for number in there]
                    said = ["%s: file %d of its process is missing" % (later[there[0] <= 2], missing)] if missing else []
                    self.assertEqual([why for _, why in stormlog_trace.Trace(path).damage], said)
                    done = subprocess.run([os.path.join(BUILD, "analyzer", "stormlog-analyze"), "dump", path], capture_output=True, text=True, timeout=60)
                    self.assertEqual([line for line in done.stderr.splitlines() if "missing" in line], ["stormlog-analyze: " + line for line in said])
                    for name in later:
                        os.unlink(name)

    def test_a_trace_that_is_a_fifo_is_damage(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(os.path.join(folder, "rank-00000-1.msgpack.zst"))
            trace, = stormlog_trace.open_folder(folder)
            self.assertIsNone(trace.header)
            self.assertIn("no regular file", trace.damage[0][1])

    def test_the_pandas_example(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("no pandas")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.path.join(BUILD, "tests", "analyzer", "make_demo_trace"), folder], check=True)
            table = stormlog_trace.open_folder(folder)[0].frame()
            made = table[(table.verb == "ALLOC") & (table.result == 0)]
            self.assertEqual(made.groupby("label", dropna=False).bytes.sum().to_dict()["step_#"], 6600 << 20)


if __name__ == "__main__":
    unittest.main()
