# SPDX-License-Identifier: MIT
"""Read stormlog's traces from Python: one small module on msgpack, zstandard and numpy.

    import stormlog_trace
    for trace in stormlog_trace.open_folder("traces"):
        print(trace.header["rank"], trace.header["argv"], trace.complete)
        events = trace.events()             # dict of numpy columns, in time order
        calls = events["api"]               # ids; trace.hooks[id - 1] is its row
        stack = trace.stack(events["python"][0])

With pandas, what each label allocated, and who allocated the most:

    table = trace.frame()
    made = table[(table.verb == "ALLOC") & (table.result == 0)]
    print(made.groupby("label", dropna=False).bytes.sum())
    print(made.groupby(made.python.map(lambda i: (trace.stack(i) or [None])[0])).bytes.sum().nlargest(10))

Its only source is doc/trace-format.md, so that it tests that page.  It holds a trace in memory: use stormlog-analyze for large
ones.

Longer than other files: it imports no module of ours, so that it can be copied.
"""
import glob
import itertools
import os
import stat
import struct
from typing import Any, BinaryIO, Dict, List, Optional, Sequence, Tuple

import msgpack
import numpy as np
import zstandard

Columns = Dict[str, Any]  # of numpy arrays

INDEX = struct.Struct("<IIIIQQIIQQQ")
MAGIC = 0x184D2A5C
FORMAT, VERSION = "stormlog.trace", 1
KINDS = {1: "header", 2: "defs", 3: "block", 4: "footer"}

SEGMENT = struct.Struct("<IIiIQQ32xQ56x")
SEGMENT_BYTES = 1 << 20
SEGMENT_TABLE = 16 + 16 + 16 + 40 + 16 + 24 + 256 + 512  # magic, sizes, pid, boot id, states, gaps, name, reserve
HEADER_AT = 64 << 10
HEAD = 256 << 10
SEGMENT_MAX = 256
SLOTS = SEGMENT_BYTES // 64
PIECE = 1 << 20  # bytes of a file that are read at once
FLAG_IN_FLIGHT = 1
# What exceeds a limit is damage.  Those of frames and blocks are stormlog-analyze's.
COUNT_MAX, COLUMNS_MAX = 4096, 64  # of a block
FRAME_MAX, CONTENT_MAX = 8 << 20, 64 << 20  # bytes of a frame, and unpacked
# Of a whole trace, beside a part for each byte of its files.  Honest traces unpack to 20 times their size, and have an event, of up to twenty
# columns, a byte.  A number takes eight bytes.
CONTENT, CONTENT_OF_BYTE = 8 << 20, 64
NUMBERS, NUMBERS_OF_BYTE = 8 << 20, 64
ITEMS = 1 << 20  # maps and lists, beside one for each byte: definitions, and what is in them
WRONG_MAX = 256  # of a frame; what is behind them is not read
FRAMES_MAX = 1024  # of a stack
TIME_MAX = 1 << 62  # nanoseconds
UNREADABLE = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError, struct.error, msgpack.exceptions.UnpackException)
OPTIONAL_TEXT, OPTIONAL_NUMBER = (str, type(None)), (int, type(None))
# What definitions must have, and its types.  An id that nothing has is no error.
SHAPES: Dict[str, Dict[str, Any]] = {
    "text": {"id": int, "text": str}, "frame": {"id": int, "function": str, "file": str, "line": OPTIONAL_NUMBER},
    "python_stack": {"id": int, "frames": list}, "native_stack": {"id": int, "pcs": bytes},
    "module": {"base": int, "end": int, "ns": OPTIONAL_NUMBER, "path": OPTIONAL_TEXT}, "sample": {"ns": int},
    "header": {"hooks": list, "verbs": list, "kinds": list, "started_ns": int, "monotonic_ns": int, "pid": int, "rank": OPTIONAL_NUMBER,
               "run_id": OPTIONAL_TEXT, "ring": OPTIONAL_TEXT}}
