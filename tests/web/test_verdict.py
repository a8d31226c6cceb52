#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_verdict.py MAKE_TRACE ANALYZE: for a trace the page blames no rank merely because its device's memory rose first."""
import array
import base64
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

make_trace, analyze = sys.argv[1:]


def data_of(page):
    found = re.search(r'type="text/plain">([^<]+)<', page.read_text())
    return gzip.decompress(base64.b64decode(found[1]))


with tempfile.TemporaryDirectory(prefix="stormlog-verdict-") as work:
    trace, samples, imported = (pathlib.Path(work) / name for name in ("trace", "ranks.jsonl", "imported"))
    trace.mkdir()
    subprocess.run([make_trace, "ranks", trace, "4"], check=True)
    subprocess.run([analyze, "-q", trace], check=True)
    html = (trace / "analysis/report.html").read_text()
    assert html.count("<script") > 1 or "<pre>" in html and "PEAK" in html, "a build without Node.js has the terminal's summary"
    page = data_of(trace / "analysis/report.html")
    assert b"first_cause" not in page and b"rose first" not in page
    assert b"ranks.outlier" in page, "the run's own finding is there"

    # The samples of the same run contain nothing else, so the page reports it, as a note.
    rows = [json.loads(line) for sink in sorted((trace / "analysis/telemetry").iterdir())
            for line in (sink / "segment-000001.jsonl").read_text().splitlines()]
    samples.write_text("".join(json.dumps({**row, "session_id": "one"}) + "\n" for row in rows))
    subprocess.run([analyze, "-q", "-o", imported, samples], check=True)
    page = data_of(imported / "report.html")
    assert b"first_cause.rank" in page and b"rose first" in page
    for at in re.finditer(b"first_cause.rank", page):
        assert page[at.end():].startswith(b"\xa8severity\xa4info"), page[at.end():at.end() + 30]

    # Changes that were replayed: those of report.json, with the curve of each.  PyTorch's own peak is in the recorded one.
    recording = pathlib.Path(__file__).parent.parent / "real-gpu/cases/trainer_eval/shared-device"
    subprocess.run([analyze, "-q", "-o", work + "/changes", recording], check=True, stdout=subprocess.DEVNULL)
    page = data_of(pathlib.Path(work) / "changes/report.html")
    report = json.loads((pathlib.Path(work) / "changes/report.json").read_text())
    try:
        import msgpack
    except ImportError:
        sys.exit(0)
    ext = lambda code, data: array.array("f", data) if code == 4 else data
    shown = [process for process in msgpack.unpackb(page, strict_map_key=False, ext_hook=ext)["processes"] if process["changes"]]
    (changes,), (process,) = [process["changes"] for process in report["processes"] if process["changes"]], shown
    assert process["changes"] == changes
    curves = [process["replayed"]["curve"]] + [one["curve"] for one in process["replayed"]["tried"]]
    most = [max(value for value in curve if value == value) for curve in curves]
    assert all(len(curve) == 128 for curve in curves) and max(most) <= 1.000001 * changes["capacity_bytes"], most
    reserved = max(d["peak_reserved_bytes"] for p in report["processes"] for d in p["pytorch"])
    assert len(curves) == 1 + len(changes["tried"])
    assert all(top >= 0.999999 * held for top, held in zip(most, [reserved] + [c["peak_reserved_bytes"] for c in changes["tried"]]) if held is not None), most  # None: it failed before

    # What private pools of CUDA graphs keep has its own row at every moment: none before the first capture, and more with each.
    recording = pathlib.Path(__file__).parent.parent / "real-gpu/cases/graphed_ranker/alone"
    subprocess.run([analyze, "-q", "-o", work + "/graphs", recording], check=True, stdout=subprocess.DEVNULL)
    columns = {2: "I", 3: "I", 5: "d"}
    page = msgpack.unpackb(data_of(pathlib.Path(work) / "graphs/report.html"), strict_map_key=False,
                           ext_hook=lambda code, data: array.array(columns[code], data) if code in columns and len(data) % 4 == 0 and code != 2 else data)
    names = [page["strings"][page["frames"]["function"][frame]] for frame in page["nodes"]["frame"]]
    held = {kind: [sum(b for s, b in zip(m["stack"], m["bytes"]) if names[s].startswith("CUDA graphs")) for m in page["moments"] if m["kind"] == kind]
            for kind in ("time", "peak")}
    assert held["time"][0] == 0 and max(held["time"]) > 2 << 30 and sum(0 < b for b in held["time"]) > len(held["time"]) / 2, held
    assert abs(max(held["time"]) - held["peak"][0]) < held["peak"][0] / 20, held
