# SPDX-License-Identifier: MIT
"""The contract with Python Stormlog as plain Python: how each number is computed, without numpy and without upstream's code.

Written from the contract and checked against tests/golden; telemetry_diff.py compares the analyzer with it.
Longer than other files: it follows the contract section by section.
"""
import hashlib
import json
import math
import uuid
from collections import Counter, defaultdict



# ---- number helpers --------------------------------------------------------
def rpy(x, n):          # Python round(): correctly rounded decimal == printf/strtod
    return float(f"{x:.{n}f}")


def rnp(x, n):          # numpy scalar round(): scale, rint (half-even), unscale
    s = 10.0 ** n
    y = x * s
    f = math.floor(y)
    d = y - f
    r = f + 1 if d > 0.5 or (d == 0.5 and f % 2) else f
    return float(r) / s


def fmt_bytes(v):
    if v == 0:
        return "0 B"
    u, sign, x = ["B", "KB", "MB", "GB", "TB", "PB"], "-" if v < 0 else "", float(abs(v))
    i = 0
    while x >= 1024.0 and i < 5:
        x /= 1024.0
        i += 1
    return f"{sign}{x:.2f} {u[i]}"


def betai(a, b, x):     # regularised incomplete beta (continued fraction)
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    ln = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)

    def cf(a, b, x):
        tiny = 1e-300
        c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
        d = 1 / (d if abs(d) > tiny else tiny)
        h = d
        for m in range(1, 400):
            for num in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                        -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
                d = 1 + num * d
                d = 1 / (d if abs(d) > tiny else tiny)
                c = 1 + num / (c if abs(c) > tiny else tiny)
                h *= c * d
            if abs(c * d - 1) < 1e-15:
                break
        return h

    if x < (a + 1) / (a + b + 2):
        return math.exp(ln) * cf(a, b, x) / a
    return 1 - math.exp(ln) * cf(b, a, 1 - x) / b


def linreg(x, y):
    n = len(x)
    if max(x) == min(x):
        raise ValueError("identical x")
    mx, my = sum(x) / n, sum(y) / n
    sxx = sum((a - mx) ** 2 for a in x) / n
    syy = sum((b - my) ** 2 for b in y) / n
    sxy = sum((a - mx) * (b - my) for a, b in zip(x, y)) / n
    r = 0.0 if sxx == 0 or syy == 0 else max(-1.0, min(1.0, sxy / math.sqrt(sxx * syy)))
    df = n - 2
    t = r * math.sqrt(df / ((1 - r + 1e-20) * (1 + r + 1e-20)))
    return sxy / sxx, r, betai(df / 2, 0.5, df / (df + t * t))


def median(v):
    s = sorted(v)
    n = len(s)
    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2


# ---- phases ----------------------------------------------------------------
def phase_index(events):
    end, bounds = {}, []
    for e in events:
        k = (e["session_id"], e["rank"])
        end[k] = max(end.get(k, e["timestamp_ns"]), e["timestamp_ns"])
        if e["event_type"] not in ("phase_enter", "phase_exit"):
            continue
        s = e["metadata"].get("phase_scope")
        if not isinstance(s, dict):
            continue
        ok = (all(isinstance(s.get(f), str) for f in ("action", "name", "scope_id", "thread_name"))
              and s["name"].strip() and isinstance(s.get("path"), list)
              and isinstance(s.get("sequence"), int) and isinstance(s.get("thread_id"), int)
              and (s.get("parent_scope_id") is None or isinstance(s["parent_scope_id"], str))
              and s["action"] == e["event_type"][6:])
        if not ok:
            continue
        path = [p for p in s["path"] if isinstance(p, str) and p]
        if path:
            bounds.append((k[0], k[1], e["timestamp_ns"], s["sequence"], s["scope_id"], s, path))
    bounds.sort(key=lambda b: b[:5])
    stacks, spans = defaultdict(list), defaultdict(list)
    for sid, rank, ts, seq, scope, s, path in bounds:
        st = stacks[(sid, rank, s["thread_id"])]
        if s["action"] == "enter":
            st.append((ts, seq, scope, path, s["thread_name"]))
        elif st and st[-1][2] == scope:
            o = st.pop()
            spans[(sid, rank)].append(dict(start=o[0], end=ts, seq=o[1], scope=scope, path=o[3], thread=s["thread_id"], tname=s["thread_name"]))
    for (sid, rank, th), st in stacks.items():
        for ts, seq, scope, path, tn in st:
            spans[(sid, rank)].append(dict(start=ts, end=end[(sid, rank)], seq=seq, scope=scope, path=path, thread=th, tname=tn))
    for group in spans.values():
        group.sort(key=lambda s: (s["start"], s["end"]))
    return spans


