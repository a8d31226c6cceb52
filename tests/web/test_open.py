#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_open.py MAKE_TRACE STORMLOG_ANALYZE: report --open hands report.html to the reader's browser, or says where it lies."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

MAKE_TRACE, ANALYZE = map(os.path.abspath, sys.argv[1:3])


class Open(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        (cls.root / "a run").mkdir()
        subprocess.run([MAKE_TRACE, "training", cls.root / "a run", "1", "4"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def report(self, path, browser=None, **environment):
        """The URL that the browser got and the output; `browser` is the browser's name on PATH."""
        folder, seen = pathlib.Path(tempfile.mkdtemp(dir=self.root)), self.root / "seen"
        seen.unlink(missing_ok=True)
        if browser:
            (folder / browser).write_text('#!/bin/sh\nprintf "%s|" "$@" >"$SEEN.new" && mv "$SEEN.new" "$SEEN"\n')
            (folder / browser).chmod(0o755)
        keep = {name: value for name, value in os.environ.items() if name not in ("BROWSER", "PATH")}
        done = subprocess.run([ANALYZE, "report", "--open", "-o", "analysis", path], cwd=self.root, capture_output=True, text=True,
                              env={**keep, "PATH": f"{folder}:/usr/bin:/bin" if browser else str(folder), "SEEN": str(seen), **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        until = time.monotonic() + 120
        while browser and not seen.exists() and time.monotonic() < until:
            time.sleep(0.02)
        return seen.read_text().split("|")[:-1] if seen.exists() else None, done.stderr

    def page(self):
        return [str((self.root / "analysis/report.html").resolve())]

    def test_xdg_open_gets_the_whole_path_of_the_page(self):
        self.assertEqual(self.report("a run", "xdg-open"), (self.page(), ""))

    def test_browser_comes_first(self):
        self.assertEqual(self.report("a run", "my-browser", BROWSER="my-browser"), (self.page(), ""))

    def test_without_a_browser_the_path_is_said(self):
        given, said = self.report("a run")
        self.assertIsNone(given)
        self.assertEqual(said, "stormlog-analyze: no xdg-open here: open analysis/report.html in a browser\n")

    def test_the_page_of_telemetry_opens_too(self):
        self.report("a run", "xdg-open")
        sink, = (self.root / "analysis/telemetry").iterdir()
        sink.rename(self.root / "sink")
        self.assertEqual(self.report("sink", "xdg-open"), (self.page(), ""))


unittest.main(argv=sys.argv[:1], verbosity=2)
