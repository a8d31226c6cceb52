#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs with ranges and stand-ins for PyTorch under the agent; the trace must hold what they did."""
import collections
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python"))
try:
    import stormlog_trace
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

BUILD = os.environ["STORMLOG_LABELS_BUILD"]
PRELOAD = os.environ["STORMLOG_PRELOAD"]
TOOL = os.path.join(BUILD, "label_tool.so")
Event = collections.namedtuple("Event", "verb api label index bytes device extra2 flags address stack")


def run(*command, preload=True, fds=(), talks=False, **environment):
    """Run a command; its output and traces.  talks: the command itself may write to stderr."""
    folder = tempfile.mkdtemp(prefix="stormlog-labels-")
    environment = dict({name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "NVTX_"))},
                       STORMLOG_DIR=folder, **environment)
    if preload:
        environment["LD_PRELOAD"] = PRELOAD
    command = [os.path.join(BUILD, command[0]) if os.sep not in command[0] else command[0], *command[1:]]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=600, pass_fds=fds)
    assert done.returncode == 0 and (talks or not done.stderr), (command, done)
    traces = stormlog_trace.open_folder(folder)
    subprocess.run(["rm", "-rf", folder])
    return done.stdout.decode().split("\n")[:-1], traces


def events(trace):
    texts = {text["id"]: text["text"] for text in trace.defs.get("text", [])}
    rows = []
    columns = {name: column.tolist() for name, column in trace.events().items()}
    for i in range(len(columns["api"])):
        name, verb = trace.hooks[int(columns["api"][i]) - 1][:2]
        get = lambda field: int(columns[field][i]) if field in columns else 0
        rows.append(Event(trace.header["verbs"][verb][0], name, texts.get(get("label"), ""), get("extra"), get("bytes"), get("device"),
                          get("extra2"), get("flags"), get("address"), trace.stack(get("python"))))
    return rows


def allocations(rows):
    return [(row.bytes, row.label) for row in rows if row.verb == "ALLOC"]


def ranges(rows):
    return [(row.verb, row.label, row.index) for row in rows if row.verb.startswith("RANGE") or row.verb == "MARK"]


