# SPDX-License-Identifier: MIT
"""Files that take their place whole."""
import contextlib
import os
import secrets
from typing import Iterator


@contextlib.contextmanager
def beside(path: str) -> Iterator[str]:
    """A new, empty file in the folder of `path` that takes its place at the end; if something fails, what was there stays.  Nobody can foresee its
    name; it begins with a dot, so that readers of the folder pass over it."""
    place = os.path.join(os.path.dirname(path), ".%s.part" % secrets.token_hex(8))
    os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield place
        os.replace(place, path)
    except BaseException:
        os.unlink(place)
        raise
