# SPDX-License-Identifier: MIT
"""Pages as a reader meets them: commands, and what is shown below them."""
import json
import re
import shlex
from dataclasses import dataclass, field

import yaml

PROGRAM = re.compile(r"(?:[A-Z_]+=\S* )*(?:stormlog-\w+|srun|kubectl|pip|python3?|git|docker|conda|apt|\./\S+|scripts/\S+)(?: |$)")
INLINE = re.compile(r"(?:[A-Z_]+=\S* )*(?:stormlog-\w+|srun|python) ") # in a sentence, with arguments


@dataclass
class Block:
    """A fenced block, or a command in a sentence."""
    commands: list = field(default_factory=list)  # [(command, what the page shows below it)]
    shown: str = ""  # the whole block, where it has no command


def of_yaml(value):
    """Commands of workflows, {"run": text}, and of manifests, {"command": words}."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key == "run" and isinstance(one, str):
                yield from one.strip().splitlines()
            elif key == "command" and isinstance(one, list):
                yield shlex.join(one)
            else:
                yield from of_yaml(one)
    elif isinstance(value, list):
        for one in value:
            yield from of_yaml(one)


def fenced(language, text):
    block = Block()
    if language == "yaml":
        block.commands = [(command, "") for one in yaml.safe_load_all(text) for command in of_yaml(one)]
    elif language == "json":  # of an assistant, which starts a server
        block.commands = [(shlex.join([one["command"], *one["args"]]), "") for one in json.loads(text)["mcpServers"].values()]
    elif text.startswith("#!"):
        block.commands = [(text, "")]
    elif re.search(r"^\$ ", text, re.M):
        parts = re.split(r"^\$ (.*)\n", text, flags=re.M)
        block.commands = list(zip(parts[1::2], parts[2::2]))
    elif language == "sh" or all(PROGRAM.match(line) for line in text.strip().splitlines()):
        block.commands = [(line, "") for line in text.strip().splitlines()]
    else:
        block.shown = text
    return block


def read(path, first_page):
    """The blocks of a page in their order; first_page: only those before the second heading."""
    text = path.read_text()
    if first_page:
        text = "\n## ".join(text.split("\n## ")[:2])
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$|(?<!`)`([^`\n]+)`(?!`)", text, re.M | re.S):
        language, block, inline = found.groups()
        if inline is None:
            yield fenced(language, block)
        elif INLINE.match(inline):
            yield Block([(inline, "")])
