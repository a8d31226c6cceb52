#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""hanging_fs.py ROOT MOUNTPOINT: mirrors ROOT by FUSE.  While ROOT/../hang exists, writes and syncs do not return; the file ROOT/../hangs says that one waits."""
import os
import sys
import time

try:
    import fusepy as fuse
except ImportError:
    import fuse

ROOT = os.path.abspath(sys.argv[1])
HANG = os.path.join(ROOT, "..", "hang")


def wait():
    while os.path.exists(HANG):
        open(HANG + "s", "w").close()
        time.sleep(0.02)


class Files(fuse.Operations):
    def __call__(self, op, path, *args):
        return super().__call__(op, ROOT + path, *args)

    getattr = lambda self, path, fh=None: {key: getattr(os.lstat(path), key) for key in
                                           ("st_atime", "st_ctime", "st_mtime", "st_gid", "st_uid", "st_mode", "st_nlink", "st_size")}
    readdir = lambda self, path, fh: [".", ".."] + os.listdir(path)
    mkdir = os.mkdir
    rmdir = lambda self, path: os.rmdir(path)
    unlink = lambda self, path: os.unlink(path)
    rename = lambda self, old, new: os.rename(old, ROOT + new)
    open = lambda self, path, flags: os.open(path, flags)
    create = lambda self, path, mode: os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    release = lambda self, path, fh: os.close(fh)
    read = lambda self, path, size, offset, fh: os.pread(fh, size, offset)
    chmod = lambda self, path, mode: os.chmod(path, mode)

    def write(self, path, data, offset, fh):
        wait()
        return os.pwrite(fh, data, offset)

    def fsync(self, path, datasync, fh):
        wait()
        return os.fdatasync(fh)

    def truncate(self, path, length, fh=None):
        os.truncate(path, length)

    def mkdir(self, path, mode):
        os.mkdir(path, mode)


fuse.FUSE(Files(), sys.argv[2], foreground=True, allow_other=False)
