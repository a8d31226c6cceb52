# SPDX-License-Identifier: MIT
"""The programs of the corpus: their manifests, their marked lines, and one recorded run of each.

A manifest is the programs.json of a folder (seen, unseen, later): {name: program}. Members of a program:
    run       the program and its arguments: x.py is run by python3, anything else is an executable of the build
    class     a class of rules.py, or "healthy"
    culprit   files in which lines marked CULPRIT are the place; the program's own source if absent
    noun      a pattern that must stand beside the class words (what is leaked, where it is no device block)
    ranks     processes to start as a job launcher does, each with RANK, LOCAL_RANK, WORLD_SIZE
    options   of stormlog-run    env   settings of the simulator    exit   exit status, 0 if absent
    truth     claims about the simulator's journal, see truth.py
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import e2e

HALVES = ("seen", "unseen", "later")
BUILT = os.path.join(e2e.BUILD, "tests", "diagnosis")


class Program:
    def __init__(self, half, name, about):
        self.half, self.name, self.folder = half, name, os.path.join(HERE, half)
        self.cls = about["class"]
        self.run = about["run"]
        self.noun = about.get("noun")
        self.ranks = about.get("ranks", 1)
        self.options = about.get("options", [])
        self.env = about.get("env", {})
        self.exit = about.get("exit", 0)
        self.truth = about["truth"]
        self.sources = about.get("culprit", [self.run[0]])

    @property
    def healthy(self):
        return self.cls == "healthy"

    def places(self):
        """The acceptable places as (base name of the file, line)."""
        found = []
        for source in self.sources:
            with open(os.path.join(self.folder, source)) as file:
                found += [(os.path.basename(source), number) for number, line in enumerate(file, 1) if re.search(r"\bCULPRIT\b", line)]
        return found

    def argv(self):
        if self.run[0].endswith(".py"):
            own = ["python3", os.path.join(self.folder, self.run[0])]
        else:
            own = [os.path.join(BUILT, self.half, self.run[0])]
        own += [str(argument) for argument in self.run[1:]]
        return ["python3", os.path.join(HERE, "ranks.py"), str(self.ranks), *own] if self.ranks > 1 else own

    def record(self):
        """An e2e.Recording: traces/, journal/ and the exit status."""
        return e2e.Recording(*self.argv(), code=self.exit, timeout=120, launcher=["--quiet", *self.options],
                             CORPUS_LIB=os.path.join(BUILT, self.half), PYTHONDONTWRITEBYTECODE="1", **self.env)


def load(half):
    with open(os.path.join(HERE, half, "programs.json")) as file:
        return [Program(half, name, about) for name, about in json.load(file).items()]
