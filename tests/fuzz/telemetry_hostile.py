# SPDX-License-Identifier: MIT
"""Hostile telemetry: stormlog-analyze ends with one of its own exit statuses, without a crash or a hang.  convert and validate print
messages of the form FILE: reason or FILE:LINE: reason.

    telemetry_hostile.py STORMLOG_ANALYZE [ROUNDS] [SEED]
"""
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden/stormlog"
LINE = re.compile(r"^.+: .+$")
CHOSEN = [
    b"", b"\n\n", b"\x00", b"\xff\xfe", b"{", b"}", b"[", b"[" * 100000, b'{"a":' * 100000, b"null", b"[null, 1, []]", b'"x"',
    b'{"events": [1, {}, {"timestamp": 1e400}]}', b'{"timestamp": NaN}', b'{"timestamp": Infinity}', b'{"timestamp": -1}',
    b'{"timestamp_ns": 99999999999999999999999999999999999999999999}', b'{"timestamp_ns": 170141183460469231731687303715884105727}',
    b'{"timestamp": 1, "timestamp": 2, "rank": 0, "rank": 5}', b'{"timestamp": 1, "host": "\\ud800"}', b'{"timestamp": 1, "host": "\\u0000"}',
    b'{"timestamps": [1, "x", null, 1e300], "allocated": [1, 2, 3, 4]}', b'{"timestamps": [], "allocated": []}', b"\xef\xbb\xbf{}",
    b'{"timestamp": 1, "memory_mb": 1e308}', b'{"timestamp": 9e9, "memory_mb": -5}', b'{"timestamp": 1, "world_size": 99999999999, "rank": 7}',
    b'{"timestamp": 1, "world_size": 2147483647, "rank": 2147483646}', b'{"timestamp": 9223372036.85, "device_used_bytes": 9223372036854775807}',
    b'{"timestamp": 1, "metadata": {"phase_scope": 3}, "event_type": "phase_enter"}', b'a,b\n"unclosed\n', b"timestamp,pid\n1e999,x\n2\n,,,,\n",
    b'{"schema_version": 3}', b'{"schema_version": 3, "a\\nb\\u001b[2J": 1}', b'{"timestamp": 1, "session_id": "\\u001b[2J\\nx"}', b'{"bundle_name": 1, "reason": [], "backend": {}, "event_count": "x"}',
    b'{"segments": [{"filename": "../../../etc/passwd"}, {"filename": ""}, 3], "sessions": [1, {}, {"session_id": "s", "source": "x", "host": "h",'
    b' "status": "running", "started_at_ns": 1e300}]}',
    b'{"format": "stormlog.append_only_telemetry_sink", "sessions": [{"session_id": "s", "source": "x", "host": "h", "status": "completed",'
    b' "started_at_ns": -9223372036854775808, "ended_at_ns": 9223372036854775807}]}',
]
TOKENS = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"null", b"-", b"1e999", b"NaN", b"\\", b"\\u", b"\xff", b"\x00", b"\n", b"99999999999999999999", b"-1",
          b"true", b'""', b"\xc3", b"0.0"]


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randint(0, len(data))
        kind = rng.random()
        if kind < 0.3 and data:
            data[min(at, len(data) - 1)] = rng.randrange(256)
        elif kind < 0.6:
            data[at:at + rng.choice([0, 0, 1, 5])] = rng.choice(TOKENS)
        elif kind < 0.7:
            del data[at:]
        elif kind < 0.8:
            other = rng.randint(0, len(data))
            data[at:at] = data[min(at, other):max(at, other)][:400]
        else:
            del data[at:at + rng.randint(1, 40)]
    return bytes(data)


def check(analyze, path):
    """What is wrong with how the verbs handle this path, as text; empty if nothing is."""
    for verb in (["convert"], ["convert", "--file-session"], ["validate"], ["report", "--json"]):
        if verb[0] == "convert" and path.is_dir():
            continue
        try:
            done = subprocess.run([analyze, *verb, str(path)], capture_output=True, timeout=600)
        except subprocess.TimeoutExpired:
            return f"{verb}: did not end"
        text = done.stderr.decode("utf-8", "replace")
        if done.returncode not in (0, 3) or "Sanitizer" in text or "runtime error" in text:
            return f"{verb}: status {done.returncode}\n{text[:1500]}"
        if verb[0] != "report":
            wrong = [line for line in text.splitlines() if not LINE.match(line)]
            if wrong:
                return f"{verb}: {wrong[0]!r}"
            if bool(text) != (done.returncode == 3):
                return f"{verb}: status {done.returncode} with {text[:200]!r}"
        if path.is_file() and b"\x1b" in subprocess.run([analyze, str(path)], capture_output=True, timeout=600).stdout:
            return "the summary lets an escape character through"
        for line in done.stdout.splitlines() if verb[0] == "convert" else [done.stdout] if done.stdout else []:
            try:
                json.loads(line, parse_constant=lambda c: 1 / 0)
            except (ValueError, ZeroDivisionError):
                return f"{verb}: printed what is no JSON: {line[:200]!r}"
    return ""


def main():
    analyze, rounds, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = random.Random(seed)
    folders = [p for p in (GOLDEN / "sinks").iterdir() if p.is_dir()] + list((GOLDEN / "oom").iterdir()) + list((GOLDEN / "diagnose").iterdir())
    files = sorted((GOLDEN / "cases").glob("*.jsonl")) + [GOLDEN / "normalize/cases.jsonl"]
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for n, data in enumerate(CHOSEN):
            for suffix in (".jsonl", ".json", ".csv"):
                file = work / f"chosen{n}{suffix}"
                file.write_bytes(data)
                found = check(analyze, file)
                file.unlink()
                if found:
                    bad += 1
                    print(f"{data[:80]!r} as {suffix}: {found}")
        for n in range(rounds):
            where = work / "x"
            if rng.random() < 0.5:
                source = rng.choice(files)
                where = work / f"x{rng.choice(['.jsonl', '.json', '.csv'])}"
                lines = source.read_bytes().splitlines(keepends=True)
                where.write_bytes(mutate(rng, b"".join(lines[:rng.randint(1, 12)])))
            else:
                shutil.copytree(rng.choice(folders), where)
                victim = rng.choice([p for p in where.iterdir() if p.is_file()])
                victim.chmod(0o600)
                victim.write_bytes(mutate(rng, victim.read_bytes()))
            found = check(analyze, where)
            shutil.rmtree(where) if where.is_dir() else where.unlink()
            if found:
                bad += 1
                print(f"round {n} of seed {seed}: {found}")
    print(f"{len(CHOSEN)} chosen and {rounds} random inputs: {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
