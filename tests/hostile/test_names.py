#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Names in a trace cannot control a terminal or page: every byte that the program prints is checked."""
import csv
import gzip
import io
import json
import os
import pickle
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unicodedata
import unittest
import xml.dom.minidom

import traces as t

ANALYZE = os.path.abspath(sys.argv[1])
NAMES = [
    "\x1b]52;c;cHduZWQ=\x07\x1b]8;;http://evil.example/\x07click\x1b[2J\x1b[31m", "\u009b2J\u009d52;c;x\u009c\u0090tmux\u009c",
    b"\x9b2J\x9d52;c;x\x9c", "a\nb\r\n::set-env name=X::pwn\n##[add-mask]abc\r", b"\xff\xfe\xc0\x80\xed\xa0\x80\xf8\x88bad", "abc\0def",
    "%n%s%s%n%x%99999999d", "=cmd|'/C calc'!A0", "+1+1,\"q\"\"x\",@SUM(A1)\t-2", "@SUM(A1)", "-2+3", "../../../../x", "safe\u202egnp.exe\u2066\u2028\u2029\ufeff",
    "::set-env name=PATH::/evil", "  ::error::no", "##[add-path]/evil", "[click](javascript:alert(1)) ![x](http://evil.example/t.png) **b** | c",
    "<img src=http://evil.example/a.png>", "```", "]]><!ENTITY x \"y\">&amp;&#0;\x01\x0b\ufffe\uffff", "a;b;c 123;d", "\U000e0041\U000e0042tag",
    "caf\u00e9 \u6771\u4eac \U0001f469\u200d\U0001f680",
    "##vso[task.setvariable variable=PATH]/evil", "a ###teamcity[buildStatus text='x']", "\u00a0::error file=a::b", "::error::first",
    "\u3000 \u2003::stop-commands::x", "in\u180evi\u00adsi\u200cble\u115f\u3164", "www.evil.example/login", "see WWW.evil.example", "m@evil.example", "\u00a0", ":", ":error::x",
    "::operator new", "a##b", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "Silben\u00adtrennung",
]
NO_TRICKS_OF_A_DATABASE = [*NAMES[-4:], "::error::first", "##vso[task.setvariable variable=PATH]/evil", "@SUM(A1)"]
STEERING = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")
INVISIBLE = "\u115f\u1160\u3164\uffa0\u034f"
OURS = re.compile(r"\x1b\[(0|1|1;31)?m|\x1b\[K")  # the analyzer's own colours and progress, on a terminal alone


