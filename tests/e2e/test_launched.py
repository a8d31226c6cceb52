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

# a child signals the launcher, or who is there instead, and has ended; it is buried once that one has taken the signal
ENDED = """
import os, re, signal, sys, time
above, ours = os.getppid(), int(sys.argv[1])
def taken():
    said = open("/proc/%d/status" % above).read()
    waits = int(re.search("ShdPnd:\\t(.*)", said)[1], 16) | int(re.search("SigPnd:\\t(.*)", said)[1], 16)
    return re.search("State:\\t(.)", said)[1] == "S" and not waits >> signal.SIGUSR1 - 1 & 1
child = os.fork()
if not child:
    os.kill(above, signal.SIGUSR1)
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
while above != ours and not taken():
    time.sleep(0.001)
os.wait()
print("buried", flush=True)
sys.stdin.readline()
print("done")
"""

# a child that lives on signals the launcher
LIVES = """
import os, signal, sys
above, (reads, writes) = os.getppid(), os.pipe()
if not os.fork():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(above, number)
    print("sent", flush=True)
    os.close(writes)
    os.read(reads, 1)
    os._exit(0)
sys.stdin.readline()
print("done")
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

# leaves its group, and counts the signals that come then
LEAVES = """
import os, signal, sys
got = []
os.setsid()
signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
print("ready", flush=True)
sys.stdin.readline()
print(len(got))
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

# prints each signal with how it was sent and its value, until the last one
VALUES = """
import ctypes, os, signal
libc, info, every = ctypes.CDLL(None), (ctypes.c_int * 32)(), (ctypes.c_ulong * 16)(*[~0] * 16)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
print("ready", flush=True)
while info[0] != signal.SIGRTMIN + 9:
    libc.sigwaitinfo(every, info)
    print(info[0] - signal.SIGRTMIN, info[2], info[6])
"""

# the terminal goes away
HANGUP = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
print("ready", flush=True)
os.write(int(sys.argv[1]), b"%d" % signal.sigwait([signal.SIGHUP]))
"""

# which standard descriptors it finds, once somebody has begun to sample it
FINDS = """
import os, sys, time
def is_sampled():
    return any("-%d." % os.getpid() in name and name.endswith(".zst") and os.path.getsize(os.path.join(folder, name))
               for folder, _, names in os.walk(os.environ["STORMLOG_DIR"]) for name in names)
while os.environ.get("STORMLOG_HOST") and not is_sampled():
    time.sleep(0.01)
