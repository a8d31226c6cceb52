#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-run is between a program and its parent: signals, stops, output and ends reach the other as without it."""
import ctypes
import fcntl
import os
import resource
import select
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import e2e
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)

NAMES = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
print("ready", flush=True)
got = 0
while got != signal.SIGTERM:
    got = signal.sigwait(signal.valid_signals())
    print(got, flush=True)
"""

# stops itself; a child waits until the program and the launcher have stopped, and then wakes or kills the program alone
STOPS = """
import os, signal, sys, time
def state(pid):
    return open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()
me, launcher, starter, woken = os.getpid(), os.getppid(), int(sys.argv[2]), []
signal.signal(signal.SIGCONT, lambda number, frame: woken.append(number))
if not os.fork():
    while not all(state(pid)[0] == "T" for pid in {me, launcher} - {starter}):
        time.sleep(0.01)
    os.kill(me, int(sys.argv[1]))
    os._exit(0)
os.kill(me, signal.SIGSTOP)
os.wait()
while state(launcher)[0] == "T":
    time.sleep(0.01)
print(len(woken))
sys.exit(6)
"""

# closes the pipes that it was given, of which 99 is one more copy of standard output
CLOSES = """
import os, signal
for number in (0, 1, 99):
    os.close(number)
signal.pause()
"""

# a grandchild of it, whose parent is gone, ends: does it come to the program?
ORPHAN = """
import os
reads, writes = os.pipe()
if not os.fork():
    if not os.fork():
        os.close(writes)
        os.read(reads, 1)
        os._exit(5)
    os._exit(0)
os.wait()
os.close(writes)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""

# waits for children that it has not made, and until its elder sibling is gone
ELDER = """
import os, time
try:
    os.wait()
except ChildProcessError:
    pass
while os.path.exists("/proc/" + open("elder").read()):
    time.sleep(0.01)
"""


