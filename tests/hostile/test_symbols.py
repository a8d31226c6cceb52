#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Names of functions do not depend on the limit of open files; their cost grows with libraries and not with ranks; a module
without names is reported, and where nothing was left to look names up with no verb takes their lack for an answer."""
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import stacks  # noqa: E402
import most  # noqa: E402
import traces as t  # noqa: E402

ANALYZE = os.path.abspath(sys.argv[1])


def libraries():
    """Modules mapped by this interpreter, with the build ids in their files."""
    with open("/proc/self/maps") as maps:
        paths = sorted({line.split()[-1] for line in maps if ".so" in line and line.split()[-1].startswith("/")})
    found = {}
    for path in paths:
        said = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
        if "Build ID: " in said:
            found[path] = said.split("Build ID: ")[1].split()[0]
    return found


class Symbols(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-symbols-")
        self.addCleanup(shutil.rmtree, self.folder)

    def record(self, name, ranks, modules, size=4096, at=0x9000):
        """Write traces of ranks that each hold a block for each library, allocated at other addresses of the library."""
        for rank in range(ranks):
            maps = [{"def": "module", "base": (i + 1) << 36, "end": (i + 1) << 36 | 1 << 31, "path": path, "build_id": build, "ns": t.T0}
                    for i, (path, build) in enumerate(modules)]
            maps += [{"def": "native_stack", "id": i + 1, "pcs": struct.pack("<Q", ((i + 1) << 36) + at + 16 * (rank % 8))}
                     for i in range(len(modules))]
            count = len(modules)
            numbers = list(range(1, count + 1))
            t.write(os.path.join(self.folder, name, "rank-%05d-%d.msgpack.zst" % (rank, 1000 + rank)),
                    t.header(rank=rank, world_size=ranks, pid=1000 + rank), t.defs(maps),
                    t.Thread().events(count, api=t.MALLOC, kind=1, duration_ns=1, address=[size * n for n in numbers], bytes=size,
                                      native=numbers), t.footer())
        return os.path.join(self.folder, name)

    def report(self, folder, files=None, code=0):
        def limit():
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        child = subprocess.Popen([ANALYZE, "--json", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
        out, err = child.communicate(timeout=300)
        self.assertEqual(child.returncode, code, err)
        return stacks.named(json.loads(out))

    def test_the_same_names_whatever_number_of_files_may_be_open(self):
        libs = list(libraries().items())
        self.assertGreater(len(libs), 10)
        folder = self.record("many", 40, libs)  # more ranks than files may be open
        few, many = self.report(folder, files=24), self.report(folder)
        self.assertEqual(few, many)
        named = [frame["function"] for leak in many["leaks"] for frame in leak["stack"]]
        self.assertGreater(len([name for name in named if name]), len(libs), "most of what lies at these addresses has a name")

    def test_memory_follows_libraries_and_not_ranks(self):
        libs = list(libraries().items())[:6]
        sizes = []
        for ranks in 4, 64:
            folder = self.record("r%d" % ranks, ranks, libs)
            done, kib = most.run([ANALYZE, "--json", "-j", "1", folder], capture_output=True, env=dict(os.environ, MALLOC_PERTURB_="0"))
            self.assertEqual(done.returncode, 0, done.stderr)
            sizes.append(kib)
        self.assertLess(sizes[1] - sizes[0], 60 * 1024, "a megabyte a rank, and it was 7 a library and rank")

    def test_what_has_no_names_is_said(self):
        (path, _), (other, _) = list(libraries().items())[:2]
        fifo = os.path.join(self.folder, "fifo.so")
        os.mkfifo(fifo)
        text = os.path.join(self.folder, "text.so")
        with open(text, "w") as file:
            file.write("no library\n" * 100)
        folder = self.record("none", 1, [(path, "00" * 20), (fifo, ""), ("/dev/zero", ""), (text, ""), ("/nowhere/a.so", ""),
                                         ("/nowhere/b.so", ""), (other, "")])
        said = "\n".join(self.report(folder)["warnings"])
        self.assertIn(path + ": another build", said)
        self.assertIn(fifo + ": no regular file", said)
        self.assertIn("/dev/zero: no regular file", said)
        self.assertIn(text + ": no library", said)
        self.assertIn("/nowhere/a.so and 1 more: they are not on this machine", said)
        self.assertIn(other + ": another build", said, "no build id recorded is not any build")

    def test_symbols_names_where_else_files_of_the_recorded_build_lie(self):
        (path, build), (other, _) = [lib for lib in libraries().items() if "libc.so" in lib[0] or "libm.so" in lib[0]][:2]
        folder = self.record("moved", 1, [("/nowhere/lib/moved.so", build)])
        for name, source, found in ("nowhere/lib/moved.so", path, True), ("moved.so", path, True), \
                (".build-id/%s/%s.debug" % (build[:2], build[2:]), path, True), ("moved.so", other, False):
            extra = tempfile.mkdtemp(dir=self.folder)
            place = os.path.join(extra, name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copyfile(source, place)
            for options, wanted in ([], False), (["--symbols", extra], found):
                done = subprocess.run([ANALYZE, "--json", *options, folder], capture_output=True, text=True, check=True)
                missed = any("not on this machine" in warning for warning in json.loads(done.stdout)["warnings"])
                self.assertEqual(missed, not wanted, (name, options))

    def test_where_memory_ends_the_report_does_not(self):
        libs = list(libraries().items())
        folder = self.record("small", 1, libs)
        for megabytes in 60, 120, 250:
            done = subprocess.run([ANALYZE, "--json", "-j", "1", folder], capture_output=True, text=True, timeout=120,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20)))
            self.assertNotEqual(done.returncode, 1, "1 is a limit of check: " + done.stderr)

    def test_an_allocator_that_takes_memory_in_another_way_has_not_run_out_of_it(self):
        self.record("t", 1, list(libraries().items()), 4 << 20, 0x9000)
        for verb in ["--json", "t"], ["check", "--max-peak", "1TiB", "t"], ["runs", "--catalogue", "c.sqlite", "t"]:
            done = subprocess.run([ANALYZE, *verb], capture_output=True, text=True, timeout=120, cwd=self.folder, env=dict(os.environ, GLIBC_TUNABLES="glibc.malloc.hugetlb=2"))
            self.assertEqual((done.returncode, done.stderr.count("raise the limit")), (0, 0), done.stderr)

    def test_names_that_nothing_is_left_to_look_up_with_are_missing_and_nobody_takes_that_for_an_answer(self):
        def run(*arguments, limit=None):
            return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=300, cwd=self.folder, preexec_fn=limit,
                                  env=dict(os.environ, TMPDIR=os.path.join(self.folder, "tmp")))
        os.mkdir(os.path.join(self.folder, "tmp"))
        path, build = next(lib for lib in libraries().items() if "libc.so" in lib[0])
        own = shutil.copy(path, os.path.join(self.folder, "own.so"))
        known = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout.splitlines()
        at = next(int(line.split()[0], 16) for line in known if " malloc@" in line)
        self.record("t", 1, [(own, build), *list(libraries().items())[:8]], 8 << 20, at + 4)
        check = ["check", "--baseline", "base.json", "t"]
        self.assertEqual([run(*check, "--update-baseline").returncode, run(*check).returncode], [0, 0])
        with open(os.path.join(self.folder, "base.json"), "rb") as file:
            baseline = file.read()
        limits = {most: lambda most=most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)) for most in (6, 7, 8, 9)}
        verbs = {"check": check, "diff": ["diff", "t", "t"], "tree": ["tree", "t"], "csv": ["export", "csv", "t"], "pack": ["pack", "-o", "x.stormlog", "t"],
                 "pprof": ["export", "pprof", "t"], "json": ["--json", "t"], "update": [*check, "--update-baseline"], "oom": ["oom", "t"]}
        whole = {name: run(*verb) for name, verb in verbs.items() if name not in ("pack", "pprof")}
        for lack, limit in limits.items():
            for name, verb in verbs.items():
                with self.subTest(lack=lack, verb=name):
                    done = run(*verb, limit=limit) if name != "pprof" else run(*verb, "-o", "x.pb.gz", limit=limit)
                    self.assertNotEqual(done.returncode, 1, done.stdout)
                    if done.returncode == 0 and name in whole:
                        self.assertEqual(done.stdout, whole[name].stdout)
                for made in {"x.stormlog", "x.pb.gz"} & set(os.listdir(self.folder)):
                    os.unlink(os.path.join(self.folder, made))
        with open(os.path.join(self.folder, "base.json"), "rb") as file:
            self.assertEqual(file.read(), baseline)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
