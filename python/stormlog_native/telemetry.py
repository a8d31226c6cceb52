# SPDX-License-Identifier: MIT
"""Checks a telemetry event as upstream's module of this name does; stormlog-analyze validate checks whole files."""
from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

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
