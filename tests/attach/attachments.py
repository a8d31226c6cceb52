#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""attachments.py [COUNT [SEED]]: attaches at a random moment to programs of tests/apps that run without a recorder.  From that moment on
the trace must hold the simulator's journal's calls: for each thread names and results in order, and every block with address and size."""
import collections
import concurrent.futures
import glob
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import stormlog_trace
import wakings

LATENCY_NS = 3000000
SHORT = ("driver", "vmm", "graphs", "imports", "contexts", "graphics")  # make few calls: they would end before they are watched
LATER = ("fork_exec", "ipc", "hsa", "plugin_host", "lookup")  # children, a family that is not watched, libraries that are loaded late


def permitted():
    """None, or why this kernel or this user cannot attach."""
    child = subprocess.Popen([os.path.join(e2e.APPS, "kill_me"), "1", "_exit", "20000000"], stdout=subprocess.PIPE,
                             env=dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_LATENCY="1000000", SIM_DIR="/dev/shm/stormlog-attach-%d" % os.getpid()))
    child.stdout.readline()
    done = subprocess.run([e2e.ATTACH, "--duration", "0.1", "-o", "/dev/shm/stormlog-attach-%d" % os.getpid(), str(child.pid)],
                          capture_output=True, text=True, timeout=120)
    child.kill()
    child.communicate()
    subprocess.run(["rm", "-rf", "/dev/shm/stormlog-attach-%d" % os.getpid()])
    return None if done.returncode == 0 else done.stderr


class Attached:
    """stormlog-attach beside a run, from `ready` on."""

    def __init__(self, run, *options, **environment):
        self.process = subprocess.Popen([e2e.ATTACH, "-o", run.traces, *options, str(run.process.pid)], stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **environment))
        self.said, self.since_ns = [], None
        for line in self.process.stderr:
            self.said.append(line)
            if line == "ready\n":
                self.since_ns = time.monotonic_ns()
                break

    def end(self):
        self.said.append(self.process.communicate(timeout=120)[1])
        return self.process.returncode


def rows_of(trace):
    """{exported name: class} of the calls that can be watched."""
    families, verbs, rows = trace.header["families"], trace.header["verbs"], {}
    for name, verb, _, family in trace.hooks:
        if families[family][0] in ("cuda_runtime", "cuda_driver", "hip"):
            rows[name] = e2e.CLASS_OF.get(verbs[verb][0], "memory")
    return rows


def differences(trace, truth, since_ns):
    """What differs, as sentences.  The trace may begin with more calls than expected: `ready` is said after the probes are set."""
    wrong, ours, blocks = [], {}, []
    # The journal is late for the first call: the simulator initialises in it before it writes that the call was entered.
    since_ns = max(since_ns, min((call for call in truth.calls if call.returned_ns), key=lambda call: call.entered_ns).returned_ns)
    # A library that is loaded while the program is watched is watched from a note in the trace on.
    since_ns = max([since_ns, *(note["ns"] for note in trace.defs.get("note", []) if "a library was loaded" in note["text"])])
    # A thread may be held up between the entry of a call and the journal's line for it: its first call may have begun before `ready`.
    first = {}
    for call in truth.calls:
        if call.entered_ns > since_ns:
            first[call.thread] = min(call.entered_ns, first.get(call.thread, call.entered_ns))
    journalled = {e2e.journal.plain(call.api) for call in truth.calls}  # stubs of the simulator write nothing
    events, verbs = trace.events(), trace.verbs()
    tids = {thread["id"]: thread["tid"] for thread in trace.defs.get("thread", [])}
    names = ("thread", "api", "result", "address", "bytes", "duration_ns", "time_ns", "stream")
    before = {verb[0] for verb in trace.header["verbs"] if verb[1] == "before"}
    for thread, api, result, address, size, duration, at, stream in zip(*(events[name].tolist() for name in names)) if events else []:
        began = at if verbs[api] in before else at - duration
        if e2e.journal.plain(trace.hooks[api - 1][0]) in journalled:
            ours.setdefault(tids[thread], []).append((began, e2e.journal.plain(trace.hooks[api - 1][0]), result))
        if verbs[api] == "ALLOC" and not result:
            blocks.append((address, size))
        if verbs[api] in ("ALLOC", "FREE") and trace.hooks[api - 1][0].endswith("_ptsz") and not stream:
            wrong.append("%s of a thread's own default stream is on stream 0" % trace.hooks[api - 1][0])
    rows = rows_of(trace)
    theirs = {}
    for call in e2e.expected_calls(truth, rows):
        if call.thread in first and call.entered_ns > first[call.thread] and call.api not in CHECKED:
            theirs.setdefault(call.thread, []).append((e2e.journal.plain(call.api), call.result))
    for tid, calls in theirs.items():
        mine = [call[1:] for call in sorted(ours.get(tid, []))]
        if mine[len(mine) - len(calls):] != calls:
            at = next((i for i, (a, b) in enumerate(zip(mine[max(0, len(mine) - len(calls)):], calls)) if a != b), len(calls))
            wrong.append("thread %d: %d calls, the trace has %d; from %d on %s, were %s" % (
                tid, len(calls), len(mine), at, mine[max(0, len(mine) - len(calls)):][at:at + 4], calls[at:at + 4]))
    inside = {call.number: call for call in truth.calls}
    for effect in truth.effects:
        outer = inside.get(effect.parent)
        while outer and outer.parent in inside:
            outer = inside[outer.parent]
        if effect.what == "alloc" and effect.kind in ("device", "managed", "pool", "host_pinned", "vmm", "array") and outer and \
                outer.thread in first and outer.entered_ns > first[outer.thread]:
            if (effect.address, effect.bytes) not in blocks and (effect.address, 0) not in blocks:
                wrong.append("%s block %#x of %d bytes is missing" % (effect.kind, effect.address, effect.bytes))
    return wrong


STANDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stands.py")


def pythons():
    """STORMLOG_TEST_PYTHONS, or those on PATH and pyenv's."""
    if os.environ.get("STORMLOG_TEST_PYTHONS"):
        return os.environ["STORMLOG_TEST_PYTHONS"].split()
    found = {}
    for path in [shutil.which("python3"), *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3*/bin/python3")))]:
        if path and subprocess.run([path, "-c", "import sys; sys.exit(sys.version_info < (3, 9))"], capture_output=True).returncode == 0:
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def python_stacks(trace):
    """{id: [[function, file, line]]}"""
    frames = {frame["id"]: [frame.get("function"), frame.get("file"), frame.get("line")] for frame in trace.defs.get("frame", [])}
    return {stack["id"]: [frames[frame] for frame in stack["frames"]] for stack in trace.defs.get("python_stack", [])}


def stands(trace, folder):
    """Compare a trace's stacks with those that stands.py wrote down.  Returns how many were compared, how many have a frame without a name, what is wrong."""
    events, stacks, taken = trace.events(), python_stacks(trace), {}
    tids = {thread["id"]: thread["tid"] for thread in trace.defs["thread"]}
    for thread, api, python in zip(*(events[name].tolist() for name in ("thread", "api", "python"))):
        if trace.hooks[api - 1][0] == "cudaMalloc":
            taken.setdefault(tids[thread], []).append(stacks.get(python, []))
    compared, unnamed, wrong = 0, 0, []
    for path in glob.glob(os.path.join(folder, "stands-*")):
        with open(path) as file:
            truth = [json.loads(line) for line in file]
        mine = taken.get(int(path.rsplit("-", 1)[1]), [])
        if len(mine) != len(truth):
            wrong.append("%d stacks, %d calls" % (len(mine), len(truth)))
        for seen, real in zip(mine, truth):
            gone = [at for at, (a, b) in enumerate(zip(seen, real)) if a == [None, None, None] and b[1].startswith("<")]
            compared += 1
            unnamed += bool(gone)
            if [a for at, a in enumerate(seen) if at not in gone] != [b for at, b in enumerate(real) if at not in gone] and len(wrong) < 10:
                wrong.append((seen[:5], real[:5], len(seen), len(real)))
    return compared, unnamed, wrong


def native_stacks(trace):
    """{id: ([address], truncated)}"""
    return {stack["id"]: (list(struct.unpack("<%dQ" % (len(stack["pcs"]) // 8), stack["pcs"])), bool(stack.get("truncated")))
            for stack in trace.defs.get("native_stack", [])}


STOOD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stood.py")


def stood(trace, folder, own):
    """Compare native stacks of a trace with those that stood or stood.py wrote down, without their `own` innermost frames, which differ.  Returns counts of
    stacks (whole; cut, which are right as far as they go; missing; apart, with more or fewer evaluation loops than runs of Python frames), and what is wrong."""
    events, stacks, taken, counts, wrong = trace.events(), native_stacks(trace), {}, dict.fromkeys(("whole", "cut", "missing", "apart"), 0), []
    tids = {thread["id"]: thread["tid"] for thread in trace.defs["thread"]}
    lines = {stack["id"]: stack for stack in trace.defs.get("python_stack", [])}
    loops = [(loop["begin"], loop["end"]) for loop in trace.defs.get("eval_range", [])]
    for thread, api, native, python in zip(*(events[name].tolist() for name in ("thread", "api", "native", "python"))):
        if trace.hooks[api - 1][0] == "cudaMalloc":
            taken.setdefault(tids[thread], []).append((stacks.get(native), lines.get(python)))
    for path in glob.glob(os.path.join(folder, "stood-*")):
        with open(path) as file:
            truth = [[int(pc, 16) for pc in line.split()][own:] for line in file]
        mine = taken.get(int(path.rsplit("-", 1)[1]), [])
        if len(mine) < len(truth):
            wrong.append("%d stacks, %d calls" % (len(mine), len(truth)))
        for (seen, python), real in zip(mine[len(mine) - len(truth):], truth):
            if not seen:
                counts["missing"] += 1
                continue
            counts["cut" if seen[1] else "whole"] += 1
            if seen[0][own:] != (real[:len(seen[0]) - own] if seen[1] else real) and len(wrong) < 10:
                wrong.append((seen, real))
            if python:
                ends = python.get("c_boundaries", [])
                runs = len(ends) + (len(python["frames"]) - 1 not in ends)
                counts["apart"] += runs != sum(any(begin < pc <= end for begin, end in loops) for pc in seen[0])
    return counts, wrong


def places(trace):
    """{(call, its native stack as library and offset of each frame): how often}, without calls that a vendor's library makes: such a call
    is part of another one, which began before the attachment."""
    modules, stacks, found = sorted(trace.defs["module"], key=lambda module: module["base"]), native_stacks(trace), collections.Counter()

    def place(pc):
        inside = [module for module in modules if module["base"] <= pc < module["end"]]
        return (os.path.basename(inside[-1]["path"]), pc - inside[-1]["base"]) if inside else (None, pc)
    named = {id: (tuple(map(place, stack[0])), stack[1]) for id, stack in stacks.items()}
    for api, native in zip(*(trace.events()[name].tolist() for name in ("api", "native"))):
        if native and not named[native][0][0][0].startswith("libsim"):
            found[trace.hooks[api - 1][0], named[native]] += 1
    return found


def checked():
    """Calls that the agent records only when they fail for want of memory; stormlog-attach does not watch them."""
    with open(os.path.join(e2e.HERE, "..", "..", "agent", "hooks", "cuda_driver.def")) as file:
        return set(re.findall(r"^(?:CHECKED|QUERY|LOOKUP)\(\w+, (\w+)", file.read(), re.M))


CHECKED = checked()


def has_library(pid):
    try:
        with open("/proc/%d/maps" % pid) as file:
            return re.search(r"/\S*(cuda|amdhip64)\S*\.so", file.read()) is not None
    except OSError:
        return False


def watched(attached, delay):
    """A function that attaches to a program `delay` seconds after it has loaded its library, and waits until both have ended."""
    def during(run):
        end = time.monotonic() + 60
        while not has_library(run.process.pid) and run.process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(delay)
        attached.append(Attached(run))
        if attached[0].since_ns:
            run.process.wait()
        attached[0].end()
    return during


def beside(name, arguments):
    """The trace of a program to which stormlog-attach attaches as soon as it has its library; None if it had ended."""
    with e2e.Recording(os.path.join(e2e.APPS, name), *arguments, preload=False, SIM_LATENCY=5 * LATENCY_NS, code=None, during=watched([], 0)) as run:
        return stormlog_trace.open_folder(run.traces)[0] if run.files() else None


def make_group(name):
    """A new cgroup in any hierarchy that permits one: its folder, and its path as in /proc/PID/cgroup."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"):
        folder = os.path.join(root, name)
        try:
            if not os.path.exists(os.path.join(root, "cgroup.procs")):
                continue
            os.mkdir(folder)
            return folder, "/" + name
        except OSError:
            continue
    return None, None


PROGRAMS = [program for program in wakings.PROGRAMS if program[0] not in LATER]


def attachment(seed, program=None):
    """One run of this program or a random one.  Returns its description, the number of calls compared, and what is wrong."""
    choice = random.Random(seed)
    name, arguments, _ = program or choice.choice(PROGRAMS)
    arguments = [argument.format(apps=e2e.APPS) for argument in arguments]
    latency_ns = LATENCY_NS * 20 if name in SHORT else LATENCY_NS // 10 if name == "threads" else LATENCY_NS
    attached = []
    during = watched(attached, choice.choice((0, choice.uniform(0, 0.05), choice.uniform(0, 0.3))))
    with e2e.Recording(os.path.join(e2e.APPS, name), *arguments, preload=False, SIM_LATENCY=latency_ns, code=None, during=during) as run:
        what, since_ns = "seed %d: %s" % (seed, name), attached[0].since_ns
        if not since_ns:  # the program had ended, or had no library yet
            return what + ": " + "".join(attached[0].said).strip(), 0, []
        trace, = stormlog_trace.open_folder(run.traces)
        truth = next(process for process in run.truth() if process.pid == run.process.pid)
        wrong = differences(trace, truth, since_ns)
        wrong += ["stormlog-attach: exit %d" % attached[0].process.returncode] if attached[0].process.returncode else []
        if wrong and os.environ.get("STORMLOG_KEEP_FAILED"):
            os.rename(run.folder, run.folder + "-failed")
            wrong.append("kept in " + run.folder + "-failed")
        return what, sum(call.entered_ns > since_ns for call in truth.calls), wrong


def each(seed):
    """attachment() of every program, several at once; up to ten times for a program that ends before it is watched."""
    def until_compared(program):
        return next((found for found in (attachment(seed + i, program) for i in range(10)) if found[1] or found[2]), ("%s: never watched" % program[0], 0, []))
    with concurrent.futures.ThreadPoolExecutor(wakings.AT_ONCE) as pool:
        return list(pool.map(until_compared, PROGRAMS))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    compared = failed = 0
    for i in range(count):
        what, calls, wrong = attachment(seed + i)
        compared += calls
        failed += bool(wrong)
        if wrong or not calls:
            print(what, *wrong, sep="\n    ", flush=True)
    print("%d attachments, %d calls compared, %d wrong" % (count, compared, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
