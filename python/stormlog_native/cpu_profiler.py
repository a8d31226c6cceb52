# SPDX-License-Identifier: MIT
"""CPUMemoryProfiler: resident memory around calls and blocks, under stormlog-run --host."""
from __future__ import annotations

import contextlib
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional

from . import agent, recording
from .system import resident_now
from .tracker import CPUMemoryTracker

__all__ = ["CPUMemoryProfiler", "CPUMemorySnapshot", "CPUMemoryTracker", "CPUProfileResult"]


@dataclass
class CPUMemorySnapshot:
    """Memory of the process at one instant.  cpu_percent is never measured; samples have no vms."""
    timestamp: float
    rss: int
    vms: Optional[int]
    cpu_percent: Optional[float] = None

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)


@dataclass
class CPUProfileResult:
    """The change of resident memory by one call.  peak_rss is the greatest of the samples during the call (--device-interval) and of both ends."""
    name: str
    duration: float
    snapshot_before: CPUMemorySnapshot
    snapshot_after: CPUMemorySnapshot
    peak_rss: int

    def memory_diff(self) -> int:
        return self.snapshot_after.rss - self.snapshot_before.rss

    def to_dict(self) -> Dict[str, Any]:
        return {"name": self.name, "duration": self.duration, "memory_diff": self.memory_diff(), "peak_rss": self.peak_rss,
                "before": self.snapshot_before.to_dict(), "after": self.snapshot_after.to_dict()}


def _now() -> CPUMemorySnapshot:
    return CPUMemorySnapshot(time.time(), *resident_now())


class CPUMemoryProfiler:
    """profile_function and profile_context for programs without a GPU."""

    def __init__(self) -> None:
        self._baseline = _now()
        self._done: List["tuple[str, CPUMemorySnapshot, CPUMemorySnapshot]"] = []
        self._monitored: List[List[float]] = []

    @contextlib.contextmanager
    def profile_context(self, name: str = "context") -> Iterator[None]:
        before = _now()
        agent.push(name)
        try:
            yield
        finally:
            agent.pop()
            self._done.append((name, before, _now()))

    def profile_function(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> CPUProfileResult:
        """Call func once and return what it did.  ConfigurationError where nothing is recorded, before it is called."""
        agent.trace_path()
        agent.refuse_halves(func)
        with self.profile_context(getattr(func, "__name__", "cpu_function")):
            func(*args, **kwargs)
        return self._results_of(self._done[-1:])[0]

    def start_monitoring(self, interval: float = 0.1) -> None:
        """Begin a span of `snapshots`.  The recording decides how often there is one: --device-interval."""
        self.stop_monitoring()
        self._monitored.append([time.time(), float("inf")])

    def stop_monitoring(self) -> None:
        if self._monitored:
            self._monitored[-1][1] = min(self._monitored[-1][1], time.time())

    @property
    def snapshots(self) -> List[CPUMemorySnapshot]:
        """The samples that were taken while monitoring was on."""
        return [CPUMemorySnapshot(at, rss, None) for at, rss in recording.resident() if any(begin <= at <= end for begin, end in self._monitored)]

    def _results_of(self, done: "List[tuple[str, CPUMemorySnapshot, CPUMemorySnapshot]]") -> List[CPUProfileResult]:
        samples = recording.resident()
        return [CPUProfileResult(name, after.timestamp - before.timestamp, before, after, max(
            [before.rss, after.rss] + [rss for at, rss in samples if before.timestamp <= at <= after.timestamp]))
            for name, before, after in done]

    @property
    def results(self) -> List[CPUProfileResult]:
        return self._results_of(self._done) if self._done else []

    def get_summary(self) -> Dict[str, Any]:
        results, now = self.results, _now()
        return {"mode": "cpu", "peak_memory_usage": max([result.peak_rss for result in results] + [now.rss]),
                "memory_change_from_baseline": now.rss - self._baseline.rss, "baseline_rss": self._baseline.rss,
                "snapshots_collected": len(self.snapshots) if self._monitored else 0}

    def clear_results(self) -> None:
        self._done.clear()
        self._monitored.clear()
        self._baseline = _now()
