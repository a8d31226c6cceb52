# SPDX-License-Identifier: MIT
"""An assistant's way in: read-only tools over a folder of recordings and snapshots, by the Model Context Protocol (stdio).

Each tool runs stormlog-analyze and answers with its text: at most ANSWER bytes, the lines that matter first, then the question to
ask next.  No tool writes into the folder, and none reads outside it."""
import functools
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, List, Tuple, Union

from . import door
from .errors import ProfilerError
from .recording import program

ANSWER = 4000  # bytes of one answer
SECONDS = 300  # the longest that one question may take
RUNS = 50  # runs that list_runs names, the newest
TRACE = re.compile(r"\.(msgpack\.zst|ring|slpack|pickle|pkl)(\.(gz|xz|zst))?$")
ABOUT = {"OUT OF MEMORY": "out_of_memory(run)", "LEAK": "leaks(run)", "GROWTH": "leaks(run)", "HIDDEN": "hidden(run)",
         "FIT": "would_it_fit(run, capacity)"}  # what to ask next
BLOCK = re.compile(r"^(?=[A-Z][A-Z]+(?: [A-Z]+)*\b)", re.M)  # a block of the report begins with its name in capitals


def cut(text: str, hint: str) -> str:
    """The text, shortened at the end of a line, and the hint."""
    room = ANSWER - len(hint.encode()) - 80
    kept: List[str] = []
    lines = text.rstrip().split("\n")
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            kept.append("... %d more lines" % (len(lines) - len(kept)))
            break
        kept.append(line)
    return "\n".join([*kept, "", "Next: " + hint])


def blocks(screen: str, *names: str) -> str:
    """Those blocks of a report's screen that begin with one of the names."""
    return "\n".join(block.rstrip() for block in BLOCK.split(screen)[1:] if block.startswith(names))


