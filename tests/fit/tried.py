#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Proposals of `fit --changes` really made, over the dry device.  It is no test of the suite: a program takes half a minute.

    tried.py STORMLOG_RUN STORMLOG_ANALYZE PYTHON [--all] [--json FILE] [PROGRAM...]      PROGRAM: a file like those of tried/, or a folder with main.py

A program begins with its limit.  A line that ends with `#~ KIND CODE` is CODE in the variant KIND, `#~ step` marks where a step begins.
The program is recorded as written.  Then its first proposal is made (with --all each that passes its request), and the program runs again under the same limit.
The peak told is compared with the real one to the end of the step that failed.  Prints a line for each; exits 1 where one was told as fitting and failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARK = re.compile(r"  ?#~ (\w+)((?:(?! #~ ).)*)")
STEPS = """import atexit, builtins, json, os, sys
peaks = []
def peak(): return sys.modules["torch"].cuda.max_memory_allocated() if "torch" in sys.modules else 0
builtins._step = lambda: peaks.append(peak())
atexit.register(lambda: json.dump(peaks + [peak()], open(os.environ["TRIED"] + "." + str(os.getpid()), "w")) if peak() else None)
"""


def write(program, kind, folder):
    """The program in this variant; returns the kinds that it has."""
    kinds = set()
    for path in [program, HERE / "tried" / "optimizers.py"] if program.is_file() else sorted(program.glob("*.py")):
        lines = []
        for line in path.read_text().splitlines():
            marks = dict(MARK.findall(line))
            line = line[:line.index("  #~")] if marks else line
            indent, code = re.match(r"( *)(.*)", line).groups()
            code = marks[kind].strip() if kind in marks else code
            lines.append(indent + ("_step(); " if "step" in marks else "") + code)
            kinds |= marks.keys() - {"step"}
        (folder / ("main.py" if path == program else path.name)).write_text("\n".join(lines) + "\n")
    return kinds


def limit_of(program):
    return re.match(r'"""(\w+)  ', (program if program.is_file() else program / "main.py").read_text())[1]


def run(args, program, kind, folder):
    """Whether it ran out of memory, and its peaks: at the beginning of each step, and at the end."""
    if (folder / "result").exists():
        return json.loads((folder / "result").read_text())
    folder.mkdir(exist_ok=True)
    kinds = write(program, kind, folder)
    (folder / "sitecustomize.py").write_text(STEPS)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(folder), "TRIED": str(folder / "peaks"), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    if kind and kind.startswith("settings:"):
        env["PYTORCH_CUDA_ALLOC_CONF"] = kind[9:].replace("=", ":") if "=" in kind else kind[9:] + ":True"
    done = subprocess.run([args.run, "-q", "--dry=h200", "--limit", limit_of(program), "--allow-writes", folder, "-o", folder / "traces", "--", args.python, folder / "main.py"],
                          capture_output=True, text=True, env=env)
    peaks = [json.loads(path.read_text()) for path in folder.glob("peaks.*")]
    out = "OutOfMemoryError" in done.stderr
    if done.returncode and not out:
        print(done.stderr[-1500:], file=sys.stderr)
    result = {"oom": out, "rc": done.returncode, "peaks": max(peaks, key=max, default=[0]), "kinds": sorted(kinds)}
    (folder / "result").write_text(json.dumps(result))
    return result


def judge(args, program, where):
    written = run(args, program, None, where / "as_written")
    if not written["oom"]:
        return [{"program": program.stem, "kind": None, "why": f"did not run out of memory: rc {written['rc']}, {written['peaks'][-1] >> 20} MiB"}]
    said = subprocess.run([args.analyze, "fit", "--changes", "--json", where / "as_written" / "traces"], capture_output=True, text=True)
    recording = json.loads(said.stdout)["recordings"][-1]
    tried, rows, steps = recording["changes"], [], len(written["peaks"]) - 1
    if not tried:
        return [{"program": program.stem, "kind": None, "why": recording["not_tried_because"] or "no change"}]
    for change in tried if args.all else tried[:1]:
        kind = change["kind"]
        row = {"program": program.stem, "limit": limit_of(program), "first": change is tried[0], "kind": kind, "line": change["line"] and change["line"].split("/")[-1],
               "told": change["passes"], "rung": change["rung"], "ran": None, "off": None}
        rows.append(row)
        if args.told or change["passes"] in ("no", "unknown") or (kind not in written["kinds"] and not kind.startswith("settings:")):
            continue
        real = run(args, program, kind, where / kind.replace(":", "_"))
        row["ran"] = not real["oom"] and not real["rc"]
        peak = real["peaks"][min(steps, len(real["peaks"]) - 1)]
        if (row["ran"] or len(real["peaks"]) > steps + 1) and change["passes"] != "this request" and peak and change["peak_allocated_bytes"]:
            row["off"] = change["peak_allocated_bytes"] / peak - 1
    return rows


def text(row):
    if not row["kind"]:
        return f"{row['program']:18} {row['why']}"
    off = f"{row['off'] * 100:+.2f} %" if row["off"] is not None else ""
    ran = {None: "not tried", True: "runs through", False: "fails"}[row["ran"]]
    return f"{row['program']:18} {row['limit']:6} {'*' if row['first'] else ' '} {row['kind']:36} {row['line'] or '':22} {row['told']:14} {row['rung']:9} {ran:12} {off}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=os.path.abspath)
    parser.add_argument("analyze")
    parser.add_argument("python", type=os.path.abspath)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--told", action="store_true", help="make no proposal")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for sources, traces and results, of which those that are there are not made again")
    parser.add_argument("programs", nargs="*", type=Path)
    args = parser.parse_intermixed_args()
    rows = []
    for program in args.programs or sorted(path for path in (HERE / "tried").glob("*.py") if path.name != "optimizers.py"):
        with tempfile.TemporaryDirectory() as folder:
            where = (args.keep or Path(folder)).resolve() / program.stem
            where.mkdir(parents=True, exist_ok=True)
            rows += judge(args, program.resolve(), where)
        for row in [row for row in rows if row["program"] == program.stem]:
            print(text(row), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return any(row["kind"] and row["told"] == "the whole step" and row["ran"] is False for row in rows)


if __name__ == "__main__":
    sys.exit(main())
