# SPDX-License-Identifier: MIT
"""The interface of recorder-viz over our traces: RecorderReader(folder) with GM, LMs and records, and generate_report."""
from __future__ import annotations

import collections
import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, List, Set

from . import recording
from .output import opened, replacing


@dataclass
class GlobalMetadata:
    total_ranks: int
    start_ts: float  # Unix seconds
    time_resolution: float  # of the records' times, seconds


@dataclass
class LocalMetadata:
    """What one rank recorded; function_count[i] is how often reader.funcs[i] was called; filemap holds the names of its trace's files."""
    total_records: int
    num_files: int
    filemap: Set[str]
    function_count: List[int]


@dataclass
class Record:
    """One call.  Times in seconds since GM.start_ts; func_id is an index of reader.funcs; args: those that the trace holds."""
    tstart: float
    tend: float
    level: int
    func_id: int
    tid: int
    arg_count: int
    args: List[str]


ARGUMENTS = ("address", "bytes", "device", "stream", "result")


class RecorderReader:
    """Reads the newest run in a folder of traces into memory.  As recorder-viz's own, it is for small runs."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        summary = recording.summary(folder)
        events = recording.lines("dump", folder)
        start = (summary["run"]["started_at_ns"] or 0) / 1e9
        ranks = [(process["rank"], process["pid"]) for process in summary["processes"]]
        place = {key: index for index, key in enumerate(ranks)}
        self.GM = GlobalMetadata(len(ranks), start, 1e-9)
        self.funcs: List[str] = sorted({event["api"] for event in events if event["api"]})
        number = {name: index for index, name in enumerate(self.funcs)}
        self.records: List[List[Record]] = [[] for _ in ranks]
        for event in events:
            index = place.get((event["rank"], event["pid"]))
            if index is None or not event["api"]:
                continue
            args = ["%s=%s" % (name, event[name]) for name in ARGUMENTS if event[name] is not None]
            end = event["t1_ns"] if event["t1_ns"] is not None else event["t0_ns"]
            self.records[index].append(Record(event["t0_ns"] / 1e9 - start, end / 1e9 - start, 0, number[event["api"]], event["thread"],
                                              len(args), args))
        self.LMs: List[LocalMetadata] = []
        for process, records in zip(summary["processes"], self.records):
            counts: Dict[int, int] = collections.Counter(record.func_id for record in records)
            stem = process["trace"].split(".")[0]
            files = {name for name in os.listdir(folder) if name.startswith(stem + ".")} if os.path.isdir(folder) else {process["trace"]}
            self.LMs.append(LocalMetadata(len(records), len(files), files, [counts.get(i, 0) for i in range(len(self.funcs))]))


def generate_report(reader: Any, file: str) -> str:
    """The page of a reader's folder, or of a folder, as one HTML file."""
    folder = reader.folder if isinstance(reader, RecorderReader) else str(reader)
    with replacing(file) as page, tempfile.TemporaryDirectory(prefix="stormlog-") as place:
        recording.analyze("report", "-q", "-o", os.path.join(place, "analysis"), folder)
        with open(os.path.join(place, "analysis", "report.html"), "rb") as made, opened(page, "wb") as out:
            shutil.copyfileobj(made, out)
    return file
