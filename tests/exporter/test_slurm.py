#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_slurm.py EXPORTER: the installed TaskProlog and SrunEpilog, in a Slurm on this machine: jobs that ask for it are recorded, have their
job number in the exporter's labels, and end with a line about their memory."""
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
import e2e
import slurm
if not slurm.CAN_START:
    print("skipped: no Slurm to start here")
    sys.exit(77)
PROLOG, SRUN_EPILOG, EPILOG = (HERE.parents[1] / "tools" / "exporter" / name for name in ("slurm-taskprolog", "slurm-srunepilog", "slurm-epilog"))
BIN = os.path.dirname(e2e.ANALYZE)


class Jobs(slurm.Cluster):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="stormlog-slurm-job-")
        self.addCleanup(shutil.rmtree, self.folder)
        clean = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
        self.environment = {**clean, **self.slurm, "LD_LIBRARY_PATH": e2e.SIM, "SIM_DIR": self.folder, "APPS": e2e.APPS,
                            "PATH": BIN + ":" + clean["PATH"]}

    def job(self, *steps, **environment):
        return subprocess.Popen(["srun", "-n", "2", "/usr/bin/python3", e2e.SCRIPT, *steps], cwd=self.folder, env={**self.environment, **environment},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def folders(self):
        return [name for name in os.listdir(self.folder) if re.fullmatch(r"stormlog-\d+", name)]

    def processes(self, folder):
        return json.loads(subprocess.run([e2e.ANALYZE, "--json", os.path.join(self.folder, folder)], capture_output=True).stdout)["processes"]


class TaskProlog(Jobs, unittest.TestCase):
    configuration = "TaskProlog=%s\nSrunEpilog=%s\n" % (PROLOG, SRUN_EPILOG)

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
        self.assertEqual(len(self.processes(folder)), 2)
        self.assertEqual(said, "stormlog: job %s: GPU memory 0.03 GiB of 8.00 GiB (0.4 %%) at most (rank 0); least of 2: 0.03 GiB.  stormlog-analyze %s\n"
                         % (number, os.path.join(self.folder, folder)))

    def test_a_job_that_does_not_ask_is_as_it_was(self):
        plain = self.job("alloc=30")
        said, _ = plain.communicate(timeout=60)
        self.assertEqual((plain.returncode, said, self.folders()), (0, "", []))


def rings(folder):
    """The rings in this node's memory of traces in the folder."""
    def begin(path):
        with open(path, "rb") as file:
            return file.read(8192)
    return [path for path in pathlib.Path("/dev/shm").glob("stormlog-*") if path.is_file() and os.fsencode(folder) in begin(path)]


class Epilog(Jobs, unittest.TestCase):
    def setUp(self):
        place = tempfile.mkdtemp(prefix="stormlog-slurm-epilog-")
        self.addCleanup(shutil.rmtree, place)
        script = pathlib.Path(place, "epilog")  # sets PATH, which Slurm does not
        script.write_text("#!/bin/sh\nPATH=%s:/usr/sbin:/usr/bin:/sbin:/bin exec %s\n" % (BIN, EPILOG))
        script.chmod(0o755)
        self.configuration = "TaskProlog=%s\nEpilog=%s\n" % (PROLOG, script)
        super().setUp()

    def far(self):
        """Puts the job's folder on a FUSE file system, which stormlog takes for a network file system."""
        root, far = (os.path.join(self.folder, name) for name in ("root", "far"))
        os.mkdir(root)
        os.mkdir(far)
        server = subprocess.Popen([sys.executable, HERE.parent / "agent" / "hanging_fs.py", root, far], stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(subprocess.run, ["umount", "-l", far])
        if not slurm.while_not(lambda: os.path.ismount(far) or server.poll() is not None) or not os.path.ismount(far):
            self.skipTest("no FUSE here (root, /dev/fuse and python3-fusepy are needed)")
        self.folder = far

    def test_what_killed_tasks_left_on_the_node_comes_to_their_traces(self):
        self.far()
        job = self.job("alloc=30", "ready=there", "wait=never", STORMLOG=e2e.PRELOAD)
        self.addCleanup(job.communicate)
        self.assertTrue(slurm.while_not(lambda: len(rings(self.folder)) == 2 and os.path.exists(os.path.join(self.folder, "there"))))
        folder, = self.folders()
        subprocess.run(["scancel", "--signal=KILL", folder.split("-")[1]], check=True, env=self.environment)
        job.wait(60)
        self.assertTrue(slurm.while_not(lambda: not rings(self.folder)))
        self.assertEqual([[row["live_bytes"] for row in process["memory"]] for process in self.processes(folder)], [[30 << 20]] * 2)
        self.assertEqual({process["status"] for process in self.processes(folder)}, {"interrupted"})


class EpilogOfThePage(Jobs, unittest.TestCase):
    """The script at the end of doc/cases/slurm.md leaves the verdict of each job in its folder."""

    def setUp(self):
        page = (HERE.parents[1] / "doc/cases/slurm.md").read_text()
        script = pathlib.Path(tempfile.mkdtemp(prefix="stormlog-slurm-page-"), "epilog")
        self.addCleanup(shutil.rmtree, script.parent)
        text = re.findall(r"```sh\n(.*?)```", page, re.S)[-1]
        script.write_text(text.replace("stormlog-analyze", e2e.ANALYZE))  # su looks for programs in the system's folders
        script.chmod(0o755)
        self.configuration = "Epilog=%s\n" % script
        super().setUp()

    def test_each_job_s_folder_has_its_own_verdict(self):
        traces = pathlib.Path(self.folder, "traces")
        traces.mkdir()
        for steps in (("alloc=30", "try=9000"), ("alloc=30", "free")):
            said, _ = (job := self.job(*steps, LD_PRELOAD=e2e.PRELOAD, STORMLOG_DIR=str(traces / "%j"))).communicate(timeout=60)
            self.assertEqual(job.returncode, 0, said)
        self.assertTrue(slurm.while_not(lambda: sum("no-oom" in check.read_text() for check in traces.glob("*/check.txt")) == 2))
        first, second = sorted(traces.iterdir(), key=lambda folder: int(folder.name))
        self.assertRegex((first / "check.txt").read_text(), r"(?m)^FAIL +no-oom ")
        self.assertRegex((second / "check.txt").read_text(), r"(?m)^ok +no-oom ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
