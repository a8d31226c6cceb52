# SPDX-License-Identifier: MIT
"""Makes an out-of-memory error, to try the bundle: python -m stormlog_native.stress [--mode simulated|stress] [--max-total-mb N] [--step-mb N]

stress allocates with the CUDA or HIP runtime, without a framework, until a call fails or the bound is reached; simulated allocates one
step and raises the error itself.  Both print the bundle's path.  Run it under stormlog-run."""
from __future__ import annotations

import argparse
import ctypes
import sys
from typing import List, Optional

from . import agent
from .tracker import MemoryTracker

RUNTIMES = (("libcudart.so.13", "cuda"), ("libcudart.so.12", "cuda"), ("libcudart.so.11.0", "cuda"), ("libcudart.so", "cuda"),
            ("libamdhip64.so.7", "hip"), ("libamdhip64.so.6", "hip"), ("libamdhip64.so.5", "hip"))


def _allocator() -> "tuple[ctypes.CDLL, str]":
    for name, prefix in RUNTIMES:
        try:
            return ctypes.CDLL(name), prefix
        except OSError:
            pass
    raise SystemExit("stress: no CUDA or HIP runtime to ask")


def fill(max_total_mb: int, step_mb: int) -> None:
    library, prefix = _allocator()
    take, give = getattr(library, prefix + "Malloc"), getattr(library, prefix + "Free")
    blocks: List[ctypes.c_void_p] = []
    try:
        while (len(blocks) + 1) * step_mb <= max_total_mb:
            block = ctypes.c_void_p()
            code = take(ctypes.byref(block), ctypes.c_size_t(step_mb << 20))
            if code:
                raise RuntimeError("out of memory: %sMalloc returned %d after %d MB" % (prefix, code, len(blocks) * step_mb))
            blocks.append(block)
    finally:
        for block in blocks:
            give(block)


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m stormlog_native.stress", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mode", choices=("simulated", "stress"), default="stress")
    parser.add_argument("--max-total-mb", type=int, default=8192)
    parser.add_argument("--step-mb", type=int, default=64)
    parser.add_argument("--oom-dump-dir", default="oom_dumps")
    options = parser.parse_args(argv)
    tracker = MemoryTracker(enable_oom_flight_recorder=True, oom_dump_dir=options.oom_dump_dir)
    tracker.start_tracking()
    try:
        with tracker.capture_oom("stress.%s" % options.mode, {"max_total_mb": options.max_total_mb, "step_mb": options.step_mb}):
            fill(options.step_mb if options.mode == "simulated" else options.max_total_mb, options.step_mb)
            if options.mode == "simulated":
                raise RuntimeError("simulated out of memory for demo")
    except RuntimeError as error:
        print("caught: %s" % error)
    finally:
        tracker.stop_tracking()
    if not agent.available():
        print("no bundle: " + agent.HOW_TO_START.replace("python train.py", parser.prog))
        return 1
    print("bundle: %s" % tracker.last_oom_dump_path)
    return 0 if tracker.last_oom_dump_path else 1


if __name__ == "__main__":
    sys.exit(main())