@unittest.skipUnless(os.path.exists(os.path.join(BUILD, "label_ranges")), "no nvtx3 headers at build time")
class Nvtx3(unittest.TestCase):
    def test_an_allocation_has_the_innermost_label_even_one_opened_before_the_first_gpu_call(self):
        said, (trace,) = run("label_ranges", "plain")
        self.assertEqual(said, ["0", "1", "1", "0", "0", "0"])
        rows = events(trace)
        self.assertEqual(allocations(rows), [(100, "step_#"), (200, "before"), (300, ""), (400, "epoch # of #, step_#")])
        self.assertEqual(ranges(rows), [
            ("RANGE_PUSH", "before", 0), ("RANGE_PUSH", "step_#", 12), ("RANGE_POP", "step_#", 12), ("RANGE_POP", "before", 0),
            ("RANGE_PUSH", "epoch # of #, step_#", 7), ("MARK", "mark #", 9), ("RANGE_POP", "epoch # of #, step_#", 7)])

    def test_labels_alone_start_no_recording(self):
        said, traces = run("/bin/sh", "-c", "exit 0")
        self.assertEqual(traces, [])

    def test_ranges_of_a_domain_close_in_their_own_order(self):
        _, (trace,) = run("label_ranges", "domains")
        rows = events(trace)
        self.assertEqual(allocations(rows), [(1, ""), (2, "one:known_#"), (3, "one:known_#"), (4, "one:plain"), (5, ""),
                                             (6, "zwölf €😀:weit")])
        self.assertEqual(ranges(rows)[-3:], [("RANGE_PUSH", "wide ä", 0), ("RANGE_POP", "wide ä", 0), ("MARK", "one:known_#", 5)])

    def test_ranges_of_the_process_end_by_id_in_any_order(self):
        said, (trace,) = run("label_ranges", "process")
        self.assertEqual(said, ["1", "1"])
        found = ranges(events(trace))
        starts = {index: label for verb, label, index in found if verb == "RANGE_START"}
        ends = [starts.get(index) for verb, label, index in found if verb == "RANGE_END"]
        self.assertEqual(sorted(starts.values()), ["early", "load_#", "load_#", "open"])
        self.assertEqual(ends, ["load_#", "early", "load_#", None])

    def test_nccls_payloads_name_the_communicator_and_the_bytes_of_a_collective(self):
        said, (trace,) = run("label_ranges", "payload")
        self.assertEqual(said, [str(1 << 24), str((1 << 24) + 5), str(1 << 32)])
        rows = events(trace)
        self.assertEqual(allocations(rows), [(1, ""), (2, "NCCL:ncclCommInitRank"), (2, "NCCL:ncclCommInitRank"), (3, "")])
        communicator, *others = trace.defs["communicator"]
        self.assertEqual(len(others), 255)
        (note,) = [note["text"] for note in trace.defs["note"] if "communicators" in note["text"]]
        self.assertEqual({name: communicator[name] for name in ("handle", "rank", "world_size", "device")},
                         {"handle": 0xC0FFEE0123456789, "rank": 3, "world_size": 8, "device": 1})
        # A payload of an unknown schema tells nothing; one that is too short tells what it holds.
        self.assertEqual([(row.address, row.bytes) for row in rows if row.label == "NCCL:ncclAllReduce" and row.verb == "RANGE_PUSH"],
                         [(0xC0FFEE0123456789, 4000), (0, 0), (0xC0FFEE0123456789, 0)])

    def test_ten_thousand_open_ranges_return_their_depths_and_close(self):
        said, (trace,) = run("label_ranges", "deep")
        self.assertEqual(said, ["0"])
        rows = events(trace)
        self.assertEqual(allocations(rows), [(1, ""), (2, "level"), (3, "")])
        self.assertEqual(len(ranges(rows)), 64)

    def test_two_objects_with_nvtx_share_the_threads_stack(self):
        said, (trace,) = run("label_ranges", "objects")
        self.assertEqual(said, ["0", "1", "1", "0"])
        self.assertEqual(allocations(events(trace)), [(1, ""), (2, "module"), (3, "")])

    def test_eight_threads_do_not_see_each_others_ranges(self):
        _, (trace,) = run("label_ranges", "threads")
        found = allocations(events(trace))
        self.assertEqual(len(found), 800)
        self.assertEqual([row for row in found if chr(row[0]) * 2 != row[1]], [])

    def test_a_forked_childs_trace_has_the_range_that_was_open(self):
        _, traces = run("label_ranges", "fork")
        by_size = sorted((events(trace) for trace in traces), key=lambda rows: allocations(rows)[0])
        self.assertEqual([allocations(rows) for rows in by_size], [[(1, "parent"), (3, "parent")], [(2, "child_#")]])
        self.assertEqual(ranges(by_size[1]), [("RANGE_PUSH", "parent", 0), ("RANGE_PUSH", "child_#", 1), ("RANGE_POP", "child_#", 1),
                                              ("RANGE_POP", "parent", 0)])

    def test_too_many_labels_are_said_and_the_known_ones_go_on(self):
        _, (trace,) = run("label_ranges", "many")
        self.assertEqual(allocations(events(trace)), [(1, ""), (2, "name aaaa")])
        self.assertTrue(any("too many different labels" in note["text"] for note in trace.defs["note"]))

    def test_labels_off_leaves_no_label_and_no_range(self):
        for environment in ({}, {"NVTX_INJECTION64_PATH": PRELOAD}):
            said, (trace,) = run("label_ranges", "plain", STORMLOG_LABELS="off", **environment)
            rows = events(trace)
            self.assertEqual(ranges(rows), [])
            self.assertEqual({row.label for row in rows}, {""})

    def test_the_users_own_tool_sees_and_answers_everything_it_asked_for(self):
        for scenario in ("plain", "domains", "objects", "process"):
            answers = []
            for preload in (False, True):
                read, write = os.pipe()
                said, traces = run("label_ranges", scenario, preload=preload, fds=(write,), NVTX_INJECTION64_PATH=TOOL,
                                   TOOL_FD=str(write))
                os.close(write)
                answers.append((said, os.read(read, 100)))
                os.close(read)
            self.assertEqual(answers[0][0][:2], answers[1][0][:2])
            self.assertEqual(answers[0][1], answers[1][1])
            if scenario == "plain":
                self.assertEqual(answers[1][0], ["1000", "1000", "2000", "2000", "1000", "2000"])
                self.assertEqual(allocations(events(traces[0]))[:3], [(100, "step_#"), (200, "before"), (300, "")])
            if scenario == "objects":
                self.assertEqual(answers[1][1].split()[0], b"2")
                self.assertEqual(allocations(events(traces[0])), [(1, ""), (2, "module"), (3, "")])
            if scenario == "domains":
                self.assertIn((4, "one:plain"), allocations(events(traces[0])))


