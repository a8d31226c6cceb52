# SPDX-License-Identifier: MIT
"""validate names what is wrong in sinks and bundles; merge gives upstream a session of all ranks."""
import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from golden import GOLDEN, lines, run

ANALYZE = sys.argv.pop(1)


class Verbs(unittest.TestCase):
    def problems(self, path):
        done = run(ANALYZE, "validate", path)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, 3 if done.stderr else 0)
        return [line.removeprefix(str(path) + "/") for line in done.stderr.splitlines()]

    def test_intact_sinks_and_bundles_are_valid(self):
        for name in ("sinks/completed", "sinks/no_manifest", "sinks/running_crash", "sinks/two_sessions"):
            self.assertEqual(self.problems(GOLDEN / name), [], name)
        for bundle in [*(GOLDEN / "oom").iterdir(), *(GOLDEN / "diagnose").iterdir()]:
            self.assertEqual(self.problems(bundle), [], bundle.name)

    def test_a_torn_tail_and_a_corrupt_middle_are_named_with_their_lines(self):
        self.assertEqual(self.problems(GOLDEN / "sinks/torn_tail"), ["segment-000001.jsonl:42: unfinished last line"])
        self.assertRegex(self.problems(GOLDEN / "sinks/corrupt_middle")[0], r"^segment-000001\.jsonl:6: ")

    def test_a_closed_segment_that_is_not_what_its_manifest_says_is_named(self):
        whole = (GOLDEN / "sinks/completed/segment-000001.jsonl").read_bytes().splitlines(keepends=True)
        says = "when it was closed it had 42 in 25134, says the manifest"
        with tempfile.TemporaryDirectory() as name:
            sink = Path(name) / "sink"
            shutil.copytree(GOLDEN / "sinks/completed", sink)
            (sink / "rollups.json").unlink(missing_ok=True)
            for kept, found in (3, "it has 3 events in "), (0, "it has 0 events in 0 bytes; "):
                (sink / "segment-000001.jsonl").write_bytes(b"".join(whole[:kept]))
                problem, = self.problems(sink)
                self.assertTrue(problem.startswith("segment-000001.jsonl: " + found) and problem.endswith(says), problem)
                self.assertIn(says, run(ANALYZE, "report", "--json", sink).stdout)
            manifest = json.loads((sink / "manifest.json").read_text())
            manifest["segments"][0]["closed"] = False  # it may have been written to since
            (sink / "manifest.json").write_text(json.dumps(manifest))
            self.assertEqual(self.problems(sink), [])

    def test_a_closed_segment_that_is_more_than_its_manifest_says_is_whole(self):
        whole = (GOLDEN / "sinks/completed/segment-000001.jsonl").read_bytes()
        with tempfile.TemporaryDirectory() as name:
            sink = Path(name) / "sink"
            shutil.copytree(GOLDEN / "sinks/completed", sink)
            (sink / "rollups.json").unlink(missing_ok=True)
            manifest = json.loads((sink / "manifest.json").read_text())

            def after(segment, **counts):
                (sink / "segment-000001.jsonl").write_bytes(segment)
                (sink / "manifest.json").write_text(json.dumps(dict(manifest, segments=[dict(manifest["segments"][0], **counts)])))
                return len(self.problems(sink))

            first = whole[:whole.index(b"\n") + 1]
            self.assertEqual(after(whole, event_count=1, size_bytes=len(first)), 0, "its writer was killed between segment and manifest")
            self.assertEqual(after(whole.replace(b"\n", b"\r\n")), 0, "copied with other line ends")
            self.assertEqual(after(whole.replace(b", ", b",")), 0, "written again, with fewer blanks")
            self.assertEqual(after(first, event_count=0), 1, "bytes alone are counted")
            self.assertEqual(after(whole, event_count=43, size_bytes=1), 1, "an event is lost")

    def test_a_sink_manifest_of_a_version_that_is_not_known_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            sink = Path(name) / "sink"
            shutil.copytree(GOLDEN / "sinks/completed", sink)
            (sink / "rollups.json").unlink(missing_ok=True)
            manifest = json.loads((sink / "manifest.json").read_text())
            for version, says in (99, ["manifest.json:1: its schema_version is newer than those known here, 1 and 2"]), (2, []), (1, []):
                (sink / "manifest.json").write_text(json.dumps(dict(manifest, schema_version=version)))
                self.assertEqual(self.problems(sink), says)

    def test_a_manifest_of_another_program_is_passed_over(self):
        segment = GOLDEN / "sinks/completed/segment-000001.jsonl"
        text = segment.read_text().replace('"world_size": 1', '"world_size": 2')
        ranks = [text, text.replace("sid-complete", "sid-other").replace('"rank": 0', '"rank": 1')]
        app = json.dumps({"name": "My app", "version": "1.0", "schema_version": 7, "icons": []})
        others = [app, "{}", *(file.read_text() for kind in ("diagnose", "oom") for file in (GOLDEN / kind).glob("*/manifest.json"))]
        self.assertGreater(len(others), 3)
        with tempfile.TemporaryDirectory() as name:
            for number, manifest in enumerate([*others, "[]"]):
                folder = Path(name) / str(number)
                folder.mkdir()
                (folder / "manifest.json").write_text(manifest)
                files = folder / "rank0.jsonl", folder / "rank1.jsonl"
                for file, rank in zip(files, ranks):
                    file.write_text(rank)
                done = run(ANALYZE, "merge", "-o", folder / "merged", *files)
                self.assertEqual((done.returncode, done.stderr), (0, ""), manifest)
            for manifest in app, "{}":
                sink = Path(name) / "sink"
                shutil.rmtree(sink, ignore_errors=True)
                sink.mkdir()
                shutil.copy(segment, sink)
                (sink / "manifest.json").write_text(manifest)
                self.assertEqual(self.problems(sink), [])

    def test_a_csv_without_a_time_is_no_telemetry_though_it_has_no_rows(self):
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "foreign.csv"
            for header, says in ("a,b,c\n", "foreign.csv:1: no column is timestamp_ns or timestamp"), ("timestamp_ns,event_type\n", ""):
                file.write_text(header)
                done = run(ANALYZE, "validate", file)
                self.assertEqual((done.returncode, done.stderr), (3, f"{name}/{says}\n") if says else (0, ""))

    def test_rollups_are_stale_exactly_where_upstream_finds_them_so(self):
        for file in sorted((GOLDEN / "sinks").glob("*.expected.json")):
            want = json.loads(file.read_text())
            sink = file.parent / want["fixture"]
            if (sink / "rollups.json").exists():
                stale = any(p.startswith("rollups.json") for p in self.problems(sink))
                self.assertEqual(stale, not want["rollups_fresh"], want["fixture"])

    def test_a_path_that_does_not_exist_is_a_usage_error(self):
        for verb in (["validate"], ["convert"], ["report", "--json"], ["merge", "-o", "x"]):
            self.assertEqual(run(ANALYZE, *verb, "/no/such/path").returncode, 2, verb)

    def test_a_run_that_does_not_exist_is_a_usage_error(self):
        traces = Path(__file__).parent / "traces" / "completed"
        for verb in (["report", "--json"], ["tree"], ["table", "--entries", "*"], ["oom"], ["check"], ["fit"], ["dump"],
                     ["export", "csv"], ["pack", "-o", "-"]):
            done = run(ANALYZE, *verb, "--run", "none", traces)
            self.assertEqual((done.returncode, done.stdout), (2, ""), verb)
            self.assertRegex(done.stderr, "no run none", verb)

    def test_merge_puts_all_ranks_into_one_session_once(self):
        rows = lines(GOLDEN / "cases/coll_nccl_sync.jsonl")
        with tempfile.TemporaryDirectory() as name:
            for rank in {r["rank"] for r in rows}:
                one = [dict(r, session_id=f"s-{rank}") for r in rows if r["rank"] == rank]
                (Path(name) / f"rank{rank}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in one))
            out = Path(name) / "merged"
            done = run(ANALYZE, "merge", name, "-o", out)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            merged = [row for file in sorted(out.glob("segment-*.jsonl")) for row in lines(file)]
            self.assertEqual(len({r["session_id"] for r in merged}), 1)
            key = lambda r: (r["timestamp_ns"], r["rank"], json.dumps(r, sort_keys=True))  # noqa: E731
            plain = [dict(r, session_id="") for r in rows]
            self.assertEqual(sorted((dict(r, session_id="") for r in merged), key=key), sorted(plain, key=key))
            self.assertEqual(self.problems(out), [])
            self.assertEqual(run(ANALYZE, "merge", name, "-o", out).returncode, 2, "it was overwritten")

    def test_two_sessions_of_one_rank_cannot_be_merged(self):
        with tempfile.TemporaryDirectory() as name:
            done = run(ANALYZE, "merge", GOLDEN / "sinks/two_sessions", "-o", Path(name) / "x")
            self.assertEqual(done.returncode, 3)
            self.assertIn("one rank", done.stderr)
            self.assertFalse((Path(name) / "x").exists())

    def test_the_summary_is_printed_and_the_report_replaced(self):
        with tempfile.TemporaryDirectory() as name:
            sink = Path(name) / "sink"
            shutil.copytree(GOLDEN / "sinks/corrupt_middle", sink)
            for _ in range(2):  # the second analysis replaces the first
                done = run(ANALYZE, sink)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("sid-bad", done.stdout)
                self.assertIn("segment-000001.jsonl:6: ", done.stdout)
            report = json.loads((sink / "analysis/report.json").read_text())
            self.assertEqual(report["telemetry"]["default_session_id"], "sid-bad")
            self.assertEqual(sorted(p.name for p in sink.glob("*analysis*")), ["analysis"])
            blocked = Path(name) / "mine"
            blocked.mkdir()
            (blocked / "keep").write_text("x")
            done = run(ANALYZE, sink, "-o", blocked)
            self.assertEqual(done.returncode, 2)
            self.assertIn(str(blocked), done.stderr)
            self.assertEqual([p.name for p in blocked.iterdir()], ["keep"])

    def test_csv_reads_as_the_same_events_as_json_lines(self):
        rows = lines(GOLDEN / "cases/rank2_with_nonsample.jsonl")
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "events.csv"
            quote = lambda v: "" if v is None else '"' + (json.dumps(v) if isinstance(v, dict) else str(v)).replace('"', '""') + '"'  # noqa: E731
            file.write_text(",".join(rows[0]) + "\r\n" + "".join(",".join(quote(r[k]) for k in rows[0]) + "\r\n" for r in rows))
            done = run(ANALYZE, "convert", file)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], rows)

    @unittest.skipIf(b"__asan_init" in Path(ANALYZE).read_bytes(), "sanitizers cost more than the two seconds")
    def test_100_000_samples_take_two_seconds_at_most(self):
        row = lines(GOLDEN / "cases/spike_critical.jsonl")[0]
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "many.jsonl"
            with file.open("w") as out:
                for i in range(100_000):
                    gap = (i % 97 == 0) * (9 << 30) + i * 1000
                    out.write(json.dumps(dict(row, event_type="sample", timestamp_ns=row["timestamp_ns"] + i * 10**8, rank=i % 8, local_rank=i % 8,
                                              world_size=8, device_used_bytes=row["allocator_reserved_bytes"] + gap)) + "\n")
            done = run("/usr/bin/env", "bash", "-c", 'TIMEFORMAT=%U; time "$0" report --json "$1" >/dev/null', ANALYZE, file)
            self.assertEqual(done.returncode, 0)
            self.assertLess(float(done.stderr.strip().splitlines()[-1]), 2)


if __name__ == "__main__":
    unittest.main()
