#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The recipes for Conda and Spack agree with this tree: its options, version, licence, files and the libraries that meson asks for."""
import ast
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml")
    sys.exit(77)

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIBRARIES = {"libzstd": "zstd", "msgpack": "msgpack-c", "libdw": "elfutils", "sqlite3": "sqlite", "cairo": "cairo", "zlib": "zlib", "ncursesw": "ncurses",
             "libcurl": "curl", "libmicrohttpd": "libmicrohttpd"}


def read(*path):
    with open(os.path.join(TOP, *path)) as file:
        return file.read()


class Recipes(unittest.TestCase):
    def options(self):
        return set(re.findall(r"^option\('(\w+)'", read("meson_options.txt"), re.M))

    def recipe(self):
        text = read("packaging", "conda", "meta.yaml")
        pattern = re.search(r'regex_pattern="(.*?)"', text)[1]
        version = re.search(pattern, read("meson.build"))[1]
        text = re.sub(r"\{%.*?%\}", "", text.replace("{{ version }}", version))
        return yaml.safe_load(re.sub(r'\{\{ \w+\("(\w+)"\) \}\}', r"\1", text)), version

    def test_condas_recipe_has_our_version_licence_and_libraries(self):
        recipe, version = self.recipe()
        self.assertEqual(recipe["package"]["version"], version)
        self.assertTrue(read(recipe["about"]["license_file"]).startswith(recipe["about"]["license"]))
        asked = "".join(read(*place, "meson.build") for place in ((), ("analyzer", "model"), ("tools", "top"), ("tools", "push"), ("tools", "exporter")))
        for name, package in LIBRARIES.items():
            self.assertIn("'%s'" % name, asked)
            self.assertIn("libcurl" if package == "curl" else package, recipe["requirements"]["host"])

    def test_condas_recipe_runs_with_what_it_links_and_gives_the_agent_no_rpath(self):
        recipe, _ = self.recipe()
        self.assertLessEqual({"elfutils", "libunwind", "msgpack-c"}, set(recipe["requirements"]["run"]))  # their packages have no run_exports
        self.assertFalse([path for path in recipe["build"]["binary_relocation"] if path.startswith("lib/")])
        for tool, text in (("conda", "build.sh"), ("spack", "package.py")):
            self.assertRegex(read("packaging", tool, text), "--remove-rpath.*libstormlog_preload.so")

    def test_no_option_is_left_to_what_lies_around(self):
        self.assertEqual(set(re.findall(r"-D(\w+)=(?:en|dis)abled", read("packaging", "conda", "build.sh"))), self.options())
        spack = read("packaging", "spack", "package.py")
        variants = set(re.findall(r'variant\("(\w+)"', spack))
        self.assertEqual(set(ast.literal_eval(re.search(r"names = (\(.*\))", spack)[1])), variants)
        self.assertEqual(variants | set(re.findall(r"-D(\w+)=(?:en|dis)abled", spack)), self.options())

    def test_condas_script_builds_what_is_there(self):
        script = read("packaging", "conda", "build.sh")
        self.assertLessEqual({word for word in re.findall(r"-D(\w+)=", script)}, self.options())
        for path in re.findall(r"python/\S+", script):
            self.assertTrue(os.path.exists(os.path.join(TOP, path)), path)
        self.assertEqual(yaml.safe_load(read("packaging", "conda", "conda_build_config.yaml"))["c_stdlib_version"], ["2.17"])

    def test_a_prefix_whose_libunwind_has_an_unwind_h_of_its_own_builds(self):
        theirs = glob.glob("/usr/include/*-linux-gnu/unwind.h")
        if not theirs or not shutil.which("cc"):
            self.skipTest("no unwind.h of libunwind's, or no cc")
        with tempfile.TemporaryDirectory() as prefix:  # Conda and Spack search it before the compiler's headers
            os.symlink(theirs[0], os.path.join(prefix, "unwind.h"))
            done = subprocess.run(["cc", "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-I" + TOP, "-I" + prefix,
                                   os.path.join(TOP, "agent", "stacks", "native.c")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_spacks_recipe_names_options_and_libraries_of_ours(self):
        text = read("packaging", "spack", "package.py")
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        variants = {call.args[0].value for call in calls if call.func.id == "variant"}
        self.assertLessEqual(variants | set(re.findall(r"-D(\w+)=", text)), self.options())
        needs = {re.split(r"[ @+]", call.args[0].value)[0] for call in calls if call.func.id == "depends_on"}
        self.assertLessEqual({"zlib-api" if name == "zlib" else name for name in LIBRARIES.values()}, needs)


if __name__ == "__main__":
    unittest.main()
