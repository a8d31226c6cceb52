# SPDX-License-Identifier: MIT
"""What this package raises, by the names that users of Python Stormlog know."""


class ProfilerError(Exception):
    """Something could not be measured or read."""
    status = 2  # with which `python -m stormlog_native` ends: that of the program that failed, if one did


class ConfigurationError(ProfilerError):
    """Nothing is recorded, or the recording lacks what was asked for.  The message says how to start one."""


class VisualizationError(ProfilerError):
    """A page or a table could not be made."""
