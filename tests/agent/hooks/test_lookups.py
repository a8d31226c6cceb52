#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The agent's look-ups: which functions they replace by wrappers, and which they leave alone.

Programs run with and without the library over the simulated driver; answers are compared, and each pointer handed out
must be the wrapper of the very export that the driver would have given.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

AGENT, SIM, HERE, SOURCE, HEADERS = sys.argv[1:6]
del sys.argv[1:6]
LIBRARY = os.path.basename(AGENT)


def run(command, preload=(), stdin=None, agent=False, log=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("STORMLOG_")}
    env["LD_LIBRARY_PATH"] = SIM
    with tempfile.TemporaryDirectory() as traces:
        env["STORMLOG_DIR"] = traces
        env.pop("WATCHED", None)
        if agent:
            env["WATCHED"] = AGENT
        files = [*preload, AGENT] if agent is True else [AGENT, *preload] if agent == "first" else list(preload)
        if files:
            env["LD_PRELOAD"] = ":".join(files)
        if log:
            env["WATCH_LOG"] = log
        done = subprocess.run(command, env=env, input=stdin, capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout, done.stderr


def read(path):
    with open(path) as text:
        return text.read()


def wrappers():
    """Offset in the library -> export that the wrapper there stands for."""
    found = {}
    for line in subprocess.run(["nm", AGENT], capture_output=True, text=True, check=True).stdout.splitlines():
        address, kind, name = line.rjust(20).split(None, 2) if len(line.split()) == 3 else ("0", "U", "")
        match = re.fullmatch(r"(\w+?)__[123]", name)
        if match and kind in "tT":
            found[int(address, 16)] = match.group(1)
    return found


def table():
    """base -> {(version, per thread): export}, and the set of rows."""
    text = read(os.path.join(SOURCE, "agent/hooks/variants.def"))
    versions = {}
    for form, base, version, export in re.findall(r"^VARIANT(\w*)\((\w+), (\d+)(?:, (\w+))?\)", text, re.M):
        versions.setdefault(base, {})[int(version), form == "_PER_THREAD"] = export
    return versions


def requests():
    lines = []
    versions = table()
    for base, forms in versions.items():
        if base.startswith("cu"):
            bounds = sorted({version for version, _ in forms})
            asked = sorted({v + d for v in bounds for d in (-10, 0, 10)} | {13000})
            lines += [f"{base} {version} {flags}" for version in asked for flags in (0, 1, 2)]
    for name in ("cuInit", "cuMemCreate", "cuMemFreeHost", "cuNoSuchName", "cuMemAlloc_v2", "cuGetProcAddress"):
        lines += [f"{name} {version} {flags}" for version in (1000, 11030, 12000, 99000) for flags in (0, 1, 2)]
    return "\n".join(lines) + "\n"


class LookUps(unittest.TestCase):
    maxDiff = 4000

    def test_every_version_of_a_driver_function_is_wrapped_as_itself_and_nothing_else_changes(self):
        program = os.path.join(HERE, "get_proc_matrix")
        asked = requests()
        code, plain, _ = run([program], stdin=asked)
        self.assertEqual(code, 0)
        code, with_us, _ = run([program], stdin=asked, agent=True)
        self.assertEqual(code, 0)
        plain, with_us = plain.splitlines(), with_us.splitlines()
        self.assertEqual(len(plain), len(with_us))
        self.assertGreater(len(plain), 1000)
        stands_for, wrapped = wrappers(), 0
        with open(os.path.join(SOURCE, "agent/hooks/variants.def")) as file:  # the first version is the plain name
            left_alone = set(re.findall(r"^VARIANT_LEFT_ALONE\((\w+),", file.read(), re.M))
        for before, after in zip(plain, with_us):
            abi, request, result, status, thing, offset, name = before.split()
            self.assertEqual([abi, request, result, status], after.split()[:4])
            if after.split()[4] == LIBRARY:
                wrapped += 1
                self.assertEqual(stands_for.get(int(after.split()[5], 16)), name, before)
            else:
                self.assertEqual(before, after)
                base, version, flags = request.split(":")
                self.assertTrue(thing == "-" or base in ("cuInit",) or name in left_alone,
                                f"not wrapped: {before}")
        self.assertGreater(wrapped, 800)

    def test_real_runtimes_are_handed_wrappers_of_every_memory_function_they_ask_for(self):
        places = ["/usr/local/cuda/lib64/libcudart.so.13", os.path.join(HEADERS, "*/nvidia/*/lib/libcudart.so*")]
        runtimes = [path for place in places for path in sorted(glob.glob(place))]
        if not runtimes:
            self.skipTest("no runtime of NVIDIA's here: neither a toolkit nor the packages that the abi test fetches")
        stands_for = wrappers()
        rows = set(stands_for.values())
        watch, probe = os.path.join(HERE, "libwatch.so"), os.path.join(HERE, "runtime_probe")
        for runtime in runtimes:
            with self.subTest(runtime=runtime), tempfile.TemporaryDirectory() as folder:
                logs = [os.path.join(folder, name) for name in ("before", "after")]
                plain = run([probe, runtime], preload=[watch], log=logs[0])
                with_us = run([probe, runtime], preload=[watch], log=logs[1], agent=True)
                before, after = (read(log).splitlines() for log in logs)
                self.assertEqual(plain, with_us)
                self.assertEqual(len(before), len(after))
                self.assertGreater(len(before), 250)
                wrapped = 0
                for was, now in zip(before, after):
                    self.assertEqual(was.split()[:5], now.split()[:5])
                    export = was.split()[7]
                    if now.split()[5] == LIBRARY:
                        wrapped += 1
                        self.assertEqual(stands_for.get(int(now.split()[6], 16)), export, was)
                    else:
                        self.assertEqual(was, now)
                        self.assertFalse(export in rows, f"not wrapped: {was}")
                self.assertGreater(wrapped, 80)

    def test_other_names_errors_and_absent_functions_are_as_without_us(self):
        program = os.path.join(HERE, "lookups")
        self.assertEqual(run([program]), run([program], agent=True))

    def test_an_interposer_before_or_behind_us_is_called_once_per_call(self):
        interposer = os.path.join(HERE, "libinterposer.so")
        program = os.path.join(HERE, "..", "..", "apps", "runtime13")
        plain = run([program], preload=[interposer])
        self.assertEqual(plain[0], 0)
        self.assertRegex(plain[1], r"interposer saw [1-9]")
        self.assertEqual(plain, run([program], preload=[interposer], agent=True))
        self.assertEqual(plain, run([program], preload=[interposer], agent="first"))

    def test_plugins_with_different_runtimes_reach_their_own_after_any_opening_and_closing(self):
        with tempfile.TemporaryDirectory() as folder:
            def build(name, source, *flags):
                path = os.path.join(folder, name)
                subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, *flags], input=source, text=True, check=True)
                return path

            plugins = []
            for number, soname in enumerate(("libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"), 101):
                with open(os.path.join(folder, "map"), "w") as script:
                    script.write(f"{soname} {{ global: cudaMalloc; local: *; }};")
                # The function has another offset in each, so that a stale address of an unloaded one is not right by chance.
                build(soname, f'__asm__(".text; .skip {number % 10 * 256}");'
                      f"int cudaMalloc(void **p, unsigned long n) {{ return {number}; }}",
                      f"-Wl,-soname,{soname}", f"-Wl,--version-script,{folder}/map")
                plugins.append(build(
                    f"plugin{number}.so",
                    "#define _GNU_SOURCE\n#include <dlfcn.h>\nint cudaMalloc(void **, unsigned long);\n"
                    "int plugin_ask(void) { void *p; return cudaMalloc(&p, 1); }\n"
                    "int plugin_look_up(void) { int (*f)(void **, unsigned long) = dlsym(RTLD_DEFAULT, \"cudaMalloc\");"
                    " void *p; return f ? f(&p, 1) : -1; }",
                    "-L" + folder, "-l:" + soname, "-Wl,--disable-new-dtags,-rpath," + folder, "-Wl,-z,now" if number % 2 else "-Wl,-z,lazy"))
            program = os.path.join(HERE, "churn")
            self.assertEqual(run([program, *plugins]), (0, "wrong: 0\n", ""))
            self.assertEqual(run([program, *plugins], agent=True), (0, "wrong: 0\n", ""))


if __name__ == "__main__":
    unittest.main()
