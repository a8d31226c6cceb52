#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""telemetry_seeds.py GOLDEN FOLDER: Stormlog's golden files of at most 64 KiB as inputs of fuzz_telemetry."""
import os
import sys

KINDS = [".jsonl", ".json", ".csv"]
for place, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(place, name)
        kind = os.path.splitext(name)[1]
        if kind not in KINDS or name.endswith(".expected.json") or os.path.getsize(path) > 65536:
            continue
        with open(path, "rb") as file, open(os.path.join(sys.argv[2], os.path.relpath(path, sys.argv[1]).replace(os.sep, "-")), "wb") as seed:
            seed.write(bytes([KINDS.index(kind)]) + file.read())
