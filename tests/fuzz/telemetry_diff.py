# SPDX-License-Identifier: MIT
"""Differential fuzz: random sessions and records through stormlog-analyze and through contract.py.

    telemetry_diff.py STORMLOG_ANALYZE [SESSIONS] [SEED]

A difference beyond 1e-9 is printed with the seed that makes it, and the exit status is 1.
Sessions are made in batches, one file each with one session id per case, since starting a process costs more than
the analysis.
"""
import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import contract

GIB = 1 << 30
T0 = 1_700_000_000_000_000_000
WORDS = ["NCCL all_reduce", "AllGather", "barrier", "step 7", "  ", "", None, "reduce-scatter", "Broadcast x", "n-c_cl"]


def phases(rng, sid, rank, at, events, base):
    """A few enter and exit events, some of them crossed, unclosed or malformed."""
    threads = rng.randint(1, 3)
    for n in range(rng.randint(0, 6)):
        path = [rng.choice(["train", "io", "eval", ""]) for _ in range(rng.randint(1, 3))]
        start = at + rng.randint(0, 2_000_000_000)
        scope = {"action": "enter", "name": path[-1] or "x", "path": path, "depth": len(path), "scope_id": f"s:{n}",
                 "parent_scope_id": None, "thread_id": rng.randint(1, threads), "thread_name": "T", "sequence": n}
        if rng.random() < 0.1:
            scope[rng.choice(list(scope))] = rng.choice([None, "", 3, []])
        events.append(dict(base, event_type="phase_enter", timestamp_ns=start, metadata={"phase_scope": scope}))
        if rng.random() < 0.8:
            scope = dict(scope, action="exit")
            end = start + rng.randint(0, 2_000_000_000)
            events.append(dict(base, event_type="phase_exit", timestamp_ns=end, metadata={"phase_scope": scope}))


def session(rng, sid):
    world = rng.choice([1, 1, 2, 3, 5])
    total = rng.choice([80 * GIB, 24 * GIB, 80 * GIB, None, 0, 1 << 60])
    room = total or 80 * GIB
    interval = rng.choice([1, 10, 100, 100, 1000]) * 1_000_000
    jobs = rng.choice([[None], ["job"], ["job", "other", None]])
    events = []
    for rank in range(world):
        if world > 1 and rng.random() < 0.1:
            continue
        at = T0 + rng.choice([0, 0, rng.randint(0, 3_000_000_000)])
        base_gap = int(room * rng.choice([0, 0.01, 0.06, -0.02]))
        drift = room * rng.choice([0, 0, 0.001, 0.01, -0.002])
        unused = rng.choice([0, 0, 0.1, 0.4, 0.7])
        reserved = int(room * rng.choice([0, 0.1, 0.3]))
        for i in range(rng.choice([0, 1, 2, 3, 5, 6, 8, 20, 40, 90])):
            gap = base_gap + int(drift * i) + int(room * rng.choice([0] * 12 + [0.1, 0.3]))
            noise = rng.randint(-(1 << 20), 1 << 20) if rng.random() < 0.7 else 0
            used = max(0, min(room, reserved + gap + noise))
            word = rng.choice(WORDS) if rng.random() < 0.08 else None
            row = dict(
                schema_version=3, session_id=sid, timestamp_ns=at, event_type=rng.choice(["sample"] * 14 + ["Sample", " sample ", "peak"]),
                collector="stormlog.cuda_tracker", sampling_interval_ms=rng.choice([0, 100]), pid=10 + rank, host="h", device_id=0,
                allocator_allocated_bytes=int(reserved * (1 - unused)), allocator_reserved_bytes=reserved, allocator_active_bytes=None,
                allocator_inactive_bytes=None, allocator_change_bytes=0, device_used_bytes=used if total != 0 else 0, device_free_bytes=None,
                device_total_bytes=None if rng.random() < 0.03 else total, context=word, job_id=rng.choice(jobs), rank=rank,
                local_rank=rank, world_size=world, metadata={"a": [{"b": word}]} if rng.random() < 0.05 else {})
            if row["device_total_bytes"] == 0:
                row["device_used_bytes"] = 0
            if rng.random() < 0.02:
                row["metadata"] = {"origin_note": 1}
            events.append(row)
            at += interval if rng.random() < 0.9 else rng.choice([0, interval * 3])
        if events and rng.random() < 0.4:
            phases(rng, sid, rank, T0, events, events[-1])
    return events


