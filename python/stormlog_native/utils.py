# SPDX-License-Identifier: MIT
"""What Python Stormlog exports from its module of the same name."""
from .system import convert_bytes, format_memory, get_gpu_info, get_system_info

format_bytes = format_memory

__all__ = ["convert_bytes", "format_bytes", "format_memory", "get_gpu_info", "get_system_info"]
