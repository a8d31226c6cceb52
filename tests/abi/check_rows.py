#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the rows of agent/hooks with the vendors' own headers.

For each set of headers: every prototype of a row equals the declaration (_Static_assert by the compiler), every
structure of agent/vendor_abi.h has the vendor's sizes and offsets, every function that allocates, frees or documents
out of memory has a row or a reason in left_out.txt, and the version table is that of cudaTypedefs.h.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
CC = os.environ.get("CC", "cc").split()

# Rows that forward the registers of several majors: the declaration may be shorter or name other types for them.
UNIONS = {
    "cudaGraphAddNode": "5 arguments in 12, 6 in 13",
    "cudaGraphInstantiate": "5 arguments in 11, 3 since",
    "cudaGetDriverEntryPoint": "3 arguments in 11, 4 since",
    "cudaGetDriverEntryPoint_ptsz": "3 arguments in 11, 4 since",
    "hipGetDeviceProperties": "the older layout keeps the name",
}

HOST_DEFINES = """
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __forceinline__
#define __inline__ inline
#define __noinline__
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cuda_builtin_vector_align8(tag, members) struct __attribute__((aligned(8))) tag { members }
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __annotate__(a)
#define __location__(a)
#define __specialization_static static
#define CUDARTAPI
#define CUDARTAPI_CDECL
"""


class Headers:
    """One version of one vendor's headers."""

    def __init__(self, kind, include, scratch):
        self.kind, self.include, self.scratch = kind, include, scratch
        defines = ["-D__CUDA_API_VERSION_INTERNAL"] if kind != "hip" else ["-D__HIP_PLATFORM_AMD__", "-D__HIP_PLATFORM_HCC__"]
        self.flags = [*defines, "-w", "-D_GNU_SOURCE", "-std=gnu11", "-I", include, "-idirafter", scratch]
        self.header = {"driver": "cuda.h", "runtime": "cuda_runtime_api.h", "hip": "hip/hip_runtime_api.h"}[kind]
        self.text = compile_text(f"#include <{self.header}>\n", [*self.flags, "-E", "-P"])
        self.names = set(re.findall(r"\b(\w+)\s*\(", self.text))
        self.words = set(re.findall(r"\w+", self.text))
        self.source = open(os.path.join(include, self.header), errors="replace").read()

    def version(self):
        names = {"driver": "CUDA_VERSION", "runtime": "CUDART_VERSION", "hip": "HIP_VERSION"}
        out = compile_text(f"#include <{self.header}>\n@@ {names[self.kind]}\n", [*self.flags, "-E", "-P"])
        return eval(out.rsplit("@@", 1)[1])  # a sum of products of numbers

    def major(self):
        return self.version() // (10000000 if self.kind == "hip" else 1000)


def compile_text(text, flags, output=None):
    done = subprocess.run([*CC, "-x", "c", *flags, "-", *(["-o", output] if output else [])], input=text, text=True,
                          capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr[:4000])
    return done.stdout


def rows():
    """(family, return type, name, prototype) of every row, by the preprocessor itself."""
    text = '#include "agent/hooks/verbs.h"\n'
    text += "#define ROW(verb, kind, ret, name, proto, ...) @@ROW_FAMILY|ret|name|proto@@\n"
    text += "#define LOOKUP(ret, name, proto, ...) @@ROW_FAMILY|ret|name|proto@@\n"
    text += "#define QUERY(ret, name, proto, ...) @@ROW_FAMILY|ret|name|proto@@\n#define ALSO(...)\n"
    text += '#include "agent/hooks/all.def"\n'
    found = []
    for row in re.findall(r"@@(.*?)@@", compile_text(text, ["-E", "-P", "-I", ROOT]), re.S):
        family, ret, name, prototype = " ".join(row.split()).split("|")
        found.append((family.strip(), ret.strip(), name.strip(), prototype.strip()))
    return found


