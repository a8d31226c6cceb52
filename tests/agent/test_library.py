# SPDX-License-Identifier: MIT
"""libstormlog_preload.so as the loader sees it: what it needs and what it exports."""
import re
import subprocess
import sys
import unittest

LIBRARY = sys.argv.pop(1)
NEWEST = (2, 17)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dynamic = output("readelf", "-dW", LIBRARY)
        cls.symbols = [line.split() for line in output("readelf", "--dyn-syms", "-W", LIBRARY).splitlines()
                       if re.match(r"\s*\d+:", line)]

    def names(self, defined):
        return [fields[7] for fields in self.symbols
                if len(fields) > 7 and (fields[6] != "UND") == defined and fields[4] != "LOCAL"]

    def test_it_needs_the_c_library_alone(self):
        self.assertEqual(re.findall(r"\(NEEDED\).*\[(.*)\]", self.dynamic), ["libc.so.6"])

    def test_it_asks_for_nothing_newer_than_glibc_2_17(self):
        newer = [name for name in self.names(defined=False)
                 for version in [re.search(r"@GLIBC_(\d+)\.(\d+)", name)]
                 if version and (int(version[1]), int(version[2])) > NEWEST]
        self.assertEqual(newer, [])

    def test_it_does_not_import_what_its_laws_forbid(self):
        imports = {name.split("@")[0] for name in self.names(defined=False)}
        # zstd inside refers to malloc as its default, which store.c never lets it use.
        forbidden = {"realloc", "dlopen", "dlsym", "dladdr", "printf", "fprintf", "puts", "fopen",
                     "__tls_get_addr", "pthread_create", "pthread_mutex_lock", "sigaction", "signal", "exit", "abort"}
        forbidden |= {"clock_gettime", "gettimeofday", "time", "clock"}  # libraries such as libfaketime replace them
        # Headers since glibc 2.38 turn these into names that older ones lack.
        forbidden |= {"strtol", "strtoll", "strtoul", "strtoull", "sscanf", "fscanf", "scanf"}
        self.assertEqual(imports & forbidden, set())

    def test_no_function_on_memory_or_text_is_asked_of_anybody(self):
        """A sanitizer's runtime would intercept these functions, and it cannot see how our threads are ordered (agent/libc.c)."""
        imports = {name.split("@")[0] for name in self.names(defined=False)}
        self.assertEqual({name for name in imports if re.match(r"(mem|str|bcmp|__mem|__str|v?s?n?printf|__s?n?printf)", name)}, set())
        self.assertEqual(imports & {"access", "readlink", "rename", "statfs", "statfs64", "unlink"}, set())

    def test_a_program_that_traces_zstd_does_not_see_ours(self):
        self.assertEqual([name for name in self.names(defined=False) if "ZSTD" in name], [])

    def test_it_is_bound_at_once_and_stays_loaded(self):
        self.assertIn("NODELETE", self.dynamic)
        self.assertIn("NOW", self.dynamic)
        self.assertNotIn("TEXTREL", self.dynamic)

    def test_its_own_names_are_hidden(self):
        self.assertEqual([name for name in self.names(defined=True) if name.startswith(("sl_", "ZSTD", "msgpack"))], [])


if __name__ == "__main__":
    unittest.main()
