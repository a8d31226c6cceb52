#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the agent must not change: the same program with and without it, byte for byte."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import e2e

HELLO = "#include <stdio.h>\nint main(void){printf(\"hello\\n\");fprintf(stderr,\"err\\n\");return 7;}\n"
# Prints whether the loader is in secure mode, and whether the agent was loaded all the same.
SECURE = """#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
int main(void)
{
	char line[4096];
	int inside = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		inside |= strstr(line, "stormlog_preload") != NULL;
	printf("secure %d inside %d\\n", getauxval(AT_SECURE) != 0, inside);
	return maps ? 7 : 8;
}
"""
ADDRESS = re.compile(rb"0x[0-9a-f]{6,}|\b[0-9a-f]{12}\b")


def run(argv, preload, folder, stdin=b"", before="", after="", **extra):
    """(stdout, stderr, status) of a command; the agent between the libraries preloaded before and after it."""
    environment = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
    environment.update(STORMLOG_DIR=os.path.join(folder, "traces"), LC_ALL="C", **extra)
    libraries = [library for library in (before, preload and e2e.PRELOAD, after) if library]
    if libraries:
        environment["LD_PRELOAD"] = ":".join(libraries)
    done = subprocess.run(argv, input=stdin, capture_output=True, env=environment, cwd=folder, timeout=600)
    return done.stdout, done.stderr, done.returncode


