# SPDX-License-Identifier: MIT
"""Inference that logs failed requests with their traceback to a MemoryHandler that is never flushed: frames keep their tensors."""
import ctypes
import logging
import logging.handlers

rt = ctypes.CDLL("libcudart.so.12")
log = logging.getLogger("serve")
log.propagate = False
log.addHandler(logging.handlers.MemoryHandler(1 << 30, flushLevel=99))


class BadRequest(Exception):
    pass


class Array:
    def __init__(self, count, of=4):
        self.ptr = ctypes.c_void_p()
        status = rt.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(count * of))
        assert status == 0, status

    def __del__(self):
        rt.cudaFree(self.ptr)


def embed(text):
    return Array(len(text) * 4096)


def attend(x, mask):
    if mask is None:
        raise BadRequest("no mask")
    return Array(65536)


def handle(number):
    x = embed("word " * (10 + number % 13))  # CULPRIT: asked here
    workspace = Array(300000)
    return attend(x, None if number % 3 == 0 else 1), workspace is not None


weights = [Array(1 << 20) for _ in range(6)]
for number in range(120):
    try:
        handle(number)
    except BadRequest:
        log.exception("request %d", number)  # CULPRIT: kept here