SIGNED = {"device": np.int64, "result": np.int64}
# The columns of an event in a trace whose header does not list them.
FIELDS = ("time_ns duration_ns api driver_api kind flags device result address bytes stream context object extra extra2 caller"
          " python native label").split()


def frame_check(index: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in index[:56]:
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return value


def _require(right: bool, why: str) -> None:
    if not right:
        raise ValueError(why)


def _check(what: str, item: Dict[str, Any]) -> None:
    """Raises ValueError where a definition is not as the page of the format has it."""
    for name, types in SHAPES.get(what, {}).items():
        _require(isinstance(item.get(name), types), "a definition %s with a wrong %s" % (what, name))
    if what == "python_stack":
        _require(len(item["frames"]) <= FRAMES_MAX and all(isinstance(one, int) for one in item["frames"]), "a stack of no frames, or of too many")
    elif what == "native_stack":
        _require(len(item["pcs"]) % 8 == 0 and len(item["pcs"]) <= 8 * FRAMES_MAX, "a native stack of no addresses, or of too many")
    elif what == "header":
        _require(item.get("format") == FORMAT and item.get("version") == VERSION, "a header of another format or version")
        rows = [(name, row, 1) for name in ("verbs", "kinds", "fields") for row in item.get(name, [])] + [("hooks", row, 2) for row in item["hooks"]]
        _require(all(isinstance(row, list) and len(row) >= least and isinstance(row[0], str) for _, row, least in rows), "a header whose tables have wrong rows")
        _require(all(len(verb) > 1 for verb in item["verbs"]), "a header whose verbs have no order")
        _require(all(isinstance(hook[1], int) and 0 <= hook[1] < len(item["verbs"]) for hook in item["hooks"]), "a call whose verb the header does not name")
        _require(max(map(abs, (item["started_ns"], item["monotonic_ns"], item["pid"], item["rank"] or 0))) < TIME_MAX, "a header with a number that nothing has")


class _Bytes:
    """Those of a file, of the size that it had, in slices.  They are read piece by piece: of a mapped file that shrinks we would die.  What is gone is missing."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.size = file.fileno(), os.fstat(file.fileno()).st_size
        self._start, self._piece = 0, b""

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:
        start, end, _ = part.indices(self.size)
        at = self._load(start, end - start)
        return self._piece[at : at + max(end - start, 0)]

    def _load(self, at: int, size: int) -> int:
        """Where byte `at` of the file is in the piece, which then holds all `size` from there that the file has."""
        if not self._start <= at <= at + size <= self._start + len(self._piece):
            self._start, self._piece = at, os.pread(self.file, max(size, PIECE), at)
        return at - self._start

    def find(self, word: bytes, at: int, end: int) -> int:
        while at + len(word) <= end:
            here = self._load(at, len(word))
            found = self._piece.find(word, here, end - self._start)
            if found >= 0:
                return self._start + found
            if len(self._piece) - here < len(word):  # the file has no more
                break
            at = self._start + len(self._piece) - len(word) + 1
        return -1


def _next_magic(data: _Bytes, at: int) -> int:
    """Where the next frame may begin, -1 where none does; holes of the file are passed over."""
    while at < len(data):
        try:
            at = os.lseek(data.file, at, os.SEEK_DATA)
            hole = os.lseek(data.file, at, os.SEEK_HOLE)
        except OSError:  # nothing but a hole
            return -1
        found = data.find(struct.pack("<I", MAGIC), at, hole + 3)
        if found >= 0:
            return found
        at = hole
    return -1


def _open_regular(path: str) -> Optional[BinaryIO]:
    """The file; None where it is no regular one: a FIFO would keep us, and opening some devices has effects."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return None
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY))
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # the path may be another file by now
        return file
    file.close()
    return None


