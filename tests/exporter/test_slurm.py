#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_slurm.py EXPORTER: the TaskProlog and SrunEpilog that are installed, in a Slurm of this machine: jobs that ask are recorded, known by their
number, and end with a line about their memory."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

EXPORTER = os.path.abspath(sys.argv.pop(1))
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
try:
    import e2e
    import slurm
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)
if not slurm.CAN_START:
    print("skipped: no Slurm to start here")
    sys.exit(77)
PROLOG, EPILOG = (HERE.parents[1] / "exporter" / name for name in ("slurm-taskprolog", "slurm-srunepilog"))


class TaskProlog(slurm.Cluster, unittest.TestCase):
    configuration = "TaskProlog=%s\nSrunEpilog=%s\n" % (PROLOG, EPILOG)

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="stormlog-slurm-job-")
        self.addCleanup(shutil.rmtree, self.folder)
        clean = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
        self.environment = {**clean, **self.slurm, "LD_LIBRARY_PATH": e2e.SIM, "SIM_DIR": self.folder, "APPS": e2e.APPS,
                            "PATH": os.path.dirname(e2e.ANALYZE) + ":" + clean["PATH"]}

    def job(self, *steps, **environment):
        return subprocess.Popen(["srun", "-n", "2", "/usr/bin/python3", e2e.SCRIPT, *steps], cwd=self.folder, env={**self.environment, **environment},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def folders(self):
        return [name for name in os.listdir(self.folder) if re.fullmatch(r"stormlog-\d+", name)]

    def test_a_job_that_asks_is_recorded_and_the_exporter_knows_its_number(self):
        asks = self.job("alloc=30", "wait=" + os.path.join(self.folder, "go"), STORMLOG=e2e.PRELOAD)
        for _ in range(300):
            text = subprocess.run([EXPORTER, "--once", *(os.path.join(self.folder, name) for name in self.folders()[:1])], capture_output=True, text=True).stdout
            series = re.findall(r'^stormlog_live_bytes\{(.*)\} 31457280$', text, re.M)
            if self.folders() and len(series) == 2:
                break
            time.sleep(0.1)
        open(os.path.join(self.folder, "go"), "w").close()
        said, _ = asks.communicate(timeout=60)
        self.assertEqual(asks.returncode, 0, said)
        folder, = self.folders()
        number = folder.split("-")[1]
        self.assertEqual(len(series), 2, text)
        self.assertEqual({re.search('hpc_job="(.*?)"', labels)[1] for labels in series}, {number})
        self.assertEqual({re.search('rank="(.*?)"', labels)[1] for labels in series}, {"0", "1"})
        report = json.loads(subprocess.run([e2e.ANALYZE, "--json", os.path.join(self.folder, folder)], capture_output=True).stdout)
        self.assertEqual(len(report["processes"]), 2)
        self.assertEqual(said, "stormlog: job %s: GPU memory 0.03 GiB of 8.00 GiB (0.4 %%) at most (rank 0); least of 2: 0.03 GiB.  stormlog-analyze %s\n"
                         % (number, os.path.join(self.folder, folder)))

    def test_a_job_that_does_not_ask_is_as_it_was(self):
        plain = self.job("alloc=30")
        said, _ = plain.communicate(timeout=60)
        self.assertEqual((plain.returncode, said, self.folders()), (0, "", []))


if __name__ == "__main__":
    unittest.main(verbosity=2)
