# SPDX-License-Identifier: MIT
"""check-layers on small trees with and without an include that its rules forbid."""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = sys.argv.pop(1)
ROOT = Path(__file__).resolve().parents[2]


class Layers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("common/base.h", "int base;\n")
        self.write("agent/file/ring.h", '#include "common/base.h"\n')
        self.write("agent/stacks/stacks.h", "")
        self.write("agent/stacks/intern.h", "")
        self.write("analyzer/model/state/model.h", '#include "common/base.h"\n')

    def write(self, path, text):
        path = Path(self.folder.name) / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def errors(self, *flags):
        done = subprocess.run([sys.executable, CHECK, *flags, self.folder.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1 if done.stderr else 0)
        return done.stderr

    def test_a_tree_without_a_wrong_arrow_passes(self):
        self.write("agent/call/record.c", '#include "agent/file/ring.h"\n#include "agent/stacks/stacks.h"\n#include <stdio.h>\n')
        self.assertEqual(self.errors(), "")

    def test_the_agent_must_not_know_the_analyzer_nor_the_reverse(self):
        self.write("agent/file/ring.c", '\n#include "analyzer/model/state/model.h"\n')
        self.assertIn("agent/file/ring.c:2: agent/file must not include analyzer/model/state/model.h", self.errors())
        self.write("agent/file/ring.c", "")
        self.write("analyzer/model/state/model.c", '#include "agent/file/ring.h"\n')
        self.assertIn("analyzer/model/state/model.c:1", self.errors())

    def test_the_agent_s_rooms_go_one_way(self):
        self.write("agent/file/ring.c", '\n#include "agent/stacks/stacks.h"\n')
        self.assertIn("agent/file/ring.c:2: agent/file must not include agent/stacks/stacks.h", self.errors())

    def test_a_call_upwards_is_named_though_its_header_is_below(self):
        self.write("agent/file/ring.h", "void sl_ring_end(void);\n")
        self.write("agent/life/preload.c", '#include "agent/file/ring.h"\nvoid sl_ring_end(void)\n{\n}\n')
        self.write("agent/file/ring.c", '#include "agent/file/ring.h"\n\nint end(void)\n{\n\tsl_ring_end();\n}\n')
        self.assertIn("agent/file/ring.c:5: agent/file must not call sl_ring_end of agent/life/preload.c", self.errors())

    def test_common_knows_nobody(self):
        self.write("common/base.c", '#include "agent/file/ring.h"\n')
        self.assertIn("common/base.c:1", self.errors())

    def test_arrows_inside_the_analyzer_go_one_way(self):
        self.write("analyzer/upstream/answers/answers.h", "")
        self.write("analyzer/model/state/model.c", '#include "analyzer/upstream/answers/answers.h"\n')
        self.assertIn("analyzer/model/state/model.c:1", self.errors())

    def test_a_folder_that_is_not_drawn_is_named(self):
        self.write("analyzer/attic/old.c", "")
        self.assertIn("analyzer/attic/old.c: its folder is in no room", self.errors())
        self.write("analyzer/loose.c", "")
        self.assertIn("analyzer/loose.c: its folder is in no room", self.errors())

    def test_the_model_must_not_know_the_verbs(self):
        self.write("analyzer/commands/commands.h", "")
        self.write("analyzer/model/state/model.c", '#include "analyzer/commands/commands.h"\n')
        self.assertIn("analyzer/model/state/model.c:1: analyzer/model/state must not include", self.errors())

    def test_files_of_a_room_that_include_each_other_in_a_circle_are_named(self):
        self.write("analyzer/trace/a.h", '#include "analyzer/trace/b.h"\n')
        self.write("analyzer/trace/b.c", '#include "analyzer/trace/a.h"\n')
        self.write("analyzer/trace/b.h", "")
        self.assertIn("circle of files: analyzer/trace/a, analyzer/trace/b", self.errors())

    def test_a_room_is_entered_through_its_door(self):
        self.write("agent/file/ring.c", '#include "agent/stacks/intern.h"\n')
        self.assertIn("agent/file/ring.c:1", self.errors())

    def test_the_simulator_shares_no_code_with_the_agent(self):
        self.write("tests/sim/sim.c", '#include "agent/file/ring.h"\n')
        self.assertIn("tests/sim/sim.c:1", self.errors())

    def test_a_table_is_expanded_by_its_room_and_by_those_that_are_listed(self):
        self.write("agent/hooks/all.def", "")
        self.write("agent/process/hook_rows.c", '#include "agent/hooks/all.def"\n')
        self.assertEqual(self.errors(), "")
        self.write("analyzer/model/state/model.c", '#include "agent/hooks/all.def"\n')
        self.assertIn("analyzer/model/state/model.c:1: analyzer/model/state must not include agent/hooks/all.def", self.errors())
        self.write("tests/sim/sim.c", '#include "agent/hooks/all.def"\n')
        self.assertIn("tests/sim/sim.c:1", self.errors())

    def test_a_header_that_lacks_an_include_is_named(self):
        self.write("agent/late.h", "uint64_t late;\n")
        self.assertIn("agent/late.h", self.errors("--headers", "cc"))


class Drawing(unittest.TestCase):
    """doc/architecture.md, which people read, must agree with the rules in the script."""

    page = (ROOT / "doc/architecture.md").read_text()

    def test_the_page_has_the_rooms_and_arrows_of_the_check(self):
        drawing = subprocess.run([sys.executable, CHECK, "--drawing"], capture_output=True, text=True, check=True).stdout
        self.assertIn("analyzer/symbols           -> analyzer/trace\n", drawing)
        self.assertIn(f"```\n{drawing}```\n", self.page, "put the output of scripts/check-layers --drawing into the page")
        empty = [room for room in re.findall(r"(?m)^\S+", drawing) if not (ROOT / room).is_dir() and not list((ROOT / room).parent.glob((ROOT / room).name + ".*"))]
        self.assertEqual(empty, [], "rooms without a file")

    def test_the_tables_name_every_folder_of_code(self):
        """Those of the analyzer are in analyzer/README.md."""
        for page, folders in ((self.page, [path.parent for path in sorted([*ROOT.glob("*/meson.build"), *ROOT.glob("tools/*/meson.build")])]),
                              ((ROOT / "analyzer/README.md").read_text(), [path for path in (ROOT / "analyzer").iterdir() if path.is_dir()])):
            names = [folder.name for folder in sorted(folders) if not folder.name.startswith(("build", "doc", "__"))]
            self.assertGreater(len(names), 10)
            self.assertEqual([name for name in names if not re.search(rf"^\|.*[`/]{name}/`", page, re.M)], [])


if __name__ == "__main__":
    unittest.main()