def attribute(spans, key, ts):
    act = [s for s in spans.get(key, []) if s["start"] <= ts <= s["end"]]
    if not act:
        return None
    lab = lambda s: " / ".join(s["path"])  # noqa: E731
    by, matches, amb = defaultdict(list), [], set()
    for s in act:
        by[s["thread"]].append(s)
    for ss in by.values():
        d = max(len(s["path"]) for s in ss)
        deep = [s for s in ss if len(s["path"]) == d]
        if len({lab(s) for s in deep}) != 1:
            amb |= {lab(s) for s in deep}
        else:
            matches.append(max(deep, key=lambda s: (s["seq"], s["scope"])))
    if amb or len(matches) != 1:
        paths = sorted(amb | {lab(s) for s in matches})
        out = {"phase_resolution": "ambiguous", "phase_paths": paths}
        if len(paths) > 1:
            out["phase_summary"] = {"phase_path": lab(max(act, key=lambda s: (s["seq"], s["scope"]))), "source": "heuristic"}
        return out
    m = matches[0]
    return {"phase_resolution": "unique", "phase_source": "heuristic", "phase_path": lab(m), "phase_paths": [lab(m)],
            "scope_id": m["scope"], "thread_id": m["thread"], "thread_name": m["tname"]}


# ---- gap analysis ----------------------------------------------------------
def gap(events, spans):
    use = [e for e in events if e["event_type"].strip().lower() == "sample" and (e["device_total_bytes"] or 0) > 0]
    if len(use) < 3:
        return []
    g = [e["device_used_bytes"] - e["allocator_reserved_bytes"] for e in use]
    if max(abs(v / e["device_total_bytes"]) for v, e in zip(g, use)) < 0.05:
        return []
    g = [float(v) for v in g]
    n, out = len(g), []
    ph = lambda e: attribute(spans, (e["session_id"], e["rank"]), e["timestamp_ns"])  # noqa: E731
    mean = sum(g) / n
    std = math.sqrt(sum((v - mean) ** 2 for v in g) / (n - 1))
    if std > 0:
        cnt = sum((v - mean) / std > 2.0 for v in g)
        if cnt:
            i = g.index(max(g))
            z = (g[i] - mean) / std
            out.append(dict(classification="transient_spike", severity="critical" if z > 4 else "warning", confidence=rpy(min(1.0, z / 6), 3),
                            evidence=dict(spike_count=cnt, max_gap_bytes=g[i], max_zscore=rpy(z, 3), mean_gap_bytes=rpy(mean, 1), std_gap_bytes=rpy(std, 1)),
                            ev=use[i]))
    if n >= 5:
        x = [float(e["timestamp_ns"]) for e in use]
        x = [v - x[0] for v in x]
        slope, r, p = linreg(x, g)
        r2 = r * r
        if slope > 0 and r2 >= 0.6:
            out.append(dict(classification="persistent_drift", severity="critical" if r2 > 0.85 else "warning", confidence=rnp(min(1.0, r2), 3),
                            evidence=dict(slope_bytes_per_sec=rnp(slope * 1e9, 1), r_squared=rnp(r2, 4), p_value=rnp(p, 6), gap_start_bytes=rpy(g[0], 1), gap_end_bytes=rpy(g[-1], 1)),
                            ev=use[-1]))
    fr = [(max(0, e["allocator_reserved_bytes"] - e["allocator_allocated_bytes"]) / e["allocator_reserved_bytes"], e) for e in use if e["allocator_reserved_bytes"]]
    if fr:
        avg, mxf = sum(f for f, _ in fr) / len(fr), max(f for f, _ in fr)
        if avg >= 0.3:
            out.append(dict(classification="fragmentation_like", severity="critical" if avg > 0.5 else "warning", confidence=rpy(min(1.0, avg / 0.6), 3),
                            evidence=dict(avg_fragmentation_ratio=rpy(avg, 4), max_fragmentation_ratio=rpy(mxf, 4), avg_gap_bytes=rpy(mean, 1), sample_count=len(fr)),
                            ev=next(e for f, e in fr if f == mxf)))
    for f in out:
        e = f.pop("ev")
        f.update(evidence_timestamp_ns=e["timestamp_ns"], phase_attribution=ph(e), remediation=[])
    out.sort(key=lambda f: ({"critical": 0, "warning": 1, "info": 2}[f["severity"]], -f["confidence"]))
    return out


