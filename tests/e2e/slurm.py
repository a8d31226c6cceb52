# SPDX-License-Identifier: MIT
"""Slurm on this machine alone, with a key, ports and folders of its own.  A test case that also inherits Cluster starts it."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

CAN_START = all(map(shutil.which, ("srun", "slurmctld", "slurmd", "munged"))) and not os.getuid()

CONFIGURATION = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.sock
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={other}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/linear
SwitchType=switch/none
SlurmdParameters=config_overrides
PlugStackConfig={place}/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes={host} Default=YES State=UP
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def while_not(ready):
    for _ in range(300):
        if ready():
            return True
        time.sleep(0.1)
    return False


class Cluster:
    configuration = ""  # further lines of slurm.conf

    def setUp(self):
        super().setUp()
        self.place = tempfile.mkdtemp(prefix="stormlog-slurm-")
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        host = os.uname().nodename.split(".")[0]
        for name in "state", "spool":
            os.mkdir(os.path.join(self.place, name))
        for name, text in (("none", ""), ("key", os.urandom(512).hex()),
                           ("slurm.conf", CONFIGURATION.format(host=host, place=self.place, port=free_port(), other=free_port()) + self.configuration)):
            with open(os.open(os.path.join(self.place, name), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(text)
        self.slurm = dict(SLURM_CONF=os.path.join(self.place, "slurm.conf"))
        at = self.place + "/"
        self.start(["munged", "--force", "--foreground", "--key-file=" + at + "key", "--socket=" + at + "munge.sock", "--pid-file=" + at + "munge.pid",
                    "--log-file=" + at + "munge.log", "--seed-file=" + at + "seed"])
        while_not(lambda: os.path.exists(at + "munge.sock"))
        self.start(["slurmctld", "-D"])
        self.start(["slurmd", "-D"])
        if not while_not(lambda: b"idle" in subprocess.run(["sinfo", "-h"], capture_output=True, env={**os.environ, **self.slurm}).stdout):
            self.skipTest("Slurm does not come up here")

    def start(self, command):
        daemon = subprocess.Popen(command, env={**os.environ, **self.slurm}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def end():
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.addCleanup(end)