def close(got, want, where=""):
    skip = {"description", "remediation", "notes"}
    if isinstance(want, dict) and isinstance(got, dict):
        return [d for k in sorted((set(got) | set(want)) - skip)
                for d in (close(got[k], want[k], f"{where}.{k}") if k in got and k in want else [f"{where}.{k}: on one side only"])]
    if isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            return [f"{where}: {len(got)} items, not {len(want)}"]
        return [d for i in range(len(want)) for d in close(got[i], want[i], f"{where}[{i}]")]
    numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (got, want))
    same = math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9) if numbers else got == want
    return [] if same else [f"{where}: {got!r}, not {want!r}"]


def compare(rows, got):
    rows = sorted(rows, key=lambda e: e["timestamp_ns"])
    spans = contract.phase_index(rows)
    out = []
    series = {"gap": (rows, got["gap_analysis"])}
    for rank in {e["rank"] for e in rows}:
        series[f"gap[{rank}]"] = ([e for e in rows if e["rank"] == rank], got["gap_analysis_by_rank"][str(rank)])
    for name, (events, answer) in series.items():
        try:
            out += close(answer, contract.gap(events, spans), name)
        except ValueError:
            pass  # all times equal: upstream raises, ours answers
    for preset in contract.PRE:
        want = contract.collective(rows, preset, spans)
        # contract.py does not merge attributions.
        drop = lambda found: [{k: v for k, v in f.items() if k != "phase_attribution"} for f in found]  # noqa: E731
        out += close(drop(got["collective_attribution"][preset]), drop(want), preset)
    out += close(got["cross_rank_analysis"], contract.cross(rows, spans), "cross")
    for rank in got["rollup"]["ranks"]:
        want = contract.rank_rollup([e for e in rows if e["rank"] == rank["rank"]])
        out += close({k: rank[k] for k in want}, want, f"rollup[{rank['rank']}]")
    return out


JUNK = [None, True, False, 0, 1, -1, 5.0, 1.5, -2.25, "", "  ", "x", "7", [], [1], {}, {"a": 1}, 1 << 40, 1 << 70, "caf\u00e9", "cuda", "CPU", "/gpu:0",
        "cuda:3", 1700000000.5]
LEGACY = ["timestamp", "timestamp_ns", "memory_allocated", "memory_reserved", "memory_change", "memory_mb", "device", "device_id", "type", "event_type",
          "message", "context", "total_memory", "device_total", "total_bytes", "backend", "collector", "host", "pid", "metadata", "metadata_rank",
          "metadata_host", "rank", "local_rank", "world_size", "job_id", "session_id", "device_used_bytes", "device_free_bytes", "sampling_interval_ms"]


def record(rng):
    row = {}
    if rng.random() < 0.5:
        row = session(random.Random(1), "s")[0] if rng.random() < 0.5 else {"timestamp": 1700000000.25, "memory_allocated": 5}
        if "schema_version" in row and rng.random() < 0.3:
            row["schema_version"] = 2
            del row["session_id"]
    for _ in range(rng.randint(0, 3)):
        key = rng.choice(list(row) + LEGACY)
        if rng.random() < 0.2:
            row.pop(key, None)
        else:
            row[key] = rng.choice(JUNK)
    return row


def fuzz_records(analyze, count, seed, folder):
    rng = random.Random(seed)
    rows = [record(rng) for _ in range(count)]
    file = folder / "records.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    done = subprocess.run([analyze, "convert", str(file)], capture_output=True, text=True)
    refused = {int(line.split(":")[1]) for line in done.stderr.splitlines()}
    output = iter(done.stdout.splitlines())
    bad = 0
    for n, row in enumerate(rows, 1):
        try:
            want = contract.normalize(row, None)
        except (contract.Bad, TypeError, AttributeError):
            want = None
        got = None if n in refused else json.loads(next(output))
        if got != want:
            bad += 1
            print(f"record {n} of seed {seed}: {json.dumps(row)}\n  got  {got}\n  want {want}")
    return bad


def fuzz_sessions(analyze, seeds, folder):
    cases = {}
    for seed in seeds:
        sid = f"s{seed}"
        rows = session(random.Random(seed), sid)
        if rows:
            cases[sid] = rows
    file = folder / "sessions.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for rows in cases.values() for r in rows))
    done = subprocess.run([analyze, "report", "--json", str(file)], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-2000:])
        return len(cases)
    report = json.loads(done.stdout)["telemetry"]["per_session"]
    bad = 0
    for sid, rows in cases.items():
        found = compare(rows, report[sid])
        if found:
            bad += 1
            print(f"session of seed {sid[1:]}: " + "; ".join(found[:4]))
    return bad


def main():
    analyze, count, first = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        for begin in range(first, first + count, 100):
            bad += fuzz_sessions(analyze, range(begin, min(begin + 100, first + count)), Path(name))
            bad += fuzz_records(analyze, 100, begin, Path(name))
    print(f"{count} sessions and {-(-count // 100) * 100} records: {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
