# SPDX-License-Identifier: MIT
"""Each step keeps one CuPy array and drops another."""
import os

import cupy
import stormlog_native as sn

kept = []


def remember():
    kept.append(cupy.empty(1 << 20))


for _ in range(60):
    sn.step()
    cupy.empty(2 << 20)
    remember()
os._exit(0)
