# SPDX-License-Identifier: MIT
"""MemoryTracker and CPUMemoryTracker: what happened over time, and the bundle of an out-of-memory error while the job runs.

Python Stormlog samples in a thread of the job.  Here the recording has every change.  A tracker marks a span of it, and a child process
reads that span when a result is asked for.  Bundles are written by a child too (bundle.py)."""
from __future__ import annotations

import collections
import contextlib
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from . import agent, alerts, door, recording, span
from .errors import ConfigurationError, ProfilerError
from .output import opened, replacing
from .phases import PHASE_ENTER_EVENT, PHASE_EXIT_EVENT, PhaseHandle
from .system import format_memory, resident_now


@dataclass(frozen=True)
class OOMFlightRecorderConfig:
    """Where bundles are written and how many are kept: the oldest are removed first."""
    enabled: bool = False
    dump_dir: str = "oom_dumps"
    buffer_size: int = 10_000
    max_dumps: int = 5
    max_total_mb: int = 256


@dataclass(frozen=True)
class OOMExceptionClassification:
    is_oom: bool
    reason: Optional[str] = None


class TrackingEvent(Dict[str, Any]):
    """A telemetry event (V3).  Its fields are attributes too, under their own names and under those of upstream's tracker."""

    NAMES = {"memory_allocated": "allocator_allocated_bytes", "memory_reserved": "allocator_reserved_bytes",
             "memory_change": "allocator_change_bytes", "active_memory": "allocator_active_bytes",
             "inactive_memory": "allocator_inactive_bytes", "device_used": "device_used_bytes", "device_free": "device_free_bytes",
             "device_total": "device_total_bytes"}

    def __getattr__(self, name: str) -> Any:
        try:
            if name in ("timestamp", "backend"):
                return self["timestamp_ns"] / 1e9 if name == "timestamp" else self["metadata"].get(name)
            return self[self.NAMES.get(name, name)]
        except KeyError:
            raise AttributeError(name) from None


PATTERNS = ("out of memory", "cuda out of memory", "hip out of memory", "resource exhausted", "failed to allocate",
            "allocation failed", "memoryerror", "std::bad_alloc")


def classify_oom_exception(exc: BaseException) -> OOMExceptionClassification:
    """Is the exception an out-of-memory error, and how is that known: by PyTorch's or TensorFlow's type, else by its message."""
    torch = sys.modules.get("torch")
    for holder in (torch, getattr(torch, "cuda", None)):
        kind = getattr(holder, "OutOfMemoryError", None)
        if isinstance(kind, type) and isinstance(exc, kind):
            return OOMExceptionClassification(True, "torch.cuda.OutOfMemoryError")
    if type(exc).__name__.lower().endswith("resourceexhaustederror"):
        return OOMExceptionClassification(True, "tensorflow.ResourceExhaustedError")
    message = str(exc).lower()
    for pattern in PATTERNS:
        if pattern in message:
            return OOMExceptionClassification(True, "message_pattern:" + pattern)
    return OOMExceptionClassification(False)


def _cell(value: Any) -> Any:
    return door.cell(json.dumps(value) if isinstance(value, dict) else value) if isinstance(value, (dict, str)) else value


def write_events(filename: str, form: str, read: Callable[[], List[TrackingEvent]]) -> None:
    """Writes the file in place of a former one, which stays as it was if something fails."""
    if form not in ("json", "csv"):
        raise ConfigurationError("format is json or csv")
    with replacing(filename) as place:
        events = read()
        with opened(place, "w", newline="") as file:
            if form == "json":
                json.dump(events, file, indent=2)
            elif events:
                writer = csv.DictWriter(file, list(events[0]))
                writer.writeheader()
                writer.writerows({key: _cell(value) for key, value in event.items()} for event in events)


# Python Stormlog's statistics of a telemetry sink, which a tracker does not have here.
NO_SINK = {"rollover_count": 0, "pruned_segment_count": 0, "pruned_bytes": 0, "final_retained_files": 0,
           "final_retained_bytes": 0}


