# SPDX-License-Identifier: MIT
"""What this package raises, by the names that users of Python Stormlog know."""


class ProfilerError(Exception):
    """Something could not be measured or read."""


class ConfigurationError(ProfilerError):
    """Nothing is recorded, or not what was asked for; the text says how to start."""


class VisualizationError(ProfilerError):
    """A page or a table could not be made."""
