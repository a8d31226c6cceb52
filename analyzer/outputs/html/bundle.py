#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bundle.py SOURCE WORK OUT.c SERVED.c: the page as two strings of C, what goes before the data and what goes after it; and
without data, for a server: gzip, and the policy that its header has.

WORK holds node_modules, made by fetch.py from the lock file.  Styles and script are bundled by esbuild."""
import base64
import gzip
import hashlib
import pathlib
import subprocess
import sys


FILE = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src data:; img-src data:"
# Only the script of the page itself runs, whatever the data would put into the page.
SERVED = ("default-src 'none'; script-src 'sha256-%s'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none';"
          " frame-ancestors 'none'")


def esbuild(work, *arguments):
    return subprocess.run([work / "node_modules/.bin/esbuild", "--bundle", "--minify", "--charset=ascii",
                           "--log-level=warning", *arguments], check=True, cwd=work, stdout=subprocess.PIPE, text=True).stdout


def c_bytes(name, data, kind="char"):
    data += b"\0"
    lines = (",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32))
    return f"const {kind} {name}[] = {{\n" + ",\n".join(lines) + "};\n" + f"const size_t {name}_size = sizeof({name}) - 1;\n"


def main():
    source, work, out, served = map(pathlib.Path, sys.argv[1:])
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
    script = script.replace("@DATA@", "")
    page = page.replace("@CSS@", style).replace("@SCRIPT@", script)
    before, after = page.replace("@POLICY@", f'<meta http-equiv="Content-Security-Policy" content="{FILE}">').split("@DATA@")
    out.write_text("/* Made by bundle.py. */\n#include <stddef.h>\n\n#include \"analyzer/outputs/html/template.h\"\n\n"
                   + c_bytes("sl_html_before", before.encode()) + c_bytes("sl_html_after", after.encode()))
    policy = SERVED % base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    served.write_text("/* Made by bundle.py. */\n#include \"tools/server/server.h\"\n\nconst char sl_served_policy[] = \"" + policy + "\";\n"
                      + c_bytes("sl_served_page", gzip.compress(page.replace("@POLICY@\n", "").replace("@DATA@", "").encode(), mtime=0), "unsigned char"))


main()
