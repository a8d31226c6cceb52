# SPDX-License-Identifier: MIT
"""The recorder from inside a Python program: it names the program's steps and reads its memory.

    from stormlog_native import GPUMemoryProfiler, profile_function, annotate, step

Start the program by stormlog-run.  Without it ranges have no effect, and reading a result raises ConfigurationError.
doc/python.md has the rest.  Names that Python Stormlog has too mean the same here."""
from .agent import annotate, available, end_step, flush, mark, metadata, pop, push, record, step, trace_path
from .agent import range as range  # not in __all__: "import *" would hide Python's own range
from .cluster import analyze
from .cpu_profiler import CPUMemoryProfiler
from .errors import ConfigurationError, ProfilerError, VisualizationError
from .holders import holders
from .profiler import GPUMemoryProfiler, MemorySnapshot, ProfileResult, get_global_profiler, profile_context, profile_function
from .recorder import RecorderReader, generate_report
from .recording import Report, entries, follow, report
from .send import send, sent
from .system import convert_bytes, format_memory, get_gpu_info, get_system_info
from .telemetry import validate_telemetry_record
from .tensorflow import ProfiledLayer, TensorFlowMemoryTracker, TensorFlowProfiler, TFMemoryProfiler
from .tracker import (CPUMemoryTracker, MemoryTracker, MemoryWatchdog, OOMExceptionClassification, OOMFlightRecorderConfig, TrackingEvent,
                      classify_oom_exception)
from .utils import format_bytes

__all__ = ["holders", "analyze", "annotate", "available", "end_step", "flush", "mark", "metadata", "pop", "push", "record", "step", "trace_path",
           "ConfigurationError", "ProfilerError", "VisualizationError", "GPUMemoryProfiler", "MemorySnapshot", "ProfileResult",
           "get_global_profiler", "profile_context", "profile_function", "RecorderReader", "generate_report", "Report", "entries",
           "follow", "report", "send", "sent", "convert_bytes", "format_bytes", "format_memory", "get_gpu_info", "get_system_info",
           "validate_telemetry_record", "ProfiledLayer", "TensorFlowMemoryTracker", "TensorFlowProfiler", "TFMemoryProfiler",
           "CPUMemoryProfiler", "CPUMemoryTracker", "MemoryTracker", "MemoryWatchdog", "TrackingEvent", "OOMExceptionClassification",
           "OOMFlightRecorderConfig", "classify_oom_exception"]