# ---- collective ------------------------------------------------------------
TOK = "nccl collective communication all_reduce allreduce all_gather allgather reduce_scatter reducescatter broadcast barrier".split()
PRE = {"low": (8, 256 << 20, .06, 3.0, 120e6, 100e6, 100e6, .6, .7), "medium": (6, 128 << 20, .04, 2.5, 150e6, 120e6, 120e6, .5, .5),
       "high": (5, 64 << 20, .025, 1.8, 180e6, 160e6, 180e6, .34, .35)}


def strings(v):
    if isinstance(v, str):
        yield v
    elif isinstance(v, dict):
        for x in v.values():
            yield from strings(x)
    elif isinstance(v, list):
        for x in v:
            yield from strings(x)


def has_tok(t):
    t = t.strip().lower().replace("-", "_")
    c = t.replace("_", "")
    return any(k in t or k.replace("_", "") in c for k in TOK)


def collective(events, preset, spans):
    nmin, bmin, rmin, zmin, mwin, pad, swin, smin, cmin = PRE[preset]
    mwin, pad, swin = int(mwin), int(pad), int(swin)
    if not events:
        return []
    ev = sorted(events, key=lambda e: e["timestamp_ns"])
    marks, groups = defaultdict(list), defaultdict(list)
    for e in ev:
        if any(has_tok(t) for t in [e["event_type"], e["context"] or "", *strings(e["metadata"])]):
            marks[e["rank"]].append(e["timestamp_ns"])
        if e["event_type"].strip().lower() == "sample":
            groups[e["rank"]].append(e)
    spikes = defaultdict(list)
    for rank, es in groups.items():
        if len(es) < nmin:
            continue
        pos = [float(max(0, e["device_used_bytes"] - e["allocator_reserved_bytes"])) for e in es]
        med = float(median(pos))
        mad = float(median([abs(v - med) for v in pos]))
        mean = sum(pos) / len(pos)
        sd = math.sqrt(sum((v - mean) ** 2 for v in pos) / (len(pos) - 1))
        for e, gp in zip(es, pos):
            t = e["device_total_bytes"]
            ratio = gp / t if t else None
            if not ((ratio is not None and ratio >= rmin) or gp >= bmin):
                continue
            z = max(0.0, 0.6745 * (gp - med) / mad) if mad > 0 else max(0.0, (gp - mean) / sd) if sd > 0 else 0.0
            if z < zmin:
                continue
            spikes[rank].append((e, int(gp), ratio, rpy(z, 4), [m for m in marks[rank] if abs(m - e["timestamp_ns"]) <= mwin]))
    if not spikes:
        return []
    world, t0 = max(e["world_size"] for e in ev), max(0, ev[0]["timestamp_ns"])
    res = []
    for rank, ss in spikes.items():
        for e, gp, ratio, z, mk in ss:
            ts = e["timestamp_ns"]
            sync = max(1, len({r for r, o in spikes.items() for s in o if abs(s[0]["timestamp_ns"] - ts) <= swin}))
            sr = 0.0 if world <= 1 else min(1.0, (sync - 1) / (world - 1))
            div = max(min(1.0, gp / bmin), min(1.0, (ratio or 0.0) / rmin))
            conf = 0.0
            conf += 0.34 if mk else 0.0
            conf += 0.34 * sr
            conf += 0.16 * min(1.0, z / zmin)
            conf += 0.16 * div
            rc = {"gap_spike_statistical_outlier"} | ({"marker_collective_token", "marker_spike_overlap"} if mk else {"weak_marker_signal"})
            if not mk:
                conf -= 0.15
            if sr >= smin:
                rc.add("cross_rank_synchrony")
            if div >= 0.5:
                rc.add("allocator_device_divergence")
            if world <= 1 or sync <= 1:
                conf -= 0.15
                rc.add("single_rank_only")
            if ratio is None:
                conf -= 0.05
            conf = max(0.0, min(1.0, conf))
            c3 = rpy(conf, 3)
            if conf <= 0 or c3 < cmin:
                continue
            a, b = (min(mk), max(mk)) if mk else (ts, ts)
            res.append(dict(rank=rank, interval_start_ns=max(0, t0, min(a, ts) - pad), interval_end_ns=max(b, ts) + pad,
                            classification="collective_confident" if conf >= .8 else "collective_likely" if conf >= .6 else "collective_suspect",
                            confidence=c3, reason_codes=sorted(rc),
                            evidence=dict(marker_hits=len(mk), synchronized_ranks=sync, expected_world_size=world, synchrony_ratio=rpy(sr, 4), peak_gap_bytes=gp,
                                          peak_gap_ratio=None if ratio is None else rpy(ratio, 6), robust_zscore=z),
                            phase_attribution=attribute(spans, (e["session_id"], rank), ts)))
    order = ["collective_suspect", "collective_likely", "collective_confident"]
    out = []
    for r in sorted(res, key=lambda r: (r["rank"], r["interval_start_ns"])):
        p = out[-1] if out else None
        if not p or p["rank"] != r["rank"] or r["interval_start_ns"] > p["interval_end_ns"]:
            out.append(r)
            continue
        mx = lambda a, b: b if a is None else a if b is None else max(a, b)  # noqa: E731
        p["evidence"] = {k: mx(p["evidence"][k], r["evidence"][k]) for k in p["evidence"]}
        p["interval_end_ns"] = max(p["interval_end_ns"], r["interval_end_ns"])
        p["classification"] = max(p["classification"], r["classification"], key=order.index)
        p["confidence"] = max(p["confidence"], r["confidence"])
        p["reason_codes"] = sorted(set(p["reason_codes"]) | set(r["reason_codes"]))
        p["phase_attribution"] = p["phase_attribution"] or r["phase_attribution"]
    return out


