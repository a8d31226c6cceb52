#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_cluster.py ANALYZE MAKE_LARGE: Dask's workers make the same report as one process, even if one of them dies.  Parquet files agree with the analyzer.

It runs in the environment of scripts/torch-venv, which has distributed, pyarrow, numpy and duckdb."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
import torch_venv
python = torch_venv.python("distributed", "duckdb", "numpy", "pyarrow", "msgpack", "zstandard")
if python != sys.executable:
    os.execv(python, [python] + sys.argv)
import dask.distributed  # noqa: E402
import duckdb  # noqa: E402
import pyarrow.parquet  # noqa: E402

ANALYZE, MAKE = map(os.path.abspath, sys.argv[1:3])
os.environ["STORMLOG_BIN"] = os.path.dirname(ANALYZE)
os.environ["PYTHONPATH"] = os.path.join(ROOT, "python")
sys.path[:0] = [os.environ["PYTHONPATH"], os.path.join(HERE, "..", "hostile")]
import stormlog_native  # noqa: E402
import traces  # noqa: E402
from stormlog_native import cluster  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-cluster-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.traces = os.path.join(self.folder, "t")
        os.mkdir(self.traces)

    def make(self, shape, events, ranks):
        subprocess.run([MAKE, shape, self.traces, str(events), str(ranks)], check=True)

    def analyze(self, *arguments):
        return subprocess.run([ANALYZE, *arguments], check=True, stdout=subprocess.PIPE).stdout


