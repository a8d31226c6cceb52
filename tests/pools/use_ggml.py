# SPDX-License-Identifier: MIT
"""Tensors of a small model in a buffer of the real ggml, from pywhispercpp's wheel.  Prints their names."""
import ctypes
import glob
import os
import sysconfig

LIBRARIES = os.path.join(sysconfig.get_paths()["purelib"], "pywhispercpp.libs")
POINTER = ctypes.c_void_p


class Parameters(ctypes.Structure):  # struct ggml_init_params
    _fields_ = [("bytes", ctypes.c_size_t), ("memory", POINTER), ("no_alloc", ctypes.c_bool)]


def library(name):
    return ctypes.CDLL(glob.glob(os.path.join(LIBRARIES, "lib%s-*.so*" % name))[0], mode=ctypes.RTLD_GLOBAL)


def function(owner, name, result, *arguments):
    found = getattr(owner, name)
    found.restype, found.argtypes = result, list(arguments)
    return found


base, cpu = library("ggml-base"), library("ggml-cpu")
context = function(base, "ggml_init", POINTER, Parameters)(Parameters(1 << 20, None, True))
new_tensor = function(base, "ggml_new_tensor_2d", POINTER, POINTER, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
set_name = function(base, "ggml_set_name", POINTER, POINTER, ctypes.c_char_p)
for layer in range(3):
    for kind in ("attn_q", "ffn_up"):
        name = "blk.%d.%s.weight" % (layer, kind)
        set_name(new_tensor(context, 0, 256, 128), name.encode())
        print(name)
backend = function(cpu, "ggml_backend_cpu_init", POINTER)()
buffer = function(base, "ggml_backend_alloc_ctx_tensors", POINTER, POINTER, POINTER)(context, backend)
function(base, "ggml_backend_buffer_set_usage", None, POINTER, ctypes.c_int)(buffer, 1)
function(base, "ggml_backend_buffer_free", None, POINTER)(buffer)
