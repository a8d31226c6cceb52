# SPDX-License-Identifier: MIT
"""report --json gives upstream's numbers on every session of golden/cases, golden/sinks and the bundles."""
import json
import pathlib
import sys
import unittest

from golden import GOLDEN, differences, run
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "stormlog_native"))
from telemetry import phase_spans, timeline_markers  # noqa: E402

ANALYZE = sys.argv.pop(1)
NOT_OURS = {"tui_model"}  # the terminal view of upstream


def telemetry(*paths):
    done = run(ANALYZE, "report", "--json", *paths)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for session in report["telemetry"]["per_session"].values():
        session["timeline_markers"], session["phase_spans"] = timeline_markers(session), phase_spans(session)
    return report


def without_raised(want, got):
    """Upstream raises an exception if all samples have the same time; there our answer is taken as the expected one."""
    if isinstance(want, dict) and set(want) == {"error"}:
        assert isinstance(got, list), "no answer where upstream raises"
        return got
    if isinstance(want, dict) and isinstance(got, dict):
        return {k: without_raised(v, got.get(k)) for k, v in want.items()}
    return want


class Cases(unittest.TestCase):
    def compare(self, got, want):
        for sid, row in want["per_session"].items():
            row = {k: v for k, v in row.items() if k not in NOT_OURS}
            row = without_raised(row, got["per_session"].get(sid))
            self.assertEqual(differences(got["per_session"].get(sid), row, sid), [])
        self.assertEqual(set(got["per_session"]), set(want["per_session"]))
        self.assertEqual(differences(got["sessions"], want["sessions"], "sessions"), [])
        for key in ("default_session_id", "analyze_cli_session_id"):
            self.assertEqual(got[key], want[key])

    def test_every_case_gives_upstreams_analysis(self):
        files = sorted((GOLDEN / "cases").glob("*.expected.json"))
        self.assertGreater(len(files), 40)
        for file in files:
            with self.subTest(file.stem):
                want = json.loads(file.read_text())
                report = telemetry(file.parent / want["input"])
                self.compare(report["telemetry"], want["result"])
                if "error" not in want["issues"]:
                    self.assertEqual(differences(report["telemetry"]["issues"], want["issues"], "issues"), [])

    def test_the_selected_session_is_at_the_top(self):
        for name in ("coll_nccl_sync", "rank2_single_spiker", "spike_critical"):
            report = telemetry(GOLDEN / f"cases/{name}.jsonl")
            mine = report["telemetry"]["per_session"][report["telemetry"]["default_session_id"]]
            self.assertEqual(report["gap_findings"], mine["gap_analysis"])
            self.assertEqual(report["collective_attribution"], mine["collective_attribution"]["medium"])
            self.assertEqual(report["cross_rank"], mine["cross_rank_analysis"])

    def test_equal_times_are_a_warning_and_not_the_end(self):
        report = telemetry(GOLDEN / "cases/identical_timestamps_error.jsonl")
        self.assertIn("one time", " ".join(report["warnings"]))

    def test_intact_and_torn_sinks_read_as_upstream_reads_them(self):
        files = sorted((GOLDEN / "sinks").glob("*.expected.json"))
        self.assertGreater(len(files), 7)
        for file in files:
            want = json.loads(file.read_text())
            if "error" in want["load"]:
                continue
            for path in (file.parent / want["fixture"],):
                with self.subTest(want["fixture"]):
                    self.compare(telemetry(path)["telemetry"], want["load"])

    def test_a_torn_tail_is_named_with_its_line(self):
        warnings = telemetry(GOLDEN / "sinks/torn_tail")["warnings"]
        self.assertEqual(warnings, ["segment-000001.jsonl:42: unfinished last line"])

    def test_a_corrupt_middle_costs_one_record_and_is_named(self):
        report = telemetry(GOLDEN / "sinks/corrupt_middle")
        self.assertEqual(report["telemetry"]["sessions"][0]["event_count"], 41)
        self.assertEqual(len(report["warnings"]), 1)
        self.assertTrue(report["warnings"][0].startswith("segment-000001.jsonl:6: "), report["warnings"])

    def test_oom_bundles_give_upstreams_sessions_and_issues(self):
        want = json.loads((GOLDEN / "oom.expected.json").read_text())
        self.assertEqual(differences(telemetry(GOLDEN / "oom")["telemetry"]["issues"], want["issues"], "issues"), [])
        for name, bundle in want["bundles"].items():
            with self.subTest(name):
                got = telemetry(GOLDEN / "oom" / name / "events.json")["telemetry"]["sessions"]
                for row in bundle["loadable_sessions"]:
                    row["sources_loaded"] = ["events.json"]
                self.assertEqual(differences(got, bundle["loadable_sessions"], "sessions"), [])

    def test_a_diagnose_bundle_becomes_its_session(self):
        want = json.loads((GOLDEN / "diagnose.expected.json").read_text())["check"]["timeline"]["sessions"]
        got = telemetry(GOLDEN / "diagnose")["telemetry"]["sessions"]
        self.assertEqual(differences(got, want, "sessions"), [])


if __name__ == "__main__":
    unittest.main()