# ---- cross rank ------------------------------------------------------------
def cross(events, spans):
    out = dict(job_id=None, world_size=0, participating_ranks=[], missing_ranks=[], rank_sample_counts={}, alignment_offsets_ns={},
               cluster_onset_timestamp_ns=None, first_cause_suspects=[])
    s = [e for e in events if e["event_type"].casefold() == "sample"]
    if not s:
        return out
    jobs = Counter(e["job_id"] for e in s if e["job_id"])
    job = jobs.most_common(1)[0][0] if jobs else None
    if len(jobs) > 1:
        s = [e for e in s if e["job_id"] == job]
    g = defaultdict(list)
    for e in s:
        g[e["rank"]].append(e)
    for v in g.values():
        v.sort(key=lambda e: (e["timestamp_ns"], e["pid"], e["host"]))
    ranks = sorted(g)
    ws = Counter(e["world_size"] for e in s if e["world_size"] > 1)
    world = max(ws.most_common(1)[0][0] if ws else 1, ranks[-1] + 1)
    miss = [r for r in range(world) if r not in g]
    anchor = g[0 if 0 in g else ranks[0]][0]["timestamp_ns"]
    off = {r: g[r][0]["timestamp_ns"] - anchor for r in ranks}
    iv = [b["timestamp_ns"] - a["timestamp_ns"] for v in g.values() for a, b in zip(v, v[1:]) if b["timestamp_ns"] > a["timestamp_ns"]]
    if not iv:
        iv = [e["sampling_interval_ms"] * 1000000 for v in g.values() for e in v if e["sampling_interval_ms"] > 0]
    mi = int(median(iv)) if iv else 0
    out.update(job_id=job, world_size=world, participating_ranks=ranks, missing_ranks=miss, rank_sample_counts={str(r): len(g[r]) for r in ranks},
               alignment_offsets_ns={str(r): off[r] for r in ranks})
    if len(g) == 1:
        return out
    cand = []
    for r, v in g.items():
        thr = max(64 << 20, int(max(e["device_used_bytes"] for e in v) * 0.10))
        cum = n = 0
        for a, b in zip(v, v[1:]):
            d = b["device_used_bytes"] - a["device_used_bytes"]
            if d <= 0:
                cum = n = 0
                continue
            cum, n = cum + d, n + 1
            if cum >= thr:
                cand.append((b["timestamp_ns"] - off[r], -cum, r, b, n))
                break
    if not cand:
        return out
    cand.sort(key=lambda c: c[:3])
    onset = cand[1][0] if len(cand) >= 2 else None
    cut = cand[0][0] if onset is None else onset
    sus = [c for c in cand if c[0] <= cut]
    early = sum(c[0] == sus[0][0] for c in sus)
    sparse = bool(miss or any(len(v) < 2 for v in g.values()))
    for al, ncum, r, e, n in sus:
        lead = 0 if onset is None else onset - al
        conf = "low"
        if len(cand) >= 2 and al == sus[0][0]:
            if early == 1 and not sparse and (mi <= 0 or lead >= mi):
                conf = "high"
            elif not sparse:
                conf = "medium"
        out["first_cause_suspects"].append(dict(
            rank=r, first_spike_timestamp_ns=e["timestamp_ns"], aligned_first_spike_timestamp_ns=al, peak_delta_bytes=-ncum, spike_window_samples=n,
            lead_over_cluster_onset_ns=lead, confidence=conf,
            evidence=dict(device_used_delta_bytes=-ncum, supporting_ranks_at_or_before_onset=len(sus)),
            phase_attribution=attribute(spans, (e["session_id"], r), e["timestamp_ns"])))
    out["cluster_onset_timestamp_ns"] = onset
    return out


