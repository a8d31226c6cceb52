#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""wakings.py [COUNT [SEED]]: records programs of tests/apps, whose recordings sleep and are woken and put to sleep again at random moments.
The report must agree with the simulator's journal: every live block, total and call, and the peaks since the recording was woken."""
import concurrent.futures
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import stormlog_trace

# program, its arguments, threads.  {sim}: the folder of the simulated libraries.
PROGRAMS = [("runtime11", [], 3), ("runtime12", [], 3), ("runtime13", [], 3), ("runtime_static", [], 3), ("driver", [], 1), ("lookup", [], 1),
            ("plugin_host", ["{apps}/plugin.so", "{apps}/plugin11.so", "{apps}/plugin13.so"], 1), ("threads", [], 8), ("hip5", [], 1),
            ("hip6", [], 1), ("hip7", [], 1), ("hip_deep6", [], 1), ("hsa", [], 1), ("two_devices", [], 1), ("reset", [], 1), ("vmm", [], 1),
            ("imports", [], 1), ("graphics", ["cu", "libcuda.so.1"], 1), ("contexts", [], 1), ("pools", [], 1), ("graphs", [], 1),
            ("capture", [], 1), ("arrays", [], 1), ("fork_exec", [], 1), ("ipc", [], 1), ("oom", ["retry"], 1)]
LATENCY_NS = 2000000  # each simulated call takes so long, so that the programs take tenths of a second
AT_ONCE = 6


def attach(run, *options):
    return subprocess.run([e2e.ATTACH, *options, run.traces], capture_output=True, text=True, timeout=60)


def wait_for_ring(run):
    while run.process.poll() is None and not any(name.endswith(".ring") for name in run.files()):
        time.sleep(0.001)


def disturb(run, seed, done):
    """Wake the program after a random time; perhaps put it to rest again and wake it a second time."""
    choice = random.Random(seed)
    wait_for_ring(run)
    for options in choice.choice(([[]], [[], ["--rest"]], [[], ["--rest"], []], [["--rest"], []])):
        time.sleep(choice.choice((0, choice.uniform(0, 0.02), choice.uniform(0, 0.2), choice.uniform(0, 0.5))))
        if run.process.poll() is not None:
            return
        asked_ns = time.monotonic_ns()
        done.append((options, attach(run, *options).returncode, asked_ns))


def peaks(process, since_ns):
    """{(kind, device): (most live bytes from since_ns on, most ever)}, from the simulator's journal."""
    live, most, ever = {}, {}, {}
    for effect in process.effects:
        key = effect.kind, effect.device
        if effect.time_ns > since_ns:
            most[key] = max(most.get(key, 0), live.get(key, 0))
        live[key] = live.get(key, 0) + (effect.bytes if effect.what == "alloc" else -effect.bytes)
        ever[key] = max(ever.get(key, 0), live[key])
        if effect.time_ns > since_ns:
            most[key] = max(most[key], live[key])
    return {key: (max(most.get(key, 0), live[key]), ever[key]) for key in live}


def trace_began_awake(trace):
    return trace.header["settings"]["asleep"] in ("0", "false", "off")


def wrong_peaks(run, report):
    """Compare peaks; only for programs of one thread that were woken once and stayed awake."""
    wrong, traces = [], {trace.header["pid"]: trace for trace in stormlog_trace.open_folder(run.traces)}
    if len(traces) != len(run.truth()):  # after an exec two traces have one pid
        return []
    for real in run.truth():
        slept = traces[real.pid].defs.get("slept", []) if real.pid in traces else []
        if len(slept) != 1 or trace_began_awake(traces[real.pid]) or not slept[0]["wakes"] or "memory" in slept[0]["why"]:
            continue
        wanted = peaks(real, slept[0]["end_ns"])
        mine = next(process for process in report["processes"] if process["pid"] == real.pid)
        for row in mine["memory"]:
            since, ever = wanted.get((row["kind"], row["device"]), (0, 0))
            if not since <= row["peak_bytes"] <= ever:
                wrong.append("%(kind)s %(device)s: peak %(peak_bytes)d" % row + ", was %d since it was woken, %d in all" % (since, ever))
    return wrong


def wrong_stacks(run, done):
    """For recordings that slept from the beginning: blocks made before the first waking must be in the sum for the sleep, not rows of their own without a stack."""
    wrong = []
    for trace in stormlog_trace.open_folder(run.traces):
        if trace_began_awake(trace) or any("memory" in slept["why"] for slept in trace.defs.get("slept", [])):
            continue
        events, verbs = trace.events(), trace.verbs()
        names = ("api", "time_ns", "duration_ns", "address", "result", "python", "native")
        for api, time_ns, duration_ns, address, result, python, native in zip(*(events[name].tolist() for name in names)) if events else []:
            if verbs[api] == "ALLOC" and address and not result and time_ns + duration_ns < done[0][2] and not python and not native:
                wrong.append("block %#x was made %d us before somebody woke it and has no row" % (address, (done[0][2] - time_ns - duration_ns) // 1000))
    return wrong


def waking(seed):
    """One run.  Returns its description, the number of wakings that were answered, and what is wrong."""
    choice = random.Random(seed)
    name, arguments, threads = choice.choice(PROGRAMS)
    done = []
    arguments = [argument.format(apps=e2e.APPS) for argument in arguments]
    with e2e.Recording(os.path.join(e2e.APPS, name), *arguments, STORMLOG_ASLEEP=choice.choice((0, 1, 1)), SIM_LATENCY=LATENCY_NS, code=None,
                       during=lambda run: disturb(run, seed, done)) as run:
        wrong, report = e2e.equal_to_journal(run, threads=2)  # as for several threads peaks may be lower: those during the sleep are not recorded
        if threads == 1:
            wrong += wrong_peaks(run, report)
        wrong += wrong_stacks(run, done) if done and not done[0][0] and not done[0][1] else []
        wrong += ["stormlog-attach %s: exit %d" % (" ".join(options), code) for options, code, _ in done if code not in (0, 3)]
        if wrong and os.environ.get("STORMLOG_KEEP_FAILED"):
            os.rename(run.folder, run.folder + "-failed")
            wrong.append("kept in " + run.folder + "-failed")
    return "seed %d: %s, %s" % (seed, name, done), sum(not options and not code for options, code, _ in done), wrong


def many(first, count):
    """waking() for `count` seeds, several at once: these programs wait most of their time."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(waking, range(first, first + count))


def main():
    count, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    answered = failed = 0
    for what, woken, wrong in many(seed, count):
        answered += woken
        failed += bool(wrong)
        if wrong:
            print(what, *wrong, sep="\n    ", flush=True)
    print("%d runs, %d wakings that were answered, %d runs wrong" % (count, answered, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
