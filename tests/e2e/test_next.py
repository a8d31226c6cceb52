#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every command that a screen offers as the next step works when it is pasted into a shell."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import e2e

HEAD = """
import ctypes
lib = ctypes.CDLL("%s")
def call(name, *arguments):
    p = ctypes.c_void_p()
    getattr(lib, name)(ctypes.byref(p), *arguments)
    return p
kept = []
"""
PINNED = HEAD % "libcudart.so.13" + """
model = call("cudaMalloc", ctypes.c_size_t(40 << 20))
for step in range(40):
    kept.append(call("cudaHostAlloc", ctypes.c_size_t(3 << 20), 0))
    lib.cudaFree(call("cudaMalloc", ctypes.c_size_t(1 << 20)))
for p in kept: lib.cudaFreeHost(p)
"""
MANAGED = HEAD % "libcudart.so.13" + """
for step in range(40):
    kept.append(call("cudaMallocManaged", ctypes.c_size_t(3 << 20), 1))
    lib.cudaFree(call("cudaMallocManaged", ctypes.c_size_t(1 << 20), 1))
"""
CONTEXTS = HEAD % "libcuda.so.1" + """
lib.cuInit(0)
for job in range(12):
    kept.append(call("cuCtxCreate_v2", 0, 0))
    lib.cuMemFree_v2(call("cuMemAlloc_v2", ctypes.c_size_t(1 << 20)))
"""
SIZE = r"\d[\d.]* (?:[KMGT]i)?B"


