#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the rows of agent/hooks with the vendors' own headers.

For each set of headers: every prototype of a row equals the declaration (_Static_assert by the compiler), every
structure of common/vendor_abi.h has the vendor's sizes and offsets, every function that allocates, frees or documents
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

# One row for several major versions: it forwards all their registers, so a declaration may be shorter or have other types.
UNIONS = {
    "cudaGraphAddNode": "5 arguments in 12, 6 in 13",
    "cudaGraphInstantiate": "5 arguments in 11, 3 since",
    "cudaGetDriverEntryPoint": "3 arguments in 11, 4 since",
    "cudaGetDriverEntryPoint_ptsz": "3 arguments in 11, 4 since",
    "hipGetDeviceProperties": "the older layout keeps the name",
}

# kind: family of the rows, header, macro of its version, divisor that gives the major version, type of a result, prefixes of its names
KINDS = {
    "driver": ("cuda_driver", "cuda.h", "CUDA_VERSION", 1000, "CUresult", ("CU", "cuuint")),
    "runtime": ("cuda_runtime", "cuda_runtime_api.h", "CUDART_VERSION", 1000, "cudaError_t", ("cuda",)),
    "hip": ("hip", "hip/hip_runtime_api.h", "HIP_VERSION", 10000000, "hipError_t", ("hip",)),
    "hsa": ("hsa", "hsa/hsa_ext_amd.h", "(HSA_AMD_INTERFACE_VERSION_MAJOR*100+HSA_AMD_INTERFACE_VERSION_MINOR)", 100, "hsa_status_t", ("hsa",)),
    "nccl": ("nccl", "nccl.h", "NCCL_VERSION_CODE", 10000, "ncclResult_t", ("nccl",)),
    "rccl": ("nccl", "rccl/rccl.h", "NCCL_VERSION_CODE", 10000, "ncclResult_t", ("nccl",)),
    "nvml": ("nvml", "nvml.h", "NVML_API_VERSION", 1, "nvmlReturn_t", ("nvml",)),
    "rsmi": ("nvml", "rocm_smi/rocm_smi.h", "0", 1, "rsmi_status_t", ("rsmi",)),
    "amdsmi": ("nvml", "amd_smi/amdsmi.h", "(AMDSMI_LIB_VERSION_MAJOR*100+AMDSMI_LIB_VERSION_MINOR)", 100, "amdsmi_status_t", ("amdsmi",)),
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
        self.family, self.header, self.version_is, self.per_major, self.result, self.prefix = KINDS[kind]
        defines = ["-D__CUDA_API_VERSION_INTERNAL", "-D__HIP_PLATFORM_AMD__", "-D__HIP_PLATFORM_HCC__", "-DNVML_NO_UNVERSIONED_FUNC_DEFS"]
        self.flags = [*defines, "-w", "-D_GNU_SOURCE", "-std=gnu11", "-I", include, "-idirafter", scratch]
        self.text = compile_text(f"#include <{self.header}>\n", [*self.flags, "-E", "-P"])
        self.names = set(re.findall(r"\b(\w+)\s*\(", self.text))
        self.words = set(re.findall(r"\w+", self.text))
        self.source = open(os.path.join(include, self.header), errors="replace").read()

    def version(self):
        out = compile_text(f"#include <{self.header}>\n@@ {self.version_is}\n", [*self.flags, "-E", "-P"])
        return eval(out.rsplit("@@", 1)[1])  # a sum of products of numbers

    def major(self):
        return self.version() // self.per_major


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
    text += "#define CHECKED(ret, name, proto, ...) @@ROW_FAMILY|ret|name|proto@@\n#define LAUNCHED CHECKED\n"
    text += "#define QUERY(ret, name, proto, ...) @@ROW_FAMILY|ret|name|proto@@\n#define ALSO(...)\n"
    text += '#include "agent/hooks/all.def"\n'
    found = []
    for row in re.findall(r"@@(.*?)@@", compile_text(text, ["-E", "-P", "-I", ROOT]), re.S):
        family, ret, name, prototype = " ".join(row.split()).split("|")
        found.append((family.strip(), ret.strip(), name.strip(), prototype.strip()))
    return found


def check_prototypes(headers, table):
    mine = [row for row in table if row[0] == headers.family and row[2] in headers.names]
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
    abi = open(os.path.join(ROOT, "common/vendor_abi.h")).read()
    for macro, name in re.findall(r"^(NUMBER|NUMBERED|HANDLE)\((\w+)\)", abi, re.M):
        if name.startswith(headers.prefix) and name in headers.words:
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
    ours = numbers('"common/vendor_abi.h"', ["-I", ROOT, "-w"], lines, headers.scratch)
    theirs = numbers(f"<{headers.header}>", headers.flags, lines, headers.scratch)
    return len(lines), [f"layout: {line} is {b}, ours {a}" for line, a, b in zip(lines, ours, theirs) if a != b]


def documented(source):
    """Functions whose documentation lists out of memory."""
    found = set()
    for part in source.split("/**")[1:]:
        comment, _, code = part.partition("*/")
        code = code.split(";")[0][:600]
        name = re.search(r"\b((?:cu|cuda|hip|nccl)[A-Z]\w*|hsa_\w+)\s*\(", code)
        if name and re.search(r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|hipErrorMemoryAllocation",
                              comment):
            found.add(name.group(1))
    return found


MEMORY_NAME = re.compile(
    r"^(cu|cuda|hip)(Ext)?(Malloc|Free|Mem(Alloc|Free|Host|Create|Release|Map|Unmap|Pool|Address|Import|Export|Retain)"
    r"|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister|Array(3D)?(Create|Destroy)|MipmappedArray(Create|Destroy)"
    r"|Multicast|Ipc\w*Mem|ImportExternalMemory|ExternalMemory|DestroyExternalMemory|Ctx(Create|Destroy|Detach)|GreenCtx(Create|Destroy)"
    r"|DevicePrimaryCtx(Retain|Release|Reset)|DeviceReset|ModuleLoad|ModuleUnload|LibraryLoad|LibraryUnload"
    r"|GraphAddMem(Alloc|Free)|GraphAddNode|GraphInstantiate|GraphLaunch|GraphExecDestroy|GraphDestroy|DeviceGraphMemTrim)"
    r"|^nccl(Mem|Comm(Init|Split|Shrink|Grow|Finalize|Destroy|Abort|Revoke|Register|Deregister|Window|Suspend|Resume|MemStats))"
    r"|^hsa_(amd_)?(memory_(pool_)?(allocate|free)|ipc_memory|vmem_|interop_(un)?map|memory_(un)?lock)|^nvmlDeviceGet(BAR1)?MemoryInfo"
    r"|^rsmi_dev_memory_(total|usage)\w*_get|^amdsmi_get_gpu_(memory_(total|usage)|vram_usage)")


def names_in(name):
    """The regular expressions of a file, as one."""
    patterns = []
    for line in open(os.path.join(HERE, name)):
        patterns += line.split("#")[0].split()
    return re.compile("^(" + "|".join(patterns) + ")$")


def check_declared(table):
    """Every row is in since.txt, where the headers put it, or in undeclared.txt.  Needs no headers."""
    since = {line.split("\t")[0] for line in open(os.path.join(HERE, "since.txt"))}
    named = names_in("undeclared.txt")
    families = {kind[0] for kind in KINDS.values()}
    wrong = [row[2] for row in table if row[0] in families and row[2] not in since and not named.match(row[2])]
    for name in wrong:
        print(f"{name} has no version: run check_packages.py with STORMLOG_REAL=1 and --write, or name it in undeclared.txt")
    return not wrong


def check_coverage(headers, table):
    have = {row[2] for row in table}
    bases = {re.sub(r"(_v\d+)?(_ptsz|_ptds|_spt)?$", "", name) for name in have}
    skip = names_in("left_out.txt")
    declared = set(re.findall(r"\b%s\s+(?:\w+\s+)?(\w+)\s*\(" % headers.result, headers.text))
    missing = {name for name in declared if MEMORY_NAME.match(name) and name not in have and not skip.match(name)}
    # The documentation names the base function; its _v2 and _ptsz forms are compared above, each with its own declaration.
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
        vendor.setdefault(base, {})[int(version), bool(form)] = form
    have = {row[2] for row in rows()}
    bases = {re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", name) for name in have}
    wrong = []
    for base in sorted(bases & set(vendor)):
        if len(vendor[base]) > 1 and not set(vendor[base]) <= set(listed.get(base, {})):
            wrong.append(f"versions: {base} has {sorted(vendor[base])}, ours {sorted(listed.get(base, {}))}")
        plain = sorted(version for version, form in listed.get(base, {}) if not form)
        for (version, form), export in listed.get(base, {}).items():
            rank = sum(1 for other in plain if other <= version)
            rank = "" if rank == 1 else f"_v{rank}"
            if export and export != base + rank + vendor[base].get((version, form), ""):
                wrong.append(f"versions: {base} {version} is {export}")
    return len(vendor), wrong


def number_text(kind, version):
    """The version as people write it: 12.4, 6.4, 2.32."""
    per_minor = {"hip": 100000, "hsa": 1, "amdsmi": 1, "nccl": 100, "rccl": 100, "nvml": 1}.get(kind, 10)
    per_major = KINDS[kind][3]
    return str(version or "") if kind in ("nvml", "rsmi") else f"{version // per_major}.{version % per_major // per_minor}"


def first_versions(seen, table):
    """{row: where it came from}: a driver's function has its version in cudaTypedefs.h, others the oldest headers that have them."""
    since = {}
    for family in dict.fromkeys(row[0] for row in table):
        sets = sorted((headers.version(), headers) for headers in seen if headers.family == family and headers.kind not in ("rccl", "rsmi", "amdsmi"))
        for version, headers in sets:
            text = number_text(headers.kind, version)
            path = os.path.join(headers.include, "cudaTypedefs.h")
            typed = dict.fromkeys(re.findall(r"\bPFN_(cu\w+?)_v(\d+)", open(path).read())) if headers.kind == "driver" else {}
            for name in [row[2] for row in table if row[0] == family and row[2] in headers.names and row[2] not in since]:
                plain = re.sub(r"(_ptsz|_ptds)$", "", name)
                base, rank = re.match(r"(\w+?)(?:_v(\d))?$", plain).groups()
                versions = sorted(int(number) for known, number in typed if known == base)
                rank = int(rank or 1) - 1
                if rank < len(versions):
                    since[name] = number_text("driver", versions[rank])
                else:
                    since[name] = f"by {text}"
    return since


def check_since(seen, table, path, write):
    lines = "".join(f"{name}\t{text}\n" for name, text in first_versions(seen, table).items())
    if write:
        with open(path, "w") as out:
            out.write(lines)
    good = open(path).read() == lines
    print("since.txt:", "as the headers say" if good else "not as the headers say: run with --write")
    return good


def check(kind, include, scratch, table, seen):
    headers = Headers(kind, include, scratch)
    seen.append(headers)
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
    parser.add_argument("folders", nargs="*", help="include folders; globs")
    parser.add_argument("--since", action="store_true", help="compare since.txt too: with the whole list of packages")
    parser.add_argument("--write", action="store_true", help="write since.txt")
    args = parser.parse_args()
    folders = [f for pattern in args.folders for f in sorted(glob.glob(pattern))]
    folders = [(kind, f) for f in folders for kind in KINDS if os.path.exists(os.path.join(f, KINDS[kind][1]))]
    table = rows()
    if not args.write and not check_declared(table):
        return 1
    if not folders:
        print("no headers of a vendor here: nothing to compare with")
        return 77
    print(len(table), "rows")
    scratch = tempfile.mkdtemp()
    os.mkdir(os.path.join(scratch, "crt"))
    with open(os.path.join(scratch, "crt", "host_defines.h"), "w") as out:
        out.write(HOST_DEFINES)
    os.mkdir(os.path.join(scratch, "hip"))
    # NCCL and RCCL use only two names of what they include.
    for name in ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "hip/hip_fp16.h"):
        open(os.path.join(scratch, name), "w").close()
    for name, vendor in (("cuda_runtime.h", "cuda"), ("hip/hip_runtime.h", "hip")):
        with open(os.path.join(scratch, name), "w") as out:
            out.write(f"#include <stddef.h>\ntypedef struct stream *{vendor}Stream_t;\ntypedef struct event *{vendor}Event_t;\n")
    with open(os.path.join(scratch, "hip", "hip_version.h"), "w") as out:
        out.write("#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 3\n#define HIP_VERSION_PATCH 0\n#define HIP_VERSION 60300000\n")
    good, seen = True, []
    for kind, folder in folders:
        good &= check(kind, folder, scratch, table, seen)
    if args.since:
        good &= check_since(seen, table, os.path.join(HERE, "since.txt"), args.write)
    shutil.rmtree(scratch)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
