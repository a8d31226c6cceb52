#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts habits of prose that make a reader read twice, in pages, messages and comments, and holds their limits.

    test_english.py               the test: fails where a kind of text is above its limit
    test_english.py --table       habits in 1000 words, and the share of sentences with more than 25 words
    test_english.py --worst 20 [PREFIX]   the sentences with the most habits, with file and line

The rule: the subject of a sentence is a thing that one can point at, and it acts; one fact a sentence, at most 25 words.
A limit may only fall.  CONTRIBUTING.md has the rule in full.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONG = 25
# In 1000 words, for pages, messages, comments; the last row is a share of sentences.
LIMITS = {
    "pages": {"clause": 0.5, "told": 0.5, "nobody": 0.5, "stands": 0.5, "alone": 0.5, "long": 0.12},
    "messages": {"clause": 0.5, "told": 0.5, "nobody": 0.5, "stands": 0.5, "alone": 0.5, "long": 0.03},
    "comments": {"clause": 2.0, "told": 0.5, "nobody": 6.3, "stands": 0.7, "alone": 0.7, "long": 0.06},
}
WORDS_OF_DOC = 40_000
LINES_OF_NEWS = 60
HABITS = {
    # "What is left is said": a clause where a noun should be
    "clause": re.compile(r"(?:^|[;:] |, and |\. )(?:what(?:ever)?|who(?:ever)?|of what|that which)\b(?![^?]*\?$)", re.I),
    "told": re.compile(r"\b(?:is|are|was|were|be|been|being) (?:(?:also|not|never|then|once|all) )?(?:said|told)\b"),
    "nobody": re.compile(r"\b(?:nobody|no one|nothing|none|neither|nowhere)\b", re.I),
    "stands": re.compile(r"\b(?:stands?|stood|lies|lay|lie) (?:in|on|beside|below|above|behind|there|here|where|at|with|for|before)\b"),
    "alone": re.compile(r"\b(?!leave|left|let|stand)\w+ alone\b(?! (?:is|on the))"),
}
SKIP = re.compile(r"tests/(?:golden|diagnosis|real-gpu)/|.*lock")
CODE = (".c", ".h", ".def", ".js", ".mjs", ".S")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def comments(text):
    for found in re.finditer(r"/\*(.*?)\*/|(?<!:)//([^\n]*)", text, re.S):
        yield line_of(text, found.start()), re.sub(r"\n[ \t]*\*?[ \t]*", " ", found[1] if found[1] is not None else found[2])


def messages(text):
    """Texts of four words and more; neighbours in the source are one text, as for the compiler."""
    bare = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', bare):
        said = re.sub(r'"\s*"', "", found[0])[1:-1]
        if len(said.split()) >= 4 and re.search(r"[a-z]{2} [a-z]{2}", said):
            yield line_of(bare, found.start()), said


def pages(text):
    """Paragraphs, items and cells, without code."""
    text = re.sub(r"```.*?```", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*[-*|#.]))", text):
        plain = re.sub(r"`[^`]*`", "x", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", block))
        for cell in plain.split("|") if plain.lstrip().startswith("|") else [plain]:
            yield line, " ".join(cell.strip(" -*#\n").split())
        line += block.count("\n")


def python(text):
    for found in re.finditer(r'"""(.*?)"""|#([^\n]*)', text, re.S):
        yield line_of(text, found.start()), " ".join((found[1] or found[2] or "").split())


def readers(name):
    if name.endswith(CODE):
        return (("comments", comments), ("messages", messages))
    if name.endswith(".md") or "/man/" in name:
        return (("pages", pages),)
    return (("comments", python),) if name.endswith(".py") else ()


def sentences(prefix=""):
    """(kind, file, line, sentence) of each sentence of three words and more."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode or not listed.stdout:
        sys.exit(77)
    for name in listed.stdout.split("\n"):
        if name.startswith(prefix) and not SKIP.match(name) and (ROOT / name).is_file():
            for kind, reader in readers(name):
                for line, body in reader((ROOT / name).read_text(errors="replace")):
                    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(`])", body):
                        if len(sentence.split()) > 2:
                            yield kind, name, line, sentence


def measure(prefix=""):
    """{kind: {habit: rate}}, and the sentences that have a habit, worst first."""
    words, count, total, worst = {}, {}, {}, []
    for kind, name, line, sentence in sentences(prefix):
        long = len(sentence.split())
        words[kind] = words.get(kind, 0) + long
        total[kind] = total.get(kind, 0) + 1
        here = {habit: len(pattern.findall(sentence)) for habit, pattern in HABITS.items()}
        for habit, hits in here.items():
            count[kind, habit] = count.get((kind, habit), 0) + hits
        count[kind, "long"] = count.get((kind, "long"), 0) + (long > LONG)
        if any(here.values()) or long > LONG:
            names = [habit for habit, hits in here.items() if hits] + (["%d words" % long] if long > LONG else [])
            worst.append((len(names) + long / 60, name, line, kind, names, sentence))
    rates = {kind: {habit: 1000 * count[kind, habit] / words[kind] for habit in HABITS} | {"long": count[kind, "long"] / total[kind]} for kind in words}
    return rates, sorted(worst, reverse=True)


def words_of_doc():
    """Pages, with the text of manual pages as it is counted there.  Two pages are tables: a row for each finding, and for each form of a log."""
    files = [*(page for page in (ROOT / "doc").glob("*.md") if page.name not in ("findings.md", "log.md")), *(ROOT / "doc/man").glob("*.in"), *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md"))]
    return sum(len(path.read_text().split()) for path in files)


def main(args):
    if args[:1] == ["--worst"]:
        for _, name, line, kind, names, sentence in measure(args[2] if len(args) > 2 else "")[1][:int(args[1])]:
            print(f"{name}:{line} {kind} [{', '.join(names)}]\n    {sentence[:400]}")
        return 0
    rates = measure()[0]
    if args[:1] == ["--table"]:
        for kind, row in sorted(rates.items()):
            print(kind, "  ".join(f"{habit} {rate:.2f}" for habit, rate in row.items()))
        print(words_of_doc(), "words in doc/, README, SECURITY, CONTRIBUTING")
        return 0
    bad = [f"{kind}: {habit} {rates[kind][habit]:.2f}, limit {limit}" for kind, row in LIMITS.items() for habit, limit in row.items() if rates[kind][habit] > limit]
    if words_of_doc() > WORDS_OF_DOC:
        bad.append(f"doc/, README, SECURITY and CONTRIBUTING have {words_of_doc()} words, limit {WORDS_OF_DOC}")
    if len((ROOT / "NEWS.md").read_text().splitlines()) > LINES_OF_NEWS:
        bad.append(f"NEWS.md has more than {LINES_OF_NEWS} lines")
    for line in bad:
        print(line, file=sys.stderr)
    if bad:
        print("the sentences: tests/house/test_english.py --worst 40 [PREFIX]", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