class MemoryTracker:
    """A span of the recording: its events, statistics and alerts, and bundles of out-of-memory errors in it.  Rank and job in its
    events are the recording's (stormlog-run --rank); those given here are metadata of the run."""

    def __init__(self, device: Any = None, sampling_interval: float = 0.1, max_events: int = 10_000, enable_alerts: bool = True,
                 enable_oom_flight_recorder: bool = False, oom_dump_dir: str = "oom_dumps", oom_buffer_size: Optional[int] = None,
                 oom_max_dumps: int = 5, oom_max_total_mb: int = 256, warning_threshold: float = 80.0,
                 critical_threshold: float = 95.0, job_id: Optional[str] = None, rank: Optional[int] = None,
                 local_rank: Optional[int] = None, world_size: Optional[int] = None,
                 enable_native_cuda_history: bool = True, native_history_max_entries: Optional[int] = None) -> None:
        # The last two change nothing: the recording is the whole history.
        if oom_max_dumps < 1 or oom_max_total_mb < 1 or (oom_buffer_size is not None and oom_buffer_size < 1):
            raise ConfigurationError("oom_buffer_size, oom_max_dumps and oom_max_total_mb are at least 1")
        self.device, self.sampling_interval, self.max_events, self.enable_alerts = device, sampling_interval, max_events, enable_alerts
        self.config = OOMFlightRecorderConfig(enable_oom_flight_recorder, oom_dump_dir, oom_buffer_size or max_events, oom_max_dumps,
                                              oom_max_total_mb)
        self.thresholds = {"memory_warning_percent": warning_threshold, "memory_critical_percent": critical_threshold,
                           "memory_leak_threshold": float(100 << 20)}
        identity = {"job_id": job_id, "rank": rank, "local_rank": local_rank, "world_size": world_size}
        agent.metadata(**{name: value for name, value in identity.items() if value is not None})
        self.last_oom_dump_path: Optional[str] = None
        self.is_tracking = False
        self._begin: Optional[float] = None
        self._end: Optional[float] = None
        self._ended: "Optional[tuple[Any, List[TrackingEvent]]]" = None
        self._callbacks: List[Callable[[TrackingEvent], None]] = []
        self._watch: Optional[alerts.Watch] = None
        self._handed: "collections.Counter[str]" = collections.Counter()

    def start_tracking(self) -> None:
        if self.is_tracking:
            return
        self._begin, self._end, self.is_tracking = time.time(), None, True
        agent.mark("tracking started")
        self._handed.clear()
        self._watch_for_alerts()

    def stop_tracking(self) -> None:
        """End the span.  Callbacks get those of its alerts that they did not get while it lasted."""
        if not self.is_tracking:
            return
        self._end, self.is_tracking = time.time(), False
        agent.mark("tracking stopped")
        if self._watch:
            self._watch.stop()
            self._watch = None
        if self._callbacks and agent.available():
            seen = self._handed.copy()
            for alert in self.get_alerts():
                if seen[alert["event_type"]] and "memory_increase" not in alert["metadata"]:
                    seen[alert["event_type"]] -= 1
                else:
                    self._hand(alert)

    def _hand(self, event: Mapping[str, Any]) -> None:
        for callback in self._callbacks:
            callback(TrackingEvent(event))

    def _hand_now(self, event: Mapping[str, Any]) -> None:
        self._handed[event["event_type"]] += 1
        self._hand(event)

    def _watch_for_alerts(self) -> None:
        if self._callbacks and self.enable_alerts and self.is_tracking and not self._watch and agent.available():
            self._watch = alerts.Watch(self.sampling_interval, self.thresholds["memory_warning_percent"],
                                       self.thresholds["memory_critical_percent"], self._hand_now)

    def __enter__(self) -> "MemoryTracker":
        self.start_tracking()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop_tracking()

    @property
    def oom_buffer_size(self) -> int:
        return self.config.buffer_size

    def set_threshold(self, threshold_name: str, value: float) -> None:
        """memory_warning_percent, memory_critical_percent, or memory_leak_threshold: growth in bytes from one event to the next."""
        if threshold_name not in self.thresholds:
            raise ConfigurationError("no threshold %r; there are %s" % (threshold_name, ", ".join(self.thresholds)))
        self.thresholds[threshold_name] = value

    def add_alert_callback(self, callback: Callable[[TrackingEvent], None]) -> None:
        """Call `callback` for each alert: in a thread of its own while tracking goes on (a child watches the recording), and when
        tracking stops for alerts that only the whole recording shows, such as those of memory_leak_threshold."""
        self._callbacks.append(callback)
        self._watch_for_alerts()

    def remove_alert_callback(self, callback: Callable[[TrackingEvent], None]) -> None:
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    def clear_events(self) -> None:
        """Begin the span anew; the recording keeps the earlier events."""
        if self._begin is not None:
            self._begin = time.time()

    def _leap(self, event: TrackingEvent) -> Optional[TrackingEvent]:
        """The alert for an event at which memory grew by more than memory_leak_threshold."""
        change = event["allocator_change_bytes"]
        if event["event_type"] not in ("allocation", "sample") or change <= self.thresholds["memory_leak_threshold"]:
            return None
        metadata = dict(event["metadata"], memory_increase=change)
        return TrackingEvent(event, event_type="warning", context="Large memory increase: %s" % format_memory(change), metadata=metadata)

    def _events(self) -> List[TrackingEvent]:
        return self._all_events()[-self.max_events:]

    def _read(self) -> List[TrackingEvent]:
        """Telemetry of the whole recording."""
        with tempfile.TemporaryDirectory(prefix="stormlog-") as folder:
            return [TrackingEvent(event) for event in recording.telemetry(
                os.path.join(folder, "analysis"), None, "--set", "alert-warning=%g" % self.thresholds["memory_warning_percent"],
                "--set", "alert-critical=%g" % self.thresholds["memory_critical_percent"])]

    def _stands(self, event: TrackingEvent, begin_ns: int) -> List[TrackingEvent]:
        """The alert, if usage was above a threshold when tracking began: other alerts are raised only where a threshold is crossed."""
        used = event["device_used_bytes"] if event["allocator_active_bytes"] is None else event["allocator_allocated_bytes"]
        percent = 100.0 * used / event["device_total_bytes"] if event["device_total_bytes"] else 0.0
        for kind in ("critical", "warning"):
            if self.enable_alerts and percent >= self.thresholds["memory_%s_percent" % kind]:
                return [TrackingEvent(event, timestamp_ns=begin_ns, event_type=kind, allocator_change_bytes=0, context="%s: Memory usage at %.1f%%" % (
                    kind.upper(), percent), metadata=dict(event["metadata"], usage_percent=percent))]
        return []

    def _all_events(self) -> List[TrackingEvent]:
        """Of a span that has ended they are read once: a longer recording has fewer entries of each label and longer bins."""
        read = (self._begin, self._end, self.enable_alerts, *self.thresholds.values())
        if self._end is None or self._ended is None or self._ended[0] != read:
            self._ended = read, self._read_span()
        return self._ended[1]

    def _read_span(self) -> List[TrackingEvent]:
        if self._begin is None:
            raise ConfigurationError("nothing was tracked: call start_tracking() first")
        agent.trace_path()
        begin, end = int(self._begin * 1e9), int((self._end or time.time()) * 1e9)
        found: List[TrackingEvent] = []
        every = self._read()
        before = [event for event in every if event["timestamp_ns"] < begin and event["event_type"] == "sample" and event["device_total_bytes"]]
        if before:
            found += self._stands(before[-1], begin)
        for event in every:
            if begin <= event["timestamp_ns"] <= end:
                leap = self._leap(event) if self.enable_alerts else None
                found += [event, leap] if leap else [event]
        return found

    def enter_phase(self, name: str, *, metadata: Optional[Mapping[str, Any]] = None) -> PhaseHandle:
        """Begin a phase, which its close() ends."""
        return PhaseHandle(name, metadata)

    def phase(self, name: str, metadata: Optional[Mapping[str, Any]] = None) -> PhaseHandle:
        """with tracker.phase("forward"): ..."""
        return PhaseHandle(name, metadata)

    def get_events(self, event_type: Optional[str] = None, last_n: Optional[int] = None,
                   since: Optional[float] = None) -> List[TrackingEvent]:
        """Telemetry events (V3) of the span, oldest first."""
        events = [event for event in self._events() if (event_type is None or event["event_type"] == event_type)
                  and (since is None or event["timestamp_ns"] >= since * 1e9)]
        return events[-last_n:] if last_n else events

    def get_alerts(self, last_n: Optional[int] = None) -> List[TrackingEvent]:
        found = [event for event in self._events() if event["event_type"] in alerts.KINDS] if self.enable_alerts else []
        return found[-last_n:] if last_n else found

    def _course(self) -> "List[tuple[int, int, int]]":
        """[(ns, in use, reserved), ...] at the span's begin and after each change; without a device, the process's resident memory."""
        begin, end = self.span()
        return span.course(recording.own_trace(), int(begin * 1e9), int(end * 1e9)) or [
            (event["timestamp_ns"], event["allocator_allocated_bytes"], event["allocator_reserved_bytes"]) for event in self._all_events()]

    def get_memory_timeline(self, interval: float = 1.0) -> Dict[str, List[Any]]:
        """{"timestamps", "allocated", "reserved"}: what was in use when tracking began, at each multiple of the interval, and at its end."""
        line: Dict[str, List[Any]] = {"timestamps": [], "allocated": [], "reserved": []}
        states, index, end = self._course(), 0, int(self.span()[1] * 1e9)
        at = states[0][0] if states else end + 1
        while at <= end:
            while index + 1 < len(states) and states[index + 1][0] <= at:
                index += 1
            for name, value in zip(line, (at / 1e9, *states[index][1:])):
                line[name].append(value)
            at = min(at + max(int(interval * 1e9), 1), end) if at < end else end + 1
        return line

    def get_statistics(self) -> Dict[str, Any]:
        """Statistics of the whole span, also of events beyond max_events.  Bytes are exact, from recorded calls; None: the span has no event."""
        events, (begin, end) = self._all_events(), self.span()
        figures: Dict[str, Any] = span.figures(recording.own_trace(), int(begin * 1e9), int(end * 1e9)) if events else {}
        last, seconds = events[-1] if events else None, end - begin
        total = next((event["device_total_bytes"] for event in reversed(events) if event["device_total_bytes"] is not None), None)
        answer: Dict[str, Any] = {name: figures.get(name) for name in (
            "total_allocations", "total_allocation_bytes", "total_deallocations", "total_deallocation_bytes")}
        for kind in ("allocation", "deallocation"):
            answer["average_%s_size" % kind] = figures["total_%s_bytes" % kind] / max(figures["total_%ss" % kind], 1) if figures else None
        kept = min(len(events), self.max_events)
        used = figures.get("current")
        return {**answer, "total_events": kept, "history_window_limit_events": self.max_events, "history_retained_events": kept,
                "history_dropped_events": len(events) - kept,
                "events_last_hour": sum(event.timestamp > time.time() - 3600 for event in events[-self.max_events:]),
                "session_id": last["session_id"] if last else None, "backend": last.backend if last else None,
                "session_status": "running" if self.is_tracking else "completed",
                "peak_memory": figures.get("peak"), "peak_reserved": figures.get("peak_held"),
                "peak_device_used": max((event["device_used_bytes"] for event in events), default=None),
                "allocations_per_second": figures["total_allocations"] / max(seconds, 1) if figures else None,
                "bytes_allocated_per_second": figures["total_allocation_bytes"] / max(seconds, 1) if figures else None,
                "alert_count": sum(event["event_type"] in alerts.KINDS for event in events),
                "oom_count": sum("oom_reason" in event["metadata"] for event in events),
                "current_memory_allocated": used, "current_memory_reserved": figures.get("current_held"),
                "device_used_bytes": last["device_used_bytes"] if last else None, "device_total_bytes": total,
                "current_device_used": last["device_used_bytes"] if last else None, "device_total": total,
                "memory_utilization_percent": 100.0 * used / total if used is not None and total else None,
                "oom_flight_recorder_enabled": self.config.enabled, "tracking_duration_seconds": seconds,
                "last_oom_dump_path": self.last_oom_dump_path, **NO_SINK}

    def export_events(self, filename: str, format: str = "csv") -> None:  # noqa: A002
        """Telemetry events of the span as a file, csv or json, which replaces a former one of its format as a whole, and nothing else."""
        write_events(filename, format, self._events)

    def span(self) -> "tuple[float, float]":
        """Begin and end (now, while tracking goes on) as seconds of Unix time."""
        if self._begin is None:
            raise ConfigurationError("nothing was tracked: call start_tracking() first")
        return self._begin, self._end or time.time()

    # out of memory

    def handle_exception(self, exc: BaseException, context: Optional[str] = None,
                         metadata: Optional[Mapping[str, Any]] = None) -> Optional[str]:
        """Path of the bundle, which a child has written when this returns.  None: not an out-of-memory error, the flight recorder is
        off, or the program is not recorded; then only the program's own error counts."""
        found = classify_oom_exception(exc)
        if not found.is_oom or not self.config.enabled or not agent.available():
            return None
        order = {"trace": agent.trace_path(), "reason": found.reason, "exception_type": type(exc).__name__,
                 "exception_module": type(exc).__module__, "exception_message": str(exc), "context": context,
                 "metadata": dict(metadata or {}), "since_ns": int((self._begin or 0) * 1e9), "directory": self.config.dump_dir,
                 "buffer_size": self.config.buffer_size, "max_dumps": self.config.max_dumps,
                 "max_total_bytes": self.config.max_total_mb << 20}
        done = subprocess.run([sys.executable, "-m", __package__ + ".bundle"], input=json.dumps(order, default=str).encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(recording.child_environment(), PYTHONPATH=os.pathsep.join(p for p in sys.path if p)))
        if done.returncode:
            raise ProfilerError("the bundle was not written: %s" % done.stderr.decode("utf-8", "replace").strip())
        self.last_oom_dump_path = done.stdout.decode().strip()
        return self.last_oom_dump_path

    @contextlib.contextmanager
    def capture_oom(self, context: str = "runtime", metadata: Optional[Mapping[str, Any]] = None) -> Iterator[None]:
        """Make a bundle (last_oom_dump_path) of an out-of-memory error that leaves the block, and raise it again.  The block is a range
        of the recording with this metadata."""
        agent.push(context, **{str(key): value for key, value in (metadata or {}).items()})
        try:
            yield
        except Exception as exc:
            try:
                self.handle_exception(exc, context, metadata)
            except ProfilerError as error:  # raise the program's error, not ours
                sys.stderr.write("stormlog: no bundle: %s\n" % error)
            raise
        finally:
            agent.pop()


