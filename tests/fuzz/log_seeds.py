#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""log_seeds.py FOLDER [PROGRAM ROUNDS]: the logs of tests/logs, mutated by PROGRAM so many times each."""
import os
import re
import subprocess
import sys

LOGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "logs")
sys.path.insert(0, LOGS)

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
seeds = []


def keep(name, content, **_):
    for one in content if isinstance(content, list) else [content]:
        if len(one) < 1 << 20:
            seeds.append(os.path.join(folder, str(len(seeds))))
            with open(seeds[-1], "wb") as file:
                file.write(one if isinstance(one, bytes) else one.encode())


with open(os.path.join(LOGS, "test_forms.py"), encoding="utf-8") as file:
    text = file.read()
body = text[text.index("CARD = "):text.index("for name, content in ((\"a core file\"")]
exec("import gzip, json, lzma, os\nfrom printed import *\n" + body, {"case": keep, "__name__": "seeds"})
with open(os.path.join(LOGS, "..", "..", "analyzer", "logs", "forms.def"), encoding="utf-8") as file:
    keep("rows", re.sub(r"[{}\[\]!*]", " 7 GiB ", file.read()))
if len(sys.argv) > 3:
    sys.exit(subprocess.run([sys.argv[2], sys.argv[3], *seeds]).returncode)
