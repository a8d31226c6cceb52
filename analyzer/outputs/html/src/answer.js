/* SPDX-License-Identifier: MIT */
/* The top of the page: the answer in three lines, then what each device and the trace say. */
import {h, replace} from "./dom.js";
import {bytes, count, date, duration, fine, instant, percent, sentence, visible} from "./format.js";

function plural(n, one, many) {
	return `${count(n)} ${n === 1 ? one : many || one + "s"}`;
}

export function rankName(page, process) {
	const p = page.processes[process];
	return page.processes.length === 1 && p.rank === null ? "the process" : p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`;
}

/* Who held most, places of one library added up. */
function largestOwner(oom) {
	const byName = new Map();
	for (const o of oom.owners)
		byName.set(o.name, (byName.get(o.name) || 0) + o.bytes);
	const [name, bytes] = [...byName].reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0]);
	return name ? {name, bytes} : null;
}

/* What was still held at the end without growing. */
function leftBytes(page) {
	return page.leaks.filter((l) => l.verdict === "live_at_exit").reduce((a, l) => a + l.bytes, 0);
}

function leaksUnknown(page) {
	return page.processes.every((p) => p.leaks === null);
}

/* Leaks as the terminal counts them: a place in however many processes is one. */
function leaksTile(page) {
	const {leaking} = page, left = leftBytes(page), unknown = leaksUnknown(page);
	const detail = [leaking && leaking.places ? plural(leaking.places, "place") : page.source === "telemetry" ? "samples do not tell" : unknown ? "no process ended by itself" : "",
		left && `${bytes(left)} left at the end`].filter(Boolean).join(", ");
	if (!leaking || !leaking.places) /* a window has no end to leak to */
		return page.window && unknown ? null : tile("Leaks", unknown ? "unknown" : "none", detail, "");
	return tile("Leaks", leaking.bytes ? bytes(leaking.bytes) : count(leaking.places), detail, "warn");
}

/* The best of the changes that were replayed for the error, as the terminal's first. */
function firstChange(page, oom) {
	const subject = (page.changes || []).find((c) => c.failed && c.process === oom.process && c.device === oom.device);
	const change = subject && subject.tried.find((c) => c.helps);
	return change ? [`${sentence(change.helps)}: ${visible(change.text, 120)}, ${visible(change.words, 160)}.`] : [];
}

/* The lines, as text: what failed, who is unlike the others, the peak, what leaks. */
export function answer(page) {
	const {processes, ooms} = page, lines = [];
	const failed = ooms.filter((o) => o.recovered !== true).sort((a, b) => a.at - b.at);
	const held = processes.filter((p) => !p.devices || p.devices.length); /* a process that used no device has no peak */
	const top = held.reduce((best, p) => (best === null || p.peak > best.peak ? p : best), null);
	const asked = failed.length ? failed[0].requested : null;
	const killed = processes.filter((p) => ["killed", "interrupted"].includes(p.status)).length;
	if (failed.length) {
		const o = failed[0], owner = largestOwner(o);
		lines.push(`Out of memory${processes.length > 1 ? ` on ${rankName(page, o.process)}` : ""} at ${instant(o.at, fine(page.duration_ns))}${asked === null ? "" : `: asked for ${bytes(asked)}`}${o.free === null ? "" : ` with ${bytes(o.free)} free`}${owner ? `; ${visible(owner.name, 60)} held ${bytes(owner.bytes)}` : ""}${o.cause ? `: ${visible(o.cause, 600)}` : ""}.`);
		lines.push(...firstChange(page, o));
	} else {
		lines.push(killed ? `No out-of-memory error; ${processes.length > 1 ? `${killed} of ${processes.length} processes were` : "the process was"} killed.` :
			ooms.length ? `${plural(ooms.length, "out-of-memory error")}, all recovered.` : "No out-of-memory error.");
	}
	const unlike = processes.length > 1 ? page.findings.find((f) => f.id.startsWith("ranks.") && f.id !== "ranks.first" && f.severity !== "info") : null;
	if (unlike) /* with many ranks, first say which one is unlike the others */
		lines.splice(failed.length ? lines.length : 0, 0, `${sentence(unlike.text)}.`);
	if (top) {
		const others = held.filter((p) => p !== top).map((p) => p.peak);
		const [low, high] = others.length ? [bytes(Math.min(...others)), bytes(Math.max(...others))] : ["", ""];
		lines.push(`Peak ${bytes(top.peak)}${processes.length > 1 ? ` on ${rankName(page, processes.indexOf(top))}` : ""}${top.peak_at === null ? "" : ` at ${instant(top.peak_at, fine(page.duration_ns))}`}${others.length ? `; ${others.length > 1 ? "the others' own peaks" : "the other's own peak"} ${low === high ? low : `${low} to ${high}`}` : ""}.`);
	}
	const grow = page.labels.filter((l) => l.verdict === "growing" && l.credited).sort((a, b) => b.slope - a.slope)[0], left = leftBytes(page);
	if (page.source === "telemetry")
		lines.push("These are samples: they say how much was held, not by whom.");
	else if (page.leaking.places) /* after an error, and after a rank unlike the others */
		lines.splice(failed.length ? lines.length : Number(Boolean(unlike)), 0, page.leaking.places === 1 ? `${sentence(page.leaking.text)}.` :
			`${count(page.leaking.places)} places leak; the largest: ${visible(page.leaking.text, 300)}.`);
	else if (grow || !leaksUnknown(page))
		lines.push(`No leak found${left ? `; ${bytes(left)} never freed` : ""}${grow ? `; memory grows by ${bytes(grow.slope)} per ${visible(grow.label, 40)}` : ""}.`);
	return [...(page.need || []).map((one) => `${sentence(one, 600)}.`), ...lines]; /* a dry run's need is what it was for */
}

function meter(part, whole) {
	return whole ? h("div", {class: "meter"}, h("div", {style: {width: `${Math.min(100, (part / whole) * 100)}%`}})) : null;
}

function tile(label, value, detail, tone, extra) {
	return h("div", {class: `tile ${tone || ""}`}, h("p", {class: "label"}, label), h("p", {class: "value"}, value), extra, detail && h("p", {class: "soft"}, detail));
}

/* What the trace lacks, and what the page left out to stay small. */
export function lacks({warnings, given_up}) {
	return (warnings.length > 0 || given_up.length > 0) && h("details", {class: "lacks", open: warnings.length > 0 && warnings.length < 4},
		h("summary", {}, `What is missing (${warnings.length + given_up.length})`),
		h("ul", {}, warnings.map((w) => h("li", {}, visible(w, 600))), given_up.map((w) => h("li", {}, visible(w, 600)))));
}

/* The first line of a dry run. */
export function dryLine(page, more) {
	return page.dry && h("p", {class: "dry"}, `DRY RUN on ${visible(page.dry, 60)}: no number was computed.${more}`);
}

/* The most that is hidden on one device, as the terminal says it; null: unknown. */
export function hiddenWords(devices) {
	const known = devices.filter((d) => d.hidden_peak !== null).sort((a, b) => b.hidden_peak - a.hidden_peak);
	return known.length ? `${known[0].hidden_at_most ? "at most " : ""}${bytes(known[0].hidden_peak)}` : null;
}

export function drawAnswer(node, page) {
	const {processes, devices} = page, many = devices.length > 4;
	const sorted = [...devices].sort((a, b) => b.known_peak - a.known_peak), shown = many ? sorted.slice(0, 3) : sorted;
	const hidden = hiddenWords(devices);
	const events = processes.reduce((a, p) => a + p.events, 0), lost = processes.reduce((a, p) => a + p.lost_events, 0);
	const ooms = page.ooms.filter((o) => o.recovered !== true).length;
	const status = [...new Set(processes.map((p) => p.status))].map((s) => `${processes.filter((p) => p.status === s).length} ${s}`).join(", ");
	const time = page.dry ? "" : `, ${duration(page.duration_ns)}`;
	const begun = [!page.timeless && `Started ${date(page.t0)}`, processes.length && processes[0].command && visible(processes[0].command, 200)].filter(Boolean).join(": ");
	replace(node,
		dryLine(page, " Times are of the dry run and not of the card."),
		h("h1", {}, visible(page.title, 200)),
		h("p", {class: "soft"}, page.window ? `${visible(page.window, 320).split("   ").join(" · ")}.` :
			`${plural(processes.length, "process", "processes")} on ${plural(new Set(processes.map((p) => p.host)).size, "host")}${time}, ${status}. ${begun}.`),
		h("ol", {class: "answer"}, answer(page).map((line) => h("li", {}, line))),
		h("div", {class: "tiles"},
			shown.map((d) => tile(`Peak, ${d.processes.length === 1 && processes.length > 1 ? rankName(page, d.processes[0]) + ", " : ""}${visible(d.host, 30)} device ${d.device}`, bytes(d.known_peak),
				[d.total === null ? null : `${percent(d.known_peak, d.total)} of ${bytes(d.total)}`, d.name && visible(d.name, 40), page.dry || page.window ? null : d.used_peak === null ? "device-wide use not sampled" : `device-wide ${bytes(d.used_peak)} when sampled`].filter(Boolean).join(", "),
				"", meter(d.known_peak, d.total))),
			many && tile("Other devices", count(devices.length - 3), `peaks up to ${bytes(sorted[3].known_peak)}`),
			!page.dry && !page.window && tile("Hidden", hidden || "unknown", hidden ? "most on one device: used on it, but asked for by no recorded process" : "no device-wide samples in the trace"),
			leaksTile(page),
			tile("Out of memory", count(page.ooms.length), page.ooms.length ? `${ooms} not recovered` : "", ooms ? "bad" : ""),
			!page.window && tile("Events", count(events), lost ? `${count(lost)} lost` : "none lost", lost ? "warn" : "")),
		lacks(page));
}