# ---- rollup (rank gap + peaks only) ----------------------------------------
def rank_rollup(es):
    s = [e for e in es if e["event_type"] == "sample"]
    gp = [e["device_used_bytes"] - e["allocator_reserved_bytes"] for e in s]
    dt = (s[-1]["timestamp_ns"] - s[0]["timestamp_ns"]) if s else 0
    return dict(event_count=len(es), sample_count=len(s), hidden_gap_first_bytes=gp[0] if gp else None, hidden_gap_latest_bytes=gp[-1] if gp else None,
                hidden_gap_peak_bytes=max(gp) if gp else None, hidden_gap_delta_bytes=gp[-1] - gp[0] if gp else None,
                hidden_gap_drift_bytes_per_second=rpy((gp[-1] - gp[0]) / (dt / 1e9), 6) if dt > 0 else None)


# ---- leaks -----------------------------------------------------------------
def tf_leaks(m):
    if len(m) < 10:
        return []
    out, n = [], len(m)
    ratio = sum(m[i] > m[i - 1] for i in range(1, n)) / (n - 1)
    if ratio > 0.7:
        out.append(("monotonic_increase", "high" if ratio > 0.9 else "medium"))
    mean = math.fsum(m) / n
    sd = math.sqrt(math.fsum((v - mean) ** 2 for v in m) / (n - 1))
    sp = [v for v in m if v > mean + 3 * sd]
    if sp:
        out.append(("memory_spikes", "medium", len(sp)))
    a, b = sum(m[:5]) / 5, sum(m[-5:]) / 5
    if b > a * 1.5:
        out.append(("insufficient_cleanup", "medium"))
    return out


