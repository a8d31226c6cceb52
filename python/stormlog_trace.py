# SPDX-License-Identifier: MIT
"""The reader by its short name, import stormlog_trace: for scripts that have this folder in their path and not the package installed."""
from stormlog_native.reader import *  # noqa: F401,F403
from stormlog_native.reader import Trace, decode_block, open_folder  # noqa: F401
