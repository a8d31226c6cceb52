#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""object_store.py ROOT MOUNTPOINT: shows ROOT as a mounted object store, by FUSE.  A file is written once, from its beginning to its end, and appears when it
is closed.  It can be renamed and removed, never changed.  All other operations fail."""
import errno
import os
import sys

try:
    import fusepy as fuse
except ImportError:
    import fuse

ROOT = os.path.abspath(sys.argv[1])


class Store(fuse.Operations):
    def __init__(self):
        self.written = {}  # path: bytes so far

    def __call__(self, op, path, *args):
        return super().__call__(op, ROOT + path, *args)

    def getattr(self, path, fh=None):
        if path in self.written:
            return {"st_mode": 0o100600, "st_nlink": 1, "st_size": len(self.written[path])}
        found = os.lstat(path)
        return {key: getattr(found, key) for key in ("st_mtime", "st_mode", "st_nlink", "st_size")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(path)]

    def mkdir(self, path, mode):
        os.mkdir(path, mode)

    def unlink(self, path):
        os.unlink(path)

    def rename(self, old, new):
        os.rename(old, ROOT + new)

    def open(self, path, flags):
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise fuse.FuseOSError(errno.EPERM)
        return 0

    def read(self, path, size, offset, fh):
        with open(path, "rb") as file:
            return os.pread(file.fileno(), size, offset)

    def create(self, path, mode):
        self.written[path] = bytearray()
        return 0

    def write(self, path, data, offset, fh):
        if offset != len(self.written[path]):
            raise fuse.FuseOSError(errno.EINVAL)
        self.written[path] += data
        return len(data)

    def truncate(self, path, length, fh=None):
        raise fuse.FuseOSError(errno.EPERM)

    def flush(self, path, fh):  # close() waits for flush
        if path in self.written:
            with open(path, "wb") as file:
                file.write(self.written.pop(path))


fuse.FUSE(Store(), sys.argv[2], foreground=True, nothreads=True)
