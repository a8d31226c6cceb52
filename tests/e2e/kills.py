# SPDX-License-Identifier: MIT
"""Kills a program at a random moment and compares its trace with the simulator's journal, event by event.

For each thread the trace's finished calls are the journal's, with addresses and sizes, in order, once each.  Only the last call
that returned in the journal may be in flight in the trace: it had not yet returned to the program.  If the process ended in order
and its ring was removed, since no thread had been at work for a moment, that call is in no file (doc/portability.md)."""
import os
import random
import signal
import time

import e2e
import stormlog_trace

ENDS = {"kill": (-signal.SIGKILL, "interrupted"), "segv": (-signal.SIGSEGV, "interrupted"),
        "abort": (-signal.SIGABRT, "interrupted"), "_exit": (0, "completed"), "quick_exit": (0, "completed")}
IN_FLIGHT, ABANDONED = 1, 2
CALLS = ("cudaMalloc", "cudaFree")


def by_thread_of_journal(truth):
    """{tid: [(name, address, bytes), ...]} of the calls that returned; an allocation's address is its driver call's."""
    inside, threads = {call.parent: call.address for call in truth.calls if call.api == "cuMemAlloc_v2"}, {}
    for call in truth.calls:
        if call.api in CALLS and not call.in_flight and (call.address or call.bytes):
            allocates = call.api == "cudaMalloc"
            row = (call.api, inside[call.number] if allocates else call.address, call.bytes if allocates else 0)
            threads.setdefault(call.thread, []).append(row)
    return threads


def by_thread_of_trace(trace):
    events, threads = trace.events(), {}
    if not events:
        return threads
    columns = [events[name].tolist() for name in ("thread", "api", "address", "bytes", "flags")]
    for thread, api, address, size, flags in zip(*columns):
        name = trace.hooks[api - 1][0]
        if name in CALLS and (address or flags & IN_FLIGHT):
            row = (name, address, size if name == "cudaMalloc" else 0)
            threads.setdefault(thread, ([], []))[bool(flags & (IN_FLIGHT | ABANDONED))].append(row)
    return threads


def differences(trace, truth, ring_gone=False):
    wrong, ours = [], by_thread_of_trace(trace)
    went_on = {call.thread for call in truth.calls if call.in_flight}  # made another call, so the one before had returned to the program
    ids = {thread["tid"]: thread["id"] for thread in trace.defs.get("thread", [])}
    theirs = by_thread_of_journal(truth)
    for tid in sorted(set(ids) - set(theirs)):
        if ours.get(ids[tid], ([], []))[0]:
            wrong.append("thread %d made no calls, the trace has %s" % (tid, ours[ids[tid]][0][:3]))
    for tid, returned in theirs.items():
        done, flying = ours.get(ids.get(tid), ([], []))
        missing = returned[len(done):]
        if done != returned[:len(done)]:
            at = next(i for i, row in enumerate(done) if i >= len(returned) or row != returned[i])
            wrong.append("thread %d: call %d of %d is %s, was %s" % (tid, at, len(returned), done[at], returned[at:at + 1]))
        elif len(missing) > 1 or (missing and not (ring_gone and not flying and tid not in went_on) and (not flying or missing[0][0] != flying[0][0])):
            wrong.append("thread %d: of %d calls the last %d are missing, in flight is %s" % (tid, len(returned), len(missing), flying))
    return wrong


def kill(how=None, threads=None):
    """One run.  Returns its description, the number of events compared, and what is wrong."""
    how, threads, after = how or random.choice(os.environ.get("STORMLOG_KILL", " ".join(ENDS)).split()), threads or random.choice((1, 2, 8)), random.uniform(0.002, 0.15)
    code, status = ENDS[how]
    late = random.random() < 0.75  # waits until the program is ready; else the kill may hit its start

    def when(run):
        if late:
            run.process.stdout.readline()
        time.sleep(after)
    end = {"kill_when": when} if how == "kill" else {}
    args = () if how == "kill" else (how, int(after * 1e6))
    what = "%s, %d threads, after %.1f ms" % (how, threads, after * 1000)
    with e2e.Recording(os.path.join(e2e.APPS, "kill_me"), threads, *args, code=code, **end) as run:
        truth = run.truth()
        if not truth or not [name for name in run.files() if name.endswith(".zst")]:
            return what, 0, []
        report = run.report()
        (trace,), (mine,) = stormlog_trace.open_folder(run.traces), report["processes"]
        ring_gone = status == "completed" and not [name for name in run.files() if name.endswith(".ring")]
        wrong = differences(trace, truth[0], ring_gone)
        if mine["status"] != ("failed" if status == "completed" and mine["exit_status"] else status) or mine["lost_events"]:
            wrong.append("report: %s, %d lost" % (mine["status"], mine["lost_events"]))
        counted = sum(api["calls"] for api in mine["apis"] if api["api"] in CALLS)
        events = trace.events()
        names = [trace.hooks[api - 1][0] for api in events["api"].tolist()] if events else []
        done = sum(name in CALLS and not flags & (IN_FLIGHT | ABANDONED) for name, flags in zip(names, events["flags"].tolist() if events else []))
        if counted != done:
            wrong.append("report counts %d calls, the trace has %d" % (counted, done))
        if wrong and os.environ.get("STORMLOG_KEEP_FAILED"):
            os.rename(run.folder, run.folder + "-failed")
            wrong.append("kept in " + run.folder + "-failed")
        return what, done, wrong
