# SPDX-License-Identifier: MIT
"""Native stacks beside Python's: what an analyzer needs to merge them is defined before it is used.

native_stacks.py PROBE.so
"""
import ctypes
import functools
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings

from stackprobe import CALLBACK, NATIVE, PROBE, PYTHON, definitions, describe, free, held

warnings.simplefilter("ignore")  # a fork with threads is what is tested
BOTH = PYTHON | NATIVE
seen = []


def capture():
    for _ in range(2):
        seen.append(free.probe_capture(BOTH))
        seen.append(held.probe_capture(BOTH))


def halves(number):
    return number & 0xFFFFFFFF, number >> 32


def pcs_of(native):
    raw = definitions.read()["native_stack"][native]["pcs"]
    return [int.from_bytes(raw[i : i + 8], "little") for i in range(0, len(raw), 8)]


def recurse(n):
    return recurse(n - 1) if n else capture()


class Thing:
    @property
    def value(self):
        capture()

    def __del__(self):
        capture()


def generate():
    yield 1
    capture()


def back(n):
    capture()
    return free.probe_call(wrapped, n - 1) if n else 0


wrapped = CALLBACK(back)


def many_stacks():
    capture()
    recurse(1)
    recurse(7)
    Thing().value
    list(generate())
    functools.reduce(lambda a, b: recurse(2), [1, 2, 3])
    sorted([3, 1, 2], key=lambda n: capture() or n)
    free.probe_call(wrapped, 3)
    exec("capture()")
    thread = threading.Thread(target=recurse, args=(3,))
    thread.start()
    thread.join()


def test_each_run_of_python_frames_has_one_native_frame_of_the_loop():
    for _ in range(2):
        many_stacks()
    kinds = definitions.read()
    ranges = [(r["begin"], r["end"]) for r in kinds.get("eval_range", {}).values()]
    assert ranges, "no eval_range was learned"
    wrong = []
    for python, native in map(halves, seen):
        loops = sum(any(b < pc <= e for b, e in ranges) for pc in pcs_of(native))
        runs = len(kinds["python_stack"][python]["c_boundaries"])
        if loops != runs:
            wrong.append((loops, runs))
    assert not wrong, "%d of %d: (loops, runs) %r, ranges %r" % (len(wrong), len(seen), wrong[:5], ranges)


def test_every_address_lies_in_a_module_defined_before():
    capture()
    kinds = definitions.read()
    modules = [(m["base"], m["end"]) for m in kinds["module"].values()]
    for _, native in map(halves, seen):
        for pc in pcs_of(native):
            assert any(b <= pc < e for b, e in modules), hex(pc)


def test_modules_have_paths_and_build_ids():
    capture()
    modules = list(definitions.read()["module"].values())
    exe = [m for m in modules if os.path.realpath(m["path"]) == os.path.realpath(sys.executable)]
    assert len(exe) == 1, modules
    libc = [m for m in modules if os.path.basename(m["path"]) == "libc.so.6"]
    assert len(libc) == 1 and len(libc[0]["build_id"]) == 40, libc
    assert all(m["ns"] <= time.monotonic() * 1e9 for m in modules)


def test_errno_is_kept():
    def at(depth):
        return at(depth - 1) if depth else held.probe_errno(BOTH)

    assert {at(depth) for depth in range(20)} == {1234}
    thread = threading.Thread(target=lambda: seen.append(held.probe_errno(BOTH)))
    thread.start()
    thread.join()
    assert seen.pop() == 1234


def test_our_own_frames_are_not_in_a_stack():
    capture()
    definitions.read()
    ours = [m for m in definitions.by_kind["module"].values() if m["path"] == PROBE]
    assert len(ours) == 1
    assert not ours[0]["base"] <= pcs_of(halves(seen[0])[1])[0] < ours[0]["end"]


