#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The YAML of doc/cases/ parses and says what a user copies: manifests, a workflow.  Each page has at most 300 words of prose."""
import os
import re
import subprocess
import sys
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


class Cases(unittest.TestCase):
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
