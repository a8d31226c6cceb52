#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rewrites stubs/*.def from what PyTorch's wheels import; run by hand, its output is committed.

    gen-stubs.py SITE_PACKAGES...

Each folder holds an installed PyTorch of CUDA's build with NVIDIA's packages, and what else is to run (vLLM).  Names come from the import tables of all libraries there;
which argument a function writes comes from the prototypes in NVIDIA's headers.  Rows of earlier runs stay: a name is never lost.
"""
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent / "stubs"
# The longest prefix wins.
LIBRARIES = ("cublas", "cublasLt", "cudnn", "cuFile", "cufft", "curand", "cusolver", "cusparse", "cusparseLt", "nccl", "nvshmem")
HEADERS = re.compile(r"(cublas\w*|cufile|cufft\w*|curand|cusolver\w*|cusparse\w*|nccl|cudnn\w*)\.h")
# Arguments that the System V ABI of x86-64 passes in vector registers.
VECTOR = re.compile(r"(const )?(float|double|cu(Float|Double)?Complex)( \w+)?")
SIZES = re.compile(r"[bB]ufferSize|_getBuf|SpaceSizes?|StatesSize|WorkspaceSize|Size$")


def imports(folder):
    """Names that libraries below the folder import from NVIDIA's."""
    found = set()
    for path in folder.rglob("*.so"):
        if path.relative_to(folder).parts[0] == "nvidia":  # ours take the place of these
            continue
        listing = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True, text=True).stdout
        for line in listing.splitlines():
            field = line.split()
            if len(field) > 7 and field[6] == "UND":
                found.add(field[7].partition("@")[0])
    return {name for name in found if library(name)}


def library(name):
    found = [prefix for prefix in LIBRARIES if re.match(prefix + r"[A-Z_]", name) or (prefix == "nvshmem" and name.startswith(prefix))]
    return max(found, key=len, default=None)


def headers(folder):
    text = ""
    for path in sorted([*folder.glob("nvidia/*/include/*.h"), *folder.glob("cusparselt/include/*.h")]):
        if HEADERS.fullmatch(path.name):
            text += re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(errors="replace"), flags=re.S)
    return text


def outputs(name, text):
    """What the function writes, as the macros of stub.c name it."""
    match = re.search(r"\b%s\s*\(([^;{]*?)\)\s*;" % re.escape(name), text, re.S)
    found, at = [], -1
    for parameter in match[1].split(",") if match else []:
        parameter = " ".join(parameter.split())
        pointer = "*" in parameter or "[" in parameter
        if not pointer and VECTOR.fullmatch(parameter):
            continue
        at += 1
        base = parameter.split("*")[0].split("[")[0].strip()
        if not pointer or base.startswith("const") or base.endswith("const"):
            continue
        if SIZES.search(name) or ("Get" in name and base in ("int", "size_t", "unsigned")):
            found += {"int": ["INT(%d)" % at], "unsigned": ["INT(%d)" % at], "size_t": ["SIZE(%d)" % at],
                      "int64_t": ["SIZE(%d)" % at]}.get(base, [])
        elif re.search(r"Get(Math|Pointer)Mode", name):
            found.append("INT(%d)" % at)
        elif base == "cufftHandle" and re.search(r"Create|Plan", name):
            found.append("PLAN(%d)" % at)
        elif re.search(r"Create|Init\b|CommInit|CommSplit", name) and re.search(r"_t|Params_t|Info_t", base) or base == "CUfileHandle_t":
            found.append("HANDLE(%d)" % at)
    return " ".join(found)


def main():
    rows = {}
    for path in HERE.glob("*.def"):
        for name, out in re.findall(r"^STUB\((\w+), ?(.*)\)$", path.read_text(), re.M):
            rows[name] = out
    for folder in map(Path, sys.argv[1:]):
        text = headers(folder)
        for name in imports(folder):
            rows[name] = outputs(name, text) or rows.get(name, "")
    for name in rows:
        if "Destroy" in name and rows.get(name.replace("Destroy", "Create")) == "HANDLE(0)":
            rows[name] = "FREE"
    for prefix in LIBRARIES:
        lines = ["/* SPDX-License-Identifier: MIT */\n", "/* Written by gen-stubs.py: STUB(name, what it writes), see stub.c. */\n"]
        lines += ["STUB(%s, %s)\n" % (name, out) if out else "STUB(%s, )\n" % name for name, out in sorted(rows.items()) if library(name) == prefix]
        (HERE / (prefix.lower() + ".def")).write_text("".join(lines))
        print("%-12s %4d" % (prefix, len(lines) - 2))


main()
