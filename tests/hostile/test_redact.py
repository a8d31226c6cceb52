#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""pack --redact works on whatever a trace or a ring holds."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import traces as t  # noqa: E402

ANALYZE = os.path.abspath(sys.argv[1])


class Redact(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-redact-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.trace = os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst")

    def pack(self):
        done = subprocess.run([ANALYZE, "pack", "--redact", "-o", os.path.join(self.folder, "x.stormlog"), os.path.dirname(self.trace)],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([ANALYZE, "--json", os.path.join(self.folder, "x.stormlog")], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_map_without_a_kind(self):
        for content in t.packed({"x": 1}), b"\0", t.packed([1, 2]), t.packed({"def": 3}), t.packed({"def": None}):
            t.write(self.trace, t.header(), t.frame(t.DEFS, content), t.footer())
            self.pack()

    def test_a_ring_whose_process_was_killed_while_it_wrote_a_definition(self):
        text = t.packed({"def": "text", "id": 1, "text": "hello"})
        ring = t.ring(self.trace, t.record(text) + t.record(bytes(40), done=False) + t.record(text[:7] + bytes(len(text) - 7), done=False))
        t.write(self.trace, t.header(ring="rank-00000-100.ring"))
        t.write(self.trace.replace(".msgpack.zst", ".ring"), ring)
        self.pack()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
