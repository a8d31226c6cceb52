# SPDX-License-Identifier: MIT
"""The analysis of thousands of ranks on a Dask cluster.  Each task runs `stormlog-analyze summarize --shard` on the worker's own view of
the file system, and the report is made of their summaries.  Summaries cross the network, traces stay.

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

from .errors import ConfigurationError
from .recording import Report, child_environment, failed, program, report

EACH = 2  # tasks for each thread of the cluster: each task lists the folder and looks at each file's size
AGAIN = 3  # retries, since a worker may have a full disk or a lost file system; then the user sees the error


def _summarize(arguments: List[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="stormlog-") as folder:
        path = os.path.join(folder, "part.summary")
        done = subprocess.run([program("stormlog-analyze"), "summarize", "-q", "-j", "1", *arguments, "-o", path.replace("%", "%%")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=child_environment())
        if done.returncode:
            raise failed("summarize on " + os.uname().nodename, done)
        with open(path, "rb") as file:
            return file.read()


def _part(path: str, part: int, parts: int) -> bytes:
    return _summarize(["--shard", "%d/%d" % (part, parts), path])


def _submit(client: Any, path: str, parts: int) -> List[Any]:
    return [client.submit(_part, path, i + 1, parts, pure=False, retries=AGAIN) for i in range(parts)]


def _collect(tasks: List[Any], folder: str, progress: bool) -> None:
    """Writes the summary of each task into the folder, as the tasks end."""
    from dask.distributed import as_completed
    for done, (_, summary) in enumerate(as_completed(tasks, with_results=True), 1):
        with open(os.path.join(folder, "%d.summary" % done), "wb") as file:
            file.write(summary)
        if progress:
            filled = 40 * done // len(tasks)
            sys.stderr.write("\r%s%s %d of %d" % ("#" * filled, "." * (40 - filled), done, len(tasks)))
            sys.stderr.flush()
    if progress:
        sys.stderr.write("\r\033[K")


def collect(path: str, client: Any, folder: str, parts: Optional[int] = None, progress: bool = False) -> None:
    """Fills an empty folder with the summaries of all parts of the traces in `path`, which every worker sees under this path."""
    if not parts:
        parts = EACH * max(1, sum(client.nthreads().values()))
    _collect(_submit(client, os.path.abspath(path), parts), folder, progress)


def summarize(path: str, client: Any, parts: Optional[int] = None, progress: bool = False) -> bytes:
    """The same, merged into one summary."""
    with tempfile.TemporaryDirectory(prefix="stormlog-") as folder:
        collect(path, client, folder, parts, progress)
        return _summarize([folder])


def analyze(path: str, client: Any = None, output: Optional[str] = None, parts: Optional[int] = None, progress: bool = False) -> Report:
    """The report of a folder of traces.  The workers of `client`, a dask.distributed.Client, do the work, or this machine without one."""
    if client is None:
        return report(path, output)
    with tempfile.TemporaryDirectory(prefix="stormlog-") as folder:
        collect(path, client, folder, parts, progress)
        return report(folder, output or os.path.join(path if os.path.isdir(path) else os.path.dirname(path), "analysis"))


def connect(address: str) -> Any:
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ConfigurationError("analysis on a cluster needs Dask: pip install distributed") from error
    return Client(address)
