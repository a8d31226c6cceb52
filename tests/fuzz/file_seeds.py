#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""file_seeds.py FOLDER ANALYZE [ROUNDS FUZZ_FILES FUZZ_STORES]: writes inputs for each target of the two programs to FOLDER/TARGET and runs the
targets over them for ROUNDS; without ROUNDS it adds the content of small golden traces."""
import glob
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
import traces as t  # noqa: E402
import msgpack  # noqa: E402
import zstandard  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "traces")
SLOW = {"reports": 6, "summaries": 6, "exports": 2}  # a round takes so many times as long as in other targets
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../analyzer/exports/list.c")) as rows:
    FORMATS = len(re.findall(r"\bE\(\w+\)", rows.read()))
SETTINGS = b"""# limits\n[check]\nmax-peak = 20GiB\nmax-growth = 1M/step_#\nbaseline = base.json\ntolerance = 5%\nno-oom = yes
fits = 24G\nfail-on = critical\nstrict = no\n[watch]\nrule = used > 90% for 5s => message\nrule = full-in < 10min => command x
rule = growth > 1G/hour => command echo\nrule = unlike >= 3.5 => bundle d\n[check]\nx = y\n"""
SUPPRESSIONS = b"# meant\nleak:libfoo.so\nleak:^train.py*forward$\nleak:a*a*a*a*b\n"
BASELINE = b"""{"schema": "stormlog.baseline", "schema_version": 1, "total": {"peak": {"bytes": 4096, "what": "peak"}}, "library": {},
"stack": {"00ff": {"bytes": 7, "what": "train.py:3 f"}}, "leak": {}, "label": {"step_#": {"bytes": 1}}, "growth": {"step_#": {"bytes": null}}}"""
BUNDLE = b"""{"schema_version": 1, "bundle_name": "oom_dump_1", "reason": "oom", "event_count": 1, "files": ["events.json"]}\n=\n[{"timestamp_ns": 5,
"event_type": "alloc", "device_id": 0, "allocated_bytes": 7, "context": "x"}]\n=\n{"exception_type": "OutOfMemoryError"}\n=\n{"python": "3.11"}
\n=\n[{"address": "0x10", "bytes": 4096, "stack": ["a", "b"]}]"""


QUERIES = [b"(project:train or branch=main) and not status:failed peak>1.5GiB when>-7d", b"function:for* -label=step_# place:\"a b\" leak<=0 commit=?",
           b"session:x rank:3 bundle=1 when:2026-11-22 oom>=1\n=\ntext=it+grew%21%0a&at=5"]
CARD = b"""{"identity": "id2", "run_id": "r", "project": "p", "branch": "main", "commit": "3f", "when": 1790000000000000000, "peak": 1073741824, "metadata": {},
"metrics": [{"of": "stack", "key": "00ff", "what": "train.py:3 forward", "bytes": 4096}], "names": [{"kind": "function", "text": "forward"}],
"sessions": [{"id": "s", "host": "h", "status": "completed", "pid": 1, "rank": 0, "bundle": true}]}"""
TOKENS = b"ci w %s\nme r %s\n=\nsecret" % (b"a" * 64, b"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b")
VARIABLES = b"traces\n1GiB\n30\n1\nauto\nyes\nsecret=*\n0\npython,native\n" * 6
POOLS = [["PJRT_Client_BufferFromHostBuffer", "BLOCK_ALLOC", "block"], ["PJRT_Buffer_Destroy", "BLOCK_FREE", "block"],
         ["PJRT_Client_Compile", "NAME", "none"], ["BFCAllocator::AllocateRaw", "BLOCK_ALLOC", "block"], ["BFCAllocator::DeallocateRaw", "BLOCK_FREE", "block"],
         ["BFCAllocator::Extend", "BLOCK_DROP", "none"]]


def pools():
    """Pools like those of JAX's plugins, TensorFlow and ggml: segments, named blocks with shapes, parts of these, a failure."""
    verbs = t.VERBS + ["BLOCK_WAIT", "BLOCK_DONE", "BLOCK_DROP"]
    hooks = t.HOOKS + [[name, verbs.index(verb), t.KIND[kind], len(t.FAMILIES)] for name, verb, kind in POOLS]
    host, gone, named, raw, back, drop = range(len(t.HOOKS) + 1, len(hooks) + 1)
    texts = ["host f32[1024,1024]{1,0}", "jit_train_step.7 bf16[8,4096,?]", "gradients/dense/MatMul_grad:0", "CUDA0 weights", "s32[]", "jit(step)/while/body"]
    maps = [{"def": "text", "id": i + 1, "text": text} for i, text in enumerate(texts)]
    maps += [{"def": "device", "device": 0, "name": "GPU", "ns": t.T0}, {"def": "thread", "id": 1, "tid": 7, "name": "main", "ns": t.T0}]
    mib = 1 << 20
    api = [t.MALLOC, host, host, named, raw, raw, back, gone, named, raw, drop, t.FREE]
    events = t.Thread().events(len(api), api=api, kind=[1, 10, 10, 0, 10, 10, 10, 10, 0, 10, 0, 11], duration_ns=2,
                               address=[mib, 5, 6, mib, mib, mib + 4096, mib, 5, mib + 8192, mib + 16384, mib, mib],
                               bytes=[64 * mib, 4 * mib, 100, 0, 4096, 8192, 4096, 4 * mib, 4096, 1 << 40, 64 * mib, 0],
                               extra=[0, 4 * mib, 4 * mib + 100, 0, 0, 0, 0, 0, 0, 0, 0, 0], extra2=64 * mib,
                               result=[0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0], label=[0, 1, 2, 4, 3, 5, 3, 1, 6, 3, 0, 0])
    names = dict(verbs=[[verb, "before" if verb in t.BEFORE | {"BLOCK_DROP"} else "after"] for verb in verbs], hooks=hooks)
    return t.header(families=t.FAMILIES + [["pool", 0]], **names) + t.defs(maps) + events + t.footer()


