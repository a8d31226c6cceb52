#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the screen, report.json and check say of programs of several phases, by their recordings in traces/.

    test_phases.py ANALYZE [NAME...]            exits 1 where an answer of score.json was right and is wrong; with names, prints the screens
    test_phases.py --update ANALYZE             writes what is right now to score.json, unless something is worse
    test_phases.py --traces FOLDER ANALYZE      judges what `record --into FOLDER --seed N` made, without a score

An answer is LEAK, HELD or silent.  LEAK and HELD name a line that the program marks with CULPRIT, and a line that is not marked gets neither.
check answers LEAK where --max-leak fails, and HELD where only --strict fails, as it does for what is unknown.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCORE = HERE / "score.json"
PLACES = ("screen", "report", "check")
# A block of the screen that says that memory stays; GROWS and GROWTH are alarms of leaks too.
OPENS = re.compile(r"(?:also +)?(LEAK|HELD|GROWS|GROWTH)\b")


class Program:
    def __init__(self, name, about):
        self.name, self.expect, self.dry = name, about["expect"], about["on"] == "dry"
        lines = (HERE / "programs" / (name + ".py")).read_text().splitlines()
        self.lines = [number for number, line in enumerate(lines, 1) if line.endswith("# CULPRIT")]

    def answer(self, said):
        """said: pairs of a word and the text or the line that has the place.  The answer."""
        words = {"LEAK" if word.startswith(("LEAK", "GROW")) else word for word, _ in said}
        for word, line in said:
            if line not in self.lines:
                return "%s at line %s" % (word, line)
        return "LEAK" if "LEAK" in words else words.pop() if words else "silent"


def blocks(screen):
    """Blocks of the screen: a line that is not indented, and the lines below it that are, or that are empty."""
    return re.findall(r"^\S.*\n?(?:^(?:[ \t].*)?\n)*", screen, re.M)


def on_screen(program, screen):
    said = []
    for block in blocks(screen):
        for at in OPENS.finditer(block) if block.startswith(("LEAK", "HELD", "GROW", "also")) else ():
            named = re.search(r"\b%s\.py:(\d+)" % program.name, block[at.start():])
            said.append((at[1], int(named[1]) if named else None))
    return program.answer(said)


def in_report(program, report):
    said = []
    for finding in report["findings"]:
        word = "HELD" if finding["kind"] == "memory.held" else "LEAK" if finding["class"] == "leak" or finding["id"] == "label.growing" else None
        if word:
            said.append((word, (finding["place"] or {}).get("line")))
    return program.answer(said)


def in_check(program, analyze, traces):
    """A dry run of a program that reads values is unknown for that reason, so the rule `dry` is left out."""
    done = subprocess.run([analyze, "check", "--strict", "--json", "--max-leak", "1M", "."], capture_output=True, text=True, cwd=traces)
    said = [("LEAK" if outcome["rule"] == "max-leak" and outcome["level"] != "unknown" else "HELD", outcome["line"])
            for outcome in json.loads(done.stdout)["outcomes"] if outcome["fails"] and outcome["rule"] != "dry"]
    return program.answer([row for row in said if row[0] == "LEAK"] or said)


def judge(program, analyze, traces, show):
    with tempfile.TemporaryDirectory(prefix="stormlog-phases-") as folder:
        shutil.copy(traces / program.name / "rank-00000.msgpack.zst", folder)
        screen = subprocess.run([analyze, folder], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"}).stdout
        report = json.loads(subprocess.run([analyze, "--json", folder], capture_output=True, check=True).stdout)
        answers = dict(screen=on_screen(program, screen), report=in_report(program, report), check=in_check(program, analyze, folder))
    if show:
        print(screen)
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--traces", type=Path, default=HERE / "traces")
    parser.add_argument("analyze", type=os.path.abspath)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    scored = args.traces == HERE / "traces"
    about = json.loads((HERE / "programs.json").read_text())
    before = json.loads(SCORE.read_text()) if scored else {}
    score, worse = {}, []
    for name in args.names or about:
        program = Program(name, about[name])
        answers = judge(program, args.analyze, args.traces, bool(args.names))
        score[name] = [place for place in PLACES if answers[place] == program.expect]
        worse += ["%s: %s was right and is %s, not %s" % (name, place, answers[place], program.expect)
                  for place in before.get(name, []) if place not in score[name]]
        print("%-28s %-7s %s" % (name, program.expect, "  ".join("%s %s" % (place, answers[place] if place not in score[name] else "right") for place in PLACES)))
    print("%d of %d programs are right in all three" % (sum(len(right) == len(PLACES) for right in score.values()), len(score)))
    if worse:
        sys.exit("\n".join(worse))
    if args.update:
        rows = {name: right for name, right in {**before, **score}.items() if name in about}
        SCORE.write_text("{\n%s\n}\n" % ",\n".join(" %s: %s" % (json.dumps(name), json.dumps(right)) for name, right in rows.items()))
    elif scored and not args.names and set(before) != set(about):
        sys.exit("score.json has other programs than programs.json")


if __name__ == "__main__":
    main()
