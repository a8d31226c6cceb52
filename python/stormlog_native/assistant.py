# SPDX-License-Identifier: MIT
"""An assistant's way in: read-only tools over a folder of recordings and snapshots, by the Model Context Protocol (stdio).

Each tool runs stormlog-analyze and answers with its text: at most ANSWER bytes, the lines that matter first, then the question to
ask next.  No tool writes into the folder, and none reads outside it."""
import functools
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, List

from .errors import ProfilerError
from .recording import program

ANSWER = 4000  # bytes of one answer
SECONDS = 300  # the longest that one question may take
RUNS = 60  # runs that list_runs names
TRACE = re.compile(r"\.(msgpack\.zst|ring|slpack|pickle|pkl)(\.(gz|xz|zst))?$")
ABOUT = {"OUT OF MEMORY": "out_of_memory(run)", "LEAK": "leaks(run)", "GROWTH": "leaks(run)", "HIDDEN": "hidden(run)"}  # what to ask next
BLOCK = re.compile(r"^(?=[A-Z][A-Z]+(?: [A-Z]+)*\b)", re.M)  # a block of the report begins with its name in capitals


def cut(text: str, hint: str) -> str:
    """The text, shortened at the end of a line, and the hint."""
    room, kept = ANSWER - len(hint.encode()) - 80, []
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

    def run(self, name: str) -> str:
        path = (self.root / name).resolve()
        if self.root != path and self.root not in path.parents:
            raise ProfilerError("%s is outside the folder; list_runs names the runs" % name)
        if not path.exists():
            raise ProfilerError("%s: no such run; list_runs names them" % name)
        return str(path)

    def ask(self, *arguments: str) -> str:
        """What stormlog-analyze prints; its complaint where it fails."""
        done = subprocess.run([program("stormlog-analyze"), *arguments], capture_output=True, text=True, timeout=SECONDS, errors="replace",
                              stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"})
        return done.stdout + done.stderr if done.returncode > 1 or not done.stdout else done.stdout

    def screen(self, name: str) -> str:
        with tempfile.TemporaryDirectory(prefix="stormlog-") as place:
            screen = self.ask("report", "-o", os.path.join(place, "analysis"), self.run(name))
        return re.sub(r"(?m)^next: .*\n?|^note: no names of functions in .*\n(?: .*\n)*|   report: .*$", "", screen)

    def runs(self) -> str:
        found: List[str] = []
        for folder, below, files in os.walk(self.root):
            below[:] = sorted(name for name in below if name != "analysis")
            traces = [name for name in files if TRACE.search(name)]
            here = os.path.relpath(folder, self.root)
            snapshots = sorted(name for name in traces if re.search(r"\.(pickle|pkl)", name))
            found += [os.path.normpath(os.path.join(here, name)) + "  a PyTorch snapshot" for name in snapshots]
            if len(traces) > len(snapshots):
                size = sum(os.path.getsize(os.path.join(folder, name)) for name in traces)
                found.append("%s  a recording, %d files, %.1f MB" % (here, len(traces) - len(snapshots), size / 1e6))
        more = ["... %d more" % (len(found) - RUNS)] if len(found) > RUNS else []
        return "\n".join(found[:RUNS] + more) or "no recording and no snapshot is in this folder"


def serve(path: str) -> None:
    """Answers on standard input and output until the assistant closes them."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise ProfilerError("the package mcp is needed: pip install 'mcp>=2'") from None
    folder = Folder(path)
    server = MCPServer("stormlog", instructions="GPU memory of recorded programs. Call list_runs first, then answer.")

    def tool(work: Any) -> None:
        @functools.wraps(work)
        def told(*arguments: Any, **named: Any) -> Any:
            try:
                return work(*arguments, **named)
            except (ProfilerError, OSError, subprocess.SubprocessError) as error:
                raise ToolError(str(error)) from error

        server.tool()(told)

    def list_runs() -> str:
        """The recordings and PyTorch memory snapshots in the folder."""
        return cut(folder.runs(), "answer(run) with a name from this list")

    def answer(run: str) -> str:
        """Who held the GPU's memory, what leaked, why it ran out: the report's first screen."""
        screen = folder.screen(run)
        further = [tool for name, tool in ABOUT.items() if blocks(screen, name)]
        return cut(screen, ", ".join(dict.fromkeys([*further, "who_held(run, at='peak')"])))

    def who_held(run: str, at: str = "peak", by: str = "library") -> str:
        """Who held the memory at a time, as a tree of callers. at: peak, end, oom, or seconds since the start.
        by: library, stack, label, thread, rank, place, device, function, role, name."""
        return cut(folder.ask("tree", "--at=" + at, "--by=" + by, folder.run(run)), "who_held(run, at='end') shows the rest that stayed")

    def leaks(run: str) -> str:
        """Places that keep more with each step, and blocks left at the end."""
        found = blocks(folder.screen(run), "LEAK", "GROWTH", "LEFT")
        return cut(found or "no leak was found", "who_held(run, at='end', by='place'), or compare(before, after) with a run of the changed program")

    def out_of_memory(run: str) -> str:
        """Each allocation that failed: what was asked, who held the device, the cause, and what would help."""
        found = blocks(folder.screen(run), "OUT OF MEMORY", "RETRIED")
        return cut(found or "no allocation failed", "who_held(run, at='oom'), or would_it_fit(run, capacity)")

    def hidden(run: str) -> str:
        """Memory of the device that no recorded call explains: contexts, code, libraries, other processes."""
        found = blocks(folder.screen(run), "HIDDEN")
        return cut(found or "no gap above 5 % of the device, or the device's use is not known", "answer(run)")

    def compare(before: str, after: str) -> str:
        """The difference of two runs: peaks, and the lines that hold more or less."""
        return cut(folder.ask("diff", folder.run(before), folder.run(after)), "who_held(after, at='peak')")

    def would_it_fit(run: str, capacity: str = "") -> str:
        """Whether PyTorch's requests fit a card of that capacity (such as 24G), and with which allocator settings."""
        sizes = ["--capacity=" + capacity] if capacity else []
        return cut(folder.ask("fit", *sizes, folder.run(run)), "would_it_fit(run, capacity) with another size, such as 16G,24G,80G")

    def entries(run: str, label: str = "*") -> str:
        """Each entry of a range (step_#, a module's name, '*' for all): start, duration, memory before, after and at its peak."""
        return cut(folder.ask("table", "--entries=" + label, folder.run(run)), "who_held(run, at=SECONDS) for the moment of an entry")

    for work in (list_runs, answer, who_held, leaks, out_of_memory, hidden, compare, would_it_fit, entries):
        tool(work)
    server.run("stdio")
