#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Text leaves the analyzer and stormlog-attach through analyzer/base/door.h or json.h: finds printing that bypasses them."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What may print bytes as they are, and why.
MAY = {
    "base/door.c": "the door", "base/json.c": "the door of JSON",
    "base/map.c": "words of ours", "base/memory.c": "the program's own name",
    "catalogue/store_open.c": "the catalogue, which programs of ours read", "catalogue/store_where.c": "the text of a statement, of words of ours",
    "commands/collect.c": "a ring, as it is", "commands/timeline.c": "its own blocks of the chart", "commands/validate.c": "JSON that base/json.c wrote",
    "exports/lines.c": "numbers; names through the door", "exports/stacks.c": "numbers; names through the door",
    "exports/pickle.c": "a binary form with lengths: sl_pickle_text", "exports/pprof.c": "a binary form with lengths: sl_proto_text",
    "exports/perfetto.c": "a binary form with lengths: sl_proto_text", "exports/archive_write.c": "a pack", "trace/summaries.c": "compressed frames", "trace/archive.c": "files of a pack, as they are",
    "outputs/html.c": "the page: tests/web", "outputs/html_plain.c": "the page: its own escapes", "outputs/picture.c": "pictures",
    "outputs/page/packed.c": "the page's data", "upstream/files/sink.c": "lines of JSON", "upstream/files/live_sink.c": "lines of JSON", "watch/doer.c": "an alert as JSON",
    "attach/recording.c": "a trace",
}
# Functions that put a text into a binary form, and what their bodies must have.
FORMS = {"exports/pickle.c": "sl_pickle_text", "exports/proto.c": "sl_proto_text"}
ROWS = {("exports/sqlite.c", "sqlite3_bind_text(statement, i, sl_door_text(text), -1, free);"),  # through the door
        ("gate/ci_reports.c", "fwrite(text, 1, size, out);"),  # a row that door.h has made
        ("catalogue/card_take.c", 'fprintf(out, "%s%s", i ? " " : "", header->argv[i] ? header->argv[i] : "");'),  # into memory
        ("commands/browser.c", 'write(bell, "", 1) != 1)'),  # a byte to a process of ours
        ("commands/arguments.c", "fputs(options->command->about, out);"),  # constant text of several lines
        ("attach/stormlog-attach.c", "fputs(usage, stderr), USAGE;"),  # constant text
        ("attach/stormlog-attach.c", 'fputs(option == HELP ? usage : "stormlog-attach " SL_VERSION "\\n", stdout);'),  # constant text
        ("attach/probes.c", "vfprintf(stderr, format, arguments) : 0;")}  # libbpf's words, for who debugs this program
CALL = re.compile(r"(?<![\w>.])(v?f?printf|fputs|puts|fputc|putc|putchar|fwrite|perror|write|dprintf|sqlite3_bind_text)\s*\(")
WORDS = re.compile(r'"(?:[^"\\]|\\.)*"' r"|'(?:[^'\\]|\\.)+'")


def first_argument(text):
    """The first argument, without its string literals."""
    depth, at = 0, 0
    text = WORDS.sub("", text[:2000])
    while at < len(text) and not (depth == 0 and text[at] in ",)"):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[:at]


def around(text):
    """Calls that print anything but string literals."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for match in CALL.finditer(text):
        rest = first_argument(text[match.end():]).strip()
        if match[1] not in ("fputs", "puts", "fputc", "putc", "putchar", "perror") or not re.fullmatch(r"|[^?]*\?\s*:\s*|SL_VERSION", rest):
            yield text[match.start():match.start() + 80].split("\n")[0]


def main():
    found = []
    for path in sorted([*(ROOT / "analyzer").rglob("*.c"), *(ROOT / "attach").glob("*.c")]):
        name = path.relative_to(ROOT).as_posix().removeprefix("analyzer/")
        if name not in MAY:
            found += [f"{path.relative_to(ROOT)}: {call}" for call in around(path.read_text())
                      if (name, call) not in ROWS]
    for name, function in FORMS.items():
        body = re.search(r"(?m)^void %s\(.*\n\{\n((?:\t.*\n|\n)*)\}" % function, (ROOT / "analyzer" / name).read_text())
        if not body or "sl_door_text(" not in body[1]:
            found.append(f"analyzer/{name}: {function} writes a text that did not go through sl_door_text")
    for bad in ('sqlite3_bind_text(statement, 1, text, -1, free);', 'printf("%s", name);', "puts(name);", 'fprintf(stderr, "x %s", name);', "fputs(name, out);", "fputc(*at, out);"):
        if not list(around(bad)):
            found.append("this test does not see: " + bad)
    for good in ('fputs("no", out);', "fputc('\\n', out);", 'puts("x");', 'sl_door_print(out, "%s", name);', 'fputs(bad ? "a" : "b", stdout);'):
        if list(around(good)):
            found.append("this test objects to: " + good)
    for line in found:
        print(line)
    if found:
        print("print through sl_door_print (analyzer/base/door.h), or say in MAY of this test why the bytes may leave as they are")
    return 1 if found else 0


sys.exit(main())
