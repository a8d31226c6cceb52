# SPDX-License-Identifier: MIT
"""Files that take their place whole, and that never replace a link or a recording, as the analyzer's outputs."""
import contextlib
import errno
import os
import re
import secrets
import sys
from typing import IO, Any, Iterator, Optional, Union

from .errors import ProfilerError

DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/([0-9]{1,9}))|/proc/self/fd/([0-9]{1,9})")  # links, to what the program was given to write into


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


@contextlib.contextmanager
def replacing(path: str) -> Iterator[Union[str, int]]:
    """As `beside`, for a path that somebody named.  Raises ProfilerError, before any work, if a link or a recording is there.  A device and a pipe
    are written as they are; of a descriptor its number is given.  `opened` takes either."""
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
    if os.path.islink(path) or path.endswith(".msgpack.zst"):
        raise ProfilerError("%s is a %s, and stays as it is; name another place" % (path, "link" if os.path.islink(path) else "recording"))
    with beside(path) as place:
        yield place


def opened(place: Union[str, int], mode: str, newline: Optional[str] = None) -> IO[Any]:
    """The file at a place that `replacing` gave; a descriptor of the program's stays open behind it."""
    return open(place, mode, encoding=None if "b" in mode else "utf-8", newline=newline, closefd=not isinstance(place, int))


def growing(path: str) -> IO[Any]:
    """A new file for lines that are written while a program runs: it takes its place at once."""
    with replacing(path) as place:
        return opened(place, "w")
