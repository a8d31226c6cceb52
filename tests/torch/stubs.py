#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stand-ins for NVIDIA's libraries, made from what PyTorch's real libraries import.

    stubs.py OUT SIM ROOT LIBRARY...

Writes to OUT every NEEDED library of the closure of LIBRARY that neither ROOT nor the simulator SIM has.  It has the
soname and every function that is imported from it; each returns 0.  Functions that must do more are in stubs.c.
Nothing of NVIDIA's is read or needed.  Prints one line per library.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/blas", "usr/lib/x86_64-linux-gnu/lapack", "usr/lib")


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], capture_output=True, text=True, check=True).stdout


class Library:
    """needed sonames, imports [(name, version, weak)], exports {name}, and for each version node the file it belongs to."""

    def __init__(self, path):
        self.needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))
        self.node_of, file = {}, None
        for line in readelf("-V", path).splitlines():
            if (match := re.search(r"Version: \d+  File: (\S+)", line)):
                file = match[1]
            elif file and (match := re.search(r"Name: (\S+)  Flags", line)):
                self.node_of[match[1]] = file
        self.imports, self.exports = [], set()
        for line in readelf("--dyn-syms", path).splitlines():
            field = line.split()
            if len(field) < 8 or not field[0].endswith(":"):
                continue
            name, _, version = field[7].partition("@")
            if field[6] == "UND":
                self.imports.append((name, version.lstrip("@"), field[4] == "WEAK"))
            else:
                self.exports.add(name)


def find(name, folders):
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return os.path.realpath(path)
    return None


def closure(start, folders):
    """({path: Library}, missing sonames)"""
    have, missing, todo = {}, set(), [os.path.realpath(path) for path in start]
    while todo:
        path = todo.pop()
        if path in have:
            continue
        have[path] = Library(path)
        for soname in have[path].needed:
            found = find(soname, folders)
            if found:
                todo.append(found)
            else:
                missing.add(soname)
    return have, missing


def build(out, soname, version, names):
    """Builds one library; `version` is its version node, None if it has none."""
    with tempfile.TemporaryDirectory() as work:
        source, script = os.path.join(work, "stub.c"), os.path.join(work, "map")
        with open(source, "w") as file:
            file.writelines("__attribute__((weak)) long %s(void) { return 0; }\n" % name for name in sorted(names))
        with open(script, "w") as file:
            file.write("%s{ global: %s local: *; };\n"
                       % (version + " " if version else "", "".join("%s; " % name for name in sorted(names))))
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-fno-builtin", "-w",
                        "-Wl,--version-script=" + script, "-Wl,-soname," + soname, "-o", os.path.join(out, soname),
                        source, os.path.join(HERE, "stubs.c")], check=True)


def main():
    out, sim, root, *start = sys.argv[1:]
    folders = [sim] + [os.path.join(root, folder) for folder in FOLDERS]
    libraries, missing = closure(start, folders)
    exported = set().union(*(library.exports for library in libraries.values()))
    wanted = {soname: {} for soname in missing}  # soname: {node or None: names}
    homeless = set()
    for library in libraries.values():
        for name, version, weak in library.imports:
            soname = library.node_of.get(version)
            if soname in wanted:
                wanted[soname].setdefault(version, set()).add(name)
            elif not version and not weak and name not in exported:
                homeless.add(name)
    if homeless:  # imported without a version node, so no library is named: one missing library gets them all
        first = min((s for s in missing if not wanted[s]), default=None)
        if first is None:
            sys.exit("no library for: %s" % " ".join(sorted(homeless)))
        wanted[first][None] = homeless
    os.makedirs(out, exist_ok=True)
    for soname, nodes in sorted(wanted.items()):
        if len(nodes) > 1:
            sys.exit("%s: several version nodes: %s" % (soname, " ".join(map(str, nodes))))
        version, names = next(iter(nodes.items()), (None, {"stub_of_" + re.sub(r"\W", "_", soname)}))
        build(out, soname, version, names)
        print("%-28s %4d functions" % (soname, len(names)))


if __name__ == "__main__":
    main()