class Dask(Case):
    def setUp(self):
        super().setUp()
        self.make("leak", 240000, 12)
        whole = os.path.join(self.folder, "whole.summary")
        self.analyze("summarize", "-q", self.traces, "-o", whole)
        with open(whole, "rb") as file:
            self.whole = file.read()
        local = dask.distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=self.folder)
        self.addCleanup(local.close)
        self.client = dask.distributed.Client(local)
        self.addCleanup(self.client.close)

    def test_a_worker_is_killed_in_the_middle(self):
        tasks = cluster._submit(self.client, self.traces, 24)
        first = dask.distributed.as_completed(tasks)
        for _ in range(3):
            next(first)
        worker, pid = sorted(self.client.run(os.getpid).items())[0]
        self.assertIn("pending", [task.status for task in tasks], "nothing was left to do")
        os.kill(pid, signal.SIGKILL)
        parts = os.path.join(self.folder, "parts")
        os.mkdir(parts)
        cluster._collect(tasks, parts, False)
        self.assertEqual(cluster._summarize([parts]), self.whole)
        self.assertNotIn(pid, self.client.run(os.getpid).values())

    def test_the_report_is_that_of_one_process(self):
        of_cluster = stormlog_native.analyze(self.traces, self.client, os.path.join(self.folder, "a"), parts=5)
        self.assertEqual(of_cluster.data, json.loads(self.analyze("--json", self.traces)))
        address, out = self.client.scheduler.address, os.path.join(self.folder, "b")
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "analyze", "--dask", address, "-o", out, self.traces], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("12 processes", done.stdout)
        with open(os.path.join(out, "report.json"), "rb") as one, open(os.path.join(self.folder, "a", "report.json"), "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_what_fails_on_the_workers_is_said(self):
        with self.assertRaisesRegex(stormlog_native.ProfilerError, "exit status 2"):
            cluster.summarize(os.path.join(self.folder, "nothing"), self.client, parts=2)


class Parquet(Case):
    def setUp(self):
        super().setUp()
        self.make("driver", 40000, 4)
        self.lake = os.path.join(self.folder, "lake")
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "parquet", self.traces, "-o", self.lake], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("40000 events"), done.stdout)
        self.report = json.loads(self.analyze("--json", self.traces))
        with open(os.path.join(ROOT, "doc", "scale.md")) as page:
            self.queries = re.findall(r"```sql\n(.*?)```", page.read(), re.S)

    def ask(self, number):
        return duckdb.sql(self.queries[number].replace("lake/", self.lake + "/")).fetchall()

    def test_folders_are_run_and_rank(self):
        runs = os.listdir(self.lake)
        self.assertEqual(len(runs), 1)
        self.assertEqual(sorted(os.listdir(os.path.join(self.lake, runs[0]))), ["rank=%d" % i for i in range(4)])

    def test_each_row_is_an_event_of_dump(self):
        told = sorted((event["pid"], event["api"], event["verb"], event["bytes"] or 0, event["address"] or 0, event["t1_ns"] - event["t0_ns"])
                      for event in map(json.loads, self.analyze("dump", self.traces).splitlines()))
        columns = "pid, api, verb, bytes, address, duration_ns"
        rows = sorted(duckdb.sql("SELECT %s FROM read_parquet('%s/**/*.parquet', union_by_name = true)" % (columns, self.lake)).fetchall())
        self.assertEqual(len(rows), len(told))
        self.assertEqual(next(((row, event) for row, event in zip(rows, told) if row != event), None), None)

    def test_bytes_by_rank_and_call(self):
        told = {(process["rank"], api["api"]): (api["calls"], api["bytes"]) for process in self.report["processes"] for api in process["apis"] if api["bytes"]}
        self.assertEqual({(rank, api): (calls, size) for rank, api, calls, size in self.ask(0)}, told)
        self.assertEqual(len(told), 4)

    def test_lines_that_asked_for_most(self):
        rows = self.ask(1)
        self.assertEqual(sum(size for _, size, _ in rows), sum(row["allocated_bytes"] for process in self.report["processes"] for row in process["memory"]))
        self.assertEqual(rows, sorted(rows, key=lambda row: -row[1]))
        self.assertTrue(all("/model.py:" in line for line, _, _ in rows), rows[0])

    def test_names_steer_nothing_and_what_is_malformed_is_said(self):
        name = "::\x1b[31m##vso[x\u202ey\n::er\u200cror"
        events = traces.Thread().events(3, api=1, kind=1, duration_ns=1, address=[8, 16, 24], bytes=8, python=1, label=1)
        maps = [{"def": "text", "id": 1, "text": name}, {"def": "frame", "id": 1, "function": name, "file": name + ";", "line": 3}, {"def": "python_stack", "id": 1, "frames": [1, 9]}]
        path, out = os.path.join(self.folder, "names", "rank-00000-1.msgpack.zst"), os.path.join(self.folder, "out")
        hooks = [[name, 1, 1, 0]]
        traces.write(path, traces.header(hooks=hooks, run_id="../" + name, fields=[["bytes", "u", ""], [name, "u", ""], ["kind", "u", ""], ["label", "u", ""], ["python", "u", ""]]),
                     traces.defs(maps), events, traces.footer())
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "parquet", os.path.dirname(path), "-o", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout.split()[0]), (0, "3"), done.stderr)
        folder, = os.listdir(out)
        clean = "::?[31m##vso[x?y?::er\u200cror"
        self.assertRegex(folder, r"^run=\.\._::\?\[31m# #vso\[x\?y\?::er\?ror-[0-9a-f]{16}$")
        file, = [os.path.join(place, one) for place, _, names in os.walk(out) for one in names]
        self.assertTrue(file.endswith("/rank-00000-1-0.parquet"))
        row = pyarrow.parquet.read_table(file, partitioning=None).to_pylist()[0]
        self.assertEqual((row["api"], row["label"], row["stack"]), (clean, clean, "%s?:3 %s" % (clean, clean)))
        wrong = traces.defs([{"def": "python_stack", "id": 1, "frames": 5}, {"def": "text", "id": [1], "text": name}])
        traces.write(path, traces.header(hooks=hooks, pid="x"), wrong, events, traces.footer())
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "parquet", os.path.dirname(path), "-o", out + "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"offset 0: .*rank-00000-1.msgpack.zst: .* a definition header with a wrong pid")
        self.assertRegex(done.stderr, r"offset [1-9]\d*: .* a definition python_stack with a wrong frames")
        self.assertNotIn("Traceback", done.stderr)
        block = {"def": "block", "thread": 1, "first": 9, "next": 10, "count": 1, "columns": {"api": [0, 0, 0, 1, b""], "time_ns": [0, 0, [], 1, b""]}}
        for number in 1, 2:
            traces.write(path.replace("-1.", "-%d." % number), traces.header(hooks=hooks, pid=number), traces.defs(maps), events,
                         traces.frame(traces.BLOCK, traces.packed(block)) if number == 1 else b"", traces.footer())
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "parquet", os.path.dirname(path), "-o", out + "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout.split()[0]), (3, "6"), done.stderr)
        self.assertRegex(done.stderr, r"offset [1-9]\d*: .*rank-00000-1.msgpack.zst: .* a column that is not four numbers and bytes")

    def write_some(self, name, *files):
        """Writes traces of files (rank, header's fields, content) into one lake.  Returns its runs, status and what was said."""
        folder = os.path.join(self.folder, name)
        for rank, fields, content in files:
            events = traces.Thread().events(3, api=1, kind=1, duration_ns=1, address=[8, 16, 24], bytes=8)
            traces.write(os.path.join(folder, "rank-%05d-1.msgpack.zst" % rank), *([content] if content is not None else [traces.header(rank=rank, **fields), events, traces.footer()]))
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "parquet", folder, "-o", folder + ".lake"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return sorted(os.listdir(folder + ".lake")), done.returncode, done.stderr

    def test_runs_whose_ids_begin_alike_are_two(self):
        short, long = "é" * 100, "é" * 200
        runs, status, said = self.write_some("ids", *((rank, {"run_id": run}, None) for rank, run in enumerate((short + "one", short + "two", long + "one", long + "two"))))
        self.assertEqual((status, said, len(set(runs))), (0, "", 4))
        self.assertEqual([run for run in runs if len(run) < 120], ["run=" + short + "one", "run=" + short + "two"])

    def test_runs_whose_ids_differ_in_what_no_folder_may_have_are_two(self):
        runs, status, said = self.write_some("alike", *((rank, {"run_id": run}, None) for rank, run in enumerate(("a_b", "a/b", "a?b", "a\nb"))))
        self.assertEqual((status, said, len(set(runs))), (0, "", 4))
        self.assertLessEqual({"run=a_b", "run=a?b"}, set(runs))

    def test_a_rank_that_cannot_be_read_is_said_and_the_others_are_written(self):
        garbage = traces.header(rank=2) + b"x" * 100
        runs, status, said = self.write_some("left", (0, {}, None), (1, {}, b""), (2, {}, garbage), (3, {}, b"\1" * 1000))
        self.assertEqual((runs, status), (["run=run1"], 3), said)
        self.assertEqual(re.findall(r"rank-0000(\d)-1.msgpack.zst is left out", said), ["1", "2", "3"])
        self.assertEqual(os.listdir(os.path.join(self.folder, "left.lake", "run=run1")), ["rank=0"])
        self.assertEqual(self.write_some("quiet", (0, {}, None), (1, {}, traces.header(rank=1)))[1:], (0, ""), "one that made no call has no rows")

    def test_a_header_of_another_version_or_format_is_refused_as_the_analyzer_does(self):
        for name, fields in ("later", {"version": 2}), ("none", {"version": None}), ("other", {"format": "other.trace"}):
            runs, status, said = self.write_some(name, (0, {}, None), (1, fields, None))
            self.assertEqual((runs, status, os.listdir(os.path.join(self.folder, name + ".lake", "run=run1"))), (["run=run1"], 3, ["rank=0"]), said)
            self.assertRegex(said, r"rank-00001-1.msgpack.zst: .* a header of another format or version\n(.*\n)*.*rank-00001-1.msgpack.zst is left out")
            self.assertEqual(subprocess.run([ANALYZE, "dump", os.path.join(self.folder, name, "rank-00001-1.msgpack.zst")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode, 3)

    def test_events_of_a_damaged_frame_are_left_out_and_the_status_says_so(self):
        thread = traces.Thread()
        parts = [thread.events(count, api=1, kind=1, duration_ns=1, address=list(range(8, 8 + count)), bytes=8) for count in (4, 8, 5)]
        parts[1] = parts[1][:80] + bytes([parts[1][80] ^ 0xFF]) + parts[1][81:]
        runs, status, said = self.write_some("damaged", (0, {}, b"".join([traces.header(), *parts, traces.footer()])))
        self.assertEqual((runs, status), (["run=run1"], 3), said)
        self.assertRegex(said, r"offset [1-9]\d*: .*rank-00000-1.msgpack.zst")
        table = pyarrow.parquet.read_table(os.path.join(self.folder, "damaged.lake", "run=run1", "rank=0", "rank-00000-1-0.parquet"), partitioning=None)
        self.assertEqual(table.num_rows, 9)

    def test_a_disk_that_is_full_is_called_so(self):
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "parquet", self.traces, "-o", self.lake + "2"], stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))  # as full as one can make a disk without rights
        self.assertEqual(done.returncode, 2)
        self.assertIn("File too large", done.stderr)
        self.assertEqual([name for _, _, names in os.walk(self.lake + "2") for name in names], [])

    def test_a_folder_with_files_is_not_written_into(self):
        done = subprocess.run([sys.executable, "-m", "stormlog_native", "parquet", self.traces, "-o", self.lake], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("not empty", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
