/* SPDX-License-Identifier: MIT */
/* Would it have fit: verdicts for other devices and settings of PyTorch's allocator, and what it reserved over time beside their capacities. */
import uPlot from "uplot";
import {h, replace} from "./dom.js";
import {bytes, bytesShort, count, fine, instant, visible} from "./format.js";
import {table, word} from "./tables.js";

const HEIGHT = 240;
const POWERS = Array.from({length: 64}, (_, i) => 2 ** i);
const VERDICTS = {fits: "fits", no: "no", either: "either: it depends on where the driver puts segments", unknown: "unknown"};

/* The smallest capacity from which on all fit; "at most" where the search ended before it met one that does not. */
export function alwaysFrom(choice) {
	if (choice.always_from === null)
		return null;
	return `${choice.at_most ? "at most " : ""}${bytes(choice.always_from)}`;
}

/* What setting is best, in a sentence; null: none is better than the recorded one, or nobody knows. */
export function saves(subject) {
	const [recorded, best] = [subject.choices[0], subject.choices[subject.best]];
	if (!subject.best || !recorded.recorded || best.always_from === null)
		return null;
	return `PYTORCH_CUDA_ALLOC_CONF=${best.settings} needs ${bytes(best.always_from)}${recorded.always_from === null ? "" : `, ${bytes(recorded.always_from - best.always_from)} less`}.`;
}

/* Capacities that get a line: not so far above what is drawn that it would look flat. */
export function drawn(capacities, most) {
	const near = capacities.filter((bytes) => bytes <= 2 * most);
	return near.length ? near : capacities.slice(0, 1);
}

/* One sentence about a capacity. */
function saysOf(run, capacity, page) {
	const verdict = VERDICTS[run.verdict];
	return run.verdict !== "no" ? `${bytes(capacity)}: ${verdict}` : `${bytes(capacity)}: no, it fails at ${instant(run.at, fine(page.duration_ns))}`;
}

/* The capacities as a slider, of the one process, on the device that the answer is about; null: no replay tells. */
export function whatIf(page) {
	const open = page.answer?.verdicts[0], subject = page.processes.length === 1 && page.fit?.find((s) => s.device === open?.device);
	const runs = (subject && subject.choices[0]?.runs) || [], fits = runs.findIndex((run) => run.verdict === "fits");
	if (fits < 0)
		return null;
	const {capacities} = subject, said = h("output");
	const slider = h("input", {type: "range", min: 0, max: runs.length - 1, value: fits, "aria-label": "Capacity", oninput: () => say()});
	const say = () => (said.textContent = saysOf(runs[slider.value], capacities[slider.value], page));
	say();
	return h("p", {class: "what-if"}, h("label", {}, subject.of_allocator ? "With a limit of " : "On a card of ", slider), " ", said);
}

export class Fit {
	constructor({page, stacks, state, palette}) {
		Object.assign(this, {page, stacks, state, palette});
		this.who = h("select", {"aria-label": "Device", onchange: (event) => state.set({fit: event.target.value, with: "0"})});
		this.with = h("select", {"aria-label": "Settings", onchange: (event) => state.set({with: event.target.value})});
		this.said = h("div", {});
		this.chart = h("div", {class: "chart", role: "img"});
		this.legend = h("ul", {class: "legend"});
		this.failures = h("ul", {class: "failures"});
		this.controls = h("p", {class: "controls"}, page.fit.length > 1 && h("label", {}, "Of ", this.who), h("label", {}, "Drawn with ", this.with));
		this.node = h("div", {}, this.said, this.controls, this.chart, this.legend, this.failures);
		new ResizeObserver(() => this.plot && Math.abs(this.chart.clientWidth - this.plot.width) > 1 && this.paint()).observe(this.chart);
	}

