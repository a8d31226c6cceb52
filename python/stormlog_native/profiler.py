# SPDX-License-Identifier: MIT
"""GPUMemoryProfiler and the functions around it: what calls and blocks did to memory, found in the recording.

Upstream reads PyTorch's counters around a call.  Here a call is a range of the recording.  A replay of the recording gives before,
after and peak, whichever library allocated; no peak between two samples is missed."""
from __future__ import annotations

import contextlib
import functools
import threading
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar, overload

from . import agent, recording, span
from .errors import ProfilerError
from .system import resident_now
from .tracker import MemoryTracker

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass
class MemorySnapshot:
    """Memory at one instant.  allocated: in use, over all devices of the process (PyTorch's blocks where it reports them, else what
    calls obtained); reserved: obtained from the driver.  cpu_memory None: unknown."""
    timestamp: float
    allocated_memory: int
    reserved_memory: int
    max_memory_allocated: int
    max_memory_reserved: int
    active_memory: int
    inactive_memory: int
    cpu_memory: Optional[int]
    device_id: int
    operation: Optional[str] = None
    stack_trace: Optional[str] = None  # always None: ProfileResult.lines() has the places

    # names that Python Stormlog's TensorFlow snapshots have, in MB (2^20 bytes)
    name = property(lambda self: self.operation)
    gpu_memory_mb = property(lambda self: self.allocated_memory / (1 << 20))
    gpu_memory_reserved_mb = property(lambda self: self.reserved_memory / (1 << 20))
    cpu_memory_mb = property(lambda self: None if self.cpu_memory is None else self.cpu_memory / (1 << 20))

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)


@dataclass
class ProfileResult:
    """What one call did.  tensors_*: blocks made and freed during it; memory_allocated, memory_freed: their bytes."""
    function_name: str
    execution_time: float
    memory_before: MemorySnapshot
    memory_after: MemorySnapshot
    memory_peak: MemorySnapshot
    memory_allocated: int
    memory_freed: int
    tensors_created: int
    tensors_deleted: int
    call_count: int = 1

    _entry: Tuple[str, str, int] = ("", "", 0)  # trace, label and number; "": the call ended before the recording began

    def memory_diff(self) -> int:
        """Bytes in use after the call less those before."""
        return self.memory_after.allocated_memory - self.memory_before.allocated_memory

    def peak_memory_usage(self) -> int:
        """The most bytes in use during the call, those from before included."""
        return self.memory_peak.allocated_memory

    def lines(self) -> List[Dict[str, Any]]:
        """The source lines that allocated memory_allocated, as reports name them, largest first: [{"where", "bytes", "blocks"}, ...]."""
        path, label, step = self._entry
        found: List[Dict[str, Any]] = []
        for row in recording.lines("table", "--entries", label, "--by", "place", "--json", path) if path else []:
            if row["step"] == step:
                found = row["lines"]
        return found

    def to_dict(self) -> Dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "_entry"}


def _device_number(device: Any) -> int:
    """The number of a device: 0 for None; 1 for 1, for "cuda:1" and for torch.device("cuda", 1)."""
    if device is None:
        return 0
    if isinstance(device, int):
        return device
    number = getattr(device, "index", None)
    if isinstance(number, int):
        return number
    tail = str(device).rpartition(":")[2]
    return int(tail) if tail.isdigit() else 0


def snapshot_at(entry: Dict[str, Any], when: str, device: int, cpu: Optional[int], operation: str) -> MemorySnapshot:
    """The snapshot of a line of `entries`.  when: before, after or peak."""
    allocated, held = entry[when + "_bytes"], entry["held_%s_bytes" % when]
    nanoseconds = entry["end_ns" if when == "after" else "begin_ns"]
    return MemorySnapshot(timestamp=nanoseconds / 1e9, allocated_memory=allocated, reserved_memory=held,
                          max_memory_allocated=max(allocated, entry["peak_bytes"] if when != "before" else allocated),
                          max_memory_reserved=max(held, entry["held_peak_bytes"] if when != "before" else held),
                          active_memory=allocated, inactive_memory=max(0, held - allocated), cpu_memory=cpu, device_id=device,
                          operation=operation)


NOT_RECORDED = "the recording has no entry of %r: ranges that lie in 32 others, or with --labels off, are not recorded"
FIGURES = ("before_bytes", "after_bytes", "peak_bytes", "held_before_bytes", "held_after_bytes", "held_peak_bytes", "allocated_bytes",
           "freed_bytes", "blocks_created", "blocks_freed")


