#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The agent's core under fake calls: test_core.py CORE_PROGRAM.  What is in the trace is judged by the program's own
arithmetic: thread t's i-th allocation has address t << 40 | i << 8 and i bytes."""
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
try:
    import stormlog_trace
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

PROGRAM = sys.argv.pop(1)
with open(PROGRAM, "rb") as file:
    BESIDE_ASAN = b"__asan_init" in file.read()  # its runtime wants to see the end of each thread
IN_FLIGHT, ABANDONED, NESTED, LATE = 1, 2, 64, 128


def sizes_of(folder):
    """All trace files together, and the greatest."""
    sizes = [0]
    for name in os.listdir(folder):
        try:
            sizes.append(0 if name.endswith(".ring") else os.stat(os.path.join(folder, name)).st_size)
        except FileNotFoundError:
            pass
    return sum(sizes), max(sizes)


def folded(folder):
    """Has a fold taken file 2?"""
    later = [name for name in os.listdir(folder) if name.count(".") == 3]
    return later and not any(".000002." in name for name in later)


def run(*args, code=0, most=None, most_of_one=None, kill_in=None, **environment):
    """most: limit of the trace files' bytes at any moment, all together or each.  kill_in: seconds from the end of a fold to the kill."""
    folder = tempfile.mkdtemp(prefix="stormlog-core-")
    environment = dict(os.environ, STORMLOG_DIR=folder, **{"STORMLOG_STACKS": "none", **environment})
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        environment.pop(name, None)
    process = subprocess.Popen([PROGRAM, *map(str, args)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    sizes = [(0, 0)]
    while (most or kill_in is not None) and process.poll() is None:
        sizes.append(sizes_of(folder))
        if kill_in is not None and folded(folder):
            time.sleep(kill_in)
            process.kill()
        time.sleep(0.005)
    said = process.communicate()[0]
    assert process.returncode == code, (args, process.returncode, said)
    assert said == b"", said
    together, one = (max(size) for size in zip(*sizes, sizes_of(folder)))
    assert together <= (most or together) and one <= (most_of_one or one), (together, one)
    traces = sorted(stormlog_trace.open_folder(folder), key=lambda trace: (trace.header or {}).get("started_ns", 0))  # a child's pid may be less than its parent's
    names = sorted(os.listdir(folder))
    subprocess.run(["rm", "-rf", folder])
    return traces, names


def rows(trace):
    events = trace.events()
    return [(trace.hooks[api - 1][0], size, flags) for api, size, flags in
            zip(events["api"].tolist(), events["bytes"].tolist(), events["flags"].tolist())]


class Core(unittest.TestCase):
    def assert_gapless(self, trace, threads, calls=None):
        events = trace.events()
        done = events["flags"] & IN_FLIGHT == 0
        for t in range(1, threads + 1):
            mine = events["address"][done & (events["address"] >> 40 == t)]
            numbers = sorted((mine >> 8 & 0xFFFFFFFF).tolist())
            self.assertEqual(numbers, list(range(1, (calls or len(numbers)) + 1)))
        torn = 0 if trace.complete else 1  # a frame being written when the process was killed; its events are in the ring
        self.assertLessEqual(len(trace.damage), torn, trace.damage)

    def test_every_event_is_in_the_file_once_and_the_ring_is_gone(self):
        for threads, calls in ((1, 1), (1, 50000), (8, 20000), (40, 50)):
            (trace,), names = run("exit", threads, calls)
            self.assertEqual(len(names), 1, names)
            self.assertTrue(trace.complete)
            self.assertEqual(len(trace.events()["api"]), threads * calls, trace.defs.get("gap"))
            self.assert_gapless(trace, threads, calls)

    def test_a_thread_takes_no_old_event_of_a_segment_for_its_own(self):
        """Each thread comes back to a segment that it filled, writes a part of it anew and ends; the next thread has it then."""
        (trace,), _ = run("heirs", 40, 20000)
        self.assert_gapless(trace, 40, 20000)

    def test_a_thread_that_moves_on_while_the_writer_takes_segments_back_loses_nothing(self):
        """The writer may take the old segment back while the thread is between the old one and the new one."""
        for _ in range(15):
            (trace,), _ = run("wanted", 12, 9000)
            self.assertNotIn("gap", trace.defs)
            self.assert_gapless(trace, 12, 9000)

    def test_a_killed_process_loses_nothing_that_had_returned(self):
        for round in range(12):
            threads = random.choice((1, 2, 8))
            traces, names = run("kill", threads, 1 << 40, random.randrange(2000, 60000), code=-9)
            if not names:
                continue  # killed before the first call
            trace = traces[0]
            self.assertFalse(trace.complete)
            if len(names) == 1:  # killed before there was a ring: before the first call returned
                self.assertFalse(trace.blocks)
            if trace.blocks:
                self.assert_gapless(trace, threads)

    def test_a_driver_call_inside_a_runtime_call_is_no_event_but_a_context_is(self):
        (trace,), _ = run("nest", 0, 0)
        self.assertEqual(rows(trace), [("cuDevicePrimaryCtxRetain", 0, NESTED), ("cudaMalloc", 64, 0)])
        driver = trace.events()["driver_api"].tolist()[1]
        self.assertEqual(trace.hooks[driver - 1][0], "cuMemAlloc_v2")

    def test_a_call_around_more_calls_than_a_segment_holds_is_kept_with_its_result(self):
        (trace,), names = run("around", 0, 30000)
        self.assertEqual(len(names), 1, names)
        self.assertNotIn("gap", trace.defs)
        outer = [row for row in rows(trace) if row[0] == "cudaMalloc"]
        self.assertEqual(outer, [("cudaMalloc", 64, 0)])
        inner = [row for row in rows(trace) if row[0] != "cudaMalloc"]
        self.assertEqual(inner, [("cuDevicePrimaryCtxRetain", size, NESTED) for size in range(1, 30001)])

    def test_a_call_left_by_longjmp_is_abandoned_and_the_next_is_no_part_of_it(self):
        (trace,), _ = run("longjmp", 0, 0)
        self.assertEqual(rows(trace), [("cudaMalloc", 77, ABANDONED), ("cudaMalloc", 8, 0)])

    def test_a_call_left_by_longjmp_does_not_hold_up_blocks(self):
        (trace,), _ = run("left", 0, 300000)
        self.assertNotIn("gap", trace.defs)
        self.assertEqual(rows(trace)[0], ("cudaMalloc", 77, ABANDONED))
        self.assertEqual(len(trace.events()["api"]), 600001)

    def test_a_call_that_was_left_claims_nothing_of_the_limit(self):
        run("claim", 0, 0)  # it prints what is still claimed

    def test_a_handler_that_leaves_the_agent_in_the_middle_of_its_work_costs_no_other_call(self):
        # Deep: up to 16 calls may pass before the agent knows that no frame is inside it any more.
        for deep, lost in ((0, 1), (1, 17)):
            for stacks in ("none", "native"):
                (trace,), names = run("jumps", deep, 400, STORMLOG_STACKS=stacks)
                self.assertEqual(len(names), 1, names)
                self.assertEqual(trace.damage, [])
                sizes = [size for _, size, flags in rows(trace) if not flags & (IN_FLIGHT | ABANDONED)]
                left, mine = sizes.pop(), [size for size in sizes if size < 1 << 40]
                self.assertEqual(len(sizes), len(set(sizes)))
                self.assertGreater(left, 100)
                self.assertLessEqual(mine[-1] - len(mine), left * lost, (deep, stacks))
                self.assertEqual(mine[lost - 1000:], list(range(mine[-1] - 999 + lost, mine[-1] + 1)), (deep, stacks))

    def test_threads_that_are_left_or_leave_in_the_midst_of_their_work_keep_no_room(self):
        """There is room for 256 threads with something to write at once."""
        for mode, open_calls in (("reserved", 0), *([] if BESIDE_ASAN else [("gone", 300)])):
            with self.subTest(mode=mode):
                (trace,), _ = run(mode, 300, 1000)
                events = [row[:2] for row in rows(trace)]
                self.assertEqual((trace.damage, trace.defs.get("gap")), ([], None))
                self.assertEqual(len(events), 300 * 400 + open_calls + 1000)
                self.assertEqual(sum(api == "cudaMalloc" for api, _ in events), open_calls + 1000)
                self.assert_gapless(trace, 1, 1000)

    def test_a_forked_child_has_a_trace_of_its_own_with_its_own_events_alone(self):
        (parent, child), names = run("fork", 1, 10)
        self.assertEqual([size for _, size, _ in rows(parent)], list(range(1, 11)) + [6, 7])
        self.assertEqual([size for _, size, _ in rows(child)], [5])
        self.assertNotEqual(parent.header["pid"], child.header["pid"])

    def test_threads_that_fork_without_a_pause_have_one_writer(self):
        """Two writers write over each other: a crash, or a damaged trace."""
        for _ in range(3):
            (trace,), _ = run("forks", 3, 500000)
            self.assertEqual(trace.damage, [])
            self.assert_gapless(trace, 3, 500000)

    def test_a_call_that_returns_in_a_forked_child_too_is_the_parents(self):
        (parent, child), names = run("inherit", 0, 0)
        self.assertEqual([size for _, size, _ in rows(parent)], [64, 7])
        self.assertEqual([size for _, size, _ in rows(child)], [5, 7])

    def test_a_free_by_a_destructor_after_the_footer_is_kept(self):
        (trace,), names = run("late", 1, 5)
        self.assertEqual(len(names), 1)
        self.assertEqual(rows(trace)[-1], ("cudaMalloc", 9, LATE))

    def test_a_failed_exec_goes_on_recording(self):
        (trace,), names = run("exec", 1, 5)
        self.assertEqual([size for _, size, _ in rows(trace)][-2:], [3, 4])
        self.assertEqual([footer["how"] for footer in trace.defs["footer"]], ["exec", "exit"])

    def test_an_exit_without_destructors_is_complete(self):
        (trace,), names = run("_exit", 1, 5)
        self.assertEqual(len(names), 1)
        self.assertEqual(trace.defs["footer"][0]["how"], "_exit")

    # --keep

    def live_blocks(self, trace):
        events, live = trace.events(), {}
        verbs = [trace.header["verbs"][trace.hooks[api - 1][1]][0] for api in range(1, len(trace.hooks) + 1)]
        for api, address, size in zip(events["api"].tolist(), events["address"].tolist(), events["bytes"].tolist()):
            if verbs[api - 1] == "BLOCK_ALLOC":
                live[address] = size
            elif verbs[api - 1] == "BLOCK_FREE":
                live.pop(address, None)
        return live

    def assert_folded(self, trace, threads, steps=None):
        """What --keep leaves: the weights, the last steps whole, every call; totals that miss nothing.  steps None: killed."""
        weights = {t << 40 | i << 9 for t in range(1, threads + 1) for i in range(1, 2049)}
        live, events = self.live_blocks(trace), trace.events()
        activations = events["address"] >> 39 & 1 == 1
        failed = events["bytes"][events["result"] == 2].tolist()
        last = int(events["bytes"][activations].max())
        (checkpoint,) = trace.defs["checkpoint"]
        ((device, allocations, _, frees, _, peak, reserved),) = checkpoint["blocks"]
        total = allocations + frees + int((activations | (events["bytes"] == 7)).sum())
        self.assertEqual((device, peak, reserved), (0, 1 << 40, 2 << 40))
        self.assertEqual({step: failed.count(step) for step in range(1000, last, 1000)},
                         {step: threads for step in range(1000, last, 1000)})
        for step in range(last - 20, last - 1):
            self.assertEqual(int((activations & (events["bytes"] == step)).sum()), 2 * 100 * threads)
        if steps:
            self.assertEqual((last, set(live), trace.damage), (steps, weights, []))
            self.assertEqual(total, threads * (2048 + steps * 202))
        else:
            self.assertLessEqual(len(weights - set(live)), threads)
            self.assertTrue(all(live[address] >= last - 1 for address in set(live) - weights))
            self.assertLessEqual(threads * (2048 + (last - 2) * 202), total)
            self.assertLessEqual(total, threads * (2048 + (last + 1) * 202))

    def test_keep_leaves_the_newest_and_what_lives(self):
        for threads, steps in ((1, 5000), (3, 2000)):
            (trace,), names = run("train", threads, steps, 2000, STORMLOG_KEEP="512K", most=1 << 20)  # a loaded machine: the fold may lie behind
            self.assertGreater(len(names), 2)
            self.assertFalse([name for name in names if name.endswith(".fold")])
            self.assert_folded(trace, threads, steps)

    def test_a_full_ring_is_written_to_several_files_and_not_to_one(self):
        limit = 2 << 20  # a full ring makes three quarters of it; how far the fold lies behind is the machine's
        for threads, steps in ((1, 8000), (3, 2700)):
            (trace,), _ = run("starved", threads, steps, STORMLOG_KEEP=str(limit), most=8 * limit, most_of_one=limit // 4)
            self.assertGreater(trace.folded_through, 1)

    def test_a_definition_that_finds_no_room_is_said_to_be_missing(self):
        (trace,), _ = run("cut", 0, 0, code=-9)
        self.assertEqual([note["text"].split(":")[0] for note in trace.defs["note"] if "room" in note["text"]], ["no room was left for definitions"])

    def test_more_threads_than_segments_lose_nothing_while_the_writer_has_no_processor(self):
        (trace,), _ = run("crowd", 400, 5)
        self.assertNotIn("gap", trace.defs)
        self.assert_gapless(trace, 400, 5)

    def test_a_writer_that_naps_in_a_long_call_is_not_taken_for_a_disk_that_hangs(self):
        (trace,), _ = run("naps", 1, 1300000)  # more than the ring has room for
        self.assertNotIn("gap", trace.defs)
        self.assertEqual(len(trace.events()["api"]), 1300001)

    def test_threads_wait_for_one_that_makes_the_ring_longer_and_has_no_processor(self):
        (trace,), _ = run("grows", 40, 0)
        self.assertNotIn("gap", trace.defs)
        self.assertEqual(len(trace.events()["api"]), 41)

    def test_a_thread_that_was_left_while_it_waited_for_room_does_not_wait(self):
        run("waits", 1, 0)  # it prints how many still wait

    def test_a_thread_that_finds_no_room_while_others_are_inside_calls_goes_on_and_what_it_loses_is_said(self):
        (trace,), _ = run("held", 1, 50)
        events = trace.events()
        newcomers = (events["address"] >> 40 == 9).sum()
        self.assertEqual((newcomers + sum(gap["count"] for gap in trace.defs["gap"]), trace.damage), (50, []))
        for holder in range(1, 4):
            sizes = events["bytes"][events["address"] >> 40 == holder]
            self.assertEqual((len(sizes), int(sizes.max()), int(sizes.min())), (len(set(sizes.tolist())), len(sizes), 1))

    def test_a_kill_in_the_middle_of_a_fold_loses_and_doubles_nothing(self):
        inside = 0
        for _ in range(6):
            threads = random.choice((1, 3))
            (trace,), names = run("train", threads, 1 << 40, 500, code=-9, kill_in=random.uniform(0, 0.5), STORMLOG_KEEP="256K")
            self.assertGreater(trace.folded_through, 1)
            self.assert_folded(trace, threads)
            inside += any(name.endswith(".fold") for name in names)
        print("%d of 6 were killed in a fold" % inside)

    def test_a_checkpoint_does_not_grow_with_threads_that_are_no_more(self):
        (trace,), names = run("brief", 1, 2000, 500, STORMLOG_KEEP="256K")
        self.assertGreater(trace.folded_through, 1)
        self.assertEqual((self.live_blocks(trace), trace.damage), ({}, []))
        (checkpoint,) = trace.defs["checkpoint"]
        ((_, allocations, _, frees, _, _, _),) = checkpoint["blocks"]
        self.assertEqual(allocations + frees + len(trace.events()["api"]), 2000 * 400)
        self.assertLess(len(checkpoint["threads"]), 256)

    def test_what_is_made_inside_a_long_call_and_freed_by_another_thread_does_not_live_on(self):
        """The free is in a file that is folded before the one that has the allocation."""
        (trace,), _ = run("inside", 1, 200000, 500, STORMLOG_KEEP="256K")
        self.assertGreater(trace.folded_through, 5)
        self.assertEqual(self.live_blocks(trace), {})
        ((_, allocations, _, frees, _, _, _),) = trace.defs["checkpoint"][0]["blocks"]
        verbs = [trace.verbs()[api] for api in trace.events()["api"].tolist()]
        self.assertEqual((allocations + verbs.count("BLOCK_ALLOC"), frees + verbs.count("BLOCK_FREE")), (400100, 400100))

    def test_a_disabled_process_leaves_nothing(self):
        traces, names = run("exit", 1, 5, STORMLOG_DISABLE="1")
        self.assertEqual(names, [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
