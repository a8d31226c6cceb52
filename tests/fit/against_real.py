#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares our engine with PyTorch's real allocators, over random programs, settings and capacities.

    against_real.py REPLAY                       against the answers in golden/, which need no PyTorch
    against_real.py REPLAY --wheels [FOLDER] [-n N] [--first SEED] [--write] [RELEASE...]

FOLDER holds what scripts/torch-venv fetched.  There are N programs of each of five kinds (ops.h): plain, with private pools, with
those and changing settings, with graphs, with MemPools and two graphs at once.  --write renews golden/.  Prints one line for each release;
exits 1 where an answer differs, 77 (skipped) where the folder has no release.  Releases whose results do not depend on addresses are also run with
falling instead of rising ones.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import torch_venv  # noqa: E402

KINDS = [kind << 20 for kind in range(5)]  # the first seed of each kind
BY_AGE = (2, 12)  # from this release on results do not depend on where cudaMalloc puts segments


def number(release):
    return tuple(int(part) for part in release.split("."))


def settings(choose, release):
    new = number(release) >= (2, 14)
    parts, fraction = [], 0
    if choose.random() < 0.3:
        parts.append("expandable_segments:True")
    if choose.random() < 0.35:
        parts.append(f"max_split_size_mb:{choose.choice([32, 64, 128, 256] if new else [21, 32, 64, 128, 256])}")
    if number(release) >= (2, 6) and choose.random() < 0.15:
        parts.append(f"max_non_split_rounding_mb:{choose.choice([40, 100])}")
    if new and choose.random() < 0.15:
        parts.append(f"large_segment_size_mb:{choose.choice([20, 21, 32])}")
    if new and choose.random() < 0.1:
        parts.append("throw_on_cudamalloc_oom:True")
    if choose.random() < 0.3:
        parts.append("roundup_power2_divisions:" + choose.choice(
            ["1", "2", "4", "8", "16", "[256:1,512:2,1024:4,>:8]", "[1:4,16:8,>:2]", "[64:8]", "[2:2,8:4,>:16]"]))
    if choose.random() < 0.3:
        fraction = choose.choice([0.5, 0.8, 0.9, 0.95, 1])
        if choose.random() < 0.7:
            parts.append(f"garbage_collection_threshold:{choose.choice([0.5, 0.6, 0.8, 0.9])}")
    elif choose.random() < 0.1:
        parts.append("garbage_collection_threshold:0.8")
    return fraction, ",".join(parts) or "-"


def configurations(release, first, count):
    choose = random.Random(f"{release} {first}")
    for seed in range(first, first + count):
        fraction, text = settings(choose, release)
        capacity = choose.choice([100000] + [int(2 ** choose.uniform(8, 12.5)) // 2 * 2 for _ in range(4)])
        yield f"{seed} {capacity} {fraction} {text}"


def ask(command, lines, **environment):
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True,
                          env={**os.environ, "TORCH_CPP_LOG_LEVEL": "ERROR", **environment})
    answers = done.stdout.splitlines()
    if len(answers) != len(lines):
        sys.exit(f"{command}: {len(answers)} answers to {len(lines)} questions\n{done.stderr[-2000:]}")
    return answers


def compare(release, lines, real, ours, what=""):
    died = sum(answer.startswith("died") for answer in real)
    corrupt = sum(answer.startswith("corrupt") for answer in ours)  # a change of settings can make PyTorch free memory in use
    wrong = [item for item in zip(lines, real, ours) if item[1] != item[2] and not item[1].startswith("died") and not item[2].startswith("corrupt")]
    for line, theirs, mine in wrong[:5]:
        print(f"{line}\n  real {theirs}\n  ours {mine}")
    print(f"{release}{what}: {len(lines)} configurations, {sum(not a.startswith('-1 ') for a in real)} out of memory, "
          f"{sum(a.split()[-3] != '0' for a in real if not a.startswith('died'))} with retries, {died} died, {corrupt} corrupt, "
          f"{len(wrong)} different", flush=True)
    return len(wrong)


def build(folder):
    """Build the oracle, and from fake.c all the libraries that libc10_cuda.so needs."""
    cc, cxx = os.environ.get("CC", "cc").split(), os.environ.get("CXX", "c++").split()

    def run(*command, **more):
        subprocess.run(command, check=True, cwd=folder, text=True, **more)

    run(*cc, "-w", "-shared", "-fPIC", "-O2", "-o", "libfake.so", str(HERE / "fake.c"))
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.12", "libcudart.so.13"):
        Path(folder, "map").write_text(f"{name} {{ global: marker; }};")
        script = ["-Wl,--version-script,map"] if "cudart" in name else []
        run(*cc, "-x", "c", "-", "-x", "none", "-shared", "-fPIC", "-o", name, f"-Wl,-soname,{name}", *script, "-L.",
            "-Wl,--no-as-needed", "-lfake", input="int marker;\n")
    run(*cxx, "-O2", "-o", "oracle", str(HERE / "oracle.cpp"), "-L.", "-lfake", "-ldl")


def golden(replay):
    wrong = 0
    for path in sorted((HERE / "golden").glob("*.txt"), key=lambda path: number(path.stem)):
        pairs = [line.split(" = ") for line in path.read_text().splitlines()]
        wrong += compare(path.stem, [p[0] for p in pairs], [p[1] for p in pairs], ask([replay, path.stem], [p[0] for p in pairs]))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("replay")
    parser.add_argument("--wheels", type=Path, nargs="?", const=Path(torch_venv.CACHE, "torch-allocators"))
    parser.add_argument("-n", type=int, default=25)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("releases", nargs="*")
    args = parser.parse_intermixed_args()
    if not args.wheels:
        return golden(args.replay) != 0
    found = {".".join(path.parent.parent.parent.name.split(".")[:2]): path.parent
             for path in args.wheels.glob("*/torch/lib/libc10_cuda.so")}
    if not found or not shutil.which(os.environ.get("CXX", "c++").split()[0]):
        print(f"skipped: no libc10_cuda.so below {args.wheels} (scripts/torch-venv fetches them), or no C++ compiler")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        for release in args.releases or sorted(found, key=number):
            # before 2.3 a pool belonged to a stream, and before 2.6 a MemPool had no destructor
            kinds = KINDS if number(release) >= (2, 6) else KINDS[:4] if number(release) >= (2, 3) else KINDS[:1]
            lines = [line for kind in kinds for line in configurations(release, kind + args.first, args.n)]
            oracle = [f"{folder}/oracle", str(found[release]), release]
            real = ask(oracle, lines, LD_LIBRARY_PATH=folder)
            wrong += compare(release, lines, real, ask([args.replay, release], lines))
            if number(release) >= BY_AGE:
                # except where one pool has segments of both sorts, since the program changed settings
                pairs = [(line, answer) for line, answer in zip(lines, real) if int(line.split()[0]) // KINDS[1] != 2]
                lines_left, real_left = zip(*pairs)
                wrong += compare(release, lines_left, ask(oracle, lines_left, LD_LIBRARY_PATH=folder, DESCENDING="1"), real_left,
                                 ", falling addresses")
            if args.write:
                (HERE / "golden").mkdir(exist_ok=True)
                (HERE / "golden" / f"{release}.txt").write_text("".join(f"{l} = {a}\n" for l, a in zip(lines, real)))
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
