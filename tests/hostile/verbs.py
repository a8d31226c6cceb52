# SPDX-License-Identifier: MIT
"""Every verb of the analyzer on a folder of traces: what must hold of all of them takes its rows from here, and a verb without a row fails."""
import subprocess

UNLISTED = {"flame", "dump", "track", "history", "oom", "ranks"}  # words that `help all` does not list
# Words, and the exit statuses where the reading itself went well.  {a}, {b}: folders of traces; {sink}: one of telemetry; what is made goes to the working folder.
ROWS = [(line.split(), statuses) for line, *statuses in (
    ("report --json {a}", 0), ("report -o made {a}", 0), ("tree {a}", 0), ("table {a}", 0), ("table --entries * {a}", 0), ("flame {a}", 0),
    ("diff {a} {b} --html d.html", 0), ("check --max-peak 1G --junit j.xml --metrics m {a}", 0), ("dump {a}", 0), ("fit {a}", 0),
    ("export perfetto -o x.perfetto {a}", 0), ("export pprof -o x.pprof {a}", 0), ("export csv -o x.csv {a}", 0), ("export sqlite -o x.sqlite {a}", 0),
    ("monitor --duration 0.1 -o rows {a}", 0), ("watch --duration 0.1 --rule live>1MiB=>message {a}", 0, 1), ("track --duration 0.1 -o sink {a}", 0),
    ("diagnose --duration 0 -o bundle {a}", 0, 1, 2), ("collect -o c.stormlog {a}", 0), ("pack -o x.stormlog {a}", 0), ("pack --redact -o y.stormlog {a}", 0),
    ("push --to nowhere {a}", 2), ("convert {sink}/segment-000001.jsonl", 0), ("validate {sink}", 0), ("merge -o merged {a}", 0, 3), ("summarize -o x.summary {a}", 0),
    ("explain run.ok {a}", 0), ("runs -q --catalogue c1.sqlite {a}", 0), ("history -q --catalogue c2.sqlite peak {a}", 0), ("oom {a}", 0), ("ranks {a}", 0))]


def told(analyze):
    """The verbs that the program itself lists; `info` is about the machine and reads no file."""
    lines = subprocess.run([analyze, "help", "all"], capture_output=True, text=True, check=True).stdout.split("\n\n")[1].splitlines()
    return {line.split()[0] for line in lines} - {"info"}


def missing(analyze):
    """Verbs without a row, and rows without a verb."""
    return told(analyze) ^ UNLISTED ^ {words[0] for words, _ in ROWS}


def rows(**places):
    return [([word.format(**places) for word in words], statuses) for words, statuses in ROWS]
