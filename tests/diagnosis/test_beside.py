#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs of a shared device: neighbours that allocate at random, lazy code, pools with limits.  beside/programs.json has a row for each:
`run`, `truth` in words, `words` that the first 30 lines must (+) or must not (-) contain, `alarms` that open their blocks, no others; and of report.json
`hidden`, whose figure it is and MiB at least and at most, `others`, processes that hold memory of the device, and `rows` of the first table in bytes."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import unittest

import rules
from corpus import HERE, e2e

FOLDER = os.path.join(HERE, "beside")
PATHS = {"jax": os.path.join(e2e.BUILD, "tests", "pools", "jax"), "plugin": os.path.join(e2e.BUILD, "tests", "pools", "pjrt_plugin.so")}


def wrong(name, about):
    """Sentences: what the first screen of a program lacks, or has and should not."""
    argv = [PATHS.get(word) or (os.path.join(FOLDER, word) if word.endswith(".py") and "/" not in word else word) for word in about["run"]]
    if argv[0].endswith(".py"):
        argv.insert(0, sys.executable)
    settings = {"SIM_DEVICES": "1", "SIM_NEIGHBOURS": "12", "SIM_NEIGHBOUR_BYTES": "16M", "PYTHONDONTWRITEBYTECODE": "1", "APPS": e2e.APPS,
                "PYTHONPATH": os.path.join(FOLDER, "site-packages"), **about.get("env", {})}
    with e2e.Recording(*argv, code=about.get("exit", 0), timeout=120, launcher=["--quiet"], **settings) as run:
        text = subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, COLUMNS=str(rules.COLUMNS))).stdout
        with open(os.path.join(run.traces, "analysis", "report.json")) as file:
            report = json.load(file)
    screen = " ".join(" ".join(text.splitlines()[:rules.LINES]).split())
    said = ["%s %s" % ({"+": "lacks", "-": "has"}[word[0]], word[2:]) for word in about["words"]
            if bool(re.search(word[2:], screen)) != (word[0] == "+")]
    alarms = [re.match(rules.WORDS, block)[0] for block in rules.alarms_on_screen(text)]
    if alarms != about["alarms"]:
        said.append("has the alarms %s" % alarms)
    device, table = report["run"]["devices"][0], report["answer"]["verdicts"][0]["table"] or {"rows": [], "total_bytes": 0}
    rows = {row["name"]: row["bytes"] for row in table["rows"]}
    if sum(rows.values()) != table["total_bytes"]:
        said.append("has parts that are not their whole")
    if "hidden" in about:
        figure, least, most = about["hidden"]
        if device["hidden_figure"] != figure or not least << 20 <= device["hidden_peak_bytes"] <= most << 20:
            said.append("has hidden memory of %s by the %s" % (device["hidden_peak_bytes"], device["hidden_figure"]))
    if "others" in about and not about["others"][0] <= device["others"] <= about["others"][1]:
        said.append("has %d other processes" % device["others"])
    said += ["has %s in the row %s" % (rows.get(name), name) for name, size in about.get("rows", {}).items() if rows.get(name) != size]
    return ["%s: %s\n%s" % (name, sentence, text) for sentence in said]


class Beside(unittest.TestCase):
    def test_the_first_screen_has_the_cause_and_no_other(self):
        with open(os.path.join(FOLDER, "programs.json")) as file:
            programs = json.load(file)
        chosen = {name: about for name, about in programs.items() if os.environ.get("ONLY", name) == name}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            said = [sentence for found in pool.map(wrong, chosen, chosen.values()) for sentence in found]
        self.assertFalse(said, "\n".join(said))


if __name__ == "__main__":
    unittest.main()