	name(subject) {
		const p = this.page.processes[subject.process];
		return `${p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`} device ${subject.device}`;
	}

	draw() {
		const {fit} = this.page, at = Math.min(fit.length - 1, this.state.number("fit") || 0), subject = fit[at];
		this.subject = subject;
		this.choice = subject.choices[Math.min(subject.choices.length - 1, this.state.number("with") || 0)];
		replace(this.who, fit.map((s, i) => h("option", {value: String(i), selected: i === at}, this.name(s))));
		replace(this.with, subject.choices.map((c, i) => h("option", {value: String(i), selected: c === this.choice}, `${visible(c.settings, 80)}${c.recorded ? " (recorded)" : ""}`)));
		this.controls.hidden = this.chart.hidden = !this.choice;
		replace(this.said, h("p", {}, h("strong", {}, this.name(subject)), subject.reproduces ?
			`: the replay reproduces the recorded run exactly (${count(subject.events)} events${subject.release ? `, PyTorch ${subject.release}` : ""}).` : ": no verdict."),
		subject.notes.map((note) => h("p", {class: "soft"}, visible(note, 300))), this.choice && this.verdicts(), saves(subject) && h("p", {}, "Best: ", saves(subject)));
		this.drawFailures();
		this.paint();
	}

	verdicts() {
		const {capacities, choices, of_allocator} = this.subject;
		const also = (c) => (c.also.length ? c.also.slice(0, 3).map(([from, to]) => `${bytes(from)} to ${bytes(to)}`).join(", ") : "");
		const rows = choices.map((c) => [`${c.settings}${c.recorded ? " (recorded)" : ""}`, alwaysFrom(c), also(c), c.peak_reserved, ...c.runs.map((run) => VERDICTS[run.verdict])]);
		return table(of_allocator ? "Sizes are limits of PyTorch's allocator only" : "Sizes are the device's; memory of everything else is subtracted",
			[["Settings", word], ["Always fits from", word], ["Also fits", word], ["Reserved at most", bytes], ...capacities.map((c) => [bytes(c), word])], rows, "");
	}

	drawFailures() {
		const {choice} = this, failed = choice ? choice.runs.map((run, i) => [run, this.subject.capacities[i]]).filter(([run]) => run.verdict === "no") : [];
		replace(this.failures, failed.map(([run, capacity]) => {
			const frame = run.stack ? this.stacks.path(run.stack).at(-1) : undefined;
			return h("li", {}, `With ${bytes(capacity)} it fails at ${instant(run.at, fine(this.page.duration_ns))}: `,
				run.request === null ? `everything else then had ${bytes(run.bytes)}` : `request ${count(run.request)}, of ${bytes(run.bytes)}`,
				frame !== undefined && ` (${this.stacks.name(frame)})`, ".");
		}));
	}

	paint() {
		const {subject, choice} = this, p = this.palette();
		this.plot?.destroy();
		this.plot = null;
		if (!choice)
			return;
		const width = Math.max(240, this.chart.clientWidth || 800), known = (values) => Array.from(values, (v) => (Number.isNaN(v) ? null : v));
		const xs = Float64Array.from(choice.reserved, (_, i) => subject.start + i * subject.width);
		const most = choice.reserved.reduce((a, v) => Math.max(a, v || 0), 0), lines = drawn(subject.capacities, most);
		const step = uPlot.paths.stepped({align: 1}), quiet = {points: {show: false}, paths: step};
		const colour = (capacity) => ({no: p.oom, fits: p.layers[2]}[choice.runs[subject.capacities.indexOf(capacity)].verdict] || p.layers[1]);
		const data = [xs, known(choice.reserved), known(choice.needed), ...lines.map((c) => xs.map(() => c))];
		const series = [{}, {...quiet, stroke: p.layers[4], width: 1.2, fill: p.layers[4] + "40"}, {...quiet, stroke: p.layers[0], width: 1.2, fill: p.layers[0] + "80"},
			...lines.map((c) => ({...quiet, stroke: colour(c), width: 1.5, dash: [6, 4]}))];
		this.lines = lines;
		this.plot = new uPlot({width, height: HEIGHT, legend: {show: false}, pxAlign: 0, padding: [12, 18, 0, 0], cursor: {show: false}, series,
			scales: {x: {time: false}, y: {range: () => [0, Math.max(most, ...lines) * 1.08]}},
			axes: [{stroke: p.soft, grid: {stroke: p.grid, width: 1}, ticks: {stroke: p.grid}, space: 90, values: (u, ticks, _, __, incr) => ticks.map((t) => instant(t, incr))},
				{stroke: p.soft, grid: {stroke: p.grid, width: 1}, ticks: {stroke: p.grid}, size: 72, incrs: POWERS, values: (u, ticks) => ticks.map(bytesShort)}],
			hooks: {draw: [(u) => this.drawCrosses(u, p)]}}, data, this.chart);
		this.chart.setAttribute("aria-label", `Reserved over time with ${choice.settings}, at most ${bytes(most)}, and lines at ${lines.map((c) => bytes(c)).join(", ")}`);
		const item = (background, text) => h("li", {}, h("span", {class: "swatch", style: {background}}), text);
		replace(this.legend, item(p.layers[4], subject.of_allocator ? "reserved, without an end" : "reserved and what everything else has, without an end"), item(p.layers[0], "of it, needed: no capacity below does"),
			lines.map((c) => item(colour(c), `${bytes(c)}: ${VERDICTS[choice.runs[subject.capacities.indexOf(c)].verdict]}`)));
	}

	/* Where a capacity is not enough. */
	drawCrosses(u, p) {
		u.ctx.save();
		u.ctx.strokeStyle = p.oom;
		u.ctx.lineWidth = 2 * devicePixelRatio;
		for (const capacity of this.lines) {
			const run = this.choice.runs[this.subject.capacities.indexOf(capacity)];
			if (run.verdict !== "no")
				continue;
			const x = u.valToPos(run.at, "x", true), y = u.valToPos(capacity, "y", true), r = 5 * devicePixelRatio;
			u.ctx.beginPath();
			for (const d of [-1, 1]) {
				u.ctx.moveTo(x - r, y - d * r);
				u.ctx.lineTo(x + r, y + d * r);
			}
			u.ctx.stroke();
		}
		u.ctx.restore();
	}
}