def jax_leaks(m):
    n = len(m)
    if n < 10:
        return []
    mx, my = (n - 1) / 2, sum(m) / n
    slope = sum((i - mx) * (v - my) for i, v in enumerate(m)) / sum((i - mx) ** 2 for i in range(n))
    top = max(m)
    if slope > top * max(0.05 * 0.02, 0.001):
        return [("leak", "medium" if slope < top * 0.01 else "high", slope)]
    return []


# ---- record normalisation (contract 1.1 - 1.5) ------------------------------
class Bad(Exception):
    pass


REQ = ("timestamp_ns event_type collector sampling_interval_ms pid host device_id allocator_allocated_bytes allocator_reserved_bytes "
       "allocator_active_bytes allocator_inactive_bytes allocator_change_bytes device_used_bytes device_free_bytes device_total_bytes context metadata").split()
IDS = ("job_id", "rank", "local_rank", "world_size")


def isint(v):
    return isinstance(v, int) and not isinstance(v, bool)


def num(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def need(c):
    if not c:
        raise Bad


def identity(g, env=None):
    job, rank, local, world = (g(k) for k in IDS)
    if env is not None:
        ejob = next((env[k].strip() for k in ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID") if env.get(k, "").strip()), None)
        if rank is None or local is None or world is None:
            for a, b, c in (("RANK", "LOCAL_RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
                            ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS")):
                if env.get(a) is None or env.get(c) is None:
                    continue
                try:
                    er, el, ew = int(env[a]), int(env[b]) if env.get(b, "").strip() else int(env[a]), int(env[c])
                except ValueError:
                    raise Bad
                need(er >= 0 and el >= 0 and ew >= 1)
                rank, local, world = (er if rank is None else rank), (el if local is None else local), (ew if world is None else world)
                break
        job = ejob if job is None else job
    world = 1 if world is None else world
    rank = 0 if rank is None else rank
    local = rank if local is None else local
    need(job is None or (isinstance(job, str) and job.strip()))
    need(all(map(isint, (rank, local, world))) and 0 <= rank < world and 0 <= local < world)
    return dict(job_id=job, rank=rank, local_rank=local, world_size=world)


def check_v3(o):
    st = lambda v: isinstance(v, str) and v.strip()  # noqa: E731
    need(set(REQ) <= set(o) and set(o) <= set(REQ) | set(IDS) | {"schema_version", "session_id"})
    for k in ("event_type", "collector", "host"):
        need(st(o[k]))
    for k in ("timestamp_ns", "sampling_interval_ms", "allocator_allocated_bytes", "allocator_reserved_bytes", "device_used_bytes"):
        need(isint(o[k]) and o[k] >= 0)
    for k in ("allocator_active_bytes", "allocator_inactive_bytes", "device_free_bytes", "device_total_bytes"):
        need(o[k] is None or (isint(o[k]) and o[k] >= 0))
    need(isint(o["pid"]) and o["pid"] >= -1 and isint(o["device_id"]) and isint(o["allocator_change_bytes"]))
    t = o["device_total_bytes"]
    need(t is None or (o["device_used_bytes"] <= t and (o["device_free_bytes"] is None or o["device_free_bytes"] <= t)))
    need(o["context"] is None or isinstance(o["context"], str))
    need(isinstance(o["metadata"], dict))
    for k in IDS[1:]:
        need(k not in o or isint(o[k]))


def normalize(r, default):
    need(isinstance(r, dict))
    legacy = "schema_version" not in r
    md = r.get("metadata", {})
    if legacy:
        need(md is None or isinstance(md, dict))
        md = dict(md or {})
        md.update({k[9:]: v for k, v in r.items() if k.startswith("metadata_")})
    else:
        need(isint(r["schema_version"]) and r["schema_version"] in (2, 3) and isinstance(md, dict))
    sid = r.get("session_id")
    sid = md.get("session_id") if sid is None else sid
    if not (isinstance(sid, str) and sid.strip()):
        sid = default or "legacy-" + str(uuid.uuid5(uuid.NAMESPACE_URL, "::".join(
            str(p) for p in (r.get("timestamp_ns", r.get("timestamp", "unknown")), r.get("host", "unknown"), r.get("pid", -1)) if p is not None)))
    if not legacy:
        o = dict(r)
        ids = identity(lambda k: r.get(k))
        check_v3(o)
        return {**{k: o[k] for k in REQ}, **ids, "schema_version": 3, "session_id": sid}
    first = lambda keys, src=r, d=None: next((src[k] for k in keys if k in src), d)  # noqa: E731
    if "timestamp_ns" in r:
        ts = r["timestamp_ns"]
    else:
        need(num(r.get("timestamp")))
        ts = int(float(r["timestamp"]) * 1e9)
    dv = r.get("device")
    low = dv.lower() if isinstance(dv, str) else ""
    if "device_id" in r:
        dev = r["device_id"]
    elif "cpu" in low:
        dev = -1
    elif ":" in low and low.rsplit(":", 1)[1].isdigit():
        dev = int(low.rsplit(":", 1)[1])
    else:
        dev = 0 if low.startswith("/gpu") or "memory_mb" in r else -1
    if "allocator_allocated_bytes" in r or "memory_allocated" in r:
        al = first(("allocator_allocated_bytes", "memory_allocated"))
    elif num(r.get("memory_mb")):
        al = int(float(r["memory_mb"]) * 1048576)
    else:
        al = r.get("device_used_bytes", 0)
    used = r.get("device_used_bytes", al)
    tk = ("device_total_bytes", "total_memory", "device_total", "total_bytes")
    tot = first(tk) if any(k in r for k in tk) else first(tk[1:], md)
    need(tot is None or isint(tot))
    free = r["device_free_bytes"] if "device_free_bytes" in r else None if tot is None else max(0, tot - used)
    coll = r.get("collector")
    if not (isinstance(coll, str) and coll.strip()):
        be = r.get("backend", md.get("backend"))
        be = be.strip().lower() if isinstance(be, str) else ""
        coll = (f"stormlog.{be}_tracker" if be in ("mps", "rocm", "cuda", "cpu") else "stormlog.tensorflow.memory_tracker" if "memory_mb" in r else
                ("stormlog.cpu_tracker" if dev == -1 else "stormlog.cuda_tracker") if "memory_allocated" in r else "legacy.unknown")
    o = dict(timestamp_ns=ts, event_type=first(("event_type", "type"), d="sample"), collector=coll, sampling_interval_ms=r.get("sampling_interval_ms", 0),
             pid=first(("pid",), r, md.get("pid", -1)), host=first(("host",), r, md.get("host", "unknown")), device_id=dev, allocator_allocated_bytes=al,
             allocator_reserved_bytes=first(("allocator_reserved_bytes", "memory_reserved"), d=al), allocator_active_bytes=r.get("allocator_active_bytes"),
             allocator_inactive_bytes=r.get("allocator_inactive_bytes"), allocator_change_bytes=first(("allocator_change_bytes", "memory_change"), d=0),
             device_used_bytes=used, device_free_bytes=free, device_total_bytes=tot, context=first(("context", "message")),
             metadata={k: v for k, v in md.items() if k not in IDS + ("session_id",)})
    o.update(identity(lambda k: r.get(k) if r.get(k) is not None else md.get(k)))
    check_v3(o)
    return {**o, "schema_version": 3, "session_id": sid}
