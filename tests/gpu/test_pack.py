#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What `run --pack` makes brings all that it needs but glibc, a driver and Python."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join(HERE, "run")
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from e2e import BUILD, Recording

if not shutil.which("patchelf"):
    print("skipped: no patchelf here")
    sys.exit(77)

ALLOCATES = """
import ctypes, time
ctypes.CDLL("libcudart.so.13").cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
deadline = time.monotonic() + 120
while "libunwind.so.8" not in open("/proc/self/maps").read() and time.monotonic() < deadline:
    time.sleep(0.01)
print(*{line.split()[5] for line in open("/proc/self/maps") if "libunwind" in line})
"""


class Packed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.join(tempfile.mkdtemp(prefix="stormlog-pack-"), "gpu")
        cls.addClassCleanup(shutil.rmtree, os.path.dirname(cls.folder))
        subprocess.run([sys.executable, SUITE, "--pack", cls.folder], check=True, env=dict(os.environ, STORMLOG_BUILD=BUILD))

    def objects(self):
        for where, _, names in os.walk(self.folder):
            for path in (os.path.join(where, name) for name in names):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF" and not path.endswith(".bpf"):
                        yield path

    def test_each_object_finds_its_libraries_in_the_folder(self):
        environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        for path in self.objects():
            said = subprocess.run(["ldd", path], capture_output=True, text=True, env=environment).stdout
            for name, where in re.findall(r"^\s*(\S+) => (.*?)(?: \(0x|$)", said, re.M):
                if not re.match(r"(lib(c|m|dl|pthread|rt)|ld-linux[-\w]*)\.so", name):
                    self.assertEqual(os.path.commonpath([self.folder, os.path.realpath(where)]), self.folder, (path, name, where))

    def test_the_agent_unwinds_with_the_libunwind_beside_it(self):
        agent = os.path.join(self.folder, "agent", "libstormlog_preload.so")
        with Recording("python3", "-c", ALLOCATES, preload=False, LD_PRELOAD=agent) as run:
            used = {os.path.relpath(path, self.folder) for path in run.done.stdout.decode().split()}
        self.assertEqual(used, {"agent/libunwind.so.8"})

    def test_the_programs_start(self):
        for program in "agent/stormlog-run", "analyzer/stormlog-analyze", "exporter/stormlog-exporter", "attach/stormlog-attach":
            if os.path.exists(os.path.join(BUILD, program)):
                subprocess.run([os.path.join(self.folder, program), "--help"], check=True, stdout=subprocess.DEVNULL, timeout=300,
                               env={"PATH": os.environ["PATH"]})


if __name__ == "__main__":
    unittest.main()
