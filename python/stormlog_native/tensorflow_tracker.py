# SPDX-License-Identifier: MIT
"""TensorFlowMemoryTracker: what a span of the program held over time, in MB (2^20 bytes).  TensorFlow itself is never imported here."""
from __future__ import annotations

import dataclasses
import logging
from typing import Any, Callable, Dict, List, Mapping, Optional

from .phases import PhaseHandle
from .tracker import MemoryTracker, TrackingEvent

MB = float(1 << 20)


@dataclasses.dataclass
class TrackingResult:
    """memory_usage: at each multiple of the interval.  peak_memory and min_memory: of every change, also between those.  None: unknown."""
    start_time: float
    end_time: float
    memory_usage: List[float]
    timestamps: List[float]
    events: List[TrackingEvent]
    alerts_triggered: List[Dict[str, Any]]
    peak_memory: Optional[float]
    average_memory: Optional[float]
    min_memory: Optional[float]

    @property
    def duration(self) -> float:
        return self.end_time - self.start_time

    @property
    def memory_growth_rate(self) -> Optional[float]:
        """MB a second from the first to the last of memory_usage."""
        if len(self.memory_usage) < 2 or self.duration <= 0:
            return None
        return (self.memory_usage[-1] - self.memory_usage[0]) / self.duration


class TensorFlowMemoryTracker:
    """Answers come from the recording.  alert_threshold_mb: each sample above it is an alert, and so is a peak above it."""

    def __init__(self, sampling_interval: float = 1.0, alert_threshold_mb: Optional[float] = None, device: Optional[str] = None,
                 enable_logging: bool = True, max_history: int = 10_000, **identity: Any) -> None:
        self.sampling_interval, self.alert_threshold_mb, self.enable_logging = sampling_interval, alert_threshold_mb, enable_logging
        self._tracker = MemoryTracker(device, sampling_interval, max_history, enable_alerts=False, **identity)
        self._callbacks: List[Callable[[Dict[str, Any]], None]] = []

    def add_alert_callback(self, callback: Callable[[Dict[str, Any]], None]) -> None:
        """Called with each alert, when tracking stops."""
        self._callbacks.append(callback)

    def set_alert_threshold(self, threshold_mb: float) -> None:
        self.alert_threshold_mb = threshold_mb

    def phase(self, name: str, metadata: Optional[Mapping[str, Any]] = None) -> PhaseHandle:
        return PhaseHandle(name, metadata)

    enter_phase = phase

    @property
    def memory_usage(self) -> List[float]:
        return self.get_tracking_results().memory_usage

    @property
    def timestamps(self) -> List[float]:
        return self.get_tracking_results().timestamps

    @property
    def events(self) -> List[TrackingEvent]:
        return self.get_tracking_results().events

    @property
    def alerts(self) -> List[Dict[str, Any]]:
        return self.get_tracking_results().alerts_triggered

    def get_current_memory(self) -> Optional[float]:
        """The last of memory_usage."""
        found: Optional[float] = self.get_statistics()["current_memory_mb"]
        return found

    def start_tracking(self) -> None:
        self._tracker.start_tracking()

    def stop_tracking(self) -> TrackingResult:
        self._tracker.stop_tracking()
        result = self.get_tracking_results()
        for alert in result.alerts_triggered:
            if self.enable_logging:
                logging.warning(alert["message"])
            for callback in self._callbacks:
                callback(alert)
        return result

    def _alert(self, timestamp: float, memory_mb: float, threshold_mb: float) -> Dict[str, Any]:
        return {"timestamp": timestamp, "memory_mb": memory_mb, "threshold_mb": threshold_mb,
                "message": "Memory usage %.1f MB exceeds threshold %.1f MB" % (memory_mb, threshold_mb)}

    def _alerts(self, samples: Dict[float, float]) -> List[Dict[str, Any]]:
        threshold = self.alert_threshold_mb
        return [] if threshold is None else [self._alert(at, used, threshold) for at, used in sorted(samples.items()) if used > threshold]

    def get_tracking_results(self) -> TrackingResult:
        events = self._tracker._all_events()
        line = self._tracker.get_memory_timeline(self.sampling_interval)
        usage = [value / MB for value in line["allocated"]]
        held = {ns / 1e9: used / MB for ns, used, _ in self._tracker._course()}
        peak = max(held, key=lambda at: held[at], default=None)
        samples = dict(zip(line["timestamps"], usage))
        if peak is not None:
            samples[peak] = held[peak]
        begin, end = self._tracker.span()
        return TrackingResult(begin, end, usage, line["timestamps"], events[-self._tracker.max_events:], self._alerts(samples),
                              None if peak is None else held[peak], sum(usage) / len(usage) if usage else None, min(held.values(), default=None))

    def get_statistics(self) -> Dict[str, Any]:
        result = self.get_tracking_results()
        return {"current_memory_mb": result.memory_usage[-1] if result.memory_usage else None, "peak_memory_mb": result.peak_memory,
                "average_memory_mb": result.average_memory, "min_memory_mb": result.min_memory, "total_events": len(result.events),
                "tracking_duration_seconds": result.duration, "session_id": result.events[-1]["session_id"] if result.events else None}
