# SPDX-License-Identifier: MIT
"""pytest: @pytest.mark.limit_gpu_memory("2 GiB") and @pytest.mark.limit_gpu_leaks("0"), and a table at the end.

The call of each marked test, without its fixtures, is a range in the recording of this pytest: stormlog-run -- pytest.  Then a child
process reads what the test used, and a test beyond its limit fails with the figures.  The figures are also properties of the test, so
JUnit's file has them, and the table gets them from pytest-xdist's workers.  Without the recorder marked tests run and the table says
that nothing was measured; --gpu-memory-required makes that an error."""
from __future__ import annotations

import re
from typing import Any, Dict, List

import pytest

from . import agent, recording
from .errors import ProfilerError
from .system import format_memory

PEAK, STAYS, PROBLEM = "gpu_memory_peak_bytes", "gpu_memory_stays_bytes", "gpu_memory_not_measured"
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _parts(text: Any) -> "re.Match[str]":
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(([KMGT]?)(?:i?B)?)\s*", str(text), re.I)
    if not match:
        raise ValueError("%r is no size; write \"2 GiB\"" % (text,))
    return match


def parse_size(text: Any) -> int:
    """"2 GiB", "512MB", "0": binary, as every size here."""
    match = _parts(text)
    return int(float(match[1]) * _UNITS[match[3].upper()])


def _as(text: Any, size: int) -> str:
    """The size in the unit of `text`, and in bytes."""
    _, unit, letter = _parts(text).groups()
    return "%.2f %s (%d bytes)" % (size / _UNITS[letter.upper()], unit, size) if letter else "%d bytes" % size


def _short(size: int) -> str:
    return re.sub("([KMGTP])B", r"\1iB", format_memory(size))


def pytest_addoption(parser: Any) -> None:
    parser.getgroup("stormlog").addoption("--gpu-memory-required", action="store_true",
                                          help="limits of GPU memory that cannot be measured are errors")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "limit_gpu_memory(size): the test's call fails if it needs more than that beyond what was held before")
    config.addinivalue_line("markers", "limit_gpu_leaks(size): the test fails if more than that stays when it has ended")
    config.pluginmanager.register(_Limits(config), "stormlog-limits")


class _Limits:
    def __init__(self, config: Any) -> None:
        self.config = config
        self.rows: List[str] = []
        self.problem = ""

    def _limits(self, item: Any) -> Dict[str, Any]:
        return {name: mark.args[0] if mark.args else mark.kwargs["size"]
                for name in ("limit_gpu_leaks", "limit_gpu_memory") for mark in item.iter_markers(name)}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        """A test beyond its limit raises, like an assertion in it: so xfail applies to limits too."""
        limits = self._limits(item)
        try:
            for limit in limits.values():
                parse_size(limit)
        except ValueError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        call = agent.begin("test " + item.name) if limits else None
        outcome = yield
        if not call:
            return
        agent.pop()
        wrong = self._judge(item, call, limits)
        if wrong and not outcome.excinfo:
            beyond = pytest.fail.Exception(wrong, pytrace=False)
            if not hasattr(outcome, "force_exception"):  # pluggy before 1.1, which does not warn of a raise here
                raise beyond
            outcome.force_exception(beyond)

    def _judge(self, item: Any, call: agent.Call, limits: Dict[str, Any]) -> str:
        """The reason why the test's memory fails it; "": it passes."""
        try:
            if not agent.available():
                agent.trace_path()
            if not agent.recording():
                rows: List[Dict[str, Any]] = []  # no GPU call so far: nothing was used
            else:
                rows = [row for row in recording.entries(label=call.label) if row["step"] == call.step]
        except ProfilerError as error:
            problem = str(error).splitlines()[0].partition(". ")[0] + " (stormlog-run -- pytest)"
            item.user_properties.append((PROBLEM, problem))
            return problem if self.config.getoption("--gpu-memory-required") else ""
        peak = rows[0]["peak_bytes"] - rows[0]["before_bytes"] if rows else 0
        stays = max(0, rows[0]["after_bytes"] - rows[0]["before_bytes"]) if rows else 0
        found = {"limit_gpu_memory": (peak, "needed %s of GPU memory"), "limit_gpu_leaks": (stays, "left %s of GPU memory behind")}
        wrong = [found[name][1] % _as(limit, found[name][0]) + ", limit %s" % _as(limit, parse_size(limit))
                 for name, limit in limits.items() if found[name][0] > parse_size(limit)]
        item.user_properties += [(PEAK, peak), (STAYS, stays)]
        return "; ".join(wrong)

    def pytest_runtest_logreport(self, report: Any) -> None:
        said = dict(report.user_properties) if report.when == "call" else {}
        if PEAK in said:
            self.rows.append("%12s %12s  %s" % (_short(said[PEAK]), _short(said[STAYS]), report.nodeid))
        self.problem = said.get(PROBLEM, self.problem)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.rows and not self.problem:
            return
        terminalreporter.section("GPU memory")
        if self.problem:
            terminalreporter.line("not measured: " + self.problem)
        if self.rows:
            terminalreporter.line("%12s %12s  test" % ("peak", "stays"))
        for row in self.rows:
            terminalreporter.line(row)
