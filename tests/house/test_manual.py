# SPDX-License-Identifier: MIT
"""The manual pages and --help name every row of options.def, and every option of every verb, and no other flag."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

TABLE, RUN, PAGE, LIBRARY, ANALYZE, VERBS = sys.argv[1:7]
OWN = {"report", "until", "gate", "push", "watch", "check", "dry", "force", "allow-writes", "keep-writes", "largest", "against", "no-values", "init", "steps", "weights", "json", "help", "version"}


def read(path):
    with open(path) as file:
        return file.read()


def plain(page):
    return re.sub(r"\\f.", "", read(page)).replace("\\-", "-").replace("\\e", "\\")


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        table = read(TABLE)
        cls.flags = {flag for flag in re.findall(r'^OPTION\(\w+, \w+, "(.*?)"', table, re.M) if flag}
        cls.variables = set(re.findall(r'^OPTION\(.*?"(STORMLOG_\w+)"', table, re.M))
        cls.recorded = set(re.findall(r'^ENVIRONMENT\("(.*?)"\)', table, re.M))

    def test_the_table_is_read(self):
        self.assertGreater(len(self.flags), 10)
        self.assertGreater(len(self.variables), 10)

    def test_help_names_every_flag_and_no_other(self):
        text = subprocess.run([RUN, "--help"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(set(re.findall(r"(?<!\S)--([a-z][a-z-]*)", text)), self.flags | OWN | {"keep"})

    def test_the_page_has_every_flag_as_an_entry_and_no_other(self):
        entries = re.findall(r"^\.TP\n(?:\.\w+ )?(.*)$", plain(PAGE), re.M)
        flags = {flag for entry in entries for flag in re.findall(r"--([a-z][a-z-]*)", entry)}
        self.assertEqual(flags, self.flags | OWN)

    def test_the_librarys_page_has_every_variable(self):
        entries = set(re.findall(r"^\.TP\n(STORMLOG_\w+)", plain(LIBRARY), re.M))
        self.assertEqual(entries, self.variables)

    def test_the_librarys_page_lists_what_is_recorded_of_the_environment(self):
        page = plain(LIBRARY)
        for name in self.recorded:
            self.assertIn(name, page)

    def test_help_shows_six_verbs_and_names_the_way_to_the_others(self):
        shown = subprocess.run([ANALYZE, "--help"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(re.findall(r"^  (\w+) +\w", shown, re.M), ["report", "tree", "table", "diff", "check", "export"])
        self.assertIn("stormlog-analyze help all", shown)
        asked = [subprocess.run([ANALYZE, *words], capture_output=True, text=True, check=True).stdout for words in (["help", "tree"], ["tree", "--help"])]
        self.assertEqual(*asked)

    def test_the_readme_stays_short(self):
        readme = (Path(__file__).parents[2] / "README.md").read_text()
        self.assertLessEqual(readme.count("\n"), 110)

    def test_the_analyzers_page_has_every_verb_with_its_options(self):
        page = plain(VERBS)
        verbs = re.findall(r"^  (\w+) +\w", subprocess.run([ANALYZE, "help", "all"], capture_output=True, text=True, check=True).stdout, re.M)
        self.assertEqual(len(verbs), 20)
        sections = dict(re.findall(r"^\.SS (.*)\n((?:(?!\.S[SH]).*\n)+)", page, re.M))
        for verb in verbs:
            self.assertRegex(page.split(".SH OPTIONS")[0], r"(?m)^\.\w+ .*\b%s\b" % verb)
            text = subprocess.run([ANALYZE, verb, "--help"], capture_output=True, text=True, check=True).stdout
            self.assertLessEqual(max(map(len, text.splitlines())), 120, verb)
            wanted = set(re.findall(r"^  (?:    |-\w, )?--([a-z0-9-]+)", text, re.M))
            (section,) = [body for title, body in sections.items() if verb in title.split(", ")] or [""]
            self.assertEqual(set(re.findall(r"^\.TP\n(?:-\w, )?--([a-z0-9-]+)", section, re.M)), wanted, verb)

    def test_the_analyzers_page_has_every_format_of_export(self):
        shown = subprocess.run([ANALYZE, "export", "--help"], capture_output=True, text=True, check=True).stdout
        (listed,) = re.findall(r"^For other tools: (.*)\.$", plain(VERBS), re.M)
        self.assertEqual(listed.split(", "), re.findall(r"^  ([a-z][\w-]*)  +\S", shown, re.M))

    def test_no_mark_is_left_and_man_has_nothing_to_say(self):
        for page in (PAGE, LIBRARY, VERBS):
            self.assertNotRegex(read(page), r"@[A-Z]+( .*)?@")
            try:
                done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", page], capture_output=True, text=True)
            except FileNotFoundError:
                self.skipTest("no groff")
            self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