class Invisible(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-invisible-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def same(self, *argv, normal=lambda text: text, setup=("true",), **how):
        if not shutil.which(argv[0]):
            self.skipTest(argv[0] + " is not installed")
        subprocess.run(setup, cwd=self.folder)
        plain = run(argv, False, self.folder, **how)
        subprocess.run(setup, cwd=self.folder)
        ours = run(argv, True, self.folder, **how)
        self.assertEqual([normal(ours[0]), normal(ours[1]), ours[2]], [normal(plain[0]), normal(plain[1]), plain[2]], argv)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "traces")), "a program without a GPU left a trace")
        return ours

    def test_shells(self):
        for shell in ("sh", "bash"):
            self.same(shell, "-c", "echo out; echo err >&2; printenv | grep -c '^PATH='; (exit 3); echo $?; kill -TERM $$")

    def test_builds(self):
        with open(os.path.join(self.folder, "hello.c"), "w") as file:
            file.write(HELLO)
        with open(os.path.join(self.folder, "Makefile"), "w") as file:
            file.write("hello: hello.c\n\tcc -o hello hello.c\nclean:\n\trm -f hello\n")
        with open(os.path.join(self.folder, "build.ninja"), "w") as file:
            file.write("rule cc\n  command = cc -o $out $in\nbuild hello2: cc hello.c\n")
        self.same("gcc", "-v", normal=lambda text: re.sub(rb"/tmp/cc\w+", b"", text))
        self.same("make", "-B")
        self.same("ninja", "-v", "hello2", setup=("rm", "-f", "hello2"))
        self.assertEqual(self.same(os.path.join(self.folder, "hello")), (b"hello\n", b"err\n", 7))

    def test_tools(self):
        for argv in (("git", "--version"), ("git", "status"), ("ssh", "-V"), ("perl", "-e", "print 1+1; warn 'x'; exit 5"),
                     ("python3", "-c", "pass"), ("python3", "-c", "import sys; print(sys.path); sys.exit(9)"),
                     ("node", "-e", "console.log(process.version); process.exit(4)"), ("strace", "-V"),
                     ("gdb", "--version"), ("true",), ("false",), ("ls", "/nonexistent")):
            with self.subTest(argv):
                self.same(*argv)

    def test_programs_below_a_debugger_a_tracer_and_valgrind(self):
        source, program = os.path.join(self.folder, "h.c"), os.path.join(self.folder, "hello")
        with open(source, "w") as file:
            file.write(HELLO)
        subprocess.run(["gcc", "-o", program, source], check=True)
        numbers = lambda text: re.sub(rb"process \d+", b"process N", text)
        for argv in (("gdb", "-nx", "-batch", "-ex", "break puts", "-ex", "run", "-ex", "continue", program),
                     ("strace", "-f", "-qq", "-o", "/dev/null", program), ("valgrind", "-q", "--error-exitcode=99", program)):
            with self.subTest(argv[0]):
                self.assertEqual(self.same(*argv, normal=numbers)[2], 0 if argv[0] == "gdb" else 7)

    def test_threads_files_and_maps_of_a_program_without_a_gpu(self):
        script = ("import os\nprint(len(os.listdir('/proc/self/task')), sorted(os.listdir('/proc/self/fd')))\n"
                  "print(sorted({l.split()[-1] for l in open('/proc/self/maps') if '/' in l and 'stormlog' not in l}))\n"
                  "print(open('/proc/self/status').read().split('SigBlk')[1].split('CapInh')[0])")
        out = self.same("python3", "-c", script)[0]
        self.assertTrue(out.startswith(b"1 "))
        self.assertNotIn(b"libcuda", out)

    def test_a_child_sees_the_same_environment(self):
        hide = lambda text: b"\n".join(line for line in text.split(b"\n") if not line.startswith(b"LD_PRELOAD="))
        self.same("sh", "-c", "env | sort", normal=hide)

    def test_dlerror_and_dlsym_of_names_that_are_not_ours(self):
        script = ("import ctypes\nd = ctypes.CDLL(None)\n"
                  "for name in ('nope_cu', 'cuMemAlloc_v2', 'cudaMalloc', 'cudnnCreate', 'hipMalloc', 'strlen'):\n"
                  "    try: print(name, bool(getattr(d, name)))\n"
                  "    except AttributeError as e: print(str(e))\n")
        self.same("python3", "-c", script)

    def test_dlsym_with_other_preloads_on_either_side(self):
        folders = ("/usr/lib/x86_64-linux-gnu", "/usr/libexec/coreutils", "/usr/lib/coreutils")
        for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libstdbuf.so"):
            with self.subTest(name):
                library = next((path for path in (os.path.join(folder, name) for folder in folders) if os.path.exists(path)), None)
                if not library:
                    self.skipTest(name + " is not installed")
                for where in ("before", "after"):
                    self.same("python3", "-c", "print('x' * 100)", **{where: library})

    def test_stdbuf(self):
        self.same("stdbuf", "-oL", "sh", "-c", "echo a; echo b >&2")

    def test_a_set_user_id_program_ignores_us_without_a_word(self):
        self.same("su", "--version")

    def test_a_program_of_another_users_id_is_not_entered(self):
        if os.getuid():
            self.skipTest("needs root, to give a program to somebody else")
        os.chmod(self.folder, 0o755)
        program = os.path.join(self.folder, "secure")
        subprocess.run(["gcc", "-x", "c", "-", "-o", program], input=SECURE.encode(), check=True)
        self.assertEqual(run([program], True, self.folder)[0], b"secure 0 inside 1\n")
        for mode in (0o4755, 0o2755):
            os.chown(program, 65534, 65534)
            os.chmod(program, mode)
            if run([program], False, self.folder)[0] != b"secure 1 inside 0\n":
                self.skipTest("this file system knows no set-user-id")
            with self.subTest(oct(mode)):
                self.assertEqual(self.same(program), (b"secure 1 inside 0\n", b"", 7))
                launched = run([e2e.RUN, "--", program], False, self.folder)
                self.assertEqual((launched[0], launched[2]), (b"secure 1 inside 0\n", 7))
                self.assertIn(b"it will not be recorded", launched[1])

    def test_a_program_that_is_not_recorded(self):
        for kind, compiler, why in (("static", ("gcc", "-static"), b"is statically linked"), ("musl", ("musl-gcc",), b"is built for musl")):
            source, binary = os.path.join(self.folder, "s.c"), os.path.join(self.folder, kind)
            with open(source, "w") as file:
                file.write(HELLO)
            with self.subTest(kind):
                if not shutil.which(compiler[0]) or subprocess.run([*compiler, "-o", binary, source], capture_output=True).returncode:
                    self.skipTest("no C library for this")
                self.same(binary)
                self.same(binary, STORMLOG_HOST="1")
                launched = run([e2e.RUN, "--", binary], False, self.folder)
                self.assertEqual((launched[0], launched[2]), (b"hello\n", 7))
                self.assertIn(why, launched[1])

    def test_a_gpu_program_ends_as_without_us(self):
        """Output, status, signal and the calls in the simulator's journal are the same."""
        for how in ("exit", "return", "_exit", "quick_exit", "abort", "segv", "kill", "dtor"):
            with self.subTest(how):
                with e2e.Recording(os.path.join(e2e.APPS, "ending"), how, code=None, preload=False) as plain, \
                        e2e.Recording(os.path.join(e2e.APPS, "ending"), how, code=None) as ours:
                    for name in ("returncode", "stdout", "stderr"):
                        self.assertEqual(getattr(ours.done, name), getattr(plain.done, name))
                    calls = [[(call.api, call.result, call.bytes) for p in run.truth() for call in p.calls
                              if call.api not in OURS] for run in (ours, plain)]
                    self.assertEqual(*calls)


    def test_errno_dlerror_and_signals_are_after_each_call_what_they_are_without_us(self):
        """First and later calls of a process, a child and a thread: calls that succeed, calls that fail, look-ups, and an exec that fails."""
        app = os.path.join(e2e.APPS, "state")
        with e2e.Recording(app, preload=False) as plain, e2e.Recording(app) as ours:
            self.assertEqual([ours.done.stdout, ours.done.stderr], [plain.done.stdout, plain.done.stderr])
            self.assertGreater(plain.done.stdout.count(b"errno 4242"), 80)
            self.assertEqual(len([name for name in ours.files() if name.endswith(".zst")]), 2)


# Functions of the driver that the agent calls of its own accord after a call of the program; none of them allocates.
OURS = {"cuCtxGetDevice", "cuCtxGetCurrent", "cuMemGetInfo_v2", "cuPointerGetAttribute", "cuDeviceGetName", "cuDeviceGetUuid",
        "cuDeviceGetUuid_v2", "cuDeviceGetPCIBusId", "cuDeviceTotalMem_v2", "cuThreadExchangeStreamCaptureMode",
        "cuStreamIsCapturing", "cuMemGetAddressRange_v2"}

if __name__ == "__main__":
    unittest.main(verbosity=1)
