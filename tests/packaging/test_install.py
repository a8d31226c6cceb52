#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Installed programs work from their place, and shell completion offers their flags, verbs and formats."""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("STORMLOG_BUILD", os.path.join(HERE, "..", "..", "build"))


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="stormlog-install-")
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.root], check=True,
                       capture_output=True)
        cls.files = {name: os.path.join(folder, name) for folder, _, names in os.walk(cls.root) for name in names}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def test_everything_is_there(self):
        for name in ("stormlog-run", "stormlog-analyze", "libstormlog_preload.so", "stormlog.pc", "stormlog-run.1", "stormlog-analyze.1",
                     "libstormlog_preload.7", "_stormlog", "stormlog.fish", "stormlog_trace.py", "stormlog.h"):
            self.assertIn(name, self.files)

    def test_the_installed_launcher_records_and_the_analyzer_reads(self):
        traces = os.path.join(self.root, "traces")
        env = {name: value for name, value in os.environ.items() if not name.startswith("STORMLOG_")}
        env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "tests", "sim"), SIM_DIR=os.path.join(self.root, "sim"))
        subprocess.run([self.files["stormlog-run"], "-q", "-o", traces, "--", os.path.join(BUILD, "tests", "apps", "oom")], env=env,
                       capture_output=True)
        done = subprocess.run([self.files["stormlog-analyze"], "--json", traces], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_units_are_what_systemd_reads(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        for name in ("stormlog-server", "stormlog-exporter"):
            if name not in self.files:
                continue
            with open(self.files[name + ".service"]) as unit:
                text = unit.read()
            command, = re.findall(r"^ExecStart=(\S+)", text, re.M)
            self.assertEqual(os.path.basename(command), name)
            copy = os.path.join(self.root, name + ".service")
            with open(copy, "w") as unit:  # the program is in the test's own folder
                unit.write(text.replace("ExecStart=" + command, "ExecStart=" + self.files[name]))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_pkg_config_names_the_library(self):
        if not shutil.which("pkg-config"):
            self.skipTest("no pkg-config")
        done = subprocess.run(["pkg-config", "--variable=preload", "stormlog"], capture_output=True, text=True, check=True,
                              env=dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(self.files["stormlog.pc"])))
        self.assertTrue(os.path.exists(self.root + done.stdout.strip()), done.stdout)

    def test_programs_that_look_at_what_runs_have_completion_and_pages(self):
        for name, flag in (("stormlog-top", "--delay"), ("stormlog-exporter", "--listen")):
            if name not in self.files:
                continue
            for shell in ("_" + name, name + ".fish", name + ".1"):
                self.assertIn(shell, self.files)
            path = next(os.path.join(folder, name) for folder, _, names in os.walk(self.root) if "bash-completion" in folder and name in names)
            done = subprocess.run(["bash", "-c", 'source "$0"; COMP_WORDS=(x -); COMP_CWORD=1; "_${1//-/_}"; echo "${COMPREPLY[@]}"', path, name],
                                  capture_output=True, text=True, check=True)
            self.assertIn(flag, done.stdout.split())

    def test_each_file_is_in_one_debian_package(self):
        packages = {path.name: path.read_text().split() for path in pathlib.Path(HERE, "..", "..", "debian").glob("*.install")}
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.root).replace("usr/local/", "usr/")
                path = path.replace("usr/lib64/", "usr/lib/x86_64-linux-gnu/")  # meson chooses lib64 without dpkg-dev; Debian packages are built with dpkg-dev
                if not path.startswith("usr/"):
                    continue
                within = [package for package, patterns in packages.items()
                          if any(fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path, pattern + "/*") for pattern in patterns)]
                self.assertEqual(len(within), 1, "%s: %s" % (path, within))

    def complete(self, command, *words):
        script = next(
            os.path.join(folder, "stormlog-run") for folder, _, names in os.walk(self.root)
            if folder.endswith("bash-completion/completions"))
        function = "_" + command.replace("-", "_")
        return subprocess.run(["bash", "-c", 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); %s; echo "${COMPREPLY[@]}"' % function,
                               script, command, *words], capture_output=True, text=True, check=True, cwd="/").stdout.split()

    def test_bash_completes_flags_values_verbs_and_formats(self):
        self.assertEqual(self.complete("stormlog-run", "--st"), ["--stacks", "--stack-depth"])
        self.assertEqual(self.complete("stormlog-run", "--stacks", "n"), ["none", "native"])
        self.assertIn("check", self.complete("stormlog-analyze", "c"))
        self.assertEqual(self.complete("stormlog-analyze", "check", "--max-p"), ["--max-peak"])
        self.assertEqual(self.complete("stormlog-analyze", "export", "s"), ["speedscope", "sqlite"])
        self.assertEqual(self.complete("stormlog-analyze", "tree", "--mi"), ["--min"])

    def test_the_other_shells_take_their_files(self):
        tried = 0
        for shell, name in (("zsh", "_stormlog"), ("fish", "stormlog.fish")):
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", self.files[name]], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
                tried += 1
        if not tried:
            self.skipTest("neither zsh nor fish")


if __name__ == "__main__":
    unittest.main()
