# SPDX-License-Identifier: MIT
"""Compares a framework's journal of its allocator with the report of the same run."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "real")]
import e2e
import real
import stormlog_trace

BUILD = os.path.join(e2e.BUILD, "tests", "pools")


class Pools(e2e.Recording):
    """A recording with the journal of the framework's stand-in beside it."""

    def __init__(self, *argv, **environment):
        super().__init__("env", "POOLS_JOURNAL=journal.txt", *argv, **environment)

    def journal(self):
        with open(os.path.join(self.folder, "journal.txt")) as file:
            return [line.split(None, 3) for line in file.read().splitlines()]

    def trace(self):
        """The program's trace, the one with the most events: if host memory is recorded, programs that it starts have traces too."""
        return max(stormlog_trace.open_folder(self.traces), key=lambda trace: len(trace.events().get("api", ())))

    def blocks(self):
        """(verb, address, bytes, text) of every event of a framework's allocator."""
        trace = self.trace()
        events, verbs, texts = trace.events(), trace.verbs(), trace.texts()
        return [(verbs[api], address, size, texts.get(label) or "") for api, address, size, label
                in zip(*(events[name].tolist() for name in ("api", "address", "bytes", "label")))
                if verbs[api].startswith("BLOCK")]


def collapsed(name):
    return re.sub(r"\d+", "#", name)
