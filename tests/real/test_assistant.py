#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An assistant that asks the tools of `python -m stormlog_native mcp` about recordings of a real card finds the line to change.

The client is the SDK's own, in the environment of scripts/torch-venv.  The lines are those that the programs of tests/real-gpu mark.  The
binaries of the three C++ programs are gone, so their frames are offsets: the file words of a case says which line each offset is."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import real
import torch_venv

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/real-gpu/cases"
TOOLS = ["list_runs", "answer", "read_log", "who_held", "leaks", "out_of_memory", "hidden", "compare", "would_it_fit", "entries"]
FIRST_TWO = 14  # cases
python = torch_venv.python("mcp")


def ask(folder, *questions):
    """[(failed, text)], one for each question; the tools' names come first."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "STORMLOG_BIN": os.path.dirname(sys.argv[1])}
    done = subprocess.run([python, "-B", os.path.join(real.HERE, "programs", "ask_assistant.py"), folder], capture_output=True, text=True, check=True,
                          input="".join(json.dumps(question) + "\n" for question in questions), env=environment)
    return [json.loads(line) for line in done.stdout.splitlines()]


def marked(case):
    """The file:line of each line that the program marks as the one to change, and the offsets that are these lines."""
    lines = [f"{path.name}:{number}" for path in (CASES / case / "program").iterdir() if path.is_file()
             for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1) if re.search(r"(//|#) (CULPRIT|ALSO)", line)]
    offsets = re.findall(r"^# (program\+0x\w+) is .*?(\w+\.cu:\d+)", (CASES / case / "words").read_text(), re.M)
    return lines + [offset for offset, line in offsets if line in lines]


def told(case, text):
    """Whether the answers name a line to change; of a healthy program, whether they name no trouble."""
    lines = marked(case)
    if not lines:
        return re.search(r"^OK ", text, re.M) is not None and not re.search(r"^(OUT OF MEMORY|LEAK|GROWS|UNEVEN|HOST MEMORY) ", text, re.M)
    return any(re.search(re.escape(line) + r"\b", text) for line in lines)


class Assistant(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-assistant-")
        cls.cases = sorted(path.name for path in CASES.iterdir() if path.is_dir())
        for case in cls.cases:
            run = next(path for path in (CASES / case / "alone", CASES / case / "shared-device") if path.is_dir())
            shutil.copytree(run, os.path.join(cls.folder, case))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_the_line_to_change_is_in_one_of_the_first_two_answers(self):
        first = ask(self.folder, *(["answer", {"run": case}] for case in self.cases))[1:]
        for case, (_, text) in zip(self.cases, first):
            self.assertIn("\nNext: ", text, case)
        second = ask(self.folder, *([re.search(r"\nNext: (\w+)", text)[1], {"run": case}] for case, (_, text) in zip(self.cases, first)))[1:]
        found = [case for case, one, two in zip(self.cases, first, second) if told(case, one[1] + two[1])]
        self.assertGreaterEqual(len(found), FIRST_TWO, sorted(set(self.cases) - set(found)))

    def test_every_tool_answers_in_little_text_and_says_what_to_ask_next(self):
        case = self.cases[0]
        names, *answers = ask(self.folder, ["list_runs", {}], ["answer", {"run": case}], ["who_held", {"run": case}], ["leaks", {"run": case}],
                              ["out_of_memory", {"run": case}], ["hidden", {"run": case}], ["compare", {"before": case, "after": self.cases[1]}],
                              ["would_it_fit", {"run": case, "capacity": "24G"}], ["entries", {"run": case}])
        self.assertEqual(names, TOOLS)
        for (failed, text), name in zip(answers, names):
            self.assertFalse(failed, name)
            self.assertLessEqual(len(text.encode()), 4000, name)
            self.assertIn("\nNext: ", text, name)
        ((_, text),) = ask(self.folder, ["who_held", {"run": case, "by": "holder"}])[1:]  # a recording without --holders
        self.assertIn("Python told of no variable", text)
        with tempfile.TemporaryDirectory() as empty:
            ((_, text),) = ask(empty, ["list_runs", {}])[1:]
            self.assertIn("Next: stormlog-run", text)
            for name, at in ("one.msgpack.zst", 1e9), ("two.msgpack.zst", 1.1e9):  # its own time, and not that of its folder
                Path(empty, name).touch()
                os.utime(Path(empty, name), (at, at))
            ((_, text),) = ask(empty, ["list_runs", {}])[1:]
            self.assertIn("a recording of %s" % time.strftime("%Y-%m-%d %H:%M", time.localtime(1.1e9)), text)
        self.assertEqual({line.split()[0] for line in answers[0][1].splitlines() if "a recording" in line}, set(self.cases))

    def test_a_tool_fails_on_a_file_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "empty.pickle").touch()
            Path(folder, "gone.pickle").symlink_to("nowhere")
            (failed, names), *answers = ask(folder, ["list_runs", {}], *([tool, {"run": "empty.pickle"}] for tool in TOOLS if tool not in ("list_runs", "compare", "read_log")),
                                            ["read_log", {"file": "empty.pickle"}], ["compare", {"before": "empty.pickle", "after": "empty.pickle"}])[1:]
        self.assertFalse(failed)
        self.assertIn("gone.pickle  a pickle", names)
        for failed, text in answers:
            self.assertTrue(failed, text)
            self.assertIn("it is empty", text)

    def test_of_two_runs_in_a_folder_each_has_its_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            for run in "alone", "shared-device":
                shutil.copytree(CASES / "serve_adapters" / run, Path(folder, "both"), dirs_exist_ok=True)
            newest = ask(folder, ["answer", {"run": "both"}])[1][1]
            other = ask(folder, ["answer", {"run": "both" + re.search(r" --run \S+", newest)[0]}])[1][1]
        self.assertIn("pid 2934", newest)
        self.assertIn("pid 6566", other)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
