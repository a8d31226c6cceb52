# SPDX-License-Identifier: MIT
"""phase_enter and phase_exit of the telemetry, as upstream's readers know them."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

PHASE_ENTER_EVENT, PHASE_EXIT_EVENT = "phase_enter", "phase_exit"


@dataclass(frozen=True)
class PhaseBoundaryRecord:
    """One begin or end of a range; path: the ranges it lies in, outermost first, and itself."""
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
