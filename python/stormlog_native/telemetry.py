# SPDX-License-Identifier: MIT
"""Checks a telemetry event as upstream's module of this name does; stormlog-analyze validate checks whole files."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

WHOLE, TEXT, MAYBE = (int,), (str,), type(None)
FIELDS: Dict[str, Tuple[type, ...]] = {
    "schema_version": WHOLE, "session_id": TEXT, "timestamp_ns": WHOLE, "event_type": TEXT, "collector": TEXT, "host": TEXT,
    "sampling_interval_ms": WHOLE, "pid": WHOLE, "rank": WHOLE, "local_rank": WHOLE, "world_size": WHOLE, "device_id": WHOLE,
    "job_id": (str, MAYBE), "context": (str, MAYBE), "metadata": (dict,), "allocator_allocated_bytes": WHOLE,
    "allocator_reserved_bytes": WHOLE, "allocator_change_bytes": WHOLE, "allocator_active_bytes": (int, MAYBE),
    "allocator_inactive_bytes": (int, MAYBE), "device_used_bytes": WHOLE, "device_free_bytes": (int, MAYBE),
    "device_total_bytes": (int, MAYBE)}
ABOVE_ZERO = [name for name in FIELDS if name.endswith("_bytes") and name != "allocator_change_bytes"]


def validate_telemetry_record(record: Mapping[str, Any]) -> None:
    """ValueError: the record is not a complete V3 event."""
    for name, types in FIELDS.items():
        if name not in record:
            raise ValueError("missing field: %s" % name)
        if not isinstance(record[name], types) or isinstance(record[name], bool):
            raise ValueError("%s is no %s: %r" % (name, " or ".join(kind.__name__ for kind in types), record[name]))
    if record["schema_version"] != 3:
        raise ValueError("schema_version %d, 3 is known" % record["schema_version"])
    for name in ABOVE_ZERO:
        if record[name] is not None and record[name] < 0:
            raise ValueError("%s is negative: %d" % (name, record[name]))
    if not 0 <= record["rank"] < record["world_size"]:
        raise ValueError("rank %d of %d" % (record["rank"], record["world_size"]))


def phase_spans(session: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """The phase_spans of a session in report.json ("telemetry", "per_session") as upstream writes them: an object each."""
    table = session["phase_spans"]
    found = []
    for values in table["rows"]:
        row = dict(zip(table["columns"], values))
        thread, path = table["threads"][row.pop("thread")], table["paths"][row.pop("path")]
        found.append(dict({name: thread[name] for name in ("session_id", "rank", "thread_id", "thread_name")}, path=path, depth=len(path), **row))
    return found


def timeline_markers(session: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """The timeline_markers of such a session as upstream writes them; report.json has the number of the span for a phase."""
    table, spans = session["phase_spans"], phase_spans(session)
    at = table["columns"].index("thread")
    found = []
    for marker in session["timeline_markers"]:
        if isinstance(marker, int):
            span, thread = spans[marker], table["threads"][table["rows"][marker][at]]
            marker = {"session_id": span["session_id"], "start_ns": span["start_ns"], "end_ns": span["end_ns"], "kind": "phase",
                      "source": "phase_replay", "severity": "info", "label": "Phase: " + " / ".join(span["path"]), "rank": span["rank"],
                      "local_rank": thread["local_rank"], "world_size": thread["world_size"], "event_type": "phase",
                      "metadata": dict({name: span[name] for name in ("scope_id", "thread_id", "thread_name", "sequence", "synthetic_end")},
                                       phase_path=span["path"])}
        found.append(marker)
    return found