def _size(file: BinaryIO) -> int:
    """Bytes of the file without its holes.  Blocks count where it has a hole: some file systems know of none, or not yet."""
    status = os.fstat(file.fileno())
    stored = status.st_blocks * 512
    if stored >= status.st_size:
        return status.st_size
    try:
        return stored if os.lseek(file.fileno(), 0, os.SEEK_HOLE) < status.st_size else status.st_size
    except OSError:
        return stored
    finally:
        os.lseek(file.fileno(), 0, os.SEEK_SET)


def decode_block(block: Dict[str, Any]) -> Columns:
    """The columns of a block as a dict of numpy arrays (uint64, or int64 for signed ones)."""
    count = block["count"]
    _require(isinstance(count, int) and isinstance(block["thread"], int), "a block whose count or thread is no number")
    if not 0 < count <= COUNT_MAX or len(block["columns"]) > COLUMNS_MAX:
        raise ValueError("a block of %d events and %d columns" % (count, len(block["columns"])))
    columns: Columns = {}
    for name, (encoding, width, shift, base, data) in block["columns"].items():
        _require(all(isinstance(number, int) for number in (encoding, width, shift, base)) and 0 <= encoding < 4 and 0 <= shift < 64 and isinstance(data, bytes),
                 "a column that is not four numbers and bytes")
        values = count  # offset of the table of values, behind x (a byte each)
        if encoding == 3:
            values = (count + 7) // 8
            x = np.unpackbits(np.frombuffer(data, np.uint8, count=values), bitorder="little")[:count]
        elif width:
            x = np.frombuffer(data, dtype="<u%d" % width, count=count).astype(np.uint64)
        else:
            x = np.zeros(count, np.uint64)
        first = np.uint64(base & (2**64 - 1))
        if encoding == 0:
            x = first + (x << np.uint64(shift))
        elif encoding in (2, 3):
            x = np.frombuffer(data, dtype="<u8", offset=values)[x.astype(np.intp)]
        else:
            delta = (x >> np.uint64(1)) ^ (np.uint64(0) - (x & np.uint64(1)))
            x = first + np.cumsum(delta, dtype=np.uint64)
        columns[name] = x.astype(SIGNED.get(name, np.uint64))
    columns["thread"] = np.full(count, block["thread"], np.uint64)
    return columns


