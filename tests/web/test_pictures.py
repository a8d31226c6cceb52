#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_pictures.py MAKE_TRACE STORMLOG_ANALYZE PICTURES: timeline.png, .svg, ranks.png, and the terminal's drawing."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

MAKE_TRACE, ANALYZE, PICTURES = sys.argv[1:4]


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.traces = {}
        for kind, *more in (("training", "4", "30"), ("spike", "200000"), ("hostile",)):
            cls.traces[kind] = pathlib.Path(cls.folder.name, kind)
            cls.traces[kind].mkdir()
            subprocess.run([MAKE_TRACE, kind, cls.traces[kind], *more], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def timeline(self, kind, *options, locale="C.UTF-8", columns="80"):
        env = {**os.environ, "LC_ALL": locale, "COLUMNS": columns}
        return subprocess.run([ANALYZE, "timeline", *options, self.traces[kind]], env=env, check=True, stdout=subprocess.PIPE).stdout

    def test_no_line_is_wider_than_the_terminal(self):
        for columns in ("40", "80", "133"):
            for line in self.timeline("training", columns=columns).decode().splitlines():
                self.assertLessEqual(len(line), int(columns), line)

    def test_where_the_locale_is_plain_every_character_is_ascii(self):
        self.timeline("training", locale="C").decode("ascii")
        with self.assertRaises(UnicodeDecodeError):
            self.timeline("training").decode("ascii")

    def test_no_colour_when_it_is_not_a_terminal(self):
        self.assertNotIn(b"\x1b", self.timeline("training"))

    def test_a_single_event_is_drawn_to_its_height(self):
        lines = self.timeline("spike").decode().splitlines()
        self.assertIn("peak 2.25 GiB", lines[0])
        self.assertEqual(len(lines[1][11:].strip()), 1, "the highest line holds the spike and nothing else")
        self.assertAlmostEqual((len(lines[1].rstrip()) - 12) / 69, 0.37, delta=0.03)

    def test_an_unknown_rank_is_said(self):
        done = subprocess.run([ANALYZE, "timeline", "--rank", "77", self.traces["training"]], capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"no rank 77", done.stderr)

    def test_times_are_since_the_run_began_and_the_shades_are_named(self):
        lines = self.timeline("training", "--rank", "3").decode().splitlines()
        (oom,) = [line.split(" at ")[1] for line in lines if "out of memory at" in line]
        report = subprocess.run([ANALYZE, self.traces["training"], "-o", pathlib.Path(self.folder.name, "analysis")], stdout=subprocess.PIPE, check=True)
        self.assertRegex(report.stdout.decode(), r"OUT OF MEMORY +rank 3 .*at %s" % oom)
        self.assertIn("on average", lines[-2])

    @unittest.skipUnless(PICTURES == "1", "built without cairo")
    def test_pictures_are_pictures_whatever_the_names(self):
        for kind, folder in self.traces.items():
            subprocess.run([ANALYZE, "-q", folder], check=True)
            for name in ("timeline.png", "ranks.png"):
                data = (folder / "analysis" / name).read_bytes()
                self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n", f"{kind} {name}")
                self.assertEqual(int.from_bytes(data[16:20], "big"), 1200)
                self.assertIn(b"IEND", data[-12:])
            xml.dom.minidom.parse(str(folder / "analysis" / "timeline.svg"))


unittest.main(argv=sys.argv[:1], verbosity=2)