sys.exit(10 + sum(1 << number for number in range(3) if os.path.exists("/proc/self/fd/%d" % number)))
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
        """Those too that nohup, or a shell's &, has set to be ignored, where the program wants them."""
        numbers = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM}) + [signal.SIGTERM]
        for how in (signal.SIG_DFL, signal.SIG_IGN):
            for running in self.each(sys.executable, "-c", NAMES, preexec_fn=lambda: [signal.signal(number, how) for number in numbers]):
                self.assertEqual(running.stdout.readline(), "ready\n")
                for number in numbers:
                    running.send_signal(number)
                    self.assertTrue(select.select([running.stdout], [], [], 60)[0], number)
                    self.assertEqual(running.stdout.readline().split(), [str(number)])
                self.assertEqual(running.wait(), 0)

    def test_signals_that_wait_arrive_as_often_as_they_were_sent_and_with_their_values(self):
        """sigqueue() to the launcher, kill() to the group."""
        first, queue = signal.SIGRTMIN, ctypes.CDLL(None).sigqueue
        for running in self.each(sys.executable, "-c", VALUES, preexec_fn=os.setpgrp):
            self.assertEqual(running.stdout.readline(), "ready\n")
            for value in (7, 8, 9):
                self.assertEqual(queue(running.pid, first + 2, ctypes.c_void_p(value)), 0)
            for _ in range(3):
                os.killpg(running.pid, first + 4)
            self.assertEqual(queue(running.pid, first + 9, ctypes.c_void_p(1)), 0)
            said = running.communicate(timeout=60)[0].splitlines()
            self.assertEqual([line for line in said if not line.startswith("4 ")], ["2 -1 7", "2 -1 8", "2 -1 9", "9 -1 1"])
            self.assertEqual([line.split()[:2] for line in said if line.startswith("4 ")], [["4", "0"]] * 3)

    def test_one_signal_to_the_group_arrives_once_where_no_signal_may_carry_a_value(self):
        """A limit of 0 on signals that wait (ulimit -i): others of the user may have used it up."""
        for running in self.each(sys.executable, "-c", NAMES,
                                 preexec_fn=lambda: (os.setpgrp(), resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0)))):
            self.assertEqual(running.stdout.readline(), "ready\n")
            os.killpg(running.pid, signal.SIGUSR1)
            self.assertEqual(running.stdout.readline(), "%d\n" % signal.SIGUSR1)
            running.send_signal(signal.SIGRTMAX)  # by which the launcher calls its witness
            self.assertTrue(select.select([running.stdout], [], [], 60)[0])
            self.assertEqual(running.stdout.readline(), "%d\n" % signal.SIGRTMAX)
            running.send_signal(signal.SIGTERM)
            self.assertEqual(running.communicate(timeout=60)[0], "%d\n" % signal.SIGTERM)

    def test_signals_that_wait_are_passed_on_without_a_pause_for_each(self):
        """A pause is one more switch to another process, of which two for each signal are enough: a question, and the next signal."""
        def state(pid):
            with open("/proc/%d/status" % pid) as said:
                return dict(line.rstrip("\n").split(":\t", 1) for line in said)

        many, number = 200, signal.SIGRTMIN + 2
        if 0 <= resource.getrlimit(resource.RLIMIT_SIGPENDING)[0] < 4 * many:
            self.skipTest("too few signals may wait (ulimit -i)")
        for running in self.each(sys.executable, "-c", NAMES, flags=((),)):
            self.assertEqual(running.stdout.readline(), "ready\n")
            running.send_signal(signal.SIGSTOP)
            while state(running.pid)["State"][0] != "T":
                time.sleep(0.001)
            for _ in range(many):
                running.send_signal(number)
            before = int(state(running.pid)["voluntary_ctxt_switches"])
            running.send_signal(signal.SIGCONT)
            said = [int(running.stdout.readline()) for _ in range(many + 1)]
            after = int(state(running.pid)["voluntary_ctxt_switches"])
            running.send_signal(signal.SIGTERM)
            self.assertEqual((sorted(said), running.wait(timeout=60)), ([signal.SIGCONT] + [number] * many, 0))
            self.assertLess(after - before, 3 * many)

    def test_a_descriptor_whose_owner_was_named_before_the_exec_tells_the_program(self):
        """By SIGIO, or by what was chosen for it."""
        def owns():
            reads, writes = os.pipe()
            os.dup2(reads, 98)
            os.dup2(writes, 99)
            fcntl.fcntl(98, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(98, fcntl.F_SETSIG, chosen)
            fcntl.fcntl(98, fcntl.F_SETFL, os.O_ASYNC)

        waits = "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [%d])\nos.write(99, b'x')\nprint(signal.sigtimedwait([%d], 60).si_signo)"
        for chosen in (0, signal.SIGIO, signal.SIGUSR1, signal.SIGRTMIN + 6):
            number = chosen or signal.SIGIO
            for running in self.each(sys.executable, "-c", waits % (number, number), close_fds=False, preexec_fn=owns):
                self.assertEqual(running.communicate()[0], "%d\n" % number)

    def test_a_program_is_stopped_for_its_starter_by_the_signal_that_stopped_it(self):
        for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGSTOP):
            for running in self.each("sh", "-c", "kill -%d $$; exit 4" % number, preexec_fn=os.setpgrp):
                self.assertEqual(os.WSTOPSIG(os.waitpid(running.pid, os.WUNTRACED)[1]), number)
                os.killpg(running.pid, signal.SIGCONT)
                self.assertEqual(running.wait(timeout=60), 4)

    def test_a_program_signals_its_parent(self):
        """As an X server says that it is ready, to a parent that has set the signal to be ignored for it."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        for running in self.each("sh", "-c", "kill -USR1 $PPID; read wait", stdin=subprocess.PIPE,
                                 preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN)):
            got = signal.sigtimedwait([signal.SIGUSR1], 60)
            self.assertEqual(got and got.si_pid, running.pid)

    def test_who_looks_for_the_program_by_its_words_finds_one(self):
        """As pkill -f and pgrep -f do."""
        for running in self.each(sys.executable, "-c", WORDS, "words-of-%d" % os.getpid(), os.path.dirname(e2e.RUN), flags=((), ("--host",))):
            self.assertEqual((running.communicate(timeout=60)[0], running.returncode), ("1 False\n", 0))

    def test_a_program_that_has_left_the_group_gets_no_signal_of_it(self):
        for front in ([], [e2e.RUN, "--"]):
            with subprocess.Popen(["sh", "-c", '"$@"; exit $?', "sh", *front, sys.executable, "-c", LEAVES], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  preexec_fn=lambda: (os.setpgrp(), signal.signal(signal.SIGUSR1, signal.SIG_IGN))) as running:
                self.assertEqual(running.stdout.readline(), "ready\n")
                os.killpg(running.pid, signal.SIGUSR1)
                time.sleep(0.5)  # for a launcher that would pass it on
                self.assertEqual((running.communicate("\n", timeout=60)[0], running.returncode), ("0\n", 0), front)

    def test_a_script_signals_its_group_and_no_program_that_has_left_it(self):
        """The script has started the launcher, and leads the group, as below a shell that controls jobs, or does not."""
        script = 'trap "" USR1; "$@" <&%d & read go; kill -USR1 0; echo sent; wait $!'
        for front in ([], [e2e.RUN, "--"]):
            for prepare in (None, os.setpgrp):
                reads, writes = os.pipe()
                with subprocess.Popen(["sh", "-c", script % reads, "sh", *front, sys.executable, "-c", LEAVES], env=self.environment, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, pass_fds=[reads], start_new_session=not prepare, preexec_fn=prepare) as running:
                    os.close(reads)
                    self.assertEqual(running.stdout.readline(), "ready\n")
                    running.stdin.write("go\n")
                    running.stdin.flush()
                    self.assertEqual(running.stdout.readline(), "sent\n")
                    time.sleep(0.5)  # for a launcher that would pass it on
                    os.close(writes)
                    self.assertEqual((running.communicate(timeout=60)[0], running.returncode), ("0\n", 0), (front, prepare))

    def test_timeout_ends_a_program_that_has_left_the_group(self):
        """timeout(1) signals the program it has started, and the group."""
        for front in ([], [e2e.RUN, "--"], [e2e.RUN, "--host", "--"]):
            done = subprocess.run(["timeout", "-k", "60", "1", *front, "setsid", "-w", "sleep", "900"], env=self.environment, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 124, front)

    def test_a_stopped_group_of_which_the_launcher_is_continued(self):
        def state(pid):
            with open("/proc/%d/stat" % pid) as said:
                return said.read().rpartition(")")[2].split()[0]

        for running in self.each("sh", "-c", "echo $$; read go; echo went", stdin=subprocess.PIPE, start_new_session=True):
            program = int(running.stdout.readline())
            os.killpg(running.pid, signal.SIGSTOP)
            while not state(running.pid) == state(program) == "T":
                time.sleep(0.01)
            os.kill(running.pid, signal.SIGCONT)
            self.assertEqual((running.communicate("\n", timeout=60)[0], running.returncode), ("went\n", 0))

    def test_a_child_of_the_program_signals_the_programs_parent_and_ends(self):
        """As "kill -USR1 $PPID" does by a kill that is a program."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        for running in self.each(sys.executable, "-c", ENDED, str(os.getpid()), stdin=subprocess.PIPE):
            self.assertEqual(running.stdout.readline(), "buried\n")
            self.assertTrue(signal.sigtimedwait([signal.SIGUSR1], 60))
            self.assertEqual((running.communicate("\n", timeout=60)[0], running.returncode), ("done\n", 0))

    def test_what_a_descendant_sends_to_end_the_launcher_ends_nobody(self):
        """It may have taken the launcher for the program, by its name or group."""
        ending = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        unblock = lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
        with subprocess.Popen([e2e.RUN, "--", sys.executable, "-c", LIVES], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              preexec_fn=unblock) as running:
            self.assertEqual(running.stdout.readline(), "sent\n")
            self.assertIsNone(signal.sigtimedwait(ending, 0.5))
            self.assertEqual((running.communicate("\n", timeout=60)[0], running.returncode), ("done\n", 0))

    def test_a_child_of_who_became_the_launcher_signals_the_program(self):
        """As a script's "(sleep 10; kill -USR1 $$) & exec ..." does."""
        def elder():
            me = os.getpid()
            if not os.fork():
                os.closerange(1, 1000)
                os.read(0, 1)
                os.kill(me, signal.SIGUSR1)
                os._exit(0)

        for running in self.each(sys.executable, "-c", NAMES, stdin=subprocess.PIPE, preexec_fn=elder):
            self.assertEqual(running.stdout.readline(), "ready\n")
            running.stdin.write("\n")
            running.stdin.flush()
            self.assertTrue(select.select([running.stdout], [], [], 60)[0])
            self.assertEqual(running.stdout.readline(), "%d\n" % signal.SIGUSR1)
            os.kill(running.pid, signal.SIGTERM)
            running.wait(timeout=60)

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

    def test_a_stopped_program_that_is_woken_or_killed_alone(self):
        """The launcher, which has stopped with it, goes on too."""
        for number, said, status in ((signal.SIGCONT, "1\n", 6), (signal.SIGKILL, "", -signal.SIGKILL)):
            for running in self.each(sys.executable, "-c", STOPS, str(int(number)), str(os.getpid())):
                self.assertEqual((running.communicate(timeout=60)[0], running.returncode), (said, status))

    def test_what_outlives_an_exec_reaches_the_program(self):
        """A timer that was set before the exec, how it is scheduled, and LISTEN_PID, by which sd_listen_fds knows that descriptors are for this process."""
        for running in self.each("sh", "-c", "exec sleep 900", preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 2)):
            self.assertEqual(running.wait(timeout=60), -signal.SIGALRM)
        for running in self.each(sys.executable, "-c", "import os; print(os.sched_getscheduler(0))",  # chrt -R
                                 preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_BATCH | os.SCHED_RESET_ON_FORK, os.sched_param(0))):
            self.assertEqual(running.communicate(timeout=60)[0], "%d\n" % (os.SCHED_BATCH | os.SCHED_RESET_ON_FORK))
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
            for running in self.each(sys.executable, "-c", FINDS, flags=((), ("--host",), ("--watch", "default")),
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