class Interposed(unittest.TestCase):
    expected = [("RANGE_PUSH", "step_#", 4), ("RANGE_POP", "step_#", 4), ("MARK", "here", 0)]

    def test_nvtx_2_is_seen_and_its_answers_are_its_own(self):
        said, (trace,) = run("label_interposed", "nvtx2")
        self.assertEqual(said, ["-2", "-2", "-2", "-2", "41"])
        rows = events(trace)
        self.assertEqual(allocations(rows), [(1, "step_#"), (2, "lib:inner")])
        self.assertEqual(ranges(rows)[4:], [("MARK", "here", 0), ("RANGE_START", "whole", 41), ("RANGE_END", "whole", 41)])

    def test_a_range_of_xla_has_the_name_of_its_module_or_operation_without_numbers(self):
        path = "jit(step)/" + "while/body/" * 200
        labels = {
            "XlaModule:#hlo_module=jit_step,program_id=17#": "XlaModule jit_step",
            "XlaModule:#prefix=jit(step)/jit(main),hlo_module=jit_step.2,program_id=18#": "XlaModule jit_step",
            "Thunk:#name=jit(step)/mlp/dot_general,hlo_op=cublas-gemm.3#": "Thunk dot_general",
            "Thunk:#name=loop_fusion.123,hlo_op=loop_fusion.123#": "Thunk loop_fusion",
            "Thunk:#hlo_op=fusion.12.remat.3#": "Thunk fusion.remat",
            "Thunk:#hlo_op=command_buffer_1#": "Thunk command_buffer_#",
            "Thunk:#hlo_op=fusion.1": "Thunk fusion",
            "XlaCompile:#module=jit_f,program_id=4#": "XlaCompile jit_f",
            "Thunk:#num=3#": "Thunk:#num=##", "Thunk:#": "Thunk:#", "Thunk:#name=#": "Thunk:#name=#", "Thunk:#name=a/#": "Thunk:#name=a/#", "a:#b": "a:#b", "v1.2:3": "v#.#:#",
            "Thunk:#prefix=%s,hlo_op=add.1#" % path: ("Thunk:#prefix=%s" % path)[:256],  # its key is too far away
            "Thunk:#hlo_op=%s.7#" % ("x" * 300): "Thunk " + "x" * 250,
        }
        _, (trace,) = run("label_interposed", "push", *labels)
        self.assertEqual([row.label for row in events(trace) if row.verb == "RANGE_PUSH"], list(labels.values()))

    def test_the_instructions_of_a_large_program_of_xla_are_few_labels(self):
        texts = ["Thunk:#name=jit(step)/layer_%s%s%s/add,hlo_op=fusion.%d#" % (*(chr(97 + n // 20 ** k % 20) for k in range(3)), n) for n in range(4000)]
        _, (trace,) = run("label_interposed", "push", *texts)
        self.assertEqual(len({row.label for row in events(trace) if row.verb == "RANGE_PUSH"}), 1)
        self.assertEqual([note for note in trace.defs.get("note", []) if "too many" in note["text"]], [])

    def test_roctx_is_seen_linked_or_looked_up(self):
        for command in (("roctx",), ("dlsym", os.path.join(BUILD, "liblabel_roctx.so"))):
            said, (trace,) = run("label_interposed", *command)
            self.assertEqual(said, ["0", "0", "1"])
            rows = events(trace)
            self.assertEqual(allocations(rows), [(1, "step_#")])
            self.assertEqual(ranges(rows)[:3], self.expected)
            self.assertEqual([row[1] for row in ranges(rows)[3:]], ["whole", "whole"])


class Blocks(unittest.TestCase):
    def library(self, flavour):
        return os.path.join(BUILD, "liblabel_c10_cuda_%d.so" % flavour)

    def test_each_version_of_c10_reports_its_blocks_and_still_gets_its_calls(self):
        for flavour in (1, 2, 3, 4):
            bare, _ = run("label_blocks", self.library(flavour), preload=False)
            said, (trace,) = run("label_blocks", self.library(flavour))
            self.assertEqual(said, bare)
            rows = [row for row in events(trace) if row.verb.startswith("BLOCK") and row.address not in (0x7000, 0x8000, 0x9000)]
            totals = (lambda *numbers: numbers) if flavour > 1 else lambda *numbers: (0, 0)
            expected = [("BLOCK_ALLOC", 0x1000, 1024, 0, *totals(1024, 2 << 20)), ("BLOCK_ALLOC", 0x2000, 512, 1, *totals(512, 4 << 20)),
                        ("BLOCK_FREE", 0x1000, 1024, 0, *totals(0, 2 << 20)), ("BLOCK_ALLOC", 0x4000, 64, 2, *totals(64, 64))]
            if flavour > 1:
                expected.append(("BLOCK_OOM", 0, 1 << 40, 1, 512, 4 << 20))
            self.assertEqual([(row.verb, row.address, row.bytes, row.device, row.index, row.extra2) for row in rows], expected)
            self.assertEqual([c["value"] for c in trace.defs["capability"] if c["name"] == "pytorch"],
                             [[None, "c10 1.6 to 1.9", "c10 1.10 to 2.0", "c10 2.1 or later", "c10 2.1 or later"][flavour]])
            self.assertIn("PyTorch blocks on devices of type 13 are not recorded", [note["text"] for note in trace.defs["note"]])

    def test_tensors_cpu_adds_cpu_blocks_and_off_drops_all(self):
        _, (trace,) = run("label_blocks", self.library(3), STORMLOG_TENSORS="cpu")
        self.assertEqual([(row.bytes, row.device) for row in events(trace) if row.address == 0x6000], [(16, -1)])
        bare, _ = run("label_blocks", self.library(3), preload=False)
        said, (trace,) = run("label_blocks", self.library(3), STORMLOG_TENSORS="off")
        self.assertEqual(said, bare)
        self.assertEqual([row for row in events(trace) if row.verb.startswith("BLOCK")], [])

    def test_a_backward_pass_is_a_range_that_ends_when_it_returns_or_throws(self):
        _, (trace,) = run("label_blocks", self.library(3))
        rows = events(trace)
        expected = []
        for index in range(5):  # a pass inside another has no range
            expected += [("RANGE_PUSH", "backward_#", index), ("RANGE_POP", "backward_#", index)]
        self.assertEqual(ranges(rows), expected)
        self.assertEqual([row.label for row in rows if row.address == 0x8000], ["", ""])
        self.assertEqual([row.label for row in rows if row.address == 0x9000], ["backward_#"])

    def test_only_autograds_own_threads_are_lent_the_passes_label(self):
        _, (trace,) = run("label_blocks", self.library(3))
        labels = [row.label for row in events(trace) if row.address == 0x7000]
        self.assertEqual(labels, ["backward_#", "", "backward_#"] * 7)

    def test_a_thread_of_autograd_borrows_the_python_stack_that_called_backward(self):
        program = ("import ctypes, sys\n"
                   "def train(library):\n"
                   "    return library.backward(3, None)\n"
                   "library = ctypes.CDLL(sys.argv[1])\n"
                   "library.exercise()\n"
                   "print(train(library))\n")
        said, (trace,) = run("/usr/bin/python3", "-c", program, self.library(3), PYTHONUNBUFFERED="1")
        self.assertEqual(said[-1], "0")
        borrowed = 1 << [flag for flag in trace.header["flags"]].index("borrowed")
        for rows in ([row for row in events(trace) if row.address == 0x7000],
                     [row for row in events(trace) if (row.verb, row.bytes) == ("ALLOC", 0x7000)]):
            self.assertEqual([bool(row.flags & borrowed) for row in rows], [True, False, True] * 3)
            self.assertEqual([[name for name, _, _ in row.stack] for row in rows], [["train", "<module>"], [], ["train", "<module>"]] * 3)


class Environment(unittest.TestCase):
    def variable(self, **environment):
        said, _ = run("/usr/bin/env", **environment)
        return [line for line in said if line.startswith("NVTX_INJECTION64_PATH=")]

    def asked(self, **environment):
        """What getenv returns to a program; NVTX learns of a tool by it."""
        program = ("import ctypes; getenv = ctypes.CDLL(None).getenv; getenv.restype = ctypes.c_char_p; "
                   "print(getenv(b'NVTX_INJECTION64_PATH'), getenv(b'NVTX_OTHER'), getenv(b'HOME'))")
        said, _ = run("/usr/bin/python3", "-c", program, HOME="/nowhere", **environment)
        return said

    def test_nvtx_is_told_of_us_and_the_users_tool_is_left_alone(self):
        self.assertEqual(self.asked(), ["%s None b'/nowhere'" % PRELOAD.encode()])
        self.assertEqual(self.asked(NVTX_INJECTION64_PATH="/other"), ["b'/other' None b'/nowhere'"])
        self.assertEqual(self.asked(STORMLOG_LABELS="off"), ["None None b'/nowhere'"])
        self.assertEqual(self.asked(STORMLOG_DISABLE="1"), ["None None b'/nowhere'"])

    def test_the_environment_stays_as_it_is(self):
        self.assertEqual(self.variable(), [])
        self.assertEqual(self.variable(NVTX_INJECTION64_PATH="/other"), ["NVTX_INJECTION64_PATH=/other"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
