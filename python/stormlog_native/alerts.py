# SPDX-License-Identifier: MIT
"""Alerts while the job runs.  A child, `stormlog-analyze track`, follows this process's recording and writes telemetry, which a thread
reads.  The thread sleeps between two reads, and exists only while somebody waits for alerts."""
from __future__ import annotations

import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from typing import Any, Callable, Dict, List, Optional

from . import agent, recording

KINDS = ("warning", "critical", "error")


class Watch:
    """Until stop(), hand(event) is called for each alert, in a thread of its own.  stop() hands over the last ones itself."""

    def __init__(self, interval: float, warning: float, critical: float, hand: Callable[[Dict[str, Any]], None]) -> None:
        self._interval, self._hand = min(max(interval, 0.1), 3600.0), hand
        self._options = ["--interval", "%g" % self._interval, "--warning-threshold", "%g" % warning, "--critical-threshold", "%g" % critical]
        self._program, self._folder = recording.program("stormlog-analyze"), tempfile.mkdtemp(prefix="stormlog-")
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._read: Dict[str, int] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stormlog alerts", daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        """Start the child, once the recording has begun."""
        command = [self._program, "track", "--output", os.path.join(self._folder, "sink"), *self._options, agent.trace_path()]
        self._child = subprocess.Popen(command, env=recording.child_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)

    def _look(self) -> None:
        for path in sorted(glob.glob(os.path.join(self._folder, "sink", "segment-*.jsonl"))):
            with open(path, "rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
            whole = text.rfind(b"\n") + 1
            self._read[path] = self._read.get(path, 0) + whole
            events: List[Dict[str, Any]] = [json.loads(line) for line in text[:whole].splitlines()]
            for event in events:
                if event["event_type"] in KINDS:
                    self._hand(event)

    def _run(self) -> None:
        while not self._ends.wait(self._interval):
            if not self._child and agent.recording():
                self._begin()
            self._look()

    def stop(self) -> None:
        self._ends.set()
        if threading.current_thread() is not self._thread:  # a callback may be the one to stop
            self._thread.join()
        if self._child:
            self._child.send_signal(signal.SIGINT)
            try:
                self._child.wait(30)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._look()
        shutil.rmtree(self._folder, ignore_errors=True)
