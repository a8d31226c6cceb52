# SPDX-License-Identifier: MIT
"""Runs scripts of users, each in a context of its own, pushed and popped. Popped is not destroyed."""
import contextlib
import ctypes

driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(driver, name)(*arguments)
    if code:
        raise RuntimeError(f"{name}: {code}")


@contextlib.contextmanager
def sandbox():
    context = ctypes.c_void_p()
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)  # CULPRIT
    try:
        yield
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(context))


def run_script(cells):
    with sandbox():  # CULPRIT
        for cell in range(cells):
            address = ctypes.c_uint64()
            call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t((cell + 1) << 16))
            call("cuMemFree_v2", address)


call("cuInit", 0)
for script in range(55):
    run_script(4 + script % 3)