def trace():
    maps = [{"def": "frame", "id": 1, "function": "forward", "file": "/home/u/train.py", "line": 3},
            {"def": "python_stack", "id": 1, "frames": [1]}, {"def": "text", "id": 1, "text": "step_# x"},
            {"def": "module", "base": 1 << 20, "end": 2 << 20, "path": "/lib/x.so", "build_id": "aa", "ns": t.T0},
            {"def": "native_stack", "id": 1, "pcs": struct.pack("<2Q", (1 << 20) + 8, (1 << 20) + 64)},
            {"def": "thread", "id": 1, "tid": 7, "name": "main", "ns": t.T0}, {"def": "device", "device": 0, "name": "GPU", "ns": t.T0},
            {"def": "sample", "ns": t.T0 + 5, "begin_ns": t.T0, "device": 0, "free_bytes": 1, "total_bytes": 9, "used_bytes": 8, "processes": [[7, 8]]},
            {"def": "communicator", "handle": 1, "rank": 0, "world_size": 1, "device": 0, "name": "c", "ns": t.T0}]
    events = t.Thread().events(7, api=[t.PUSH, t.MALLOC, t.TORCH_ALLOC, t.MALLOC, t.TORCH_FREE, t.FREE, t.POP], kind=[0, 1, 10, 1, 10, 11, 0],
                               duration_ns=3, address=[0, 4096, 8192, 1 << 20, 8192, 4096, 0], bytes=[0, 4096, 512, 1 << 21, 512, 0, 0],
                               result=[0, 0, 0, 2, 0, 0, 0], python=1, native=1, label=[1, 0, 0, 0, 0, 0, 1])
    return t.header() + t.defs(maps) + events + t.footer(), maps


def contents(bytes_):
    at, parts = 0, []
    while at < len(bytes_):
        _, _, kind, thread, _, _, _, size, *_ = t.INDEX.unpack_from(bytes_, at)
        content = zstandard.ZstdDecompressor().decompressobj().decompress(bytes_[at + t.INDEX.size:at + t.INDEX.size + size])
        parts.append(struct.pack("<BBI", kind, thread, len(content)) + content)
        at += t.INDEX.size + size
    return b"".join(parts)


def ring(maps):
    whole = t.ring("/x/rank-00000-1.msgpack.zst", b"".join(t.record(t.packed(one)) for one in maps))
    table, header, segment = 16 + 16 + 16 + 40 + 16 + 24 + 256 + 512, 64 << 10, 256 << 10
    inside = whole[header:header + 4096].rstrip(b"\0")
    return struct.pack("<HHH", table, 512, len(inside)) + whole[:table] + whole[table:table + 512] + inside + whole[segment:segment + 4096]


