# SPDX-License-Identifier: MIT
"""python -m stormlog_native.bundle: writes the bundle of an out-of-memory error and prints its path.  It reads an order, JSON, from stdin.

The failing job starts it as a child; it reads the running trace with stormlog-analyze.  If the recording saw a call run out of
memory, the bundle is that call's, with the exception's text in place of the vendor's.  Otherwise (a simulated error, or one that a
framework raised without asking the driver) the bundle is made of the last events."""
from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional

from . import recording
from .system import get_system_info

NAME = re.compile(r"oom_dump_\d{8}T\d{6}Z_\d+_[A-Za-z0-9_-]+_\d+")
FILES = {"manifest.json", "events.json", "metadata.json", "environment.json", "live_blocks.json"}


def _load(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _save(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def newest(folder: str, since_ns: int) -> Optional[str]:
    """The bundle that the analysis wrote of the last error since `since_ns`, or None."""
    ooms = _load(os.path.join(folder, "report.json"))["ooms"]
    recent = [oom for oom in ooms if oom["bundle"] and oom["timestamp_ns"] >= since_ns]
    return os.path.join(folder, max(recent, key=lambda oom: oom["timestamp_ns"])["bundle"]) if recent else None


def legacy(event: Dict[str, Any]) -> Dict[str, Any]:
    """A V3 event as events.json has it: with upstream's names for its fields, and the V3 fields beside them."""
    kept = {key: value for key, value in event.items() if key != "schema_version"}  # upstream reads an event without it as a legacy record
    return dict(kept, timestamp=event["timestamp_ns"] / 1e9, memory_allocated=event["allocator_allocated_bytes"],
                memory_reserved=event["allocator_reserved_bytes"], memory_change=event["allocator_change_bytes"],
                device_used=event["device_used_bytes"], device_free=event["device_free_bytes"],
                device_total=event["device_total_bytes"], backend=event["metadata"].get("backend"))


def made(folder: str, order: Dict[str, Any], events: List[Dict[str, Any]]) -> str:
    """Makes a bundle of the last events, for an error that no recorded call returned."""
    bundle = os.path.join(folder, "made")
    os.mkdir(bundle)
    last = events[-order["buffer_size"]:]
    process = _load(os.path.join(folder, "analysis", "report.json"))["processes"][0]
    backend = last[-1]["metadata"].get("backend", "cuda") if last else "cpu"
    session = {"session_id": process["session_id"], "session_status": process["status"], "session": None}
    _save(os.path.join(bundle, "events.json"), [legacy(event) for event in last])
    _save(os.path.join(bundle, "metadata.json"), {"backend": backend, "captured_event_count": len(last), **session,
                                                  "custom_metadata": {}})
    _save(os.path.join(bundle, "environment.json"), {"pid": process["pid"], "cwd": os.getcwd()})
    _save(os.path.join(bundle, "manifest.json"), {"schema_version": 2, "backend": backend, "event_count": len(last), **session,
                                                  "files": ["manifest.json", "events.json", "metadata.json", "environment.json"]})
    return bundle


def complete(bundle: str, order: Dict[str, Any]) -> None:
    """Adds what the recording does not have: the exception, the program, the machine."""
    metadata = _load(os.path.join(bundle, "metadata.json"))
    recorded = metadata.get("exception_message")
    metadata.update({key: order[key] for key in ("reason", "exception_type", "exception_module", "exception_message", "context")})
    metadata["custom_metadata"] = {**metadata["custom_metadata"], **order["metadata"]}
    if recorded:
        metadata["custom_metadata"]["recorded"] = recorded
    _save(os.path.join(bundle, "metadata.json"), metadata)
    environment = _load(os.path.join(bundle, "environment.json"))
    environment["system"] = {key: value for key, value in get_system_info().items() if key not in ("devices", "device_count", "recorded")}
    environment["system"]["python_version"] = platform.python_version()
    _save(os.path.join(bundle, "environment.json"), environment)


def place(bundle: str, order: Dict[str, Any]) -> str:
    """Write the bundle into a new folder of the directory, the manifest last.  Returns its path."""
    manifest = _load(os.path.join(bundle, "manifest.json"))
    os.remove(os.path.join(bundle, "manifest.json"))
    backend = re.sub(r"[^A-Za-z0-9_-]+", "_", manifest["backend"])
    os.makedirs(order["directory"], mode=0o700, exist_ok=True)
    pid = _load(os.path.join(bundle, "environment.json"))["pid"]
    for number in range(1, 10_000):
        name = time.strftime("oom_dump_%Y%m%dT%H%M%SZ", time.gmtime()) + "_%d_%s_%d" % (pid, backend, number)
        path = os.path.join(os.path.abspath(order["directory"]), name)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
        for file in os.listdir(bundle):
            shutil.move(os.path.join(bundle, file), path)
        manifest.update(bundle_name=name, reason=order["reason"], created_at_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        _save(os.path.join(path, "manifest.json"), manifest)
        return path
    raise OSError("%s is full of bundles" % order["directory"])


def files_of(path: str) -> List[str]:
    """Paths of the files of a bundle that `place` made, the manifest last; none where the folder is another's, or holds what no bundle has."""
    name, names = os.path.basename(path), sorted(os.listdir(path), key=lambda one: one == "manifest.json")
    files = [os.path.join(path, one) for one in names]
    if os.path.islink(path) or not NAME.fullmatch(name) or not set(names) <= FILES or not all(stat.S_ISREG(os.lstat(file).st_mode) for file in files):
        return []
    manifest = _load(os.path.join(path, "manifest.json"))
    return files if isinstance(manifest, dict) and manifest.get("bundle_name") == name else []


def retain(order: Dict[str, Any], newest_path: str) -> None:
    """Remove the oldest bundles until number and size are within the limits.  The newest always stays, and so does what somebody else put there."""
    folder = os.path.abspath(order["directory"])
    bundles = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError, ValueError, RecursionError):  # no folder, one that another process removes, no manifest
            files = files_of(path)
            if files:
                bundles.append((os.stat(path).st_mtime_ns, path, sum(map(os.path.getsize, files)), files))
    bundles.sort(key=lambda one: (one[1] == newest_path, one))
    while len(bundles) > 1 and (len(bundles) > order["max_dumps"] or sum(one[2] for one in bundles) > order["max_total_bytes"]):
        _, path, _, files = bundles.pop(0)
        with contextlib.suppress(OSError):
            for file in files:
                os.unlink(file)
            os.rmdir(path)


def main() -> None:
    order = json.load(sys.stdin)
    with tempfile.TemporaryDirectory(prefix="stormlog-") as folder:
        analysis = os.path.join(folder, "analysis")
        events = recording.telemetry(analysis, order["trace"], "--set", "oom-buffer-size=%d" % order["buffer_size"])
        bundle = newest(analysis, order["since_ns"]) or made(folder, order, events)
        complete(bundle, order)
        path = place(bundle, order)
    retain(order, path)
    print(path)


if __name__ == "__main__":
    main()
