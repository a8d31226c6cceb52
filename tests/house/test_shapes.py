#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each member of a struct that summaries hold has a row in analyzer/summary/shapes.c, or a reason here why it has none."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHAPES = (ROOT / "analyzer/summary/shapes.c").read_text()
HEADERS = "".join(path.read_text() for path in sorted((ROOT / "analyzer").rglob("*.h")))

READING = "used while a trace is read or replayed; nobody reads it afterwards"
APART = "stored apart, by analyzer/summary/summary.c"
LATER = "made by the reader of the summary"
ALONE = "asked of a single process only, on the thread that replayed it"
WITHOUT = {
    "sl_header": {"arena watcher_start kinds kind_count same_kinds left_out": READING},
    "sl_hook": {"stamped_before": READING},
    "sl_defs": {"ahead_ns arena communicator_ids file_ids spans spans_of mapped module_ids arrivals moved left left_out shared": READING,
                "text_ids frame_ids python_ids native_ids thread_ids named_ids": APART},
    "sl_slept": {"until_ns follow blocks calls": READING},
    "sl_folded": {"blocks threads peaks": READING},
    "sl_trace": {"files file_count ring": APART, "map_bytes full disk_bytes budget footer_events log_next inflate zone cursor": READING},
    "sl_tracks": {"course course_capacity capacity slots mask pythons natives asked launches freed_ns passes pauses": READING},
    "sl_torch": {"given graph_most_bytes pool_held_bytes": READING},
    "sl_device_state": {"age code_ns contexts contexts_sampled context_most entered_ns fresh fresh_from fresh_ns shared kept_ns neighbour_ids recent recent_mask rounded sampled unrounded": READING},
    "sl_hidden_part": {"left_bytes left_ns": READING},
    "sl_label": {"now groups xx xy yy floor early late": ALONE},
    "sl_oom": {"elsewhere sought": READING, "tensor": ALONE},
    "sl_owner": {"tensor typed_bytes": ALONE},
    "sl_variable": {"now": READING},
    "sl_phase": {"pairs pair_count": READING},
    "sl_moments": {"next_ns width_ns capacity largest_bytes": READING},
    "sl_model": {"asleep_ns code_seen cost header defs recording vmm graphs waiting graph_pools graph_pool graph_segments objects arena call_begin_ns call_end_ns call_api ends pointers arrays registered imports blocks site_slots holder_ids "
                 "site_course site_course_capacity site_mask label_ids last_collective threads in_use in_use_max in_use_max_before item in_ranges ranged "
                 "ranged_sum recent held_bytes held_max in_use_crests held_crests looks oom_event called_ids called_parts variable_ids look look_bytes look_named look_among told_bytes told_ns traffic_ids costs sought born born_named born_named_ids tensors tensor_ids tensor_places tensor_count paired_ids entry entry_context makers": READING,
                 "lives lives_capacity stays passes": ALONE, "rows devices apis timeline": APART},
    "sl_process": {"trace model": APART, "measured unmeasured": READING, "report parent symbols places roles image changes accounts alike": LATER},
}


def body_of(struct):
    """The text between a struct's braces, without comments."""
    text = re.sub(r"/\*.*?\*/", "", HEADERS, flags=re.S)
    at = text.index(f"struct {struct} {{") + len(f"struct {struct} {{")
    depth, end = 1, at
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[at:end - 1]


def members_of(struct):
    body = re.sub(r"SL_VECTOR\([^)]*\)", "vector", body_of(struct))
    body = re.sub(r"(struct|union|enum)\s*\w*\s*\{[^{}]*\}", "inside", body)
    members = []
    for declaration in filter(str.strip, body.split(";")):
        call = re.search(r"\(\*(\w+)\)", declaration)
        names = [call[1]] if call else [re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", part.strip())[1] for part in declaration.split(",")]
        members += names
    return members


def rows():
    """{struct: names of its rows, and of the counts beside them}"""
    found = {}
    for struct, text in re.findall(r"^(?:SHAPE|PUBLIC)\(\w+, (\w+),(.*?)\);$", SHAPES, re.S | re.M):
        names = re.findall(r"\b(?:M|AS|STACK|IN|VECTOR|VECTOR_AS|LIST|LIST_AS|KEPT|FIXED|WHOLE|LINE|TRACK)\((\w+)", text)
        names += re.findall(r"\b(?:(?:LIST|KEPT|FIXED)\(\w+|LIST_AS\(\w+, \"\w+\"), (\w+)", text)
        found.setdefault(struct, set()).update(names)
    return found


class Shapes(unittest.TestCase):
    def test_each_member_has_a_row_or_a_reason(self):
        found = rows()
        self.assertGreater(len(found), 60)
        for struct, names in found.items():
            excused = {name for group in WITHOUT.get(struct, {}) for name in group.split()}
            with self.subTest(struct=struct):
                self.assertEqual([name for name in members_of(struct) if name not in names | excused], [],
                                 "a member without a row in analyzer/summary/shapes.c")
                self.assertEqual(sorted(excused & names), [], "has a row, and a reason to have none")
                self.assertEqual(sorted(excused - set(members_of(struct))), [], "no such member")

    def test_the_members_of_a_struct_are_found(self):
        self.assertIn("largest_cached", members_of("sl_oom"))
        self.assertEqual(members_of("sl_hidden_part"), ["what", "library", "bytes", "count", "peak_bytes", "left_bytes", "left_ns", "first"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
