#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-run is between a program and its parent: signals, stops, output and ends reach the other as without it."""
import ctypes
import fcntl
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time
import unittest

import e2e

NAMES = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
print("ready", flush=True)
got = 0
while got != signal.SIGTERM:
    got = signal.sigwait(signal.valid_signals())
    print(got, flush=True)
"""

# how many processes have a word of its among theirs, and whether its parent has the folder
WORDS = """
import glob, os, sys
def has(name):
    try:
        return sys.argv[1] in open(name).read().split("\\0")
    except OSError:
        return False
print(sum(map(has, glob.glob("/proc/[0-9]*/cmdline"))), sys.argv[2] in open("/proc/%d/cmdline" % os.getppid()).read())
"""

# closes the pipes that it was given, of which 99 is one more copy of standard output
CLOSES = """
import os, signal
for number in (0, 1, 99):
    os.close(number)
signal.pause()
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

# the terminal goes away
HANGUP = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
print("ready", flush=True)
os.write(int(sys.argv[1]), b"%d" % signal.sigwait([signal.SIGHUP]))
"""

# which standard descriptors it finds
FINDS = """
import os, sys
sys.exit(10 + sum(1 << number for number in range(3) if os.path.exists("/proc/self/fd/%d" % number)))
"""


class Launched(unittest.TestCase):
    def setUp(self):
        self.run_of = e2e.Recording("true", preload=False)
        self.addCleanup(self.run_of.__exit__)
        self.environment = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
        self.environment.update(STORMLOG_DIR=self.run_of.traces)

    def each(self, *argv, flags=((),), **how):
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
        """Those too that nohup, or a shell's &, has set to be ignored, where the program wants them; but for those that stop jobs, and SIGCHLD."""
        numbers = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
                                                   signal.SIGCONT, signal.SIGCHLD}) + [signal.SIGTERM]
        for how in (signal.SIG_DFL, signal.SIG_IGN):
            for running in self.each(sys.executable, "-c", NAMES, preexec_fn=lambda: [signal.signal(number, how) for number in numbers]):
                self.assertEqual(running.stdout.readline(), "ready\n")
                for number in numbers:
                    running.send_signal(number)
                    self.assertTrue(select.select([running.stdout], [], [], 60)[0], number)
                    self.assertEqual(running.stdout.readline().split(), [str(number)])
                self.assertEqual(running.wait(), 0)

    def test_who_looks_for_the_program_by_its_words_finds_one(self):
        """As pkill -f and pgrep -f do."""
        for running in self.each(sys.executable, "-c", WORDS, "words-of-%d" % os.getpid(), os.path.dirname(e2e.RUN)):
            self.assertEqual((running.communicate(timeout=60)[0], running.returncode), ("1 False\n", 0))

    def test_timeout_ends_a_program_that_has_left_the_group(self):
        """timeout(1) signals the program it has started, and the group."""
        for front in ([], [e2e.RUN, "--"]):
            done = subprocess.run(["timeout", "-k", "60", "1", *front, "setsid", "-w", "sleep", "900"], env=self.environment, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 124, front)

    def test_a_terminal_that_goes_away(self):
        """The kernel tells the leader of the session alone, which is the launcher."""
        for front in ([], [e2e.RUN, "--"]):
            reads, writes = os.pipe()
            self.addCleanup(os.close, reads)
            try:
                pid, terminal = pty.fork()
            except OSError as error:
                self.skipTest(str(error))  # a chroot without /dev/pts
            if not pid:
                os.set_inheritable(writes, True)
                argv = [*front, sys.executable, "-c", HANGUP, str(writes)]
                os.execve(argv[0], argv, self.environment)
            os.close(writes)
            seen = b""
            while b"ready\r\n" not in seen:
                seen += os.read(terminal, 1000)
            os.close(terminal)
            try:
                self.assertTrue(select.select([reads], [], [], 60)[0])
                self.assertEqual(os.read(reads, 10), b"1")
            finally:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def test_what_outlives_an_exec_reaches_the_program(self):
        """A timer that was set before the exec (perl -e 'alarm 9; exec @ARGV'), and LISTEN_PID, by which sd_listen_fds knows that descriptors are for this process."""
        for running in self.each("sh", "-c", "exec sleep 900", preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 2)):
            self.assertEqual(running.wait(timeout=60), -signal.SIGALRM)
        done = subprocess.run(["sh", "-c", 'export LISTEN_PID=$$ WATCHDOG_PID=1; exec "$@"', "sh", e2e.RUN, "--", "sh", "-c", "echo $((LISTEN_PID - $$)) $WATCHDOG_PID"],
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
                                 flags=((), ("--watch", "default"))):
            self.ended(running.stdout, running.stdin)

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
        os.mkdir(os.path.join(self.run_of.folder, "folder"))
        os.mkdir(names[1] + "s")

        def opens():
            for at, name in enumerate([*names, names[0]]):  # 93 is of the same file as 90, and has no lock beneath it in /proc/self/fdinfo
                opened = os.open(name, os.O_RDWR | os.O_CREAT)
                os.dup2(opened, 90 + at)
                os.close(opened)
            fcntl.lockf(90, fcntl.LOCK_EX)
            fcntl.flock(92, fcntl.LOCK_EX)
            opened = os.open(os.path.join(self.run_of.folder, "folder"), os.O_RDONLY)
            os.dup2(opened, 94)
            os.close(opened)
            fcntl.flock(94, fcntl.LOCK_EX)
            opened = os.open(names[1] + "s", os.O_RDONLY)
            os.dup2(opened, 95)
            os.close(opened)
            epoll, event = select.epoll(), ctypes.CDLL(None).eventfd(0, 0)
            for _ in range(200):  # more than what is read of /proc/self/fdinfo
                epoll.register(os.dup(event))
            os.dup2(epoll.fileno(), 97)
            os.dup2(event, 96)
            os.dup2(1, 99)

        self.environment["STORMLOG_TOKEN_FILE"] = "/dev/fd/91"
        for running in self.each(sys.executable, "-c", "import fcntl, os\nfcntl.flock(95, fcntl.LOCK_EX)\nfor one in (92, 94, 95, 96):\n    os.close(one)\n" + CLOSES, close_fds=False, preexec_fn=opens):
            self.ended(running.stdout)
            with open(names[0], "w") as locked, open(names[2], "w") as free:
                self.assertRaises(BlockingIOError, fcntl.lockf, locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in (os.path.join(self.run_of.folder, "folder"), names[1] + "s"):
                folder = os.open(name, os.O_RDONLY)
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.close(folder)
            self.assertTrue(os.path.exists("/proc/%d/fd/91" % running.pid))
            if running.args[0] == e2e.RUN:
                with open("/proc/%d/fdinfo/94" % running.pid) as info:
                    self.assertTrue(int(re.search("flags:\t(.*)", info.read())[1], 8) & os.O_PATH, "a folder may be closed to us")
            self.assertFalse(os.path.exists("/proc/%d/fd/96" % running.pid), "an eventfd is not the epoll, which says more than is read")

    def test_a_program_without_standard_descriptors(self):
        """It finds them closed, and nothing that is said beside it gets into a trace."""
        for closed in ((1,), (2,), (0, 1, 2)):
            for running in self.each(sys.executable, "-c", FINDS, flags=((), ("--watch", "default")),
                                     preexec_fn=lambda: [os.close(number) for number in closed]):
                self.assertEqual(running.wait(timeout=120), 10 + sum(1 << number for number in range(3) if number not in closed))
            for folder, _, names in os.walk(self.run_of.traces):
                for name in names:
                    with open(os.path.join(folder, name), "rb") as file:
                        self.assertNotIn(b"stormlog: ", file.read(), closed)

    def test_the_status_of_what_is_not_found_where_nobody_can_be_told(self):
        done = subprocess.run([e2e.RUN, "./none"], cwd=self.run_of.folder, env=self.environment, preexec_fn=lambda: os.close(2), timeout=60)
        self.assertEqual(done.returncode, 127)

    def test_a_status_that_is_also_the_launchers_own(self):
        """What was recorded is said, and nothing where there was no command."""
        for code in (125, 126, 127):
            with e2e.Recording("sh", "-c", "%s raw_end 0; exit %d" % (os.path.join(e2e.APPS, "foreign"), code), launcher=["--report"], code=code) as run:
                self.assertIn(b"stormlog: 1 process recorded.", run.done.stderr)
        with e2e.Recording("./absent", launcher=["--report"], code=127) as run:
            self.assertNotIn(b"recorded", run.done.stderr)

    def test_nobody_reads_what_the_launcher_says(self):
        reads, writes = os.pipe()
        os.close(reads)
        self.addCleanup(os.close, writes)
        for running in self.each("sh", "-c", "sleep 1; echo ran; exit 3", stderr=writes):
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
