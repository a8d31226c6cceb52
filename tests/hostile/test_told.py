#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_told.py PROGRAM...: a program whose answer does not arrive does not end with 0, and keeps nothing that it could not tell."""
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = {os.path.basename(path): os.path.abspath(path) for path in sys.argv[1:]}
FAILED = {"stormlog-run": 125}  # its other statuses are the command's


def close():
    os.close(1)


class Told(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stormlog-told-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def ask(self, name, *arguments, **how):
        if name not in PROGRAMS:
            self.skipTest("%s is not built" % name)
        return subprocess.run([PROGRAMS[name], *arguments], stderr=subprocess.PIPE, text=True, timeout=60, cwd=self.folder, **how)

    def untold(self, name, *arguments):
        """The same on a full disk, without a standard output, and into a pipe that nobody reads."""
        status = FAILED.get(name, 4)
        with open("/dev/full", "w") as full:
            done = self.ask(name, *arguments, stdout=full)
        self.assertEqual(done.returncode, status, (name, arguments, done.stderr))
        self.assertIn("%s: standard output: not all could be written" % name, done.stderr)
        done = self.ask(name, *arguments, preexec_fn=close)
        self.assertEqual(done.returncode, status, (name, arguments, done.stderr))
        self.assertIn("not all could be written", done.stderr)
        read, write = os.pipe()
        os.close(read)
        done = self.ask(name, *arguments, stdout=write)
        os.close(write)
        self.assertNotEqual(done.returncode, 0, (name, arguments))
        self.assertNotIn("could be written", done.stderr, "who closed it knows")

    def test_help_and_version(self):
        self.assertTrue(PROGRAMS)
        for name in PROGRAMS:
            for option in "--help", "--version":
                with self.subTest(name=name, option=option):
                    self.assertEqual(self.ask(name, option, stdout=subprocess.DEVNULL).returncode, 0)
                    self.untold(name, option)

    def test_metrics(self):
        self.untold("stormlog-exporter", "--once", self.folder)

    def test_the_check_of_a_command(self):
        self.untold("stormlog-run", "--check", "--json", "true")

    def token(self, *arguments):
        return self.ask("stormlog-server", "--store", "s", "token", *arguments, stdout=subprocess.PIPE)

    def test_a_token_that_could_not_be_told_is_none(self):
        self.assertEqual(self.token("add", "told", "--read").returncode, 0)
        self.untold("stormlog-server", "--store", "s", "token", "add", "untold", "--write")
        self.assertEqual(self.token("list").stdout, "told --read\n")
        self.assertRegex(self.token("add", "untold", "--write").stdout, r"\A[0-9a-f]+\n\Z")

    def test_the_list_of_tokens(self):
        self.token("add", "told", "--read")
        self.untold("stormlog-server", "--store", "s", "token", "list")

    def test_a_token_that_cannot_be_kept_is_said_to_be_none(self):
        self.token("add", "told", "--read")
        os.mkdir(os.path.join(self.folder, "s", "tokens.new"))
        done = self.token("add", "more", "--read")
        self.assertEqual(done.returncode, 4)
        self.assertIn("this token is not valid", done.stderr)
        self.assertEqual(self.token("list").stdout, "told --read\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
