#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the job of a dry run writes, and what stays of it."""
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from dry import ALLOCATE, RUN, Dry

# Runs the command where the system call fails with EPERM: unshare in Docker, mount where AppArmor restricts user namespaces.
REFUSE = """
import ctypes, os, struct, sys
class Program(ctypes.Structure): _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_char_p)]
code = b"".join(struct.pack("HBBI", *word) for word in ((0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)))
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Files(unittest.TestCase):
    def test_the_jobs_files_are_safe(self):
        changes = ("open(%r, 'w')", "import os; os.unlink(%r)", "import os; os.truncate(%r, 0)", "import os; os.rename(%r, '/tmp/x')")
        for where in (os.path.expanduser("~"), "/var/tmp"):  # a layer where the kernel has one for this user; Landlock
            with tempfile.TemporaryDirectory(dir=where) as home:
                model = os.path.join(home, "model.pt")
                with open(model, "w") as file:
                    file.write("trained for a week")
                for code in changes:
                    run = Dry(sys.executable, "-c", code % model, analyze=False)
                    if where == "/var/tmp" or run.status:
                        self.assertIn("Permission" if "rename" not in code else "Error", run.err)
                with open(model) as file:
                    self.assertEqual(file.read(), "trained for a week")
                run = Dry(sys.executable, "-c", "open(%r, 'w').write('new')" % model, options=["--allow-writes", home], analyze=False)
                self.assertEqual(run.status, 0, run.err)
                with open(model) as file:
                    self.assertEqual(file.read(), "new")
        code = "import os; print(os.environ['HF_HUB_OFFLINE'], os.environ['WANDB_MODE'], os.environ['COMET_AUTO_LOG_DISABLE'], os.path.exists(os.path.dirname(os.environ['MLFLOW_TRACKING_URI'])))"
        run = Dry(sys.executable, "-c", code, analyze=False, WANDB_MODE="online", MLFLOW_TRACKING_URI="http://localhost:1")
        self.assertEqual(run.out.split(), ["1", "disabled", "1", "True"])

    def test_temporary_files_are_safe_and_so_is_a_job_among_them(self):
        code = "import os; [open(path, 'w').write('zeros') for path in ('model.pt', os.path.expanduser('~/notes'), %r)]"
        with tempfile.TemporaryDirectory() as folder:
            for here, more in (("job", []), ("", []), ("job", ["-o", "."]), (os.path.expanduser("~"), []), ("job", ["--allow-writes", folder])):
                here = os.path.join(folder, here)
                paths = os.path.join(here, "model.pt"), os.path.join(folder, "home", "notes"), os.path.join(folder, "checkpoint")
                for path in paths[here == os.path.expanduser("~"):]:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w") as file:
                        file.write("good")
                env = dict(os.environ, TMPDIR=folder, HOME=os.path.join(folder, "home"))
                options = more if "-o" in more else ["-o", os.path.join(folder, "traces")] + more
                done = subprocess.run([RUN, "--dry", *options, "--", sys.executable, "-c", code % paths[2]], cwd=here, env=env, capture_output=True, text=True)
                found = []
                for path in paths[here == os.path.expanduser("~"):]:
                    with open(path) as file:
                        found.append(file.read())
                self.assertEqual(set(found), {"zeros" if "--allow-writes" in more else "good"}, (here, more, done.stderr))
                if "-o" in more:
                    self.assertIn("would replace the job's files here, as model.pt", done.stderr)
                    self.assertEqual(done.returncode, 125)

    def test_a_job_reads_what_it_wrote_and_its_traces_stay(self):
        with tempfile.TemporaryDirectory(dir=os.path.expanduser("~")) as home:
            code = "open('model.pt', 'w').write('zeros'); print(open('model.pt').read())" + ALLOCATE % 8
            clean = {name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "LD_", "SIM_"))}
            done = subprocess.run([RUN, "--dry", "--keep-writes", "--", sys.executable, "-c", code], cwd=home, env=clean, capture_output=True, text=True)
            if "Permission" in done.stderr:
                self.skipTest("this kernel has no layer for this user")
            self.assertEqual((done.returncode, done.stdout.split()[0]), (0, "zeros"), done.stderr)
            self.assertEqual(os.listdir(home), ["traces"])
            self.assertTrue([name for name in os.listdir(os.path.join(home, "traces")) if name.endswith(".zst")])
            kept = re.search(r"writes are in (/\S+)", done.stderr)[1]
            found = [os.path.join(folder, "model.pt") for folder, _, files in os.walk(kept) if "model.pt" in files]
            with open(found[0]) as file:
                self.assertEqual(file.read(), "zeros")
            over = os.path.relpath(found[0], kept).split("/")[0]
            self.assertTrue(os.path.realpath(home).startswith(os.readlink(os.path.join(kept, over + "-of"))))
            shutil.rmtree(kept)

    def test_the_launcher_names_a_write_that_is_gone(self):
        code = "import os, tempfile; open(%r, 'w'); print(tempfile.mkstemp()[1])"
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "model.pt")
            alone = Dry(sys.executable, "-c", code % "new.pt", folder=folder, analyze=False)
            self.assertIn("2 files that the job wrote are gone, as %s/new.pt. --keep" % os.path.realpath(folder), alone.err)
            open(model, "w").close()
            before = Dry(sys.executable, "-c", "open('a.pt', 'w'); " + code % model, folder=folder, analyze=False)
            self.assertIn("3 files that the job wrote are gone, as %s, which is as it was before. --keep" % os.path.realpath(model), before.err)
            kept = Dry(sys.executable, "-c", "import tempfile; print(tempfile.mkstemp()[1])", options=["--keep-writes"], analyze=False)
            where = re.search(r"writes are in (/\S+)", kept.err)[1]
            self.assertTrue(os.path.exists(os.path.join(where, "tmp", os.path.basename(kept.out.strip()))), kept.err)
            shutil.rmtree(where)

    def test_modes_owners_times_and_attributes_stay_wherever_the_file_is(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as there, tempfile.TemporaryDirectory() as here:
            paths = [os.path.join(folder, "model.pt") for folder in (there, here)]
            for path in paths:
                open(path, "w").close()
                os.utime(path, (1, 1))
            code = "import os\nfor path in %r: os.chmod(path, 0); os.utime(path); os.chown(path, 1, 1); os.setxattr(path, 'user.x', b''); os.utime(path, (9, 9))" % paths
            for call in (165, 999):  # mount: without a layer; no call
                run = subprocess.run([sys.executable, "-c", REFUSE, str(call), RUN, "--dry", "-o", os.path.join(here, "traces"), "--", sys.executable, "-c", code],
                                     cwd=here, capture_output=True, text=True)
                self.assertEqual(run.returncode, 0, run.stderr)
                for found in map(os.stat, paths):
                    self.assertEqual((found.st_mode & 0o444 != 0, found.st_mtime, found.st_uid), (True, 1, os.getuid()))
            copy = "import os, shutil; open('a', 'w'); shutil.copy2('a', 'b'); open('b', 'a'); print(os.path.exists('b'))"
            self.assertEqual(Dry(sys.executable, "-c", copy, folder=here, analyze=False).out, "True\n")

    def test_where_no_layer_is_possible_writes_are_refused_and_the_launcher_says_so(self):
        for call in (165, 272):  # mount, unshare
            with tempfile.TemporaryDirectory(dir=os.path.expanduser("~")) as home:
                with open(os.path.join(home, "model.pt"), "w") as file:
                    file.write("good")
                done = subprocess.run([sys.executable, "-c", REFUSE, str(call), RUN, "--dry", "-o", os.path.join(home, "traces"), "--", sys.executable, "-c",
                                       ALLOCATE % 8 + "open('model.pt', 'w')"], cwd=home, capture_output=True, text=True)
                self.assertIn("no layer over %s is possible" % home, done.stderr)
                self.assertIn("PermissionError: [Errno 13] Permission denied: 'model.pt'", done.stderr)
                with open(os.path.join(home, "model.pt")) as file:
                    self.assertEqual(file.read(), "good")
                self.assertTrue(os.listdir(os.path.join(home, "traces")))

    def test_a_memory_snapshot_of_the_job_stays(self):
        code = """
import os, pickle
snapshot = pickle.dumps({"segments": [], "device_traces": [[]], "allocator_settings": {}, "external_annotations": []})
os.mkdir("new")
for name, what in (("new/s.pickle", snapshot), ("there.pickle", snapshot), ("model.pt", pickle.dumps({"weights": "0" * 100}))):
    open(name, "wb").write(what)
"""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "there.pickle"), "w") as file:
                file.write("mine")
            run = Dry("/usr/bin/python3", "-c", code, analyze=False, folder=folder)
            self.assertEqual(sorted(os.listdir(folder)), ["new", "there.pickle"], run.err)
            self.assertIn("there.pickle: the memory snapshot of the dry run is not kept: File exists", run.err)
            with open(os.path.join(folder, "new", "s.pickle"), "rb") as file:
                self.assertEqual(pickle.load(file)["device_traces"], [[]])
            with open(os.path.join(folder, "there.pickle")) as file:
                self.assertEqual(file.read(), "mine")


if __name__ == "__main__":
    unittest.main(verbosity=2)
