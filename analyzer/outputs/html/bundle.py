#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bundle.py SOURCE WORK OUT.c: the page as two strings of C, what goes before the data and what goes after it.

WORK holds node_modules, made by fetch.py from the lock file.  Styles and script are bundled by esbuild."""
import pathlib
import subprocess
import sys


def esbuild(work, *arguments):
    return subprocess.run([work / "node_modules/.bin/esbuild", "--bundle", "--minify", "--charset=ascii",
                           "--log-level=warning", *arguments], check=True, cwd=work, stdout=subprocess.PIPE, text=True).stdout


def c_bytes(name, text):
    data = text.encode() + b"\0"
    lines = (",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32))
    return f"const char {name}[] = {{\n" + ",\n".join(lines) + "};\n" + f"const size_t {name}_size = sizeof({name}) - 1;\n"


def main():
    source, work, out = map(pathlib.Path, sys.argv[1:])
    for name in ("src", "page.css", "package.json"):
        link = work / name
        if name != "package.json" and not link.exists():
            link.symlink_to((source / name).resolve())
    script = esbuild(work, "--format=iife", "--target=es2022", "--preserve-symlinks",
                     "--loader:.css=empty", "src/main.js")
    style = (work / "node_modules/uplot/dist/uPlot.min.css").read_text()
    style += esbuild(work, "page.css")
    page = (source / "index.html").read_text()
    assert "</script" not in script and "</style" not in style
    before, after = page.replace("@CSS@", style).replace("@SCRIPT@", script.replace("@DATA@", "")).split("@DATA@")
    out.write_text("/* Made by bundle.py. */\n#include <stddef.h>\n\n#include \"analyzer/outputs/html/template.h\"\n\n"
                   + c_bytes("sl_html_before", before) + c_bytes("sl_html_after", after))


main()