class Folder:
    """The folder that the assistant may ask about."""

    def __init__(self, path: str) -> None:
        self.root = Path(path).resolve()
        if not self.root.is_dir():
            raise ProfilerError("%s: no such folder" % path)

    def run(self, name: str) -> List[str]:
        """Arguments of stormlog-analyze: the path, and --run where the name ends with one."""
        name, _, chosen = name.partition(" --run ")
        path = (self.root / name).resolve()
        if self.root != path and self.root not in path.parents:
            raise ProfilerError("%s is outside the folder; list_runs names the runs" % name)
        if not path.exists():
            raise ProfilerError("%s: no such run; list_runs names them" % name)
        return ["--run=" + chosen] * bool(chosen) + [str(path)]

    def ask(self, *arguments: str) -> str:
        """What stormlog-analyze prints, with its complaints where it left something out."""
        try:
            done = subprocess.run([program("stormlog-analyze"), *arguments], capture_output=True, text=True, timeout=SECONDS, errors="replace",
                                  stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"})
        except subprocess.TimeoutExpired:
            raise ProfilerError("no answer in %d s; ask about one file of the run" % SECONDS) from None
        if not done.stdout:
            raise ProfilerError(done.stderr.strip())
        return done.stdout + done.stderr if done.returncode > 1 else done.stdout

    def screen(self, name: str, *more: str) -> str:
        with tempfile.TemporaryDirectory(prefix="stormlog-") as place:
            screen = self.ask("report", *more, "-o", os.path.join(place, "analysis"), *self.run(name))
        return re.sub(r"(?m)^next   .*\n(?:       .*\n)*|^note   no names of functions in\b.*\n(?:       .*\n)*|^report .*\n?", "", screen)

    def part(self, name: str, nothing: str, *blocks_of: str) -> str:
        """These blocks of a run's report, or that there is nothing; that it was a dry run; and what the report could not know."""
        screen = self.screen(name, "--all")
        dry = re.findall(r"(?m)^DRY RUN .*", screen)
        why = re.findall(r"(?m)^incomplete: .*|no window: .*", screen)
        return "\n".join([*dry, blocks(screen, *blocks_of) or ("not known, the file does not tell" if why else nothing), *why])

    def runs(self, below: str) -> str:
        found: List[Tuple[float, str]] = []
        for folder, inside, files in os.walk(self.run(below)[-1]):
            inside[:] = [name for name in inside if name != "analysis"]
            here = Path(folder)
            traces = [here / name for name in files if TRACE.search(name)]
            snapshots = [path for path in traces if re.search(r"\.(pickle|pkl)", path.name)]
            recorded = [path for path in traces if path not in snapshots]
            for path, kind, of in [*((path, "a pickle", [path]) for path in snapshots), *[(here, "a recording", recorded)] * bool(recorded)]:
                written = max(file.lstat().st_mtime for file in of)
                found.append((written, "%s  %s of %s" % (door.line(str(path.relative_to(self.root))), kind, time.strftime("%Y-%m-%d %H:%M", time.localtime(written)))))
        more = ["... and %d older: list_runs(below) of one folder" % (len(found) - RUNS)] if len(found) > RUNS else []
        return "\n".join([line for _, line in sorted(found, reverse=True)[:RUNS]] + more) or "no recording and no snapshot is in this folder"


def serve(path: str) -> None:
    """Answers on standard input and output until the assistant closes them."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp_types import ToolAnnotations
    except ImportError:
        raise ProfilerError("the package mcp is needed: pip install 'mcp>=2'") from None
    folder = Folder(path)
    server = MCPServer("stormlog", instructions="GPU memory of recorded programs. Call list_runs first, then answer. "
                       "A folder may have several runs: where an answer says --run ID, ask for the run 'FOLDER --run ID'.")

    def tool(work: Any) -> None:
        @functools.wraps(work)
        def told(*arguments: Any, **named: Any) -> Any:
            try:
                return work(*arguments, **named)
            except (ProfilerError, OSError, ValueError) as error:
                raise ToolError(str(error)) from error

        server.tool(annotations=ToolAnnotations(read_only_hint=True))(told)

    def list_runs(below: str = ".") -> str:
        """The recordings and PyTorch memory snapshots in the folder, or below one of its folders; the newest first."""
        found = folder.runs(below)
        return cut(found, "stormlog-run -- COMMAND records one" if found.startswith("no ") else "answer(run) with a name from this list")

    def answer(run: str) -> str:
        """Who held the GPU's memory, what leaked, why it ran out: the report's first screen."""
        screen = folder.screen(run)
        further = [tool for name, tool in ABOUT.items() if blocks(screen, name)]
        return cut(screen, ", ".join(dict.fromkeys([*further, "who_held(run, at='peak')"])))

    def read_log(file: str) -> str:
        """What a program's log tells of its memory, where no recording is: the line that asked, why, what to change."""
        return cut(folder.ask("report", *folder.run(file)), "record the program with the command of the last line")

    def who_held(run: str, at: Union[str, float] = "peak", by: str = "place", depth: int = 1) -> str:
        """Who held the memory at a time, as a tree of callers. at: peak, end, oom, or seconds since the start.
        by: place, library, stack, label, thread, rank, device, function, role, name, type, module or holder.
        by='holder' gives variables, when Python knew most of them. depth: how many callers."""
        return cut(folder.ask("tree", *["--at=%s" % at] * (by != "holder"), "--by=" + by, "--depth=%d" % depth, *folder.run(run)),
                   "who_held(run, at, by='stack', depth=20) for the callers, who_held(run, at='end') for what stayed")

    def leaks(run: str) -> str:
        """Places that keep more with each step, and blocks left at the end."""
        return cut(folder.part(run, "no leak was found", "LEAK", "GROWS", "HELD"),
                   "who_held(run, by='holder' or at='end'), or compare(before, after) with a run of the changed program")

    def out_of_memory(run: str) -> str:
        """Each allocation that failed: what was asked, who held the device, the cause, and what would help."""
        text = folder.part(run, "no allocation failed", "OUT OF MEMORY", "DOES NOT FIT")
        return cut(text, "answer(run)" if re.search(r"(?m)^not? ", text) else "who_held(run, at='oom'), or would_it_fit(run, capacity)")

    def hidden(run: str) -> str:
        """Memory of the device that no recorded call explains: contexts, code, libraries, other processes."""
        return cut(folder.part(run, "no gap above 5 % of the device, or the device's use is not known", "HIDDEN"), "answer(run)")

    def compare(before: str, after: str) -> str:
        """The difference of two runs: peaks, and the lines that hold more or less."""
        return cut(folder.ask("diff", *folder.run(before), *folder.run(after)), "who_held(after, at='peak')")

    def would_it_fit(run: str, capacity: str = "") -> str:
        """Whether PyTorch's requests fit a card of that capacity (such as 24G), and with which allocator settings."""
        sizes = ["--capacity=" + capacity] if capacity else []
        return cut(folder.ask("fit", *sizes, *folder.run(run)), "would_it_fit(run, capacity) with another size, such as 16G,24G,80G")

    def entries(run: str, label: str = "*") -> str:
        """Each entry of a range (step_#, a module's name, '*' for all): start, duration, memory before, after and at its peak."""
        return cut(folder.ask("table", "--entries=" + label, *folder.run(run)), "who_held(run, at=SECONDS) for the moment of an entry")

    for work in (list_runs, answer, read_log, who_held, leaks, out_of_memory, hidden, compare, would_it_fit, entries):
        tool(work)
    server.run("stdio")
