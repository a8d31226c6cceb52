#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stormlog-run --against: the line that asks for more in one of two environments, and the packages that differ."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import torch_venv
from dry import ANALYZE, RUN

TORCH = torch_venv.find("torch")

# A package that is the same everywhere, as PyTorch is beneath the one that changed.
DEVICE = """import ctypes
rt = ctypes.CDLL("libcudart.so.13")
class Block:
    def __init__(self, mib):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(mib << 20)):
            raise SystemExit("out of memory")
    def __del__(self):
        rt.cudaFree(self.at)
def empty(mib):
    return Block(mib)
"""
JOB = "import layers\nlayers.train()\n"
# Two releases of a package, and what the line of the change has.  Replacements make the second one.
RELEASE = """from device import empty
LAYERS = 4
class Model:
    def __init__(self):
        self.weights = [empty(100) for _ in range(LAYERS)]
        self.mask = empty(16)
    def forward(self):
        kept = [self.block() for _ in range(LAYERS)]
        half = empty(64)
        logits = whole(half)
        half = None
        loss = cross_entropy(logits)
        return kept, logits, loss
    def block(self):
        scores = empty(50)
        return empty(30)
class Optimizer:
    def __init__(self):
        self.state = None
    def step(self):
        self.state = self.state or [empty(100)]
        work = empty(20)
def whole(half):
    return empty(128)
def cross_entropy(logits):
    return empty(128)
def train():
    model, optimizer = Model(), Optimizer()
    for _ in range(2):
        found = model.forward()
        grads = [empty(100) for _ in range(LAYERS)]
        optimizer.step()
        found = grads = None
"""
PAIRS = {  # what it is, (old, new) texts, and the line that is right, as it is in the second release
    "a type is twice as wide": ([("empty(30)", "empty(60)")], "return empty(60)", 120),
    "half of the logits is kept": ([("half = None", "logits.half = half")], "half = empty(64)", 64),
    "a mask grows with the square": ([("empty(16)", "empty(256)")], "self.mask = empty(256)", 240),
    "the optimizer has a second state": ([("[empty(100)]", "[empty(100), empty(300)]")], "empty(300)", 300),
    "scores outlive their block": ([("return empty(30)", "return scores, empty(30)")], "scores = empty(50)", 200),
    "a function moved, and another grew": (
        [("logits = whole(half)", "logits = convert(half)"), ("def whole(half)", "def convert(half)"), ("[empty(100) for _ in range(LAYERS)]\n        self.mask", "[empty(150) for _ in range(LAYERS)]\n        self.mask")],
        "self.weights = [empty(150)", 200),
    "a new function has a buffer": ([("loss = cross_entropy(logits)", "noise = dropout(logits)\n        loss = cross_entropy(logits)"), ("return kept, logits", "return noise, kept, logits"),
                                     ("def train", "def dropout(x):\n    return empty(96)\ndef train")], "return empty(96)", 96),
    "it asks for less": ([("        self.mask = empty(16)\n", ""), ("    return empty(128)\ndef cross", "    return empty(28)\ndef cross")], "return empty(28)", -100),
}


