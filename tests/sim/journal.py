#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the simulator's journals and counts their calls and memory as report.json does.

    journal.py DIR [--json]

    for process in journal.load(DIR):        # one Process per process image
        process.pid, process.memory, process.apis, process.in_flight, process.calls, process.effects

`memory` is {(kind, device): Row}; device is None for host memory. `apis` is {name: Api} under the names an application
used: a runtime's own driver calls do not count, those of a static (embedded) runtime do, without version suffix.
Standard library only.
"""
import argparse
import functools
import glob
import json
import os
import re
import struct
import sys
from dataclasses import asdict, dataclass, field

KINDS = [None, 'device', 'pool', 'managed', 'vmm', 'array', 'graph', 'imported', 'host_pinned', 'host_registered']
QUIET, ALLOC, FREE, OTHER = range(4)
DRIVER, RUNTIME, EMBEDDED = range(3)
ENTERED, RETURNED, EFFECT = 1, 2, 3
EFFECTS = {1: 'alloc', 2: 'free', 3: 'implicit'}
HEADER = struct.Struct('<8sIIIIiiQQQI')
RECORD = struct.Struct('<IIHBBBBHiiQQQQQQQ')


@dataclass
class Call:
    number: int
    thread: int
    api: str
    level: int
    verb: int
    kind: str
    device: int
    result: int  # None while in flight
    entered_ns: int
    returned_ns: int
    address: int
    bytes: int
    other: int
    parent: int
    effects: list = field(default_factory=list)
    application: bool = False  # made by the program, not by a runtime beneath it

    @property
    def in_flight(self):
        return self.result is None


@dataclass
class Effect:
    number: int
    thread: int
    what: str  # alloc, free, implicit
    kind: str
    device: int
    address: int
    bytes: int
    time_ns: int
    parent: int


@dataclass
class Row:
    allocations: int = 0
    frees: int = 0
    failed_allocations: int = 0
    implicit_frees: int = 0
    allocated_bytes: int = 0
    live_blocks: int = 0
    live_bytes: int = 0
    peak_bytes: int = 0
    peak_at_ns: int = 0


@dataclass
class Api:
    calls: int = 0
    failures: int = 0


@functools.lru_cache(None)
def family(name):
    """A call nested in another merges into it only where both are of one family (report.json's rule)."""
    if re.match(r'cuInit|cuDevicePrimaryCtx|cuCtx(Create|Destroy|Attach|Detach)|cuGreenCtx|cu(da)?(ThreadExit|Device(Reset|SetLimit)|'
                r'SetDevice|InitDevice|CtxSetLimit)|hip(Init|SetDevice|DeviceReset)', name):
        return 'context'
    return 'module' if re.match(r'cu(da)?(Module|Library|Kernel|Launch)', name) else 'memory'


@functools.lru_cache(None)
def plain(name):
    """cuMemAlloc_v2_ptsz -> cuMemAlloc: the name of a driver call in report.json."""
    return re.sub(r'(_v\d+)?(_pt[sd][sz])?$', '', name) if name.startswith('cu') and not name.startswith('cuda') else name


class Process:
    def __init__(self, path):
        self.path = path
        self.calls, self.effects, self.torn = [], [], 0
        with open(path, 'rb') as f:
            self._read(f.read())
        self._attribute()
        self._count()

    def _read(self, data):
        (magic, self.version, size, start, name_size, self.pid, self.parent_pid, self.started_ns,
         self.started_unix_ns, records, names) = HEADER.unpack_from(data)
        if magic.rstrip(b'\0') != b'SIMJRNL':
            raise ValueError(f'{self.path}: not a journal of the simulator')
        table = [data[256 + i * name_size:256 + (i + 1) * name_size].split(b'\0')[0].decode() for i in range(names)]
        for n in range(records):
            at = start + n * size
            if at + size > len(data):
                self.torn += 1
                continue
            (state, thread, api, level, verb, kind, effect, _, result, device, entered, returned, address, nbytes,
             other, parent, _) = RECORD.unpack_from(data, at)
            device = None if device < 0 else device
            if state == EFFECT:
                self.effects.append(Effect(n + 1, thread, EFFECTS[effect], KINDS[kind], device, address, nbytes, entered,
                                           parent))
            elif state in (ENTERED, RETURNED):
                self.calls.append(Call(n + 1, thread, table[api], level, verb, KINDS[kind], device,
                                       result if state == RETURNED else None, entered, returned, address, nbytes, other,
                                       parent))
            else:
                self.torn += 1  # claimed and then killed

    def _attribute(self):
        by_number = {c.number: c for c in self.calls}
        for c in self.calls:
            # A tracer cannot see calls of a static runtime by name: the driver calls below them count as the application's.
            above = by_number.get(c.parent)
            while above and above.level == EMBEDDED:
                above = by_number.get(above.parent)
            c.outer = above
            while above and family(above.api) != family(c.api):
                above = by_number.get(above.parent)
            below_hip = c.outer and c.outer.api.startswith(('hip', 'hsa')) and c.api.startswith('cu')  # a call inside the simulator
            c.application = c.level != EMBEDDED and not below_hip and (not above or above.level == EMBEDDED)
        # Kind and device are those of the driver's allocation inside a runtime's call.
        self._inside = {c.outer.number: c for c in self.calls if c.outer and c.verb == ALLOC}
        for e in self.effects:
            call = by_number.get(e.parent)
            if call:
                call.effects.append(e)

    def _count(self):
        self.memory, self.apis, live = {}, {}, {}
        self.live = live  # (space, address) -> Effect
        self.errors = []
        for e in self.effects:
            row = self.memory.setdefault((e.kind, e.device), Row())
            if e.what == 'alloc':
                if e.address in live:
                    self.errors.append(f'{e.address:#x} given twice (record {e.number})')
                live[e.address] = e
                row.allocations += 1
                row.allocated_bytes += e.bytes
                row.live_bytes += e.bytes
                row.live_blocks += 1
                if row.live_bytes > row.peak_bytes:
                    row.peak_bytes, row.peak_at_ns = row.live_bytes, e.time_ns
                continue
            if live.pop(e.address, None) is None:
                self.errors.append(f'{e.address:#x} freed but not live (record {e.number})')
            row.live_bytes -= e.bytes
            row.live_blocks -= 1
            if e.what == 'free':
                row.frees += 1
            else:
                row.implicit_frees += 1
        for c in self.calls:
            if not c.application:
                continue
            if c.in_flight:
                continue
            api = self.apis.setdefault(plain(c.api), Api())
            api.calls += 1
            api.failures += c.result != 0
            inner = self._inside.get(c.number)
            if c.result != 0 and (c.verb == ALLOC or inner):
                self.memory.setdefault(self._row_of(inner or c), Row()).failed_allocations += 1

    @staticmethod
    def _row_of(call):
        """Kind and device a failed call was for; no device without a context."""
        return call.kind, None if call.kind in ('host_pinned', 'host_registered') else call.device

    @property
    def in_flight(self):
        return [c for c in self.calls if c.in_flight and c.application]

    def as_dict(self):
        return {
            'pid': self.pid, 'parent_pid': self.parent_pid, 'path': os.path.basename(self.path),
            'memory': [{'kind': k, 'device': d, **asdict(r)}
                       for (k, d), r in sorted(self.memory.items(), key=lambda i: (i[0][0], i[0][1] is not None, i[0][1] or 0))],
            'apis': [{'api': n, **asdict(a)} for n, a in sorted(self.apis.items())],
            'in_flight': [{'api': c.api, 'bytes': c.bytes, 'thread': c.thread} for c in self.in_flight],
            'torn_records': self.torn, 'errors': self.errors,
        }


def begun(path):
    """The magic is written last: without it the process was killed before its first call."""
    with open(path, 'rb') as f:
        return any(f.read(8))


def load(folder):
    """Every process image with a journal in the folder, oldest first."""
    found = [Process(p) for p in glob.glob(os.path.join(folder, 'journal-*.bin')) if begun(p)]
    return sorted(found, key=lambda p: p.started_ns)


def main():
    parser = argparse.ArgumentParser(description='print the journals of the simulated GPU')
    parser.add_argument('folder')
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    processes = load(args.folder)
    if args.json:
        json.dump([p.as_dict() for p in processes], sys.stdout, indent=1)
        print()
        return
    for p in processes:
        print(f'process {p.pid} (parent {p.parent_pid}): {len(p.calls)} calls, {len(p.effects)} effects')
        for (kind, device), r in p.memory.items():
            print(f'  {kind} {device}: {r.allocations} allocated, {r.frees} freed, {r.implicit_frees} implicit, '
                  f'{r.failed_allocations} failed, live {r.live_blocks} blocks {r.live_bytes} bytes, peak {r.peak_bytes}')
        for name, a in sorted(p.apis.items()):
            print(f'  {name}: {a.calls} calls, {a.failures} failed')
        for c in p.in_flight:
            print(f'  in flight: {c.api}({c.bytes})')
        for error in p.errors:
            print(f'  ERROR {error}')


if __name__ == '__main__':
    main()
