# SPDX-License-Identifier: MIT
"""Makes snapshots as torch.cuda.memory._dump_snapshot() writes them, from a program's requests and a small allocator of its own.

The allocator splits, joins and caches as PyTorch's does, and notes what it held and reserved after every event: that journal is the truth of the tests.  A window is
the same file with its first events cut off, as max_entries or a late _record_memory_history() leave it.
"""
import copy

SMALL, SMALL_SEGMENT, SEGMENT = 1 << 20, 2 << 20, 20 << 20


def frames(*lines, native=()):
    """Frames as stacks="all" has them, innermost first: C++ names, then lines of Python "file:line name"."""
    found = [{"name": name, "filename": "??", "line": 0} for name in native]
    for line in lines:
        place, name = line.split()
        file, number = place.split(":")
        found.append({"name": name, "filename": "/home/u/" + file, "line": int(number)})
    return found


class Allocator:
    """One device.  Blocks are [address, size, requested, held, frames]; a segment has a list of them."""

    def __init__(self, expandable=False, device=0):
        self.expandable, self.device, self.now = expandable, device, 1700000000000000
        self.segments, self.events, self.live = [], [], {}
        self.journal = [(0, 0)]  # reserved, requested after each event; the first is before all of them
        self.next = 0x7f0000000000 + (device << 40)
        self.requested = 0

    def note(self, action, addr, size, stack, **more):
        self.now += 7
        if action == "alloc":
            self.requested += size
        elif action == "free_completed":
            self.requested -= size
        self.events.append({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": self.now, "frames": stack or [], **more})
        self.journal.append((sum(s["size"] for s in self.segments), self.requested))

    def fitting(self, need, small):
        free = sorted(((b[1], b[0], s, b) for s in self.segments if s["small"] == small for b in s["blocks"] if not b[3] and b[1] >= need), key=lambda f: f[:2])
        if self.expandable:  # the last block can grow into what has no memory yet, and counts as that large
            grown = [size + (1 << 50) * (block is segment["blocks"][-1]) for size, _, segment, block in free]
            while len(free) > 1 and grown[1] < grown[0]:
                free, grown = free[1:], grown[1:]
        return free[0][2:] if free else None

    def segment(self, need, small, stack):
        if self.expandable:
            page = SMALL_SEGMENT if small else SEGMENT
            size = -(-need // page) * page
            segment = next((s for s in self.segments if s["small"] == small), None)
            if segment is None:
                segment = {"addr": self.next, "size": 0, "small": small, "blocks": [], "frames": stack}
                self.next += 1 << 34
                self.segments.append(segment)
            last = segment["blocks"][-1] if segment["blocks"] and not segment["blocks"][-1][3] else None
            size -= (last[1] // page * page if last else 0)
            at = segment["addr"] + segment["size"]
            segment["size"] += size
            segment["blocks"].append([at, size, 0, False, None])
            self.join(segment, len(segment["blocks"]) - 1)
            self.note("segment_map", at, size, stack)
            return
        size = SMALL_SEGMENT if small else SEGMENT if need < 10 << 20 else -(-need // SMALL_SEGMENT) * SMALL_SEGMENT
        segment = {"addr": self.next, "size": size, "small": small, "blocks": [[self.next, size, 0, False, None]], "frames": stack}
        self.next += -(-size // SMALL_SEGMENT) * SMALL_SEGMENT
        self.segments.append(segment)
        self.note("segment_alloc", segment["addr"], size, stack)

    @staticmethod
    def join(segment, at):
        blocks = segment["blocks"]
        for left in (at, at - 1):
            if 0 <= left and left + 1 < len(blocks) and not blocks[left][3] and not blocks[left + 1][3]:
                blocks[left][1] += blocks[left + 1][1]
                del blocks[left + 1]

    def alloc(self, size, stack=None):
        need = max(512, -(-size // 512) * 512)
        small = need <= SMALL
        found = self.fitting(need, small)
        while not found:
            self.segment(need, small, stack)
            found = self.fitting(need, small)
        segment, block = found
        left = block[1] - need
        if left >= 512 if small or self.expandable else left > SMALL:
            segment["blocks"].insert(segment["blocks"].index(block) + 1, [block[0] + need, left, 0, False, None])
            block[1] = need
        block[2:] = [size, True, stack]
        self.live[block[0]] = (segment, block)
        self.note("alloc", block[0], size, stack)
        return block[0]

    def free(self, addr, stack=None, between=None):
        """between: called after the free was requested, and before other streams are done with the block."""
        segment, block = self.live.pop(addr)
        self.note("free_requested", addr, block[2], stack)
        if between:
            between()
        self.note("free_completed", addr, block[2], stack)
        block[2:] = [0, False, None]
        self.join(segment, segment["blocks"].index(block))

    def empty_cache(self, stack=None):
        """stack: of the request that found no memory, and gave the cache back itself."""
        for segment in [s for s in self.segments if not self.expandable and len(s["blocks"]) == 1 and not s["blocks"][0][3]]:
            self.segments.remove(segment)
            self.note("segment_free", segment["addr"], segment["size"], stack or frames("train.py:99 main", native=("THCPModule_emptyCache(_object*, _object*)",)))

    def oom(self, size, free, stack=None):
        self.note("oom", 0, size, stack, device_free=free)
        del self.events[-1]["addr"]

    def dumped(self, drop=0):
        """(segments, events, journal) without the first `drop` events."""
        segments = []
        for s in self.segments:
            blocks = [{"address": b[0], "size": b[1], "requested_size": b[2], "state": "active_allocated" if b[3] else "inactive", "frames": b[4] or []} for b in s["blocks"]]
            for one in blocks:
                made = [i for i, e in enumerate(self.events) if e["action"] == "alloc" and e["addr"] == one["address"]]
                if one["state"] == "inactive" or not made or made[-1] < drop:
                    one["frames"] = []  # made while no history was recorded
            segments.append({"device": self.device, "address": s["addr"], "total_size": s["size"], "allocated_size": sum(b[1] for b in s["blocks"] if b[3]),
                             "active_size": sum(b[1] for b in s["blocks"] if b[3]), "requested_size": sum(b[2] for b in s["blocks"]), "stream": 0,
                             "segment_type": "small" if s["small"] else "large", "segment_pool_id": (0, 0), "is_expandable": self.expandable, "frames": s["frames"] or [],
                             "blocks": blocks})
        return segments, copy.deepcopy(self.events[drop:]), self.journal[drop:]


def snapshot(*devices, drop=0, conf="", annotations=None):
    """The dictionary, and the journal of each device."""
    parts = [d.dumped(drop) for d in devices]
    whole = {"segments": sum((p[0] for p in parts), []), "device_traces": [p[1] for p in parts],
             "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": conf, "max_split_size": -1, "garbage_collection_threshold": 0.0,
                                    "expandable_segments": "expandable_segments:True" in conf, "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}},
             "external_annotations": annotations or []}
    return whole, [p[2] for p in parts]


def old(whole):
    """As PyTorch 2.0 wrote it: blocks have neither address nor frames but a history, events no time."""
    whole = copy.deepcopy(whole)
    for segment in whole["segments"]:
        for key in ("segment_pool_id", "is_expandable", "frames"):
            del segment[key]
        for block in segment["blocks"]:
            addr, stack = block.pop("address"), block.pop("frames")
            if block["state"] != "inactive":
                block["history"] = [{"addr": addr, "real_size": block["requested_size"], "frames": stack}]
    for events in whole["device_traces"]:
        for event in events:
            del event["time_us"]
    del whole["allocator_settings"], whole["external_annotations"]
    return whole


def training(allocator, steps, layers=6, leak=0, at=("train.py:46 main",)):
    """A program: parameters, then steps of forward, backward and optimizer; the first step makes the optimizer's state.  It leaks at a line."""
    line = lambda n, name, *native: frames(f"model.py:{n} {name}", "train.py:40 step", "train.py:60 main", native=native)
    node = lambda name: frames(native=(f"torch::autograd::generated::{name}::apply(std::vector<at::Tensor>&&)", "torch::autograd::Engine::evaluate_function()"))
    params = [allocator.alloc(3000000 + 4096 * i, frames(f"model.py:{10 + i} __init__", "train.py:5 main")) for i in range(layers)]
    state, kept = [], []
    for step in range(steps):
        held = [allocator.alloc(700000, frames("train.py:41 main"))]
        for i in range(layers):
            held.append(allocator.alloc(1500000 + 512 * i, frames("model.py:30 forward", "train.py:42 main")))
            temporary = allocator.alloc(99999, frames("model.py:31 forward", "train.py:42 main"))
            allocator.free(temporary)
        held.append(allocator.alloc(40000, frames("train.py:43 main")))
        grads = []
        for i in reversed(range(layers)):
            grads.append(allocator.alloc(3000000 + 4096 * i, node("MmBackward0")))
            allocator.free(held.pop(1 + i), node("MmBackward0"))
        if not state:
            for i in range(layers):
                state.append(allocator.alloc(3000000 + 4096 * i, frames("adam.py:12 init_group", "train.py:45 main")))
        for _ in range(layers):
            temporary = allocator.alloc(3000000, frames("adam.py:20 update", "train.py:45 main"))
            allocator.free(temporary)
        if leak:
            kept.append(allocator.alloc(leak, frames(*at)))
        for addr in grads + held:
            allocator.free(addr)
    return params, state, kept
