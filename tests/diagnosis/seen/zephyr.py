# SPDX-License-Identifier: MIT
"""A renderer exports its pictures; an encoder in another process opens each of them, and closes only the pictures that it drops."""
import ctypes
import os

FRAMES = 60


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


def load():
    rt = ctypes.CDLL("libcudart.so.12")
    rt.cudaIpcOpenMemHandle.argtypes = [ctypes.POINTER(ctypes.c_void_p), Handle, ctypes.c_uint]
    return rt


class Encoder:
    def __init__(self):
        self.rt = load()

    def import_frame(self, handle):
        p = ctypes.c_void_p()
        if self.rt.cudaIpcOpenMemHandle(ctypes.byref(p), handle, 1):  # CULPRIT
            raise RuntimeError("cannot open")
        return p

    def encode(self, number, handle):
        frame = self.import_frame(handle)  # CULPRIT
        if number % 10 == 9:
            self.rt.cudaIpcCloseMemHandle(frame)


def encoder(source, answers):
    own = Encoder()
    for number in range(FRAMES):
        own.encode(number, Handle.from_buffer_copy(os.read(source, 64)))
        os.write(answers, b"k")


def renderer(sink, answers):
    rt, frames = load(), []
    for _ in range(FRAMES):
        p, handle = ctypes.c_void_p(), Handle()
        if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1_382_400)):
            raise MemoryError
        rt.cudaIpcGetMemHandle(ctypes.byref(handle), p)
        os.write(sink, bytes(handle))
        os.read(answers, 1)
        frames.append(p)
    for p in frames:
        rt.cudaFree(p)


(out, sink), (answers, say) = os.pipe(), os.pipe()
if child := os.fork():
    renderer(sink, answers)
    os.waitpid(child, 0)
else:
    encoder(out, say)
