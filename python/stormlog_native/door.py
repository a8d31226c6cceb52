# SPDX-License-Identifier: MIT
"""Names of a trace leave through here, as they leave the analyzer through analyzer/base/door.c: they are read as text, and steer nothing."""
import re

# Control characters, line separators, halves of pairs, tags, and characters that hide text or change its direction.
STEERS = re.compile("[\0-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
                    "\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")


def line(text: str) -> str:
    """The text in one line: "##" and "::" at its beginning, with which commands of CI runners begin, are parted."""
    return re.sub(r"^(\s*:):", r"\1 :", re.sub("#(?=#)", "# ", STEERS.sub("?", text)))
