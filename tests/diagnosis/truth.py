# SPDX-License-Identifier: MIT
"""Whether a program of the corpus does what its manifest says, by the simulator's journal alone.

Claims, each a member of "truth"; `work` is what a process did from its first allocation to its last, counted in allocations and frees:
    rising   {kind, bytes: [least, most], least}   blocks of that size that are live at 1/4, 1/2, 3/4 and the end of the work become more each
                                                   time, to at least `least`; "processes": in how many (default 1); "after": not two are live when that
                                                   share of the work is done, and the quarters are those of the rest
    stairs   the same with 1/3, 2/3 and the end
    objects  {made: call, undone: call or null, least}   successful calls of the one less those of the other; "processes" as above
    failed   {bytes: [least, most], times}         allocations that failed with that many bytes
    largest  {bytes: [least, most], times}         the largest request of a run is of that size and was made so often
    outlier  {factor}                              one process's peak is that many times the median of all peaks
    devices  {processes, device}                   so many processes made allocations or contexts on a device
    steady   factor                                no more is live in the last third of the work than in the first two, times the factor
    returns  share                                 what is live at the end of the work is at most that share of the peak
    most     bytes                                 no process ever has more live: for threads, whose order is the machine's
    empty    true                                  nothing is live when all is over; false: something is
    processes  count                               so many processes used the GPU
"""
import statistics

import journal

def work(process):
    """The effects from the first allocation to the last: what comes after is how the program ends."""
    last = max((at for at, effect in enumerate(process.effects) if effect.what == "alloc"), default=-1)
    return process.effects[:last + 1]


def live_after(effects, wanted=lambda effect: True):
    """Blocks and bytes that are live after these effects."""
    live = {}
    for effect in effects:
        if effect.what == "alloc":
            live[effect.address] = effect
        else:
            live.pop(effect.address, None)
    chosen = [effect for effect in live.values() if wanted(effect)]
    return len(chosen), sum(effect.bytes for effect in chosen)


def parts(process, *shares):
    """The work up to each share of its effects: a stall of the machine does not move them."""
    done = work(process)
    return [done[:max(1, round(len(done) * share))] for share in shares]


def of_size(claim):
    low, high = claim["bytes"]
    return lambda effect: effect.kind == claim.get("kind", "device") and low <= effect.bytes <= high


def rises(process, claim, shares):
    counts = [live_after(part, of_size(claim))[0] for part in parts(process, *shares)]
    return all(a < b for a, b in zip(counts, counts[1:])) and counts[-1] >= claim["least"], counts


def by_process(processes, claim, holds):
    answers = [holds(process) for process in processes]
    right = sum(bool(answer[0]) for answer in answers)
    if right != claim.get("processes", 1):
        return "%d processes, not %d: %s" % (right, claim.get("processes", 1), [answer[1] for answer in answers])
    return None


def rising(processes, claim):
    after = claim.get("after", 0)
    quarters = [after + (1 - after) * part for part in (.25, .5, .75, 1)]

    def holds(process):
        early = live_after(parts(process, after)[0], of_size(claim))[0] if after else 0
        right, counts = rises(process, claim, quarters)
        return right and early <= 1, [early, *counts]
    return by_process(processes, claim, holds)


def stairs(processes, claim):
    return by_process(processes, claim, lambda process: rises(process, claim, (1 / 3, 2 / 3, 1)))


def objects(processes, claim):
    def left(process):
        done = [journal.plain(call.api) for call in process.calls if call.result == 0]
        kept = done.count(claim["made"]) - (done.count(claim["undone"]) if claim["undone"] else 0)
        return kept >= claim["least"], kept
    return by_process(processes, claim, left)


def requests(process, result):
    return [call.bytes for call in process.calls if call.verb == journal.ALLOC and call.application and (call.result == 0) == result]


def failed(processes, claim):
    low, high = claim["bytes"]
    sizes = [size for process in processes for size in requests(process, False)]
    count = sum(low <= size <= high for size in sizes)
    return None if count == claim.get("times", 1) else "%d allocations of such a size failed: %s" % (count, sizes[:8])


def largest(processes, claim):
    low, high = claim["bytes"]
    sizes = sorted((size for process in processes for ok in (True, False) for size in requests(process, ok)), reverse=True)
    count = sum(low <= size <= high for size in sizes)
    right = sizes and low <= sizes[0] <= high and count == claim.get("times", 1)
    return None if right else "largest requests are %s" % sizes[:8]


def peak(process):
    return max((row.peak_bytes for (kind, _), row in process.memory.items() if not kind.startswith("host")), default=0)


def outlier(processes, claim):
    peaks = sorted(peak(process) for process in processes)
    middle = statistics.median(peaks)
    right = peaks[-1] >= claim["factor"] * middle and peaks[-2] < claim["factor"] * middle
    return None if right else "peaks are %s" % peaks


def devices(processes, claim):
    count = sum(any(call.device == claim["device"] and call.verb in (journal.ALLOC, journal.OTHER) and call.result == 0 for call in process.calls)
                for process in processes)
    return None if count == claim["processes"] else "%d processes used device %d" % (count, claim["device"])


def highest(effects, total=0):
    """The most bytes that are live during these effects, and what is live after them; `total` is live before."""
    top = total
    for effect in effects:
        total += effect.bytes if effect.what == "alloc" else -effect.bytes
        top = max(top, total)
    return top, total


def steady(processes, factor):
    wrong = []
    for process in processes:
        early, = parts(process, 2 / 3)
        before, live = highest(early)
        after, _ = highest(work(process)[len(early):], live)
        if after > factor * before:
            wrong.append("%d bytes at most in the first two thirds, %d in the last" % (before, after))
    return "; ".join(wrong) or None


def returns(processes, share):
    wrong = []
    for process in processes:
        top, end = highest(work(process))
        if end > share * top:
            wrong.append("%d of %d bytes live at the end of the work" % (end, top))
    return "; ".join(wrong) or None


def most(processes, limit):
    tops = [highest(process.effects)[0] for process in processes]
    return None if max(tops) <= limit else "%s bytes live at most" % tops


def empty(processes, wanted):
    left = [live_after(process.effects)[0] for process in processes]
    return None if (sum(left) == 0) == wanted else "%s blocks live at the end" % left


def processes(found, count):
    return None if len(found) == count else "%d processes used the GPU" % len(found)


CLAIMS = {claim.__name__: claim for claim in (rising, stairs, objects, failed, largest, outlier, devices, steady, returns, most, empty, processes)}


def wrong(program, recording):
    """Sentences; empty where every claim holds."""
    found = recording.truth()
    said = ["%s: %s" % (name, answer) for name, claim in program.truth.items() if (answer := CLAIMS[name](found, claim))]
    errors = [error for process in found for error in process.errors]
    events = sum(len(process.calls) for process in found)
    if not program.healthy and not program.places():
        said.append("no line is marked CULPRIT")
    if program.healthy and program.truth.keys() <= {"processes"}:
        said.append("a healthy program without a claim")
    if events > 400000:
        said.append("%d calls are too many" % events)
    return said + errors