def install(venv, name, version, text):
    folder = glob.glob(os.path.join(venv, "lib", "python3*", "site-packages"))[0]
    for old in glob.glob(os.path.join(folder, name + "*")):
        subprocess.run(["rm", "-rf", old], check=True)
    os.makedirs(os.path.join(folder, "%s-%s.dist-info" % (name, version)))
    with open(os.path.join(folder, "%s-%s.dist-info" % (name, version), "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version))
    with open(os.path.join(folder, name + ".py"), "w") as file:
        file.write(text)


class Against(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holds = tempfile.TemporaryDirectory()
        cls.folder = cls.holds.name
        for side in "there", "here":
            subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", os.path.join(cls.folder, side)], check=True)
            install(os.path.join(cls.folder, side), "device", "1.0", DEVICE)
        with open(os.path.join(cls.folder, "job.py"), "w") as file:
            file.write(JOB)

    @classmethod
    def tearDownClass(cls):
        cls.holds.cleanup()

    def against(self, there, here, *options, card="h200"):
        install(os.path.join(self.folder, "there"), "layers", "1.4", there)
        install(os.path.join(self.folder, "here"), "layers", "1.5", here)
        return subprocess.run([RUN, "--dry=" + card, "--against", "there/bin/python", *options, "--", "here/bin/python", "job.py"], cwd=self.folder, capture_output=True, text=True)

    def test_the_line_that_changed_is_first(self):
        for what, (changes, line, mib) in PAIRS.items():
            with self.subTest(what):
                here = RELEASE
                for old, new in changes:
                    self.assertEqual(here.count(old), 1, old)
                    here = here.replace(old, new)
                number = 1 + next(i for i, text in enumerate(here.split("\n")) if line in text)
                done = self.against(RELEASE, here)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"FITS   layers\.py:%d \S+\s+asks\s+%s\s+than\s+with\s+layers\s+1\.4" % (
                    number, re.escape("%s MiB %s" % (abs(mib), "less" if mib < 0 else "more")).replace(r"\ ", r"\s+")), done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"(?m)^  note   layers is 1\.5, and 1\.4 there$")

    def test_what_no_longer_fits_is_compared_with_room_for_both(self):
        done = self.against(RELEASE, RELEASE.replace("empty(16)", "empty(90 << 10)"), card="t4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"DOES NOT FIT   layers\.py:6 Model\.__init__ asks 90 GiB more than with\s+layers\s+1\.4")
        self.assertRegex(done.stdout, r"It does not fit the T4; there it fits\.")

    @unittest.skipUnless(TORCH, "no PyTorch: scripts/torch-venv makes the environment")
    def test_tensors_that_are_gone_when_the_device_is_fullest(self):
        """The peak of the device is that of a small request, after the tensors that filled PyTorch's cache were freed."""
        packages = subprocess.run([TORCH, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], capture_output=True, text=True, check=True).stdout
        for side in "there", "here":
            with open(os.path.join(glob.glob(os.path.join(self.folder, side, "lib", "python3*", "site-packages"))[0], "torch.pth"), "w") as file:
                file.write(packages)
        release = "import torch\ndef train():\n    kept = torch.empty(64 << 20, device='cuda')\n    kept.view(-1)\n    loss = torch.empty(8, device='cuda')\n"
        done = self.against(release, release.replace("view(-1)", "double()"), "--output", "pair")
        self.assertRegex(done.stdout, r"FITS   layers\.py:4 train asks 512 MiB more than with\s+layers\s+1\.4", done.stderr)
        here, there = (os.path.join(self.folder, "pair", side) for side in ("here", "there"))
        said = subprocess.run([ANALYZE, "diff", there, here], capture_output=True, text=True).stdout
        self.assertRegex(said, r"MORE   peak \S+ MiB -> \S+ MiB, \+512 MiB: cache, \+512 MiB")
        said = subprocess.run([ANALYZE, here], capture_output=True, text=True).stdout
        self.assertRegex(said, r"unused .* tensors held 768 MiB before")
        self.assertIn("next   stormlog-analyze tree --at tensors", said)
        said = subprocess.run([ANALYZE, "tree", "--at", "tensors", here], capture_output=True, text=True).stdout
        self.assertRegex(said, r"(?m)^ +512 MiB .*layers\.py:4 train")

    def test_of_two_installed_releases_that_of_the_code_counts(self):
        """A folder whose code runs first has another release of the package."""
        shared = os.path.join(self.folder, "shared-packages")
        os.makedirs(os.path.join(shared, "layers-0.9.dist-info"))
        with open(os.path.join(shared, "early.py"), "w") as file:
            file.write(DEVICE)
        for side in "there", "here":
            with open(os.path.join(glob.glob(os.path.join(self.folder, side, "lib", "python3*", "site-packages"))[0], "shared.pth"), "w") as file:
                file.write(shared)
        release = RELEASE.replace("    model, optimizer", "    import early\n    first = early.empty(8)\n    model, optimizer")
        done = self.against(release, release.replace("empty(30)", "empty(60)"))
        self.assertRegex(done.stdout, r"asks\s+120 MiB\s+more\s+than\s+with\s+layers\s+1\.4", done.stderr)
        self.assertRegex(done.stdout, r"(?m)^  note   layers is 1\.5, and 1\.4 there$")

    def test_the_same_release_is_told_as_the_same(self):
        done = self.against(RELEASE, RELEASE)
        self.assertRegex(done.stdout, r"FITS   it holds as much as in the other environment")

    def test_a_run_without_an_answer_and_wrong_words_are_told(self):
        done = self.against("raise SystemExit('no such layer')\n", RELEASE)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("has no answer: no such layer", done.stderr)
        self.against(RELEASE, RELEASE)
        done = self.against(RELEASE, "def train(): pass\n")  # its folder has the run before
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("the run with this environment has no answer: this job used no GPU", done.stderr)
        for words, why in ((["--against", "nowhere"], "wants the bin/python of another environment"), (["--against", "there/bin/python", "--largest", "n=1..2"], "goes without --largest")):
            done = subprocess.run([RUN, "--dry=t4", *words, "--", "here/bin/python", "job.py"], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 125)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
