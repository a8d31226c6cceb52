#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the steps of the GitHub Action and of the GitLab template with bash, as the services do: they must have the gate's exit status.  A
script stands for pip."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml")
    sys.exit(77)

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.abspath(os.environ.get("STORMLOG_BUILD", os.path.join(TOP, "build")))
PROGRAM = os.path.join(BUILD, "tests", "apps", "runtime13")


def action():
    """[(script, its environment)] of each step, for `with: {run: PROGRAM}`."""
    with open(os.path.join(TOP, "action.yml")) as file:
        text = yaml.safe_load(file)
    inputs = dict(text["inputs"], run=PROGRAM, package="our.whl")
    fill = lambda value: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], value)
    return [(step["run"], {name: fill(value) for name, value in step["env"].items()}) for step in text["runs"]["steps"] if "run" in step]


def template():
    with open(os.path.join(TOP, "packaging", "ci", "gitlab.yml")) as file:
        job = yaml.safe_load(file)[".stormlog"]
    return [(line, {"GATE_COMMAND": PROGRAM, "GATE_PACKAGE": "our.whl"}) for line in job["before_script"] + job["script"]]


class Services(unittest.TestCase):
    def run_steps(self, steps, limits):
        folder = tempfile.mkdtemp(prefix="stormlog-ci-")
        self.addCleanup(shutil.rmtree, folder)
        os.mkdir(os.path.join(folder, "bin"))
        for name, place in (("stormlog-run", "agent"), ("stormlog-analyze", "analyzer")):
            os.symlink(os.path.join(BUILD, place, name), os.path.join(folder, "bin", name))
        with open(os.path.join(folder, "bin", "python"), "w") as file:
            file.write('#!/bin/sh\necho "$*" >>asked\n')
        os.chmod(file.name, 0o755)
        with open(os.path.join(folder, ".stormlog.ini"), "w") as file:
            file.write("[check]\n" + limits)
        env = {name: value for name, value in os.environ.items() if not name.startswith("STORMLOG_")}
        env.update(PATH=os.path.join(folder, "bin") + os.pathsep + env["PATH"], LD_LIBRARY_PATH=os.path.join(BUILD, "tests", "sim"),
                   SIM_DIR=os.path.join(folder, "sim"))
        done = [subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], env=dict(env, **more), cwd=folder, capture_output=True, text=True)
                for script, more in steps]
        self.assertNotIn("no setting", "".join(step.stderr for step in done))
        with open(os.path.join(folder, "asked")) as file:
            self.assertEqual(file.read(), "-m pip install our.whl\n")
        self.assertTrue(os.path.exists(os.path.join(folder, "stormlog-traces", "analysis", "report.html")))
        return [step.returncode for step in done]

    def test_they_install_record_and_exit_as_the_gate_does(self):
        for steps in (action(), template()):
            with self.subTest(steps[-1][0]):
                self.assertEqual(self.run_steps(steps, "max-peak = 20GiB\n"), [0, 0])
                self.assertEqual(self.run_steps(steps, "max-peak = 1KiB\n"), [0, 1])


if __name__ == "__main__":
    unittest.main()
