# SPDX-License-Identifier: MIT
"""Files, functions and types of ours that comments and pages name exist; and each name of a struct means one thing.

    test_references.py [ROOT]

A file exists if some path of the tree ends with the name; a name `sl_...` exists if code outside of comments uses it.
"""
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
SOURCE = (".c", ".h", ".def", ".S")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
FILE = re.compile(r"(?<![\w/.<>*-])((?:[\w.-]+/)*[\w-]+\.(?:c|h|def|S|md))(?![\w.*])")
NAME = re.compile(r"\bsl_[a-z0-9_]*[a-z0-9]\b(?!\*|_\*)")
# Not ours: headers of vendors, systems and interpreters, and files that a report writes.
ELSEWHERE = re.compile(r"^(summary\.md|nvToolsExtPayload|cuda|hsa|hip/|link|dlfcn|signal|elf|ceval|pystate|frame\.c|nvtx3?/|std|sys/|linux/|asm/|cupti|nvml)")


def tracked():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode or not listed.stdout:
        sys.exit(77)
    return listed.stdout.split()


def prose_of(path, text):
    """[(line, text)] of the comments of code, or of a whole page."""
    if path.suffix in SOURCE:
        return [(text.count("\n", 0, found.start()) + 1, found[0]) for found in COMMENT.finditer(text)]
    return [(1, text)]


class References(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.paths = tracked()
        cls.texts = {}
        for path in cls.paths:
            if path.endswith((*SOURCE, ".md", ".py", ".build", ".map")) and (ROOT / path).is_file():
                cls.texts[path] = (ROOT / path).read_text(errors="replace")
        cls.endings = {"/" + path for path in cls.paths}

    def prose(self):
        for path, text in self.texts.items():
            if path.endswith((*SOURCE, ".md")) and not path.startswith("NEWS"):
                for line, part in prose_of(Path(path), text):
                    yield path, line, part

    def test_files_that_are_named_exist(self):
        missing = []
        for path, line, part in self.prose():
            for found in FILE.finditer(part):
                name = found[1].lstrip("./")
                if not ELSEWHERE.search(name) and not any(there.endswith("/" + name) for there in self.endings):
                    missing.append(f"{path}:{line + part.count(chr(10), 0, found.start())}: {found[1]}")
        self.assertEqual(missing, [])

    def test_tests_that_pages_name_exist(self):
        """A name is written in full, or shortened by three dots: `test_a_rank_...`."""
        tests = {found for path, text in self.texts.items() if path.startswith("tests/") for found in re.findall(r"(?:def|void) (test_\w+)", text)}
        missing = [f"{path}: {name}" for path, text in self.texts.items() if path.endswith(".md")
                   for name, more in re.findall(r"`(test_\w+)(\.\.\.)?`", text)
                   if not (any(there.startswith(name) for there in tests) if more else name in tests)]
        self.assertEqual(missing, [])

    def test_no_comment_opens_with_of(self):
        """"Of a leak." tells a reader who has not read the code nothing: a comment begins with its subject."""
        riddles = [f"{path}:{line}" for path, line, part in self.prose()
                   if path.endswith(SOURCE) and re.match(r"/\*[\s*]*Of ", part)]
        self.assertEqual(riddles, [])

    def test_no_line_of_a_comment_is_wider_than_code(self):
        """clang-format does not wrap comments (ReflowComments is false)."""
        wide = []
        for path, text in self.texts.items():
            lines = text.split("\n") if path.endswith((".c", ".h")) and not path.startswith("tests/") else []
            inside = False
            for number, line in enumerate(lines, 1):
                if (inside or "/*" in line) and len(line.expandtabs(8)) > 132:
                    wide.append(f"{path}:{number}")
                inside = line.rfind("/*") > line.rfind("*/") if "/*" in line or "*/" in line else inside
        self.assertEqual(wide, [])

    def test_no_function_has_two_comments(self):
        """A blank line ends what is said of a section; the comment below it is the function's."""
        two = re.compile(r"(?m)^/\*(?:[^*]|\*(?!/))*\*/\n/\*(?!\*/)(?:[^*]|\*(?!/))*\*/\n(?=\w[^\n;{]*\()")
        self.assertTrue(two.search("/* SPDX */\nint a;\n/* One. */\n/* Two. */\nint b(void);\n"))
        self.assertEqual([f"{path}:{1 + text.count(chr(10), 0, found.start())}" for path, text in self.texts.items()
                          if path.endswith((".c", ".h")) for found in two.finditer(text) if found.start()], [])

    def test_a_name_of_a_struct_means_one_thing(self):
        places = {}
        for path, text in self.texts.items():
            if path.endswith(SOURCE) and not path.startswith("tests/"):
                for found in re.finditer(r"^struct (sl_\w+) \{", text, re.M):
                    places.setdefault(found[1], []).append(path)
        self.assertEqual({name: paths for name, paths in places.items() if len(paths) > 1}, {})

    def test_functions_and_types_that_are_named_exist(self):
        code = set()
        for path, text in self.texts.items():
            if not path.endswith(".md"):
                code.update(NAME.findall(COMMENT.sub("", text)))
        missing = []
        for path, line, part in self.prose():
            for found in NAME.finditer(part):
                if found[0] not in code and not any(name.startswith(found[0] + "_") for name in code):
                    missing.append(f"{path}:{line + part.count(chr(10), 0, found.start())}: {found[0]}")
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
