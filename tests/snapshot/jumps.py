#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""jumps.py ANALYZE FOLDER: what PyTorch's memory_viz draws of each snapshot in FOLDER, which has oracle.py, against what `flame --at TIME` tells.

memory_viz draws the bytes that were requested, event by event.  The course's turning points, from each of which it moves by more than 5 % of the peak, must have the same
sum here, and each line of the program that holds more than 5 % of the peak there the same bytes.
"""
import collections
import glob
import json
import os
import subprocess
import sys

PART = 0.05


def turns(course, least):
    """Indexes of the points where the course turns, and its ends."""
    found, low, high, rises = [0], 0, 0, None
    for i, value in enumerate(course):
        low, high = (i if value < course[low] else low), (i if value > course[high] else high)
        if rises is not True and value > course[low] + least:
            found, rises, high = found + [low], True, i
        elif rises is not False and value < course[high] - least:
            found, rises, low = found + [high], False, i
    return sorted({*found, low, high, len(course) - 1})


def told(analyze, path, at, ours):
    """Bytes in tensors, and of each line of the program by what it asked for itself."""
    done = subprocess.run([analyze, "flame", "--at", at, path], capture_output=True, text=True)
    lines, total = collections.Counter(), 0
    for row in done.stdout.splitlines():
        frames, size = row.rsplit(" ", 1)
        if not frames.startswith("PyTorch tensors"):
            continue
        total += int(size)
        named = [frame.split(" ")[0] for frame in frames.split(";") if frame.split(" ")[0] in ours]
        lines[named[-1] if named else None] += int(size)
    return total, lines, done.stderr


def main():
    analyze, folder = sys.argv[1:]
    sys.path.insert(0, folder)
    import oracle
    wrong = 0
    for path in sorted(glob.glob(os.path.join(folder, "*.pickle.xz"))):
        snapshot = oracle.load(path)
        used = [d for d, events in enumerate(snapshot["device_traces"]) if len(events) >= 10]
        if len(used) != 1 or "time_us" not in snapshot["device_traces"][used[0]][0]:
            print(f"{os.path.basename(path)}: {len(used)} devices with a window, or no times", flush=True)
            continue
        segments, events, series = oracle.walk(snapshot, used[0])
        if min(series)[1] < 0:
            print(f"{os.path.basename(path)}: its events do not lead to its end", flush=True)
            continue
        course = [active for _, active in series[1:]]
        blocks = [block for segment in segments for block in segment["blocks"]]
        ours = {oracle.line([frame]) for one in events + blocks for frame in one.get("frames") or []}
        points, missing = turns(course, PART * max(course)), []
        for at in points:
            while at + 1 < len(events) and events[at + 1]["time_us"] == events[at]["time_us"]:
                at += 1  # the last event of this microsecond
            when = f"{(events[at]['time_us'] - events[0]['time_us'] + 0.9) / 1e6:.7f}" if at + 1 < len(events) else "end"
            total, lines, said = told(analyze, path, when, ours)
            if total != course[at]:
                missing.append(f"event {at}: {total} instead of {course[at]} {said.strip()}")
            for line, size in oracle.held_at(segments, events, at + 1).items():
                if line and ":" in line and size > PART * max(course) and lines[line] != size:
                    missing.append(f"event {at}: {line} has {lines[line]} instead of {size}")
        print(f"{os.path.basename(path)}: {len(points)} turning points, " + ("equal" if not missing else "; ".join(missing[:4])), flush=True)
        wrong += bool(missing)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
