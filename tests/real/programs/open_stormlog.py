# SPDX-License-Identifier: MIT
"""open_stormlog.py FOLDER: Python Stormlog opens every file below FOLDER that it knows.  Prints as JSON what it refused, found and computed."""
import dataclasses
import json
import os
import sys
from pathlib import Path

from stormlog import query, telemetry
from stormlog.collective_attribution import attribute_collective_memory
from stormlog.distributed_analysis import summarize_cross_rank_analysis
from stormlog.formatting import format_bytes
from stormlog.gap_analysis import analyze_hidden_memory_gaps
from stormlog.phases import PhaseReplayIndex, phase_attribution_to_payload
from stormlog.telemetry_rollups import read_telemetry_rollups

THRESHOLDS = {"gap_ratio_threshold": 0.05, "gap_spike_zscore": 2.0, "gap_drift_r_squared": 0.6, "gap_fragmentation_ratio": 0.3}
problems = []


def plain(value):
    """numpy's numbers and Stormlog's records as JSON has them."""
    if dataclasses.is_dataclass(value) and "phase_attribution" in (fields := value.__dict__):
        return dict(plain(dict(fields, phase_attribution=None)), phase_attribution=phase_attribution_to_payload(value.phase_attribution))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def attempt(what, function, *arguments, **names):
    try:
        return function(*arguments, **names)
    except Exception as error:
        problems.append("%s: %s: %s" % (what, type(error).__name__, error))


def findings(events):
    spans = PhaseReplayIndex.from_events(events)
    gaps = analyze_hidden_memory_gaps(events=events, thresholds=THRESHOLDS, format_memory=format_bytes,
                                      remediation_by_classification={}, phase_resolver=spans)
    return {"gap_analysis": plain(list(gaps)),
            "collective_attribution": {preset: plain(list(attribute_collective_memory(events, preset=preset, phase_resolver=spans)))
                                       for preset in ("low", "medium", "high")},
            "cross_rank_analysis": plain(summarize_cross_rank_analysis(events, phase_resolver=spans))}


def check_sink(folder):
    for segment in sorted(folder.glob("segment-*.jsonl")):
        for number, line in enumerate(segment.read_text().splitlines(), 1):
            attempt("%s:%d" % (segment, number), telemetry.validate_telemetry_record, json.loads(line))
    if not attempt(folder, read_telemetry_rollups, folder):
        problems.append("%s: rollups are not accepted" % folder)
    return {loaded.summary.session_id: dict(findings(loaded.events), events=len(loaded.events), warnings=list(loaded.warnings),
                                            status=loaded.summary.status)
            for loaded in attempt(folder, telemetry.load_telemetry_sessions, folder) or []}


def check_bundle(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    events = json.loads((folder / "events.json").read_text())
    for name in manifest["files"]:
        if not (folder / name).is_file():
            problems.append("%s: lists %s, which is not there" % (folder, name))
    if manifest["event_count"] != len(events) or manifest["bundle_name"] != folder.name:
        problems.append("%s: its manifest is of another one" % folder)
    for number, record in enumerate(events):
        attempt("%s: event %d" % (folder, number), telemetry.telemetry_event_from_record, record, default_session_id="bundle")


root, sinks = Path(sys.argv[1]).resolve(), {}
for folder in [root, *sorted(path for path in root.rglob("*") if path.is_dir())]:
    if (folder / "manifest.json").is_file():
        if "bundle_name" in json.loads((folder / "manifest.json").read_text()):
            attempt(folder, check_bundle, folder)
        else:
            sinks.update(attempt(folder, check_sink, folder) or {})
store = query.open([root])
runs, attachments, bundles = store.list_runs(), store.list_run_attachments(), store.list_oom_bundles()
store.list_issues()
for metric in ("session_count_by_status", "peak_device_used_bytes", "hidden_memory_gap_growth", "interrupted_sessions_with_oom_bundles"):
    store.summarize(metric)
problems += ["%s: %s" % (warning.path, warning.message) for warning in store.catalog.warnings]
problems += ["%s is attached and not there" % row.path for row in attachments if row.path and not os.path.exists(row.path)]
json.dump({"problems": problems, "sessions": sinks, "runs": [row.run_id for row in runs], "attachments": [[row.kind, row.path] for row in attachments],
           "bundles": len(bundles), "listed": sorted(row.session_id for row in store.list_sessions())}, sys.stdout, default=str)
