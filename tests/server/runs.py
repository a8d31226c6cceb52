# SPDX-License-Identifier: MIT
"""Makes runs with known figures: traces written by the page of the format, packed by stormlog-analyze."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
import traces as t  # noqa: E402

MIB = 1 << 20


def course(analyze, folder, number, steps, **fields):
    """The pack of a run with a call for each of `steps`, (ns since it began, bytes, address): an allocation, or a free if bytes is 0."""
    traces = os.path.join(folder, f"run-{number}")
    api = [t.MALLOC if size else t.FREE for _, size, _ in steps]
    events = t.Thread().events(len(steps), api=api, kind=1, duration_ns=1, time_ns=[t.T0 + at for at, _, _ in steps],
                               address=[address for _, _, address in steps], bytes=[size for _, size, _ in steps], label=0)
    t.write(os.path.join(traces, "rank-00000-100.msgpack.zst"), t.header(run_id=f"run-{number}", **fields), events,
            t.footer(t.T0 + steps[-1][0], events=len(steps)))
    return pack(analyze, folder, number)


def pack(analyze, folder, number):
    path = os.path.join(folder, f"run-{number}.stormlog")
    subprocess.run([analyze, "pack", "-o", path, os.path.join(folder, f"run-{number}")], check=True, capture_output=True)
    with open(path, "rb") as file:
        return file.read()


def record(analyze, folder, number, blocks, place="train.py", function="step", second=0, **fields):
    """The pack of a run that allocates each of `blocks` (MiB) and keeps them."""
    traces = os.path.join(folder, f"run-{number}")
    maps = [{"def": "text", "id": 1, "text": function}, {"def": "frame", "id": 1, "function": function, "file": place, "line": 7},
            {"def": "python_stack", "id": 1, "frames": [1]}]
    fields = {"run_id": f"run-{number}", "tag": f"tag-{number}", "started_ns": t.UNIX0 + second * 10 ** 9, **fields}
    count = len(blocks)
    events = t.Thread().events(count, api=t.MALLOC, kind=1, duration_ns=1, address=[(i + 1) << 32 for i in range(count)], device=0,
                               bytes=[size * MIB for size in blocks], python=1, label=0)
    t.write(os.path.join(traces, "rank-00000-100.msgpack.zst"), t.header(**fields), t.defs(maps), events, t.footer(events=count))
    return pack(analyze, folder, number)
