#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The wheel of this build, unpacked as pip does it: its programs record and read from where they lie."""
import ast
import base64
import csv
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("STORMLOG_BUILD", os.path.join(HERE, "..", "..", "build"))
if not shutil.which("patchelf"):
    print("skipped: no patchelf")
    sys.exit(77)

PLUGIN = "stormlog_native.pytest_plugin"


def unpack(wheel, tree):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree)
        for entry in archive.infolist():
            os.chmod(os.path.join(tree, entry.filename), entry.external_attr >> 16 & 0o777 or 0o644)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-wheel-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([os.path.join(HERE, "..", "..", "scripts", "wheel"), BUILD, cls.folder], check=True, stdout=subprocess.DEVNULL)
        cls.wheel, = glob.glob(os.path.join(cls.folder, "stormlog_native-*.whl"))
        cls.tree, cls.dry = os.path.join(cls.folder, "tree"), os.path.join(cls.folder, "dry")
        unpack(cls.wheel, cls.tree)
        cls.dry_wheels = glob.glob(os.path.join(cls.folder, "stormlog_native_dry-*.whl"))  # none: the build is not for x86-64
        for wheel in cls.dry_wheels:
            unpack(wheel, cls.dry)

    def test_the_record_is_true_and_complete(self):
        record, = glob.glob(os.path.join(self.tree, "*.dist-info", "RECORD"))
        with open(record) as file:
            rows = list(csv.reader(file))
        for name, digest, size in rows[:-1]:
            with open(os.path.join(self.tree, name), "rb") as file:
                data = file.read()
            self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode())
            self.assertEqual(int(size), len(data))
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertEqual(sorted(archive.namelist()), sorted(row[0] for row in rows))

    def test_it_offers_no_command_of_upstreams_name(self):
        points, = glob.glob(os.path.join(self.tree, "*.dist-info", "entry_points.txt"))
        with open(points) as file:
            names = [line.split(" = ")[0] for line in file if " = " in line]
        self.assertEqual(names, ["stormlog-run", "stormlog-analyze", PLUGIN])
        with open(points) as file:
            self.assertIn("[pytest11]\n%s = %s\n" % (PLUGIN, PLUGIN), file.read())  # both names are the same, so that with -p too pytest loads the plugin once

    def test_its_libraries_are_its_own(self):
        for name in ("stormlog-run", "stormlog-analyze"):
            said = subprocess.run(["ldd", os.path.join(self.tree, "stormlog_native", "bin", name)], capture_output=True, text=True).stdout
            for line in said.splitlines():
                if "=>" in line and not line.split()[0].startswith(("libc.", "libm.", "libdl.", "libpthread.", "librt.")):
                    self.assertIn(os.path.join(self.tree, "stormlog_native"), os.path.realpath(line.split()[2]))

    def test_it_asks_for_no_mathematics_that_a_glibc_of_2018_lacks(self):
        files = [path for place in ("tree/stormlog_native/bin/*", "tree/stormlog_native/lib/*.so*", "dry/stormlog_native/bin/stormlog-dry/*.so")
                 for path in glob.glob(os.path.join(self.folder, place)) if os.path.isfile(path)]
        said = subprocess.run(["readelf", "--version-info", "-W", *files], capture_output=True, text=True, check=True).stdout
        libm = False
        for line in said.splitlines():
            if "File:" in line:
                libm = "File: libm.so.6" in line
            if libm and "Name:" in line:
                self.assertNotIn("GLIBC_2.29", line)
        env = dict(os.environ, LD_BIND_NOW="1")  # the loader looks up every symbol at start
        subprocess.run([os.path.join(self.tree, "stormlog_native", "bin", "stormlog-analyze"), "--version"], env=env, check=True, capture_output=True)

    def test_it_records_and_reads(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("STORMLOG_")}
        env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "tests", "sim"), SIM_DIR=os.path.join(self.folder, "sim"), PYTHONPATH=self.tree)
        traces = os.path.join(self.folder, "traces")
        start = [sys.executable, "-c", "from stormlog_native import launch; launch.%s()"]
        subprocess.run([*start[:2], start[2] % "run", "-q", "-o", traces, "--", os.path.join(BUILD, "tests", "apps", "runtime13")], env=env,
                       check=True, capture_output=True)
        done = subprocess.run([*start[:2], start[2] % "analyze", "--json", traces], env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"cudaMalloc"', done.stdout)

    def test_the_dry_run_is_a_package_of_its_own(self):
        metadata, = glob.glob(os.path.join(self.tree, "*.dist-info", "METADATA"))
        with open(metadata) as file:
            self.assertIn('Requires-Dist: stormlog-native-dry; extra == "dry"\n', file.read())
        traces = os.path.join(self.folder, "dry-traces")
        command = [os.path.join(self.tree, "stormlog_native", "bin", "stormlog-run"), "--dry", "-o", traces, "--",
                   os.path.join(BUILD, "tests", "apps", "runtime13")]
        env = {name: value for name, value in os.environ.items() if not name.startswith("STORMLOG_")}
        done = subprocess.run(command, env=env, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("pip install 'stormlog-native[dry]'", done.stderr)
        for wheel in self.dry_wheels:
            self.assertLess(os.path.getsize(wheel), 5_000_000)
            shutil.copytree(os.path.join(self.dry, "stormlog_native"), os.path.join(self.tree, "stormlog_native"), dirs_exist_ok=True)
            done = subprocess.run(command, env=env, cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("DRY RUN on H200", done.stderr)

    def test_stacks_are_unwound_by_its_own_libunwind(self):
        own = os.path.join(self.tree, "stormlog_native", "bin")
        program = ("import ctypes; p = ctypes.c_void_p(); assert not ctypes.CDLL('libcudart.so.13').cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1)); "
                   "print({line.split()[-1] for line in open('/proc/self/maps') if 'libunwind.so' in line or 'liblzma.so' in line})")
        env = {name: value for name, value in os.environ.items() if not name.startswith("STORMLOG_")}
        env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "tests", "sim"), SIM_DIR=os.path.join(self.folder, "sim"))
        done = subprocess.run([os.path.join(own, "stormlog-run"), "-q", "-o", os.path.join(self.folder, "unwound"), "--", sys.executable, "-c", program],
                              env=env, check=True, capture_output=True, text=True)
        self.assertEqual(ast.literal_eval(done.stdout), {os.path.join(own, "libunwind.so.8"), os.path.join(self.tree, "stormlog_native", "lib", "liblzma.so.5")})
        said = subprocess.run([os.path.join(own, "stormlog-run"), "--check", "--", "true"], env=env, capture_output=True, text=True).stderr
        self.assertIn("native stacks " + os.path.join(own, "libunwind.so.8") + "\n", said)


if __name__ == "__main__":
    unittest.main()