class MemoryWatchdog:
    """Makes PyTorch give back the memory that it keeps unused: by force_cleanup(), and after an alert."""

    def __init__(self, tracker: MemoryTracker, auto_cleanup: bool = True, cleanup_threshold: float = 0.9,
                 aggressive_cleanup_threshold: float = 0.95) -> None:
        self.tracker, self.auto_cleanup = tracker, auto_cleanup
        self.cleanup_threshold, self.aggressive_cleanup_threshold = cleanup_threshold, aggressive_cleanup_threshold
        self.cleanup_count, self.last_cleanup_time = 0, 0.0
        tracker.add_alert_callback(self._alert)

    def _alert(self, event: TrackingEvent) -> None:
        total = event["device_total_bytes"]
        share = event["allocator_allocated_bytes"] / total if total else 0.0
        if self.auto_cleanup and (event["event_type"] == "critical" or share >= self.cleanup_threshold):
            self.force_cleanup(share >= self.aggressive_cleanup_threshold)

    def force_cleanup(self, aggressive: bool = False) -> None:
        """Call torch.cuda.empty_cache() if the program has imported PyTorch; aggressive: after a garbage collection of Python."""
        if aggressive:
            import gc
            gc.collect()
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda is not None and cuda.is_initialized():
            cuda.empty_cache()
        self.cleanup_count, self.last_cleanup_time = self.cleanup_count + 1, time.time()
        agent.mark("cleanup, aggressive" if aggressive else "cleanup")

    def get_cleanup_stats(self) -> Dict[str, Any]:
        return {"cleanup_count": self.cleanup_count, "last_cleanup_time": self.last_cleanup_time,
                "auto_cleanup_enabled": self.auto_cleanup, "cleanup_threshold": self.cleanup_threshold,
                "aggressive_cleanup_threshold": self.aggressive_cleanup_threshold}


