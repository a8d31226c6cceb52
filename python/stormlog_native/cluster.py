# SPDX-License-Identifier: MIT
"""The analysis of thousands of ranks on a Dask cluster: each task is `stormlog-analyze summarize --shard`, on the worker's own view of
the file system, and summaries are merged as a tree.  Summaries travel, traces do not.

    import stormlog_native
    from dask.distributed import Client
    report = stormlog_native.analyze("/scratch/run-7/traces", client=Client("scheduler:8786"))

A task reads traces, returns bytes and changes nothing, so another worker can repeat the task of a lost one."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any, List, Optional

from .errors import ConfigurationError, ProfilerError
from .recording import Report, child_environment, program, report

TOGETHER = 8  # summaries of one merge
AGAIN = 3  # retries, since a worker may have a full disk or a lost file system; then the user sees the error


def _summarize(arguments: List[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="stormlog-") as folder:
        path = os.path.join(folder, "part.summary")
        done = subprocess.run([program("stormlog-analyze"), "summarize", "-q", "-j", "1", *arguments, "-o", path.replace("%", "%%")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=child_environment())
        if done.returncode:
            raise ProfilerError("summarize on %s: exit status %d\n%s" % (
                os.uname().nodename, done.returncode, done.stderr.decode("utf-8", "replace")))
        with open(path, "rb") as file:
            return file.read()


def _part(path: str, part: int, parts: int) -> bytes:
    return _summarize(["--shard", "%d/%d" % (part, parts), path])


def _merge(*summaries: bytes) -> bytes:
    with tempfile.TemporaryDirectory(prefix="stormlog-") as folder:
        for i, summary in enumerate(summaries):
            with open(os.path.join(folder, "%d.summary" % i), "wb") as file:
                file.write(summary)
        return _summarize([folder])


def _tree(client: Any, path: str, parts: int) -> List[Any]:
    """All tasks; the last is the whole."""
    level = [client.submit(_part, path, i + 1, parts, pure=False, retries=AGAIN) for i in range(parts)]
    every = list(level)
    while len(level) > 1:
        level = [client.submit(_merge, *level[i:i + TOGETHER], pure=False, retries=AGAIN) for i in range(0, len(level), TOGETHER)]
        every += level
    return every


def _watch(tasks: List[Any]) -> None:
    from dask.distributed import as_completed
    for done, _ in enumerate(as_completed(tasks), 1):
        filled = 40 * done // len(tasks)
        sys.stderr.write("\r%s%s %d of %d" % ("#" * filled, "." * (40 - filled), done, len(tasks)))
        sys.stderr.flush()
    sys.stderr.write("\r\033[K")


def summarize(path: str, client: Any, parts: Optional[int] = None, progress: bool = False) -> bytes:
    """The summary of the traces in a folder that every worker sees under this path.  parts: four for each thread of the cluster."""
    path = os.path.abspath(path)
    if not parts:
        parts = 4 * max(1, sum(client.nthreads().values()))
    tasks = _tree(client, path, parts)
    if progress:
        _watch(tasks)
    summary: bytes = tasks[-1].result()
    return summary


def analyze(path: str, client: Any = None, output: Optional[str] = None, parts: Optional[int] = None, progress: bool = False) -> Report:
    """The report of a folder of traces, its work done by a dask.distributed.Client's workers, or without one by this machine."""
    if client is None:
        return report(path, output)
    folder = output or os.path.join(path if os.path.isdir(path) else os.path.dirname(path), "analysis")
    with tempfile.TemporaryDirectory(prefix="stormlog-") as place:
        whole = os.path.join(place, "whole.summary")
        with open(whole, "wb") as file:
            file.write(summarize(path, client, parts, progress))
        return report(whole, folder)


def connect(address: str) -> Any:
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ConfigurationError("analysis on a cluster needs Dask: pip install distributed") from error
    return Client(address)
