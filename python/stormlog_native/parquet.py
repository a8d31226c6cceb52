# SPDX-License-Identifier: MIT
"""The events of a run as Parquet, for DuckDB, Polars, Spark and others: FOLDER/run=ID/rank=N/TRACE-I.parquet, I counting traces.

A row is an event.  It has names in place of ids: `time` (UTC, ns), `verb`, `api`, `kind`, `label`, `stack` (Python, innermost first,
"file:line function" joined by ";"), and the other columns of doc/trace-format.md.  One trace is in memory at a time."""
from __future__ import annotations

import hashlib
import os
import sys
from typing import Any, Dict, Iterator, Optional, Tuple

from . import door
from .errors import ConfigurationError, ProfilerError
from .output import beside
from .reader import Trace

NAMED = ("api", "kind", "label", "python")
FILE_NAME_MAX = 255  # bytes
NAME_MAX, NAMES_MAX = 16 << 10, 256 << 20  # characters of one name, and of all stacks of a trace; later ones are left out


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigurationError("Parquet needs pyarrow: pip install pyarrow") from error
    return pyarrow


def _column(arrow: Any, ids: Any, names: Dict[int, Any]) -> Any:
    """A column of names in place of ids, null where an id has no name.  Each name is there once, however many events have it."""
    import numpy
    different, places = numpy.unique(ids, return_inverse=True)
    places = places.reshape(-1).astype(numpy.int32)
    words = [names.get(int(one)) for one in different]
    unnamed = numpy.array([word is None for word in words], bool)[places]
    return arrow.DictionaryArray.from_arrays(arrow.array(places, mask=unnamed), arrow.array([door.text((word or "")[:NAME_MAX]) for word in words], arrow.string()))


def _stacks(trace: Trace, ids: Any) -> Dict[int, str]:
    import numpy
    found: Dict[int, str] = {}
    left = NAMES_MAX
    for one in numpy.unique(ids):
        words = []
        for function, file, line in trace.stack(one):
            words.append("%s:%s %s" % (file[:NAME_MAX], line, function[:NAME_MAX]))
            left -= len(words[-1])
            if left < 0:
                _say("%s: its stacks have more than %d characters; later ones are left out" % (trace.path, NAMES_MAX))
                return found
        if words:
            found[int(one)] = ";".join(door.text(word.replace(";", "?")) for word in words)
    return found


def _say(text: str) -> None:
    sys.stderr.write("stormlog_native: %s\n" % door.line(text))


def _table(arrow: Any, trace: Trace) -> Any:
    events = trace.events()
    if not events:
        return None
    columns = {door.text(name[:NAME_MAX]): arrow.array(values) for name, values in events.items() if name not in NAMED}
    columns["time"] = arrow.array(trace.unix_ns(events["time_ns"]).astype("int64"), arrow.timestamp("ns", "UTC"))
    columns["verb"] = _column(arrow, events["api"], trace.verbs())
    columns["api"] = _column(arrow, events["api"], trace.names())
    for name, ids, names in (("kind", "kind", lambda: dict(enumerate(kind[0] for kind in trace.header["kinds"]))), ("label", "label", trace.texts),
                             ("stack", "python", lambda: _stacks(trace, events["python"]))):
        if ids in events:
            columns[name] = _column(arrow, events[ids], names())
    columns["pid"] = arrow.array([trace.header["pid"]] * len(events["time_ns"]), arrow.int64())
    return arrow.table(columns)


def _traces(path: str) -> Iterator[str]:
    for place, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name != "analysis" and not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".msgpack.zst") and name.count(".") == 2:
                yield os.path.join(place, name)


def _folder(run_id: str) -> str:
    """The name of a run's folder, with a hash where the id is too long or has other characters than a folder may: different ids get different folders."""
    name = "run=" + door.line(run_id).replace("/", "_")
    if name == "run=" + run_id and len(name.encode()) <= FILE_NAME_MAX:
        return name
    end = "-" + hashlib.sha256(run_id.encode("utf-8", "replace")).hexdigest()[:16]
    return name.encode()[:FILE_NAME_MAX - len(end)].decode("utf-8", "ignore") + end


def _read(name: str) -> Optional[Trace]:
    """None, and said: it cannot be read, or nothing in it can."""
    try:
        trace = Trace(name)
    except OSError as error:
        _say("%s is left out: %s" % (name, error.strerror))
        return None
    for at, why in trace.damage[:64]:
        _say("offset %d: %s" % (at, why))
    if trace.header and (trace.blocks or not trace.damage):
        return trace
    _say("%s is left out: it has no %s" % (name, "events that can be read" if trace.header else "header"))
    return None


def write(path: str, output: str) -> Tuple[int, int]:
    """Write the traces below `path`; returns the numbers of events and of traces that are left out, whole or in part.  `output` must be new or empty: Parquet readers
    take every file in it."""
    arrow = _arrow()
    if os.path.isdir(output) and os.listdir(output):
        raise ProfilerError("%s is not empty: name a new folder" % output)
    events = left_out = 0
    for number, name in enumerate(_traces(path)):
        trace = _read(name)
        if not trace:
            left_out += 1
            continue
        left_out += bool(trace.damage)
        table = _table(arrow, trace)
        if table is None:
            continue
        rank = trace.header.get("rank")
        folder = os.path.join(output, _folder(trace.header.get("run_id") or "none"), "rank=%d" % (-1 if rank is None else rank))
        os.makedirs(folder, exist_ok=True)
        stem = os.path.basename(name)[:-len(".msgpack.zst")]
        with beside(os.path.join(folder, "%s-%d.parquet" % (stem, number))) as place:
            arrow.parquet.write_table(table, place, compression="zstd")
        events += table.num_rows
    if not events:
        raise ProfilerError("no trace with events in %s" % path)
    return events, left_out
