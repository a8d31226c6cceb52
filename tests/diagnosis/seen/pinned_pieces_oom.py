# SPDX-License-Identifier: MIT
"""A caching allocator whose segments are each held by one small tensor: much is free, and no piece is large enough."""
import ctypes
import os
import sys

cache = ctypes.CDLL(os.path.join(os.environ["CORPUS_LIB"], "..", "..", "apps", "libc10_cuda.so"))
cache.caching_new.restype = ctypes.c_void_p
MIB = 1 << 20


def tensor(mib):
    block = cache.caching_new(ctypes.c_size_t(int(mib * MIB)))
    if not block:
        raise MemoryError(f"tried to allocate {mib} MiB")
    return block


def drop(block):
    cache.caching_delete(ctypes.c_void_p(block))


def tokenize(parts):
    """Every part has a large work area for a while, and a small table that stays."""
    works, tables = [], []
    for _ in range(parts):
        works.append(tensor(250))
        tables.append(tensor(5))  # CULPRIT
    for work in works:
        drop(work)
    return tables


def merge(tables):
    return tensor(1024)  # CULPRIT


def main():
    tables = tokenize(30)
    try:
        merge(tables)  # CULPRIT
    except MemoryError as error:
        sys.exit(str(error))


main()
