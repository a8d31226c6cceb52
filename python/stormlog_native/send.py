# SPDX-License-Identifier: MIT
"""Send what this process recorded to stormlog-server when a function has ended; a child runs stormlog-analyze push."""
from __future__ import annotations

import functools
import warnings
from typing import Any, Callable, Optional, TypeVar, overload

from .agent import available, flush, trace_path
from .errors import ConfigurationError, ProfilerError
from .recording import analyze

Function = TypeVar("Function", bound=Callable[..., Any])


def send(to: Optional[str] = None) -> str:
    """Send this process's trace as it is now; returns the address at which the server shows it.  to: the server's address, by default
    STORMLOG_SERVER.  The token is in STORMLOG_TOKEN or in the file that STORMLOG_TOKEN_FILE names."""
    path = trace_path()
    flush()
    return analyze("push", *(["--to", to] if to else []), path).strip()


@overload
def sent(function: Function, *, to: Optional[str] = None) -> Function: ...
@overload
def sent(function: None = None, *, to: Optional[str] = None) -> Callable[[Function], Function]: ...
def sent(function: Optional[Callable[..., Any]] = None, *, to: Optional[str] = None) -> Any:
    """@sent, or @sent(to=URL): the run is sent when the function has returned or raised.  Its result or
    exception is passed on in any case: a failure to send is a warning, and a process that is not recorded sends nothing."""
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
