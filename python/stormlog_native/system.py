# SPDX-License-Identifier: MIT
"""What this machine is, and sizes as text."""
from __future__ import annotations

import os
import platform
import sys
from typing import Any, Dict

DEVICE_KINDS = ("device", "pool", "vmm", "array", "graph")  # the same list as the analyzer's sl_model_is_known
UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def format_memory(bytes_value: int, precision: int = 2) -> str:
    """"1.50 GB", in steps of 1024, as Python Stormlog writes it."""
    value, unit = float(bytes_value), 0
    while abs(value) >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return "%.*f %s" % (precision, value, UNITS[unit]) if bytes_value else "0 B"


def resident_now() -> "tuple[int, int]":
    """(resident, address space) in bytes, of this process."""
    with open("/proc/self/statm") as file:
        space, resident = (int(number) * os.sysconf("SC_PAGE_SIZE") for number in file.read().split()[:2])
    return resident, space


def _memory() -> Dict[str, Any]:
    found: Dict[str, Any] = {"memory_total": None, "memory_available": None}
    with open("/proc/meminfo") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in ("MemTotal", "MemAvailable"):
                found["memory_total" if name == "MemTotal" else "memory_available"] = int(rest.split()[0]) * 1024
    return found


def _torch() -> Dict[str, Any]:
    """Versions of the PyTorch that the program has imported, if any; importing it here would make a CUDA context."""
    torch = sys.modules.get("torch")
    version = getattr(torch, "version", None)
    return {"torch_version": getattr(torch, "__version__", None), "cuda_version": getattr(version, "cuda", None),
            "rocm_version": getattr(version, "hip", None)}


def get_gpu_info(device: Any = None) -> Dict[str, Any]:
    """One GPU as this process's recording knows it now; an unknown value is None.  Before the first GPU call sizes are 0.
    {"error"}: other devices have been used, this one has not."""
    from . import agent, recording
    from .profiler import _device_number
    number = _device_number(device)
    if agent.available() and not agent.recording():
        return {"device_id": number, "device_name": None, "total_memory": None, "allocated_memory": 0, "reserved_memory": 0,
                "max_memory_allocated": 0, "max_memory_reserved": 0, **_torch()}
    run = recording.summary()
    found = [row for row in run["run"]["devices"] if row["device"] == number]
    if not found:
        return {"error": "device %d has not been used" % number}
    process = run["processes"][0]
    torch = [row for row in process["pytorch"] if row["device"] == number]
    held = [row for row in process["memory"] if row["device"] == number and row["kind"] in DEVICE_KINDS]
    reserved = sum(row["live_bytes"] for row in held)
    most = found[0]["known_peak_bytes"]
    return {"device_id": number, "device_name": found[0]["name"], "total_memory": found[0]["total_bytes"],
            "allocated_memory": torch[0]["allocated_bytes"] if torch else reserved, "reserved_memory": reserved,
            "max_memory_allocated": torch[0]["peak_allocated_bytes"] if torch and torch[0]["peak_allocated_bytes"] is not None else most, "max_memory_reserved": most, **_torch()}


def convert_bytes(value: float, from_unit: str = "B", to_unit: str = "GB") -> float:
    """convert_bytes(1536, "MB", "GB") is 1.5, in steps of 1024."""
    return value * 1024.0 ** (UNITS.index(from_unit.upper()) - UNITS.index(to_unit.upper()))


def get_system_info() -> Dict[str, Any]:
    """The machine and its GPUs, without a call of the driver.  devices: those that the recording has seen in use."""
    from . import agent, recording
    from .errors import ProfilerError
    nvidia = os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/nvidiactl")
    amd = os.path.exists("/dev/kfd")
    info = {"platform": platform.platform(), "architecture": platform.machine(), "python_version": platform.python_version(),
            "cpu_count": os.cpu_count(), "mps_built": False, "mps_available": False, "rocm_available": amd, "cuda_available": nvidia,
            "recorded": agent.available(), "devices": None, **_memory(), **_torch()}
    try:
        run = recording.summary()["run"]
        info["devices"] = run["devices"]
    except ProfilerError:
        pass
    used = bool(info["devices"])
    info["detected_backend"] = "rocm" if amd else "cuda" if nvidia or used else "cpu"
    info["device_count"] = len(info["devices"]) if info["devices"] is not None else None
    return info
