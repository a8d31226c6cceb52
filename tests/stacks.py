# SPDX-License-Identifier: MIT
"""report.json with the frames of its stacks in place of their numbers."""


def named(report):
    rows = report.pop("frames")
    waiting = [report]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict) and isinstance(at.get("stack"), list):
            at["stack"] = [rows[number] for number in at["stack"]]
        waiting += [one for one in (at.values() if isinstance(at, dict) else at) if isinstance(one, (dict, list))]
    return report
