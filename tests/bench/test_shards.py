#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_shards.py ANALYZE MAKE_LARGE: the parts that srun, mpirun and job arrays hand to their tasks add up to the whole run."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import slurm

import msgpack
import zstandard

ANALYZE, MAKE = map(os.path.abspath, sys.argv[1:3])
SHARDS = 1, 2, 4, 7


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-shards-")
        self.addCleanup(shutil.rmtree, self.folder)
        traces = os.path.join(self.folder, "t")
        os.mkdir(traces)
        subprocess.run([MAKE, "leak", traces, "2000", "6"], check=True)
        for size in (200, 5000):  # some ranks far smaller, some far larger than the others
            more = os.path.join(traces, "n%d" % size)
            os.mkdir(more)
            subprocess.run([MAKE, "apart", more, str(size), "3"], check=True)
        self.whole = self.run_it([ANALYZE, "--json", "t"]).stdout

    def run_it(self, command, code=0, **environment):
        clean = {name: value for name, value in os.environ.items() if not re.match("(OMPI|PMI|PMIX|SLURM|FLUX|JSM)_", name)}
        done = subprocess.run(command, cwd=self.folder, capture_output=True, env={**clean, **environment})
        self.assertEqual(done.returncode, code, (command, environment, done.stdout[-300:], done.stderr))
        return done

    def files(self, pattern):
        return sorted(os.path.basename(path) for path in glob.glob(os.path.join(self.folder, pattern)))

    def check(self, folder, shards):
        self.assertEqual(self.files(folder + "/*"), sorted("%d.summary" % (i + 1) for i in range(shards)))
        self.assertEqual(self.run_it([ANALYZE, "--json", folder]).stdout, self.whole)
        self.run_it([ANALYZE, "summarize", "-q", folder, "-o", folder + ".summary"])
        self.run_it([ANALYZE, "summarize", "-q", "t", "-o", "all.summary"])
        with open(os.path.join(self.folder, folder + ".summary"), "rb") as one, open(os.path.join(self.folder, "all.summary"), "rb") as other:
            self.assertEqual(one.read(), other.read())
        shutil.rmtree(os.path.join(self.folder, folder))


class Environments(Case):
    def shards(self, folder, environments):
        for environment in environments:
            self.run_it([ANALYZE, "summarize", "t", "-o", folder + "/%s.summary"], **environment)

    def test_what_launchers_say(self):
        for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
                           ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"), ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE")):
            self.shards(rank, ({rank: str(i), size: "4"} for i in range(4)))
            self.check(rank, 4)

    def test_arrays_and_arrays_of_steps(self):
        array = dict(SLURM_ARRAY_TASK_MIN="4", SLURM_ARRAY_TASK_MAX="12", SLURM_ARRAY_TASK_STEP="4", SLURM_ARRAY_TASK_COUNT="3")
        self.shards("a", (dict(array, SLURM_ARRAY_TASK_ID=i) for i in ("4", "8", "12")))
        self.check("a", 3)
        self.shards("b", (dict(array, SLURM_ARRAY_TASK_ID=i, SLURM_PROCID=k, SLURM_STEP_NUM_TASKS="2") for i in ("4", "8", "12") for k in "01"))
        self.check("b", 6)

    def test_a_number_of_parts_that_is_not_known_is_asked_for(self):
        summarize = [ANALYZE, "summarize", "t", "-o", "x/%s.summary"]
        for environment in (dict(PMIX_RANK="3"), dict(SLURM_ARRAY_TASK_ID="3", SLURM_ARRAY_TASK_MIN="1", SLURM_ARRAY_TASK_MAX="9", SLURM_ARRAY_TASK_COUNT="3")):
            self.assertIn(b"--shard", self.run_it(summarize, code=2, **environment).stderr)
        self.assertEqual(self.files("x/*"), [])
        self.run_it(summarize, SLURM_PROCID="0", SLURM_NTASKS="4")  # a batch script without srun: one task does it all
        self.check("x", 1)

    def test_the_user_says_it(self):
        for shards in SHARDS:
            for i in range(shards):
                self.run_it([ANALYZE, "summarize", "--shard", "%d/%d" % (i + 1, shards), "t", "-o", "s/%s.summary"], PMI_RANK="1", PMI_SIZE="2")
            self.check("s", shards)
        for i in range(40):  # more parts than processes
            self.run_it([ANALYZE, "summarize", "--shard", "%d/40" % (i + 1), "t", "-o", "s/%s.summary"])
        self.check("s", 40)

    def test_parts_are_of_about_the_same_size(self):
        sizes = []
        for i in range(3):
            self.run_it([ANALYZE, "summarize", "--shard", "%d/3" % (i + 1), "t", "-o", "p.summary"])
            with open(os.path.join(self.folder, "p.summary"), "rb") as file:
                index = msgpack.unpackb(zstandard.ZstdDecompressor().decompressobj().decompress(file.read()[24:]))  # behind the stamp
            sizes.append(sum(os.path.getsize(os.path.join(self.folder, process["name"])) for process in index["processes"]))
        largest = max(os.path.getsize(path) for path in glob.glob(os.path.join(self.folder, "t", "**", "*.zst"), recursive=True))
        self.assertGreater(min(sizes), 0)
        self.assertLessEqual(max(sizes) - min(sizes), largest)

    def test_names(self):
        self.run_it([ANALYZE, "summarize", "t", "-o", "%h-%%.summary"], PMI_RANK="1", PMI_SIZE="2")  # no %s: the whole run, not a part
        self.assertEqual(self.files("*.summary"), [os.uname().nodename + "-%.summary"])
        self.assertEqual(self.run_it([ANALYZE, "--json", self.files("*.summary")[0]]).stdout, self.whole)
        for name in ("%q.summary", "%.summary"):
            self.run_it([ANALYZE, "summarize", "t", "-o", name], code=2)
        for shard in ("0/4", "5/4", "4", "/4", "1/", "1/4x", "a/b", "1/0"):
            self.run_it([ANALYZE, "summarize", "--shard", shard, "t", "-o", "x.summary"], code=2)
        self.assertIn(b"another folder", self.run_it([ANALYZE, "summarize", "t", "-o", "t/%s.summary"], code=2).stderr)

    def test_nothing_there_is_said_by_every_part(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        self.run_it([ANALYZE, "summarize", "--shard", "1/2", "empty", "-o", "x.summary"], code=3)
        self.assertEqual(self.files("*.summary"), [])


@unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
class Mpi(Case):
    def test_mpirun(self):
        for shards in SHARDS:
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(shards), ANALYZE, "summarize", "-q", "-j", "1", "t", "-o", "m/%s.summary"]
            self.run_it(command, HOME=self.folder)
            self.check("m", shards)


@unittest.skipUnless(slurm.CAN_START, "no Slurm to start here")
class Slurm(slurm.Cluster, Case):
    def test_srun(self):
        for shards in SHARDS:
            self.run_it(["srun", "-n", str(shards), ANALYZE, "summarize", "-q", "-j", "1", "t", "-o", "s/%s.summary"], **self.slurm)
            self.check("s", shards)

    def test_a_job_array(self):
        command = "%s summarize -q -j 1 t -o a/%%s.summary" % ANALYZE
        self.run_it(["sbatch", "-W", "-o", "/dev/null", "--array=1-3", "--wrap", command], **self.slurm)
        self.check("a", 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
