/* SPDX-License-Identifier: MIT */
/* The top of the page: the answer, then what each device and the trace say. */
import {h, replace, svg} from "./dom.js";
import {whatIf} from "./fit.js";
import {bytes, count, duration, fine, instant, percent, visible} from "./format.js";
import {markedOf, opened, placeOf} from "./verdicts.js";

const DEVICES = 16; /* rows */
const CELLS = 160;

function plural(n, one, many) {
	return `${count(n)} ${n === 1 ? one : many || one + "s"}`;
}

export function rankName(page, process) {
	const p = page.processes[process];
	return page.processes.length === 1 && p.rank === null ? "the process" : p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`;
}

/* What is told of samples, which no analysis of calls has seen. */
export function ofSamples(page) {
	const top = page.processes.reduce((best, p) => (best === null || p.peak > best.peak ? p : best), null);
	const failed = page.findings.filter((f) => f.id === "oom.sampled").sort((a, b) => a.from - b.from);
	return [failed.length && `Out of memory on ${rankName(page, failed[0].process)} at ${instant(failed[0].from, fine(page.duration_ns))}.`,
		top && `Peak ${bytes(top.peak)}${page.processes.length > 1 ? ` on ${rankName(page, page.processes.indexOf(top))}` : ""}.`,
		"These are samples: they say how much was held, not by whom."].filter(Boolean);
}

/* Leaks as the terminal counts them: a line in however many processes is one. */
function leaksTile({answer}) {
	const leaks = answer ? answer.verdicts.filter((v) => v.word === "LEAK") : [], held = leaks.reduce((sum, v) => sum + (v.figures.all_bytes || v.bytes || 0), 0);
	return leaks.length > 0 && tile("Leaks", held ? bytes(held) : count(leaks.length), leaks.slice(0, 3).map((v) => visible(placeOf(markedOf(v) || {}), 60)).join(", "), "warn");
}

function meter(part, whole) {
	return whole ? h("div", {class: "meter"}, h("div", {style: {width: `${Math.min(100, (part / whole) * 100)}%`}})) : null;
}

function tile(label, value, detail, tone, extra) {
	return h("div", {class: `tile ${tone || ""}`}, h("p", {class: "label"}, label), h("p", {class: "value"}, value), extra, detail && h("p", {class: "soft"}, detail));
}

/* What the trace lacks, and what the page left out to stay small. */
export function lacks({warnings, given_up}) {
	return (warnings.length > 0 || given_up.length > 0) && h("details", {class: "lacks"},
		h("summary", {}, `What is missing (${warnings.length + given_up.length})`),
		h("ul", {}, warnings.map((w) => h("li", {}, visible(w, 600))), given_up.map((w) => h("li", {}, visible(w, 600)))));
}

/* The first line of a dry run. */
export function dryLine(page, more) {
	return page.dry && h("p", {class: "dry"}, `DRY RUN on ${visible(page.dry, 60)}: no number was computed.${more}`);
}

/* The device with the most hidden memory; undefined: none is known. */
const mostHidden = (devices) => devices.filter((d) => d.hidden_peak_bytes !== null).sort((a, b) => b.hidden_peak_bytes - a.hidden_peak_bytes)[0];

/* The most that is hidden on one device, as the terminal says it; null: unknown. */
export function hiddenWords(devices) {
	const most = mostHidden(devices);
	return most ? `${most.hidden_figure === "device" ? "at most " : ""}${bytes(most.hidden_peak_bytes)}` : null;
}

const HIDDEN_NAMES = {context: "CUDA context", code: "code", limit: "set aside by a limit", rounding: "rounding", unexplained: "unexplained"};

/* What it is made of; a fiftieth of it is not named. */
export function hiddenIs(devices) {
	const most = mostHidden(devices), sum = (what) => (most.hidden ?? []).reduce((all, one) => all + (one.what === what ? one.bytes : 0), 0);
	const named = Object.keys(HIDDEN_NAMES).filter((what) => sum(what) && sum(what) * 50 >= most.hidden_peak_bytes);
	return `${named.map((what) => HIDDEN_NAMES[what]).join(", ") || "nothing"}: no call asks for it`;
}

/* Cards that give one name to several processes: their sum would be more than one of them has. */
const peakOf = ({processes}, d) => (d.room_bytes !== null && d.known_peak_bytes > d.room_bytes ? Math.max(...d.processes.map((i) => processes[i].peak)) : d.known_peak_bytes);

/* A device's memory over time, below the largest of all: the highest of each of CELLS parts of the run. */
function course({lines, duration_ns}, device, most) {
	const highest = new Float64Array(CELLS), known = lines.filter((line) => line.what === "known"), begin = Math.min(...known.map((line) => line.start));
	for (const line of known.filter((l) => l.device === device.device && device.processes.includes(l.process)))
		line.max.forEach((value, i) => {
			const cell = Math.min(CELLS - 1, Math.floor(((line.start + i * line.width - begin) / (duration_ns - begin)) * CELLS));
			highest[cell] = Math.max(highest[cell], value);
		});
	const points = Array.from(highest, (value, i) => [i, i + 1].map((x) => `${x},${24 - (24 * value) / most}`)).flat();
	return svg("svg", {class: "course", viewBox: `0 0 ${CELLS} 24`, preserveAspectRatio: "none"}, svg("polygon", {points: `0,24 ${points.join(" ")} ${CELLS},24`}));
}

const deviceName = (page, d) => `${d.processes.length === 1 && page.processes.length > 1 ? `${rankName(page, d.processes[0])}, ` : ""}${visible(d.host, 30)} device ${d.device}`;

/* Several devices beside each other, the fullest first. */
function drawDevices(page) {
	const sorted = [...page.devices].sort((a, b) => peakOf(page, b) - peakOf(page, a)), most = Math.max(1, ...sorted.map((d) => peakOf(page, d)));
	return h("table", {class: "parts"}, h("caption", {}, "Devices, each at its own peak and over time"), h("tbody", {}, sorted.slice(0, DEVICES).map((d) => h("tr", {}, h("td", {class: "num"}, bytes(peakOf(page, d))),
		h("td", {}, deviceName(page, d)), h("td", {class: "part", "aria-hidden": "true"}, course(page, d, most)),
		h("td", {class: "soft"}, [d.room_bytes !== null && `${percent(peakOf(page, d), d.room_bytes)} of ${bytes(d.room_bytes)}`, d.name && visible(d.name, 40)].filter(Boolean).join(", "))))),
	sorted.length > DEVICES && h("tfoot", {}, h("tr", {}, h("td", {class: "num"}), h("td", {colspan: 3}, `${plural(sorted.length - DEVICES, "more device")}, ${bytes(peakOf(page, sorted[DEVICES]))} at most`))));
}

export function drawAnswer(node, page) {
	const {processes, devices, answer} = page;
	const hidden = hiddenWords(devices);
	replace(node,
		!answer && dryLine(page, ""),
		h("h1", {}, answer ? [...visible(answer.title || page.title, 320).split("  "), answer.right && visible(answer.right, 80)].filter(Boolean).join(" · ") : visible(page.title, 200)),
		answer ? answer.under.map((line) => (page.dry && line.startsWith("DRY RUN") ? h("p", {class: "dry"}, `${visible(line, 400)}. Times are of this machine and not of the card.`) : h("p", {class: "soft"}, visible(line, 400)))) :
			h("p", {class: "soft"}, `${plural(processes.length, "process", "processes")}, ${duration(page.duration_ns)}.`),
		answer ? answer.verdicts.slice(0, 1).map(opened) : h("ol", {class: "answer"}, ofSamples(page).map((line) => h("li", {}, line))),
		h("div", {class: "tiles"},
			devices.length === 1 && !page.window && devices.map((d) => tile(`Peak, ${deviceName(page, d)}`, bytes(peakOf(page, d)),
				[d.room_bytes === null ? null : `${percent(peakOf(page, d), d.room_bytes)} of ${bytes(d.room_bytes)}`, peakOf(page, d) < d.known_peak_bytes && "the most of one process: several cards have this name", d.name && visible(d.name, 40), page.dry ? null : d.used_peak_bytes === null ? "device-wide use not sampled" : `device-wide ${bytes(d.used_peak_bytes)} when sampled`].filter(Boolean).join(", "),
				"", meter(peakOf(page, d), d.room_bytes))),
			!page.dry && !page.window && tile("Hidden", hidden || "unknown", hidden ? hiddenIs(devices) : "no device-wide samples in the trace"),
			leaksTile(page)),
		devices.length > 1 && drawDevices(page),
		whatIf(page),
		lacks(page));
}
