# SPDX-License-Identifier: MIT
"""Figures of a recording.  A child process, stormlog-analyze, reads them from this process's running trace or from another trace; the
job itself keeps no totals and parses no trace."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Optional

from .agent import flush, trace_path
from .errors import ConfigurationError, ProfilerError


def program(name: str) -> str:
    """Absolute path of stormlog-run or stormlog-analyze: the wheel's own, $STORMLOG_BIN's, or the first in PATH."""
    places = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin"), os.environ.get("STORMLOG_BIN", "")]
    for place in places:
        path = os.path.join(place, name)
        if place and os.access(path, os.X_OK):
            return path
    # Skip scripts that pip made under this name: they would start Python and call this function again.
    for place in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(place, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    return path
    raise ConfigurationError("%s is not to be found: install stormlog, or say where its programs are in STORMLOG_BIN" % name)


def child_environment() -> Dict[str, str]:
    """Environment for a child that is not to be recorded."""
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    kept = [part for part in os.environ.get("LD_PRELOAD", "").replace(":", " ").split() if "libstormlog_preload" not in part]
    if kept:
        clean["LD_PRELOAD"] = ":".join(kept)
    clean["STORMLOG_DISABLE"] = "1"
    return clean


def failed(what: str, done: "subprocess.CompletedProcess[bytes]") -> ProfilerError:
    error = ProfilerError("%s: exit status %d\n%s" % (what, done.returncode, done.stderr.decode("utf-8", "replace")))
    error.status = done.returncode if done.returncode > 0 else ProfilerError.status
    return error


def analyze(*arguments: str, ok: "tuple[int, ...]" = (0,), tell: bool = False) -> str:
    """What stormlog-analyze prints.  tell: what it says on stderr, as of damage, goes to ours."""
    done = subprocess.run([program("stormlog-analyze"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=child_environment())
    if done.returncode not in ok:
        raise failed("stormlog-analyze " + " ".join(arguments), done)
    if tell:
        sys.stderr.write(done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "replace")


def lines(*arguments: str) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in analyze(*arguments).splitlines()]


def own_trace() -> str:
    """Path of this process's trace, after a flush: it then names all loaded objects, by which PyTorch's segments are recognised."""
    path = trace_path()
    flush(1.0)
    return path


def entries(path: Optional[str] = None, label: Optional[str] = None) -> List[Dict[str, Any]]:
    """Each entry of a range that has ended: bytes in use before, after and at its peak, bytes allocated and freed."""
    every = lines("table", "--entries", label or "*", "--json", path or own_trace())
    return [row for row in every if row["end_ns"] is not None]  # the others are still open


def summary(path: Optional[str] = None) -> Dict[str, Any]:
    """report.json, of this process or of a folder of traces."""
    report: Dict[str, Any] = json.loads(analyze("report", "--json", path or own_trace()))
    return report


def process(path: Optional[str] = None) -> Dict[str, Any]:
    """The process's own part of report.json."""
    found: List[Dict[str, Any]] = summary(path)["processes"]
    if not found:
        raise ProfilerError("%s holds no process" % (path or trace_path()))
    return found[0]


def samples(path: Optional[str] = None) -> Dict[str, List[Optional[float]]]:
    """Samples of the device and of the process (rss_bytes) as columns; `ns` is Unix time.  A child process reads them."""
    done = subprocess.run([sys.executable, "-m", __package__ + ".samples", path or own_trace()], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=dict(child_environment(), PYTHONPATH=os.pathsep.join(p for p in sys.path if p)))
    if done.returncode:
        raise ProfilerError("samples: %s" % done.stderr.decode("utf-8", "replace"))
    columns: Dict[str, List[Optional[float]]] = json.loads(done.stdout)
    return columns


def resident() -> "List[tuple[float, int]]":
    """[(seconds of Unix time, resident bytes), ...] as sampled."""
    columns = samples()
    return [(ns / 1e9, int(rss)) for ns, rss in zip(columns.get("ns", []), columns.get("rss_bytes", []))
            if ns is not None and rss is not None]


def telemetry(folder: str, path: Optional[str] = None, *options: str) -> List[Dict[str, Any]]:
    """Writes the whole analysis into `folder` and returns its telemetry events (V3), in time order."""
    analyze("report", "-q", "-o", folder, *options, path or own_trace())
    events: List[Dict[str, Any]] = []
    for place, _, names in os.walk(os.path.join(folder, "telemetry")):
        for name in sorted(names):
            if name.endswith(".jsonl"):
                with open(os.path.join(place, name), encoding="utf-8") as file:
                    events.extend(json.loads(line) for line in file)
    return sorted(events, key=lambda event: event["timestamp_ns"])


class Report:
    """The analysis of a run, as written to a folder: report.json as `data`, tables, and the page inline in a notebook."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
            self.data: Dict[str, Any] = json.load(file)

    def __repr__(self) -> str:
        return "<stormlog report of %d processes in %s>" % (len(self.data["processes"]), self.folder)

    def _repr_html_(self) -> str:
        import base64
        try:
            with open(os.path.join(self.folder, "report.html"), "rb") as file:
                page = base64.b64encode(file.read()).decode()
        except OSError as error:
            from .errors import VisualizationError
            raise VisualizationError("no page: %s" % error) from error
        return '<iframe src="data:text/html;base64,%s" width="100%%" height="720" style="border:0"></iframe>' % page

    def frame(self, table: str = "memory") -> Any:
        """A pandas.DataFrame: of each process memory, apis, libraries, labels, pytorch or names; or leaks, ooms, findings, gap_findings."""
        try:
            import pandas
        except ImportError as error:
            from .errors import VisualizationError
            raise VisualizationError("DataFrames need pandas: pip install pandas") from error
        if table in ("leaks", "ooms", "findings", "gap_findings"):
            return pandas.DataFrame(self.data[table])
        return pandas.DataFrame([dict(row, rank=process["rank"], pid=process["pid"]) for process in self.data["processes"]
                                 for row in process[table]])


def report(path: Optional[str] = None, output: Optional[str] = None) -> Report:
    """Analyse a folder of traces, or without `path` this process as it is now, into `output` (default: PATH/analysis)."""
    path = path or own_trace()
    folder = output or os.path.join(path if os.path.isdir(path) else os.path.dirname(path), "analysis")
    analyze("report", "-q", "-o", folder, path, tell=True)
    return Report(folder)


def _trace_of(pid: int, folder: str) -> str:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = sorted(name for name in names if name.endswith(".msgpack.zst") and name.count(".") == 2
                   and name.split(".")[0].split("-")[2:3] == [str(pid)])
    if not found:
        raise ConfigurationError("no trace of process %d in %s: start it by stormlog-run -o %s" % (pid, folder, folder))
    return os.path.join(folder, found[-1])


def follow(pid: int, folder: str = "traces", interval: float = 1.0) -> Iterator[Dict[str, Any]]:
    """Yield a running process's part of report.json every `interval` seconds, the last one after the process has ended."""
    import time
    path = _trace_of(pid, folder)
    while True:
        now = process(path)
        yield now
        if now["status"] != "running":
            return
        time.sleep(interval)


