#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cfi.c and readelf agree on every row of call frame information in the libraries at hand.

test_rules.py PROBE.so
"""
import ctypes
import platform
import re
import subprocess
import sys

NONE, BY_SP, BY_BP, END, SIGNAL = range(5)
KEPT = 0x8000
LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libcrypto.so.3", "libpython3.11.so.1.0")


def expected(columns, values, signal):
    row = dict(zip(columns, values))
    ra, cfa, bp = row.get("ra", "u"), row["CFA"], row.get("rbp", "u")
    if signal:
        return SIGNAL, 0, 0
    if ra == "u":
        return END, KEPT, 0
    found = re.fullmatch(r"(rsp|rbp)\+(\d+)", cfa)
    if not found or ra != "c-8" or row.get("rsp", "u") != "u":
        return NONE, 0, 0
    saved = re.fullmatch(r"c-(\d+)", bp)
    if bp not in ("u", "s") and not saved:
        return NONE, 0, 0
    return (BY_SP if found[1] == "rsp" else BY_BP), -int(saved[1]) & 0xFFFF if saved else KEPT, int(found[2])


def rows(path):
    """(address of a row, rule), of every FDE that has rows of its own."""
    text = subprocess.run(["readelf", "-wF", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    signals, columns, signal, inside = set(), [], False, False
    for line in text.splitlines():
        cie = re.match(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE \"(\w*)\"", line)
        fde = re.match(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        row = re.match(r"([0-9a-f]{16}) (.+)", line)
        if cie:
            inside = False
            signals |= {int(cie[1], 16)} if "S" in cie[2] else set()
        elif fde:
            inside, signal = int(fde[2], 16) < int(fde[3], 16), int(fde[1], 16) in signals
        elif line.startswith("   LOC"):
            columns = line.split()[1:]
        elif row and inside and not line[17:].startswith(("0", "1")):
            yield int(row[1], 16), expected(columns, re.sub(r" \(\w+\)", "", row[2]).split(), signal)


def after_calls(path):
    """Addresses that calls return to: elsewhere a frame may be found by a register that a call may change."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE).stdout.decode()
    return [int(at, 16) for at in re.findall(r"\tcall .*\n +([0-9a-f]+):", text)]


def base_of(path):
    with open("/proc/self/maps") as maps:
        return min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(path))


def main():
    if platform.machine() != "x86_64":
        print("SKIP: rules are for x86-64")
        return 77
    version = re.search(r"\) (\d+)\.(\d+)", subprocess.run(["readelf", "--version"], capture_output=True, text=True).stdout)
    if version and (int(version[1]), int(version[2])) < (2, 38):
        print("SKIP: this readelf forgets the rule of the CIE in rows of a function that changes it later")
        return 77
    probe = ctypes.CDLL(sys.argv[1])
    probe.probe_rule.restype = ctypes.c_uint64
    probe.probe_rule.argtypes = [ctypes.c_uint64]
    paths, returns, looked, simple, wrong = [], 0, 0, 0, []
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        with open("/proc/self/maps") as maps:
            paths.append(next(line.split()[-1] for line in maps if re.search(r"/%s[-.]" % re.escape(name.split(".so")[0]), line)))
    for path in paths[:3]:
        base = base_of(path)
        for address in after_calls(path):
            probe.probe_rule(base + address)
            returns += 1
    if probe.probe_lies():
        print("a table of these was taken for a lie:", paths)
        return 1
    for path in paths:
        base, last = base_of(path), {}
        for address, rule in rows(path):
            last[address] = rule  # of rows for the same address the last one holds
        for address, rule in last.items():
            got = probe.probe_rule(base + address + 1)
            kind, bp, cfa = got & 0xFF, got >> 16 & 0xFFFF, got >> 32
            looked += 1
            simple += kind != NONE
            if kind != rule[0] or (kind in (BY_SP, BY_BP) and (bp, cfa) != rule[1:]):
                wrong.append((path, hex(address), rule, (kind, bp, cfa)))
    print("%d rows, %d simple, %d wrong, after %d calls no lie" % (looked, simple, len(wrong), returns), wrong[:5])
    return bool(wrong) or looked < 1000 or simple < looked * 0.9 or returns < 1000


sys.exit(main())
