# SPDX-License-Identifier: MIT
"""A server gives every connection a memory pool of its own, for isolation, and closes the connection but not the pool."""
import contextlib
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class Props(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("where", ctypes.c_int * 2), ("security", ctypes.c_void_p),
                ("most", ctypes.c_size_t), ("usage", ctypes.c_ushort), ("rest", ctypes.c_ubyte * 54)]


def must(code):
    if code:
        raise RuntimeError(code)


def make_pool():
    pool, props = ctypes.c_void_p(), Props(type=1, where=(1, 0))
    must(rt.cudaMemPoolCreate(ctypes.byref(pool), ctypes.byref(props)))
    return pool


class Connection:
    def __init__(self, peer):
        self.peer = peer
        self.pool = make_pool()  # CULPRIT

    def malloc(self, n):
        p = ctypes.c_void_p()
        must(rt.cudaMallocFromPoolAsync(ctypes.byref(p), ctypes.c_size_t(n), self.pool, None))
        return p

    def close(self):
        self.pool = None


@contextlib.contextmanager
def accept(peer):
    connection = Connection(peer)  # CULPRIT
    try:
        yield connection
    finally:
        connection.close()


def main():
    base = ctypes.c_void_p()
    must(rt.cudaMalloc(ctypes.byref(base), ctypes.c_size_t(64 << 20)))
    for peer in range(70):
        with accept(peer) as connection:
            for size in (100000, 300000, 20000):
                p = connection.malloc(size + peer)
                must(rt.cudaFreeAsync(p, None))
    must(rt.cudaFree(base))


main()
