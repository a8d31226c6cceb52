# SPDX-License-Identifier: MIT
"""TFMemoryProfiler, TensorFlowProfiler, ProfiledLayer: ranges around TensorFlow's work.  TensorFlow itself is never imported here."""
from __future__ import annotations

import functools
from typing import Any, Callable, ContextManager, Dict, List, Optional

from . import agent
from .profiler import Function, GPUMemoryProfiler, MemorySnapshot, ProfileResult
from .system import get_system_info as get_system_info
from .tensorflow_tracker import TensorFlowMemoryTracker as TensorFlowMemoryTracker
from .tensorflow_tracker import TrackingResult as TrackingResult

MB = float(1 << 20)


def _call(result: ProfileResult) -> Dict[str, Any]:
    return {"name": result.function_name, "start_time": result.memory_before.timestamp, "end_time": result.memory_after.timestamp,
            "duration": result.execution_time, "memory_start_mb": result.memory_before.allocated_memory / MB,
            "memory_end_mb": result.memory_after.allocated_memory / MB, "memory_peak_mb": result.memory_peak.allocated_memory / MB}


def _functions(results: List[ProfileResult]) -> Dict[str, Dict[str, float]]:
    found: Dict[str, Dict[str, float]] = {}
    for result in results:
        row = found.setdefault(result.function_name, {"calls": 0, "total_duration": 0.0, "total_memory_used": 0.0, "peak_memory": 0.0})
        row["calls"] += 1
        row["total_duration"] += result.execution_time
        row["total_memory_used"] += result.memory_diff() / MB
        row["peak_memory"] = max(row["peak_memory"], result.memory_peak.gpu_memory_mb)
    return found


class TFResults(Dict[str, Any]):
    """What get_results returns: a dict whose keys are also attributes, as in Python Stormlog's class."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def duration(self) -> Optional[float]:
        """Seconds from the first call's begin to the last one's end."""
        calls = self["function_calls"]
        return max(call["end_time"] for call in calls) - min(call["start_time"] for call in calls) if calls else None

    @property
    def memory_growth_rate(self) -> Optional[float]:
        """MB a second from the least to the most in use."""
        return (self["peak_memory_mb"] - self["min_memory_mb"]) / self.duration if self.duration else None

    @property
    def average_memory_mb(self) -> Optional[float]:
        """Mean of what was in use before and after each call."""
        used = [call[name] for call in self["function_calls"] for name in ("memory_start_mb", "memory_end_mb")]
        return sum(used) / len(used) if used else None


class TFMemoryProfiler:
    """profile_context and a decorator; results in MB (2^20 bytes), as TensorFlow's users know them."""

    def __init__(self, device: Optional[str] = None, enable_tensor_tracking: bool = True) -> None:
        self.device, self.enable_tensor_tracking = device, enable_tensor_tracking
        self._profiler = GPUMemoryProfiler(device)

    def profile_context(self, name: str = "context", **pairs: Any) -> ContextManager[None]:
        return self._profiler.profile_context(name, **pairs)

    def profile_function(self, func: Function) -> Function:
        """Decorator: record every call."""
        agent.refuse_halves(func)
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.profile_context(func.__name__):
                return func(*args, **kwargs)
        return wrapper  # type: ignore[return-value]

    def capture_snapshot(self, name: str = "snapshot") -> MemorySnapshot:
        """What is in use now."""
        with self.profile_context(name):
            pass
        return self._profiler.get_results()[-1].memory_after

    def start_continuous_profiling(self, interval: float = 1.0) -> None:
        """Until stop_continuous_profiling the results' snapshots have one for each interval too."""
        self._profiler.start_monitoring(interval)

    def stop_continuous_profiling(self) -> None:
        self._profiler.stop_monitoring()

    def get_results(self) -> TFResults:
        """{"function_calls": [{"name", "start_time", "end_time", "duration", "memory_start_mb", "memory_end_mb", "memory_peak_mb"},
        ...], "snapshots", "start_time", "end_time", "peak_memory_mb", "min_memory_mb", "total_allocated_mb", "total_freed_mb",
        "total_allocations", "total_deallocations" (blocks), "function_profiles": {name: {"calls", ...}}}; None where nothing was profiled."""
        results = self._profiler.get_results()
        snapshots = [snapshot for result in results for snapshot in (result.memory_before, result.memory_after)] + self._profiler.snapshots
        return TFResults({"function_calls": [_call(result) for result in results],
                "snapshots": sorted(snapshots, key=lambda snapshot: snapshot.timestamp),
                "start_time": min((snapshot.timestamp for snapshot in snapshots), default=None),
                "end_time": max((snapshot.timestamp for snapshot in snapshots), default=None),
                "min_memory_mb": min((snapshot.gpu_memory_mb for snapshot in snapshots), default=None),
                "function_profiles": _functions(results),
                "total_allocations": sum(result.tensors_created for result in results) if results else None,
                "total_deallocations": sum(result.tensors_deleted for result in results) if results else None,
                "peak_memory_mb": max((result.memory_peak.allocated_memory / MB for result in results), default=None),
                "total_allocated_mb": sum(result.memory_allocated for result in results) / MB if results else None,
                "total_freed_mb": sum(result.memory_freed for result in results) / MB if results else None})

    def reset(self) -> None:
        self._profiler.clear_results()


class TensorFlowProfiler(TFMemoryProfiler):
    """Training and inference of a Keras model: each epoch and each call is a range."""

    def profile_training(self, model: Any, dataset: Any, epochs: int = 1, steps_per_epoch: Optional[int] = None) -> TFResults:
        for _ in range(epochs):
            with self.profile_context("epoch"):
                model.fit(dataset, epochs=1, steps_per_epoch=steps_per_epoch, verbose=0)
        return self.get_results()

    def profile_inference(self, model: Any, data: Any, batch_size: int = 32) -> TFResults:
        with self.profile_context("inference", batch_size=batch_size):
            model.predict(data, batch_size=batch_size, verbose=0)
        return self.get_results()


class ProfiledLayer:
    """Wraps a layer: each call is a range of its name; all other attributes are the layer's."""

    def __init__(self, layer: Any, name: Optional[str] = None, profiler: Optional[TFMemoryProfiler] = None) -> None:
        self.layer = layer
        self.name = name or getattr(layer, "name", None) or type(layer).__name__
        self.profiler = profiler or TFMemoryProfiler()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.profiler.profile_context(self.name):
            return self.layer(*args, **kwargs)

    def get_results(self) -> List[Dict[str, Any]]:
        return [call for call in self.profiler.get_results()["function_calls"] if call["name"] == self.name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["layer"], name)
