#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The YAML of doc/cases/ parses and says what a user copies: manifests, a workflow.  Commands of the pages run on the recordings that they
name, and print what the page shows.  Each page has at most 300 words of prose."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "doc/cases"
ANALYZE = Path(os.environ.get("STORMLOG_BUILD", ROOT / "build")) / "analyzer/stormlog-analyze"


def documents(page):
    return [one for text in re.findall(r"```yaml\n(.*?)```", (CASES / page).read_text(), re.S) for one in yaml.safe_load_all(text)]


def on_recording(page, recording):
    """The outputs of all commands of the page that read traces/, here a copy of the recording, and the block that shows one of them."""
    text = (CASES / page).read_text()
    with tempfile.TemporaryDirectory() as folder:
        for name in "traces", "before", "after":
            shutil.copytree(ROOT / "tests/real-gpu/cases" / recording, Path(folder, name))
        said = {command: subprocess.run([ANALYZE, *command.split()], cwd=folder, capture_output=True, text=True)
                for command in re.findall(r"stormlog-analyze ([^`\n]*(?:traces|after)/)", text)}
    return said, re.search(r"```\n((?:OUT OF MEMORY|PEAK) .*?)```", text, re.S)[1]


class Cases(unittest.TestCase):
    def test_commands_on_a_recording_print_what_the_page_shows(self):
        for page, recording, commands in ("out-of-memory.md", "depth_validation/shared-device", 4), ("server-start.md", "graphed_ranker/alone", 2):
            said, block = on_recording(page, recording)
            self.assertEqual({command: done.stderr for command, done in said.items() if done.returncode}, {})
            self.assertEqual(len(said), commands)
            report = " ".join(said["traces/"].stdout.split())
            for piece in re.split(r" {2,}|: |\n", block.strip()):  # blocks are shortened
                self.assertIn(" ".join(piece.split()), report, page)

    def test_the_launcher_has_each_option_that_a_page_gives_it(self):
        launcher = ANALYZE.parents[1] / "agent/stormlog-run"
        known = subprocess.run([launcher, "--help"], capture_output=True, text=True, check=True).stdout
        given = {option for page in CASES.glob("*.md") for command in re.findall(r"stormlog-run (.*?)(?: -- |`|$)", page.read_text(), re.M)
                 for option in re.findall(r"--[a-z-]+", command)}
        self.assertIn("--limit", given)
        self.assertEqual({option for option in given if not re.search(re.escape(option) + r"\b", known)}, set())

    def test_the_pod_of_the_manifest_writes_its_traces_into_the_claimed_volume(self):
        job, claim = documents("kubernetes.md")
        pod = job["spec"]["template"]["spec"]
        container, = pod["containers"]
        self.assertEqual((job["kind"], claim["kind"]), ("Job", "PersistentVolumeClaim"))
        self.assertEqual(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], claim["metadata"]["name"])
        mount, = container["volumeMounts"]
        self.assertEqual((mount["name"], container["command"][:3]), (pod["volumes"][0]["name"], ["stormlog-run", "-o", mount["mountPath"]]))

    def test_the_workflow_installs_a_release_and_gates_a_dry_run(self):
        workflow, = documents("github-actions.md")
        job = workflow["jobs"]["memory"]
        lines = [step["run"] for step in job["steps"] if "run" in step]
        self.assertRegex(job["env"]["RELEASE"], r"^https://.*/$")
        self.assertEqual(lines[0], "pip install torch 'stormlog-native[dry]' --find-links \"$RELEASE\"")
        self.assertRegex(lines[1], r"^stormlog-run --dry=\w+ --gate ")

    def test_each_page_is_short(self):
        self.assertEqual({page.name for page in CASES.glob("*.md") if len(page.read_text().split()) > 300}, set())


if __name__ == "__main__":
    unittest.main()