def record(path, **changes):
    """Write a trace with every name at every place where a trace has a name."""
    maps, thread, count = [], t.Thread(), len(NAMES)
    for i, name in enumerate(NAMES, 1):
        maps += [{"def": "text", "id": i, "text": name}, {"def": "frame", "id": i, "function": name, "file": name, "line": i},
                 {"def": "python_stack", "id": i, "frames": [i, i % count + 1]},
                 {"def": "thread", "id": i, "tid": 100 + i, "name": name, "ns": t.T0},
                 {"def": "module", "base": i << 24, "end": (i + 1) << 24, "path": name, "build_id": name, "ns": t.T0},
                 {"def": "native_stack", "id": i, "pcs": struct.pack("<2Q", (i << 24) + 5, (i << 24) + 9)},
                 {"def": "note", "text": name, "ns": t.T0}, {"def": "capability", "name": name, "value": name},
                 {"def": "communicator", "handle": i, "rank": 0, "world_size": 1, "device": 0, "name": name, "ns": t.T0},
                 {"def": "gap", "count": 3, "begin_ns": t.T0, "end_ns": t.T0 + 5, "why": name}]
    maps += [{"def": "device", "ordinal": d, "family": NAMES[d], "name": NAMES[d * 3], "uuid": NAMES[d * 2], "pci": NAMES[d],
              "total_bytes": 1 << 36, "ns": t.T0} for d in range(4)]
    numbers = list(range(1, count + 1)) * 8
    events = []
    for turn in range(8):
        for i in range(1, count + 1):
            at = turn * count + i
            events += [(t.PUSH, 0, -1, 0, 0, 0, i, 0), (t.MALLOC, 1, i % 4, at << 20, 1 << 20, i, i, 0), (t.MARK, 0, -1, 0, 0, 0, i, 0),
                       (t.POP, 0, -1, 0, 0, 0, i, 0)]
    for i in range(1, count + 1):
        events.append((t.MALLOC, 1, 0, 0, 1 << 38, i, i, 2))
    names = ("api", "kind", "device", "address", "bytes", "python", "label", "result")
    columns = {name: [event[k] for event in events] for k, name in enumerate(names)}
    columns["native"] = columns["python"]
    columns["caller"] = [(i << 24) + 7 if i else 0 for i in columns["python"]]
    text = {("k%d" % i): name for i, name in enumerate(NAMES)}
    fields = {"argv": [NAMES[0]] + NAMES, "exe": NAMES[0], "cwd": NAMES[16], "tag": NAMES[3], "job_id": NAMES[1], "metadata": text,
              "environment": text, "settings": text, "host": NAMES[4], "world_size": 2, "run_id": NAMES[13]}
    fields.update(changes)
    t.write(path, t.header(**fields), t.defs(maps), thread.events(len(events), **columns), t.footer(how=NAMES[3]))
    del numbers


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-names-")
        cls.traces = os.path.join(cls.folder, "t")
        hooks = [list(hook) for hook in t.HOOKS]
        hooks[0][0], hooks[2][0], hooks[6][0] = NAMES[1], NAMES[13], NAMES[18]
        record(os.path.join(cls.traces, "rank-00000-100.msgpack.zst"))
        record(os.path.join(cls.traces, "rank-00001-101.msgpack.zst"), rank=1, pid=101, hooks=hooks, host=NAMES[0])
        cls.before = os.path.join(cls.folder, "before")
        record(os.path.join(cls.before, "rank-00000-100.msgpack.zst"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_it(self, *arguments, codes=(0,), **environment):
        done = subprocess.run([ANALYZE, *arguments], capture_output=True, timeout=120, cwd=self.folder,
                              env=dict(os.environ, LC_ALL="C.UTF-8", **environment))
        self.assertIn(done.returncode, codes, done.stderr.decode(errors="replace"))
        self.harmless(done.stderr, arguments)
        return done.stdout

    def harmless(self, data, what, lines=True):
        text = OURS.sub("", data.decode())  # raises if it is not UTF-8
        for at, char in enumerate(text):
            if char in INVISIBLE or unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs") and char not in "\n\u200d":
                self.fail("%s: %r in %r" % (what, char, text[max(0, at - 40):at + 40]))
        for line in text.split("\n") if lines else ():
            self.assertNotRegex(line, r"^\s*::", what)
        self.assertNotRegex(text, r"##\w*\[", what)

    def test_terminals_and_logs(self):
        for verb in (["-o", "o"], ["tree"], ["table"], ["flame"], ["diff", self.before], ["diff", "--all", self.before],
                     ["tree", "--at", "oom"], ["check", "--no-oom", "--no-leaks"], ["check", "--max-peak", "1M"],
                     ["export", "collapsed", "-o", "-"], ["merge", "-o", "merged"]):
            out = self.run_it(*verb, self.traces, codes=(0, 1, 2, 3))
            self.harmless(out, verb)
            self.assertTrue(out or verb[0] in ("merge", "check", "tree"), verb)
        self.harmless(self.run_it("-o", "o", self.traces, STORMLOG_TEST="1", COLUMNS="40"), "narrow")

    def test_every_verb_runs_with_a_path_that_steers(self):
        for path in "\x1b]0;x\x07", "\u009b2J", "::error::x", "a\nb":
            for verb in ("report", "tree", "flame", "dump", "check", "diff", "export", "pack", "merge", "convert", "validate"):
                self.harmless(self.run_it(verb, path, codes=(2, 3)), verb)

    def test_annotations_of_githubs_runner_are_ours_alone(self):
        out = self.run_it("check", "--max-peak", "1M", "--no-oom", self.traces, codes=(1,), GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY="step.md")
        for line in out.decode().split("\n"):
            if line.lstrip().startswith("::"):
                self.assertRegex(line, r"^::(error|warning) [^\n:]*::")
        self.harmless(out, "annotations", lines=False)

    def test_markdown(self):
        self.run_it("-q", "-o", "o", self.traces)
        with open(os.path.join(self.folder, "o/summary.md"), "rb") as file:
            data = file.read()
        self.harmless(data, "summary.md")
        text = data.decode()
        self.assertEqual(len(re.findall(r"^\s*```", text, re.M)), 2, "the block of code is ended by us alone")
        outside = text.split("```")[2]
        for markup in r"(?<!\\)<img", r"(?<!\\)\]\(", r"(?<!\\)://", r"(?<!\\)\*\*", r"(?i)www\.", r"@\w":
            self.assertNotRegex(outside, markup)

    def test_csv_has_no_formula(self):
        out = self.run_it("export", "csv", "-o", "-", self.traces)
        self.harmless(out.replace(b"\r\n", b"\n"), "csv")
        rows = list(csv.reader(io.StringIO(out.decode(), newline="")))
        self.assertEqual({len(row) for row in rows}, {17})
        for row in rows:
            for cell in row:
                self.assertFalse(cell[:1] in ("=", "+", "@", "\t", "\r") or re.match(r"-(?!\d+$)", cell), cell)

    def test_entries_as_csv(self):
        out = self.run_it("table", "--entries", "*", "--csv", self.traces)
        self.harmless(out.replace(b"\r\n", b"\n"), "entries")
        rows = list(csv.reader(io.StringIO(out.decode(), newline="")))
        self.assertGreaterEqual(len(rows), len(NAMES))
        for row in rows:
            for cell in row:
                self.assertFalse(cell[:1] in ("=", "+", "@", "\t", "\r") or re.match(r"\s*::", cell), cell)

    def test_json_gives_back_what_runners_would_take(self):
        out = self.run_it("table", "--entries", "*", "--json", self.traces).decode()
        self.harmless(out.encode(), "json")
        self.assertIn("##vso[task.setvariable variable=PATH]/evil", str([json.loads(line) for line in out.splitlines()]))

    def test_metrics_and_reports_of_ci(self):
        out = self.run_it("export", "prometheus", "-o", "-", self.traces)
        self.harmless(out, "prometheus")
        for line in out.decode().splitlines():
            self.assertRegex(line, r'^(#.*|[a-z_]+\{([a-z]+="([^"\\]|\\[\\"n])*",?)*\} \d+)$')
        self.run_it("check", "--max-peak", "1M", "--no-oom", "--junit", "j.xml", "--metrics", "m.prom", "--sarif", "s.json", "--summary", "s.md",
                    self.traces, codes=(1,))
        for name in "j.xml", "m.prom", "s.md":
            with open(os.path.join(self.folder, name), "rb") as file:
                self.harmless(file.read(), name)
        xml.dom.minidom.parse(os.path.join(self.folder, "j.xml"))

    def test_json_shows_no_control_and_no_command_either(self):
        for verb in ["report", "--json"], ["dump"], ["table", "--entries", "*"], ["table", "--entries", "*", "--json"], ["tree", "--json"], ["table", "--json"], ["export", "ndjson", "-o", "-"], \
                ["export", "speedscope", "-o", "-"]:
            self.harmless(self.run_it(*verb, self.traces), verb)

    def test_texts_of_binary_forms_steer_nothing_and_are_found_by_their_names(self):
        def texts(held):
            if isinstance(held, (dict, list, tuple)):
                return [text for one in held for text in texts(one)] + (texts(list(held.values())) if isinstance(held, dict) else [])
            return [held] if isinstance(held, str) else []

        def exported(form):
            self.run_it("export", form, "-o", form + ".out", self.traces)
            with open(os.path.join(self.folder, form + ".out"), "rb") as file:
                return file.read()

        def fine(found, what):
            for text in found:
                self.assertNotRegex(text, STEERING, what)
            return found

        self.assertLessEqual(set(NO_TRICKS_OF_A_DATABASE), set(fine(texts(pickle.loads(exported("pytorch-snapshot"))), "pytorch-snapshot")))
        for form in "pprof", "perfetto":
            data = exported(form)
            data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
            for name in "caf\u00e9", *NO_TRICKS_OF_A_DATABASE:
                self.assertIn(name.encode(), data, form)
            for part in "\x1b]52", "\x1b[2J", "\u009b2J", "safe\u202e", "\U000e0041", "a\nb\r":
                self.assertNotIn(part.encode(), data, form)
        if subprocess.run([ANALYZE, "export", "sqlite", "-o", os.path.join(self.folder, "names.db"), self.traces], capture_output=True).returncode:
            return  # a build without SQLite
        base = sqlite3.connect(os.path.join(self.folder, "names.db"))
        self.addCleanup(base.close)
        found = [text for table, in base.execute("select name from sqlite_master where type = 'table'").fetchall()
                 for text in fine(texts(base.execute('select * from "%s"' % table).fetchall()), table)]
        self.assertLessEqual(set(NO_TRICKS_OF_A_DATABASE), set(found))

    def test_what_is_no_trick_stays(self):
        self.assertIn("caf\u00e9 \u6771\u4eac \U0001f469\u200d\U0001f680", self.run_it("tree", "--depth", "9", self.traces).decode())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
