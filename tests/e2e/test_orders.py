#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
End to end: the agent and stand-ins for nvshare, HAMi-core, torch_memory_saver's hook and UCX's (tests/apps/beside), in every order of LD_PRELOAD.
The program and the stand-ins print what they print without the agent, and the trace has each call of the driver once.
"""
import itertools
import os
import platform
import sys
import unittest

import e2e
if platform.machine() != "x86_64":
    print("skipped: the stand-ins are x86-64's")
    sys.exit(77)
from e2e import Recording

PROGRAM = os.path.join(e2e.APPS, "beside_main")
OTHERS = ("like_nvshare", "like_hami", "like_memory_saver", "like_ucx")
ALLOCATIONS, FREES = 6, 3


def path(name):
    return e2e.PRELOAD if name == "us" else os.path.join(e2e.APPS, name + ".so")


def companies(count):
    """Sets of `count` stand-ins, without nvshare and HAMi-core together: both share out a GPU, and half of their orders do not work."""
    for others in itertools.combinations(OTHERS, count):
        if not {"like_nvshare", "like_hami"} <= set(others):
            yield others


def orders(count):
    """Every order of the agent and `count` stand-ins."""
    for others in companies(count):
        yield from itertools.permutations(("us",) + others)


# starts true by each function that takes no environment
EXECS = """
import ctypes, os
c = ctypes.CDLL(None)
for name, file in (("execv", b"/bin/true"), ("execvp", b"true")):
    pid = os.fork()
    if not pid:
        getattr(c, name)(file, (ctypes.c_char_p * 2)(b"true"))
        os._exit(1)
    print(name, os.waitpid(pid, 0)[1], flush=True)
"""


class Orders(unittest.TestCase):
    maxDiff = None
    plain, held = {}, 0

    @classmethod
    def tearDownClass(cls):
        assert cls.held > 60, "%d orders get along without us" % cls.held

    def without_us(self, order):
        order = tuple(name for name in order if name != "us")
        if order not in self.plain:
            with Recording(PROGRAM, preload=False, code=None, timeout=60, LD_PRELOAD=":".join(map(path, order))) as run:
                self.plain[order] = (run.done.returncode, run.done.stdout, run.done.stderr)
        return self.plain[order]

    def holds(self, order, launcher=None):
        preload = ":".join(path(name) for name in order if not (launcher and name == "us"))
        with self.subTest(order=order), Recording(PROGRAM, code=None, timeout=60, launcher=launcher, LD_PRELOAD=preload) as run:
            plain = self.without_us(order)
            if plain[0]:  # fails without the agent: HAMi-core answers others' RTLD_NEXT from its own place, and they may get themselves
                return
            Orders.held += 1
            self.assertEqual((run.done.returncode, run.done.stdout, run.done.stderr), plain)
            process, = run.report()["processes"]
            rows = [row for row in process["memory"] if row["kind"] in ("device", "managed", "vmm", "array", "pool")]
            self.assertEqual((sum(row["allocations"] for row in rows), sum(row["frees"] for row in rows), process["unknown_frees"]),
                             (ALLOCATIONS, FREES, 0), rows)
            self.assertEqual(sum(row["live_bytes"] for row in rows), (3 + 5 + 6) << 20, rows)

    def test_beside_one_other(self):
        for order in orders(1):
            self.holds(order)

    def test_beside_a_library_whose_system_calls_wait_for_a_lock(self):
        for order in itertools.permutations(("us", "locked_calls")):
            self.holds(order)

    def test_beside_a_library_that_holds_over_fork_what_making_a_thread_takes(self):
        for order in itertools.permutations(("us", "locked_calls")):
            with self.subTest(order=order), Recording(os.path.join(e2e.APPS, "fork_exec"), timeout=60, LD_PRELOAD=":".join(map(path, order))) as run:
                self.assertEqual(e2e.equal_to_journal(run)[0], [])

    def test_beside_a_library_with_an_exec_of_its_own(self):
        said = set()
        for order in (["own_execs"], ["us", "own_execs"], ["own_execs", "us"]):
            with Recording(sys.executable, "-c", EXECS, preload=False, timeout=60, LD_PRELOAD=":".join(map(path, order))) as run:
                said.add(run.done.stdout)
        self.assertEqual(said, {b"execv\nexecv 0\nexecvp\nexecvp 0\n"})

    def test_beside_two_others(self):
        for order in orders(2):
            self.holds(order)

    def test_beside_three_others(self):
        for order in orders(3):
            self.holds(order)

    def test_the_launcher_puts_us_first(self):
        for others in companies(3):
            for order in itertools.permutations(others):
                self.holds(order, launcher=["--quiet"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
