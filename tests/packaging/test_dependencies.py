#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""scripts/install-deps as the superuser, with sudo and without, on a system whose packages the test chooses."""
import os
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "install-deps")
ALL_BUT = """case $4 in
%s) ;;
*) echo install ok installed ;;
esac"""


class Dependencies(unittest.TestCase):
    def setUp(self):
        self.bin = tempfile.mkdtemp(prefix="stormlog-deps-")
        self.addCleanup(shutil.rmtree, self.bin)
        os.symlink("/bin/sh", os.path.join(self.bin, "sh"))
        self.program("env", 'exec "$2" "$3" "$4" "$5" "$6" "$7" "$8" "$9"')
        self.program("apt-get", 'echo "$*" >>%s/installed' % self.bin)

    def program(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def run_as(self, user, missing, *options):
        """Returns the exit status, what was said, and what apt-get was asked for."""
        self.program("id", "echo %d" % user)
        self.program("dpkg-query", ALL_BUT % missing)
        done = subprocess.run(["/bin/sh", SCRIPT, *options], env={"PATH": self.bin}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        asked = ""
        if os.path.exists(os.path.join(self.bin, "installed")):
            with open(os.path.join(self.bin, "installed")) as file:
                asked = file.read()
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr, asked

    def test_where_all_is_there_nothing_is_said(self):
        for user in (0, 1000):
            self.assertEqual(self.run_as(user, "none", "--tests"), (0, "", ""))

    def test_the_superuser_gets_what_is_missing(self):
        status, _, asked = self.run_as(0, "meson|libcairo2-dev")
        self.assertEqual(status, 0)
        self.assertRegex(asked, r"install .*meson libcairo2-dev")

    def test_without_sudo_the_sentence_says_what_to_install(self):
        said = "install-deps: not installed, and you are not root: run as root: apt-get install meson libcmocka-dev\n"
        self.assertEqual(self.run_as(1000, "meson|libcmocka-dev", "--tests"), (1, said, ""))
        # One that may not be used is none.
        self.program("sudo", "echo sudo: a password is required >&2; exit 1")
        self.assertEqual(self.run_as(1000, "meson|libcmocka-dev", "--tests"), (1, said, ""))

    def test_without_sudo_parts_that_can_be_left_out_are(self):
        said = ("install-deps: not installed, and you are not root: run as root: apt-get install libcairo2-dev\n"
                "install-deps: going on without; the parts that need them are not built\n")
        self.assertEqual(self.run_as(1000, "libcairo2-dev"), (0, said, ""))

    def test_with_sudo_what_is_missing_is_installed(self):
        self.program("sudo", '[ "$1" = -n ] && shift; exec "$@"')
        self.program("true", "")
        status, _, asked = self.run_as(1000, "meson")
        self.assertEqual(status, 0)
        self.assertRegex(asked, "install .*meson")


if __name__ == "__main__":
    unittest.main()
