# SPDX-License-Identifier: MIT
"""A function that a header declares is named sl_<place>_<verb>, so that its name leads to its file.  No identifier is an everyday word.

    test_names.py [ROOT]

<place> is the header, the .c file that defines it, the first words of either's name (sl_screen_* in screen_page.c), a folder above,
a type or table that the header declares (sl_oom_* beside struct sl_oom), or, for an inline function, a file beside the header. Structs and
enums of headers begin with sl_ too.  -Wmissing-prototypes enforces that each public function is in a header.
"""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
ROOMS = ("agent", "analyzer", "common", "tools")
# Headers that have other names too.
FREE = {
    "agent/symbols/symbols.h": "__register_atfork of libc",
    "common/base.h": "the base of everything: sl_load_le, sl_mix",
    "common/vendor_abi.h": "the vendors' own",
    "agent/include/stormlog.h": "what programs call",
}
# Words of several senses.  The name says what it is instead: peak_bytes, leaks_by_line, was_printed.
EVERYDAY = re.compile(r"\b(?:sl_)?(?:kept|told|known|held|most|here|beside|said|taken)\b")
ASIDE = re.compile(r"/\*(?s:.*?)\*/|//.*|^[ \t]*#(?:\\\n|.)*|__asm__\([^)]*\)|__attribute__\(\((?:[^()]|\([^()]*\))*\)\)|SL_PRINTF\(.*?\)", re.M)
GROUP = r"\((?:[^(){};]|\((?:[^(){};]|\([^(){};]*\))*\))*\)"
FUNCTION = re.compile(rf"^(?:static )?(?:inline )?(?!typedef|SL_VECTOR|_Static_assert)(?:ElfW\(\w+\)|\w|[ *\n])*?\b(\w+)({GROUP})[^;{{}}()]*(?:{GROUP})?[^;{{}}()]*([;{{])", re.M)
TYPE = re.compile(r"^(?:struct|enum|union) (\w+) \{|^typedef .*?\b(sl_\w+)(?:;|\()|^extern [^;]*?\b(sl_\w+)(?:\[|;)", re.M)


def code_of(path):
    return ASIDE.sub(lambda found: re.sub(r"[^\n]", "", found[0]), path.read_text())


def leading(stem):
    words = stem.split("_")
    return {"_".join(words[:count]) for count in range(1, len(words) + 1)}


def wrong(root, paths):
    """["header: name"] of all functions, structs and enums that are named otherwise."""
    headers, defined = {}, {}
    for path in paths:
        text = code_of(root / path)
        if path.endswith(".h"):
            headers[path] = text
        else:
            for name in re.findall(r"^(?!static)\w[^\n;=]*?\b(sl_\w+)\(", text, re.M):
                defined.setdefault(name, []).append(path)
    found = []
    for path, text in headers.items():
        if path in FREE:
            continue
        types = {name for match in TYPE.finditer(text) for name in match.groups() if name}
        found += [f"{path}: {name}" for name in types if not name.startswith("sl_")]
        beside = {Path(other).stem for other in paths if Path(other).parent == Path(path).parent}
        for name, _, end in FUNCTION.findall(text):
            places = [path, *defined.get(name, [])]
            names = {name.removeprefix("sl_") for name in types}.union(*(leading(Path(place).stem) | set(Path(place).parts[:-1]) for place in places))
            names |= beside if end == "{" else set()
            names |= {place.rstrip("s") for place in names} | {place + "s" for place in names}
            if not any(re.match(rf"sl_{re.escape(place)}(_|$)", name) for place in names):
                found.append(f"{path}: {name}")
    return found


def sources(*more):
    """The sources and headers of the product; without git the test is skipped."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", *ROOMS, *more], capture_output=True, text=True)
    if listed.returncode or not listed.stdout:
        sys.exit(77)
    return [path for path in listed.stdout.split() if path.endswith((".c", ".h")) and ".bpf." not in path and (ROOT / path).is_file()]


class Names(unittest.TestCase):
    maxDiff = None

    def test_the_name_of_each_public_function_leads_to_its_file(self):
        paths = sources()
        self.assertEqual(wrong(ROOT, paths), [])
        for path in FREE:
            self.assertIn(path, paths)

    def test_no_identifier_is_an_everyday_word(self):
        found = []
        for path in sources("dry"):
            code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', code_of(ROOT / path))
            found += ["%s:%d: %s" % (path, number, line.strip()) for number, line in enumerate(code.split("\n"), 1) if EVERYDAY.search(line)]
        self.assertEqual(found, [])

    def test_a_name_that_leads_elsewhere_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "trace").mkdir()
            (root / "trace/ring.h").write_text("#pragma once\nstruct sl_slot {\n\tint at;\n};\nvoid sl_ring_open(void);\nint sl_slot_read(int (*get)(int at));\n"
                                               "void sl_trace_end(void);\n")
            (root / "trace/ring_end.c").write_text("void sl_trace_end(void)\n{\n}\n")
            paths = ["trace/ring.h", "trace/ring_end.c"]
            self.assertEqual(wrong(root, paths), [])
            with open(root / "trace/ring.h", "a") as header:
                header.write("const char *sl_pool_name(unsigned pool,\n\t\t unsigned at);\nbool is_open(void) __attribute__((weak));\nenum tone { PLAIN };\n"
                             "static inline int sl_cursor_at(int at)\n{\n\treturn sl_slot_read(at);\n}\n")
            self.assertEqual(sorted(wrong(root, paths)), ["trace/ring.h: is_open", "trace/ring.h: sl_cursor_at", "trace/ring.h: sl_pool_name",
                                                          "trace/ring.h: tone"])
            (root / "trace/cursor.c").write_text("")
            self.assertNotIn("trace/ring.h: sl_cursor_at", wrong(root, [*paths, "trace/cursor.c"]))


if __name__ == "__main__":
    unittest.main()
