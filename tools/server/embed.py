#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py OUT.c FILE...: files as bytes of C, for tools/server/server.h."""
import pathlib
import sys

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


def main():
    out, rows = ['/* Made by embed.py. */\n#include "tools/server/server.h"\n'], []
    for number, path in enumerate(map(pathlib.Path, sys.argv[2:])):
        data = path.read_bytes()
        lines = ",\n".join(",".join(map(str, data[at:at + 32])) for at in range(0, len(data), 32))
        out.append(f"static const unsigned char bytes{number}[] = {{\n{lines}}};\n")
        rows.append(f'\t{{"{path.name}", "{TYPES[path.suffix]}", bytes{number}, sizeof(bytes{number})}},\n')
    pathlib.Path(sys.argv[1]).write_text("\n".join(out) + "\nconst struct sl_asset sl_assets[] = {\n" + "".join(rows) + "\t{0},\n};\n")


main()
