# SPDX-License-Identifier: MIT
"""Files that take their place whole, and that replace nothing but a former one of their kind (analyzer/commands/replace.c has the analyzer's rule)."""
import contextlib
import errno
import os
import re
import secrets
import sys
from typing import IO, Any, Iterator, Optional, Union

from .errors import ProfilerError

DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/([0-9]{1,9}))|/proc/self/fd/([0-9]{1,9})")  # links, to what the program was given to write into
MARK_MAX = 512  # a former file shows its mark within its first bytes


@contextlib.contextmanager
def beside(path: str) -> Iterator[str]:
    """A new, empty file in the folder of `path` that takes its place at the end; if something fails, what was there stays.  Nobody can foresee its
    name; it begins with a dot, so that readers of the folder pass over it."""
    place = os.path.join(os.path.dirname(path), ".%s.part" % secrets.token_hex(8))
    os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield place
        if os.path.lexists(path):  # a machine that dies is to leave the former one or the new one
            with open(place, "rb") as file:
                try:
                    os.fsync(file.fileno())
                except OSError as error:  # others: the file system cannot
                    if error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT):
                        raise
        os.replace(place, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # pyarrow removes what it could not write
            os.unlink(place)
        raise


def _refusal(path: str, mark: "re.Pattern[bytes]") -> str:
    """Why the file stays as it is; empty: it may be replaced, or there is none."""
    if os.path.islink(path):
        return "is a link"
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        head = file.read(MARK_MAX)
        if path.endswith(".msgpack.zst") or (head and not mark.match(head)):
            return "is no former output of this kind"
    return ""


@contextlib.contextmanager
def replacing(path: str, mark: "re.Pattern[bytes]") -> Iterator[Union[str, int]]:
    """As `beside`, for a path that somebody named.  Raises ProfilerError, before any work, unless what is there is empty or begins with the mark, which
    every file of this kind and no other has.  A device and a pipe are written as they are; of a descriptor its number is given.  `opened` takes
    either."""
    given = DESCRIPTOR.fullmatch(path)
    if given:  # opened by its name it would be emptied
        for stream in sys.stdout, sys.stderr:
            with contextlib.suppress(AttributeError, ValueError):  # there is none, or it is closed
                stream.flush()
        yield 1 if given[1] else 2 if given[2] else int(given[3] or given[4])
        return
    if os.path.exists(path) and not os.path.isfile(path):
        yield path
        return
    why = _refusal(path, mark)
    if why:
        raise ProfilerError("%s %s, and stays as it is; name another place" % (path, why))
    with beside(path) as place:
        yield place


def opened(place: Union[str, int], mode: str, newline: Optional[str] = None) -> IO[Any]:
    """The file at a place that `replacing` gave; a descriptor of the program's stays open behind it."""
    return open(place, mode, encoding=None if "b" in mode else "utf-8", newline=newline, closefd=not isinstance(place, int))


def growing(path: str, mark: "re.Pattern[bytes]") -> IO[Any]:
    """A new file for lines that are written while a program runs: it takes its place at once."""
    with replacing(path, mark) as place:
        return opened(place, "w")
