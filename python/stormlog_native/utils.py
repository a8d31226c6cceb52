# SPDX-License-Identifier: MIT
"""The names that upstream has in a module of this name."""
from .system import convert_bytes, format_memory, get_gpu_info, get_system_info

format_bytes = format_memory

__all__ = ["convert_bytes", "format_bytes", "format_memory", "get_gpu_info", "get_system_info"]