class Trace:
    """The trace of one process image: header, definitions by kind, samples and events."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.header: Any = None  # a dict; None: the file has none
        self.defs: Dict[str, List[Dict[str, Any]]] = {}
        self.damage: List[Tuple[int, str]] = []
        self.blocks: List[Columns] = []
        self._modules: List[int] = []  # how many modules were defined before each native stack
        self._next: Dict[int, int] = {}
        self._log = 0
        self.folded_through = 0
        self._stacks: Optional[Dict[int, List[Tuple[str, str, Optional[int]]]]] = None
        self._content, self._numbers, self._items = CONTENT, NUMBERS, ITEMS  # left of the limits
        self._owner = -1
        self._read_file(path)
        expected = max(self.folded_through, 1) + 1
        for later in sorted(glob.glob(glob.escape(path[: -len(".msgpack.zst")]) + ".??????.msgpack.zst")):
            number = later[-len("000002.msgpack.zst"):-len(".msgpack.zst")]
            if number.isascii() and number.isdigit() and int(number) > self.folded_through and not self._is_strangers(later):
                self._read_file(later)
                if int(number) > expected:
                    self._damaged(later, 0, "file %d of its process is missing" % expected)
                expected = int(number) + 1
        said = max((item["events"] for item in self.defs.get("footer", []) if isinstance(item.get("events"), int)), default=0)
        events = sum(len(block["thread"]) for block in self.blocks)
        if events < said and not self.damage and not self.folded_through and not self.defs.get("gap"):
            self._damaged(path, 0, "its end says that it has %d events, and it has %d: the others are missing" % (said, events))
        self.ring_state: Optional[int] = None
        self._find_ring(path[: -len(".msgpack.zst")] + ".ring")

    def _damaged(self, path: str, at: int, why: str) -> None:
        self.damage.append((at, "%s: %s" % (path, why)))

    def _is_strangers(self, path: str) -> bool:
        """True, and reported: in a folder that others may write to, a stranger put this file beside the trace."""
        folder, file = os.stat(os.path.dirname(path) or "."), os.lstat(path)
        if not folder.st_mode & 0o022 or file.st_uid in (0, os.geteuid(), folder.st_uid, os.lstat(self.path).st_uid):
            return False
        self._damaged(path, 0, "is not read, because it belongs to another user than you, root and its folder's owner")
        return True

    # the trace file

    def _read_file(self, path: str) -> None:
        file = _open_regular(path)
        if not file:
            self._damaged(path, 0, "is no regular file")
            return
        with file:
            self._owner = os.fstat(file.fileno()).st_uid if self._owner < 0 else self._owner
            size = _size(file)  # a hole buys nothing
            self._content += size * CONTENT_OF_BYTE
            self._numbers += size * NUMBERS_OF_BYTE
            self._items += size
            self._read_frames(path, _Bytes(file))

    def _counted(self, item: Any) -> Any:
        self._items -= 1
        _require(self._items >= 0, "more definitions than a trace of its size has")
        return item

    def _unpacker(self) -> Any:
        """Of maps and lists each is counted: an empty one takes a byte of the file, and sixty of memory."""
        return msgpack.Unpacker(raw=False, unicode_errors="replace", max_buffer_size=1 << 27, object_hook=self._counted, list_hook=self._counted)

    def _read_frames(self, path: str, data: _Bytes) -> None:
        decompress = zstandard.ZstdDecompressor()
        at, lost = 0, False  # lost: damage was reported, and we search for the next frame
        while at < len(data):
            head = data[at : at + 64]
            fields = INDEX.unpack(head) if len(head) == 64 else None
            if not fields or fields[0] != MAGIC or fields[-1] != frame_check(head) or not fields[7] <= min(FRAME_MAX, len(data) - at - 64):
                if not lost:
                    self._damaged(path, at, "no index of a whole frame")
                lost = True
                at = _next_magic(data, at + 1)
                if at < 0:
                    break
                continue
            _, _, kind, thread, first, after, count, size, *_ = fields
            lost = False
            try:
                content = self._unpacked(decompress, data[at + 64 : at + 64 + size])
            except (ValueError, zstandard.ZstdError) as error:
                self._damaged(path, at, str(error))
                at += 64 + size
                continue
            unpacker = self._unpacker()
            unpacker.feed(content)
            wrong: List[Exception] = []
            try:
                for item in unpacker:
                    try:
                        self._take(item)
                    except UNREADABLE as error:
                        wrong.append(error)
                        if len(wrong) > WRONG_MAX:
                            break
            except UNREADABLE as error:
                wrong.append(error)
            if wrong:
                self._damaged(path, at, "what is in the frame is no definition: %.200s" % wrong[0])
            if KINDS.get(kind) == "block":
                self._next[thread] = max(after, self._next.get(thread, 0))
            if KINDS.get(kind) == "defs":
                self._log = max(after, self._log)
            at += 64 + size

    def _unpacked(self, decompress: Any, frame: bytes) -> bytes:
        limit = min(CONTENT_MAX, self._content)
        if zstandard.frame_content_size(frame) > limit:
            raise ValueError("the frame unpacks to more than %d bytes" % limit)
        content: bytes = decompress.decompress(frame, max_output_size=limit)
        self._content -= len(content)
        return content

    def _take(self, item: Dict[str, Any]) -> None:
        what = str(item.get("def"))
        _check(what, item)
        if what == "header":
            self.header = self.header or item
        elif what == "block":
            self._numbers -= item["count"] * len(item["columns"])
            if self._numbers < 0:
                raise ValueError("more events than a trace of its size has")
            self._add(decode_block(item))
        elif what == "checkpoint":
            self.folded_through = item["through"]
            self._log = max(self._log, item["log_next"])
            for thread, after in item["threads"]:
                self._next[thread] = max(after, self._next.get(thread, 0))
            self.defs.setdefault(what, []).append(item)
        else:
            self.defs.setdefault(what, []).append(item)
            if what == "native_stack":
                self._modules.append(len(self.defs.get("module", [])))

    def _add(self, columns: Columns) -> None:
        _require(bool(self.header), "events without a header")
        _require("time_ns" in columns and "api" in columns, "events without a time or a call")
        _require(not (columns["api"] > len(self.hooks)).any(), "a call that the header does not name")
        self.blocks.append(columns)

    # the ring

    def _find_ring(self, beside: str) -> None:
        """Reads the ring beside the trace; or, of a process that did not end, the one that the header names elsewhere, if it is of the trace's owner."""
        far = str((self.header or {}).get("ring") or "")
        if os.path.exists(beside):
            if not self._is_strangers(beside):
                self._read_ring(beside, None)
        elif far.startswith("/") and not self.complete and os.path.exists(far):
            self._read_ring(far, self._owner)

    def _read_ring(self, path: str, owner: Optional[int]) -> None:
        try:
            file = _open_regular(path)
        except OSError as error:
            self._damaged(path, 0, "is not read: %s" % error.strerror)
            return
        if not file:
            self._damaged(path, 0, "is no regular file")
            return
        with file:
            if owner not in (None, os.fstat(file.fileno()).st_uid):
                self._damaged(path, 0, "is not read: it is not of the trace's owner")
                return
            try:
                self._take_ring(_Bytes(file))
            except UNREADABLE as error:
                self._damaged(path, 0, "is a damaged ring: %s" % error)

    def _take_ring(self, data: _Bytes) -> None:
        if data[:15] != b"stormlog.ring\n\1":  # one that was killed before its ring had a size, too
            return
        header_bytes = struct.unpack("<I", data[28:32])[0]
        state, segments = struct.unpack("<II", data[88:96])
        self.ring_state = state
        if self.header is None and header_bytes:
            self._take(self._one(data[HEADER_AT : min(HEADER_AT + header_bytes, HEAD)]))
        table = []
        for i in range(min(segments, SEGMENT_MAX)):
            at = SEGMENT_TABLE + SEGMENT.size * i
            use, thread, tid, order, first, end, tail = SEGMENT.unpack(data[at : at + SEGMENT.size])
            table.append((order, i, use, thread, first, end, tail))
        table.sort()
        for _, i, use, _, first, _, _ in table:
            if use == 3:
                self._read_log(data, HEAD + i * SEGMENT_BYTES, first)
        for _, i, use, thread, first, end, tail in table:
            if use == 2:
                self._read_segment(data, HEAD + i * SEGMENT_BYTES, thread, first, end, tail)

    def _one(self, content: bytes) -> Any:
        unpacker = self._unpacker()
        unpacker.feed(content)
        return unpacker.unpack()

    def _read_log(self, data: _Bytes, base: int, first: int) -> None:
        at = 0
        while at + 8 <= SEGMENT_BYTES:
            word = struct.unpack("<Q", data[base + at : base + at + 8])[0]
            state, size = word & 0xFF, word >> 8
            if state in (0, 3) or size > SEGMENT_BYTES - at - 8:
                break
            if state == 2 and first + at >= self._log:
                self._take(self._one(data[base + at + 8 : base + at + 8 + size]))
            at += 8 + (size + 7 & ~7)

    def _read_segment(self, data: _Bytes, base: int, thread: int, first: int, end: int, tail: int) -> None:
        seq = max(tail, self._next.get(thread, 0))
        rows = []

        def slot(seq: int) -> Tuple[int, ...]:
            at = base + (seq - first) % SLOTS * 64
            return struct.unpack("<8Q", data[at : at + 64])
        while not end or seq < end:
            state, *w = slot(seq)
            if state == seq << 4 | 1:  # a slot that was given up before it was filled
                seq += 1
                continue
            if state >> 4 != seq or state & 3 < 2:
                break
            wide = state & 4
            second = slot(seq + 1)[1:] if wide else None
            rows.append(self._slot(w, second, state & 3 == 2))
            seq += 2 if wide else 1
        if rows:
            columns = {name: np.array([row[name] for row in rows], SIGNED.get(name, np.uint64)) for name in rows[0]}
            columns["thread"] = np.full(len(rows), thread, np.uint64)
            self._add(columns)

    def _slot(self, w: Sequence[int], second: Optional[Sequence[int]], in_flight: bool) -> Dict[str, int]:
        def signed(value: int, bits: int) -> int:
            return value - (1 << bits) if value >> (bits - 1) else value
        row = dict.fromkeys(self.fields, 0)
        api = w[0] & 0xFFFF
        row.update(api=api, driver_api=w[0] >> 16 & 0xFFFF, kind=w[0] >> 32 & 0xFF,
                   flags=w[0] >> 40 & 0xFF | (FLAG_IN_FLIGHT if in_flight else 0),
                   device=signed(w[0] >> 48, 16), time_ns=w[1], address=w[3], bytes=w[4])
        if second:
            before = self.header["verbs"][self.hooks[api - 1][1]][1] == "before"
            row.update(python=w[5] & 0xFFFFFFFF, native=w[5] >> 32, label=w[6] >> 32, stream=second[0],
                       context=second[1], object=second[2], extra=second[3], extra2=second[4], caller=second[5])
            if not in_flight:
                row.update(duration_ns=w[2], result=signed(w[6] & 0xFFFFFFFF, 32))
                row["time_ns"] += 0 if before else w[2]
        else:
            row.update(extra=w[2], extra2=w[5], label=w[6] & 0xFFFFFFFF, python=w[6] >> 32)
        return row

    # what users ask for

    @property
    def hooks(self) -> List[Any]:
        """[[name, verb, kind, family], ...]; an event's api is 1 + the index.  A trace without a header has none."""
        hooks: List[Any] = self.header["hooks"] if self.header else []
        return hooks

    @property
    def complete(self) -> bool:
        """True when there is a footer: the process ended by itself, or its recorder was detached."""
        return bool(self.defs.get("footer"))

    def events(self) -> Columns:
        """All events in time order, as a dict of numpy columns."""
        if not self.blocks:
            return {}
        names = self.fields + ["thread"]
        columns = {name: np.concatenate([block[name] if name in block else np.zeros(len(block["thread"]), SIGNED.get(name, np.uint64))
                                         for block in self.blocks]) for name in names if any(name in block for block in self.blocks)}
        verbs = np.array([-1] + [hook[1] for hook in self.hooks])[columns["api"].astype(np.int64)]
        free_first = np.array([verb[1] != "before" for verb in self.header["verbs"]])[verbs]
        order = np.lexsort((free_first, columns["time_ns"]))
        return {name: column[order] for name, column in columns.items()}

    @property
    def fields(self) -> List[str]:
        """The names of an event's columns."""
        named = [field[0] for field in (self.header or {}).get("fields", [])]
        return list(dict.fromkeys(named + ["api", "time_ns"])) if named else list(FIELDS)

    def names(self) -> Dict[int, Optional[str]]:
        """{api id: exported name}, for events()["api"]; 0 is None."""
        return {0: None, **{i + 1: hook[0] for i, hook in enumerate(self.hooks)}}

    def verbs(self) -> Dict[int, Optional[str]]:
        """{api id: verb}: what a call means to memory, as "ALLOC" or "FREE"."""
        return {0: None, **{i + 1: self.header["verbs"][hook[1]][0] for i, hook in enumerate(self.hooks)}}

    def texts(self) -> Dict[int, Optional[str]]:
        """{id: text}, for events()["label"]; 0 is None."""
        return {0: None, **{item["id"]: item["text"] for item in self.defs.get("text", [])}}

    def unix_ns(self, monotonic_ns: Any) -> Any:
        """Times of the trace (a number or a column) as Unix nanoseconds."""
        offset = self.header["started_ns"] - self.header["monotonic_ns"]
        if isinstance(monotonic_ns, np.ndarray):
            return monotonic_ns.astype(np.int64) + offset
        return monotonic_ns + offset

    @property
    def gaps(self) -> List[Tuple[Optional[int], Optional[int], Optional[int]]]:
        """[(count, begin_ns, end_ns), ...]: events that could not be kept."""
        return [(gap.get("count"), gap.get("begin_ns"), gap.get("end_ns")) for gap in self.defs.get("gap", [])]

    def samples(self) -> Columns:
        """Samples of devices and of the process as a dict of float64 columns, in time order; what is unknown is NaN."""
        rows = sorted(self.defs.get("sample", []), key=lambda row: row["ns"])
        names = sorted({name for row in rows for name, value in row.items() if isinstance(value, int)})
        return {name: np.array([row.get(name, np.nan) for row in rows], np.float64) for name in names}

    def stack(self, python_id: int) -> List[Tuple[str, str, Optional[int]]]:
        """[(function, file, line), ...] of a Python stack, innermost first."""
        if self._stacks is None:
            frames = {frame["id"]: (frame["function"], frame["file"], frame.get("line")) for frame in self.defs.get("frame", [])}
            self._stacks = {stack["id"]: [frames[i] for i in stack["frames"] if i in frames]
                            for stack in self.defs.get("python_stack", [])}
        return self._stacks.get(int(python_id), [])

    def native_stack(self, native_id: int) -> List[Tuple[Optional[str], int]]:
        """[(file name of the module or None, offset in it), ...] of a native stack, innermost first."""
        for stack, count in zip(self.defs.get("native_stack", []), self._modules):
            if stack["id"] == native_id:
                return [self._place(pc, count) for (pc,) in struct.iter_unpack("<Q", stack["pcs"])]
        return []

    def place(self, address: int, ns: Optional[int] = None) -> Tuple[Optional[str], int]:
        """(path of the module or None, offset in it) of an address, such as an event's caller, at the time `ns` (its time_ns); None: at the trace's end."""
        modules = self.defs.get("module", [])
        return self._place(address, sum(ns is None or (module.get("ns") or 0) <= ns for module in modules))

    def _place(self, address: int, count: int) -> Tuple[Optional[str], int]:
        """By the first `count` definitions of modules, the newest first; if none covers the address, by the next one that does."""
        modules = self.defs.get("module", [])
        for module in itertools.chain(reversed(modules[:count]), modules[count:]):
            if module["base"] <= address < module["end"]:
                return module.get("path"), int(address) - module["base"]
        return None, int(address)

    def frame(self) -> Any:
        """The events as a pandas.DataFrame with names in place of ids."""
        import pandas
        table = pandas.DataFrame(self.events())
        if len(table):
            table["verb"] = table["api"].map(self.verbs())
            table["api"] = table["api"].map(self.names())
            table["label"] = table["label"].map(self.texts())
            table["kind"] = table["kind"].map(dict(enumerate(kind[0] for kind in self.header["kinds"])))
            table["time"] = pandas.to_datetime(self.unix_ns(self.events()["time_ns"]), utc=True)
        return table


def open_folder(folder: str) -> List[Trace]:
    """Every trace of a folder, by name."""
    return [Trace(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
            if name.endswith(".msgpack.zst") and name.count(".") == 2]
