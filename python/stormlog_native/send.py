# SPDX-License-Identifier: MIT
"""What this process recorded goes to stormlog-server when a function has ended: stormlog-analyze push, by a child."""
from __future__ import annotations

import functools
import warnings
from typing import Any, Callable, Optional

from .agent import available, flush, trace_path
from .errors import ConfigurationError, ProfilerError
from .recording import analyze


def send(to: Optional[str] = None) -> str:
    """Sends this process's trace as it is now; where the server shows it.  to: its address, else STORMLOG_SERVER; the token is in
    STORMLOG_TOKEN or the file that STORMLOG_TOKEN_FILE names."""
    path = trace_path()
    flush()
    return analyze("push", *(["--to", to] if to else []), path).strip()


def sent(function: Optional[Callable[..., Any]] = None, *, to: Optional[str] = None) -> Callable[..., Any]:
    """@sent, or @sent(to=URL): the run is sent when the function has returned or raised.  What it returned or raised stays, whatever
    becomes of the sending: a failure is a warning, and a process that is not recorded sends nothing."""
    if function is None:
        return functools.partial(sent, to=to)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            if available():
                try:
                    send(to)
                except (ConfigurationError, ProfilerError, OSError) as error:
                    warnings.warn("the run was not sent: %s" % error, RuntimeWarning, stacklevel=2)

    return call
