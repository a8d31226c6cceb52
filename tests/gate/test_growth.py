#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze check --max-growth: a single step is not growth, and a gate fails only on growth that is certain."""
import sys
import unittest

from test_check import Folder, Recording, check

PRELUDE = '''
import ctypes
cudart, nvtx = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1")
def take(size):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) == 0
    return p
'''

# Four labels one after the other, of 40 entries that keep 0 or 10 000 bytes each; before one entry of each label 64 MiB are allocated outside.
ONE_STEP = PRELUDE + '''
for name, kept, at in ((b"early", 0, 12), (b"half", 0, 20), (b"late", 0, 28), (b"keeps", 10000, 20)):
    for i in range(40):
        if i == at:
            big = take(64 << 20)
        nvtx.nvtxRangePushA(name)
        p = take(10000)
        if not kept:
            cudart.cudaFree(p)
        nvtx.nvtxRangePop()
    cudart.cudaFree(big)
'''

# 20 entries keep 100 000 bytes each; at the end of each a batch of 256 to 768 KiB is live too.
ROUGH = PRELUDE + '''
for i in range(20):
    nvtx.nvtxRangePushA(b"rough")
    batch = take((1 + i % 3) << 18)
    take(100000)
    nvtx.nvtxRangePop()
    cudart.cudaFree(batch)
'''


# 600 steps: a ring of 64 blocks of any size, a batch that one range takes and the other frees, and in each third step a block that stays.
NOISE = PRELUDE + '''
import random
ring, order = [None] * 64, random.Random(1)
def churn(at):
    if ring[at]:
        cudart.cudaFree(ring[at])
    ring[at] = take(65536 * order.randint(1, 8))
def remember():
    take(65536)
for i in range(600):
    nvtx.nvtxRangePushA(b"step %d" % i)
    nvtx.nvtxRangePushA(b"forward")
    batch = take(3 << 20)
    nvtx.nvtxRangePop()
    churn(i % 64)
    churn(order.randrange(64))
    if i % 3 == 0:
        remember()
    nvtx.nvtxRangePushA(b"backward")
    cudart.cudaFree(batch)
    nvtx.nvtxRangePop()
    nvtx.nvtxRangePop()
for block in ring:
    cudart.cudaFree(block)
'''


class Growth(Folder):
    def test_what_comes_and_goes_beside_a_leak_is_no_part_of_the_growth(self):
        with Recording(sys.executable, self.path("noise.py", NOISE), SIM_VRAM="8G") as run:
            labels = {label["label"]: label for label in run.report()["processes"][0]["labels"]}
            held, = labels["step #"]["held_by"]
            self.assertIn("remember", str(held["stack"]))
            out = check("--max-growth", "10K", run.traces, code=1).stdout
            self.assertRegex(out, r"(?m)^FAIL +max-growth +step # grows")
            self.assertNotRegex(out, "forward|backward", "they grow with the step around them")
            check("--max-growth", "10K/forward", run.traces, code=1)

    def test_one_step_is_no_growth_and_hides_none(self):
        with Recording(sys.executable, self.path("one_step.py", ONE_STEP), SIM_VRAM="8G") as run:
            labels = {label["label"]: label for label in run.report()["processes"][0]["labels"]}
            for name, kept in (("early", 0), ("half", 0), ("late", 0), ("keeps", 10000)):
                with self.subTest(name):
                    self.assertEqual(labels[name]["verdict"], "growing" if kept else "steady")
                    self.assertAlmostEqual(labels[name]["growth_bytes_per_entry"], kept, delta=1)
                    self.assertAlmostEqual(labels[name]["growth_error_bytes"], 0, delta=1)
            check("--max-growth", "10001", run.traces)
            self.assertEqual(len(labels["keeps"]["held_by"]), 1, "what made the step holds nothing of the growth")
            check("--max-growth", "9K/keeps", run.traces, code=1)

    def test_growth_fails_by_what_is_sure_of_it(self):
        with Recording(sys.executable, self.path("rough.py", ROUGH), SIM_VRAM="8G") as run:
            label, = run.report()["processes"][0]["labels"]
            sure = label["growth_bytes_per_entry"] - 2.92 * label["growth_error_bytes"]  # Student's t for 16 degrees of freedom, exceeded once in 200
            self.assertTrue(0 < sure < 100000 < label["growth_bytes_per_entry"] + 2.92 * label["growth_error_bytes"], label)
            out = check("--max-growth", str(int(sure) - 2), run.traces, code=1).stdout
            self.assertRegex(out, r"(?m)^FAIL +max-growth +rough grows by .* an entry, at least .*, limit")
            out = check("--max-growth", str(int(sure) + 2), run.traces).stdout
            self.assertRegex(out, r"(?m)^unknown +max-growth +rough grows by .* an entry, at least .*, limit")
            check("--max-growth", str(int(sure) + 2), "--strict", run.traces, code=1)
            check("--max-growth", str(int(label["growth_bytes_per_entry"]) + 1), run.traces)


if __name__ == "__main__":
    unittest.main()