class Launched(unittest.TestCase):
    def setUp(self):
        self.run_of = e2e.Recording("true", preload=False)
        self.addCleanup(self.run_of.__exit__)
        self.environment = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
        self.environment.update(STORMLOG_DIR=self.run_of.traces)

    def each(self, *argv, flags=((), ("--host",)), **how):
        """Runs the command alone, then under the launcher with each set of flags."""
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.run_of.folder,
               "env": self.environment, "text": True, **how}
        for front in ([], *([e2e.RUN, *some, "--"] for some in flags)):
            with self.subTest(front=front[1:]), subprocess.Popen([*front, *argv], **how) as running:
                try:
                    yield running
                finally:
                    running.kill()

    def test_every_signal_sent_to_the_launcher_reaches_the_program(self):
        numbers = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTERM}) + [signal.SIGTERM]
        for running in self.each(sys.executable, "-c", NAMES, preexec_fn=lambda: [signal.signal(number, signal.SIG_DFL) for number in numbers]):  # nohup may have set some to be ignored
            self.assertEqual(running.stdout.readline(), "ready\n")
            for number in numbers:
                running.send_signal(number)
                self.assertEqual(running.stdout.readline().split(), [str(number)])
            self.assertEqual(running.wait(), 0)

    def test_a_stopped_program_that_is_woken_or_killed_alone(self):
        """The launcher, which has stopped with it, goes on too."""
        for number, said, status in ((signal.SIGCONT, "1\n", 6), (signal.SIGKILL, "", -signal.SIGKILL)):
            for running in self.each(sys.executable, "-c", STOPS, str(int(number)), str(os.getpid())):
                self.assertEqual((running.communicate(timeout=60)[0], running.returncode), (said, status))

    def test_what_outlives_an_exec_reaches_the_program(self):
        """A timer that was set before the exec, and LISTEN_PID, by which sd_listen_fds knows that descriptors are for this process."""
        for running in self.each("sh", "-c", "exec sleep 900", preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 2)):
            self.assertEqual(running.wait(timeout=60), -signal.SIGALRM)
        for flags in ((), ("--host",)):
            done = subprocess.run(["sh", "-c", 'export LISTEN_PID=$$ WATCHDOG_PID=1; exec "$@"', "sh", e2e.RUN, *flags, "--", "sh", "-c", "echo $((LISTEN_PID - $$)) $WATCHDOG_PID"],
                                  env=self.environment, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.stdout, "0 1\n")

    def test_who_kills_the_launcher_kills_the_program(self):
        for running in self.each("sh", "-c", "echo ready; for i in $(seq 900); do sleep 0.1; done"):
            self.assertEqual(running.stdout.readline(), "ready\n")
            running.kill()
            self.assertEqual((running.communicate(timeout=60)[0], running.returncode), ("", -signal.SIGKILL))  # communicate returns, so no process has the output open

    def ended(self, *pipes):
        """Waits until the other side of each pipe is gone."""
        for pipe in pipes:
            gone = select.poll()
            gone.register(pipe, 0)
            self.assertTrue(gone.poll(60000), "an end is held open")

    def test_a_pipe_ends_when_the_program_has_closed_it(self):
        for running in self.each(sys.executable, "-c", CLOSES, stdin=subprocess.PIPE, close_fds=False, preexec_fn=lambda: os.dup2(1, 99),
                                 flags=((), ("--host",), ("--watch", "default"))):
            self.ended(running.stdout, running.stdin)

    def test_orphans_come_to_a_program_that_adopts_them(self):
        for running in self.each(sys.executable, "-c", ORPHAN, preexec_fn=lambda: ctypes.CDLL(None).prctl(36, 1)):  # PR_SET_CHILD_SUBREAPER
            self.assertEqual((running.communicate(timeout=60)[0], running.returncode), ("5\n", 0))

    def test_orphans_of_a_pid_namespace_come_to_the_program(self):
        unshare = ["unshare", "-rpf"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode:
            self.skipTest("no pid namespaces here")
        for front in ([], [e2e.RUN, "--"]):
            done = subprocess.run([*unshare, *front, sys.executable, "-c", ORPHAN], env=self.environment, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.stdout, done.returncode), ("5\n", 0))

    def test_a_child_of_who_became_the_launcher_is_buried(self):
        def elder():
            if not os.fork():
                with open("elder", "w") as name:
                    name.write(str(os.getpid()))
                os._exit(0)
            while not os.path.exists("elder") or not os.stat("elder").st_size:
                time.sleep(0.001)

        for running in self.each(sys.executable, "-c", ELDER, preexec_fn=elder):
            self.assertEqual(running.wait(timeout=60), 0)
            os.unlink(os.path.join(self.run_of.folder, "elder"))

    def test_files_that_the_launcher_needs_or_has_locked_stay_open(self):
        """A record lock outlives an exec, and goes when its process closes any descriptor of the file."""
        names = [os.path.join(self.run_of.folder, name) for name in ("locked", "token", "else")]

        def opens():
            for at, name in enumerate(names):
                opened = os.open(name, os.O_RDWR | os.O_CREAT)
                os.dup2(opened, 90 + at)
                os.close(opened)
            fcntl.lockf(90, fcntl.LOCK_EX)
            fcntl.flock(92, fcntl.LOCK_EX)
            os.dup2(1, 99)

        self.environment["STORMLOG_TOKEN_FILE"] = "/dev/fd/91"
        for running in self.each(sys.executable, "-c", "import os\nos.close(92)\n" + CLOSES, close_fds=False, preexec_fn=opens):
            self.ended(running.stdout)
            with open(names[0], "w") as locked, open(names[2], "w") as free:
                self.assertRaises(BlockingIOError, fcntl.lockf, locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.assertTrue(os.path.exists("/proc/%d/fd/91" % running.pid))

    def test_nobody_reads_what_the_launcher_says(self):
        reads, writes = os.pipe()
        os.close(reads)
        self.addCleanup(os.close, writes)
        for running in self.each("sh", "-c", "echo ran; exit 3", stderr=writes):
            self.assertEqual((running.communicate()[0], running.returncode), ("ran\n", 3))
        for running in self.each("sh", "-c", "echo ran; kill -PIPE $$", stderr=writes):
            self.assertEqual((running.communicate()[0], running.returncode), ("ran\n", -signal.SIGPIPE))

    def test_what_the_launcher_says_finds_no_room(self):
        with open(os.path.join(self.run_of.folder, "said"), "w") as said:
            for running in self.each("sh", "-c", "echo ran; exit 3", stderr=said,
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))):
                self.assertEqual((running.communicate()[0], running.returncode), ("ran\n", 3))


if __name__ == "__main__":
    e2e.side_by_side()