class _HostTracker(MemoryTracker):
    """Tracks host memory also for a process that uses a device, whose telemetry is otherwise the device's."""

    def _read(self) -> List[TrackingEvent]:
        found = super()._read()
        if not any(event["device_id"] >= 0 for event in found):
            return found
        host, before, samples = [], None, recording.resident()
        for at, rss in samples:
            host.append(self._of_host(found[0], int(at * 1e9), "sample", rss, 0 if before is None else rss - before))
            before = rss
        for event in found:
            if event["event_type"] in (PHASE_ENTER_EVENT, PHASE_EXIT_EVENT):
                rss = next((rss for at, rss in reversed(samples) if at * 1e9 <= event["timestamp_ns"]), samples[0][1] if samples else 0)
                host.append(self._of_host(event, event["timestamp_ns"], event["event_type"], rss, 0, event["context"],
                                          phase_scope=event["metadata"].get("phase_scope")))
        return sorted(host, key=lambda event: event["timestamp_ns"])

    def _of_host(self, model: TrackingEvent, ns: int, kind: str, rss: int, change: int, context: Optional[str] = None,
                 **metadata: Any) -> TrackingEvent:
        return TrackingEvent(model, timestamp_ns=ns, event_type=kind, collector="stormlog.cpu_tracker", device_id=-1, context=context,
                             allocator_allocated_bytes=rss, allocator_reserved_bytes=rss, allocator_change_bytes=change,
                             allocator_active_bytes=None, allocator_inactive_bytes=None, device_used_bytes=rss, device_free_bytes=None,
                             device_total_bytes=None, metadata=dict(metadata, backend="cpu", sampling_source="resident memory"))


