# SPDX-License-Identifier: MIT
"""A dry run of a command, and what it left."""
import json
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("STORMLOG_BUILD", os.path.join(HERE, "..", "..", "build")))
RUN = os.path.join(BUILD, "agent", "stormlog-run")
ANALYZE = os.path.join(BUILD, "analyzer", "stormlog-analyze")
APPS = os.path.join(BUILD, "tests", "apps")
FIRST = "DRY RUN on %s: no number was computed"
UNDER = "DRY RUN as %s: memory is the job's, no number was computed"  # below the title of an answer
# Allocates so many MiB at once, and says what the device had before and after.
ALLOCATE = """
import ctypes, sys
rt = ctypes.CDLL("libcudart.so.13")
free, total, at = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
rt.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
print(rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(%d << 20)), total.value, free.value)
"""


class Dry:
    """status, out, err of the command; screen: what stormlog-analyze printed; report, summary: report.json and summary.md."""

    def __init__(self, *command, card="h200", options=(), analyze=True, folder=None, keep=None, **environment):
        where, folder = folder, tempfile.mkdtemp(prefix="stormlog-dry-")
        traces = keep or os.path.join(folder, "traces")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "LD_", "SIM_"))}
        clean.update(environment)
        done = subprocess.run([RUN, "--dry=" + card, *options, "-o", traces, "--", *command], env=clean, cwd=where or folder,
                              capture_output=True, text=True)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.report, self.screen, self.summary = None, "", ""
        if analyze and os.path.isdir(traces):
            self.screen = subprocess.run([ANALYZE, traces], capture_output=True, text=True, env=clean).stdout
            with open(os.path.join(traces, "analysis", "report.json")) as file:
                self.report = json.load(file)
            with open(os.path.join(traces, "analysis", "summary.md")) as file:
                self.summary = file.read()
        shutil.rmtree(folder, ignore_errors=True)
