#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each command of the first pages runs as it is printed, in a fresh folder, with the wheel of this build installed.  rows.py gives it small inputs.
The output has what the page shows: its figures too where the input is the page's, else its words.

    STORMLOG_BUILD=build tests/first-contact/test_pages.py [--mend]     --mend writes the output into a page that differs, cut as its screen was"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]
import pages  # noqa: E402
import torch_venv  # noqa: E402
from rows import ROWS  # noqa: E402

BUILD = Path(os.environ["STORMLOG_BUILD"])
TORCH = torch_venv.python("torch", "mcp")
MEND = "--mend" in sys.argv and sys.argv.remove("--mend") is None
PAGES = ["README.md", *sorted(f"doc/cases/{path.name}" for path in (ROOT / "doc/cases").glob("*.md")), "doc/dry-run.md", "doc/snapshot.md", "doc/assistant.md"]
# What differs from run to run, and what is the program's.
RUN = [(r"[▁-█]+", ""), (r"\bpid \d+", "PID"), (r"\bprocess\s+\d+", "PROCESS"), (r"\bon [\w-]+(?=  |$)", "HOST"), (r"\b\d[\d ]*(\.\d+)? m?s\b", "TIME")]
PROGRAM = [(r"[\w./<>-]+\.(py|c|cc|cu):\d+( [\w.<>]+)?", "LINE"), (r"\b\d[\d.,]*(\s([KMGT]i)?B\b|%)?", "N"), (r"N(\s+(to|of)\s+N)+", "N")]


def missing(shown, said, exact):
    """Pieces of the screen that the output lacks.  Pages shorten screens, and terminals break lines elsewhere."""
    for pattern, name in RUN if exact else RUN + PROGRAM:
        shown, said = (re.sub(pattern, name, text, flags=re.M) for text in (shown, said))
    said = " ".join(said.split())
    pieces = {" ".join(piece.split()) for piece in re.split(r" {2,}|: |\n|, |^\.\.\.$", shown, flags=re.M)}
    if not exact:  # names of functions and of layers are the program's
        pieces = {piece for piece in pieces if re.search(r"[a-z]{2} [a-z]|[A-Z]{3}", re.sub(r"\b(LINE|PID|PROCESS|HOST|TIME|N)\b", "", piece))}
    return sorted(piece for piece in pieces if piece.strip("., ") not in said)


def mend(page, shown, said):
    was, now = shown.rstrip().splitlines(), said.rstrip().splitlines()
    first = next((i for i, line in enumerate(now) if line.split()[:1] == was[0].split()[:1]), 0)
    now = now[first:first + len(was) - (was[-1] == "...")]
    while not now[-1]:
        now.pop()
    (ROOT / page).write_text((ROOT / page).read_text().replace(shown, "\n".join(now + was[-1:] * (was[-1] == "...")) + "\n"))


class Place:
    """A virtual environment with the wheel, beside the packages of scripts/torch-venv; and a fresh folder for each page."""

    def __init__(self, path):
        self.place, self.wheels = Path(path), Path(path, "wheels")
        subprocess.run([ROOT / "scripts/wheel", BUILD, self.wheels], check=True, stdout=subprocess.DEVNULL)
        venv = self.place / "venv"
        subprocess.run([TORCH, "-m", "venv", venv], check=True)
        self.python = venv / "bin/python"
        said = subprocess.run([TORCH, "-c", "import json, sysconfig, importlib.metadata as m; print(json.dumps([sysconfig.get_paths()['purelib'], [d.name.replace('-', '_') for d in m.distributions()], m.requires('torch')]))"],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
        packages, had, wanted = json.loads(said)
        site, = venv.glob("lib/python*/site-packages")
        (site / "torch.pth").write_text(packages + "\n")
        for requirement in wanted:  # pip finds what PyTorch wants of NVIDIA's, which the dry run stands in for
            name, version = re.match(r"([\w.-]+).*?(?:[=>]=([\w.]+)|$)", requirement).groups()
            if version and name.replace("-", "_") not in had and "extra" not in requirement:
                info = site / f"{name.replace('-', '_')}-{version}.dist-info"
                info.mkdir()
                (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        self.card = {"LD_LIBRARY_PATH": str(BUILD / "tests/sim")}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "LD_", "SIM_", "PYTHON", "PIP_"))}
        self.environment.update(PATH=f"{venv}/bin:{os.environ['PATH']}", PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", COLUMNS="80", MALLOC_PERTURB_="0",
                                WHEELS=str(self.wheels), EXAMPLES=str(BUILD / "examples"), AGENT=f"{site}/stormlog_native/bin")
        self.sh(f"pip install -q --no-deps {self.wheels}/*.whl", self.place)

    def enter(self, name, cleanup):
        self.cleanup = cleanup
        self.folder = self.place / name.replace("/", "-")
        self.folder.mkdir()
        self.environment.update(PATH=f"{self.folder}/bin:{self.environment['PATH']}", SIM_DIR=str(self.folder / "gpu"))

    def sh(self, command, folder=None, row=None):
        environment = dict(self.environment)
        environment.update(row.environment if row else {})
        for word, here in (row.instead if row else {}).items():
            command = command.replace(word, here)
        if "--dry" not in command:
            environment.update(self.card)
        with subprocess.Popen(["sh", "-c", command], cwd=folder or self.folder, env=environment, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            said = ""
            if row and row.asks:  # a server, which ends with its input
                process.stdin.write(row.asks)
                process.stdin.flush()
                while row.says[-1] not in said and (line := process.stdout.readline()):
                    said += line
            process.stdin.close()
            said += process.stdout.read()
        return process.returncode, said


def row_of(page, what, screen):
    for row in ROWS:
        if page.endswith(row.page) and what.startswith(row.what) and screen == bool(row.run or row.file):
            return row
    return None


def steps(page):
    """(row, its commands, the text of the page that they print or read) in their order."""
    for block in pages.read(ROOT / page, page == "doc/dry-run.md"):
        for command, shown in block.commands:
            yield row_of(page, command, False), (command,), shown
        if block.shown:
            row = row_of(page, block.shown.lstrip(), True)
            yield row, row.run if row else (), block.shown


class Pages(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="stormlog-first-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.at = Place(folder)

    def test_every_command_has_a_row_and_every_row_a_command(self):
        had = [(row, commands) for page in PAGES for row, commands, _ in steps(page)]
        self.assertEqual([commands for row, commands in had if commands and not row], [], "rows.py has no inputs for these")
        self.assertEqual([row for row in ROWS if not any(row is one for one, _ in had)], [], "no page has these")

    def read(self, page):
        self.at.enter(page, self.addCleanup)
        said = ran = None
        for row, commands, shown in steps(page):
            for put in row.put if row else ():
                put(self.at)
            if row and row.file:
                (self.at.folder / row.file).write_text(shown)
            for command in commands:
                ran = row
                status, said = self.at.sh(command, row=row)
                self.assertEqual(status, row.status, f"{page}: {command}\n{said}")
                for words in row.says:
                    self.assertIn(words, said, f"{page}: {command}")
            if shown and not (row and row.file):
                self.assertIsNotNone(said, f"{page}: which command printed this?\n{shown}")
                wrong = missing(shown, said, ran.exact)
                if wrong and MEND:
                    mend(page, shown, said)
                else:
                    self.assertEqual(wrong, [], f"{page}:\n{shown}\nis not of\n{said}")


for number, page in enumerate(PAGES):
    setattr(Pages, "test_%02d_%s" % (number, re.sub(r"\W+", "_", page)), lambda self, page=page: self.read(page))


if __name__ == "__main__":
    unittest.main(verbosity=1)
