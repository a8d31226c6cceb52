# SPDX-License-Identifier: MIT
"""When an answer is right: the rule of doc/diagnosis.md, which holds for a screen and for report.json."""
import os
import re

LINES, COLUMNS = 30, 100

LEAK = r"\bLEAKS?\b|\bkeeps? |\bleak(s|ed|ing)?\b|\bGROWTH\b|\bgrow(s|th|ing|n)?\b|\bgrew\b|\b(never|not) (freed|destroyed|released|closed|unloaded|unmapped|given back)\b"
OOM = r"OUT OF MEMORY|\bout of memory\b|\boom\b"
RANK = r"\bRANKS?\b|\branks?\b"
# class: patterns that must all stand in the block or finding that names the place.
CLASSES = {
    "leak": [LEAK],
    "oom-growth": [OOM, LEAK],
    "oom-spike": [OOM, r"\bspike|\btimes\b|more than (any|before|the step|usual|other)|largest (request|allocation|step)|one (step|request|allocation)\b|\b(at|in) once\b"],
    "oom-fragmented": [OOM, r"\bfragment"],
    "oom-neighbour": [OOM, r"\b(other|another) process|\bneighbou?r"],
    "oom-limit": [OOM, r"\blimit"],
    "spike": [r"\bSPIKE|\bspike|\btimes\b|more than (any|usual|(the )?others?)\b"],
    "rank": [RANK, r"\boutlier|\bunlike\b|\bmore than (the )?others\b|\bdiffers?\b"],
    "rank-leak": [RANK, LEAK],
    "stray": [r"\bstray\b"],
    "hidden": [r"\bHIDDEN\b|\bhidden\b"],
}
RECORDED = ("run", "processes")  # what was recorded: findings may stand in it
# What Python Stormlog says of samples, by its own rules: alerts of its own, no findings of ours. It adds up the ranks of a device, so what
# it says of a device that two processes use depends on when each came.
UPSTREAM = ("telemetry", "gap_findings", "collective_attribution", "cross_rank")


WORDS = "OUT OF MEMORY|NEARLY OUT OF MEMORY|DOES NOT FIT|DOES NOT START|LEAK|GROWS|HIDDEN|UNEVEN|HOST MEMORY|FAILED"
FINE = "OK|FITS|MAY FIT|HELD|RUNNING|NOT AN ERROR|NOTHING"


def blocks(screen):
    """The first screen's blocks: the open verdict up to `also`, and each verdict of `also`."""
    found, below = [], False
    for line in screen.splitlines()[:LINES]:
        also = re.match(r"(?:also|    )   (?=(%s)  )" % WORDS, line)
        if also:
            found.append([line[also.end():]])
            below = True
        elif re.match(r"(%s|%s)(  |$)" % (WORDS, FINE), line):
            found.append([line])
        elif re.match(r"(next|report) ", line):
            below = True
        elif found and not below:
            found[-1].append(line)
    return ["\n".join(block) for block in found]


def is_named(place, text):
    file, line = place
    return re.search(r"(?<![\w.])%s:%d(?!\d)" % (re.escape(file), line), text) is not None


def has_words(program, text, flags=0):
    patterns = CLASSES[program.cls] + ([program.noun] if program.noun else [])
    return all(re.search(pattern, text, flags) for pattern in patterns)


def on_screen(program, screen):
    """Whether one block has both the class words and the place; and whether the place is the first that it names."""
    right = first = False
    for block in blocks(screen):
        if has_words(program, " ".join(block.split())) and any(is_named(place, block) for place in program.places()):
            right = True
            named = re.search(r"[\w.+-]+:\d+", block)
            first |= bool(named) and any(is_named(place, named.group()) for place in program.places())
    return right, first


def findings(report):
    """(section, object) of all that report.json finds: the objects of lists that have a severity or a class, wherever they stand, and those
    of lists outside what was recorded."""
    def walk(node, section, recorded):
        if isinstance(node, dict):
            for key, value in node.items():
                if key not in UPSTREAM:
                    yield from walk(value, key, recorded or key in RECORDED)
        elif isinstance(node, list):
            for element in node:
                if isinstance(element, dict) and (not recorded or "severity" in element or "class" in element):
                    yield section, element
                else:
                    yield from walk(element, section, recorded)
    yield from walk(report, "", False)


def texts(node):
    """Every text in an object, and file:line of every object in it that has a file and a line."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for element in node:
            yield from texts(element)
    elif isinstance(node, dict):
        if isinstance(node.get("file"), str) and isinstance(node.get("line"), int):
            yield "%s:%d" % (os.path.basename(node["file"]), node["line"])
        for value in node.values():
            yield from texts(value)


def in_report(program, report):
    for section, finding in findings(report):
        said = "\n".join([section, *texts(finding)])
        said = re.sub(r"[._]", lambda at: "." if at.group() == "." else " ", said) + "\n" + said  # out_of_memory is three words
        if has_words(program, said, re.I) and any(is_named(place, said) for place in program.places()):
            return True
    return False


def alarms_on_screen(screen):
    return [block for block in blocks(screen) if re.match(r"(%s)\b" % WORDS, block)]


def alarms_in_report(report):
    return ["%s: %s %s: %s" % (section, finding["severity"], finding.get("id", ""), finding.get("description") or finding.get("suggestion"))
            for section, finding in findings(report) if finding.get("severity") in ("warning", "critical")]
