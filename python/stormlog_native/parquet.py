# SPDX-License-Identifier: MIT
"""The events of a run as Parquet, for DuckDB, Polars, Spark and others: FOLDER/run=ID/rank=N/TRACE-I.parquet, I counting traces.

A row is an event.  It has names in place of ids: `time` (UTC, ns), `verb`, `api`, `kind`, `label`, `stack` (Python, innermost first,
"file:line function" joined by ";"), and the other columns of doc/trace-format.md.  One trace is in memory at a time."""
from __future__ import annotations

import os
import sys
from typing import Any, Dict, Iterator

from .errors import ConfigurationError, ProfilerError
from .reader import Trace

NAMED = ("api", "kind", "label", "python")


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigurationError("Parquet needs pyarrow: pip install pyarrow") from error
    return pyarrow


def _column(arrow: Any, ids: Any, names: Dict[int, Any]) -> Any:
    """A column of names in place of ids, null where an id has no name."""
    import numpy
    different, places = numpy.unique(ids, return_inverse=True)
    words = arrow.array([names.get(int(one)) for one in different], arrow.string())
    return words.take(arrow.array(places.reshape(-1))).dictionary_encode()


def _stacks(trace: Trace, ids: Any) -> Dict[int, str]:
    import numpy
    found = {}
    for one in numpy.unique(ids):
        frames = trace.stack(one)
        if frames:
            found[int(one)] = ";".join("%s:%s %s" % (file, line, function) for function, file, line in frames)
    return found


def _table(arrow: Any, trace: Trace) -> Any:
    events = trace.events()
    if not events:
        return None
    columns = {name: arrow.array(values) for name, values in events.items() if name not in NAMED}
    columns["time"] = arrow.array(trace.unix_ns(events["time_ns"]).astype("int64"), arrow.timestamp("ns", "UTC"))
    columns["verb"] = _column(arrow, events["api"], trace.verbs())
    columns["api"] = _column(arrow, events["api"], trace.names())
    columns["kind"] = _column(arrow, events["kind"], dict(enumerate(kind[0] for kind in trace.header["kinds"])))
    columns["label"] = _column(arrow, events["label"], trace.texts())
    columns["stack"] = _column(arrow, events["python"], _stacks(trace, events["python"]))
    columns["pid"] = arrow.array([trace.header["pid"]] * len(events["time_ns"]), arrow.int64())
    return arrow.table(columns)


def _traces(path: str) -> Iterator[str]:
    for place, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name != "analysis" and not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".msgpack.zst") and name.count(".") == 2:
                yield os.path.join(place, name)


def write(path: str, output: str) -> int:
    """Write the traces below `path`; returns the number of events.  `output` must be new or empty: Parquet readers take every file in it."""
    arrow = _arrow()
    if os.path.isdir(output) and os.listdir(output):
        raise ProfilerError("%s is not empty: name a new folder" % output)
    events = 0
    for number, name in enumerate(_traces(path)):
        trace = Trace(name)
        for at, why in trace.damage[:64]:  # names of files may steer a terminal
            sys.stderr.write("stormlog_native: %s\n" % ascii("offset %d: %s" % (at, why))[1:-1])
        table = _table(arrow, trace) if trace.header else None
        if table is None:
            continue
        rank = trace.header.get("rank")
        folder = os.path.join(output, "run=%s" % str(trace.header.get("run_id") or "none").replace("/", "_"), "rank=%d" % (-1 if rank is None else rank))
        os.makedirs(folder, exist_ok=True)
        stem = os.path.basename(name)[:-len(".msgpack.zst")]
        arrow.parquet.write_table(table, os.path.join(folder, "%s-%d.parquet" % (stem, number)), compression="zstd")
        events += table.num_rows
    if not events:
        raise ProfilerError("no trace with events in %s" % path)
    return events
