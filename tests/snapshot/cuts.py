#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cuts.py ANALYZE FILE...: how wrong is `fit` of a window?  FILEs are snapshots of whole histories, packed by xz or not.

Each is cut at 20 to 90 % of the events up to its peak.  The span of each cut is compared with the answer of the whole file, for each setting.
"""
import copy
import json
import lzma
import os
import pickle
import statistics
import subprocess
import sys
import tempfile

SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4", "expandable_segments:True,roundup_power2_divisions:4")
PARTS = (20, 30, 45, 60, 75, 90)


def load(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
        return pickle.load(file)


def fit(analyze, path):
    done = subprocess.run([analyze, "fit", "--json", *(word for text in SETTINGS for word in ("--settings", text)), path], capture_output=True, text=True)
    said = json.loads(done.stdout) if done.stdout else {"smallest": []}
    return {one["settings"]: (one["least_bytes"], one["always_from_bytes"]) for one in said["smallest"]}


def peak_of(events):
    held = most = at = 0
    for i, event in enumerate(events):
        held += {"alloc": event["size"], "free_completed": -event["size"]}.get(event["action"], 0)
        if held > most:
            most, at = held, i
    return at


def missed(true, span):
    """How much the whole file's answer, itself a span where the driver's placement is open, is above the cut's; below: less than 0; it is in it: 0."""
    return max(true[0] - span[1], 0) / true[0] - max(span[0] - true[1], 0) / true[1]


def main():
    analyze, *paths = sys.argv[1:]
    found = {text: [] for text in SETTINGS}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cut.pickle")
        for name in paths:
            whole = load(name)
            for events in whole["device_traces"][1:]:
                events.clear()
            events = whole["device_traces"][0]
            with open(path, "wb") as file:
                pickle.dump(whole, file)
            truth = fit(analyze, path)
            for part in PARTS:
                cut = copy.copy(whole)
                cut["device_traces"] = [events[peak_of(events) * part // 100:]]
                with open(path, "wb") as file:
                    pickle.dump(cut, file)
                spans = fit(analyze, path)
                for text in SETTINGS:
                    whole_span, span = truth.get(text, (None, None)), spans.get(text, (None, None))
                    if None in whole_span or None in span:
                        print(f"{os.path.basename(name)} {part} % {text or '(none)'}: no verdict", file=sys.stderr)
                        continue
                    found[text].append((whole_span, span))
                    if missed(whole_span, span):
                        print(f"{os.path.basename(name)} {part} % {text or '(none)'}: {whole_span} is not in {span}, {missed(whole_span, span):+.2%}", file=sys.stderr)
    print("| settings | holds the truth | median width | from 1 GiB on: median, widest | says fits, and it does not |\n|---|---|---|---|---|")
    for text, cuts in found.items():
        widths, large = [(high - low) / true for (true, _), (low, high) in cuts], [(high - low) / true for (true, _), (low, high) in cuts if true >= 1 << 30]
        if cuts:
            print(f"| {text or 'none'} | {sum(not missed(*cut) for cut in cuts)} of {len(cuts)} | {statistics.median(widths):.1%} "
                  f"| {statistics.median(large or [0]):.1%}, {max(large or [0]):.1%} | {sum(missed(*cut) > 0 for cut in cuts)} |")


if __name__ == "__main__":
    main()