def check_prototypes(headers, table):
    family = {"driver": "cuda_driver", "runtime": "cuda_runtime", "hip": "hip"}[headers.kind]
    mine = [row for row in table if row[0] == family and row[2] in headers.names]
    text = f"#include <{headers.header}>\n"
    for _, ret, name, prototype in mine:
        if name in UNIONS:
            continue
        prototype = "(void)" if prototype == "()" else prototype
        text += f'_Static_assert(__builtin_types_compatible_p(__typeof__({name}), {ret} {prototype}), "{name}");\n'
    done = subprocess.run([*CC, "-x", "c", *headers.flags, "-fsyntax-only", "-"], input=text, text=True, capture_output=True)
    wrong = [line for line in done.stderr.splitlines() if "error" in line]
    return len(mine), [f"prototype: {line}" for line in wrong]


def layout_lines(headers):
    """SIZE(type) and OFFSET(type, member) for what vendor_abi.h describes and these headers have."""
    lines = []
    for line in open(os.path.join(HERE, "layout.txt")):
        words = line.split("#")[0].split()
        kind, since = re.match(r"([a-z]*)(\d*)", words[0] if words else "").groups()
        if kind != headers.kind or (since and headers.major() < int(since)):
            continue
        kind_type = " ".join(words[1].split("."))
        if kind_type.split()[-1] in headers.words:
            lines += [f"sizeof({kind_type})"] if words[0].endswith("*") else []
            for member in words[2:]:
                optional = member.endswith("?")
                if not optional or member[:-1] in headers.words:
                    lines.append(f"offsetof({kind_type}, {member.rstrip('?')})")
    abi = open(os.path.join(ROOT, "agent/vendor_abi.h")).read()
    prefix = {"driver": ("CU", "cuuint"), "runtime": ("cuda",), "hip": ("hip",)}[headers.kind]
    for macro, name in re.findall(r"^(NUMBER|NUMBERED|HANDLE)\((\w+)\)", abi, re.M):
        if name.startswith(prefix) and name in headers.words:
            lines.append(f"sizeof({'enum ' if macro == 'NUMBERED' else ''}{name})")
    return lines


def numbers(include, flags, lines, scratch):
    text = f"#include <stddef.h>\n#include <stdio.h>\n#include {include}\nint main(void)\n{{\n"
    text += "".join(f'\tprintf("%zu\\n", {line});\n' for line in lines) + "\treturn 0;\n}\n"
    program = os.path.join(scratch, "layout")
    compile_text(text, flags, program)
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()


def check_layout(headers):
    lines = layout_lines(headers)
    ours = numbers('"agent/vendor_abi.h"', ["-I", ROOT, "-w"], lines, headers.scratch)
    theirs = numbers(f"<{headers.header}>", headers.flags, lines, headers.scratch)
    return len(lines), [f"layout: {line} is {b}, ours {a}" for line, a, b in zip(lines, ours, theirs) if a != b]


def documented(source):
    """Functions whose documentation lists out of memory."""
    found = set()
    for part in source.split("/**")[1:]:
        comment, _, code = part.partition("*/")
        code = code.split(";")[0][:600]
        name = re.search(r"\b((?:cu|cuda|hip)[A-Z]\w*)\s*\(", code)
        if name and re.search(r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|hipErrorMemoryAllocation",
                              comment):
            found.add(name.group(1))
    return found


MEMORY_NAME = re.compile(
    r"^(cu|cuda|hip)(Ext)?(Malloc|Free|Mem(Alloc|Free|Host|Create|Release|Map|Unmap|Pool|Address|Import|Export|Retain)"
    r"|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister|Array(3D)?(Create|Destroy)|MipmappedArray(Create|Destroy)"
    r"|Multicast|Ipc\w*Mem|ImportExternalMemory|ExternalMemory|DestroyExternalMemory|Ctx(Create|Destroy|Detach)|GreenCtx(Create|Destroy)"
    r"|DevicePrimaryCtx(Retain|Release|Reset)|DeviceReset|ModuleLoad|ModuleUnload|LibraryLoad|LibraryUnload"
    r"|GraphAddMem(Alloc|Free)|GraphAddNode|GraphInstantiate|GraphLaunch|GraphExecDestroy|GraphDestroy|DeviceGraphMemTrim)")


def left_out():
    patterns = []
    for line in open(os.path.join(HERE, "left_out.txt")):
        words = line.split("#")[0].split()
        patterns += words
    return re.compile("^(" + "|".join(patterns) + ")$")


