# SPDX-License-Identifier: MIT
"""libstormlog_preload.so as the loader sees it: what it needs and what it exports."""
import re
import subprocess
import sys
import unittest

LIBRARY = sys.argv.pop(1)
NEWEST = (2, 17)
MEANT = {
    "malloc", "calloc", "free",  # memory is of the program's allocator, so that a sanitizer knows of it; zstd inside has it as its default
    "dl_iterate_phdr",  # who replaces it means it for everybody
    "pthread_setcancelstate",  # POSIX reserves pthread_
    "environ", "program_invocation_name",  # data of glibc, whose other names are ours: the linker lists each alias
    "getauxval",  # code that compilers make asks for it too
}


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

    def test_it_asks_others_for_nothing_by_a_name_that_belongs_to_the_program(self):
        """ISO C leaves every name that does not begin with an underscore to the program, whose function of that name would be called."""
        imports = {name.split("@")[0] for name in self.names(defined=False)}
        self.assertEqual({name for name in imports if not name.startswith("_")} - MEANT, set())
        self.assertEqual(imports & {"__tls_get_addr"}, set())
        # a sanitizer's runtime would intercept these, and it cannot see how our threads are ordered (agent/process/libc.c)
        self.assertEqual({name for name in imports if re.match(r"__(mem|str|v?s?n?printf)", name)}, set())

    def test_a_program_that_traces_zstd_does_not_see_ours(self):
        self.assertEqual([name for name in self.names(defined=False) if "ZSTD" in name], [])

    def test_it_is_bound_at_once_and_stays_loaded(self):
        self.assertIn("NODELETE", self.dynamic)
        self.assertIn("NOW", self.dynamic)
        self.assertNotIn("TEXTREL", self.dynamic)

    def test_its_own_names_are_hidden(self):
        self.assertEqual([name for name in self.names(defined=True) if name.startswith(("sl_", "ZSTD", "msgpack"))], [])
        # names of the linker, which other libraries have too, and would find here
        self.assertEqual([name for name in self.names(defined=True) if name in ("_end", "_edata", "__bss_start") or name.startswith(("__start_", "__stop_"))], [])


if __name__ == "__main__":
    unittest.main()
