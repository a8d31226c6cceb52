#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_endings.py MAKE_TRACE STORMLOG_ANALYZE: a program that only leaks may take long to end."""
import os
import subprocess
import sys
import tempfile
import unittest

MAKE_TRACE, ANALYZE = map(os.path.abspath, sys.argv[1:3])


class Endings(unittest.TestCase):
    def screen(self, end_ms):
        """The screen of a program that registers memory for 2 ms, and ends end_ms later."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([MAKE_TRACE, "ending", folder, str(end_ms)], check=True)
            return subprocess.run([ANALYZE, folder], stdout=subprocess.PIPE, check=True, text=True).stdout

    def test_a_leak_goes_on_to_a_slow_end(self):
        """Nothing is born meanwhile, so the wait says nothing of the leak."""
        for end_ms in 230, 1000:
            said = self.screen(end_ms)
            self.assertRegex(said, r"(?m)^LEAK +map\.py:10 ")
            self.assertIn("all 180 registered ranges", said)


unittest.main(argv=sys.argv[:1], verbosity=2)
