#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Workspaces of convolutions beside those that an H200 took (workspaces.tsv). PyTorch's allocator may hand out a block that is up to
1 MiB larger than the workspace."""
import ctypes
import os
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("STORMLOG_BUILD", os.path.join(HERE, "..", "..", "build")))
TENSOR, CONVOLUTION, GRAPH, ENGINE, CONFIG, PLAN, HEURISTIC = 17, 1, 15, 2, 4, 5, 6  # types of descriptors: what they are is not read but for PLAN
OPERATIONS = {"forward": (10, 702, 704, 703, 705), "data": (12, 708, 710, 709, 711), "filter": (11, 714, 716, 715, 717)}
INT64, DESCRIPTOR, FLOAT = 3, 15, 1
ROUND, UNSPLIT = 512, 1 << 20
TOLD = (16 << 20) + 512  # of which the screen tells that it may be needed beside (dry/cudnn.c)


class Workspaces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cudnn = ctypes.CDLL(os.path.join(BUILD, "dry", "dry-cudnn-9.so"))

    def made(self, kind, **values):
        out = ctypes.c_void_p()
        self.cudnn.cudnnBackendCreateDescriptor(kind, ctypes.byref(out))
        for name, value in values.items():
            type = INT64 if isinstance(value, list) and isinstance(value[0], int) else DESCRIPTOR
            items = [v if isinstance(v, int) else v.value for v in value]
            self.cudnn.cudnnBackendSetAttribute(out, int(name[1:]), type, ctypes.c_int64(len(items)), (ctypes.c_int64 * len(items))(*items))
        self.cudnn.cudnnBackendFinalize(out)
        return out

    def tensor(self, *sizes):
        strides = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1]
        return self.made(TENSOR, _902=list(sizes), _903=strides)

    def workspace(self, what, images, channels, height, width, out, filter, stride):
        kind, convolution, x, w, y = OPERATIONS[what]
        operation = self.made(kind, **{"_%d" % convolution: [self.made(CONVOLUTION, _103=[stride, stride])],
                                       "_%d" % x: [self.tensor(images, channels, height, width)],
                                       "_%d" % w: [self.tensor(out, channels, filter, filter)],
                                       "_%d" % y: [self.tensor(images, out, height // stride, width // stride)]})
        engine = self.made(ENGINE, _1300=[self.made(GRAPH, _801=[operation])])
        plan = self.made(PLAN, _401=[self.made(CONFIG, _300=[engine])])
        bytes = ctypes.c_int64()
        self.cudnn.cudnnBackendGetAttribute(plan, 402, INT64, ctypes.c_int64(1), None, ctypes.byref(bytes))
        return bytes.value

    def test_as_many_engines_are_told_as_are_asked_for(self):
        heuristic, count = self.made(HEURISTIC, _200=[self.made(GRAPH)]), ctypes.c_int64()
        for room, told in ((0, 2), (1, 1), (5, 2)):
            configs = (ctypes.c_void_p * 5)(*[self.made(CONFIG).value for _ in range(5)])
            self.cudnn.cudnnBackendGetAttribute(heuristic, 202, DESCRIPTOR, ctypes.c_int64(room), ctypes.byref(count), configs if room else None)
            self.assertEqual(count.value, told)

    def test_as_on_the_h200(self):
        exact = near = 0
        with open(os.path.join(HERE, "workspaces.tsv")) as file:
            rows = [line.split() for line in file if not line.startswith("#")]
        for what, *numbers in rows:
            *shape, real = map(int, numbers)
            ours = -(-self.workspace(what, *shape) // ROUND) * ROUND
            ours = 0 if ours <= ROUND else ours
            self.assertEqual(ours > 0, real > 0, (what, shape))  # else PyTorch's allocator has a request more or less
            exact += real - UNSPLIT < ours <= real
            near += (real - UNSPLIT) / 1.02 < ours <= real * 1.02
            self.assertLess(real - UNSPLIT - ours, TOLD, (what, shape))
        self.assertGreaterEqual(exact, 0.9 * len(rows))
        self.assertGreaterEqual(near, 0.95 * len(rows))


unittest.main()