class CPUMemoryTracker:
    """Host memory of the process over time: stormlog-run --host python train.py"""

    def __init__(self, sampling_interval: float = 0.1, max_events: int = 10_000, enable_oom_flight_recorder: bool = False,
                 oom_dump_dir: str = "oom_dumps", **options: Any) -> None:
        self._begin_rss: Optional[int] = None
        self._end_rss: Optional[int] = None
        self._tracker = _HostTracker("cpu", sampling_interval, max_events, enable_oom_flight_recorder=enable_oom_flight_recorder,
                                      oom_dump_dir=oom_dump_dir, **options)
        self.capture_oom, self.handle_exception = self._tracker.capture_oom, self._tracker.handle_exception
        self.phase, self.enter_phase, self.clear_events = self._tracker.phase, self._tracker.enter_phase, self._tracker.clear_events
        self.get_events, self.export_events = self._tracker.get_events, self._tracker.export_events

    def export_events_with_timestamp(self, directory: str, format: str) -> str:  # noqa: A002
        """Path of the file, cpu_tracker_DATE_TIME.FORMAT in the directory."""
        path = os.path.join(directory, time.strftime("cpu_tracker_%Y%m%d_%H%M%S.") + format)
        self.export_events(path, format)
        return path

    @property
    def last_oom_dump_path(self) -> Optional[str]:
        return self._tracker.last_oom_dump_path

    @property
    def is_tracking(self) -> bool:
        return self._tracker.is_tracking

    def start_tracking(self) -> None:
        if not self.is_tracking:
            self._begin_rss, self._end_rss = resident_now()[0], None
        self._tracker.start_tracking()

    def stop_tracking(self) -> None:
        if self.is_tracking:
            self._end_rss = resident_now()[0]
        self._tracker.stop_tracking()

    def _samples(self) -> List["tuple[float, int]"]:
        begin, end = self._tracker.span()
        return [(at, rss) for at, rss in recording.resident() if begin <= at <= end]

    def get_memory_timeline(self, interval: float = 1.0) -> Dict[str, List[Any]]:
        """{"timestamps", "allocated", "reserved"}: resident bytes as sampled (--device-interval), at most one sample for each interval."""
        line: Dict[str, List[Any]] = {"timestamps": [], "allocated": [], "reserved": []}
        for at, rss in self._samples():
            if not line["timestamps"] or at - line["timestamps"][-1] >= interval:
                for name, value in (("timestamps", at), ("allocated", rss), ("reserved", rss)):
                    line[name].append(value)
        return line

    def get_statistics(self) -> Dict[str, Any]:
        """Both ends are read from /proc/self/statm, when tracking starts and when it stops (or now).  Figures between are samples."""
        samples, events = [rss for _, rss in self._samples()], self.get_events()
        begin = self._begin_rss or 0  # start_tracking read it: _samples() would have raised
        now = self._end_rss or resident_now()[0]
        return {"mode": "cpu", "total_events": len(events), "peak_memory": max(samples + [begin, now]), "current_memory_allocated": now,
                "memory_change_from_baseline": now - begin, "baseline_memory": begin, "baseline_source": "/proc/self/statm at start_tracking",
                "session_id": events[-1]["session_id"] if events else None, "session_status": "running" if self.is_tracking else "completed",
                "tracking_duration_seconds": (self._tracker._end or time.time()) - (self._tracker._begin or 0),
                "last_oom_dump_path": self.last_oom_dump_path, "history_dropped_events": 0, **NO_SINK}