def check_coverage(headers, table):
    have = {row[2] for row in table}
    bases = {re.sub(r"(_v\d+)?(_ptsz|_ptds|_spt)?$", "", name) for name in have}
    skip = left_out()
    returns = {"driver": "CUresult", "runtime": "cudaError_t", "hip": "hipError_t"}[headers.kind]
    declared = set(re.findall(r"\b%s\s+(\w+)\s*\(" % returns, headers.text))
    missing = {name for name in declared if MEMORY_NAME.match(name) and name not in have and not skip.match(name)}
    # The documentation is of the base name; its forms are declared, and compared above, by themselves.
    missing |= {name for name in documented(headers.source)
                if name not in have and re.sub(r"_v\d+$", "", name) not in bases and not skip.match(name)}
    return len(declared), [f"no row: {name}" for name in sorted(missing)]


def check_versions(headers):
    path = os.path.join(headers.include, "cudaTypedefs.h")
    if headers.kind != "driver" or not os.path.exists(path):
        return 0, []
    source = open(path).read()
    listed = {}
    text = open(os.path.join(ROOT, "agent/hooks/variants.def")).read()
    for form, base, version, export in re.findall(r"^VARIANT(\w*)\((cu\w+), (\d+)(?:, (\w+))?\)", text, re.M):
        listed.setdefault(base, {})[int(version), form == "_PER_THREAD"] = export
    vendor = {}
    for base, version, form in re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", source):
        vendor.setdefault(base, set()).add((int(version), bool(form)))
    have = {row[2] for row in rows()}
    bases = {re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", name) for name in have}
    wrong = []
    for base in sorted(bases & set(vendor)):
        if len(vendor[base]) > 1 and not vendor[base] <= set(listed.get(base, {})):
            wrong.append(f"versions: {base} has {sorted(vendor[base])}, ours {sorted(listed.get(base, {}))}")
        plain = sorted(version for version, form in listed.get(base, {}) if not form)
        for (version, form), export in listed.get(base, {}).items():
            rank = "" if form or plain.index(version) == 0 else f"_v{plain.index(version) + 1}"
            if export and export != base + rank + ("_ptsz" if form else ""):
                wrong.append(f"versions: {base} {version} is {export}")
    return len(vendor), wrong


def check(kind, include, scratch, table):
    headers = Headers(kind, include, scratch)
    bad = []
    counts = []
    for what, result in (("prototypes", check_prototypes(headers, table)), ("sizes and offsets", check_layout(headers)),
                         ("declared", check_coverage(headers, table)), ("versioned", check_versions(headers))):
        counts.append(f"{result[0]} {what}")
        bad += result[1]
    print(f"{kind} {headers.version()}: {', '.join(counts)}, {len(bad)} wrong  ({include})")
    for line in bad:
        print("   ", line)
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuda", action="append", default=[], help="include folder of a CUDA toolkit or runtime wheel; a glob")
    parser.add_argument("--hip", action="append", default=[], help="include folder of HIP")
    args = parser.parse_args()
    folders = [("cuda", f) for pattern in args.cuda for f in sorted(glob.glob(pattern))]
    folders = [(k, f) for k, f in folders if os.path.exists(os.path.join(f, "cuda.h"))]
    folders += [("hip", f) for f in args.hip if os.path.exists(os.path.join(f, "hip/hip_runtime_api.h"))]
    if not folders:
        print("no headers of a vendor here: nothing to compare with")
        return 77
    table = rows()
    print(len(table), "rows")
    scratch = tempfile.mkdtemp()
    os.mkdir(os.path.join(scratch, "crt"))
    with open(os.path.join(scratch, "crt", "host_defines.h"), "w") as out:
        out.write(HOST_DEFINES)
    os.mkdir(os.path.join(scratch, "hip"))
    with open(os.path.join(scratch, "hip", "hip_version.h"), "w") as out:
        out.write("#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 3\n#define HIP_VERSION_PATCH 0\n#define HIP_VERSION 60300000\n")
    good = True
    for family, folder in folders:
        for kind in ("driver", "runtime") if family == "cuda" else ("hip",):
            good &= check(kind, folder, scratch, table)
    shutil.rmtree(scratch)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
