# SPDX-License-Identifier: MIT
"""Whether this kernel has Landlock, without which a program may write where its user may."""
import ctypes


def is_here():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0  # landlock_create_ruleset: its version
