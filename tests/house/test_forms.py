#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Calls on a default stream have a second export for programs with a default stream per thread: each hooked call has that form too."""
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FORMS = r"(_ptsz|_ptds|_spt)$"
STREAM = r"\b(CUstream|cudaStream_t|hipStream_t) \w+\s*\)$"  # the last argument
# The vendors' headers have no second form of these (tests/abi compares with the headers where they are installed).
ALONE = set("""cudaGraphicsMapResources cudaGraphicsUnmapResources hipMallocAsync hipMallocFromPoolAsync hipFreeAsync hipMemMapArrayAsync
    hipGraphicsMapResources hipGraphicsUnmapResources hipGraphUpload hipMemcpyWithStream hipMemcpyHtoDAsync hipMemcpyDtoHAsync
    hipMemcpyDtoDAsync hipMemcpyPeerAsync hipMemsetD8Async hipMemsetD32Async cuStreamDestroy cuStreamDestroy_v2 cudaStreamDestroy
    hipStreamDestroy""".split())
ALONE |= {"cudaEventRecord"}  # torch.c listens to it for PyTorch's allocator, which is built without a stream per thread


def rows(table):
    """{name: prototype} of a table, as the preprocessor reads it."""
    text = '#include "agent/hooks/verbs.h"\n#define ALSO(...)\n#define QUERY(...)\n'
    for verb, before in (("ROW", "verb, kind, ret"), ("ONCE", "verb, ret"), ("LOOKUP", "ret"), ("CHECKED", "ret"), ("LAUNCHED", "ret")):
        text += f"#define {verb}({before}, name, proto, ...) @@name|proto@@\n"
    text += f'#include "agent/hooks/{table}.def"\n'
    out = subprocess.run(["cc", "-E", "-P", "-x", "c", "-I", ROOT, "-"], input=text, text=True, capture_output=True, check=True).stdout
    return {name.strip(): " ".join(proto.split()) for name, proto in (row.split("|") for row in re.findall(r"@@(.*?)@@", out, re.S))}


class Forms(unittest.TestCase):
    tables = {table: rows(table) for table in ("cuda_driver", "cuda_runtime", "hip")}

    def test_each_call_on_a_stream_has_its_form_for_a_stream_per_thread(self):
        with_form = {re.sub(FORMS, "", name) for names in self.tables.values() for name in names if re.search(FORMS, name)}
        self.assertGreater(len(with_form), 40)
        on_a_stream = {name for names in self.tables.values() for name, proto in names.items() if re.search(STREAM, proto) and not re.search(FORMS, name)}
        self.assertEqual(sorted(on_a_stream - with_form - ALONE), [], "PER_THREAD(_ptsz, ...), see agent/hooks/verbs.h")
        self.assertEqual(sorted(ALONE & with_form), [])

    def test_a_driver_s_forms_are_those_that_look_ups_know(self):
        variants = (ROOT / "agent/hooks/variants.def").read_text()
        known = set(re.findall(r"^VARIANT_PER_THREAD\(\w+, \d+, (cu\w+)\)", variants, re.M))
        self.assertEqual({name for name in self.tables["cuda_driver"] if re.search(FORMS, name)}, known)

    def test_no_row_is_written_twice(self):
        for table in self.tables:
            text = (ROOT / f"agent/hooks/{table}.def").read_text()
            by_hand = re.findall(r"^(\w+)\((?:\w+, )?\w+, (\w+?)(?:_ptsz|_ptds|_spt),", text, re.M)
            # look-ups may be written out, since they differ; a second meaning of a row (`more`) must follow that row's own form
            self.assertEqual([name for verb, name in by_hand if verb != "LOOKUP" and f"{name}_ptsz, more)" not in text], [], table)


if __name__ == "__main__":
    unittest.main(verbosity=1)
