# SPDX-License-Identifier: MIT
"""The probe (probe.c) for scripts under test, and a reader of the definitions it logs.  3.6 syntax, standard library."""
import ctypes
import sys

PROBE = sys.argv[1]
free = ctypes.CDLL(PROBE)  # releases the GIL around the call
held = ctypes.PyDLL(PROBE)  # keeps it
for lib in (free, held):
    lib.probe_capture.restype = ctypes.c_uint64
    lib.probe_capture.argtypes = [ctypes.c_uint]
    lib.probe_native_thread.restype = ctypes.c_uint64
    lib.probe_log.restype = ctypes.c_size_t
    lib.probe_text.restype = ctypes.c_uint32
    lib.probe_text.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)
free.probe_call.restype = ctypes.c_uint64
free.probe_call.argtypes = [CALLBACK, ctypes.c_uint64]

PYTHON, NATIVE = 1, 2

def unpack(data, at):
    """The subset of msgpack that definitions use; returns value, next."""
    b = data[at]
    at += 1
    if b < 0x80:
        return b, at
    if b & 0xF0 == 0x80:
        return unpack_map(data, at, b & 15)
    if b & 0xF0 == 0x90:
        return unpack_array(data, at, b & 15)
    if b & 0xE0 == 0xA0:
        return data[at : at + (b & 31)].decode(), at + (b & 31)
    if b == 0xC3:
        return True, at
    if b in (0xCC, 0xCD, 0xCE, 0xCF):
        n = 1 << (b - 0xCC)
        return int.from_bytes(data[at : at + n], "big"), at + n
    if b in (0xC4, 0xC5, 0xC6, 0xD9, 0xDA, 0xDB):
        n = 1 << (b & 3 if b < 0xD0 else b - 0xD9)
        size = int.from_bytes(data[at : at + n], "big")
        at += n
        raw = data[at : at + size]
        return (raw.decode() if b >= 0xD0 else raw), at + size
    if b in (0xDC, 0xDD):
        n = 2 if b == 0xDC else 4
        return unpack_array(data, at + n, int.from_bytes(data[at : at + n], "big"))
    raise ValueError(hex(b))


def unpack_array(data, at, n):
    out = []
    for _ in range(n):
        value, at = unpack(data, at)
        out.append(value)
    return out, at


def unpack_map(data, at, n):
    out = {}
    for _ in range(n):
        key, at = unpack(data, at)
        out[key], at = unpack(data, at)
    return out, at


class Definitions:
    """What the log holds; reads on from where it stopped."""

    def __init__(self):
        self.at = 0
        self.by_kind = {}
        self.twice = 0

    def read(self):
        log = ctypes.c_void_p()
        end = held.probe_log(ctypes.byref(log))
        while self.at < end:
            size = int.from_bytes(ctypes.string_at(log.value + self.at, 4), "little")
            value, used = unpack(ctypes.string_at(log.value + self.at + 4, size), 0)
            assert used == size and next(iter(value)) == "def", value
            kind = self.by_kind.setdefault(value["def"], {})
            if value["id"] in kind:
                self.twice += 1
                assert kind[value["id"]] == value, "one id, two meanings: %r %r" % (kind[value["id"]], value)
            kind[value["id"]] = value
            self.at += 4 + size
        return self.by_kind

    def stack(self, number):
        kinds = self.read()
        frames = [kinds["frame"][i] for i in kinds["python_stack"][number]["frames"]]
        return tuple((f.get("function"), f.get("file"), f.get("line")) for f in frames)


definitions = Definitions()


def describe():
    text = ctypes.create_string_buffer(200)
    held.probe_describe(text, 200)
    return text.value.decode()
