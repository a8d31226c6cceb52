# SPDX-License-Identifier: MIT
"""The names that upstream has in a module of this name."""
from .tracker import OOMExceptionClassification, OOMFlightRecorderConfig, classify_oom_exception

__all__ = ["OOMExceptionClassification", "OOMFlightRecorderConfig", "classify_oom_exception"]
