# SPDX-License-Identifier: MIT
"""What Python Stormlog exports from its module of the same name."""
from .tracker import OOMExceptionClassification, OOMFlightRecorderConfig, classify_oom_exception

__all__ = ["OOMExceptionClassification", "OOMFlightRecorderConfig", "classify_oom_exception"]
