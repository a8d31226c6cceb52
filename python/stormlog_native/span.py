# SPDX-License-Identifier: MIT
"""What a span of this process's recording did to memory, to the byte.  We start from what the analysis says is in use now, and
undo the calls one by one, back to the span's end and on to its begin.

Memory in use: PyTorch's blocks where PyTorch reports them, and allocations that contain no such block.  Held: all allocations."""
from __future__ import annotations

import bisect
import csv
import io
from typing import Any, Dict, List, Tuple

from . import recording
from .system import DEVICE_KINDS

VERBS = ("ALLOC", "FREE", "BLOCK_ALLOC", "BLOCK_FREE")


def in_use(process: Dict[str, Any]) -> "tuple[int, int]":
    """(bytes in use, bytes held) by a process's part of report.json."""
    held = sum(row["live_bytes"] for row in process["memory"] if row["kind"] in DEVICE_KINDS)
    return held - sum(row["reserved_bytes"] - row["allocated_bytes"] for row in process["pytorch"] if row["device"] >= 0), held


def _changes(path: str) -> "List[Tuple[int, int, bool, bool]]":
    """[(ns, bytes allocated or minus bytes freed, changes what is in use, changes what is held), ...] in time order."""
    rows = [row for row in csv.DictReader(io.StringIO(recording.analyze("export", "csv", path)))
            if row["verb"] in VERBS and row["result"] in ("", "0") and row["address"]]
    blocks = sorted({int(row["address"]) for row in rows if row["verb"] == "BLOCK_ALLOC"})
    live: Dict[Tuple[bool, int], Tuple[int, bool]] = {}
    found = []
    for row in rows:
        block, address = row["verb"].startswith("BLOCK_"), int(row["address"])
        ns = int(row["t0_ns"] if row["verb"] == "FREE" else row["t1_ns"] or row["t0_ns"])
        if row["verb"].endswith("ALLOC"):
            if not block and row["kind"] not in DEVICE_KINDS:
                continue
            size = int(row["bytes"] or 0)
            first = bisect.bisect_left(blocks, address)
            segment = bool(blocks) and not block and (row["kind"] == "vmm" or (first < len(blocks) and blocks[first] < address + size))
            live[block, address] = size, not segment
            found.append((ns, size, not segment, not block))
        elif (block, address) in live:
            size, used = live.pop((block, address))
            found.append((ns, -size, used, not block))
    return sorted(found, key=lambda change: change[0])


def _course(changes: "List[Tuple[int, int, bool, bool]]", now: "tuple[int, int]", begin_ns: int, end_ns: int) -> "List[Tuple[int, int, int]]":
    (used, held), found = now, []
    for ns, change, is_use, is_held in reversed(changes):
        if ns < begin_ns:
            break
        if ns <= end_ns:
            found.append((ns, used, held))
        used, held = used - change * is_use, held - change * is_held
    return [(begin_ns, used, held)] + found[::-1]


def course(path: str, begin_ns: int, end_ns: int) -> "List[Tuple[int, int, int]]":
    """[(ns, in use, held), ...] of the span: at its begin and after each change.  []: the program has used no device."""
    process = recording.process(path)
    return _course(_changes(path), in_use(process), begin_ns, end_ns) if process["memory"] else []


def figures(path: str, begin_ns: int, end_ns: int) -> Dict[str, int]:
    """Figures of the span: bytes in use and held at its end and at their peak, and the blocks that were allocated and freed in it."""
    answer: Dict[str, int] = dict.fromkeys(("total_allocations", "total_allocation_bytes", "total_deallocations",
                                            "total_deallocation_bytes"), 0)
    changes = _changes(path)
    for ns, change, is_use, _ in changes:
        if is_use and begin_ns <= ns <= end_ns:
            kind = "allocation" if change > 0 else "deallocation"
            answer["total_%ss" % kind] += 1
            answer["total_%s_bytes" % kind] += abs(change)
    states = _course(changes, in_use(recording.process(path)), begin_ns, end_ns)
    _, answer["current"], answer["current_held"] = states[-1]
    answer.update(peak=max(used for _, used, _ in states), peak_held=max(held for _, _, held in states))
    return answer
