# SPDX-License-Identifier: MIT
"""A stand-in for what the pages' snippets use of PyTorch: a tensor is a block of the simulated runtime, by one cudaMalloc."""
import ctypes
import sys
import types

_runtime = ctypes.CDLL("libcudart.so.13")


class OutOfMemoryError(RuntimeError):
    pass


class Tensor:
    def __init__(self, *shape):
        self.bytes = 4
        for extent in shape:
            self.bytes *= extent
        self._block = ctypes.c_void_p()
        if _runtime.cudaMalloc(ctypes.byref(self._block), ctypes.c_size_t(self.bytes)):
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate %.2f MiB." % (self.bytes / (1 << 20)))

    def __del__(self):
        if self._block and _runtime.cudaFree(self._block):
            raise AssertionError("cudaFree")

    def backward(self):
        Tensor(self.bytes // 4)


def install():
    torch = types.ModuleType("torch")
    torch.Tensor, torch.OutOfMemoryError, torch.device = Tensor, OutOfMemoryError, str
    torch.randn = lambda *shape, device: Tensor(*shape)
    torch.cuda = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError, empty_cache=lambda: None, is_initialized=lambda: True)
    sys.modules["torch"] = torch
