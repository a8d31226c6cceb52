#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze fit over traces: it gives the real allocator's answers (golden/), obeys its schema, and gives no verdict where there can be none.

    test_fit.py MAKE_RECORDING STORMLOG_ANALYZE
"""
import base64
import gzip
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

try:
    import jsonschema
except ImportError:
    jsonschema = None
import msgpack

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "hostile"))
try:
    import traces as t
except SystemExit:
    t = None
MAKE, ANALYZE = sys.argv[1:3]
MIB = 1 << 20
GRAPHS = 3 << 20  # programs of seeds from here on capture graphs (ops.h)
SCHEMA = json.loads((HERE.parents[1] / "schemas" / "fit.schema.json").read_text()) if jsonschema else None
DIFF_SCHEMA = json.loads((HERE.parents[1] / "schemas" / "diff.schema.json").read_text()) if jsonschema else None


def recording(folder, release, seed):
    """Make a recording.  Returns the op behind each request; nothing if the program empties the cache."""
    done = subprocess.run([MAKE, folder, release, str(seed)], capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def fit(folder, *options, code=(0, 1)):
    done = subprocess.run([ANALYZE, "fit", "--json", *options, str(folder)], capture_output=True, text=True)
    assert done.returncode in code, (done.returncode, done.stderr)
    answer = json.loads(done.stdout)
    if SCHEMA:
        jsonschema.validate(answer, SCHEMA)
    return answer


def page(folder):
    """The data under `fit` of report.html."""
    subprocess.run([ANALYZE, "-q", str(folder)], check=True, capture_output=True)
    data = re.search(r'type="text/plain">([^<]*)<', Path(folder, "analysis/report.html").read_text())
    return msgpack.unpackb(gzip.decompress(base64.b64decode(data[1])), ext_hook=lambda kind, raw: [
        value for value in struct.unpack(f"<{len(raw) // 8}d", raw) if value == value] if kind == 5 else None)["fit"]


class Fit(unittest.TestCase):
    def test_runs_are_as_the_real_allocator_answered(self):
        compared = refused = graphs = 0
        for release in ("2.2", "2.6", "2.11", "2.12", "2.14"):
            golden = (HERE / "golden" / f"{release}.txt").read_text().splitlines()
            for line in golden[:20] + [line for line in golden if int(line.split()[0]) >= GRAPHS]:
                question, answer = line.split(" = ")
                seed, capacity, fraction, settings = question.split()
                graphs += int(seed) >= GRAPHS
                oom, peak_reserved, peak_allocated, _, _, _, retries, _, _ = map(int, answer.split())
                with tempfile.TemporaryDirectory() as folder:
                    os.environ["FRACTION"] = fraction
                    requests = recording(folder, release, seed)
                    del os.environ["FRACTION"]
                    if not requests:
                        continue
                    said = fit(folder, "--allocator-capacity", f"{capacity}M", "--settings", "" if settings == "-" else settings,
                               "--addresses", "rising")  # as on the oracle's device
                self.assertTrue(said["reproduces"], line)
                run, = said["runs"]
                self.assertEqual((run["peak_reserved_bytes"], run["peak_allocated_bytes"], run["retries"]),
                                 (peak_reserved, peak_allocated, retries), line)
                if run["fits"] is not None:  # None: it depends on where the driver puts segments
                    self.assertEqual(run["fits"], oom == -1, line)
                if oom >= 0 and run["failed_at"]:
                    self.assertEqual(requests[run["failed_at"]["request"] - 1], oom, line)
                    refused += 1
                compared += 1
        self.assertGreater(compared, 40)
        self.assertGreater(refused, 10)
        self.assertGreater(graphs, 20)

    def test_another_releases_rules_give_that_releases_real_answer(self):
        compared = refused = 0
        for recorded, other in (("2.6", "2.9"), ("2.14", "2.12"), ("2.10", "2.6")):
            golden = (HERE / "golden" / f"{other}.txt").read_text().splitlines()
            for line in golden[:6] + [line for line in golden if int(line.split()[0]) >= GRAPHS][:4]:
                question, answer = line.split(" = ")
                seed, capacity, fraction, settings = question.split()
                oom, peak_reserved, peak_allocated, _, _, _, retries, _, _ = map(int, answer.split())
                with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"FRACTION": fraction}):
                    if not recording(folder, recorded, seed):
                        continue
                    said = fit(folder, "--torch", other, "--allocator-capacity", f"{capacity}M",
                               "--settings", "" if settings == "-" else settings, "--addresses", "rising")
                self.assertTrue(said["reproduces"], line)
                self.assertIn("another release may ask for other sizes", " ".join(said["notes"]))
                first, run = said["runs"]
                self.assertEqual((first["torch"], run["torch"]), (recorded, other))
                self.assertEqual((run["peak_reserved_bytes"], run["peak_allocated_bytes"], run["retries"]),
                                 (peak_reserved, peak_allocated, retries), (recorded, line))
                if run["fits"] is not None:
                    self.assertEqual(run["fits"], oom == -1, (recorded, line))
                compared += 1
                refused += oom >= 0
        with tempfile.TemporaryDirectory() as folder:
            recording(folder, "2.6", GRAPHS + 1)
            said = fit(folder, "--torch", "2.2", "--allocator-capacity", "8G", "--settings", "", code=(0,))
        self.assertIsNone(said["runs"][1]["fits"])
        self.assertTrue(any(note.startswith("no verdict for PyTorch 2.2") for note in said["notes"]), said["notes"])
        self.assertGreater(compared, 15)
        self.assertGreater(refused, 8)

    def test_other_programs_of_the_device_are_no_part_of_what_another_device_needs(self):
        """An H200 on which ten programs held 15.9 GiB: this one held 416 MiB, and 614 MiB more by NVML's figure of it."""
        there = HERE.parent / "golden" / "gpu" / "torch-fit"
        least = fit(there, "--capacity", "8G", "--settings", "")["smallest"][0]["always_from_bytes"]
        self.assertTrue(900 * MIB < least <= 1030 * MIB, least)
        self.assertGreater(fit(there, "--settings", "")["smallest"][0]["always_from_bytes"], 14 << 30)
        for size, code in ("1100M", 0), ("900M", 1):
            subprocess.run([ANALYZE, "check", "--config", os.devnull, "--fits", size, there], capture_output=True, check=not code)
        because = json.loads(subprocess.run([ANALYZE, "diff", "--json", there, there], capture_output=True, check=True).stdout)["because"]
        self.assertEqual(because["before"]["peak_bytes"], 1030 * MIB)

    def test_the_smallest_capacity_fits_and_a_byte_less_does_not(self):
        for seed in (3, 4, 7):
            with tempfile.TemporaryDirectory() as folder:
                if not recording(folder, "2.14", seed):
                    continue
                for settings in ("", "expandable_segments:True", "max_split_size_mb:64"):
                    smallest, = fit(folder, "--allocator-capacity", "64G", "--settings", settings)["smallest"]
                    least = smallest["always_from_bytes"]
                    sizes = [least, least - 1] + [size for pair in smallest["also_fits"] for size in (pair[0], pair[1], pair[1] + 1)]
                    said = fit(folder, "--allocator-capacity", ",".join(str(size) for size in sizes[:20]), "--settings", settings)
                    fits = [run["fits"] for run in said["runs"]]
                    self.assertEqual(fits, ([True, False] + [True, True, False] * len(smallest["also_fits"]))[:len(fits)], (seed, settings))

    def test_a_capacity_that_does_not_do_is_exit_status_1(self):
        with tempfile.TemporaryDirectory() as folder:
            seed = next(seed for seed in range(1, 20) if recording(folder, "2.14", seed))
            self.assertTrue(fit(folder, "--allocator-capacity", "1T", "--settings", "", code=(0,))["runs"][0]["fits"])
            failed = fit(folder, "--allocator-capacity", "3M", "--settings", "", code=(1,))["runs"][0]
            self.assertFalse(failed["fits"])
            self.assertGreaterEqual(failed["failed_at"]["request"], 1)
            self.assertIsInstance(seed, int)

    def test_no_verdict_for_a_device_of_which_no_sample_tells(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NO_SAMPLE"] = "1"
            seed = next(seed for seed in range(1, 20) if recording(folder, "2.14", seed))
            del os.environ["NO_SAMPLE"]
            said = fit(folder, "--capacity", "1T,3M", "--settings", "", code=(1,))
            self.assertTrue(said["reproduces"], seed)
            self.assertEqual([run["fits"] for run in said["runs"]], [None, None])
            self.assertIsNone(said["smallest"][0]["always_from_bytes"])
            self.assertIn("no sample", said["notes"][0])
            self.assertTrue(fit(folder, "--allocator-capacity", "1T", "--settings", "")["runs"][0]["fits"])

    def test_what_the_first_sample_finds_was_there_from_the_beginning(self):
        for late in ("10", "end", "during"):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["LATE_SAMPLE"] = late
                recording(folder, "2.14", "batch=24")
                del os.environ["LATE_SAMPLE"]
                for capacity in (100, 500, 1000, 1200, 1300):
                    alone, = fit(folder, "--settings", "", "--allocator-capacity", f"{capacity}M")["runs"]
                    device, = fit(folder, "--settings", "", "--capacity", f"{capacity + 300}M")["runs"]
                    for key in ("fits", "peak_reserved_bytes", "retries", "failed_at"):
                        self.assertEqual(alone[key], device[key], (late, capacity))
                least = [fit(folder, "--settings", "", option, "64G")["smallest"][0]["always_from_bytes"] for option in ("--allocator-capacity", "--capacity")]
                self.assertEqual(least[1] - least[0], 300 * MIB, late)

    def test_verdicts_do_not_depend_on_the_order_of_stream_handles(self):
        other = 0
        for seed in (27, 37):
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as swapped:
                recording(one, "2.6", seed)
                os.environ["SWAPPED"] = "1"
                recording(swapped, "2.6", seed)
                del os.environ["SWAPPED"]
                least = fit(one, "--settings", "", "--allocator-capacity", "64G")["smallest"][0]["always_from_bytes"] // MIB
                asked = ("--addresses", "reused", "--settings", "", "--settings", "roundup_power2_divisions:4", "--allocator-capacity", ",".join(f"{least * k // 1000 // 2 * 2}M" for k in range(900, 1000, 2)))
                for a, b in zip(fit(one, *asked)["runs"], fit(swapped, *asked)["runs"]):
                    self.assertIn(None if None in (a["fits"], b["fits"]) else a["fits"], (None, b["fits"]), (seed, a["capacity_bytes"]))
                    other += a["peak_reserved_bytes"] != b["peak_reserved_bytes"]
        self.assertGreater(other, 0, "in some runs the peak does depend on it")

    def test_addresses_that_were_recorded_tell_the_drivers_way(self):
        """Rising addresses do not show whether the driver would use them again; for some programs that matters."""
        for slots, open_left in (("1", False), (None, True)):
            unknown = 0
            for seed in (13, 17, 27):
                with tempfile.TemporaryDirectory() as folder:
                    os.environ.update({"SLOTS": slots} if slots else {})
                    recording(folder, "2.6", seed)
                    os.environ.pop("SLOTS", None)
                    least = fit(folder, "--settings", "", "--allocator-capacity", "64G")["smallest"][0]["always_from_bytes"]
                    asked = ("--settings", "", "--allocator-capacity", ",".join(f"{least * k // 1000 // 2 // MIB * 2}M" for k in range(900, 1000, 3)))
                    runs = fit(folder, *asked)["runs"]
                    self.assertEqual(runs, fit(folder, *asked, "--addresses", "reused")["runs"])
                unknown += [run["fits"] for run in runs].count(None)
            self.assertEqual(unknown > 0, open_left)

    def test_where_pytorch_itself_makes_a_mistake_it_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            recording(folder, "2.10", 4194327)
            for settings, told in (("expandable_segments:True", True), ("", False)):
                text = subprocess.run([ANALYZE, "fit", "--allocator-capacity", "1300M,1000M", "--settings", settings, folder],
                                      capture_output=True, text=True).stdout
                self.assertEqual("reserved: there PyTorch dies of a mistake of its own" in text, told)

    def test_check_fits_says_what_the_real_allocator_did(self):
        said = {0: 0, 1: 0}
        golden = [(release, line) for release in ("2.12", "2.13", "2.14", "2.15")
                  for line in (HERE / "golden" / f"{release}.txt").read_text().splitlines()]
        for release, line in golden:
            question, answer = line.split(" = ")
            seed, capacity, fraction, settings = question.split()
            with tempfile.TemporaryDirectory() as folder:
                if (fraction, settings) != ("0", "-") or 1 << 20 <= int(seed) < GRAPHS or not recording(folder, release, seed):
                    continue
                done = subprocess.run([ANALYZE, "check", "--config", "/dev/null", "--fits", f"{capacity}M", "--json", folder],
                                      capture_output=True, text=True)
            self.assertEqual(done.returncode, int(answer.split()[0] != "-1"), line + done.stdout + done.stderr)
            outcome, = [o for o in json.loads(done.stdout)["outcomes"] if o["rule"] == "fits"]
            self.assertEqual(outcome["level"], "critical" if done.returncode else "pass")
            said[done.returncode] += 1
        self.assertGreater(min(said.values()), 2, said)

    def test_the_page_draws_what_the_real_allocator_had(self):
        for line in (HERE / "golden" / "2.14.txt").read_text().splitlines():
            question, answer = line.split(" = ")
            seed, capacity, fraction, settings = question.split()
            with tempfile.TemporaryDirectory() as folder:
                if capacity != "100000" or fraction != "0" or settings != "-" or not recording(folder, "2.14", seed):
                    continue
                said = page(folder)
                one, = said
                smallest = fit(folder, "--settings", "")["smallest"][0]["always_from_bytes"]
                runs = fit(folder, "--settings", "", "--capacity", ",".join(str(int(c)) for c in one["capacities"]))["runs"]
            recorded, = [choice for choice in one["choices"] if choice["recorded"]]
            oom, peak_reserved, peak_allocated, *_ = map(int, answer.split())
            self.assertEqual((oom, one["reproduces"], recorded["peak_reserved"]), (-1, True, peak_reserved))
            self.assertEqual((max(recorded["reserved"]), max(recorded["needed"])), (peak_reserved, peak_allocated))
            if not recorded["at_most"]:
                self.assertEqual(recorded["always_from"], smallest)
            self.assertGreaterEqual(recorded["always_from"], smallest)
            self.assertEqual([run["verdict"] for run in recorded["runs"]], [{True: "fits", False: "no"}[run["fits"]] for run in runs])
            self.assertEqual([run["request"] for run in recorded["runs"]], [run["failed_at"] and run["failed_at"]["request"] for run in runs])
            return
        self.fail("no golden answer is of that kind")

    def test_the_page_says_why_there_is_no_verdict(self):
        with tempfile.TemporaryDirectory() as folder:
            recording(folder, "2.14", "other")
            said = page(folder)
        self.assertEqual((said[0]["reproduces"], said[0]["choices"]), (False, []))
        self.assertIn("is off by", said[0]["notes"][0])

    def test_the_largest_batch_that_fits_is_that_of_the_program_run_at_it(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for batch in (8, 16, 24, 32, 48):
                paths.append(os.path.join(folder, str(batch)))
                os.mkdir(paths[-1])
                recording(paths[-1], "2.14", f"batch={batch}")
            options = ("--allocator-capacity", "1G,3G,40G", "--settings", "", "--settings", "expandable_segments:True")
            curves = fit(paths[0], *options, "--vary", "batch", *paths[1:])["vary"]["curves"]
            self.assertEqual([curve["settings"] for curve in curves], ["", "expandable_segments:True"])
            for curve in curves:
                self.assertEqual([point["value"] for point in curve["points"]], [8, 16, 24, 32, 48])
                for largest in curve["largest"][1:]:  # beyond the largest recorded value only that one is sure
                    self.assertEqual((largest["at_least"], largest["at_most"]), (48, None))
                for largest in curve["largest"][:1]:
                    def needs(batch):
                        """What fit says of a recording of the same program with that batch."""
                        with tempfile.TemporaryDirectory() as at:
                            recording(at, "2.14", f"batch={batch}")
                            run, = fit(at, "--allocator-capacity", str(largest["capacity_bytes"]), "--settings", curve["settings"])["runs"]
                            return run["fits"]
                    self.assertTrue(needs(int(largest["at_least"])), (curve, largest))
                    self.assertFalse(needs(int(largest["at_most"]) + 1), (curve, largest))
                    self.assertLess(largest["at_most"] - largest["at_least"], 0.1 * largest["value"] + 1.5)
                self.assertEqual([one["extrapolated"] for one in curve["largest"]], [False, True, True])
            two = fit(paths[0], *options, "--vary", "batch", paths[1])["vary"]["curves"][0]
            self.assertEqual((two["degree"], two["error_bytes"]), (1, None))
            self.assertEqual(two["largest"][0]["at_least"], 16, "without an error only a recorded value is sure")
            self.assertEqual(subprocess.run([ANALYZE, "fit", "--vary", "batch", paths[0]], capture_output=True).returncode, 2)
            self.assertEqual(subprocess.run([ANALYZE, "fit", "--vary", "length", *paths], capture_output=True).returncode, 2)
            text = subprocess.run([ANALYZE, "fit", *options, "--vary", "batch", *paths], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}).stdout
            self.assertRegex(text, r"1.00 GiB: batch up to \d+, surely \d+, not \d+\n")
            self.assertRegex(text, r"3.00 GiB: batch up to \d+, surely 48; beyond what was recorded: record it to be sure")

    def test_every_value_is_used_and_a_card_may_be_too_small_for_any(self):
        with tempfile.TemporaryDirectory() as folder:
            for batch in range(1, 81):
                recording(folder, "2.14", f"batch={batch}")
            options = ("--allocator-capacity", "16M", "--settings", "", "--vary", "batch")
            curve, = fit(folder, *options)["vary"]["curves"]
            self.assertEqual([point["value"] for point in curve["points"]], list(range(1, 81)))
            self.assertEqual(curve["largest"], [dict(capacity_bytes=16 << 20, value=None, at_least=None, at_most=0, extrapolated=True)])
            text = subprocess.run([ANALYZE, "fit", *options, folder], capture_output=True, text=True).stdout
            self.assertIn("16.0 MiB: not even the smallest batch fits\n", text)

    @unittest.skipUnless(t, "python3-msgpack, python3-zstandard and python3-numpy are needed")
    def test_every_choice_of_settings_has_a_curve(self):
        with tempfile.TemporaryDirectory() as folder:
            for i in range(40):
                events = t.Thread().events(2, api=[t.MALLOC, t.TORCH_ALLOC], kind=[1, 10], duration_ns=1, address=1 << 40, bytes=2 << 20)
                t.write(os.path.join(folder, f"rank-00000-{i + 1}.msgpack.zst"),
                        t.header(pid=i + 1, metadata={"batch": "1"}, environment={"PYTORCH_CUDA_ALLOC_CONF": f"max_split_size_mb:{i + 21}"}),
                        t.defs([{"def": "capability", "name": "pytorch", "value": "c10 2.6.0"}]), events, t.footer())
            curves = fit(folder, "--allocator-capacity", "1G", "--vary", "batch", code=(2,))["vary"]["curves"]
            self.assertLessEqual({f"max_split_size_mb:{i + 21}" for i in range(40)}, {curve["settings"] for curve in curves})

    @unittest.skipUnless(t, "python3-msgpack, python3-zstandard and python3-numpy are needed")
    def test_settings_of_the_environment_are_not_the_programs_own(self):
        """From 2.10 on PyTorch applies PYTORCH_CUDA_ALLOC_CONF by the function that the program may call too."""
        asked, rounded, text = 2304 << 10, 3 << 20, "roundup_power2_divisions:2"
        with tempfile.TemporaryDirectory() as folder:
            hooks = [*t.HOOKS, ["c10::setAllocatorSettings", t.VERB["MARK"], 0, 5]]
            events = t.Thread().events(3, api=[len(hooks), t.MALLOC, t.TORCH_ALLOC], kind=[0, 1, 10], duration_ns=1, address=[0, 1 << 40, 1 << 40],
                                       bytes=[0, 20 << 20, rounded], extra=[0, 0, rounded], extra2=[0, 0, 20 << 20],
                                       object=[0, 0, rounded - asked + 1], label=[1, 0, 0])
            t.write(os.path.join(folder, "rank-00000-100.msgpack.zst"), t.header(hooks=hooks, environment={"PYTORCH_CUDA_ALLOC_CONF": text}),
                    t.defs([{"def": "text", "id": 1, "text": text}, {"def": "capability", "name": "pytorch", "value": "c10 2.11.0"}]), events, t.footer())
            said = fit(folder, "--allocator-capacity", "1G", "--settings", "", "--settings", text)
        self.assertTrue(said["reproduces"])
        self.assertEqual([run["peak_allocated_bytes"] for run in said["runs"]], [asked, rounded])

    @unittest.skipUnless(t, "python3-msgpack, python3-zstandard and python3-numpy are needed")
    def test_with_a_limit_the_recorded_device_is_the_limit(self):
        for limit, sizes in ((str(1 << 30), [1 << 30]), ("0", [])):
            with tempfile.TemporaryDirectory() as folder:
                events = t.Thread().events(2, api=[t.MALLOC, t.TORCH_ALLOC], kind=[1, 10], duration_ns=1, address=1 << 40, bytes=2 << 20,
                                           extra=[0, 2 << 20], extra2=[0, 2 << 20])
                t.write(os.path.join(folder, "rank-00000-100.msgpack.zst"), t.header(settings={"limit": limit}),
                        t.defs([{"def": "capability", "name": "pytorch", "value": "c10 2.11.0"}]), events, t.footer())
                self.assertEqual([run["capacity_bytes"] for run in fit(folder, "--settings", "")["runs"]], sizes)

    def test_who_asks_for_free_memory_may_depend_on_the_card(self):
        says = "it asks how much memory is free, so it may behave differently on another card"
        for asked, told in (("1", True), (None, False)):
            with tempfile.TemporaryDirectory() as folder:
                if asked:
                    os.environ["ASKS_FREE"] = asked
                recording(folder, "2.14", "batch=2")
                os.environ.pop("ASKS_FREE", None)
                self.assertEqual(says in fit(folder, "--allocator-capacity", "8G")["notes"], told)
                text = " ".join(subprocess.run([ANALYZE, "fit", folder], capture_output=True, text=True).stdout.split())
                self.assertEqual(says in text, told)

    def test_who_goes_on_after_an_out_of_memory_depends_on_the_card(self):
        says = "it went on after an out-of-memory, so it behaves differently on another card"
        for goes_on, fits in (("1", True), ("again", False), (None, False)):
            with tempfile.TemporaryDirectory() as folder:
                os.environ.update({"GOES_ON": goes_on} if goes_on else {})
                recording(folder, "2.14", "fragmented")
                os.environ.pop("GOES_ON", None)
                said = fit(folder, "--allocator-capacity", "104M,8G", "--settings", "")
                text = " ".join(subprocess.run([ANALYZE, "fit", folder], capture_output=True, text=True).stdout.split())
            self.assertTrue(said["reproduces"])
            self.assertEqual((says in said["notes"], says in text), (bool(goes_on), bool(goes_on)))
            # the recorded program went on after the error; what it would do with more memory is not in the recording
            self.assertEqual([run["fits"] for run in said["runs"]], [fits, None], goes_on)

    def test_past_an_out_of_memory_beside_pytorchs_allocator_nothing_is_known(self):
        for goes_on, settings in ((None, "max_split_size_mb:128"), ("1", "expandable_segments:True")):
            with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"GOES_ON": goes_on} if goes_on else {}):
                recording(folder, "2.14", "beside")
                said = fit(folder, "--capacity", "104M,123M,124M,8G", "--settings", "", "--settings", settings)
                of_allocator = fit(folder, "--allocator-capacity", "100M", "--settings", "", code=(1,))
                gate = [subprocess.run([ANALYZE, "check", "--config", os.devnull, "--fits", size, folder], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})
                        for size in ("104M", "1G")]
                changes = subprocess.run([ANALYZE, "fit", "--changes", folder], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}).stdout
            self.assertTrue(said["reproduces"])
            # cuBLAS finds no room for 64 MiB beside 60 and lets the program go on, or not; with room for it the program would do more
            self.assertEqual([run["fits"] for run in said["runs"]], 2 * [bool(goes_on), bool(goes_on), None, None])
            self.assertEqual([smallest["always_from_bytes"] for smallest in said["smallest"]], [None, None])
            self.assertEqual([run["fits"] for run in of_allocator["runs"]], [None])
            self.assertEqual([done.returncode for done in gate], [int(not goes_on), 0])
            self.assertIn("whether it fits in 1 GiB is not known", gate[1].stdout)
            self.assertEqual("outside of PyTorch's allocator, and what follows is not known" in changes, not goes_on)

    def test_a_memory_fraction_that_is_told_explains_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            recording(folder, "2.14", "fraction")
            said = [fit(folder, "--capacity", "104M,8G", "--settings", settings) for settings in ("", "per_process_memory_fraction:0.9",
                                                                                              "per_process_memory_fraction:0.5")]
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"NO_SAMPLE": "1"}):
            recording(folder, "2.14", "fraction")
            report = json.loads(subprocess.run([ANALYZE, "--json", folder], capture_output=True, text=True, check=True).stdout)
        self.assertEqual([one["reproduces"] for one in said], [False, False, True])
        self.assertEqual([run["fits"] for run in said[2]["runs"]], [False, None])
        finding, = [one for one in report["findings"] if one["id"] == "oom.full"]
        self.assertIn("PyTorch's own limit refuses 20 MiB, not the card; PyTorch had reserved 40 MiB", json.dumps(finding))

    def test_that_a_memory_fraction_is_not_seen_is_said(self):
        for release, blind, told in (("2.14", "1", True), ("2.14", "", False), ("2.9", "1", False)):
            with tempfile.TemporaryDirectory() as folder:
                os.environ.update({"BLIND": blind} if blind else {})
                recording(folder, release, "batch=2")
                os.environ.pop("BLIND", None)
                notes = fit(folder, "--allocator-capacity", "8G")["notes"]
                self.assertEqual(any("this PyTorch hides a memory fraction" in note for note in notes), told, (release, blind))

    def test_a_report_leaves_changes_of_a_long_recording_to_fit(self):
        """More than a million events."""
        with tempfile.TemporaryDirectory() as folder:
            os.environ["LONG"] = "500000"
            recording(folder, "2.14", "fragmented")
            os.environ.pop("LONG")
            process, = json.loads(subprocess.run([ANALYZE, "--json", folder], capture_output=True, text=True).stdout)["processes"]
            screen = subprocess.run([ANALYZE, "--all", folder], capture_output=True, text=True).stdout
            tried, = json.loads(subprocess.run([ANALYZE, "fit", "--changes", "--json", folder], capture_output=True, text=True).stdout)["recordings"]
        self.assertEqual(process["changes"]["tried"], [])
        self.assertEqual(process["changes"]["left_out"], "changes were not tried, since it has too many events: stormlog-analyze fit --changes")
        self.assertIn(process["changes"]["left_out"], " ".join(screen.split()))
        self.assertEqual(tried["changes"][0]["kind"], "settings:expandable_segments")

    def test_what_would_have_been_enough_when_memory_ran_out(self):
        with tempfile.TemporaryDirectory() as folder:
            recording(folder, "2.14", "fragmented")
            said = fit(folder, "--settings", "", "--settings", "expandable_segments:True")
            text = subprocess.run([ANALYZE, "fit", "--layout", folder], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}).stdout
        self.assertTrue(said["reproduces"])
        ended, = said["ended_by"]
        self.assertEqual((ended["request"], ended["bytes"], ended["live"]), (6, 38 * MIB, 4))
        self.assertEqual(ended["granted_with"], ["expandable_segments:True"])
        self.assertEqual((ended["granted_without"]["request"], ended["granted_without"]["bytes"]), (1, 8 * MIB))
        self.assertEqual(ended["tried"], 2, "not the half MiB, which is smaller")
        # requests below 10 MiB get a segment of 20, those below 1 MiB one of 2; a rest of more than 1 MiB is split off
        layout = [[(piece["offset"] / MIB, piece["bytes"] / MIB, piece["requested_bytes"]) for piece in segment["pieces"]]
                  for segment in ended["segments"]]
        self.assertEqual(layout, [[(0, 30, 30 * MIB), (30, 14, 14 * MIB), (44, 16, None)], [(0, 8, 8 * MIB), (8, 12, None)],
                                  [(0, 0.5, MIB // 2), (0.5, 1.5, None)]])
        self.assertEqual([segment["free_bytes"] / MIB for segment in ended["segments"]], [16, 12, 1.5])
        self.assertRegex(text, r"3 segments, 52.5 MiB held, 29.5 MiB in 3 gaps\n +60.0 MiB  ={18}\.{6}  +16.0 MiB free")
        self.assertRegex(text, r"granted with .*expandable_segments:True.*, or if the 8 MiB of request 1 had been freed before")
        with tempfile.TemporaryDirectory() as folder:
            recording(folder, "2.14", "batch=2")
            self.assertEqual(fit(folder, "--allocator-capacity", "8G")["ended_by"], [])

    def test_the_best_settings_are_told_as_the_variable_of_the_programs_runtime(self):
        for hip, name in ("", "CUDA"), ("1", "HIP"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"HIP": hip} if hip else {}):
                recording(folder, "2.14", 3)
                self.assertIn("best: PYTORCH_%s_ALLOC_CONF=" % name, subprocess.run([ANALYZE, "fit", folder], capture_output=True, text=True).stdout)

    def test_no_verdict_where_an_older_agent_saw_a_graph(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GRAPH"] = "1"
            recording(folder, "2.14", "batch=2")
            del os.environ["GRAPH"]
            said = fit(folder, "--allocator-capacity", "8G,3M", "--settings", "", code=(1,))
        self.assertFalse(said["reproduces"])
        self.assertEqual([run["fits"] for run in said["runs"]], [None, None])
        self.assertIsNone(said["smallest"][0]["always_from_bytes"])
        self.assertIn("a graph was captured", said["notes"][0])

    def test_a_wrong_setting_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([ANALYZE, "fit", "--settings", "max_split:1", folder], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn('at "max_split:1": PyTorch has no such setting', done.stderr)

    def test_a_list_of_capacities_has_no_empty_and_no_0(self):
        for value in "", "1M,", ",1M", "1M,,2M", "0", "0.5":
            done = subprocess.run([ANALYZE, "fit", "--capacity", value, "/nowhere"], capture_output=True, text=True)
            self.assertIn('--capacity: "%s" is not ' % value, done.stderr)

    def test_no_verdict_where_the_replay_is_not_what_happened(self):
        with tempfile.TemporaryDirectory() as folder:
            recording(folder, "2.14", "other")
            said = fit(folder, "--allocator-capacity", "8G", "--settings", "")
            self.assertFalse(said["reproduces"])
            self.assertIsNone(said["runs"][0]["fits"])
            self.assertIsNone(said["smallest"][0]["always_from_bytes"])
            self.assertTrue(said["notes"])
            check = [ANALYZE, "check", "--config", "/dev/null", "--fits", "8G", folder]
            done = subprocess.run(check, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("is not known", done.stdout)
            self.assertEqual(subprocess.run([*check, "--strict"], capture_output=True).returncode, 1)


class Because(unittest.TestCase):
    """diff takes two peaks apart by the replay.  tests/gate/because.py has 20 pairs of real PyTorch."""

    def because(self, before, after):
        done = subprocess.run([ANALYZE, "diff", "--json", before, after], capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        if DIFF_SCHEMA:
            jsonschema.validate(answer, DIFF_SCHEMA)
        because = answer["because"]
        changes = [term["change_bytes"] for term in because["terms"]]
        self.assertTrue(because["replayed"])
        self.assertEqual(sum(changes), because["after"]["peak_bytes"] - because["before"]["peak_bytes"])
        self.assertEqual([abs(change) for change in changes], sorted(map(abs, changes), reverse=True))
        terms = {term["term"]: term for term in because["terms"]}
        self.assertEqual(sum(line["change_bytes"] for line in terms["requests"]["lines"]), terms["requests"]["change_bytes"])
        return because, terms

    def test_the_terms_add_up_and_fragments_are_what_lay_between_blocks(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("fragmented", "batch=8", "batch=16"):
                os.mkdir(os.path.join(folder, name))
                recording(os.path.join(folder, name), "2.14", name)
            one, more, broken = (os.path.join(folder, name) for name in ("batch=8", "batch=16", "fragmented"))
            because, terms = self.because(one, broken)
            # the layout of test_what_would_have_been_enough_when_memory_ran_out, and one segment that the failed request got rid of
            self.assertEqual((terms["fragments"]["after_bytes"] + terms["cache"]["after_bytes"]) / MIB, because["after"]["peak_bytes"] / MIB - 52.5)
            self.assertEqual(terms["requests"]["after_bytes"], 52.5 * MIB)
            because, terms = self.because(one, more)
            self.assertEqual(because["terms"][0]["term"], "requests")
            self.assertEqual({term["change_bytes"] for term in self.because(one, one)[0]["terms"]}, {0})
            text = subprocess.run([ANALYZE, "diff", one, more], capture_output=True, text=True).stdout
            self.assertRegex(text, r"\nBECAUSE, at the peak of the process and device that held most\n +\+.*  in all .*\n +\+.*  requests ")

    @unittest.skipUnless(t, "python3-msgpack, python3-zstandard and python3-numpy are needed")
    def test_other_settings_are_a_term_of_their_own(self):
        asked, text = 12800 << 10, "roundup_power2_divisions:2"  # 14 MiB as a segment; rounded, 16 MiB
        with tempfile.TemporaryDirectory() as folder:
            for name, block, segment in (("before", asked, 14 << 20), ("after", 16 << 20, 16 << 20)):
                events = t.Thread().events(2, api=[t.MALLOC, t.TORCH_ALLOC], kind=[1, 10], duration_ns=1, address=1 << 40, bytes=[segment, block],
                                           extra=[0, block], extra2=[0, segment], object=[0, block - asked + 1])
                t.write(os.path.join(folder, name, "rank-00000-100.msgpack.zst"),
                        t.header(environment={"PYTORCH_CUDA_ALLOC_CONF": text if name == "after" else ""}),
                        t.defs([{"def": "capability", "name": "pytorch", "value": "c10 2.11.0"}]), events, t.footer())
            because, _ = self.because(os.path.join(folder, "before"), os.path.join(folder, "after"))
            changed = [(term["term"], term["change_bytes"]) for term in because["terms"] if term["change_bytes"]]
            self.assertEqual(changed, [("settings", 2 << 20)])


if __name__ == "__main__":
    sys.argv[1:] = sys.argv[3:]
    unittest.main()