def summary(path):
    """The content of a summary's frames: the index, then what processes have in common, and processes."""
    with open(path, "rb") as file:
        left, parts = file.read()[24:], []  # behind the stamp
    while left:
        one = zstandard.ZstdDecompressor().decompressobj()
        parts.append(one.decompress(left))
        left = one.unused_data
    commons = len(msgpack.unpackb(parts[0], strict_map_key=False).get("commons", []))
    return [bytes([255]) + parts[0], *(b"".join(struct.pack("<BI", i < commons, len(part)) + part for i, part in enumerate(some))
                                       for some in (parts[1:], [without_lists(part) for part in parts[1:]], [endless(part) for part in parts[1:]]))]


def without_lists(part):
    def emptied(value):
        if isinstance(value, dict):
            return {key: emptied(one) for key, one in value.items()}
        return [] if isinstance(value, list) else value[:1] if isinstance(value, bytes) else value  # bytes: a width, then numbers of that width
    return msgpack.packb(emptied(msgpack.unpackb(part, strict_map_key=False)))


def endless(part):
    """Lists as long as a number can say, of which no column fits."""
    def lengthened(value):
        if isinstance(value, dict):
            return {key: 2 ** 64 - 1 if key == "length" else 0 if "length" in value else lengthened(inner) for key, inner in value.items()}
        return [lengthened(inner) for inner in value] if isinstance(value, list) else value
    return msgpack.packb(lengthened(msgpack.unpackb(part, strict_map_key=False)))


def summaries(analyze, *traces):
    """The smallest parts of the summaries that the analyzer makes of these traces."""
    with tempfile.TemporaryDirectory(prefix="stormlog-fuzz-") as folder:
        seeds = []
        for i, one in enumerate(traces):
            t.write(os.path.join(folder, str(i), "rank-00000-1.msgpack.zst"), one)
            out = os.path.join(folder, "%d.summary" % i)
            subprocess.run([analyze, "summarize", os.path.join(folder, str(i)), "-o", out, "--quiet"], check=True)
            seeds += summary(out)
    return seeds


def catalogue(analyze, whole):
    with tempfile.TemporaryDirectory(prefix="stormlog-fuzz-") as folder:
        t.write(os.path.join(folder, "t", "rank-00000-1.msgpack.zst"), whole)
        path = os.path.join(folder, "c.sqlite")
        subprocess.run([analyze, "runs", "--catalogue", path, os.path.join(folder, "t")], check=True, stdout=subprocess.DEVNULL)
        with open(path, "rb") as file:
            return file.read()


def members(bytes_):
    name = b"rank-00000-1.msgpack.zst"
    return struct.pack("<I", len(name)) + name + struct.pack("<Q", len(bytes_)) + bytes_ + struct.pack("<I", 0)


def main(folder, analyze, rounds="0", files=None, stores=None):
    whole, maps = trace()
    arrays = pools()
    both = [contents(whole), contents(arrays)]
    seeds = {"exports": [bytes([i]) + one for i in range(FORMATS) for one in both], "redact": both, "reports": both, "rings": [ring(maps)],
             "summaries": summaries(analyze, whole, arrays), "frames": both, "queries": QUERIES, "cards": [CARD], "catalogues": [catalogue(analyze, whole)],
             "tokens": [TOKENS], "variables": [VARIABLES],
             "packs": [members(whole)], "bundles": [BUNDLE], "settings": [SETTINGS], "suppressions": [SUPPRESSIONS], "baselines": [BASELINE]}
    of = dict.fromkeys(seeds, files)
    of.update(dict.fromkeys(("queries", "cards", "catalogues", "tokens", "variables"), stores), frames=None)
    for path in [] if files else glob.glob(os.path.join(GOLDEN, "*", "rank-*.msgpack.zst")):
        with open(path, "rb") as file:
            golden = contents(file.read()).replace(b"/lib", b"/lab")  # each run would read libraries that exist
        seeds["redact"].append(golden[:60000])
        seeds["reports"].append(golden[:60000])
        seeds["exports"] += [bytes([i]) + golden[:60000] for i in range(FORMATS)]
    folder = folder or tempfile.mkdtemp(prefix="stormlog-fuzz-")
    for target, each in seeds.items():
        paths = [t.write(os.path.join(folder, target, "seed%d" % i), seed) for i, seed in enumerate(each)]
        if not of[target]:
            continue
        done = subprocess.run([of[target], str(int(rounds) // len(paths) // SLOW.get(target, 1)), *paths], env=dict(os.environ, FUZZ=target), timeout=250)
        print(target, done.returncode)
        if done.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