def test_a_module_loaded_later_is_defined_before_a_stack_through_it():
    capture()
    folder = tempfile.mkdtemp()
    try:
        path = shutil.copy(PROBE, os.path.join(folder, "late.so"))
        late = ctypes.CDLL(path)
        late.probe_call.restype = ctypes.c_uint64
        got = []
        late.probe_call(CALLBACK(lambda n: got.append(free.probe_capture(BOTH)) or 0), ctypes.c_uint64(1))
    finally:
        shutil.rmtree(folder)
    module = [m for m in definitions.read()["module"].values() if m["path"] == path]
    assert len(module) == 1
    assert any(module[0]["base"] <= pc < module[0]["end"] for pc in pcs_of(halves(got[0])[1]))


def test_equal_stacks_have_one_id():
    def ids():
        return {held.probe_capture(NATIVE) for _ in range(100)}

    ids()  # the interpreter specializes, so another part of the loop makes the same call
    assert len(ids()) == 1


def test_a_thread_without_python_has_a_native_stack_only():
    python, native = halves(free.probe_native_thread())
    assert python == 0 and native


def test_libunwind_stays_out_of_the_programs_scope():
    assert "libunwind" in describe(), describe()
    assert not hasattr(ctypes.CDLL(None), "unw_backtrace")


def test_a_depth_cuts_a_stack_and_says_so():
    free.probe_start(BOTH, 5)
    python, native = halves(free.probe_capture(BOTH))
    kinds = definitions.read()
    assert len(pcs_of(native)) == 5 and kinds["native_stack"][native]["truncated"]
    free.probe_start(BOTH, 200)
    python, native = halves(free.probe_capture(BOTH))
    kinds = definitions.read()
    assert len(pcs_of(native)) > 5 and "truncated" not in kinds["native_stack"][native]


def test_a_child_forked_while_another_thread_unwinds_has_no_native_stacks():
    """On one processor: else the other thread waits for the fork at each fork, where it asks the kernel about a page."""
    outcomes, processors = set(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    threading.Thread(target=free.probe_spin_uncharted, args=(20000,), daemon=True).start()
    time.sleep(0.02)
    for forks in range(1000):
        if forks >= 30 and 10 in outcomes:
            break
        pid = os.fork()
        if pid == 0:
            held.probe_child()
            definitions.at = 0
            definitions.by_kind.clear()
            _, native = halves(free.probe_capture(BOTH))
            if not native:
                os._exit(10 if "forked while" in describe() else 1)
            os._exit(11 if len(pcs_of(native)) > 3 and definitions.by_kind["module"] else 2)
        deadline = time.time() + 300
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            if time.time() > deadline:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
                raise AssertionError("a child hangs")
            time.sleep(0.001)
        outcomes.add(status >> 8 if not status & 255 else -status)
    os.sched_setaffinity(0, processors)
    assert outcomes <= {10, 11} and 10 in outcomes, outcomes


def before_libunwind_is_open_our_own_walk_serves():
    """Runs before the tests, so it cannot be one of them."""
    free.probe_start_alone(BOTH, 200)
    alone = describe()
    native = free.probe_capture(NATIVE) >> 32
    good = "only our own walk" in alone and native and len(pcs_of(native)) > 5 if os.uname().machine == "x86_64" else not native
    free.probe_start(BOTH, 200)
    return good and "libunwind.so.8" in describe()


def main():
    failed = not before_libunwind_is_open_our_own_walk_serves()
    if failed:
        print("not ok before libunwind is open our own walk serves:", describe())
    free.probe_start(BOTH, 200)
    if not (3, 9) <= sys.version_info < (3, 16):
        print("%s: %s" % (sys.version.split()[0], describe()))
        return not free.probe_capture(BOTH) >> 32
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        seen.clear()
        try:
            test()
        except Exception as error:
            failed += 1
            print("not ok", name[5:].replace("_", " "), "\n ", type(error).__name__, str(error)[:800])
    print("%s: %d failed tests; %s" % (sys.version.split()[0], failed, describe()))
    return failed != 0


sys.exit(main())