class Next(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-next-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {**os.environ, "PATH": os.path.dirname(e2e.ANALYZE) + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8", "COLUMNS": "100"}

    def made(self, how, name="traces"):
        """A run of tests/e2e/make_series.c in a folder of that name."""
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        subprocess.run([os.path.join(e2e.BUILD, "tests", "e2e", "make_series"), folder, how], check=True)
        return name

    def program(self, text, *before):
        with open(os.path.join(self.folder, "program.py"), "w") as file:
            file.write(text)
        return e2e.Recording(*before, "python3", file.name, launcher=["--quiet"], SIM_VRAM="8G", SIM_CTX_BYTES="80M")

    def shell(self, command):
        return subprocess.run(["sh", "-c", command], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120)

    def steps(self, *arguments):
        """The commands below a screen."""
        screen = subprocess.run([e2e.ANALYZE, *arguments], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(screen.returncode, 0, screen.stderr)
        commands = re.search(r"^next   ((?:.*\n)*?)(?:report|\Z)", screen.stdout, re.M).group(1)
        self.assertLessEqual(max(map(len, screen.stdout[:screen.stdout.rindex("report ")].splitlines())), 100, screen.stdout)
        steps = [re.split("   +", step.strip())[0] for step in re.sub(r" \\\n +", " ", commands).splitlines() if step.strip()]
        return [step for step in steps if not re.fullmatch("stormlog-run .* -- COMMAND", step)]  # the reader names the job

    def pasted(self, *arguments):
        """{command: what it prints} of the commands below a screen, each of which must succeed."""
        found = {}
        for step in self.steps(*arguments):
            done = self.shell(step)
            self.assertEqual((done.returncode, done.stderr), (0, ""), step)
            self.assertGreater(len(done.stdout.splitlines()), 1, (step, done.stdout))
            found[step] = done.stdout
        return found

    def test_of_a_leak_at_the_peak(self):
        (step, tree), = self.pasted(self.made("rises")).items()
        self.assertEqual(step, "stormlog-analyze tree --at peak traces")
        self.assertIn("work.py:10 allocate", tree)

    def test_of_an_error(self):
        (step, tree), = self.pasted(self.made("fails")).items()
        self.assertEqual(step, "stormlog-analyze tree --at oom traces")
        self.assertRegex(tree, SIZE + r"  pid 77, at .*, out of memory")

    def test_of_an_error_that_the_program_got_over_at_the_peak_and_its_own_moment_says_so(self):
        with e2e.script("alloc=600", "try=500", "free", "try=500", SIM_VRAM="1G") as run:
            (step, _), = self.pasted(run.traces).items()
            self.assertRegex(step, r"^stormlog-analyze tree --at peak ")
            tree = subprocess.run([e2e.ANALYZE, "tree", "--at", "oom", run.traces], capture_output=True, text=True).stdout
            self.assertRegex(tree, r"^600 MiB  pid \d+, at .*, out of memory, but got over\n")
        with e2e.script("alloc=600", "try=500", "free", "try=500", "alloc=50", "sampled", "try=450", SIM_VRAM="1G") as run:
            (step, tree), = self.pasted(run.traces).items()
            self.assertRegex(step, r"^stormlog-analyze tree --at oom ")
            self.assertRegex(tree, r"^550 MiB  pid \d+, at .*, out of memory\n")
            page = run.page()
            if page:
                moment, = [moment for moment in page["moments"] if moment["kind"] == "oom"]
                self.assertEqual(sum(moment["bytes"]), 550 << 20)

    def test_of_folders_whose_names_a_shell_would_take_apart(self):
        for name in ("a folder of two", "it's", "$HOME;x", "-dash", "plain"):
            with self.subTest(name=name):
                self.made("kept", name)
                self.pasted(name if name[0] != "-" else "./" + name)

    def test_of_a_folder_whose_name_is_no_utf8(self):
        """bash, zsh and ksh read $'...'; a screen printed `traces?` before, which is no folder."""
        self.made("kept")
        name = os.path.join(os.fsencode(self.folder), b"tra\xe9'es")
        os.rename(os.path.join(self.folder, "traces"), name)
        for step in self.steps(os.path.basename(name)):
            done = subprocess.run(["bash", "-c", step], cwd=self.folder, env=self.env, capture_output=True, text=True, errors="replace")
            self.assertEqual((done.returncode, done.stderr), (0, ""), step)

    def test_of_one_run_of_several_and_of_a_summary(self):
        self.made("kept")
        subprocess.run([e2e.ANALYZE, "summarize", "traces", "-o", "one.summary"], cwd=self.folder, env=self.env, check=True, capture_output=True)
        self.assertEqual(list(self.pasted("one.summary")), ["stormlog-analyze tree --at end one.summary"])
        self.made("fails", "other")
        subprocess.run([e2e.ANALYZE, "summarize", "other", "-o", "two.summary"], cwd=self.folder, env=self.env, check=True, capture_output=True)
        self.assertEqual(list(self.pasted("two.summary")), ["stormlog-analyze tree --at peak two.summary"])

    def test_of_several_paths_at_once(self):
        for name, how in (("one", "kept"), ("two", "rises")):
            self.made(how, name)
        for step in self.steps("-o", "out", "one", "two"):
            self.assertTrue(step.endswith(" one two"), step)
            self.assertEqual(self.shell(step).returncode, 0)

    def test_of_pinned_memory_that_leaks_beside_a_device(self):
        with self.program(PINNED) as run:
            (step, tree), = self.pasted(run.traces).items()
        self.assertIn("tree --kind host_pinned", step)
        self.assertRegex(tree, r"^120 MiB  pid \d+, at \d+ ms, the peak of that kind\n")
        self.assertRegex(tree, r"120 MiB  100.0% +40  .*program\.py:12")

    def test_of_managed_memory_alone(self):
        with self.program(MANAGED) as run:
            (step, tree), = self.pasted(run.traces).items()
            self.assertIn("tree --kind managed", step)
            self.assertIn("121 MiB", tree.splitlines()[0])  # forty blocks kept, and one in use
            for verb in ("table", "flame"):
                done = self.shell("stormlog-analyze %s --json --kind managed %s" % (verb, run.traces))
                self.assertIn('"verb":"%s"' % verb, done.stdout.replace(" ", ""))
                self.assertIn('"kind":"managed"', done.stdout.replace(" ", ""))
            refused = self.shell("stormlog-analyze tree --kind graph " + run.traces)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn("no memory of kind graph was ever held", refused.stderr)

    def test_of_managed_memory_of_a_process_that_never_looked_at_a_device(self):
        """clone3 fails, so there is no writer that samples the device; a process that ends at once is like that too."""
        traced = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=clone3", "-e", "inject=clone3:error=EAGAIN"]
        if not shutil.which("strace") or subprocess.run([*traced, "true"], capture_output=True).returncode:
            self.skipTest("strace cannot trace here")
        with self.program(MANAGED, *traced) as run:
            step, = self.pasted(run.traces)
            self.assertIn("tree --kind managed", step)

    def test_of_contexts_which_are_no_memory(self):
        with self.program(CONTEXTS) as run:
            self.pasted(run.traces)

    def test_of_ranks_and_of_one_run_of_several(self):
        with self.program(PINNED) as run:
            shutil.copytree(run.traces, os.path.join(self.folder, "several"))
        with e2e.Recording("sh", "-c", "for r in 0 1; do RANK=$r WORLD_SIZE=2 python3 %s & done; wait" % os.path.join(self.folder, "program.py"), launcher=["--quiet"]) as run:
            self.assertEqual([step.split()[1] for step in self.pasted(run.traces)], ["tree"])
            shutil.copytree(run.traces, os.path.join(self.folder, "several"), dirs_exist_ok=True, ignore=shutil.ignore_patterns("analysis"))
        screen = self.shell("stormlog-analyze --all several").stdout
        self.assertIn("\nthe newest of 2 runs here: --run all shows all\n", screen)
        older, = re.findall(r"^note   other run here: (--run \S+) ", screen, re.M)
        (step, tree), = self.pasted(*older.split(), "several").items()
        self.assertIn(older, step)
        self.assertRegex(tree, r"^120 MiB  pid \d+, at \d+ ms, the peak of that kind\n")

    def test_of_ranks_that_were_launched_without_a_job_id(self):
        code = "import ctypes; ctypes.CDLL('libcudart.so.12').cudaFree(None)"
        hint = "stormlog-run --job-id makes ranks one"
        env = {**self.env, "LD_LIBRARY_PATH": e2e.SIM, "SIM_DIR": self.folder}
        env.pop("STORMLOG_BUILD", None)
        for rank in [{}] * 8 + [{"RANK": str(rank), "WORLD_SIZE": "3"} for rank in range(3)]:
            subprocess.run([e2e.RUN, "--quiet", "-o", os.path.join(self.folder, "many"), "--", "python3", "-c", code], env={**env, **rank}, check=True)
        screen = " ".join(self.shell("stormlog-analyze --all many").stdout.split())
        others = re.findall(r"note other run here: --run (\S+) ", screen)
        self.assertEqual(len(others), 10)
        self.assertIn("the newest of 11 runs here: --run all shows all, " + hint, screen)
        self.assertIn(hint, " ".join(self.shell("stormlog-analyze many").stdout.split()))
        self.assertNotIn(hint, self.shell("stormlog-analyze --run %s many" % others[-1]).stdout)
        self.assertNotIn(hint, self.shell("stormlog-analyze --run all many").stdout)

    def test_of_the_launcher(self):
        with self.program(MANAGED):
            pass
        folder = os.path.join(self.folder, "traces of me")
        done = subprocess.run([e2e.RUN, "-o", folder, "--", "python3", os.path.join(self.folder, "program.py")], capture_output=True, text=True,
                              env={**self.env, "LD_LIBRARY_PATH": e2e.SIM, "SIM_DIR": self.folder, "SIM_VRAM": "8G"})
        said, = re.findall(r"recorded\.  (stormlog-analyze .*)", done.stderr)
        answer = self.shell(said)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("LEAK", answer.stdout)


if __name__ == "__main__":
    unittest.main()