class _Done:
    """A call that has ended, with resident memory before and after it.  begin_ns is set only if the call began before the recording
    did, end_ns only if it also ended before that."""

    def __init__(self, call: agent.Call, cpu_before: Optional[int], cpu_after: Optional[int], begin_ns: Optional[int],
                 end_ns: Optional[int]) -> None:
        self.call, self.cpu_before, self.cpu_after, self.begin_ns, self.end_ns = call, cpu_before, cpu_after, begin_ns, end_ns

    def entry(self, found: Dict[Tuple[str, Optional[int]], Dict[str, Any]]) -> Optional[Dict[str, Any]]:
        """Its line of `entries`; None: it was not recorded.  A recording begins at the first GPU call: a call that ended before has zeros."""
        if self.end_ns is not None:
            return dict(dict.fromkeys(FIGURES, 0), begin_ns=self.begin_ns, end_ns=self.end_ns)
        entry = found.get((self.call.label, self.call.step))
        return dict(entry, begin_ns=self.begin_ns) if entry and self.begin_ns else entry


class GPUMemoryProfiler:
    """Profile calls and blocks.  track_tensors and collect_stack_traces change nothing, since a recording always has both.  `device`
    is only the number in the results; their figures are those of the whole process.  max_snapshots: `snapshots` holds at most so
    many, the newest."""

    def __init__(self, device: Any = None, track_tensors: bool = True, track_cpu_memory: bool = True,
                 collect_stack_traces: bool = False, max_snapshots: int = 10_000) -> None:
        self.device, self.max_snapshots = _device_number(device), max_snapshots
        self.track_tensors, self.track_cpu_memory, self.collect_stack_traces = track_tensors, track_cpu_memory, collect_stack_traces
        self._done: List[_Done] = []
        self._lock = threading.Lock()
        self._monitored: List[MemoryTracker] = []

    @contextlib.contextmanager
    def profile_context(self, name: str = "context", **pairs: Any) -> Iterator[None]:
        """with profiler.profile_context("forward"): ..."""
        if not agent.available():
            yield
            return
        before = resident_now()[0] if self.track_cpu_memory else None
        begin_ns = None if agent.recording() else time.time_ns()
        call = agent.begin(name, pairs)
        try:
            yield
        finally:
            agent.pop()
            end_ns = None if agent.recording() else time.time_ns()
            after = resident_now()[0] if self.track_cpu_memory else None
            with self._lock:
                self._done.append(_Done(call, before, after, begin_ns, end_ns))

    def profile_function(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> ProfileResult:
        """Call func once and return what it did.  ConfigurationError where nothing is recorded, before it is called."""
        if not agent.available():
            agent.trace_path()  # raises ConfigurationError
        name = getattr(func, "__name__", type(func).__name__)
        agent.refuse_halves(func)
        with self.profile_context(name):
            func(*args, **kwargs)
        results, _ = self._results_of(self._done[-1:])
        if not results:
            raise ProfilerError(NOT_RECORDED % name)
        return results[0]

    def start_monitoring(self, interval: Optional[float] = None) -> None:
        """Begin a span of `snapshots`.  The recording has every change; `interval` is the resolution of the snapshots."""
        if not self._is_monitoring():
            self._monitored.append(MemoryTracker(self.device, interval or 0.1, enable_alerts=False))
            self._monitored[-1].start_tracking()

    def stop_monitoring(self) -> None:
        if self._is_monitoring():
            self._monitored[-1].stop_tracking()

    def _is_monitoring(self) -> bool:
        return bool(self._monitored) and self._monitored[-1].is_tracking

    @property
    def snapshots(self) -> List[MemorySnapshot]:
        """What was in use while monitoring was on, at each multiple of its interval."""
        found = []
        for tracker in self._monitored:
            line = tracker.get_memory_timeline(tracker.sampling_interval)
            for at, allocated, reserved in zip(line["timestamps"], line["allocated"], line["reserved"]):
                found.append(MemorySnapshot(at, allocated, reserved, allocated, reserved, allocated, max(0, reserved - allocated), None,
                                            self.device, "monitoring"))
        return found[-self.max_snapshots:]

    def _results_of(self, done: List[_Done]) -> "tuple[List[ProfileResult], Dict[str, int]]":
        """The results, and by name the number of calls that the recording does not have."""
        path = recording.own_trace()
        found = {(row["label"], row["step"]): row for row in recording.entries(path)}
        results, counts, lacking = [], {}, {}  # type: List[ProfileResult], Dict[str, int], Dict[str, int]
        for one in done:
            entry, name = one.entry(found), one.call.name
            if entry is None:
                lacking[name] = lacking.get(name, 0) + 1
                continue
            counts[name] = counts.get(name, 0) + 1
            results.append(ProfileResult(
                function_name=name, execution_time=(entry["end_ns"] - entry["begin_ns"]) / 1e9,
                memory_before=snapshot_at(entry, "before", self.device, one.cpu_before, name),
                memory_after=snapshot_at(entry, "after", self.device, one.cpu_after, name),
                memory_peak=snapshot_at(entry, "peak", self.device, None, name),
                memory_allocated=entry["allocated_bytes"], memory_freed=entry["freed_bytes"],
                tensors_created=entry["blocks_created"], tensors_deleted=entry["blocks_freed"], call_count=counts[name],
                _entry=("" if one.end_ns else path, one.call.label, one.call.step)))
        return results, lacking

    def _results(self) -> "tuple[List[ProfileResult], Dict[str, int]]":
        with self._lock:
            done = list(self._done)
        agent.trace_path()
        results, lacking = self._results_of(done) if done else ([], {})
        for name, count in lacking.items():
            warnings.warn("%d calls are left out: %s" % (count, NOT_RECORDED % name), RuntimeWarning, stacklevel=3)
        return results, lacking

    def get_results(self) -> List[ProfileResult]:
        """A result for every call and block that has ended, in that order.  A warning says which of them the recording lacks."""
        return self._results()[0]

    @property
    def results(self) -> List[ProfileResult]:
        return self.get_results()

    def get_summary(self) -> Dict[str, Any]:
        """Totals of what was profiled, by function, and what the process uses now.  The baseline is before the first call."""
        (results, lacking), now = self._results(), recording.process()
        functions: Dict[str, Dict[str, Any]] = {}
        for result in results:
            row = functions.setdefault(result.function_name, {"call_count": 0, "total_time": 0.0, "total_memory_allocated": 0,
                                                              "total_memory_freed": 0, "peak_memory": 0})
            row["call_count"] += 1
            row["total_time"] += result.execution_time
            row["total_memory_allocated"] += result.memory_allocated
            row["total_memory_freed"] += result.memory_freed
            row["peak_memory"] = max(row["peak_memory"], result.memory_peak.allocated_memory)
        for row in functions.values():
            row["avg_time"] = row["total_time"] / row["call_count"]
            row["avg_memory_allocated"] = row["total_memory_allocated"] / row["call_count"]
        used, reserved = span.in_use(now)
        baseline = results[0].memory_before.allocated_memory if results else None
        return {"device": self.device, "total_functions_profiled": len(functions), "total_function_calls": len(results),
                "calls_not_recorded": sum(lacking.values()),
                "total_execution_time": sum(result.execution_time for result in results),
                "total_memory_allocated": sum(result.memory_allocated for result in results),
                "total_memory_freed": sum(result.memory_freed for result in results),
                "net_memory_change": sum(result.memory_diff() for result in results),
                "peak_memory_usage": max((result.memory_peak.allocated_memory for result in results), default=None),
                "baseline_memory_usage": baseline,
                "memory_change_from_baseline": None if baseline is None else used - baseline,
                "current_memory_usage": used, "current_memory_reserved": reserved,
                "function_summaries": functions, "monitoring_active": self._is_monitoring(), "snapshots_collected": len(self.snapshots)}

    def clear_results(self) -> None:
        """Forget what was profiled; the recording keeps it."""
        with self._lock:
            self._done.clear()
            self._monitored.clear()


_global: Optional[GPUMemoryProfiler] = None


def get_global_profiler(device: Any = None) -> GPUMemoryProfiler:
    """The profiler of the module's own profile_function and profile_context.  Only the first call, which makes it, uses `device`."""
    global _global
    if _global is None:
        _global = GPUMemoryProfiler(device)
    return _global


@contextlib.contextmanager
def profile_context(name: str = "context", device: Any = None, profiler: Optional[GPUMemoryProfiler] = None,
                    **pairs: Any) -> Iterator[GPUMemoryProfiler]:
    """with profile_context("forward") as profiler: ...  Results: profiler.get_results()."""
    profiler = profiler or get_global_profiler(device)
    with profiler.profile_context(name, **pairs):
        yield profiler


@overload
def profile_function(func: Function, *, name: Optional[str] = None, device: Any = None,
                     profiler: Optional[GPUMemoryProfiler] = None) -> Function: ...
@overload
def profile_function(func: None = None, *, name: Optional[str] = None, device: Any = None,
                     profiler: Optional[GPUMemoryProfiler] = None) -> Callable[[Function], Function]: ...
def profile_function(func: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None, device: Any = None,
                     profiler: Optional[GPUMemoryProfiler] = None) -> Any:
    """@profile_function, or @profile_function(name="step"): every call is a range of that name.  ConfigurationError: a coroutine
    function or a generator, whose call returns before its body runs."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        agent.refuse_halves(function)
        label = name or function.__name__

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with profile_context(label, device, profiler):
                return function(*args, **kwargs)
        return wrapper
    return decorate(func) if func is not None else decorate
