#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_warm.py WARM PRELOAD DRIVER: a million calls that were made before make no system call and no page fault."""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

DRIVER, PRELOAD, WARM = (os.path.abspath(sys.argv.pop()) for _ in range(3))


# On a disk the kernel writes the ring's pages out every half minute, and the next store to each is a fault.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Warm(unittest.TestCase):
    def test_a_million_calls(self):
        for stacks in ("none", "both"):
            with self.subTest(stacks), tempfile.TemporaryDirectory(dir=MEMORY) as folder:
                done = subprocess.run([WARM], capture_output=True, text=True, timeout=280,
                                      env=dict(os.environ, LD_PRELOAD=PRELOAD, LD_LIBRARY_PATH=os.path.dirname(DRIVER), STORMLOG_DIR=folder, STORMLOG_STACKS=stacks,
                                               STORMLOG_DEVICE_INTERVAL="0"))  # there is no NVML: a call every 100 ms would ask the driver
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout, "0\n")
                trace, = glob.glob(os.path.join(folder, "*.zst"))
                self.assertGreater(os.path.getsize(trace), 100000)  # they are recorded


if __name__ == "__main__":
    unittest.main(verbosity=2)
