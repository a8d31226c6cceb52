#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes driver_names.def and runtime_names.def from the headers of an installed CUDA toolkit.

Run by hand when a new toolkit appears; building needs neither this script nor CUDA.

    gen-names.py /usr/local/cuda/include

cuGetProcAddress(name, version) answers with the newest function of that name that is not newer than the
version. cudaTypedefs.h lists the versions (PFN_<name>_v<version>). The rank of a version among those of its
name gives the export: the first is plain, the second _v2, and so on. The per-thread variants keep the rank
and add their own suffix.
"""
import re
import sys
from pathlib import Path

TYPEDEFS = ['cudaTypedefs.h', 'cudaGLTypedefs.h', 'cudaEGLTypedefs.h', 'cudaVDPAUTypedefs.h', 'cudaProfilerTypedefs.h']


def driver(include):
    ages = {}
    for header in TYPEDEFS:
        for m in re.finditer(r'CUDAAPI\s*\*\s*PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)', (include / header).read_text()):
            ages.setdefault(m[1], {}).setdefault(m[3] or '', set()).add(int(m[2]))
    rows = []
    for name in sorted(ages):
        plain = sorted(ages[name].get('', set()) or set().union(*ages[name].values()))
        for suffix in sorted(ages[name]):
            for age in sorted(ages[name][suffix]):
                rank = max(1, sum(1 for a in plain if a <= age))
                export = name if rank == 1 else f'{name}_v{rank}'
                rows.append((name, age, 2 if suffix else 0, export + suffix))
    return rows


def runtime(include):
    text = (include / 'cuda_runtime_api.h').read_text()
    for header in ('cuda_profiler_api.h', 'cuda_gl_interop.h', 'cuda_egl_interop.h', 'cuda_vdpau_interop.h'):
        text += (include / header).read_text()
    names = set(re.findall(r'CUDARTAPI(?:_CDECL)?\s+(cuda\w+)\s*\(', text))
    for name, suffix in re.findall(r'#define\s+(cuda\w+)\s+__CUDART_API_(PT[DS][SZ])\(', text):
        names.add(name)
        names.add(f'{name}_{suffix.lower()}')
    names.discard('cudaWGLGetDevice')
    return sorted(names)


def main():
    include = Path(sys.argv[1])
    here = Path(__file__).parent
    rows = driver(include)
    with open(here / 'driver_names.def', 'w') as f:
        f.write('/* SPDX-License-Identifier: MIT */\n'
                '/* What cuGetProcAddress answers: SIM_NAME(lookup name, since, flag, export). Written by gen-names.py. */\n')
        f.writelines(f'SIM_NAME({n}, {a}, {fl}, {e})\n' for n, a, fl, e in rows)
    with open(here / 'runtime_names.def', 'w') as f:
        f.write('/* SPDX-License-Identifier: MIT */\n'
                '/* Every function libcudart.so.13 offers: SIM_NAME(name). Written by gen-names.py. */\n')
        f.writelines(f'SIM_NAME({n})\n' for n in runtime(include))
    # The header's own #defines name the newest export: a difference means that the rule above is wrong.
    text = (include / 'cuda.h').read_text()
    newest = {n: e for n, a, fl, e in rows if not fl}
    for name, export in re.findall(r'^\s*#define\s+(cu[A-Z]\w*)\s+(?:__CUDA_API_PT[DS][SZ]\()?(cu\w+)\)?\s*$', text, re.M):
        if newest.get(name) not in (None, export):
            print(f'{name}: header says {export}, rule says {newest[name]}')
    known = {e for *_, e in rows}
    declared = set(re.findall(r'CUresult\s+CUDAAPI\s+(cu\w+)\s*\(', text))
    print('declared without a row:', sorted(declared - known - set(newest)))
    print(len(rows), 'driver rows', len(known), 'exports')


if __name__ == '__main__':
    main()
