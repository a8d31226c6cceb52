# SPDX-License-Identifier: MIT
"""python -m stormlog_native.samples TRACE: its samples as JSON; what is unknown is null."""
import json
import sys


def main(path: str) -> None:
    from .reader import Trace
    trace = Trace(path)
    columns = trace.samples()
    answer = {name: [None if value != value else float(value) for value in column] for name, column in columns.items()}
    if "ns" in columns:
        answer["ns"] = [int(trace.unix_ns(int(value))) for value in columns["ns"]]
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
