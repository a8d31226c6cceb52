# SPDX-License-Identifier: MIT
"""Runs inside the interpreter under test: every captured stack is compared with sys._getframe.

python_stacks.py PROBE.so [soak seconds]; 3.9 syntax, standard library only.
Longer than other files: it is one file for the interpreter under test.
"""
import asyncio
import functools
import gc
import os
import sys
import threading
import time

from stackprobe import CALLBACK, PYTHON, definitions, describe, free, held

DEPTH = 200
QUALNAME = sys.version_info >= (3, 11)

seen = []  # (id, expected) of all threads; judged at the end of each test


def name_of(code):
    return code.co_qualname if QUALNAME else code.co_name


def expected(frame):
    out = []
    while frame and len(out) < DEPTH:
        out.append((name_of(frame.f_code), frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(out)


def note(frame, *ids):
    want = expected(frame)
    for number in ids:
        seen.append((number & 0xFFFFFFFF, want))


def capture():
    """All ways in, on one line each with the frame they are compared with; three times, so that caches are used."""
    for _ in range(3):
        note(sys._getframe(), free.probe_capture(PYTHON), held.probe_capture(PYTHON))
        note(sys._getframe(), *map(free.probe_capture, (PYTHON,)))


def clean(text):
    return "".join("\ufffd" if "\ud800" <= c < "\ue000" else c for c in text)


def judge():
    """Check that every id noted so far still means the stack it was noted with."""
    wrong = 0
    first = None
    count = len(seen)
    for number, want in seen:
        got = definitions.stack(number) if number else ()
        want = tuple((clean(a), clean(b), c) for a, b, c in want)
        if got != want:
            wrong += 1
            first = first or (got[:4], want[:4], len(got), len(want))
    seen.clear()
    assert not wrong, "%d of %d stacks wrong; first:\n  got  %r\n  want %r\n  %d %d" % ((wrong, count) + first)
    assert count, "nothing was captured"
    return count


class Thing:
    @property
    def value(self):
        capture()
        return 1

    @staticmethod
    def static():
        capture()

    @classmethod
    def of_class(cls):
        capture()

    def __getattr__(self, name):
        capture()
        return name

    def __lt__(self, other):
        capture()
        return False

    def __enter__(self):
        capture()
        return self

    def __exit__(self, *_):
        capture()

    def __hash__(self):
        capture()
        return 1


class Made:
    def __init__(self):
        capture()


def test_a_class_that_is_called_often_adds_no_frame():
    for _ in range(300):  # from 3.12 on a call that became warm has a frame of the interpreter's own below __init__
        Made()


def test_calls_of_every_kind_are_seen_as_python_sees_them():
    thing = Thing()
    thing.value
    Thing.static()
    Thing.of_class()
    thing.missing
    with thing:
        {thing: 1}
    sorted([Thing(), Thing()])
    (lambda: capture())()
    [capture() for _ in range(2)]
    {k: capture() for k in range(2)}
    functools.reduce(lambda a, b: capture(), [1, 2, 3])
    list(map(lambda _: capture(), range(2)))
    functools.partial(capture)()
    max([1, 2], key=lambda _: capture() or 1)


def test_a_call_over_several_lines_has_the_line_python_gives_it():
    note(
        sys._getframe(),
    )

    def several(
        a,
        b,
    ):
        capture()
        return (
            a,
            capture(),
            b,
        )

    several(
        capture(),
        b=several(
            1,
            2,
        ),
    )
    try:
        several(1, 2)
        raise KeyError(
            capture()
        )
    except KeyError:
        capture()
    finally:
        capture()


def recurse(n):
    if n:
        return recurse(n - 1)
    capture()


def test_recursion_up_to_and_beyond_the_depth_is_right():
    for n in (1, 10, 100, DEPTH - 20, DEPTH, DEPTH + 300):
        recurse(n)


def generate(n):
    capture()
    if n:
        yield from generate(n - 1)
    capture()
    yield n
    capture()


class Iterate:
    def __iter__(self):
        return self

    def __next__(self):
        capture()
        raise StopIteration


def test_generators_are_seen_running_and_closing():
    list(generate(5))
    g = generate(3)
    next(g)
    g.close()
    sum(generate(2))
    list(Iterate())

    def closing():
        try:
            yield 1
        finally:
            capture()

    for g in closing():
        break
    del g
    gc.collect()


async def coroutine(n):
    capture()
    await asyncio.sleep(0)
    capture()
    if n:
        await coroutine(n - 1)

    async def agen():
        capture()
        yield 1
        capture()

    async for _ in agen():
        capture()


def test_coroutines_and_tasks_are_right():
    async def main():
        await asyncio.gather(*(coroutine(i) for i in range(4)))

    asyncio.run(main())


class Dying:
    def __init__(self, n):
        self.n = n
        self.other = None

    def __del__(self):
        capture()
        if self.n:
            Dying(self.n - 1)


def test_del_of_objects_that_die_as_frames_return_is_right():
    def hold():
        x = Dying(2)
        return 1

    hold()
    try:
        y = Dying(0)
        del y
        raise ValueError
    except ValueError:
        pass
    for _ in range(20):
        a, b = Dying(0), Dying(0)
        a.other, b.other = b, a
        del a, b
        gc.collect()


def test_code_made_at_run_time_is_right():
    for n in range(200):
        space = {"capture": capture}
        exec(compile("def f%d():\n%s\tcapture()\nf%d()\n" % (n, "\n" * n, n), "<made %d>" % n, "exec"), space)
    eval("capture()")
    exec("class A:\n\tcapture()\n")


def test_names_that_are_not_ascii_are_right():
    for name in ("é", "Ω", "名前", "𝔘𝔫𝔦", "ÿ_latin"):
        space = {"capture": capture}
        exec(compile("def %s():\n\tcapture()\n%s()\n" % (name, name), "/tmp/%s.py" % name, "exec"), space)
    exec(compile("capture()", "/tmp/\udcff bytes.py", "exec"))


def test_long_names_are_cut_and_do_no_harm():
    space = {"free": free}
    exec("def %s():\n\treturn free.probe_capture(1)\n" % ("x" * 3000), space)
    number = space["x" * 3000]() & 0xFFFFFFFF
    name = definitions.stack(number)[0][0]
    assert 1000 <= len(name) < 3000 and set(name) == {"x"}, len(name)


def test_callbacks_from_c_are_right():
    def back(n):
        capture()
        return free.probe_call(wrapped, n - 1) if n else 0

    wrapped = CALLBACK(back)
    free.probe_call(wrapped, 4)


def churn(rounds):
    """Fresh functions whose code objects die at once, so that their addresses are used again."""
    for n in range(rounds):
        space = {"free": free, "sys": sys, "note": note}
        source = "def f%d():\n%s\tnote(sys._getframe(), free.probe_capture(1))\nf%d()\n" % (n, "\n" * (n % 50), n)
        exec(compile(source, "<churn %d>" % (n % 7), "exec"), space)


def test_code_objects_that_use_an_address_again_never_get_an_old_id():
    churn(3000)
    count = judge()
    assert count == 3000


def test_churn_in_one_thread_leaves_steady_stacks_of_another_right():
    stop = threading.Event()

    def steady():
        while not stop.is_set():
            note(sys._getframe(), free.probe_capture(PYTHON))
            recurse_quietly(20)
        free.probe_thread_end()

    thread = threading.Thread(target=steady)
    thread.start()
    churn(1000)
    stop.set()
    thread.join()


def recurse_quietly(n):
    if n:
        return recurse_quietly(n - 1)
    note(sys._getframe(), free.probe_capture(PYTHON))


def test_threads_that_fight_for_the_gil_each_see_their_own_stack():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(n):
        for i in range(20):
            recurse_quietly(n + i % 5)
            Thing().value
            list(generate(2))
            x = Dying(1)
            del x
        free.probe_thread_end()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.setswitchinterval(before)


def test_a_profile_or_trace_function_changes_nothing():
    sys.settrace(lambda *_: None)
    recurse(3)
    sys.settrace(None)
    sys.setprofile(lambda *_: None)
    recurse(3)
    sys.setprofile(None)


def test_a_thread_without_python_has_no_python_stack():
    assert free.probe_native_thread() & 0xFFFFFFFF == 0


def test_equal_stacks_have_one_id_and_other_lines_another():
    ids = [free.probe_capture(PYTHON) for _ in range(100)]
    other = free.probe_capture(PYTHON)
    assert len(set(ids)) == 1 and other != ids[0], (ids, other)
    seen.append((other & 0xFFFFFFFF, definitions.stack(other & 0xFFFFFFFF)))


def test_boundaries_mark_each_entry_from_c():
    def inner():
        return held.probe_capture(PYTHON) & 0xFFFFFFFF

    def flags(number):
        return definitions.read()["python_stack"][number]["c_boundaries"]

    plain = flags(inner())
    through_c = flags(functools.reduce(lambda a, b: inner(), [1, 2]))
    number = inner()
    depth = len(definitions.read()["python_stack"][number]["frames"])
    if sys.version_info < (3, 11):
        assert plain == list(range(depth)), plain
    else:
        assert plain == [depth - 1], (plain, depth)
        assert through_c == [1, depth], (through_c, depth)


def test_a_definition_that_found_no_room_gives_0_and_is_made_later():
    def once():
        return held.probe_capture(PYTHON) & 0xFFFFFFFF

    held.probe_refuse(1)
    refused = [once() for _ in range(2)]
    held.probe_refuse(0)
    assert refused == [0, 0], refused
    for _ in range(2):
        note(sys._getframe(), held.probe_capture(PYTHON))
        assert once()


def test_texts_are_interned_and_bad_bytes_replaced():
    cases = {
        b"step_#": "step_#",
        "schön".encode(): "schön",
        b"a\xffb": "a\ufffdb",
        b"\xed\xa0\x80": "\ufffd" * 3,
        b"\xf0\x9f\x98": "\ufffd" * 3,
        b"\xc0\x80": "\ufffd" * 2,
        "𝔘".encode(): "𝔘",
    }
    ids = {raw: held.probe_text(raw, len(raw)) for raw in cases}
    again = {raw: free.probe_text(raw, len(raw)) for raw in cases}
    assert ids == again and len(set(ids.values())) == len(cases) and 0 not in ids.values()
    texts = definitions.read()["text"]
    for raw, text in cases.items():
        assert texts[ids[raw]]["text"] == text, (raw, texts[ids[raw]])
    assert held.probe_text(b"", 0) == 0


def test_a_forked_child_defines_its_own_stacks_from_1():
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            definitions.__init__()
            held.probe_child()
            number = held.probe_capture(PYTHON) & 0xFFFFFFFF
            capture()
            judge()
            code = 0 if number == 1 else 2
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    assert status == 0, "status %#x" % status


def test_while_python_shuts_down_only_the_thread_that_does_it_has_a_stack():
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        held.probe_child()

        class Late:
            """Captures when the interpreter destroys it; frames of other threads may be gone by then."""

            def __del__(self, lib=held, leave=os._exit, sleep=time.sleep, late=sys.is_finalizing):
                mine, none = lib.probe_capture(1), 0
                while none < 20:  # what was captured before is not seen again
                    none = 0 if lib.probe_last_spun() else none + 1
                    sleep(0.001)
                leave(0 if late() and mine else 3)

        for _ in range(2):
            threading.Thread(target=free.probe_spin, args=(PYTHON, 600000), daemon=True).start()
        while not free.probe_last_spun():
            time.sleep(0.001)
        sys.ballast = Late()
        leave_now()
    status = os.waitpid(pid, 0)[1]
    assert status == 0, "status %#x" % status


class Leave(BaseException):
    """Goes on capturing after the tests until the interpreter ends."""


def leave_now():
    raise Leave


def churn_in_thread():
    churn(200)
    free.probe_thread_end()


def soak(seconds):
    """Fresh functions in 8 threads: ids stay right and memory flat."""

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    end = time.time() + seconds
    total = first = 0
    while time.time() < end:
        threads = [threading.Thread(target=churn_in_thread) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        total += judge()
        first = first or resident()
    print("%d stacks right, %.1f MiB, then %.1f MiB" % (total, first / 2**20, resident() / 2**20))
    return resident() > first + 2**23


def unsupported():
    """A version without a table: no stack, no crash, and it is said."""
    captured = {free.probe_capture(PYTHON) for _ in range(300)}
    print("%s: %s" % (sys.version.split()[0], describe()))
    return captured != {0} or "not supported" not in describe()


def main():
    free.probe_start(PYTHON, DEPTH)
    if not (3, 9) <= sys.version_info < (3, 16):
        return unsupported()
    if len(sys.argv) > 2:
        return soak(float(sys.argv[2]))
    failed = total = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            total += judge() if seen else 0
        except Leave:
            return 0
        except BaseException as error:
            seen.clear()
            failed += 1
            print("not ok", name[5:].replace("_", " "), "\n ", type(error).__name__, str(error)[:1500])
            if os.environ.get("STORMLOG_TEST_VERBOSE"):
                raise
    threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    if "python %d.%d.%d" % sys.version_info[:3] not in describe():
        failed += 1
        print("not ok", describe())
    print(
        "%s%s: %d stacks compared, %d failed tests, %d definitions twice; %s"
        % (sys.version.split()[0], " without GIL" if threaded else "", total, failed, definitions.twice, describe())
    )
    return failed != 0


sys.exit(main())
