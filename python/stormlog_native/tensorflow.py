# SPDX-License-Identifier: MIT
"""TFMemoryProfiler, TensorFlowProfiler, ProfiledLayer: ranges around TensorFlow's work.  TensorFlow itself is never imported here."""
from __future__ import annotations

import functools
from typing import Any, Callable, ContextManager, Dict, List, Optional

from .profiler import GPUMemoryProfiler, ProfileResult
from .tensorflow_tracker import TensorFlowMemoryTracker as TensorFlowMemoryTracker
from .tensorflow_tracker import TrackingResult as TrackingResult

MB = float(1 << 20)


def _call(result: ProfileResult) -> Dict[str, Any]:
    return {"name": result.function_name, "start_time": result.memory_before.timestamp, "end_time": result.memory_after.timestamp,
            "duration": result.execution_time, "memory_start_mb": result.memory_before.allocated_memory / MB,
            "memory_end_mb": result.memory_after.allocated_memory / MB, "memory_peak_mb": result.memory_peak.allocated_memory / MB}


class TFResults(Dict[str, Any]):
    """What get_results returns: a dict whose keys are attributes too, with the other attributes of Python Stormlog's class."""

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

    def profile_function(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: record every call."""
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.profile_context(func.__name__):
                return func(*args, **kwargs)
        return wrapper

    def get_results(self) -> TFResults:
        """{"function_calls": [{"name", "start_time", "end_time", "duration", "memory_start_mb", "memory_end_mb", "memory_peak_mb"},
        ...], "snapshots", "peak_memory_mb", "total_allocated_mb", "total_freed_mb"}; None where nothing was profiled."""
        results = self._profiler.get_results()
        return TFResults({"function_calls": [_call(result) for result in results],
                "snapshots": [snapshot for result in results for snapshot in (result.memory_before, result.memory_after)],
                "peak_memory_mb": max((result.memory_peak.allocated_memory / MB for result in results), default=None),
                "total_allocated_mb": sum(result.memory_allocated for result in results) / MB if results else None,
                "total_freed_mb": sum(result.memory_freed for result in results) / MB if results else None})

    def reset(self) -> None:
        self._profiler.clear_results()


class TensorFlowProfiler(TFMemoryProfiler):
    """Training and inference of a Keras model, an epoch and a call each a range."""

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
