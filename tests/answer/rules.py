# SPDX-License-Identifier: MIT
"""The rules of a first screen that a program can check (doc/answer.md).  Whether a sentence is true, the corpora judge."""
import re

BAD = ("OUT OF MEMORY", "NEARLY OUT OF MEMORY", "DOES NOT FIT", "DOES NOT START", "LEAK", "GROWS", "HIDDEN", "UNEVEN", "HOST MEMORY", "FAILED")
FINE = ("OK", "FITS", "MAY FIT", "HELD", "RUNNING", "NOT AN ERROR", "NOTHING")
LABELS = ("why", "fix", "tried", "need", "fits", "less", "else", "open", "note", "cards", "ran", "held")
LINES, COLUMNS, FRAMES, ROWS, ALSO = 24, 80, 4, 9, 3
SIZE = r"\d[\d.]* (?:B|[KMGTP]iB)(?![\w/])"
PLACE = r"[\w.+<>-]+\.\w+:\d+"
# Words of our own trade, and amounts that a larger unit says shorter.
UNKNOWN = re.compile(r"step_#|\bvia\b|\brounds?\b|\bhighest own figure|\bplaces?\b|\bowners?\b|(?<!-)\bholders?\b|\b\w+_at_step\b|\bfree_leak\b|\bstate_8bit\b"
                     r"|\bkept by PyTorch, unused|\b\d{4,} [KMGT]iB")


def split(screen):
    """(title, verdicts, labels, stack, rows, also, next): each a list of (line's number, text, ...)."""
    title, verdicts, labels, stack, rows, also, commands, part = [], [], [], [], [], [], [], None
    for number, line in enumerate(screen.splitlines(), 1):
        head = re.match(r"(%s)   (.*)" % "|".join(sorted(BAD + FINE, key=len, reverse=True)), line)
        label = re.match(r"  (%s)( +|$)(.*)" % "|".join(LABELS), line)
        if head:
            verdicts.append((number, head[2], head[1]))
            part = verdicts
        elif line.startswith(("also   ", "next   ", "report ")):
            part = {"a": also, "n": commands, "r": None}[line[0]]
            if part is not None:
                part.append((number, line[7:]))
        elif part in (also, commands) and part is not None and line.startswith("       "):
            part.append((number, line[7:]))
        elif not verdicts:
            title.append((number, line))
        elif label:
            labels.append((number, label[3], label[1]))
            part = labels
        elif part is labels and line.startswith(" " * 9):
            labels[-1] = (labels[-1][0], labels[-1][1] + " " + line.strip(), labels[-1][2])
        elif re.match(r" {1,6}\d+(\.\d+)?  \S", line) and not re.match(r"  \S+:\d", line):
            rows.append((number, *re.match(r" +(\d+(?:\.\d+)?)  (.*)", line).groups()))
            part = rows
        elif re.match(r"  \S+(:\d+|\+0x[0-9a-f]+)(  |$)", line):
            stack.append((number, line))
            part = stack
        elif part is verdicts and line.startswith("     "):
            verdicts[-1] = (verdicts[-1][0], verdicts[-1][1] + " " + line.strip(), verdicts[-1][2])
    return title, verdicts, labels, stack, rows, also, commands


def of_head(number, said, word, labels, commands):
    clause = re.sub(r"\S+:\d+", "", said)
    has = {label for _, _, label in labels}
    if not said:
        yield number, "the verdict says nothing"
    if re.search(r";|: |\((?!\))", clause):
        yield number, "the headline has a clause too many"
    if len(re.findall(SIZE, said)) > 2:
        yield number, "more than two sizes in the headline"
    if word in BAD and "why" not in has:
        yield number, "a verdict without why"
    decides = "open" in has and any(re.match("stormlog-(run|top)", command) for _, command in commands)
    if word in BAD and "fix" not in has and not decides:
        yield number, "a verdict and nothing to do"


def of_labels(labels):
    for number, text, label in labels:
        if not text.strip():
            yield number, "%s says nothing" % label
        if label == "fix" and re.search(r"\bthere[.]?$", text):
            yield number, "the fix points at nothing"
        if label != "note" and re.search(r"\d\.0+ (?:B|[KMGT]iB)", text):
            yield number, "zeros that mean nothing"


def of_table(rows):
    if len(rows) < 2:
        return
    (number, total, _), parts = rows[0], rows[1:]
    digits = len(total.partition(".")[2])
    if any(len(amount.partition(".")[2]) != digits for _, amount, _ in parts):
        yield number, "rows of mixed precision"
    if abs(float(total) - sum(float(amount) for _, amount, _ in parts)) > 0.5 * 10 ** -digits:
        yield number, "the rows do not add up to %s" % total
    if len(parts) > ROWS:
        yield number, "%d rows" % len(parts)
    for number, amount, rest in parts:
        if not float(amount) and "  " not in rest.strip():
            yield number, "a row of nothing"
        if re.search(r", [^,]*[^ ]…$", rest):
            yield number, "half of a place"
        if re.search(r"not ours.* free\b", rest):
            yield number, "what is free is nobody's"


def of_repeats(verdicts, also, lines):
    told = [place for _, text in also for place in re.findall(PLACE, text)]
    seen = {}
    if len(also) > ALSO:
        yield also[0][0], "more than three other verdicts"
    if len(told) != len(set(told)) or any(place in verdicts[0][1] for place in told):
        yield also[0][0], "a line is told twice"
    for number, line in enumerate(lines, 1):
        key = line.strip()
        if len(key) > 30 and key in seen:
            yield number, "said twice"
        seen[key] = number


def breaks(screen):
    """["4: more than two sizes in the headline", ...]"""
    lines = screen.rstrip("\n").split("\n")
    title, verdicts, labels, stack, rows, also, commands = split(screen)
    found = []
    if len(lines) > LINES:
        found.append((len(lines), "more than %d lines" % LINES))
    if len(verdicts) != 1:
        return ["1: %d open verdicts" % len(verdicts)]
    if not any(text.strip() for _, text in title):
        found.append((1, "no title"))
    found += of_head(*verdicts[0], labels, commands)
    found += of_labels(labels)
    found += of_table(rows)
    found += of_repeats(verdicts, also, lines)
    parts = [part[0][0] for part in (title, verdicts, stack, labels, rows, also, commands) if part]
    if parts != sorted(parts):
        found.append((1, "parts in another order"))
    if len(stack) > FRAMES:
        found.append((stack[0][0], "%d frames" % len(stack)))
    foreign = [text for _, text in stack if re.search("(site|dist)-packages/", text)]
    if foreign and len(foreign) < len(stack):
        found.append((stack[0][0], "a library's frame beside the program's own"))
    code = {number for part in (stack, also, commands) for number, *_ in part}
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and not line.startswith(("next   ", "report ", "       ")):
            found.append((number, "%d columns" % len(line)))
        if line.count("<- ") > 1:
            found.append((number, "two marks"))
        if number not in code and not line.startswith("report ") and UNKNOWN.search(line):
            found.append((number, "a reader does not know: %s" % UNKNOWN.search(line)[0]))
    return ["%d: %s" % one for one in sorted(set(found))]
