#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_pictures.py MAKE_TRACE STORMLOG_ANALYZE PICTURES: timeline.png, .svg and ranks.png."""
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

    @unittest.skipUnless(PICTURES == "1", "built without cairo")
    def test_pictures_are_pictures_whatever_the_names(self):
        for kind, folder in self.traces.items():
            done = subprocess.run([ANALYZE, "-q", folder], check=True, stderr=subprocess.PIPE, env={**os.environ, "FONTCONFIG_FILE": "/none"})
            self.assertNotIn(b"Fontconfig", done.stderr, "on a machine without a configuration of fonts")
            for name in ("timeline.png", "ranks.png"):
                data = (folder / "analysis" / name).read_bytes()
                self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n", f"{kind} {name}")
                self.assertEqual(int.from_bytes(data[16:20], "big"), 1200)
                self.assertIn(b"IEND", data[-12:])
            xml.dom.minidom.parse(str(folder / "analysis" / "timeline.svg"))


unittest.main(argv=sys.argv[:1], verbosity=2)
