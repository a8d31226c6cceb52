# SPDX-License-Identifier: MIT
"""Phases: ranges of the recording, and the telemetry events phase_enter and phase_exit that report them, by upstream's names."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

from . import agent

PHASE_ENTER_EVENT, PHASE_EXIT_EVENT = "phase_enter", "phase_exit"


class PhaseHandle:
    """An open range of the recording.  Telemetry has it as phase_enter and phase_exit, with the metadata.  close() or `with` ends it."""

    def __init__(self, name: str, metadata: Optional[Mapping[str, Any]] = None) -> None:
        self.name, self.closed = name, False
        agent.push(name, **{str(key): value for key, value in (metadata or {}).items()})

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            agent.pop()

    def __enter__(self) -> "PhaseHandle":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


@dataclass(frozen=True)
class PhaseBoundaryRecord:
    """The begin or the end of a range.  path: the ranges around it, outermost first, and its own name."""
    action: str
    name: str
    path: Tuple[str, ...]
    depth: int
    scope_id: str
    parent_scope_id: Optional[str]
    thread_id: int
    thread_name: str
    sequence: int
    session_id: str
    timestamp_ns: int
    attributes: Dict[str, Any]


def parse_phase_boundary(event: Mapping[str, Any]) -> Optional[PhaseBoundaryRecord]:
    """None: the event is no boundary of a phase."""
    if event.get("event_type") not in (PHASE_ENTER_EVENT, PHASE_EXIT_EVENT):
        return None
    scope = (event.get("metadata") or {}).get("phase_scope")
    if not isinstance(scope, Mapping) or not scope.get("path"):
        return None
    return PhaseBoundaryRecord(path=tuple(scope["path"]), session_id=event["session_id"], timestamp_ns=event["timestamp_ns"],
                               attributes=dict(scope.get("attributes", {})), **{name: scope[name] for name in (
                                   "action", "name", "depth", "scope_id", "parent_scope_id", "thread_id", "thread_name", "sequence")})


def is_phase_boundary_event(event: Mapping[str, Any]) -> bool:
    return parse_phase_boundary(event) is not None
