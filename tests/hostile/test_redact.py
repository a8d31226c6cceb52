#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""pack --redact works on whatever a trace or a ring holds."""
import itertools
import json
import os
import pathlib
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
        self.assertIn(done.returncode, (0, 3), done.stderr)
        done = subprocess.run([ANALYZE, "--json", os.path.join(self.folder, "x.stormlog")], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def packed(self):
        """Every byte of the pack, with its frames decompressed."""
        import zstandard
        done = subprocess.run([ANALYZE, "pack", "--redact", "-o", os.path.join(self.folder, "x.stormlog"), os.path.dirname(self.trace)],
                              capture_output=True, text=True, timeout=60)
        self.said, self.whole = done.stderr, done.returncode == 0
        self.assertIn(done.returncode, (0, 3), done.stderr)
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
        self.assertRegex(self.said, "not masked:")
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
        done = subprocess.run([ANALYZE, "--json", os.path.dirname(self.trace)], capture_output=True, text=True, timeout=60)
        self.assertEqual(*(json.loads(text)["processes"][0]["events"] for text in (done.stdout, self.pack())))

    def ring_of_secrets(self, ending):
        """A ring of which each byte that no reader reads is a secret.  ending: the word behind the last whole definition."""
        secret = itertools.cycle(b"SecretAcme")
        fill = bytes(itertools.islice(secret, 4 << 20))
        plain = t.ring(self.trace)
        size = struct.unpack_from("<I", plain, 28)[0]
        head, log, slots = bytearray(fill[:256 << 10]), bytearray(fill[:1 << 20]), bytearray(fill[:1 << 20])
        head[:88] = plain[:48] + (b"00000000-0000-0000-0000-000000000000\0" + fill)[:40]
        struct.pack_into("<IIII", head, 88, 1, 8, 1, 0)  # state, segments, threads, stopped
        head[104:128] = bytes(24)
        head[384:460] = bytes(76)  # from `obeys` to `child_lost`
        head[65536:65536 + size] = plain[65536:65536 + size]
        uses = [3, 2, 0, 1, 4, 77, 2, 3]  # log, events, free, claimed, hole, unknown, events that were written, log that was released
        for i, use in enumerate(uses):
            struct.pack_into("<IIiIQQ", head, 896 + 128 * i, use, i % 2, 0, i, 1 if i == 1 else 0, 0)
            struct.pack_into("<Q", head, 896 + 128 * i + 64, 5 if i == 1 else 0)
        struct.pack_into("<II", head, 896 + 128 * 6, 2, 2)
        texts = b"".join(t.record(t.packed({"def": "text", "id": i, "text": "a" * i}))[:-1] + b"S" for i in range(1, 9) if i % 8 != 3)
        killed = struct.pack("<Q", 40 << 8 | 1) + fill[:40]
        put = texts + killed + texts + ending
        log[:len(put)] = put
        for seq, state in (5, 7), (7, 5), (9, 6), (11, 7):  # wide: done, given up, in flight, done; those before the tail are written
            call = struct.pack("<8Q", seq << 4 | state, 1 | 1 << 32, t.T0 + seq, 5, seq << 20, 4096, 0, 0)
            slots[64 * (seq - 1):64 * seq] = call if state != 5 else call[:8] + fill[:56]
            slots[64 * seq + 8:64 * seq + 56] = bytes(48) if state != 5 else fill[:48]
        return bytes(head + log + slots) + fill + fill[:2 << 20] + bytes(1 << 20) + fill[:3 << 20]

    def test_a_ring_keeps_what_is_read_and_no_other_byte(self):
        for ending in bytes(8), struct.pack("<Q", 40 << 8 | 7), struct.pack("<Q", 0x4d << 8 | 3), struct.pack("<Q", 2 << 28 | 2):
            ring = self.ring_of_secrets(ending)
            self.assertGreater(ring.count(b"Secret"), 10 ** 6 // 3)
            for size in len(ring), (256 << 10) + (2 << 20) - 77, (256 << 10) + 12345, (256 << 10) - 99:
                t.write(self.trace, t.header(ring="rank-00000-100.ring"), t.Thread().events(2, api=t.MALLOC, kind=1, address=[4096, 8192], bytes=64))
                t.write(self.trace.replace(".msgpack.zst", ".ring"), ring[:size])
                self.assert_masked()
                folder, pack = self.events()
                self.assertEqual(folder, pack)
                self.assertEqual(pack.count("cudaMalloc"), 5 if size > (2 << 20) - 99 else 2)

    def test_the_ring_of_the_pack_has_no_name_and_no_segment(self):
        boot = b"12345678-9abc-def0-1234-56789abcdef0"
        ring = bytearray(t.ring(self.trace, boot_id=boot.decode()))
        ring[48:48 + len(boot)] = boot
        t.write(self.trace, t.header(ring="rank-00000-100.ring", boot_id=boot.decode()))
        t.write(self.trace.replace(".msgpack.zst", ".ring"), bytes(ring))
        plain = self.assert_masked(boot)
        at = plain.index(b"rank-00000-100.ring") + len("rank-00000-100.ring")
        size, = struct.unpack_from("<Q", plain, at)
        self.assertLess(size, 64 << 10)
        self.assertEqual(re.findall(rb"[ -~]{4,}", plain[at + 8:at + 8 + size]), [b"stormlog.ring"])

    def test_a_ring_of_another_version_is_left_out_and_this_is_said(self):
        ring = t.ring(self.trace)
        t.write(self.trace, t.header(ring="rank-00000-100.ring"), t.footer())
        t.write(self.trace.replace(".msgpack.zst", ".ring"), ring[:16] + struct.pack("<I", 99) + ring[20:] + b"SecretAcme")
        self.assert_masked()
        self.assertIn("rank-00000-100.ring: offset 0: is no ring of this version", self.said)

    def test_binary_values_are_numbers_in_two_places_alone(self):
        s = b"SecretAcme"
        nested = {"pcs": s, "threads": [s, {"x": s}], "blocks": {"columns": s}, "columns": {"address": [0, 8, 0, 0, s]}, "x": t.msgpack.ExtType(5, s)}
        pcs = struct.pack("<QQ", 0x1122334455667788, 0x99aabbccddeeff)
        maps = [dict(nested, **{"def": kind, "id": i, "text": "a", "function": s}) for i, kind in enumerate(("text", "frame", "note", "header", "other"), 1)]
        maps += [{"def": "native_stack", "id": 1, "pcs": pcs + s[:7]}, {"def": "native_stack", "id": 2, "pcs": [s]}, {"def": "native_stack", "id": 3, "x": {"pcs": s}},
                 t.packed({"def": "native_stack", "id": 4, "pcs": pcs})[:-len(pcs) - 6].replace(b"\x83", b"\x84", 1) + b"\xa3pcs\xc4\x10" + pcs + b"\xa3pcs\xc4\x0a" + s]
        t.write(self.trace, t.header(metadata=nested, settings=nested, environment=nested, agent=s, families=[[s, s]], extra=nested), t.defs(maps), t.footer())
        self.assertIn(pcs, self.assert_masked(b"Secret", b"SecretA"))

    def test_letters_that_damage_makes_numbers_do_not_stay(self):
        header = dict(host="secretacme", argv=["secretacme"] + ["x"] * 12, metadata={"a": "secretacme"}, tag="secretacme")
        ring = t.ring(self.trace, t.record(t.packed({"def": "text", "id": 1, "text": "secretacme" * 4})), **header)
        places = [at.start() - 1 for at in re.finditer(b"secretacme", ring)]
        self.assertGreater(len(places), 4)
        for place, value in itertools.product(places, (0x00, 0x61, 0x7f, 0xc0, 0xe0, 0xcc, 0xca)):
            t.write(self.trace, t.header(ring="rank-00000-100.ring"))
            t.write(self.trace.replace(".msgpack.zst", ".ring"), ring[:place] + bytes([value]) + ring[place + 1:])
            self.assert_masked(b"secretacm", b"ecretacme")
        t.write(self.trace, t.header(), t.defs([{"def": "note", "text": "a", "ns": t.T0}, {"def": "note", "text": "b", 7: 8}]), t.footer())
        self.packed()
        self.assertEqual((self.whole, "a definition that no agent wrote is left out" in self.said), (False, True))

    def test_keys_of_the_agent_stay(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        keys = {key for folder in ("agent", "tools/attach", "common") for path in (root / folder).rglob("*.c")
                for key in re.findall(r'sl_definition_\w+\([^"();]*, "(\w+)"', path.read_text())}
        known = "".join((root / "analyzer/exports" / name).read_text() for name in ("redact.c", "public.c"))
        self.assertGreater(len(keys), 60)
        self.assertEqual({key for key in keys if not re.search(f' {key}[" ]', known)}, set())

    def test_numbers_of_metadata_go(self):
        t.write(self.trace, t.header(metadata={"card": 4111111111111111, "more": [-17, {"x": 0.25}], "pid": 77777777, "argv": [55555555]}), t.footer())
        plain = self.packed()
        for number in 4111111111111111, 77777777, 55555555, 0.25:
            self.assertNotIn(t.packed(number), plain)

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

    def test_nothing_hides_behind_a_frame_of_numbers(self):
        clean = t.Thread().events(2, api=t.MALLOC, kind=1, address=[4096, 8192], bytes=64)
        index, content = t.INDEX.unpack(clean[:64]), clean[64:] + struct.pack("<II", 0x184D2A51, 10) + b"SecretAcme"
        t.write(self.trace, t.header(), t.framed(t.BLOCK, content, *index[3:7], *index[8:10]), t.footer())
        self.assert_masked()
        folder, pack = self.events()
        self.assertEqual(folder, pack)
        self.assertEqual(pack.count("cudaMalloc"), 2)

    def test_digits_and_punctuation_are_masked_too(self):
        families = [["cuda_runtime", 2], ["98765432", 2]] + t.FAMILIES[2:]
        for agent in "10.20.30.40", "31337", "1.234", "1.0x", "1.", ".1", "1..0":
            t.write(self.trace, t.header(agent=agent, families=families, flags=["31337"], argv=["x", "--pw=!@#$%^&*()", "!@#$%^&*()", "p@$w^rd"], metadata={"pw": "!@#$%"}),
                    t.footer())
            self.assert_masked(b"98765432", b"31337", b"!@#$", b"@$w^", b"&*()")
            kept = b"\xa5agent" + bytes([0xa0 + len(agent)]) + agent.encode()
            self.assertTrue(any(kept not in self.packed() for _ in range(8)), agent)  # one digit may be masked by the same one
        for agent in "1.0", "0.12.3":
            t.write(self.trace, t.header(agent=agent, argv=["-", "--", "../x", "step #"]), t.footer())
            self.assertIn(agent.encode(), self.packed())
            self.assertRegex(self.said, r"not masked:.* -- .* %s " % re.escape(agent))

    def test_names_of_files_are_numbers_and_are_told(self):
        names = ["rank-00003-100", "rank-00003-100-2", "rank-SecretAcme-100", "rank-00003-100-Acme", "rank-00003-10012345678", "Secret", "a", "b", "rank-00003", "rank-1-2-3-4"]
        folder = os.path.dirname(self.trace)
        for pid, name in enumerate(names, 1):
            for part, rest in enumerate((".msgpack.zst", ".000002.msgpack.zst"), 1):
                t.write(os.path.join(folder, name + rest), t.header(pid=pid, file=part), t.Thread(part).events(2, api=t.MALLOC, kind=1, address=[4096, 8192], bytes=64))
            t.write(os.path.join(folder, name + ".ring"), t.ring(os.path.join(folder, name), pid=pid))
        plain = self.assert_masked(b"Secret", b"Acme", b"10012345678", b"rank-00003.", b"rank-1-2")
        for rest in b".msgpack.zst", b".ring":
            self.assertIn(b"rank-00003-100-2" + rest, plain)
            self.assertEqual(len(re.findall(rb"masked-\d{5}" + re.escape(rest), plain)), len(names) - 2)
        self.assertRegex(self.said, "not masked:.* rank-00003-100 rank-00003-100-2")
        folder, pack = self.events()
        self.assertEqual(sorted(folder.split("\n")), sorted(pack.split("\n")))

    def test_what_does_not_open_is_left_out_and_this_is_said(self):
        s = b"SecretAcme"
        block = t.Thread().events(2, api=t.MALLOC, kind=1, address=[4096, 8192], bytes=64)
        whole = t.header() + block
        torn, bad = t.framed(t.BLOCK, s * 20)[:99], t.framed(t.DEFS, s * 9)
        for more, left, first in (b"", False, 0), (bad, True, 64), (b"no frame" + s, True, 0), (bad + t.footer() + torn, True, 64):
            t.write(self.trace, whole, more)
            self.assert_masked()
            told = re.findall(r"rank-00000-100.msgpack.zst: offset (\d+): ", self.said)
            self.assertEqual(told[:1], [str(len(whole) + first)] if left else [])
            self.assertEqual(self.whole, not left)

    def test_what_is_left_out_is_missing_in_the_pack(self):
        """A frame in the midst, with a peak above the limit: neither the folder nor what is made of it passes the gate."""
        high = bytearray(t.Thread().events(2, api=t.MALLOC, kind=1, address=[4096, 1 << 40], bytes=1 << 33))
        high[-20] ^= 1
        few, unchecked = t.Thread(2).events(2, api=t.MALLOC, kind=1, address=[8192, 1 << 41], bytes=64), bytearray(high)
        unchecked[-20] ^= 1
        unchecked[56] ^= 1  # the index's own check: of the folder the frame can be read
        for middle in bytes(unchecked), b"no frame", bytes(high):
            t.write(self.trace, t.header(), middle, few, t.footer())
            self.packed()
            self.assertEqual((self.whole, "may not be the whole run" in self.said), (middle == unchecked, middle != unchecked))
            for path in os.path.dirname(self.trace), os.path.join(self.folder, "x.stormlog"):
                done = subprocess.run([ANALYZE, "check", "--strict", "--max-peak", "1G", path], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertRegex(done.stdout, "incomplete|16 GiB, limit 1 GiB")
        told = subprocess.run([ANALYZE, "report", "-o", os.path.join(self.folder, "analysis"), os.path.join(self.folder, "x.stormlog")], capture_output=True, text=True, timeout=60)
        self.assertIn("parts of the run could not be read when it was packed", told.stdout + told.stderr)

    def test_what_everybody_knows_stays(self):
        known = ["/usr/lib/x86_64-linux-gnu/libcublas.so.13", "/usr/lib/libc-2.36.so", "libpython3.11.so.1.0", "/usr/lib/libtorch_cuda.so"]
        versions = ["libcuda.so.580.105.08", "libcudart.so.12.4.127", "libcufft.so.11.2.3.61", "libcusparse.so.12.5.10.65", "libcurand.so.10.3.10.19",
                    "libnccl.so.2.27.5", "libpython3.so", "libpython2.7.so.1.0", "python3.12", "libm-2.31.so"]
        t.write(self.trace, t.header(), t.defs([{"def": "module", "base": i << 20, "end": (i + 1) << 20, "path": path, "build_id": "", "ns": t.T0}
                                                for i, path in enumerate(known, 1)]),
                t.Thread().events(4, api=t.MALLOC, kind=1, duration_ns=1, address=[4096, 8192, 12288, 16384], bytes=4096,
                                  caller=[(i << 20) + 8 for i in (1, 2, 3, 4)]), t.footer())
        said = self.pack()
        for path in known[0], known[3]:
            self.assertIn(os.path.basename(path), said)
        t.write(self.trace, t.header(argv=versions), t.footer())
        plain = self.packed()
        for name in versions:
            self.assertIn(name.encode(), plain)

    def test_what_the_recorder_says_of_itself_stays(self):
        said = {"pytorch": "c10 2.13", "visible_devices": "8", "device_source": "cuMemGetInfo", "free_memory_asked": "1234567890123456789", "memory_fraction": "not seen"}
        t.write(self.trace, t.header(), t.defs([{"def": "capability", "name": name, "value": value} for name, value in
                                                [*said.items(), ("device_processes", "Secret"), ("secretword", "8")]]), t.footer())
        told = json.loads(self.pack())["processes"][0]["capabilities"]
        self.assertEqual({name: str(told.get(name)) for name in said}, said)
        self.assertNotIn("secretword", told)
        self.assert_masked(b"Secret", b"secretword")

    def test_numbers_beside_known_names_are_masked(self):
        secret = ["19840412", "4155551234", "192.168.17.33", "1975", "20220623"]
        many = ["491.701.234.567.89", "19.84.04.12.17", "49.17.01.23", "491.701.234.567", "17.01.23.45.67"]
        names = ["python" + secret[0], "/usr/lib/libpython%s.so" % secret[1], "/lib/libc-%s.so" % secret[2], "/home/python" + secret[3],
                 "/lib/libcublas.so." + secret[4], "libc.so." + many[0], "libc.so." + many[1], "python" + many[2], "libc.so." + many[3],
                 "libpython49.%s.so" % many[4], "libpython3.11.so." + many[2], "libc-2.36.so." + many[2], "libm-%s.so" % many[2]]
        t.write(self.trace, t.header(command=names), t.defs([{"def": "module", "base": i << 20, "end": (i + 1) << 20, "path": path, "build_id": "", "ns": t.T0}
                                                             for i, path in enumerate(names, 1)]), t.footer())
        self.assert_masked(*map(str.encode, secret + many))

    def test_long_and_many_numbers_of_capabilities_are_masked(self):
        values = [("visible_devices", "19840521"), ("pytorch", "c10 492.912.341"), ("exec_failed", "exec 491 701 234"), ("recorded", "49170123"),
                  ("free_memory_asked", "4917.0123"), ("free_memory_asked", "49170123 456"), ("free_memory_asked", "490170123456789012345")]
        for name, value in values:
            t.write(self.trace, t.header(), t.defs([{"def": "capability", "name": name, "value": value}]), t.footer())
            self.assert_masked(value.encode())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
