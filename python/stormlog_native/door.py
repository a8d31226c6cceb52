# SPDX-License-Identifier: MIT
"""Names of a trace leave through here, as they leave the analyzer through analyzer/base/escape.c: they are read as text, and steer nothing."""
import re

# Control characters, line separators, halves of pairs, tags, and characters that change the direction of text.
STEERS = "\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb\ufffe\uffff\U0001d173-\U0001d17a\U000e0000-\U000e007f"
# Characters that hide text or are not seen, with a place in honest names.
HIDES = "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u2060-\u2065\u3164\ufeff\uffa0\U0001bca0-\U0001bca3\U000e0080-\U000e0fff"
FORMULA = "=+@\t\r\uff1d\uff0b\uff0d\uff20\\-"  # full-width forms are taken for the signs themselves
STEERING, SHOWN = re.compile("[%s]" % STEERS), re.compile("[%s%s]" % (STEERS, HIDES))


def text(name: str) -> str:
    """The name for a form that holds texts of their own, such as a column of Parquet."""
    return STEERING.sub("?", name)


def _shown(name: str) -> str:
    return re.sub("#(?=#)", "# ", SHOWN.sub("?", name))


def line(name: str) -> str:
    """The name in one line: "##" and "::" at its beginning, with which commands of CI runners begin, are parted."""
    return re.sub(r"^(\s*:):", r"\1 :", _shown(name))


def cell(name: str) -> str:
    """The name as a cell of CSV, which csv.writer quotes: no formula, also where ";" separates cells, and no command."""
    begins = "'" if re.match(r"[%s]|\s*::" % FORMULA, name) else ""
    return begins + re.sub(r";(?=[\s\"]*[%s])" % FORMULA, ";'", _shown(name))
