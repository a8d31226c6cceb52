#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_site.py STORMLOG_SERVER STORMLOG_ANALYZE page|plain SEED_STORE: pages and interface of the server.  Expected figures are those that the traces were made with.
Longer than other files: all pages, and what a child makes for them, are of one server and its store."""
import base64
import gzip
import hashlib
import html.parser
import json
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

try:
    import jsonschema
except ImportError:  # the figures are checked without it too
    jsonschema = None

import runs  # noqa: E402  skips where msgpack is missing
import msgpack  # noqa: E402
from served import Server, make_pack, name_of, pack_of_members, wait_for  # noqa: E402

PROGRAM, ANALYZE, SEED = map(os.path.abspath, (*sys.argv[1:3], sys.argv[4]))
PAGE = sys.argv[3] == "page"  # the build has the interactive page
MIB = 1 << 20
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schemas", "server.schema.json")) as schema:
    VALID = jsonschema.Draft202012Validator(json.load(schema)) if jsonschema else None
EVIL = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "javascript:alert(1)", "</title><script>alert(2)</script>",
        "a\r\nX-Evil: yes", "\x1b[31m\u202e", "'; DROP TABLE runs; --", "\" OR 1=1 --", "%s%n%x", "$1 % 2 $", "\\u003cscript\\u003e", "]]>", "&lt;b&gt;"]


def unpacked(body):
    return msgpack.unpackb(gzip.decompress(body), ext_hook=lambda kind, data: data if kind != 5 else [x for x, in struct.iter_unpack("<d", data)])


class Page(html.parser.HTMLParser):
    """A page: every element with its attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def links(self):
        return [attributes["href"] for tag, attributes in self.elements if "href" in attributes]


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-site-")
        cls.server = Server(PROGRAM, os.path.join(cls.folder, "store")).start()
        cls.both = cls.server.token("both", "--read", "--write")
        cls.numbers = {}
        cls.packs = [runs.record(ANALYZE, cls.folder, n, [100, 50 + n], second=60 * n, function=f"step_{n}", metadata={"project": "alpha" if n < 3 else "beta"})
                     for n in range(5)]
        for n, pack in enumerate(cls.packs):
            cls.numbers[n] = cls.send(pack)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def send(cls, pack):
        """Sends a pack.  Returns the number of its run."""
        assert cls.server.put(pack)[0] == 201

        def shown():
            status, headers, body = cls.server.get("/packs/" + name_of(pack))
            assert status in (202, 302), (status, body)
            return status == 302 and int(headers["Location"].rsplit("/", 1)[1])
        return wait_for(shown)

    def json(self, path, wanted=200, **query):
        status, headers, body = self.server.get(path + "?" + urllib.parse.urlencode(query))
        self.assertEqual(status, wanted, body)
        self.assertEqual(headers["Content-Type"], "application/json")
        answer = json.loads(body)
        if VALID and "schema" not in answer:
            VALID.validate(answer)
        return answer

    def page(self, path, wanted=200, token=None, **query):
        status, headers, body = self.server.ask("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""), token=token or self.server.reads)
        self.assertEqual(status, wanted, body)
        self.assertTrue(headers["Content-Type"].startswith("text/html"))
        return Page(body.decode())

    def change(self, path, token=None, headers={}, **fields):
        return self.server.ask("POST", path, body=urllib.parse.urlencode(fields), token=token or self.both,
                               Content_Type="application/x-www-form-urlencoded", **headers)

    # ---- the interface

    def test_runs_have_the_figures_that_they_were_made_with(self):
        found = self.json("/api/v1/runs", q="project:alpha", order="when")  # oldest first
        self.assertEqual(found["count"], 3)
        self.assertEqual([r["number"] for r in found["runs"]], [self.numbers[n] for n in range(3)])
        self.assertEqual([r["run"]["peak"] for r in found["runs"]], [(150 + n) * MIB for n in range(3)])
        self.assertEqual([r["run"]["identity"] for r in found["runs"]], [name_of(pack) for pack in self.packs[:3]])

    def test_a_query_chooses(self):
        for query, wanted in ((f"peak>{152 * MIB}", {3, 4}), ("function:step_2", {2}), ("project:beta tag:tag-3", {3}), ("not project:alpha", {3, 4}), ("nosuchword", set())):
            found = {r["number"] for r in self.json("/api/v1/runs", q=query)["runs"]}
            self.assertEqual(found, {self.numbers[n] for n in wanted}, query)
        self.assertIn("character", self.json("/api/v1/runs", 400, q="(((")["error"])
        self.assertEqual(len(self.json("/api/v1/runs", limit=2, skip=1)["runs"]), 2)

    def test_an_argument_that_nothing_understands_is_refused(self):
        for path in ("/api/v1/runs", "/search", "/trends"):
            for argument in ("order=nonsense", "order=-nonsense", "limit=abc", "limit=-1", "skip=1x", "field=nope", "metric=abc", "field=project"):
                status, _, body = self.server.get(f"{path}?{argument}")
                self.assertEqual((status, argument.split("=")[0].encode() + b"=" in body), (400, True), (path, argument, body))
            self.assertEqual(self.server.get(path + "?order=-peak&limit=7&skip=0&field=peak")[0], 200)
        self.assertEqual(self.server.get("/search?order=")[0], 200)

    def test_metadata_is_on_the_page_and_found(self):
        told = {"project": "told", "lr": "0.125", "build": "7 <b>of</b> main"}
        number = self.send(runs.record(ANALYZE, tempfile.mkdtemp(dir=self.folder), "told", [5], function="told", second=-4 * 10 ** 6, metadata=told))
        page = self.page(f"/runs/{number}").text
        for key, value in told.items():
            self.assertIn(f"meta{key}={value}", page)
        for query, wanted in (("meta:lr=0.125", [number]), ("meta=\"lr=0.125\"", [number]), ("meta:lr=0.25", []), ("meta:build=7", [number]), ("\"lr 0.125\"", [number])):
            self.assertEqual([run["number"] for run in self.json("/api/v1/runs", q=query)["runs"]], wanted, query)

    def test_no_library_of_this_machine_is_missed(self):
        folder, t = tempfile.mkdtemp(dir=self.folder), runs.t
        maps = [{"def": "module", "base": 1 << 24, "end": 2 << 24, "path": os.path.realpath(sys.executable), "build_id": "aa", "ns": t.T0},
                {"def": "native_stack", "id": 1, "pcs": struct.pack("<Q", (1 << 24) + 5)}]
        events = t.Thread().events(1, api=t.MALLOC, kind=1, duration_ns=1, address=[1 << 32], device=0, bytes=[MIB], native=1, label=0)
        t.write(os.path.join(folder, "run-1", "rank-00000-100.msgpack.zst"), t.header(run_id="named", started_ns=t.UNIX0 - 10 ** 16), t.defs(maps), events, t.footer(events=1))
        number = self.send(runs.pack(ANALYZE, folder, 1))
        self.assertEqual(self.json(f"/api/v1/runs/{number}/report")["warnings"], [])

    def test_a_run_comes_whole_with_its_report(self):
        number = self.numbers[4]
        run = self.json(f"/api/v1/runs/{number}")
        self.assertEqual((run["run"]["peak"], run["notes"]), (154 * MIB, []))
        self.assertIn("step_4", run["run"]["names"]["function"])
        report = self.json(f"/api/v1/runs/{number}/report")
        self.assertEqual(report["schema"], "stormlog.report")
        self.assertEqual(report["processes"][0]["memory"][0]["peak_bytes"], 154 * MIB)
        for path in ("/api/v1/runs/999999", "/api/v1/runs/x", "/api/v1/runs/-1", "/api/v1/runs/1/../2", "/api/v1/runs/1x", "/api/v1/runs/99999999999999999999999"):
            self.json(path, 404)

    def test_quantities_over_runs(self):
        points = self.json("/api/v1/history", q="project:beta", field="peak")["points"]
        self.assertEqual([p["value"] for p in points], [153 * MIB, 154 * MIB])
        metrics = self.json("/api/v1/metrics", q="project:beta", of="stack")["metrics"]
        self.assertIn("train.py:7 step_3", " ".join(m["what"] for m in metrics))
        self.json("/api/v1/history", 400, field="project")

    def test_names_as_somebody_types(self):
        names = self.json("/api/v1/names", begins="step_")["names"]
        self.assertEqual({n["text"] for n in names if n["kind"] == "function"}, {f"step_{n}" for n in range(5)})
        for begins, wanted in (("tag-", {("tag", f"tag-{n}") for n in range(5)}), ("train", {("file", "train.py")}), ("alph", {("project", "alpha")})):
            found = {(n["kind"], n["text"]) for n in self.json("/api/v1/names", begins=begins)["names"]}
            self.assertLessEqual(wanted, found, begins)

    # ---- pages

    def test_the_landing_page_has_projects_and_newest_runs(self):
        page = self.page("/")
        for name in ("alpha", "beta", "tag-4", "Left"):
            self.assertIn(name, page.text)
        for n in range(3):
            verdict = self.json("/api/v1/runs/%d/report" % self.numbers[n])["answer"]["verdicts"][0]
            self.assertIn("%s: %s" % (verdict["word"], verdict["headline"]), page.text, "the run's answer, in its row")
        for n in range(5):
            self.assertIn(f"/runs/{self.numbers[n]}", page.links())
            self.assertRegex(page.text, rf"\b{self.numbers[n]}\d{{4}}-\d\d-\d\dT", "the number that other pages call it by")
        trend = self.page('/trends?q=project%3D%22alpha%22&field=peak')
        self.assertIn('/trends?q=project%3D%22alpha%22&field=peak', page.links())
        self.assertIn('/trends?q=project%3D%22alpha%22', trend.links(), "to the other quantities")

    def test_a_run_leads_to_the_run_before_it_in_its_project(self):
        """Runs are ordered by their begin, and by arrival if two began at the same time.  The first run of a project has none before it."""
        folder, second = tempfile.mkdtemp(dir=self.folder), -6 * 10 ** 6
        first, third, second_one, twin, other = (self.send(runs.record(ANALYZE, folder, f"row-{n}", [9], second=second + began, function="row", metadata={"project": project}))
                                           for n, began, project in ((1, 1, "row"), (2, 3, "row"), (3, 2, "row"), (4, 2, "row"), (5, 4, "another row")))
        for run, before in ((first, None), (second_one, first), (twin, second_one), (third, twin), (other, None)):
            found = [link for link in self.page(f"/runs/{run}").links() if link.startswith("/compare?")]
            self.assertEqual(found, [f"/compare?before={before}&after={run}"] if before else [], run)

    def test_a_pin_needs_no_body_not_even_an_announced_one(self):
        """`curl -X POST` sends no body and no Content-Length."""
        for way, pinned in (("pin", 1), ("unpin", None)):
            connection = self.server.connect()
            connection.putrequest("POST", f"/runs/{self.numbers[3]}/{way}")
            connection.putheader("Authorization", "Bearer " + self.both)
            connection.endheaders()
            self.assertEqual(connection.getresponse().status, 303)
            connection.close()
            self.assertEqual(self.json(f"/api/v1/runs/{self.numbers[3]}")["run"]["pinned"] or None, pinned)

    def test_no_page_names_another_host_or_has_script_of_its_own(self):
        for path in ("/", "/search?q=step", "/trends", "/trends?field=peak", f"/runs/{self.numbers[0]}"):
            status, headers, body = self.server.get(path)
            policy = headers["Content-Security-Policy"]
            self.assertIn("script-src 'self'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["Referrer-Policy"], "same-origin", "else a form of ours has no Origin")
            page = Page(body.decode())
            for tag, attributes in page.elements:
                for name, value in attributes.items():
                    self.assertFalse(name.startswith("on") or name == "style", (path, tag, name))
                    if name in ("href", "src", "action"):
                        self.assertRegex(value, r"^(/(?!/)|data:,$)", (path, tag))
                self.assertFalse(tag == "script" and "src" not in attributes)
        for path in ("/static/style.css", "/static/search.js"):
            self.assertEqual(self.server.get(path)[0], 200)
        self.assertEqual(self.server.get("/static/../tokens")[0], 404)

    def data(self, path):
        """The data of a page; waits until the server has computed it."""
        def ready():
            status, headers, body = self.server.get(path)
            self.assertIn(status, (200, 202), body)
            return status == 200 and (headers, body)
        headers, body = wait_for(ready)
        self.assertEqual((headers["Content-Type"], headers["Content-Encoding"]), ("application/msgpack", "gzip"))
        return body, unpacked(body)

    @unittest.skipUnless(PAGE, "built without the interactive page")
    def test_the_data_of_a_page_is_what_the_child_made_and_the_page_has_none(self):
        body, page = self.data(f"/api/v1/runs/{self.numbers[1]}/page")
        name = name_of(self.packs[1])
        with open(os.path.join(self.server.store, "pages", name[:2], name, "page-2.msgpack.gz"), "rb") as file:
            self.assertEqual(body, file.read())
        self.assertEqual((page["schema"], [p["peak"] for p in page["processes"]]), ("stormlog.page", [151 * MIB]))
        status, headers, body = self.server.get(f"/runs/{self.numbers[1]}/report", Accept_Encoding="gzip, br")
        self.assertEqual((status, headers["Content-Encoding"]), (200, "gzip"))
        self.assertEqual(self.server.get(f"/runs/{self.numbers[2]}/report", Accept_Encoding="gzip")[2], body, "one page for every run")
        plain = self.server.get(f"/runs/{self.numbers[1]}/report", Accept_Encoding="identity")
        self.assertEqual((plain[0], plain[1].get("Content-Encoding"), plain[2]), (200, None, gzip.decompress(body)))
        script, = re.findall(rb"<script>(.*?)</script>", gzip.decompress(body), re.S)
        hashed = base64.b64encode(hashlib.sha256(script).digest()).decode()
        self.assertIn(f"default-src 'none'; script-src 'sha256-{hashed}'; ", headers["Content-Security-Policy"])
        self.assertEqual(self.server.get("/runs/999999/report")[0], 404)
        self.json("/api/v1/runs/999999/page", 404)

    def test_what_the_server_says_of_a_run_is_what_stormlog_analyze_says(self):
        """Compares report.json byte by byte, and every field of the catalogue except `identity` and `source`."""
        for n in (0, 4):
            path = os.path.join(self.folder, f"run-{n}.stormlog")
            ask = [[ANALYZE, "--json", path], [ANALYZE, "runs", "--json", "--catalogue", os.path.join(self.folder, "catalogue.sqlite"), f"run:run-{n}", path]]
            report, found = (subprocess.run(arguments, check=True, capture_output=True).stdout for arguments in ask)
            status, _, body = self.server.get(f"/api/v1/runs/{self.numbers[n]}/report")
            self.assertEqual((status, body), (200, report))
            ours, = json.loads(found)["runs"]
            theirs = self.json(f"/api/v1/runs/{self.numbers[n]}")["run"]
            fields = ours.keys() - {"identity", "source"}
            self.assertGreater(len(fields), 20)
            self.assertEqual({name: theirs[name] for name in fields}, {name: ours[name] for name in fields})

    @unittest.skipUnless(PAGE, "built without the interactive page")
    def test_what_readers_ask_for_makes_a_new_pack_wait_little(self):
        """64 windows were asked for before it: less than 32 of them are computed when the pack has become a run."""
        name = name_of(self.packs[2])
        for n in range(64):
            self.server.get(f"/api/v1/runs/{self.numbers[2]}/page?from={n << 20}&to={(n << 20) + 9}")
        self.send(runs.record(ANALYZE, self.folder, "late", [7], second=-2 * 10 ** 6, metadata={"project": "late"}))
        windows = [file for file in os.listdir(os.path.join(self.server.store, "pages", name[:2], name)) if re.match(r"[0-9a-f]+-[0-9a-f]+\.", file)]
        self.assertLess(len(windows), 32)

    @unittest.skipUnless(PAGE, "built without the interactive page")
    def test_two_are_compared(self):
        query = "?" + urllib.parse.urlencode({"before": self.numbers[0], "after": self.numbers[4]})
        _, page = self.data("/api/v1/compare" + query)
        total, = [row for row in page["differences"] if row["of"] == "total" and row["key"] == "peak"]
        self.assertEqual([total[side]["mean_bytes"] for side in ("before", "after")], [150 * MIB, 154 * MIB])
        self.assertEqual(self.server.get("/compare" + query)[0], 200)
        for path in ("/compare", "/api/v1/compare"):
            self.assertEqual(self.server.get(path + "?before=1&after=999999")[0], 404)
            self.assertEqual(self.server.get(path)[0], 400)

    def test_a_trend_shows_every_run_and_leads_to_both_sides(self):
        page = self.page("/trends", q="project:alpha", field="peak")
        circles = [a for tag, a in page.elements if tag == "circle"]
        self.assertEqual(len(circles), 3)
        self.assertIn(f"/compare?before={self.numbers[0]}&after={self.numbers[1]}", page.links())
        heights = [float(a["cy"]) for a in circles]
        self.assertEqual(heights, sorted(heights, reverse=True), "more is higher")

    def test_a_trend_stands_over_runs_time_or_commits(self):
        """Four runs, after 0, 1, 2 and 10 minutes; the second and the third have the same commit."""
        folder = tempfile.mkdtemp(dir=self.folder)
        for n, (minute, commit) in enumerate(((0, "aaaa1111"), (1, "bbbb2222"), (2, "bbbb2222"), (10, "cccc3333"))):
            self.send(runs.record(ANALYZE, folder, f"c{n}", [10 + n], function="worked", second=60 * minute - 10 ** 6, metadata={"project": "commits", "git.commit": commit}))
        for axis, wanted in (("run", [0, 1 / 3, 2 / 3, 1]), ("time", [0, 0.1, 0.2, 1]), ("commit", [0, 0.5, 0.5, 1]), ("nonsense", [0, 1 / 3, 2 / 3, 1])):
            page = self.page("/trends", q="project=commits", field="peak", axis=axis)
            stand = [float(a["cx"]) for tag, a in page.elements if tag == "circle"]
            for seen, right in zip([(x - stand[0]) / (stand[3] - stand[0]) for x in stand], wanted, strict=True):
                self.assertAlmostEqual(seen, right, 2, axis)
            self.assertEqual("aaaa1111cccc3333" in page.text, axis == "commit")
            self.assertEqual(len([link for link in page.links() if "&axis=" in link]), 2, "the other two")

    def test_what_got_worse_is_named_with_both_sides(self):
        """After fourteen runs of 100 MiB, two of 102 MiB: 2 % more, named once the second is there; a steady project is not named."""
        folder, numbers = tempfile.mkdtemp(dir=self.folder), []
        for n in range(16):
            size = 100 if n < 14 else 102
            numbers.append(self.send(runs.record(ANALYZE, folder, f"w{n}", [size], function="grower", second=10000 + 60 * n,
                                                  metadata={"project": "growing", "git.commit": f"{n:02d}c0ffee"})))
            self.send(runs.record(ANALYZE, folder, f"s{n}", [64], function="steady", second=10000 + 60 * n, metadata={"project": "steady"}))
        page = wait_for(lambda: (lambda page: page if "growing" in page.text.split("Projects")[0] else None)(self.page("/")))
        worse = page.text.split("Projects")[0]
        self.assertIn("100 MiB", worse)
        self.assertIn("102 MiB", worse)
        self.assertRegex(worse, "growing *train.py:7 grower", "its place, too")
        self.assertNotIn("steady", worse)
        self.assertRegex(worse, rf"102 MiB *{numbers[14]}, not sure yet *\S+ *14c0ffee")
        self.assertIn(f"/compare?before={numbers[13]}&after={numbers[14]}", page.links())
        place, = {link for link in page.links() if "&metric=" in link and "growing" in link}
        self.assertIn('stack: train.py:7 grower, over runs of project="growing"', self.page(place).text)
        changes = self.json("/api/v1/history", q="project=growing", field="peak")["changes"]
        self.assertEqual(changes, [{"run": numbers[14], "before_run": numbers[13], "commit": "14c0ffee", "before": 100 * MIB, "after": 102 * MIB, "settled": False}])
        told = [row for row in self.json("/api/v1/worse")["worse"] if row["project"] == "growing"]
        told = {row["what"]: {key: row[key] for key in changes[0]} for row in told}
        self.assertEqual((told["peak"], told["train.py:7 grower"]), (changes[0], changes[0]))
        trend = self.page("/trends", q="project=growing", field="peak")
        self.assertEqual([a["class"] for tag, a in trend.elements if tag == "circle"], ["point"] * 14 + ["changed", "point"])
        self.assertRegex(trend.text, rf"100 MiB before, 102 MiB since run {numbers[14]} of \S+, commit 14c0ffee; the run before: commit 13c0ffee; not sure yet: later runs may take it back. What changed")
        for n in range(16, 19):
            self.send(runs.record(ANALYZE, folder, f"w{n}", [102], function="grower", second=10000 + 60 * n, metadata={"project": "growing"}))
        change, = self.json("/api/v1/history", q="project=growing", field="peak")["changes"]
        self.assertEqual((change["run"], change["settled"]), (numbers[14], True), "five runs in a row")
        self.assertNotIn("not sure yet", self.page("/trends", q="project=growing", field="peak").text)
        self.assertIn("no change", self.page("/trends", q="project=steady", field="peak").text)

    def test_projects_whose_names_agree_for_long_have_news_each(self):
        names, folder = ["n" * 300 + end for end in "ab"], tempfile.mkdtemp(dir=self.folder)
        for n in range(7):
            for name in names:
                self.send(runs.record(ANALYZE, folder, f"{name[-1]}{n}", [100 if n < 5 else 150], second=60 * n - 20000, metadata={"project": name}))
        wait_for(lambda: {row["project"] for row in self.json("/api/v1/worse")["worse"]} >= set(names))

    def test_as_many_projects_as_runs_keep_a_new_pack_waiting_little(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        server = Server(PROGRAM, os.path.join(folder, "store"), "--keep-count", "5")
        catalogue = os.path.join(folder, "store", "catalogue.sqlite")
        subprocess.run([SEED, catalogue, "1000"], check=True)
        with sqlite3.connect(catalogue) as db:
            db.execute("UPDATE runs SET project = 'p' || run")
        db.close()
        server.start()
        self.addCleanup(server.kill)
        pack = runs.record(ANALYZE, folder, 1, [10])
        self.assertEqual(server.put(pack)[0], 201)
        wait_for(lambda: server.get("/packs/" + name_of(pack))[0] == 302)
        with open(f"/proc/{server.process.pid}/stat") as file:
            used = sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        self.assertLess(used, 3, "seconds of the processor; ten where each project is looked for among all runs")

    def test_a_trend_over_more_runs_than_a_person_reads_shows_the_newest(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        server = Server(PROGRAM, os.path.join(folder, "store"))
        subprocess.run([SEED, os.path.join(folder, "store", "catalogue.sqlite"), "1100"], check=True)
        server.start()
        self.addCleanup(server.kill)
        points = json.loads(server.get("/api/v1/history?field=peak")[2])["points"]
        page = Page(server.get("/trends?field=peak")[2].decode())
        self.assertEqual(len(points), 1100)
        rows = [link for link in page.links() if re.fullmatch(r"/runs/\d+", link)]
        self.assertEqual([int(link.rsplit("/", 1)[1]) for link in rows], [p["run"] for p in reversed(points[-500:])])
        self.assertIn("The newest 500 of 1100 runs", page.text)
        line, = (attributes["points"] for tag, attributes in page.elements if tag == "polyline")
        self.assertEqual(len(line.split()), 1100, "the line has all")

    # ---- what people add

    def test_notes_and_pins_stay(self):
        number = self.numbers[3]
        self.assertEqual(self.change(f"/runs/{number}/note", text="the batch <b>doubled</b> & leaked", at="0.123456789")[0], 303)
        self.assertEqual(self.change(f"/runs/{number}/pin")[0], 303)
        run = self.json(f"/api/v1/runs/{number}")
        self.assertEqual([(n["text"], n["at_ns"], n["author"]) for n in run["notes"]], [("the batch <b>doubled</b> & leaked", 123456789, "both")])
        self.assertEqual(run["run"]["pinned"], 1)
        page = self.page(f"/runs/{number}")
        self.assertIn("the batch <b>doubled</b> & leaked", page.text)
        self.assertIn(f"/runs/{number}/report#at=0.123456789", page.links())
        self.assertNotIn("b", [tag for tag, _ in page.elements])
        self.assertEqual(self.change(f"/runs/{number}/unpin")[0], 303)
        self.assertNotEqual(self.json(f"/api/v1/runs/{number}")["run"]["pinned"], 1)

    def test_what_is_no_note_is_refused(self):
        path = f"/runs/{self.numbers[0]}/note"
        self.assertEqual(self.change(path, text="")[0], 400)
        self.assertEqual(self.change(path, text="x" * 5000)[0], 400)
        self.assertEqual(self.change(path, text="x" * 70000)[0], 413)
        self.assertEqual(self.change("/runs/999999/pin")[0], 404)
        self.assertEqual(self.change(path, text="x", token=self.server.reads)[0], 403)
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            self.assertEqual(self.change(path, text="x", headers=headers)[0], 403)
        self.assertEqual(self.json(f"/api/v1/runs/{self.numbers[0]}")["notes"], [])

    # ---- hostile

    def test_script_in_every_name_is_text(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        numbers = []
        for i, evil in enumerate(EVIL):
            pack = runs.record(ANALYZE, folder, i, [10, 20 + i], place=evil, function=evil, second=1000 + i, tag=evil, run_id=evil, argv=[evil], host=evil, job_id=evil,
                               metadata={"project": evil})
            numbers.append(self.send(pack))
        pages = ["/", "/search", "/trends", "/trends?of=stack"] + [f"/runs/{n}" for n in numbers]
        for path in pages:
            page = self.page(path)
            tags = [tag for tag, _ in page.elements]
            self.assertEqual(tags.count("script"), 1, path)
            self.assertNotIn("img", tags)
            for tag, attributes in page.elements:
                self.assertFalse([name for name in attributes if name.startswith("on")], (path, tag))
                self.assertFalse(re.match(r"\s*javascript:", attributes.get("href") or ""), path)
            self.assertNotRegex(page.text, "[\x00-\x08\x1b\u202e]")
        for evil in EVIL:  # the same texts as queries and arguments
            for path in ("/search", "/api/v1/runs", "/trends", "/api/v1/metrics"):
                status, headers, body = self.server.get(path + "?" + urllib.parse.urlencode({"q": evil, "of": evil, "text": evil, "order": evil, "limit": evil}))
                self.assertIn(status, (200, 400), (path, evil))
                self.assertNotIn("X-Evil", headers)
                if path in ("/search", "/trends"):
                    self.assertLessEqual({attributes.get("src") for tag, attributes in Page(body.decode()).elements if tag == "script"}, {"/static/search.js"}, (path, evil))
            self.json("/api/v1/names", begins=evil)
        self.assertGreaterEqual(self.json("/api/v1/runs")["count"], 5 + len(EVIL), "nothing was dropped")

    def test_a_pack_that_cannot_be_read_says_so(self):
        pack = make_pack(99)
        self.assertEqual(self.server.put(pack)[0], 201)
        status, _, body = wait_for(lambda: (lambda got: got if got[0] != 202 else None)(self.server.get("/packs/" + name_of(pack))))
        self.assertEqual(status, 422)
        self.assertRegex(body, rb"pack")
        self.assertNotIn(self.server.store.encode(), body, "where it lies is nobody's business")

    def test_half_a_pack_is_a_damaged_run_in_no_trend(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        early = {"started_ns": runs.t.UNIX0 - 3 * 10 ** 15, "metadata": {"project": "halves"}}
        healthy = self.send(runs.course(ANALYZE, folder, 1, [(0, 130 * MIB, 1 << 32)], **early))
        some = random.Random(7)
        other = runs.course(ANALYZE, folder, 2, [(n * 1000 + some.randrange(1000), some.randrange(1, 1 << 30), some.randrange(1, 1 << 46)) for n in range(60000)], **early)
        for cut in (len(other) * 2 // 3, len(other) - 1):
            number = self.send(other[:cut])
            run = self.json(f"/api/v1/runs/{number}")["run"]
            self.assertEqual({run[name] for name in ("peak", "leak", "hidden", "oom", "processes", "findings", "finding")}, {None})
            self.assertEqual((run["status"], run["metrics"]), ("damaged", []))
            self.assertRegex(self.page(f"/runs/{number}").text, "damaged: a part of the run is missing")
            self.assertIn("damaged", self.page("/search", q=f"identity:{run['identity']}").text)
            report = self.server.get(f"/api/v1/runs/{number}/report")[2].decode()
            self.assertRegex(report, "the pack is damaged")
            self.assertNotIn(self.server.store, report, "where it lies is nobody's business")
            self.assertNotIn("stormlog-pack-", report)
        place = self.json("/api/v1/metrics", q="project=halves")["metrics"][0]
        for which in ({"field": "peak"}, {"metric": place["metric"]}):
            points = self.json("/api/v1/history", q="project=halves", **which)["points"]
            self.assertEqual([p["value"] for p in points], [130 * MIB, None, None], which)
            trend = self.page("/trends", q="project=halves", **which)
            self.assertEqual([tag for tag, _ in trend.elements].count("circle"), 1)
        self.assertEqual(self.json(f"/api/v1/runs/{healthy}")["run"]["status"], "completed")

    def test_a_rank_that_cannot_be_read_makes_a_damaged_run(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        runs.course(ANALYZE, folder, 1, [(0, 130 * MIB, 1 << 32)], started_ns=runs.t.UNIX0 - 3 * 10 ** 15, metadata={"project": "ranks"})
        with open(os.path.join(folder, "run-1", "rank-00000-100.msgpack.zst"), "rb") as file:
            trace = file.read()
        number = self.send(pack_of_members([(b"rank-00000-100.msgpack.zst", trace), (b"rank-00001-101.msgpack.zst", b"nothing of ours")]))
        run = self.json(f"/api/v1/runs/{number}")["run"]
        self.assertEqual((run["status"], run["peak"], run["metrics"]), ("damaged", None, []))

    @unittest.skipUnless(PAGE, "built without the interactive page")
    def test_what_cannot_be_computed_is_said_and_not_tried_for_ever(self):
        pack = runs.record(ANALYZE, tempfile.mkdtemp(dir=self.folder), 66, [5], second=6666)
        number = self.send(pack)
        os.truncate(self.server.packs()[name_of(pack)], 100)
        for path in (f"/api/v1/runs/{number}/page?from=1&to=2", f"/api/v1/compare?before={number}&after={self.numbers[0]}"):
            status, _, body = wait_for(lambda: (lambda got: got if got[0] != 202 else None)(self.server.get(path)))
            self.assertEqual((status, b"could not be computed" in body), (422, True))

    def test_runs_are_there_after_a_restart_and_what_was_not_read_is(self):
        before = self.json("/api/v1/runs")["count"]
        pack = runs.record(ANALYZE, tempfile.mkdtemp(dir=self.folder), 77, [5], second=7777)
        self.assertEqual(self.server.put(pack)[0], 201)
        self.server.kill()
        self.server.start()
        self.assertEqual(wait_for(lambda: self.json("/api/v1/runs")["count"] == before + 1), True)


@unittest.skipUnless(PAGE, "built without the interactive page")
class Closer(unittest.TestCase):
    """A part of a run is shown in finer bins than the whole run."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-closer-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.server = Server(PROGRAM, os.path.join(self.folder, "store")).start()
        self.addCleanup(lambda: self.server.kill())

    def known_line(self, run, **query):
        """The line `known` of the page's data: start, width, and the least and the most of each bin."""
        def ready():
            status, _, body = self.server.get(f"/api/v1/runs/{run}/page?" + urllib.parse.urlencode(query))
            self.assertIn(status, (200, 202), body)
            return status == 200 and body
        line, = [line for line in unpacked(wait_for(ready))["lines"] if line["what"] == "known"]
        return line

    def test_a_part_of_a_run_is_seen_in_finer_bins_and_each_is_what_was_held(self):
        second, us = 10 ** 9, 1000
        bursts = [(5 * second, 100, 100 * us), (5 * second + 1000 * us, 50, 100 * us), (5 * second + 2000 * us, 70, 3 * us)]
        steps = [(0, 10 * MIB, 1 << 32)]
        for at, size, span in bursts:
            steps += [(at, size * MIB, 2 << 32), (at + span, 0, 2 << 32)]
        steps.append((10 * second, 0, 1 << 32))
        pack = runs.course(ANALYZE, self.folder, 77, steps)
        self.assertEqual(self.server.put(pack)[0], 201)
        wait_for(lambda: self.server.get("/packs/" + name_of(pack))[0] == 302)
        run = 1
        whole, part = self.known_line(run), self.known_line(run, **{"from": 4999 * second // 1000, "to": 5003 * second // 1000})
        self.assertGreater(whole["width"], 4000 * us)  # all three are in one bin, or two
        self.assertLess(part["width"], 10 * us)
        self.assertLessEqual(part["start"], 4999 * second // 1000)
        self.assertGreaterEqual(part["start"] + len(part["max"]) * part["width"], 5003 * second // 1000)
        for i, (least, most) in enumerate(zip(part["min"], part["max"])):
            begin, end = part["start"] + i * part["width"], part["start"] + (i + 1) * part["width"]
            inside = [size for at, size, span in bursts if at < end and at + span >= begin]
            all_of_it = any(at < begin and at + span >= end for at, size, span in bursts)
            self.assertEqual(most, (10 + max(inside, default=0)) * MIB, (i, begin, end))
            self.assertEqual(least, (10 + (inside[0] if all_of_it else 0)) * MIB, (i, begin, end))
        for wrong in "from=7&to=7", "from=-1&to=x", "from=1&to=-2", "from=x&to=9", "to=x", "from=7", "from=&to=":
            self.assertEqual(self.server.get(f"/api/v1/runs/{run}/page?{wrong}")[0], 400, wrong)
        before = self.known_line(run, **{"from": 3 * second, "to": 3 * second + 1000})
        self.assertEqual({*before["min"], *before["max"]}, {10 * MIB})

    def test_where_no_child_can_be_started_all_is_done_once_one_can(self):
        self.server.kill()
        programs = os.path.join(self.folder, "bin")
        os.mkdir(programs)
        for name in "stormlog-server", "stormlog-index":
            shutil.copy(os.path.join(os.path.dirname(PROGRAM), name), programs)
        child = os.path.join(programs, "stormlog-index")
        self.server = Server(os.path.join(programs, "stormlog-server"), os.path.join(self.folder, "other")).start()
        packs = [runs.record(ANALYZE, tempfile.mkdtemp(dir=self.folder), n, [5], second=n) for n in (1, 2)]

        def state(n):
            return self.server.get("/packs/" + name_of(packs[n]))[0]
        self.assertEqual(self.server.put(packs[0])[0], 201)
        wait_for(lambda: state(0) == 302)
        os.rename(child, child + ".away")
        self.assertEqual(self.server.get("/api/v1/runs/1/page?from=1&to=2")[0], 202)
        wait_for(lambda: child in self.server.said() or "could not be computed" in self.server.said())
        self.assertEqual(self.server.put(packs[1])[0], 201)
        wait_for(lambda: not os.path.exists(os.path.join(self.server.store, "work", "now")))
        self.assertEqual(state(1), 202, self.server.said())
        os.rename(child + ".away", child)
        wait_for(lambda: state(1) == 302)
        self.known_line(1, **{"from": 1, "to": 2})


unittest.main(argv=sys.argv[:1], verbosity=2)
