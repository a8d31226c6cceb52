#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real launchers of doc/launching.md: each rank or worker leaves a trace with the rank that the launcher gave it.

A launcher that is not installed is skipped with a message; STORMLOG_REAL=1 fetches those written in Python.
"""
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import real
import slurm
import stormlog_trace

ALL = os.environ.get("STORMLOG_REAL") == "1"
PROGRAMS = os.path.join(real.HERE, "programs")
PROGRAM = os.path.join(PROGRAMS, "rank_takes.py")
RUN, MIB = real.e2e.RUN, 1 << 20
PYTHON = "/usr/bin/python3"
OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]


class Launchers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-launch-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.traces = os.path.join(self.folder, "traces")

    def run_it(self, *command, **environment):
        clean = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        clean.update(HOME=self.folder, TMPDIR=self.folder, LD_LIBRARY_PATH=real.e2e.SIM, SIM_DEVICES="1", **environment)
        done = subprocess.run(command, env=clean, cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout[-1500:] + done.stderr[-3000:])

    def ranks(self):
        """Sorted (rank, world size, bytes taken) of each process that took memory."""
        found = []
        for path in sorted(os.listdir(self.traces)):
            if not path.endswith(".msgpack.zst"):
                continue
            trace = stormlog_trace.Trace(os.path.join(self.traces, path))
            events = trace.events()
            mine = [i for i, api in enumerate(events["api"]) if trace.names()[int(api)] == "cudaMalloc"]
            found.append((trace.header["rank"], trace.header["world_size"], sum(int(events["bytes"][i]) for i in mine)))
        return sorted(found, key=str)

    def python_with(self, module):
        python = real.python_of("loops") if ALL else None
        if not python or subprocess.run([python, "-c", "import " + module], capture_output=True).returncode:
            self.skipTest(module + " is not at hand (STORMLOG_REAL=1 fetches it)")
        return python

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(program + " is not installed")

    def test_openmpi(self):
        self.need(OPENMPI[0])
        self.run_it(*OPENMPI, "-n", "3", RUN, "-o", self.traces, "--", PYTHON, PROGRAM, "3")
        self.assertEqual(self.ranks(), [(rank, 3, 3 * MIB) for rank in range(3)])

    def test_one_launcher_before_openmpi(self):
        self.need(OPENMPI[0])
        self.run_it(RUN, "-o", self.traces, "--", *OPENMPI, "-x", "LD_PRELOAD", "-x", "STORMLOG_DIR", "-n", "2", PYTHON, PROGRAM, "4")
        self.assertEqual(self.ranks(), [(rank, 2, 4 * MIB) for rank in range(2)])

    def test_mpich(self):
        self.need("mpiexec.hydra")
        self.run_it("mpiexec.hydra", "-n", "3", RUN, "-o", self.traces, "--", PYTHON, PROGRAM, "3")
        self.assertEqual(self.ranks(), [(rank, 3, 3 * MIB) for rank in range(3)])

    def test_by_hand(self):
        self.run_it("sh", "-c", f'for r in 0 1 2; do {RUN} -q -o {self.traces} --rank $r --world-size 3 --job-id hand -- '
                    f'{PYTHON} {PROGRAM} 5 & done; wait')
        self.assertEqual(self.ranks(), [(rank, 3, 5 * MIB) for rank in range(3)])
        done = subprocess.run([real.e2e.ANALYZE, "-o", os.path.join(self.folder, "a"), self.traces], capture_output=True, text=True)
        self.assertIn("3 ranks", done.stdout)

    def test_bubblewrap(self):
        self.need("bwrap")
        self.run_it("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--bind", self.folder, self.folder,
                    RUN, "-o", self.traces, "--", PYTHON, PROGRAM, "3")
        self.assertEqual(self.ranks(), [(None, None, 3 * MIB)])

    def podman(self, name, *command):
        """A container with this machine's root, in a mount namespace with cgroup v2 alone, because crun does not support hybrid cgroups."""
        return ["unshare", "-m", "sh", "-c", 'mount --make-rprivate / && umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; exec "$@"',
                "sh", "podman", "--cgroup-manager", "cgroupfs", "run", "--rm", "--name", name, "--privileged", "--pids-limit", "-1",
                "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network", "none", "-v", self.folder + ":/out",
                "-e", "LD_LIBRARY_PATH=" + real.e2e.SIM, "--rootfs", "/:O", *command]

    def need_podman(self):
        self.need("podman")
        done = subprocess.run(self.podman("stormlog-%d-can" % os.getpid(), "true"), capture_output=True, text=True, timeout=300)
        if done.returncode:
            self.skipTest("podman does not run here: " + done.stderr.strip())

    def test_podman(self):
        self.need_podman()
        self.run_it(*self.podman("stormlog-%d" % os.getpid(), RUN, "-o", "/out/traces", "--", PYTHON, PROGRAM, "3"))
        self.assertEqual(self.ranks(), [(None, None, 3 * MIB)])

    def test_a_container_of_podman_that_is_killed_has_its_ring_in_the_volume(self):
        self.need_podman()
        name, ready = "stormlog-%d-killed" % os.getpid(), os.path.join(self.folder, "ready")
        program = "import runpy, sys, time; sys.argv[1:] = ['3']; runpy.run_path(%r, run_name='__main__'); open('/out/ready', 'w'); time.sleep(600)" % PROGRAM
        child = subprocess.Popen(self.podman(name, RUN, "-q", "-o", "/out/traces", "--", PYTHON, "-c", program),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            if os.path.exists(ready) or child.poll() is not None:
                break
            time.sleep(0.1)
        subprocess.run(["podman", "kill", "-s", "KILL", name], capture_output=True, timeout=300)
        child.wait(timeout=300)
        done = subprocess.run([real.e2e.ANALYZE, "--json", self.traces], capture_output=True, text=True, timeout=300)
        process, = json.loads(done.stdout)["processes"]
        row, = [row for row in process["memory"] if row["kind"] == "device"]
        self.assertEqual((process["status"], row["allocations"], row["live_bytes"]), ("interrupted", 1, 3 * MIB))

    def test_torchrun(self):
        python = self.python_with("torch")
        self.run_it(RUN, "-o", self.traces, "--", python, "-m", "torch.distributed.run", "--nproc-per-node", "3", PROGRAM, "3")
        self.assertEqual(self.ranks(), [(rank, 3, 3 * MIB) for rank in range(3)])

    def test_accelerate(self):
        python = self.python_with("accelerate")
        self.run_it(RUN, "-o", self.traces, "--", python, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines",
                    "1", "--mixed_precision", "no", "--dynamo_backend", "no", PROGRAM, "3")
        self.assertEqual(self.ranks(), [(rank, 2, 3 * MIB) for rank in range(2)])

    def test_deepspeed(self):
        self.need("deepspeed")  # PyPI has no wheel of it
        self.run_it(RUN, "-o", self.traces, "--", "deepspeed", "--num_gpus", "2", "--no_local_rank", PROGRAM, "3", DS_ACCELERATOR="cpu")
        self.assertEqual(self.ranks(), [(rank, 2, 3 * MIB) for rank in range(2)])

    def test_ray(self):
        python = self.python_with("ray")
        self.run_it(python, os.path.join(PROGRAMS, "launch_ray.py"), real.e2e.PRELOAD, self.traces)
        self.assertEqual(self.ranks(), [(None, None, 3 * MIB), (None, None, 4 * MIB)])

    def test_dask(self):
        python = self.python_with("dask.distributed")
        self.run_it(RUN, "-o", self.traces, "--", python, os.path.join(PROGRAMS, "launch_dask.py"))
        self.assertEqual(self.ranks(), [(None, None, 3 * MIB), (None, None, 4 * MIB)])

    def test_jupyter(self):
        python = self.python_with("nbclient")
        self.run_it(RUN, "-o", self.traces, "--", python, os.path.join(PROGRAMS, "launch_notebook.py"))
        self.assertEqual(self.ranks(), [(None, None, 3 * MIB)])


@unittest.skipUnless(slurm.CAN_START, "Slurm is not installed, or this is not root")
class Slurm(slurm.Cluster, Launchers):
    """Slurm with this machine as its only node.  With several nodes all must see the trace folder."""

    def setUp(self):
        Launchers.setUp(self)
        super().setUp()

    def in_job(self, *command, **environment):
        self.run_it(*command, **self.slurm, **environment)

    def test_one_launcher_before_srun(self):
        self.in_job(RUN, "-q", "-o", self.traces, "--", "srun", "-n", "3", PYTHON, PROGRAM, "3")
        self.assertEqual(self.ranks(), [(rank, 3, 3 * MIB) for rank in range(3)])

    def test_srun_before_one_launcher_a_task(self):
        self.in_job("srun", "-n", "3", RUN, "-q", "-o", self.traces, "--", PYTHON, PROGRAM, "4")
        self.assertEqual(self.ranks(), [(rank, 3, 4 * MIB) for rank in range(3)])

    def test_srun_that_hands_on_no_environment(self):
        # pass the simulator's folder on: on a cluster CUDA is in the loader's default path
        self.in_job("srun", "--export=NONE", "-n", "2", "/usr/bin/env", "LD_LIBRARY_PATH=" + real.e2e.SIM, "SIM_DEVICES=1", "SIM_DIR=" + self.folder,
                    RUN, "-q", "-o", self.traces, "--", PYTHON, PROGRAM, "5")
        self.assertEqual(self.ranks(), [(rank, 2, 5 * MIB) for rank in range(2)])

    def test_an_array_leaves_a_folder_a_job(self):
        script = os.path.join(self.folder, "job.sh")
        with open(script, "w") as file:
            file.write("#!/bin/sh\nexec %s -q -o %s/%%j -- %s %s 6\n" % (RUN, self.traces, PYTHON, PROGRAM))
        self.in_job("sbatch", "--wait", "-n", "2", "--array=1-2", "--output=" + os.path.join(self.folder, "%j.txt"), script)
        folders = [os.path.join(self.traces, name) for name in os.listdir(self.traces)]
        self.assertEqual(len(folders), 2)
        for self.traces in folders:
            self.assertEqual(self.ranks(), [(None, None, 6 * MIB)])  # a batch script is no step: one process of no rank


# Slurm inherits the tests of Launchers, which must not run twice
for name in [name for name in dir(Launchers) if name.startswith("test_")]:
    setattr(Slurm, name, None)


if __name__ == "__main__":
    unittest.main()
