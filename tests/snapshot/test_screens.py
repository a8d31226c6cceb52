#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_screens.py ANALYZE: what the screen and the verbs say of a snapshot is so.

The truth is the file itself, read here with pickle: one that made.py writes, or one of strangers (../shared/snapshots; where that is absent those tests are skipped).
"""
import array
import base64
import collections
import gzip
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

import made

try:
    import msgpack
except ImportError:
    msgpack = None

ANALYZE = os.path.abspath(sys.argv[1])
SHARED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "shared", "snapshots")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
CAST = "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&, c10::DeviceType)"


def is_near(text, true):
    """The size as it is printed, of three digits."""
    number, unit = text.split()
    return abs(float(number) * UNITS[unit] - true) <= max(0.006 * true, 1)


def at_peak(events):
    """[event, freed by the end] of each block of the window that is held at the peak of tensors."""
    live, now, peak, held = {}, 0, 0, []
    for event in events:
        if event["action"] == "alloc":
            live[event["addr"]] = event
            now += event["size"]
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
            now -= event["size"]
        if now > peak:
            peak, held = now, list(live.values())
    end = {id(event) for event in live.values()}
    return [(event, id(event) not in end) for event in held]


class Screens(unittest.TestCase):
    def setUp(self):
        self.at = tempfile.TemporaryDirectory()
        self.addCleanup(self.at.cleanup)

    def path(self, whole, name="s.pickle"):
        path = os.path.join(self.at.name, name)
        with open(path, "wb") as file:
            pickle.dump(whole, file)
        return path

    def stranger(self, name):
        path = os.path.join(SHARED, name + ".pickle.xz")
        if not os.path.exists(path):
            self.skipTest("../shared/snapshots is not here")
        return path

    def read(self, name):
        with lzma.open(self.stranger(name)) as file:
            return pickle.load(file)

    def run_on(self, *arguments, code=0, columns=80):
        done = subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, cwd=self.at.name,
                              env={**os.environ, "TMPDIR": self.at.name, "COLUMNS": str(columns), "LC_ALL": "C.UTF-8"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def screen(self, path, columns=80):
        return self.run_on(path, "-o", os.path.join(self.at.name, "out"), columns=columns).stdout

    def answer(self, path):
        self.screen(path)
        with open(os.path.join(self.at.name, "out", "report.json")) as file:
            return json.load(file)["answer"]["verdicts"][0]

    def rows(self, path):
        """{name: bytes} of the table's rows."""
        return {row["name"]: row["bytes"] for row in self.answer(path)["table"]["rows"]}

    def texts(self, path):
        return {row["name"]: row["text"] for row in self.answer(path)["table"]["rows"]}

    def lines_of(self, path, role):
        """{line: bytes} of a role, each at the innermost line of the program's own files, part1.py to part99.py."""
        def lines(rows, at):
            for row in rows:
                own = row["name"].split()[0] if re.match(r"part\d+\.py:\d", row["name"]) else at
                inner = sum(one["bytes"] for one in row["owners"])
                found[own] += row["bytes"] - inner
                lines(row["owners"], own)

        found = collections.Counter()
        roles = json.loads(self.run_on("tree", "--json", "--at", "peak", "--by", "role", path).stdout)["owners"]
        lines([row for row in roles if row["name"] == role], None)
        return {line: size for line, size in found.items() if line and size}

    def page(self, path):
        if not msgpack:
            self.skipTest("python3-msgpack is not here")
        self.screen(path)
        with open(os.path.join(self.at.name, "out", "report.html")) as file:
            found = re.search(r'type="text/plain">([^<]*)<', file.read())
        return msgpack.unpackb(gzip.decompress(base64.b64decode(found[1])), strict_map_key=False,
                               ext_hook=lambda code, data: array.array(".BHIfd"[code], data).tolist())

    def test_copies_of_weights_by_autocast_are_a_row(self):
        allocator = made.Allocator()
        for _ in range(6):
            allocator.alloc(40 << 20, made.frames("model.py:5 __init__"))
        for _ in range(6):
            allocator.alloc(20 << 20, made.frames("model.py:30 forward", native=(CAST,)))
            allocator.alloc(30 << 20, made.frames("model.py:30 forward", native=(CAST,)))  # of an activation
        for drop in (0, 7):
            self.assertEqual(self.rows(self.path(made.snapshot(allocator, drop=drop)[0]))["autocast copies"], 120 << 20)

    def test_what_autocast_frees_when_it_ends_are_the_copies(self):
        live, copies, now, peak = {}, set(), 0, 0
        for event in self.read("small_infer_bf16_128")["device_traces"][0]:
            if event["action"] == "alloc":
                live[event["addr"]] = event
            elif event["action"] == "free_completed" and event["addr"] in live:
                made_by = live.pop(event["addr"])
                if any("autocast::clear_cache" in f["name"] for f in event["frames"]):
                    copies.add(made_by["addr"])
                    now += made_by["size"]
        self.assertGreater(len(copies), 50)
        rows = self.rows(self.stranger("small_infer_bf16_128"))
        self.assertLessEqual(abs(rows["autocast copies"] - now), 0.006 * now)

    def test_an_optimizer_s_temporaries_are_not_made_once(self):
        held = collections.Counter()
        for event, freed in at_peak(self.read("medium_first_step")["device_traces"][0]):
            if any(f["filename"].endswith("part2.py") and f["line"] == 34 for f in event["frames"]):
                held[freed] += event["size"]
        rows = self.rows(self.stranger("medium_first_step"))
        self.assertEqual((rows["optimizer"], rows["optimizer step"]), (held[False], held[True]))
        self.assertEqual({self.texts(self.stranger("medium_first_step"))[name] for name in ("optimizer", "optimizer step")}, {"part2.py:34 work1"})
        self.assertIn("part4.py:82", self.texts(self.stranger("xl_fullstep_128"))["optimizer"])  # zeros_like
        self.assertIn("part1.py:78", self.lines_of(self.stranger("xl_forward_mixed_128"), "activations"))

    def test_what_is_held_for_backward_goes_in_the_backward_pass(self):
        events = self.read("medium_training_512")["device_traces"][0]
        freed_by = {}
        for event in events:
            if event["action"] == "alloc":
                freed_by[event["addr"]] = event
            elif event["action"] == "free_completed" and event["addr"] in freed_by:
                freed_by.pop(event["addr"])["backward"] = any("autograd" in f["name"] for f in event["frames"])
        rows = self.lines_of(self.stranger("medium_training_512"), "activations")
        self.assertGreater(len(rows), 5)
        for row in rows:
            file, line = row.split(":")
            held = [event for event, _ in at_peak(events) if any(f["filename"].endswith(file) and f["line"] == int(line) for f in event["frames"])]
            self.assertGreater(sum(e["size"] for e in held if e.get("backward")), 0.9 * sum(e["size"] for e in held), row)

    def test_without_a_window_the_last_event_has_happened(self):
        path, wanted = self.stranger("old_serving"), 807625200  # active_end of truth.jsonl, as asked; its one event is a free
        self.assertEqual(json.loads(self.run_on("report", "--json", path).stdout)["processes"][0]["snapshot"]["devices"][0]["requested_peak_bytes"], wanted)
        self.assertIn("HELD   772 MiB of tensors as the file was written", self.screen(path))
        self.run_on("check", "--max-allocated", str(wanted), path)
        self.run_on("check", "--max-allocated", str(wanted - 1), path, code=1)

    def test_the_window_s_beginning_is_the_start_of_time(self):
        allocator = made.Allocator()
        for i in range(30):
            allocator.alloc(30 << 20, made.frames(f"train.py:{i} main"))
        whole, journals = made.snapshot(allocator, drop=20)
        path, before = self.path(whole), journals[0][0][1]
        for arguments, held in ((("--at", "0"), before), (("--from", "start", "--to", "end"), allocator.requested - before)):
            owners = json.loads(self.run_on("tree", "--json", *arguments, path).stdout)["owners"]
            self.assertEqual({row["name"]: row["bytes"] for row in owners}["PyTorch tensors"], held, arguments)

    def test_what_waits_for_other_streams_is_told_without_a_window(self):
        whole = self.read("server_pools")
        waits = sum(block["requested_size"] for segment in whole["segments"] for block in segment["blocks"] if block["state"] == "active_pending_free")
        said = " ".join(self.screen(self.stranger("server_pools")).split())
        size, = re.findall(r"([\d.]+ \w+) of it was freed, and waits for other streams \(record_stream\)", said)
        self.assertTrue(is_near(size, waits), (size, waits))
        self.assertNotIn("optimizer's step", said)  # its line is of DistributedOptimizer.__init__
        self.assertNotIn("record_stream", self.screen(self.stranger("kv_no_history")))

    def test_the_map_of_segments_is_at_the_peak_of_each_device(self):
        devices = [made.Allocator(device=device) for device in range(2)]
        for allocator in devices:
            made.training(allocator, 2, layers=3 + allocator.device)
        whole, journals = made.snapshot(*devices)
        maps = {one["device"]: one for one in self.page(self.path(whole))["segments"] if one["kind"] == "peak"}
        for device, journal in enumerate(journals):
            reserved, peak = max(journal, key=lambda figures: figures[1])
            rounding = 512 * len(maps[device]["block_bytes"])
            self.assertEqual(sum(maps[device]["segment_bytes"]), reserved)
            self.assertTrue(peak <= sum(maps[device]["block_bytes"]) < peak + rounding, (device, peak, sum(maps[device]["block_bytes"])))

    def test_fit_and_the_gate_have_one_answer_of_a_window_that_ended_out_of_memory(self):
        allocator = made.Allocator()
        for _ in range(9):
            allocator.alloc(30 << 20, made.frames("train.py:7 main"))
        allocator.oom(64 << 20, 12345678, made.frames("train.py:8 main"))
        path = self.path(made.snapshot(allocator)[0])
        said = self.run_on("fit", "--capacity", "330M", "--capacity", "334M", "--settings", "", path, code=1).stdout
        self.assertRegex(said, r"gets past it from +unlimited")
        self.assertRegex(said, r"\(none\) .* 334 MiB +334 MiB +no +unknown")
        self.assertNotIn("fits", said)
        for capacity, fits in ((330, False), (334, None)):
            done = self.run_on("fit", "--json", "--capacity", f"{capacity}M", "--settings", "", path, code=1)
            self.assertEqual([one["fits"] for one in json.loads(done.stdout)["runs"]], [fits])
        self.assertIn("the recorded run was refused what is granted there", self.run_on("check", "--fits", "334M", path, columns=200).stdout)

    def test_the_gate_says_what_a_verdict_of_a_window_leaves_out(self):
        allocator = made.Allocator()
        for _ in range(30):
            allocator.alloc(30 << 20, made.frames("train.py:7 main"))
        for drop in (0, 20):
            said = self.run_on("check", "--fits", "2G", self.path(made.snapshot(allocator, drop=drop)[0]), columns=400).stdout
            self.assertIn("reserved by PyTorch's allocator: a card needs 0.5 to 1 GiB more, and the memory of other libraries", said)
            self.assertEqual("what ran before the window may have needed more" in said, drop > 0, said)

    def test_always_is_under_every_placement(self):
        path = self.stranger("small_step_100")
        said = self.run_on("fit", "--capacity", "716M", "--capacity", "718M", "--settings", "", path).stdout
        self.assertRegex(said, r"\(none\) +(\(recorded\))? +716 to 718 MiB .* either +fits")
        self.assertNotRegex(said, "always|where the driver")

    def test_numbers_of_steps_are_no_ranks(self):
        whole, _ = made.snapshot(self.small())
        for names, processes in ((("snap_iter100.pickle", "snap_iter200.pickle"), 1), (("step7_rank0.pickle", "step7_rank1.pickle", "step8_rank0.pickle"), 2),
                                 (("localRank0.pickle", "localRank1.pickle"), 2), (("crank1.pickle", "crank2.pickle"), 1)):
            with tempfile.TemporaryDirectory(dir=self.at.name) as folder:
                for name in names:
                    self.path(whole, os.path.join(folder, name))
                ranks = [process["rank"] for process in json.loads(self.run_on("report", "--json", folder).stdout)["processes"]]
                self.assertEqual(sorted(ranks, key=str), [None] if processes == 1 else list(range(processes)), names)

    def small(self):
        allocator = made.Allocator()
        for i in range(20):
            allocator.alloc(30 << 20, made.frames(f"train.py:{i} main"))
        return allocator

    def test_a_torn_file_beside_a_good_one_is_told_once_and_on_the_screen(self):
        whole = pickle.dumps(made.snapshot(self.small())[0])
        for name, data in {"good.pickle": whole, "torn.pickle": whole[:3000]}.items():
            with open(os.path.join(self.at.name, name), "wb") as file:
                file.write(data)
        done = self.run_on(self.at.name)
        self.assertRegex(done.stderr, r"^stormlog-analyze: [^\n]*torn\.pickle: offset \d+: [^\n]*torn[^\n]*\n$")
        self.assertRegex(" ".join(self.run_on("report", "--all", self.at.name).stdout.split()), r"note \S*torn\.pickle: offset \d+: the file is torn")
        for verb in ("report", "tree", "fit", "check"):
            done = self.run_on(verb, *(["--max-peak", "1G"] if verb == "check" else []), "torn.pickle", code=3)
            self.assertRegex(done.stderr, r"^stormlog-analyze: torn\.pickle: offset \d+: [^\n]*torn[^\n]*\n$", verb)

    def test_a_file_with_a_pickle_s_name_that_is_none_is_called_so(self):
        for data, why in ((b"", "it is empty"), (b"hello\n", "it is no pickle")):
            with open(os.path.join(self.at.name, "h.pickle"), "wb") as file:
                file.write(data)
            self.assertRegex(self.run_on("h.pickle", code=3).stderr, rf"^stormlog-analyze: h\.pickle: {why}[^\n]*\n$")

    def test_who_named_all_files_is_not_asked_to_name_one(self):
        for name in ("a.pickle", "b.pickle"):
            self.path(made.snapshot(self.small())[0], name)
        said = " ".join(self.run_on("a.pickle", "b.pickle", "-o", "out").stdout.split())
        self.assertIn("the newest of 2 runs here: --run all shows all", said)
        self.assertIn("name its file for another one, or --run all", " ".join(self.run_on(".").stdout.split()))

    def test_a_comparison_names_its_two_peaks_and_an_operation_once(self):
        node = "torch::autograd::generated::DivBackward0::apply(std::vector<at::Tensor>&&)"
        allocator, paths = made.Allocator(), []
        for count in (3, 6):
            for i in range(count):
                for operator in ("mul", "neg", "sum")[:count]:
                    allocator.alloc(30 << 20, made.frames(native=(f"at::_ops::{operator}::call(at::Tensor const&)", node, "torch::autograd::Engine::thread_main()")))
            paths.append(self.path(made.snapshot(allocator)[0], f"{count}.pickle"))
        said = self.run_on("diff", *paths).stdout
        for title in ("peak of what was reserved  270 MiB -> 810 MiB", "PLACES, at the peak of tensors", "BECAUSE, at the peak of what was reserved"):
            self.assertIn(title, said)
        self.assertEqual(len(re.findall(r"DivBackward0 +270 MiB -> 810 MiB", said)), 2, said)
        self.assertNotIn("(block", said)

    def test_rows_add_up_to_what_was_reserved(self):
        for path in sorted(os.listdir(SHARED) if os.path.isdir(SHARED) else []):
            if not path.endswith(".pickle.xz"):
                continue
            said = self.screen(os.path.join(SHARED, path))
            with open(os.path.join(self.at.name, "out", "report.json")) as file:
                report = json.load(file)
            answer = report["answer"]["verdicts"][0]
            (total, unit, moment, rows), = re.findall(r"(?m)^  ([\d.]+)  (\w+) (reserved|held), at the .*\n((?: +[\d.]+  .*\n)+)", said)
            rows = [line.split()[0] for line in rows.splitlines()]
            whole = answer["figures"]["reserved_bytes"] if answer["word"] in ("OK", "HELD") else answer["table"]["total_bytes"]
            with self.subTest(path):
                self.assertEqual(moment, "held" if answer["word"] == "OUT OF MEMORY" else "reserved")
                self.assertTrue(is_near(f"{total} {unit}", whole), said)
                self.assertAlmostEqual(sum(map(float, rows)), float(total), places=6, msg=said)
                self.assertEqual(sum(row["bytes"] for row in answer["table"]["rows"]), answer["table"]["total_bytes"])

    def test_the_largest_lines_are_named_and_the_others_counted(self):
        allocator = made.Allocator()
        for i in range(14):
            allocator.alloc(30 << 20, made.frames(f"train.py:{i + 1} main"))
        for i in range(9):
            allocator.alloc(3 << 20, made.frames(f"train.py:{i + 40} main"))
        path = self.path(made.snapshot(allocator)[0])
        self.assertEqual(self.texts(path)["tensors"], "30 train.py:1, 30 train.py:10, 21 more")
        self.assertEqual(self.rows(path)["tensors"], (14 * 30 + 9 * 3) << 20)

    def test_the_peak_has_its_time(self):
        allocator = made.Allocator()
        for i in range(20):
            allocator.free(allocator.alloc((100 if i == 9 else 30) << 20))
        at = next(event["time_us"] for event in allocator.events if event["action"] == "alloc" and event["size"] == 100 << 20) - allocator.events[0]["time_us"]
        said = self.screen(self.path(made.snapshot(allocator)[0]))
        self.assertIn("100 MiB of tensors and 130 MiB reserved", said)
        self.assertIn(f"reserved, at the peak, {at} us ", said)

    def test_the_screen_of_a_training_step_names_who_holds_it(self):
        said = self.screen(self.stranger("xl_fullstep_128"))
        for piece in ("OK   no memory ran out, 51.3 GiB of tensors and 56.9 GiB reserved\n", "need   51.5 GiB for this window, and the CUDA context",
                      "  56.9  GiB reserved, at the peak, 563 ms   ", "  25.4  optimizer    ", "12.7 part4.py:82, 12.7 part4.py:84\n", "  12.7  earlier      ", "  made before the recording …\n",
                      "  12.7  gradients    ", "BmmBackward0\n"):
            self.assertIn(piece, said)

    def test_a_file_without_times_has_none(self):
        allocator = self.small()
        for addr in [block[0] for segment in allocator.segments for block in segment["blocks"]][:5]:
            allocator.free(addr)
        whole, _ = made.snapshot(allocator)
        for timed in (True, False):
            for event in whole["device_traces"][0] if not timed else ():
                del event["time_us"]
            path = self.path(whole)
            self.assertEqual(self.page(path)["t0_unix_ns"] is not None, timed)
            owners = json.loads(self.run_on("table", "--json", path).stdout)["owners"]
            self.assertEqual([row["lifetime_ns"] is not None for row in owners if row["name"] == "PyTorch tensors"], [timed])
            self.assertEqual(re.search(r"reserved, at the peak, [\d.]+ us ", self.screen(path)) is not None, timed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
