#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""pack --redact works on whatever a trace or a ring holds."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import most  # noqa: E402
import traces as t  # noqa: E402
from traces import numpy  # noqa: E402

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

    def packed(self):
        """Every byte of the pack, with its frames decompressed."""
        import zstandard
        done = subprocess.run([ANALYZE, "pack", "--redact", "-o", os.path.join(self.folder, "x.stormlog"), os.path.dirname(self.trace)],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stderr
        self.assertNotIn("Acme", self.said)
        with open(os.path.join(self.folder, "x.stormlog"), "rb") as file:
            plain = data = zstandard.ZstdDecompressor().stream_reader(file.read()[16:]).read()
        at = -1
        while (at := data.find(b"\x28\xb5\x2f\xfd", at + 1)) >= 0:
            plain += zstandard.ZstdDecompressor().decompressobj().decompress(data[at:])
        return plain

    def assert_masked(self, *words):
        plain = self.packed()
        for word in words or (b"Secret", b"Acme"):
            at = plain.find(word)
            self.assertEqual(at, -1, plain[max(0, at - 40):at + 40])
        return plain

    def events(self):
        """What the folder and the pack tell of events alone."""
        for path in os.path.dirname(self.trace), os.path.join(self.folder, "x.stormlog"):
            done = subprocess.run([ANALYZE, "dump", path], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            yield done.stdout

    def test_a_map_without_a_kind(self):
        for content in t.packed({"x": 1}), b"\0", t.packed([1, 2]), t.packed({"def": 3}), t.packed({"def": None}):
            t.write(self.trace, t.header(), t.frame(t.DEFS, content), t.footer())
            self.pack()

    def test_a_large_trace_takes_the_memory_of_a_frame(self):
        fields = {name: numpy.frombuffer(os.urandom(32 << 10), "<u8") for name in t.FIELDS[8:15]}
        block = t.Thread().events(4096, api=t.MALLOC, **fields)
        t.write(self.trace, t.header(), *[block] * 400, t.footer())
        self.assertGreater(os.path.getsize(self.trace), 90 << 20)
        done, kib = most.run([ANALYZE, "pack", "--redact", "-o", self.trace + ".stormlog", self.trace], stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)
        self.assertGreater(os.path.getsize(self.trace + ".stormlog"), 7 * 4096 * 8, "all blocks are one")
        self.assertLess(kib, 64 << 10, "96 MB of trace took twice as much")

    def test_a_ring_whose_process_was_killed_while_it_wrote_a_definition(self):
        text = t.packed({"def": "text", "id": 1, "text": "hello"})
        ring = t.ring(self.trace, t.record(text) + t.record(bytes(40), done=False) + t.record(text[:7] + bytes(len(text) - 7), done=False))
        t.write(self.trace, t.header(ring="rank-00000-100.ring"))
        t.write(self.trace.replace(".msgpack.zst", ".ring"), ring)
        self.pack()

    def test_no_name_is_left_in_the_bytes(self):
        secret = "SecretAcme"
        names = [secret, "python_" + secret, "jax_" + secret + "fn", "/opt/xla-" + secret + "/x.py", "nvidia-" + secret, "libcu" + secret + ".so",
                 "lib" + secret + ".so.1", "a." + secret[:4], secret + ".acme", "x=" + secret, secret.encode()]
        nested = {secret: secret, "version": secret, "agent": [secret, {secret: {"def": secret}}], "name": secret.encode()}
        maps = []
        for i, name in enumerate(names, 1):
            maps += [{"def": "text", "id": i, "text": name}, {"def": "frame", "id": i, "function": name, "file": name, "line": 1},
                     {"def": "thread", "id": i, "name": name}, {"def": "module", "base": 1, "end": 2, "path": name, "build_id": name},
                     {"def": "note", "text": name, "ns": t.T0}, {"def": "gap", "count": 1, "begin_ns": t.T0, "end_ns": t.T0, "why": name},
                     {"def": "capability", "name": name, "value": name}, {"def": "communicator", "handle": i, "name": name},
                     {"def": "device", "ordinal": i, "name": name, "uuid": name, "pci": name},
                     {"def": "sample", "ns": t.T0, "device": 0, "source": name}, {"def": secret, secret: nested, "unknown": name}]
        ring = t.ring(self.trace, b"".join(t.record(t.packed(one)) for one in maps), host=secret, metadata=nested)
        t.write(self.trace, t.header(host="eqxi2.acme", argv=names, exe=names[3], cwd=secret, tag=secret, metadata=nested, environment=nested,
                                     settings=nested, job_id=secret, run_id=secret, extra=nested), t.defs(maps), t.footer(how=secret))
        t.write(self.trace.replace(".msgpack.zst", ".ring"), ring)
        plain = self.packed()
        self.assertRegex(self.said, "not masked, besides")
        for word in b"Secret", b"Acme", b"acme", b"eqxi":
            self.assertFalse(word in plain, word)
        self.assertTrue(b"cudaMalloc" in plain)

    def test_names_of_the_format_and_blocks_hold_no_other(self):
        s = "Acme"
        changes = {"agent": "1.0-" + s, "families": [["fam" + s, 2]] + t.FAMILIES[1:], "flags": t.FLAGS + ["flag" + s],
                   "kinds": [[k, "host" if k in t.HOST else "device"] for k in t.KINDS] + [["kind" + s, s]], "hooks": t.HOOKS + [["cuda" + s, 0, 0, 0]],
                   "verbs": [[v, "before" if v in t.BEFORE else "after"] for v in t.VERBS] + [["VERB" + s, s]],
                   "fields": [[f, "i" if f in t.SIGNED else "u", s] for f in t.FIELDS] + [["field" + s, "u", {s: s}]]}
        number = [0, 8, 0, 0, b"".join(i.to_bytes(8, "little") for i in (4096, 8192))]
        block = {"def": "block", "thread": 1, "first": 1, "next": 5, "count": 2, "extra": "of " + s, s: {s: [s]},
                 "columns": {"time_ns": [0, 0, 0, t.T0, b""], "api": [0, 0, 0, t.MALLOC, b""], "kind": [0, 0, 0, 1, b""], "bytes": [0, 0, 0, 4096, b""],
                             "address": number, "column" + s: [0, 8, 0, 0, (s * 4).encode()], "label": [0, 0, 0, s, b""]}}
        clean = t.Thread(2).events(2, api=t.MALLOC, kind=1, address=[1 << 20, 2 << 20], bytes=4096)
        t.write(self.trace, t.header(**changes), t.frame(t.BLOCK, t.packed(block) + s.encode(), thread=1, first=1, end=5, count=2, begin_ns=t.T0, end_ns=t.T0),
                clean, t.defs([{"def": "note", "text": "x", "ns": t.T0, "flags": s, "kinds": [s]}]), t.framed(t.BLOCK, s.encode() * 9), t.footer())
        plain = self.packed()
        self.assertNotIn(s.encode(), plain)
        for name in b"cudaMalloc", b"time_ns", b"host_pinned", b"RANGE_PUSH":
            self.assertIn(name, plain)
        self.assertIn(clean, plain, "numbers alone go as they are")
        done = subprocess.run([ANALYZE, "--json", os.path.dirname(self.trace)], capture_output=True, text=True, timeout=60)
        self.assertEqual(*(json.loads(text)["processes"][0]["events"] for text in (done.stdout, self.pack())))

    def test_binary_values_are_numbers_in_two_places_alone(self):
        s = b"SecretAcme"
        nested = {"pcs": s, "threads": [s, {"x": s}], "blocks": {"columns": s}, "columns": {"address": [0, 8, 0, 0, s]}, "x": t.msgpack.ExtType(5, s)}
        pcs = struct.pack("<QQ", 0x1122334455667788, 0x99aabbccddeeff)
        maps = [dict(nested, **{"def": kind, "id": i, "text": "a", "function": s}) for i, kind in enumerate(("text", "frame", "note", "header", "other"), 1)]
        maps += [{"def": "native_stack", "id": 1, "pcs": pcs + s[:7]}, {"def": "native_stack", "id": 2, "pcs": [s]}, {"def": "native_stack", "id": 3, "x": {"pcs": s}},
                 t.packed({"def": "native_stack", "id": 4, "pcs": pcs})[:-len(pcs) - 6].replace(b"\x83", b"\x84", 1) + b"\xa3pcs\xc4\x10" + pcs + b"\xa3pcs\xc4\x0a" + s]
        t.write(self.trace, t.header(metadata=nested, settings=nested, environment=nested, agent=s, families=[[s, s]], extra=nested), t.defs(maps), t.footer())
        self.assertIn(pcs, self.assert_masked(b"Secret", b"SecretA"))

    def test_columns_hold_their_values_and_no_other_byte(self):
        s = b"SecretAcme"
        few = bytes([0, 2]) + struct.pack("<Q", 4096) + s[:8] + struct.pack("<Q", 8192)
        good = {"time_ns": [0, 0, 0, t.T0, b"", s, {"x": s}], "api": [0, 0, 0, t.MALLOC, b""], "address": [2, 1, 0, 0, few], "bytes": [0, 0, 0, 64, b""],
                "columns": [0, 8, 0, 0, s], "pcs": s}
        blocks = [good, dict(good, bytes=[0, 0, 0, 64, s]), dict(good, address=[0, 8, 0, 0, bytes(16) + s]), dict(good, kind=[9, 8, 0, 0, s * 4])]
        frames = [t.frame(t.BLOCK, t.packed({"def": "block", "thread": i, "first": 1, "next": 5, "count": 2, "columns": columns, "pcs": s, "threads": s}) +
                          (t.packed({"columns": {"address": [0, 8, 0, 0, s]}}) if i == 1 else b""), thread=i, first=1, end=5, count=2)
                  for i, columns in enumerate(blocks, 1)]
        t.write(self.trace, t.header(), *frames, t.footer())
        self.assert_masked()
        folder, pack = self.events()
        self.assertEqual(folder, pack)
        self.assertEqual(pack.count("cudaMalloc"), 2)

    def test_digits_and_punctuation_are_masked_too(self):
        families = [["cuda_runtime", 2], ["98765432", 2]] + t.FAMILIES[2:]
        for agent in "10.20.30.40", "31337", "1.234", "1.0x", "1.", ".1", "1..0":
            t.write(self.trace, t.header(agent=agent, families=families, flags=["31337"], argv=["x", "--pw=!@#$%^&*()", "!@#$%^&*()", "p@$w^rd"], metadata={"pw": "!@#$%"}),
                    t.footer())
            self.assert_masked(b"98765432", b"31337", b"!@#$", b"@$w^", b"&*()", b"\xa5agent" + bytes([0xa0 + len(agent)]) + agent.encode())
        for agent in "1.0", "0.12.3":
            t.write(self.trace, t.header(agent=agent, argv=["-", "--", "../x"]), t.footer())
            self.assertIn(agent.encode(), self.packed())
            self.assertRegex(self.said, r"not masked, besides.* -- .* %s " % re.escape(agent))

    def test_what_everybody_knows_stays(self):
        known = ["/usr/lib/x86_64-linux-gnu/libcublas.so.13", "/usr/lib/libc-2.36.so", "libpython3.11.so.1.0", "/usr/lib/libtorch_cuda.so"]
        t.write(self.trace, t.header(), t.defs([{"def": "module", "base": i << 20, "end": (i + 1) << 20, "path": path, "build_id": "", "ns": t.T0}
                                                for i, path in enumerate(known, 1)]),
                t.Thread().events(4, api=t.MALLOC, kind=1, duration_ns=1, address=[4096, 8192, 12288, 16384], bytes=4096,
                                  caller=[(i << 20) + 8 for i in (1, 2, 3, 4)]), t.footer())
        said = self.pack()
        for path in known[0], known[3]:
            self.assertIn(os.path.basename(path), said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
