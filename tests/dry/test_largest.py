#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stormlog-run --largest: what it tells is what every single dry run shows."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import torch_venv
from dry import RUN, Dry

PYTHON = torch_venv.find("torch")
CARDS = {"t4": "T4", "l4": "L4", "h200": "H200"}
# grow(MiB) ends the program where the card has no more.
BEGIN = """import ctypes, sys, time
rt, at, number = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p(), list(map(int, sys.argv[1:]))
free, total = ctypes.c_size_t(), ctypes.c_size_t()
def grow(mib):
    if rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(mib << 20)):
        sys.exit(1)
"""
RISES = BEGIN + "grow(1 << 10)\nfor i in range(number[0]): grow(3800)\n"
TORCH = """import sys, torch
n = int(sys.argv[1])
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    x = torch.randn(n << 14, 4096, device="cuda")
    scores = torch.nn.functional.gelu(model(x))
    (scores * scores).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def largest(program, *ranges, cards=CARDS, words=("{n}",), python="/usr/bin/python3", options=()):
    """Status, screen and messages of a search, and how many runs it made."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "job.py"), "w") as file:
            file.write(program)
        asked = [word for text in ranges for word in ("--largest", text)]
        done = subprocess.run([RUN, "--dry=" + ",".join(cards), *asked, *options, "--", python, "job.py", *words], cwd=folder, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr, done.stderr.count("\nstormlog: ") + done.stderr.startswith("stormlog: ")


def most(screen):
    """The value of each card that the headline has."""
    found = re.search(r"(?:FITS|MAY FIT)   the largest \w+ is ((?:.|\n)*?)\n\n", screen)
    return {name: int(value) for value, name in re.findall(r"(\d+)(?:\s+or\s+more)?\s+on\s+the\s+(\w+)", found.group(1))} if found else {}


def search_all(program, values, python="/usr/bin/python3", cards=CARDS):
    """The same by a run of every value on every card."""
    found = {}
    for card, name in cards.items():
        for value in values:
            screen = Dry(python, "-c", program, str(value), card=card).screen
            if "\nFITS   " in screen:
                found[name] = max(value, found.get(name, 0))
    return found


class Largest(unittest.TestCase):
    def test_it_is_what_a_full_search_finds(self):
        status, screen, said, runs = largest(RISES, "n=1..8")
        self.assertEqual((status, most(screen)), (0, search_all(RISES, range(1, 9))), screen + said)
        self.assertLess(runs, 14)
        self.assertRegex(screen, r"4 on the T4: job.py:8 asks 3\.71 GiB(, [\d.]+ GiB are free)?\.")
        self.assertRegex(screen, r"job.py:8  for i in range.*<- asks 3\.71 GiB")
        self.assertIn("stormlog-analyze traces/n-4-t4", screen)

    def test_a_job_that_asks_for_free_memory_runs_on_each_card(self):
        program = BEGIN + "rt.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))\ngrow(max(free.value * number[0] // 8 >> 20, number[0] * 4000))\n"
        status, screen, said, _ = largest(program, "n=1..8")
        self.assertEqual((status, most(screen)), (0, search_all(program, range(1, 9))), screen + said)

    def test_a_limit_is_the_size_of_every_card(self):
        program, limit = BEGIN + "grow(number[0] * 100)\n", ("--limit", "3G")
        status, screen, said, runs = largest(program, "n=1..64", cards={"t4": "T4", "l4": "L4"}, options=limit)
        self.assertEqual(status, 0, screen + said)
        self.assertLess(runs, 16, said)
        for card, name in ("t4", "T4"), ("l4", "L4"):
            fits = ["\nFITS   " in Dry("/usr/bin/python3", "-c", program, str(n), card=card, options=limit).screen for n in (most(screen)[name], most(screen)[name] + 1)]
            self.assertEqual(fits, [True, False], screen)

    def test_memory_that_falls_with_the_value_is_told(self):
        program = BEGIN + "grow((40 << 10) // number[0])\n"
        status, screen, said, _ = largest(program, "n=1..16", cards={"l4": "L4"})
        self.assertEqual((status, most(screen)), (0, {"L4": 16}), said)
        holes = BEGIN + "grow({3: 30 << 10}.get(number[0], number[0] << 10))\n"
        status, screen, said, _ = largest(holes, "n=1..6", cards={"l4": "L4"})
        self.assertEqual(most(screen), {"L4": 6}, said)
        teeth = BEGIN + "grow(40 << 10 if number[0] in (5, 6) else 3 << 10 if number[0] > 6 else number[0] << 11)\n"
        status, screen, said, _ = largest(teeth, "n=1..7", cards={"l4": "L4"})
        self.assertEqual(most(screen), {"L4": 7}, said)
        self.assertIn("memory also falls with larger values", screen)

    def test_memory_that_does_not_change_is_told(self):
        status, screen, said, _ = largest(BEGIN + "grow(100)\n", "n=1..64", cards={"t4": "T4"})
        self.assertEqual((status, most(screen)), (0, {"T4": 64}), screen + said)
        self.assertIn("memory does not change with it", screen)
        self.assertNotIn("memory does not change with it", largest(RISES, "n=1..3", cards={"t4": "T4"})[1])

    def test_no_value_fits(self):
        status, screen, _, _ = largest(RISES, "n=8..9", cards={"t4": "T4"})
        self.assertEqual(status, 1)
        self.assertIn("DOES NOT FIT   no n that was tried fits", screen)
        self.assertRegex(screen, r"8 on the T4: job.py:8 asks 3\.71 GiB")

    def test_a_value_that_the_program_refuses_is_told_with_its_words(self):
        program = BEGIN + "if number[0] % 2: sys.exit('n must be even')\nfor i in range(number[0]): grow(1 << 10)\n"
        status, screen, said, _ = largest(program, "n=2..64", cards={"t4": "T4"})
        self.assertEqual((status, most(screen)), (0, {"T4": 12}), said)
        self.assertRegex(screen, r"16 on the T4: job.py:\d asks 1 GiB")
        self.assertIn("14 on the T4 may fit", screen)
        status, screen, said, _ = largest(program, "n=2..9", cards={"t4": "T4"})
        self.assertIn("the largest n is 8 or more on the T4", screen)
        program = BEGIN + "if number[0] > 9: sys.exit('n must be 9 at most')\ngrow(number[0])\n"
        status, screen, said, runs = largest(program, "n=1..512", cards={"t4": "T4"})
        self.assertEqual(most(screen), {"T4": 9}, screen + said)
        self.assertIn("10 on the T4: n must be 9 at most", screen)
        self.assertLess(runs, 20, said)
        status, screen, said, _ = largest("import sys; sys.exit('no such model')", "n=2..64")
        self.assertEqual((status, screen), (3, ""))
        self.assertIn("the first run, n=2, has no answer: no such model", said)

    def test_a_server_starts_and_is_ended_and_refuses_in_its_own_words(self):
        program = BEGIN + """grow(number[0] << 10)
if number[0] > 5:
    sys.exit("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.")
print("INFO:     Application startup complete.", flush=True)
while True:
    time.sleep(1)
"""
        status, screen, said, _ = largest(program, "n=4..8", cards={"l4": "L4"}, options=("--until", "startup complete"))
        self.assertEqual((status, most(screen)), (0, {"L4": 5}), screen + said)
        self.assertIn("5 on the L4: it started, and served no request", screen)
        self.assertRegex(screen, r"6 on the L4: .*\S")

    def test_two_names_make_a_table(self):
        program = BEGIN + "grow(number[0] * number[1])\n"
        status, screen, said, _ = largest(program, "n=1..16", "size=2048..4096", cards={"t4": "T4", "l4": "L4"}, words=("{n}", "{size}"))
        self.assertEqual(status, 0, said)
        self.assertRegex(screen, r"FITS   the largest n at each size")
        self.assertEqual(re.findall(r"^ +(\w+) +(\d+) +(\d+)$", screen, re.M), [("size", "2048", "4096"), ("T4", "6", "3"), ("L4", "10", "5")])

    def test_a_value_with_which_no_gpu_is_used_is_none_that_fits(self):
        status, screen, said, _ = largest(BEGIN + "if number[0] < 5: grow(number[0] << 10)\n", "n=2..16", cards={"t4": "T4"})
        self.assertEqual((status, most(screen)), (0, {"T4": 4}), said)
        self.assertIn("5 on the T4: this job used no GPU", screen)

    def test_wrong_words_are_refused(self):
        for ranges, words, why in ((["n=8..1"], ["{n}"], "wants NAME=LOW..HIGH"), (["n"], ["{n}"], "wants NAME=LOW..HIGH"),
                                   (["n=1..8"], ["8"], "no word of the command has {n} in it"), (["a=1..2", "b=1..2", "c=1..2"], ["{a}"], "at most 2 names")):
            status, screen, said, _ = largest(RISES, *ranges, words=words)
            self.assertEqual((status, screen), (125, ""))
            self.assertIn(why, said)
        status, screen, said, _ = largest(RISES, "n=1..2", cards=["t4", "no-card"])
        self.assertEqual((status, screen), (125, ""))
        self.assertIn("--dry=no-card is no known card", said)

    @unittest.skipUnless(PYTHON, "no Python with torch here: scripts/torch-venv fetches it")
    def test_real_pytorch_is_what_a_full_search_finds(self):
        status, screen, said, runs = largest(TORCH, "n=1..7", python=PYTHON, cards={"t4": "T4"})
        self.assertEqual((status, most(screen)), (0, search_all(TORCH, range(1, 8), PYTHON, {"t4": "T4"})), screen + said)
        self.assertLess(runs, 7)
        self.assertRegex(screen, r"asks [\d.]+ [MG]iB")


if __name__ == "__main__":
    unittest.main()
