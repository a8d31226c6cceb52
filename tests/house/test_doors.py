#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Text leaves the programs that read traces through analyzer/base/escape.h or json.h: finds output that bypasses them.

test_doors.py [BUILD]: sources say what is printed; objects of a build say which functions they call, so that none hides behind a
macro, a header, a pointer or a pasted name.  Not seen: what is copied into a mapped file, system calls in assembler, and a name
that is pasted together (a##b) or given by __asm__ in a file that also names that function as it is.
"""
import collections
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("analyzer", "common", "tools")
# How often a file may name a function that outputs bytes as they are, and why.  Numbers and text of the program need no row.
MAY = {
    "analyzer/base/escape.c": ("the door", "fprintf 6 fputc 2 fwrite 4"),
    "analyzer/base/json.c": ("the door of JSON", "fwrite 1"),
    "analyzer/base/memory.c": ("the program's own name", "fprintf 1"),
    "analyzer/base/terminal.c": ("escape sequences of ours, and blanks", "fputs 1"),
    "analyzer/base/sandbox.c": ("rules for the kernel", "syscall 6"),
    "analyzer/catalogue/card_take.c": ("into memory", "fprintf 1"),
    "analyzer/catalogue/store_open.c": ("the catalogue, which programs of ours read; SQL of ours", "pwrite 1 sqlite3_bind_text 1 sqlite3_exec 4"),
    "analyzer/catalogue/store_read.c": ("SQL, of words of ours", "fprintf 5"),
    "analyzer/commands/browser.c": ("a byte to a process of ours", "write 1"),
    "analyzer/commands/collect.c": ("a ring, as it is", "fwrite 1"),
    "analyzer/commands/validate.c": ("JSON that base/json.c wrote", "fwrite 1"),
    "analyzer/commands/try.c": ("structs between processes of ours", "write 2"),
    "analyzer/exports/archive_write.c": ("a pack", "fwrite 5"),
    "analyzer/exports/perfetto.c": ("a binary form with lengths: sl_proto_text", "fwrite 1"),
    "analyzer/exports/pickle.c": ("a binary form with lengths: sl_pickle_text", "fputc 4 fwrite 1"),
    "analyzer/exports/pprof.c": ("a binary form with lengths: sl_proto_text", "fwrite 1"),
    "analyzer/exports/sqlite.c": ("sl_escape_text; SQL of ours", "sqlite3_bind_text 1 sqlite3_exec 1"),
    "analyzer/faces/line.c": ("a message in memory, which the gate prints through the door", "fprintf 3"),
    "analyzer/faces/terminal.c": ("colours and bars; an address whose other bytes are numbers; a page laid out through the door", "fputs 2 fwrite 1"),
    "analyzer/gate/ci_reports.c": ("a row that door.h has made", "fwrite 1"),
    "analyzer/machine/machine.c": ("calls of NVML, in a table", "dlsym 1"),
    "analyzer/snapshot/write.c": ("compressed frames of a trace", "fwrite 2"),
    "analyzer/symbols/symbols.c": ("a name is made readable", "dlsym 1"),
    "analyzer/outputs/html.c": ("the page: tests/web, its data as base64; the screen, with & and < escaped", "fprintf 2 fputc 1 fputs 1 fwrite 2"),
    "analyzer/outputs/markdown.c": ("a screen that has been through the door", "fwrite 1"),
    "analyzer/outputs/picture.c": ("pictures, of text that is ASCII", "cairo_show_text 1 cairo_surface_write_to_png_stream 2 fwrite 1"),
    "analyzer/trace/archive.c": ("files of a pack, as they are", "fwrite 1"),
    "analyzer/trace/ring.c": ("a ring, into memory", "write 1"),
    "analyzer/trace/summaries.c": ("compressed frames", "fwrite 4"),
    "analyzer/upstream/answers/emit.c": ("keys of a table in memory", "fprintf 2"),
    "analyzer/upstream/files/live_sink.c": ("lines of JSON", "write 2"),
    "analyzer/upstream/files/sink.c": ("lines of JSON", "fwrite 1"),
    "analyzer/watch/runner.c": ("to a process of ours, in words that end with 0; an alert to a command's input", "fprintf 3 fputc 3 fputs 1 send 1 vfprintf 1 write 1"),
    "agent/process/process.h": ("signals of the recorder", "syscall 2"),
    "tools/attach/watch.c": ("calls of NVML", "dlsym 5"),
    "tools/attach/probes.c": ("libbpf: its functions, in a table, and its words for who debugs this program", "dlsym 1 syscall 1 vfprintf 1"),
    "tools/attach/recording.c": ("a trace", "write 1"),
    "tools/attach/stormlog-attach.c": ("a number in a ring", "pwrite 1"),
    "tools/attach/unwind.c": ("functions of libdw, in a table", "dlsym 1"),
    "common/arguments.c": ("words of the program: its tables", "fprintf 3 perror 1 printf 1"),
    "common/standard.h": ("the program's own name", "fprintf 1"),
    "tools/exporter/stormlog-exporter.c": ("pages of families.c", "MHD_add_response_header 1 MHD_create_response_from_buffer 1"),
    "tools/server/html.c": ("markup of ours; text through the door, or as an address", "fwrite 1"),
    "tools/server/packs.c": ("packs, as they are", "pwrite 1 sendfile 1"),
    "tools/server/request.c": ("pages of html.c, JSON, reports, words of ours", "MHD_add_response_header 3 MHD_create_response_from_buffer 2 MHD_create_response_from_fd 1"),
    "tools/top/screen.c": ("a text that has been through the door", "addnwstr 1"),
    "tools/top/stormlog-top.c": ("to a process of ours", "write 2"),
}
# Functions that put a text into a form of their own, and what their bodies must have.
FORMS = {"analyzer/exports/pickle.c": ("sl_pickle_text", "sl_escape_text("), "analyzer/exports/proto.c": ("sl_proto_text", "sl_escape_text("),
         "tools/server/html.c": ("sl_html", "sl_escape_put(page->out, SL_ESCAPE_XML,")}

# Names in which the text is searched everywhere, and where in their arguments it is.
TEXT_AT = {"printf": 0, "vprintf": None, "fprintf": 1, "vfprintf": None, "dprintf": 1, "vdprintf": None, "puts": 0, "fputs": 0, "putc": 0,
           "fputc": 0, "putchar": 0, "fwrite": None, "perror": 0, "sqlite3_exec": 1, "MHD_add_response_header": 2}
STDIO = {name for name in TEXT_AT if re.match("v?f?p|fw", name)} - {"perror"}  # compilers make one of another
# Names of functions of other libraries that output.
OUTPUT = re.compile(r"(?!v?(as?|s|sn)w?printf$|eventfd_write$|putenv$)(.*(print|put|write|send|splice|syslog|journal|show_|text_path|glyph).*"
                    r"|v?(err|warn)x?c?|error(_at_line)?|p(error|siginfo|signal)|herror|argp_(error|failure)|.*_symbols_fd|assert_perror_fail"
                    r"|(add|ins|echo)_?n?w?(ch|str|chstr|char)|tee|copy_file_range|msgsnd|syscall|dlv?sym|overflow"
                    r"|sqlite3_(exec|bind_(text|blob).*)|.*(create_response|response_header|auth_fail).*)")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"' r"|'(?:[^'\\\n]|\\.)+'")
CONVERSION = re.compile(r"%[-+ #0']*(\*|\d*)(?:\.(\*|\d*))?(?:hh|h|ll|l|z|j|t|L)?([a-zA-Z%])")


def code(text):
    """The text without comments, system headers and attributes; lines stay where they are."""
    text = re.sub(r"(%s)|/\*.*?\*/|//[^\n]*" % STRING.pattern, lambda m: m[1] or "\n" * m[0].count("\n"), text, flags=re.S)
    return re.sub(r"#include <.*|\bformat\(_*printf\b", "", text)


def arguments(text):
    """The arguments of the call whose parenthesis is open."""
    found, depth, begin, at = [], 0, 0, 0
    while at < len(text):
        string = STRING.match(text, at)
        if string:
            at = string.end()
            continue
        if depth == 0 and text[at] in ",)":
            found.append(text[begin:at].strip())
            begin = at + 1
            if text[at] == ")":
                break
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        at += 1
    return found


def constant(argument):
    """True: a literal, or one of several."""
    words = r"@(?:\s*@)*"
    short = re.sub(r"PRI\w+|SL_VERSION", "@", STRING.sub("@", argument))
    return re.fullmatch(rf"\(?(?:[^?:]*\?\s*{words}\s*:\s*)*{words}\)?", short) is not None


def harmless(name, given):
    """True: a call that outputs literals and numbers alone."""
    at = TEXT_AT.get(name)
    if at is None or len(given) <= at or not constant(given[at]):
        return False
    if not name.endswith("printf"):
        return True
    if "?" in STRING.sub("", given[at]):
        return len(given) == at + 1
    given, text = given[at + 1:], "".join(string[1:-1] for string in STRING.findall(re.sub(r"PRI\w+", '"u"', given[at])))
    if "%" in CONVERSION.sub("", text):
        return False
    for width, precision, letter in CONVERSION.findall(text):
        if letter in "m%":
            continue
        given = given[(width == "*") + (precision == "*"):]
        if not given or (letter in "sScC" and not constant(given[0])):
            return False
        given = given[1:]
    return True


def uses(text, name):
    """Where a text names an output function otherwise than to output literals and numbers."""
    for match in re.finditer(rf"(?<![\w.])(?<!->)(?:__builtin_|_IO_|mv)?w?{name}(?:_unlocked|64)?\b", STRING.sub(lambda m: "@" * len(m[0]), text)):
        call = re.match(r"\s*\(", text[match.end():])
        if not call or not harmless(name, arguments(text[match.end() + call.end():][:4000])):
            yield match.start()


def plain(name):
    """One name for all forms of a function: fputs of fputs_unlocked, pwrite of pwrite64, addnstr of mvwaddnstr, printf of __printf_chk and __builtin_printf."""
    return re.sub(r"^(mv)?w?(?=(add|ins|echo|print))", "", re.sub(r"^_*(builtin_|IO_)?|_chk$|64$|_unlocked$", "", name))


def outputs(symbol):
    return OUTPUT.fullmatch(plain(symbol)) and not re.match(r"sl_|_+(\w*san|gcov|llvm|sanitizer)_", symbol)


class File:
    """A source, a header or what else is included."""
    read = {}  # {path: File}

    def __init__(self, path, roots):
        File.read[path] = self
        text = path.read_text()
        self.name = next(path.relative_to(root).as_posix() for root in roots if path.is_relative_to(root))
        self.text = code(text)
        self.words = {plain(word) for word in re.findall(r"(?<![\w.])(?<!->)\w+", STRING.sub("", self.text))}
        self.wanted = set(TEXT_AT)
        tried = [(root / name).resolve() for name in re.findall(r'#\s*include "([^"]+)"', text) for root in (path.parent, *roots)]
        self.includes = [File.of(other, roots) for other in tried if other.is_file()]

    @staticmethod
    def of(path, roots):
        return File.read.get(path) or File(path, roots)

    def calls(self, words):
        """True: calls one of these; a member or a parameter of that name is none."""
        return re.search(r"#\s*define\b.*\b(%s)\b|\b(%s)\s*\(" % (("|".join(rf"(mv)?w?{word}(_unlocked|64)?" for word in words),) * 2), self.text)

    def all(self, seen=None):
        """The file and, once each, what it includes."""
        seen = [] if seen is None else seen
        if self not in seen:
            seen.append(self)
            for other in self.includes:
                other.all(seen)
        return seen


def look(sources, objects, may, roots=(ROOT,)):
    """What goes around the door.  sources: paths; objects: {source: its outside symbols}; may: as MAY, by names below the first root."""
    File.read = {}
    rows = {name: {word: int(count) for word, count in zip(*[iter(row[1].split())] * 2)} for name, row in may.items()}
    found = []
    for path in sources:
        File.of(path, roots)
    for source, symbols in objects.items():
        files = File.of(source, roots).all()
        for symbol in filter(outputs, sorted(symbols)):
            words = STDIO if plain(symbol) in STDIO | {"overflow"} else {plain(symbol)}
            callers = [file for file in files if words & file.words and (file is files[0] or file.calls(words))]
            if not callers:
                found.append(f"{files[0].name}: its object calls {symbol}, and no text of ours that it is made from does")
            for file in callers:
                file.wanted |= words
    for file in File.read.values():
        row = rows.pop(file.name, {})
        for word in sorted({*file.wanted, *row}):
            at, count = list(uses(file.text, word)) if word in file.words else [], row.get(word, 0)
            if len(at) > count:
                found += [f"{file.name}:{file.text.count(chr(10), 0, where) + 1}: {file.text[where:where + 90].split(chr(10))[0]}" for where in at]
            elif len(at) < count:
                found.append(f"{file.name}: MAY says {word} {count}, the file has {len(at)}")
    return found + [f"{name}: in MAY, and not there" for name in rows]


def symbols_of(objects):
    """{object: (undefined, defined)} of its symbols."""
    found = collections.defaultdict(lambda: (set(), set()))
    for line in subprocess.run(["nm", "-PA", *objects], capture_output=True, text=True, check=True).stdout.splitlines():
        path, name, kind = re.match(r"(.*?)(?:\[.*\])?: (\S+) (\w)", line).groups()
        found[path][kind not in "Uwv"].add(name.split("@")[0])
    return found


def newer(built, source):
    return built.is_file() and built.stat().st_mtime >= source.stat().st_mtime


def of_build(build):
    """{source: outside symbols} of the objects of our rooms, and the compiler."""
    commands = json.loads((build / "compile_commands.json").read_text())
    made = {str(build / row["output"]): (build / row["file"]).resolve() for row in commands
            if row["output"].startswith(tuple(room + "/" for room in ROOMS)) and newer(build / row["output"], build / row["file"])}
    symbols = symbols_of(list(made))
    ours = set().union(*(defined for _, defined in symbols.values()))
    objects = collections.defaultdict(set)
    for path, (undefined, _) in symbols.items():
        objects[made[path]] |= undefined - ours
    words = shlex.split(commands[0]["command"])
    return objects, words[:next(i for i, word in enumerate(words) if word.startswith("-"))]


def self_test(compiler):
    """This test on lines that it must see and lines that it must not object to, with and without optimization."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        (folder / "say.inc").write_text("puts(name);\n")
        (folder / "say.h").write_text("#define SAY_IT(name) fputs(name, stdout)\n")
        (folder / "member.h").write_text("struct { int (*write)(const char *), error; } *to = any;\n")
        lines = {folder / f"{'good' if i >= len(BAD) else 'bad'}{i}.c": line for i, line in enumerate(BAD + GOOD)}
        for path, line in lines.items():
            path.write_text(FRAME.replace("@", line))
        for flags in (["-O0"], ["-O2", "-D_FORTIFY_SOURCE=2"]):
            subprocess.run([*compiler, *flags, "-w", "-D_GNU_SOURCE", "-c", *(path.name for path in lines)], cwd=folder, check=True)
            symbols = symbols_of([str(path.with_suffix(".o")) for path in lines])
            for path, line in lines.items():
                for objects in ({}, {path: symbols[str(path.with_suffix(".o"))][0]}):
                    said = look([path], objects, {}, (folder,))
                    if path.name.startswith("good") and said:
                        found.append(f"this test objects to: {line}: {said}")
                if path.name.startswith("bad") and not said:
                    found.append(f"this test does not see ({' '.join(flags)}): {line}")
        path = next(iter(lines))
        for row in ("printf 2", "printf 1 puts 1"):
            if not look([path], {}, {path.name: ("", row)}, (folder,)):
                found.append(f"this test does not see a row that is too long: {row}")
        if look([path], {}, {path.name: ("", "printf 1")}, (folder,)):
            found.append("this test objects to what a row allows")
    return found


FRAME = """#include <stdarg.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>
int sl_escape_print(FILE *out, const char *format, ...);
void test(FILE *out, const char *name, size_t n, va_list list, void *any, struct sl_job *job)
{
	@
}
"""
BAD = [
    'printf("%s", name);', "puts(name);", 'fprintf(stderr, "x %zu %.*s", n, 3, name);', "fputs(name, out);", "fputc(*name, out);", "putchar(*name);",
    'printf("%1$s", name);', 'fputs(n ? name : "b", out);', 'printf("%c", *name);', "fwrite(name, 1, n, out);", "vfprintf(out, name, list);", 'dprintf(2, "%s", name);', "perror(name);",
    "write(1, name, n);", "writev(1, any, 1);", "pwrite(1, name, n, 0);", "extern long send(); send(1, name, n, 0);", "extern long sendto(); sendto(1, name, n, 0, 0, 0);",
    "extern long sendfile(); sendfile(1, 2, 0, n);", "extern long splice(); splice(1, 0, 2, 0, n, 0);", "extern long syscall(long, ...); syscall(1, 1, name, n);",
    "fputs_unlocked(name, out);", "putchar_unlocked(*name);", "putc_unlocked(*name, out);", "fwrite_unlocked(name, 1, n, out);",
    '(printf)("%s", name);', '__builtin_printf("%s", name);', "(puts)(name);", '\n#define SAY printf\n\tSAY("%s", name);', '\n#define SAY(x) fputs(x, stdout)\n\tSAY(name);',
    "\n#define GLUE(a, b) a##b\n\tGLUE(pu, ts)(name);", "\n#define GLUE(a, b) a##b\n\tGLUE(wri, te)(1, name, n);",
    '\n#include "member.h"\n\tint (*say)() = to->write;\n#define GLUE(a, b) a##b\n\tGLUE(wri, te)(1, name, n);',
    "int (*say)(const char *) = puts; say(name);", 'int (*say)(FILE *, const char *, ...) = fprintf; say(out, "%s", name);', "int (*volatile say)() = &puts; say(name);",
    'extern int say(const char *) __asm__("puts"); say(name);', '\n#include "say.inc"\n', '\n#include "say.h"\n\tSAY_IT(name);',
    'extern void warnx(const char *, ...); warnx("%s", name);', 'extern void err(int, const char *, ...); err(1, "%s", name);',
    'extern void verrx(int, const char *, va_list); verrx(1, name, list);', 'extern void error(int, int, const char *, ...); error(0, 0, "%s", name);',
    'extern void syslog(int, const char *, ...); syslog(1, "%s", name);', "extern void psignal(int, const char *); psignal(1, name);",
    "extern int sqlite3_exec(void *, const char *, void *, void *, void *); sqlite3_exec(any, name, 0, 0, 0);",
    'extern char *sqlite3_mprintf(const char *, ...); sqlite3_mprintf("%Q", name);', "extern int sqlite3_bind_text(); sqlite3_bind_text(any, 1, name, -1, 0);",
    "extern int sqlite3_bind_blob(); sqlite3_bind_blob(any, 1, name, n, 0);", "extern int gzputs(void *, const char *); gzputs(any, name);",
    "extern int gzwrite(); gzwrite(any, name, n);", "extern int fputws(); fputws(any, out);", 'extern int wprintf(); wprintf(L"%s", name);',
    "extern void cairo_show_text(void *, const char *); cairo_show_text(any, name);", "extern void cairo_text_path(void *, const char *); cairo_text_path(any, name);",
    "extern int waddnstr(void *, const char *, int); waddnstr(any, name, -1);", "extern int addstr(const char *); addstr(name);", "extern int printw(); printw(name);",
    "extern void *MHD_create_response_from_buffer(); MHD_create_response_from_buffer(n, name, 0);", "extern void MHD_add_response_header(); MHD_add_response_header(any, \"x\", name);",
    'extern void *dlsym(); ((int (*)())dlsym(0, "puts"))(name);', "extern void backtrace_symbols_fd(); backtrace_symbols_fd(any, 1, 1);",
]
GOOD = [
    'fputs("no", out);', "fputc('\\n', out);", 'puts("x");', 'sl_escape_print(out, "%s", name);', 'fputs(n ? "a" : n > 2 ? "b?" : "c", stdout);',
    'fprintf(out, "%zu %-8s %*d%%\\n", n, n ? "a" : "b", 3, 4); /* printf(name) */', 'char to[9]; snprintf(to, sizeof(to), "%s", name);',
    'printf("no printf(name) here");', '\n#include "member.h"\n\tto->write(name);',
]


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    objects, compiler = of_build(build) if len(sys.argv) > 1 or (build / "compile_commands.json").is_file() else ({}, ["cc"])
    found = look([path for room in ROOMS for path in sorted((ROOT / room).rglob("*.[ch]"))], objects, MAY, (ROOT, build))
    for name, (function, must) in FORMS.items():
        body = re.search(r"(?m)^void %s\(.*\n\{\n((?:\t.*\n|\n)*)\}" % function, (ROOT / name).read_text())
        if not body or must not in body[1]:
            found.append(f"{name}: {function} lacks {must}")
    found += self_test(compiler)
    for line in found:
        print(line)
    if found:
        print("print through sl_escape_print (analyzer/base/escape.h), or say in MAY of this test why the bytes may leave as they are")
    return 1 if found else 0


sys.exit(main())
