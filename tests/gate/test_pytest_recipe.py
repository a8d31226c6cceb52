#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The pytest recipe of doc/ci.md, taken from the page and run: a test within its limit passes, one above it fails."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("STORMLOG_BUILD", os.path.join(HERE, "..", "..", "build"))
PYTEST = shutil.which("pytest")
if not PYTEST:
    print("skipped: no pytest")
    sys.exit(77)

TESTS = '''
import ctypes
import pytest

def hold(mib):
    cudart = ctypes.CDLL("libcudart.so.13")
    assert cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20)) == 0

@pytest.mark.gpu_memory("8MiB")
def test_fits():
    hold(8)

@pytest.mark.gpu_memory("8MiB")
def test_does_not_fit():
    hold(9)

@pytest.mark.gpu_memory("8MiB")
def test_without_a_gpu():
    pass

@pytest.mark.gpu_memory("8MiB")
def test_wrong_by_itself():
    assert 1 == 2

def test_without_a_limit():
    hold(10)
'''


class Recipe(unittest.TestCase):
    def test_limits_hold(self):
        with open(os.path.join(HERE, "..", "..", "doc", "ci.md")) as page:
            recipe = re.search(r"```python\n(# conftest.py\n.*?)```", page.read(), re.S)[1]
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("conftest.py", recipe), ("test_memory.py", TESTS)):
                with open(os.path.join(folder, name), "w") as out:
                    out.write(text)
            path = os.pathsep.join([os.path.join(BUILD, "agent"), os.path.join(BUILD, "analyzer"), os.environ["PATH"]])
            clean = {name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "SIM_"))}
            done = subprocess.run([PYTEST, "-v", "-p", "no:cacheprovider", "test_memory.py"], cwd=folder, capture_output=True, text=True,
                                  env=dict(clean, PATH=path, LD_LIBRARY_PATH=os.path.join(BUILD, "tests", "sim"),
                                           SIM_DIR=os.path.join(folder, "sim")))
        results = dict(re.findall(r"::(\w+) (PASSED|FAILED|ERROR)", done.stdout))
        self.assertEqual(results, {"test_fits": "PASSED", "test_does_not_fit": "FAILED", "test_without_a_gpu": "PASSED",
                                   "test_wrong_by_itself": "FAILED", "test_without_a_limit": "PASSED"}, done.stdout + done.stderr)
        self.assertIn("peak 9.00 MiB, limit 8.00 MiB", done.stdout)
        self.assertIn("assert 1 == 2", done.stdout)


if __name__ == "__main__":
    unittest.main()
